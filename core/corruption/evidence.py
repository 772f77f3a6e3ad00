"""The evidence of the tests on a corruption: whether it is good, and how subtle it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log, sqrt
from typing import Protocol

from gistpoint.core.corruption.naming import words

FEW_FAILING = (2, 15)
"""The minimum and maximum numbers of failing tests of a corruption that is hard to see."""
MORE_FAILING = (5, 40)
"""The minimum and maximum numbers of failing tests if a task needs at least five of them."""
ANY_FAILING = (1, MORE_FAILING[1])
"""The minimum and maximum numbers of failing tests if one of them is enough."""


class EnteredFunctions(Protocol):
    """The tests that enter each function, by `path::qualname`."""

    @property
    def entered(self) -> Mapping[str, frozenset[str]]:
        """The ids of the tests that enter each function."""
        ...


@dataclass(frozen=True, slots=True)
class Evidence:
    """The failures on the corrupted tree, among the tests that pass on the original."""

    failing: int
    by_assertion: int
    """The number of failing tests that fail by an assertion, not by another exception."""
    through_target: int
    """The number of failing tests whose traceback leads through the corrupted function."""
    entering: int
    """The number of tests that enter the function at all."""
    distances: tuple[int | None, ...] = ()
    """The steps in the call graph from each failing test to the function; None if no path is known."""
    own_tests: int = 0
    """The number of failing tests that are named after the function."""
    rank: float | None = None
    """The function's rank in a spectrum-based localisation, counted from 1; None if unknown."""
    messages: int = 0
    """The number of different messages of the failures."""
    changed_lines: int = 0


def band(min_failing: int) -> tuple[int, int]:
    """Return the bounds on the number of failing tests of a good corruption, given a task's minimum."""
    if min_failing == ANY_FAILING[0]:
        return ANY_FAILING
    least, most = MORE_FAILING if min_failing >= MORE_FAILING[0] else FEW_FAILING
    return max(least, min_failing), max(most, 4 * min_failing)


def is_good(evidence: Evidence, least: int = FEW_FAILING[0], most: int = FEW_FAILING[1]) -> bool:
    """Return whether a corruption is good.

    The number of failing tests must be from `least` to `most`. At least half of them must fail by an
    assertion, and at most half may have a traceback that leads through the corrupted function.
    """
    failing = evidence.failing
    # A corruption must first be good; the score only ranks good ones (decision 31).
    if not least <= failing <= most:
        return False
    return 2 * evidence.by_assertion >= failing and 2 * evidence.through_target <= failing


def ochiai_rank(function: str, failing_ids: Iterable[str], test_map: EnteredFunctions) -> float | None:
    """Return a function's rank among all functions by Ochiai's suspiciousness, 1 for the most suspicious.

    Suspiciousness is e / sqrt(f * n): `e` is the number of failing tests that enter the function, `f` the
    number of all failing tests, and `n` the number of all tests that enter the function (Abreu, Zoeteweij,
    van Gemund, 2007). Functions with the same value share the mean of their ranks. None if no failing test
    enters the function.
    """
    failing = frozenset(failing_ids)
    own = _ochiai(test_map.entered.get(function, frozenset()), failing)
    if own == 0:
        return None
    values = [_ochiai(tests, failing) for tests in test_map.entered.values()]
    above = sum(value > own for value in values)
    return above + (1 + sum(value == own for value in values)) / 2


def _ochiai(entering: frozenset[str], failing: frozenset[str]) -> float:
    both = len(entering & failing)
    return both / sqrt(len(failing) * len(entering)) if both else 0.0


def is_own_test(function: str, test_id: str) -> bool:
    """Return whether a test is named after a function, so that its name reveals where to look.

    This is the case if the test's name contains all words of the function's name or, for a special method, of
    the name of its class.
    """
    qualname = function.rpartition("::")[2].partition("#")[0]
    parts = [part for part in qualname.split(".") if part != "<locals>"]
    special = parts[-1].startswith("__") and parts[-1].endswith("__")
    name = parts[-2] if special and len(parts) > 1 else parts[-1]
    wanted = set(words(name))
    test = test_id.rpartition("::")[2].partition("[")[0]
    return bool(wanted) and wanted <= set(words(test))


WEIGHTS: Mapping[str, float] = {
    "band": 0.2,
    "assertion": 0.175,
    "outside": 0.175,
    "distance": 0.1,
    "selective": 0.05,
    "unnamed": 0.05,
    "rank": 0.2,
    "messages": 0.05,
}
"""The weight of each part; the weights add up to 1. Decision 31 has the reasons."""
_FAR = 5
"""The number of steps from the test to the function beyond which distance makes no difference."""
_LOW_RANK = 10.0
"""The last rank in the localisation that solvers are assumed to look at."""


@dataclass(frozen=True, slots=True)
class Subtlety:
    """A score with its parts, each from 0 (gives itself away) to 1."""

    value: float
    parts: Mapping[str, float]


def subtlety(evidence: Evidence, least: int = FEW_FAILING[0], most: int = FEW_FAILING[1]) -> Subtlety:
    """Return how subtle a corruption is: the weighted mean of its parts, or 0 if no test fails.

    `least` and `most` are the desired range of failing tests. docs/guide/corruptions.md explains each part.
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
    }
    rounded = {name: round(value, 4) for name, value in parts.items()}
    return Subtlety(round(sum(WEIGHTS[name] * value for name, value in parts.items()), 4), rounded)


def _band(failing: int, least: int, most: int) -> float:
    """Return 1 inside the range, less outside it, and 0 from eight times `most` upwards."""
    if failing < least:
        return failing / least / 2
    return 1.0 if failing <= most else max(0.0, 1 - log(failing / most) / log(8))


def _distance(distances: tuple[int | None, ...]) -> float:
    """Return the mean of the known distances, scaled to 0 to 1; one half if none is known."""
    known = [min(max(steps - 1, 0), _FAR - 1) / (_FAR - 1) for steps in distances if steps is not None]
    return sum(known) / len(known) if known else 0.5


def _selective(failing: int, entering: int) -> float:
    """Return 1 if at most half of the entering tests fail, as the fault depends on the input; else less."""
    share = failing / max(entering, failing)
    return min(2 * (1 - share), 1.0)


def _rank(rank: float | None) -> float:
    """Return 0 for the first rank in a localisation, 1 from the tenth on, and one half if unknown."""
    return 0.5 if rank is None else min(log(max(rank, 1.0)) / log(_LOW_RANK), 1.0)
