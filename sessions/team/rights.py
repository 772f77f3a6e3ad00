"""The rights in a team's store: the roles of its database, and the rights of the connected user.

Readers must never see an answer, so they can't read secret blobs, baselines, lines of journals, which contain
solvers' repairs, or lines of annotations, which may quote any of these. They see only the ids and hashes of
studies. Only lines of studies may be deleted, so that people can be erased from them.
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
        f"REVOKE INSERT, UPDATE, DELETE ON {_VIEWS} FROM {WORKER}",  # a view needs no rights on its tables
        f"REVOKE DELETE ON attempts FROM {WORKER}",
        f"REVOKE INSERT, UPDATE, DELETE ON alembic_version FROM {WORKER}",
    ),
    READER: (
        f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {READER}",
        f"GRANT SELECT ON {_FOR_READERS} TO {READER}",
    ),
}


class Rights(StrEnum):
    """The rights of a connection, from the weakest to the strongest."""

    NONE = "none"
    READER = "reader"
    WORKER = "worker"
    OWNER = "owner"

    @property
    def works(self) -> bool:
        """Whether the user may send and fetch attempts, tasks and annotations."""
        return self in (Rights.WORKER, Rights.OWNER)


def rights_of(connection: Connection) -> Rights:
    """Return the rights of the connected user; `NONE` if there are no tables, or tasks can't be read."""
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
    if inserts and selects:
        return Rights.WORKER
    return Rights.READER if reads else Rights.NONE


def grant(connection: Connection) -> tuple[str, ...]:
    """Create the roles and grant their rights; return the missing roles that this user can't create."""
    missing = []
    for role, statements in _GRANTS.items():
        if not _role_exists(connection, role):
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


def _role_exists(connection: Connection, role: str) -> bool:
    return connection.scalar(text("SELECT 1 FROM pg_roles WHERE rolname = :role"), {"role": role}) is not None
