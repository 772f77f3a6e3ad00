"""Drives the app of a study like a participant, with keys and by reading the text on the screen."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from builders import CHECKS
from fakes import FakeRunner
from screens.settling import send_keys, text_of, until
from small_study import CODE, participation
from study_folders import Machine
from textual.pilot import Pilot

from gistpoint.core.ports import ChatModel
from gistpoint.sessions.services import Services
from gistpoint.sessions.studies.taking import Participation
from gistpoint.sessions.tasks import TaskStore
from gistpoint.tui.screens.solve.screen import SolveScreen
from gistpoint.tui.study_app import StudyApp

COMMAND = "gistpoint study join DIR --code P07"


def services_of(machine: Machine) -> Services:
    runner = FakeRunner(CHECKS)

    def no_entrypoints(task: object) -> None:
        raise AssertionError("There is no gist here.")

    return Services(
        locations=machine.locations,
        tasks=TaskStore(machine.locations.tasks),
        attempts=machine.attempts,
        clock=machine.clock,
        runner_for=lambda task: runner,
        entrypoints_for=no_entrypoints,  # type: ignore[arg-type,return-value]
    )


def app_of(
    machine: Machine, root: Path, code: str = CODE, models: Mapping[str, ChatModel] | None = None
) -> StudyApp:
    part = participation(machine, root, code)
    return StudyApp(part, services_of(machine), COMMAND, sandbox_ready=lambda: True, chat_models=models)


@dataclass
class StudyDriver:
    """A participant at the keyboard."""

    app: StudyApp
    pilot: Pilot[object]

    @property
    def part(self) -> Participation:
        return self.app.part

    @property
    def page(self) -> str:
        """The class name of the current screen."""
        return type(self.app.screen).__name__

    @property
    def solve(self) -> SolveScreen:
        screen = self.app._solving
        assert screen is not None
        return screen

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        send_keys(self.app, text)
        await self.pilot.pause()

    async def until(self, met: Callable[[], object]) -> None:
        await until(self.pilot, met)

    async def until_page(self, name: str) -> None:
        await self.until(lambda: self.page == name and not self.app._busy)
        await self.pilot.pause()

    def text(self) -> str:
        return text_of(self.app)


@asynccontextmanager
async def taking(
    machine: Machine,
    root: Path,
    code: str = CODE,
    *,
    size: tuple[int, int] = (80, 24),
    models: Mapping[str, ChatModel] | None = None,
) -> AsyncIterator[StudyDriver]:
    """Yield a driver of an app that joins a study; at the end the app must not have crashed."""
    app = app_of(machine, root, code, models)
    async with app.run_test(size=size, notifications=True) as pilot:
        try:
            yield StudyDriver(app, pilot)
        finally:
            if app._solving is not None:
                app._solving.stop()
            if app._taken is not None:
                app._taken.opened.close()
    tracebacks = "\n".join("".join(traceback.format_exception(error)) for error in app.crashes)
    assert not app.crashes, tracebacks
