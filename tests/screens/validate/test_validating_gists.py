"""Gist tasks in the queue: questions, records, and scores of the reference and the validator's own gist."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from builders import build_services
from gist_tasks import ENTRYPOINT, FAITHFUL, WRONG, FakeEntrypoints, build_gist_task
from screens.driving import LARGE
from screens.validate.validating import Validating, make_tasks, validating

from gistpoint.core.demo.tasks import unpack_demo
from gistpoint.core.kinds.folder import read_answer, write_task
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.tools import GIST_BUFFER
from gistpoint.core.kinds.gist.trace import difficulty, read_trace
from gistpoint.core.kinds.kind import TrialSubject
from gistpoint.core.kinds.registry import kind_of, render_brief
from gistpoint.core.kinds.titles import author_title
from gistpoint.core.tasks.documents import ANSWER_FILE
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.annotations.validations import TaskVerdict
from gistpoint.tui.screens.validate.gist import GistPage
from gistpoint.tui.widgets.gist_view import ScoredGist
from gistpoint.tui.widgets.text_view import TextView

MARKS = ("●=", "○=")


@asynccontextmanager
async def gists(
    root: Path,
    runner: FakeEntrypoints | None = None,
    *,
    size: tuple[int, int] = LARGE,
    task: Task | None = None,
) -> AsyncIterator[Validating]:
    services = build_services(root, entrypoints=runner or FakeEntrypoints())
    made = task or build_gist_task(services.locations.tasks)
    async with validating(services, [made], size=size) as driver:
        yield driver


def page(driver: Validating) -> GistPage:
    return driver.screen.query_one(GistPage)


def write(driver: Validating, text: str) -> None:
    editor = page(driver).editor
    editor.replace(text, editor.document.start, editor.document.end)
    editor.flush()


async def test_the_overview_shows_what_is_asked_and_what_was_recorded(tmp_path: Path) -> None:
    async with gists(tmp_path) as driver:
        await driver.until(lambda: ENTRYPOINT in driver.text())
        text = driver.text()
        for words in (
            "50 steps, one hand-in",
            "running code is not allowed",
            "5 calls, 3 functions, 2 files",
            "3 equal runs",
            "✔ tests/test_prices.py::test_total",
            "│ done",
            "the reference gist, faithful  ran 100.0%  exists 98.5%",
        ):
            assert words in text, text
        assert "Diff" not in text
        assert "F8 Gist" in text
        await driver.page("f3", "Write a gist")
        brief = driver.screen.pages.made["brief"]
        assert isinstance(brief, TextView)
        assert brief.raw == render_brief(driver.screen.dossier.task)  # type: ignore[union-attr]


async def test_the_reference_is_scored_with_its_gutter_and_kept_as_evidence(tmp_path: Path) -> None:
    async with gists(tmp_path) as driver:
        await driver.page("f8", "the reference gist, faithful")
        assert not any(mark in driver.text() for mark in MARKS)
        await driver.press("r")
        await driver.idle()
        await driver.until(lambda: "faithful  self-contained  tests 1/1" in driver.text())
        assert "●=" in driver.text()
        view = page(driver).query_one(ScoredGist)
        view.gist.go_to(FAITHFUL.split("\n").index("class Basket:") + 1)
        await driver.press("enter")
        await driver.until(lambda: "shop/prices.py:" in driver.text())
        await driver.press("enter", "1")
        (trial,) = driver.said.trials
        assert (trial.subject, trial.solved, trial.passing, trial.failing) == (
            TrialSubject.REFERENCE,
            True,
            1,
            0,
        )
        assert driver.said.verdict is not None
        assert (driver.said.verdict.verdict, driver.said.verdict.evidence) == (
            TaskVerdict.ACCEPT,
            (trial.op,),
        )
        await driver.page("f6", "faithful")


async def test_a_gist_of_ones_own_is_kept_and_scored(tmp_path: Path) -> None:
    services = build_services(tmp_path, entrypoints=FakeEntrypoints())
    task = build_gist_task(services.locations.tasks)
    async with validating(services, [task], size=LARGE) as driver:
        await driver.page("f8", "the reference gist")
        await driver.press("f9")
        assert "You have not written a gist yet" in driver.text()
        await driver.press("alt+e")
        await driver.until(lambda: "your own gist" in driver.text())
        assert page(driver).editor.code == FAITHFUL
        write(driver, WRONG)
        await driver.until(lambda: driver.screen.session.draft(task).fixes.get(GIST_BUFFER) == WRONG)
        await driver.press("f9")
        await driver.idle()
        await driver.until(lambda: "your own gist, as scored" in driver.text())
        await driver.until(lambda: "not faithful  self-contained" in driver.text())
        assert driver.said.trials[-1].subject is TrialSubject.FIX
        assert not driver.said.trials[-1].solved
        assert f"{author_title(task)} with your own solution: not faithful" in driver.text()
    async with validating(services, [task], size=LARGE) as driver:
        await driver.page("f8", "the reference gist")
        await driver.press("alt+e")
        assert page(driver).editor.code == WRONG


async def test_the_original_is_run_again_and_compared_with_what_was_recorded(tmp_path: Path) -> None:
    async with gists(tmp_path) as driver:
        await driver.press("alt+o")
        await driver.idle()
        await driver.until(lambda: len(driver.said.trials) == 5)
        assert all(trial.solved and not trial.odd for trial in driver.said.trials)
        await driver.until(lambda: "as recorded" in driver.text())
    services = build_services(tmp_path, entrypoints=FakeEntrypoints())
    task = next(iter(services.tasks.tasks()))
    assert isinstance(task, Task)
    answer = read_answer(task)
    first = gist_answer(answer).originals[0]
    renamed = {id: replace(test, stdout="another\n") for id, test in first.tests.items()}  # type: ignore[union-attr]
    other = replace(first, tests=renamed)  # type: ignore[type-var]
    write_task(task, replace(answer, of_kind=replace(gist_answer(answer), originals=(other, other, other))))
    async with validating(services, [task], size=LARGE) as driver:
        await driver.press("O")
        await driver.idle()
        await driver.until(lambda: "NOT as recorded: test_total" in driver.text())


async def test_the_check_is_made_and_a_failure_is_reported(tmp_path: Path) -> None:
    async with gists(tmp_path) as driver:
        await driver.press("exclamation_mark")
        await driver.idle()
        await driver.until(lambda: driver.said.check is not None)
        assert driver.said.check is not None
        names = [name for name, *_ in driver.said.check.findings]
        assert {"identity", "a missing gist scores 0", "reference gist is faithful"} <= set(names)
        await driver.page("f6", "reference gist is faithful")
    async with gists(tmp_path / "failing", FakeEntrypoints(fails=True)) as driver:
        await driver.press("r")
        await driver.idle()
        await driver.until(lambda: "The sandbox is gone." in driver.text())


async def test_without_a_reference_a_gist_of_ones_own_begins_with_the_test(tmp_path: Path) -> None:
    services = build_services(tmp_path, entrypoints=FakeEntrypoints())
    task = build_gist_task(services.locations.tasks)
    answer = read_answer(task)
    write_task(task, replace(answer, of_kind=replace(gist_answer(answer), reference=None)))
    async with validating(services, [task], size=LARGE) as driver:
        await driver.page("f8", "no reference gist")
        await driver.press("r")
        assert "There is no reference gist to score" in driver.text()
        await driver.press("alt+e")
        await driver.until(lambda: "def test_total():" in driver.text())


async def test_repairs_and_gists_stand_in_one_queue(tmp_path: Path) -> None:
    services, repairs = make_tasks(tmp_path, 1)
    services = replace(services, entrypoints_for=lambda task: FakeEntrypoints())
    gist = build_gist_task(services.locations.tasks)
    async with validating(services, [*repairs, gist], size=LARGE) as driver:
        await driver.shows(repairs[0].id)
        await driver.page("f4", "price + price")
        await driver.press("right_square_bracket")
        await driver.shows(gist.id)
        await driver.until(lambda: ENTRYPOINT in driver.text())
        await driver.page("f8", "the reference gist")
        await driver.press("percent_sign", "v")
        await driver.press("escape", "left_square_bracket")
        await driver.shows(repairs[0].id)
        await driver.until(lambda: "F4 Diff" in driver.text())
        assert "F8 Gist" not in driver.text()
        await driver.page("f8", "F9 runs the suite on it")


async def test_it_fits_a_small_terminal(tmp_path: Path) -> None:
    async with gists(tmp_path, size=(80, 24)) as driver:
        await driver.page("f8", "the reference gist")
        await driver.press("r")
        await driver.idle()
        await driver.until(lambda: "●=" in driver.text())


def test_lists_and_screens_count_the_functions_of_a_gist_in_the_same_way(tmp_path: Path) -> None:
    """The demo's gist was stored with a count that leaves out functions of tests."""
    task = next(task for _, task in unpack_demo(tmp_path) if task.mode is Mode.GIST)
    answer = gist_answer(read_answer(task))
    listed, trace = kind_of(task).difficulty(task), read_trace(answer.trace)
    assert (answer.measured.functions, answer.measured.files) == (listed["functions"], listed["files"])
    made_now = difficulty(trace, {})
    assert (made_now.functions, made_now.files) == (listed["functions"], listed["files"])
    stored = json.loads((task.folder / ANSWER_FILE).read_text(encoding="utf-8"))["gist"]["difficulty"]
    assert stored["functions"] != listed["functions"], "the task no longer shows what this is about"
