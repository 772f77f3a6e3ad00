"""The frame of a run, before the modules that show it are imported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

from screens.review.reviewing import TURNS, mini_run
from screens.settling import text_of, until
from textual.screen import Screen

from gistpoint.core.locations import Locations
from gistpoint.tui.commands.review import first_screen
from gistpoint.tui.review_app import ReviewApp
from gistpoint.tui.screens.review.opening import OpeningRuns
from gistpoint.tui.screens.review.screen import ReviewScreen


def app_of(run: Path, go_on: Event) -> ReviewApp:
    """Return an app that loads nothing until `go_on` is set."""
    locations = Locations.of_user()

    def load() -> Callable[[], Screen[None]]:
        assert go_on.wait(60)
        return first_screen([str(run)], locations, "first", blind=False)

    return ReviewApp(locations, load, [str(run)])


async def test_keys_pressed_before_the_run_is_open_go_to_it_and_its_first_frame_has_its_content(
    tmp_path: Path,
) -> None:
    run, go_on = mini_run(tmp_path / "early.traj.json", TURNS), Event()
    app = app_of(run, go_on)
    frames: list[str] = []
    app.post_display_hook = lambda: (
        frames.append(text_of(app)) if isinstance(app.screen, ReviewScreen) else None
    )  # type: ignore[method-assign]
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "opening …" in text_of(app))
        assert "early.traj.json" in text_of(app)
        await pilot.press("l", "l", "escape")
        assert isinstance(app.screen, OpeningRuns)
        go_on.set()
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen) and "step 3 of 8" in text_of(app))
        assert len(app.screen_stack) == 1
        assert [words for words in (" of 8 ", "You fix.", "cat stats.py") if words not in frames[0]] == []
    assert not app.crashes


async def test_the_program_can_be_closed_before_the_run_is_open(tmp_path: Path) -> None:
    go_on = Event()
    app = app_of(mini_run(tmp_path / "early.traj.json", TURNS), go_on)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "opening …" in text_of(app))
        await pilot.press("ctrl+q")
        await until(pilot, lambda: not app.is_running or app._exit)
        go_on.set()
    assert not app.crashes
