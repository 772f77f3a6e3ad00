"""The labels dialog, the width of the list of steps, and a run's screen before the run is open."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from examples import at_sizes
from screens.review.reviewing import TURNS, command, mini_run, reviewing

from gistpoint.sessions.annotations.labels import BUILT_IN, DEFAULT
from gistpoint.sessions.runs import opening
from gistpoint.tui.screens.review.annotation_dialogs import LabelChoices, LabelDialog
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


@pytest.mark.parametrize("size", at_sizes((80, 24), (120, 35), (60, 30)))
async def test_labels_are_shown_in_full_beside_the_scroll_bar(tmp_path: Path, size: tuple[int, int]) -> None:
    run = mini_run(tmp_path / "a.traj.json", TURNS)
    async with reviewing(run, size=size) as driver:
        await driver.until_read(0)
        await driver.press("L")
        labels = (await driver.until_on(LabelDialog)).query_one(LabelChoices)
        await driver.until(lambda: labels.max_scroll_y > 0)
        await driver.pilot.pause()
        region = labels.scrollable_content_region
        shown = [line[region.x : region.right] for line in driver.text().split("\n")][
            region.y : region.bottom
        ]
        meanings = [f"{label.name}: {label.description}" for labels in BUILT_IN for label in labels.labels]
        assert all(line[:5] == "     " or line[3:5] == "  " for line in shown if line.strip()), "indented"
        whole = " ".join(" ".join(shown).split())
        in_sight = [words for words in meanings if words.partition(":")[0] in whole][:-1]
        assert len(in_sight) > 7
        assert [words for words in in_sight if words not in re.sub(r" \d? ", " ", whole)] == []


async def test_a_label_shows_a_key_only_if_the_key_picks_it(tmp_path: Path) -> None:
    run = mini_run(tmp_path / "a.traj.json", TURNS)
    async with reviewing(run, size=LARGE) as driver:
        await driver.until_read(0)
        await driver.press("L")
        labels = (await driver.until_on(LabelDialog)).query_one(LabelChoices)
        keys = [str(label.prompt)[2].strip() for label in labels.options]
        assert keys == [*"1234567890", "", "", "", ""]


@pytest.mark.parametrize(("command_line", "wide"), [("ls", False), ("grep -rn needle " + "x" * 90, True)])
async def test_the_list_of_steps_has_the_width_that_its_titles_need(
    tmp_path: Path, command_line: str, wide: bool
) -> None:
    run = mini_run(tmp_path / "a.traj.json", [command(command_line, "output")] * 3)
    async with reviewing(run, size=LARGE) as driver:
        await driver.until_read(0)
        await driver.until(lambda: driver.review.steps.visible_rows_read)
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
