"""A journal in memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from gistpoint.core.attempts.events import EventData, JournalEvent, event_data
from gistpoint.core.ports import TimeSource


@dataclass
class Memory:
    """Keeps events in a list. From event number `dies_at` on, raises `KeyboardInterrupt` instead."""

    clock: TimeSource
    events: list[JournalEvent] = field(default_factory=list)
    dies_at: int = 0

    def append(self, data: EventData) -> JournalEvent:
        if self.dies_at and len(self.events) + 1 >= self.dies_at:
            raise KeyboardInterrupt
        event = JournalEvent(len(self.events) + 1, data.type, self.clock.utc_ms(), self.clock.mono_ms(), data)
        self.events.append(event)
        return event

    def change(self, number: int, **members: Any) -> None:
        """Rewrite an event as another version would write it, with other members; None removes a member."""
        event = self.events[number]
        data = {name: value for name, value in (event.data.written() | members).items() if value is not None}
        self.events[number] = replace(event, data=event_data(event.type, data))
