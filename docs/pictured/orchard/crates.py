"""Crates of fruit, packed by weight."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Crate:
    """A crate with the weights of what is in it, in grams."""

    limit: int
    weights: list[int] = field(default_factory=list)

    @property
    def load(self) -> int:
        """Everything in it."""
        return sum(self.weights)

    def has_room_for(self, weight: int) -> bool:
        """Tell whether one more fits."""
        return self.load + weight <= self.limit


def pack(weights: Iterable[int], limit: int) -> list[Crate]:
    """Pack weights into crates in the order of picking; a crate that is full is closed."""
    crates = [Crate(limit)]
    for weight in weights:
        if weight > limit:
            raise ValueError(f"{weight} g fit into no crate of {limit} g.")
        if not crates[-1].has_room_for(weight):
            crates.append(Crate(limit))
        crates[-1].weights.append(weight)
    return crates


def heaviest(crates: Iterable[Crate]) -> int:
    """Return the load of the heaviest crate."""
    return max((crate.load for crate in crates), default=0)
