"""Running a command below a supervisor that ends all of its processes; for isolation without a process namespace.

The supervisor adopts what the command leaves, also what moved to sessions of its own; a mark in the environment finds
the rest, should the supervisor itself be gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.sandbox.backends.process import follow

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken
    from gistpoint.sandbox.backends.base import Command, Ended, Stop
    from gistpoint.sandbox.backends.process import ResultPipe
    from gistpoint.sandbox.limits import Limits

MARK = "GISTPOINT_PROCESS"
_GRACE_S = 5.0
_ENDING_S = 10.0
_TICK_S = 0.002


def new_mark() -> str:
    """Return a value that no other run has."""
    return os.urandom(12).hex()


def run_supervised(
    arguments: Sequence[str],
    command: Command,
    pipe: ResultPipe,
    mark: str,
    *,
    on_line: Callable[[bytes], None],
    cancel: CancelToken | None,
    watch: Callable[[int], Callable[[], Stop | None]] | None = None,
) -> Ended:
    """Start `arguments`, which become the supervisor, and follow it to its end; closes the writing end of `pipe`.

    `watch` is given the supervisor's pid and returns what is asked for another reason to stop.
    """
    process = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL if command.requests is None else command.requests,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"PATH": os.defpath, MARK: mark},
        pass_fds=(pipe.writing,),
        start_new_session=True,
    )
    pipe.close_writing()
    with process:
        try:
            return follow(
                process,
                pipe.reading,
                timeout_s=command.timeout_s,
                limits=command.limits,
                on_line=on_line,
                cancel=cancel,
                kill=lambda: _stop(process),
                watch=watch(process.pid) if watch is not None else None,
            )
        finally:
            _kill_marked(mark)


def resource_limits(limits: Limits, user: int) -> dict[str, int]:
    """Return the limits to set on each process; that on processes counts what else `user` runs."""
    return {
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_FSIZE": limits.file_size,
        "RLIMIT_AS": limits.address_space,
        "RLIMIT_NPROC": limits.processes + _threads_of(user),
    }


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask the supervisor to end its children and itself; where it does not, end its group."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _kill_marked(mark: str) -> None:
    """End what still carries the run's mark, and wait for its end: the tested code may have killed the supervisor."""
    wanted, until = f"{MARK}={mark}".encode(), time.monotonic() + _ENDING_S
    while left := list(_marked(wanted)):
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > until:
            return
        time.sleep(_TICK_S)


def _marked(wanted: bytes) -> Iterator[int]:
    if sys.platform != "linux":
        return
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes():
                    yield int(entry.name)


def _threads_of(user: int) -> int:
    """Count the threads of all processes of a user: the system's limit counts those too."""
    count = 0
    with contextlib.suppress(OSError):
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and entry.stat().st_uid == user:
                    count += sum(1 for _ in (entry / "task").iterdir())
    return count or (0 if user != os.getuid() else 4096)
