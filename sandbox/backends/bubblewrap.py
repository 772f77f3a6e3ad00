"""bubblewrap: namespaces without a daemon, the default on Linux.

The command sees what `runtime.py` lists of the machine, its environment and the named folders, all read-only, and may
write to size-limited file systems in memory. It has no network, no other process, no capability, no new user namespace
and a filter on system calls.
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
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.ports import Writable
from gistpoint.sandbox.backends.base import Command, Ended, Invocation, Places, Probe, Stop
from gistpoint.sandbox.backends.bwrapending import namespace_end
from gistpoint.sandbox.backends.bwrapmounts import HOME, INSIDE, REPOSITORY, SHOWN, Plan, plan_mounts, stage
from gistpoint.sandbox.backends.probing import probe_command
from gistpoint.sandbox.backends.runtimecache import RuntimeCache
from gistpoint.sandbox.backends.seccomp import filter_program
from gistpoint.sandbox.backends.treeparts import TreeParts, give_away
from gistpoint.sandbox.backends.treestates import TreeStates
from gistpoint.sandbox.cgroups import Bound, Delegation, bounded, find_delegation
from gistpoint.sandbox.diskuse import DiskWatch
from gistpoint.sandbox.limits import Limits
from gistpoint.sandbox.process import follow, result_pipe
from gistpoint.sandbox.runfolders import run_folder

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken

_NOBODY = 65534


class BubblewrapBackend:
    """Runs commands in namespaces made by bubblewrap; started by root, it runs them as `nobody`."""

    name = "bwrap"

    def __init__(self, program: str | None = None, cache: RuntimeCache | None = None) -> None:
        self._program = program or shutil.which("bwrap") or ""
        self._cache = cache or RuntimeCache()
        self._probe: Probe | None = None
        self._delegated: Delegation | None = None

    def probe(self) -> Probe:
        """Run a trivial command with the settings of every run; the answer is kept."""
        if self._probe is None:
            self._probe = self._try()
        return self._probe

    def record(self, limits: Limits) -> BackendRecord:
        """Return the record of an isolated run."""
        told = {**limits.record(), "memory_bound": "cgroup" if self._delegation() else "watchdog"}
        return BackendRecord(self.name, self._version(), isolated=True, limits=told)

    def run(self, command: Command, *, on_line: Callable[[bytes], None], cancel: CancelToken | None = None) -> Ended:
        """Run `command` in fresh namespaces, which end with it."""
        if command.watch:
            return self._watched(command, on_line, cancel)
        return self._run(command, None, on_line, cancel)

    def _watched(self, command: Command, on_line: Callable[[bytes], None], cancel: CancelToken | None) -> Ended:
        """Run `command` on a copy that lies on the disk, where it can be looked at before and afterwards."""
        with run_folder() as base:
            copy = base / "repo"
            shutil.copytree(command.tree, copy, symlinks=True, copy_function=shutil.copy)
            if os.geteuid() == 0:
                give_away([copy], _NOBODY)
            states = TreeStates.of(TreeParts.of(copy, Writable(paths=(".",))))
            return states.completed(self._run(command, copy, on_line, cancel), command)

    def _run(
        self, command: Command, copy: Path | None, on_line: Callable[[bytes], None], cancel: CancelToken | None
    ) -> Ended:
        with result_pipe() as pipe, bounded(self._delegation(), command.limits) as bound:
            plan = Plan(stage() if os.geteuid() == 0 else None)
            with namespace_end(plan):
                try:
                    process = self._start(command, copy, plan, pipe.writing, bound)
                finally:
                    plan.close()
                pipe.close_writing()
                with process:
                    ended = follow(
                        process,
                        pipe.reading,
                        timeout_s=command.timeout_s,
                        limits=command.limits,
                        on_line=on_line,
                        cancel=cancel,
                        kill=lambda: _kill(process),
                        watch=None if copy is None else DiskWatch(copy, process.pid, command.limits.disk).reason,
                    )
            if bound.was_hit():
                return replace(ended, stop=Stop.OUT_OF_MEMORY, exit_code=None)
            return replace(ended, exit_code=_as_signal(ended.exit_code))

    def _delegation(self) -> Delegation:
        if self._delegated is None:
            self._delegated = find_delegation()
        return self._delegated

    def _start(
        self, command: Command, copy: Path | None, plan: Plan, results: int, bound: Bound
    ) -> subprocess.Popen[bytes]:
        places = Places(
            workspace=REPOSITORY,
            python=f"{SHOWN}/environment/bin/python",
            home=HOME,
            temporary="/tmp",
            folders={name: f"{SHOWN}/{name}" for name in command.folders},
            results_fd=results,
        )
        plan_mounts(plan, command, copy, self._cache)
        invocation = command.invocation(places)
        if command.programs:
            enter = _enter_by_shell(plan, command.limits, places, invocation)
        else:
            order = _order(command, places, invocation, copies=copy is None and command.writable is None)
            enter = [str(command.environment.interpreter), "-I", "-S", f"{SHOWN}/inside/enter.py", json.dumps(order)]
        packed = plan.memory(b"".join(argument.encode() + b"\0" for argument in plan.arguments))
        arguments = [self._program, "--args", packed, "--", *enter]
        if plan.staged_at is not None:
            staging = {
                "sources": plan.sources,
                "place": plan.staged_at,
                "user": _NOBODY,
                "arguments": arguments,
                "parent": os.getpid(),
            }
            arguments = [sys.executable, "-I", "-S", str(INSIDE / "private_mounts.py"), json.dumps(staging)]
        return subprocess.Popen(
            [*bound.prefix, *arguments],
            stdin=subprocess.DEVNULL if command.requests is None else command.requests,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(
                bound.environment or {}
            ),  # bubblewrap's own environment stays readable inside, as that of process 1
            cwd="/",
            pass_fds=(results, *plan.descriptors),
            start_new_session=True,
        )

    def _version(self) -> str:
        if not self._program:
            return ""
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            told = subprocess.run([self._program, "--version"], capture_output=True, text=True, timeout=10, check=False)
            return told.stdout.strip().removeprefix("bubblewrap ")
        return ""

    def _try(self) -> Probe:
        if sys.platform != "linux":
            return Probe(works=False, why_not="bubblewrap serves Linux alone", mend="Use the Docker backend.")
        if filter_program() is None:
            return Probe(
                works=False,
                why_not=f"there is no table of system calls for {platform.machine()}",
                mend="Use the Docker backend.",
            )
        if not self._program:
            return Probe(
                works=False,
                why_not="bwrap is not installed",
                mend="Install it: `apt-get install bubblewrap`, or the package `bubblewrap` of your distribution.",
            )
        version, token, lines = self._version(), os.urandom(8).hex().encode(), list[bytes]()
        try:
            with tempfile.TemporaryDirectory(prefix="gistpoint-probe-") as name:
                ended = self.run(probe_command(Path(name), token), on_line=lines.append)
        except OSError as error:
            return Probe(works=False, version=version, why_not=f"what a run sees can't be laid out: {error}")
        if ended.stop is Stop.EXITED and ended.exit_code == 0 and lines == [token]:
            return Probe(works=True, version=version)
        complaint = (ended.output.strip().splitlines() or [f"it left with status {ended.exit_code}"])[-1]
        return Probe(works=False, version=version, why_not=complaint, mend=_mend(complaint))


_BY_SHELL = """
ulimit -c 0 -n {limits.open_files} -u {limits.processes} -v {address_space} -f {file_size} || exit 70
printf '{{"e":"ready"}}\\n' >&{results} && exec {results}>&- && exec "$@"
"""


def _enter_by_shell(plan: Plan, limits: Limits, places: Places, invocation: Invocation) -> list[str]:
    """Return how a command is started where no interpreter is: bash sets the limits, and becomes the command."""
    for name, value in invocation.environment.items():
        plan.arguments += ["--setenv", name, value]
    plan.arguments += ["--chdir", places.workspace]
    script = _BY_SHELL.format(
        limits=limits,
        address_space=limits.address_space >> 10,
        file_size=limits.file_size >> 10,
        results=places.results_fd,
    )
    return ["/bin/bash", "-c", script, "bash", *invocation.arguments]


def _order(command: Command, places: Places, invocation: Invocation, *, copies: bool) -> dict[str, object]:
    limits = command.limits
    return {
        "limits": {
            "RLIMIT_CORE": 0,
            "RLIMIT_NOFILE": limits.open_files,
            "RLIMIT_NPROC": limits.processes,
            "RLIMIT_AS": limits.address_space,
            "RLIMIT_FSIZE": limits.file_size,
        },
        "make": [places.home],
        "copy": [f"{SHOWN}/tree", places.workspace] if copies else None,
        "folder": places.workspace,
        "arguments": invocation.arguments,
        "environment": dict(invocation.environment),
        "results_fd": places.results_fd,
        "supervise": False,
        "parent": 0,
    }


def _mend(complaint: str) -> str:
    def has(*words: str) -> bool:
        return any(word in complaint for word in words)

    if has("uid map", "RTM_NEWADDR"):
        return (
            "The kernel restricts user namespaces: install the package apparmor-profiles and load its profile "
            "bwrap-userns-restrict."
        )
    if has("No permissions to create", "Creating new namespace failed", "Failed to make / slave"):
        return "A container or the kernel forbids user namespaces here: allow them, or use the Docker backend."
    if has("No space left"):
        return "Raise the limit on user namespaces: `sysctl user.max_user_namespaces=15000`."
    if has("Unknown option"):
        return "Install bubblewrap 0.8.0 or newer."
    if has("execvp", "execve"):
        return "Install Python where every user may read it; it was not found inside."
    return "Run `bwrap --unshare-user --ro-bind / / true` to see what the kernel objects to."


def _as_signal(exit_code: int | None) -> int | None:
    """Undo bubblewrap's way of telling a signal: 128 more than its number."""
    return 128 - exit_code if exit_code is not None and 128 < exit_code <= 192 else exit_code


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End bubblewrap: its process namespace, with everything in it, ends too."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
