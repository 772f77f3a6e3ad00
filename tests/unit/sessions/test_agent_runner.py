"""Every job of a run ends or stays resumable, whatever breaks, and no work is done twice."""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_runs import LOOK, RIGHT, SOLVES, TALKS, WRONG, Home, WaitingModel
from builders import CHECKS
from fakes import FakeRunner
from scripted_endpoint import Answer, ScriptedModel, chunk, endpoint, events_of, reply

from gistpoint.core.agents.settings import AgentSettings, TokenPrice
from gistpoint.core.chat import ChatFailure, ChatProblem, Sampling, Usage
from gistpoint.core.errors import SandboxUnavailableError
from gistpoint.core.logs import AppendLog
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import ChatModel, RunRequest
from gistpoint.core.running import NEVER, UNATTENDED, RunContext
from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
from gistpoint.sandbox.endpoints.retrying import Backoff, RetryingModel
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings
from gistpoint.sandbox.endpoints.throttle import HostGate, Throttle, ThrottledModel
from gistpoint.sessions.agentruns.bounds import BoundedRunner, Purse, Slots
from gistpoint.sessions.agentruns.jobs import JobAttempt, JobStatus
from gistpoint.sessions.agentruns.runner import AgentRunner
from gistpoint.sessions.agentruns.store import AgentRun
from gistpoint.sessions.journal import JOURNAL, JournalWriter, read_journal

LONG_S = 60.0
DOWN = ChatFailure(ChatProblem.SERVER_ERROR, "It answered 500: out of order.")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def told(run: AgentRun) -> list[tuple[JobStatus, str]]:
    return [(state.status, state.problem) for state in run.jobs.values()]


ENDED = (JobStatus.ENDED, "solved")


def test_jobs_are_done_once_and_a_run_that_is_done_asks_nothing(home: Home) -> None:
    run = home.run(home.task(1), home.task(2), repeats=2)
    home.work(run, at_once=3)
    assert told(run) == [ENDED] * 4
    assert len(home.asked) == 4
    home.work(home.run(home.task(1), home.task(2), repeats=2))
    assert len(home.asked) == 4
    assert len(list(home.attempts.summaries())) == 4
    header = next(home.attempts.summaries()).state.header
    assert (header.actor, header.model) == ("model", "m-1")
    assert header.solver
    assert (header.solver["run"], header.solver["host"]) == ("r", "")


def test_an_endpoint_that_fails_halts_a_job_and_ends_no_attempt(home: Home) -> None:
    home.script = (SOLVES[0], DOWN)
    run = home.run(home.task())
    home.work(run)
    assert told(run) == [(JobStatus.HALTED, "server_error")]
    (row,) = home.figures(run).attempts
    assert (row.result, row.reason, row.message) == ("", "server_error", DOWN.message)
    home.script = SOLVES[1:]
    home.work(run)
    assert told(run) == [ENDED]
    (row,) = home.figures(run).attempts
    assert (row.calls, row.submissions, row.turns) == (2, 1, 2)
    assert len(list(home.attempts.summaries())) == 1


@pytest.mark.parametrize("problem", [ChatProblem.NOT_AUTHORISED, ChatProblem.ACCOUNT_EMPTY])
def test_a_refused_key_or_an_empty_account_stops_the_whole_run(home: Home, problem: ChatProblem) -> None:
    home.script = (ChatFailure(problem, "It answered 40x: no."),)
    run = home.run(home.task(1), home.task(2), home.task(3))
    runner = home.work(run, at_once=1)
    assert runner.stopped_by == "It answered 40x: no."
    assert told(run) == [(JobStatus.HALTED, problem), *[(JobStatus.QUEUED, "")] * 2]
    assert len(list(home.attempts.summaries())) == len(home.asked) == 1
    assert [len(model.asked) for model in home.asked] == [1]


def test_an_empty_account_is_noticed_by_the_first_request_of_an_endpoint(home: Home) -> None:
    body = {"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}
    with endpoint(Answer(body, 429)) as served:
        endpoint_of_run = OpenAICompatibleModel(EndpointSettings("m", served.url, ApiKey("sk-0123456789")))
        gate = Throttle(Backoff(first_s=0.0)).gate("here")
        home.model_of = lambda settings: RetryingModel(ThrottledModel(endpoint_of_run, gate))
        run = home.run(home.task(1), home.task(2))
        runner = home.work(run, at_once=1)
    assert len(served.requests) == 1
    assert "answered 429: You exceeded your current quota." in runner.stopped_by
    assert gate.wait_s() == 0.0
    assert told(run) == [(JobStatus.HALTED, "account_empty"), (JobStatus.QUEUED, "")]


def test_a_task_that_was_removed_halts_its_job_alone(home: Home) -> None:
    gone, there = home.task(1), home.task(2)
    run = home.run(gone, there)
    shutil.rmtree(gone.folder)
    home.work(run)
    assert told(run) == [(JobStatus.HALTED, "task"), ENDED]


def test_an_attempt_that_another_process_holds_is_left_to_it(home: Home) -> None:
    home.script = (SOLVES[0], DOWN)
    run = home.run(home.task(1), home.task(2))
    home.work(run)
    home.script = SOLVES[1:]
    first = next(iter(run.jobs.values()))
    journal = JournalWriter(home.attempts.folder(first.attempt), home.clock)
    home.work(run)
    assert told(run) == [(JobStatus.HALTED, "attempt"), ENDED]
    assert "open in another window or process" in next(iter(run.jobs.values())).message
    journal.close()
    home.work(run)
    assert told(run) == [ENDED, ENDED]


def test_a_sandbox_that_is_gone_stops_the_run_before_an_attempt_begins(home: Home) -> None:
    run = home.run(home.task(1), home.task(2))

    def gone(task: object) -> Any:
        raise SandboxUnavailableError("No isolation works here.")

    runner = AgentRunner(run, replace(home.ports, judge=gone), at_once=1)
    runner.work()
    assert runner.stopped_by == "No isolation works here."
    assert told(run)[0] == (JobStatus.HALTED, "sandbox")
    assert list(home.attempts.summaries()) == []


def test_a_sandbox_that_breaks_halts_the_job_and_costs_the_solver_nothing(home: Home) -> None:
    home.runner = FakeRunner(CHECKS, status=RunStatus.INFRASTRUCTURE)
    home.script = (reply(RIGHT),)
    run = home.run(home.task())
    home.work(run)
    assert told(run) == [(JobStatus.HALTED, "infrastructure")]
    (summary,) = home.attempts.summaries()
    assert summary.state.remaining.submissions == summary.state.budgets.submissions
    home.runner = FakeRunner(CHECKS)
    home.work(run)
    assert told(run) == [ENDED]


def test_a_full_disk_stops_the_run_and_loses_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    run = home.run(home.task(1), home.task(2))
    append = AppendLog.append

    def full(log: AppendLog, lines: bytes, *, durable: bool = True) -> None:
        if b"tool_call" in lines:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(log, lines, durable=durable)

    with monkeypatch.context() as patched:
        patched.setattr(AppendLog, "append", full)
        runner = home.work(run, at_once=1)
    assert "No space left" in runner.stopped_by
    assert told(run) == [(JobStatus.BEGUN, ""), (JobStatus.QUEUED, "")]
    home.work(run)
    assert told(run) == [ENDED, ENDED]
    assert len(list(home.attempts.summaries())) == 2


def test_a_run_whose_own_file_can_not_be_written_stops(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    run = home.run(home.task(1), home.task(2))

    def full(operations: Sequence[object]) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(run, "append", full)
        assert "No space left" in home.work(run, at_once=1).stopped_by
    (summary,) = home.attempts.summaries()
    assert not summary.open
    run.append([])
    home.work(home.runs.open("r"))
    assert told(home.runs.open("r")) == [ENDED, ENDED]


def test_the_attempt_of_a_process_that_died_before_it_noted_it_is_found_again(home: Home) -> None:
    home.script = (SOLVES[0], DOWN)
    run = home.run(home.task(1), home.task(2))
    home.work(run)
    file = run.folder / "jobs.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    first = next(iter(run.jobs.values()))
    file.write_bytes(
        b"".join(line for line in lines if first.attempt.encode() not in line and b"halted" not in line)
    )
    again = home.runs.open("r")
    assert again.jobs[first.job.key].status is JobStatus.QUEUED
    home.script = SOLVES[1:]
    home.work(again)
    assert told(again) == [ENDED, ENDED]
    assert again.jobs[first.job.key].attempt == first.attempt
    assert len(list(home.attempts.summaries())) == 2


def test_an_attempt_that_ended_before_that_was_noted_is_not_asked_again(home: Home) -> None:
    run = home.run(home.task())
    home.work(run)
    file = run.folder / "jobs.jsonl"
    file.write_bytes(
        b"".join(line for line in file.read_bytes().splitlines(keepends=True) if b"ended" not in line)
    )
    again = home.runs.open("r")
    home.work(again)
    assert told(again) == [ENDED]
    assert sum(len(model.asked) for model in home.asked) == 2


def stopped_while_asked(home: Home, model: WaitingModel, **options: Any) -> tuple[AgentRun, AgentRunner]:
    """Return a run and its runner after stopping it during a pending request to its model."""
    home.model_of = lambda settings: model
    run = home.run(home.task())
    runner = AgentRunner(run, home.ports, **options)
    thread = threading.Thread(target=runner.work)
    thread.start()
    assert model.asked.wait(LONG_S)
    home.runs.open("r").ask_to_stop()
    while not runner.stopping:
        thread.join(0.01)
        assert thread.is_alive() or runner.stopping
    if options.get("grace_s") != 0:
        model.let.set()
    thread.join(LONG_S)
    assert not thread.is_alive()
    home.model_of = None
    return run, runner


def test_a_stop_lets_what_is_under_way_finish(home: Home) -> None:
    run, runner = stopped_while_asked(home, WaitingModel(reply(LOOK)), grace_s=LONG_S)
    assert runner.stopped_by == "It was asked to stop."
    assert told(run) == [(JobStatus.BEGUN, "")]
    (row,) = home.figures(run).attempts
    assert row.turns == 1
    home.script = SOLVES[1:]
    home.work(run)
    assert told(run) == [ENDED]


def test_ctrl_c_stops_and_a_second_one_cancels(home: Home) -> None:
    model = WaitingModel(reply(LOOK))
    home.model_of = lambda settings: model
    run = home.run(home.task())
    runner = AgentRunner(run, home.ports, grace_s=LONG_S)
    pressed: list[bool] = []

    def tick() -> None:
        if model.asked.is_set() and len(pressed) < 2:
            pressed.append(runner.stopping)
            raise KeyboardInterrupt

    runner.work(tick)
    assert pressed == [False, True]
    assert runner.stopped_by == "It was stopped at your request."
    assert told(run) == [(JobStatus.BEGUN, "")]
    assert not next(home.attempts.summaries()).open


def test_a_request_that_outlasts_the_grace_is_abandoned(home: Home) -> None:
    run, _ = stopped_while_asked(home, WaitingModel(reply(LOOK)), grace_s=0)
    assert told(run) == [(JobStatus.BEGUN, "")]
    (row,) = home.figures(run).attempts
    assert (row.turns, row.calls, row.result) == (0, 0, "")
    home.work(run)
    assert told(run) == [ENDED]


def test_a_submission_that_is_cancelled_counts(home: Home) -> None:
    gate = threading.Event()
    home.runner = FakeRunner(CHECKS, gate=gate)
    home.script = (reply(WRONG), reply(RIGHT))
    run = home.run(home.task())
    runner = AgentRunner(run, home.ports)
    thread = threading.Thread(target=runner.work)
    thread.start()
    while home.runner.runs == 0:
        thread.join(0.01)
        assert thread.is_alive()
    runner.cancel()
    thread.join(LONG_S)
    assert not thread.is_alive()
    (summary,) = home.attempts.summaries()
    assert summary.state.remaining.submissions == summary.state.budgets.submissions - 1
    gate.set()
    home.script = home.script[1:]
    home.work(run)
    assert told(run) == [ENDED]


def test_the_bound_on_costs_is_the_runs_and_keeps_what_was_paid(home: Home) -> None:
    price = TokenPrice(10_000.0, 10_000.0)
    home.settings = msgspec.structs.replace(home.settings, agent=AgentSettings(price=price))
    home.script = (
        reply(LOOK, usage=Usage(100, 10, cost_usd=1.0)),
        reply(RIGHT, usage=Usage(100, 10, cost_usd=1.0)),
    )
    run = home.run(home.task(1), home.task(2))
    home.work(run, at_once=1, max_cost_usd=0.5)
    assert told(run) == [(JobStatus.HALTED, "over_cost")] * 2
    assert home.asked[0].asked == []
    home.work(run, at_once=1, max_cost_usd=1e9)
    assert told(run) == [ENDED, ENDED]
    totals = home.figures(run).totals
    assert totals.cost_usd == pytest.approx(4.4)


def test_what_requests_under_way_may_cost_is_set_aside() -> None:
    purse = Purse(10.0)
    assert purse.may_ask("a", 6.0)
    assert not purse.may_ask("b", 6.0)
    purse.spent("a", 1.0)
    assert purse.may_ask("b", 6.0)
    assert purse.total_usd == 7.0
    assert not purse.may_ask("a", 4.0)
    assert Purse().may_ask("a", 1e12)


def test_a_refused_reservation_keeps_the_one_before() -> None:
    purse = Purse(10.0)
    assert purse.may_ask("a", 6.0)
    assert not purse.may_ask("a", 11.0)
    assert not purse.may_ask("b", 5.0)
    purse.spent("a", 2.0, 3.0)
    assert purse.total_usd == 5.0
    purse.spent("b", 9.0)
    assert not purse.may_ask("a", 4.0)
    assert purse.may_ask("a", 1.0)  # less than before, so that the limit is exceeded by less


def test_each_repeat_has_its_own_seed(home: Home) -> None:
    home.settings = msgspec.structs.replace(home.settings, agent=AgentSettings(sampling=Sampling(seed=7)))
    seen: list[int | None] = []

    def model(settings: AgentSettings) -> ChatModel:
        seen.append(settings.sampling.seed)
        return ScriptedModel(SOLVES)

    home.model_of = model
    home.work(home.run(home.task(), repeats=3), at_once=1)
    assert seen == [7, 8, 9]


def test_budgets_are_the_runs(home: Home) -> None:
    home.settings = msgspec.structs.replace(home.settings, tool_uses=8, submissions=2)
    home.work(home.run(home.task()))
    (summary,) = home.attempts.summaries()
    assert (summary.state.budgets.tool_uses, summary.state.budgets.submissions) == (8, 2)


def test_attempts_of_a_model_that_only_talks_end_by_themselves(home: Home) -> None:
    home.script = TALKS
    run = home.run(home.task())
    home.work(run)
    assert told(run) == [(JobStatus.ENDED, "gave_up")]
    assert home.figures(run).totals.reasons == {"gave_up: no_tool_call": 1}


class Crowded:
    """A runner that records the maximum number of its runs in progress at once."""

    def __init__(self) -> None:
        self.runner = FakeRunner(CHECKS)
        self.backend = self.runner.backend
        self.most = self._now = 0
        self._lock = threading.Lock()
        self.met = threading.Barrier(2)

    def run(self, request: RunRequest, *, run: RunContext = UNATTENDED) -> Any:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            return self.runner.run(request, run=run)
        finally:
            with self._lock:
                self._now -= 1


def test_test_runs_at_once_are_bounded(home: Home) -> None:
    crowded = Crowded()
    home.runner = BoundedRunner(crowded, Slots(1))
    run = home.run(*[home.task(number) for number in range(4)])
    home.work(run, at_once=4)
    assert told(run) == [ENDED] * 4
    assert crowded.most == 1


def test_who_waits_for_a_place_can_be_cancelled(home: Home) -> None:
    slots, context = Slots(1), RunContext()
    bounded = BoundedRunner(FakeRunner(CHECKS), slots)
    context.cancel.cancel()
    with slots.taken(NEVER):
        report = bounded.run(None, run=context)  # type: ignore[arg-type]
    assert report.status is RunStatus.CANCELLED


def test_a_key_that_the_server_echoes_is_in_no_file(home: Home) -> None:
    key = "sk-very-secret-0123456789"

    def echo(request: object, headers: Mapping[str, str]) -> Any:
        return Answer({"error": {"message": f"Refused: {headers['authorization']}"}}, status=401)

    with endpoint(echo) as served:
        settings = EndpointSettings("m-1", served.url, ApiKey(key))
        home.model_of = lambda agent: OpenAICompatibleModel(settings)
        run = home.run(home.task())
        runner = home.work(run)
    assert "[key]" in runner.stopped_by
    files = [path for path in home.folder.rglob("*") if path.is_file()]
    assert run.folder / "jobs.jsonl" in files
    assert not [path for path in files if key.encode() in path.read_bytes()]


def test_a_request_that_timed_out_is_sent_again_and_counted(home: Home) -> None:
    silent = Answer(wait=threading.Event())
    call = {"index": 0, "id": "a", "function": {"name": RIGHT[0], "arguments": json.dumps(RIGHT[1])}}
    used = {"prompt_tokens": 200, "completion_tokens": 20}
    solves = Answer(blocks=[events_of(chunk(tool_calls=[call]), chunk("tool_calls", usage=used))])
    with endpoint(silent, solves) as served:
        settings = EndpointSettings("m-1", served.url, ApiKey(""), timeout_s=2.0)
        gate = HostGate(place=settings.place)
        home.model_of = lambda agent: RetryingModel(
            ThrottledModel(OpenAICompatibleModel(settings, gate), gate), Backoff(first_s=0.01)
        )
        run = home.run(home.task())
        home.work(run)
    (row,) = home.figures(run).attempts
    assert told(run) == [ENDED]
    assert row.streamed == 1
    assert (row.retried or 0) >= 1


def test_a_bug_stops_the_run_and_is_told(home: Home) -> None:
    def model(settings: AgentSettings) -> ChatModel:
        raise ZeroDivisionError

    home.model_of = model
    run = home.run(home.task(1), home.task(2))
    with pytest.raises(ZeroDivisionError):
        home.work(run, at_once=1)
    assert told(run) == [(JobStatus.BEGUN, ""), (JobStatus.QUEUED, "")]
    assert not next(home.attempts.summaries()).open


def test_heartbeats_are_written_while_tests_run(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gistpoint.sessions.agentruns.runner._BEAT_S", 0.0)
    gate = threading.Event()
    home.runner = FakeRunner(CHECKS, gate=gate)
    home.script = (reply(RIGHT),)
    run = home.run(home.task())
    thread = threading.Thread(target=AgentRunner(run, home.ports).work)
    thread.start()
    while home.runner.runs == 0:
        thread.join(0.01)
        assert thread.is_alive()
    (folder,) = (path for path in home.attempts.root.iterdir() if (path / JOURNAL).exists())
    while not any(event.type == "heartbeat" for event in read_journal(folder / JOURNAL).events):
        thread.join(0.01)
        assert thread.is_alive()
    gate.set()
    thread.join(LONG_S)
    assert told(run) == [ENDED]


def test_the_attempt_of_another_job_is_neither_gone_on_with_nor_counted(home: Home) -> None:
    first, second = home.run(home.task(1), name="a"), home.run(home.task(2), name="b")
    home.work(first)
    (mine,), (other,) = first.jobs.values(), second.jobs
    second.append([JobAttempt(job=other, attempt=mine.attempt)])
    asked = len(home.asked)
    home.work(second)
    (row,) = home.figures(second).attempts
    assert (len(home.asked), second.jobs[other].problem) == (asked, "attempt")
    assert (row.reason, row.result, row.calls) == ("unreadable", "", None)
    assert home.figures(second).totals.counted == 0
