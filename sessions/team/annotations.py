"""Merges people's operations with a team's store by uuid: reviews, validations, readings and results.

A person's operations may come from several machines, so the store numbers them by person and machine, in the
order of their arrival. The numbers show which operations are new, and are unrelated to lines in files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.core.ports import TimeSource
from gistpoint.sessions.annotations.external_results import ExternalResultStore
from gistpoint.sessions.annotations.glance_reader import GlanceStore
from gistpoint.sessions.annotations.reviewer import ReviewStore
from gistpoint.sessions.annotations.side_files import SideFileStore
from gistpoint.sessions.annotations.validator import ValidationStore
from gistpoint.sessions.team.conflicts import Conflict
from gistpoint.sessions.team.replication import Source, StoreLine, by_uuid, heads, lines_beyond, unite, uuids

if TYPE_CHECKING:
    from sqlalchemy import Connection

Annotations = SideFileStore[Any, Any]
Stores = Mapping[str, Annotations]
"""Annotation stores, by the names of their files in the team's store."""
Uuid = tuple[str, str]
"""A file in the team's store, and the uuid of an operation in it."""


def annotation_stores(locations: Locations, clock: TimeSource) -> dict[str, Annotations]:
    """Return the stores of shared annotations, by the names of their folders."""
    return {
        "reviews": ReviewStore(locations.reviews, clock),
        "validations": ValidationStore(locations.validations, clock),
        "glances": GlanceStore(locations.glances, clock),
        "external-results": ExternalResultStore(locations.external_results, clock),
    }


@dataclass(frozen=True, slots=True)
class ExchangeResult:
    """The number of operations that were added on each side, and the conflicts."""

    sent: int = 0
    fetched: int = 0
    conflicts: Mapping[Uuid, Conflict] = field(default_factory=dict)


def line_of(store: Annotations, operation: Any) -> bytes:
    """Return the line of an operation for the team's store, without a newline."""
    return store.codec.encode(operation).rstrip(b"\n")


def operations_in(stores: Stores) -> dict[Uuid, Any]:
    """Return the operations in this machine's files, by file and uuid."""
    return {(file, one.op): one for file, store in stores.items() for one in store.book.operations}


def exchange(
    connection: Connection,
    stores: Stores,
    machine: str,
    without: Callable[[str], bool] = lambda person: False,
) -> ExchangeResult:
    """Send the operations missing from the store, and fetch those missing from this machine.

    Operations with the same uuid that differ are kept on both sides and reported as conflicts, as are invalid
    lines in the store. Operations of people for whom `without` returns True are not sent.
    """
    there = uuids(connection, stores)
    local = operations_in(stores)
    new = [
        (place[0], one) for place, one in local.items() if place not in there and not without(one.reviewer)
    ]
    send(connection, stores, machine, new)
    wanted = [place for place in there if place not in local] + other_lines(stores, local, there)
    taken = take(stores, by_uuid(connection, wanted))
    return ExchangeResult(len(new), taken.fetched, taken.conflicts)


def other_lines(
    stores: Stores, local: Mapping[Uuid, Any], there: Mapping[Uuid, tuple[str, str]]
) -> list[Uuid]:
    """Return the files and uuids of operations whose lines differ between this machine and the store."""
    return [
        (file, op)
        for (file, op), one in local.items()
        if (file, op) in there and _sha256(line_of(stores[file], one)) != there[file, op][1]
    ]


def send(connection: Connection, stores: Stores, machine: str, operations: Iterable[tuple[str, Any]]) -> None:
    """Send operations, each with its file; those already in the store are not changed."""
    unite(
        connection,
        machine,
        (
            StoreLine(
                *(file, f"{one.reviewer}@{machine}", 0, line_of(stores[file], one), machine),
                *(one.op, one.utc_ms, one.subject, str(one.kind)),
            )
            for file, one in operations
        ),
    )


def last_numbers(connection: Connection, stores: Stores) -> dict[Source, int]:
    """Return the number of operations of each person and machine in the store, by file and writer."""
    return {source: head.number for source, head in heads(connection, stores).items()}


def fetch_new(connection: Connection, stores: Stores, known: dict[Source, int]) -> int:
    """Fetch the operations after the numbers in `known`, update the numbers, and return how many are new."""
    now = last_numbers(connection, stores)
    new = {source: known.get(source, 0) for source, last in now.items() if last > known.get(source, 0)}
    lines = lines_beyond(connection, new, now)
    taken = take(stores, ((line.file, line.op or "", line.data) for line in lines))
    known.update(now)
    return taken.fetched


def take(stores: Stores, lines: Iterable[tuple[str, str, bytes]]) -> ExchangeResult:
    """Add lines of the store, each with its file and uuid, to this machine's files.

    Invalid lines and operations that differ are reported as conflicts. Raises `UserError` if a file can't be
    written.
    """
    new, conflicts = dict[str, list[Any]](), dict[Uuid, Conflict]()
    for file, op, line in lines:
        store = stores[file]
        operation, fault = _read(store, line)
        if operation is None or operation.op != op:
            what = f"{file}: operation {op[:40]!r}"
            conflicts[file, op] = Conflict(
                what, words=f"the store's line is not such an operation. {fault}".strip()
            )
            continue
        here = store.book.get(op)
        if here is None:
            new.setdefault(file, []).append(operation)
        elif here != operation:
            conflicts[file, op] = Conflict(
                f"{file}: operation {op}", 0, _sha256(line_of(store, here)), _sha256(line)
            )
    fetched = 0
    for file, operations in new.items():
        try:
            fetched += stores[file].append(operations)
        except UserError:
            stores[file].reload()
            raise
    return ExchangeResult(0, fetched, conflicts)


def operation_differences(connection: Connection, stores: Stores) -> Iterator[tuple[str, Conflict]]:
    """Yield the differences between this machine's files and the store, each with its kind."""
    there = uuids(connection, stores)
    local = operations_in(stores)
    for file, op in sorted(local.keys() - there.keys()):
        yield "missing there", Conflict(f"{file}: operation {op}", words="the store has none.")
    for file, op in sorted(there.keys() - local.keys()):
        yield "missing here", Conflict(f"{file}: operation {op[:40]}", words="it is only on the store.")
    for file, op, line in by_uuid(connection, other_lines(stores, local, there)):
        if _read(stores[file], line)[0] != local[file, op]:
            here = _sha256(line_of(stores[file], local[file, op]))
            yield "operation differs", Conflict(f"{file}: operation {op}", 0, here, there[file, op][1])


def _read(store: Annotations, line: bytes) -> tuple[Any, str]:
    try:
        return store.codec.decode(line), ""
    except ValueError as error:
        return None, str(error)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
