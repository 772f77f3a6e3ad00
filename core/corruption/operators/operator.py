"""Defines an operator: a family of faults, the rate at which readers miss them, and where they apply."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import TypeAlias

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.shapes import Node
from gistpoint.core.corruption.subject import CorruptionTarget

Edits: TypeAlias = tuple[TextEdit, ...]
Find: TypeAlias = Callable[[CorruptionTarget], Iterator[Edits]]
"""Yields the edits of each corruption of a function."""


def at_each(*kinds: type[Node]) -> Callable[[Callable[[CorruptionTarget, Node], Iterator[Edits]]], Find]:
    """Return a decorator that applies a function to each node of these types, in source order."""

    def decorate(find_at: Callable[[CorruptionTarget, Node], Iterator[Edits]]) -> Find:
        @wraps(find_at)
        def find(subject: CorruptionTarget) -> Iterator[Edits]:
            for node in subject.of(kinds):
                yield from find_at(subject, node)

        return find

    return decorate


@dataclass(frozen=True, slots=True)
class Operator:
    """One way to corrupt a function; several operators may belong to one family.

    `find` yields the edits of each corruption in source order, and nothing that depends on the hash seed.
    """

    family: str
    prior: float
    """The probability that a reader misses the fault, from 0 to 1, judged from blind readings.

    Decision 93 has the figures. A new operator starts with a guess, such as that of its family. The prior
    decides which corruptions are tried first, never which ones are kept.
    """
    find: Find
    in_rewritten: bool = False
    """Whether its faults are also made in code that was rewritten without changing its meaning."""
