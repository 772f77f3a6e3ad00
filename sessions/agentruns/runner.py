"""Carries out a run of a model: its jobs run in threads of one process and can be stopped and resumed.

Resuming a run means doing the jobs that have not ended: jobs not begun, jobs that halted for a reason other
than the solver, and jobs whose process died. Attempts that were begun are continued (decision 75).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gistpoint.core.agents.loop import AnnouncedRequest, ModelWork, TerminationReason, UnderWay, WorkEnd
from gistpoint.core.agents.scaffolds import Scaffold
from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.agents.static import StaticRefusedError, require_fitting
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import Paused
from gistpoint.core.attempts.harness import TaskJudge
from gistpoint.core.attempts.identity import MODEL, PERSON, Enrolment, Role
from gistpoint.core.attempts.parts import Ending
from gistpoint.core.attempts.reasons import SCAFFOLD_INTERRUPTED, EndReason, PauseReason
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.errors import AttemptError, CancelledError, SandboxUnavailableError, TaskError, UserError
from gistpoint.core.estimates import Estimate
from gistpoint.core.ports import ChatModel, TimeSource
from gistpoint.core.running import CancelToken, RunContext
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.agentruns.bounds import Acceptance, Purse
from gistpoint.sessions.agentruns.control import asker_of, has_person
from gistpoint.sessions.agentruns.job_attempts import is_of_job, settings_of, solver_of, unrecorded_attempts
from gistpoint.sessions.agentruns.jobs import (
    HANDED_OVER,
    AgentJob,
    JobAsked,
    JobAttempt,
    JobEnded,
    JobHalted,
    JobLost,
    JobOperation,
    JobState,
)
from gistpoint.sessions.agentruns.killed_requests import unanswered_ms
from gistpoint.sessions.agentruns.scaffolding import ToolServer, seated, serves_nothing
from gistpoint.sessions.agentruns.settling import Settler
from gistpoint.sessions.agentruns.store import AgentRun
from gistpoint.sessions.attempts import AttemptStore, OpenAttempt
from gistpoint.sessions.journal import JOURNAL, first_event, read_journal

GRACE_S = 10.0
"""The seconds that requests and test runs may take to finish once the run is stopped."""
_BEAT_S = 5.0
_TICK_S = 0.1
_INTERRUPTED = "The scaffold was interrupted and can't continue."
"""The text of an interrupted scaffold's end; older journals contain it without the code."""
_TAKEN = "A person has taken it over and has not given it back yet."
_LAST_S = 5.0
"""The seconds that cancelled jobs may take to close their journals."""


@dataclass(frozen=True, slots=True)
class AgentPorts:
    """The ports of a run."""

    attempts: AttemptStore
    clock: TimeSource
    task: Callable[[str], Task]
    """Finds a task by its id. Raises `TaskError` if there is none."""
    judge: Callable[[Task], TaskJudge]
    """Returns the judge of a task. Raises `SandboxUnavailableError` if no sandbox works."""
    model: Callable[[AgentSettings], ChatModel]
    """Returns the model with the sampling of these settings."""
    as_given: Callable[[Task], Task] = lambda task: task
    """Returns the task with the settings of this run."""
    role: Callable[[Task, Role], Role] = lambda task, role: role
    """Returns the role of an attempt at a task: the requested one, but never baseline at the public demo."""
    scaffold: Scaffold | None = None
    """The scaffold that works on the attempts; None for gistpoint's own loop."""
    serve_tools: ToolServer = serves_nothing
    """Serves an attempt's tools over MCP to a scaffold."""
    attempt_id: str = ""
    """The id that another machine chose for a new attempt; empty to make one."""
    confirm: Callable[[AttemptStore, Task, str, RunContext], object] = (
        lambda attempts, task, attempt_id, run: None
    )
    """Confirms the pass of an attempt that has ended, in its journal.

    Raises `CancelledError` when cancelled.
    """

    def reopened(self, state: JobState) -> OpenAttempt:
        """Return the attempt of a job, open for writing.

        Raises `AttemptError` if the attempt can't be continued, or belongs to another job or to a person,
        `TaskError` if its task is missing, and `SandboxUnavailableError` if no sandbox works.
        """
        task = self.task(state.job.task)
        if not is_of_job(first_event(self.attempts.folder(state.attempt) / JOURNAL), state.job):
            raise AttemptError(f"The attempt {state.attempt} belongs to another job, or to a person.")
        killed_ms = unanswered_ms(read_journal(self.attempts.folder(state.attempt) / JOURNAL).events)
        opened = self.attempts.resume(state.attempt, task, self.judge(task))
        with _closed_if_it_fails(opened):
            if killed_ms and not opened.attempt.state.ended:
                opened.attempt.append(Paused(PauseReason.ENDPOINT_WAIT, thinking_ms=killed_ms))
                opened.attempt.resume()
        return opened

    def settler(self, run: AgentRun) -> Settler:
        """Return the object that decides jobs of a run."""
        return Settler(run, self.attempts, self.reopened, self.clock.utc_ms)


@dataclass(frozen=True, slots=True)
class JobReport:
    """A job whose state has changed."""

    job: JobState
    state: AttemptState | None = None
    """The state of the job's attempt; None if there is none."""


class AgentRunner:
    """Does the remaining jobs of a run."""

    def __init__(
        self,
        run: AgentRun,
        ports: AgentPorts,
        *,
        at_once: int = 4,
        max_cost_usd: float | None = None,
        grace_s: float = GRACE_S,
        on_job: Callable[[JobReport], None] = lambda report: None,
    ) -> None:
        """`on_job` is called in the thread of a job when its state changes."""
        self.run = run
        self._ports = ports
        self._at_once = at_once
        self._grace_s = grace_s
        self._on_job = on_job
        self._lock = threading.Lock()
        self._todo: Iterator[JobState] = iter(())
        self._open: dict[str, Attempt] = {}
        self._busy: set[str] = set()
        """The keys of the jobs that threads are doing."""
        self.purse = Purse(max_cost_usd)
        self.acceptance = Acceptance()
        self._cancel = CancelToken()
        self._stopped_at: float | None = None
        self._beat_at = 0.0
        self.states: dict[str, AttemptState] = {}
        """The last known states of the attempts that were open in this process, by job key."""
        self._bug: Exception | None = None
        self.stopped_by = ""
        """The reason why the whole run stopped, as a sentence; empty if it was not stopped."""
        self.interrupted = False
        """Whether Ctrl+C was pressed."""

    def work(self, tick: Callable[[], None] = lambda: None) -> None:
        """Do the remaining jobs until all have ended or halted, or the run is stopped.

        `tick` is called several times a second. The first Ctrl+C stops the run, the second cancels it. Raises
        `AgentRunError` while another process works on the run, and an unexpected exception of a job's thread
        once the other threads have stopped.
        """
        with self.run.held(at_work=True):
            for operation in unrecorded_attempts(self.run, self._ports.attempts.root):
                self.note(operation)
            todo = self._ports.settler(self.run).carry_out()
            self._count_costs()
            self._todo = iter(todo)
            if not self.run.settings.host:
                self.acceptance.accept()
            threads = [
                threading.Thread(target=self._work, name=f"agent-job-{number}", daemon=True)
                for number in range(min(self._at_once, len(todo)))
            ]
            for thread in threads:
                thread.start()
            self._wait_for(threads, tick)
        if self._bug is not None:
            raise self._bug

    def stop(self, why: str = "") -> None:
        """Begin no more jobs and send no more requests. Work under way has `grace_s` seconds to finish."""
        with self._lock:
            self.stopped_by = self.stopped_by or why
            if self._stopped_at is None:
                self._stopped_at = time.monotonic()

    def cancel(self) -> None:
        """Stop at once: requests are abandoned, but a submission whose tests are running still counts."""
        self.stop()
        self._cancel.cancel()

    @property
    def stopping(self) -> bool:
        """Whether the run was stopped."""
        return self._stopped_at is not None

    @property
    def cost_usd(self) -> float:
        """The US dollars spent, or reserved for requests under way."""
        return self.purse.total_usd

    # The main thread

    def _wait_for(self, threads: list[threading.Thread], tick: Callable[[], None]) -> None:
        """Wait until the jobs' threads end, or until `_LAST_S` seconds after they were cancelled."""
        ends_at = float("inf")
        while (alive := _alive(threads)) and time.monotonic() < ends_at:
            try:
                alive[0].join(_TICK_S)
                self._beat()
                self._obey()
                if self._cancel.cancelled:
                    ends_at = min(ends_at, time.monotonic() + _LAST_S)
                tick()
            except KeyboardInterrupt:
                self.interrupted = True
                if self.stopping:
                    self.cancel()
                else:
                    self.stop("It was stopped at your request.")
        tick()

    def _obey(self) -> None:
        """Stop if another program has requested it, and cancel what still runs after `grace_s` seconds."""
        if self.run.stop_asked:
            self.stop("It was asked to stop.")
        if self._stopped_at is not None and time.monotonic() > self._stopped_at + self._grace_s:
            self.cancel()

    def _beat(self) -> None:
        """Write a heartbeat into each attempt whose tool is running; during replies, the loop does this."""
        if time.monotonic() < self._beat_at:
            return
        self._beat_at = time.monotonic() + _BEAT_S
        with self._lock:
            attempts = list(self._open.values())
        for attempt in attempts:
            try:
                if attempt.state.pending is not None:
                    attempt.heartbeat()
            except OSError as error:
                self.stop(_disk(error))

    def _count_costs(self) -> None:
        for state in self.run.jobs.values():
            self.pay(state.job, AttemptState())
            if state.attempt:
                with suppress(UserError):
                    self.pay(state.job, self._ports.attempts.summary(state.attempt).state)

    # The threads of jobs

    def _work(self) -> None:
        while self.acceptance.awaited(lambda: self.stopping):
            state = self._next()
            if state is None:
                self.acceptance.accept()
                return
            try:
                self._do(state)
            except OSError as error:
                self.stop(_disk(error))
            except Exception as error:
                self._bug = error
                self.stop("gistpoint itself failed.")
            finally:
                with self._lock:
                    self._busy.discard(state.job.key)

    def _next(self) -> JobState | None:
        """Return the next remaining job, or else one whose attempt was handed back; None if none is left."""
        with self._lock:
            state = next(self._todo, None) or next(filter(self._given_back, self.run.left), None)
            if state is not None:
                self._busy.add(state.job.key)
            return state

    def _given_back(self, state: JobState) -> bool:
        if state.problem != HANDED_OVER or state.job.key in self._busy:
            return False
        with suppress(UserError):
            return not has_person(self._ports.attempts.summary(state.attempt).state)
        return False

    def _do(self, state: JobState) -> None:
        job = state.job
        settings = settings_of(self.run, job)
        try:
            if state.attempt and has_person(self._ports.attempts.summary(state.attempt).state):
                self._halted(job, HANDED_OVER, _TAKEN)
                return
            opened = self._opened(state, settings)
        except SandboxUnavailableError as error:
            self._halted(job, "sandbox", str(error))
            self.stop(str(error))
        except StaticRefusedError as error:
            self.note(JobEnded(job=job.key, reason="static_refused", message=str(error)))
            self.report(job)
        except TaskError as error:
            self._halted(job, "task", str(error))
        except AttemptError as error:
            self._halted(job, "attempt", str(error))
        except UserError as error:
            self._halted(job, "refused", str(error))
        else:
            with self._held_open(job, opened) as attempt:
                self._let_work(job, attempt, settings)
            self._confirm(attempt.state)

    def _opened(self, state: JobState, settings: AgentSettings) -> OpenAttempt:
        """Begin or resume a job's attempt, and record its id in the run.

        Raises `AttemptError` if the attempt belongs to another job or to a person.
        """
        ports, job = self._ports, state.job
        opened = ports.reopened(state) if state.attempt else self._begun(job, settings)
        with _closed_if_it_fails(opened):
            is_of_scaffold = bool(state.attempt) and ports.scaffold is not None
            is_abandoned = is_of_scaffold and self._ended_interrupted(job, opened)
        if is_abandoned:
            opened = self._begun(job, settings)
        with _closed_if_it_fails(opened):
            self.note(JobAttempt(job=job.key, attempt=opened.attempt.state.attempt_id))
        return opened

    def _begun(self, job: AgentJob, settings: AgentSettings) -> OpenAttempt:
        ports = self._ports
        task = ports.as_given(ports.task(job.task))
        if settings.setting == "static":
            require_fitting(task, settings)
        judge = ports.judge(task)
        enrolment = Enrolment(
            actor=MODEL,
            role=ports.role(task, Role(self.run.settings.role)),
            solver=solver_of(self.run, job),
        )
        return ports.attempts.start(
            task,
            judge,
            enrolment,
            budgets=self.run.settings.budgets(task, judge),
            attempt_id=ports.attempt_id,
        )

    def _ended_interrupted(self, job: AgentJob, opened: OpenAttempt) -> bool:
        """End an attempt that a scaffold left unfinished, so that another can begin; return whether it did.

        A scaffold keeps its conversation in its own process, so no other process can continue it (decision
        153).
        """
        attempt = opened.attempt
        attempt.finish_pending(run=RunContext(self._cancel))
        if not attempt.state.ended and attempt.state.turns:
            attempt.end(EndReason.INFRASTRUCTURE, _INTERRUPTED, code=SCAFFOLD_INTERRUPTED)
        state = attempt.state
        # The process that ended the attempt may have died before it recorded the loss in the run.
        if not _is_interruption(state.ending):
            return False
        opened.close()
        usage = state.spent.usage
        self.note(
            JobLost(
                job=job.key,
                tokens=usage.tokens,
                cost_usd=usage.cost_usd,
                abandoned=state.attempt_id,
                abandoned_s=state.clock.total / 1000,
            )
        )
        return True

    @contextmanager
    def _held_open(self, job: AgentJob, opened: OpenAttempt) -> Iterator[Attempt]:
        attempt = opened.attempt

        def changed(event: object, state: AttemptState) -> None:
            self.states[job.key] = state

        attempt.subscribe(changed)
        self.states[job.key] = attempt.state
        with self._lock:
            self._open[job.key] = attempt
        try:
            yield attempt
        finally:
            with self._lock:
                del self._open[job.key]
            opened.close()

    def _let_work(self, job: AgentJob, attempt: Attempt, settings: AgentSettings) -> None:
        asked = _Requests(self, job, attempt, self._ports.attempts.folder(attempt.state.attempt_id))
        self.report(job)
        end: WorkEnd | None = None
        try:
            while not has_person(attempt.state):
                end = self._work_on(
                    ModelWork(
                        attempt,
                        self._ports.model(settings),
                        settings,
                        may_ask=asked.may_ask,
                        announce=asked.announce,
                        stop=asked.stop,
                        on_turn=asked.on_turn,
                        run=RunContext(self._cancel),
                    )
                )
                self._lost(job, end)
                asker = asker_of(asked.folder) if end.reason is TerminationReason.STOPPED else None
                if asker is not None:
                    with suppress(AttemptError):  # the attempt has reached its time limit
                        attempt.hand_over(PERSON, by=asker)
                # If none of these is true, the request to stop was withdrawn, and the work continues.
                elif end.reason is not TerminationReason.STOPPED or self.stopping or asked.failed():
                    break
        except CancelledError:
            self.pay(job, attempt.state)
        else:
            self._conclude(job, attempt.state, end, failed=asked.failed())

    def _work_on(self, work: ModelWork) -> WorkEnd:
        """Let the model work on an attempt in gistpoint's own loop, or in a scaffold's."""
        ports = self._ports
        if ports.scaffold is None:
            return work.done()
        folder = ports.attempts.folder(work.attempt.state.attempt_id)
        return seated(ports.scaffold, work, folder, self.run.settings.model, ports.serve_tools)

    def _confirm(self, state: AttemptState) -> None:
        """Confirm the pass of an attempt that has ended, unless the run is being stopped."""
        if state.ended and not self.stopping:
            with suppress(CancelledError):
                ports = self._ports
                ports.confirm(
                    ports.attempts,
                    ports.task(state.header.task_id),
                    state.attempt_id,
                    RunContext(self._cancel),
                )

    def _lost(self, job: AgentJob, end: WorkEnd) -> None:
        """Record the cost of replies that are not in the journal."""
        seconds = round(end.lost_s, 3)
        if end.lost.tokens or seconds >= 1:
            lost = JobLost(job=job.key, tokens=end.lost.tokens, cost_usd=end.lost.cost_usd, seconds=seconds)
            self.note(lost)

    def _conclude(self, job: AgentJob, state: AttemptState, end: WorkEnd | None, *, failed: bool) -> None:
        """Record how work on a job's attempt ended; nothing is recorded if it was stopped."""
        self.pay(job, state)
        if state.ending is not None:
            self.note(JobEnded(job=job.key, reason=state.ending.reason))
        elif end is None or has_person(state):
            self._halted(job, HANDED_OVER, _TAKEN)
        elif failed:
            self._halted(job, "infrastructure", state.submissions[-1].reason)
        elif end.reason is TerminationReason.HALTED:
            self._halted(job, end.problem, end.message)
            if end.stops_run:
                self.stop(end.message)
            else:
                self.acceptance.accept()
        elif end.reason is TerminationReason.OVER_COST:
            self._halted(job, end.reason.value, "Its next request might exceed the run's cost limit.")
        self.report(job)

    def pay(self, job: AgentJob, state: AttemptState, reserved_usd: float = 0.0) -> None:
        """Record the cost of a job so far, and the amount still reserved for its requests."""
        lost = self.run.jobs[job.key].lost_usd or 0.0
        self.purse.spent(job.key, (state.spent.usage.cost_usd or 0.0) + lost, reserved_usd)

    def _halted(self, job: AgentJob, problem: str, message: str) -> None:
        self.note(JobHalted(job=job.key, problem=problem, message=message))
        self.report(job)

    @property
    def clock(self) -> TimeSource:
        """The clock of the run and its journals."""
        return self._ports.clock

    def note(self, operation: JobOperation) -> None:
        """Write an operation with the current time. Raises `OSError` if it can't be written."""
        self.run.append([msgspec.structs.replace(operation, utc_ms=self._ports.clock.utc_ms())])

    def report(self, job: AgentJob) -> None:
        """Report the state of a job."""
        self._on_job(JobReport(self.run.jobs[job.key], self.states.get(job.key)))


@dataclass
class _Requests:
    """Answers the questions of a job's loop about its requests, and records the loop's reports."""

    runner: AgentRunner
    job: AgentJob
    attempt: Attempt
    folder: Path
    under_way: bool = False
    """Whether a request is under way, which may still be answered after the run was stopped."""
    idle_at: float = field(default_factory=time.monotonic)
    """The last known time without a request under way: before the first, or in a wait to send it again."""

    def __post_init__(self) -> None:
        self._before = len(self.attempt.state.submissions)
        self._turns = len(self.attempt.state.turns)
        self._sent_ms: dict[int, int] = {}
        """The time when each of a program's requests was sent, by number."""

    def failed(self) -> bool:
        """Return whether a submission of this process could not be judged."""
        return any(not submission.counts for submission in self.attempt.state.submissions[self._before :])

    def stop(self) -> bool:
        """Return whether the loop should stop, even during a request."""
        is_paused = self.attempt.state.pause is not None
        if self.under_way and not is_paused:
            self.runner.acceptance.pending(time.monotonic() - self.idle_at)
        else:
            self.idle_at = time.monotonic()
        if self.failed() or asker_of(self.folder) is not None:
            return True
        return self.runner.stopping and (not self.under_way or is_paused)

    def may_ask(self, estimate: Estimate) -> bool:
        """Reserve the possible cost of the requests; return False if that would exceed the limit."""
        allowed = self.runner.purse.may_ask(self.job.key, estimate.cost_usd)
        self.under_way = self.under_way or allowed
        return allowed

    def announce(self, request: AnnouncedRequest) -> None:
        """Record a request before it is sent, so that the next process knows its cost if this one dies."""
        if not self.runner.run.settings.host:
            return
        asked = JobAsked(
            job=self.job.key,
            turn=request.turn,
            request=request.number,
            tokens=request.usage.tokens,
            cost_usd=request.usage.cost_usd,
            failed_tokens=request.failed.tokens,
            failed_usd=request.failed.cost_usd,
            failed_s=round(request.failed_s, 3),
            sent_ms=self._sent_at_ms(request),
        )
        self.runner.note(asked)

    def _sent_at_ms(self, request: AnnouncedRequest) -> int:
        """Return when a request was sent; 0 if the request is over without a reply."""
        now = self.runner.clock.mono_ms()
        if not request.usage.tokens:
            self._sent_ms.pop(request.number, None)
            return 0
        return self._sent_ms.setdefault(request.number, now) if request.number else now

    def on_turn(self, state: AttemptState, under_way: UnderWay) -> None:
        """Record the cost of a reply or a failed request, and report the job."""
        if len(state.turns) > self._turns:
            self.runner.acceptance.accept()
        self._turns = len(state.turns)
        self.under_way = under_way.requests > 0
        self.runner.pay(self.job, state, under_way.cost_usd)
        self.runner.report(self.job)


def _is_interruption(ending: Ending | None) -> bool:
    """Return whether an attempt ended because its scaffold was interrupted."""
    if ending is None:
        return False
    return ending.code == SCAFFOLD_INTERRUPTED or (not ending.code and ending.text == _INTERRUPTED)


@contextmanager
def _closed_if_it_fails(opened: OpenAttempt) -> Iterator[None]:
    """Close an attempt if the context raises; otherwise the next process, or job, could not open it."""
    try:
        yield
    except BaseException:
        opened.close()
        raise


def _alive(threads: list[threading.Thread]) -> list[threading.Thread]:
    return [thread for thread in threads if thread.is_alive()]


def _disk(error: OSError) -> str:
    return f"The attempts can't be written: {error.strerror}."
