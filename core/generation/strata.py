"""Which stratum of a stratified set may have another task, so that all get as equal a share as can be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Strata:
    """The strata of a campaign's candidates, in a fixed order; none if its set is not stratified.

    Each gets an equal share of the tasks, the first ones one more if it does not come out even. What a stratum that has
    no candidate left can't fill goes to the others.
    """

    names: tuple[str, ...] = ()
    fixed: Mapping[str, int] = field(default_factory=dict)
    """The tasks wanted of each stratum, if they are said; then nothing goes from one to another."""
    equal: bool = False
    """Whether no stratum may have more than another's share: nothing goes from one to another."""

    def share(self, stratum: str, count: int, kept: Mapping[str, int], exhausted: Collection[str] = ()) -> int:
        """Return how many of `count` tasks may be of this stratum.

        `kept` holds the tasks so far by stratum, `exhausted` the strata that have no candidate left.
        """
        if not self.names:
            return count
        if self.fixed:
            return self.fixed.get(stratum, 0)
        if self.equal:
            return count // len(self.names)
        if stratum in exhausted or stratum not in self.names:
            return kept.get(stratum, 0)
        left = [name for name in self.names if name not in exhausted]
        base, over = divmod(max(0, count - sum(kept.get(name, 0) for name in exhausted)), len(left))
        return base + (left.index(stratum) < over)

    def has_room(self, stratum: str, count: int, kept: Mapping[str, int], exhausted: Collection[str] = ()) -> bool:
        """Whether another task of this stratum may be kept, and so whether its candidates are worth a try."""
        return kept.get(stratum, 0) < self.share(stratum, count, kept, exhausted)


def in_turns(groups: Iterable[Sequence[T]]) -> list[T]:
    """Return the items of all groups: the first of each, then the second of each, and so on."""
    rows = zip_longest(*([(item,) for item in group] for group in groups), fillvalue=())
    return [item for row in rows for cell in row for item in cell]
