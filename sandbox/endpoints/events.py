"""Reads server-sent events from blocks of bytes, within bounds of size.

The format is that of the HTML standard, 9.2: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gistpoint.core.merging import MOST_BYTES, EndlessReplyError

MOST_LINES = 4_000_000
"""The limit on the lines of one stream, because reading a line costs more time than its bytes."""
_BOM = b"\xef\xbb\xbf"


class ServerEvent(NamedTuple):
    """One event: its name, which is usually empty, and its data, with a line for each field `data`."""

    name: str
    lines: tuple[bytes, ...]

    @property
    def data(self) -> bytes:
        """The data as one byte string, with a line feed between its lines."""
        return b"\n".join(self.lines)


@dataclass
class EventReader:
    """Splits a stream into its events; blocks may end anywhere, also within a character or a line end."""

    _begun: list[bytes] = field(default_factory=list)
    """The parts of a line that is still incomplete."""
    _begun_bytes: int = 0
    _fields: list[bytes] = field(default_factory=list)
    _fields_bytes: int = 0
    _name: str = ""
    _lines: int = 0
    _after_return: bool = False
    """Whether the last block ended with a carriage return, to which a line feed may still belong."""

    def feed(self, block: bytes) -> Iterator[ServerEvent]:
        """Yield the events that end in a block.

        Raises `EndlessReplyError` if an event is too large, or if there are too many lines.
        """
        if not block:
            return
        if self._after_return:
            block = block.removeprefix(b"\n")
        for part in block.splitlines(keepends=True):
            self._begun.append(part)
            self._begun_bytes += len(part)
            self._bound()
            if part.endswith((b"\n", b"\r")):
                yield from self._take_line()
        self._after_return = block.endswith(b"\r")

    def close(self) -> Iterator[ServerEvent]:
        """Yield the last event if the empty line that should end it is missing: some servers omit it.

        Raises `EndlessReplyError` if there are too many lines.
        """
        if self._begun:
            yield from self._take_line()
        yield from self._end_event()

    def _bound(self) -> None:
        if self._begun_bytes + self._fields_bytes > MOST_BYTES:
            raise EndlessReplyError

    def _take_line(self) -> Iterator[ServerEvent]:
        """Take the line that is complete, and yield the event that it ends or reports, if any."""
        line = b"".join(self._begun).rstrip(b"\r\n")
        self._begun, self._begun_bytes = [], 0
        if self._lines == 0:
            line = line.removeprefix(_BOM)
        self._lines += 1
        if self._lines > MOST_LINES:
            raise EndlessReplyError
        if not line:
            yield from self._end_event()
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._fields.append(value)
            self._fields_bytes += len(value)
        elif name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"error":
            # Older versions of llama.cpp's server report errors in a field of this name.
            yield ServerEvent("error", (value,))

    def _end_event(self) -> Iterator[ServerEvent]:
        """Yield the event that the lines so far form, if they have data."""
        event = ServerEvent(self._name, tuple(self._fields))
        self._name, self._fields, self._fields_bytes = "", [], 0
        if event.lines:
            yield event
