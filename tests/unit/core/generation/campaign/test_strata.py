"""Shares of a stratified set are as equal as possible; what one stratum can't fill goes to the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.generation.candidates import Strata, round_robin

NAMES: tuple[str, ...] = ("low", "middle", "high")


def filled(strata: Strata, count: int, able: Mapping[str, int]) -> dict[str, int]:
    """Return the tasks by stratum if each can give as many as in `able` and all are asked in turn."""
    kept: Counter[str] = Counter()
    going = True
    while going:
        exhausted = {name for name in strata.names if kept[name] == able[name]}
        open_ones = [
            n for n in strata.names if n not in exhausted and strata.has_room(n, count, kept, exhausted)
        ]
        kept.update(open_ones[:1])
        going = bool(open_ones)
    return {name: kept[name] for name in strata.names}


def test_shares_are_equal_and_the_first_ones_get_what_is_over() -> None:
    assert filled(Strata(NAMES), 8, dict.fromkeys(NAMES, 99)) == {"low": 3, "middle": 3, "high": 2}


def test_what_one_stratum_lacks_goes_to_the_others() -> None:
    assert filled(Strata(NAMES), 9, {"low": 1, "middle": 99, "high": 99}) == {
        "low": 1,
        "middle": 4,
        "high": 4,
    }


def test_equal_and_fixed_shares_stay_where_they_are() -> None:
    able = {"low": 1, "middle": 99, "high": 99}
    assert filled(Strata(NAMES, equal=True), 10, able) == {"low": 1, "middle": 3, "high": 3}
    fixed = Strata(NAMES, fixed={"low": 1, "middle": 2, "high": 0})
    assert filled(fixed, 99, dict.fromkeys(NAMES, 99)) == {"low": 1, "middle": 2, "high": 0}


def test_without_strata_there_is_room_until_the_count() -> None:
    assert Strata().has_room("", 2, {"": 1})
    assert not Strata().has_room("", 2, {"": 2})


@given(st.integers(0, 40), st.lists(st.integers(0, 20), min_size=3, max_size=3))
def test_the_set_is_full_if_the_strata_can_fill_it(count: int, able: list[int]) -> None:
    limits = dict(zip(NAMES, able, strict=True))
    found = filled(Strata(NAMES), count, limits)
    assert sum(found.values()) == min(count, sum(able))
    short = [found[name] for name in NAMES if found[name] < limits[name]]
    assert not short or max(found.values()) - min(short) <= 1


def test_turns() -> None:
    assert round_robin([["a", "b", "c"], [], ["d"]]) == ["a", "d", "b", "c"]
