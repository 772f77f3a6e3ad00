"""The connections of a server: how many there may be, and how long requests may take (decision 117).

aiohttp and uvicorn wait indefinitely for a request, and accept as many connections as the system allows.
Here, each connection has a time limit for its first request and for each answer. If there are too many, the
one that has waited longest is closed, so that a newcomer with a complete request always gets its answer.
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
"""The most connections accepted in one turn of the loop, before the first of them can be closed."""


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """Limits of a server's connections; times are in seconds."""

    most: int = 256
    most_of_address: int = 64
    """The most connections of one address, not counting kept ones.

    0 if addresses say nothing, as behind a proxy.
    """
    first_s: float = 10.0
    """The time for the TLS handshake, and again for the head of the first request."""
    answer_s: float = 60.0
    """The time from one complete head to the next: the answer, and the pause before the next request."""


def within_files(bounds: ConnectionBounds) -> ConnectionBounds:
    """Return limits with which connections use at most a quarter of the files that this process may open."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return bounds
    return replace(bounds, most=max(1, min(bounds.most, files // 4)))


def peer_of(transport: asyncio.BaseTransport | None) -> Peer | None:
    """Return the peer of a connection; None if it is no longer known."""
    name = None if transport is None else transport.get_extra_info("peername")
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else None


class Connections:
    """All connections of one server."""

    def __init__(self, bounds: ConnectionBounds = ConnectionBounds()) -> None:
        self.bounds = bounds
        self._all: dict[Peer, _Connection] = {}
        self._waiting: dict[Peer, _Connection] = {}
        """The connections that may be closed, in the order of their last request."""

    def __len__(self) -> int:
        """Return the number of connections."""
        return len(self._all)

    def guarded(self, inner: asyncio.Protocol, tls: ssl.SSLContext | None = None) -> asyncio.Protocol:
        """Return the protocol for a new plain connection. `inner` gets it, decrypted, if it may stay.

        TLS starts here rather than at the listening socket, so that clients that never finish the handshake
        count, too.
        """
        return _Connection(self, inner, tls)

    def asked(self, peer: Peer | None) -> None:
        """Note that the head of a request is complete."""
        if peer in self._waiting:
            connection = self._waiting[peer] = self._waiting.pop(peer)
            connection.has(self.bounds.answer_s)

    @contextmanager
    def keeping(self, peer: Peer | None) -> Iterator[None]:
        """Exempt a connection from the limits meanwhile. The caller must limit how many it keeps."""
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
        """Close a connection at once. Data not sent yet is lost."""
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
    """Sits between the network and the protocol of a library, and passes everything on."""

    def __init__(self, among: Connections, inner: asyncio.Protocol, tls: ssl.SSLContext | None) -> None:
        self._among, self._inner, self._tls = among, inner, tls
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._given = False
        """Whether the inner protocol has the connection."""
        self._early: list[bytes] = []
        """Data that arrived together with the end of the handshake, before the inner protocol was ready."""
        self.peer: Peer = ("", 0)

    def has(self, seconds: float | None) -> None:
        """Have the connection closed after this time instead of any earlier limit; None for never."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self.end)

    def end(self) -> None:
        """Close the connection. Its descriptor is closed in the next turn of the loop."""
        self._over()
        self._transport.abort()

    def _over(self) -> None:
        self.has(None)
        self._among._remove(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, peer = transport, peer_of(transport)
        if peer is None:  # it is gone already
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
