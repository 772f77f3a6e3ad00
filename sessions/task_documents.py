"""The contents of tasks' files, kept in an index, so that lists of thousands of tasks need not parse TOML.

Only lists take their data from here. A task that is opened, attempted or scored is read from its file, and
verified (decision 179).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import Any, TypeVar

import msgspec

from gistpoint import __version__
from gistpoint.core.decoding import decodable
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.documents import ANSWER_FILE, TASK_FILE, read_document
from gistpoint.core.tasks.fields import Fields
from gistpoint.sessions.row_index import IndexedRow, RowIndex

TASKS_INDEX = "tasks.sqlite"
"""The name of the index of tasks, in `Locations.lists`."""
_FORM = 3
_AT_ONCE = 1_000
_STAT = struct.Struct("QQQ")
_CODE = f"{_FORM}, {__version__} ".encode()
"""The version of the code that makes the rows, which is part of their states."""


def file_state(path: Path | str) -> bytes:
    """Return the inode, size and time of change of a file; empty if there is no regular file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - thousands of strings
    except (OSError, ValueError):
        return b""
    return _STAT.pack(found.st_ino, found.st_size, found.st_ctime_ns) if S_ISREG(found.st_mode) else b""


class ListedTask(msgspec.Struct, frozen=True, array_like=True):
    """A task as shown in lists, without its brief, settings and folder."""

    id: str
    title: str
    """The title for authors."""
    name: str
    """The two words and the digit that name the task."""
    mode: str
    shown_mode: str
    """The mode for display, with the number of functions if the brief reveals it."""
    tests: int
    """The number of tests in the suite."""
    seconds: float
    """The duration of the suite."""
    failing: int
    """The number of tests that fail in the task's tree."""
    budgets: Budgets
    demo: bool
    """Whether the task claims to be about gistpoint's demo library."""

    @property
    def short_id(self) -> str:
        """The first twelve characters of the id, for people."""
        return self.id[:12]


class _AsListed(msgspec.Struct, frozen=True, array_like=True):
    """A row of the index for lists, which leave the fields undecoded."""

    listed: ListedTask | None
    """None if the task's kind belongs to another package, whose version the row's state does not include."""
    fields: msgspec.Raw


class _AsFields(msgspec.Struct, frozen=True, array_like=True):
    """The same row for the whole task."""

    listed: msgspec.Raw
    fields: dict[str, Any]


_LISTED = msgspec.msgpack.Decoder(decodable(_AsListed))
_FIELDS = msgspec.msgpack.Decoder(decodable(_AsFields))
_NOT_LISTED = msgspec.msgpack.encode(None)
Row = TypeVar("Row", _AsListed, _AsFields)


class TaskDocuments:
    """The fields of tasks' files, by folder."""

    def __init__(self, index: Path | None) -> None:
        """`index` is the file of the index; with None, files are always read."""
        self._index = None if index is None else RowIndex(index, most_bytes=None)
        self._kept: dict[str, IndexedRow] = {}
        self._changed: dict[str, IndexedRow] = {}

    def prepared(self, root: Path, names: Sequence[str]) -> Iterator[str]:
        """Yield the paths of the folders with these names; many rows are read from the index at once.

        At the end, files that were read are added to the index. If all folders were taken, the index forgets
        those in `root` that are not among the names.
        """
        folders = [f"{root}/{name}" for name in names]
        if self._index is None:
            yield from folders
            return
        try:
            for start in range(0, len(folders), _AT_ONCE):
                part = folders[start : start + _AT_ONCE]
                self._kept = self._index.some(part)
                yield from part
            inside, present = f"{root}/", set(folders)
            gone = [
                key
                for key in self._index.all_keys()
                if key.startswith(inside) and key.removesuffix(f"/{ANSWER_FILE}") not in present
            ]
            self._index.put_many((), gone)
        finally:
            self.save()

    def prepare(self, roots: Sequence[Path]) -> None:
        """Read the rows of all tasks in some folders from the index at once, until `save`."""
        if self._index is None:
            return
        for root in roots:
            self._kept |= self._index.between(f"{root}/", f"{root}0")  # "0" follows "/"

    def read(self, folder: Path, state: bytes) -> Fields:
        """Return the fields of the task in `folder`; `state` is that of its file now.

        Raises `TaskError` if the file can't be read.
        """
        row = self._row(str(folder), state, _FIELDS)
        if row is not None:
            return Fields(row.fields, TASK_FILE, is_complete=bytes(row.listed) != _NOT_LISTED)
        return read_document(folder / TASK_FILE)

    def listed(self, folder: str, state: bytes) -> ListedTask | None:
        """Return the listed form of the task in a folder; None if it is unknown, or its file has changed."""
        row = self._row(folder, state, _LISTED)
        return None if row is None else row.listed

    def _row(self, folder: str, state: bytes, decoder: msgspec.msgpack.Decoder[Row]) -> Row | None:
        if self._index is None:
            return None
        kept = self._kept.get(folder)
        found = self._index.get(folder, _CODE + state) if kept is None else kept.row
        if found is None or (kept is not None and kept.state != _CODE + state):
            return None
        with suppress(msgspec.MsgspecError, RecursionError):
            return decoder.decode(found)
        return None

    def keep(
        self, folder: Path, state: bytes, fields: Fields, listed: Callable[[], ListedTask | None]
    ) -> None:
        """Store the fields from which a task was made, unless they are in the index.

        `listed` returns the task's listed form; None if that must not be stored.
        """
        if self._index is None or self._row(str(folder), state, _LISTED) is not None:
            return
        with suppress(msgspec.MsgspecError, TypeError, ValueError, RecursionError, OverflowError):
            if msgspec.msgpack.decode(msgspec.msgpack.encode(fields.values)) == fields.values:
                # Other documents contain dates, which would be restored as strings.
                row = msgspec.msgpack.encode((listed(), fields.values))
                self._changed[str(folder)] = IndexedRow(str(folder), _CODE + state, row)

    def answer_titles(self, states: Mapping[str, bytes]) -> dict[str, str]:
        """Return the known titles that name the functions of answers, by folder.

        `states` are the states of each folder's files of the task and of the answer.
        """
        if self._index is None:
            return {}
        kept = self._index.some(f"{folder}/{ANSWER_FILE}" for folder in states)
        found = ((folder, kept.get(f"{folder}/{ANSWER_FILE}")) for folder in states)
        return {
            folder: row.row.decode(errors="replace")
            for folder, row in found
            if row is not None and row.state == _CODE + states[folder]
        }

    def keep_answer_title(self, folder: str, state: bytes, title: str) -> None:
        """Store a title that names the functions of an answer, made from files in this state."""
        key = f"{folder}/{ANSWER_FILE}"
        with suppress(UnicodeError):
            self._changed[key] = IndexedRow(key, _CODE + state, title.encode())

    def save(self) -> None:
        """Add what was read to the index, and close its file."""
        if self._index is not None:
            self._index.put_many(self._changed.values())
            self._index.close()
        self._changed.clear()
        self._kept = {}
