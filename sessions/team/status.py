"""Reports the state of a team's store, and the data missing from it or from this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select, text

from gistpoint.core.locations import Locations
from gistpoint.core.ports import TimeSource
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.tasks import TaskStore
from gistpoint.sessions.team.annotations import annotation_stores, operations_in
from gistpoint.sessions.team.attempts import ends_there, leases_held, local_attempts, to_push
from gistpoint.sessions.team.connecting import REVISION, reaching
from gistpoint.sessions.team.lines import branch_of, end_of
from gistpoint.sessions.team.opened import TeamStore
from gistpoint.sessions.team.replication import uuids
from gistpoint.sessions.team.schema import tasks
from gistpoint.sessions.team.tasks import has_answer, local_tasks, may_be_sent

if TYPE_CHECKING:
    from sqlalchemy import Connection

_SEEN = text(
    "SELECT id, version, skew_ms, CAST(extract(epoch FROM seen_at) * 1000 AS bigint) AS ms FROM machines"
    " ORDER BY id"
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The numbers of items on one side that are missing from the other."""

    tasks: int = 0
    attempts: int = 0
    lines: int = 0
    operations: int = 0

    def __str__(self) -> str:
        """Return the counts in words, except the number of attempts."""
        counts = {"tasks": self.tasks, "lines of journals": self.lines, "annotations": self.operations}
        return ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing"


@dataclass(frozen=True, slots=True)
class SeenMachine:
    """A machine that has used the store; `seen_utc_ms` is the time of the last use, by the server's clock."""

    id: str
    version: str
    skew_ms: int
    seen_utc_ms: int


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """The state of a store, as seen from this machine."""

    store: str
    server: str
    """The host, port, database and user of the connection, wherever they were configured."""
    revision: str
    rights: str
    machine: str
    skew_ms: int
    """This machine's clock minus the server's, in milliseconds."""
    to_send: Waiting
    to_fetch: Waiting
    leases: dict[str, str]
    """The machine that holds the lease of each unfinished attempt, by the attempt's id."""
    branches: tuple[str, ...]
    machines: tuple[SeenMachine, ...]


def status(store: TeamStore, locations: Locations, clock: TimeSource) -> StoreStatus:
    """Return the state of the store; for a reader, only the part that readers can see.

    Raises `UnreachableError` if the store does not answer, and `TeamStoreError` if it refuses.
    """
    with reaching(store.address), store.engine.connect() as connection:
        there = ends_there(connection)
        send, fetch = _waiting(store, connection, locations, clock, there)
        return StoreStatus(
            str(store.address),
            _server(connection),
            REVISION,
            store.rights.value,
            store.machine,
            store.skew_ms,
            send,
            fetch,
            leases_held(connection),
            tuple(name for name in there if branch_of(name)[0]),
            tuple(SeenMachine(row.id, row.version, row.skew_ms, row.ms) for row in connection.execute(_SEEN)),
        )


def _server(connection: Connection) -> str:
    info = connection.connection.dbapi_connection.info  # type: ignore[union-attr]
    return f"{info.host}, port {info.port}, database {info.dbname}, user {info.user}"


def _waiting(
    store: TeamStore,
    connection: Connection,
    locations: Locations,
    clock: TimeSource,
    there: dict[str, tuple[int, str]],
) -> tuple[Waiting, Waiting]:
    own = TaskStore(locations.tasks)
    mine = local_tasks(own)
    complete = {id for id, task in mine.items() if has_answer(task)}
    on_store = set(connection.scalars(select(tasks.c.id))) - (own.deleted - mine.keys())
    if not store.rights.works:
        return Waiting(), Waiting(tasks=len(on_store - mine.keys()))
    unsent = to_push(connection, local_attempts(locations.attempts))
    behind = []
    for name, (seq, _) in there.items():
        parent, machine = branch_of(name)
        if machine.partition("-")[0] == store.machine and not (locations.attempts / name).exists():
            name = parent  # until the next synchronisation, this machine's branch uses the attempt's own name
        end = end_of(locations.attempts / name / JOURNAL)
        if end is None or end.seq < seq:
            behind.append(seq - (0 if end is None else end.seq))
    stores = annotation_stores(locations, clock)
    here, kept = operations_in(stores).keys(), uuids(connection, stores).keys()
    new, wanted = len(here - kept), len(kept - here)
    return (
        Waiting(
            sum(may_be_sent(mine[id]) for id in complete - on_store), len(unsent), sum(unsent.values()), new
        ),
        Waiting(len(on_store - complete), len(behind), sum(behind), wanted),
    )
