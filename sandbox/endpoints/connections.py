"""The connection of one request, which another thread watches and ends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from gistpoint.sandbox.endpoints.hosts import Host

_CONNECTED = ("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")
_RECEIVED = "receive_response_headers.complete"
_KEPT_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""The keep-alive settings, in seconds and tries, that reveal a host's disappearance, where supported."""


class Connection:
    """The connection of one request: its socket, once there is one, and when its last byte arrived."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._how: int | None = None
        """How the connection is to be shut down; None until `cut` or `leave` is called."""
        self.began_at = self.last_byte_at = host.now()
        self.reply_began = False
        """Whether the reply itself has begun, after headers and comments."""
        self.abandoned = threading.Event()
        """Set once nobody waits for the reply."""
        self.closed = threading.Event()
        """Set once the request has ended, whoever ended it."""

    def trace(self, name: str, info: Mapping[str, Any]) -> None:
        """Record a step of the request, as the HTTP library reports it."""
        if name.endswith(_CONNECTED):
            stream = info.get("return_value")
            found = stream.get_extra_info("socket") if stream is not None else None
            if isinstance(found, socket.socket):
                _keep_alive(found)
                with self._lock:
                    self._socket = found
                self._shut()
        elif name.endswith(_RECEIVED):
            self.byte_arrived()

    def byte_arrived(self) -> None:
        """Record the arrival of a byte."""
        self.last_byte_at = self._host.last_byte_at = self._host.now()

    def began(self) -> None:
        """Record that the reply itself has begun."""
        self.reply_began = True

    def silent_s(self) -> float:
        """Return the seconds since the last byte.

        Before the reply has begun, a byte in any other conversation counts too if the host is local, because
        it may be working on that request first (decision 149).
        """
        last = self.last_byte_at
        if not self.reply_began and self._host.is_local:
            last = max(last, self._host.last_byte_at)
        return self._host.now() - last

    def cut(self) -> None:
        """End the connection at once, in both directions."""
        self._end(socket.SHUT_RDWR)

    def leave(self) -> None:
        """Tell the host that the client has gone, and let the host close the connection."""
        self._end(socket.SHUT_WR)

    def _end(self, how: int) -> None:
        self.abandoned.set()
        with self._lock:
            self._how = how
        self._shut()

    def _shut(self) -> None:
        with self._lock:
            if self._socket is not None and self._how is not None:
                with suppress(OSError):  # the other side has closed it
                    # Not the method of a TLS socket, because that would first discard the session.
                    socket.socket.shutdown(self._socket, self._how)


def _keep_alive(found: socket.socket) -> None:
    with suppress(OSError):
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEPT_ALIVE.items():
            option = getattr(socket, name, None)
            if option is not None:
                found.setsockopt(socket.IPPROTO_TCP, option, value)
