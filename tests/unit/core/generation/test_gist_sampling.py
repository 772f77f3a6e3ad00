"""Entrypoints drawn by difficulty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gist_tasks import FILES, FakeEntrypoints
from small_trees import tree_of

from gistpoint.core.kinds.gist.intake import TRACED, EntrypointCandidate, Examination, by_rank, candidates
from gistpoint.core.kinds.gist.model import parse_entrypoint
from gistpoint.core.kinds.gist.trace import Difficulty
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.repository import Repository


def candidate(name: str, calls: int, files: int) -> EntrypointCandidate:
    return EntrypointCandidate(parse_entrypoint(f"pytest t.py::{name}"), Difficulty(calls, calls, files, 1, files / 10))


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


class LongSuite(FakeEntrypoints):
    """A suite of many tests, all of them traced alike."""

    def tests(self, *_: Any, **__: Any) -> tuple[str, ...]:
        return tuple(f"tests/test_prices.py::test_{n}" for n in range(30))


def test_a_draw_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    repository = Repository(Source("folder", "shop", "1"), tree_of(FILES, tmp_path), EnvironmentPins())
    examination = Examination(repository, LongSuite())
    drawn = {
        (seed, once): [one.entrypoint.qualname for one in candidates(examination, 2, seed)]
        for seed in (3, 4)
        for once in (True, False)
    }
    assert drawn[3, True] == drawn[3, False] != drawn[4, True]
    assert len(set(drawn[3, True])) == 2 * TRACED
