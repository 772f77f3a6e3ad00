"""Jobs of a run on another machine: the order to that machine, its result, and the checks of the result.

The other machine handles the job as a run of one job in a separate folder. The result is the attempt's
journal. It is stored under the id in the order only if it is complete, belongs to this job, task and
settings, continues the journal that was sent, and ends as the result states (decision 105).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from gistpoint import __version__
from gistpoint.core.agents.static import StaticRefusedError, require_fitting
from gistpoint.core.attempts.events import AttemptStarted, EventData
from gistpoint.core.attempts.identity import MODEL
from gistpoint.core.errors import UserError
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.agentruns.job_attempts import solver_of
from gistpoint.sessions.agentruns.jobs import (
    AgentJob,
    JobAttempt,
    JobEnded,
    JobHalted,
    JobLost,
    JobOperation,
    JobStatus,
)
from gistpoint.sessions.agentruns.runner import AgentPorts, AgentRunner
from gistpoint.sessions.agentruns.store import AgentRun, AgentRunStore, RunSettings
from gistpoint.sessions.attempts import AttemptStore, folded_state
from gistpoint.sessions.journal import JOURNAL, journal_in

_MOST_CHARACTERS = 2_000
"""The longest message from another machine, in characters."""


class AttemptOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The order to do a job on another machine."""

    run: str
    created_utc_ms: int
    settings: RunSettings
    job: AgentJob
    attempt: str
    """The id of the job's attempt, which may be new."""
    journal: bytes = b""
    """The journal of the attempt so far; empty for a new one."""
    most_usd: float | None = None
    """The limit on the cost of the attempt in US dollars."""


class DeliveredAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a job from another machine."""

    status: JobStatus
    problem: str = ""
    message: str = ""
    lost_tokens: int = 0
    lost_usd: float | None = None
    lost_s: float = 0.0
    journal: bytes = b""
    """The journal of the attempt; empty if there was none."""

    def operations(self, order: AttemptOrder) -> list[JobOperation]:
        """Return the operations that record the result in the run, with strings cut to `_MOST_CHARACTERS`."""
        job, found = order.job.key, list[JobOperation]()
        if self.journal:
            found.append(JobAttempt(job=job, attempt=order.attempt))
        if self.lost_tokens or self.lost_usd or self.lost_s:
            found.append(
                JobLost(job=job, tokens=self.lost_tokens, cost_usd=self.lost_usd, seconds=self.lost_s)
            )
        message = self.message[:_MOST_CHARACTERS]
        if self.status is JobStatus.ENDED:
            found.append(JobEnded(job=job, reason=self.problem[:_MOST_CHARACTERS], message=message))
        elif self.status is JobStatus.HALTED:
            found.append(JobHalted(job=job, problem=self.problem[:_MOST_CHARACTERS], message=message))
        return found


class DeliveryError(UserError):
    """A delivered result can't belong to its order; the message gives the reason in a few words."""


class StoppedWorkError(UserError):
    """The machine can't do such jobs; the message gives the reason."""


def carried_out(
    order: AttemptOrder, ports: AgentPorts, folder: Path, check_stop: Callable[[AgentRunner], None]
) -> DeliveredAttempt:
    """Do a job on the machine that received it, and return the result; the attempt is inside `folder`.

    `check_stop` is called several times a second, and may stop the runner. Raises `StoppedWorkError` if
    anything other than `check_stop` stopped the runner, such as a broken sandbox.
    """
    attempts = AttemptStore(folder / "attempts", ports.clock, __version__)
    run = AgentRunStore(folder / "runs").open_or_create(
        order.run, order.settings, order.created_utc_ms, __version__
    )
    run.add([order.job], ports.clock.utc_ms())
    if order.journal:
        attempts.adopt(order.attempt, order.journal)
        run.append([JobAttempt(job=order.job.key, attempt=order.attempt)])
    stopped_by_check = False

    def tick() -> None:
        nonlocal stopped_by_check
        before = runner.stopping
        check_stop(runner)
        stopped_by_check = stopped_by_check or (runner.stopping and not before)

    ports = replace(ports, attempts=attempts, attempt_id=order.attempt)
    runner = AgentRunner(run, ports, at_once=1, max_cost_usd=order.most_usd)
    runner.work(tick)
    if runner.stopping and not stopped_by_check:
        raise StoppedWorkError(runner.stopped_by)
    state = run.jobs[order.job.key]
    path = folder / "attempts" / order.attempt / JOURNAL
    return DeliveredAttempt(
        status=state.status,
        problem=state.problem,
        message=state.message,
        lost_tokens=state.lost_tokens,
        lost_usd=state.lost_usd,
        lost_s=state.lost_s,
        journal=path.read_bytes() if path.is_file() else b"",
    )


def require_true(delivered: DeliveredAttempt, order: AttemptOrder, run: AgentRun, task: Task) -> None:
    """Raise `DeliveryError` if a delivered result can't be the result of the order."""
    if not delivered.journal:
        if order.journal:
            raise DeliveryError("it did not return the journal that was sent to it")
        if delivered.status is JobStatus.ENDED:
            _require_refused(delivered, order, task)
        return
    content = journal_in(delivered.journal)
    if content.fault or content.torn or not content.events:
        raise DeliveryError(f"its journal does not verify: {content.fault or 'its last line is torn'}")
    if not delivered.journal.startswith(order.journal):
        raise DeliveryError("its journal does not continue the one that was sent to it")
    _require_ordered(content.events[0].data, order, run, task)
    state, problem = folded_state(content.events)
    if problem:
        raise DeliveryError(f"its journal can't be read: {problem}")
    ending = "" if state.ending is None else state.ending.reason
    if ending != (delivered.problem if delivered.status is JobStatus.ENDED else ""):
        raise DeliveryError("it reports an end of the attempt that differs from its journal")


def _require_ordered(begun: EventData, order: AttemptOrder, run: AgentRun, task: Task) -> None:
    """Raise `DeliveryError` if an attempt did not begin as ordered."""
    if not isinstance(begun, AttemptStarted) or (begun.actor, begun.attempt_id) != (MODEL, order.attempt):
        raise DeliveryError("its journal is not that of the requested attempt")
    solver = begun.solver or {}
    if solver.get("job") != order.job.key or solver.get("run") != run.name:
        raise DeliveryError("its journal is that of another job")
    # A continued attempt keeps the settings under which it began (decision 50).
    if solver != solver_of(run, order.job) and not order.journal:
        raise DeliveryError("its attempt was made with different settings")
    if (begun.task_id, begun.tree_sha256) != (task.id, task.tree_sha256):
        raise DeliveryError("its attempt was made on content that differs from the task's")


def _require_refused(delivered: DeliveredAttempt, order: AttemptOrder, task: Task) -> None:
    """Raise `DeliveryError` unless a job that ended without an attempt really needs none."""
    try:
        if order.settings.agent.setting == "static":
            require_fitting(task, order.settings.agent)
    except StaticRefusedError:
        return
    raise DeliveryError(f"it reports that the job ended without an attempt ({delivered.problem[:100]})")
