"""The HTTP client of a request: it goes to the host that was named, and reads no more than a reply may have."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import httpx2
from openai import DefaultHttpxClient


class EndlessReplyError(Exception):
    """A body is longer than it may be, or is compressed, which may be any length."""


def bounded_client(most_bytes: int, timeout_s: float, abandoned: Event) -> httpx2.Client:
    """Return a client whose bodies, those of errors too, raise `EndlessReplyError` beyond `most_bytes`.

    Reading ends soon after `abandoned` is set. Redirects are answers like others: who follows them sends the
    conversation to a host that no record names. Compressed replies are not asked for, and not unpacked.
    """

    def bound(response: httpx2.Response) -> None:
        response.headers.pop("content-encoding", None)
        response.stream = _Body(response.stream, most_bytes, abandoned)

    return DefaultHttpxClient(
        follow_redirects=False,
        timeout=timeout_s,
        headers={"Accept-Encoding": "identity"},
        event_hooks={"response": [bound]},
    )


class _Body(httpx2.SyncByteStream):
    def __init__(self, body: object, most_bytes: int, abandoned: Event) -> None:
        assert isinstance(body, httpx2.SyncByteStream)
        self._body, self._left, self._abandoned = body, most_bytes, abandoned

    def __iter__(self) -> Iterator[bytes]:
        for block in self._body:
            self._left -= len(block)
            if self._left < 0 or self._abandoned.is_set():
                raise EndlessReplyError
            yield block

    def close(self) -> None:
        self._body.close()
