"""A blind review shows neither agent, model, score nor outcome anywhere before the verdict."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from recorded_runs import dialogues, trials
from recorded_runs.events import journal
from screens.review.reviewing import Reviewing, reviewing
from textual.widgets import Button, Input

from gistpoint.tui.review_pages import PAGES
from gistpoint.tui.screens.review import open_run
from gistpoint.tui.screens.review.compare import CompareScreen
from gistpoint.tui.screens.review.places import PlacesScreen
from gistpoint.tui.screens.review.ruler import Ruler
from gistpoint.tui.screens.review.runs import RunsScreen
from gistpoint.tui.screens.review.screen import ReviewScreen


def breakpoint_run(folder: Path) -> Path:
    path = folder / "h.jsonl"
    lines = (json.dumps(line) + "\n" for line in dialogues.breakpoint_results())
    path.write_text("".join(lines), encoding="utf-8")
    return path


def terminal_run(folder: Path) -> Path:
    return trials.terminal_folder(folder)


def harbor_run(folder: Path) -> Path:
    error = {"exception_type": "AgentTimeoutError", "exception_message": "timed out"}
    return trials.harbor_folder(folder, exception_info=error)


def journal_run(folder: Path) -> Path:
    path = folder / "j" / "journal.jsonl"
    path.parent.mkdir()
    events = journal()
    events[0]["participant"] = "P07"
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return path


SECRETS = re.compile(
    r"model-x|some-agent|terminus|P07|score [01]\.|\bsolved\b|unsolved|AgentTimeout|timed out|reward|test_found"
)


def secrets(driver: Reviewing) -> list[str]:
    """Return the lines of the screen that reveal something; not the frame that names the verdicts' keys."""
    return [line for line in driver.text().splitlines() if SECRETS.search(line) and "verdicts ─" not in line]


@pytest.mark.parametrize("made", [breakpoint_run, terminal_run, harbor_run, journal_run])
async def test_no_page_and_no_row_reveals_who_made_a_run_or_how_it_ended(
    tmp_path: Path, made: Callable[[Path], Path]
) -> None:
    async with reviewing(made(tmp_path), blind=True, size=(160, 48)) as driver:
        if isinstance(driver.app.screen, RunsScreen):
            runs = driver.on(RunsScreen)
            await driver.until(lambda: runs.table.shown and all(row.kept for row in runs.table.shown))
            await driver.press("enter")
            await driver.until_on(ReviewScreen)
        await driver.until_read(driver.review.run.loader.first)
        await driver.until_surveyed()
        steps = driver.review.steps
        for page in PAGES:
            if page.later:
                continue
            await driver.review.action_page(page.name)
            for index in (0, steps.count - 1):
                steps.cursor = index
                await driver.until(lambda index=index: driver.review.run.step.index == index)
                await driver.pilot.pause(0.05)
                assert secrets(driver) == [], (page.name, index, driver.text())
        survey = driver.review.run.loader.survey
        assert not any(survey.errors[-1:])
        await driver.press("f2", "slash")
        for word in ("solved", "score 1.0", "test_found", "P07", "AgentTimeout"):
            driver.app.screen.query_one("#review-search Input", Input).value = word
            await driver.until(lambda: "searching" not in driver.text())
            await driver.pilot.pause(0.3)
            await driver.until(lambda: "None found" in driver.text(), 8.0)
        await driver.press("escape", "V")
        await driver.pilot.pause(0.1)
        driver.app.screen.query_one(Button).press()
        await driver.until(lambda: driver.review.run.review.verdict is not None)
        await driver.until_surveyed()
        await driver.press("end")
        await driver.until(lambda: secrets(driver))  # now it may be seen


async def test_a_list_and_a_comparison_of_runs_reveal_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    breakpoint_run(tmp_path / "a")
    terminal_run(tmp_path / "b")
    async with reviewing(tmp_path, blind=True, size=(200, 48)) as driver:
        runs = driver.on(RunsScreen)
        await driver.until(lambda: len(runs.table.shown) > 1 and all(row.kept for row in runs.table.shown))
        assert secrets(driver) == []
        for query in ("text:score", "text:solved", "error:test_found", "text:terminus"):
            runs.table.narrow(query)
            runs._search_content()
            await driver.until(lambda: not runs._searching)
            assert not runs.table.shown, query
        runs.table.narrow("")
        runs.action_search()
        await driver.until_on(PlacesScreen)
        await driver.type("solved")
        await driver.until(lambda: "Lines none" in driver.text())
        await driver.press("escape", "escape")
        await driver.until_on(RunsScreen)
        screens = runs._settings.screens
        left, right = (row.name for row in runs.table.shown[:2])
        driver.app.push_screen(screens.comparison(left, right, runs._settings))
        compared = await driver.until_on(CompareScreen)
        await driver.until(lambda: compared.rows.count)
        for row in range(compared.rows.count):
            compared.rows.cursor = row
            await driver.pilot.pause(0.1)
            assert secrets(driver) == []


async def test_a_search_in_all_runs_reveals_nothing_of_those_without_a_verdict(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        reply = terminal_run(tmp_path / name) / "agent-logs/episode-0/response.txt"
        reply.write_text(reply.read_text().replace("I look", f"I look for {name}"))  # a copy is the same run
    async with reviewing(tmp_path, blind=True, size=(160, 48)) as driver:
        runs = driver.on(RunsScreen)
        await driver.until(lambda: len(runs.table.shown) > 1 and all(row.kept for row in runs.table.shown))
        await driver.press("enter")
        await driver.until_on(ReviewScreen)
        await driver.until_read(driver.review.run.loader.first)
        await driver.press("Y")
        await driver.until(lambda: driver.review.run.review.verdict is not None)
        await driver.press("slash")
        bar = driver.app.screen.query_one("#review-search")
        bar.open(all_runs=True)  # type: ignore[attr-defined]
        await driver.type("test_found")
        search = driver.review.search
        await driver.until(lambda: search.count)
        await driver.pilot.pause(0.5)
        assert {hit.run for hit in search.hits} == {driver.review.run.name}


async def test_the_strip_forgets_at_once_what_a_review_that_becomes_blind_hides(tmp_path: Path) -> None:
    async with reviewing(journal_run(tmp_path), size=(160, 48)) as driver:
        await driver.until_read(driver.review.run.loader.first)
        await driver.until_surveyed()
        await driver.press("end")
        await driver.until(lambda: driver.review.run.step.index == driver.review.steps.count - 1)
        ruler, loader = driver.review.query_one(Ruler), driver.review.run.loader
        cursor = driver.review.steps.cursor
        seen = list(ruler.weights)
        assert any(seen)
        # The survey is made again only once there has been no input for a while.
        await driver.press("ctrl+b")
        await driver.until(lambda: driver.review.run.hides)
        assert (loader.survey, list(ruler.weights), list(ruler.series)) == (None, [], [])
        await driver.until_surveyed()
        await driver.until(lambda: len(ruler.weights) == driver.review.steps.count)
        assert driver.review.steps.cursor == cursor
        blind = loader.survey
        assert blind.hides
        await driver.press("ctrl+b")
        await driver.until(lambda: not driver.review.run.hides)
        assert loader.survey is not None  # what was not hidden stays until there is more
        await driver.until(lambda: loader.survey is not blind and loader.survey.finished)
        assert not loader.survey.hides
        await driver.until(lambda: list(ruler.weights) == seen)


async def hidden_by_its_own_review(driver: Reviewing) -> list[str]:
    """Hide the outcome of the first run of a list, and return the names of the runs, the hidden one first."""
    runs = driver.on(RunsScreen)
    await driver.until(lambda: len(runs.table.shown) > 1 and all(row.kept for row in runs.table.shown))
    names = [row.name for row in runs.table.shown]
    await driver.press("enter")
    await driver.until_on(ReviewScreen)
    await driver.until_read(driver.review.run.loader.first)
    await driver.until(lambda: driver.review.run.annotations is not None)
    driver.review.run.annotate("blind")
    await driver.until(lambda: driver.review.run.review.blind)
    return names


async def test_a_run_that_its_own_review_hides_is_hidden_from_the_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        reply = terminal_run(tmp_path / name) / "agent-logs/episode-0/response.txt"
        reply.write_text(reply.read_text().replace("I look", f"I look for {name}"))  # a copy is the same run
    async with reviewing(tmp_path, size=(160, 48)) as driver:
        names = await hidden_by_its_own_review(driver)
        await driver.press(")")
        await driver.until(lambda: driver.review.run.name == names[1] and bool(driver.review.run.review))
        assert not driver.review.run.hides
        monkeypatch.setattr(open_run, "_DRAWN_S", 60.0)  # the annotations are not read
        await driver.press("(")
        await driver.until(lambda: driver.review.run.name == names[0])
        await driver.until(lambda: driver.review.run.step is not None and driver.review.run.review is None)
        assert secrets(driver) == []
        driver.review.open_run(names[0])
        await driver.until(
            lambda: driver.review.run.name == names[0] and driver.review.run.header is not None
        )
        await driver.until(lambda: driver.review.run.step is not None and driver.review.run.review is None)
        assert secrets(driver) == []


async def test_a_comparison_hides_what_the_review_of_either_run_hides(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        reply = terminal_run(tmp_path / name) / "agent-logs/episode-0/response.txt"
        reply.write_text(reply.read_text().replace("I look", f"I look for {name}"))  # a copy is the same run
    async with reviewing(tmp_path, size=(160, 48)) as driver:
        names = await hidden_by_its_own_review(driver)
        for order in (names, names[::-1]):
            driver.app.push_screen(driver.review.settings.screens.comparison(*order, driver.review.settings))
            compared = await driver.until_on(CompareScreen)
            await driver.until(lambda compared=compared: compared.rows.count)
            for row in range(compared.rows.count):
                compared.rows.cursor = row
                await driver.pilot.pause(0.1)
                assert secrets(driver) == []
            await driver.press("escape")
            await driver.until_on(ReviewScreen)
        await driver.press("Y")
        await driver.until(lambda: driver.review.run.review.verdict is not None)
        driver.app.push_screen(driver.review.settings.screens.comparison(*names, driver.review.settings))
        compared = await driver.until_on(CompareScreen)
        await driver.until(lambda: compared.rows.count)
        compared.rows.cursor = compared.rows.count - 1
        await driver.until(lambda: secrets(driver))
