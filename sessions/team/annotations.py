"""Reviews, validations, blind readings and external results, united with those of a team's store by their uuids."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.core.ports import TimeSource
from gistpoint.sessions.annotations.external_results import ExternalResultStore
from gistpoint.sessions.annotations.glance_reader import GlanceStore
from gistpoint.sessions.annotations.reviewer import ReviewStore
from gistpoint.sessions.annotations.side_files import SideFileStore
from gistpoint.sessions.annotations.validator import ValidationStore
from gistpoint.sessions.team.alarms import Alarm

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_AT_ONCE = 1_000
_LATE = 1_000
"""Arrivals before the last known one that are asked for again: transactions end in another order than they count."""
_KNOWN = text("SELECT op, encode(sha256(line), 'hex') AS sha256 FROM operations WHERE folder = :folder")
_LINES = text("SELECT op, line FROM operations WHERE folder = :folder AND op = ANY(:ops)")
_NEW = text("SELECT op, line, number FROM operations WHERE folder = :folder AND number > :number ORDER BY number")
_LAST = text("SELECT coalesce(max(number), 0) FROM operations WHERE folder = :folder")
_ADD = text(
    "INSERT INTO operations (folder, op, reviewer, utc_ms, subject, kind, line) "
    "SELECT :folder, * FROM unnest(CAST(:ops AS text[]), CAST(:reviewers AS text[]), CAST(:times AS bigint[]), "
    "CAST(:subjects AS text[]), CAST(:kinds AS text[]), CAST(:lines AS bytea[])) ON CONFLICT DO NOTHING"
)

Annotations = SideFileStore[Any, Any]


def annotation_stores(locations: Locations, clock: TimeSource) -> dict[str, Annotations]:
    """Return the stores of annotations that are shared, by the names of their folders, which the table has too."""
    return {
        "reviews": ReviewStore(locations.reviews, clock),
        "validations": ValidationStore(locations.validations, clock),
        "glances": GlanceStore(locations.glances, clock),
        "external-results": ExternalResultStore(locations.external_results, clock),
    }


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What a union added on either side."""

    sent: int = 0
    fetched: int = 0
    alarms: tuple[Alarm, ...] = ()
    number: int = 0
    """The last arrival that was seen; give it to the next `fetch_new`."""


def line_of(store: Annotations, operation: Any) -> bytes:
    """Return an operation as the store keeps it: its line, without a newline."""
    return store.codec.encode(operation).rstrip(b"\n")


def exchange(engine: Engine, folder: str, store: Annotations) -> Exchanged:
    """Send what the store lacks and fetch what is not here; another operation under a uuid stays, on both sides."""
    with engine.begin() as connection:
        there = {row.op: row.sha256 for row in connection.execute(_KNOWN, {"folder": folder})}
    mine = {operation.op: operation for operation in store.book.operations}
    new = [operation for op, operation in mine.items() if op not in there]
    send(engine, folder, store, new)
    other = [op for op, found in there.items() if op in mine and _sha256(line_of(store, mine[op])) != found]
    wanted = [op for op in there if op not in mine] + other
    fetched, alarms = 0, list[Alarm]()
    for start in range(0, len(wanted), _AT_ONCE):
        with engine.begin() as connection:
            rows = connection.execute(_LINES, {"folder": folder, "ops": wanted[start : start + _AT_ONCE]}).all()
        taken = take(store, folder, {row.op: bytes(row.line) for row in rows})
        fetched, alarms = fetched + taken.fetched, [*alarms, *taken.alarms]
    return Exchanged(len(new), fetched, tuple(alarms))


def send(engine: Engine, folder: str, store: Annotations, operations: list[Any]) -> None:
    """Send operations; those whose uuid the store has are left as they are there."""
    for start in range(0, len(operations), _AT_ONCE):
        some = operations[start : start + _AT_ONCE]
        with engine.begin() as connection:
            connection.execute(
                _ADD,
                {
                    "folder": folder,
                    "ops": [operation.op for operation in some],
                    "reviewers": [operation.reviewer for operation in some],
                    "times": [operation.utc_ms for operation in some],
                    "subjects": [operation.subject for operation in some],
                    "kinds": [str(operation.kind) for operation in some],
                    "lines": [line_of(store, operation) for operation in some],
                },
            )


def last_arrival(engine: Engine, folder: str) -> int:
    """Return the number of the last operation that arrived."""
    with engine.begin() as connection:
        return int(connection.scalar(_LAST, {"folder": folder}) or 0)


def fetch_new(engine: Engine, folder: str, store: Annotations, number: int = 0) -> Exchanged:
    """Fetch the operations that arrived since the arrival `number`."""
    with engine.begin() as connection:
        rows = connection.execute(_NEW, {"folder": folder, "number": max(0, number - _LATE)}).all()
    taken = take(store, folder, {row.op: bytes(row.line) for row in rows})
    return Exchanged(0, taken.fetched, taken.alarms, max((row.number for row in rows), default=number))


def take(store: Annotations, folder: str, lines: Mapping[str, bytes]) -> Exchanged:
    """Add operations from the store to the files here; tell those that can't be read, or differ from ours."""
    new, alarms = [], list[Alarm]()
    for op, line in lines.items():
        operation, fault = _read(store, line)
        if operation is None or operation.op != op:
            what = f"{folder}: operation {op[:40]!r}"
            alarms.append(Alarm(what, words=f"the store's line is no such operation. {fault}".strip()))
            continue
        here = store.book.get(op)
        if here is None:
            new.append(operation)
        elif here != operation:
            alarms.append(Alarm(f"{folder}: operation {op}", 0, _sha256(line_of(store, here)), _sha256(line)))
    try:
        fetched = store.append(new)
    except UserError:
        store.reload()
        raise
    return Exchanged(0, fetched, tuple(alarms))


def operation_differences(connection: Connection, folder: str, store: Annotations) -> Iterator[tuple[str, Alarm]]:
    """Yield what differs between the files here and the store, each with its kind."""
    there = {row.op: row.sha256 for row in connection.execute(_KNOWN, {"folder": folder})}
    mine = {operation.op: operation for operation in store.book.operations}
    for op in sorted(mine.keys() - there.keys()):
        yield "missing there", Alarm(f"{folder}: operation {op}", words="the store has none.")
    for op in sorted(there.keys() - mine.keys()):
        yield "missing here", Alarm(f"{folder}: operation {op[:40]}", words="it is on the store alone.")
    wanted = [op for op in mine if op in there and _sha256(line_of(store, mine[op])) != there[op]]
    for row in connection.execute(_LINES, {"folder": folder, "ops": wanted}) if wanted else ():
        operation, _ = _read(store, bytes(row.line))
        if operation != mine[row.op]:
            here = _sha256(line_of(store, mine[row.op]))
            yield "operation differs", Alarm(f"{folder}: operation {row.op}", 0, here, there[row.op])


def _read(store: Annotations, line: bytes) -> tuple[Any, str]:
    try:
        return store.codec.decode(line), ""
    except ValueError as error:
        return None, str(error)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
