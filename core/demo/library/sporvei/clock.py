"""Times of a service day, counted in minutes from its midnight.

A service day outlives the calendar's: a train that leaves at 23:50 arrives at 24:20, minute 1460.
Times on the day before are negative.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

DAY = 24 * 60
LATEST = 30 * 60

_TIME = re.compile(r"(\d{1,2}):([0-5]\d)")


class TimeError(ValueError):
    """A time, duration or window that can't be understood."""


def parse_time(text: str) -> int:
    """Read `7:05` or `24:20` as minutes; service days end before 30:00."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise TimeError(f"not a time: [{text}]")
    minutes = int(found[1]) * 60 + int(found[2])
    if minutes >= LATEST:
        raise TimeError(f"beyond the service day: [{text}]")
    return minutes


def format_time(minutes: int) -> str:
    """Write minutes as a clock shows them, `07:05`, with the day told when it's another: `00:20⁺¹`."""
    days, rest = divmod(minutes, DAY)
    sign = {-1: "⁻¹", 0: "", 1: "⁺¹"}[days]
    return f"{rest // 60:02}:{rest % 60:02}{sign}"


def format_duration(minutes: int) -> str:
    """Write minutes as `45m`, or as `2h05` from an hour on."""
    if minutes < 0:
        raise TimeError(f"a duration can't be negative: [{minutes}]")
    hours, rest = divmod(minutes, 60)
    return f"{hours}h{rest:02}" if hours else f"{rest}m"


def ticks(first: int, last: int, every: int) -> Iterator[int]:
    """Yield `first` and each time `every` minutes later, up to and including `last`."""
    if every <= 0:
        raise TimeError(f"trains can't follow every [{every}] minutes")
    tick = first
    while tick <= last:
        yield tick
        tick += every


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """A span of minutes from `start` until `end`, both included."""

    start: int
    end: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `07:00-09:30`; a window whose end is earlier than its start ends on the next day."""
        first, dash, second = text.replace("–", "-").partition("-")
        if not dash:
            raise TimeError(f"not a window: [{text}]")
        start, end = parse_time(first.strip()), parse_time(second.strip())
        return cls(start, end + DAY if end < start else end)

    def __contains__(self, minute: int) -> bool:
        return self.start <= minute <= self.end
