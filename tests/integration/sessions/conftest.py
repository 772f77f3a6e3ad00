"""A PostgreSQL server for a module's tests, emptied for each of them, and two machines that use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import PostgresServer, running_server
from team_machines import TeamMachine, make_schema


@pytest.fixture(scope="module")
def running() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def server(running: PostgresServer) -> PostgresServer:
    make_schema(running)
    return running


@pytest.fixture
def one(tmp_path: Path, server: PostgresServer) -> Iterator[TeamMachine]:
    yield from _machine(tmp_path / "one", server)


@pytest.fixture
def two(tmp_path: Path, server: PostgresServer) -> Iterator[TeamMachine]:
    yield from _machine(tmp_path / "two", server)


def _machine(root: Path, server: PostgresServer) -> Iterator[TeamMachine]:
    machine = TeamMachine(root, server.url)
    yield machine
    if machine.pusher is not None:
        machine.pusher.close()
