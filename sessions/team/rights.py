"""Who may do what in a team's store: the roles of its database, and the rights of whoever asks.

A reader never sees an answer. So a reader sees no secret blob and no baseline; no line of a journal, which
holds the solver's repairs; no line of an annotation, which may quote either; and nothing of a study but its
id. Lines of studies alone may be deleted, since people are erased from them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import Connection

WORKER, READER = "gistpoint_worker", "gistpoint_reader"

_FOR_READERS = "alembic_version, machines, tasks, attempts, reading, studies, public_blobs, public_operations"
_ONLY_ADDED_TO = "blobs, tasks, baselines, lines, lines_of_attempts, lines_of_annotations"
_VIEWS = "public_blobs, public_operations, events"
_GRANTS = {
    WORKER: (
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {WORKER}",
        f"REVOKE UPDATE, DELETE ON {_ONLY_ADDED_TO} FROM {WORKER}",
        f"REVOKE INSERT, UPDATE, DELETE ON {_VIEWS} FROM {WORKER}",  # what a view lets through needs no other right
        f"REVOKE DELETE ON attempts FROM {WORKER}",
        f"REVOKE INSERT, UPDATE, DELETE ON alembic_version FROM {WORKER}",
    ),
    READER: (
        f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {READER}",
        f"GRANT SELECT ON {_FOR_READERS} TO {READER}",
    ),
}


class Rights(StrEnum):
    """What a connection may do, from the least to the most."""

    NONE = "none"
    READER = "reader"
    WORKER = "worker"
    OWNER = "owner"

    @property
    def works(self) -> bool:
        """Whether attempts, tasks and annotations may be sent and fetched."""
        return self in (Rights.WORKER, Rights.OWNER)


def rights_of(connection: Connection) -> Rights:
    """Return the rights of the connected user; `NONE` if there is no schema."""
    found = connection.execute(
        text(
            "SELECT pg_has_role(c.relowner, 'MEMBER'), has_table_privilege(c.oid, 'INSERT'), "
            "has_table_privilege(c.oid, 'SELECT'), has_table_privilege(t.oid, 'SELECT') "
            "FROM pg_class c, pg_class t WHERE c.oid = to_regclass('public.attempts') "
            "AND t.oid = to_regclass('public.tasks')"
        )
    ).first()
    if found is None:
        return Rights.NONE
    owner, inserts, selects, reads = found
    if owner:
        return Rights.OWNER
    return Rights.WORKER if inserts and selects else Rights.READER if reads else Rights.NONE


def grant(connection: Connection) -> tuple[str, ...]:
    """Make the roles and give them their rights; return those that this user may not make, and that are
    missing.
    """
    missing = []
    for role, statements in _GRANTS.items():
        if not _exists(connection, role):
            may = connection.scalar(
                text("SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user")
            )
            if not may:
                missing.append(role)
                continue
            connection.execute(text(f"CREATE ROLE {role} NOLOGIN"))
        for statement in statements:
            connection.execute(text(statement))
    return tuple(missing)


def _exists(connection: Connection, role: str) -> bool:
    return connection.scalar(text("SELECT 1 FROM pg_roles WHERE rolname = :role"), {"role": role}) is not None
