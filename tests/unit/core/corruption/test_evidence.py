"""The quality of evidence, the rank of the fault in localisation, and the subtlety score."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from gistpoint.core.corruption.evidence import (
    WEIGHTS,
    Evidence,
    band,
    is_good,
    is_own_test,
    ochiai_rank,
    subtlety,
)

GOOD = Evidence(
    failing=4, by_assertion=4, through_target=0, entering=20, distances=(4, 5, None, 3), rank=12.0, messages=3,
    changed_lines=1,
)  # fmt: skip


@dataclass(frozen=True)
class Map:
    entered: dict[str, frozenset[str]]


@pytest.mark.parametrize(
    ("failing", "assertions", "through", "good"),
    [
        (1, 1, 0, False),
        (2, 1, 1, True),
        (15, 8, 7, True),
        (16, 16, 0, False),
        (4, 1, 0, False),
        (4, 4, 3, False),
    ],
)
def test_good_has_few_failures_by_assertion_outside_of_the_function(
    failing: int, assertions: int, through: int, good: bool
) -> None:
    assert is_good(Evidence(failing, assertions, through, 30)) is good


def test_band_of_tasks_that_need_five() -> None:
    assert band(2) == (2, 15)
    assert band(5) == (5, 40)
    assert is_good(Evidence(30, 30, 0, 40), *band(5))
    assert not is_good(Evidence(4, 4, 0, 40), *band(5))


def test_rank_is_that_of_ochiai_with_ties_shared() -> None:
    tests = Map(
        {
            "m.py::exact": frozenset("ab"),
            "m.py::wide": frozenset("abcdef"),
            "m.py::twin": frozenset("abcdef"),
            "m.py::half": frozenset("a"),
            "m.py::other": frozenset("cd"),
        }
    )
    assert ochiai_rank("m.py::exact", ["a", "b"], tests) == 1
    assert ochiai_rank("m.py::half", ["a", "b"], tests) == 2
    assert ochiai_rank("m.py::wide", ["a", "b"], tests) == 3.5
    assert ochiai_rank("m.py::other", ["a", "b"], tests) is None
    assert ochiai_rank("m.py::unknown", ["a", "b"], tests) is None


@pytest.mark.parametrize(
    ("function", "test", "own"),
    [
        ("m.py::parse_date", "tests/test_m.py::test_parse_date[a-b]", True),
        ("m.py::parse_date", "tests/test_m.py::TestParse::test_date_is_parsed", False),
        ("m.py::Cache.__getitem__", "t.py::test_cache_get", True),
        ("m.py::Cache.popitem", "t.py::CacheTest::test_popitem", True),
        ("m.py::f.<locals>.inner", "t.py::test_outer", False),
    ],
)
def test_own_tests_are_known_by_their_names(function: str, test: str, own: bool) -> None:
    assert is_own_test(function, test) is own


def test_weights_make_one_whole() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1)
    assert set(subtlety(GOOD).parts) == set(WEIGHTS)


@pytest.mark.parametrize(
    "worse",
    [
        {"failing": 60, "by_assertion": 60, "messages": 60},
        {"by_assertion": 1},
        {"through_target": 4},
        {"distances": (1, 1, 1, 1)},
        {"entering": 4},
        {"own_tests": 4},
        {"rank": 1.0},
        {"messages": 1},
    ],
)
def test_each_part_makes_a_corruption_less_subtle(worse: dict[str, int]) -> None:
    assert subtlety(replace(GOOD, **worse)).value < subtlety(GOOD).value  # type: ignore[arg-type]  # fields by name


def test_value_stays_between_0_and_1() -> None:
    assert subtlety(Evidence(0, 0, 0, 0)).value == 0
    perfect = Evidence(2, 2, 0, 50, (9, 9), 0, 50.0, 2, 1)
    assert subtlety(perfect).value == 1
    assert 0 < subtlety(Evidence(500, 0, 500, 500, (1,), 500, 1.0, 1, 9)).value < 0.2
