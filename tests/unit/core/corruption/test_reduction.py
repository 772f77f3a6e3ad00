"""The smallest part of a change with which a test still fails, and features that it does not have."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.corruption.reduction import missing_feature, smallest

ITEMS = range(7)


def parts() -> list[frozenset[int]]:
    """Return all subsets of the items."""
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


TODAY = """\
def read(text, *, strict=False):
    if strict and text.encoding != "utf-16":
        raise ValueError(text)
    return parse(text, limit=3)
"""


@pytest.mark.parametrize(
    ("earlier", "test", "found"),
    [
        ("def read(text):\n    return parse(text)\n", "def test():\n    read(a, strict=True)\n", "strict"),
        (TODAY.replace("encoding", "codec"), "def test():\n    assert a.encoding\n", "encoding"),
        (TODAY.replace("utf-16", "latin"), "def test():\n    read(file('utf-16'))\n", "utf-16"),
        (TODAY.replace("limit=3", ""), "def test():\n    read(a, limit=2)\n", "limit"),
        ("def other(strict): ...\ndef read(text):\n    pass\n", "def test():\n    read(strict=1)\n", ""),
        (TODAY, "def test():\n    read(a, strict=True)\n", ""),
        (TODAY.replace("limit=3", "limit=4"), "def test():\n    assert read(a, limit=2) == 3\n", ""),
        ("def read(text):\n    return parse(text)\n", "def test():\n    read(a)\n", ""),
        (TODAY.replace("found", "result"), "def test():\n    found = read(a)\n", ""),
    ],
)
def test_a_feature_is_in_the_current_function_and_the_test_but_not_in_the_earlier_file(
    earlier: str, test: str, found: str
) -> None:
    assert missing_feature(TODAY, earlier, [test], ["AssertionError"]) == found


def test_not_implemented_is_a_missing_feature() -> None:
    assert missing_feature(TODAY, TODAY, [], ["NotImplementedError"]) == "NotImplementedError"
