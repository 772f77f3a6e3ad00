"""Drives the app as a user does: with keys, and by reading the text on the screen."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from builders import CHECKS, build_services, build_task
from fakes import FakeClock, FakeRunner
from screens.settling import send_keys, text_of, until
from textual.pilot import Pilot
from textual.screen import Screen

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import Role
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.journal import JOURNAL, read_journal
from gistpoint.sessions.services import Services
from gistpoint.tui.app import GistpointApp
from gistpoint.tui.screens.solve.screen import SolveScreen

SMALL, LARGE = (80, 24), (160, 48)


class Driver:
    """A driver of the running app."""

    def __init__(self, app: GistpointApp, pilot: Pilot[object], services: Services, clock: FakeClock) -> None:
        self.app, self.pilot, self.services, self.clock = app, pilot, services, clock

    @property
    def screen(self) -> Screen[object]:
        return self.app.screen

    @property
    def solve(self) -> SolveScreen:
        """The solve screen, at any position in the stack."""
        return next(screen for screen in self.app.screen_stack if isinstance(screen, SolveScreen))

    @property
    def attempt(self) -> Attempt:
        return self.solve._attempt

    @property
    def state(self) -> AttemptState:
        return self.attempt.state

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        """Type text into the focused widget, with Enter for newlines."""
        send_keys(self.app, text)
        await self.pilot.pause()

    async def console(self, line: str) -> None:
        """Type a call and wait for its answer."""
        before = len(self.state.calls)
        await self.press("f5")
        await self.type(line)
        await self.press("enter")
        await self.until(lambda: len(self.state.calls) > before and self.state.pending is None)

    async def until(self, met: Callable[[], object]) -> None:
        await until(self.pilot, met)

    async def until_screen(self, name: str) -> None:
        await self.until(lambda: type(self.screen).__name__ == name)

    def text(self) -> str:
        """Return the text on the screen."""
        return text_of(self.app)

    def events(self, attempt_id: str) -> list[str]:
        """Return the types of an attempt's events, from its journal."""
        folder = self.services.attempts.folder(attempt_id)
        return [event.type for event in read_journal(folder / JOURNAL).events]


@asynccontextmanager
async def driving(
    services: Services,
    clock: FakeClock,
    *,
    open: str | None = None,
    new: bool = False,
    size: tuple[int, int] = SMALL,
    crashes: int = 0,
) -> AsyncIterator[Driver]:
    """Run the app and yield its driver; at the end it must have crashed exactly `crashes` times."""
    app = GistpointApp(services, open=open, new=new)
    async with app.run_test(size=size, notifications=True, tooltips=True) as pilot:
        driver = Driver(app, pilot, services, clock)
        try:
            yield driver
        finally:
            for screen in app.screen_stack:
                if isinstance(screen, SolveScreen):
                    screen.stop()
    tracebacks = "\n".join("".join(traceback.format_exception(error)) for error in app.crashes)
    assert len(app.crashes) == crashes, tracebacks


@asynccontextmanager
async def solving(
    root: Path,
    mode: Mode = Mode.REMOVE,
    *,
    budgets: Budgets | None = None,
    role: Role = Role.BASELINE,
    runner: FakeRunner | None = None,
    size: tuple[int, int] = SMALL,
    task: Task | None = None,
    crashes: int = 0,
) -> AsyncIterator[Driver]:
    """Run the app on a new attempt of a tiny task, and yield its driver."""
    clock = FakeClock()
    services = build_services(root, clock=clock, runner=runner or FakeRunner(CHECKS), role=role)
    made = task or build_task(services.locations.tasks, mode, budgets=budgets)
    async with driving(services, clock, open=made.id, size=size, crashes=crashes) as driver:
        await driver.until_screen("SolveScreen")
        await driver.until(lambda: driver.solve.is_mounted and driver.solve.focused is not None)
        yield driver
