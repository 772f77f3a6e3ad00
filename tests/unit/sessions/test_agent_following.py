"""Following a run: data that are read again or kept, and the facts that a list shows of an attempt."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from agent_runs import LOOK, RIGHT, WRONG, Home
from fakes import FakeClock
from scripted_endpoint import ScriptedModel, reply

from gistpoint.core.attempts.results import AttemptResult
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, Usage
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.agentruns.condition import condition_facts, condition_parts
from gistpoint.sessions.agentruns.figures import AttemptFigures, totals_of
from gistpoint.sessions.agentruns.following import RunFollower
from gistpoint.sessions.agentruns.jobs import JobHalted, JobLost, JobStatus
from gistpoint.sessions.agentruns.shown_attempts import NOT_BEGUN, PassedTests

FAILS = ChatFailure(ChatProblem.SERVER_ERROR, "It answered 500.")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


FULL = Usage(100, 10, cached_tokens=40, written_tokens=9, reasoning_tokens=4, cost_usd=0.25, estimated=True)
ASSIGNED_LATER = {"framework", "client_tools", "in_rates", "solved_at_worst", "solved_at_best"}
"""The columns that `figures_of` adds to the rows of a whole run."""
OF_OTHER_JOBS = {
    "message",
    "mixed",
    "settled",
    "settled_by",
    "settled_why",
    "worker",
    "clock_ms",
    "unread_calls",
    "abandoned_s",
}
"""The columns that jobs at rest, whose model alone has worked on them, leave at their defaults."""


@dataclass
class WaitingModel(ScriptedModel):
    """A scripted model that waits before each reply, which also takes some milliseconds."""

    clock: FakeClock = field(default_factory=FakeClock)

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply | ChatFailure:
        with cancel.waiting():
            cancel.sleep(0.0)
            self.clock.advance(30_000)
        time.sleep(0.005)
        return super().complete(messages, tools, cancel=cancel)


def follower_of(home: Home) -> RunFollower:
    return RunFollower(home.runs.open("r"), home.attempts.root)


def test_a_list_shows_an_attempt_without_its_texts(home: Home) -> None:
    usage = Usage(100, 10, cost_usd=0.25)
    home.script = (reply(LOOK, usage=usage), reply(WRONG, usage=usage), FAILS)
    home.work(home.run(home.task()))
    (followed,) = follower_of(home).poll()
    shown = followed.shown
    assert (shown.turns, shown.calls, shown.submissions, shown.pending) == (2, 2, 1, False)
    assert (shown.tests, shown.status) == (PassedTests(5, 6), "finished")
    assert (shown.remaining.tool_uses, shown.remaining.submissions) == (14, 3)
    assert (shown.usage.tokens, shown.usage.cost_usd) == (220, 0.5)
    assert shown.last is not None
    assert (shown.last.tool, shown.last.text) == ("submit_attempt", None)
    assert followed.job.status is JobStatus.HALTED
    assert (followed.figures.reason, followed.figures.calls) == ("server_error", 2)


def test_what_attempt_and_job_have_lost_is_added(home: Home) -> None:
    again = replace(reply(LOOK), lost=Usage(70, 7, 0, 0, 0.5), retried=(ChatProblem.SERVER_ERROR,))
    home.script = (again, FAILS)
    run = home.run(home.task())
    home.work(run)
    follower = follower_of(home)
    (followed,) = follower.poll()
    assert (followed.figures.lost_tokens, followed.figures.lost_usd) == (77, 0.5)
    (job,) = run.jobs
    run.append([JobLost(job=job, tokens=7, cost_usd=0.25, seconds=2.0)])
    (followed,) = follower.poll()
    figures = followed.figures
    assert (figures.lost_tokens, figures.lost_usd, figures.lost_s) == (84, 0.75, run.jobs[job].lost_s)


def test_nothing_is_read_again_until_something_changes(home: Home) -> None:
    home.script = (reply(LOOK), FAILS)
    run = home.run(home.task(1), home.task(2))
    home.work(run)
    follower = follower_of(home)
    before = follower.poll()
    reads: list[str] = []
    follower.run.reload = lambda: reads.append("jobs")  # type: ignore[method-assign]
    assert all(old is new for old, new in zip(before, follower.poll(), strict=True))
    assert reads == []
    del follower.run.reload
    first, _ = run.jobs
    run.append([JobLost(job=first, tokens=7)])
    after = follower.poll()
    assert after[1] is before[1]
    assert after[0].shown is before[0].shown
    assert (after[0].figures.lost_tokens, after[0].figures.calls) == (7, 1)


def test_only_attempts_under_way_are_kept_in_memory(home: Home) -> None:
    home.script = (reply(LOOK), FAILS)
    run = home.run(home.task(1), home.task(2))
    home.work(run)
    follower = follower_of(home)
    assert [one.shown.calls for one in follower.poll()] == [1, 1]
    assert [one.state.events for one in follower._followers.values()] == [0, 0]
    home.script = (reply(LOOK), reply(RIGHT))
    home.work(run)
    found = follower.poll()
    assert [one.shown.result for one in found] == [AttemptResult.SOLVED] * 2
    assert [one.shown.calls for one in found] == [3, 3]
    assert [one.figures.result for one in found] == ["solved", "solved"]
    assert [one.state.events for one in follower._followers.values()] == [0, 0]
    assert all(old is new for old, new in zip(found, follower.poll(), strict=True))


def test_the_figures_are_those_that_the_run_prints(home: Home) -> None:
    again = {"lost": Usage(70, 7, cost_usd=0.5), "retried": (ChatProblem.SERVER_ERROR,), "streamed": True}
    malformed = reply(("list_directory", "{"), usage=FULL)
    home.script = (replace(malformed, **again), reply(LOOK, usage=FULL), reply(RIGHT, usage=FULL))
    home.model_of = lambda settings: WaitingModel(home.script, clock=home.clock)
    run = home.run(home.task(1), home.task(2), repeats=2)
    home.work(run)
    run.append([JobLost(job=next(iter(run.jobs)), tokens=5, cost_usd=0.5, seconds=2.0)])
    watched = [one.figures for one in follower_of(home).poll()]
    printed = home.figures(run)
    assert totals_of(watched) == printed.totals
    columns = set(AttemptFigures.__struct_fields__) - ASSIGNED_LATER
    for column in columns:
        assert [getattr(row, column) for row in watched] == [getattr(row, column) for row in printed.attempts]
    without = AttemptFigures(task="", repeat=0, status="")
    same = {column for column in columns if getattr(watched[0], column) == getattr(without, column)}
    assert same == OF_OTHER_JOBS, "a column that no row fills proves nothing"


def test_a_job_without_an_attempt_or_with_a_damaged_one_is_shown(home: Home) -> None:
    run = home.run(home.task(1), home.task(2))
    first, second = run.jobs
    run.append([JobHalted(job=first, problem="task", message="It is gone.")])
    home.script = (reply(LOOK), FAILS)
    home.work(run)
    follower = follower_of(home)
    (home.attempts.folder(run.jobs[second].attempt) / "journal.jsonl").write_bytes(b"not json\n")
    queued, damaged = follower.poll()
    assert damaged.shown is NOT_BEGUN
    assert "can't be read" in damaged.figures.message
    assert queued.shown.calls in (0, 1)


def test_a_condition_is_put_into_words(home: Home) -> None:
    settings = home.settings
    assert condition_parts(settings) == ["each task's own budgets"]
    facts = condition_facts(settings)
    assert facts["system prompt"] == "agent-2"
    assert facts["context"] == "128,000 tokens"
    agent = type(settings.agent)(
        setting="static",
        system="none",
        attempt_tokens=5_000,
        sampling=type(settings.agent.sampling)(temperature=0.0, seed=3, reasoning_effort="high"),
    )
    other = type(settings)(
        model="m", host="h", agent=agent, role="qa", tool_uses=16, submissions=4, gist={"profile": "browse"}
    )
    assert condition_parts(other) == [
        "static: one reply without tools",
        "16 tool uses, 4 submissions",
        "system prompt none",
        "tokens in an attempt at most 5,000",
        "temperature 0.0",
        "seed 3",
        "reasoning effort high",
        "gist profile browse",
        "role qa: no baseline",
    ]
