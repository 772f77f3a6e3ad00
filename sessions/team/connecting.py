"""Connects to a team's store, and upgrades its schema to this program's revision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.errors import extra_hint
from gistpoint.sessions.team.address import EmptyStoreError, StoreAddress, TeamStoreError, UnreachableError
from gistpoint.sessions.team.refusals import unreachable

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

REVISION = "0002"
"""The revision of the schema that this program uses."""

_MIGRATIONS = Path(__file__).parent / "migrations"
_STATEMENT_S = 60
_GONE = {
    "tcp_user_timeout": "10000",
    "keepalives_idle": "5",
    "keepalives_interval": "5",
    "keepalives_count": "2",
}
"""Settings that end a connection to an unreachable server after about 10 s, not after TCP's 15 minutes."""


def require_extra() -> None:
    """Raise `TeamStoreError` if the packages of the extra `team` are not installed."""
    try:
        import alembic  # noqa: F401
        import psycopg  # noqa: F401
        import sqlalchemy  # noqa: F401
    except ImportError as error:
        raise TeamStoreError(
            "A team's store needs packages that are not installed.", hint=extra_hint("team")
        ) from error


def parameters_of(address: StoreAddress) -> str:
    """Return the parameters of a connection to a store, for the driver."""
    import psycopg.conninfo

    return psycopg.conninfo.make_conninfo(
        "",
        **address.parameters,
        **_GONE,
        application_name="gistpoint",
        options=f"-c statement_timeout={_STATEMENT_S}s -c timezone=UTC",
    )


def engine_of(address: StoreAddress, *, prompt: bool = False) -> Engine:
    """Return an engine for a store, which does not connect yet.

    With `prompt`, because a person is waiting, it gives up on a silent server sooner. Raises `TeamStoreError`
    if the packages of the extra `team` are not installed.
    """
    require_extra()
    from sqlalchemy import create_engine

    from gistpoint.sessions.team.silence import PATIENT, PROMPT, connected

    given, patience = parameters_of(address), PROMPT if prompt else PATIENT
    return create_engine(
        "postgresql+psycopg://",
        creator=lambda: connected(given, patience),
        pool_pre_ping=True,
        pool_size=4,
        max_overflow=4,
        use_native_hstore=False,  # without this, the first connection would search for the extension
    )


@contextmanager
def reaching(address: StoreAddress | str) -> Iterator[None]:
    """Convert the driver's exceptions to `UnreachableError` or `TeamStoreError`, without secrets."""
    from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

    try:
        yield
    except (OperationalError, InterfaceError) as error:
        raise unreachable(address, _reason(error)) from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise UnreachableError(f"The connection to the store {address} was lost.") from error
        raise TeamStoreError(
            f"The store {address} refuses: {_reason(error)}",
            hint="`gistpoint store status` shows its schema and your rights.",
        ) from error


def _reason(error: BaseException) -> str:
    """Return the first line of the driver's message as a sentence."""
    message = str(getattr(error, "orig", error)).strip().splitlines()
    return message[0][:300].rstrip(".") + "." if message else "no reason was given."


def revision_of(connection: Connection) -> str:
    """Return the revision of a store's schema; empty if it has none."""
    from alembic.runtime.migration import MigrationContext

    return MigrationContext.configure(connection).get_current_revision() or ""


def require_schema(revision: str) -> None:
    """Raise `TeamStoreError` if the schema has another revision, and `EmptyStoreError` if there is none."""
    if revision == REVISION:
        return
    init = "Its owner runs `gistpoint store init`."
    if not revision:
        raise EmptyStoreError("The database has no tables of gistpoint yet.", hint=init)
    raise TeamStoreError(
        f"The store's schema has the revision {revision[:20]}, but this version of gistpoint uses"
        f" {REVISION}.",
        hint=init if revision < REVISION else "Install the newer version of gistpoint that made it.",
    )


def upgrade(connection: Connection) -> str:
    """Create the schema, or upgrade it to this program's revision; return the revision that it had.

    Raises `TeamStoreError` if a newer program has made the schema.
    """
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    before = revision_of(connection)
    script = ScriptDirectory(str(_MIGRATIONS))
    if before not in ("", *(revision.revision for revision in script.walk_revisions())):
        raise TeamStoreError(
            f"The store's schema has the revision {before[:20]}, which this version of gistpoint does"
            " not know.",
            hint="Install the newer version of gistpoint that made it.",
        )

    def steps(revision: object, _context: object) -> object:
        return script._upgrade_revs(REVISION, revision)  # type: ignore[arg-type]  # as alembic's own command does

    with EnvironmentContext(Config(), script, fn=steps, destination_rev=REVISION) as environment:
        environment.configure(connection=connection, transactional_ddl=True)
        with environment.begin_transaction():
            environment.run_migrations()
    return before
