"""How many examples property tests try, by what `GISTPOINT_EXAMPLES` asks for (decision 66)."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any, TypeVar

from hypothesis import settings

Case = TypeVar("Case")
EXAMPLES = {"quick": 15, "gate": 100, "explore": 2000}
"""Of a property that asks for no number of its own: for the quick loop, for the gate, and for finding new
cases.
"""
CHOSEN = os.environ.get("GISTPOINT_EXAMPLES", "quick")


def load_profile() -> None:
    """Try the same examples every time, unless they are to explore; judge none by how long it takes."""
    for name, number in EXAMPLES.items():
        fixed = name != "explore"
        settings.register_profile(
            name, deadline=None, derandomize=fixed, max_examples=number, print_blob=not fixed
        )
    settings.load_profile(CHOSEN)


def share(number: int) -> int:
    """How many of the `number` cases that the gate tries are tried now."""
    return max(5, number * EXAMPLES[CHOSEN] // EXAMPLES["gate"])


def examples(number: int) -> Any:
    """Let the gate try `number` examples of a property, and the other profiles as many times fewer or more."""
    return settings(max_examples=share(number))


def sampled(cases: Collection[Case], most: int) -> list[Case]:
    """Return at most `most` of the cases that each start a sandbox, evenly spread; all of them with
    `explore`.
    """
    ordered = [*cases]
    if CHOSEN == "explore" or len(ordered) <= most:
        return ordered
    return [ordered[place * len(ordered) // most] for place in range(most)]


def at_the_gate(cases: Collection[Case]) -> list[Case]:
    """Return the cases that are tried at the gate alone, none in the quick loop.

    Each starts an app of its own to show once more what a case beside it shows (decision 133).
    """
    return [] if CHOSEN == "quick" else [*cases]
