"""A journal in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gistpoint.core.attempts.events import Event
from gistpoint.core.ports import TimeSource


@dataclass
class Memory:
    """Keeps events in a list; `dies_at` lets it raise instead of writing the event of that number."""

    clock: TimeSource
    events: list[Event] = field(default_factory=list)
    dies_at: int = 0

    def append(self, type: str, data: Mapping[str, Any], *, durable: bool = True) -> Event:
        if self.dies_at and len(self.events) + 1 >= self.dies_at:
            raise KeyboardInterrupt
        event = Event(len(self.events) + 1, type, self.clock.utc_ms(), self.clock.mono_ms(), dict(data))
        self.events.append(event)
        return event
