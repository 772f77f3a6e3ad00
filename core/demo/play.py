"""Plays a recorded attempt through the real engine, at a chosen speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gistpoint.core.attempts.engine import Attempt, ToolResult
from gistpoint.core.attempts.events import Pane, PauseReason
from gistpoint.core.cancel import CancelToken
from gistpoint.core.kinds.gist.text import GIST_BUFFER

LONGEST_WAIT_S = 30.0
"""Recorded thinking longer than this, after the speed is applied, is cut."""


def play(
    attempt: Attempt,
    steps: Sequence[Mapping[str, Any]],
    wait: Callable[[float], None],
    *,
    speed: float = 1.0,
    cancel: CancelToken | None = None,
) -> Iterator[tuple[Mapping[str, Any], ToolResult | None]]:
    """Do one step after another and yield each with its result.

    `wait` is called with the seconds of thinking before a step; it may wait less, and returns early when cancelled.
    """
    for step in steps:
        wait(min(LONGEST_WAIT_S, step.get("think_s", 0) / speed))
        if attempt.state.ended or (cancel is not None and cancel.cancelled):
            return
        yield step, _do(attempt, step, wait, speed, cancel)


def _do(
    attempt: Attempt,
    step: Mapping[str, Any],
    wait: Callable[[float], None],
    speed: float,
    cancel: CancelToken | None,
) -> ToolResult | None:
    match step["kind"]:
        case "tool_call":
            writes = {"func_code", "content", "old"} & step["arguments"].keys() or step["tool"] == "submit_gist"
            attempt.view(Pane.EDITOR if writes else Pane.CONSOLE)
            return attempt.call(step["tool"], step["arguments"], cancel=cancel)
        case "type":
            attempt.view(Pane.EDITOR)
            attempt.edit(GIST_BUFFER, step["text"])
        case "note":
            attempt.view(Pane.NOTES)
            text = f"{attempt.state.notes}\n{step['text']}".strip()
            attempt.note(text)
        case "suspect":
            attempt.suspect(step["function"])
        case "pause":
            attempt.pause(PauseReason(step["reason"]))
            wait(min(LONGEST_WAIT_S, step.get("duration_s", 0) / speed))
            attempt.resume()
        case unknown:
            raise ValueError(f"a recorded step of the unknown kind {unknown!r}")
    return None
