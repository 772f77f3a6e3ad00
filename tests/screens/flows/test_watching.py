"""Watching a run and an attempt of it in progress."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agent_runs import LOOK, RIGHT, Home
from builders import CHECKS, build_services
from examples import at_sizes
from fakes import FakeRunner
from screens.settling import text_of, until
from scripted_endpoint import ScriptedModel, reply
from textual.pilot import Pilot

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply
from gistpoint.core.errors import AttemptError
from gistpoint.core.locations import Locations
from gistpoint.core.ports import ChatModel
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.agentruns.control import CONTROL, ask_for, asker_of
from gistpoint.sessions.agentruns.jobs import JobHalted
from gistpoint.sessions.agentruns.recorded import open_recorded_run, recorded_attempt
from gistpoint.sessions.agentruns.runner import AgentRunner
from gistpoint.sessions.agentruns.store import AgentRun
from gistpoint.sessions.services import Services
from gistpoint.tui.agent_watch_app import AgentWatchApp
from gistpoint.tui.app import GistpointApp
from gistpoint.tui.screens.agents.attempt import AttemptWatchScreen
from gistpoint.tui.screens.agents.run import RunWatchScreen
from gistpoint.tui.screens.dialogs.ask import GRACE_S, TextDialog
from gistpoint.tui.screens.solve.screen import SolveScreen


class Held:
    """A model that replies from a script, each time after the test has released the reply."""

    name = "held"

    def __init__(self, *script: ChatReply) -> None:
        self.script = list(script)
        self.let = threading.Semaphore(0)

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply:
        while not self.let.acquire(timeout=0.01):
            cancel.check()
        return self.script.pop(0)


def not_needed() -> Services:
    raise AssertionError("Nothing is opened.")


@pytest.fixture
def home() -> Home:
    return Home(Locations.of_user().data)


@asynccontextmanager
async def watching(app: AgentWatchApp, size: tuple[int, int]) -> AsyncIterator[Pilot[object]]:
    async with app.run_test(size=size) as pilot:
        yield pilot
    assert app.crashes == []


@pytest.mark.parametrize("size", at_sizes((80, 24), (160, 48)))
async def test_a_run_and_an_attempt_are_drawn_as_they_go_on(home: Home, size: tuple[int, int]) -> None:
    model = Held(reply(LOOK, content="First I look around."), reply(RIGHT, content="That must be it."))
    home.model_of = lambda settings: model
    run = home.run(home.task(1))
    runner = AgentRunner(run, home.ports)
    thread = threading.Thread(target=runner.work)
    thread.start()
    app = AgentWatchApp(Locations.of_user(), run=home.runs.open("r"), services=not_needed)
    async with watching(app, size) as pilot:
        await until(pilot, lambda: "model working" in text_of(app))
        assert isinstance(app.screen, RunWatchScreen)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AttemptWatchScreen))
        await until(pilot, lambda: "Read-only: m-1 is at work" in text_of(app))
        model.let.release()
        await until(pilot, lambda: "list_directory" in text_of(app) and "shop" in text_of(app))
        assert "else 1 tool use" not in text_of(app)
        await pilot.press("f6")
        await until(pilot, lambda: "First I look around." in text_of(app))
        assert "turn 1, 100 tokens sent, 10 received" in text_of(app)
        await pilot.press("f2")
        await until(pilot, lambda: "Repair a function" in text_of(app))
        model.let.release()
        thread.join(60)
        assert not thread.is_alive()
        await until(pilot, lambda: "✔ solved" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunWatchScreen))
        await until(pilot, lambda: "solved 1 of 1 [21, 100]" in text_of(app))
        await pilot.press("escape")


async def test_what_was_shown_can_be_read_and_nothing_can_be_called(home: Home) -> None:
    read = ("read_file", {"file_path": "shop/prices.py"})
    home.script = (reply(LOOK), reply(read), reply(RIGHT))
    run = home.run(home.task(1))
    home.work(run)
    (state,) = run.jobs.values()
    before = home.attempts.summary(state.attempt).head
    app = AgentWatchApp(Locations.of_user(), attempt=state.attempt, services=not_needed)
    async with watching(app, (160, 48)) as pilot:
        await until(pilot, lambda: "✔ solved" in text_of(app))
        await pilot.press("f4")
        await until(pilot, lambda: "F4 shop/prices.py  21 lines" in text_of(app))
        await pilot.press("full_stop")
        await until(pilot, lambda: any("read-only here" in notice.message for notice in app._notifications))
        await pilot.press("f3", "down", "enter")
        await pilot.pause()
    assert home.attempts.summary(state.attempt).head == before


def at_work(home: Home, model: ChatModel) -> tuple[AgentRun, str, threading.Thread]:
    """Return a run of one job in progress, its attempt, and the thread that works on it."""
    home.model_of = lambda settings: model
    run = home.run(home.task(1))
    thread = threading.Thread(target=AgentRunner(run, home.ports).work)
    thread.start()
    while not next(iter(run.jobs.values())).attempt:
        thread.join(0.01)
        assert thread.is_alive()
    return run, next(iter(run.jobs.values())).attempt, thread


@pytest.mark.parametrize("size", at_sizes((80, 24), (160, 48)))
async def test_a_person_takes_an_attempt_over_and_gives_it_back(home: Home, size: tuple[int, int]) -> None:
    model = Held(reply(LOOK), reply(RIGHT))
    run, attempt, thread = at_work(home, model)
    services = build_services(home.folder.parent, clock=home.clock)
    app = AgentWatchApp(Locations.of_user(), run=home.runs.open("r"), services=lambda: services)
    async with watching(app, size) as pilot:
        await until(pilot, lambda: "model working" in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: "Read-only: m-1 is at work" in text_of(app))
        model.let.release()
        await until(pilot, lambda: "◆ 15 " in text_of(app))
        await pilot.press("f9")
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        question = " ".join(text_of(app).split())
        assert "no longer a baseline" in question
        assert "15 of 16 tool uses and 4 of 4 submissions" in question
        await pilot.press(*"p07", "enter")
        await until(pilot, lambda: app.taken)
    thread.join(60)
    assert not thread.is_alive()
    assert app.taken == attempt
    assert not (home.attempts.folder(attempt) / CONTROL).exists()
    solving = GistpointApp(services, open=attempt, alone=True)
    async with solving.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(solving.screen, SolveScreen))
        await until(pilot, lambda: "◆ 15 " in text_of(solving))
        assert isinstance(solving.screen, SolveScreen)
        solving.screen._asking.ask("read_file", {"file_path": "shop/prices.py"})
        await until(pilot, lambda: "◆ 14 " in text_of(solving))
        await pilot.press("ctrl+l")
        await until(pilot, lambda: not solving.is_running)
    assert solving.crashes == []
    app = AgentWatchApp(
        Locations.of_user(), run=home.runs.open("r"), attempt=attempt, services=lambda: services, left=True
    )
    async with watching(app, size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        assert isinstance(app.screen, TextDialog)
        app.screen.opened_at -= GRACE_S  # no key is pending
        await pilot.press("escape")
        await until(
            pilot,
            lambda: (
                not isinstance(app.screen, TextDialog) and "A person (p07) has taken it over." in text_of(app)
            ),
        )
        await pilot.press("f10", *"hint", "enter")
        await until(pilot, lambda: "no process has it open" in text_of(app))
        await pilot.press("f6")
        await until(pilot, lambda: "── taken over by a person (p07)" in text_of(app))
        assert text_of(app).index("── given back to the model") < text_of(app).index("hint")
        assert any("`agent resume` continues" in notice.message for notice in app._notifications)
        await pilot.press("escape")
        await until(pilot, lambda: "given back" in text_of(app))
    taken, given = home.attempts.summary(attempt).state.handovers
    assert (taken.to, taken.by, given.to, given.note) == ("person", "p07", "model", "hint")
    model.let.release()
    home.work(run)
    figures = home.figures(run)
    assert [(row.result, row.calls, row.mixed) for row in figures.attempts] == [("solved", 3, True)]
    assert (figures.totals.counted, figures.totals.mixed, figures.totals.reasons) == (0, 1, {})
    app = AgentWatchApp(Locations.of_user(), run=home.runs.open("r"), services=not_needed)
    async with watching(app, size) as pilot:
        await until(pilot, lambda: "✔ solved, mixed" in text_of(app))
        assert "1 mixed" in text_of(app)


async def test_a_request_to_take_over_waits_for_the_call_under_way_and_can_be_withdrawn(home: Home) -> None:
    gate = threading.Event()
    runner = home.runner = FakeRunner(CHECKS, gate=gate)
    _, attempt, thread = at_work(home, ScriptedModel((reply(RIGHT),)))
    folder = home.attempts.folder(attempt)
    app = AgentWatchApp(Locations.of_user(), attempt=attempt, services=not_needed)
    async with watching(app, (110, 30)) as pilot:
        await until(pilot, lambda: runner.runs > 0)
        await until(pilot, lambda: "Read-only: m-1 is at work" in text_of(app))
        await pilot.press("f9", *"p07", "enter")
        await until(pilot, lambda: "Requested" in text_of(app))
        assert asker_of(folder) == "p07"
        with pytest.raises(AttemptError, match="Somebody else"):
            ask_for(folder, "p08")
        await pilot.press("f9")
        await until(pilot, lambda: "Read-only: m-1 is at work" in text_of(app))
        assert asker_of(folder) is None
        await pilot.press("f9", "enter")
        await until(pilot, lambda: "Requested" in text_of(app))
        gate.set()
        await until(pilot, lambda: "✔ solved" in text_of(app))
        await until(pilot, lambda: any("ended before" in notice.message for notice in app._notifications))
        assert not app.taken
    thread.join(60)
    assert not thread.is_alive()
    assert home.attempts.summary(attempt).state.drivers == ("model",)


async def test_an_attempt_that_no_process_works_on_is_taken_over_at_once(home: Home) -> None:
    home.script = (reply(LOOK), ChatFailure(ChatProblem.SERVER_ERROR, "It answered 500."))
    run = home.run(home.task(1))
    home.work(run)
    (job,) = run.jobs.values()
    services = build_services(home.folder.parent, clock=home.clock)
    app = AgentWatchApp(Locations.of_user(), attempt=job.attempt, services=lambda: services)
    async with watching(app, (110, 30)) as pilot:
        await until(pilot, lambda: "no process has it open" in text_of(app))
        await pilot.press("f9", *"p07", "enter")
        await until(pilot, lambda: app.taken)
    (taken,) = home.attempts.summary(job.attempt).state.handovers
    assert (taken.to, taken.by) == ("person", "p07")
    assert not home.attempts.summary(job.attempt).open
    again = AgentWatchApp(Locations.of_user(), attempt=job.attempt, services=not_needed)
    async with watching(again, (110, 30)) as pilot:
        await until(pilot, lambda: "A person (p07) has taken it over." in text_of(again))
        await pilot.press("f9")  # the person's code was requested before
        await until(pilot, lambda: again.taken)
    assert len(home.attempts.summary(job.attempt).state.handovers) == 1


async def test_an_attempt_that_ended_is_not_taken_over(home: Home) -> None:
    home.script = (reply(RIGHT),)
    run = home.run(home.task(1))
    home.work(run)
    (job,) = run.jobs.values()
    app = AgentWatchApp(Locations.of_user(), attempt=job.attempt, services=not_needed)
    async with watching(app, (110, 30)) as pilot:
        await until(pilot, lambda: "✔ solved" in text_of(app))
        assert "Take over" not in text_of(app)
        await pilot.press("f9", "f10")
        await pilot.pause()
        assert isinstance(app.screen, AttemptWatchScreen)


async def test_why_a_job_has_no_attempt_is_shown_without_control_characters(home: Home) -> None:
    run = home.run(home.task(1))
    (key,) = run.jobs
    run.append([JobHalted(job=key, problem="task", message="\x1b[31mred\x9b1m\u202e [bold]bold[/nope]")])
    app = AgentWatchApp(Locations.of_user(), run=home.runs.open("r"), services=not_needed)
    async with app.run_test(size=(160, 48), notifications=True) as pilot:
        await until(pilot, lambda: "halted: task" in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: "[bold]bold[/nope]" in text_of(app))
        assert not set("\x1b\x9b\u202e") & set(text_of(app))


async def test_the_recorded_attempt_of_the_demo_is_watched_like_any_other() -> None:
    run = open_recorded_run(Locations.of_user(), "test")
    line = recorded_attempt().turns[0].content.splitlines()[1]
    app = AgentWatchApp(Locations.of_user(), run=run, services=not_needed)
    async with watching(app, (160, 48)) as pilot:
        await until(pilot, lambda: "token_cap" in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AttemptWatchScreen) and line[:30] in text_of(app))
