"""The index of a run: the byte ranges of its records, and the step that each record belongs to."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TypeAlias

from gistpoint.sessions.records.scanning import RawRecord

_NONE = 0xFFFFFFFF
"""Marks the last record of a step."""
Place: TypeAlias = tuple[int, int, int]
"""The member, start and end of a record."""


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """The progress of an index: bytes read, total bytes, steps found, and whether it is complete."""

    done: int
    total: int
    steps: int
    finished: bool


class StepIndex:
    """The records of each step, which need not be adjacent; it grows by one record at a time.

    The columns are arrays, so that a record takes few bytes (decision 5). Those from
    `_start` to `_owner` have an item for each record, and `_first` and `_last` have one for each step.
    """

    def __init__(self) -> None:
        self._start = array("Q")
        self._end = array("Q")
        self._member = array("I")
        self._next = array("I")
        self._owner = array("I")
        self._first = array("I")
        self._last = array("I")
        self._sorted = True
        self._shift_at = [0]
        self._shift_to = [0]
        self._numbers = 0
        self._joined = array("I")
        self._joined_to = array("I")

    @property
    def step_count(self) -> int:
        """The number of steps so far."""
        return len(self._first)

    @property
    def record_count(self) -> int:
        """The number of records so far."""
        return len(self._start)

    def add(self, record: RawRecord, step: int, *, numbered: bool | None = None) -> None:
        """Add a record to a step; a step number that does not exist yet begins the next step.

        `numbered` is true if the record has one of the numbers by which reviews refer to steps; by default,
        only the first record of a step has one.
        """
        number = len(self._start)
        if self._start:
            previous = (self._member[-1], self._start[-1])
            if (record.member, record.start) < previous:
                self._sorted = False
        self._start.append(record.start)
        self._end.append(record.end)
        self._member.append(record.member)
        self._next.append(_NONE)
        is_new_step = not 0 <= step < len(self._first)
        if is_new_step:
            step = len(self._first)
            self._first.append(number)
            self._last.append(number)
        else:
            self._next[self._last[step]] = number
            self._last[step] = number
        self._owner.append(step)
        self._count_number(step, numbered, first=self._first[step] == number)

    def _count_number(self, step: int, numbered: bool | None, *, first: bool) -> None:
        if first and self._shift_to[-1] != self._numbers - step:
            self._shift_at.append(step)
            self._shift_to.append(self._numbers - step)
        if numbered and not first:
            self._joined.append(self._numbers)
            self._joined_to.append(step)
        self._numbers += first if numbered is None else numbered

    @property
    def renumbered(self) -> bool:
        """Whether a step's number in reviews differs from its position."""
        return len(self._shift_at) > 1 or self._shift_to[0] != 0 or bool(self._joined)

    def number_of(self, step: int) -> int:
        """Return a step's number in reviews; an inserted step shares the number of the next one."""
        return step + self._shift_to[bisect_right(self._shift_at, step) - 1]

    def is_inserted(self, step: int) -> bool:
        """Return whether a step was inserted and therefore has no number."""
        following = self._numbers
        if step + 1 < self.step_count:
            following = self.number_of(step + 1)
        return following == self.number_of(step)

    def steps_with_number(self, number: int) -> range:
        """Return the steps with this number in reviews: inserted ones, then the step that owns the number.

        For steps that are not indexed yet, the result is a guess that assumes no insertions.
        """
        if number >= self._numbers:
            guess = self.step_count + number - self._numbers
            return range(guess, guess + 1)
        at = bisect_left(self._joined, number)
        if at < len(self._joined) and self._joined[at] == number:
            step = self._joined_to[at]
            return range(step, step + 1)
        steps = range(self.step_count)
        first = bisect_left(steps, number, key=self.number_of)
        end = bisect_right(steps, number, key=self.number_of)
        return range(first, end)

    def drop_last(self) -> None:
        """Remove the last record, which must be the only one of its step."""
        for values in (self._start, self._end, self._member, self._next, self._owner):
            values.pop()
        for values in (self._first, self._last):
            values.pop()
        self._numbers -= 1

    def records(self, step: int) -> list[Place]:
        """Return the member, start and end of each record of a step."""
        found: list[Place] = []
        at = self._first[step]
        while at != _NONE:
            found.append((self._member[at], self._start[at], self._end[at]))
            at = self._next[at]
        return found

    def record(self, number: int) -> tuple[int, int, int, int]:
        """Return the step of a record, and the record's member, start and end."""
        return self._owner[number], self._member[number], self._start[number], self._end[number]

    def stretch_at(self, member: int, offset: int) -> tuple[int | None, int]:
        """Return the step whose record contains a byte, and the offset up to which that holds.

        The step is None between records.
        """
        if not self._sorted:
            return self._step_by_scan(member, offset), offset + 1
        low, high = bisect_right(self._member, member - 1), bisect_right(self._member, member)
        number = bisect_right(self._start, offset, low, high) - 1
        if number < low or offset >= self._end[number]:
            return None, offset + 1
        end = self._end[number]
        if number + 1 < high:
            # Records may overlap, in which case the later record counts from its beginning.
            end = min(end, self._start[number + 1])
        return self._owner[number], end

    def _step_by_scan(self, member: int, offset: int) -> int | None:
        """Return the step whose record contains a byte, by looking at every record; None if there is none."""
        for number in range(len(self._start)):
            if self._member[number] == member and self._start[number] <= offset < self._end[number]:
                return self._owner[number]
        return None
