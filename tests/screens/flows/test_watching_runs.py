"""Watching a whole run: attempts side by side, redrawn parts, and halted jobs."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from agent_runs import LOOK, RIGHT, WRONG, Home
from examples import at_sizes
from fakes import FakeClock
from screens.settling import text_of, until
from scripted_endpoint import reply
from textual.pilot import Pilot

from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply
from gistpoint.core.locations import Locations
from gistpoint.core.ports import ChatModel
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.agentruns.jobs import JobHalted
from gistpoint.sessions.agentruns.runner import AgentRunner
from gistpoint.sessions.agentruns.store import AgentRun
from gistpoint.sessions.services import Services
from gistpoint.tui.agent_watch_app import AgentWatchApp
from gistpoint.tui.screens.agents.attempt import AttemptWatchScreen
from gistpoint.tui.screens.agents.run import RunWatchScreen
from gistpoint.tui.screens.agents.tiles import AttemptTiles
from gistpoint.tui.widgets.record_list import RecordList

HOSTILE = "\x1b[31mred\x9b1m\u202e [bold]bold[/nope] {{x}}"


class Step:
    """A model whose nth reply waits until `let` allows it, in all of its attempts."""

    name = "step"

    def __init__(self, script: Sequence[ChatReply | ChatFailure], gates: Sequence[threading.Event]) -> None:
        self.script, self.gates = script, gates

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply | ChatFailure:
        number = sum(message.role == "assistant" for message in messages)
        while number < len(self.gates) and not self.gates[number].wait(0.01):
            cancel.check()
        return self.script[min(number, len(self.script) - 1)]


def not_needed() -> Services:
    raise AssertionError("Nothing is opened.")


@pytest.fixture
def home() -> Home:
    return Home(Locations.of_user().data)


@contextmanager
def at_work(home: Home, model: ChatModel, *, tasks: int = 4, at_once: int = 4) -> Any:
    """Work on a run of several tasks in a thread; stop it at the end."""

    def of(settings: AgentSettings) -> ChatModel:
        return model

    home.model_of = of
    run = home.run(*(home.task(number) for number in range(1, tasks + 1)))
    runner = AgentRunner(run, home.ports, at_once=at_once)
    thread = threading.Thread(target=runner.work)
    thread.start()
    try:
        yield run
    finally:
        for gate in getattr(model, "gates", ()):
            gate.set()
        runner.stop()
        thread.join(60)
        assert not thread.is_alive()


@asynccontextmanager
async def watching(home: Home, size: tuple[int, int]) -> AsyncIterator[Pilot[None]]:
    app = AgentWatchApp(Locations.of_user(), run=home.runs.open("r"), services=not_needed)
    async with app.run_test(size=size, notifications=True) as pilot:
        yield pilot
    assert app.crashes == []


def tiles_of(pilot: Pilot[None]) -> AttemptTiles:
    return pilot.app.screen.query_one(AttemptTiles)


def shut(count: int) -> list[threading.Event]:
    return [threading.Event() for _ in range(count)]


@pytest.mark.parametrize(
    ("size", "in_a_row"), [((80, 24), 1), ((120, 35), 2), ((160, 48), 3), ((200, 60), 4)], ids=str
)
async def test_as_many_attempts_are_side_by_side_as_fit(
    home: Home, size: tuple[int, int], in_a_row: int
) -> None:
    gates = shut(3)
    script = (reply(LOOK, content="First I look."), reply(WRONG), reply(RIGHT))
    with at_work(home, Step(script, gates)):
        async with watching(home, size) as pilot:
            await until(pilot, lambda: "At work (4)" in text_of(pilot.app))
            await until(pilot, lambda: tiles_of(pilot).has_focus)
            seen = min(4, 2 * in_a_row)
            await until(pilot, lambda: text_of(pilot.app).count("no submission yet") >= seen)
            heads = [line for line in text_of(pilot.app).splitlines() if "discount removed ──" in line]
            assert heads[0].count("model working") == in_a_row
            gates[0].set()
            await until(pilot, lambda: "→ list_directory" in text_of(pilot.app))
            await until(pilot, lambda: "turn 1" in text_of(pilot.app))
            gates[1].set()
            await until(pilot, lambda: "5 of 6 tests" in text_of(pilot.app))
            assert "█" in text_of(pilot.app)
            assert "4 at work" in text_of(pilot.app)
            gates[2].set()
            await until(pilot, lambda: "solved 4 of 4 [51, 100]" in text_of(pilot.app))
            assert "✔ solved" in text_of(pilot.app)
            await until(pilot, lambda: "no process at work" in text_of(pilot.app))


async def test_arrows_move_among_attempts_and_enter_opens_one(home: Home) -> None:
    with at_work(home, Step((reply(LOOK),), shut(1))):
        async with watching(home, (120, 35)) as pilot:
            await until(pilot, lambda: len(tiles_of(pilot).rows) == 4 and tiles_of(pilot).has_focus)
            tiles = tiles_of(pilot)
            moved = []
            for key in ("right", "down", "left", "up", "G", "g", "j", "l"):
                await pilot.press(key)
                moved.append(tiles.cursor)
            assert moved == [1, 3, 2, 0, 3, 0, 2, 3]
            chosen = tiles.rows[3].job.attempt
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(pilot.app.screen, AttemptWatchScreen))
            screen = pilot.app.screen
            assert isinstance(screen, AttemptWatchScreen)
            assert screen._follower.folder.name == chosen
            await until(pilot, lambda: "Take over" in text_of(pilot.app))
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(pilot.app.screen, RunWatchScreen))
            assert tiles.has_focus


async def test_a_click_chooses_an_attempt_and_the_next_opens_it(home: Home) -> None:
    with at_work(home, Step((reply(LOOK),), shut(1))):
        async with watching(home, (120, 35)) as pilot:
            await until(pilot, lambda: len(tiles_of(pilot).rows) == 4 and tiles_of(pilot).display)
            tiles = tiles_of(pilot)
            await pilot.click(tiles, offset=(80, 7))
            assert tiles.cursor == 3
            await pilot.click(tiles, offset=(20, 2))
            assert tiles.cursor == 0
            assert isinstance(pilot.app.screen, RunWatchScreen)
            await pilot.click(tiles, offset=(20, 4))
            await until(pilot, lambda: isinstance(pilot.app.screen, AttemptWatchScreen))


async def test_tiles_can_be_hidden_and_the_table_takes_up_their_space(home: Home) -> None:
    with at_work(home, Step((reply(LOOK),), shut(1))):
        async with watching(home, (80, 24)) as pilot:
            await until(pilot, lambda: tiles_of(pilot).has_focus)
            screen = pilot.app.screen
            assert isinstance(screen, RunWatchScreen)
            before = screen.table.size.height
            await pilot.press("v")
            assert not tiles_of(pilot).display
            assert screen.table.has_focus
            await until(pilot, lambda: screen.table.size.height > before + 5)
            await pilot.press("v")
            assert tiles_of(pilot).has_focus
            await until(pilot, lambda: screen.table.size.height == before)


async def test_only_what_has_changed_is_drawn_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    first, later = shut(2)
    model = Step((reply(LOOK),), (first, later))
    drawn: list[str] = []
    kept = AttemptTiles._refresh_tile

    def noted(tiles: AttemptTiles, index: int, line: int | None = None) -> None:
        drawn.append(f"{index}:{line}")
        kept(tiles, index, line)

    with at_work(home, model):
        async with watching(home, (120, 35)) as pilot:
            await until(pilot, lambda: len(tiles_of(pilot).rows) == 4)
            screen = pilot.app.screen
            assert isinstance(screen, RunWatchScreen)
            renewed = _counted(monkeypatch, screen.table, "update_records")
            rows = list(screen.table.records)
            monkeypatch.setattr(AttemptTiles, "_refresh_tile", noted)
            for _ in range(3):
                screen._show(screen._read())
            assert drawn == []
            assert renewed == []
            assert isinstance(home.clock, FakeClock)
            screen._clock = home.clock
            home.clock.advance(1000)
            screen._tick()
            assert set(drawn) <= {f"{n}:4" for n in range(4)}
            screen._show(screen._read())
            assert all(old is new for old, new in zip(rows, screen.table.records, strict=True))


def _counted(patch: pytest.MonkeyPatch, owner: object, name: str) -> list[None]:
    calls: list[None] = []
    real: Callable[..., Any] = getattr(owner, name)

    def counted(*args: Any, **named: Any) -> Any:
        calls.append(None)
        return real(*args, **named)

    patch.setattr(owner, name, counted)
    return calls


@pytest.mark.parametrize("size", at_sizes((80, 24), (160, 48)))
async def test_a_halted_job_gives_its_reason_and_the_command(home: Home, size: tuple[int, int]) -> None:
    home.script = (reply(LOOK), ChatFailure(ChatProblem.REJECTED, "It answered 400: the schema is wrong."))
    run = home.run(home.task(1), home.task(2))
    home.work(run)
    async with watching(home, size) as pilot:
        await until(pilot, lambda: "2 halted" in text_of(pilot.app))
        shown = " ".join(text_of(pilot.app).split())
        assert "Job 1 has halted (request_rejected). It answered 400: the schema is wrong." in shown
        assert "`gistpoint agent resume r` tries again" in shown
        await pilot.press("down")
        await until(pilot, lambda: "Job 2 has halted" in text_of(pilot.app))


async def test_names_and_messages_from_outside_are_drawn_as_they_are(home: Home) -> None:
    home.settings = type(home.settings)(model=HOSTILE, host="h", agent=AgentSettings())
    run = home.run(home.task(1), home.task(2))
    key, other = run.jobs
    home.work(_only(run, other))
    run.append([JobHalted(job=key, problem=HOSTILE, message=HOSTILE)])
    app = AgentWatchApp(Locations.of_user(), run=home.runs.open("r"), services=not_needed)
    app._titled = lambda task: HOSTILE  # type: ignore[assignment]
    async with app.run_test(size=(160, 48), notifications=True) as pilot:
        await until(pilot, lambda: "1 halted" in text_of(app))
        text = text_of(app)
        assert text.count("[bold]bold[/nope] {{x}}") >= 3
        assert not set("\x1b\x9b\u202e") & set(text)
        await pilot.press("end", "home", "enter")
        await pilot.pause()
    assert app.crashes == []


def _only(run: AgentRun, key: str) -> AgentRun:
    """Halt all jobs of a run except one, and return the run."""
    run.append([JobHalted(job=job, problem="x") for job in run.jobs if job != key])
    return run


@pytest.mark.parametrize("look", ["NO_COLOR", "ansi-dark", "gistpoint-light"])
async def test_the_chosen_attempt_is_marked_without_colour_too(
    home: Home, look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if look == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
    with at_work(home, Step((reply(LOOK),), shut(1))):
        async with watching(home, (120, 35)) as pilot:
            if look != "NO_COLOR":
                pilot.app.theme = look
            await until(pilot, lambda: tiles_of(pilot).has_focus)
            await until(pilot, lambda: len(tiles_of(pilot).rows) == 4)
            await pilot.press("right")
            first, second, *_ = tiles_of(pilot).rows
            await until(pilot, lambda: f"▸ {second.number} shop · discount removed ──" in text_of(pilot.app))
            assert f"▸ {first.number} shop · discount removed ──" not in text_of(pilot.app)


async def test_a_list_of_jobs_that_grows_keeps_the_row_under_the_cursor(home: Home) -> None:
    run = home.run(home.task(1), home.task(2), home.task(3))
    async with watching(home, (120, 35)) as pilot:
        await until(pilot, lambda: "Jobs (3)" in text_of(pilot.app))
        table = pilot.app.screen.query_one(RecordList)
        await pilot.press("down")
        home.run(home.task(4))
        assert len(run.jobs) == 3
        await until(pilot, lambda: "Jobs (4)" in text_of(pilot.app))
        assert table.cursor == 1
