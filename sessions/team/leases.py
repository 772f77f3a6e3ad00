"""Leases: which machine may add lines to an attempt in a team's store, by the server's clock alone.

A lease ends by itself a minute after it was renewed. Each change of the holder counts up the attempt's `fence`, and
lines are added under the fence that they were prepared for or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

LEASE_S = 60
"""How long a machine may add lines without renewing its lease."""

_FREE = "(attempts.holder = :machine OR attempts.lease_until < clock_timestamp())"
_CLAIM = text(
    "INSERT INTO attempts (id, branch_of, task, actor, participant, started_utc_ms, ended, seq, head, holder, "
    "lease_until, fence) VALUES (:id, :branch_of, :task, :actor, :participant, :started_utc_ms, false, 0, '', "
    f":machine, clock_timestamp() + interval '{LEASE_S} s', 1) ON CONFLICT (id) DO UPDATE SET "
    "fence = attempts.fence + CASE WHEN attempts.holder = :machine THEN 0 ELSE 1 END, holder = :machine, "
    f"lease_until = clock_timestamp() + interval '{LEASE_S} s' WHERE {_FREE} RETURNING fence, seq, head"
)
_RENEW = text(
    f"UPDATE attempts SET lease_until = clock_timestamp() + interval '{LEASE_S} s' "
    "WHERE id = :id AND holder = :machine AND fence = :fence"
)
_RELEASE = text(
    "UPDATE attempts SET lease_until = clock_timestamp() WHERE id = :id AND holder = :machine AND fence = :fence"
)
_HOLDER = text("SELECT holder FROM attempts WHERE id = :id AND lease_until >= clock_timestamp()")
_HELD = text("SELECT id, holder FROM attempts WHERE lease_until >= clock_timestamp() AND NOT ended ORDER BY id")


@dataclass(frozen=True, slots=True)
class Lease:
    """A machine's right to add lines to an attempt, and what the store had of it when it was given."""

    attempt: str
    machine: str
    fence: int
    seq: int
    """How many lines the store has."""
    head: str
    """The hash of the last of them."""


def claim(connection: Connection, attempt: str, machine: str, header: Mapping[str, object]) -> Lease | None:
    """Take or renew the lease of an attempt, which is made if the store has none; None while another machine holds it.

    `header` are the columns that a new attempt has: branch_of, task, actor, participant, started_utc_ms.
    """
    row = connection.execute(_CLAIM, {"id": attempt, "machine": machine, **header}).first()
    return None if row is None else Lease(attempt, machine, *row)


def renew(connection: Connection, lease: Lease) -> bool:
    """Renew a lease; False if another machine has taken the attempt over."""
    given = {"id": lease.attempt, "machine": lease.machine, "fence": lease.fence}
    return connection.execute(_RENEW, given).rowcount == 1


def release(connection: Connection, lease: Lease) -> None:
    """End a lease, so that another machine can go on at once."""
    connection.execute(_RELEASE, {"id": lease.attempt, "machine": lease.machine, "fence": lease.fence})


def holder_of(connection: Connection, attempt: str) -> str:
    """Return the machine that may add lines to an attempt now; empty if none may."""
    return str(connection.scalar(_HOLDER, {"id": attempt}) or "")


def leases_held(connection: Connection) -> dict[str, str]:
    """Return the machine that holds the lease of each attempt under way, by the id of the attempt."""
    return {row.id: row.holder for row in connection.execute(_HELD)}
