"""All operations known, by subject and person, each folded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from gistpoint.sessions.sidefiles.lines import Said

Op = TypeVar("Op", bound=Said)
State = TypeVar("State")


class Book(Generic[Op, State]):
    """A set of operations. What they amount to depends on the set, not on its order."""

    def __init__(self, fold: Callable[[str, str, Iterable[Op]], State], operations: Iterable[Op] = ()) -> None:
        """`fold` takes a subject, a person and that person's operations on it."""
        self._fold = fold
        self._operations: dict[str, Op] = {}
        self._places: dict[tuple[str, str], dict[str, Op]] = {}
        self._folded: dict[tuple[str, str], State] = {}
        self._latest: dict[str, int] = {}
        for operation in operations:
            self.add(operation)

    def add(self, operation: Op) -> bool:
        """Take in one more; False where one with its uuid is known already."""
        if operation.op in self._operations:
            return False
        self._operations[operation.op] = operation
        place = (operation.subject, operation.reviewer)
        self._places.setdefault(place, {})[operation.op] = operation
        self._folded.pop(place, None)
        self._latest[operation.reviewer] = max(self.latest_ms(operation.reviewer), operation.utc_ms)
        return True

    def latest_ms(self, reviewer: str) -> int:
        """Return the time of a person's last operation, 0 where there is none."""
        return self._latest.get(reviewer, 0)

    def get(self, op: str) -> Op | None:
        """Return the operation with a uuid."""
        return self._operations.get(op)

    @property
    def operations(self) -> tuple[Op, ...]:
        """Every operation, in the order of their times."""
        return tuple(sorted(self._operations.values(), key=in_time))

    @property
    def reviewers(self) -> tuple[str, ...]:
        """Everybody who has said something."""
        return tuple(sorted({reviewer for _, reviewer in self._places}))

    @property
    def subjects(self) -> tuple[str, ...]:
        """Everything that something was said about."""
        return tuple(sorted({subject for subject, _ in self._places}))

    def state(self, subject: str, reviewer: str) -> State:
        """Return what a person has said about a subject, which may be nothing."""
        place = (subject, reviewer)
        if place not in self._folded:
            self._folded[place] = self._fold(subject, reviewer, self._places.get(place, {}).values())
        return self._folded[place]

    def states(self) -> Iterator[State]:
        """Yield what was said, by subject and person."""
        for subject, reviewer in sorted(self._places):
            yield self.state(subject, reviewer)


def in_time(operation: Said) -> tuple[int, str]:
    """Return what operations are ordered by."""
    return operation.utc_ms, operation.op
