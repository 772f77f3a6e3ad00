"""`gistpoint store`: choose, set up, check and synchronise a database that a team shares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.readable import stamp
from gistpoint.core.requests import Request
from gistpoint.core.text import plural, visible_line
from gistpoint.sessions.team.address import (
    EmptyStoreError,
    TeamStoreError,
    UnreachableError,
    choose,
    chosen_address,
    parse_address,
)
from gistpoint.tui.commands.arguments import JSON, EmptyRequest, JsonRequest
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, OptionTable, argument, option
from gistpoint.tui.commands.output import print_json, print_table, print_text
from gistpoint.tui.commands.progress import long_work

if TYPE_CHECKING:
    from gistpoint.sessions.team.opened import TeamStore

FILES = "files"
_KEPT = "The data sent and fetched so far are kept; `gistpoint store sync` does the rest."


@contextmanager
def _opened(locations: Locations) -> Iterator[TeamStore]:
    """Yield the chosen store. Raises `TeamStoreError` if it can't be used, or the extra isn't installed."""
    from gistpoint.sessions.team.connecting import require_extra

    require_extra()
    from gistpoint.sessions.team.opened import open_store

    store = open_store(locations, SystemTime())
    try:
        yield store
    finally:
        store.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class UseStore(Request):
    """A request to choose the store: its address, or `files` for none."""

    store: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncStore(JsonRequest):
    """A request to send and fetch everything; with `deleted`, also fetch tasks deleted on this machine."""

    deleted: bool = False


def use(request: UseStore) -> int:
    """Choose a store, and print whether it answers.

    Return 1 if it can't be used, unless only its tables are missing.
    """
    locations = Locations.of_user()
    if request.store == FILES:
        before = chosen_address(locations.config)
        choose(locations.config, None)
        print(f"Only files are used. {before} keeps what it has." if before else "Only files are used.")
        return DONE
    address = parse_address(request.store)
    choose(locations.config, request.store)
    print_text(f"The store is {address}.")
    try:
        with _opened(locations) as store:
            print_text(
                f"It answers; your rights are those of: {store.rights}. `gistpoint store sync` fetches and"
                " sends."
            )
    except TeamStoreError as error:
        print_text(f"{error.message} {error.hint or ''}".rstrip())
        if not isinstance(error, EmptyStoreError):
            print("The choice is kept; `gistpoint store use files` reverts it.")
            return NEGATIVE
    return DONE


def init(_: EmptyRequest) -> int:
    """Make the schema and the roles. Return 1 if somebody else has to make the roles."""
    from gistpoint.sessions.team.connecting import REVISION, engine_of, reaching, require_extra, upgrade

    require_extra()
    from gistpoint.sessions.team.opened import address_of
    from gistpoint.sessions.team.rights import grant

    address = address_of(Locations.of_user())
    engine = engine_of(address)
    try:
        with reaching(address), engine.begin() as connection:
            before = upgrade(connection)
            missing = grant(connection)
    finally:
        engine.dispose()
    was = f"; it was {before}" if before and before != REVISION else ""
    print_text(f"{address} has the schema of revision {REVISION}{was}.")
    if not missing:
        print("Give people their rights: GRANT gistpoint_worker TO name; or GRANT gistpoint_reader TO name;")
        return DONE
    print(
        "You are not allowed to create roles here. Ask an administrator of the server to run this, then run"
        " `store init` again:"
    )
    for role in missing:
        print(f"  CREATE ROLE {role} NOLOGIN;")
    return NEGATIVE


def status(request: JsonRequest) -> int:
    """Print the state of the store. Return 1 if it does not answer."""
    locations = Locations.of_user()
    address = chosen_address(locations.config)
    if address is None:
        if request.json:
            print_json("gistpoint.store-status/1", {"store": None})
        else:
            print(
                "Only files are used. `gistpoint store use postgresql://USER@HOST/DATABASE` chooses a team's"
                " store."
            )
        return DONE
    try:
        with _opened(locations) as store:
            from gistpoint.sessions.team.status import status as status_of

            found = status_of(store, locations, SystemTime())
    except UnreachableError as error:
        from gistpoint.sessions.team.pusher import TO_SEND

        waiting = sorted(path.name for path in (locations.data / TO_SEND).glob("*"))
        if request.json:
            print_json(
                "gistpoint.store-status/1", {"store": str(address), "away": error.message, "unsent": waiting}
            )
            return NEGATIVE
        print_text(f"{error.message} {error.hint or ''}".rstrip())
        print(f"Attempts written in the meantime: {len(waiting)}. They are sent when it answers again.")
        return NEGATIVE
    if request.json:
        print_json("gistpoint.store-status/1", asdict(found))
        return DONE
    skew = f"{found.skew_ms / 1000:+.1f} s against the server's"
    print_table(
        ["what", "value"],
        [
            ["store", found.store],
            ["server", found.server],
            ["schema", found.revision],
            ["rights", found.rights],
            ["this machine", found.machine],
            ["clock", f"{skew}: set it" if _is_wrong(found.skew_ms) else skew],
            ["to send", str(found.to_send)],
            ["to fetch", str(found.to_fetch)],
            *(["open", f"{attempt}, held by {holder}"] for attempt, holder in found.leases.items()),
            *(["branch", name] for name in found.branches),
            *(
                ["machine", f"{one.id}, seen {stamp(one.seen_utc_ms)}, {one.version}"]
                for one in found.machines
            ),
        ],
    )
    for one in found.machines:
        if _is_wrong(one.skew_ms):
            who, seconds = visible_line(one.id), one.skew_ms / 1000
            print(f"The clock of {who} was {seconds:+.0f} s wrong. Leases follow the server's clock.")
    return DONE


def _is_wrong(skew_ms: int) -> bool:
    from gistpoint.sessions.team.opened import SKEW_REPORTED_S

    return abs(skew_ms) > SKEW_REPORTED_S * 1000


def sync(request: SyncStore) -> int:
    """Send and fetch everything. Return 1 if something differs."""
    locations = Locations.of_user()
    with _opened(locations) as store, long_work(quiet=request.json, kept=_KEPT) as work:
        from gistpoint.sessions.team.syncing import sync as synchronise

        done = synchronise(store, locations, SystemTime(), work.run, deleted=request.deleted)
    if request.json:
        print_json("gistpoint.store-sync/1", asdict(done))
        return NEGATIVE if done.alarms else DONE
    print_table(
        ["what", "sent", "fetched"],
        [
            ["tasks", str(done.tasks_sent), str(done.tasks_fetched)],
            ["attempts", str(done.attempts_sent), str(done.attempts_fetched)],
            ["lines of journals", str(done.lines_sent), str(done.lines_fetched)],
            ["annotations", str(done.operations_sent), str(done.operations_fetched)],
        ],
    )
    if done.tasks_left:
        left = (
            f"{plural(done.tasks_left, 'task')} that {'was' if done.tasks_left == 1 else 'were'} deleted here"
        )
        print(f"Not fetched: {left} (--deleted fetches them).")
    for branch in done.branches:
        print_text(f"Another machine continued it, so this machine's lines are in the branch {branch}.")
    for conflict in done.alarms:
        print_text(visible_line(str(conflict)))
    return NEGATIVE if done.alarms else DONE


def check(request: JsonRequest) -> int:
    """Print all differences between the files and the store. Return 1 if there is one.

    Raises `TeamStoreError` if the user may only read the store.
    """
    locations = Locations.of_user()
    with _opened(locations) as store, long_work(quiet=request.json, kept="Nothing was changed.") as work:
        if not store.rights.works:
            raise TeamStoreError(
                "A reader can't compare: journals and answers are not shown to readers.",
                hint="Somebody with the role gistpoint_worker can do it.",
            )
        from gistpoint.sessions.team.checking import check as differences

        found = differences(store, locations, SystemTime(), work.run)
    if request.json:
        rows = [{"kind": one.kind, **asdict(one.conflict), "text": str(one.conflict)} for one in found]
        print_json("gistpoint.store-check/1", {"differences": rows})
    else:
        for one in found:
            print_text(visible_line(str(one)))
        print(f"{plural(len(found), 'difference')}." if found else "The files here and the store agree.")
    return NEGATIVE if found else DONE


USE = CliCommand(
    UseStore,
    use,
    {"store": argument("URL|files", "postgresql://USER@HOST/DATABASE, or the word files")},
    about=(
        "Chooses the store for this user: a database that a team shares, or only files, which is the"
        " default. In both cases, attempts are written to files; with a database, they are sent from"
        " there. The address never contains a password: use PGPASSWORD, ~/.pgpass or a service file."
        " The exit code is 1 if the store is chosen but can't be used now: if it does not answer,"
        " refuses the connection, or gives this user no rights."
    ),
)
INIT = CliCommand(
    EmptyRequest,
    init,
    OptionTable(),
    about=(
        "Creates the tables of the chosen store, or updates those of an older version, and gives the"
        " roles gistpoint_worker and gistpoint_reader their rights. The owner of the database runs"
        " this command; it can be repeated."
    ),
)
STATUS = CliCommand(
    JsonRequest,
    status,
    {"json": JSON},
    about=(
        "Shows the chosen store, your rights on it, what still has to be sent and fetched, the holders of"
        " leases, the branches, and the machines that use it. Nothing is changed. The exit code is 1 if"
        " the store does not answer."
    ),
)
SYNC = CliCommand(
    SyncStore,
    sync,
    {"deleted": option("also fetch the tasks that were deleted here"), "json": JSON},
    about=(
        "Sends all tasks, attempts and annotations that are missing from the store, and fetches those that"
        " are missing here. The command can be stopped and repeated. Differences are listed but left alone"
        " on both sides; the exit code is then 1. Attempts of a study are sent with the study. Tasks that"
        " were deleted here are fetched again only with --deleted."
    ),
)
CHECK = CliCommand(
    JsonRequest,
    check,
    {"json": JSON},
    about=(
        "Compares every line, task, annotation and fetched study here with the store by their hashes,"
        " and lists each difference. Nothing is changed, except that lines of a study are sent if"
        " they have not been sent yet. The exit code is 1 if there is a difference."
    ),
)
