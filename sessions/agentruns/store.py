"""The store of runs: each has a folder with its settings and the operations on its jobs.

`run.toml` holds the common settings of all attempts, without any key. `jobs.jsonl` is an append log
(`core/logs`) of operations, each of them on disk before the run continues; the state of a job is computed
from them. The events of an attempt are only in its own journal (decision 75).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import msgspec

from gistpoint.core.agents import static
from gistpoint.core.agents.scaffolds import OWN, ScaffoldIdentity
from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.attempts.harness import TaskJudge
from gistpoint.core.attempts.identity import Role
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.errors import UserError, did_you_mean
from gistpoint.core.locations import LARGEST_RECORDS, read_toml
from gistpoint.core.logs import (
    AppendLog,
    LogKind,
    is_held,
    read_log,
    replace_file,
    sync_folder,
    take,
    wait_for,
)
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Task

FORMAT, VERSION = "gistpoint.agent_run", 1
RUN_FILE, JOBS_FILE = "run.toml", "jobs.jsonl"
HANDED_OVER = "handed_over"
"""The problem of a halted job whose attempt a person has taken over."""
EXCLUDED = "excluded"
"""The outcome of a decision that keeps a job out of every rate."""
STOPPED, QUEUED = "stopped", "queued"
"""The obstacles of jobs without a problem: the process was stopped or died, or the job was never begun."""
_LOCK, _STOP, _STARTING = "lock", "stop", "starting"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")


class AgentRunError(UserError):
    """A run of an agent can't be found, read or continued."""


_JOBS = LogKind("gistpoint.agent_jobs", error=AgentRunError)


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The common settings of all attempts of a run, without any key."""

    model: str
    host: str
    """The endpoint's host and port, without path, user and query; empty for a solver that needs none."""
    agent: AgentSettings
    role: str = "baseline"
    tool_uses: int | None = None
    """The budget of repairs; None for each task's own. Gists have a budget in their settings."""
    submissions: int | None = None
    gist: dict[str, Any] | None = None
    """Settings of gists that differ from those of their tasks, as `TaskKind.settled` accepts them."""
    scaffold: ScaffoldIdentity | None = None
    """The scaffold that works with the model; None for gistpoint's own loop."""

    @property
    def model_and_api(self) -> str:
        """The model's name, followed by the API in brackets unless that is OpenAI's."""
        api = self.agent.chat_api
        return self.model if api == "openai" else f"{self.model} ({api})"

    def budgets(self, task: Task, judge: TaskJudge) -> Budgets | None:
        """Return the budgets of an attempt under these settings; None for those of the task."""
        if self.agent.setting == "static":
            return static.BUDGETS
        if self.tool_uses is None or judge.blank.hands_in_once:
            return None
        return Budgets.of(self.tool_uses, self.submissions, task.budgets.time_limit_s)

    @property
    def digest(self) -> str:
        """The SHA-256 hash of the settings; without a scaffold, the same as in versions without scaffolds."""
        values = msgspec.to_builtins(self)
        if self.scaffold is None:
            del values["scaffold"]
        return sha256_of_json(values)

    @property
    def framework(self) -> str:
        """The name, in tables, of the agent that works with the model."""
        return OWN if self.scaffold is None else self.scaffold.name


class AgentRunDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `run.toml`."""

    format: str = FORMAT
    version: int = VERSION
    name: str
    created_utc_ms: int
    gistpoint: str
    max_cost_usd: float | None = None
    """The limit on the cost of all attempts together, in US dollars."""
    settings: RunSettings


class AgentJob(msgspec.Struct, frozen=True):
    """One attempt to make: its task and the number of the repeat, counted from 1."""

    key: str
    task: str
    repeat: int = 1


def job_of(task_id: str, settings: RunSettings, repeat: int) -> AgentJob:
    """Return the job for a repeat of a task; its key, a hash of the arguments, prevents doing it twice."""
    return AgentJob(sha256_of_json([task_id, settings.digest, repeat]), task_id, repeat)


# Operations


class _Operation(msgspec.Struct, frozen=True, tag_field="kind", kw_only=True):
    job: str
    utc_ms: int = 0


class JobQueued(_Operation, frozen=True, tag="queued", kw_only=True):
    """Records that a job belongs to the run."""

    task: str
    repeat: int = 1


class JobAttempt(_Operation, frozen=True, tag="attempt", kw_only=True):
    """Records that the job's attempt was begun or resumed."""

    attempt: str


class JobHalted(_Operation, frozen=True, tag="halted", kw_only=True):
    """Records that the job can't continue now, for a reason other than the solver, and has not ended."""

    problem: str
    message: str = ""


class JobEnded(_Operation, frozen=True, tag="ended", kw_only=True):
    """Records that the job is done; without an attempt, `reason` is why none is possible."""

    reason: str
    message: str = ""


class JobAsked(_Operation, frozen=True, tag="asked", kw_only=True):
    """Records that a request is about to be sent, so that its cost is known if the process dies.

    The request is over once the journal contains its turn, or after a loss, a halt or an end of the job.
    """

    turn: int
    """The turn that the reply will be."""
    tokens: int = 0
    """The estimated number of tokens in the prompt."""
    cost_usd: float | None = None
    failed_tokens: int = 0
    """The estimated number of tokens in earlier requests for the same reply, which failed."""
    failed_usd: float | None = None
    failed_s: float = 0.0


class JobLost(_Operation, frozen=True, tag="lost", kw_only=True):
    """Records paid replies that are in no journal, because requests failed; `tokens` is an estimate."""

    tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    """How long these requests were under way."""


class JobSettled(_Operation, frozen=True, tag="settled", kw_only=True):
    """Records a decision on a job that has not ended: an end of its attempt, or an exclusion (decision 150).

    The end itself is in the attempt's journal, and then in a separate operation.
    """

    outcome: str
    """A `settling.SettledAs`."""
    problem: str
    """The obstacle of the job before the decision."""
    by: str = ""
    why: str = ""


class JobUnsettled(_Operation, frozen=True, tag="unsettled", kw_only=True):
    """Records that the last decision on a job no longer applies."""

    by: str = ""
    why: str = ""


class JobPlace(_Operation, frozen=True, tag="place", kw_only=True):
    """Records that the job's attempt was made, or continued, on a worker of a cluster."""

    worker: str
    clock_ms: int = 0
    """The worker's clock minus that of the run's machine, when the worker connected; 0 if they agreed."""


JobOperation = (
    JobQueued | JobAttempt | JobHalted | JobEnded | JobAsked | JobLost | JobPlace | JobSettled | JobUnsettled
)


class JobStatus(StrEnum):
    """The state of a job."""

    QUEUED = "queued"
    BEGUN = "begun"
    """The job's attempt has begun and not ended: it is running, or its process has died."""
    HALTED = "halted"
    ENDED = "ended"
    EXCLUDED = "excluded"
    """The job was excluded by a decision: it is not continued, and is in no rate."""


@dataclass(frozen=True, slots=True)
class JobState:
    """A job after its operations."""

    job: AgentJob
    status: JobStatus = JobStatus.QUEUED
    attempt: str = ""
    problem: str = ""
    """Why the job halted or ended."""
    message: str = ""
    lost_tokens: int = 0
    lost_usd: float | None = None
    """The cost of replies that are in no journal, in US dollars; None if it is unknown or there are none."""
    lost_s: float = 0.0
    """How long the requests without a reply were under way."""
    asked: JobAsked | None = None
    """The last request, unless its loss or the job's halt or end was recorded after it."""
    settled: JobSettled | None = None
    """The decision on the job; None if there is none."""
    unsettled: JobState | None = None
    """The job before the decision; None if there is none."""
    worker: str = ""
    """The worker of a cluster that had the job last; empty if none had it."""
    clock_ms: int = 0
    """The milliseconds by which that worker's clock was ahead."""

    def after(self, operation: JobOperation) -> JobState:
        """Return the state after one more operation."""
        match operation:
            case JobAttempt(attempt=attempt):
                return replace(self, status=JobStatus.BEGUN, attempt=attempt, problem="", message="")
            case JobHalted(problem=problem, message=message):
                return replace(self, status=JobStatus.HALTED, problem=problem, message=message, asked=None)
            case JobEnded(reason=reason, message=message):
                return replace(self, status=JobStatus.ENDED, problem=reason, message=message, asked=None)
            case JobAsked():
                return replace(self, asked=operation)
            case JobLost():
                return self._after_loss(operation)
            case JobPlace(worker=worker, clock_ms=clock_ms):
                return replace(self, worker=worker, clock_ms=clock_ms)
            case JobSettled():
                return self._after_decision(operation)
            case JobUnsettled() if self.unsettled is not None:
                before = self.unsettled
                return replace(
                    self,
                    status=before.status,
                    problem=before.problem,
                    message=before.message,
                    settled=None,
                    unsettled=None,
                )
        return self

    def _after_loss(self, lost: JobLost) -> JobState:
        usd = self.lost_usd if lost.cost_usd is None else (self.lost_usd or 0.0) + lost.cost_usd
        return replace(
            self,
            lost_tokens=self.lost_tokens + lost.tokens,
            lost_usd=usd,
            lost_s=self.lost_s + lost.seconds,
            asked=None,
        )

    def _after_decision(self, settled: JobSettled) -> JobState:
        status = JobStatus.EXCLUDED if settled.outcome == EXCLUDED else self.status
        return replace(self, status=status, settled=settled, unsettled=self)

    @property
    def over(self) -> bool:
        """Whether the job is not continued: it has ended, or was excluded."""
        return self.status in (JobStatus.ENDED, JobStatus.EXCLUDED)

    @property
    def obstacle(self) -> str:
        """The problem of the job, before any decision; `stopped` or `queued` if there is none."""
        if self.settled is not None:
            return self.settled.problem
        if self.problem:
            return self.problem
        return QUEUED if self.status is JobStatus.QUEUED else STOPPED


def folded(operations: Iterable[JobOperation]) -> dict[str, JobState]:
    """Return the states of the jobs by key, in the order of queueing."""
    jobs: dict[str, JobState] = {}
    _apply(jobs, operations)
    return jobs


def _apply(jobs: dict[str, JobState], operations: Iterable[JobOperation]) -> None:
    for operation in operations:
        if isinstance(operation, JobQueued):
            jobs.setdefault(
                operation.job, JobState(AgentJob(operation.job, operation.task, operation.repeat))
            )
        elif operation.job in jobs:
            jobs[operation.job] = jobs[operation.job].after(operation)


# Files


class AgentRun:
    """A run on disk: its settings and jobs."""

    def __init__(self, folder: Path, document: AgentRunDocument) -> None:
        self.folder = folder
        self.document = document
        self._lock = Lock()
        self.jobs: dict[str, JobState] = {}
        self.reload()

    @property
    def name(self) -> str:
        """The name of the run, which is that of its folder."""
        return self.folder.name

    @property
    def settings(self) -> RunSettings:
        """The common settings of its attempts."""
        return self.document.settings

    @property
    def left(self) -> list[JobState]:
        """The jobs that have not ended and are not excluded."""
        return [state for state in self.jobs.values() if not state.over]

    def reload(self) -> None:
        """Read the jobs again, since another process may have changed them.

        Raises `AgentRunError` if the file of the jobs can't be read.
        """
        self.jobs = folded(_read_operations(self.folder / JOBS_FILE))

    def add(self, jobs: Iterable[AgentJob], utc_ms: int) -> int:
        """Queue the jobs that the run does not have; return their number.

        Raises `OSError` if they can't be written.
        """
        new = [job for job in jobs if job.key not in self.jobs]
        self.append([JobQueued(job=job.key, utc_ms=utc_ms, task=job.task, repeat=job.repeat) for job in new])
        return len(new)

    def append(self, operations: Sequence[JobOperation]) -> None:
        """Write operations and wait until they are on disk. Raises `OSError` if they can't be written."""
        if not operations:
            return
        lines = b"".join(msgspec.json.encode(operation) + b"\n" for operation in operations)
        with self._lock:
            path = self.folder / JOBS_FILE
            with AppendLog(path, _JOBS, wait_for(path)) as log:
                log.append(lines)
            jobs = dict(self.jobs)
            _apply(jobs, operations)
            self.jobs = jobs

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the run for this process, read it again, and discard requests to stop it, now and at the end.

        Raises `AgentRunError` if another process has locked it, or if it can't be locked or read.
        """
        try:
            lock = take(self.folder / _LOCK)
        except OSError as error:
            raise AgentRunError(f"{self.name}/{_LOCK} can't be opened: {error.strerror}.") from error
        if lock is None:
            raise AgentRunError(
                f"Another process is working on the run {self.name}.",
                hint=(
                    f"`gistpoint agent watch {self.name}` shows it, `gistpoint agent stop {self.name}`"
                    " stops it."
                ),
            )
        with lock:
            try:
                (self.folder / _STOP).unlink(missing_ok=True)
                self.reload()
                yield
            finally:
                with suppress(OSError):
                    (self.folder / _STOP).unlink(missing_ok=True)

    @property
    def worked_on(self) -> bool:
        """Whether a process is working on the run."""
        return is_held(self.folder / _LOCK)

    def ask_to_stop(self) -> None:
        """Ask the process that is working on the run to stop."""
        (self.folder / _STOP).touch(0o600)

    @property
    def stop_asked(self) -> bool:
        """Whether the process that is working on the run was asked to stop."""
        return (self.folder / _STOP).exists()

    def limit_cost(self, max_cost_usd: float) -> None:
        """Set the limit on the cost of all attempts together, in US dollars."""
        self.document = msgspec.structs.replace(self.document, max_cost_usd=max_cost_usd)
        _write_document(self.folder, self.document)


class AgentRunStore:
    """The runs in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self) -> list[str]:
        """Return the names of all runs, sorted."""
        if not self.root.is_dir():
            return []
        return sorted(path.name for path in self.root.iterdir() if (path / RUN_FILE).exists())

    def open(self, name: str) -> AgentRun:
        """Return a run. Raises `AgentRunError` if there is none with this name or it can't be read."""
        known = self.names()
        if name not in known:
            if _NAME.fullmatch(name) and is_held(self.root / name / _STARTING):
                raise AgentRunError(
                    f"The run {name} is just starting in another process.",
                    hint=f"In a moment, `gistpoint agent watch {name}` shows it.",
                )
            raise AgentRunError(
                f"There is no run {name!r}.{did_you_mean(name, known)}",
                hint="`gistpoint agent list` shows the runs.",
            )
        return AgentRun(self.root / name, _read_document(self.root / name / RUN_FILE))

    @contextmanager
    def starting(self, name: str | None) -> Iterator[None]:
        """Let other processes know that a run with this name is being planned, if it does not exist yet.

        Nothing is done without a valid name, or if the folder can't be written.
        """
        folder = self.root / (name or "")
        if name is None or not _NAME.fullmatch(name) or (folder / RUN_FILE).exists():
            yield
            return
        lock = None
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = take(folder / _STARTING)
        try:
            yield
        finally:
            if lock is not None:
                with suppress(OSError):
                    (folder / _STARTING).unlink(missing_ok=True)
                    folder.rmdir()  # fails if the run was created
                lock.release()

    def open_or_create(self, name: str, settings: RunSettings, utc_ms: int, version: str) -> AgentRun:
        """Return the run with this name; create it if there is none.

        Raises `AgentRunError` for an invalid name, and for a run that has other settings or can't be read.
        """
        if not _NAME.fullmatch(name):
            raise AgentRunError(
                f"{name[:120]!r} is not a valid name for a run.",
                hint="Use letters, digits and . _ @ + -, at most 100, starting with a letter or digit.",
            )
        if name in self.names():
            run = self.open(name)
            if run.settings.digest != settings.digest:
                raise AgentRunError(
                    f"The run {name} has different settings: {', '.join(differing(run.settings, settings))}.",
                    hint="Choose another --name, or continue it with its own settings: `gistpoint agent"
                    " resume`.",
                )
            return run
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        document = AgentRunDocument(name=name, created_utc_ms=utc_ms, gistpoint=version, settings=settings)
        _write_document(folder, document)
        sync_folder(self.root)
        return AgentRun(folder, document)


def differing(one: RunSettings, other: RunSettings) -> list[str]:
    """Return the names of the settings that differ, such as `agent.setting`."""
    first, second = _flat(msgspec.to_builtins(one)), _flat(msgspec.to_builtins(other))
    return [name for name in sorted(first.keys() | second.keys()) if first.get(name) != second.get(name)]


def _flat(value: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, item in value.items():
        if isinstance(item, Mapping):
            found |= _flat(item, f"{before}{name}.")
        elif item is not None:
            found[before + name] = item
    return found


Value = TypeVar("Value")


def _without_none(value: Value) -> Value | Any:
    """Return a table without its None values, which TOML can't hold."""
    if isinstance(value, dict):
        return {name: _without_none(item) for name, item in value.items() if item is not None}
    return value


def _write_document(folder: Path, document: AgentRunDocument) -> None:
    import tomli_w

    text = tomli_w.dumps(_without_none(msgspec.to_builtins(document)))
    replace_file(folder / RUN_FILE, text.encode())


def _read_document(path: Path) -> AgentRunDocument:
    place = f"{path.parent.name}/{path.name}"
    try:
        values = read_toml(path, LARGEST_RECORDS)
        if (values.get("format"), values.get("version")) != (FORMAT, VERSION):
            raise AgentRunError(
                f"{place} is not version {VERSION} of {FORMAT}.", hint="Install a newer gistpoint."
            )
        document = msgspec.convert(values, AgentRunDocument)
        Role(document.settings.role)
        return document
    except (OSError, ValueError) as error:
        raise AgentRunError(f"{place} can't be read: {str(error)[:200]}.") from error


def _read_operations(path: Path) -> Iterator[JobOperation]:
    """Yield the operations of complete lines, except kinds that only newer versions know.

    Raises `AgentRunError` if the file or one of these lines can't be read.
    """
    try:
        lines = read_log(path, _JOBS).lines
    except FileNotFoundError:
        return
    except OSError as error:
        raise AgentRunError(f"{path.parent.name}/{path.name} can't be read: {error.strerror}.") from error
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line)
            if value["kind"] in _KINDS:
                yield msgspec.convert(value, JobOperation)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise AgentRunError(
                f"{path.parent.name}/{path.name}, line {number} is not an operation on a job:"
                f" {str(error)[:200]}.",
                hint="The attempts are untouched: `gistpoint attempt list` shows them.",
            ) from error


_KINDS = frozenset({"queued", "attempt", "halted", "ended", "asked", "lost", "place", "settled", "unsettled"})
