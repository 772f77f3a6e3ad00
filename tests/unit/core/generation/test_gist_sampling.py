"""Entrypoints drawn by difficulty."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from gist_tasks import FILES, TRACE, FakeEntrypoints
from small_trees import tree_of

from gistpoint.core.entrypoints.command import parse_entrypoint
from gistpoint.core.entrypoints.runs import OriginalRun
from gistpoint.core.kinds.gist.drawing import TRACED, EntrypointCandidate, by_rank, candidates, hardest
from gistpoint.core.kinds.gist.intake import Examination
from gistpoint.core.kinds.gist.trace import Difficulty
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.repository import Repository


def candidate(name: str, calls: int, files: int) -> EntrypointCandidate:
    return EntrypointCandidate(
        parse_entrypoint(f"pytest t.py::{name}"), Difficulty(calls, calls, files, 1, files / 10)
    )


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
    """A suite of many tests with equal traces."""

    def tests(self, *_: Any, **__: Any) -> tuple[str, ...]:
        return tuple(f"tests/test_prices.py::test_{n}" for n in range(30))


@pytest.fixture
def examination(tmp_path: Path) -> Examination:
    repository = Repository(Source("folder", "shop", "1"), tree_of(FILES, tmp_path), EnvironmentPins())
    return Examination(repository, LongSuite())


def test_a_draw_is_the_same_for_the_same_seed_and_goes_on_until_no_test_is_left(
    examination: Examination,
) -> None:
    drawn = {
        (seed, once): [one.entrypoint.qualname for one in candidates(examination, 2, seed)]
        for seed in (3, 4)
        for once in (True, False)
    }
    assert drawn[3, True] == drawn[3, False] != drawn[4, True]
    assert sorted(drawn[3, True]) == sorted(f"test_{n}" for n in range(30))


def test_the_traces_are_counted_up_to_those_that_are_chosen_from(examination: Examination) -> None:
    told: list[RunProgress] = []
    examination = replace(examination, run=RunContext(progress=told.append))
    next(candidates(examination, 2, 3))
    wanted = TRACED * 2
    assert [(progress.step, progress.done, progress.total) for progress in told] == [
        ("tracing tests", done, wanted) for done in range(wanted)
    ]
    assert told[0].phase.startswith("pytest tests/test_prices.py::test_")


def test_no_more_is_traced_than_is_asked_for(examination: Examination) -> None:
    assert len(list(islice(candidates(examination, 2, 3), 2))) == 2
    assert isinstance(examination.runner, LongSuite)
    assert examination.runner.runs == 2 * TRACED


class UnevenSuite(LongSuite):
    """Test N makes N calls and touches 30 - N files; tests 7 and 8 report no usable trace."""

    def run_original(self, *arguments: Any, **options: Any) -> OriginalRun:
        number = int(arguments[2].qualname.removeprefix("test_"))
        run = super().run_original(*arguments, **options)
        if number == 7:
            return replace(run, trace=None)
        if number == 8:
            return replace(run, trace={**TRACE, "functions": [None]})
        paths = [f"shop/{n}.py" for n in range(30 - number)]
        return replace(
            run, trace={**TRACE, "calls": number, "files": paths, "lines": {path: [1] for path in paths}}
        )


def test_the_hardest_are_the_first_by_calls_and_by_files_and_a_refused_one_is_replaced(
    examination: Examination,
) -> None:
    refused: list[str] = []
    uneven = replace(examination, runner=UnevenSuite())
    drawn = hardest(uneven, 2, 0, lambda entrypoint, refusal: refused.append(entrypoint.qualname))
    found = [next(drawn).entrypoint.qualname]
    assert sorted(refused) == ["test_7", "test_8"]
    for unusable in (True, False, True, False, False, False):
        try:
            found.append(drawn.send(unusable).entrypoint.qualname)
        except StopIteration:
            break
    assert found == ["test_29", "test_28", "test_27", "test_26", "test_1", "test_0"]
    few = list(hardest(uneven, 30, 0, lambda *_: None, among=5))
    assert len(few) == 5


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (("tests",), ()),
        (("tests/", "-x", "tests/test_prices.py::test_total"), ("-x",)),
        (("-p", "tests", "-o", "asyncio_mode=auto"), ("-p", "tests", "-o", "asyncio_mode=auto")),
        (("--ignore", "tests/test_prices.py", "--deselect=tests/test_prices.py::test_a"), ()),
        (("-k", "total", "-mfast", "-k=x", "--strict-markers", "nowhere"), ("--strict-markers", "nowhere")),
    ],
)
def test_what_selects_tests_is_no_part_of_one_entrypoints_environment(
    given: tuple[str, ...], kept: tuple[str, ...], examination: Examination
) -> None:
    pins = EnvironmentPins(pytest_args=given)
    found = replace(examination, repository=replace(examination.repository, environment=pins))
    assert found.environment.pytest_args == kept
    assert found.repository.environment.pytest_args == given
