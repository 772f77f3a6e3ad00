"""Copies numbered lines of writers to a team's store and fetches them, for all mirrored data (decision 110).

A line is identified by its file, its writer and its number. A line that is already in the store is compared,
never overwritten. The callers decide what lines mean, who may add them, and how conflicts are reported. A
statement transfers hundreds of lines of many writers, so the cost on a slow network depends on the number of
lines, not of attempts or files.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")
Source = tuple[str, str]
"""A file, by its path in the data folder, and a writer in it."""
Place = tuple[str, str, int]
"""The file, writer and number of a line."""
LINES, BYTES = 2_000, 4 * 1024 * 1024
"""The maximum numbers of lines and of bytes in one statement."""
_FETCHED = 2_000
"""The approximate number of lines that are fetched at once."""


@dataclass(frozen=True, slots=True)
class StoreLine:
    """A line in the store, without its newline."""

    file: str
    writer: str
    number: int
    data: bytes
    machine: str
    op: str | None = None
    """The uuid if the line is an operation; this and the following members are indexed."""
    utc_ms: int | None = None
    subject: str | None = None
    kind: str | None = None
    assignment: str | None = None

    @property
    def source(self) -> Source:
        """The file and the writer."""
        return self.file, self.writer

    @property
    def row(self) -> tuple[object, ...]:
        """The values of the line's columns, in the order of `_TYPES`."""
        about = (self.op, self.utc_ms, self.subject, self.kind, self.assignment)
        return (self.file, self.writer, self.number, self.data, self.sha256, self.machine, *about)

    @property
    def sha256(self) -> str:
        """The hash of the line."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class StoreHead:
    """The last line of a writer."""

    number: int
    sha256: str
    subject: str = ""


_TYPES = {
    "file": "text",
    "writer": "text",
    "number": "integer",
    "line": "bytea",
    "sha256": "text",
    "machine": "text",
    "op": "text",
    "utc_ms": "bigint",
    "subject": "text",
    "kind": "text",
    "assignment": "text",
}
_GIVEN = (
    f"unnest({', '.join(f'CAST(:{name} AS {kind}[])' for name, kind in _TYPES.items())}) AS"
    f" l({', '.join(_TYPES)})"
)
_INSERT = f"INSERT INTO lines ({', '.join(_TYPES)})"
_ADD = text(
    f"{_INSERT} SELECT * FROM {_GIVEN} ON CONFLICT (file, writer, number) DO NOTHING RETURNING file, writer,"
    " number"
)
_UNITE = text(
    f"{_INSERT} SELECT l.file, l.writer, l.number + coalesce((SELECT max(known.number) FROM lines known WHERE"
    " known.file = l.file AND known.writer = l.writer), 0), line, sha256, machine, op, utc_ms, subject,"
    f" kind, assignment FROM {_GIVEN} ON CONFLICT DO NOTHING"
)
_ALONE = text("SELECT pg_advisory_xact_lock(hashtext(:what))")
_PLACE = ("file", "writer", "number")
_SOURCES = "unnest(CAST(:file AS text[]), CAST(:writer AS text[]), CAST(:number AS integer[])) AS s(f, w, n)"
_HEADS = text(
    "SELECT DISTINCT ON (file, writer) file, writer, number, sha256, coalesce(subject, '') FROM lines "
    "WHERE file = ANY(:files) ORDER BY file, writer, number DESC"
)
_BEYOND = text(
    f"SELECT file, writer, number, line, machine, op FROM {_SOURCES} "
    "JOIN lines ON file = f AND writer = w AND number > n ORDER BY file, writer, number"
)
_HASHES = text(
    f"SELECT file, writer, number, encode(sha256(line), 'hex') AS sha256, machine FROM {_SOURCES} "
    "JOIN lines ON file = f AND writer = w AND number > n ORDER BY file, writer, number"
)
_AT = text(
    f"SELECT file, writer, number, encode(sha256(line), 'hex') FROM {_SOURCES} "
    "JOIN lines ON file = f AND writer = w AND number = n ORDER BY file, writer, number"
)
_UUIDS = text("SELECT file, op, writer, encode(sha256(line), 'hex') FROM lines WHERE file = ANY(:files)")
_BY_UUID = text(
    "SELECT file, op, line FROM unnest(CAST(:files AS text[]), CAST(:uuids AS text[])) AS u(f, o) "
    "JOIN lines ON file = f AND op = o"
)
_DIGESTS = text(
    "SELECT writer, count(*), encode(sha256(string_agg(line, '\\x0a'::bytea ORDER BY number)), 'hex') FROM"
    " lines WHERE file = :file AND (writer = ANY(:writers) OR :all) GROUP BY writer"
)
_DROP = text("DELETE FROM lines_of_studies WHERE file = :file AND writer = ANY(:writers)")


def arrays(names: Sequence[str], rows: Collection[Sequence[object]]) -> dict[str, list[object]]:
    """Return rows as an array for each column, by the columns' names; statements take them as parameters."""
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def portions(
    items: Iterable[T], count: int, size: Callable[[T], int] = lambda _: 0, most: int = BYTES
) -> Iterator[list[T]]:
    """Yield items in lists of at most `count` items, whose sizes add up to at most `most`.

    An item that is larger than `most` has a separate list.
    """
    found: list[T] = []
    total = 0
    for item in items:
        more = size(item)
        if found and (len(found) == count or total + more > most):
            yield found
            found, total = [], 0
        found.append(item)
        total += more
    if found:
        yield found


def _batches(lines: Iterable[StoreLine]) -> Iterator[list[StoreLine]]:
    return portions(lines, LINES, lambda line: len(line.data))


def add(connection: Connection, lines: Iterable[StoreLine]) -> list[StoreLine]:
    """Add lines that are not yet in the store; return those for which it has a different line."""
    other: list[StoreLine] = []
    for batch in _batches(lines):
        added = set(map(tuple, connection.execute(_ADD, arrays([*_TYPES], [line.row for line in batch]))))
        known = {(line.file, line.writer, line.number): line for line in batch}
        there = hashes_at(connection, known.keys() - added)
        other += [known[place] for place, sha256 in there.items() if known[place].sha256 != sha256]
    return other


def serialise(connection: Connection, what: str) -> None:
    """Serialise transactions that name the same `what`, from here to their end."""
    connection.execute(_ALONE, {"what": what})


def unite(connection: Connection, machine: str, lines: Iterable[StoreLine]) -> None:
    """Add the operations whose uuids are missing from the store, numbered after the writer's last one.

    A writer belongs to one machine, whose transactions run one at a time, so a machine that has seen a number
    has seen all lower numbers.
    """
    for batch in _batches(lines):
        serialise(connection, machine)
        last: Counter[Source] = Counter()
        rows: list[Sequence[object]] = []
        for line in batch:
            last[line.source] += 1
            rows.append(replace(line, number=last[line.source]).row)
        connection.execute(_UNITE, arrays([*_TYPES], rows))


def heads(connection: Connection, files: Collection[str]) -> dict[Source, StoreHead]:
    """Return the last line of each writer in `files`, by file and writer."""
    rows = connection.execute(_HEADS, {"files": list(files)})
    return {
        (file, writer): StoreHead(number, sha256, subject) for file, writer, number, sha256, subject in rows
    }


def lines_beyond(
    connection: Connection, known: Mapping[Source, int], last: Mapping[Source, int]
) -> Iterator[StoreLine]:
    """Yield the lines of writers after those that are known, in order.

    `last` contains the number of each writer's last line in the store, from which the size of each request is
    computed.
    """
    for batch in portions(known, _FETCHED, lambda source: last[source] - known[source], _FETCHED):
        for row in connection.execute(
            _BEYOND, arrays(_PLACE, [(*source, known[source]) for source in batch])
        ):
            yield StoreLine(row.file, row.writer, row.number, bytes(row.line), row.machine, row.op)


def hashes(connection: Connection, sources: Iterable[Source]) -> dict[Source, list[tuple[int, str, str]]]:
    """Return the number, hash and sender of each line, by file and writer; the hashes are computed again."""
    found: dict[Source, list[tuple[int, str, str]]] = {source: [] for source in sources}
    rows = connection.execute(_HASHES, arrays(_PLACE, [(*source, 0) for source in found]))
    for file, writer, number, sha256, machine in rows:
        found[file, writer].append((number, sha256, machine))
    return found


def hashes_at(connection: Connection, places: Collection[Place]) -> dict[Place, str]:
    """Return the hash of each line at `places` that the store contains; the hashes are computed again."""
    rows = connection.execute(_AT, arrays(_PLACE, places)) if places else ()
    return {(file, writer, number): sha256 for file, writer, number, sha256 in rows}


def uuids(connection: Connection, files: Collection[str]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return the writer and hash of each operation, by file and uuid; the hashes are computed again."""
    rows = connection.execute(_UUIDS, {"files": list(files)})
    return {(file, op): (writer, sha256) for file, op, writer, sha256 in rows}


def by_uuid(
    connection: Connection, operations: Collection[tuple[str, str]]
) -> Iterator[tuple[str, str, bytes]]:
    """Yield the file, uuid and line of each operation with one of these files and uuids."""
    for batch in portions(operations, _FETCHED):
        given = {"files": [file for file, _ in batch], "uuids": [op for _, op in batch]}
        for file, op, line in connection.execute(_BY_UUID, given):
            yield file, op, bytes(line)


def digests(
    connection: Connection, file: str, writers: Collection[str] | None = None
) -> dict[str, tuple[int, str]]:
    """Return the number of lines of each writer in a file, and the SHA-256 of the lines joined by newlines.

    `writers` limits the result to some writers.
    """
    given = {"file": file, "writers": list(writers or ()), "all": writers is None}
    return {writer: (count, digest) for writer, count, digest in connection.execute(_DIGESTS, given)}


def drop(connection: Connection, file: str, writers: Collection[str]) -> None:
    """Delete all lines of some writers in a file of a study."""
    if writers:
        connection.execute(_DROP, {"file": file, "writers": list(writers)})
