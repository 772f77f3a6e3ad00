"""How subtle a corruption is, from what the tests showed: a number from 0 to 1 and the parts that it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

from gistpoint.core.corruption.evidence import FEW_FAILING, Evidence

WEIGHTS: Mapping[str, float] = {
    "band": 0.2,
    "assertion": 0.2,
    "outside": 0.2,
    "distance": 0.1,
    "selective": 0.1,
    "unnamed": 0.05,
    "rank": 0.1,
    "messages": 0.025,
    "small": 0.025,
}
"""What each part counts for; together 1. Why these: docs/decisions/0091-subtlety.md."""
_FAR = 5
"""A way of so many steps from the test to the function is as far as matters."""
_LOW_RANK = 10.0
"""A place in the localisation beyond which nobody looks."""


@dataclass(frozen=True, slots=True)
class Subtlety:
    """A score with its parts, each from 0 (gives itself away) to 1."""

    value: float
    parts: Mapping[str, float]


def subtlety(evidence: Evidence, least: int = FEW_FAILING[0], most: int = FEW_FAILING[1]) -> Subtlety:
    """Return how subtle a corruption is: the weighted mean of its parts, 0 where no test fails.

    `least` and `most` are the band of failing tests that is aimed at. docs/guide/corruptions.md explains each part.
    """
    failing = evidence.failing
    if failing == 0:
        return Subtlety(0.0, dict.fromkeys(WEIGHTS, 0.0))
    parts = {
        "band": _band(failing, least, most),
        "assertion": evidence.by_assertion / failing,
        "outside": 1 - evidence.through_target / failing,
        "distance": _distance(evidence.distances),
        "selective": _selective(failing, evidence.entering),
        "unnamed": 1 - min(evidence.own_tests / failing, 1.0),
        "rank": _rank(evidence.rank),
        "messages": min(evidence.messages / min(failing, 3), 1.0),
        "small": 1 / max(evidence.changed_lines, 1),
    }
    rounded = {name: round(value, 4) for name, value in parts.items()}
    return Subtlety(round(sum(WEIGHTS[name] * value for name, value in parts.items()), 4), rounded)


def _band(failing: int, least: int, most: int) -> float:
    """1 inside of the band; below it in proportion, above it falling by the logarithm to 0 at eight times its end."""
    if failing < least:
        return failing / least / 2
    return 1.0 if failing <= most else max(0.0, 1 - log(failing / most) / log(8))


def _distance(distances: tuple[int | None, ...]) -> float:
    """The mean of the known ones, one step counting as 0 and `_FAR` as 1; one half where none is known."""
    known = [min(max(steps - 1, 0), _FAR - 1) / (_FAR - 1) for steps in distances if steps is not None]
    return sum(known) / len(known) if known else 0.5


def _selective(failing: int, entering: int) -> float:
    """1 where at most half of the tests that enter the function fail: then the fault depends on the input."""
    share = failing / max(entering, failing)
    return min(2 * (1 - share), 1.0)


def _rank(rank: float | None) -> float:
    """0 for the first place of a localisation, 1 from the tenth on; one half where it is not known."""
    return 0.5 if rank is None else min(log(max(rank, 1.0)) / log(_LOW_RANK), 1.0)
