"""The gist of a run under review: as of each step, with its gutter, and scored on request."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from fakes import FakeClock
from gist_tasks import FAITHFUL, WRONG, FakeEntrypoints, FakeGistJudge, build_gist_task
from screens.review.reviewing import TURNS, Reviewing, command, mini_run, reviewing

from gistpoint.core.attempts.identity import Enrolment, Role
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.tui.screens.dialogs.ask import MessageDialog
from gistpoint.tui.widgets.gist_view import ScoredGist

INVENTED = FAITHFUL.replace("class Basket", "def extra():\n    return 1\n\n\nclass Basket")


def line_of(text: str, code: str) -> int:
    return text.split("\n").index(code) + 1


@pytest.fixture
def task() -> Task:
    return build_gist_task(Locations.of_user().tasks)


@pytest.fixture
def journal(tmp_path: Path, task: Task) -> Path:
    """The journal of an attempt that scores a wrong gist, fixes it and submits one with an extra function."""
    judge = FakeGistJudge(task, gist_answer(read_answer(task)), FakeEntrypoints())
    enrolment = Enrolment(role=Role.TRAINING)
    opened = AttemptStore(tmp_path / "attempts", FakeClock(), "test").start(task, judge, enrolment)
    opened.attempt.call("write_gist", {"content": WRONG})
    opened.attempt.call("score_gist", {"content": ""})
    opened.attempt.call("edit_gist", {"old": "price + price", "new": "price - price"})
    opened.attempt.call("write_gist", {"content": INVENTED})
    opened.attempt.call("submit_gist", {})
    opened.close()
    return opened.journal.path


def judging(runner: FakeEntrypoints):
    return lambda task: FakeGistJudge(task, gist_answer(read_answer(task)), runner)


def page(driver: Reviewing) -> ScoredGist:
    return driver.review.query_one(ScoredGist)


async def go_to(driver: Reviewing, tool: str, count: int = 1) -> int:
    """Go to a call's step by its tool, and return the step's index."""
    document = driver.review.run.loader.document
    assert document is not None
    steps = [step.index for step in document.steps() if step.label == tool]
    await driver.press("number_sign", *str(steps[count - 1] + 1), "enter")
    await driver.until_read(steps[count - 1])
    return steps[count - 1]


async def test_the_hand_in_shows_its_gutter_as_it_was_recorded(journal: Path) -> None:
    async with reviewing(journal, size=(140, 40)) as driver:
        await driver.until_read(0)
        await driver.until(lambda: " Gist  " in driver.text())
        step = await go_to(driver, "submit_gist")
        await driver.press("f11")
        await driver.until(lambda: f"as step {step + 1} recorded" in driver.text())
        assert "faithful  self-contained  tests 1/1  ran 100.0%" in driver.text()
        assert "2 to fix: Alt+N" in driver.text()
        view = page(driver)
        assert not view.gist.evidence[line_of(INVENTED, "def extra():")].exists
        assert "●+" in driver.text()
        assert "●=" in driver.text()
        await driver.press("alt+n")
        assert view.gist.cursor_index + 1 == line_of(INVENTED, "def extra():")
        view.gist.go_to(line_of(INVENTED, "class Basket:"))
        await driver.press("enter")
        await driver.until(lambda: "shop/prices.py:" in driver.text())
        await driver.press("enter")
        assert driver.app.focused is view.gist


async def test_each_step_shows_the_gist_of_its_time(journal: Path) -> None:
    async with reviewing(journal, size=(140, 40)) as driver:
        await driver.until_read(0)
        await driver.press("f11")
        await driver.until(lambda: "Nothing has been written yet at this step." in driver.text())
        await go_to(driver, "write_gist")
        await driver.until(lambda: "not scored at this step: Alt+S scores it" in driver.text())
        assert page(driver).gist.text == WRONG
        assert "●" not in driver.text()
        step = await go_to(driver, "score_gist")
        await driver.until(lambda: f"as step {step + 1} recorded" in driver.text())
        assert "not faithful" in driver.text()
        await go_to(driver, "edit_gist")
        await driver.until(lambda: f"marks of an earlier text, scored at step {step + 1}" in driver.text())
        assert page(driver).gist.text == FAITHFUL
        changed = line_of(FAITHFUL, "    return price - price * percent // 100")
        assert changed not in page(driver).gist.evidence
        assert line_of(FAITHFUL, "class Basket:") in page(driver).gist.evidence


async def test_a_gist_is_scored_where_one_asks(journal: Path) -> None:
    async with reviewing(journal, size=(140, 40), judging=judging(FakeEntrypoints())) as driver:
        await driver.until_read(0)
        await driver.press("f11")
        await go_to(driver, "edit_gist")
        await driver.until(lambda: "marks of an earlier text" in driver.text())
        await driver.press("alt+s")
        await driver.until(lambda: "scored here, in fake" in driver.text())
        assert "faithful  self-contained" in driver.text()
        assert line_of(FAITHFUL, "    return price - price * percent // 100") in page(driver).gist.evidence


async def test_scoring_stops_and_leaves_what_was_known(journal: Path) -> None:
    gate = threading.Event()
    async with reviewing(journal, size=(140, 40), judging=judging(FakeEntrypoints(gate=gate))) as driver:
        await driver.until_read(0)
        await driver.press("f11")
        await go_to(driver, "write_gist")
        await driver.until(lambda: "not scored at this step" in driver.text())
        await driver.press("alt+s")
        await driver.until(lambda: "running the gist 1/1. Alt+S stops it" in driver.text())
        await driver.press("alt+s")
        await driver.until(lambda: "Stopped." in driver.text())
        assert "not scored at this step" in driver.text()


async def test_why_it_can_not_be_scored_is_shown(journal: Path) -> None:
    def nowhere(task: Task) -> FakeGistJudge:
        raise UserError("Nothing isolates its code.", hint="Install bubblewrap.")

    async with reviewing(journal, size=(140, 40), judging=nowhere) as driver:
        await driver.until_read(0)
        await driver.press("f11")
        await go_to(driver, "write_gist")
        await driver.until(lambda: "not scored at this step" in driver.text())
        await driver.press("alt+s")
        await driver.until_on(MessageDialog)
        assert "Nothing isolates its code." in driver.text()
        await driver.press("enter")
    async with reviewing(journal, size=(140, 40), judging=judging(FakeEntrypoints(fails=True))) as driver:
        await driver.until_read(0)
        await driver.press("f11")
        await go_to(driver, "write_gist")
        await driver.until(lambda: "not scored at this step" in driver.text())
        await driver.press("alt+s")
        await driver.until(lambda: "It could not be scored. The sandbox is gone." in driver.text())


async def test_without_its_task_what_was_recorded_is_shown(journal: Path, task: Task) -> None:
    (task.folder / "task.toml").unlink()
    async with reviewing(journal, size=(160, 40), judging=judging(FakeEntrypoints())) as driver:
        await driver.until_read(0)
        await driver.until(lambda: " Gist  " in driver.text())
        step = await go_to(driver, "submit_gist")
        await driver.press("f11")
        await driver.until(lambda: f"as step {step + 1} recorded. The gist can't be scored" in driver.text())
        assert "●+" in driver.text()
        await driver.press("alt+s")
        await driver.until(lambda: "can't be scored" in driver.text().splitlines()[-2])


async def test_its_score_is_hidden_from_a_blind_reviewer(journal: Path) -> None:
    async with reviewing(journal, size=(140, 40), blind=True, judging=judging(FakeEntrypoints())) as driver:
        await driver.until_read(0)
        await go_to(driver, "submit_gist")
        await driver.press("f11")
        await driver.until(lambda: "hidden until your verdict" in driver.text())
        assert page(driver).gist.text == INVENTED
        assert "●" not in driver.text()
        assert "faithful" not in driver.text()
        await driver.press("alt+s")
        assert not driver.review.run.gist.begun


async def test_a_run_of_another_program_on_a_gist_task_is_scored_too(tmp_path: Path, task: Task) -> None:
    turns = [command(f"cat > test_gist.py <<'EOF'\n{FAITHFUL}EOF", ""), command("ls", "test_gist.py")]
    run = mini_run(tmp_path / "run.traj.json", turns, task=task.id)
    async with reviewing(run, size=(140, 40), judging=judging(FakeEntrypoints())) as driver:
        await driver.until_read(0)
        await driver.until(lambda: " Gist  " in driver.text())
        await driver.press("dollar_sign", "f11")
        await driver.until(lambda: "not scored at this step" in driver.text())
        assert page(driver).gist.text == FAITHFUL
        await driver.press("alt+s")
        await driver.until(lambda: "scored here, in fake" in driver.text())
        assert "●=" in driver.text()


async def test_a_run_without_a_gist_says_so(tmp_path: Path) -> None:
    run = mini_run(tmp_path / "run.traj.json", TURNS)
    async with reviewing(run, size=(140, 40)) as driver:
        await driver.until_read(0)
        assert " Gist  " not in driver.text()
        await driver.press("f11")
        await driver.until(lambda: "this run does not write a gist" in driver.text())
