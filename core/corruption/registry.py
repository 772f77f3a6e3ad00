"""All operators: those that come with gistpoint and those that other packages declare."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points

from gistpoint.core.corruption.operators import (
    branches,
    comparisons,
    conditions,
    copies,
    defaults,
    exceptions,
    iteration,
    numbers,
    siblings,
    statements,
)
from gistpoint.core.corruption.operators.operator import Operator

GROUP = "gistpoint.operators"
"""The entry-point group: each entry names one `Operator`, or a sequence of them."""

BUILT_IN: tuple[Operator, ...] = (
    *comparisons.OPERATORS,
    *conditions.OPERATORS,
    *branches.OPERATORS,
    *statements.OPERATORS,
    *numbers.OPERATORS,
    *exceptions.OPERATORS,
    *copies.OPERATORS,
    *iteration.OPERATORS,
    *defaults.OPERATORS,
    *siblings.OPERATORS,
)


@cache
def all_operators() -> tuple[Operator, ...]:
    """Return the built-in operators, then those of installed packages by the names of their entries."""
    added: list[Operator] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        loaded: Operator | Iterable[Operator] = entry.load()
        added += [loaded] if isinstance(loaded, Operator) else loaded
    return (*BUILT_IN, *added)
