"""Functions of tasks read blind: the operations of readers, folded. The result depends only on their set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import msgspec

from gistpoint.core.corruption.blind import BlindAnswer, GlanceVerdict, ShownVersion
from gistpoint.core.errors import UserError
from gistpoint.core.operations import Operation, Text, standing
from gistpoint.sessions.annotations.side_files import Book, Codec

MODEL = "model "
"""The prefix of a model's name as a reader."""


class GlanceOperationKind(StrEnum):
    """The kinds of operations."""

    READING = "reading"
    """A function was read blind, in one of its versions."""
    VERDICT = "verdict"
    """A verdict on a corruption, after its diff was shown."""
    DELETE = "delete"
    """Withdraws the operation whose uuid is `target`."""


class GlanceOperation(Operation, frozen=True, omit_defaults=True, rename={"subject": "task"}):
    """One reader's operation on a function of a task, by the task's whole id."""

    subject: Text
    """The whole id of the task."""


class GlanceError(UserError):
    """A blind reading can't be read or written as asked."""


CODEC = Codec("gistpoint.glances", 1, GlanceOperation, "blind reading", GlanceError)

Natural = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]


class ReadingData(msgspec.Struct, frozen=True, omit_defaults=True):
    """Data of `reading`."""

    function: str
    """`path::qualname`."""
    source: str
    """The library's name: its function counts as seen in every task of the library."""
    version: ShownVersion
    answer: BlindAnswer
    seed: int = 0
    round: Positive = 1
    """The number of times that this seed's set was read: each round has another order, but the same versions.
    """
    line: Natural = 0
    """The line that was marked, from 1; 0 for none."""
    hit: bool = False
    """Whether the line is the changed one, of the corrupted version."""
    words: str = ""
    limit_s: float = 0.0
    """Seconds after which the code was hidden; 0 for none."""
    looked_ms: Natural = 0
    cost_usd: float | None = None
    """The cost of a model's answer, if its price is known."""
    prompt_sha256: str = ""
    """The hash of the model's instructions."""


class GlanceVerdictData(msgspec.Struct, frozen=True, omit_defaults=True):
    """Data of `verdict`."""

    function: str
    verdict: GlanceVerdict
    words: str = ""
    seed: int = 0
    round: Positive = 1


class Reading(ReadingData, frozen=True, kw_only=True):
    """A function that was read blind."""

    op: str
    reviewer: str
    utc_ms: int

    @property
    def seen(self) -> bool:
        """Whether the fault of a corrupted function was named at its place, for certain."""
        return self.version is ShownVersion.CORRUPTED and self.answer is BlindAnswer.FAULT and self.hit

    @property
    def alarm(self) -> bool:
        """Whether an untouched function was called faulty."""
        return self.version is ShownVersion.ORIGINAL and self.answer is BlindAnswer.FAULT

    @property
    def by_model(self) -> bool:
        """Whether a model read it."""
        return self.reviewer.startswith(MODEL)


class GlanceVerdictGiven(GlanceVerdictData, frozen=True, kw_only=True):
    """A verdict on a corruption; the last one in a round counts."""

    op: str
    reviewer: str
    utc_ms: int


@dataclass(frozen=True, slots=True)
class Glances:
    """One reader's readings of one task's functions, and verdicts on them, in the order of their times."""

    task: str
    reviewer: str
    readings: tuple[Reading, ...] = ()
    verdicts: tuple[GlanceVerdictGiven, ...] = ()

    def reading(self, function: str, seed: int, round: int) -> Reading | None:
        """Return the last reading of a function in a round of a seed."""
        wanted = (function, seed, round)
        return next((r for r in reversed(self.readings) if (r.function, r.seed, r.round) == wanted), None)

    def verdict(self, function: str, seed: int, round: int) -> GlanceVerdictGiven | None:
        """Return the last verdict on the corruption of a function in a round of a seed."""
        wanted = (function, seed, round)
        return next((v for v in reversed(self.verdicts) if (v.function, v.seed, v.round) == wanted), None)


class GlanceBook(Book[GlanceOperation, Glances]):
    """All known operations, by task and reader."""

    def __init__(self, operations: Iterable[GlanceOperation] = ()) -> None:
        super().__init__(fold, operations)

    def of(self, task: str) -> tuple[Glances, ...]:
        """Return all readers' answers about a task."""
        return tuple(self.state(task, reviewer) for reviewer in self.reviewers)

    def read_by(self, reviewer: str) -> tuple[tuple[str, Reading], ...]:
        """Return what a reader has read: the task and the reading."""
        return tuple(
            (task, reading) for task in self.subjects for reading in self.state(task, reviewer).readings
        )


def fold(task: str, reviewer: str, operations: Iterable[GlanceOperation]) -> Glances:
    """Return the readings and verdicts of a reader's operations on one task; deletions apply in any order."""
    readings: list[Reading] = []
    verdicts: list[GlanceVerdictGiven] = []
    for item in standing(operations):
        if item.kind == GlanceOperationKind.READING and (reading := item.read(Reading)) is not None:
            readings.append(reading)
        elif (
            item.kind == GlanceOperationKind.VERDICT and (given := item.read(GlanceVerdictGiven)) is not None
        ):
            verdicts.append(given)
    return Glances(task, reviewer, tuple(readings), tuple(verdicts))
