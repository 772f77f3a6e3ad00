"""The ways in which a reply is requested: in pieces with usage, in pieces, or whole (decision 149)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gistpoint.sandbox.endpoints.hosts import Host

_REFUSALS = frozenset({400, 404, 405, 415, 422, 500, 501})
"""The statuses of servers that refuse a request because of `stream` or `stream_options`.

Older versions of llama.cpp's server answer 500: `Cannot use tools with stream`.
"""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to request a reply."""

    streamed: bool
    usage: bool = False
    """Whether usage is requested at the end of the stream."""

    @classmethod
    def of(cls, host: Host, *, whole: bool) -> Way:
        """Return the first way to try; `whole` if no stream is wanted."""
        streamed = not whole and not host.refuses_streams
        return cls(streamed, streamed and not host.refuses_usage)

    @property
    def members(self) -> dict[str, Any]:
        """The members of a request that ask for it."""
        if not self.streamed:
            return {}
        return {"stream": True, **({"stream_options": {"include_usage": True}} if self.usage else {})}

    def remember(self, host: Host) -> None:
        """Take note that the host answers this way, after it refused another."""
        if not self.streamed:
            host.refuses_streams = True
        elif not self.usage:
            host.refuses_usage = True


@dataclass(frozen=True, slots=True)
class AskAgain:
    """A refusal that names streaming, so that the request is sent another way."""

    way: Way


def refused_way(way: Way, status: int, body: str) -> Way | None:
    """Return another way to ask after a refusal; None if the refusal does not name the way."""
    words = body.lower()
    if not way.streamed or status not in _REFUSALS or "stream" not in words:
        return None
    only_usage = "stream_options" in words or "include_usage" in words
    return Way(streamed=True) if way.usage and only_usage else Way(streamed=False)
