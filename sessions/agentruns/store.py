"""The store of runs: each has a folder with its settings and the operations on its jobs.

`run.toml` holds the common settings of all attempts, without any key. `jobs.jsonl` is an append log
(`core/logs`) of operations, each of them on disk before the run continues; the state of a job is computed
from them. The events of an attempt are only in its own journal (decision 75).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from gistpoint.core.agents import static
from gistpoint.core.agents.scaffolds import OWN, ScaffoldIdentity
from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.attempts.harness import TaskJudge
from gistpoint.core.attempts.identity import Role
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.decoding import decodable
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
from gistpoint.sessions.agentruns.jobs import KINDS, AgentJob, JobOperation, JobQueued, JobState, job_states

FORMAT, VERSION = "gistpoint.agent_run", 1
RUN_FILE, JOBS_FILE = "run.toml", "jobs.jsonl"
_LOCK, _AT_WORK, _STOP, _STARTING = "lock", "at-work", "stop", "starting"
_TICK_S, _BEGINNING_S = 0.02, 10.0
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


def job_of(task_id: str, settings: RunSettings, repeat: int) -> AgentJob:
    """Return the job for a repeat of a task; its key, a hash of the arguments, prevents duplicates."""
    return AgentJob(sha256_of_json([task_id, settings.digest, repeat]), task_id, repeat)


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
        """The name of the run, which is also the name of its folder."""
        return self.folder.name

    @property
    def settings(self) -> RunSettings:
        """The common settings of its attempts."""
        return self.document.settings

    @property
    def left(self) -> list[JobState]:
        """The jobs that have neither ended nor been excluded."""
        return [state for state in self.jobs.values() if not state.over]

    def reload(self) -> None:
        """Read the jobs again, since another process may have changed them.

        Raises `AgentRunError` if the file of the jobs can't be read.
        """
        self.jobs = job_states(_read_operations(self.folder / JOBS_FILE))

    def add(self, jobs: Iterable[AgentJob], utc_ms: int) -> int:
        """Queue jobs that the run does not have yet, and return their number.

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
            self.jobs = job_states(operations, self.jobs)

    @contextmanager
    def held(self, *, at_work: bool = False) -> Iterator[None]:
        """Lock the run for this process, and read it again.

        With `at_work`, an earlier request to stop is discarded, and later ones are accepted. Raises
        `AgentRunError` if another process has locked the run, or if it can't be locked or read.
        """
        try:
            lock = take(self.folder / _LOCK)
        except OSError as error:
            raise AgentRunError(f"{self.name}/{_LOCK} can't be opened: {error.strerror}.") from error
        if lock is None:
            watch, stop = (f"`gistpoint agent {word} {self.name}`" for word in ("watch", "stop"))
            raise AgentRunError(
                f"Another process is working on the run {self.name}.",
                hint=f"{watch} shows it, {stop} stops it.",
            )
        with lock:
            self.reload()
            if at_work:
                (self.folder / _STOP).unlink(missing_ok=True)
            with wait_for(self.folder / _AT_WORK) if at_work else nullcontext():
                yield

    @property
    def worked_on(self) -> bool:
        """Whether a process is working on the run."""
        return is_held(self.folder / _LOCK)

    def ask_to_stop(self) -> bool:
        """Ask the process that is working on the run to stop; return False if there is none.

        Waits some seconds for a process that is about to begin, or that makes decisions on jobs.
        """
        until = time.monotonic() + _BEGINNING_S
        # A request is accepted only once this lock is held, so that it is not discarded as an earlier
        # request.
        while not is_held(self.folder / _AT_WORK):
            is_beginning = time.monotonic() < until and (self.worked_on or is_held(self.folder / _STARTING))
            if not is_beginning:
                return False
            time.sleep(_TICK_S)
        (self.folder / _STOP).touch(0o600)
        return True

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
        """Let other processes know that this process is going to work on a run with this name.

        Nothing is done without a valid name, or if the folder can't be written.
        """
        folder = self.root / (name or "")
        if name is None or not _NAME.fullmatch(name):
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
                with lock, suppress(OSError):
                    (folder / _STARTING).unlink(missing_ok=True)
                    folder.rmdir()  # fails if the run was created in the meantime

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
                    hint="Choose another --name, or continue it as it is: `gistpoint agent resume`.",
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
    first, second = (_flat(msgspec.to_builtins(settings)) for settings in (one, other))
    return [name for name in sorted(first.keys() | second.keys()) if first.get(name) != second.get(name)]


def _flat(value: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, item in value.items():
        if isinstance(item, Mapping):
            found |= _flat(item, f"{before}{name}.")
        elif item is not None:
            found[before + name] = item
    return found


def _without_none(value: Any) -> Any:
    """Return a table without its None values, which TOML can't hold."""
    if not isinstance(value, dict):
        return value
    return {name: _without_none(item) for name, item in value.items() if item is not None}


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
        document = msgspec.convert(values, decodable(AgentRunDocument))
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
            if value["kind"] in KINDS:
                yield msgspec.convert(value, decodable(JobOperation))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise AgentRunError(
                f"{path.parent.name}/{path.name}, line {number} is not an operation on a job:"
                f" {str(error)[:200]}.",
                hint="The attempts are untouched: `gistpoint attempt list` shows them.",
            ) from error
