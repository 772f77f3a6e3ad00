from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from screens.driving import solving
from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.message import Message
from textual.widgets import Static

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.tui.base_app import OneScreenApp
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.jobs import Job, Jobs
from gistpoint.tui.screens.solve.screen import SolveScreen


async def test_an_unexpected_exception_is_logged_and_reported_and_costs_no_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: SolveScreen) -> None:
        raise ZeroDivisionError("[/x] nobody expected this")

    async with solving(tmp_path, crashes=1) as driver:
        await driver.console("list_directory")
        attempt_id = driver.state.attempt_id
        monkeypatch.setattr(SolveScreen, "action_end", broken)
        await driver.press("ctrl+g")
        await driver.until_screen("MessageDialog")
        await driver.until(lambda: "The attempt is safe" in " ".join(driver.text().replace("│", " ").split()))
        text = driver.text()
        assert "Something unexpected happened" in text
        assert "[/x] nobody expected this" in text
        logs = list(driver.services.locations.logs.iterdir())
        assert len(logs) == 1
        log = logs[0].read_text()
        assert "ZeroDivisionError" in log
        assert attempt_id in log
        assert driver.events(attempt_id)[-1] == "crash"
        await driver.press("enter")
        await driver.until_screen("HomeScreen")
        await driver.until(lambda: "unfinished" in driver.text())
        await driver.press("tab", "r")
        await driver.until_screen("SolveScreen")
        assert driver.state.remaining.tool_uses == 15


class Look(Message):
    """A message that is handled after the part is gone."""


class Whole(Container):
    """A widget that searches for another part of its screen."""

    handled = False

    @on(Look)
    async def look(self) -> None:
        screen = self.screen
        while screen.query(Static):
            await asyncio.sleep(0.001)
        self.handled = True
        screen.query_one(Static)


class Pair(BaseScreen[None]):
    """A screen with a widget and the part that it searches for."""

    def compose(self) -> ComposeResult:
        yield Static("part")
        yield Whole()


def app_of_one_screen() -> OneScreenApp:
    return OneScreenApp(Locations.of_user(), "screens/glance/glance.tcss", BaseScreen)


@pytest.mark.parametrize("leaves", ["screen", "app"])
async def test_a_message_that_comes_while_its_screen_is_removed_is_no_crash(leaves: str) -> None:
    app, pair = app_of_one_screen(), Pair()
    async with app.run_test():
        await app.push_screen(pair)
        whole = pair.query_one(Whole)
        whole.post_message(Look())
        if leaves == "app":
            app.exit()
        else:
            await pair.dismiss()
    assert whole.handled
    assert not app.crashes


async def test_a_part_that_is_missing_on_a_visible_screen_is_a_crash() -> None:
    app, pair = app_of_one_screen(), Pair()
    async with app.run_test():
        await app.push_screen(pair)
        await pair.query_one(Static).remove()
        pair.query_one(Whole).post_message(Look())
        for _ in range(1_000):
            if app.crashes:
                break
            await asyncio.sleep(0.001)
        assert [type(error).__name__ for error in app.crashes] == ["NoMatches"]


async def test_an_error_of_a_job_that_its_owner_does_not_handle_is_shown(tmp_path: Path) -> None:
    def failing(job: Job) -> None:
        raise UserError("The disk is full.", hint="Free some space.")

    async with solving(tmp_path) as driver:
        Jobs(driver.app.screen, "failing").do(failing)
        await driver.until_screen("MessageDialog")
        await driver.until(lambda: "The disk is full." in driver.text())
        assert "Free some space." in driver.text()
        await driver.press("enter")
        await driver.until_screen("SolveScreen")
