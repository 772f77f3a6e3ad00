"""A page of the review screen consists of one file and one entry in a list."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from screens.review.reviewing import TURNS, Reviewing, mini_run, reviewing
from textual.widget import Widget

from gistpoint.tui.keys import KEYS, KeyScope, shown_key
from gistpoint.tui.review_pages import PAGES

_ADDED = """
import asyncio, sys
from gistpoint.tui import review_pages as pages

pages.PAGES += (
    pages.ReviewPage("words", "Words", "Z", "How many words it holds", "screens.review.page_of_words:WordsPage"),
)

from screens.review.reviewing import reviewing
from gistpoint.tui.keys import KeyScope
from gistpoint.tui.screens.help import HelpRow, rows_of

async def look(run):
    async with reviewing(run, size=(220, 40)) as driver:
        await driver.until_read(0)
        assert " Z Words" in driver.text(), driver.text()
        await driver.press("Z")
        await driver.until(lambda: "words" in driver.review.query_one("#words").text)
        first = driver.review.query_one("#words").text
        assert "Thought, text and results." in driver.text()
        await driver.press("right_square_bracket")
        await driver.until(lambda: driver.review.query_one("#words").text not in ("", first))
    assert HelpRow("Z", "Words", "How many words it holds") in list(rows_of(KeyScope.REVIEW, {}))

asyncio.run(look(sys.argv[1]))
"""


def test_a_page_is_added_by_one_file_and_one_entry(tmp_path: Path) -> None:
    """Runs in a new process, because bindings and help are assembled at the first import of the modules."""
    run = mini_run(tmp_path / "run.traj.json", TURNS)
    tests = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _ADDED, str(run)],
        cwd=tests,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_page_has_a_widget_of_its_name_and_keys_of_its_own() -> None:
    for page in PAGES:
        widget = page.make()
        assert isinstance(widget, Widget)
        assert widget.id == page.name
    bound = {key.action: key for key in KEYS if key.scope is KeyScope.REVIEW}
    assert [bound[f"page('{page.name}')"].keys for page in PAGES] == [page.keys for page in PAGES]


@pytest.mark.parametrize("columns", [60, 80, 240])
async def test_the_tab_of_the_open_page_is_always_in_sight_and_marked(tmp_path: Path, columns: int) -> None:
    run = mini_run(tmp_path / "run.traj.json", TURNS)
    async with reviewing(run, size=(columns, 24)) as driver:
        await driver.until_read(0)
        for page in [*PAGES, *reversed(PAGES)]:
            await driver.review.action_page(page.name)
            await driver.pilot.pause()
            key = shown_key(page.keys.partition(",")[0])
            assert marked_tab(driver) == (f"{key} {page.title}" if columns > 150 else page.title)


async def test_a_click_on_a_tab_or_on_the_sign_for_those_out_of_sight_opens_a_page(tmp_path: Path) -> None:
    run = mini_run(tmp_path / "run.traj.json", TURNS)
    async with reviewing(run, size=(60, 24)) as driver:
        await driver.until_read(0)
        await driver.press("A")
        await driver.until(lambda: driver.review.pages.current == "replay")
        edge = title_row(driver)
        shown = next(place for place, page in enumerate(PAGES) if page.title == edge.split("‹")[1].split()[0])
        assert shown > 0
        place = driver.review.pages.region.offset
        await driver.pilot.click(offset=(edge.index("‹"), place.y))
        await driver.until(lambda: driver.review.pages.current == PAGES[shown - 1].name)
        await driver.pilot.click(offset=(title_row(driver).index("Files"), place.y))
        await driver.until(lambda: driver.review.pages.current == "files")


def title_row(driver: Reviewing) -> str:
    return driver.text().split("\n")[driver.review.pages.region.y]


def marked_tab(driver: Reviewing) -> str:
    strip = driver.app.screen._compositor.render_strips()[driver.review.pages.region.y]
    return "".join(segment.text for segment in strip if segment.style and segment.style.reverse)
