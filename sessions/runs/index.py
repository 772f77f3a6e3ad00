"""Which records make which step: 25 bytes a record, whatever the size of the file.

Reviews know a step by a number that does not change when a format learns to show more. A step that was put in since
takes none: it is known by the number of the step that follows it and by its own id. A record that has been joined to
another step since keeps its number, which leads to that step.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

from gistpoint.core.diffs import DiffError, FileDiff, LineKind, apply, compute
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
        self._shift_at = [0]
        self._shift_to = [0]
        self._numbers = 0
        self._joined = array("I")
        self._joined_to = array("I")

    @property
    def step_count(self) -> int:
        """Steps so far."""
        return len(self._first)

    @property
    def record_count(self) -> int:
        """Records so far."""
        return len(self._start)

    def add(self, record: Record, step: int, *, numbered: bool | None = None) -> None:
        """Add a record to a step; a number beyond the last begins the next one.

        `numbered` says whether the record takes a number of those that reviews know steps by; the first of a step
        does.
        """
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
        """Whether a step is known by another number than its place."""
        return len(self._shift_at) > 1 or self._shift_to[0] != 0 or bool(self._joined)

    def number_of(self, step: int) -> int:
        """Return the number that reviews know a step by; that of the next one for a step that was put in."""
        return step + self._shift_to[bisect_right(self._shift_at, step) - 1]

    def was_put_in(self, step: int) -> bool:
        """Whether a step takes no number."""
        following = self.number_of(step + 1) if step + 1 < self.step_count else self._numbers
        return following == self.number_of(step)

    def numbered(self, number: int) -> range:
        """Return the steps known by a number: those that were put in before it, and last the step that takes it.

        Beyond the steps that are known by now it is a guess: nothing else put in.
        """
        if number >= self._numbers:
            guess = self.step_count + number - self._numbers
            return range(guess, guess + 1)
        at = bisect_left(self._joined, number)
        if at < len(self._joined) and self._joined[at] == number:
            return range(self._joined_to[at], self._joined_to[at] + 1)
        steps = range(self.step_count)
        return range(bisect_left(steps, number, key=self.number_of), bisect_right(steps, number, key=self.number_of))

    def drop_last(self) -> None:
        """Forget the last record, which must be a step of its own."""
        for values in (self._start, self._end, self._member, self._next, self._owner):
            values.pop()
        for values in (self._first, self._last, self._count):
            values.pop()
        self._numbers -= 1

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


_UNKNOWN_LINE = "\0"


def between(before: FileDiff | None, after: FileDiff | None) -> FileDiff | None:
    """Return how the file after `after` differs from the file after `before`; None where it does not.

    Both are applied to what they tell of the start, with a placeholder for each line that neither shows: lines that
    changed from one to the other, and three around them, are in one of the two. Where they contradict each other,
    `after` itself is returned.
    """
    if before == after:
        return None
    known = [diff for diff in (before, after) if diff is not None]
    if any(diff.binary for diff in known):
        return known[-1]
    try:
        start = _start(known)
        old = start if before is None else apply(start, before)
        new = start if after is None else apply(start, after)
    except DiffError:
        return known[-1]
    first, last = known[0], known[-1]
    old_path = first.old_path if before is None else before.new_path
    new_path = last.old_path if after is None else after.new_path
    found = compute(old, new, old_path=old_path, new_path=new_path)
    return found if found.hunks or old_path != new_path else None


def _start(diffs: list[FileDiff]) -> str:
    lines: dict[int, str] = {}
    end = 0
    for diff in diffs:
        for hunk in diff.hunks:
            # Without old lines, the hunk stands behind the line that it names.
            end = max(end, hunk.old_start + hunk.old_count - 1, hunk.old_start)
            for line in hunk.lines:
                if line.old is not None and line.kind is not LineKind.ADDED:
                    lines[line.old] = line.text + ("\n" if line.newline else "")
    if end > 1_000_000:
        raise DiffError("The diff speaks of more lines than files have.")
    return "".join(lines.get(number, _UNKNOWN_LINE + "\n") for number in range(1, end + 1))
