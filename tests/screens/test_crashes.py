from __future__ import annotations

from pathlib import Path

import pytest
from screens.driving import solving

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
        await driver.press("t", "r")
        await driver.until_screen("SolveScreen")
        assert driver.state.remaining.tool_uses == 15
