"""The connections of a server: their number, and the time that requests may take (decision 117).

aiohttp and uvicorn wait for requests indefinitely, and accept as many connections as the system allows. Here,
each connection has a time limit for its first request, and for each answer. If there are too many
connections, the one that has waited longest is closed, so that a new one with a complete request always gets
an answer.
"""

from __future__ import annotations

import asyncio
import resource
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from gistpoint.core.errors import UserError

Peer = tuple[str, int]
"""The address and port of a client."""
BACKLOG = 64
"""The maximum number of connections accepted in a turn of the event loop, before the first can be closed."""


def server_tls(certificate: str, key: str) -> ssl.SSLContext | None:
    """Return the TLS context of a server; None without a certificate.

    Raises `UserError` if the certificate or its key can't be read or used.
    """
    if not certificate:
        return None
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # Without this, OpenSSL would ask for the password of a key on the terminal.
        tls.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"{certificate} and {key} are not a certificate and its key: {reason}.",
            hint="Both are PEM files, and the key has no password.",
        ) from error
    return tls


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """The limits for a server's connections. All times are in seconds."""

    most: int = 256
    most_of_address: int = 64
    """The maximum number of connections from one address, without those exempted by `exempting`.

    0 for no limit, such as behind a proxy, where all clients have the same address.
    """
    first_s: float = 10.0
    """The time for the TLS handshake, and then for the head of the first request."""
    answer_s: float = 60.0
    """The time from one request's head to the next request's head: the answer and the pause after it."""


def within_files(bounds: ConnectionBounds) -> ConnectionBounds:
    """Return limits under which connections take at most a quarter of the files this process may open."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return bounds
    return replace(bounds, most=max(1, min(bounds.most, files // 4)))


def peer_of(transport: asyncio.BaseTransport | None) -> Peer | None:
    """Return the peer of a connection; None if it is no longer known."""
    name = None if transport is None else transport.get_extra_info("peername")
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else None


class Connections:
    """All connections of a server."""

    def __init__(self, bounds: ConnectionBounds = ConnectionBounds()) -> None:
        self.bounds = bounds
        self._all: dict[Peer, _Connection] = {}
        self._waiting: dict[Peer, _Connection] = {}
        """The connections that may be closed, in the order of their latest requests."""

    def __len__(self) -> int:
        """Return the number of connections."""
        return len(self._all)

    def guarded(self, inner: asyncio.Protocol, tls: ssl.SSLContext | None = None) -> asyncio.Protocol:
        """Return the protocol for a new connection, which passes the decrypted data on to `inner`.

        TLS starts here, rather than at the listening socket, so that clients which never finish the handshake
        are counted.
        """
        return _Connection(self, inner, tls)

    def head_received(self, peer: Peer | None) -> None:
        """Record that the head of a request is complete."""
        if peer in self._waiting:
            connection = self._waiting[peer] = self._waiting.pop(peer)
            connection.limit_time(self.bounds.answer_s)

    @contextmanager
    def exempting(self, peer: Peer | None) -> Iterator[None]:
        """Exempt a connection from the limits for the time of the context.

        The caller limits the number of such connections.
        """
        connection = self._waiting.pop(peer, None) if peer else None
        if connection is None:
            yield
            return
        connection.limit_time(None)
        try:
            yield
        finally:
            if self._all.get(connection.peer) is connection:
                self._waiting[connection.peer] = connection
                connection.limit_time(self.bounds.answer_s)

    def end(self, peer: Peer | None) -> None:
        """Close a connection at once; data that has not been sent yet is lost."""
        if peer in self._all:
            self._all[peer].end()

    def _add(self, connection: _Connection) -> None:
        self._all[connection.peer] = self._waiting[connection.peer] = connection
        connection.limit_time(self.bounds.first_s)
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
    """A protocol between the network and the protocol of a library, to which it passes all data."""

    def __init__(self, connections: Connections, inner: asyncio.Protocol, tls: ssl.SSLContext | None) -> None:
        self._connections, self._inner, self._tls = connections, inner, tls
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._is_connected = False
        """Whether the inner protocol has the connection."""
        self._early_data: list[bytes] = []
        """The data that arrived with the end of the handshake, before the inner protocol was ready."""
        self.peer: Peer = ("", 0)

    def limit_time(self, seconds: float | None) -> None:
        """Limit the remaining seconds of the connection, replacing any earlier limit; None for no limit."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self.end)

    def end(self) -> None:
        """Close the connection. Its file descriptor is closed in the next turn of the event loop."""
        self._unregister()
        self._transport.abort()

    def _unregister(self) -> None:
        self.limit_time(None)
        self._connections._remove(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, peer = transport, peer_of(transport)
        if peer is None:  # the peer has already disconnected
            transport.abort()
            return
        self.peer = peer
        self._connections._add(self)
        if transport.is_closing():
            return
        if self._tls is None:
            self._connect_inner(transport)
            return
        transport.pause_reading()
        self._handshake = asyncio.get_running_loop().create_task(self._encrypt(self._tls))

    async def _encrypt(self, tls: ssl.SSLContext) -> None:
        loop, first_s = asyncio.get_running_loop(), self._connections.bounds.first_s
        try:
            encrypted = await loop.start_tls(
                self._transport,
                self,
                tls,
                server_side=True,
                ssl_handshake_timeout=first_s,
                ssl_shutdown_timeout=first_s,
            )
        except OSError:  # the handshake was malformed or too slow, or either side has disconnected
            encrypted = None
        if encrypted is None:
            self.end()
            return
        if not self._transport.is_closing():
            self.limit_time(first_s)
            self._connect_inner(encrypted)

    def _connect_inner(self, transport: asyncio.BaseTransport) -> None:
        self._is_connected = True
        self._inner.connection_made(transport)
        for data in self._early_data:
            self._inner.data_received(data)
        self._early_data.clear()

    def data_received(self, data: bytes) -> None:
        if self._is_connected:
            self._inner.data_received(data)
        else:
            self._early_data.append(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._is_connected else None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unregister()
        if self._is_connected:
            self._inner.connection_lost(exc)
