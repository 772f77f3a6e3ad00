"""Simulated machines of a team: each has its own home, and a store on a server that the tests start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders import CHECKS, build_task
from fakes import FakeRunner
from postgres_server import PostgresServer

from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.ports import TimeSource
from gistpoint.core.running import UNATTENDED
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempts import AttemptStore, OpenAttempt
from gistpoint.sessions.machine import machine_of
from gistpoint.sessions.team.address import choose
from gistpoint.sessions.team.checking import StoreDifference, check
from gistpoint.sessions.team.connecting import engine_of, upgrade
from gistpoint.sessions.team.opened import TeamStore, open_store
from gistpoint.sessions.team.pusher import Pusher
from gistpoint.sessions.team.rights import grant
from gistpoint.sessions.team.syncing import StoreSync, sync


@dataclass
class TeamMachine:
    """A machine with its folders, its attempts and its chosen store."""

    root: Path
    url: str
    clock: TimeSource = field(default_factory=SystemTime)

    def __post_init__(self) -> None:
        choose(self.locations.config, self.url)
        self.pusher: Pusher | None = None

    @property
    def locations(self) -> Locations:
        return Locations(self.root / "data", self.root / "config", self.root / "cache")

    @property
    def name(self) -> str:
        return machine_of(self.locations.data)

    def attempts(self, *, mirrored: bool = False) -> AttemptStore:
        """Return the machine's attempt store; a mirrored one retries an unreachable server every 0.1 s."""
        if mirrored and self.pusher is None:
            self.pusher = Pusher(self.locations, self.clock, lambda failures: 0.1)
        places = self.locations
        return AttemptStore(
            places.attempts, self.clock, "test", places.reviews, self.pusher if mirrored else None
        )

    def task(self) -> Task:
        return build_task(self.locations.tasks)

    def start(self, task: Task, *, mirrored: bool = False, **named: Any) -> OpenAttempt:
        return self.attempts(mirrored=mirrored).start(task, _judge(task), Enrolment(), **named)

    def resume(self, attempt_id: str, task: Task, *, mirrored: bool = False) -> OpenAttempt:
        return self.attempts(mirrored=mirrored).resume(attempt_id, task, _judge(task))

    @contextmanager
    def store(self) -> Iterator[TeamStore]:
        found = open_store(self.locations, self.clock)
        try:
            yield found
        finally:
            found.close()

    def sync(self) -> StoreSync:
        with self.store() as store:
            return sync(store, self.locations, self.clock, UNATTENDED)

    def check(self) -> list[StoreDifference]:
        with self.store() as store:
            return check(store, self.locations, self.clock, UNATTENDED)

    def journal(self, attempt_id: str) -> bytes:
        return (self.locations.attempts / attempt_id / "journal.jsonl").read_bytes()


def _judge(task: Task) -> RepairJudge:
    return RepairJudge(task, read_answer(task), FakeRunner(CHECKS))


def make_schema(server: PostgresServer) -> None:
    """Recreate the tables, empty."""
    engine = engine_of(server.address)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO public"
        )
        upgrade(connection)
        grant(connection)
    engine.dispose()


def as_role(server: PostgresServer, user: str, role: str) -> str:
    """Create a user with a role and return the store's address for that user."""
    if ask(server, f"SELECT 1 FROM pg_roles WHERE rolname = '{user}'"):
        ask(server, f"DROP OWNED BY {user}; DROP ROLE {user}")
    ask(server, f"CREATE ROLE {user} LOGIN IN ROLE {role}")
    return server.url.replace("owner@", f"{user}@")


def ask(server: PostgresServer, statement: str, user: str = "owner") -> list[tuple[Any, ...]]:
    """Execute a statement on the server directly and return its rows, or [] if it yields none."""
    import psycopg

    with psycopg.connect(
        f"host={server.root / 'socket'} dbname=team user={user}", autocommit=True
    ) as connection:
        found = connection.execute(statement.encode())
        return found.fetchall() if found.description else []
