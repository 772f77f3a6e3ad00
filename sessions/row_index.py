"""An index of rows in SQLite, in the cache folder, which merely saves reading the files (decision 172).

A row has a key, the state of its sources, bytes that its owner can decode, and cells: further values that are
read only when needed. The state contains the version of the code that made the row, so a row of another state
or version counts as missing, and code that changes a file need not know of any index. An index that is
damaged or has another layout is rebuilt; if it is locked, read-only, on a full disk or can't be created, rows
are missing or not stored. No method raises.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from threading import RLock
from typing import NamedTuple, TypeVar

from gistpoint.core.locations import open_regular

T = TypeVar("T")
_LAYOUT = 2
_BUSY_S = 1.0
"""The seconds to wait for another program that has locked the index."""
_REST_S = 5.0
"""The seconds for which the index is not used after waiting for another program without success."""
_BATCH_S = 0.2
"""The seconds after which new rows are committed, so that other programs can write too."""
_DAY_S = 86_400
_AT_ONCE = 500
MOST_BYTES = 1 << 29
"""The size of the file in bytes above which the least recently used rows are removed."""
MOST_DAYS = 30
"""The number of days after which a row that was not used is removed."""
MOST_ADDED = 200_000
"""The number of added cells above which all of them are removed."""
LARGEST_ROW = 1 << 22
"""The number of bytes above which a row or a cell is not stored."""
_LARGEST_CELL = 1 << 24
_TABLES = """
CREATE TABLE rows (
    key TEXT NOT NULL PRIMARY KEY, state BLOB NOT NULL, used INTEGER NOT NULL, row BLOB NOT NULL
);
CREATE TABLE cells (
    key TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, added INTEGER NOT NULL,
    PRIMARY KEY (key, name)
);
"""
_NAMES = {"rows", "cells"}


class IndexedRow(NamedTuple):
    """A row of an index, without its cells."""

    key: str
    state: bytes
    """The state of the files from which the row was made, such as their sizes and times."""
    row: bytes


class RowIndex:
    """The index in one file; every method may be called in any thread, and by several processes."""

    def __init__(self, path: Path, *, most_bytes: int | None = MOST_BYTES) -> None:
        """The file is created at the first write. If `most_bytes` is None, only the owner removes rows."""
        self._path, self._most_bytes = path, most_bytes
        self._lock = RLock()
        self._database: sqlite3.Connection | None = None
        self._committed = self._reads_from = self._writes_from = 0.0
        self._has_written = False
        self._used: set[str] = set()
        self._today = int(time.time()) // _DAY_S

    def get(self, key: str, state: bytes) -> bytes | None:
        """Return the bytes of a row; None if it is missing or was made from another state."""
        query = "SELECT row, used FROM rows WHERE key = ? AND state = ?"
        found = self._read(lambda database: database.execute(query, (key, state)).fetchone())
        if found is None or not isinstance(found[0], bytes):
            return None
        if found[1] != self._today:
            self._used.add(key)
        return found[0]

    def some(self, keys: Iterable[str]) -> dict[str, IndexedRow]:
        """Return the rows with these keys, whatever their state."""
        wanted, found = list(keys), dict[str, IndexedRow]()
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            found |= self._read(partial(_rows_with, part)) or {}
        return found

    def between(self, first: str, last: str, cell: str = "") -> dict[str, IndexedRow]:
        """Return the rows whose keys are in a range, with both ends, whatever their state.

        With the name of a `cell`, its bytes are returned in place of those of the row.
        """
        return self._read(partial(_rows_between, first, last, cell)) or {}

    def count(self) -> int:
        """Return the number of rows, in a twentieth of the time that their keys take."""
        found = self._read(lambda database: database.execute("SELECT COUNT(*) FROM rows").fetchone())
        return found[0] if found is not None else 0

    def all_keys(self) -> set[str]:
        """Return the keys of all rows."""
        found = self._read(lambda database: database.execute("SELECT key FROM rows").fetchall())
        return {key for (key,) in found or ()}

    def cell(self, key: str, state: bytes, name: str) -> bytes | None:
        """Return a cell of a row; None if the row is missing, out of date, or has no such cell."""
        query = "SELECT value FROM cells JOIN rows USING (key) WHERE key = ? AND name = ? AND state = ?"
        found = self._read(lambda database: database.execute(query, (key, name, state)).fetchone())
        return found[0] if found is not None and isinstance(found[0], bytes) else None

    def put(self, row: IndexedRow, cells: Mapping[str, bytes] | None = None) -> None:
        """Store a row with its cells, replacing any row with the same key and its cells.

        A row of more than `LARGEST_ROW` bytes is not stored, nor are its cells.
        """
        if len(row.row) > LARGEST_ROW:
            return
        values = [
            (row.key, name, value) for name, value in (cells or {}).items() if len(value) <= LARGEST_ROW
        ]

        def write(database: sqlite3.Connection) -> None:
            self._put(database, [row])
            database.executemany("INSERT INTO cells VALUES (?, ?, ?, 0)", values)

        self._write(write)

    def put_many(
        self,
        rows: Iterable[IndexedRow],
        removed: Collection[str] = (),
        cells: Iterable[tuple[str, str, bytes]] = (),
    ) -> None:
        """Store many rows and their cells, and remove others, in one transaction that ends on return.

        A cell is given by the key of its row, its name and its bytes. Rows and cells of more than
        `LARGEST_ROW` bytes are not stored.
        """
        added, gone = list(rows), [(key,) for key in removed]
        values = [cell for cell in cells if len(cell[2]) <= LARGEST_ROW]

        def write(database: sqlite3.Connection) -> None:
            self._put(database, added)
            database.executemany("INSERT OR REPLACE INTO cells VALUES (?, ?, ?, 0)", values)
            database.executemany("DELETE FROM cells WHERE key = ?", gone)
            database.executemany("DELETE FROM rows WHERE key = ?", gone)

        if added or gone:
            self._write(write, at_once=True)

    def add_cells(self, key: str, state: bytes, cells: Mapping[str, bytes]) -> None:
        """Add cells to a row, or replace them, if the row has this state."""

        def write(database: sqlite3.Connection) -> None:
            known = "SELECT 1 FROM rows WHERE key = ? AND state = ?"
            if database.execute(known, (key, state)).fetchone() is not None:
                values = [(key, name, value) for name, value in cells.items()]
                database.executemany("INSERT OR REPLACE INTO cells VALUES (?, ?, ?, 1)", values)

        self._write(write)

    def close(self) -> None:
        """Commit, remove old rows unless their owner does, and close the file until it is used again."""
        with self._lock:
            if self._database is not None and self._most_bytes is not None:
                if self._used:
                    self._write(self._note_used)
                if self._has_written:  # without additions, an index can't have become too large
                    self._write(self._clean)
            if self._database is not None:
                self._write(lambda database: None, at_once=True)
            self._disconnect()
            self._has_written = False
            self._reads_from = self._writes_from = 0.0

    def _put(self, database: sqlite3.Connection, rows: Iterable[IndexedRow]) -> None:
        kept = [row for row in rows if len(row.row) <= LARGEST_ROW]
        database.executemany("DELETE FROM cells WHERE key = ?", [(row.key,) for row in kept])
        values = [(row.key, row.state, self._today, row.row) for row in kept]
        database.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?)", values)

    # The file

    def _read(self, act: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return the result of an action; None if there is no index, or if the action fails."""
        with self._lock:
            if time.monotonic() < self._reads_from:
                return None
            try:
                database = self._opened(making=False)
                return None if database is None else act(database)
            except (sqlite3.Error, OSError, ValueError, OverflowError) as error:
                self._reads_from = self._give_up(error)
                self._writes_from = max(self._writes_from, self._reads_from)
                return None

    def _write(self, act: Callable[[sqlite3.Connection], object], *, at_once: bool = False) -> None:
        # Waiting again for each of thousands of rows would take longer than reading their files next time.
        with self._lock:
            if time.monotonic() < self._writes_from:
                return
            try:
                database = self._opened(making=True)
                if database is None:
                    return
                act(database)
                self._has_written = True
                if at_once or time.monotonic() > self._committed + _BATCH_S:
                    database.commit()
                    self._committed = time.monotonic()
            except (sqlite3.Error, OSError, ValueError, OverflowError) as error:
                # A file that can't be written, such as one on a full disk, can still be read.
                self._writes_from = self._give_up(error)

    def _give_up(self, error: Exception) -> float:
        """Roll back, delete the file if it is damaged, and return the monotonic time for the next try."""
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.rollback()
        match error:
            case sqlite3.OperationalError():
                return time.monotonic() + _REST_S if "locked" in str(error) else inf
            case sqlite3.DataError() | UnicodeError() | OverflowError():
                return 0.0  # SQLite rejects only this row: its key may have half a surrogate pair
            case sqlite3.DatabaseError():
                self._disconnect()
                with suppress(OSError):
                    self._path.unlink()
                return 0.0
            case _:
                return inf

    def _opened(self, *, making: bool) -> sqlite3.Connection | None:
        """Return the open index; None if there is none, unless `making`."""
        if self._database is None and (making or os.path.lexists(self._path)):
            self._database = self._connected()
        return self._database

    def _connected(self) -> sqlite3.Connection:
        """Open or create the file; a file with a different layout is treated as damaged."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileNotFoundError):
            os.close(open_regular(self._path, links=False))  # refuses a link or a pipe
        database = sqlite3.connect(self._path, timeout=_BUSY_S, check_same_thread=False)
        try:
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_CELL)
            # Anybody may have put a database here: its views and triggers must not run functions.
            database.execute("PRAGMA trusted_schema = OFF")
            # After a power cut, the file may be damaged and is then rebuilt.
            database.execute("PRAGMA synchronous = OFF")
            # The file must not retain data of an erased attempt.
            database.execute("PRAGMA secure_delete = ON")
            if self._layout(database) == (0, set()):
                database.execute("BEGIN IMMEDIATE")
                if self._layout(database) == (0, set()):  # no other process was faster
                    for statement in _TABLES.split(";"):
                        database.execute(statement)
                    database.execute(f"PRAGMA user_version = {_LAYOUT}")
                database.commit()
            if self._layout(database) != (_LAYOUT, _NAMES):
                raise sqlite3.DatabaseError("The index is of another layout.")
            for columns in ("key, state, used, row FROM rows", "key, name, value, added FROM cells"):
                database.execute(f"SELECT {columns} LIMIT 1").fetchone()
        except BaseException:
            database.close()
            raise
        return database

    def _layout(self, database: sqlite3.Connection) -> tuple[int, set[str]]:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        named = database.execute("SELECT name FROM sqlite_master WHERE sql NOTNULL")
        return version, {name for (name,) in named}

    def _disconnect(self) -> None:
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
        self._database = None

    def _note_used(self, database: sqlite3.Connection) -> None:
        """Record which rows were used today."""
        update = "UPDATE rows SET used = ? WHERE key = ?"
        database.executemany(update, [(self._today, key) for key in self._used])
        self._used.clear()

    def _clean(self, database: sqlite3.Connection) -> None:
        """Remove rows not used for `MOST_DAYS`, and the added cells if there are more than `MOST_ADDED`.

        If the file is too large, the least recently used rows are removed as well.
        """
        _remove(database, "used < ?", (self._today - MOST_DAYS,))
        (added,) = database.execute("SELECT COUNT(*) FROM cells WHERE added = 1").fetchone()
        if added > MOST_ADDED:
            database.execute("DELETE FROM cells WHERE added = 1")
        database.commit()
        pages, each = (
            database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
        )
        if self._most_bytes is None or pages * each <= self._most_bytes:
            return
        own_cells = "SELECT COALESCE(SUM(LENGTH(value)), 0) FROM cells WHERE cells.key = rows.key"
        oldest = database.execute(
            f"SELECT key, LENGTH(row) + ({own_cells}) FROM rows ORDER BY used, key"
        ).fetchall()
        left = sum(size for _, size in oldest)
        wanted = left * self._most_bytes // (2 * pages * each)
        for key, size in oldest:
            if left <= wanted:
                break
            _remove(database, "key = ?", (key,))
            left -= size
        database.commit()
        database.execute("VACUUM")


def _rows_with(keys: list[str], database: sqlite3.Connection) -> dict[str, IndexedRow]:
    query = f"SELECT key, state, row FROM rows WHERE key IN ({', '.join('?' * len(keys))})"
    return _by_key(database.execute(query, keys).fetchall())


def _rows_between(first: str, last: str, cell: str, database: sqlite3.Connection) -> dict[str, IndexedRow]:
    if cell:
        query = (
            "SELECT key, state, value FROM rows JOIN cells USING (key) WHERE name = ? AND key BETWEEN ? AND ?"
        )
        found = database.execute(query, (cell, first, last)).fetchall()
    else:
        query = "SELECT key, state, row FROM rows WHERE key BETWEEN ? AND ?"
        found = database.execute(query, (first, last)).fetchall()
    return _by_key(found)


_as_row = partial(tuple.__new__, IndexedRow)
"""Makes a row in a fifth of the time of `IndexedRow._make`, for lists of a hundred thousand."""


def _by_key(found: list[tuple[str, bytes, bytes]]) -> dict[str, IndexedRow]:
    return {row.key: row for row in map(_as_row, found)}


def _remove(database: sqlite3.Connection, condition: str, values: tuple[object, ...]) -> None:
    database.execute(f"DELETE FROM cells WHERE key IN (SELECT key FROM rows WHERE {condition})", values)
    database.execute(f"DELETE FROM rows WHERE {condition}", values)
