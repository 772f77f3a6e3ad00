"""A cluster worker's execution of orders, and access to its results, without a cluster."""

from __future__ import annotations

import json
import platform
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from agent_runs import LOOK
from builders import build_task
from scripted_endpoint import Answer, completion, endpoint

from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.attempts.identity import new_attempt_id
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.orders import (
    MOST_BYTES,
    WorkerIntroduction,
    WorkOrder,
    WorkReply,
    WorkStatus,
    stop_jobs,
)
from gistpoint.core.requests import IsolationChoice
from gistpoint.core.tasks.model import Task
from gistpoint.object_graph import build_worker_services
from gistpoint.sandbox.cluster import open_to_all
from gistpoint.sessions.agentruns.cluster_runs import packed, work_tools
from gistpoint.sessions.agentruns.cluster_work import AttemptToMake, WorkTools, attempted
from gistpoint.sessions.agentruns.elsewhere import AttemptOrder, DeliveredAttempt, DeliveryError, require_true
from gistpoint.sessions.agentruns.jobs import JobStatus
from gistpoint.sessions.agentruns.store import AgentRunStore, RunSettings, job_of
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.journal import JOURNAL

SETTINGS = RunSettings(model="builtin:searcher", host="", agent=AgentSettings())


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def task(home: Path) -> Task:
    """A task that is not in this home's store."""
    return build_task(home / "elsewhere")


def order_for(
    task: Task, attempt: str = "", journal: bytes = b"", settings: RunSettings = SETTINGS
) -> AttemptOrder:
    attempt = attempt or new_attempt_id(SystemTime().utc_ms())
    job = job_of(task.id, settings, 1)
    return AttemptOrder(
        run="r", created_utc_ms=1, settings=settings, job=job, attempt=attempt, journal=journal
    )


def done(
    order: AttemptOrder,
    archive: bytes = b"",
    *,
    start: str = "s",
    most_bytes: int = MOST_BYTES,
    base_url: str = "",
) -> WorkReply:
    """Return a worker's reply to the order."""
    tools = WorkTools(consented=True, most_bytes=most_bytes, base_url=base_url)
    about = AttemptToMake(tools=tools, order=order)
    sent = WorkOrder(
        start=start,
        job=order.job.key,
        sender=WorkerIntroduction(),
        about=msgspec.Raw(msgspec.json.encode(about)),
    )
    return msgspec.json.decode(
        attempted(msgspec.json.encode(sent), archive, build=build_worker_services), type=WorkReply
    )


def test_a_worker_asks_for_a_task_and_then_has_it(task: Task) -> None:
    assert done(order_for(task)).kind is WorkStatus.NEEDS_TASK
    assert done(order_for(task), packed(task)).kind is WorkStatus.DONE
    assert done(order_for(task)).kind is WorkStatus.DONE
    stop_jobs("stopped", at_once=False)
    assert done(order_for(task), start="stopped").kind is WorkStatus.STOPPED


def test_what_is_too_large_stays_on_the_worker_and_is_named(task: Task) -> None:
    order = order_for(task)
    reply = done(order, packed(task), most_bytes=100)
    kept = Locations.of_user().attempts / order.attempt
    assert reply.kind is WorkStatus.TOO_LARGE
    assert f"It stays on {platform.node()}, in {kept}." in reply.message
    assert (kept / JOURNAL).stat().st_size > 100


def test_an_attempt_is_taken_in_once_and_only_goes_on(task: Task, home: Path) -> None:
    order = order_for(task)
    delivered = msgspec.json.decode(done(order, packed(task)).result, type=DeliveredAttempt)
    run = AgentRunStore(home / "runs").open_or_create("r", SETTINGS, 1, "test")
    require_true(delivered, order, run, task)
    store, lines = (
        AttemptStore(home / "attempts", SystemTime(), "test"),
        delivered.journal.splitlines(keepends=True),
    )
    store.adopt(order.attempt, b"".join(lines[:3]))
    store.adopt(order.attempt, delivered.journal)
    store.adopt(order.attempt, delivered.journal)
    assert store.summary(order.attempt).state.ending is not None
    with pytest.raises(AttemptError, match="does not continue the one on this machine"):
        store.adopt(order.attempt, b"".join(lines[:3]))
    other = order_for(task, order.attempt)
    with pytest.raises(AttemptError, match="does not continue"):
        store.adopt(order.attempt, msgspec.json.decode(done(other).result, type=DeliveredAttempt).journal)
    with pytest.raises(AttemptError, match="is not complete"):
        store.adopt(order.attempt, delivered.journal + b"{")


def test_a_stopped_attempt_comes_back_as_it_is_and_goes_on_elsewhere(
    task: Task, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    let = threading.Event()

    def step(request: object, headers: object) -> Answer:
        if len(served.requests) == 3:
            stop_jobs("stopping", at_once=True)
            return replace(completion(None, LOOK), wait=let)  # the request is abandoned before its reply
        return completion(None, LOOK) if len(served.requests) < 5 else completion("I think that it is fine.")

    store = AttemptStore(home / "attempts", SystemTime(), "test")
    with endpoint(step) as served:
        settings = RunSettings(model="m", host=served.url.split("/")[2], agent=AgentSettings())
        run = AgentRunStore(home / "runs").open_or_create("r", settings, 1, "test")
        first = order_for(task, settings=settings)
        reply = done(first, packed(task), start="stopping", base_url=served.url)
        let.set()
        stopped = msgspec.json.decode(reply.result, type=DeliveredAttempt)
        assert stopped.status is JobStatus.BEGUN
        require_true(stopped, first, run, task)
        store.adopt(first.attempt, stopped.journal)
        assert len(store.summary(first.attempt).state.calls) == 2
        second = order_for(task, first.attempt, stopped.journal, settings)
        ended = msgspec.json.decode(done(second, base_url=served.url).result, type=DeliveredAttempt)
    require_true(ended, second, run, task)
    store.adopt(first.attempt, ended.journal)
    state = store.summary(first.attempt).state
    assert state.ending is not None
    assert len(state.calls) == 3


LIES: dict[str, Callable[[DeliveredAttempt], DeliveredAttempt]] = {
    "does not verify": lambda found: replaced(found, found.journal.replace(b'"seq":2', b'"seq":3')),
    "its last line is torn": lambda found: replaced(found, found.journal[:-1]),
    "differs from its journal": lambda found: msgspec.structs.replace(found, problem="solved"),
    "without an attempt": lambda found: replaced(found, b""),
}


def replaced(found: DeliveredAttempt, journal: bytes) -> DeliveredAttempt:
    return msgspec.structs.replace(found, journal=journal)


@pytest.mark.parametrize("why", LIES)
def test_a_result_that_can_not_be_true_is_refused(task: Task, home: Path, why: str) -> None:
    order = order_for(task)
    delivered = msgspec.json.decode(done(order, packed(task)).result, type=DeliveredAttempt)
    run = AgentRunStore(home / "runs").open_or_create("r", SETTINGS, 1, "test")
    with pytest.raises(DeliveryError, match=why):
        require_true(LIES[why](delivered), order, run, task)
    with pytest.raises(DeliveryError, match="does not continue the one that was sent to it"):
        require_true(delivered, order_for(task, order.attempt, b"{}\n"), run, task)


def test_versions_have_to_agree() -> None:
    here = WorkerIntroduction()
    major, minor, patch = here.python.split(".")
    assert WorkerIntroduction(python=f"{major}.{minor}.{patch}1").differs_from(here) == ""
    assert "it has Python 3.1.0, but" in WorkerIntroduction(python="3.1.0").differs_from(here)
    assert "it has gistpoint 9, but" in WorkerIntroduction(gistpoint="9").differs_from(here)


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        ("tcp://127.0.0.1:8786", False),
        ("localhost:8786", False),
        ("tls://far.example:8786", False),
        ("tcp://far.example:8786", True),
        ("far.example:8786", True),
    ],
)
def test_a_connection_that_anybody_can_read_is_warned_about(address: str, warned: bool) -> None:
    assert ("neither encrypted nor protected" in open_to_all(address)) is warned


def test_an_address_with_a_secret_is_not_sent() -> None:

    with pytest.raises(UserError, match="is not sent to a cluster"):
        work_tools(IsolationChoice(), base_url="https://me:secret@far.example/v1")
    assert json.loads(msgspec.json.encode(work_tools(IsolationChoice(), base_url="https://far.example/v1")))
