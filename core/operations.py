"""Operations of people on subjects: append-only records from which the data are computed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec

from gistpoint.core.decoding import decodable

LONGEST_NAME = 60
LATEST_MS = 253_000_000_000_000
"""The time before which all operations must be dated, in milliseconds since 1970."""

Text = Annotated[str, msgspec.Meta(min_length=1)]
Data = TypeVar("Data", bound=msgspec.Struct)


class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One person's operation on a subject. Operations are append-only.

    Unknown kinds and members come from a newer program, and are kept.
    """

    op: Text
    """The uuid of the operation."""
    reviewer: str
    """The name of the person."""
    utc_ms: Annotated[int, msgspec.Meta(ge=0, lt=LATEST_MS)]
    subject: Text
    """The subject, such as a run, a task or a person; each codec stores it under a different name."""
    kind: Text
    data: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    """Members of the line that this version does not know."""

    longest_name: ClassVar[int] = LONGEST_NAME
    """The maximum number of characters in the person's name."""

    def __post_init__(self) -> None:
        if not is_reviewer(self.reviewer, self.longest_name):
            raise ValueError("The name of its reviewer can't be used.")

    def text(self, name: str) -> str:
        """Return a string member of the data; empty if there is none."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""

    def read(self, kind: type[Data]) -> Data | None:
        """Return the data as a record of type `kind`; None if they do not fit it.

        The fields `op`, `reviewer` and `utc_ms` of the record, if it has them, are those of the operation. An
        operation whose data do not fit is kept, but ignored.
        """
        about = {"op": self.op, "reviewer": self.reviewer, "utc_ms": self.utc_ms}
        try:
            return msgspec.convert(self.data | about, decodable(kind))
        except ValueError:
            return None


Op = TypeVar("Op", bound=Operation)


def in_time(operation: Operation) -> tuple[int, str]:
    """Return the key for sorting operations by time."""
    return operation.utc_ms, operation.op


DELETE = "delete"
"""The kind of an operation that withdraws another one."""


def standing(operations: Iterable[Op]) -> list[Op]:
    """Return the operations that were not withdrawn, ordered by time; withdrawals apply in any order."""
    known = sorted(operations, key=in_time)
    gone = {operation.text("target") for operation in known if operation.kind == DELETE}
    return [operation for operation in known if operation.op not in gone]


def is_reviewer(name: str, longest: int = LONGEST_NAME) -> bool:
    """Return whether a reviewer's name is valid: printable, without spaces at its ends, not too long."""
    return 0 < len(name) <= longest and name.isprintable() and name == name.strip()
