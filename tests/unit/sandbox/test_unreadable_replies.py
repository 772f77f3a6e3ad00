"""A worker's reply that can't be fetched or read in this process holds up neither a run nor generation."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any

import msgspec
import pytest

import gistpoint.sandbox.cluster
from gistpoint.core.errors import InfrastructureError
from gistpoint.core.generation.campaign import decide
from gistpoint.core.orders import (
    ClusterJob,
    ClusterOutcome,
    WorkerIntroduction,
    WorkOrder,
    WorkReply,
    WorkStatus,
)
from gistpoint.sandbox.cluster import _FETCHES, STRIKES, ClusterWorkerPool
from gistpoint.sandbox.cluster_steps import StepExecutor

BAD, GOOD = "tcp://bad", "tcp://good"
CAN_NOT_BE_READ = (ValueError("no such class"), TimeoutError(), ModuleNotFoundError("x"), RecursionError())


class Reply:
    """A future of Dask on a worker; `fails` are the errors of its fetches in turn, the last one forever."""

    def __init__(self, worker: str, data: bytes, fails: list[Exception | None], ends_as: str) -> None:
        self.worker, self.data, self.fails, self.ends_as = worker, data, fails, ends_as
        self.status = "finished"

    def result(self, timeout: float) -> bytes:
        error = self.fails.pop(0) if len(self.fails) > 1 else self.fails[0]
        if error is None:
            return self.data
        self.status = self.ends_as
        raise error


class Cluster:
    """A client of a scheduler with two workers; jobs go to the bad one as long as it may do them."""

    status = "running"

    def __init__(self, fails: list[Exception | None], ends_as: str = "finished", known: bool = True) -> None:
        self.fails, self.ends_as, self.known, self.done_by = fails, ends_as, known, list[str]()

    def nthreads(self) -> dict[str, int]:
        return {BAD: 1, GOOD: 1}

    def run(self, function: Callable[..., Any], *_: Any, workers: list[str], **__: Any) -> dict[str, bytes]:
        return dict.fromkeys(workers, msgspec.json.encode(WorkerIntroduction()))

    def submit(self, work: Any, order: bytes, archive: bytes, *, workers: list[str], **_: Any) -> Reply:
        job = msgspec.json.decode(order, type=WorkOrder).job
        reply = msgspec.json.encode(WorkReply(job=job, kind=WorkStatus.UNFIT, message="tired"))
        stopped = msgspec.json.encode(WorkReply(job=job, kind=WorkStatus.FAILED, message="done"))
        self.done_by.append(BAD if BAD in workers else GOOD)
        if BAD in workers:
            return Reply(BAD, reply, list(self.fails), self.ends_as)
        return Reply(GOOD, stopped, [None], "finished")

    def who_has(self, futures: list[Reply]) -> dict[str, tuple[str, ...]]:
        return {"key": tuple(one.worker for one in futures if self.known or one.worker == GOOD)}

    def cancel(self, futures: list[Reply]) -> None:
        pass


def carried_out(client: Cluster, jobs: int = 1) -> tuple[list[ClusterOutcome], list[str], list[str]]:
    """Have jobs done; return the outcomes, what was told, and who did the jobs."""
    outcomes, told = list[ClusterOutcome](), list[str]()
    pool = ClusterWorkerPool(client, "tcp://here", told.append, most=1)
    deadline = time.monotonic() + 20
    names = [
        ClusterJob(f"job-{number}", f"job {number}", lambda: b"{}", lambda: b"") for number in range(jobs)
    ]

    def tick() -> None:
        assert time.monotonic() < deadline, "a job is never done"

    work: Any = None
    pool.carry_out(work, names, lambda job, result, worker: None, outcomes.append, tick)
    return outcomes, told, client.done_by


@pytest.mark.parametrize("error", CAN_NOT_BE_READ, ids=lambda error: type(error).__name__)
def test_a_job_whose_reply_can_not_be_read_is_done_elsewhere(error: Exception) -> None:
    outcomes, told, done_by = carried_out(Cluster([error]))
    assert [outcome.message for outcome in outcomes] == ["done"]
    assert done_by == [BAD, GOOD]
    (sentence,) = told
    assert sentence.startswith(f"job 0: {BAD} ")
    assert "returned a reply that can't be fetched" in sentence
    assert type(error).__name__ in sentence


def test_a_worker_whose_replies_can_not_be_read_gets_no_more_jobs() -> None:
    outcomes, told, done_by = carried_out(Cluster([ValueError("no")]), STRIKES + 2)
    assert len(outcomes) == STRIKES + 2
    assert done_by.count(BAD) == STRIKES
    assert "gets no jobs" in told[-1]


def test_a_fetch_that_succeeds_in_the_end_counts() -> None:
    _, told, done_by = carried_out(Cluster([*[TimeoutError()] * (_FETCHES - 1), None]))
    assert done_by == [BAD, GOOD]
    assert [sentence.partition(") ")[2] for sentence in told] == ["can't do it: tired."]


@pytest.mark.parametrize(("ends_as", "known"), [("lost", True), ("finished", False)])
def test_no_worker_is_blamed_for_a_reply_that_no_worker_holds(
    monkeypatch: pytest.MonkeyPatch, ends_as: str, known: bool
) -> None:
    """The job is sent again, and Dask's own repetition is waited for if the worker has died."""
    client = Cluster([OSError()], ends_as, known)
    monkeypatch.setattr(gistpoint.sandbox.cluster, "_LOOK_S", 0.0)
    nthreads, looks = client.nthreads, iter(range(1_000))
    monkeypatch.setattr(client, "nthreads", lambda: nthreads() if next(looks) < 20 else {"tcp://third": 1})
    outcomes, told, done_by = carried_out(client)
    assert ([outcome.message for outcome in outcomes], told, done_by[-1]) == (["done"], [], GOOD)


class Step(Future[Any]):
    """A future of Dask for a step: its status, and the error of reading its result, if any."""

    def __init__(self, status: str, error: Exception | None = None) -> None:
        super().__init__()
        self.status, self.error = status, error

    def result(self, timeout: float | None = None) -> Any:
        if self.error is not None:
            raise self.error
        return super().result(timeout)


def submitted(monkeypatch: pytest.MonkeyPatch, sent: Step) -> Future[Any]:
    class Client:
        def submit(self, *_: Any, pure: bool) -> Step:
            return sent

    monkeypatch.setattr("gistpoint.sandbox.cluster_steps.ordered", lambda *given: b"")
    return StepExecutor(Client()).submit(decide, None, None)


@pytest.mark.parametrize("error", CAN_NOT_BE_READ, ids=lambda error: type(error).__name__)
def test_a_step_whose_result_can_not_be_read_fails(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    sent = Step("finished", error)
    future = submitted(monkeypatch, sent)
    sent.set_result(None)
    with pytest.raises(InfrastructureError, match=type(error).__name__):
        future.result(timeout=5)


def test_a_step_has_the_result_or_the_error_of_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Step("finished")
    future = submitted(monkeypatch, sent)
    sent.set_result("decided")
    assert future.result(timeout=5) == "decided"
    failed = Step("error", KeyError("of the step"))
    future = submitted(monkeypatch, failed)
    failed.set_result(None)
    with pytest.raises(KeyError, match="of the step"):
        future.result(timeout=5)


@pytest.mark.parametrize("here", [True, False])
def test_a_cancelled_step_is_cancelled_on_both_sides(monkeypatch: pytest.MonkeyPatch, here: bool) -> None:
    sent = Step("cancelled")
    future = submitted(monkeypatch, sent)
    assert (future if here else sent).cancel()
    assert sent.cancelled()
    with pytest.raises(CancelledError):
        future.result(timeout=5)
