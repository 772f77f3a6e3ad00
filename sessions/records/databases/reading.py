"""Opens an SQLite database made by somebody else, only to read tables by name."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from gistpoint.core.text import visible_line
from gistpoint.core.unfinished import SCRATCH, mark
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Blob, BytesBlob, FileBlob, RunFileError
from gistpoint.sessions.records.model import Json

_LARGEST_IN_MEMORY = 1 << 30
"""The maximum size in bytes of a database in an archive, which is read in memory."""
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_FUNCTION}
_FUNCTIONS = {"length", "sum", "substr"}


def bounded_cell(column: str, most: int = limits.RECORD) -> str:
    """Return the SQL for the values of a column, cut to the beginning if longer than `most`."""
    return (
        f"CASE WHEN LENGTH({column}) > {most} THEN SUBSTR({column}, 1, {limits.STRING_HEAD})"
        f" ELSE {column} END AS {column}"
    )


class Database:
    """A database in a file, or in an archive. Each query opens it again, so that any thread may query it."""

    def __init__(self, blob: Blob) -> None:
        self._blob = blob

    @cached_property
    def tables(self) -> frozenset[str]:
        """The names of the tables; views don't count, because they run code of the database's maker."""
        return frozenset(
            row["name"] for row in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        )

    def rows(self, query: str, values: Sequence[Any] = ()) -> Iterator[sqlite3.Row]:
        """Yield the rows of a query. Raises `sqlite3.Error` if the database is damaged."""
        with closing(self._connected()) as connection:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.set_authorizer(_authorized)
            try:
                yield from connection.execute(query, values)
            except UnicodeDecodeError as error:  # from a column's name, or from SQLite's own message
                raise sqlite3.DatabaseError("its schema is not in UTF-8") from error

    def _connected(self) -> sqlite3.Connection:
        if not isinstance(self._blob, FileBlob):
            connection = sqlite3.connect(":memory:", check_same_thread=False)
            connection.deserialize(self._content)
            return connection
        # Immutable: SQLite neither locks the file nor writes anything next to it.
        address = f"file:{quote(str(self._file.absolute()))}?mode=ro&immutable=1"
        return sqlite3.connect(address, uri=True, check_same_thread=False)

    @cached_property
    def _content(self) -> bytes:
        if self._blob.size > _LARGEST_IN_MEMORY:
            raise RunFileError(
                f"{self._blob.name} is a database of {self._blob.size >> 20:,} MB in an archive.",
                hint="Unpack it, then open the file.",
            )
        return self._blob.read(0, self._blob.size)

    @cached_property
    def _file(self) -> Path:
        """The file to read; a copy with the log merged if the program has not merged it yet."""
        assert isinstance(self._blob, FileBlob)
        path = self._blob.path.resolve()  # the log is next to the file, not next to a link to it
        log = path.with_name(f"{path.name}-wal")
        if not log.is_file() or not log.stat().st_size:
            return path
        self._folder = tempfile.TemporaryDirectory(prefix=f"{SCRATCH}database-{mark()}-")
        copy = Path(self._folder.name, "copy.db")
        shutil.copyfile(path, copy)
        shutil.copyfile(log, copy.with_name(f"{copy.name}-wal"))
        with closing(sqlite3.connect(copy)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return copy


def _authorized(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Allow only reading, because a hostile database may define triggers, views and virtual tables."""
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_OK if (second or "").lower() in _FUNCTIONS else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def document(make: Callable[[], object], name: str) -> Blob:
    """Return as JSON the value that `make` reads from a database.

    Raises `RunFileError` if the database is damaged.
    """
    try:
        return BytesBlob(msgspec.json.encode(make()), name)
    except sqlite3.Error as error:
        raise RunFileError(f"{visible_line(name)} is in a damaged database: {error}.") from error


def value_of(text: object) -> Json:
    """Return the value of a cell with JSON; its text if it is not JSON."""
    data = text if isinstance(text, str | bytes) else str(text)
    try:
        found: Json = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return data if isinstance(data, str) else data.decode("utf-8", "replace")
    return found
