"""Text typed after a key that a thread answers waits for the screen that the thread opens."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from builders import build_services, build_task
from fakes import FakeClock
from key_fuzzing import Playground, field_text
from screens.driving import LARGE, driving, solving
from screens.review.reviewing import command, mini_run, reviewing
from screens.settling import text_of, until
from screens.test_assigned import Lab
from screens.test_making import NAME, REPORT, ScriptedWork, app_of
from screens.validate.validating import make_tasks, validating
from textual import events

from gistpoint import tui
from gistpoint.core.attempts.events import GiveUpCode
from gistpoint.core.errors import TaskError
from gistpoint.core.generation.progress import KeptTask
from gistpoint.core.tasks.model import Mode
from gistpoint.tui.app import GistpointApp
from gistpoint.tui.base_app import BaseApp
from gistpoint.tui.screens.dialogs.ask import ConsentPrompt
from gistpoint.tui.screens.review.open_run import OpenRun
from gistpoint.tui.screens.validate.session import ValidationSession

WORD = "ÆØÅ"
"""Letters that are not keys on any screen."""
WAIT_S = 20.0
CALLERS = """def half(price):
    from shop.prices import discount
    return discount(price, 50)


def tenth_off(price):
    from shop.prices import discount
    return discount(price, 10)
"""
A_WHILE = 20
"""The number of turns of the loop in which a key could take effect too early."""


class Gate:
    """A gate at which threads wait until the test opens it, as on a slow machine."""

    def __init__(self) -> None:
        self.opened, self.reached = threading.Event(), threading.Event()

    def slowed(self, do: Callable[..., object]) -> Callable[..., object]:
        """Return a function that waits at the gate before it calls `do`."""

        def slow(*given: Any, **named: Any) -> object:
            self.reached.set()
            assert self.opened.wait(2 * WAIT_S)
            return do(*given, **named)

        return slow


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.opened.set()


class Typist:
    """Someone who types without waiting, and the screens that got the text."""

    def __init__(self, app: BaseApp, pilot: Any) -> None:
        self.ground = Playground(app, pilot, rng=None)  # type: ignore[arg-type]
        self.app, self.got = app, list[tuple[str, str]]()
        deliver = app.type_ahead._deliver

        async def noted(event: events.Event) -> None:
            if isinstance(event, events.Key):
                self.got.append((event.key, type(app.screen).__name__))
            await deliver(event)

        app.type_ahead._deliver = noted

    async def a_while(self) -> None:
        for _ in range(A_WHILE):
            await asyncio.sleep(0.005)

    async def until(self, met: Callable[[], object]) -> None:
        """Wait for a thread, while keys are held; `Playground.until` would wait for them."""
        async with asyncio.timeout(WAIT_S):
            while not met():
                await asyncio.sleep(0.005)

    @property
    def letters(self) -> list[tuple[str, str]]:
        """The letters of the word that a screen has got so far, with the name of the screen."""
        return [(key, screen) for key, screen in self.got if key in WORD]


Opened = AbstractAsyncContextManager[Typist]


APPS = {"base_app", "app", "participant_app", "study_app", "review_app", "agent_watch_app", "campaign_app"}
COLOURS = {"code_view", "diff_view", "markdown_text"}
MAY_USE_THREADS = {
    *(f"{name}.py" for name in APPS),
    *(f"widgets/{name}.py" for name in COLOURS),  # they only colour visible text
    "screens/review/step_view.py",
    "screens/dialogs/ask.py",  # `ConsentPrompt`, whose dialog opens unasked
}


@dataclass(frozen=True)
class Case:
    """A key that a thread has to answer."""

    at: Callable[[Path, Gate, pytest.MonkeyPatch], Opened]
    """A function that opens the screen on which the key is pressed."""
    key: str
    opened: str
    """The class of the screen that the thread opens."""
    asks: bool = False
    """Whether that screen has a field that gets the letters."""


def slow_app(gate: Gate, patch: pytest.MonkeyPatch) -> None:
    """Slow down all threads that the app starts from now on."""
    in_thread = BaseApp.in_thread

    def slowly(self: BaseApp, body: Callable[[], object], **named: Any) -> None:
        in_thread(self, gate.slowed(body), **named)

    patch.setattr(BaseApp, "in_thread", slowly)


def home(*keys: str, begun: bool = False, ended: bool = False) -> Callable[..., Opened]:
    """Return a function that opens the home screen and presses keys there."""

    @asynccontextmanager
    async def opened(root: Path, gate: Gate, patch: pytest.MonkeyPatch) -> AsyncIterator[Typist]:
        clock = FakeClock()
        services = build_services(root, clock=clock)
        task = build_task(services.locations.tasks, Mode.REMOVE)
        if begun or ended:
            held = services.start(task)
            if ended:
                held.attempt.skip(GiveUpCode.OTHER)
            held.close()
        async with driving(services, clock, size=LARGE) as driver:
            await driver.until(lambda: task.short_id in driver.text() or "shop" in driver.text())
            await driver.press(*keys)
            slow_app(gate, patch)
            yield Typist(driver.app, driver.pilot)

    return opened


@asynccontextmanager
async def assigned(root: Path, gate: Gate, patch: pytest.MonkeyPatch) -> AsyncIterator[Typist]:
    async with Lab(root).window() as pilot:
        slow_app(gate, patch)
        assert isinstance(pilot.app, BaseApp)
        yield Typist(pilot.app, pilot)


@asynccontextmanager
async def making(root: Path, gate: Gate, patch: pytest.MonkeyPatch) -> AsyncIterator[Typist]:
    work = ScriptedWork()
    app = app_of(work, root)
    task = build_task(app._services().locations.tasks, Mode.DISCOVERY)
    async with app.run_test(size=LARGE) as pilot:
        await until(pilot, work.begun.is_set)
        work.run.progress(replace(REPORT, kept=(KeptTask(task.id, (NAME,), 4, 0.12),)))
        await until(pilot, lambda: f"{task.id[:4]} " in text_of(app))
        slow_app(gate, patch)
        yield Typist(app, pilot)
        work.ended.set()


def validation(*keys: str, shows: str = "", slow: str) -> Callable[..., Opened]:
    """Return a function that opens the validation screen and presses keys.

    The last key is pressed once the screen `shows` a string, and once the session's method `slow` is slow.
    """

    @asynccontextmanager
    async def opened(root: Path, gate: Gate, patch: pytest.MonkeyPatch) -> AsyncIterator[Typist]:
        services, tasks = make_tasks(root, extra_files={"shop/sales.py": CALLERS})
        async with validating(services, tasks, size=LARGE) as driver:
            *before, last = keys
            await driver.press(*before)
            await driver.until(lambda: shows in driver.text())
            patch.setattr(ValidationSession, slow, gate.slowed(getattr(ValidationSession, slow)))
            await driver.press(last)
            yield Typist(driver.app, driver.pilot)

    return opened


@asynccontextmanager
async def run(root: Path, gate: Gate, patch: pytest.MonkeyPatch) -> AsyncIterator[Typist]:
    patch.setattr(OpenRun, "_annotations", gate.slowed(OpenRun._annotations))
    path = mini_run(root / "a.traj.json", [command("ls", "stats.py")] * 3)
    async with reviewing(path, size=LARGE) as driver:
        await driver.until(lambda: driver.review.run.step is not None)
        yield Typist(driver.app, driver.pilot)


@asynccontextmanager
async def giving_up(root: Path, gate: Gate, patch: pytest.MonkeyPatch) -> AsyncIterator[Typist]:
    async with solving(root, size=LARGE) as driver:
        await driver.press("ctrl+g", "tab", "tab")
        patch.setattr(driver.attempt, "skip", gate.slowed(driver.attempt.skip))
        yield Typist(driver.app, driver.pilot)


CASES = {
    "give up": Case(giving_up, "enter", "SummaryScreen"),
    "start": Case(home(), "enter", "SolveScreen"),
    "start or resume": Case(home(begun=True), "ctrl+n", "PickDialog", asks=True),
    "resume": Case(home("f3", begun=True), "enter", "SolveScreen"),
    "result": Case(home("f3", ended=True), "enter", "SummaryScreen"),
    "tour": Case(home(), "T", "TourScreen"),
    "assigned task": Case(assigned, "enter", "SolveScreen"),
    "kept task": Case(making, "enter", "ValidateScreen"),
    "comment on the next task": Case(validation("u", slow="dossier"), "c", "CommentDialog", asks=True),
    "callers": Case(
        validation("f7", "f7", shows="def discount", slow="study"), "less_than_sign", "PickDialog", asks=True
    ),
    "label": Case(run, "L", "LabelDialog", asks=True),
    "comment on a step": Case(run, "c", "CommentDialog", asks=True),
    "verdict": Case(run, "V", "VerdictDialog", asks=True),
}


@pytest.mark.parametrize("name", CASES)
async def test_what_is_typed_after_a_key_waits_for_what_a_thread_opens(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    case = CASES[name]
    async with case.at(tmp_path, gate, monkeypatch) as typist:
        typist.ground.post(case.key, *WORD)
        await typist.until(gate.reached.is_set)
        await typist.a_while()
        assert typist.letters == [], "no screen gets what is for another one"
        gate.opened.set()
        await typist.until(lambda: len(typist.letters) == len(WORD))
        assert typist.letters == [(letter, case.opened) for letter in WORD]
        if case.asks:
            await typist.until(lambda: field_text(typist.app.focused) == WORD)


async def test_escape_cancels_what_a_thread_opens_and_what_was_typed_for_it(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with home()(tmp_path, gate, monkeypatch) as typist:
        typist.ground.post("enter", "q", "escape", "slash", *WORD)
        await typist.until(lambda: field_text(typist.app.focused) == WORD)
        assert type(typist.app.screen).__name__ == "HomeScreen", "the `q` was for the attempt"
        assert typist.got == [("enter", "HomeScreen"), *[(key, "HomeScreen") for key in ("slash", *WORD)]]
        gate.opened.set()
        await typist.ground.settle()
        assert type(typist.app.screen).__name__ == "HomeScreen", "what was cancelled opens nothing later"


async def test_what_was_typed_for_something_that_fails_does_nothing_else(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An Enter for the attempt does not close the message unread, and home gets none of the keys."""
    async with home()(tmp_path, gate, monkeypatch) as typist:

        def fails(*_: object, **__: object) -> None:
            raise TaskError("The task is gone.")

        monkeypatch.setattr("gistpoint.sessions.services.Services.start", fails)
        typist.ground.post("enter", "q", "enter")
        await typist.until(gate.reached.is_set)
        gate.opened.set()
        await typist.until(lambda: "The task is gone." in text_of(typist.app))
        await typist.ground.settle()
        assert "The task is gone." in text_of(typist.app)
        await typist.ground.press("enter", "slash", *WORD)
        assert field_text(typist.app.focused) == WORD


async def test_a_question_of_the_thread_itself_can_be_answered(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text typed before it opened does not answer it, and still reaches the attempt."""
    monkeypatch.setattr("gistpoint.tui.screens.dialogs.ask.GRACE_S", 0.2)
    monkeypatch.setattr("gistpoint.tui.type_ahead._PATIENCE_S", 0.2)
    async with home()(tmp_path, gate, monkeypatch) as typist:
        prompt, answers = ConsentPrompt(typist.app), list[bool]()
        find = GistpointApp._choose_for

        def asks_first(*given: Any) -> None:
            answers.append(prompt.ask("There is no isolation here."))
            find(*given)

        monkeypatch.setattr(GistpointApp, "_choose_for", asks_first)
        typist.ground.post("enter", *WORD)
        gate.opened.set()
        await typist.until(lambda: "There is no isolation here." in text_of(typist.app))
        assert typist.letters == []
        await asyncio.sleep(0.3)
        typist.ground.post("shift+tab", "enter")
        await typist.until(lambda: answers == [True])
        await typist.until(lambda: typist.letters == [(letter, "SolveScreen") for letter in WORD])


def test_no_app_starts_a_thread_that_holds_nothing() -> None:
    """Threads open screens through `in_thread`, a job of a `HeldAction`, or an unasked dialog."""
    threads = re.compile(r"call_from_thread|thread=True")
    found = {
        str(source.relative_to(tui.__path__[0]))
        for source in Path(tui.__path__[0]).rglob("*.py")
        if threads.search(source.read_text(encoding="utf-8"))
    }
    assert found <= MAY_USE_THREADS, "use `in_thread`, `Jobs` or `HeldAction`"
