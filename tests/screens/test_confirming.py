"""The summary of an attempt whose pass is being confirmed: the job, its result, and leaving in between."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from builders import REPAIR, build_services, build_task
from confirmers import CONFIRMED, CONTRADICTED, ScriptedConfirmer, controlled
from screens.settling import text_of

from gistpoint import tui
from gistpoint.core.running import RunContext
from gistpoint.sessions.services import Services
from gistpoint.tui.app import GistpointApp

LONG_S = 20.0


class Case:
    def __init__(self, root: Path, confirmer: ScriptedConfirmer, *, with_controls: bool = True) -> None:
        self.services: Services = replace(build_services(root), confirmer_for=lambda task: confirmer)
        task = build_task(self.services.locations.tasks)
        if with_controls:
            controlled(task.folder)
        opened = self.services.start(task)
        opened.attempt.call("submit_attempt", {"func_code": REPAIR})
        opened.close()
        self.attempt = opened.attempt.state.attempt_id

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[Callable[[str], object]]:
        app = GistpointApp(self.services, open=self.attempt)
        async with app.run_test(size=(80, 24), notifications=True) as pilot:

            async def until(words: str) -> None:
                async with asyncio.timeout(LONG_S):
                    while words not in " ".join(text_of(app).split()):
                        await asyncio.sleep(0.02)
                        await pilot.pause()

            self.press = pilot.press
            yield until

    @property
    def confirmation(self) -> object:
        return self.services.attempts.summary(self.attempt).state.confirmation


@pytest.mark.parametrize(
    ("confirmation", "words"),
    [
        (CONFIRMED, ("✔ solved", "price(-1, 10)")),
        (CONTRADICTED, ("? solved, to be read", "price(11, 10)", "object")),
    ],
)
async def test_the_result_follows_with_its_call(
    confirmation: object, words: tuple[str, ...], tmp_path: Path
) -> None:
    gate = threading.Event()
    case = Case(tmp_path, ScriptedConfirmer(confirmation, before=lambda run: gate.wait(LONG_S)))  # type: ignore[arg-type]
    async with case.shown() as until:
        await until("being confirmed")
        gate.set()
        for shown in words:
            await until(shown)
    assert case.confirmation == confirmation


def stopped(run: RunContext) -> None:
    run.cancel.sleep(LONG_S)


async def test_leaving_stops_it_and_writes_nothing_and_the_next_time_goes_on(tmp_path: Path) -> None:
    confirmer = ScriptedConfirmer(before=stopped)
    case = Case(tmp_path, confirmer)
    async with case.shown() as until:
        await until("being confirmed")
        await case.press("escape")
        await until("The confirmation was stopped")
    assert case.confirmation is None
    confirmer.before = lambda run: None
    async with case.shown() as until:
        await until("confirmed")
        await until("7 calls answered")
    assert case.confirmation == CONFIRMED


async def test_a_task_from_before_says_what_to_do(tmp_path: Path) -> None:
    case = Case(tmp_path, ScriptedConfirmer(), with_controls=False)
    async with case.shown() as until:
        await until("gistpoint task control")
    assert case.confirmation is None


def test_no_screen_says_not_asked() -> None:
    """The stored word names a state in tables; readers of a screen would not understand it."""
    for source in (Path(tui.__path__[0]) / "screens").rglob("*.py"):
        assert '"not asked' not in source.read_text(encoding="utf-8"), source
