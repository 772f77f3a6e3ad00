"""Drives the validation screen on tiny tasks."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders import CHECKS, build_services, build_task
from fakes import FakeRunner
from screens.review.reviewing import Reviewing

from gistpoint.core.kinds.folder import read_answer, write_task
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.annotations.validations import Validation
from gistpoint.sessions.services import Services
from gistpoint.sessions.tasks import read_set
from gistpoint.tui.base_app import OneScreenApp
from gistpoint.tui.screens.validate.screen import ValidateScreen
from gistpoint.tui.screens.validate.session import ValidationSession


class Validating(Reviewing):
    """A driver of the running app."""

    @property
    def screen(self) -> ValidateScreen:
        return self.on(ValidateScreen)

    @property
    def said(self) -> Validation:
        """The validation of the task that is shown."""
        return self.screen.session.validator.validation(self.screen.dossier_id)

    async def shows(self, task: str) -> None:
        """Wait until a task is shown."""
        await self.until(lambda: self.screen.dossier_id == task)

    async def page(self, key: str, words: str) -> None:
        """Go to a page, and wait until it shows `words`."""
        await self.press(key)
        await self.until(lambda: words in self.text())

    async def idle(self) -> None:
        """Wait until all requested runs have ended."""
        await self.until(lambda: not self.screen.trial_queue.busy)
        await self.pilot.pause()


def make_tasks(root: Path, count: int = 3, **more: Any) -> tuple[Services, list[Task]]:
    """Return services, and tasks that differ in one file, in the order of their folders."""
    services = build_services(root)
    folder = services.locations.tasks
    extra = more.pop("extra_files", {})
    made = [
        build_task(folder, Mode.DISCOVERY, extra_files={**extra, "n.txt": str(n)}, **more).id
        for n in range(count)
    ]
    tasks = {task.id: task for task in read_set([], services.tasks).tasks}
    return services, [tasks[id] for id in made]


def with_answer(task: Task, *, metrics: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
    """Write metrics and provenance into the answer of a task."""
    write_task(task, replace(read_answer(task), metrics=metrics, provenance=provenance))


@asynccontextmanager
async def validating(
    services: Services,
    tasks: Sequence[Task],
    *,
    runner: FakeRunner | None = None,
    size: tuple[int, int] = (80, 24),
    name: str = "ada",
    adjudicates: bool = False,
    crashes: int = 0,
) -> AsyncIterator[Validating]:
    """Run the app on some tasks, and yield its driver once the first task without a verdict is shown.

    At the end, the app must have crashed exactly `crashes` times.
    """
    running = runner or FakeRunner(CHECKS)
    services = replace(services, runner_for=lambda task: running)
    names = [str(task.folder) for task in tasks]
    session = ValidationSession.of(services, read_set(names, services.tasks), name, adjudicates=adjudicates)
    app = OneScreenApp(services.locations, "screens/validate/validate.tcss", lambda: ValidateScreen(session))
    async with app.run_test(size=size, notifications=True) as pilot:
        driver = Validating(app, pilot)  # type: ignore[arg-type]
        await driver.until_on(ValidateScreen)
        await driver.until(lambda: driver.screen.dossier is not None or not driver.screen.queue.rows)
        yield driver
        if running.gate is not None:
            running.gate.set()
    assert len(app.crashes) == crashes, "\n".join("".join(traceback.format_exception(e)) for e in app.crashes)
