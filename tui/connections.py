"""The connections of a server: how many there may be, and how long each may take to say what it wants (decision 117).

aiohttp and uvicorn wait for a request as long as a client likes, and take as many connections as the system gives them.
Here each connection has a time for its first request and for each answer. Those that are too many push out the one
that has waited longest, so that a newcomer with a whole request always gets its answer.
"""

from __future__ import annotations

import asyncio
import resource
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

Peer = tuple[str, int]
"""A client's address and port."""
BACKLOG = 64
"""So many connections are accepted in one turn of the loop, before the first of them can be ended."""


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """Bounds of a server's connections; times are in seconds."""

    most: int = 256
    most_of_address: int = 64
    """Of those that are not kept; 0 if addresses tell nothing, as behind a proxy."""
    first_s: float = 10.0
    """For the TLS handshake, and again for the head of the first request."""
    answer_s: float = 60.0
    """From a whole head to the head after it: the answer, and the pause before the next request."""


def within_files(bounds: ConnectionBounds) -> ConnectionBounds:
    """Return bounds by which connections take no more than a quarter of the files that this process may open."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return bounds
    return replace(bounds, most=max(1, min(bounds.most, files // 4)))


def peer_of(transport: asyncio.BaseTransport | None) -> Peer | None:
    """Return who is at the other end; None if that can't be told any more."""
    name = None if transport is None else transport.get_extra_info("peername")
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else None


class Connections:
    """All connections of one server."""

    def __init__(self, bounds: ConnectionBounds = ConnectionBounds()) -> None:
        self.bounds = bounds
        self._all: dict[Peer, _Connection] = {}
        self._waiting: dict[Peer, _Connection] = {}
        """Those that may be ended, in the order of their last request."""

    def __len__(self) -> int:
        """Return how many there are now."""
        return len(self._all)

    def guarded(self, inner: asyncio.Protocol, tls: ssl.SSLContext | None = None) -> asyncio.Protocol:
        """Return the protocol for a new plain connection; `inner` gets it, decrypted, if it may stay.

        TLS is begun here rather than by the listening socket: a client that never ends the handshake counts as well.
        """
        return _Connection(self, inner, tls)

    def asked(self, peer: Peer | None) -> None:
        """Note that the head of a request has come whole."""
        if peer in self._waiting:
            connection = self._waiting[peer] = self._waiting.pop(peer)
            connection.has(self.bounds.answer_s)

    @contextmanager
    def keeping(self, peer: Peer | None) -> Iterator[None]:
        """End a connection for no bound meanwhile. Whoever keeps one bounds how many are kept."""
        connection = self._waiting.pop(peer, None) if peer else None
        if connection is None:
            yield
            return
        connection.has(None)
        try:
            yield
        finally:
            if self._all.get(connection.peer) is connection:
                self._waiting[connection.peer] = connection
                connection.has(self.bounds.answer_s)

    def end(self, peer: Peer | None) -> None:
        """End a connection at once; what was not sent yet is lost."""
        if peer in self._all:
            self._all[peer].end()

    def _add(self, connection: _Connection) -> None:
        self._all[connection.peer] = self._waiting[connection.peer] = connection
        connection.has(self.bounds.first_s)
        near = [one for one in self._waiting.values() if one.peer[0] == connection.peer[0]]
        if 0 < self.bounds.most_of_address < len(near):
            near[0].end()
        if len(self._all) > self.bounds.most:
            next(iter(self._waiting.values())).end()

    def _remove(self, connection: _Connection) -> None:
        if self._all.get(connection.peer) is connection:
            del self._all[connection.peer]
            self._waiting.pop(connection.peer, None)


class _Connection(asyncio.Protocol):
    """Stands between the network and the protocol of a library, which it passes everything on to."""

    def __init__(self, among: Connections, inner: asyncio.Protocol, tls: ssl.SSLContext | None) -> None:
        self._among, self._inner, self._tls = among, inner, tls
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._given = False
        """Whether the inner protocol has the connection."""
        self._early: list[bytes] = []
        """What came in the same turn of the loop as the handshake's end, before the inner protocol had it."""
        self.peer: Peer = ("", 0)

    def has(self, seconds: float | None) -> None:
        """Have the connection ended after this time, and not as before; None for never."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self.end)

    def end(self) -> None:
        """End the connection; its descriptor is closed in the next turn of the loop."""
        self._over()
        self._transport.abort()

    def _over(self) -> None:
        self.has(None)
        self._among._remove(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, peer = transport, peer_of(transport)
        if peer is None:  # it has gone already
            transport.abort()
            return
        self.peer = peer
        self._among._add(self)
        if transport.is_closing():
            return
        if self._tls is None:
            self._give(transport)
            return
        transport.pause_reading()
        self._handshake = asyncio.get_running_loop().create_task(self._encrypt(self._tls))

    async def _encrypt(self, tls: ssl.SSLContext) -> None:
        loop, first_s = asyncio.get_running_loop(), self._among.bounds.first_s
        try:
            encrypted = await loop.start_tls(
                self._transport,
                self,
                tls,
                server_side=True,
                ssl_handshake_timeout=first_s,
                ssl_shutdown_timeout=first_s,
            )
        except OSError:  # malformed, too slow, gone, or ended here
            encrypted = None
        if encrypted is None:
            self.end()
            return
        if not self._transport.is_closing():
            self.has(first_s)
            self._give(encrypted)

    def _give(self, transport: asyncio.BaseTransport) -> None:
        self._given = True
        self._inner.connection_made(transport)
        for data in self._early:
            self._inner.data_received(data)
        self._early.clear()

    def data_received(self, data: bytes) -> None:
        if self._given:
            self._inner.data_received(data)
        else:
            self._early.append(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._given else None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._over()
        if self._given:
            self._inner.connection_lost(exc)
