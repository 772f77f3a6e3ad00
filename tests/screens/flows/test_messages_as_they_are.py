"""The screen shows a run's messages literally, without markup; glyphs replace control characters."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples import at_the_gate
from hostile import CONTROLS, MARKUP
from recorded_runs import make_all
from screens.review.reviewing import Reviewing, command, mini_run, reviewing
from screens.review.shown_steps import check_steps
from unread_samples import NOT_DRAWN, samples

from gistpoint.sessions.runs.opening import list_runs
from gistpoint.tui.screens.review.runs import RunsScreen
from gistpoint.tui.screens.review.screen import ReviewScreen

SAMPLES = Path(__file__).parents[4] / "shared" / "samples"
STEPS = 12
"""The number of steps of each sample that are checked here; `studies/messages_on_screen.py` checks all."""


def sample_files() -> list[Path]:
    """Return the samples with a reader; `test_every_word.py` requires that all others are refused."""
    files = [path for path in sorted(SAMPLES.rglob("*")) if path.is_file()] if SAMPLES.is_dir() else []
    return [path for path in files if any(found.header is not None for found in list_runs([path]))]


def has_step(driver: Reviewing) -> bool:
    return isinstance(driver.app.screen, ReviewScreen) and driver.review.run.step is not None


async def run_of(driver: Reviewing) -> None:
    """Open the first run of the list if the file has several."""
    await driver.until(lambda: isinstance(driver.app.screen, RunsScreen) or has_step(driver), 20)
    if isinstance(driver.app.screen, RunsScreen):
        await driver.until(lambda: driver.on(RunsScreen).table.count > 0)
        await driver.press("enter")
        await driver.until(lambda: has_step(driver))


async def test_hostile_messages_are_drawn_as_they_are(tmp_path: Path) -> None:
    turns = [
        command(f"echo {text}", f"{text}\n\t{text}\ttail", thought=text) for text in (*MARKUP, *CONTROLS)
    ]
    async with reviewing(mini_run(tmp_path / "a.json", turns), size=(100, 30)) as driver:
        await run_of(driver)
        assert await check_steps(driver) > 2 * len(turns)


FORMATS = (  # names of the files that make_all writes
    "a-1.1",
    "d-1",
    "f-session",
    "j-journal",
    *at_the_gate(("a-history", "b-2", "b-list", "c-1.7", "d-0", "e-json", "g-lines", "i-log")),
)


@pytest.mark.parametrize("name", FORMATS)
async def test_every_format_is_drawn_as_it_is(tmp_path: Path, name: str) -> None:
    path = next(made.path for made in make_all(tmp_path) if made.path.name == name)
    async with reviewing(path, size=(100, 30)) as driver:
        await run_of(driver)
        assert await check_steps(driver, STEPS) > 0


if FILES := sample_files():  # a user's checkout has no samples

    @pytest.mark.parametrize("path", samples(FILES, NOT_DRAWN))
    async def test_samples_are_drawn_as_they_are(path: Path) -> None:
        async with reviewing(path, size=(100, 30)) as driver:
            await run_of(driver)
            await check_steps(driver, STEPS)
