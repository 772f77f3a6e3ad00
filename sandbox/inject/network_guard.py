"""Refuses what leads out of the machine, and tells of each attempt: the same everywhere, whatever the isolation.

Loopback addresses and sockets of the file system stay open. What a child process or native code does is beyond it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

_NAMES = {"socket.getaddrinfo": 0, "socket.gethostbyname": 0, "socket.gethostbyaddr": 0}
_ADDRESSES = {"socket.connect": 1, "socket.sendto": 1}
_AGAIN, _UNREACHABLE = -3, 101


class NetworkGuard:
    """Raises what an isolated run would raise: no name resolves, and no network is reachable."""

    def __init__(self, report: Callable[[str, str], None]) -> None:
        self._report = report
        self._told: set[str] = set()
        self._own = {"localhost", "", "0.0.0.0", "::", "::1", "ip6-localhost", os.uname().nodename}

    def install(self) -> NetworkGuard:
        """Begin to refuse, for good."""
        sys.addaudithook(self._audit)
        return self

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _NAMES:
            host = arguments[_NAMES[event]]
            if not self._is_local(host) and not _is_number(host):
                self._tell(host)
                raise sys.modules["_socket"].gaierror(_AGAIN, "Temporary failure in name resolution")
        elif event in _ADDRESSES:
            address = arguments[_ADDRESSES[event]]
            if isinstance(address, tuple) and address and not self._is_local(address[0]):
                self._tell(address[0])
                raise OSError(_UNREACHABLE, "Network is unreachable")

    def _is_local(self, host: object) -> bool:
        text = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        if not isinstance(text, str):
            return True
        return text.lower() in self._own or text.startswith("127.")

    def _tell(self, host: object) -> None:
        text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
        if text not in self._told:
            self._told.add(text)
            self._report("network", text)


def _is_number(host: object) -> bool:
    """Whether a name is an address already, which needs no network to be resolved."""
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    return ":" in text or not text.strip("0123456789.")
