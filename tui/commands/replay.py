"""`gistpoint replay`: makes the tool calls of a recorded run again, and reports the differences."""

from __future__ import annotations

import argparse

from gistpoint.core.errors import UserError
from gistpoint.core.kinds.commandline import spelled
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.core.text import bounded, plural
from gistpoint.sessions.replay.replaying import Replay, ReplayedCall
from gistpoint.sessions.replay.reporting import NEARLY, ReplayedRow, ReplayReport, report_of
from gistpoint.tui.commands.arguments import add_isolation, isolation_of
from gistpoint.tui.commands.command import DONE, NEGATIVE, Handler
from gistpoint.tui.commands.output import print_json, print_text
from gistpoint.tui.commands.progress import ProgressLine
from gistpoint.tui.commands.runs import RUN_HELP, open_named
from gistpoint.tui.object_graph import build_services

_DIFF_CHARACTERS = 8_000
_CALL_CHARACTERS = 160


def replay_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint replay`."""
    parser.description = (
        "Makes each recorded tool call again in a fresh workspace of the task. The exit code is 1 if "
        "a result or the verdict differs, or a call could not run."
    )
    parser.add_argument("recorded", metavar="RUN", nargs="*", help=RUN_HELP)
    parser.add_argument("--all", action="store_true", help="all attempts here that a person or a model has ended")
    parser.add_argument("--task", help="id or its beginning, a folder or a .tar.zst (default: the one it was made on)")
    parser.add_argument("--cluster", metavar="ADDRESS", help="replay attempts on the Dask cluster with this scheduler")
    parser.add_argument("-o", "--output", metavar="FILE", help="keep a line a run; runs that are in it are left out")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_isolation(parser)
    return replay


def replay(options: argparse.Namespace) -> int:
    """Print a line per call as it is made, and the verdicts, or a line per run; return 1 if anything differs."""
    if options.all and options.recorded:
        raise UserError("--all are all attempts, and runs are named beside.", hint="Leave one of the two out.")
    if not options.all and not options.recorded:
        raise UserError("No run is named.", hint="Name runs, or give --all.")
    if options.task and (options.all or options.cluster):
        raise UserError("--task names another task for runs that are named, on this machine alone.")
    if options.all or options.cluster or options.output or len(options.recorded) > 1:
        from gistpoint.tui.commands.replays import replay_many

        return replay_many(options)
    return _replay_one(options, options.recorded[0])


def _replay_one(options: argparse.Namespace, name: str) -> int:
    document = open_named(name)
    replay = build_services(isolation_of(options)).replay_of(document, name, options.task or "")
    with ProgressLine(quiet=options.json) as progress:

        def report(run: RunProgress) -> None:
            progress.count(run.done, run.total, run.phase) if run.total else progress.detail(run.phase)

        def show(replayed: ReplayedCall) -> None:
            progress.detail("")
            _print_call(ReplayedRow.of(replayed))

        for note in replay.notes:
            progress.line(note)
        found = report_of(replay, name, run=RunContext(progress=report), on_call=None if options.json else show)
        for warning in document.warnings:
            progress.line(warning)
    if options.json:
        print_json("gistpoint.replay/1", found.as_json())
    else:
        _print_verdicts(replay, found)
    return DONE if found.same else NEGATIVE


def _print_call(row: ReplayedRow) -> None:
    shown = bounded(" ".join(spelled(row.tool, row.arguments or {}).split()), _CALL_CHARACTERS)
    reason = f"  ({' '.join(row.reason.split())})" if row.reason else ""
    print_text(f"{row.step:>6}  {row.word:<13}  {' '.join(shown.split())}{reason}")
    if row.diff:
        for line in bounded(row.diff, _DIFF_CHARACTERS, what="diff").rstrip("\n").split("\n"):
            print_text(f"        {line}")


def _print_verdicts(replay: Replay, report: ReplayReport) -> None:
    print_text(f"\n{plural(len(report.calls), 'call')}: {report.words}")
    if any(row.word == NEARLY for row in report.calls):
        print_text(f"{NEARLY}: but for times, addresses and folders")
    then = replay.verdict_then()
    same = "the same" if report.same_verdict else "NOT the same"
    compared = "nothing to compare with" if then.passed is None else same
    print_text(f"verdict then: {then.words}; now, in {report.backend}: {replay.verdict_now().words}; {compared}")
