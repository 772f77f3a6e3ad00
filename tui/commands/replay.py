"""`gistpoint replay`: repeat the tool calls of recorded runs, and report the differences."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from gistpoint.core.attempts.identity import MODEL, PERSON
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.commandline import spelled
from gistpoint.core.locations import path_of
from gistpoint.core.requests import IsolationChoice, Request
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.core.text import bounded, plural, visible_line
from gistpoint.object_graph import build_services, build_worker_services
from gistpoint.sessions.replay.replaying import Replay, ReplayedCall
from gistpoint.sessions.replay.reporting import (
    NEARLY,
    ReplayBatch,
    ReplayedRow,
    ReplayReport,
    replay_each,
    report_of,
)
from gistpoint.sessions.services import Services
from gistpoint.tui.commands.arguments import ISOLATION, JSON, TASK_HELP
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, argument, option
from gistpoint.tui.commands.output import print_json, print_text
from gistpoint.tui.commands.progress import LongWork, ProgressLine, long_work
from gistpoint.tui.commands.runs import RUN_HELP, open_named

_DIFF_CHARACTERS = 8_000
_CALL_CHARACTERS = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRuns(Request):
    """A request to repeat the tool calls of recorded runs."""

    recorded: tuple[str, ...] = ()
    all: bool = False
    task: str | None = None
    cluster: str | None = None
    output: str | None = None
    json: bool = False
    isolation: IsolationChoice


def replay(request: ReplayRuns) -> int:
    """Replay one run or many, and print a line for each call or for each run.

    Return 1 if anything differs or can't be replayed. Raises `UserError` if no run is named, or if options
    contradict each other.
    """
    if request.all and request.recorded:
        raise UserError("--all means all attempts, but runs are named too.", hint="Leave one of the two out.")
    if not request.all and not request.recorded:
        raise UserError("No run was given.", hint="Name runs, or give --all.")
    if request.task and (request.all or request.cluster):
        raise UserError("--task is only for named runs, replayed on this machine.")
    named = list(request.recorded)
    if request.all or request.cluster or request.output or len(named) > 1:
        return _replay_many(request)
    return _replay_one(request, named[0])


def _replay_one(request: ReplayRuns, name: str) -> int:
    document = open_named(name)
    replay = build_services(request.isolation).replay_of(document, name, request.task or "")
    with ProgressLine(quiet=request.json) as progress:

        def report(run: RunProgress) -> None:
            progress.count(run.done, run.total, run.phase) if run.total else progress.detail(run.phase)

        def show(replayed: ReplayedCall) -> None:
            progress.detail("")
            _print_call(ReplayedRow.of(replayed))

        for note in replay.notes:
            progress.line(note)
        found = report_of(
            replay, name, run=RunContext(progress=report), on_call=None if request.json else show
        )
        for warning in document.warnings:
            progress.line(warning)
    if request.json:
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
        print_text(f"{NEARLY}: except for times, addresses and folders")
    then = replay.verdict_then()
    same = "the same" if report.same_verdict else "NOT the same"
    compared = "nothing to compare with" if then.passed is None else same
    print_text(
        f"outcome then: {then.words}; now, in {report.backend}: {replay.verdict_now().words}; {compared}"
    )


def _replay_many(request: ReplayRuns) -> int:
    """Replay the named runs, or all attempts that have ended.

    Return 1 if one differs or can't be replayed.
    """
    services = build_services(request.isolation)
    names = _ended(services) if request.all else [*dict.fromkeys(request.recorded)]
    output = path_of(request.output) if request.output else None
    kept = (
        f"The reports so far are in {output}: the same command continues."
        if output
        else "-o FILE keeps reports."
    )
    with long_work(quiet=request.json, kept=kept) as work:

        def print_line(line: str) -> None:
            if not request.json:
                work.progress.detail("")
                print_text(line)

        batch = ReplayBatch(names, output, print_line, _print_note)
        work.progress.stage(f"replaying {len(batch.left)} of {plural(len(names), 'run')}")
        if request.cluster:
            _on_cluster(request, request.cluster, services, batch, work)
        else:
            replay_each(
                batch,
                lambda name: services.replay_of(open_named(name), name, request.task or ""),
                lambda name: work.progress.count(len(names) - len(batch.left), len(names), name),
                work.run,
            )
    same = sum(report.same for report in batch.reports.values())
    if request.json:
        print_json("gistpoint.replays/1", batch.as_json())
    else:
        differ = len(batch.reports) - same
        print_text(
            f"{plural(len(names), 'run')}: {same} the same, {differ} not the same, {len(batch.problems)} not"
            " replayed"
        )
    return DONE if same == len(names) else NEGATIVE


def _ended(services: Services) -> list[str]:
    """Return the ids of the attempts to replay, oldest first.

    These are the attempts of people and models that have ended, are intact, and may show their outcome.
    """
    found = [
        summary.attempt_id
        for summary in services.attempts.outlines()
        if summary.actor in (PERSON, MODEL)
        and summary.state.ended
        and not (summary.problem or summary.withheld)
    ]
    return found[::-1]


def _on_cluster(
    request: ReplayRuns, address: str, services: Services, batch: ReplayBatch, work: LongWork
) -> None:
    from gistpoint.sandbox.cluster import worker_pool_at
    from gistpoint.sessions.agentruns.cluster_replays import ReplaysElsewhere
    from gistpoint.sessions.agentruns.cluster_runs import work_tools

    def tick() -> None:
        work.progress.count(len(batch.names) - len(batch.left), len(batch.names))

    with worker_pool_at(address, _print_note) as workers:
        tools = work_tools(request.isolation)
        replays = ReplaysElsewhere(services, tools, build_worker_services, batch.take, batch.fail)
        replays.carry_out(workers, batch.left, tick)
        if workers.interrupts:
            work.cancel.cancel()
            work.cancel.check()


def _print_note(sentence: str) -> None:
    print(f"gistpoint: {visible_line(sentence)}", file=sys.stderr, flush=True)


REPLAY = CliCommand(
    ReplayRuns,
    replay,
    {
        "recorded": argument("RUN", RUN_HELP),
        "all": option("all ended attempts here, of people and models"),
        "task": option(f"{TASK_HELP} (default: the one it was made on)", metavar="TASK"),
        "cluster": option("replay attempts on the Dask cluster with this scheduler", metavar="ADDRESS"),
        "output": option(
            "save a line per run, and skip runs already in it", "-o", "--output", metavar="FILE"
        ),
        "json": JSON,
        "isolation": ISOLATION,
    },
    about=(
        "Repeats each recorded tool call in a fresh workspace of the task. The exit code is 1 if a result or"
        " the outcome differs, or if a call could not run."
    ),
)
