"""Who is reading which run now, according to the team's store. It is not a lock: two people may read the same
run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import Connection

FORGOTTEN_S = 90
"""A reader not heard from for so long, by the server's clock, has stopped."""

_TELL = text(
    "INSERT INTO reading (folder, reviewer, machine, subject) VALUES (:folder, :reviewer, :machine, :subject)"
    " ON CONFLICT (folder, reviewer, machine) DO UPDATE SET subject = excluded.subject, seen_at ="
    " clock_timestamp()"
)
_LEAVE = text("DELETE FROM reading WHERE folder = :folder AND reviewer = :reviewer AND machine = :machine")
_NOW = text(
    "SELECT subject, reviewer FROM reading WHERE folder = :folder AND (reviewer, machine) <> (:reviewer,"
    f" :machine) AND seen_at > clock_timestamp() - interval '{FORGOTTEN_S} s' ORDER BY reviewer, subject"
)


def tell(connection: Connection, folder: str, reviewer: str, machine: str, subject: str) -> None:
    """Report what a person reads on a machine now, a run or a task; nothing if `subject` is empty."""
    about = {"folder": folder, "reviewer": reviewer, "machine": machine}
    if subject:
        connection.execute(_TELL, about | {"subject": subject})
    else:
        connection.execute(_LEAVE, about)


def readers(
    connection: Connection, folder: str, reviewer: str, machine: str
) -> Mapping[str, tuple[str, ...]]:
    """Return who else reads now, by subject; the same person on another machine counts as somebody else."""
    found: dict[str, tuple[str, ...]] = {}
    for row in connection.execute(_NOW, {"folder": folder, "reviewer": reviewer, "machine": machine}):
        found[row.subject] = (*found.get(row.subject, ()), row.reviewer)
    return found
