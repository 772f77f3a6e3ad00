"""Bodies of a function that somebody believed to be right, such as those of earlier versions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import SourceError
from gistpoint.core.logs import replace_file

HISTORY_FILE = "history.json"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class EarlierFile:
    """The text of a file in an earlier version of the library."""

    version: str
    """The hash of the last commit with this text, or the version of the release."""
    date: str
    """The date of that commit as YYYY-MM-DD; empty for a release."""
    text: str


EarlierFiles = Mapping[str, tuple[EarlierFile, ...]]
"""The earlier versions of each Python file by its path, newest first, each version once."""


@dataclass(frozen=True, slots=True)
class EarlierBody:
    """A function as somebody else wrote it, believing it to be right."""

    text: str
    """The definition at the left margin."""
    file: str
    """The text of the file that contained it."""
    family: str
    """The kind of its origin, which is the key of `origin` in a task's provenance."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    """Its origin, which is stored only in the answer of a task."""
    planted: str = ""
    """The corrupted text that its author was given; empty if nothing was planted in the function."""
    replaced_by: str = ""
    """The commit or release that replaced the body, the same for bodies that were changed together.

    It is empty for the version from which tasks are made.
    """


class EarlierBodies(Protocol):
    """Supplies bodies that somebody believed to be right."""

    def of(self, path: str, qualname: str, current: str) -> Iterator[EarlierBody]:
        """Yield the bodies of a function that differ from `current` and from each other, best first."""
        ...


HISTORY = "history"
"""The family of bodies from earlier versions."""


@dataclass(frozen=True, slots=True)
class EarlierVersions:
    """Supplies the bodies in earlier versions of a library's files; implements `EarlierBodies`."""

    files: EarlierFiles
    _read: dict[str, Mapping[str, list[tuple[int, str]]]] = field(default_factory=dict, compare=False)
    """The code of the functions in each file that was read."""

    def of(self, path: str, qualname: str, current: str) -> Iterator[EarlierBody]:
        """Yield the earlier versions of a function that differ from `current` and each other, newest first.

        Versions of the file that can't be parsed, or do not define the function, are left out.
        """
        files = self.files.get(path, ())
        for place, text in self._texts(path).get(qualname, ()):
            if text == current:
                continue
            file, replaced_by = files[place], files[place - 1].version if place else ""
            known = {"replaced_by": replaced_by} if replaced_by else {}
            origin = {"version": file.version, "date": file.date, **known}
            yield EarlierBody(text, file.text, HISTORY, origin, replaced_by=replaced_by)

    def _texts(self, path: str) -> Mapping[str, list[tuple[int, str]]]:
        """Return each distinct source of each function in a file, each with the index of its newest version.

        A file is read once for all its functions, because a group needs many of them.
        """
        if path not in self._read:
            found: dict[str, dict[str, int]] = {}
            for place, file in enumerate(self.files.get(path, ())):
                try:
                    index = index_source(path, file.text.encode())
                except CodeError:
                    continue
                for definition in index.definitions:
                    found.setdefault(definition.qualname, {}).setdefault(definition.dedented, place)
            self._read[path] = {
                name: [(place, text) for text, place in texts.items()] for name, texts in found.items()
            }
        return self._read[path]


class _Stored(msgspec.Struct):
    version: int
    files: dict[str, tuple[EarlierFile, ...]]


def write_earlier_files(folder: Path, files: EarlierFiles) -> None:
    """Store the earlier files in the folder of a library."""
    stored = msgspec.to_builtins(_Stored(_VERSION, dict(files)))
    replace_file(folder / HISTORY_FILE, json.dumps(stored, separators=(",", ":")).encode("ascii"))


def read_earlier_files(folder: Path) -> EarlierFiles | None:
    """Return the earlier files in the folder of a library; None if none can be read."""
    try:
        stored = msgspec.json.decode((folder / HISTORY_FILE).read_bytes(), type=decodable(_Stored))
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None
    return stored.files if stored.version == _VERSION else None


def require_earlier_files(files: EarlierFiles, source: str) -> EarlierFiles:
    """Return the files. Raises `SourceError` if there is no earlier version of any file."""
    if not any(files.values()):
        raise SourceError(
            f"{source} has no earlier version of any Python file.",
            hint=(
                "Give a git repository at a commit (PATH_OR_URL@COMMIT), or a package with earlier releases."
            ),
        )
    return files
