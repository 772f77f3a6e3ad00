"""A page of the review screen with the times of a run."""

from __future__ import annotations

from pathlib import Path

from screens.review.reviewing import TURNS, Reviewing, mini_run, reviewing
from unit.sessions.test_times import timed_run

from gistpoint.tui.screens.review.pages.times import TimesPage


def page(driver: Reviewing) -> TimesPage:
    return driver.review.query_one(TimesPage)


async def test_the_times_of_a_run_are_a_page_and_lead_to_its_steps(tmp_path: Path) -> None:
    async with reviewing(timed_run(tmp_path / "run.traj.json"), size=(80, 24)) as driver:
        await driver.until_read(0)
        await driver.press("percent_sign")
        await driver.until(
            lambda: "total 32.0s: model 18.0s, tools 12.0s, user 0s, unknown 2.00s" in driver.text()
        )
        assert "a full bar is 5.00s" in driver.text()
        assert page(driver).count == 6
        await driver.press("down", "down", "enter")
        await driver.until_read(4)
        await driver.press("s")
        await driver.until(lambda: "longest steps first" in driver.text())
        await driver.press("s")
        await driver.until(lambda: "median" in driver.text())
        assert "bash" in driver.text()
        await driver.press("s")
        await driver.until(lambda: "no call" in driver.text() or "test " in driver.text())


async def test_a_run_without_times_says_so(tmp_path: Path) -> None:
    async with reviewing(mini_run(tmp_path / "run.traj.json", TURNS), size=(80, 24)) as driver:
        await driver.until_read(0)
        await driver.press("percent_sign")
        await driver.until(lambda: "No times are recorded." in driver.text())
        assert page(driver).count == 0
        await driver.press("s", "s", "s", "enter")
