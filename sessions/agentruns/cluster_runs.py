"""Runs agents on a cluster: sends jobs, and accepts results after verifying them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from gistpoint.core.attempts.identity import new_attempt_id
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import AttemptError, InfrastructureError, TaskError, UserError
from gistpoint.core.kinds.archive import pack_task
from gistpoint.core.orders import (
    ClusterJob,
    ClusterLieError,
    ClusterOutcome,
    ClusterWorker,
    WorkerPool,
    WorkStatus,
)
from gistpoint.core.requests import IsolationChoice
from gistpoint.core.tasks.model import Task
from gistpoint.core.unfinished import scratch_folder
from gistpoint.sessions.agentruns.bounds import Purse
from gistpoint.sessions.agentruns.cluster_work import AttemptToMake, ServicesFactory, WorkTools, attempted
from gistpoint.sessions.agentruns.control import has_person
from gistpoint.sessions.agentruns.elsewhere import AttemptOrder, DeliveredAttempt, DeliveryError, require_true
from gistpoint.sessions.agentruns.job_attempts import unrecorded_attempts
from gistpoint.sessions.agentruns.jobs import (
    HANDED_OVER,
    JobEnded,
    JobHalted,
    JobOperation,
    JobPlace,
    JobState,
)
from gistpoint.sessions.agentruns.runner import AgentPorts, JobReport
from gistpoint.sessions.agentruns.store import AgentRun
from gistpoint.sessions.journal import JOURNAL

TOO_LARGE, FAILED, NOBODY = "too_large", "failed", "no_worker"
"""The problems of halted jobs: the journal is too large to send; gistpoint failed; no worker could do it."""


def work_tools(isolation: IsolationChoice, *, base_url: str = "", tests_at_once: int = 0) -> WorkTools:
    """Return the settings for the workers.

    Consent given earlier applies only to this machine and is not sent. Raises `UserError` if `base_url` has a
    name, a password or a query, which may be secret.
    """
    parts = urlsplit(base_url)
    if parts.username or parts.password or parts.query:
        raise UserError(
            "An address with a name, a password or a query is not sent to a cluster.",
            hint="Leave --base-url out, and set OPENAI_BASE_URL on each worker instead.",
        )
    return WorkTools(
        sandbox=isolation.sandbox or "",
        consented=isolation.allow_unsandboxed,
        tests_at_once=tests_at_once,
        base_url=base_url,
    )


def packed(task: Task) -> bytes:
    """Return the archive of a task with its answer, which judging needs."""
    with scratch_folder("cluster") as folder:
        archive = Path(folder) / "task.tar.zst"
        pack_task(task.folder, archive)
        return archive.read_bytes()


class ClusterRunner:
    """Does the remaining jobs of a run on a cluster, as `AgentRunner` does on this machine.

    The result of a worker is verified, and stored under the id in the order.
    """

    def __init__(
        self,
        run: AgentRun,
        ports: AgentPorts,
        workers: WorkerPool,
        tools: WorkTools,
        build: ServicesFactory,
        *,
        max_cost_usd: float | None = None,
        on_job: Callable[[JobReport], None] = lambda report: None,
    ) -> None:
        """`build` is the function with which a worker makes its services; it is sent by name.

        `on_job` is called with the report on each job.
        """
        self.run = run
        self._ports = ports
        self._workers = workers
        self._tools = tools
        self._build = build
        self._on_job = on_job
        self._purse = Purse(max_cost_usd)
        self._orders: dict[str, AttemptOrder] = {}
        self._tasks: dict[str, Task] = {}
        """The tasks that were read and verified, by id."""
        self.states: dict[str, AttemptState] = {}
        """The states of the attempts that this process has accepted, by job key."""
        self.stopped_by = ""
        """The reason why the whole run stopped, as a sentence; empty if it was not stopped."""

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl+C was pressed."""
        return self._workers.interrupts > 0

    def work(self, tick: Callable[[], None] = lambda: None) -> None:
        """Do the remaining jobs until all have ended or halted, or the run is stopped.

        `tick` is called several times a second. Raises `AgentRunError` while another process works on the
        run.
        """

        def check_stop() -> None:
            if self.run.stop_asked and not self._workers.stopping:
                self._stop("It was asked to stop.")
            tick()

        with self.run.held(at_work=True):
            self._note(*unrecorded_attempts(self.run, self._ports.attempts.root))
            self._ports.settler(self.run).carry_out()
            for state in self.run.jobs.values():
                self._pay(state)
            try:
                work = partial(attempted, build=self._build)
                self._workers.carry_out(work, self._jobs(), self._checked, self._record, check_stop)
            except InfrastructureError as error:
                self._stop(str(error))
        if self.interrupted:
            self._stop("It was stopped at your request.")

    def _stop(self, why: str) -> None:
        self.stopped_by = self.stopped_by or why
        if not self._workers.stopping:
            self._workers.stop()

    # Jobs to send

    def _jobs(self) -> Iterator[ClusterJob]:
        """Yield the remaining jobs that another machine can do; halt those with a faulty task or attempt."""
        for state in [state for state in self.run.left if state.settled is None]:
            try:
                order = self._order(state)
            except TaskError as error:
                self._halt(state, "task", str(error))
            except (AttemptError, OSError) as error:
                self._halt(state, "attempt", str(error))
            else:
                if order is not None:
                    yield order

    def _order(self, state: JobState) -> ClusterJob | None:
        """Return a job to send; None if its attempt has ended, or if the job was halted here.

        It is halted if a person has taken the attempt over, or if the journal is too large to be sent.

        Raises `AttemptError` if its attempt is damaged or open in another process.
        """
        job, journal, cost = state.job, b"", 0.0
        task = self._tasks.get(job.task) or self._tasks.setdefault(job.task, self._ports.task(job.task))
        if state.attempt:
            summary = self._ports.attempts.summary(state.attempt)
            if summary.state.ending is not None:
                self._note(JobEnded(job=job.key, reason=summary.state.ending.reason))
                self._report(state, summary.state)
                return None
            if has_person(summary.state):
                self._halt(state, HANDED_OVER, "A person has taken it over and has not given it back yet.")
                return None
            cost = summary.state.spent.usage.cost_usd or 0.0
            journal = (self._ports.attempts.folder(state.attempt) / JOURNAL).read_bytes()
            if summary.problem or summary.open:
                raise AttemptError(
                    summary.problem or f"The attempt {state.attempt} is open in another process."
                )
            if len(journal) > self._tools.most_bytes:
                self._halt(
                    state, TOO_LARGE, f"Its journal has {len(journal):,} bytes: continue without a cluster."
                )
                return None
        order = AttemptOrder(
            run=self.run.name,
            created_utc_ms=self.run.document.created_utc_ms,
            settings=self.run.settings,
            job=job,
            attempt=state.attempt or new_attempt_id(self._ports.clock.utc_ms()),
            journal=journal,
            most_usd=None if self._purse.most_usd is None else cost,
        )
        self._orders[job.key] = order
        label = f"task {job.task[:12]}, repeat {job.repeat}"
        return ClusterJob(job.key, label, partial(self._encoded_order, order), lambda: packed(task))

    def _encoded_order(self, order: AttemptOrder) -> bytes:
        """Return an encoded order, with its share of the remaining cost of the run."""
        if order.most_usd is not None and self._purse.most_usd is not None:
            self._purse.may_ask(order.job.key, 0.0)
            left = max(0.0, self._purse.most_usd - self._purse.total_usd)
            share = left / max(1, self._workers.capacity - len(self._workers.sent))
            self._purse.may_ask(order.job.key, share * 0.999)  # so that rounding never exceeds the limit
            order = msgspec.structs.replace(order, most_usd=order.most_usd + share)
        return msgspec.json.encode(AttemptToMake(tools=self._tools, order=order))

    # The results

    def _checked(self, job: ClusterJob, result: bytes, worker: ClusterWorker) -> DeliveredAttempt:
        order = self._orders[job.key]
        try:
            delivered = msgspec.json.decode(result, type=decodable(DeliveredAttempt))
            require_true(delivered, order, self.run, self._tasks[order.job.task])
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ClusterLieError(f"its answer is not a result ({str(error)[:200]})") from error
        except DeliveryError as error:
            raise ClusterLieError(error.message) from error
        return delivered

    def _record(self, outcome: ClusterOutcome) -> None:
        state, order = self.run.jobs[outcome.job.key], self._orders.pop(outcome.job.key)
        try:
            match outcome.kind:
                case WorkStatus.DONE:
                    self._take_in(order, outcome.value, outcome.worker)
                case WorkStatus.TOO_LARGE:
                    self._halt(state, TOO_LARGE, outcome.message)
                case WorkStatus.FAILED:
                    self._halt(state, FAILED, f"gistpoint failed on the worker: {outcome.message}")
                case None:
                    self._halt(state, NOBODY, outcome.message)
        except AttemptError as error:
            self._halt(state, "attempt", str(error))
        except OSError as error:
            self._stop(f"The attempts can't be written: {error.strerror}.")
        self._pay(self.run.jobs[outcome.job.key])

    def _take_in(
        self, order: AttemptOrder, delivered: DeliveredAttempt, worker: ClusterWorker | None
    ) -> None:
        attempts, key = self._ports.attempts, order.job.key
        if delivered.journal:
            attempts.adopt(order.attempt, delivered.journal)
        place = (
            [JobPlace(job=key, worker=worker.name, clock_ms=worker.clock_ms)] if worker is not None else []
        )
        self._note(*delivered.operations(order), *place)
        state = attempts.summary(order.attempt).state if delivered.journal else AttemptState()
        self._report(self.run.jobs[key], state)

    def _pay(self, state: JobState) -> None:
        """Record the cost of a job so far."""
        cost = state.lost_usd or 0.0
        if self._purse.most_usd is not None and state.attempt:
            with suppress(UserError):
                cost += self._ports.attempts.summary(state.attempt).state.spent.usage.cost_usd or 0.0
        self._purse.spent(state.job.key, cost)

    def _halt(self, state: JobState, problem: str, message: str) -> None:
        self._note(JobHalted(job=state.job.key, problem=problem, message=message))
        self._report(state, None)

    def _note(self, *operations: JobOperation) -> None:
        now = self._ports.clock.utc_ms()
        self.run.append([msgspec.structs.replace(operation, utc_ms=now) for operation in operations])

    def _report(self, state: JobState, attempt: AttemptState | None) -> None:
        key = state.job.key
        if attempt is not None:
            self.states[key] = attempt
        self._on_job(JobReport(self.run.jobs[key], attempt))
