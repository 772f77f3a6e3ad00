"""What an operator is: a family of faults, how often it makes a good one, and where in a function it finds room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from gistpoint.core.corruption.edits import Edit
from gistpoint.core.corruption.subject import Subject

Edits: TypeAlias = tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """One way to corrupt a function. Several operators may belong to one family.

    `find` yields the edits of each corruption, in source order, and nothing that depends on a hash seed.
    """

    family: str
    prior: float
    """The share of good corruptions that is expected of it, 0 to 1, before any test has run."""
    find: Callable[[Subject], Iterator[Edits]]
