from __future__ import annotations

from pathlib import Path

import pytest
from screens.driving import solving

from gistpoint.core.errors import UserError
from gistpoint.tui.jobs import Job, Jobs
from gistpoint.tui.screens.solve.screen import SolveScreen


async def test_an_unexpected_exception_is_logged_told_and_costs_no_work(
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
