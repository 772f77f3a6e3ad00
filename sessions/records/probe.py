"""Both ends of a file, decoded as far as possible, for recognising its format."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TypeAlias

from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Archive, Blob, FileBlob, SliceBlob
from gistpoint.sessions.records.model import Json
from gistpoint.sessions.records.record import Record, records_in
from gistpoint.sessions.records.scanning import (
    RawRecord,
    Scanner,
    UnreadableError,
    members,
)
from gistpoint.sessions.records.values import as_dict, as_list

_DECODER = json.JSONDecoder(strict=False)
_COLON = re.compile(r"\s*:\s*")
_LONGEST_FIRST_LINE = 16 << 20
"""Bytes of a first line up to which a next line is searched for; a longer line counts as the only one."""
_MESSAGES = 4096
"""How many characters of a program's other output are searched for its first line of JSON."""
_INDENTED = re.compile(rb"\{\r?\n([ \t]+)\"")
_SPACE = re.compile(r"[\s,:]*")
_DEEPEST = 12


FileIdentity: TypeAlias = tuple[str, int, int, int, int]
"""The path, size, times of modification and change (ns), and inode of a file."""


class FileProbe:
    """Both ends of a blob that is about to be opened, decoded as far as possible."""

    def __init__(
        self,
        blob: Blob,
        *,
        name: str = "",
        archive: Archive | None = None,
        parts: Sequence[Blob] = (),
    ) -> None:
        """`parts` are the files of a run that is a folder; `blob` is the first one."""
        self.blob = blob
        self.name = name
        self.archive = archive
        self.parts = parts
        self._wide = False
        self._below: bool | None = None

    def part(self, record: RawRecord) -> FileProbe:
        """Return the probe of a record that is itself a run; its positions are those in the whole file."""
        blob = SliceBlob(self.blob, record.start, record.end, self.blob.name, origin=record.start)
        return FileProbe(blob, name=self.name)

    @cached_property
    def head(self) -> bytes:
        """The first bytes: a quarter of the limit, until `widen` is called."""
        return self.blob.read(0, limits.HEAD if self._wide else limits.HEAD // 4)

    @property
    def identity(self) -> FileIdentity | None:
        """The identity of a plain file as it is now; None for other blobs, and if the file is gone."""
        if not isinstance(self.blob, FileBlob) or self.parts:
            return None
        try:
            stat = self.blob.path.stat()
        except OSError:
            return None
        # Programs that unpack or copy files set modification times, and the size may stay the same.
        return str(self.blob.path), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino

    @property
    def is_wide(self) -> bool:
        """Whether the longer head is in use."""
        return self._wide

    def widen(self) -> bool:
        """Read a longer head from now on; return whether more of the file is known than before."""
        if self._wide:
            return False
        self._wide = True
        if len(self.head) >= self.blob.size:
            return False
        for name in ("head", "start", "text", "_in_lines", "top", "object", "array", "lines", "is_lines"):
            self.__dict__.pop(name, None)
        return True

    @cached_property
    def tail(self) -> bytes:
        """The last bytes, up to the limit."""
        return self.blob.read(max(0, self.blob.size - limits.HEAD), limits.HEAD)

    @cached_property
    def start(self) -> int:
        """The offset of the text, after a byte order mark."""
        return 3 if self.head.startswith(b"\xef\xbb\xbf") else 0

    @cached_property
    def text(self) -> str:
        """The head as text."""
        return self.head[self.start :].decode("utf-8", "replace").lstrip("\0 \t\r\n")

    @cached_property
    def top(self) -> Json:
        """The first value of the text, as far as it is in the head."""
        return prefix_value(self.text, 0) if len(self.head) >= self.blob.size else _prefix(self.text, 0, 0)

    @cached_property
    def object(self) -> dict[str, Json]:
        """The first value if it is an object; otherwise an empty object."""
        return as_dict(self.top)

    @cached_property
    def array(self) -> list[Json]:
        """The first value if it is an array, as far as it is in the head; otherwise an empty array."""
        return as_list(self.top)

    @cached_property
    def _in_lines(self) -> str:
        """The text from its first line that is an object, because a program may print messages before it."""
        if self.text[:1] in ("{", "[", ""):
            return self.text
        lines = self.text[:_MESSAGES].split("\n")
        begun = next((at for at, line in enumerate(lines) if line.startswith('{"')), len(lines))
        follows = next((line for line in lines[begun + 1 :] if line.strip()), "{")
        return (
            self.text.split("\n", begun)[begun]
            if begun < len(lines) and follows.startswith("{")
            else self.text
        )

    @cached_property
    def lines(self) -> list[dict[str, Json]]:
        """The objects in the first 41 lines if the text is JSON lines; otherwise an empty list.

        Later lines that are not valid are left out. The lines are complete, except that a first line longer
        than the head is read in part.
        """
        text = self._in_lines
        if not text.startswith("{"):
            return []
        found: list[dict[str, Json]] = []
        pieces = text.split("\n", 41)[:41]
        whole = len(self.head) >= self.blob.size
        for number, piece in enumerate(pieces):
            if not piece.strip(" \t\r\0"):
                continue
            if number == len(pieces) - 1 and number and not whole:
                break
            try:
                value = _DECODER.decode(piece.strip(" \t\r\0"))
            except (ValueError, RecursionError):
                if not found and number == 0 and len(pieces) == 1:
                    return [self.object]
                if not found:
                    return []
                continue
            if isinstance(value, dict):
                found.append(value)
        return found

    @property
    def opening(self) -> Record:
        """The first record: the first element of the top array, the first line, or the top object."""
        return Record((self.array or self.lines or [self.object])[0])

    def first_lines(self, count: int = 20) -> list[Record]:
        """Return the first lines; empty if the text is not JSON lines."""
        return [Record(line) for line in self.lines[:count]]

    def records(self, count: int = 20) -> list[Record]:
        """Return the first records: objects of the top array, the first lines, or the top object."""
        return records_in(self.array)[:count] or self.first_lines(count) or [Record(self.object)]

    @cached_property
    def is_lines(self) -> bool:
        """Whether the text is JSON lines: its first line is a whole object, and more lines follow."""
        text = self._in_lines
        if not text.startswith("{"):
            return False
        first, newline, rest = text.partition("\n")
        if not newline:
            if self._below is None:
                self._below = self._is_followed_by_a_line()
            return self._below
        if not rest.strip(" \t\r\n\0"):
            return False
        try:
            return isinstance(_DECODER.decode(first.strip(" \t\r\0")), dict)
        except (ValueError, RecursionError):
            return False

    def _is_followed_by_a_line(self) -> bool:
        """Return whether a first line that is longer than the head is followed by another line."""
        at, ended = len(self.head), False
        while at < min(self.blob.size, _LONGEST_FIRST_LINE):
            chunk = self.blob.read(at, limits.CHUNK)
            if not chunk:
                return False
            found = 0 if ended else chunk.find(b"\n")
            if found >= 0:
                ended = True
                if chunk[found:].strip(b" \t\r\n\0"):
                    return True
            at += len(chunk)
        return False

    def late(self, key: str) -> Json:
        """Return the value of a top-level key near the end of the text; None if it is not found.

        This is a cheap guess, which the index replaces with the real value.
        """
        at = self._late_offsets.get(key)
        if at is None:
            return None
        text = self.tail[at:].decode("utf-8", "replace")
        try:
            value: Json = _DECODER.raw_decode(text)[0]
        except (ValueError, RecursionError):
            return None
        return value

    def member(self, key: str, arrays: Collection[str]) -> RawRecord | None:
        """Return the top object's member `key` before `arrays` or near the end of the text.

        None if it is elsewhere, missing or damaged.
        """
        if key not in self.object and key not in self._late_offsets:
            return None
        scanner = Scanner(self.blob, self.start)
        try:
            for name, _, _, _ in members(scanner, lambda name: name == key or name in arrays):
                if name == key:
                    return scanner.record()
                if name in arrays:
                    break
            if key in self._late_offsets:
                scanner.seek(max(0, self.blob.size - limits.HEAD) + self._late_offsets[key])
                return scanner.record()
        except UnreadableError:
            pass
        return None

    @cached_property
    def _late_offsets(self) -> dict[str, int]:
        """The keys of the top object, with the positions of their values in the tail.

        The mapping is empty if the file does not end with an object, or if it is uncertain where the object
        opens.
        """
        text = self.tail.decode("latin-1").rstrip(" \t\r\n\0")
        if not text.endswith("}"):
            return {}
        indent = _INDENTED.match(self.head[self.start : self.start + 256])
        if indent is not None:
            keys = re.compile(rf'\n{indent[1].decode()}"([^"\\\n]+)"[ \t]*:\s*')
            return {match[1]: match.end() for match in keys.finditer(text)}
        keys_found, opening = _keys_from_the_end(text)
        whole = len(self.tail) >= self.blob.size and not text[self.start : opening].strip(" \t\r\n\0")
        return keys_found if whole or opening < 0 else {}

    def early(self, key: str) -> Json:
        """Return the value of a top-level key if it is near either end of the file, otherwise None."""
        value = self.object.get(key)
        return self.late(key) if value is None else value


def _keys_from_the_end(text: str) -> tuple[dict[str, int], int]:
    """Return the keys of the object that a string ends with, and the position where it opens, or -1.

    The mapping leads from each key to the position of its value. Quotes are counted from the end, so it does
    not matter in which value the text begins.
    """
    pieces = text.replace("\\\\", "__").replace('\\"', "__").split('"')
    found: dict[str, int] = {}
    depth, end = 0, len(text)
    for number in range(len(pieces) - 1, -1, -2):
        start = end - len(pieces[number])
        for at in range(end - 1, start - 1, -1):
            depth += (text[at] in "}]") - (text[at] in "{[")
            if not depth and text[at] in "{[":
                return found, at
        if not number:
            break
        key = start - 1 - len(pieces[number - 1])
        if depth == 1 and (colon := _COLON.match(text, start)) is not None:
            found.setdefault(text[key : start - 1], colon.end())
        end = key - 1
    return found, -1


def prefix_value(text: str, at: int) -> Json:
    """Return the value at `at`, as far as the text contains it; open objects and arrays are incomplete."""
    try:
        value: Json = _DECODER.raw_decode(text, at)[0]
    except (ValueError, RecursionError):
        return _prefix(text, at, 0)
    return value


def _prefix(text: str, at: int, depth: int) -> Json:
    """Return the known part of a value that is cut off.

    For a string, at most 4,096 characters are returned with their escapes; for an object or array, its
    content so far. For other values, and for values nested too deeply, the result is None.
    """
    opening = text[at : at + 1]
    if opening == '"':
        return text[at + 1 :][:4096]
    if depth >= _DEEPEST or opening not in ("{", "["):
        return None
    return _prefix_object(text, at + 1, depth) if opening == "{" else _prefix_array(text, at + 1, depth)


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _prefix_object(text: str, at: int, depth: int) -> Json:
    found: dict[str, Json] = {}
    while True:
        at = _after_space(text, at)
        if text[at : at + 1] != '"':
            return found
        try:
            key, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found
        at = _after_space(text, at)
        if at >= len(text):
            return found
        try:
            found[str(key)], at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            found[str(key)] = _prefix(text, at, depth + 1)
            return found


def _prefix_array(text: str, at: int, depth: int) -> Json:
    found: list[Json] = []
    while True:
        at = _after_space(text, at)
        if text[at : at + 1] in ("", "]", "}"):
            return found
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            found.append(_prefix(text, at, depth + 1))
            return found
        found.append(value)
