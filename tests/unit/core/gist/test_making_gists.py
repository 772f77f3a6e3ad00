"""Gists are made from a repository by a request, without a command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gist_tasks import FILES, TRACE, FakeEntrypoints

from gistpoint.core.entrypoints.runs import OriginalRun, Raised, TestsRun
from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.kinds.folder import read_task
from gistpoint.core.kinds.gist.making import (
    DrawTests,
    GistResults,
    GistTerms,
    MadeGist,
    MakeGists,
    MakeReference,
    make_gists,
)
from gistpoint.core.kinds.gist.model import UNLIMITED
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import CancelToken, RunContext, RunProgress
from gistpoint.core.tasks.model import Source, Task
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree, write_tree

TOTAL, NONE = "pytest tests/test_prices.py::test_total", "pytest tests/test_prices.py::test_none"
ALONE = MakeReference(no_reference=True)


class Suite(FakeEntrypoints):
    """A suite of two tests: one that becomes a task, and one that the file does not define."""

    def tests(self, *_: Any, **__: Any) -> tuple[str, ...]:
        return ("tests/test_prices.py::test_total", "tests/test_prices.py::test_none")

    def run_original(self, *arguments: Any, **options: Any) -> OriginalRun:
        run = super().run_original(*arguments, **options)
        return replace(run, trace=TRACE) if options.get("trace") else run


def fetch(scratch: Path, run: RunContext) -> tuple[Repository, Mapping[str, Any]]:
    for path, text in FILES.items():
        (scratch / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (scratch / "tree" / path).write_text(text)
    write_tree(scratch / "tree", scratch / "tree.tar")
    return Repository(
        Source("folder", "shop", "1"), SourceTree.open(scratch / "tree.tar"), EnvironmentPins()
    ), {}


def made(asked: MakeGists, tasks: Path, **more: Any) -> GistResults:
    results = GistResults()
    make_gists(asked, asked.named(), fetch, Suite(), tasks, results, **more)
    return results


def test_entrypoints_that_are_named_are_made_or_refused(tmp_path: Path) -> None:
    told: list[MadeGist] = []
    asked = MakeGists(entrypoints=(TOTAL, NONE), terms=GistTerms(steps=7), reference=ALONE)
    results = made(asked, tmp_path, on_made=told.append)
    assert results.made == told
    assert [(one.entrypoint, one.reference, one.other_settings) for one in told] == [(TOTAL, None, {})]
    assert read_task(tmp_path / told[0].task.id).budgets.tool_uses == 7
    assert [one.entrypoint for one in results.refused] == [NONE]
    assert results.reasons == {"no_such_test": 1}


@pytest.mark.parametrize("draw", [DrawTests(sample=2), DrawTests(hard=1), DrawTests(hard=30, among=2)])
def test_a_draw_takes_the_next_test_for_one_that_is_refused(draw: DrawTests, tmp_path: Path) -> None:
    results = made(MakeGists(draw=draw, reference=ALONE), tmp_path)
    assert [one.entrypoint for one in results.made] == [TOTAL]
    assert [one.entrypoint for one in results.refused] == [NONE]


def test_a_task_that_was_there_keeps_its_settings(tmp_path: Path) -> None:
    kept: list[tuple[Task, Mapping[str, Any]]] = []
    (first,) = made(MakeGists(entrypoints=(TOTAL,), reference=ALONE), tmp_path).made
    terms = GistTerms(steps=9, score_budget=UNLIMITED)
    again = made(
        MakeGists(entrypoints=(TOTAL,), terms=terms, reference=ALONE),
        tmp_path,
        on_kept=lambda task, settings: kept.append((task, settings)),
    )
    assert again.made[0].other_settings == {"steps": 9, "score_budget": UNLIMITED}
    assert [(task.id, settings) for task, settings in kept] == [(first.task.id, again.made[0].other_settings)]


def test_results_before_a_stop_are_known(tmp_path: Path) -> None:
    cancel, results = CancelToken(), GistResults()

    def stop_after_the_first(progress: RunProgress) -> None:
        if progress.note:
            cancel.cancel()

    asked = MakeGists(entrypoints=(NONE, TOTAL), reference=ALONE)
    run = RunContext(cancel, stop_after_the_first)

    class Stopping(Suite):
        def run_original(self, *arguments: Any, **options: Any) -> OriginalRun:
            cancel.check()
            return super().run_original(*arguments, **options)

    with pytest.raises(CancelledError):
        make_gists(asked, asked.named(), fetch, Stopping(), tmp_path, results, run=run)
    assert results.reasons == {"no_such_test": 1}
    assert results.made == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (MakeGists(), "nothing to make"),
        (MakeGists(entrypoints=(TOTAL,), draw=DrawTests(hard=1)), "named or drawn"),
        (MakeGists(env=("A=1",), draw=DrawTests(sample=1)), "only to named commands"),
        (MakeGists(entrypoints=(TOTAL,), env=("A",)), "--env A has no value"),
        (MakeGists(entrypoints=("python -m shop",), terms=GistTerms(give_test=True)), "not a test"),
    ],
)
def test_requests_that_contradict_themselves_are_refused(asked: MakeGists, said: str) -> None:
    with pytest.raises(UserError) as caught:
        asked.named()
    assert said in str(caught.value)


class AllRefused(Suite):
    """A suite of twelve tests that are refused: nine for one reason, three for another."""

    def tests(self, *_: Any, **__: Any) -> tuple[str, ...]:
        return tuple(f"tests/test_prices.py::test_{number}" for number in range(12))

    def run_original(self, *arguments: Any, **options: Any) -> OriginalRun:
        run = super().run_original(*arguments, **options)
        entrypoint = arguments[2]
        if int(entrypoint.qualname.rpartition("_")[2]) % 4 == 0:
            return replace(run, seconds=1_000.0)
        error = Raised("ImportError", "Traceback:\nimport nothing\nE   ImportError: no module nothing\n")
        return replace(run, run=TestsRun(RunStatus.FINISHED, collection_error=error))


@pytest.mark.parametrize("draw", [DrawTests(sample=2), DrawTests(hard=3)])
def test_refusals_of_one_kind_are_explained_after_the_fifth_and_then_only_counted(
    draw: DrawTests, tmp_path: Path
) -> None:
    notes: list[str] = []
    results = GistResults()
    asked = MakeGists(draw=draw, reference=ALONE)
    run = RunContext(progress=lambda progress: notes.append(progress.note))
    make_gists(asked, asked.named(), fetch, AllRefused(), tmp_path, results, run=run)
    assert results.reasons == {"fails": 9, "too_slow": 3}
    told = [note for note in notes if note]
    assert sum(": fails: " in note for note in told) == 5
    assert sum(": too_slow: " in note for note in told) == 3
    (explained,) = [at for at, note in enumerate(told) if "5 tests were refused as fails" in note]
    assert "--allow-failing" in told[explained]
    assert told[explained + 1] == "  The last one: ImportError: no module nothing"
    assert sum(": fails: " in note for note in told[:explained]) == 5
