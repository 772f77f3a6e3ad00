"""How many examples property tests try, according to `GISTPOINT_EXAMPLES` (decision 66)."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any, TypeVar

from hypothesis import settings

Case = TypeVar("Case")
Size = tuple[int, int]
EXAMPLES = {"quick": 15, "gate": 100, "explore": 2000}
"""The number of examples by profile, for properties without their own; `explore` searches for new cases."""
CHOSEN = os.environ.get("GISTPOINT_EXAMPLES", "quick")


def load_profile() -> None:
    """Load the chosen profile: no deadlines, and the same examples each time except with `explore`."""
    for name, number in EXAMPLES.items():
        fixed = name != "explore"
        settings.register_profile(
            name, deadline=None, derandomize=fixed, max_examples=number, print_blob=not fixed
        )
    settings.load_profile(CHOSEN)


def share(number: int) -> int:
    """Return how many of the gate's `number` cases the chosen profile tries, but at least 5."""
    return max(5, number * EXAMPLES[CHOSEN] // EXAMPLES["gate"])


def examples(number: int) -> Any:
    """Return settings under which the gate tries `number` examples; other profiles scale that number."""
    return settings(max_examples=share(number))


def sampled(cases: Collection[Case], most: int) -> list[Case]:
    """Return at most `most` of the cases, evenly spread; with `explore` all of them.

    This is for cases that each start a sandbox.
    """
    ordered = [*cases]
    if CHOSEN == "explore" or len(ordered) <= most:
        return ordered
    return [ordered[place * len(ordered) // most] for place in range(most)]


def at_the_gate(cases: Collection[Case]) -> list[Case]:
    """Return the cases, or none in the quick loop.

    Each of these cases starts an app to confirm something that a related case also tests (decision 133).
    """
    return [] if CHOSEN == "quick" else [*cases]


def at_sizes(first: Size, *others: Size) -> list[Size]:
    """Return the terminal sizes at which a screen is tried; the quick loop tries only the first."""
    return [first, *at_the_gate(others)]
