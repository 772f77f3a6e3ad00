"""One request through a vendor's own API, and the received part of its reply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gistpoint.core.chat import Usage
from gistpoint.sandbox.endpoints.receiving import Received


@dataclass(frozen=True, slots=True)
class NativeExchange:
    """One request, and the received part of its reply."""

    body: dict[str, Any]
    sent: int
    """The length of the request in characters."""
    received: Received
    usage_of: Callable[[object, int, int], Usage]
    streamed: bool
    """Whether the reply is requested in pieces."""

    def lost(self) -> Usage:
        """Return the minimum usage of a request whose reply was lost.

        Counts that were not reported are estimated from the lengths of the request and of the part received.
        """
        return self.usage_of(self.received.usage, self.sent, self.received.characters)
