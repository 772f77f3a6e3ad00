"""Entrypoints drawn by difficulty."""

from __future__ import annotations

from gistpoint.core.kinds.gist.entrypoints import parse_entrypoint
from gistpoint.core.kinds.gist.intake import Candidate, by_rank
from gistpoint.core.kinds.gist.reference.trace import Difficulty


def candidate(name: str, calls: int, files: int) -> Candidate:
    return Candidate(parse_entrypoint(f"pytest t.py::{name}"), Difficulty(calls, calls, files, 1, files / 10))


def test_every_part_of_the_ranking_gives_one_before_any_gives_two() -> None:
    traced = [candidate(f"t{n}", calls=n, files=n // 2) for n in range(9)]
    order = [one.difficulty.calls for one in by_rank(list(reversed(traced)), 3)]
    assert order == [0, 3, 6, 1, 4, 7, 2, 5, 8]


def test_no_figure_counts_alone() -> None:
    deep, broad, both = candidate("deep", 1000, 1), candidate("broad", 1, 9), candidate("both", 999, 8)
    assert list(by_rank([deep, broad, both], 3))[-1] is both


def test_fewer_candidates_than_wanted_are_all_given() -> None:
    traced = [candidate("a", 1, 1), candidate("b", 2, 2)]
    assert {one.entrypoint.qualname for one in by_rank(traced, 5)} == {"a", "b"}
    assert list(by_rank([], 3)) == []
