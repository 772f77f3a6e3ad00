"""Studies on a team's store: a database of their own, rows of a study, and the copy that a machine has of it."""

from __future__ import annotations

import itertools
from pathlib import Path

from fakes import FakeClock
from postgres_server import PostgresServer
from sqlalchemy import text

from gistpoint.core.ports import TimeSource
from gistpoint.sessions.studies.store import FolderStore
from gistpoint.sessions.team.address import StoreAddress
from gistpoint.sessions.team.connecting import engine_of, upgrade
from gistpoint.sessions.team.study_store import TeamStudyStore

PATIENCE_S = 60.0
"""Long enough that what was recorded is in the store on return, on a machine that is busy."""
_numbers = itertools.count(1)


def started(root: Path) -> PostgresServer:
    """Start a server with the tables of a store."""
    server = PostgresServer(root)
    server.start()
    prepare(server.address)
    return server


def prepare(address: StoreAddress) -> None:
    engine = engine_of(address)
    with engine.begin() as connection:
        upgrade(connection)
    engine.dispose()


def new_study(address: StoreAddress) -> str:
    """Add a study of which nothing is known but its id."""
    name = f"study-{next(_numbers)}"
    engine = engine_of(address)
    with engine.begin() as connection:
        row = text("INSERT INTO studies (id, files_sha256, archive_sha256) VALUES (:id, '', '')")
        connection.execute(row, {"id": name})
    engine.dispose()
    return name


def copy_at(
    root: Path, machine: str, study: str, address: StoreAddress, clock: TimeSource | None = None
) -> TeamStudyStore:
    """Return what a machine has of a study, brought up to date."""
    files = FolderStore(root / machine, machine, clock or FakeClock())
    store = TeamStudyStore(files, study, address, root / f"{machine}-attempts", patience_s=PATIENCE_S)
    store.reload()
    return store
