"""Blind readings of functions, folded from the operations of readers, which may be in any order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from gistpoint.core.corruption.blind import BlindAnswer, GlanceVerdict, ShownVersion
from gistpoint.core.errors import UserError
from gistpoint.core.operations import Operation, Text, standing
from gistpoint.core.tasks.fields import Count, Positive
from gistpoint.sessions.annotations.side_files import Book, Codec

MODEL = "model "
"""The prefix of a model's name as a reader."""


class GlanceOperationKind(StrEnum):
    """The kinds of operations on blind readings."""

    READING = "reading"
    """A reader read one version of a function blind."""
    VERDICT = "verdict"
    """A reader gave a verdict on a corruption after seeing its diff."""
    DELETE = "delete"
    """Withdraws the operation whose uuid is `target`."""


class GlanceOperation(Operation, frozen=True, omit_defaults=True, rename={"subject": "task"}):
    """One reader's operation on a function of a task."""

    subject: Text
    """The full id of the task."""


class GlanceError(UserError):
    """A blind reading can't be read or written as requested."""


CODEC = Codec(
    "gistpoint.glances",
    1,
    GlanceOperation,
    "blind reading",
    GlanceError,
    kinds=frozenset(GlanceOperationKind),
)


class ReadingData(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data of a `reading` operation."""

    function: str
    """`path::qualname`."""
    source: str
    """The name of the function's library; the function counts as seen in every task of that library."""
    version: ShownVersion
    answer: BlindAnswer
    seed: int = 0
    round: Positive = 1
    """The number of the round, counted from 1; a seed's rounds show the same versions in different orders."""
    line: Count = 0
    """The marked line, counted from 1; 0 if no line was marked."""
    hit: bool = False
    """Whether the version is corrupted and the line is a changed line or close enough to one."""
    words: str = ""
    limit_s: float = 0.0
    """The seconds after which the code was hidden; 0 if it was not hidden."""
    looked_ms: Count = 0
    cost_usd: float | None = None
    """The cost of a model's answer in US dollars; None if it is unknown."""
    prompt_sha256: str = ""
    """The hash of the model's instructions."""


class GlanceVerdictData(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data of a `verdict` operation."""

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
        """Whether the reader named the fault of a corrupted function, with certainty, at the right line."""
        return self.version is ShownVersion.CORRUPTED and self.answer is BlindAnswer.FAULT and self.hit

    @property
    def alarm(self) -> bool:
        """Whether the reader called an untouched function faulty."""
        return self.version is ShownVersion.ORIGINAL and self.answer is BlindAnswer.FAULT

    @property
    def by_model(self) -> bool:
        """Whether the reader is a model."""
        return self.reviewer.startswith(MODEL)


class GlanceVerdictGiven(GlanceVerdictData, frozen=True, kw_only=True):
    """A verdict on a corruption; the last one in a round counts."""

    op: str
    reviewer: str
    utc_ms: int


@dataclass(frozen=True, slots=True)
class Glances:
    """One reader's readings of one task's functions, and verdicts on them, by time."""

    task: str
    reviewer: str
    readings: tuple[Reading, ...] = ()
    verdicts: tuple[GlanceVerdictGiven, ...] = ()

    def reading(self, function: str, seed: int, round: int) -> Reading | None:
        """Return the last reading of a function in a round of a seed; None if there is none."""
        wanted = (function, seed, round)
        return next((r for r in reversed(self.readings) if (r.function, r.seed, r.round) == wanted), None)

    def verdict(self, function: str, seed: int, round: int) -> GlanceVerdictGiven | None:
        """Return the last verdict on a function's corruption in a round of a seed; None if there is none."""
        wanted = (function, seed, round)
        return next((v for v in reversed(self.verdicts) if (v.function, v.seed, v.round) == wanted), None)


class GlanceBook(Book[GlanceOperation, Glances]):
    """All known operations on blind readings, by task and reader."""

    def __init__(self, operations: Iterable[GlanceOperation] = ()) -> None:
        super().__init__(fold, operations)

    def of(self, task: str) -> tuple[Glances, ...]:
        """Return all readers' answers about a task."""
        return tuple(self.state(task, reviewer) for reviewer in self.reviewers)

    def read_by(self, reviewer: str) -> tuple[tuple[str, Reading], ...]:
        """Return all readings of a reader, each with its task."""
        return tuple(
            (task, reading) for task in self.subjects for reading in self.state(task, reviewer).readings
        )


def fold(task: str, reviewer: str, operations: Iterable[GlanceOperation]) -> Glances:
    """Return the readings and verdicts that result from a reader's operations on a task, in any order."""
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
