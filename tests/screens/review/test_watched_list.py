"""The list of runs while the runs are being written."""

from __future__ import annotations

import os
import time
from pathlib import Path

from screens.review.reviewing import TURNS, Reviewing, mini_run
from screens.settling import until

from gistpoint.core.locations import Locations
from gistpoint.tui.commands.review import review_settings
from gistpoint.tui.review_app import ReviewApp
from gistpoint.tui.screens.review.reading_runs import row_reader
from gistpoint.tui.screens.review.runs import RunsScreen
from gistpoint.tui.screens.review.screen import ReviewScreen
from gistpoint.tui.screens.review.watching import ListWatch


def written(path: Path, status: str) -> None:
    mini_run(path, TURNS, task="mean", model=path.stem)
    path.write_text(path.read_text("utf-8").replace('"Submitted"', f'"{status}"'), "utf-8")
    os.utime(path, (time.time() - 5,) * 2)  # it is not read while it may still be written


def watching(folder: Path, *, blind: bool = False) -> ReviewApp:
    settings = review_settings(Locations.of_user(), "first", blind=blind)
    paths = [str(folder)]
    watch = ListWatch(paths, settings, row_reader)
    return ReviewApp(settings.locations, lambda: lambda: RunsScreen(paths, settings, watch=watch), paths)


async def test_new_failures_are_on_top_of_a_watched_list(tmp_path: Path) -> None:
    written(tmp_path / "old.traj.json", "RuntimeError")
    written(tmp_path / "good.traj.json", "Submitted")
    app = watching(tmp_path)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        driver = Reviewing(app, pilot)
        screen = await driver.until_on(RunsScreen)
        await driver.until(lambda: screen.table.count == 2 and screen._listed)
        assert "watching" in driver.text()
        written(tmp_path / "bad.traj.json", "ValueError")
        await driver.until(lambda: screen.table.count == 3)
        assert Path(screen.table.shown[0].name).name == "bad.traj.json"
        assert screen.table.shown[0].now.startswith("✘ failed ")
        await driver.until(lambda: "Failed: bad.traj.json" in driver.text())
        (tmp_path / "old.traj.json").unlink()
        await driver.until(lambda: screen.table.count == 2)
        await driver.press("home", "enter")
        await driver.until_on(ReviewScreen)
        await driver.until_read(0)
        await driver.press("Y")
        await driver.until(lambda: driver.review.run.review.verdict is not None)  # type: ignore[union-attr]
        await driver.press("q")
        await driver.until(
            lambda: any(row.review is not None and row.review.verdict for row in screen.table.shown)
        )
    assert not app.crashes


async def test_a_blind_reviewer_does_not_see_which_runs_failed(tmp_path: Path) -> None:
    written(tmp_path / "good.traj.json", "Submitted")
    app = watching(tmp_path, blind=True)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        driver = Reviewing(app, pilot)
        screen = await driver.until_on(RunsScreen)
        await driver.until(lambda: screen.table.count == 1 and screen._listed)
        written(tmp_path / "bad.traj.json", "ValueError")
        await until(pilot, lambda: screen.table.count == 2)
        assert {row.now for row in screen.table.shown} == {"■ ended"}
        assert "Failed" not in driver.text()
