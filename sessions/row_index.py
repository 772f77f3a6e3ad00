"""Indexes of rows that lists show, in SQLite files in the cache: never the truth, only a faster way to it.

Each row has a key, the state of the files from which it was made, some columns by which lists filter, and
bytes that its owner can decode. A row counts only while its state is that of the files now, so whoever
changes a file changes every list, without knowing of any index (decision 179). An index that can't be read or
written is made again, or done without: nothing here raises an error of SQLite or of the system.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_WAIT_S = 2.0
"""The time for which another process may hold the index before this one does without."""
_AT_ONCE = 500
_FORM = "form"


class IndexedRow(NamedTuple):
    """A row of an index."""

    key: str
    state: bytes
    """The state of the files from which the row was made, such as their sizes and times."""
    columns: tuple[str | int | None, ...]
    """The values of the index's columns, in their order."""
    row: bytes


class RowIndex:
    """An index in one file. Every method may be called in any thread, and by several processes."""

    def __init__(self, path: Path, form: str, columns: Sequence[str] = ()) -> None:
        """`form` names the layout of the rows and the program that writes them.

        An index of another form is made again. `columns` are the names of further columns; they are part of
        the form.
        """
        self._path = path
        self._columns = tuple(columns)
        self._form = f"{form} ({', '.join(columns)})"

    def rows(self) -> Iterator[IndexedRow]:
        """Yield all rows, by falling keys."""
        with self._opened() as found:
            if found is not None:
                with suppress(sqlite3.Error):
                    yield from map(_row, found.execute("SELECT * FROM rows ORDER BY key DESC"))

    def some(self, keys: Iterable[str]) -> dict[str, IndexedRow]:
        """Return the rows with these keys that are in the index."""
        wanted, found = list(keys), {}
        with self._opened() as index:
            if index is None:
                return {}
            with suppress(sqlite3.Error):
                for start in range(0, len(wanted), _AT_ONCE):
                    part = wanted[start : start + _AT_ONCE]
                    marks = ", ".join("?" * len(part))
                    for row in index.execute(f"SELECT * FROM rows WHERE key IN ({marks})", part):
                        found[row[0]] = _row(row)
        return found

    def all_keys(self) -> set[str]:
        """Return the keys of all rows."""
        with self._opened() as index:
            if index is not None:
                with suppress(sqlite3.Error):
                    return {key for (key,) in index.execute("SELECT key FROM rows")}
        return set()

    def put(self, rows: Iterable[IndexedRow], removed: Collection[str] = ()) -> None:
        """Add or replace some rows, and remove others, in one transaction."""
        marks = ", ".join("?" * (3 + len(self._columns)))
        values = [(row.key, row.state, row.row, *row.columns) for row in rows]
        if not values and not removed:
            return
        with self._opened(writing=True) as index:
            if index is not None:
                with suppress(sqlite3.Error), index:
                    index.executemany(f"INSERT OR REPLACE INTO rows VALUES ({marks})", values)
                    index.executemany("DELETE FROM rows WHERE key = ?", [(key,) for key in removed])

    @contextmanager
    def _opened(self, *, writing: bool = False) -> Iterator[sqlite3.Connection | None]:
        """Yield the open index; None if there is none of this form, or none can be made for `writing`."""
        index = None
        try:
            index = self._connected(writing=writing)
        except (OSError, sqlite3.OperationalError):
            pass  # held by another process, or in a place that can't be written
        except sqlite3.Error:
            self._path.unlink(missing_ok=True)
            with suppress(OSError, sqlite3.Error):
                index = self._connected(writing=writing)
        if index is None:
            yield None
            return
        with closing(index):
            yield index

    def _connected(self, *, writing: bool) -> sqlite3.Connection | None:
        if not writing and not self._path.is_file():
            return None
        if writing:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # A connection for each call: threads share none, and no list holds the file while it is drawn.
        index = sqlite3.connect(self._path, timeout=_WAIT_S, check_same_thread=False)
        try:
            index.execute("PRAGMA synchronous = OFF")  # what a power cut destroys is made again
            index.execute("PRAGMA secure_delete = ON")  # nothing stays of an attempt that was erased
            if self._has_form(index):
                return index
            if not writing:
                index.close()
                return None
            self._make(index)
            return index
        except BaseException:
            index.close()
            raise

    def _has_form(self, index: sqlite3.Connection) -> bool:
        if index.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (_FORM,)).fetchone() is None:
            return False
        return bool(index.execute(f"SELECT * FROM {_FORM}").fetchone() == (self._form,))

    def _make(self, index: sqlite3.Connection) -> None:
        more = "".join(f', "{name}"' for name in self._columns)
        with index:
            index.execute("BEGIN IMMEDIATE")
            if self._has_form(index):  # another process was faster
                return
            index.execute("DROP TABLE IF EXISTS rows")
            index.execute(f"DROP TABLE IF EXISTS {_FORM}")
            index.execute(f"CREATE TABLE rows (key TEXT PRIMARY KEY, state BLOB, row BLOB{more})")
            index.execute(f"CREATE TABLE {_FORM} (text TEXT)")
            index.execute(f"INSERT INTO {_FORM} VALUES (?)", (self._form,))


def _row(values: Sequence[object]) -> IndexedRow:
    key, state, row, *columns = values
    return IndexedRow(key, state, tuple(columns), row)  # type: ignore[arg-type] # as they were written
