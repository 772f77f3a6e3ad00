"""Following one container's run: its results, its bounded output, its deadline, a cancel, its end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gistpoint.core.ports import Writable
from gistpoint.sandbox.backends.base import Stop
from gistpoint.sandbox.backends.docker.conversation import Conversation, Frame
from gistpoint.sandbox.process import Lines, Tail

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken

_TICK_S = 0.05


@dataclass
class Course:
    """How far a run has come; `stop` is None where the stream broke off before the run was over."""

    lines: Lines
    output: Tail
    heard: bool = False
    """Whether the container has said anything at all."""
    stop: Stop | None = None
    exit_code: int | None = None
    writes: Writable | None = None
    complaint: str = ""


def follow(conversation: Conversation, course: Course, *, deadline: float, cancel: CancelToken | None) -> None:
    """Take frames until the run is over, or is to be stopped: `course.stop` says which. `deadline` is monotonic."""
    takers: dict[str, Callable[[bytes], None]] = {"R": course.lines.add, "O": course.output.add}
    while course.stop is None:
        frame = conversation.next(_TICK_S)
        if cancel is not None and cancel.cancelled:
            course.stop = Stop.CANCELLED
        elif course.lines.too_many:
            course.stop = Stop.TOO_MANY_RESULTS
        elif frame is not None and frame.kind in takers:
            course.heard = True
            takers[frame.kind](frame.payload)
            if course.lines.too_many:
                course.stop = Stop.TOO_MANY_RESULTS
            elif time.monotonic() > deadline:
                course.stop = Stop.TIMED_OUT
        elif frame is not None:
            if _over(frame, course):
                return
        elif time.monotonic() > deadline:
            course.stop = Stop.TIMED_OUT


def _over(frame: Frame, course: Course) -> bool:
    """Take a frame that is neither results nor output; return whether nothing more is to come."""
    if frame.kind == "C":
        course.complaint = (course.complaint + frame.payload.decode("utf-8", "replace"))[-4000:]
        return False
    course.heard = course.heard or frame.kind != "Z"
    if frame.kind == "M":
        course.stop = Stop.OUT_OF_MEMORY
    elif frame.kind == "E":
        told = json.loads(frame.payload)
        course.exit_code = int(told["exit"])
        if "writes" in told:
            course.writes = Writable(tuple(told["writes"]["folders"]), tuple(told["writes"]["paths"]))
        course.stop = Stop.EXITED if course.lines.ready else Stop.NOT_STARTED
    return True
