"""The times that an attempt spent on its endpoint, added up event by event while its journal is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gistpoint.core.agents.scaffolds import covered
from gistpoint.core.attempts.events import (
    JournalEvent,
    ModelTurn,
    Paused,
    PauseReason,
    ProcessStarted,
    Resumed,
)


@dataclass
class EndpointTimes:
    """How long an attempt waited for replies and for permission to send requests, in milliseconds."""

    waited_ms: int = 0
    """The time spent waiting to send a request, after a failed request or because of a limit."""
    _ended_ms: int = 0
    """The model's time in the processes before the present one, because each process has its own clock."""
    _replies: list[tuple[int, int]] = field(default_factory=list)
    """The times of each request and its reply in the present process."""
    _waits_since: int | None = None

    @classmethod
    def of(cls, events: Iterable[JournalEvent]) -> EndpointTimes:
        """Return the times of these events."""
        times = cls()
        for event in events:
            times.take(event)
        return times

    @property
    def model_ms(self) -> int:
        """The milliseconds between requests and their replies; simultaneous requests count once."""
        return self._ended_ms + covered(self._replies)

    def take(self, event: JournalEvent) -> None:
        """Add the next event of the journal."""
        match event.data:
            case ModelTurn(latency_ms=latency):
                self._replies.append((event.mono_ms - latency, event.mono_ms))
            case Paused(reason=PauseReason.ENDPOINT_WAIT):
                self._waits_since = event.mono_ms
            case Resumed() if self._waits_since is not None:
                self.waited_ms += event.mono_ms - self._waits_since
                self._waits_since = None
            case ProcessStarted():
                self._ended_ms, self._replies, self._waits_since = self.model_ms, [], None
