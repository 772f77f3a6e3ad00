"""The work of a worker in a cluster, which makes attempts of models and replays attempts.

Dask calls `attempted` and `replayed` by name. Both work in a temporary folder inside Dask's own, and use the
worker's own endpoint, key, isolation and environments.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from threading import Lock

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.core.demo.tasks import unpack_demo
from gistpoint.core.errors import CancelledError, EndpointError, TaskError, UserError
from gistpoint.core.kinds.archive import unpack_task
from gistpoint.core.locations import Locations
from gistpoint.core.orders import MOST_BYTES, NotDoneError, StopSwitch, WorkStatus, replied
from gistpoint.core.requests import IsolationChoice
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.model import Task
from gistpoint.core.unfinished import scratch_folder
from gistpoint.sessions.agentruns.beginning import agent_ports
from gistpoint.sessions.agentruns.elsewhere import AttemptOrder, carried_out
from gistpoint.sessions.agentruns.runner import AgentPorts, AgentRunner
from gistpoint.sessions.agentruns.store import RunSettings
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.replay.reporting import report_of
from gistpoint.sessions.runs.opening import open_run
from gistpoint.sessions.services import Services
from gistpoint.sessions.tasks import TaskStore

ServicesFactory = Callable[[IsolationChoice, bool], Services]
"""Makes the services of a machine without a user; the second argument permits code without isolation."""
MOST_TASKS = 1_000
"""The maximum number of received tasks that a worker stores."""
_making = Lock()
"""Held while services, ports or tasks that the jobs of a process share are created."""


class WorkTools(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a worker, the same for all jobs of a command."""

    sandbox: str = ""
    """The name of the requested isolation; empty to let the worker choose."""
    consented: bool = False
    """Whether code may run without isolation if none works."""
    tests_at_once: int = 0
    """The number of simultaneous test runs in a worker's process; 0 for one per core."""
    base_url: str = ""
    """The server of the model; empty for the worker's own setting."""
    most_bytes: int = MOST_BYTES


class AttemptToMake(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt to make or continue."""

    tools: WorkTools
    order: AttemptOrder


class AttemptToReplay(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded attempt to replay."""

    tools: WorkTools
    attempt: str
    task: str
    journal: bytes


def attempted(order: bytes, archive: bytes, *, build: ServicesFactory) -> bytes:
    """Make or continue the attempt of an encoded `WorkOrder`, and return the encoded `WorkReply`."""

    def do(content: bytes, switch: StopSwitch) -> bytes:
        given = msgspec.json.decode(content, type=decodable(AttemptToMake))
        services = _services(build, given.tools)
        task = _task(services, given.order.job.task, archive)
        ports = replace(_ports(services, given.tools, given.order.settings), task=lambda id: task)
        with _folder() as folder:
            delivered = carried_out(given.order, ports, folder, lambda runner: _apply(switch, runner))
            if len(delivered.journal) > given.tools.most_bytes:
                place = _move_to_store(folder / "attempts" / given.order.attempt, services.locations)
                raise NotDoneError(
                    WorkStatus.TOO_LARGE,
                    f"The journal of {given.order.attempt} has {len(delivered.journal):,} bytes, but"
                    f" at most {given.tools.most_bytes:,} are sent. It stays on"
                    f" {platform.node()}, in {place}.",
                )
        return msgspec.json.encode(delivered)

    return replied(order, _with_status(do))


def replayed(order: bytes, archive: bytes, *, build: ServicesFactory) -> bytes:
    """Replay the attempt of an encoded `WorkOrder`, and return the encoded `WorkReply`."""

    def do(content: bytes, switch: StopSwitch) -> bytes:
        given = msgspec.json.decode(content, type=decodable(AttemptToReplay))
        services = _services(build, given.tools)
        task = _task(services, given.task, archive)
        with _folder() as folder:
            path = folder / given.attempt / JOURNAL
            path.parent.mkdir()
            path.write_bytes(given.journal)
            replay = services.replay_of(open_run(path.parent), given.attempt, str(task.folder))
            report = msgspec.json.encode(report_of(replay, given.attempt, run=RunContext(switch.soon)))
        if len(report) > given.tools.most_bytes:
            raise NotDoneError(
                WorkStatus.TOO_LARGE, f"The report has {len(report):,} bytes: replay this attempt separately."
            )
        return report

    return replied(order, _with_status(do))


def _with_status(do: Callable[[bytes, StopSwitch], bytes]) -> Callable[[bytes, StopSwitch], bytes]:
    """Return a function that turns the errors of a job into a status for its sender."""

    def done(content: bytes, switch: StopSwitch) -> bytes:
        try:
            return do(content, switch)
        except CancelledError as error:
            raise NotDoneError(WorkStatus.STOPPED) from error
        except UserError as error:
            raise NotDoneError(WorkStatus.UNFIT, str(error)) from error
        except OSError as error:
            raise NotDoneError(WorkStatus.UNFIT, f"its disk fails: {error.strerror}") from error

    return done


def _apply(switch: StopSwitch, runner: AgentRunner) -> None:
    """Stop or cancel a runner if the sender requests it."""
    if switch.at_once.cancelled:
        runner.cancel()
    elif switch.soon.cancelled and not runner.stopping:
        runner.stop()


@contextmanager
def _folder() -> Iterator[Path]:
    """Yield a folder for one job, inside the worker's own, which Dask removes even after a crash."""
    from importlib import import_module

    try:
        below: Path | None = Path(import_module("distributed").get_worker().local_directory)
    except (ImportError, ValueError):  # not called by a worker
        below = None
    with scratch_folder("job", below) as folder:
        yield Path(folder)


def _move_to_store(attempt: Path, locations: Locations) -> Path:
    """Move an attempt from the folder of its job into this machine's store, and return its new path."""
    locations.attempts.mkdir(parents=True, exist_ok=True)
    return Path(shutil.move(attempt, locations.attempts / attempt.name))


def _task(services: Services, id: str, archive: bytes) -> Task:
    """Return a task from its archive, or from this machine if the archive is empty.

    Raises `NotDoneError` if this machine does not have it, and `TaskError` if the archive holds another task.
    """
    kept = services.locations.cache / "cluster-tasks"
    with _making:
        unpack_demo(services.locations.demo)
        if archive:
            with tempfile.NamedTemporaryFile(suffix=".tar.zst") as file:
                file.write(archive)
                file.flush()
                task = unpack_task(Path(file.name), kept, replaces=True)
        else:
            task = _known_task(services, kept, id)
        if task.folder.parent == kept:
            _remove_oldest(kept)
    if task.id != id:
        raise TaskError(f"The archive of {id[:12]} contains another task, {task.short_id}.")
    return task


def _known_task(services: Services, kept: Path, id: str) -> Task:
    """Return a task that this machine has, marked as used. Raises `NotDoneError` if it does not have it."""
    try:
        task = TaskStore(kept, services.locations.tasks, demo=services.locations.demo).find(id)
        if task.folder.parent == kept:
            os.utime(task.folder)  # for `_remove_oldest`, and for `admin clean --unused`
    except (TaskError, FileNotFoundError) as error:  # another worker with this cache may remove it meanwhile
        raise NotDoneError(WorkStatus.NEEDS_TASK) from error
    return task


def _remove_oldest(kept: Path) -> None:
    """Remove the least recently used tasks beyond `MOST_TASKS`; they are sent again if needed."""
    found = [place for place in kept.iterdir() if place.is_dir()]
    if len(found) > MOST_TASKS:
        with suppress(OSError):  # another worker with this cache may remove some at the same time
            for place in sorted(found, key=lambda place: place.stat().st_mtime)[:-MOST_TASKS]:
                shutil.rmtree(place, ignore_errors=True)


def _services(build: ServicesFactory, tools: WorkTools) -> Services:
    with _making:
        return _services_once(build, Locations.of_user(), tools.sandbox, tools.consented)


@lru_cache(maxsize=4)
def _services_once(build: ServicesFactory, locations: Locations, sandbox: str, consented: bool) -> Services:
    return build(IsolationChoice(sandbox=sandbox or None), consented)


def _ports(services: Services, tools: WorkTools, settings: RunSettings) -> AgentPorts:
    """Return the ports of a run, the same for all its jobs in this process, which share a gate to the host.

    Raises `EndpointError` if the settings of this machine name another server.
    """
    written = msgspec.json.encode(settings)
    with _making:
        key = (services.locations, tools, written)
        if key not in _ports_made:
            solver = services.solver(settings.model, tools.base_url, settings.agent.chat_api)
            if solver.host != settings.host:
                raise EndpointError(
                    f"its settings name another server: {solver.host or 'none'}, not"
                    f" {settings.host or 'none'}."
                )
            tests = tools.tests_at_once or len(os.sched_getaffinity(0))
            _ports_made.clear()
            _ports_made[key] = agent_ports(services, solver, settings, tests_at_once=tests)
        return _ports_made[key]


_ports_made: dict[tuple[Locations, WorkTools, bytes], AgentPorts] = {}
