"""Results of other harnesses that were judged again, stored as operations on tasks, not as attempts."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

import msgspec

from gistpoint.core.errors import UserError
from gistpoint.core.operations import Operation, standing
from gistpoint.core.ports import TimeSource
from gistpoint.sessions.annotations.side_files import Book, Codec, SideFileStore

_KIND = "result"


class Comparison(StrEnum):
    """The result of comparing another harness's outcome with gistpoint's verdict."""

    SAME = "same"
    DIFFERS = "differs"
    NO_FIGURE = "no_figure"
    """The harness reported no outcome to compare."""
    TO_BE_READ = "to_be_read"
    """The result passes but is suspicious, so it does not count as solved before it has been reviewed."""
    DOES_NOT_APPLY = "does_not_apply"
    """The patch does not fit the task's repository, so its score is 0."""


class ExternalResultError(UserError):
    """An external result can't be read or written as requested."""


class ExternalResultOperation(Operation, frozen=True):
    """An operation that adds a result on a task; the subject is the full id of the task."""


CODEC = Codec(
    "gistpoint.external-results", 1, ExternalResultOperation, "external results", ExternalResultError
)


class ExternalResult(msgspec.Struct, frozen=True):
    """The data of a `result` operation: the other harness's figures, in `their_*`, and gistpoint's."""

    harness: str
    run: str
    solved: bool
    score: float
    comparison: Comparison
    backend: str
    isolated: bool
    """Whether gistpoint's run was isolated."""
    their_solved: bool | None = None
    their_score: float | None = None
    suspicious: tuple[str, ...] = ()
    """The reasons why a pass must be reviewed before it counts."""
    reason: str = ""


ExternalResultBook = Book[ExternalResultOperation, tuple[ExternalResult, ...]]


def _fold(
    task: str, person: str, operations: Iterable[ExternalResultOperation]
) -> tuple[ExternalResult, ...]:
    read = (operation.read(ExternalResult) for operation in standing(operations) if operation.kind == _KIND)
    return tuple(result for result in read if result is not None)


def new_book() -> ExternalResultBook:
    """Return a book without results."""
    return Book(_fold)


class ExternalResultStore(SideFileStore[ExternalResultOperation, ExternalResultBook]):
    """The results of all people, each in the file of the person who requested the judgement."""

    def __init__(self, folder: Path, clock: TimeSource) -> None:
        super().__init__(folder, clock, CODEC, new_book)

    def keep(self, person: str, task: str, result: ExternalResult) -> ExternalResultOperation:
        """Store a person's result on a task, given its full id, and return the operation."""
        data = msgspec.to_builtins(result)
        made = ExternalResultOperation(str(uuid.uuid4()), person, self.next_ms(person), task, _KIND, data)
        self.append([made])
        return made
