"""A page of the review screen with an overview of a run."""

from __future__ import annotations

from pathlib import Path

from recorded_runs.repairs import RIGHT, WRONG, journal_run
from screens.review.reviewing import TURNS, Reviewing, mini_run, reviewing

from gistpoint.tui.screens.review.pages.profile import ProfilePage
from gistpoint.tui.screens.review.profiles import ProfilesScreen
from gistpoint.tui.screens.review.run_rows import task_words
from gistpoint.tui.screens.review.runs import RunsScreen


def page(driver: Reviewing) -> ProfilePage:
    return driver.review.query_one(ProfilePage)


def line(driver: Reviewing, start: str) -> str:
    return next((found for found in page(driver).text.split("\n") if found.startswith(start)), "")


async def test_the_profile_of_a_run_is_a_page_and_leads_to_its_steps(tmp_path: Path) -> None:
    async with reviewing(journal_run(tmp_path), size=(80, 24)) as driver:
        await driver.until_read(0)
        await driver.press("f12")
        await driver.until(lambda: line(driver, "v read"))
        assert "3 steps" in line(driver, "v read")
        assert "unknown" in page(driver).text
        place = line(driver, "step").index("▾")
        await driver.press("right_square_bracket")
        await driver.until(lambda: line(driver, "step").index("▾") > place)
        runs = page(driver).text.split("\n").index(line(driver, "tests"))
        page(driver).cursor_line = runs + 1
        await driver.press("enter")
        await driver.until_read(int(line(driver, "tests").split()[2]) - 1)


async def test_the_outcome_stays_hidden_in_the_profile_too(tmp_path: Path) -> None:
    async with reviewing(journal_run(tmp_path), blind=True) as driver:
        await driver.until_read(0)
        await driver.press("f12")
        await driver.until(lambda: line(driver, "v read"))
        assert "solved" not in page(driver).text.split("\n", 1)[0]


async def test_the_runs_of_a_list_are_shown_at_a_glance_and_open_from_there(tmp_path: Path) -> None:
    for name, submissions in (("one", (RIGHT,)), ("two", (WRONG, RIGHT))):
        (tmp_path / name).mkdir()
        journal_run(tmp_path / name, submissions)
    async with reviewing(tmp_path, size=(80, 24)) as driver:
        screen = await driver.until_on(RunsScreen)
        await driver.until(lambda: [row.header.step_count or 0 for row in screen.table.shown] == [8, 9])
        await driver.press("f12")
        glance = await driver.until_on(ProfilesScreen)
        await driver.until(lambda: sum(bool(found.run) for found in glance.view.drawn) >= 2)
        assert "by outcome" in driver.text()
        await driver.press("s")
        await driver.until(lambda: "by steps" in driver.text())
        row = next(number for number, found in enumerate(glance.view.drawn) if found.run)
        name = glance.view.drawn[row].run
        glance.view.cursor_line = row + 1
        await driver.press("enter")
        await driver.until_read(0)
        assert driver.review.run.name == name


async def test_a_task_has_the_same_name_at_a_glance_as_in_the_list(tmp_path: Path) -> None:
    task = "1a1ec2b7" * 8
    for name in ("a.json", "b.json"):
        mini_run(tmp_path / name, TURNS, task=task)
    async with reviewing(tmp_path, size=(160, 48)) as driver:
        screen = await driver.until_on(RunsScreen)
        await driver.until(lambda: [row.header.task for row in screen.table.shown] == [task] * 2)
        await driver.press("f12")
        glance = await driver.until_on(ProfilesScreen)
        await driver.until(lambda: sum(bool(found.run) for found in glance.view.drawn) >= 2)
        assert f"│{task_words(screen.table.shown[0])}  2 runs" in driver.text()
        assert task not in driver.text()


async def test_profiles_are_remade_only_for_files_that_were_written_to(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        mini_run(tmp_path / name, TURNS)

    def drawn(glance: ProfilesScreen) -> dict[str, int]:
        return {Path(found.name).name: found.profile.steps for found in glance._found}

    async with reviewing(tmp_path) as driver:
        screen = await driver.until_on(RunsScreen)
        await driver.until(lambda: [row.header.step_count or 0 for row in screen.table.shown] == [8, 8])
        await driver.press("f12")
        glance = await driver.until_on(ProfilesScreen)
        await driver.until(lambda: drawn(glance) == {"a.json": 8, "b.json": 8})
        known = {found.name: found.profile for found in glance._found}
        await driver.press("q")
        mini_run(tmp_path / "b.json", TURNS[:2])
        await driver.press("f12")
        again = await driver.until_on(ProfilesScreen)
        await driver.until(lambda: drawn(again) == {"a.json": 8, "b.json": 4})
        kept = [Path(found.name).name for found in again._found if found.profile is known[found.name]]
        assert kept == ["a.json"]
