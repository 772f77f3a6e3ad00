"""Reads the replies of endpoints within bounds of size, so that none can fill the memory."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from functools import cache
from threading import Event

import httpx2

from gistpoint.core.merging import MOST_BYTES, MOST_VALUES, EndlessReplyError
from gistpoint.sandbox.endpoints.connections import Connection

MOST_STREAM_BYTES = 512 << 20
"""The limit on a stream, in bytes: a chunk for a token of five characters may take a thousand.

The kept part of a stream is limited by `MOST_BYTES` and `MOST_VALUES`, like a reply that is sent whole.
"""
CLOSED = "closed the connection without a reply"
EVENT_STREAM = "text/event-stream"


def bounded_client(timeout_s: float, abandoned: Event, connection: Connection | None = None) -> httpx2.Client:
    """Return a client in which reading more than `MOST_BYTES` of a body raises `EndlessReplyError`.

    This also applies to the bodies of errors; the limit on a stream is `MOST_STREAM_BYTES`. Reading ends soon
    after `abandoned` is set. Redirects are not followed, because that would send the conversation to a host
    that no record names. Compressed replies are neither requested nor unpacked. `connection` learns of its
    socket and of each block that arrives.
    """

    def watch(request: httpx2.Request) -> None:
        if connection is not None:
            request.extensions["trace"] = connection.trace

    def bound(response: httpx2.Response) -> None:
        # A compressed body may have any length after unpacking, so it is not unpacked.
        response.headers.pop("content-encoding", None)
        is_stream = response.headers.get("content-type", "").lower().startswith(EVENT_STREAM)
        most = MOST_STREAM_BYTES if is_stream and response.is_success else MOST_BYTES
        response.stream = _Body(response.stream, most, abandoned, connection)

    return httpx2.Client(
        follow_redirects=False,
        timeout=timeout_s,
        verify=trusted_certificates(),
        headers={"Accept-Encoding": "identity"},
        event_hooks={"request": [watch], "response": [bound]},
    )


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Return a context with the trusted certificates, which is cached because reading them takes long."""
    return httpx2.create_ssl_context()


class _Body(httpx2.SyncByteStream):
    def __init__(
        self, body: object, most_bytes: int, abandoned: Event, connection: Connection | None
    ) -> None:
        assert isinstance(body, httpx2.SyncByteStream)
        self._body = body
        self._left = most_bytes
        self._abandoned = abandoned
        self._connection = connection

    def __iter__(self) -> Iterator[bytes]:
        for block in self._body:
            if self._connection is not None:
                self._connection.byte_arrived()
            self._left -= len(block)
            if self._left < 0 or self._abandoned.is_set():
                raise EndlessReplyError
            yield block

    def close(self) -> None:
        self._body.close()


def loaded(body: bytes) -> object:
    """Return the JSON value in a body. Raises `ValueError` if it is not JSON or exceeds `MOST_VALUES`."""
    # Counted before parsing, because parsed values take many times the memory of their text.
    if delimiters_in(body) > MOST_VALUES:
        raise ValueError
    value: object = json.loads(body)
    return value


def delimiters_in(body: bytes) -> int:
    """Return the number of marks that begin or separate JSON values, at least the number of values less 1."""
    return sum(body.count(mark) for mark in (b"{", b"[", b","))
