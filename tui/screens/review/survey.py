"""Facts about every step of a run as numbers: marks, time, tokens and remaining budgets.

A step takes a few dozen bytes.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable

from gistpoint.sessions.records.model import Run, Step, StepKind
from gistpoint.sessions.runs.facts import Goal, MarkTracker, StepMark
from gistpoint.sessions.runs.times import Timekeeper
from gistpoint.tui import signs
from gistpoint.tui.screens.review.families import BY_SOLVERS, FAMILIES, Family, family_of, hidden_at_first

KINDS = tuple(StepKind)
_KIND_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
_BITS = {mark.value: 1 << number for number, mark in enumerate(StepMark)}

GLYPHS: dict[StepMark, tuple[str, str]] = {
    StepMark.SUBMISSION: ("!", "bold $text-accent"),
    StepMark.FIRST_EDIT_RIGHT_FUNCTION: (signs.THREE, "bold $text-success"),
    StepMark.FIRST_VIEW_RIGHT_FUNCTION: (signs.TWO, "bold $text-success"),
    StepMark.FIRST_READ_RIGHT_FILE: (signs.ONE, "bold $text-success"),
    StepMark.REVERT: (signs.REWOUND, "bold $text-warning"),
    StepMark.REPEATED_COMMAND: ("=", "$text-warning"),
    StepMark.REREAD: ("~", "$text-warning"),
    StepMark.ERROR: (signs.BAD, "$text-error"),
    StepMark.EDIT: ("e", "$text-primary"),
    StepMark.TEST_RUN: ("t", "$text-secondary"),
}
"""The glyph and style of each mark on the strip, most important first."""
LOOKS = tuple(reversed(GLYPHS.values()))
_WEIGHTS = {mark: len(GLYPHS) - place for place, mark in enumerate(GLYPHS)}

WORDS = {
    StepMark.SUBMISSION: "submission",
    StepMark.FIRST_EDIT_RIGHT_FUNCTION: "first edit of the right function",
    StepMark.FIRST_VIEW_RIGHT_FUNCTION: "first view of the right function",
    StepMark.FIRST_READ_RIGHT_FILE: "first read of the right file",
    StepMark.REVERT: "reverts an earlier edit",
    StepMark.REPEATED_COMMAND: "repeats a command",
    StepMark.REREAD: "reads the same text again",
    StepMark.ERROR: "error",
    StepMark.EDIT: "edit",
    StepMark.TEST_RUN: "test run",
}


_SHORT = {
    StepMark.SUBMISSION: "submit",
    StepMark.FIRST_EDIT_RIGHT_FUNCTION: "function edited",
    StepMark.FIRST_VIEW_RIGHT_FUNCTION: "function seen",
    StepMark.FIRST_READ_RIGHT_FILE: "file found",
    StepMark.REVERT: "taken back",
    StepMark.REPEATED_COMMAND: "repeated",
    StepMark.REREAD: "seen again",
    StepMark.ERROR: "error",
    StepMark.EDIT: "edit",
    StepMark.TEST_RUN: "tests",
}


def bit_of(mark: str) -> int:
    """Return the bit of a mark in `Survey.bits`."""
    return _BITS[mark]


class Survey:
    """The facts about all steps read so far. The loader's thread writes them, and the screen reads them."""

    def __init__(
        self, header: Run | None = None, goals: tuple[Goal, ...] = (), *, hides: bool = False
    ) -> None:
        """`hides` means that the steps are added without what reveals the outcome."""
        self._tracker = MarkTracker(header, goals)
        self.hides = hides
        self.kinds = array("B")
        self.bits = array("H")
        self.weights = array("B")
        """The rank of each step's most important mark, counted from 1 in `LOOKS`; 0 for none."""
        self.errors = array("B")
        """1 for each step with an error."""
        self._counts: Counter[StepMark] = Counter()
        self.seconds = array("f")
        """The seconds of each step, with the time before it; 0 if the time is unknown."""
        self.tokens = array("f")
        self.costs = array("f")
        self.calls_left = array("f")
        self.submissions_left = array("f")
        self.others: dict[int, tuple[tuple[StepMark, int], ...]] = {}
        """The marks that refer to another step, each with the index of that step, by the step they are on."""
        self.families = array("B")
        """The family of each step, numbered from 1 in `FAMILIES`; 0 for none."""
        self.turns = array("B")
        """1 for each step that the solver took, 0 for the others."""
        self.finished = False
        self._format = header.format if header is not None else ""
        self._times = Timekeeper()

    def __len__(self) -> int:
        return len(self.bits)

    def add(self, step: Step) -> None:
        """Add the next step."""
        marked = self._tracker.feed(step)
        self.kinds.append(_KIND_NUMBERS[step.kind])
        self.seconds.append(self._times.feed(step).whole)
        self.tokens.append(float((step.tokens.prompt or 0) + (step.tokens.completion or 0)))
        self.costs.append(step.cost or 0.0)
        self.calls_left.append(_number(marked.spent.calls_left))
        self.submissions_left.append(_number(marked.spent.submissions_left))
        family = family_of(step, self._format)
        self.families.append(FAMILIES.index(family) + 1 if family is not None else 0)
        self.turns.append(step.actor in BY_SOLVERS)
        others = tuple((item.mark, item.other) for item in marked.marked if item.other is not None)
        if others:
            self.others[step.index] = others
        self.weights.append(max((_WEIGHTS[mark] for mark in marked.marks), default=0))
        self.bits.append(sum(_BITS[mark.value] for mark in marked.marks))
        self.errors.append(StepMark.ERROR in marked.marks)
        self._counts.update(marked.marks)

    def kind(self, index: int) -> StepKind | None:
        """Return the kind of a step; None if the step has not been read yet."""
        return KINDS[self.kinds[index]] if index < len(self) else None

    def marks(self, index: int) -> list[StepMark]:
        """Return the marks of a step, most important first."""
        bits = self.bits[index] if index < len(self) else 0
        return [mark for mark in GLYPHS if bits & _BITS[mark.value]]

    def rare(self, most: int) -> list[StepMark]:
        """Return the marks on at most `most` steps, rarest first, without the mark for errors."""
        found = [mark for mark in GLYPHS if 0 < self._counts[mark] <= most and mark is not StepMark.ERROR]
        return sorted(found, key=lambda mark: self._counts[mark])

    def marks_among(self, first: int, after: int, marks: Iterable[StepMark]) -> StepMark | None:
        """Return the first of `marks` that a step from `first` up to `after` (exclusive) has.

        None if no step has any of them.
        """
        bits = 0
        for found in set(self.bits[first:after]):
            bits |= found
        return next((mark for mark in marks if bits & _BITS[mark.value]), None)

    def words(self, index: int) -> list[str]:
        """Return a string for each mark of a step."""
        others = dict(self.others.get(index, ()))
        return [
            f"· {WORDS[mark]}" + (f" (step {others[mark] + 1})" if mark in others else "")
            for mark in self.marks(index)
        ]

    @property
    def hidden_at_first(self) -> frozenset[Family]:
        """The families that are hidden initially; empty until all steps have been read."""
        return hidden_at_first(self._format, len(self), self.count_of(Family.HARNESS) if self.finished else 0)

    def count_of(self, family: Family) -> int:
        """Return the number of steps of a family read so far."""
        return self.families.count(FAMILIES.index(family) + 1)

    def listed(
        self, kind: str, seen: Collection[int], count: int, hidden: Collection[Family] = frozenset()
    ) -> list[int]:
        """Return the steps, among the first `count`, that a list of some `kind` contains.

        The kinds are `all`, `edits`, `errors`, and `unseen` for those not in `seen`. `all` and `unseen` leave
        out the families in `hidden`, but include the steps not read yet.
        """
        if kind in ("all", "unseen"):
            left_out = {FAMILIES.index(family) + 1 for family in hidden}
            before = seen if kind == "unseen" else ()
            known = [
                step
                for step, family in enumerate(self.families[:count])
                if family not in left_out and step not in before
            ]
            return [*known, *(step for step in range(len(self), count) if step not in before)]
        bit = _BITS[StepMark.EDIT.value if kind == "edits" else StepMark.ERROR.value]
        return [step for step, bits in enumerate(self.bits[:count]) if bits & bit]

    def series(self, *, hides: bool = False) -> list[tuple[str, array[float], str]]:
        """Return the name, values and style of each row of the strip with any value above 0.

        `hides` leaves out the cost.
        """
        rows = [
            ("time", self.seconds, "$text-primary"),
            ("tokens", self.tokens, "$text-secondary"),
            *([] if hides else [("cost", self.costs, "$text-warning")]),
            ("calls", self.calls_left, "$text-success"),
            ("submits", self.submissions_left, "$text-accent"),
        ]
        return [(name, values, style) for name, values, style in rows if max(values, default=0.0) > 0]


def legend(survey: Survey, rare: Collection[StepMark] | None = None) -> list[tuple[str, str, str]]:
    """Return the glyph, style and short name of each mark on the strip, least important first.

    If the cells cover many steps, `rare` contains the visible marks, which follow the share of errors.
    """
    if rare is not None:
        return [
            (signs.LOW_BLOCK, GLYPHS[StepMark.ERROR][1], "share of errors"),
            *((*GLYPHS[mark], _SHORT[mark]) for mark in rare),
        ]
    shown = set(survey.weights)
    return [(*GLYPHS[mark], _SHORT[mark]) for mark in reversed(GLYPHS) if _WEIGHTS[mark] in shown]


def _number(value: int | None) -> float:
    return 0.0 if value is None else float(value)
