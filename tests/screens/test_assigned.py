"""The tasks behind a participant's link: each is attempted once, and continues after its window is closed."""

from __future__ import annotations

import threading
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from builders import CHECKS, build_services, build_task
from fakes import FakeClock, FakeRunner
from screens.driving import SMALL, solving
from screens.settling import send_keys, text_of, until
from textual.pilot import Pilot

from gistpoint.core.tasks.model import Mode
from gistpoint.sessions.attempt_summary import AttemptSummary
from gistpoint.sessions.services import Services
from gistpoint.tui.commands.participant import services_of
from gistpoint.tui.participant_app import ParticipantApp
from gistpoint.tui.screens.solve.screen import SolveScreen


class Lab:
    """Two tasks of a participant, at one of which somebody else has an attempt."""

    def __init__(self, root: Path) -> None:
        self.clock, self.runner = FakeClock(), FakeRunner(CHECKS)
        self.services: Services = build_services(root, clock=self.clock, runner=self.runner)
        modes = (Mode.REMOVE, Mode.DISCOVERY)
        self.tasks = [build_task(self.services.locations.tasks, mode).id for mode in modes]
        theirs = self.services.start(self.services.tasks.find(self.tasks[1]))
        theirs.close()

    def app(self) -> ParticipantApp:
        return ParticipantApp("P01", self.tasks, services_of("P01", self.services))

    @property
    def attempts(self) -> list[AttemptSummary]:
        return [one for one in self.services.attempts.summaries() if one.participant == "P01"]

    @asynccontextmanager
    async def window(self) -> AsyncIterator[Pilot[object]]:
        """Yield a window, then close it as a browser does, which ends the program whatever it is doing."""
        app = self.app()
        async with app.run_test(size=SMALL) as pilot:
            await until(pilot, lambda: "of 2 done" in text_of(app))
            yield pilot
        assert not app.crashes, "".join(traceback.format_exception(app.crashes[0]))


def at_work(pilot: Pilot[object]) -> bool:
    return isinstance(pilot.app.screen, SolveScreen) and pilot.app.screen.focused is not None


async def test_a_window_that_is_closed_in_a_test_run_costs_nothing_and_goes_on(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.runner.gate = threading.Event()
    async with lab.window() as pilot:
        assert text_of(pilot.app).count("○ not begun") == 2, "others' attempts are not theirs"
        await pilot.press("enter")
        await until(pilot, lambda: at_work(pilot))
        await pilot.press("f8")
        send_keys(pilot.app, "remember")
        await pilot.press("f6", "f9", "shift+tab", "enter")
        await until(pilot, lambda: lab.runner.runs == 1)
    (left,) = lab.attempts
    assert left.state.pending is not None, "nobody cancelled the submission, so it is not answered"
    assert left.state.notes == "remember"
    assert left.state.header.comforts_off == ("external_editor",)

    lab.runner.gate.set()
    lab.clock.advance(60_000)
    async with lab.window() as pilot:
        assert "… begun" in text_of(pilot.app)
        await pilot.press("enter")
        await until(pilot, lambda: at_work(pilot) and lab.attempts[0].state.pending is None)
    (found,) = lab.attempts
    assert lab.runner.runs == 2
    (call,) = found.state.calls
    assert "1 of" in (call.text or ""), call.text
    assert "cancelled" not in (call.text or "")
    assert found.state.clock.away >= 60_000


async def test_a_task_that_has_ended_is_shown_and_not_begun_again(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with lab.window() as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: at_work(pilot))
        await pilot.press("ctrl+g")
        await until(pilot, lambda: type(pilot.app.screen).__name__ == "ReasonDialog")
        await pilot.press("tab", "tab", "enter")
        await until(pilot, lambda: type(pilot.app.screen).__name__ == "SummaryScreen")
    async with lab.window() as pilot:
        text = text_of(pilot.app)
        assert "1 of 2 done" in text
        assert "Enter begins it" in text, "the next one is under the cursor"
        await pilot.press("up", "enter")
        await until(pilot, lambda: type(pilot.app.screen).__name__ == "SummaryScreen")
        await pilot.press("escape")
        await until(
            pilot,
            lambda: "Enter shows the result" in text_of(pilot.app) or "Enter begins" in text_of(pilot.app),
        )
    assert len(lab.attempts) == 1


async def test_a_call_under_way_is_left_to_the_next_process_when_its_screen_goes(tmp_path: Path) -> None:
    runner = FakeRunner(CHECKS, gate=threading.Event())
    async with solving(tmp_path, runner=runner) as driver:
        await driver.press("f6", "f9", "shift+tab", "enter")
        await driver.until(lambda: runner.runs == 1)
        driver.solve.stop()
        await driver.until(lambda: not driver.solve.controller.calling)
        assert driver.state.pending is not None
        assert driver.state.remaining.submissions == driver.state.budgets.submissions
