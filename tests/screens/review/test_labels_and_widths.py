"""The labels dialog, the width of the list of steps, and a run's screen before the run is open."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from screens.review.reviewing import TURNS, command, mini_run, reviewing

from gistpoint.sessions.annotations.labels import DEFAULT
from gistpoint.sessions.runs import opening
from gistpoint.tui.screens.review.annotations import LabelChoices, LabelDialog
from gistpoint.tui.screens.review.screen import ReviewScreen

LARGE = (160, 48)


async def test_all_labels_are_in_sight_and_a_key_picks_one(tmp_path: Path) -> None:
    run = mini_run(tmp_path / "a.traj.json", TURNS)
    async with reviewing(run, size=LARGE) as driver:
        await driver.until_read(0)
        await driver.press("L")
        dialog = await driver.until_on(LabelDialog)
        labels = dialog.query_one(LabelChoices)
        await driver.until(lambda: all(label.name in driver.text() for label in DEFAULT.labels))
        assert labels.max_scroll_y == 0
        body = dialog.query_one(".dialog-body")
        assert body.max_scroll_y == 0
        await driver.press("2")
        await driver.until_on(ReviewScreen)
        await driver.until(lambda: "+ wrong theory on step 1" in driver.text())
        await driver.press("L")
        await driver.until_on(LabelDialog)
        await driver.type("harness")
        await driver.press("enter")
        await driver.until(lambda: "+ harness fault on step 1" in driver.text())


async def test_a_label_that_is_wrapped_goes_on_below_its_name(tmp_path: Path) -> None:
    run = mini_run(tmp_path / "a.traj.json", TURNS)
    async with reviewing(run, size=(60, 30)) as driver:
        await driver.until_read(0)
        await driver.press("L")
        dialog = await driver.until_on(LabelDialog)
        labels = dialog.query_one(LabelChoices)
        await driver.until(lambda: labels.size.width)
        rows = [option.prompt for option in map(labels.get_option_at_index, range(labels.option_count))]
        wrapped = [str(prompt).split("\n") for prompt in rows if "\n" in str(prompt)]
        assert wrapped
        for _, *more in wrapped:
            assert all(line.startswith("     ") for line in more)


@pytest.mark.parametrize(("command_line", "wide"), [("ls", False), ("grep -rn needle " + "x" * 90, True)])
async def test_the_list_of_steps_has_the_width_that_its_titles_need(
    tmp_path: Path, command_line: str, wide: bool
) -> None:
    run = mini_run(tmp_path / "a.traj.json", [command(command_line, "output")] * 3)
    async with reviewing(run, size=LARGE) as driver:
        await driver.until_read(0)
        await driver.until(lambda: driver.review.steps.knows_sight)
        await driver.pilot.pause(0.2)
        steps = driver.review.steps
        assert (steps.outer_size.width >= 57) is wide
        assert steps.outer_size.width <= 60
        assert steps.width_needed <= steps.outer_size.width or wide


async def test_what_is_known_is_shown_before_the_run_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = mini_run(tmp_path / "a.traj.json", TURNS)
    let, opened = threading.Event(), opening.open_run
    async with reviewing(run, size=LARGE) as driver:
        await driver.until_read(0)
        monkeypatch.setattr(opening, "open_run", lambda *args, **more: let.wait(60) and opened(*args, **more))
        screen = ReviewScreen(str(run), driver.review.settings, title="A task by its title")
        await driver.app.push_screen(screen)
        try:
            await driver.until(lambda: "A task by its title" in driver.text())
            assert "opening …" in driver.text()
            assert "Steps …" in driver.text()
        finally:
            let.set()
        await driver.until_read(0)
        assert "opening …" not in driver.text()
        assert "Opening the run" not in driver.text()
