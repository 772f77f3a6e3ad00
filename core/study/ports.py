"""What a study needs of the place where its log and its journals are kept:
a folder, or a database for a team.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeVar

from gistpoint.core.study.operations import Fact, StudyOperation, StudyOperationKind

T = TypeVar("T")


class Publication(StrEnum):
    """What became of a journal that was published."""

    NEW = "new"
    EXTENDED = "extended"
    """What was published before is its beginning, and was replaced."""
    SAME = "same"
    OLDER = "older"
    """It is the beginning of what was published before, which stays."""
    CONFLICT = "conflict"
    """Neither is the beginning of the other: both are kept."""


@dataclass(frozen=True, slots=True)
class PublishedAttempt:
    """A journal as it was published."""

    id: str
    journal: Path
    head: str
    """The hash of its last line when it was published."""
    bytes: int
    """Its size then."""
    writer: str
    """`CODE@MACHINE`, who published it."""

    @property
    def folder(self) -> Path:
        """The folder of the journal."""
        return self.journal.parent


@dataclass(frozen=True, slots=True)
class Erasure:
    """What was deleted of one person."""

    logs: tuple[str, ...] = ()
    """The first 8 digits of sha256 of each writer whose operations were deleted."""
    attempts: tuple[str, ...] = ()
    """Ids of deleted attempts."""

    @property
    def any(self) -> bool:
        """Whether there was anything to delete."""
        return bool(self.logs or self.attempts)


class StudyStore(Protocol):
    """The log of a study and its published journals. What it can't keep raises `StudyError`."""

    @property
    def away(self) -> str:
        """Why what others write can't be seen now, in a sentence; empty if it can."""
        ...

    def reload(self) -> None:
        """Look for what others have written."""
        ...

    def exclusively(self, act: Callable[[], T]) -> T:
        """Call `act` with all that others have written, while nobody else plans or begins a task.

        `act` may be called again, after what it recorded was taken back. Raises `UserError` if the others
        can't be reached; what was recorded then holds for nobody.
        """
        ...

    def send(self) -> None:
        """Let others see all that was written here. Raises `UserError` if they can't be reached."""
        ...

    def send_soon(self) -> None:
        """Begin to let others see what was written here; what can't be sent goes later."""
        ...

    def differences(self) -> Iterator[str]:
        """Yield a sentence for each thing that others see otherwise than it is in the folder."""
        ...

    def operations(self) -> tuple[StudyOperation, ...]:
        """Return all operations, in the order of their times."""
        ...

    def basis(self) -> Mapping[str, int]:
        """Return how many lines of each writer are in `operations`,
        by the first 8 digits of sha256 of the writer.
        """
        ...

    def operations_at(self, basis: Mapping[str, int]) -> tuple[StudyOperation, ...]:
        """Return the operations that somebody with this basis had read, in the order of their times."""
        ...

    def append(self, operations: Iterable[StudyOperation]) -> int:
        """Keep operations that are not known yet, on the disk on return; return how many these are."""
        ...

    def record(
        self, name: str, subject: str, kind: StudyOperationKind, data: Fact | None = None
    ) -> StudyOperation:
        """Append an operation of now; `name` is a participant's code, also where the organiser says something
        of the participant, else `ORGANISER`.
        """
        ...

    def publish(self, folder: Path) -> Publication:
        """Keep a copy of the journal in an attempt's folder, as far as it is written."""
        ...

    def attempts(self) -> Iterator[PublishedAttempt]:
        """Yield the published journals, the oldest first; of one in conflict, each."""
        ...

    def attempt(self, identity: str) -> PublishedAttempt | None:
        """Return the published journal of an attempt."""
        ...

    def erase(self, code: str) -> Erasure:
        """Delete all that there is of a person, now and whenever it turns up again, and say so in the log."""
        ...

    def sweep(self) -> Erasure:
        """Delete what has turned up again of people who were erased."""
        ...
