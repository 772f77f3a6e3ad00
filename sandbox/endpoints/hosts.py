"""A process's knowledge of a host, shared by all its conversations with the host (decision 149)."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Callable
from urllib.parse import urlsplit

_LOCAL_NAMES = (".local", ".localhost", ".lan", ".internal", ".home.arpa")
_BUSY_WORDS = ("loading", "slot", "busy", "pending requests", "overloaded", "starting", "not ready", "warm")
"""The words with which servers report that they are loading a model, or that all slots are taken.

llama.cpp: `Loading model`, `no slot available`; Ollama: `server busy, please try again.  maximum pending
requests exceeded`; text-generation-inference: `Model is overloaded`.
"""


def is_local(place: str) -> bool:
    """Whether a host, given with or without a port, is on this machine or in a private network."""
    try:
        name = urlsplit(f"//{place}").hostname or ""
        address = ipaddress.ip_address(name)
    except ValueError:
        name = place.rpartition(":")[0] or place
        return "." not in name or name.lower().endswith(_LOCAL_NAMES)
    return address.is_private or address.is_loopback or address.is_link_local


def is_busy(status: int, words: str) -> bool:
    """Whether an answer means that the host works and will accept requests again after a while."""
    return status == 503 and any(word in words.lower() for word in _BUSY_WORDS)


class Host:
    """What is known about a host from its requests; thread-safe."""

    def __init__(self, place: str = "", now: Callable[[], float] = time.monotonic) -> None:
        """`place` is the host and its port; `now` returns seconds."""
        self.is_local = is_local(place)
        self.now = now
        self.last_byte_at = float("-inf")
        """When a byte of any reply was last received."""
        self.refuses_usage = False
        """Whether it refuses a request for usage at the end of a stream."""
        self.refuses_streams = False
        self._left: set[threading.Event] = set()
        self._lock = threading.Lock()

    def given_up(self, closed: threading.Event) -> None:
        """Remember a request whose reply was given up; `closed` is set once its connection is closed."""
        with self._lock:
            self._left.add(closed)

    @property
    def still_works(self) -> bool:
        """Whether the host may still be working on a request that was given up.

        It may be until it closes the connection, after noticing that the client has gone.
        """
        with self._lock:
            self._left = {closed for closed in self._left if not closed.is_set()}
            return bool(self._left)
