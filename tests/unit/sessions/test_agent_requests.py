"""The cost of requests is whole, whenever a process dies, and a refused key costs one request."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_runs import LOOK, SOLVES, Home
from scripted_endpoint import Answer, endpoint, reply

from gistpoint.core.agents import loop
from gistpoint.core.agents.settings import AgentSettings, TokenPrice
from gistpoint.core.attempts.events import Heartbeat, JournalEvent
from gistpoint.core.attempts.parts import Pause
from gistpoint.core.attempts.reasons import PauseReason
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, Usage
from gistpoint.core.logs import AppendLog
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
from gistpoint.sandbox.endpoints.retrying import Backoff, RetryingModel
from gistpoint.sandbox.endpoints.settings import EndpointSettings
from gistpoint.sessions.agentruns.bounds import Acceptance
from gistpoint.sessions.agentruns.figure_lines import summary_lines
from gistpoint.sessions.agentruns.jobs import AgentJob, JobAsked, JobState, JobStatus
from gistpoint.sessions.agentruns.killed_requests import killed_requests
from gistpoint.sessions.agentruns.runner import AgentRunner
from gistpoint.sessions.agentruns.settling import Decision, SettledAs
from gistpoint.sessions.agentruns.store import AgentRun, AgentRunStore

PRICE = TokenPrice(1000.0, 2000.0)
LONG_S = 60.0
# Threads that end as if their process had been killed.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    made.settings = msgspec.structs.replace(made.settings, host="h:1", agent=AgentSettings(price=PRICE))
    return made


@dataclass
class Dies:
    """A model whose process dies at the request with this number, and which otherwise replies in turn."""

    at: int
    before: bool
    """Whether it dies before the request is sent; otherwise, before the reply is received."""
    script: Sequence[ChatReply] = SOLVES
    seen: list[int] = field(default_factory=list)
    """The number of messages in each request that the endpoint received."""
    name: str = "dies"

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply | ChatFailure:
        dies = len(self.seen) + 1 == self.at
        if dies and self.before:
            self.at = 0
            raise SystemExit  # which ends the thread and records nothing, as a kill does
        self.seen.append(len(messages))
        if dies:
            raise SystemExit
        turn = sum(message.role == "assistant" for message in messages)
        return self.script[min(turn, len(self.script) - 1)]


def killed(home: Home, model: Any) -> AgentRun:
    home.model_of = lambda settings: model
    run = home.run(home.task())
    home.work(run)
    return home.runs.open("r")


@dataclass
class DiesLate(Dies):
    """A model whose process dies 40 s after it has sent a request; it has written heartbeats."""

    home: Home | None = None
    jump_ms: int = 0
    """By how much the date jumps in that time."""

    def complete(self, messages: Any, tools: Any, *, cancel: CancelToken = NEVER) -> ChatReply | ChatFailure:
        if len(self.seen) + 1 == self.at:
            assert self.home is not None
            self.home.clock.advance(40_000)
            self.home.clock._utc += self.jump_ms
            cancel.check()
        return super().complete(messages, tools, cancel=cancel)


@pytest.mark.parametrize("jump_ms", [0, 3_600_000, -3_600_000])
def test_the_time_of_a_killed_request_is_not_the_model_s_even_if_a_clock_jumps(
    jump_ms: int, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_HEARTBEAT_S", 0.0)
    run = killed(home, DiesLate(2, before=False, home=home, jump_ms=jump_ms))
    assert home.figures(run).attempts[0].lost_s == 40.0
    (state,) = run.jobs.values()
    assert home.attempts.summary(state.attempt).state.clock.thinking == 40_000
    home.work(run)
    clock = home.attempts.summary(state.attempt).state.clock
    assert (clock.thinking, clock.paused) == (0, 40_000)
    assert home.figures(run).attempts[0].lost_s == 40.0


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("at", [1, 2])
def test_a_killed_request_is_counted_once_by_its_estimate(home: Home, at: int, before: bool) -> None:
    model = Dies(at, before)
    run = killed(home, model)
    (state,) = run.jobs.values()
    assert state.asked is not None
    assert (state.asked.turn, state.asked.tokens > 100) == (at, True)
    asked, shown = state.asked, home.figures(run).totals
    assert (shown.lost_tokens, run.jobs[state.job.key].lost_tokens) == (asked.tokens, 0)
    runner = home.work(run)
    totals = home.figures(run).totals
    assert (totals.lost_tokens, totals.ended) == (asked.tokens, 1)
    home.work(home.runs.open("r"))
    assert home.figures(home.runs.open("r")).totals == totals
    replied = sum(row.turns or 0 for row in home.figures(run).attempts)
    assert len(model.seen) == replied + (not before)
    assert asked.cost_usd == pytest.approx(asked.tokens * PRICE.input / 1e6)
    lost_usd = asked.tokens * PRICE.input / 1e6
    assert totals.cost_usd == pytest.approx(replied * PRICE.cost(Usage(100, 10)) + lost_usd)
    assert runner.cost_usd == pytest.approx(totals.cost_usd)


@pytest.mark.parametrize("outcome", [SettledAs.NOT_SOLVED, SettledAs.EXCLUDED])
def test_a_decision_on_a_killed_job_keeps_its_cost(home: Home, outcome: SettledAs) -> None:
    run = killed(home, Dies(1, before=False))
    (state,) = run.jobs.values()
    assert state.asked is not None
    with run.held():
        settler = home.ports.settler(run)
        todo = settler.carry_out()
        (decided,) = settler.settle(todo, Decision(outcome))
    assert (decided.refused, decided.job.lost_tokens) == ("", state.asked.tokens)
    assert home.figures(home.runs.open("r")).totals.lost_tokens == state.asked.tokens
    assert home.work(home.runs.open("r")).cost_usd == pytest.approx(state.asked.cost_usd)


def test_a_reply_that_is_in_the_journal_is_not_lost(home: Home) -> None:
    model = Dies(2, before=True)
    run = killed(home, model)
    file = run.folder / "jobs.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    asked = [line for line in lines if b'"asked"' in line]
    assert len(asked) == 2
    file.write_bytes(b"".join(line for line in lines if line != asked[1]))  # it died after the first turn
    run = home.runs.open("r")
    assert home.figures(run).totals.lost_tokens == 0
    home.work(run)
    assert home.figures(run).totals.lost_tokens == 0


def test_the_limit_on_costs_knows_what_kills_have_lost(home: Home) -> None:
    run = killed(home, Dies(1, before=False))
    (state,) = run.jobs.values()
    assert state.asked is not None
    assert state.asked.cost_usd is not None
    settings = home.settings.agent
    possible = settings.estimate(state.asked.tokens).cost_usd
    assert possible is not None
    home.work(run, max_cost_usd=possible + state.asked.cost_usd / 2)
    assert [state.problem for state in run.jobs.values()] == ["over_cost"]
    assert home.figures(run).totals.lost_tokens == state.asked.tokens


def test_failed_requests_before_a_kill_are_counted_too_and_a_wait_sends_nothing(home: Home) -> None:
    class TimesOut(Dies):
        def complete(
            self, messages: Any, tools: Any, *, cancel: CancelToken = NEVER
        ) -> ChatReply | ChatFailure:
            answer = super().complete(messages, tools, cancel=cancel)
            return ChatFailure(ChatProblem.TIMED_OUT, "No reply.", usage=Usage(50)) if self.at else answer

    model = TimesOut(3, before=True)
    waits: list[float] = []

    def sleep(seconds: float, cancel: CancelToken) -> None:
        with cancel.waiting():
            waits.append(seconds)

    run = killed(home, RetryingModel(model, Backoff(requests=5), sleep))
    (state,) = run.jobs.values()
    assert state.asked is not None
    assert (len(waits), state.asked.failed_tokens) == (2, 100)
    home.work(run)
    totals = home.figures(run).totals
    assert totals.lost_tokens == 100 + state.asked.tokens


def test_a_process_that_dies_while_it_waits_has_lost_only_what_failed() -> None:
    asked = JobAsked(job="j", utc_ms=1_000, turn=3, tokens=500, failed_tokens=70, failed_s=2.5)
    job = JobState(AgentJob("j", "t"), asked=asked)
    events = [JournalEvent(1, "heartbeat", 9_000, 0, Heartbeat())]
    state = AttemptState()
    whole = killed_requests(job, state, events)
    assert whole is not None
    assert (whole.tokens, whole.seconds) == (570, 2.5)
    waiting = msgspec.structs.replace(state, pause=Pause(PauseReason.ENDPOINT_WAIT, "", 0))
    failed = killed_requests(job, waiting, events)
    assert failed is not None
    assert (failed.tokens, failed.seconds) == (70, 2.5)
    again = job.after(failed)
    assert (again.lost_tokens, again.lost_s, again.asked) == (70, 2.5, None)
    assert killed_requests(again, state, events) is None


@dataclass
class Always:
    """A model that always gives the same answer, and counts its requests."""

    answer: ChatFailure | ChatReply
    name: str = "always"
    requests: int = 0

    def complete(self, messages: Any, tools: Any, *, cancel: CancelToken = NEVER) -> ChatReply | ChatFailure:
        self.requests += 1
        return self.answer


@pytest.mark.parametrize("problem", [problem for problem in ChatProblem if problem.of_endpoint])
def test_a_failure_of_every_request_stops_the_run_before_another_attempt_begins(
    home: Home, problem: ChatProblem
) -> None:
    model = Always(ChatFailure(problem, "h:1 answered 402: no credit."))
    home.model_of = lambda settings: model
    run = home.run(*(home.task(number) for number in range(5)))
    runner = home.work(run, at_once=4)
    assert runner.stopped_by == "h:1 answered 402: no credit."
    assert model.requests == 1
    assert len(list(home.attempts.summaries())) == 1
    states = [state.status for state in run.jobs.values()]
    assert states == [JobStatus.HALTED, *[JobStatus.QUEUED] * 4]
    home.model_of = None
    home.work(run, at_once=4)
    assert home.figures(run).totals.ended == 5


@pytest.mark.parametrize("answer", [ChatFailure(ChatProblem.REJECTED, "No."), SOLVES[1]])
def test_any_other_answer_lets_the_others_begin(home: Home, answer: ChatFailure | ChatReply) -> None:
    model = Always(answer)
    home.model_of = lambda settings: model
    run = home.run(*(home.task(number) for number in range(5)))
    home.work(run, at_once=4)
    assert len(list(home.attempts.summaries())) == 5


def test_a_request_that_is_pending_for_long_is_accepted() -> None:
    acceptance, begun = Acceptance(), threading.Event()
    assert acceptance.awaited(lambda: False)

    def begin() -> None:
        assert acceptance.awaited(lambda: False)
        begun.set()

    other = threading.Thread(target=begin)
    other.start()
    acceptance.pending(1.0)
    assert not begun.wait(0.2)
    acceptance.pending(11.0)
    assert begun.wait(LONG_S)
    other.join(LONG_S)
    stopped = Acceptance()
    assert not stopped.awaited(lambda: True)


def test_nothing_is_sent_that_can_not_be_recorded(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    append = AppendLog.append

    def full(log: AppendLog, lines: bytes, *, durable: bool = True) -> None:
        if b'"asked"' in lines:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(log, lines, durable=durable)

    model = Dies(0, before=False)
    home.model_of = lambda settings: model
    run = home.run(home.task())
    with monkeypatch.context() as patched:
        patched.setattr(AppendLog, "append", full)
        assert "No space left" in home.work(run).stopped_by
    assert model.seen == []
    home.work(run)
    assert home.figures(run).totals.lost_tokens == 0


def test_requests_of_the_built_in_solver_are_not_announced(home: Home) -> None:
    home.settings = msgspec.structs.replace(home.settings, host="")
    run = home.run(home.task())
    home.work(run)
    assert b"asked" not in (run.folder / "jobs.jsonl").read_bytes()


def test_time_in_requests_that_timed_out_is_the_endpoints(home: Home) -> None:
    wait = threading.Event()

    def silent(request: object, headers: object) -> Any:
        return Answer({}, wait=wait)

    with endpoint(silent) as served:
        settings = EndpointSettings("m", served.url, timeout_s=1.2)
        home.model_of = lambda agent: OpenAICompatibleModel(settings)
        run = home.run(home.task())
        home.work(run)
        wait.set()
    (row,) = home.figures(run).attempts
    assert (row.reason, row.lost_tokens > 100, row.lost_s >= 1) == ("timed_out", True, True)
    assert row.model_s == 0


def test_requests_that_were_sent_again_are_counted_apart_from_replies(home: Home) -> None:
    lost = Usage(70, 7, estimated=True)
    again = replace(reply(LOOK), lost=lost, retried=(ChatProblem.SERVER_ERROR,))
    home.script = (again, reply(LOOK), ChatFailure(ChatProblem.REJECTED, "No.", usage=Usage(30, 0)))
    run = home.run(home.task())
    home.work(run)
    found = home.figures(run)
    (row,) = found.attempts
    assert (row.prompt_tokens, row.completion_tokens, row.estimated) == (200, 20, False)
    assert (row.lost_tokens, row.retried) == (107, 1)
    costs = [PRICE.cost(usage) for usage in (Usage(200, 20), lost, Usage(30, 0))]
    assert found.totals.cost_usd == pytest.approx(sum(costs))
    lines = summary_lines(found.totals, "r")
    assert (lines["tokens"].split()[0], lines["lost"].split()[:2]) == ("200", ["about", "107"])
    assert lines["cost"].startswith("about $")


def test_a_run_that_is_just_starting_is_known_to_be(home: Home) -> None:
    runs = AgentRunStore(home.folder / "runs")
    with runs.starting("soon"):
        with pytest.raises(Exception, match="just starting in another process"):
            runs.open("soon")
        assert runs.names() == []
        with runs.starting(None), runs.starting("../x"):
            pass
    with pytest.raises(Exception, match="There is no run"):
        runs.open("soon")
    assert not (runs.root / "soon").exists()
    with runs.starting("now"):
        runs.open_or_create("now", home.settings, 1, "test")
    assert runs.open("now").name == "now"


def test_an_operation_of_a_request_is_small(home: Home) -> None:
    line = msgspec.json.encode(JobAsked(job="0" * 64, utc_ms=1_790_000_000_000, turn=12, tokens=12_000))
    assert len(line) < 300


def test_a_runner_is_one_at_a_time(home: Home) -> None:
    run = home.run(home.task())
    with run.held(), pytest.raises(Exception, match="Another process"):
        AgentRunner(home.runs.open("r"), home.ports).work()
    assert b"asked" not in (run.folder / "jobs.jsonl").read_bytes()
