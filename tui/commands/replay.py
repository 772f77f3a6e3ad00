"""`gistpoint replay`: makes the tool calls of a recorded run again, and tells what differs."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from gistpoint.core.errors import UserError
from gistpoint.core.text import bounded
from gistpoint.core.tools.commandline import spelled
from gistpoint.sessions.replay.recorded import origin_of
from gistpoint.sessions.replay.replaying import Replay, ReplayedCall, Sameness, Verdict, require_task
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.tui.cli import DONE, NEGATIVE, build_services
from gistpoint.tui.commands.output import ProgressLine, print_json, print_text
from gistpoint.tui.commands.runs import open_named
from gistpoint.tui.services import Services

_NEGATIVE = frozenset({Sameness.DIFFERS, Sameness.COULD_NOT_RUN})
_NEARLY = "same*"
_DIFF_CHARACTERS = 8_000
_CALL_CHARACTERS = 160


def replay(options: argparse.Namespace) -> int:
    """Print a line per call as it is made, and the verdicts; the exit code is 1 where something is not the same."""
    document = open_named(options.recorded)
    replay = replay_of(document, build_services(options), options.recorded, options.task or "")
    counts: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    with ProgressLine() as progress:
        for note in replay.notes:
            progress.line(note)
        for call in replay.calls(on_progress=lambda run: progress.detail(f"{run.phase} {run.done}/{run.total}")):
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


def replay_of(document: RunDocument, services: Services, name: str, task_name: str = "") -> Replay:
    """Return a replay of a run on its task, or on the one that is named.

    Raises `UserError` where the run tells no task, the task is not here, is another one, or nothing isolates its code.
    """
    origin = origin_of(document)
    wanted = task_name or str(origin.start.get("task_id") or "")
    if not wanted:
        raise UserError(
            f"{name} does not tell on which task it was recorded.", hint="gistpoint replay takes it with --task."
        )
    task = services.tasks.find(wanted)
    require_task(name, origin, task)
    return Replay(document, services.judge_for(task))


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
    backend = replay.judge.runner.backend.name
    calls = "1 call" if counts.total() == 1 else f"{counts.total()} calls"
    print_text(f"\n{calls}: {', '.join(words) or 'nothing to make again'}")
    if counts[_NEARLY]:
        print_text(f"{_NEARLY}: but for times, addresses and folders")
    same = "the same" if replay.same_verdict() else "NOT the same"
    print_text(f"verdict then: {replay.verdict_then().words}; now, in {backend}: {replay.verdict_now().words}; {same}")


def _print_json(name: str, replay: Replay, rows: list[dict[str, Any]], good: bool) -> None:
    task = replay.judge.task
    values: dict[str, Any] = {
        "run": name,
        "task": task.id,
        "backend": replay.judge.runner.backend.name,
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


def _verdict(verdict: Verdict) -> dict[str, Any]:
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
