"""All operators: those that come with gistpoint and those that other packages declare."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from gistpoint.core.corruption.operators.operator import Operator
from gistpoint.core.plugins import declared, instance_of, load

GROUP = "gistpoint.operators"
"""The entry-point group: each entry names one `Operator`, or a sequence of them."""

_MODULES = (
    "comparisons",
    "conditions",
    "branches",
    "statements",
    "numbers",
    "exceptions",
    "copies",
    "iteration",
    "defaults",
    "guards",
    "matching",
    "fallbacks",
    "scopes",
    "omissions",
    "idioms",
)
"""The modules of gistpoint's operators.

A new module defines `OPERATORS`, and its name is appended to this list: if two operators with the same prior
produce the same text, the record names the first one.
"""

BUILT_IN: tuple[Operator, ...] = tuple(
    operator
    for name in _MODULES
    for operator in import_module(f"gistpoint.core.corruption.operators.{name}").OPERATORS
)


def fault_of_operator(loaded: Any) -> str:
    """Return why an object is neither an operator nor a sequence of them, in a few words; empty if it is."""
    several = loaded if isinstance(loaded, Sequence) else (loaded,)
    return next(filter(None, map(instance_of(Operator), several)), "")


@cache
def all_operators() -> tuple[Operator, ...]:
    """Return the built-in operators, then those of installed packages, sorted by the names of their entries.

    Raises `PluginError` if one can't be loaded, because the tasks would be different without it.
    """
    # Built-in operators come first: if two with the same prior produce the same text, the record names the
    # first.
    added: list[Operator] = []
    for entry in declared(GROUP):
        loaded: Operator | Iterable[Operator] = load(entry, fault_of_operator)
        added += [loaded] if isinstance(loaded, Operator) else loaded
    return (*BUILT_IN, *added)
