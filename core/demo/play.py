"""Plays a recorded attempt with the real engine, at a chosen speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gistpoint.core.attempts.engine import Attempt, ToolResult
from gistpoint.core.attempts.events import Pane, PauseReason
from gistpoint.core.kinds.registry import declared, kind_of
from gistpoint.core.running import NEVER, CancelToken, RunContext
from gistpoint.core.tools.declaration import ArgumentKind

LONGEST_WAIT_S = 30.0
"""The longest pause for recorded thinking, in seconds at the chosen speed; longer ones are cut."""


def play(
    attempt: Attempt,
    steps: Sequence[Mapping[str, Any]],
    wait: Callable[[float], None],
    *,
    speed: float = 1.0,
    cancel: CancelToken = NEVER,
) -> Iterator[tuple[Mapping[str, Any], ToolResult | None]]:
    """Carry out the steps in turn, and yield each with its result; None for a step that is not a tool call.

    `wait` is called with the recorded seconds of thinking before each step, and of each pause, divided by
    `speed`. It may wait for less time, and returns early when cancelled. No step is carried out after the end
    of the attempt or a cancellation. Raises `ValueError` for a step of an unknown kind.
    """
    for step in steps:
        wait(min(LONGEST_WAIT_S, step.get("think_s", 0) / speed))
        if attempt.state.ended or (cancel.cancelled):
            return
        yield step, _do(attempt, step, wait, speed, cancel)


def _do(
    attempt: Attempt,
    step: Mapping[str, Any],
    wait: Callable[[float], None],
    speed: float,
    cancel: CancelToken,
) -> ToolResult | None:
    match step["kind"]:
        case "tool_call":
            tool = declared(step["tool"])
            edits = tool is not None and (
                tool.submits or tool.value(ArgumentKind.CODE, step["arguments"]) is not None
            )
            attempt.view(Pane.EDITOR if edits else Pane.CONSOLE)
            return attempt.call(step["tool"], step["arguments"], run=RunContext(cancel))
        case "type":
            attempt.view(Pane.EDITOR)
            attempt.edit(kind_of(attempt.task).buffer(attempt.task), step["text"])
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
            raise ValueError(f"a recorded step of an unknown kind, {unknown!r}")
    return None
