"""Pictures of some screens; `pytest --snapshot-update` accepts changes after you have looked at them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import build_services, build_task
from fakes import FakeClock
from screens.driving import LARGE, SMALL
from screens.settling import text_of, until
from textual.pilot import Pilot
from watched_runs import MONO_MS, NOW_MS, title_of, watched_run

from gistpoint.core.locations import Locations
from gistpoint.core.tasks.model import Mode
from gistpoint.tui.app import GistpointApp
from gistpoint.tui.base_app import OneScreenApp
from gistpoint.tui.screens.agents.run import RunWatchScreen

Compare = Callable[..., bool]


def app_at(root: Path, *, solve: bool) -> GistpointApp:
    services = build_services(root)
    tasks = [build_task(services.locations.tasks, mode) for mode in (Mode.REMOVE, Mode.DISCOVERY)]
    return GistpointApp(services, open=tasks[0].id if solve else None)


async def _until(pilot: Pilot[Any], met: Callable[[], object]) -> None:
    """Wait until a condition holds and the screen stops changing."""
    await until(pilot, met)
    before = ""
    for _ in range(50):
        await pilot.pause(0.2)
        if (now := text_of(pilot.app)) == before:
            break
        before = now


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
def test_home(tmp_path: Path, snap_compare: Compare, size: tuple[int, int]) -> None:
    async def ready(pilot: Pilot[Any]) -> None:
        await _until(pilot, lambda: "Tasks (2)" in text_of(pilot.app) and "discovery" in text_of(pilot.app))

    assert snap_compare(app_at(tmp_path, solve=False), terminal_size=size, run_before=ready)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
def test_solve(tmp_path: Path, snap_compare: Compare, size: tuple[int, int]) -> None:
    async def ready(pilot: Pilot[Any]) -> None:
        await _until(pilot, lambda: type(pilot.app.screen).__name__ == "SolveScreen")
        await _until(pilot, lambda: pilot.app.screen.focused)
        screen = pilot.app.screen
        screen._asking.ask("read_file", {"file_path": "shop/prices.py"})
        await _until(pilot, lambda: screen._attempt.state.calls and screen._attempt.state.pending is None)
        await _until(pilot, lambda: screen.code.view.has_focus)
        screen.stop()

    assert snap_compare(app_at(tmp_path, solve=True), terminal_size=size, run_before=ready)


def test_give_up(tmp_path: Path, snap_compare: Compare) -> None:
    async def ready(pilot: Pilot[Any]) -> None:
        await _until(pilot, lambda: type(pilot.app.screen).__name__ == "SolveScreen")
        screen = pilot.app.screen
        await pilot.press("ctrl+g")
        await _until(pilot, lambda: type(pilot.app.screen).__name__ == "ReasonDialog")
        screen.stop()

    assert snap_compare(app_at(tmp_path, solve=True), terminal_size=SMALL, run_before=ready)


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (160, 48), (200, 60)], ids=["80", "120", "160", "200"])
def test_watched_run(snap_compare: Compare, size: tuple[int, int]) -> None:
    clock = FakeClock(NOW_MS, MONO_MS)
    app = OneScreenApp(
        Locations.of_user(),
        "screens/agents/agents.tcss",
        lambda: RunWatchScreen(watched_run(), clock, title_of),  # type: ignore[arg-type]
    )

    async def ready(pilot: Pilot[Any]) -> None:
        await _until(pilot, lambda: "At work (3)" in text_of(pilot.app))
        screen = pilot.app.screen
        assert isinstance(screen, RunWatchScreen)
        await pilot.press("tab", "down", "down", "down", "shift+tab", "right")
        await _until(pilot, lambda: "Job 4 has halted" in text_of(pilot.app))
        assert "\x1b" not in text_of(pilot.app)

    assert snap_compare(app, terminal_size=size, run_before=ready)
