"""Keeps the contents of tasks' files in an index, so that thousands of tasks are listed without parsing TOML.

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
from typing import Any

import msgspec

from gistpoint import __version__
from gistpoint.core.decoding import decodable
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.documents import ANSWER_FILE, TASK_FILE, read_document
from gistpoint.core.tasks.fields import Fields
from gistpoint.sessions.row_index import IndexedRow, RowIndex

TASKS_INDEX = "tasks.sqlite"
"""The name of the index of tasks, in `Locations.lists`."""
_FORM = 4
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
    source: str
    """The name of the repository."""
    revision: str
    salted: bool
    """Whether its id differs from the hash of its content, which is then in its answer."""

    @property
    def short_id(self) -> str:
        """The first twelve characters of the id, for people."""
        return self.id[:12]


_NOT_LISTED = b""
"""The row of a task whose kind belongs to another package, whose version the row's state does not include."""
_FIELDS = "fields"
"""The name of the cell with a task's fields, which long lists do not read."""
_AS_LISTED = msgspec.msgpack.Decoder(decodable(ListedTask))
_AS_FIELDS = msgspec.msgpack.Decoder(decodable(dict[str, Any]))


class TaskDocuments:
    """The fields of tasks' files, by folder."""

    def __init__(self, index: Path | None) -> None:
        """`index` is the file of the index; with None, files are always read."""
        self._index = None if index is None else RowIndex(index, most_bytes=None)
        self._kept: dict[str, IndexedRow] = {}
        self._kept_fields: dict[str, IndexedRow] = {}
        self._changed: dict[str, IndexedRow] = {}
        self._changed_fields: dict[str, bytes] = {}

    def prepared(self, root: Path, names: Sequence[str], *, fields: bool) -> Iterator[str]:
        """Yield the paths of the folders with these names, in order.

        Many rows are read from the index at once, with their `fields` if those are needed. At the end, files
        that were read are added to the index. If all folders were taken, the index forgets those in `root`
        that are not among the names.
        """
        folders = [f"{root}/{name}" for name in names]
        if self._index is None:
            yield from folders
            return
        try:
            for start in range(0, len(folders), _AT_ONCE):
                part = folders[start : start + _AT_ONCE]
                # The index refuses a name with half a surrogate pair, which is not printable.
                readable = [folder for folder in part if folder.isprintable()]
                if readable:
                    self._kept = self._index.between(readable[0], readable[-1])
                if readable and fields:
                    self._kept_fields = self._index.between(readable[0], readable[-1], _FIELDS)
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
        """Return the fields of the task in `folder`; `state` is the current state of the task's file.

        Raises `TaskError` if the file can't be read.
        """
        row = self._row(str(folder), state)
        if row is not None and (values := self._fields(str(folder), state)) is not None:
            return Fields(values, TASK_FILE, is_complete=row != _NOT_LISTED)
        return read_document(folder / TASK_FILE)

    def listed(self, folder: str, state: bytes) -> ListedTask | None:
        """Return the listed form of the task in a folder; None for an unknown task or a changed file."""
        row = self._row(folder, state)
        if row:
            with suppress(msgspec.MsgspecError, RecursionError):
                return _AS_LISTED.decode(row)
        return None

    def _row(self, folder: str, state: bytes) -> bytes | None:
        kept = self._kept.get(folder)
        if kept is not None:
            return kept.row if kept.state == _CODE + state else None
        return None if self._index is None else self._index.get(folder, _CODE + state)

    def _fields(self, folder: str, state: bytes) -> dict[str, Any] | None:
        kept = self._kept_fields.get(folder)
        if kept is not None:
            data = kept.row if kept.state == _CODE + state else None
        else:
            data = None if self._index is None else self._index.cell(folder, _CODE + state, _FIELDS)
        if data is not None:
            with suppress(msgspec.MsgspecError, RecursionError):
                return _AS_FIELDS.decode(data)
        return None

    def keep(
        self, folder: Path, state: bytes, fields: Fields, listed: Callable[[], ListedTask | None]
    ) -> None:
        """Store the fields from which a task was made, unless they are in the index.

        `listed` returns the task's listed form; None if that must not be stored.
        """
        if self._index is None or self._row(str(folder), state) is not None:
            return
        with suppress(msgspec.MsgspecError, TypeError, ValueError, RecursionError, OverflowError):
            kept = msgspec.msgpack.encode(fields.values)
            if msgspec.msgpack.decode(kept) == fields.values:
                # Other documents contain dates, which would be restored as strings.
                shown = listed()
                row = _NOT_LISTED if shown is None else msgspec.msgpack.encode(shown)
                self._changed[str(folder)] = IndexedRow(str(folder), _CODE + state, row)
                self._changed_fields[str(folder)] = kept

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
            cells = ((folder, _FIELDS, fields) for folder, fields in self._changed_fields.items())
            self._index.put_many(self._changed.values(), cells=cells)
            self._index.close()
        self._changed.clear()
        self._changed_fields.clear()
        self._kept = self._kept_fields = {}
