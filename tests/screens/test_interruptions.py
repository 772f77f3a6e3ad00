from __future__ import annotations

from pathlib import Path

import pytest
from builders import REPAIR, build_services, build_task
from fakes import FakeClock
from screens.driving import LARGE, driving, solving

from gistpoint.core.attempts.budgets import Budgets
from gistpoint.core.attempts.clock import Activity
from gistpoint.core.attempts.events import Pane
from gistpoint.core.tasks.model import Mode


async def test_a_pause_asks_why_covers_everything_and_stops_the_clock(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        driver.clock.advance(5_000)
        await driver.press("f10")
        await driver.until_screen("ReasonDialog")
        await driver.press("down", "enter")
        await driver.type("phone")
        await driver.press("enter")
        await driver.until_screen("PauseCover")
        text = driver.text()
        assert "interrupted" in text
        assert "phone" in text
        assert "discount" not in text
        assert "def " not in text
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
        await driver.press("f10", "tab", "enter")
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


@pytest.mark.parametrize(("keys", "activity"), [(("enter",), Activity.READING), (("tab", "enter"), Activity.IDLE)])
async def test_after_two_minutes_without_input_it_is_asked(
    tmp_path: Path, keys: tuple[str, ...], activity: Activity
) -> None:
    async with solving(tmp_path) as driver:
        driver.clock.advance(119_000)
        driver.solve._second()
        await driver.pilot.pause()
        assert type(driver.screen).__name__ == "SolveScreen"
        driver.clock.advance(2_000)
        driver.solve._second()
        await driver.until_screen("IdleDialog")
        driver.clock.advance(10_000)
        await driver.press("escape")
        assert type(driver.screen).__name__ == "IdleDialog"
        await driver.press(*keys)
        await driver.until_screen("SolveScreen")
        await driver.until(lambda: "idle_prompt" in driver.events(driver.state.attempt_id))
        assert driver.state.clock.of(activity) >= 131_000


async def test_giving_up_takes_a_code_and_words(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.console("list_directory")
        await driver.press("ctrl+g")
        await driver.until_screen("ReasonDialog")
        assert "Give up?" in driver.text()
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
        assert "Skip this task?" in driver.text()
        await driver.press("tab", "tab", "enter")
        await driver.until_screen("SummaryScreen")
        assert "skipped" in driver.text()


async def test_the_attempt_ends_when_its_time_is_up(tmp_path: Path) -> None:
    async with solving(tmp_path, budgets=Budgets(8, 2, 60)) as driver:
        driver.clock.advance(61_000)
        driver.solve._recording.heartbeat()
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
        assert driver.solve.editor.code.startswith("# half")
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
    journal.append("tool_call", {"call_id": "call-1", "turn": 1, "tool": "submit_attempt", "arguments": arguments})
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
