"""The contents of tasks' files, kept in an index, so that lists of thousands of tasks need not parse TOML.

Only lists take their data from here. A task that is opened, attempted or scored is read from its file, and
verified (decision 179).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import Any

import msgspec

from gistpoint.core.tasks.documents import TASK_FILE, read_document
from gistpoint.core.tasks.fields import Fields
from gistpoint.core.tasks.model import VERSION
from gistpoint.sessions.row_index import IndexedRow, RowIndex

TASKS_INDEX = "tasks.sqlite"
"""The name of the index of tasks, in `Locations.lists`."""
_FORM = 1
_AT_ONCE = 1_000
_STAT = struct.Struct("QQQ")
_CODE = f"{_FORM}, version {VERSION} ".encode()
"""The version of the code that makes the rows, which is part of their states."""


def file_state(path: Path) -> bytes:
    """Return the inode, size and time of change of a file; empty if there is no regular file."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return b""
    return _STAT.pack(found.st_ino, found.st_size, found.st_ctime_ns) if S_ISREG(found.st_mode) else b""


class TaskDocuments:
    """The fields of tasks' files, by folder."""

    def __init__(self, index: Path | None) -> None:
        """`index` is the file of the index; with None, files are always read."""
        self._index = None if index is None else RowIndex(index, most_bytes=None)
        self._kept: dict[str, IndexedRow] = {}
        self._changed: dict[str, IndexedRow] = {}

    def prepared(self, root: Path, names: Sequence[str]) -> Iterator[Path]:
        """Yield the folders with these names; the fields of many are read from the index at once.

        At the end, files that were read are added to the index. If all folders were taken, the index forgets
        those in `root` that are not among the names.
        """
        if self._index is None:
            yield from map(root.joinpath, names)
            return
        try:
            for start in range(0, len(names), _AT_ONCE):
                folders = [root / name for name in names[start : start + _AT_ONCE]]
                self._kept = self._index.some(map(str, folders))
                yield from folders
            inside, present = f"{root}/", {f"{root}/{name}" for name in names}
            gone = [key for key in self._index.all_keys() if key.startswith(inside) and key not in present]
            self._index.put_many((), gone)
        finally:
            self._index.put_many(self._changed.values())
            self._index.close()
            self._changed.clear()
            self._kept = {}

    def read(self, folder: Path, state: bytes) -> Fields:
        """Return the fields of the task in `folder`; `state` is that of its file now.

        Raises `TaskError` if the file can't be read.
        """
        kept = self._kept.get(str(folder))
        if kept is not None and kept.state == _CODE + state:
            with suppress(msgspec.MsgspecError, RecursionError):
                return Fields(msgspec.msgpack.decode(kept.row, type=dict[str, Any]), TASK_FILE)
        fields = read_document(folder / TASK_FILE)
        if self._index is not None:
            with suppress(msgspec.MsgspecError, TypeError, ValueError, RecursionError, OverflowError):
                row = msgspec.msgpack.encode(fields.values)
                if msgspec.msgpack.decode(row) == fields.values:  # dates would come back as strings
                    self._changed[str(folder)] = IndexedRow(str(folder), _CODE + state, row)
        return fields
