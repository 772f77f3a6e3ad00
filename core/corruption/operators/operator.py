"""An operator: a family of faults, its rate of good corruptions, and the places in a function that it applies
to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.subject import CorruptionTarget

Edits: TypeAlias = tuple[TextEdit, ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """One way to corrupt a function. Several operators may belong to one family.

    `find` yields the edits of each corruption, in source order, and nothing that depends on a hash seed.
    """

    family: str
    prior: float
    """How well a reader is expected to miss it, 0 to 1: a judgement from blind readings.

    Decision 93 has the figures. A new operator starts with a guess, such as that of its family. The prior
    decides which corruptions are tried first, never which are kept.
    """
    find: Callable[[CorruptionTarget], Iterator[Edits]]
    in_rewritten: bool = False
    """Whether its faults are also made in code that was rewritten to mean the same."""
