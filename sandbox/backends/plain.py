"""No isolation: a subprocess with resource limits, a scrubbed environment and a fresh home. Only with consent.

What the code under test may read, write and reach is what the user may. Its processes are ended with the run: a
supervisor adopts them, also those that moved to sessions of their own, and a mark in their environment finds the rest.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.outcomes import BackendRecord
from gistpoint.sandbox.backends.base import Command, Ended, Places, Probe
from gistpoint.sandbox.process import follow, result_pipe
from gistpoint.sandbox.runfolders import run_folder

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken
    from gistpoint.sandbox.limits import Limits

_ENTER = Path(__file__).parent.parent / "inside" / "enter.py"
_MARK = "GISTPOINT_PROCESS"
_GRACE_S = 5.0


class PlainBackend:
    """Runs commands as the user, with limits."""

    name = "plain"

    def probe(self) -> Probe:
        """Every system with processes has it."""
        return Probe(works=os.name == "posix", version=platform.system(), why_not="only POSIX systems are served")

    def record(self, limits: Limits) -> BackendRecord:
        """Return the record, which says that nothing was isolated."""
        return BackendRecord(self.name, platform.system(), isolated=False, limits=limits.record())

    def run(self, command: Command, *, on_line: Callable[[bytes], None], cancel: CancelToken | None = None) -> Ended:
        """Run `command` in a fresh temporary folder."""
        with run_folder() as base:
            shutil.copytree(command.tree, base / "repo", symlinks=True, copy_function=shutil.copy)
            for folder in ("home", "tmp"):
                (base / folder).mkdir()
            return self._run(command, base, on_line, cancel)

    def _run(self, command: Command, base: Path, on_line: Callable[[bytes], None], cancel: CancelToken | None) -> Ended:
        mark = os.urandom(12).hex()
        with result_pipe() as (reading, writing):
            places = Places(
                workspace=str(base / "repo"),
                python=str(command.environment.folder / "bin" / "python"),
                home=str(base / "home"),
                temporary=str(base / "tmp"),
                folders={name: str(path) for name, path in command.folders.items()},
                results_fd=writing,
            )
            invocation = command.invocation(places)
            order: dict[str, object] = {
                "limits": _rlimits(command.limits),
                "make": [],
                "copy": None,
                "folder": places.workspace,
                "arguments": invocation.arguments,
                "environment": {**invocation.environment, _MARK: mark},
                "results_fd": writing,
                "supervise": True,
                "parent": os.getpid(),
            }
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_ENTER), json.dumps(order)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={"PATH": os.defpath, _MARK: mark},
                pass_fds=(writing,),
                start_new_session=True,
            )
            os.close(writing)
            with process:
                try:
                    return follow(
                        process,
                        reading,
                        timeout_s=command.timeout_s,
                        limits=command.limits,
                        on_line=on_line,
                        cancel=cancel,
                        kill=lambda: _stop(process),
                    )
                finally:
                    _kill_marked(mark)


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
    """End what still carries the run's mark: processes whose supervisor was killed by the tested code."""
    wanted = f"{_MARK}={mark}".encode()
    for _ in range(100):
        left = list(_marked(wanted))
        if not left:
            return
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _marked(wanted: bytes) -> Iterator[int]:
    if sys.platform != "linux":
        return
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes():
                    yield int(entry.name)


def _rlimits(limits: Limits) -> dict[str, int]:
    return {
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_FSIZE": limits.file_size,
        "RLIMIT_AS": limits.address_space,
        "RLIMIT_NPROC": limits.processes + _own_threads(),
    }


def _own_threads() -> int:
    """Count the threads of all this user's processes: the system's limit counts those too."""
    count = 0
    with contextlib.suppress(OSError):
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and entry.stat().st_uid == os.getuid():
                    count += sum(1 for _ in (entry / "task").iterdir())
    return count or 4096
