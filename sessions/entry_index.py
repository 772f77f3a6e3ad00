"""An index of rows in SQLite, in the cache folder; it is never the truth (decision 172).

An entry has a kind and a key, the state of what it was made from, the bytes of a row, and columns: further
values that are read only when they are needed. An entry of another state counts as missing. An index that is
damaged is made again; one that is locked, read-only or impossible to make is done without. No method raises.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import TypeVar

from gistpoint.core.locations import open_regular

T = TypeVar("T")
_FORMAT = 1
_BUSY_S = 0.25
"""Seconds for which another program's writing is waited for."""
_BATCH_S = 0.2
"""Seconds after which what was put is committed, so that other programs can write too."""
_LOCKED_S = 5.0
"""Seconds for which nothing is written after another program's writing was waited for in vain."""
_DAY_S = 86_400
MOST_BYTES = 1 << 29
"""The size of the file from which on the entries that were not used for longest are removed."""
MOST_DAYS = 30
"""The number of days after which an entry that was not used is removed."""
MOST_ADDED = 200_000
"""The number of added columns from which on all of them are removed."""
LARGEST_ROW = 1 << 22
_LARGEST_CELL = 1 << 24
_TABLES = """
CREATE TABLE entries (
    kind TEXT NOT NULL, key TEXT NOT NULL, state TEXT NOT NULL, used INTEGER NOT NULL, size INTEGER NOT NULL,
    row BLOB NOT NULL, PRIMARY KEY (kind, key)
);
CREATE TABLE columns (
    kind TEXT NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, added INTEGER NOT NULL,
    PRIMARY KEY (kind, key, name)
);
"""
_NAMES = {"entries", "columns"}


class EntryIndex:
    """The index in one file; every method may be called from any thread."""

    def __init__(self, path: Path, *, most_bytes: int = MOST_BYTES) -> None:
        """Open the index, or make it; without success, nothing is ever found or kept."""
        self._path, self._most_bytes = path, most_bytes
        self._lock = RLock()
        self._written = self._locked_until = 0.0
        self._has_written = False
        self._used: set[tuple[str, str]] = set()
        self._today = int(time.time()) // _DAY_S
        self._database = self._opened()

    @property
    def works(self) -> bool:
        """Whether there is an index."""
        return self._database is not None

    def get(self, kind: str, key: str, state: str) -> bytes | None:
        """Return the row of an entry; None if it is missing or was made from another state."""
        query = "SELECT row, used FROM entries WHERE kind = ? AND key = ? AND state = ?"
        found = self._do(lambda database: database.execute(query, (kind, key, state)).fetchone())
        if found is None or not isinstance(found[0], bytes):
            return None
        if found[1] != self._today:
            self._used.add((kind, key))
        return found[0]

    def column(self, kind: str, key: str, state: str, name: str) -> bytes | None:
        """Return a column of an entry; None if the entry is missing, out of date, or has no such column."""
        query = (
            "SELECT value FROM columns JOIN entries USING (kind, key)"
            " WHERE kind = ? AND key = ? AND name = ? AND state = ?"
        )
        found = self._do(lambda database: database.execute(query, (kind, key, name, state)).fetchone())
        return found[0] if found is not None and isinstance(found[0], bytes) else None

    def put(
        self, kind: str, key: str, state: str, row: bytes, columns: Mapping[str, bytes] | None = None
    ) -> None:
        """Keep an entry in place of the one with its key, which also loses its columns."""
        if len(row) > LARGEST_ROW:
            return
        cells = {name: value for name, value in (columns or {}).items() if len(value) <= LARGEST_ROW}
        size = len(row) + sum(map(len, cells.values()))

        def write(database: sqlite3.Connection) -> None:
            database.execute("DELETE FROM columns WHERE kind = ? AND key = ?", (kind, key))
            values = (kind, key, state, self._today, size, row)
            database.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?)", values)
            rows = [(kind, key, name, value) for name, value in cells.items()]
            database.executemany("INSERT INTO columns VALUES (?, ?, ?, ?, 0)", rows)

        self._write(write)

    def add_columns(self, kind: str, key: str, state: str, columns: Mapping[str, bytes]) -> None:
        """Add columns to an entry, or replace them, if the entry has this state."""

        def write(database: sqlite3.Connection) -> None:
            known = "SELECT 1 FROM entries WHERE kind = ? AND key = ? AND state = ?"
            if database.execute(known, (kind, key, state)).fetchone() is None:
                return
            rows = [(kind, key, name, value) for name, value in columns.items()]
            database.executemany("INSERT OR REPLACE INTO columns VALUES (?, ?, ?, ?, 1)", rows)

        self._write(write)

    def close(self) -> None:
        """Write what is not written yet, remove what is old, and close the file."""
        self._do(self._note_used)
        self._do(self._clean)
        self._do(lambda database: database.commit())
        with self._lock:
            if self._database is not None:
                with suppress(sqlite3.Error):
                    self._database.close()
            self._database = None

    # The file

    def _opened(self) -> sqlite3.Connection | None:
        for _ in range(2):
            try:
                return self._connected()
            except sqlite3.OperationalError:  # locked, read-only, or no place to make it
                return None
            except (sqlite3.Error, ValueError):  # damaged, or of another version
                with suppress(OSError):
                    self._path.unlink()
            except OSError:
                return None
        return None

    def _connected(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            os.close(open_regular(self._path, links=False))  # refuses a link or a pipe
        database = sqlite3.connect(self._path, timeout=_BUSY_S, check_same_thread=False)
        try:
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_CELL)
            # Anybody may have put a database here: its views and triggers must not run functions.
            database.execute("PRAGMA trusted_schema = OFF")
            # After a power cut the file may be damaged, and is then made again.
            database.execute("PRAGMA synchronous = OFF")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            named = database.execute("SELECT name FROM sqlite_master WHERE sql NOTNULL")
            tables = {name for (name,) in named}
            if not tables and not version:
                database.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {_FORMAT}; COMMIT;")
            elif (version, tables) != (_FORMAT, _NAMES):
                raise ValueError("The index is of another version.")
            database.execute("SELECT kind, key, state, used, size, row FROM entries LIMIT 1").fetchone()
            database.execute("SELECT kind, key, name, value, added FROM columns LIMIT 1").fetchone()
        except BaseException:
            database.close()
            raise
        return database

    def _do(self, act: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return what an action finds; None if there is no index, or if the action fails.

        After a failure other than a lock, the index is given up until the next start; a damaged one is
        deleted.
        """
        with self._lock:
            if self._database is None:
                return None
            try:
                return act(self._database)
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    self._give_up()
                self._locked_until = time.monotonic() + _LOCKED_S
            except sqlite3.DatabaseError:
                self._give_up()
                with suppress(OSError):
                    self._path.unlink()
            except (sqlite3.Error, UnicodeError, OverflowError):
                pass  # SQLite refuses the key, such as one with half of a surrogate pair
            return None

    def _give_up(self) -> None:
        with suppress(sqlite3.Error):
            if self._database is not None:
                self._database.close()
        self._database = None

    def _write(self, write: Callable[[sqlite3.Connection], None]) -> None:
        # Waiting again for each of thousands of rows would take longer than to read them next time.
        if time.monotonic() < self._locked_until:
            return
        self._has_written = True
        self._do(write)
        if time.monotonic() > self._written + _BATCH_S:
            self._do(lambda database: database.commit())
            self._written = time.monotonic()

    def _note_used(self, database: sqlite3.Connection) -> None:
        """Note which entries were used today."""
        update = "UPDATE entries SET used = ? WHERE kind = ? AND key = ?"
        database.executemany(update, [(self._today, *entry) for entry in self._used])
        self._used.clear()

    def _clean(self, database: sqlite3.Connection) -> None:
        """Remove the entries that were not used for long; if the file is too large, further ones."""
        # Without additions, an index can't have become too large.
        if not self._has_written:
            return
        _remove(database, "used < ?", (self._today - MOST_DAYS,))
        (added,) = database.execute("SELECT COUNT(*) FROM columns WHERE added = 1").fetchone()
        if added > MOST_ADDED:
            database.execute("DELETE FROM columns WHERE added = 1")
        database.commit()
        pages, each = (
            database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
        )
        if pages * each <= self._most_bytes:
            return
        oldest = database.execute("SELECT kind, key, size FROM entries ORDER BY used, kind, key").fetchall()
        left = sum(size for _, _, size in oldest)
        wanted = left * self._most_bytes // (2 * pages * each)
        for kind, key, size in oldest:
            if left <= wanted:
                break
            _remove(database, "kind = ? AND key = ?", (kind, key))
            left -= size
        database.commit()
        database.execute("VACUUM")


def _remove(database: sqlite3.Connection, condition: str, values: Iterable[object]) -> None:
    values = tuple(values)
    gone = f"SELECT kind, key FROM entries WHERE {condition}"
    database.execute(f"DELETE FROM columns WHERE (kind, key) IN ({gone})", values)
    database.execute(f"DELETE FROM entries WHERE {condition}", values)
