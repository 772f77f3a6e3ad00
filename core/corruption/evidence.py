"""What the tests showed of a corruption, and whether that makes it a good one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Protocol

FEW_FAILING = (2, 15)
"""The band of failing tests for a corruption that is hard to see."""
MORE_FAILING = (5, 40)
"""The band where a task needs at least five failing tests."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


class EnteredFunctions(Protocol):
    """Which tests enter which functions, by `path::qualname`."""

    @property
    def entered(self) -> Mapping[str, frozenset[str]]:
        """The ids of the tests that enter each function."""
        ...


@dataclass(frozen=True, slots=True)
class Evidence:
    """What failed on the corrupted tree among the tests that pass on the original."""

    failing: int
    by_assertion: int
    """How many of them fail by an assertion, rather than by another exception."""
    through_target: int
    """How many of their tracebacks lead through the corrupted function."""
    entering: int
    """How many tests enter the function at all."""
    distances: tuple[int | None, ...] = ()
    """Steps on the call graph from each failing test to the function; None where no way is known."""
    own_tests: int = 0
    """How many of the failing tests are the function's own, by their names."""
    rank: float | None = None
    """The function's place in a spectrum-based localisation, 1 for the first; None where it can't be told."""
    messages: int = 0
    """How many different messages the failures have."""
    changed_lines: int = 0


def band(min_failing: int) -> tuple[int, int]:
    """Return the least and the most failing tests of a good corruption, for tasks that need at least `min_failing`."""
    least, most = MORE_FAILING if min_failing >= MORE_FAILING[0] else FEW_FAILING
    return max(least, min_failing), max(most, 4 * min_failing)


def is_good(evidence: Evidence, least: int = FEW_FAILING[0], most: int = FEW_FAILING[1]) -> bool:
    """Return whether a corruption is a good one.

    Its failing tests are at least `least` and at most `most`; at least half of them fail by an assertion; and at most
    half of the tracebacks lead through the corrupted function.
    """
    failing = evidence.failing
    if not least <= failing <= most:
        return False
    return 2 * evidence.by_assertion >= failing and 2 * evidence.through_target <= failing


def ochiai_rank(function: str, failing_ids: Iterable[str], test_map: EnteredFunctions) -> float | None:
    """Return the place of a function among all by Ochiai's suspiciousness, 1 for the most suspicious.

    Suspiciousness is the failing tests that enter a function over the root of all failing times all that enter it
    (Abreu, Zoeteweij, van Gemund, 2007). Functions with the same value share the mean of their places. None where no
    failing test enters the function.
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
    """Return whether a test is named after a function, so that its name alone says where to look.

    It is where the name of the test holds all words of the function's name, or, for a special method, of its class.
    """
    qualname = function.rpartition("::")[2].partition("#")[0]
    parts = [part for part in qualname.split(".") if part != "<locals>"]
    special = parts[-1].startswith("__") and parts[-1].endswith("__")
    name = parts[-2] if special and len(parts) > 1 else parts[-1]
    wanted = _words(name)
    test = test_id.rpartition("::")[2].partition("[")[0]
    return bool(wanted) and wanted <= _words(test)


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}
