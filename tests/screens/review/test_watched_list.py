"""The list of runs while the runs are being written."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fakes import FakeClock
from screens.review.reviewing import TURNS, Reviewing, mini_run
from screens.settling import until

from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.running import NEVER
from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
from gistpoint.sessions.annotations.reviews import RunVerdict
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.watching import FolderWatch
from gistpoint.tui.commands.review import review_settings
from gistpoint.tui.review_app import ReviewApp
from gistpoint.tui.screens.review.reading_runs import row_reader
from gistpoint.tui.screens.review.run_rows import COLUMNS, RunRow, now_words
from gistpoint.tui.screens.review.runs import RunsScreen
from gistpoint.tui.screens.review.screen import ReviewScreen
from gistpoint.tui.screens.review.settings import ReviewSettings
from gistpoint.tui.screens.review.watching import ListWatch, WatchedRows


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
        assert {now_words(row) for row in screen.table.shown} == {"■ ended"}
        assert "Failed" not in driver.text()


def hidden(rows: Sequence[RunRow]) -> list[bool]:
    """Return of each row whether it shows neither its model nor its outcome."""
    shown = [" ".join(column.shown(row) for column in COLUMNS if column.name != "file") for row in rows]
    return [not {"model-x", "ValueError", "failed"} & set(text.split()) for text in shown]


def slow_watch(folder: Path, settings: ReviewSettings) -> tuple[ListWatch, Callable[[], Any]]:
    """Return a watch of files that take 0.2 s each to read, and a function that looks, 1 s later each time."""
    clock = FakeClock()

    def slow_reader(settings: ReviewSettings) -> Callable[[RunRow, RunDocument], RunRow]:
        read = row_reader(settings)

        def slowly(row: RunRow, document: RunDocument) -> RunRow:
            clock.advance(200)
            return read(row, document)

        return slowly

    watch = ListWatch([str(folder)], settings, slow_reader)
    watch._watch = FolderWatch([folder], header_of=watch._header, clock=lambda: clock.mono_ms() / 1000)

    def look() -> Any:
        clock.advance(1000)
        return watch._poll(SimpleNamespace(cancel=NEVER))  # type: ignore[arg-type]

    return watch, look


def eight_failures(folder: Path) -> ReviewSettings:
    for number in range(8):
        written(folder / f"{number}.traj.json", "ValueError")
        path = folder / f"{number}.traj.json"
        path.write_text(path.read_text().replace(f'"{number}.traj"', '"model-x"'))
        os.utime(path, (time.time() - 5,) * 2)
    return review_settings(Locations.of_user(), "first", blind=False)


def test_blind_mode_hides_every_run_at_the_next_check_however_long_reading_takes(tmp_path: Path) -> None:
    settings = eight_failures(tmp_path)
    watch, look = slow_watch(tmp_path, settings)
    assert len(look().rows) < 8  # reading them takes longer than a check
    watch.use(replace(settings, blind=True))
    assert hidden(look().rows) == [True] * 8
    assert all(watched is None or all(hidden(watched.rows)) for watched in (look() for _ in range(8)))
    watch.use(settings)
    assert hidden(look().rows) == [False] * 8


def test_a_verdict_is_shown_although_its_run_is_read_again_only_in_a_later_check(tmp_path: Path) -> None:
    settings = eight_failures(tmp_path)
    watch, look = slow_watch(tmp_path, settings)
    rows = [look() for _ in range(4)][1].rows
    reviews = Reviewer(ReviewStore(settings.reviews, SystemTime()), "first")
    for row in rows:
        reviews.verdict(row.review.run, RunVerdict.ACCEPT)
    watch.read_again([row.name for row in rows])
    shown = [watched for _ in range(8) if (watched := look()) is not None]
    assert [row.review.verdict is not None for row in shown[-1].rows] == [True] * 8


async def test_rows_that_were_read_before_blind_mode_began_are_hidden(tmp_path: Path) -> None:
    eight_failures(tmp_path)
    app = watching(tmp_path)
    async with app.run_test(size=(160, 30), notifications=True) as pilot:
        driver = Reviewing(app, pilot)
        screen = await driver.until_on(RunsScreen)
        await driver.until(lambda: screen.table.count == 8)
        late = list(screen.table.shown)
        assert not any(hidden(late))
        screen.action_blind()
        assert all(hidden(screen.table.shown))
        screen.take_watched(WatchedRows(late, True, 0, ()))
        assert all(hidden(screen.table.shown))


async def test_a_query_for_content_follows_what_is_written(tmp_path: Path) -> None:
    written(tmp_path / "one.traj.json", "Submitted")
    app = watching(tmp_path)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        driver = Reviewing(app, pilot)
        screen = await driver.until_on(RunsScreen)
        await driver.until(lambda: screen.table.count == 1 and screen._listed)
        screen.action_filter()
        screen.words.value = 'text:"Submitted" or text:"ZeroDivisionError"'
        await driver.until(lambda: bool(screen.table.answers) and not screen._searching)
        screen.words.value = 'text:"ZeroDivisionError"'
        await driver.until(lambda: screen.table.count == 0 and not screen._searching)
        written(tmp_path / "two.traj.json", "ZeroDivisionError")
        await driver.until(lambda: [Path(row.name).name for row in screen.table.shown] == ["two.traj.json"])
        written(tmp_path / "one.traj.json", "ZeroDivisionError")
        await driver.until(lambda: screen.table.count == 2)
        written(tmp_path / "two.traj.json", "Submitted")
        await driver.until(lambda: [Path(row.name).name for row in screen.table.shown] == ["one.traj.json"])
    assert not app.crashes


async def test_an_answer_about_a_run_that_has_changed_meanwhile_is_not_taken(tmp_path: Path) -> None:
    written(tmp_path / "one.traj.json", "Submitted")
    app = watching(tmp_path)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        driver = Reviewing(app, pilot)
        screen = await driver.until_on(RunsScreen)
        await driver.until(lambda: screen.table.count == 1 and screen._listed)
        (row,) = screen.table.shown
        asked = (row.name, row.hides, ("text", "words"))
        screen._searching = True
        screen.take_watched(WatchedRows([row], True, 0, (), read={row.name}))
        screen._take_answers({asked: True})
        assert asked not in screen.table.answers
