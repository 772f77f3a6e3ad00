"""Limits of the requests and tokens sent to a host in any minute, shared by all its conversations."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

WINDOW_S = 61.0
"""The seconds in a minute, plus one by which the network may delay a request."""
_OTHERS_S = 0.25
"""The minimum wait, in seconds, after which a request that is not the next one checks again."""


@dataclass(frozen=True, slots=True)
class MinuteLimits:
    """The maximum that may be sent in any minute; None for no limit."""

    requests: int | None = None
    tokens: int | None = None

    def __bool__(self) -> bool:
        return self.requests is not None or self.tokens is not None


@dataclass(eq=False)
class Charge:
    """One request: its tokens, estimated until its usage is known, and the time at which it was sent."""

    tokens: int
    at: float | None = None
    """When the request was sent; None before that."""


class MinuteWindow:
    """The requests of the last minute; thread-safe.

    Requests are sent in the order in which they joined, so that small ones don't hold up large ones.
    """

    def __init__(self, limits: MinuteLimits | None = None, now: Callable[[], float] = time.monotonic) -> None:
        """`now` returns seconds."""
        self.limits = limits or MinuteLimits()
        self._now = now
        self._lock = threading.Lock()
        self._waiting: deque[Charge] = deque()
        self._sent: deque[Charge] = deque()

    def join(self, tokens: int) -> Charge:
        """Add a request with this estimate of its tokens to the waiting ones, and return its charge.

        A request above the limit counts as the limit: it waits until no other request counts.
        """
        most = self.limits.tokens
        charge = Charge(tokens if most is None else min(tokens, most))
        with self._lock:
            self._waiting.append(charge)
        return charge

    def wait_s(self, charge: Charge) -> float:
        """Return 0 and count the request as sent now, or return the seconds until another try."""
        with self._lock:
            now = self._now()
            if not self.limits:
                self._waiting.remove(charge)
                return 0.0
            self._forget(now)
            seconds = self._until_free(self._waiting[0], now)
            if charge is not self._waiting[0]:
                return max(seconds, _OTHERS_S)
            if seconds > 0:
                return seconds
            self._waiting.popleft()
            charge.at = now
            self._sent.append(charge)
            return 0.0

    def leave(self, charge: Charge) -> None:
        """Remove a waiting request that will not be sent."""
        with self._lock:
            if charge in self._waiting:
                self._waiting.remove(charge)

    def withdraw(self, charge: Charge) -> None:
        """Remove a request that was counted as sent but was not sent after all."""
        with self._lock:
            if charge in self._sent:
                self._sent.remove(charge)

    def used(self, charge: Charge, tokens: int) -> None:
        """Replace the estimate of a request by its usage, which counts from the time of sending."""
        with self._lock:
            charge.tokens = tokens

    def _forget(self, now: float) -> None:
        while self._sent and self._ends(self._sent[0]) <= now:
            self._sent.popleft()

    def _ends(self, charge: Charge) -> float:
        return (charge.at or 0.0) + WINDOW_S

    def _until_free(self, charge: Charge, now: float) -> float:
        """Return the seconds until a charge fits; 0 if the charge fits now."""
        most_requests, most_tokens = self.limits.requests, self.limits.tokens
        requests = len(self._sent) + 1
        tokens = sum(sent.tokens for sent in self._sent) + charge.tokens
        free_at = now
        for sent in self._sent:
            fits = most_requests is None or requests <= most_requests
            if fits and (most_tokens is None or tokens <= most_tokens):
                break
            requests, tokens = requests - 1, tokens - sent.tokens
            free_at = self._ends(sent)
        return free_at - now
