"""A team's store that was opened: the engine, the user's rights, and the difference between the clocks."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.dialects.postgresql import insert

from gistpoint import __version__
from gistpoint.core.locations import Locations
from gistpoint.core.ports import TimeSource
from gistpoint.sessions.machine import machine_of
from gistpoint.sessions.team.address import StoreAddress, TeamStoreError, chosen_address
from gistpoint.sessions.team.connecting import engine_of, reaching, require_schema, revision_of
from gistpoint.sessions.team.rights import Rights, rights_of
from gistpoint.sessions.team.schema import machines

if TYPE_CHECKING:
    from sqlalchemy import Engine

SKEW_REPORTED_S = 5.0
"""The difference in seconds above which a wrong clock is reported; nothing else depends on it."""
_SCHEMA = text("SELECT to_regclass('public.alembic_version')")
_NOW_MS = text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)")


@dataclass(frozen=True, slots=True)
class TeamStore:
    """A store that has answered, with a schema that this program can use."""

    address: StoreAddress
    engine: Engine
    machine: str
    rights: Rights
    skew_ms: int
    """This machine's clock minus the server's, in milliseconds."""

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()


def address_of(locations: Locations) -> StoreAddress:
    """Return the address of the chosen store. Raises `TeamStoreError` if none is chosen."""
    address = chosen_address(locations.config)
    if address is None:
        raise TeamStoreError(
            "No store is chosen: only files are used.",
            hint="`gistpoint store use postgresql://USER@HOST/DATABASE` chooses one.",
        )
    return address


def open_store(locations: Locations, clock: TimeSource, *, prompt: bool = False) -> TeamStore:
    """Connect to the chosen store, record there that this machine has used it, and return the store.

    Nothing is recorded for a reader. `prompt` is as in `engine_of`. Raises `UnreachableError` if it does not
    answer, and `TeamStoreError` if none is chosen, the schema has another revision, or the user has no
    rights.
    """
    address, machine = address_of(locations), machine_of(locations.data)
    engine = engine_of(address, prompt=prompt)
    with reaching(address), engine.begin() as connection:
        if connection.scalar(_SCHEMA) is None:
            require_schema("")
        rights = rights_of(connection)
        if rights is Rights.NONE:
            raise TeamStoreError(
                f"This user has no right to read anything on {address}.",
                hint="Its owner runs `GRANT gistpoint_worker TO ...` or `GRANT gistpoint_reader TO ...`.",
            )
        require_schema(revision_of(connection))
        before = time.monotonic_ns()
        now = connection.scalar(_NOW_MS) or 0
        skew = clock.utc_ms() - (time.monotonic_ns() - before) // 2_000_000 - int(now)
        if rights is not Rights.READER:
            seen = {"version": __version__, "skew_ms": skew, "seen_at": text("clock_timestamp()")}
            connection.execute(
                insert(machines)
                .values(id=machine, **seen)
                .on_conflict_do_update(index_elements=["id"], set_=seen)
            )
    return TeamStore(address, engine, machine, rights, skew)
