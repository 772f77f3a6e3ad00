"""A failure that lasts is shown once, however often the screen tries again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeClock
from screens.settling import until
from small_study import study_at
from study_folders import Machine
from textual.screen import Screen
from watched_runs import title_of, watched_run

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.tui.base_app import OneScreenApp
from gistpoint.tui.screens.agents.run import RunWatchScreen
from gistpoint.tui.screens.dialogs.ask import MessageDialog, show_error
from gistpoint.tui.screens.study.progress import ProgressScreen

AWAY = "The folder can't be read."


class Reader:
    """Reads nothing, and counts the attempts."""

    def __init__(self) -> None:
        self.tried = 0

    def read(self) -> Any:
        self.tried += 1
        raise UserError(AWAY)


def progress(folder: Path, reader: Reader) -> tuple[str, Screen[None]]:
    machine = Machine.at(folder / "home")
    study = machine.open(study_at(folder / "study")).study
    return "screens/study/study.tcss", ProgressScreen(study, reader.read, "study", hidden=True)


def watch(folder: Path, reader: Reader) -> tuple[str, Screen[None]]:
    follower = watched_run()
    follower.poll = reader.read
    return "screens/agents/agents.tcss", RunWatchScreen(follower, FakeClock(), title_of)


@pytest.mark.parametrize("made", [progress, watch])
async def test_a_screen_that_reads_again_and_again_opens_one_dialog(
    made: Callable[[Path, Reader], tuple[str, Screen[None]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("study.progress", "agents.run"):
        monkeypatch.setattr(f"gistpoint.tui.screens.{module}.POLL_S", 0.01)
    reader = Reader()
    styles, screen = made(tmp_path, reader)
    app = OneScreenApp(Locations.of_user(), styles, lambda: screen)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: reader.tried > 5)
        assert [type(one).__name__ for one in app.screen_stack] == [type(screen).__name__, "MessageDialog"]
        await pilot.press("enter")
        tried = reader.tried
        await until(pilot, lambda: reader.tried > tried + 5)
        assert app.screen is screen
    assert app.crashes == []


async def test_a_message_that_is_open_is_not_opened_again(tmp_path: Path) -> None:
    styles, screen = progress(tmp_path, Reader())
    app = OneScreenApp(Locations.of_user(), styles, lambda: screen)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, MessageDialog))
        for message, hint in ((AWAY, ""), (AWAY, "Mount it."), (AWAY, ""), ("Another.", "")):
            show_error(app, UserError(message, hint=hint))
        shown = [one._text + one._hint for one in app.screen_stack if isinstance(one, MessageDialog)]
        assert shown == [AWAY, f"{AWAY}Mount it.", "Another."]
