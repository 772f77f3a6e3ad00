"""Whichever record was written last before a kill, each request costs its tokens and its time once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest
from agent_runs import Home
from examples import CHOSEN, at_the_gate
from killed_records import PRICE, Endpoint, killed, move_time_with, require_whole

from gistpoint.core.agents.scaffolds import ScaffoldIdentity, Seat
from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.chat import ChatProblem
from gistpoint.sandbox.endpoints.retrying import Backoff, RetryingModel
from gistpoint.sessions.agentruns.runner import AgentRunner
from gistpoint.sessions.journal import JOURNAL

IDENTITY = ScaffoldIdentity("fake", "1", relayed=True)
# Threads that end as if their process had been killed.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
PLANS = {
    "answered": ({}, ChatProblem.TIMED_OUT),
    "sent again": ({1: 1, 2: 2}, ChatProblem.TIMED_OUT),
    "halted": ({1: 1, 2: 1}, ChatProblem.REJECTED),
    "stopped": ({1: 1}, ChatProblem.TIMED_OUT),
    "by a program": ({}, ChatProblem.TIMED_OUT),
}
"""How often the endpoint fails at each turn, and how."""
EVERY = 3 if CHOSEN == "quick" else 1
"""The quick loop kills after every third record, the gate after each (decision 133)."""


@dataclass
class Program:
    """A scaffold whose program asks an endpoint itself."""

    attempt: Callable[[Seat], None]
    identity: ScaffoldIdentity = IDENTITY


@dataclass
class Lives:
    """A run of one job whose processes can be killed."""

    home: Home
    plan: str

    def __post_init__(self) -> None:
        home = self.home
        agent = AgentSettings(price=PRICE)
        scaffold = IDENTITY if self.plan == "by a program" else None
        home.settings = msgspec.structs.replace(home.settings, host="h:1", agent=agent, scaffold=scaffold)
        fails, problem = PLANS[self.plan]
        self.endpoint = Endpoint(home.clock, dict(fails), problem)
        home.model_of = lambda settings: RetryingModel(self.endpoint, Backoff(first_s=8.0))
        self.unsent_tokens = 0
        home.run(home.task())

    def live(self, after: int = 0) -> int:
        """Let a process work on the run, killed after a record; return the number of its records."""
        home, run = self.home, self.home.runs.open("r")
        ports = home.ports
        if self.plan == "by a program":
            ports = replace(ports, scaffold=Program(self.endpoint.attempt))
        runner = AgentRunner(run, ports, at_once=1)
        if self.plan == "stopped":
            self.endpoint.on_failure = runner.stop
        with killed(after) as process:
            runner.work()
        for sent in self.endpoint.sent:
            sent.ended_ms = sent.ended_ms or home.clock.mono_ms()
        self.unsent_tokens += process.unsent_tokens
        require_whole(home, self.endpoint, self.unsent_tokens)
        (row,) = home.figures(run).attempts
        cost_usd = (row.cost_usd or 0.0) + (row.lost_usd or 0.0)
        assert process.is_dead or runner.cost_usd == pytest.approx(cost_usd), "the limit knows another cost"
        return len(process.records)

    def end(self) -> None:
        """Let further processes end the run."""
        for _ in range(4):
            self.live()
        (row,) = self.home.figures(self.home.runs.open("r")).attempts
        assert (row.reason, row.result) == ("solved", "solved")
        (job,) = self.home.runs.open("r").jobs.values()
        if self.plan != "by a program":
            thinking_ms = self.home.attempts.summary(job.attempt).state.clock.thinking
            assert thinking_ms == self.endpoint.answered_ms, "other time was the model's"
        assert {place.parent.name for place in self.home.attempts.root.glob(f"*/{JOURNAL}")} == {
            job.attempt,
            *job.abandoned,
        }


@pytest.mark.parametrize("again", [2, *at_the_gate([0, 3, 4])])
@pytest.mark.parametrize("plan", PLANS)
def test_costs_and_times_are_whole_after_a_kill_at_any_record(
    plan: str, again: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after, records, wrong = 0, 1, []
    while after < records:
        lives = Lives(Home(tmp_path / str(after)), plan)
        move_time_with(lives.home.clock, monkeypatch)
        # Its heartbeats come when the machine has time, so the records would have other numbers each time.
        monkeypatch.setattr(AgentRunner, "_beat", lambda runner: None)
        try:
            count = lives.live(after)
            records = records if after else count
            if after and again and lives.home.runs.open("r").left:
                lives.live(again)  # the next process is killed at its beginning
            lives.end()
        except AssertionError as error:
            wrong.append(f"after record {after}: {error}")
        after += EVERY
    assert not wrong, "\n".join(wrong)
