"""The screen's view of a run's steps: lists of one kind, folded steps, the draggable strip, coloured code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import CHECKS, build_task
from examples import at_sizes
from fakes import FakeClock, FakeRunner
from screens.review.reviewing import TURNS, Reviewing, command, mini_run, reviewing

from gistpoint.core.attempts.events import PauseReason
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.records.model import TextScope
from gistpoint.tui.screens.review.places import PlacesScreen
from gistpoint.tui.screens.review.ruler import GUTTER, Ruler
from gistpoint.tui.screens.review.runs import RunsScreen
from gistpoint.tui.screens.review.screen import ReviewScreen


def listed(driver: Reviewing) -> list[int]:
    steps = driver.review.steps
    return [steps.index_at(row) for row in range(steps.row_count)]


@pytest.mark.parametrize("size", at_sizes((80, 24), (160, 48)))
async def test_steps_of_one_kind_are_listed_by_key_and_by_click(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with reviewing(mini_run(tmp_path / "a.traj.json", TURNS), size=size) as driver:
        await driver.until_read(0)
        await driver.until_surveyed()
        await driver.until(lambda: driver.review.steps.survey is not None)
        await driver.press("o")
        assert listed(driver) == [5]
        await driver.until_read(5)
        await driver.press("o")
        assert listed(driver) == [4]
        await driver.until(lambda: "Steps 1 of 8" in driver.text())
        await driver.press("u")
        await driver.until_read(4)
        lower = driver.review.steps.region.bottom - 1
        await driver.pilot.click(offset=(driver.text().split("\n")[lower].index("unseen"), lower))
        await driver.until(lambda: driver.review.steps.listing == "unseen")
        assert 5 not in listed(driver)
        here = driver.review.steps.cursor
        await driver.press("right_square_bracket")
        await driver.until_read(listed(driver)[listed(driver).index(here) + 1])
        await driver.press("number_sign", "6", "enter")
        await driver.until_read(5)
        assert listed(driver) == list(range(8))


async def test_pauses_of_an_attempt_are_folded_and_its_first_step_is_the_brief(tmp_path: Path) -> None:
    task = build_task(tmp_path / "tasks")
    judge = RepairJudge(task, read_answer(task), FakeRunner(CHECKS))
    opened = AttemptStore(tmp_path / "attempts", FakeClock(), "test").start(task, judge, Enrolment())
    opened.attempt.call("list_directory", {})
    opened.attempt.pause(PauseReason.BREAK, "tea")
    opened.attempt.resume()
    opened.attempt.call("read_file", {"file_path": "shop/prices.py"})
    opened.close()
    async with reviewing(opened.journal.path) as driver:
        await driver.until_read(0)
        first = driver.review.run.step.text.split("\n")[0]
        assert not first.startswith("{")
        assert first in driver.review.step_page.text
        await driver.until(lambda: "1 hidden: o" in driver.text())
        await driver.press("right_square_bracket", "right_square_bracket")
        await driver.until_read(3)
        await driver.press("o")
        assert listed(driver) == list(range(driver.review.steps.count))
        await driver.press("left_square_bracket")
        await driver.until_read(2)
        await driver.until(lambda: "tea" in driver.text())


async def test_dragging_through_the_course_goes_from_step_to_step(tmp_path: Path) -> None:
    run = mini_run(tmp_path / "long.traj.json", [command(f"echo {n}", f"line {n}") for n in range(300)])
    async with reviewing(run, size=(120, 40)) as driver:
        await driver.until_read(0)
        await driver.until_surveyed()
        ruler = driver.review.query_one(Ruler)
        left = ruler.gutter.left + GUTTER
        await driver.pilot.mouse_down(Ruler, offset=(left + 10, 1))
        await driver.until_read(ruler.step_of(10))
        await driver.pilot.hover(Ruler, offset=(left + 60, 1))
        await driver.until_read(ruler.step_of(60))
        await driver.pilot.mouse_up(Ruler, offset=(left + 60, 1))
        await driver.pilot.hover(Ruler, offset=(left + 20, 1))
        assert driver.review.steps.cursor == ruler.step_of(60)


async def test_a_command_that_is_quoted_stands_there_once_and_code_is_coloured(tmp_path: Path) -> None:
    turns = [command(f"for x in 1 2; do echo {word}; done", "1") for word in ("needle", "thread")]
    async with reviewing(mini_run(tmp_path / "a.traj.json", turns), size=(120, 40)) as driver:
        await driver.until_read(0)
        await driver.press("right_square_bracket", "right_square_bracket", "f2")
        await driver.until_read(2)
        view = driver.review.step_page
        assert view.text.count("echo needle") == 1
        assert "as quoted above" in view.text
        line = next(n for n in range(view.line_count) if "echo needle" in view.lines[n])
        await driver.until(lambda: view.line_tokens(line))
        place = view.composed.offset_of(TextScope.CALL, 0, len("bash command: for x in 1 2; do echo "))
        assert place == view.text.index("needle")
        await driver.press("right_square_bracket")
        await driver.until_read(3)
        assert view.line_tokens(next(n for n in range(view.line_count) if "echo thread" in view.lines[n]))


async def test_lines_are_wrapped_and_w_works_from_the_list_of_steps(tmp_path: Path) -> None:
    run = mini_run(tmp_path / "a.traj.json", [command("ls", "word " * 100)])
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.press("dollar_sign")
        await driver.until_read(2)
        view = driver.review.step_page
        assert view.wrap
        assert len(view.rows) > view.line_count
        await driver.press("w")
        assert driver.app.focused is driver.review.steps
        assert len(view.rows) == view.line_count


async def test_a_key_hides_a_family_of_steps_and_says_how_many(tmp_path: Path) -> None:
    async with reviewing(mini_run(tmp_path / "a.traj.json", TURNS), size=(120, 40)) as driver:
        await driver.until_read(0)
        await driver.until_surveyed()
        await driver.until(lambda: driver.review.steps.survey is not None)
        await driver.press("alt+f", "alt+m")
        await driver.until(lambda: "Hidden: 2 messages, 2 finding" in driver.text())
        assert listed(driver) == [0, *range(4, 8)]
        await driver.press("right_square_bracket")
        await driver.until_read(4)
        assert listed(driver) == [4, 5, 6, 7]
        await driver.press("number_sign", "3", "enter")
        await driver.until_read(2)
        assert listed(driver) == [2, 4, 5, 6, 7]
        await driver.press("alt+f")
        assert listed(driver) == list(range(2, 8))
        await driver.press("o")
        assert listed(driver) == list(range(8))
        await driver.press("circumflex_accent", "semicolon")
        await driver.until_read(2)
        await driver.press("comma")
        await driver.until(lambda: "Previous turn of the solver: none" in driver.text())


async def test_what_a_harness_floods_a_run_with_is_hidden_at_first(tmp_path: Path) -> None:
    events = [{"event": "state", "changes": [{"path": f"/{n}"}]} for n in range(6)]
    reply = {"choices": [{"message": {"role": "assistant", "content": "words of the model"}}]}
    events.insert(4, {"event": "model", "model": "m", "input": [], "output": reply})
    path = tmp_path / "log.json"
    sample = {"id": 1, "epoch": 1, "input": "Fix it.", "target": "", "messages": [], "events": events}
    path.write_text(json.dumps({"version": 2, "status": "success", "eval": {"task": "t", "model": "m"},
                                "samples": [sample]}), encoding="utf-8")  # fmt: skip
    async with reviewing(path) as driver:
        assert driver.review.steps.cursor == 4, "it opens on the first step that is listed"
        await driver.until(lambda: "6 hidden: o" in driver.text() and "words of the model" in driver.text())
        assert ") Next run" not in driver.text(), "there is no list of runs"
        assert driver.review.steps.row_count == driver.review.steps.count - 6
        await driver.press("alt+h")
        assert driver.review.steps.row_count == driver.review.steps.count
    async with reviewing(tmp_path) as driver:
        await driver.until(lambda: driver.on(RunsScreen).table.count == 1)
        await driver.press("enter")
        await driver.until_on(ReviewScreen)
        await driver.until_read(4)
        await driver.press("q")
        await driver.until_on(RunsScreen)
        await driver.press("S")
        await driver.until_on(PlacesScreen)
        await driver.type("/0")
        await driver.until(lambda: "1 in 1 of " in driver.text())
        await driver.press("enter", "enter")
        await driver.until_on(ReviewScreen)
        await driver.until_read(0)
        await driver.until(lambda: "hidden: o" in driver.text())
        assert driver.review.steps.cursor == 0, "a hidden step that was asked for stays"


async def test_a_cell_for_many_steps_shows_their_share_of_errors_and_rare_marks(tmp_path: Path) -> None:
    codes = [int(400 <= number < 500) for number in range(800)]
    turns = [
        command("sed -i 's/a/b/' x.py" if n == 100 else f"make {n}", "", returncode=c)
        for n, c in enumerate(codes)
    ]
    async with reviewing(mini_run(tmp_path / "a.traj.json", turns)) as driver:
        await driver.until_read(0)
        await driver.until_surveyed()
        await driver.until(lambda: "█" in driver.text().split("\n")[1])
        cells = driver.text().split("\n")[1].partition("▏")[2]
        ruler = driver.review.query_one(Ruler)
        assert cells[ruler.column_of(102)] == "e"
        assert {cells[ruler.column_of(step)] for step in (200, 300, 600, 780)} == {"·"}
        assert {cells[ruler.column_of(step)] for step in (420, 450, 480)} == {"█"}
