"""Other programs' agents in a run: budgets, journal, ends and tables are always gistpoint's."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_runs import LOOK, RIGHT, WRONG, Home
from scripted_endpoint import reply

from gistpoint.core.agents.scaffolds import (
    OWN,
    InstalledScaffold,
    RelayedModel,
    RelayedRequest,
    Scaffold,
    ScaffoldError,
    ScaffoldIdentity,
    Seat,
    message_of,
)
from gistpoint.core.agents.settings import AgentSettings, TokenPrice
from gistpoint.core.attempts.events import ModelTurn
from gistpoint.core.attempts.reasons import EndReason
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, Usage
from gistpoint.core.errors import AttemptError
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.agentruns.control import run_to_take_from
from gistpoint.sessions.agentruns.figure_lines import summary_lines
from gistpoint.sessions.agentruns.jobs import JobLost, JobStatus
from gistpoint.sessions.agentruns.runner import AgentRunner
from gistpoint.sessions.agentruns.scaffolding import LOGS, SeatServed
from gistpoint.sessions.agentruns.store import AgentRun, RunSettings

IDENTITY = ScaffoldIdentity("fake", "1", client_tools="shell")


@dataclass
class Fake:
    """A scaffold that calls a function."""

    act: Callable[[Seat], None]
    identity: ScaffoldIdentity = IDENTITY
    seats: int = 0

    def attempt(self, seat: Seat) -> None:
        self.seats += 1
        (seat.folder / "own.log").write_text("what it did")
        self.act(seat)


def loop(seat: Seat) -> None:
    """Ask the model and make its calls until the end, as the guide shows."""
    messages = [ChatMessage("user", seat.brief)]
    while (turn := seat.ask(messages, seat.tools())) is not None and turn.tool_calls:
        messages.append(message_of(turn))
        for call in turn.tool_calls:
            answer = seat.call(call.name, raw=call.arguments, id=call.id)
            messages.append(ChatMessage("tool", answer.text, tool_call_id=call.id))


def home_of(folder: Path, **more: Any) -> Home:
    settings = {"agent": AgentSettings(system="none"), "scaffold": IDENTITY, **more}
    return Home(folder, settings=RunSettings(model="m-1", host="", **settings))


def worked(home: Home, scaffold: Scaffold, run: AgentRun, **options: Any) -> AgentRunner:
    runner = AgentRunner(run, replace(home.ports, scaffold=scaffold), **options)
    runner.work()
    return runner


def send(seat: Seat, characters: int, limit: int | None = None) -> bool:
    """Send a request that gets no answer; return whether it may be sent."""
    with seat.relayed(characters, limit) as request:
        return request is not None


def fail(seat: Seat, problem: ChatProblem) -> None:
    """Send a request that fails."""
    with seat.relayed(300) as request:
        assert request is not None
        seat.not_answered(problem, "Oh.", request)


def test_a_scaffold_solves_with_its_own_conversation_under_our_budgets(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    home.script = (reply(LOOK, ("grep", {"x": "y"}), content="I look."), reply(RIGHT))
    run = home.run(home.task())
    worked(home, Fake(loop), run)
    (job,) = run.jobs.values()
    state = home.attempts.summary(job.attempt).state
    assert (state.solved, [call.tool for call in state.calls]) == (True, [LOOK[0], "grep", RIGHT[0]])
    assert [(call.turn, call.malformed) for call in state.calls] == [
        (1, ""),
        (1, "unknown_tool"),
        (2, ""),
    ]
    assert [turn.content for turn in state.turns] == ["I look.", ""]
    assert state.spent.usage.tokens == 220
    assert state.header.solver is not None
    assert state.header.solver["scaffold"] == msgspec.to_builtins(IDENTITY)
    assert (home.attempts.folder(job.attempt) / LOGS / "own.log").read_text() == "what it did"
    (row,) = home.figures(run).attempts
    assert (row.framework, row.client_tools, row.solved) == ("fake", "shell", True)
    assert [message.role for message in home.asked[0].asked[-1]] == ["user", "assistant", "tool", "tool"]


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (lambda seat: None, "gave_up: no_tool_call"),
        (lambda seat: [seat.call(*LOOK) for _ in range(99)], "calls_exhausted"),
        (lambda seat: [seat.call(*WRONG) for _ in range(99)], "submissions_exhausted"),
        (
            lambda seat: [seat.ask([ChatMessage("user", "x" * 900_000)], ()) for _ in range(9)],
            "context_exhausted",
        ),
        (lambda seat: [seat.ask([ChatMessage("user", "x")], ()) for _ in range(99)], "token_cap"),
        (lambda seat: [send(seat, 9_000) for _ in range(99)], "token_cap"),
    ],
)
def test_every_way_of_using_up_a_seat_ends_the_attempt(
    act: Callable[[Seat], None], reason: str, tmp_path: Path
) -> None:
    home = home_of(tmp_path, agent=AgentSettings(system="none", attempt_tokens=2_000))
    if reason == "context_exhausted":
        home = home_of(tmp_path)
    run = home.run(home.task())
    worked(home, Fake(act), run)
    (row,) = home.figures(run).attempts
    assert (row.status, row.reason) == ("ended", reason)


def test_a_seat_that_is_over_answers_and_journals_nothing(tmp_path: Path) -> None:
    home, told = home_of(tmp_path), list[Any]()

    def act(seat: Seat) -> None:
        late = ModelTurn(turn=0, content="late", usage=Usage(5, 5))
        with seat.relayed(3) as request:
            assert request is not None
            seat.call(*RIGHT)
            told.extend([seat.call(*LOOK), seat.ask([], ()), send(seat, 1)])
            served = SeatServed(seat)
            told.extend([served.read_brief({}), served.call("x", {}, "", {}, RunContext())])
            seat.observed(late, request)
            seat.observed(late, request)
        seat.observed(late, RelayedRequest())

    run = home.run(home.task())
    worked(home, Fake(act), run)
    assert told[0].text == "The attempt has ended: solved."
    assert told[1:3] == [None, False]
    assert all(answer.refused for answer in told[3:])
    (job,) = run.jobs.values()
    assert (job.lost_tokens, home.attempts.summary(job.attempt).state.turns) == (10, ())


def test_a_proxys_replies_are_journalled_with_price_and_changed_tools(tmp_path: Path) -> None:
    agent = AgentSettings(system="none", price=TokenPrice(1.0, 2.0))
    home = home_of(tmp_path, agent=agent)

    def act(seat: Seat) -> None:
        for tools in (("a",), ("a",), ("a", "own_shell")):
            with seat.relayed(300) as request:
                assert request is not None
                turn = ModelTurn(turn=0, content="hi", usage=Usage(1_000_000, 0), tools=tools)
                seat.observed(turn, request)
        seat.call(*RIGHT)

    run = home.run(home.task())
    worked(home, Fake(act), run)
    (job,) = run.jobs.values()
    state = home.attempts.summary(job.attempt).state
    assert [turn.turn for turn in state.turns] == [1, 2, 3]
    assert [turn.tools for turn in state.turns] == [("a",), msgspec.UNSET, ("a", "own_shell")]
    assert state.spent.usage.cost_usd == 3.0
    assert state.calls[0].turn == 3


def test_a_cost_limit_stops_a_proxy(tmp_path: Path) -> None:
    home = home_of(tmp_path, agent=AgentSettings(system="none", price=TokenPrice(1.0, 2.0)))
    asked = list[bool]()

    def act(seat: Seat) -> None:
        asked.append(send(seat, 30_000_000))

    run = home.run(home.task())
    worked(home, Fake(act), run, max_cost_usd=1.0)
    (job,) = run.jobs.values()
    assert (asked, job.status, job.problem) == ([False], JobStatus.HALTED, "over_cost")


def test_what_a_programs_reply_may_cost_follows_from_the_limit_that_it_sends(tmp_path: Path) -> None:
    home = home_of(tmp_path, agent=AgentSettings(system="none", price=TokenPrice(1.0, 10.0)))
    asked = list[bool]()

    def act(seat: Seat) -> None:
        asked.extend(send(seat, 300, limit) for limit in (0, 9_000, 11_000))

    worked(home, Fake(act), home.run(home.task()), max_cost_usd=0.1)
    assert asked == [True, True, False]


DEAR = AgentSettings(system="none", price=TokenPrice(1.0, 10.0))
MOST, EACH = 4_000, 0.0401
"""The limit on a reply's tokens, and the highest cost of a request of 300 characters with it."""


def runner_at(home: Home, act: Callable[[Seat], None], max_cost_usd: float = 0.1) -> AgentRunner:
    ports = replace(home.ports, scaffold=Fake(act))
    return AgentRunner(home.run(home.task()), ports, max_cost_usd=max_cost_usd)


def test_each_request_under_way_reserves_its_own_cost(tmp_path: Path) -> None:
    def act(seat: Seat) -> None:
        with seat.relayed(300, MOST) as one, seat.relayed(300, MOST) as two:
            assert one is not None
            assert two is not None
            assert runner.cost_usd == pytest.approx(2 * EACH)
            seat.call(*LOOK)
            assert runner.cost_usd == pytest.approx(2 * EACH)
            seat.observed(ModelTurn(turn=0, content="a", usage=Usage(100, 100)), two)
            assert runner.cost_usd == pytest.approx(EACH + 0.0011)
            seat.not_answered(ChatProblem.SERVER_ERROR, "Oh.", one, Usage(200, 0))
            assert runner.cost_usd == pytest.approx(0.0002 + 0.0011)
        with seat.relayed(300, MOST):
            assert runner.cost_usd == pytest.approx(EACH + 0.0013)
        assert runner.cost_usd == pytest.approx(0.0013)
        seat.call(*RIGHT)

    runner = runner_at(home_of(tmp_path, agent=DEAR), act)
    runner.work()
    assert runner.cost_usd == pytest.approx(0.0013)


@pytest.mark.parametrize("fails", [False, True])
def test_a_request_waits_for_those_under_way_that_may_cost_less(fails: bool, tmp_path: Path) -> None:
    sent, done = threading.Event(), threading.Event()

    def third(seat: Seat) -> None:
        with seat.relayed(300, MOST) as request:
            assert request is not None
            assert done.is_set()
            sent.set()

    def act(seat: Seat) -> None:
        with seat.relayed(300, MOST) as one, seat.relayed(300, MOST) as two:
            assert one is not None
            assert two is not None
            waiting = threading.Thread(target=third, args=(seat,))
            waiting.start()
            assert not sent.wait(0.3)
            done.set()
            if fails:
                seat.not_answered(ChatProblem.SERVER_ERROR, "Oh.", one)
            else:
                seat.observed(ModelTurn(turn=0, content="a", usage=Usage(100, 10)), one)
            assert sent.wait(20)
            waiting.join()
        seat.call(*RIGHT)

    runner = runner_at(home_of(tmp_path, agent=DEAR), act)
    runner.work()
    (job,) = runner.run.jobs.values()
    assert job.status is JobStatus.ENDED


def test_a_request_that_waits_ends_with_the_work_if_the_cost_was_reached(tmp_path: Path) -> None:
    told = list[bool]()

    def act(seat: Seat) -> None:
        with seat.relayed(300, MOST) as one, seat.relayed(300, MOST) as two:
            waiting = threading.Thread(target=lambda: told.append(send(seat, 300, MOST)))
            waiting.start()
            for request in (one, two):
                assert request is not None
                seat.observed(ModelTurn(turn=0, content="a", usage=Usage(100, MOST)), request)
        waiting.join()

    runner = runner_at(home_of(tmp_path, agent=DEAR), act)
    runner.work()
    (job,) = runner.run.jobs.values()
    assert (told, job.problem) == ([False], "over_cost")


def test_many_requests_at_once_never_cost_more_than_the_limit(tmp_path: Path) -> None:
    told = list[bool]()

    def sends(seat: Seat, number: int) -> None:
        for _ in range(6):
            with seat.relayed(300, MOST) as request:
                told.append(request is not None)
                if request is not None:
                    assert runner.cost_usd <= 0.2
                    usage = Usage(100, MOST if number % 2 else 10)
                    seat.observed(ModelTurn(turn=0, content="a", usage=usage), request)

    def act(seat: Seat) -> None:
        threads = [threading.Thread(target=sends, args=(seat, number)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    runner = runner_at(home_of(tmp_path, agent=DEAR), act, max_cost_usd=0.2)
    runner.work()
    (job,) = runner.run.jobs.values()
    assert job.problem == "over_cost"
    assert told.count(True) >= 4
    assert 0.15 < runner.cost_usd <= 0.2


def fails(seat: Seat) -> None:
    raise ScaffoldError("It fell over.")


@pytest.mark.parametrize(
    ("act", "problem", "stops"),
    [
        (fails, "scaffold", False),
        (lambda seat: fail(seat, ChatProblem.RATE_LIMITED), "rate_limited", False),
        (lambda seat: fail(seat, ChatProblem.NOT_AUTHORISED), "not_authorised", True),
    ],
)
def test_what_is_not_the_models_fault_halts_the_job(
    act: Callable[[Seat], None], problem: str, stops: bool, tmp_path: Path
) -> None:
    home = home_of(tmp_path)
    run = home.run(home.task())
    runner = worked(home, Fake(act), run)
    (job,) = run.jobs.values()
    assert (job.status, job.problem, bool(runner.stopped_by)) == (JobStatus.HALTED, problem, stops)


def raises(error: BaseException) -> Callable[[Seat], None]:
    def act(seat: Seat) -> None:
        raise error

    return act


@pytest.mark.parametrize("error", [SystemExit(0), RecursionError("x"), OSError("x"), ScaffoldError("x")])
def test_an_installed_scaffold_that_fails_halts_its_jobs_only(error: BaseException, tmp_path: Path) -> None:
    home = home_of(tmp_path)
    run = home.run(home.task(), home.task(2))
    entry = EntryPoint("fake", "fake:made", "gistpoint.scaffolds")
    runner = worked(home, InstalledScaffold.made(entry, lambda: Fake(raises(error))), run)
    assert [(job.status, job.problem) for job in run.jobs.values()] == [(JobStatus.HALTED, "scaffold")] * 2
    assert not runner.stopped_by


def test_a_full_context_reported_by_the_endpoint_counts(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    run = home.run(home.task())
    worked(home, Fake(lambda seat: fail(seat, ChatProblem.CONTEXT_FULL)), run)
    assert home.figures(run).attempts[0].reason == "context_exhausted"


def test_a_failure_of_the_endpoint_in_ask_halts_too(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    home.script = (reply(LOOK), ChatFailure(ChatProblem.SERVER_ERROR, "It broke."))
    run = home.run(home.task())
    worked(home, Fake(loop), run)
    (job,) = run.jobs.values()
    assert (job.status, job.problem, job.message) == (JobStatus.HALTED, "server_error", "It broke.")


def test_an_interrupted_attempt_is_ended_and_another_begins(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    run = home.run(home.task())

    def leaves(seat: Seat) -> None:
        seat.ask([ChatMessage("user", "x")], seat.tools())
        home.clock.advance(7_000)
        seat.beat()
        raise ScaffoldError("It fell over.")

    worked(home, Fake(leaves), run)
    (first,) = run.jobs.values()
    assert home.figures(run).totals.abandoned_s == 0
    worked(home, Fake(loop), run)
    (second,) = run.jobs.values()
    assert second.attempt != first.attempt
    assert (second.status, second.lost_tokens) == (JobStatus.ENDED, 110)
    ending = home.attempts.summary(first.attempt).state.ending
    assert ending is not None
    assert (ending.reason, ending.code) == ("infrastructure", "scaffold_interrupted")
    totals = home.figures(run).totals
    assert totals.solved is not None
    assert (totals.abandoned_s, totals.wall_s) == (7.0, 0.0)
    lines = summary_lines(totals, "r")
    assert lines["abandoned"] == "7 s in attempts that a scaffold could not continue"
    assert lines["lost"] == "about 110 tokens in requests without a reply and in abandoned attempts"


@pytest.mark.parametrize(
    ("code", "text", "another"),
    [
        ("scaffold_interrupted", "In other words.", True),
        ("", "The scaffold was interrupted and can't continue.", True),  # written by an older version
        ("", "The disk is full.", False),
    ],
)
def test_an_end_whose_loss_was_not_recorded_is_recognised(
    code: str, text: str, another: bool, tmp_path: Path
) -> None:
    home = home_of(tmp_path)
    run = home.run(home.task())
    worked(home, Fake(fails), run)
    (first,) = run.jobs.values()
    opened = home.ports.reopened(first)
    opened.attempt.end(EndReason.INFRASTRUCTURE, text, code=code)
    opened.close()
    worked(home, Fake(loop), run)
    (second,) = run.jobs.values()
    assert second.abandoned == ((first.attempt,) if another else ())
    assert (second.attempt != first.attempt) is another


def test_a_job_whose_attempt_was_abandoned_has_its_cost(tmp_path: Path) -> None:
    home = home_of(tmp_path, agent=AgentSettings(price=TokenPrice(1.0, 2.0)))
    run = home.run(home.task())
    (job,) = run.jobs
    run.append([JobLost(job=job, cost_usd=5.0, abandoned="01", abandoned_s=3.0)])  # its process died here
    (state,) = run.jobs.values()
    assert (state.status, state.attempt, state.abandoned) == (JobStatus.QUEUED, "", ("01",))
    runner = worked(home, Fake(loop), run, max_cost_usd=4.9)
    (state,) = run.jobs.values()
    assert (state.problem, runner.cost_usd, home.asked[-1].asked) == ("over_cost", 5.0, [])


def test_an_attempt_without_a_reply_is_simply_continued(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    run = home.run(home.task())
    worked(home, Fake(fails), run)
    (first,) = run.jobs.values()
    worked(home, Fake(loop), run)
    (second,) = run.jobs.values()
    assert (second.attempt, second.status) == (first.attempt, JobStatus.ENDED)


def test_a_scaffolds_attempt_cannot_be_taken_over(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    run = home.run(home.task())
    worked(home, Fake(fails), run)
    (job,) = run.jobs.values()
    with pytest.raises(AttemptError, match="scaffold"):
        run_to_take_from(home.attempts.summary(job.attempt).state, home.runs, live=False)


def test_the_tools_are_served_with_the_brief_and_the_budgets(tmp_path: Path) -> None:
    home, told = home_of(tmp_path), list[Any]()

    def act(seat: Seat) -> None:
        served = SeatServed(seat)
        served.prepare()
        served.beat()
        served.hand_in()
        told.append(served.read_brief({}))
        told.append(served.call(LOOK[0], {}, "", {}, RunContext()))
        told.append(served.call(LOOK[0], None, "[1]", {}, RunContext()))
        assert [tool.name for tool in served.tools()] == [tool.name for tool in seat.tools()]
        served.close()
        assert served.task.id == job_task
        with pytest.raises(ScaffoldError):
            seat.serve_tools(tmp_path / "s")

    task = home.task()
    job_task = task.id
    run = home.run(task)
    worked(home, Fake(act), run)
    assert [answer.budget["tool_uses"] for answer in told] == [16, 15, 14]
    assert [answer.refused for answer in told] == [False, False, True]


@pytest.mark.parametrize(
    ("loop_version", "digest"),
    [
        (1, "e0821dd86435207bef2520cbf2bb75b5a158174bf2530497eec9cb976364636d"),
        (2, "937153b6f331990ea744499b48bc8b84e1f1fc63b317ed5d6fc7e205cac41dc5"),
    ],
)
def test_runs_without_a_scaffold_keep_their_digest(loop_version: int, digest: str) -> None:
    agent = AgentSettings(prompts={"x": "y"}, loop_version=loop_version)
    settings = RunSettings(model="m", host="h", agent=agent, tool_uses=8, submissions=2)
    assert settings.digest == digest
    assert settings.framework == OWN
    other = msgspec.structs.replace(settings, scaffold=IDENTITY)
    assert (other.digest != settings.digest, other.framework) == (True, "fake")
    assert msgspec.convert(json.loads(msgspec.json.encode(other)), RunSettings) == other


def test_a_relayed_model_can_not_be_asked() -> None:
    answer = RelayedModel("m").complete([], [])
    assert answer.problem is ChatProblem.REJECTED


def test_the_time_of_a_relayed_request_counts_only_with_its_reply(tmp_path: Path) -> None:
    home = home_of(tmp_path)

    def act(seat: Seat) -> None:
        served = SeatServed(seat)
        with seat.relayed(300) as request:
            assert request is not None
            home.clock.advance(40_000)
            served.beat()
            seat.not_answered(ChatProblem.SERVER_ERROR, "Oh.", request)
        with seat.relayed(300) as request:
            assert request is not None
            home.clock.advance(30_000)
            seat.observed(ModelTurn(turn=0, content="Yes."), request)
        seat.call(*LOOK)
        served.beat()
        assert seat.call(*LOOK).refused is False
        home.clock.advance(40_000)
        served.beat()
        assert seat.over

    run = home.run(home.task())
    ports = replace(home.ports, scaffold=Fake(act), task=lambda id: timed(home.tasks.find(id)))
    AgentRunner(run, ports).work()
    (job,) = run.jobs.values()
    state = home.attempts.summary(job.attempt).state
    assert state.ending is not None
    assert (state.ending.reason, state.clock.thinking, state.clock.paused) == ("time_cap", 70_000, 40_000)
    (row,) = home.figures(run).attempts
    assert row.lost_s == 40.0


def timed(task: Task) -> Task:
    """Return a task with a time limit of one minute."""
    return replace(task, budgets=Budgets(16, 4, time_limit_s=60))
