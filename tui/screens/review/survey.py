"""Facts of every step of a run as numbers: marks, time, tokens and what was left; some 40 bytes a step."""

from __future__ import annotations

from array import array
from math import isnan, nan

from gistpoint.sessions.runs.facts import Goal, Mark, MarkTracker
from gistpoint.sessions.runs.model import Run, Step, StepKind

KINDS = tuple(StepKind)
_KIND_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
_BITS = {mark.value: 1 << number for number, mark in enumerate(Mark)}

GLYPHS: dict[Mark, tuple[str, str]] = {
    Mark.SUBMISSION: ("!", "bold $text-accent"),
    Mark.FIRST_EDIT_RIGHT_FUNCTION: ("③", "bold $text-success"),
    Mark.FIRST_VIEW_RIGHT_FUNCTION: ("②", "bold $text-success"),
    Mark.FIRST_READ_RIGHT_FILE: ("①", "bold $text-success"),
    Mark.REVERT: ("↶", "bold $text-warning"),
    Mark.REPEATED_COMMAND: ("=", "$text-warning"),
    Mark.REREAD: ("~", "$text-warning"),
    Mark.ERROR: ("✘", "$text-error"),
    Mark.EDIT: ("e", "$text-primary"),
    Mark.TEST_RUN: ("t", "$text-secondary"),
}
"""What stands for a mark on the strip, the weightiest first."""

LOOKS = tuple(reversed(GLYPHS.values()))
_WEIGHTS = {mark: len(GLYPHS) - place for place, mark in enumerate(GLYPHS)}

WORDS = {
    Mark.SUBMISSION: "submission",
    Mark.FIRST_EDIT_RIGHT_FUNCTION: "first edit of the right function",
    Mark.FIRST_VIEW_RIGHT_FUNCTION: "first view of the right function",
    Mark.FIRST_READ_RIGHT_FILE: "first read of the right file",
    Mark.REVERT: "takes back an earlier edit",
    Mark.REPEATED_COMMAND: "repeats a command",
    Mark.REREAD: "reads again what did not change",
    Mark.ERROR: "error",
    Mark.EDIT: "edit",
    Mark.TEST_RUN: "test run",
}


def bit_of(mark: str) -> int:
    """Return the bit that stands for a mark."""
    return _BITS[mark]


class Survey:
    """Written by the reader's thread, read by the screen."""

    def __init__(self, header: Run | None = None, goals: tuple[Goal, ...] = ()) -> None:
        self._tracker = MarkTracker(header, goals)
        self.kinds = array("B")
        self.bits = array("H")
        self.weights = array("B")
        """The weightiest mark of each step, as `LOOKS` counts them from 1; 0 for none."""
        self.seconds = array("f")
        self.tokens = array("f")
        self.calls_left = array("f")
        self.submissions_left = array("f")
        self.others: dict[int, tuple[tuple[Mark, int], ...]] = {}
        """The earlier steps that a step repeats or takes back."""
        self.finished = False
        self._last_start = nan

    def __len__(self) -> int:
        return len(self.bits)

    def add(self, step: Step) -> None:
        """Take up the next step."""
        marked = self._tracker.feed(step)
        self.kinds.append(_KIND_NUMBERS[step.kind])
        self.seconds.append(self._seconds(step))
        self.tokens.append(float((step.tokens.prompt or 0) + (step.tokens.completion or 0)))
        self.calls_left.append(_number(marked.spent.calls_left))
        self.submissions_left.append(_number(marked.spent.submissions_left))
        others = tuple((item.mark, item.other) for item in marked.marked if item.other is not None)
        if others:
            self.others[step.index] = others
        self.weights.append(max((_WEIGHTS[mark] for mark in marked.marks), default=0))
        self.bits.append(sum(_BITS[mark.value] for mark in marked.marks))

    def _seconds(self, step: Step) -> float:
        durations = sum(result.duration_s or 0.0 for result in step.results)
        if step.started is None:
            return durations
        before, self._last_start = self._last_start, step.started
        if step.ended is not None and step.ended > step.started:
            return step.ended - step.started
        return durations or (0.0 if isnan(before) else max(0.0, step.started - before))

    def kind(self, index: int) -> StepKind | None:
        """Return the kind of a step; None while it was not read."""
        return KINDS[self.kinds[index]] if index < len(self) else None

    def marks(self, index: int) -> list[Mark]:
        """Return the marks of a step, the weightiest first."""
        bits = self.bits[index] if index < len(self) else 0
        return [mark for mark in GLYPHS if bits & _BITS[mark.value]]

    def series(self) -> list[tuple[str, array[float], str]]:
        """Return the rows of the strip that have something to show."""
        rows = [
            ("time", self.seconds, "$text-primary"),
            ("tokens", self.tokens, "$text-secondary"),
            ("calls", self.calls_left, "$text-warning"),
            ("submits", self.submissions_left, "$text-accent"),
        ]
        return [(name, values, style) for name, values, style in rows if max(values, default=0.0) > 0]


def _number(value: int | None) -> float:
    return 0.0 if value is None else float(value)
