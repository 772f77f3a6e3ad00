"""The smallest part of a change with which a test still fails."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.corruption.minimising import smallest

ITEMS = range(7)


def parts() -> list[frozenset[int]]:
    """All parts of the items."""
    found = chain.from_iterable(combinations(ITEMS, size) for size in range(len(ITEMS) + 1))
    return [frozenset(part) for part in found]


@given(st.frozensets(st.sampled_from(ITEMS), min_size=1))
def test_the_one_cause_is_found(cause: frozenset[int]) -> None:
    found = smallest(ITEMS, lambda part: cause <= set(part), 1_000)
    assert found == tuple(sorted(cause))


@given(st.sets(st.sampled_from(parts())))
def test_what_is_found_fails_and_no_item_of_it_can_be_left_out(failing: set[frozenset[int]]) -> None:
    failing = failing | {frozenset(ITEMS)}

    def fails(part: Sequence[int]) -> bool:
        return frozenset(part) in failing

    found = frozenset(smallest(ITEMS, fails, 10_000))
    assert found in failing
    assert not any(found - {item} in failing for item in found if len(found) > 1)


@given(st.frozensets(st.sampled_from(ITEMS), min_size=1), st.integers(0, 12))
def test_there_are_at_most_so_many_probes_none_twice(cause: frozenset[int], most: int) -> None:
    probed: list[tuple[int, ...]] = []

    def fails(part: Sequence[int]) -> bool:
        probed.append(tuple(part))
        return cause <= set(part)

    found = smallest(ITEMS, fails, most)
    assert cause <= set(found)
    assert len(probed) == len(set(probed)) <= most
