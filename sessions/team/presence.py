"""Records in the team's store who is reading which run or task; several people may read the same one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import Connection

FORGOTTEN_S = 90
"""The seconds without a report, by the server's clock, after which a reader counts as gone."""

_RECORD = text(
    "INSERT INTO reading (folder, reviewer, machine, subject) VALUES (:folder, :reviewer, :machine, :subject)"
    " ON CONFLICT (folder, reviewer, machine) DO UPDATE SET subject = excluded.subject, seen_at ="
    " clock_timestamp()"
)
_LEAVE = text("DELETE FROM reading WHERE folder = :folder AND reviewer = :reviewer AND machine = :machine")
_NOW = text(
    "SELECT subject, reviewer FROM reading WHERE folder = :folder AND (reviewer, machine) <> (:reviewer,"
    f" :machine) AND seen_at > clock_timestamp() - interval '{FORGOTTEN_S} s' ORDER BY reviewer, subject"
)


def record_reading(connection: Connection, folder: str, reviewer: str, machine: str, subject: str) -> None:
    """Record the run or task that a person is reading on a machine; an empty `subject` means nothing."""
    about = {"folder": folder, "reviewer": reviewer, "machine": machine}
    if subject:
        connection.execute(_RECORD, about | {"subject": subject})
    else:
        connection.execute(_LEAVE, about)


def readers(
    connection: Connection, folder: str, reviewer: str, machine: str
) -> Mapping[str, tuple[str, ...]]:
    """Return the other readers by subject; the same person on another machine counts as another reader."""
    found: dict[str, tuple[str, ...]] = {}
    for row in connection.execute(_NOW, {"folder": folder, "reviewer": reviewer, "machine": machine}):
        found[row.subject] = (*found.get(row.subject, ()), row.reviewer)
    return found
