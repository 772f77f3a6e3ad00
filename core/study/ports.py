"""The interface to a study's store of log and journals: a folder, or a database for a team."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeVar

from gistpoint.core.study.operations import Fact, StudyOperation, StudyOperationKind

T = TypeVar("T")


class Publication(StrEnum):
    """The outcome of publishing a journal."""

    NEW = "new"
    EXTENDED = "extended"
    """The published journal was a prefix of the new one, and was replaced by it."""
    SAME = "same"
    OLDER = "older"
    """The new journal is a prefix of the published one, which stays."""
    CONFLICT = "conflict"
    """Neither journal is a prefix of the other, and both are kept."""


@dataclass(frozen=True, slots=True)
class PublishedAttempt:
    """A published journal."""

    id: str
    journal: Path
    head: str
    """The hash of its last line at publication."""
    bytes: int
    """Its size in bytes at publication."""
    writer: str
    """The publisher, as `CODE@MACHINE`."""

    @property
    def folder(self) -> Path:
        """The folder of the journal."""
        return self.journal.parent


@dataclass(frozen=True, slots=True)
class Erasure:
    """The data of one person that were deleted."""

    logs: tuple[str, ...] = ()
    """The first 8 hex digits of the sha256 of each writer whose operations were deleted."""
    attempts: tuple[str, ...] = ()
    """The ids of deleted attempts."""
    tasks: tuple[str, ...] = ()
    """The ids of deleted tasks that were made from submissions of the person."""

    @classmethod
    def of_all(cls, erasures: Sequence[Erasure]) -> Erasure:
        """Return the data of all erasures together."""
        return cls(
            tuple(log for erasure in erasures for log in erasure.logs),
            tuple(attempt for erasure in erasures for attempt in erasure.attempts),
            tuple(task for erasure in erasures for task in erasure.tasks),
        )

    @property
    def any(self) -> bool:
        """Whether there was anything to delete."""
        return bool(self.logs or self.attempts or self.tasks)


class StudyStore(Protocol):
    """The log of a study and its published journals. Methods raise `StudyError` if storing fails."""

    @property
    def away(self) -> str:
        """The reason why other writers' data are not visible now, in a sentence; empty if they are."""
        ...

    def reload(self) -> None:
        """Load what other writers have added."""
        ...

    def exclusively(self, act: Callable[[], T]) -> T:
        """Return the result of `act`, which sees all other writers' data while nobody else plans or begins.

        `act` may be called again after its records were undone. Raises `UserError` if the store can't be
        reached; what `act` recorded is then void.
        """
        ...

    def send(self) -> None:
        """Send all local data to the store. Raises `UserError` if it can't be reached."""
        ...

    def send_soon(self) -> None:
        """Start sending local data to the store; data that can't be sent now are sent later."""
        ...

    def differences(self) -> Iterator[str]:
        """Yield a sentence for each difference between the folder and the store."""
        ...

    def operations(self) -> tuple[StudyOperation, ...]:
        """Return all operations, ordered by time."""
        ...

    def basis(self) -> Mapping[str, int]:
        """Return the number of lines by each writer in `operations`.

        The keys are the first 8 hex digits of the sha256 of the writer.
        """
        ...

    def operations_at(self, basis: Mapping[str, int]) -> tuple[StudyOperation, ...]:
        """Return the operations covered by this basis, ordered by time."""
        ...

    def append(self, operations: Iterable[StudyOperation]) -> int:
        """Store operations that are not known yet, synced to disk; return how many were new."""
        ...

    def record(
        self, name: str, subject: str, kind: StudyOperationKind, data: Fact | None = None
    ) -> StudyOperation:
        """Append an operation with the current time, and return it.

        `name` is the code of the participant whom it concerns, even if the organiser writes it; otherwise it
        is `ORGANISER`.
        """
        ...

    def publish(self, folder: Path) -> Publication:
        """Store a copy of the whole lines of the journal in an attempt's folder; return the outcome."""
        ...

    def attempts(self) -> Iterator[PublishedAttempt]:
        """Yield the published journals, oldest first, with all versions of a journal in conflict."""
        ...

    def attempt(self, identity: str) -> PublishedAttempt | None:
        """Return the published journal of an attempt; None if there is none."""
        ...

    def erase(self, code: str) -> Erasure:
        """Delete all data of a person, now and whenever copies turn up; record and return the deletion."""
        ...

    def sweep(self) -> Erasure:
        """Delete data of erased people that have turned up again, and return what was deleted."""
        ...
