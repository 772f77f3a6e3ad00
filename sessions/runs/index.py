"""Which records make which step: 25 bytes a record, whatever the size of the file."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from gistpoint.sessions.runs.scanning import Record

_NONE = 0xFFFFFFFF


class StepIndex:
    """Grows by records; a step's records need not stand side by side."""

    def __init__(self) -> None:
        self._start = array("Q")
        self._end = array("Q")
        self._member = array("I")
        self._next = array("I")
        self._owner = array("I")
        self._first = array("I")
        self._last = array("I")
        self._count = array("I")
        self._sorted = True

    @property
    def step_count(self) -> int:
        """Steps so far."""
        return len(self._first)

    @property
    def record_count(self) -> int:
        """Records so far."""
        return len(self._start)

    def add(self, record: Record, step: int) -> None:
        """Add a record to a step; a number beyond the last begins the next one."""
        number = len(self._start)
        if self._start and (record.member, record.start) < (self._member[-1], self._start[-1]):
            self._sorted = False
        self._start.append(record.start)
        self._end.append(record.end)
        self._member.append(record.member)
        self._next.append(_NONE)
        if not 0 <= step < len(self._first):
            step = len(self._first)
            self._first.append(number)
            self._last.append(number)
            self._count.append(1)
        else:
            self._next[self._last[step]] = number
            self._last[step] = number
            self._count[step] += 1
        self._owner.append(step)

    def drop_last(self) -> None:
        """Forget the last record, which must be a step of its own."""
        for values in (self._start, self._end, self._member, self._next, self._owner):
            values.pop()
        for values in (self._first, self._last, self._count):
            values.pop()

    def records_in(self, step: int) -> int:
        """Return how many records a step has by now."""
        return self._count[step]

    def records(self, step: int) -> list[tuple[int, int, int]]:
        """Return member, start and end of each record of a step."""
        found: list[tuple[int, int, int]] = []
        at = self._first[step]
        while at != _NONE:
            found.append((self._member[at], self._start[at], self._end[at]))
            at = self._next[at]
        return found

    def step_at(self, member: int, offset: int) -> int | None:
        """Return the step whose record holds a byte, None between records."""
        if not self._sorted:
            matches = (
                n
                for n in range(len(self._start))
                if self._member[n] == member and self._start[n] <= offset < self._end[n]
            )
            number = next(matches, None)
            return None if number is None else self._owner[number]
        low, high = bisect_right(self._member, member - 1), bisect_right(self._member, member)
        number = bisect_right(self._start, offset, low, high) - 1
        if number < low or offset >= self._end[number]:
            return None
        return self._owner[number]
