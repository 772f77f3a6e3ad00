"""Starts a command through `payload/enter.py`, which sets its limits and then becomes it or supervises it.

Without a process namespace, the supervisor ends all processes of the command: it adopts those that the
command leaves, including those in new sessions. If the supervisor is gone, a mark in their environment
identifies the remaining processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.sandbox.backends.process import follow, result_pipe
from gistpoint.sandbox.backends.resources import DiskWatch
from gistpoint.sandbox.layout import MountPaths

if TYPE_CHECKING:
    from gistpoint.core.running import CancelToken
    from gistpoint.sandbox.backends.base import Command, Ended

PAYLOAD = Path(__file__).resolve().parent.parent / "payload"
_MARK = "GISTPOINT_PROCESS"
_GRACE_S = 5.0
_ENDING_S = 10.0
_TICK_S = 0.002


@dataclass(frozen=True, kw_only=True)
class EnterOrder:
    """An order for `payload/enter.py`, whose docstring describes the fields."""

    limits: Mapping[str, int]
    folder: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    results_fd: int
    make: tuple[str, ...] = ()
    copy: tuple[str, str] | None = None
    supervise: bool = False
    parent: int = 0
    confine: Mapping[str, object] | None = None

    def command_line(self, interpreter: str | Path, payload: str | Path) -> list[str]:
        """Return the command line of the program; `payload` is the payload's folder as the run sees it."""
        return _command_line(interpreter, f"{payload}/enter.py", self)


@dataclass(frozen=True, kw_only=True)
class PrivateMounts:
    """An order for `payload/private_mounts.py`, whose docstring describes the fields."""

    sources: Sequence[str]
    place: str
    user: int
    arguments: Sequence[str]
    parent: int

    def command_line(self) -> list[str]:
        """Return the command line of the program."""
        return _command_line(sys.executable, f"{PAYLOAD}/private_mounts.py", self)


def _command_line(interpreter: str | Path, program: str, order: EnterOrder | PrivateMounts) -> list[str]:
    return [str(interpreter), "-I", "-S", program, json.dumps(vars(order))]


@dataclass(frozen=True, slots=True)
class Confinement:
    """The restrictions that the kernel enforces on a supervised command, and the user that it becomes."""

    rules: Mapping[str, object]
    """The order for `payload/confinement.py`."""
    user: int


def run_supervised(
    command: Command,
    work: Path,
    *,
    on_line: Callable[[bytes], None],
    cancel: CancelToken,
    confinement: Confinement | None = None,
) -> Ended:
    """Run `command` in the tree `work`/repo under a supervisor, end its processes, and return how it ended.

    With `confinement`, `command.limits.disk` limits the size of `work`. If root starts such a run, the
    command becomes another user, and the folders above the run's files that this user could not enter are
    covered.
    """
    # The mark is in the environment of everything that the command starts, even if the supervisor is gone.
    mark = os.urandom(12).hex()
    with result_pipe() as pipe:
        arguments = _supervisor(command, work, pipe.writing, mark, confinement)
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL if command.requests is None else command.requests,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": os.defpath, _MARK: mark},
            pass_fds=(pipe.writing,),
            start_new_session=True,
        )
        pipe.close_writing()
        watch = None if confinement is None else DiskWatch(work, process.pid, command.limits.disk)
        with process:
            try:
                return follow(
                    process,
                    pipe.reading,
                    timeout_s=command.timeout_s,
                    patience=command.patience,
                    limits=command.limits,
                    on_line=on_line,
                    cancel=cancel,
                    kill=lambda: _stop(process),
                    watch=watch,
                )
            finally:
                _kill_marked(mark)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask the supervisor to end its children and itself; if it has not after 5 s, kill its group."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _kill_marked(mark: str) -> None:
    """Kill the processes that still carry the run's mark, and wait up to ten seconds for their end.

    Such processes remain if the tested code killed the supervisor.
    """
    variable = f"{_MARK}={mark}".encode()
    until = time.monotonic() + _ENDING_S
    while left := list(_marked(variable)):
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > until:
            return
        time.sleep(_TICK_S)


def _marked(variable: bytes) -> Iterator[int]:
    if sys.platform != "linux":
        return
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if variable in (entry / "environ").read_bytes():
                    yield int(entry.name)


def _supervisor(
    command: Command, work: Path, results_fd: int, mark: str, confinement: Confinement | None
) -> list[str]:
    """Return the command line of the supervisor, within private mounts if root starts a confined run."""
    environment = command.environment
    folders = {name: path.resolve() for name, path in command.folders.items()}
    places = MountPaths(
        workspace=str(work / "repo"),
        python=str(environment.folder / "bin" / "python"),
        home=str(work / "home"),
        temporary=str(work / "tmp"),
        folders={name: str(path) for name, path in folders.items()},
        results_fd=results_fd,
    )
    user = os.getuid() if confinement is None else confinement.user
    invocation = command.invocation(places)
    arguments = EnterOrder(
        # The kernel counts all processes of a user, so those that already run are added (decision 9).
        limits={
            **command.limits.of_a_process(),
            "RLIMIT_NPROC": command.limits.processes + _threads_of(user),
        },
        folder=places.workspace,
        arguments=invocation.arguments,
        environment={**invocation.environment, _MARK: mark},
        results_fd=results_fd,
        supervise=True,
        parent=os.getpid(),
        confine=None if confinement is None else confinement.rules,
    ).command_line(sys.executable if confinement is None else environment.interpreter, PAYLOAD)
    if confinement is None or os.geteuid() != 0:
        return arguments
    # Another user can't enter root's folders, so those above the run's files are covered (decision 9).
    shown = (
        environment.folder.resolve(),
        *folders.values(),
        *command.shows,
        environment.prefix,
        PAYLOAD,
        work,
    )
    return PrivateMounts(
        sources=[str(path) for path in shown],
        place="",
        user=user,
        arguments=arguments,
        parent=os.getpid(),
    ).command_line()


def _threads_of(user: int) -> int:
    """Return the number of threads of all processes of a user, which count towards the system's limit.

    Without `/proc`, the number is assumed: 4,096 for this process's user, otherwise 0.
    """
    count = 0
    with contextlib.suppress(OSError):
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and entry.stat().st_uid == user:
                    count += sum(1 for _ in (entry / "task").iterdir())
    if count:
        return count
    # Without /proc the number is unknown. This process's user has at least one, so a large number is assumed.
    return 4096 if user == os.getuid() else 0
