"""Merges the pieces of a streamed value, within size limits (decision 149)."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_BYTES = 32 << 20
"""The limit on one reply, in bytes or characters."""
MOST_VALUES = 1_000_000
"""The limit on the JSON values in one reply, because empty values take fifty times their bytes in memory."""
_NAMES = frozenset({"id", "type", "index", "format", "name", "role", "object", "status"})
"""The members of a delta that repeat instead of growing."""
_TEXTS = frozenset(
    {"content", "reasoning_content", "reasoning", "refusal", "text", "summary", "thinking", "arguments"}
)
"""The members of a delta whose text always grows, even if a piece repeats the last one."""


class EndlessReplyError(Exception):
    """A body exceeds a limit, or nobody waits for the rest of it."""


class GrowingText:
    """A string that grows by pieces."""

    __slots__ = ("_pieces", "length")

    def __init__(self, text: str) -> None:
        self._pieces = io.StringIO()
        self.length = 0
        self.add(text)

    def add(self, text: str) -> None:
        """Add a piece."""
        self._pieces.write(text)
        self.length += len(text)

    def is_same(self, text: str) -> bool:
        """Return whether the text so far equals `text`."""
        return self.length == len(text) and str(self) == text

    def __str__(self) -> str:
        return self._pieces.getvalue()


@dataclass
class Room:
    """The number of values and characters by which a reply may still grow."""

    values: int = field(default_factory=lambda: MOST_VALUES)
    characters: int = field(default_factory=lambda: MOST_BYTES)
    written: int = 0
    """The number of characters in strings, other than those around the message."""

    def write(self, values: int, text: str) -> None:
        """Count a string of the message. Raises `EndlessReplyError` if there is no room for it."""
        self.written += len(text)
        self.take(values, len(text))

    def take(self, values: int, characters: int) -> None:
        """Count values and characters. Raises `EndlessReplyError` if there is no room for them."""
        self.values -= values
        self.characters -= characters
        if min(self.values, self.characters) < 0:
            raise EndlessReplyError


@dataclass
class Merger:
    """Merges pieces into values whose strings can grow, as long as there is room."""

    room: Room = field(default_factory=Room)

    def kept(self, value: Any, name: str) -> Any:
        """Return a value in a form that can grow, after reserving room for it."""
        if isinstance(value, str):
            self.room.write(1, value)
            return value if name in _NAMES else GrowingText(value)
        self.room.take(1, 0)
        if isinstance(value, dict):
            self.room.take(0, sum(map(len, value)))
            return {key: self.kept(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self.kept(item, "") for item in value]
        return value

    def merged(self, old: Any, new: Any, name: str) -> Any:
        """Return a member after another piece of it."""
        if old is None:
            return self.kept(new, name)
        is_mixed = name == "content" and type(new) is not _TYPES.get(type(old))
        if is_mixed and new:
            old, new = _as_parts(old), _as_parts(new)
        match old, new:
            case GrowingText(), str():
                self._grow(old, new, name)
            case dict(), dict():
                for key, value in new.items():
                    old[key] = self.merged(old.get(key), value, key)
            case list(), list():
                self._extend(old, new)
            case _ if new not in (None, "", [], {}):
                return self.kept(new, name)
        return old

    def _grow(self, old: GrowingText, new: str, name: str) -> None:
        # A member that is not known to grow may be a constant that every chunk repeats.
        if name in _TEXTS or not old.is_same(new):
            self.room.write(0, new)
            old.add(new)

    def _extend(self, old: list[Any], new: list[Any]) -> None:
        """Add pieces of items to the items that they continue, and other items at the end."""
        for item in new:
            continued = _continued(old, item) if isinstance(item, dict) else None
            if continued is None:
                old.append(self.kept(item, ""))
            else:
                self.merged(continued, item, "")


_TYPES: Mapping[type, type] = {GrowingText: str, list: list}


def _as_parts(content: object) -> list[Any]:
    """Return the content of a message as parts, because some models send reasoning as parts and then text."""
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if str(content or "") else []


def _continued(items: list[Any], piece: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the item that a piece continues; None if it is a new item.

    OpenRouter's `reasoning_details` have an index and a type. Without an index, only a piece of text
    continues the last item.
    """
    index, type = piece.get("index"), piece.get("type")
    same = [item for item in items if isinstance(item, dict) and item.get("type") == type]
    if isinstance(index, int):
        return next((item for item in same if item.get("index") == index), None)
    if not same or same[-1] is not items[-1] or "index" in same[-1]:
        return None
    last = same[-1]
    texts = {name for name, value in last.items() if isinstance(value, GrowingText)}
    return last if texts & _TEXTS & piece.keys() else None


def plain(value: Any) -> Any:
    """Return a value with its growing texts converted to strings."""
    if isinstance(value, GrowingText):
        return _sound(str(value))
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def _sound(text: str) -> str:
    """Return text in which characters that arrived in two halves are whole again.

    Halves are surrogates of UTF-16, or bytes of UTF-8 that `streamed` decoded as surrogates.
    """
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        pass
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError:
        return text
