"""What is pressed while an answer is in sight and the thread that brought it has not come back."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from builders import CHECKS
from fakes import FakeRunner
from screens.driving import Driver, solving


@asynccontextmanager
async def answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Driver, threading.Event]]:
    """Yield a driver of an attempt whose first call is answered, and what lets its thread come back."""
    gate = threading.Event()
    async with solving(tmp_path) as driver:
        call = driver.attempt.call

        def slow(*args: Any, **kwargs: Any) -> object:
            result = call(*args, **kwargs)
            gate.wait(20)
            return result

        monkeypatch.setattr(driver.attempt, "call", slow)
        await driver.console("list_directory shop")
        try:
            yield driver, gate
        finally:
            gate.set()


@pytest.mark.parametrize(
    ("key", "screen"), [("ctrl+g", "ReasonDialog"), ("f10", "ReasonDialog"), ("ctrl+q", "ConfirmDialog")]
)
async def test_a_key_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, screen: str) -> None:
    async with answered(tmp_path, monkeypatch) as (driver, gate):
        await driver.press(key)
        assert type(driver.screen).__name__ == "SolveScreen"
        gate.set()
        await driver.until_screen(screen)


async def test_leaving_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with answered(tmp_path, monkeypatch) as (driver, gate):
        await driver.press("f8", "f3", "ctrl+l")
        assert type(driver.screen).__name__ == "SolveScreen"
        gate.set()
        await driver.until_screen("HomeScreen")


async def test_a_call_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with answered(tmp_path, monkeypatch) as (driver, gate):
        await driver.press("f5")
        await driver.type("search_code total")
        await driver.press("enter")
        assert [call.tool for call in driver.state.calls] == ["list_directory"]
        gate.set()
        await driver.until(lambda: len(driver.state.calls) == 2 and driver.state.pending is None)
        assert driver.state.calls[-1].tool == "search_code"


async def test_nothing_waits_for_tests_that_run_and_the_line_can_be_brought_back(tmp_path: Path) -> None:
    gate = threading.Event()
    async with solving(tmp_path, runner=FakeRunner(CHECKS, gate=gate)) as driver:
        await driver.press("f9", "enter")
        await driver.until(lambda: "1 of 6" in driver.text())
        await driver.press("ctrl+g", "f5")
        assert type(driver.screen).__name__ == "SolveScreen"
        await driver.type("search_code total")
        await driver.press("enter")
        line = driver.solve.console.line
        assert not line.value
        await driver.press("up")
        assert line.value == "search_code total"
        gate.set()
        await driver.until(lambda: driver.state.pending is None and not driver.solve.busy)
        assert [call.tool for call in driver.state.calls] == ["submit_attempt"]
        assert type(driver.screen).__name__ == "SolveScreen"
