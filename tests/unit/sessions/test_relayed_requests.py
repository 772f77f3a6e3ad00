"""Requests that a scaffold's program sends itself: their cost and their time count once, whatever happens."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from agent_runs import LOOK, RIGHT, Home

from gistpoint.core.agents.scaffolds import RelayedRequest, ScaffoldIdentity, Seat
from gistpoint.core.agents.settings import AgentSettings, TokenPrice
from gistpoint.core.attempts.events import ModelTurn
from gistpoint.core.chat import ChatProblem, Usage
from gistpoint.sessions.agentruns.jobs import JobAsked, JobOperation, JobStatus
from gistpoint.sessions.agentruns.runner import AgentRunner
from gistpoint.sessions.agentruns.store import AgentRun, RunSettings

IDENTITY = ScaffoldIdentity("fake", "1")


@dataclass
class Fake:
    """A scaffold that calls a function."""

    act: Callable[[Seat], None]
    identity: ScaffoldIdentity = IDENTITY

    def attempt(self, seat: Seat) -> None:
        self.act(seat)


def remote(folder: Path) -> Home:
    """Return a home whose runs ask a host."""
    agent = AgentSettings(system="none", price=TokenPrice(1.0, 1.0))
    return Home(folder, settings=RunSettings(model="m", host="h", agent=agent, scaffold=IDENTITY))


def runner_of(home: Home, act: Callable[[Seat], None], jobs: int = 1, **options: Any) -> AgentRunner:
    run = home.run(*(home.task(number) for number in range(1, jobs + 1)))
    return AgentRunner(run, replace(home.ports, scaffold=Fake(act)), **options)


class Requests:
    """Requests of a program, which may overlap; the number of each decides its digit in a sum of tokens."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self._numbers = count()
        self._open: dict[int, tuple[ExitStack, RelayedRequest]] = {}

    def begin(self) -> None:
        """Send a request with an estimate of two tokens at its digit."""
        number, stack = next(self._numbers), ExitStack()
        request = stack.enter_context(self.seat.relayed(6 * 10**number, 0))
        assert request is not None
        self._open[number] = stack, request

    def end(self, number: int, *, failed: bool) -> None:
        """Answer a request, or let it fail, with a usage of one token at its digit."""
        stack, request = self._open.pop(number)
        usage = Usage(10**number, 0)
        with stack:
            if failed:
                self.seat.not_answered(ChatProblem.SERVER_ERROR, "Oh.", request, usage)
            else:
                self.seat.observed(ModelTurn(turn=0, content="a", usage=usage), request)

    @property
    def under_way(self) -> list[int]:
        return [*self._open]


@contextmanager
def images(home: Home, monkeypatch: pytest.MonkeyPatch, check: Callable[[Home], None]) -> Iterator[None]:
    """Check a copy of the home after each operation on a job that is written, as a kill would leave it."""
    places = count()
    append = AgentRun.append

    def appended(self: AgentRun, operations: Sequence[JobOperation]) -> None:
        append(self, operations)
        if not self.folder.is_relative_to(home.folder):
            return
        copied = home.folder.parent / f"killed-{next(places)}"
        shutil.copytree(home.folder, copied)
        check(Home(copied, settings=home.settings))

    with monkeypatch.context() as patched:
        patched.setattr(AgentRun, "append", appended)
        yield


@pytest.mark.parametrize("seed", range(6))
def test_a_kill_loses_no_request_and_counts_none_twice(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, digits = Random(seed), list[str]()

    def check(copy: Home) -> None:
        run = copy.runs.open("r")
        totals = copy.figures(run).totals
        tokens = totals.prompt_tokens + totals.lost_tokens
        assert (totals.cost_usd or 0.0) * 1e6 == pytest.approx(tokens)
        digits.append(str(tokens)[::-1])
        AgentRunner(run, replace(copy.ports, scaffold=Fake(lambda seat: None))).work()
        after = copy.figures(copy.runs.open("r")).totals
        assert after.prompt_tokens + after.lost_tokens == tokens

    def act(seat: Seat) -> None:
        requests = Requests(seat)
        with images(home, monkeypatch, check):
            for _ in range(5):
                for _ in range(random.randint(1, 2)):
                    requests.begin()
                while len(requests.under_way) > random.randint(0, 2):
                    requests.end(random.choice(requests.under_way), failed=random.random() < 0.5)
            while requests.under_way:
                requests.end(requests.under_way[0], failed=random.random() < 0.5)

    (tmp_path / "home").mkdir()
    home = remote(tmp_path / "home")
    runner_of(home, act).work()
    assert digits[0] == "2"
    for before, after in pairwise(digits):
        assert set(after) <= {"1", "2"}, "each request counts with its estimate, then with its usage"
        changed = [pair for pair in zip(before, after, strict=False) if pair[0] != pair[1]]
        assert all(pair == ("2", "1") for pair in changed)
    totals = home.figures(home.runs.open("r")).totals
    assert set(str(totals.prompt_tokens + totals.lost_tokens)) == {"1"}


SPANS = [
    ([(0, 10, True), (5, 15, True)], 15),
    ([(0, 10, False), (0, 15, True)], 5),
    ([(0, 10, True), (5, 15, False)], 5),
    ([(0, 10, True), (20, 30, False)], 10),
    ([(0, 30, True), (5, 10, False), (15, 20, True)], 25),
    ([(0, 10, True), (10, 20, True)], 20),
    ([(0, 9, False)], 0),
]
"""Requests by their first and last second, with whether they fail, and the time that is not the model's."""


def some_spans(seed: int) -> tuple[list[tuple[int, int, bool]], int]:
    random = Random(seed)
    spans = []
    for _ in range(8):
        began = random.randint(0, 40)
        spans.append((began, began + random.randint(1, 20), random.random() < 0.6))
    lost = sum(
        any(began <= second < ended for began, ended, failed in spans if failed)
        and not any(began <= second < ended for began, ended, failed in spans if not failed)
        for second in range(61)
    )
    return spans, lost


@pytest.mark.parametrize(("spans", "lost_s"), [*SPANS, *map(some_spans, range(12))])
def test_the_time_of_failed_requests_at_once_is_taken_off_once(
    spans: list[tuple[int, int, bool]], lost_s: int, tmp_path: Path
) -> None:
    home = remote(tmp_path)

    def act(seat: Seat) -> None:
        requests, numbers = Requests(seat), dict[int, int]()
        last = max(ended for _, ended, _ in spans)
        for second in range(last + 1):
            for number, (began, ended, failed) in enumerate(spans):
                if ended == second:
                    requests.end(numbers[number], failed=failed)
                if began == second:
                    numbers[number] = len(numbers)
                    requests.begin()
            home.clock.advance(1_000 * (second < last))
        before = seat.work.attempt.clock()
        assert (before.thinking, before.paused) == ((last - lost_s) * 1_000, lost_s * 1_000)
        seat.call(*RIGHT)

    runner = runner_of(home, act)
    runner.work()
    (row,) = home.figures(runner.run).attempts
    assert (row.lost_s, row.endpoint_wait_s) == (lost_s, 0.0)


def test_what_is_under_way_at_the_end_counts_as_lost_once(tmp_path: Path) -> None:
    home, late = remote(tmp_path), list[Callable[[], None]]()

    def act(seat: Seat) -> None:
        answer = ModelTurn(turn=0, content="late", usage=Usage(7, 7))
        for _ in range(2):
            stack = ExitStack()
            request = stack.enter_context(seat.relayed(300, 0))
            assert request is not None
            late.extend([partial(seat.observed, answer, request), stack.close])
        seat.call(*RIGHT)

    runner = runner_of(home, act)
    runner.work()
    for step in late:
        step()
    (job,) = home.runs.open("r").jobs.values()
    assert (job.lost_tokens, job.lost_usd, job.relayed) == (200, pytest.approx(0.0002), ())
    assert home.attempts.summary(job.attempt).state.turns == ()
    assert runner.cost_usd == pytest.approx(0.0002)


def test_no_other_job_begins_before_a_programs_first_request_was_accepted(tmp_path: Path) -> None:
    home, accepted = remote(tmp_path), list[bool]()

    def act(seat: Seat) -> None:
        with seat.relayed(300) as request:
            assert request is not None
            for _ in range(3):
                assert not seat.over
                seat.beat()
                accepted.append(runner.acceptance._accepted.is_set())
            seat.not_answered(ChatProblem.NOT_AUTHORISED, "No.", request)
        seat.call(*LOOK)
        accepted.append(runner.acceptance._accepted.is_set())

    runner = runner_of(home, act, jobs=3, at_once=3)
    runner.work()
    assert accepted == [False] * 4
    assert sorted(job.status for job in runner.run.jobs.values()) == [
        JobStatus.HALTED,
        JobStatus.QUEUED,
        JobStatus.QUEUED,
    ]


@pytest.mark.parametrize("how", ["failed", "asked for no reply", "left"])
def test_a_run_that_is_stopped_stops_a_program_whose_requests_are_over(how: str, tmp_path: Path) -> None:
    home, over = remote(tmp_path), list[bool]()

    def act(seat: Seat) -> None:
        with seat.request_under_way() if how == "asked for no reply" else seat.relayed(300) as request:
            assert request is not None
            if how == "failed":
                seat.not_answered(ChatProblem.SERVER_ERROR, "Oh.", request)
        runner.stop("It was asked to stop.")
        over.append(seat.over)

    runner = runner_of(home, act)
    runner.work()
    assert over == [True]


def test_a_full_disk_stops_the_run_and_is_not_the_programs_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, append = remote(tmp_path), AgentRun.append

    def full(self: AgentRun, operations: Sequence[JobOperation]) -> None:
        if any(isinstance(one, JobAsked) for one in operations):
            raise OSError(errno.ENOSPC, "No space left on device")
        append(self, operations)

    def act(seat: Seat) -> None:
        monkeypatch.setattr(AgentRun, "append", full)
        with suppress(OSError), seat.relayed(300):
            pytest.fail("it was sent")
        assert seat.over

    runner = runner_of(home, act)
    runner.work()
    (job,) = home.runs.open("r").jobs.values()
    assert (job.status, runner.stopped_by) == (
        JobStatus.BEGUN,
        "The attempts can't be written: No space left on device.",
    )


def test_the_usage_of_an_answer_that_is_no_reply_counts(tmp_path: Path) -> None:
    home = remote(tmp_path)

    def act(seat: Seat) -> None:
        with seat.relayed(300, 0) as request:
            assert request is not None
            seat.paid(Usage(40, 2), request)
            seat.paid(Usage(40, 2), request)
        assert not seat.has_problem
        seat.call(*RIGHT)

    runner = runner_of(home, act)
    runner.work()
    totals = home.figures(runner.run).totals
    assert (totals.lost_tokens, totals.cost_usd) == (42, pytest.approx(42e-6))
