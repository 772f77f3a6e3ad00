"""What is looked at to tell a file's format: both ends of it, decoded as far as they go."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from gistpoint.sessions.formats.values import as_dict, as_list
from gistpoint.sessions.runs import limits
from gistpoint.sessions.runs.model import Json

if TYPE_CHECKING:
    from gistpoint.sessions.runs.archives import Archive, Blob
    from gistpoint.sessions.runs.scanning import Record

_DECODER = json.JSONDecoder(strict=False)
_COLON = re.compile(r"\s*:\s*")
_LONGEST_FIRST_LINE = 16 << 20
"""Bytes of a first line below which others are looked for; one of a longer line is read as all there is."""
_INDENTED = re.compile(rb"\{\r?\n([ \t]+)\"")
_SPACE = re.compile(r"[\s,:]*")
_DEEPEST = 12


def _no_sibling(_: str) -> Blob | None:
    return None


class Probe:
    """A blob about to be opened; `sibling` finds a file beside it by its plain name."""

    def __init__(
        self,
        blob: Blob,
        *,
        name: str = "",
        archive: Archive | None = None,
        sibling: Callable[[str], Blob | None] = _no_sibling,
        siblings: Callable[[], tuple[str, ...]] = tuple,
        parts: Sequence[Blob] = (),
    ) -> None:
        """`parts` are the files of a run that is a folder of one file an event; `blob` is the first of them."""
        self.blob = blob
        self.name = name
        self.archive = archive
        self.sibling = sibling
        self.siblings = siblings
        self.parts = parts
        self._wide = False
        self._below: bool | None = None

    @cached_property
    def head(self) -> bytes:
        """The first bytes: a quarter of what may be looked at, until `widen` is called."""
        return self.blob.read(0, limits.HEAD if self._wide else limits.HEAD // 4)

    def widen(self) -> None:
        """Look at more of the head from now on."""
        if not self._wide:
            self._wide = True
            if len(self.head) < self.blob.size:
                for name in ("head", "start", "text", "top", "object", "array", "lines", "is_lines"):
                    self.__dict__.pop(name, None)

    @cached_property
    def tail(self) -> bytes:
        """The last bytes."""
        return self.blob.read(max(0, self.blob.size - limits.HEAD), limits.HEAD)

    @cached_property
    def start(self) -> int:
        """Where the text begins, behind a byte order mark."""
        return 3 if self.head.startswith(b"\xef\xbb\xbf") else 0

    @cached_property
    def text(self) -> str:
        """The head as text."""
        return self.head[self.start :].decode("utf-8", "replace").lstrip("\0 \t\r\n")

    @cached_property
    def top(self) -> Json:
        """The first value of the text, as much of it as the head holds."""
        return prefix_value(self.text, 0) if len(self.head) >= self.blob.size else _prefix(self.text, 0, 0)

    @cached_property
    def object(self) -> dict[str, Json]:
        """The first value if it is an object."""
        return as_dict(self.top)

    @cached_property
    def array(self) -> list[Json]:
        """The first value if it is an array: at least its first element."""
        return as_list(self.top)

    @cached_property
    def lines(self) -> list[dict[str, Json]]:
        """The objects of the first lines if the text is JSON lines: complete ones, or the part of a long first."""
        if not self.text.startswith("{"):
            return []
        found: list[dict[str, Json]] = []
        pieces = self.text.split("\n", 41)[:41]
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

    @cached_property
    def is_lines(self) -> bool:
        """Whether the text is JSON lines: its first line is a whole object, and something stands below it."""
        if not self.text.startswith("{"):
            return False
        first, newline, rest = self.text.partition("\n")
        if not newline:
            if self._below is None:
                self._below = self._goes_on_below()
            return self._below
        if not rest.strip(" \t\r\n\0"):
            return False
        try:
            return isinstance(_DECODER.decode(first.strip(" \t\r\0")), dict)
        except (ValueError, RecursionError):
            return False

    def _goes_on_below(self) -> bool:
        """Whether a first line that is longer than the head has another below it."""
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
        """Return the value of a key of the top object that stands near the end of the text, None if it can't be seen.

        A first look that costs nothing; the index finds the real one.
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

    def member(self, key: str, arrays: Collection[str]) -> Record | None:
        """Return a member of the top object that stands before its `arrays`, or near the end of the text."""
        from gistpoint.sessions.runs.scanning import CutOffError, DamagedError, Scanner, TooLongError, members

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
        except (CutOffError, DamagedError, TooLongError):
            pass
        return None

    @cached_property
    def _late_offsets(self) -> dict[str, int]:
        """Keys of the top object alone, and where in the tail their values begin."""
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
        """Return the value of a key of the top object from either end."""
        value = self.object.get(key)
        return self.late(key) if value is None else value


def _keys_from_the_end(text: str) -> tuple[dict[str, int], int]:
    """Return the keys of the object that a text ends with and where their values begin, and where it opens, else -1.

    Quotes are counted from the end, so that it does not matter within what the text begins.
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
    """Decode the value at `at`, as much of it as there is: open objects and arrays with what they hold so far."""
    try:
        value: Json = _DECODER.raw_decode(text, at)[0]
    except (ValueError, RecursionError):
        return _prefix(text, at, 0)
    return value


def _prefix(text: str, at: int, depth: int) -> Json:
    """Decode a value that is known to be cut."""
    opening = text[at : at + 1]
    if opening == '"':
        return text[at + 1 :][:4096]
    if depth >= _DEEPEST or opening not in ("{", "["):
        return None
    return _prefix_object(text, at + 1, depth) if opening == "{" else _prefix_array(text, at + 1, depth)


def _next(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _prefix_object(text: str, at: int, depth: int) -> Json:
    found: dict[str, Json] = {}
    while True:
        at = _next(text, at)
        if text[at : at + 1] != '"':
            return found
        try:
            key, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found
        at = _next(text, at)
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
        at = _next(text, at)
        if text[at : at + 1] in ("", "]", "}"):
            return found
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            found.append(_prefix(text, at, depth + 1))
            return found
        found.append(value)
