"""`gistpoint replay`: makes the tool calls of a recorded run again, and reports the differences."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from gistpoint.core.kinds.commandline import spelled
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.core.text import bounded
from gistpoint.sessions.replay.replaying import Replay, ReplayedCall, ReplayedVerdict, Sameness
from gistpoint.tui.commands.command import DONE, NEGATIVE, Handler
from gistpoint.tui.commands.output import print_json, print_text
from gistpoint.tui.commands.progress import ProgressLine
from gistpoint.tui.commands.runs import RUN_HELP, open_named
from gistpoint.tui.object_graph import add_isolation, build_services

_NEGATIVE = frozenset({Sameness.DIFFERS, Sameness.COULD_NOT_RUN})
_NEARLY = "same*"
_DIFF_CHARACTERS = 8_000
_CALL_CHARACTERS = 160


def replay_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint replay`."""
    parser.description = (
        "Makes each recorded tool call again in a fresh workspace of the task. The exit code is 1 if "
        "a result or the verdict differs, or a call could not run."
    )
    parser.add_argument("recorded", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--task", help="id or its beginning, a folder or a .tar.zst (default: the one it was made on)")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_isolation(parser)
    return replay


def replay(options: argparse.Namespace) -> int:
    """Print a line per call as it is made, and the verdicts; return 1 if anything differs."""
    document = open_named(options.recorded)
    replay = build_services(options).replay_of(document, options.recorded, options.task or "")
    counts: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    with ProgressLine(quiet=options.json) as progress:

        def report(run: RunProgress) -> None:
            progress.count(run.done, run.total, run.phase) if run.total else progress.detail(run.phase)

        for note in replay.notes:
            progress.line(note)
        for call in replay.calls(run=RunContext(progress=report)):
            counts[_word(call)] += 1
            if options.json:
                rows.append(_row(call))
            else:
                progress.detail("")
                _print_call(call)
        for warning in document.warnings:
            progress.line(warning)
    good = replay.same_verdict() and not any(counts[kind.value] for kind in _NEGATIVE)
    if options.json:
        _print_json(options.recorded, replay, rows, good)
    else:
        _print_verdicts(replay, counts)
    return DONE if good else NEGATIVE


def _word(replayed: ReplayedCall) -> str:
    return _NEARLY if replayed.sameness is Sameness.SAME and not replayed.exact else replayed.sameness.value


def _print_call(replayed: ReplayedCall) -> None:
    call = replayed.call
    shown = bounded(" ".join(spelled(call.tool, call.arguments or {}).split()), _CALL_CHARACTERS)
    reason = f"  ({' '.join(replayed.reason.split())})" if replayed.reason else ""
    print_text(f"{call.step:>6}  {_word(replayed):<13}  {' '.join(shown.split())}{reason}")
    if replayed.diff:
        for line in bounded(replayed.diff, _DIFF_CHARACTERS, what="diff").rstrip("\n").split("\n"):
            print_text(f"        {line}")


def _print_verdicts(replay: Replay, counts: Counter[str]) -> None:
    words = [f"{counts[word]} {word}" for word in (Sameness.SAME.value, _NEARLY, *list(Sameness)[1:]) if counts[word]]
    backend = replay.judge.backend.name
    calls = "1 call" if counts.total() == 1 else f"{counts.total()} calls"
    print_text(f"\n{calls}: {', '.join(words) or 'nothing to make again'}")
    if counts[_NEARLY]:
        print_text(f"{_NEARLY}: but for times, addresses and folders")
    then = replay.verdict_then()
    same = "the same" if replay.same_verdict() else "NOT the same"
    compared = "nothing to compare with" if then.passed is None else same
    print_text(f"verdict then: {then.words}; now, in {backend}: {replay.verdict_now().words}; {compared}")


def _print_json(name: str, replay: Replay, rows: list[dict[str, Any]], good: bool) -> None:
    task = replay.judge.task
    values: dict[str, Any] = {
        "run": name,
        "task": task.id,
        "backend": replay.judge.backend.name,
        "budgets": {
            "tool_uses": replay.attempt.state.budgets.tool_uses,
            "submissions": replay.attempt.state.budgets.submissions,
        },
        "notes": [*replay.notes, *replay.document.warnings],
        "calls": rows,
        "then": _verdict(replay.verdict_then()),
        "now": _verdict(replay.verdict_now()),
        "same_verdict": replay.same_verdict(),
        "same": good,
    }
    print_json("gistpoint.replay/1", values)


def _verdict(verdict: ReplayedVerdict) -> dict[str, Any]:
    suspicious = [*verdict.suspicious]
    return {"solved": verdict.solved, "result": verdict.result, "suspicious": suspicious, "score": verdict.score}


def _row(replayed: ReplayedCall) -> dict[str, Any]:
    call = replayed.call
    return {
        "step": call.step,
        "number": call.number,
        "tool": call.tool,
        "arguments": None if call.arguments is None else dict(call.arguments),
        "result": replayed.sameness.value,
        "exact": replayed.exact,
        "reason": replayed.reason,
        "diff": replayed.diff,
    }
