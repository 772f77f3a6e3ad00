"""Search while typing, in parts of steps, in one run or in all, and movement from hit to hit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from screens.review.reviewing import TURNS, command, mini_run, reviewing

from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.sessions.annotations.keys import run_key
from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
from gistpoint.sessions.annotations.reviews import RunVerdict
from gistpoint.sessions.records.model import TextScope
from gistpoint.sessions.runs.opening import open_run
from gistpoint.tui.screens.review.hit_list import HitList
from gistpoint.tui.screens.review.pages.texts import RunInfoPage
from gistpoint.tui.screens.review.places import PlacesScreen
from gistpoint.tui.screens.review.runs import RunsScreen
from gistpoint.tui.screens.review.screen import ReviewScreen
from gistpoint.tui.screens.review.search import SCOPES


async def test_hits_are_counted_as_one_types_and_walked_with_n(tmp_path: Path) -> None:
    run = mini_run(tmp_path / "a.traj.json", TURNS)
    async with reviewing(run, size=(120, 40)) as driver:
        await driver.until_read(0)
        await driver.press("slash")
        await driver.type("mean")
        await driver.until(lambda: driver.review.search.count >= 4)
        await driver.until(lambda: "hits ▏" in driver.text())
        steps = [hit.step or 0 for hit in driver.review.search.hits]
        assert steps == sorted(steps)
        await driver.press("enter")
        first = driver.review.search.hits[0]
        await driver.until(lambda: driver.review.steps.cursor == first.step)
        for number in range(1, len(driver.review.search.hits)):
            await driver.press("n")
            await driver.until(lambda number=number: driver.review.search.hit == number)
            hit = driver.review.search.hits[number]
            await driver.until(lambda hit=hit: driver.review.run.step.index == hit.step)
            view = driver.review.step_page
            offset = view.composed.offset_of(hit.scope, hit.part, hit.start)
            assert offset is not None
            assert view.text[offset : offset + 4].lower() == "mean"
        await driver.press("n")
        await driver.until(lambda: driver.review.search.hit == 0)
        await driver.press("N")
        await driver.until(lambda: driver.review.search.hit == len(driver.review.search.hits) - 1)
        await driver.press("f8")
        hits = driver.review.query_one(HitList)
        await driver.until(lambda: hits.count == len(driver.review.search.hits))


async def test_hits_in_the_step_in_sight_are_marked_while_one_types(tmp_path: Path) -> None:
    run = mini_run(tmp_path / "a.traj.json", TURNS)
    async with reviewing(run, size=(120, 40)) as driver:
        await driver.until_read(0)
        await driver.until_surveyed()
        await driver.press("slash")
        await driver.type("fix")
        await driver.until(lambda: driver.review.step_page.match_place == (1, 1))
        await driver.type("ed")
        await driver.until(lambda: driver.review.step_page.match_place == (0, 0))


async def test_scopes_and_regular_expressions_narrow_what_is_found(tmp_path: Path) -> None:
    run = mini_run(tmp_path / "a.traj.json", TURNS)
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.press("slash", "alt+r")
        await driver.type("def.mean")
        await driver.until(lambda: driver.review.search.count > 0 and "found;" in driver.text())
        everywhere = driver.review.search.count
        at = next(n for n, (_, scopes) in enumerate(SCOPES) if scopes == (TextScope.RESULT,))
        await driver.press(*["alt+k"] * at)
        await driver.until(lambda: 0 < driver.review.search.count < everywhere)
        assert {hit.scope for hit in driver.review.search.hits} == {TextScope.RESULT}
        await driver.press("left_parenthesis")
        await driver.until(lambda: "not a regular expression" in driver.text())


async def test_a_hit_in_a_folded_part_unfolds_it(tmp_path: Path) -> None:
    lines = "\n".join([*(f"line {n}" for n in range(2_000)), "needle here"])
    run = mini_run(tmp_path / "long.traj.json", [command("cat big", lines)])
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.press("slash")
        await driver.type("needle")
        await driver.until(lambda: driver.review.search.count == 1)
        await driver.press("enter")
        await driver.until(lambda: "needle here" in driver.text())


async def test_all_runs_of_a_list_are_searched(tmp_path: Path) -> None:
    for name in ("a", "b"):
        turns = [command("ls", f"only {name} has this"), command("ls", "both have this")]
        mini_run(tmp_path / f"{name}.traj.json", turns, task="one task of a long name, which is cut")
    async with reviewing(tmp_path) as driver:
        await driver.until(lambda: driver.on(RunsScreen).table.count == 2)
        await driver.press("S")
        places = await driver.until_on(PlacesScreen)
        await driver.type("have this")
        await driver.until(lambda: "2 in 2 of 2 runs" in driver.text())
        assert {driver.text().count(f"{name} one task") for name in ("a", "b")} == {1}
        await driver.press("enter", "down", "enter")
        await driver.until_on(ReviewScreen)
        await driver.until(
            lambda: driver.review.search.hit == 1 and driver.review.run.name.endswith("b.traj.json")
        )
        await driver.until(lambda: "both have this" in driver.text())
        await driver.press("n")
        await driver.until(
            lambda: driver.review.run.name.endswith("a.traj.json") and driver.review.run.step is not None
        )
        await driver.press("q")
        await driver.until_on(PlacesScreen)
        await driver.press("slash")
        await driver.type("nowhere")
        await driver.until(lambda: "Lines none" in driver.text() and not places.table.count)
        await driver.press("escape")
        await driver.until_on(RunsScreen)


async def test_a_search_in_all_runs_says_what_it_can_not_read(tmp_path: Path) -> None:
    mini_run(tmp_path / "a.traj.json", TURNS)
    async with reviewing(tmp_path) as driver:
        await driver.until(lambda: driver.on(RunsScreen).table.count == 1)
        await driver.press("S", "alt+r")
        await driver.type("mean(")
        await driver.until(lambda: "not a regular expression" in driver.text())
        await driver.press("backspace")
        await driver.until(lambda: "in 1 of " in driver.text() and driver.on(PlacesScreen).table.count)


async def test_the_way_to_a_hit_leads_to_the_page_that_shows_it(tmp_path: Path) -> None:
    run = mini_run(tmp_path / "a.traj.json", TURNS)
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.press("slash")
        await driver.type("mean")
        await driver.until(lambda: driver.review.search.count >= 4)
        await driver.press("enter")
        await driver.until(lambda: driver.review.search.hit == 0)
        await driver.press("d", "n")
        await driver.until(lambda: driver.review.search.hit == 1)
        assert driver.review.pages.current == "step"
        hit = driver.review.search.hits[1]
        await driver.until(lambda: driver.review.run.step.index == hit.step)
        assert driver.review.focused is driver.review.step_page


async def test_a_hit_in_the_header_is_shown_on_the_page_of_the_run(tmp_path: Path) -> None:
    run = mini_run(tmp_path / "a.traj.json", TURNS)
    whole = json.loads(run.read_text())
    whole["info"]["notes"] = [
        "of the mean",
        "\n".join([*(f"line {n}" for n in range(60)), "the judge's quibble"]),
    ]
    run.write_text(json.dumps(whole))
    async with reviewing(run, size=(120, 40)) as driver:
        await driver.until_read(0)
        await driver.press("slash")
        await driver.type("quibble")
        await driver.until(lambda: driver.review.search.count == 1)
        await driver.press("enter")
        await driver.until(lambda: "the judge's quibble" in driver.text() and "1 of 1 found" in driver.text())
        assert driver.review.pages.current == "run"
        page = driver.review.pages.made["run"]
        assert isinstance(page, RunInfoPage)
        assert page.match_place == (1, 1)
        await driver.press("f8")
        await driver.until(lambda: "header" in driver.text())
        await driver.press("escape", "ctrl+b", "slash")
        await driver.until(lambda: driver.review.run.hides)
        await driver.type("judge's")
        await driver.until(lambda: "None found" in driver.text())


@pytest.mark.parametrize("blind", [False, True])
async def test_a_search_in_all_runs_hides_each_run_as_its_own_review_says(
    blind: bool, tmp_path: Path
) -> None:
    names = ("open", "hidden", "judged")
    for name in names:
        run = mini_run(tmp_path / f"{name}.traj.json", [command("ls", name)])
        whole = json.loads(run.read_text())
        whole["info"]["notes"] = "the judge's quibble"
        run.write_text(json.dumps(whole))
    reviewer = Reviewer(ReviewStore(Locations.of_user().reviews, SystemTime()), "first")
    for name in ("hidden", "judged"):
        key = run_key(open_run(tmp_path / f"{name}.traj.json"))
        reviewer.open(key, f"{name}.traj.json", blind=True)
    reviewer.verdict(key, RunVerdict.ACCEPT)
    shown = {"judged"} if blind else {"judged", "open"}
    for name in names[:2]:
        async with reviewing(tmp_path, size=(120, 40), blind=blind) as driver:
            runs = driver.on(RunsScreen)
            await driver.until(
                lambda runs=runs: runs.table.count == 3 and all(r.kept for r in runs.table.shown)
            )
            await driver.press("home")
            while not runs.table.chosen.name.endswith(f"{name}.traj.json"):
                await driver.press("down")
            await driver.press("enter")
            await driver.until_on(ReviewScreen)
            await driver.until_read(0)
            await driver.until(lambda name=name: driver.review.run.hides is (name not in shown))
            await driver.press("slash", "alt+a")
            await driver.type("quibble")
            await driver.until(lambda: "found;" in driver.text() and "so far" not in driver.text())
            found = {Path(hit.run).name.partition(".")[0] for hit in driver.review.search.hits}
            assert found == shown
