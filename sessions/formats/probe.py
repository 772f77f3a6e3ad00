"""What is looked at to tell a file's format: both ends of it, decoded as far as they go."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from gistpoint.sessions.formats.values import as_dict, as_list
from gistpoint.sessions.runs import limits
from gistpoint.sessions.runs.model import Json

if TYPE_CHECKING:
    from gistpoint.sessions.runs.archives import Archive
    from gistpoint.sessions.runs.blobs import Blob

_DECODER = json.JSONDecoder(strict=False)
_COLON = re.compile(r"\s*:\s*")
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
        self._late: dict[str, Json] = {}

    @cached_property
    def head(self) -> bytes:
        """The first bytes: a quarter of what may be looked at, until `widen` is called."""
        return self.blob.read(0, limits.HEAD if self._wide else limits.HEAD // 4)

    def widen(self) -> None:
        """Look at more of the head from now on."""
        if not self._wide:
            self._wide = True
            if len(self.head) < self.blob.size:
                for name in ("head", "start", "text", "top", "object", "array", "lines"):
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

    def late(self, key: str) -> Json:
        """Return the value of a key of the top object that stands near the end of the text, None if it can't be seen.

        A first look that costs nothing; the index finds the real one.
        """
        if key not in self._late:
            self._late[key] = self._find_late(key)
        return self._late[key]

    def _find_late(self, key: str) -> Json:
        text = self._tail_text
        end = len(text)
        name = f'"{key}"'
        while (at := text.rfind(name, 0, end)) >= 0:
            end = at
            colon = _COLON.match(text, at + len(name))
            if colon is None or text[at - 1 : at] == "\\":
                continue
            try:
                value: Json = _DECODER.raw_decode(text, colon.end())[0]
            except (ValueError, RecursionError):
                continue
            return value
        return None

    @cached_property
    def _tail_text(self) -> str:
        return self.tail.decode("utf-8", "replace")

    def early(self, key: str) -> Json:
        """Return the value of a key of the top object from either end."""
        value = self.object.get(key)
        return self.late(key) if value is None else value


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
