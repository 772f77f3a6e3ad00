"""Keys pressed while a call that runs no code is pending, or while the thread of an answered one returns."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from builders import CHECKS
from examples import at_the_gate
from fakes import FakeRunner
from screens.driving import Driver, solving

from gistpoint.core.tasks.model import Mode

ASKED, ANSWERED, TESTED = "a reading call is asked", "it is answered", "tests are answered"


@asynccontextmanager
async def held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> AsyncIterator[tuple[Driver, threading.Event]]:
    """Yield a driver of an attempt whose first call is held at `moment`, and an event that releases it."""
    gate, begun = threading.Event(), threading.Event()
    async with solving(tmp_path) as driver:
        call = driver.attempt.call

        def slow(*args: Any, **kwargs: Any) -> object:
            begun.set()
            if moment == ASKED:
                gate.wait(20)
            result = call(*args, **kwargs)
            gate.wait(20)
            return result

        monkeypatch.setattr(driver.attempt, "call", slow)
        if moment == TESTED:
            await driver.press("f9", "shift+tab", "enter")
            await driver.until(lambda: driver.state.submissions and driver.state.pending is None)
        elif moment == ANSWERED:
            await driver.console("list_directory shop")
        else:
            await driver.press("f5")
            await driver.type("list_directory shop")
            await driver.press("enter")
            await driver.until(begun.is_set)
        try:
            yield driver, gate
        finally:
            gate.set()


DIALOGS = {"ctrl+g": "ReasonDialog", "f10": "ReasonDialog", "ctrl+q": "ConfirmDialog"}
ONCE_EACH = [("ctrl+g", ASKED), ("f10", ANSWERED), ("ctrl+q", TESTED)]
OTHERS = sorted({*product(DIALOGS, (ASKED, ANSWERED, TESTED))} - {*ONCE_EACH})


@pytest.mark.parametrize(("key", "moment"), [*ONCE_EACH, *at_the_gate(OTHERS)])
async def test_a_key_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, moment: str
) -> None:
    async with held(tmp_path, monkeypatch, moment) as (driver, gate):
        await driver.press(key)
        assert type(driver.screen).__name__ == "SolveScreen"
        gate.set()
        await driver.until_screen(DIALOGS[key])


async def test_leaving_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with held(tmp_path, monkeypatch, TESTED) as (driver, gate):
        await driver.press("f8", "f3", "ctrl+l")
        assert type(driver.screen).__name__ == "SolveScreen"
        gate.set()
        await driver.until_screen("HomeScreen")


async def test_a_call_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with held(tmp_path, monkeypatch, ANSWERED) as (driver, gate):
        await driver.press("f5")
        await driver.type("search_code total")
        await driver.press("enter")
        assert [call.tool for call in driver.state.calls] == ["list_directory"]
        gate.set()
        await driver.until(lambda: len(driver.state.calls) == 2 and driver.state.pending is None)
        assert driver.state.calls[-1].tool == "search_code"


@pytest.mark.parametrize("moment", [ASKED, ANSWERED])
async def test_an_answer_takes_no_key_from_who_writes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    async with held(tmp_path, monkeypatch, moment) as (driver, gate):
        await driver.press("f8")
        await driver.type("half a ")
        gate.set()
        await driver.until(lambda: not driver.solve.busy)
        await driver.type("word")
        assert driver.solve.notes.text == "half a word"
        assert driver.solve.area.current == "notes"
        await driver.press("f5")
        await driver.type("list_directory")
        await driver.press("enter")
        await driver.until(lambda: len(driver.state.calls) == 2 and not driver.solve.busy)
        assert driver.solve.area.current == "results"


async def test_code_that_is_written_while_tests_run_is_left_in_peace_and_else_the_answer_is_shown(
    tmp_path: Path,
) -> None:
    gate = threading.Event()
    async with solving(tmp_path, runner=FakeRunner(CHECKS, gate=gate)) as driver:
        await driver.press("f6", "f9", "shift+tab", "enter")
        await driver.until(lambda: driver.state.pending is not None)
        writing = driver.solve.editor.editor
        await driver.until(lambda: driver.solve.focused is writing)
        await driver.press("ctrl+end")
        before = writing.text
        await driver.type("\n")
        gate.set()
        await driver.until(lambda: not driver.solve.busy)
        await driver.type("\n")
        assert len(writing.text) == len(before) + 2
        assert driver.solve.focused is writing
        writing.flush()
        await driver.press("f9", "enter")  # it has changed since
        await driver.until(lambda: len(driver.state.calls) == 2 and not driver.solve.busy)
        await driver.until(lambda: driver.solve.focused is not writing)


async def test_code_that_was_typed_while_tests_ran_keeps_the_keys_however_long_ago_that_was(
    tmp_path: Path,
) -> None:
    gate = threading.Event()
    async with solving(tmp_path, runner=FakeRunner(CHECKS, gate=gate)) as driver:
        await driver.press("f6", "f9", "shift+tab", "enter")
        await driver.until(lambda: driver.state.pending is not None)
        writing = driver.solve.editor.editor
        await driver.until(lambda: driver.solve.focused is writing)
        await driver.type("x")
        await driver.until(lambda: not writing.waits)
        gate.set()
        await driver.until(lambda: driver.state.pending is None and not driver.solve.busy)
        await driver.pilot.pause()
        assert driver.solve.focused is writing


async def test_nothing_waits_for_tests_that_run_and_the_line_can_be_brought_back(tmp_path: Path) -> None:
    gate = threading.Event()
    async with solving(tmp_path, runner=FakeRunner(CHECKS, gate=gate)) as driver:
        await driver.press("f9", "shift+tab", "enter")
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


async def test_an_attempt_goes_on_where_it_was_left_though_nothing_was_typed(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY) as driver:
        await driver.console("read_file shop/prices.py")
        await driver.press("f4")
        driver.solve.code.view.go_to(21)
        await driver.press("e")
        await driver.until(lambda: driver.solve.editor.is_mounted and driver.solve.editor.buffer)
        name = driver.solve.editor.buffer
        await driver.press("home", "down", "right")
        left = driver.solve.editor.editor.cursor_location
        assert left[0] > 0
        await driver.press("ctrl+l")
        await driver.until_screen("HomeScreen")
        await driver.until(lambda: "unfinished" in driver.text())
        await driver.press("enter")
        await driver.until_screen("SolveScreen")
        await driver.until(lambda: driver.solve.focused is driver.solve.query_one("#function-editor"))
        assert (driver.solve.editor.buffer, driver.solve.editor.editor.cursor_location) == (name, left)
        assert "edit_buffer" not in driver.events(driver.state.attempt_id)
        await driver.press("ctrl+z")
        await driver.until(lambda: "There is nothing to undo." in driver.text())
        await driver.press("f4")
        assert driver.solve.code.view.cursor_line == 21
