"""Receives the body of a reply, whether it is sent whole or in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Protocol

from gistpoint.core.merging import MOST_BYTES, EndlessReplyError
from gistpoint.sandbox.endpoints.events import EventReader, ServerEvent
from gistpoint.sandbox.endpoints.streamed import StreamedReply
from gistpoint.sandbox.endpoints.transport import loaded

_FIELDS = (b":", b"data:", b"event:", b"id:", b"retry:", b"error:")
"""The possible beginnings of an event stream, which decide because content types can be wrong."""
_LONGEST_FIELD = max(map(len, _FIELDS))
_SPACE = b" \t\r\n\xef\xbb\xbf"


class PiecedReply(Protocol):
    """A reply that is read from the events of a stream."""

    @property
    def began(self) -> bool:
        """Whether a part of the reply itself was received."""
        ...

    @property
    def over(self) -> bool:
        """Whether nothing of interest can follow."""
        ...

    @property
    def complete(self) -> bool:
        """Whether no part of the reply is missing, as far as can be known."""
        ...

    @property
    def usage(self) -> dict[str, Any] | None:
        """The last reported usage; None if none was reported."""
        ...

    @property
    def characters(self) -> int:
        """The number of characters received so far."""
        ...

    def add(self, event: ServerEvent) -> None:
        """Add an event.

        Raises `ValueError` for unreadable data, and `EndlessReplyError` if a limit is exceeded.
        """
        ...

    def body(self) -> dict[str, Any]:
        """Return the body of the reply, in the form that it would have if it had been sent whole."""
        ...


class Received:
    """The received part of one reply."""

    def __init__(self, pieces: PiecedReply | None = None) -> None:
        """`pieces` reads the events of a stream; those of OpenAI's API by default."""
        self._blocks: list[bytes] = []
        self._bytes = 0
        self._start = b""
        """The first bytes other than spaces, until they decide how the reply is sent."""
        self._reader: EventReader | None = None
        self._reply: PiecedReply = StreamedReply() if pieces is None else pieces
        self._at_end = False

    @property
    def streamed(self) -> bool:
        """Whether the reply is sent in pieces."""
        return self._reader is not None

    @property
    def complete(self) -> bool:
        """Whether the reply has no missing part, as far as can be known."""
        return self._reply.complete if self.streamed else self._at_end

    @property
    def usage(self) -> dict[str, Any] | None:
        """The last reported usage; None if none was reported."""
        return self._reply.usage

    @property
    def characters(self) -> int:
        """The number of characters received in pieces."""
        return self._reply.characters

    def take(self, blocks: Iterable[bytes], began: Callable[[], None]) -> None:
        """Receive blocks up to the end of the reply; call `began` for each block once the reply has begun.

        Raises `EndlessReplyError` if a limit is exceeded, `ValueError` for invalid JSON, and what `blocks`
        raises.
        """
        for block in blocks:
            self._feed(block)
            if self._reply.began:
                began()
            if self._reply.over:
                return
        self._decide()
        if self._reader is not None:
            # The last event may have been cut off. Whether the reply is whole does not depend on it.
            with suppress(ValueError, RecursionError):
                for event in self._reader.close():
                    self._reply.add(event)
        self._at_end = True

    def body(self) -> object:
        """Return the body of the reply. Raises `ValueError` if it is not JSON, or has too many values."""
        if self._reader is not None:
            return self._reply.body()
        return loaded(b"".join(self._blocks))

    def _feed(self, block: bytes) -> None:
        if self._reader is not None:
            for event in self._reader.feed(block):
                self._reply.add(event)
            return
        self._blocks.append(block)
        self._bytes += len(block)
        if self._bytes > MOST_BYTES:
            raise EndlessReplyError
        if len(self._start) < _LONGEST_FIELD:
            self._start = (self._start + block).lstrip(_SPACE)[:_LONGEST_FIELD]
            if len(self._start) == _LONGEST_FIELD:
                self._decide()

    def _decide(self) -> None:
        """Treat the received data as a stream of events if it begins like one."""
        if self._reader is None and self._start.startswith(_FIELDS):
            self._reader = EventReader()
            blocks, self._blocks = b"".join(self._blocks), []
            for event in self._reader.feed(blocks):
                self._reply.add(event)
