from __future__ import annotations

import asyncio
import re
import threading
import time
from pathlib import Path

import pytest
from builders import CHECKS, REPAIR, build_services, build_task
from fakes import FakeClock, FakeRunner
from screens.driving import LARGE, Driver, driving, solving
from textual import events

from gistpoint.core.attempts.events import CallMade, Pane
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Mode
from gistpoint.sessions.attempts import OpenAttempt
from gistpoint.tui.screens.dialogs.ask import GRACE_S


async def test_a_pause_asks_why_covers_everything_and_stops_the_clock(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        driver.clock.advance(5_000)
        await driver.press("f10")
        await driver.until_screen("ReasonDialog")
        await driver.until(lambda: "Enter Pause" in driver.text())
        await driver.press("down", "tab")
        await driver.type("phone")
        await driver.press("enter")
        await driver.until_screen("PauseCover")
        text = driver.text()
        assert "interrupted" in text
        assert "phone" in text
        assert "discount" not in text
        assert "def " not in text
        await driver.until(lambda: driver.text().splitlines()[-1].strip().startswith("Enter Continue"))
        driver.clock.advance(60_000)
        await driver.press("ctrl+p")
        await driver.pilot.pause()
        await driver.press("escape")
        await driver.press("enter")
        await driver.until_screen("SolveScreen")
        await driver.until(lambda: driver.state.pause is None)
        assert driver.state.clock.paused == 60_000
        assert driver.state.clock.reading == 5_000
        assert "discount" in driver.text()
        await driver.until(lambda: driver.solve.focused is driver.solve.query_one("#brief-view"))


async def test_a_pause_can_be_called_off(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("ctrl+t")
        await driver.until_screen("ReasonDialog")
        await driver.press("escape")
        assert driver.state.pause is None


async def test_an_attempt_left_in_a_pause_is_covered_when_it_is_resumed(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        attempt_id = driver.state.attempt_id
        await driver.press("f10", "enter")
        await driver.until_screen("PauseCover")
        await driver.press("tab", "enter")
        await driver.until_screen("HomeScreen")
        await driver.until(lambda: "paused" in driver.text())
        await driver.press("t", "enter")
        await driver.until_screen("PauseCover")
        assert "discount" not in driver.text()
        await driver.press("enter")
        await driver.until_screen("SolveScreen")
        await driver.until(lambda: driver.state.pause is None)
        assert driver.state.attempt_id == attempt_id


async def test_an_attempt_that_was_left_is_not_open_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = OpenAttempt.close

    def close_slowly(held: OpenAttempt) -> None:
        time.sleep(0.5)  # the home screen reads in the meantime
        close(held)

    monkeypatch.setattr(OpenAttempt, "close", close_slowly)
    async with solving(tmp_path) as driver:
        await driver.press("f10", "tab", "enter")
        await driver.until_screen("PauseCover")
        await driver.press("tab", "enter")
        await driver.until_screen("HomeScreen")
        await driver.until(lambda: "paused" in driver.text())


async def thinking(driver: Driver, ms: int = 121_000) -> None:
    """Let time pass without a key, until the attempt is in doubt whether it was work."""
    driver.clock.advance(ms)
    driver.solve._second()
    await driver.until(lambda: driver.state.doubt)


async def on_its_way(driver: Driver, *keys: str) -> None:
    """Press keys half a second after the question appears, however late they are handled."""
    for key in keys:
        event = events.Key(key, None)
        event.time = driver.solve._interruptions._shown_at + GRACE_S / 2
        driver.app.post_message(event)
        await driver.pilot.pause()


async def test_the_question_after_two_minutes_stands_beside_the_code_and_has_no_usual_answer(
    tmp_path: Path,
) -> None:
    async with solving(tmp_path) as driver:
        driver.clock.advance(119_000)
        driver.solve._second()
        await driver.pilot.pause()
        assert not driver.state.doubt
        await thinking(driver, 2_000)
        await driver.until(lambda: "No key was pressed for 2:01. Were you working?" in driver.text())
        assert driver.screen is driver.solve
        assert driver.solve.focused is driver.solve.query_one("#brief-view"), "the brief can still be read"
        assert driver.state.clock.idle == 121_000
        driver.clock.advance(30_000)
        await on_its_way(driver, "alt+y")
        await driver.until(lambda: not driver.state.doubt.idle)
        assert driver.state.doubt, "a key that was on its way answers nothing"
        await driver.press("f3", "enter", "f2")
        assert driver.state.clock.idle == 151_000, "input without an answer leaves the time idle"
        driver.clock.advance(7_000)
        await asyncio.sleep(GRACE_S)
        await driver.press("alt+y")
        await driver.until(lambda: not driver.state.doubt)
        assert "Were you working" not in driver.text()
        assert (driver.state.clock.idle, driver.state.clock.active) == (0, 158_000)


async def test_who_was_away_says_so_by_key_or_mouse(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        for answer in (lambda: driver.press("alt+x"), lambda: driver.pilot.click("#idle-away")):
            await thinking(driver)
            await asyncio.sleep(GRACE_S)
            await answer()
            await driver.until(lambda: not driver.state.doubt)
        assert (driver.state.clock.idle, driver.state.clock.active) == (242_000, 0)


async def test_the_cover_comes_after_ten_minutes_and_drops_what_was_on_its_way(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await thinking(driver)
        driver.clock.advance(479_000)
        driver.solve._second()
        await driver.until_screen("IdleCover")
        assert "discount" not in driver.text()
        await on_its_way(driver, "enter", "space", "escape", "alt+y", "tab", "enter")
        assert type(driver.screen).__name__ == "IdleCover"
        driver.clock.advance(3_000_000)
        await asyncio.sleep(GRACE_S)
        await driver.press("enter", "space", "x", "escape")
        assert type(driver.screen).__name__ == "IdleCover"
        await driver.press("tab", "enter")
        await driver.until(lambda: driver.screen is driver.solve)
        await driver.until(lambda: not driver.state.doubt)
        assert (driver.state.clock.idle, driver.state.clock.active) == (3_000_000, 600_000)
        assert "discount" in driver.text()
        await driver.until(lambda: driver.solve.focused is driver.solve.query_one("#brief-view"))


async def test_a_question_that_is_left_open_is_idle_when_the_attempt_goes_on(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        attempt_id = driver.state.attempt_id
        await thinking(driver)
        driver.clock.advance(1_000_000)
        await driver.press("ctrl+l")
        await driver.until_screen("HomeScreen")
        await driver.press("r")
        await driver.until_screen("SolveScreen")
        assert driver.state.attempt_id == attempt_id
        assert (driver.state.clock.idle, driver.state.clock.active) == (1_121_000, 0)
        assert "Were you working" not in driver.text()


async def test_waiting_for_tests_and_writing_elsewhere_are_not_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    async with solving(tmp_path, runner=FakeRunner(CHECKS, gate=gate)) as driver:
        await driver.press("f9", "shift+tab", "enter")
        await driver.until(lambda: driver.state.pending)
        driver.clock.advance(300_000)
        driver.solve._second()
        gate.set()
        await driver.until(lambda: driver.state.submissions[0].status)
        await driver.until(lambda: driver.state.pending is None)
        driver.clock.advance(60_000)
        driver.solve._second()
        await driver.pilot.pause()
        assert not driver.state.doubt
        driver.clock.advance(300_000)
        driver.solve.editor.on_return()
        driver.solve._second()
        await driver.pilot.pause(0.1)
        assert not driver.state.doubt
        assert driver.state.clock.idle == 0


async def test_giving_up_takes_a_code_and_words(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.console("list_directory")
        await driver.press("ctrl+g")
        await driver.until_screen("ReasonDialog")
        assert "Give up this task?" in driver.text()
        await driver.press("down", "enter")
        await driver.type("what is a basket")
        await driver.press("enter")
        await driver.until_screen("SummaryScreen")
        text = driver.text()
        assert "gave up" in text
        assert "unclear" in text
        assert "what is a basket" in text


async def test_an_attempt_without_a_call_is_skipped(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("ctrl+g")
        await driver.until_screen("ReasonDialog")
        assert "Give up this task?" in driver.text(), "it has one name"
        assert re.search(r"recorded as\W+skipped", driver.text())
        await driver.press("tab", "tab", "enter")
        await driver.until_screen("SummaryScreen")
        assert "skipped" in driver.text()


async def test_the_attempt_ends_when_its_time_is_up(tmp_path: Path) -> None:
    async with solving(tmp_path, budgets=Budgets(8, 2, 60)) as driver:
        driver.clock.advance(61_000)
        driver.solve.controller.heartbeat()
        await driver.until_screen("SummaryScreen")
        assert "time is up" in driver.text()


async def test_what_was_half_done_is_there_when_the_attempt_goes_on(tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    task = build_task(services.locations.tasks, Mode.DISCOVERY)
    async with driving(services, clock, open=task.id, size=LARGE) as driver:
        await driver.until_screen("SolveScreen")
        await driver.console("read_file shop/prices.py")
        await driver.press("f8")
        await driver.type("look at discount")
        await driver.press("f4", *["down"] * 5, "e")
        await driver.until(lambda: driver.solve.editor.buffer)
        await driver.type("# half")
        attempt_id = driver.state.attempt_id
        await driver.press("ctrl+l")
        await driver.until_screen("HomeScreen")
    clock.advance(1_000_000)
    async with driving(services, clock, open=attempt_id, size=LARGE) as driver:
        await driver.until_screen("SolveScreen")
        await driver.until(lambda: driver.solve.focused is driver.solve.editor.editor)
        assert driver.state.pane is Pane.EDITOR
        assert "# half" in driver.solve.editor.code
        assert driver.solve.editor.buffer == "shop/prices.py::discount"
        assert driver.state.notes == "look at discount"
        assert driver.solve.code.shown is not None
        assert driver.solve.code.shown.path == "shop/prices.py"
        assert driver.state.remaining.tool_uses == 15
        assert driver.state.clock.active == 0
        assert driver.state.clock.away == 1_000_000
        await driver.press("f7")
        await driver.until(lambda: "read_file shop/prices.py" in driver.text())


async def test_a_call_that_a_dead_process_began_is_finished(tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    task = build_task(services.locations.tasks)
    opened = services.start(task)
    journal = opened.journal
    arguments = {"func_code": REPAIR}
    journal.append(CallMade(call_id="call-1", turn=1, tool="submit_attempt", arguments=arguments))
    opened.close()
    async with driving(services, clock, open=opened.attempt.state.attempt_id) as driver:
        await driver.until_screen("SummaryScreen")
        assert "✔ solved" in driver.text()


async def test_leaving_the_program_asks_and_keeps_the_attempt(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        attempt_id = driver.state.attempt_id
        await driver.press("ctrl+q")
        await driver.until_screen("ConfirmDialog")
        await driver.press("escape")
        await driver.until_screen("SolveScreen")
        await driver.press("ctrl+q")
        await driver.until_screen("ConfirmDialog")
        await driver.press("enter")
        await driver.until(lambda: not driver.app.is_running or driver.app._exit)
    assert "attempt_ended" not in driver.events(attempt_id)
