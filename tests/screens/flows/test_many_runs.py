"""Going through the runs of a list without returning to it."""

from __future__ import annotations

from pathlib import Path

from screens.review.reviewing import TURNS, Reviewing, command, mini_run, reviewing

from gistpoint.core.demo.tasks import recorded_runs, unpack_demo
from gistpoint.core.locations import Locations
from gistpoint.tui.screens.review.runs import RunsScreen
from gistpoint.tui.screens.review.screen import ReviewScreen


def three(folder: Path) -> None:
    """Write runs a, b and c, whose first words differ; b has no error, and c ends with one."""
    wrong = command("false", "no", returncode=1)
    for name, turns in (("a", TURNS[1:]), ("b", TURNS[1:2]), ("c", [*TURNS[1:5], wrong])):
        mini_run(
            folder / f"{name}.traj.json", [command("ls", "", thought=name), *turns], model=f"model-{name}"
        )


async def in_sight(driver: Reviewing, name: str, index: int) -> None:
    """Wait until a step of a run is shown and the run's annotations are read."""
    await driver.until(lambda: driver.review.run.name.endswith(f"{name}.traj.json"))
    await driver.until_read(index)


async def test_the_next_run_is_shown_on_the_same_page_and_back(tmp_path: Path) -> None:
    three(tmp_path)
    async with reviewing(tmp_path) as driver:
        await driver.until(lambda: driver.on(RunsScreen).table.count == 3)
        await driver.press("enter")
        await driver.until_on(ReviewScreen)
        await in_sight(driver, "a", 0)
        await driver.until_surveyed()
        await driver.press("left_parenthesis")
        await driver.until(lambda: "first of 3 runs" in driver.text())
        await driver.press("f6", "right_parenthesis")
        await in_sight(driver, "b", 0)
        await driver.until(lambda: "model-b" in driver.text() and "model-a" not in driver.text())
        assert driver.review.pages.current == "raw"
        assert driver.review.steps.count == 4
        await driver.press("1", "right_parenthesis")
        await in_sight(driver, "c", 0)
        assert driver.review.run.review is not None
        assert not driver.review.run.review.labels
        await driver.press("left_parenthesis")
        await in_sight(driver, "b", 0)
        assert [label.label for label in driver.review.run.review.labels] == ["key_insight"]
        await driver.press("escape", "escape")
        runs = await driver.until_on(RunsScreen)
        assert runs.table.chosen.name.endswith("b.traj.json"), "the row of the run that was open last"


async def test_a_list_is_completed_once_the_run_above_it_was_read(tmp_path: Path) -> None:
    three(tmp_path)
    async with reviewing(tmp_path) as driver:
        runs = driver.on(RunsScreen)
        await driver.until(lambda: runs.table.count)
        await driver.press("enter")
        await driver.until_on(ReviewScreen)
        await in_sight(driver, "a", 0)
        await driver.until_surveyed()
        await driver.until(
            lambda: all(row.header.step_count for row in runs.table.shown) and runs.table.count == 3
        )


async def test_runs_open_at_the_milestone_that_was_asked_for(tmp_path: Path) -> None:
    three(tmp_path)
    async with reviewing(tmp_path) as driver:
        await driver.until(lambda: driver.on(RunsScreen).table.count == 3)
        await driver.press("enter")
        await driver.until_on(ReviewScreen)
        await in_sight(driver, "a", 0)
        await driver.until_surveyed()
        await driver.press("at", "at")
        await driver.until(lambda: "last error" in driver.text())
        await in_sight(driver, "a", 4)
        await driver.press("right_parenthesis")
        await in_sight(driver, "b", 0)
        await driver.until(lambda: "this run has none" in driver.text())
        await driver.press("right_parenthesis")
        await in_sight(driver, "c", 7)


async def test_picked_runs_are_gone_through_in_the_order_of_picking(tmp_path: Path) -> None:
    three(tmp_path)
    async with reviewing(tmp_path) as driver:
        await driver.until(lambda: driver.on(RunsScreen).table.count == 3)
        await driver.press("end", "space", "home", "space", "enter")
        await driver.until_on(ReviewScreen)
        await in_sight(driver, "c", 0)
        await driver.press("right_parenthesis")
        await in_sight(driver, "a", 0)
        await driver.press("right_parenthesis")
        await driver.until(lambda: "last of 2 runs" in driver.text())


async def test_a_search_goes_on_in_the_next_run(tmp_path: Path) -> None:
    three(tmp_path)
    async with reviewing(tmp_path) as driver:
        await driver.until(lambda: driver.on(RunsScreen).table.count == 3)
        await driver.press("enter")
        await driver.until_on(ReviewScreen)
        await in_sight(driver, "a", 0)
        await driver.press("slash")
        await driver.type("cat stats")
        await driver.press("enter")
        await in_sight(driver, "a", 3)
        await driver.press("right_parenthesis")
        await driver.until(
            lambda: driver.review.search.hits and driver.review.run.name.endswith("b.traj.json")
        )
        await driver.press("n")
        await in_sight(driver, "b", 3)


async def test_escape_goes_back_one_level_and_never_ends_the_program(tmp_path: Path) -> None:
    path = mini_run(tmp_path / "a.traj.json", TURNS)
    async with reviewing(path) as driver:
        await driver.until_read(0)
        await driver.press("f8", "escape")
        await driver.until(lambda: driver.review.pages.current == "step")
        await driver.press("tab", "escape")
        await driver.until(lambda: driver.app.focused is driver.review.steps)
        await driver.press("escape")
        await driver.until(lambda: "q closes the run" in driver.text())


async def test_the_demo_has_runs_to_go_through() -> None:
    for _ in unpack_demo(Locations.of_user().demo):
        pass
    async with reviewing(recorded_runs(), size=(120, 40)) as driver:
        runs = driver.on(RunsScreen)
        await driver.until(lambda: runs.table.count and all(row.header.step_count for row in runs.table.rows))
        assert {row.header.format for row in runs.table.rows} == {"mini-swe-agent", "atif", "gistpoint"}
        assert {row.header.verdict for row in runs.table.rows} == {"", "solved", "unsolved"}
        await driver.until(lambda: "Tickets that" in driver.text())
        await driver.press("enter")
        await driver.until_on(ReviewScreen)
        for number in range(2, runs.table.count + 1):
            await driver.until_surveyed()
            assert not driver.review.run.loader.document.warnings
            await driver.press("right_parenthesis")
            await driver.until(lambda number=number: f"run {number} of {runs.table.count}" in driver.text())  # type: ignore[misc]


async def test_escape_in_the_list_clears_the_filter_and_stays(tmp_path: Path) -> None:
    three(tmp_path)
    async with reviewing(tmp_path) as driver:
        runs = driver.on(RunsScreen)
        await driver.until(lambda: runs.table.count == 3)
        await driver.press("slash")
        await driver.type("model-b")
        await driver.until(lambda: runs.table.count == 1)
        await driver.type(" nowhere")
        await driver.until(lambda: "Runs 0 of 3: none matches the filter (Esc: all)" in driver.text())
        await driver.press("enter", "escape")
        await driver.until(lambda: runs.table.count == 3)
        await driver.press("escape")
        await driver.until(lambda: "q closes the list" in driver.text())
        (toast,) = driver.app._notifications
        toast.raised_at -= 3
        await driver.press("enter")
        await driver.until(lambda: driver.on(ReviewScreen) and "q closes the list" not in driver.text())


async def test_the_position_of_a_run_stays_visible_next_to_long_names(tmp_path: Path) -> None:
    for number in range(2):
        mini_run(
            tmp_path / f"{number}.json",
            TURNS,
            model="maker/model-of-a-long-name",
            task="library__library-11138",
        )
    async with reviewing(tmp_path) as driver:
        await driver.until(lambda: driver.on(RunsScreen).table.count == 2)
        await driver.press("enter")
        await driver.until(lambda: "run 1 of 2" in driver.text().split("\n")[0])
        assert "Submitted" in driver.text().split("\n")[0]
