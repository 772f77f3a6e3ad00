"""Landlock and seccomp: isolation by system calls alone, for machines where user namespaces are closed.

The command reads what `runtime.py` lists of the machine, its environment and the named folders, and writes to one
temporary folder. It has no socket of any kind, sends no signal out, and runs under the filter on system calls. Its
promises are less than bubblewrap's: `REDUCED` says how. Started by root it runs as a user that nobody is, another one
for each run, so that its processes can be counted; folders that only root may enter are covered.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.ports import Writable
from gistpoint.sandbox.backends.base import Command, Ended, Places, Probe, Stop, probe_command
from gistpoint.sandbox.backends.process import result_pipe
from gistpoint.sandbox.backends.resources import DiskWatch
from gistpoint.sandbox.backends.runtime import RuntimeCache
from gistpoint.sandbox.backends.seccomp import filter_program
from gistpoint.sandbox.backends.supervised import MARK, new_mark, resource_limits, run_supervised
from gistpoint.sandbox.backends.trees import TreeParts, TreeStates, give_away, reserve
from gistpoint.sandbox.inside.confinement import landlock_version
from gistpoint.sandbox.workspaces import run_folder

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken
    from gistpoint.sandbox.limits import Limits

REDUCED = (
    "tests can't open sockets, not even on loopback",
    "no /proc and no shared memory",
    "names, sizes and modes of your files can be seen, and modes and times of your own files can be changed",
    "disk and total memory are bounded by looking ten times a second, not by the kernel",
)
_INSIDE = Path(__file__).parent.parent / "inside"
_USERS = range(61184, 65520)  # handed out for one run each; what systemd uses for its dynamic users
_LEAST_VERSION = 3  # before it, a file outside could be emptied
_SCOPES_SIGNALS = 6
_ETC = ("/etc/hosts",)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


class LandlockBackend:
    """Runs commands that confine themselves before the tested code starts."""

    name = "landlock"

    def __init__(self, version: int | None = None, cache: RuntimeCache | None = None) -> None:
        self._cache = cache or RuntimeCache()
        self._interface = landlock_version() if version is None else min(version, landlock_version())
        self._probe: Probe | None = None

    def probe(self) -> Probe:
        """Run a trivial command with the settings of every run; the answer is kept."""
        if self._probe is None:
            self._probe = self._try()
        return self._probe

    def record(self, limits: Limits) -> BackendRecord:
        """Return the record of an isolated run, with what is reduced."""
        told: dict[str, int | float | str] = {**limits.record(), "reduced": "; ".join(self._reduced())}
        return BackendRecord(self.name, self._version(), isolated=True, limits=told)

    def run(self, command: Command, *, on_line: Callable[[bytes], None], cancel: CancelToken | None = None) -> Ended:
        """Run `command` in a fresh temporary folder, the only one that it may write."""
        with run_folder() as base:
            work = base / "work"
            work.mkdir()
            shutil.copytree(command.tree, work / "repo", symlinks=True, copy_function=shutil.copy)
            for folder in (work, work / "home", work / "tmp"):
                folder.mkdir(exist_ok=True)
                folder.chmod(0o755)
            parts = TreeParts.of(work / "repo", command.writable or Writable(paths=(".",)))
            reserve(parts)
            user = os.getuid()
            if os.geteuid() == 0:
                user = _unused_user()
                _share(parts)
                give_away(_own(work, parts), user)
            # Landlock knows no exception within a folder, and lets everybody change modes and times of his own files.
            states = TreeStates.of(parts)
            ended = self._run(command, work, parts, user, on_line, cancel)
            return states.completed(ended, command)

    def _run(
        self,
        command: Command,
        work: Path,
        parts: TreeParts,
        user: int,
        on_line: Callable[[bytes], None],
        cancel: CancelToken | None,
    ) -> Ended:
        mark = new_mark()
        with result_pipe() as pipe:
            places = Places(
                workspace=str(work / "repo"),
                python=str(command.environment.folder / "bin" / "python"),
                home=str(work / "home"),
                temporary=str(work / "tmp"),
                folders={name: str(path.resolve()) for name, path in command.folders.items()},
                results_fd=pipe.writing,
            )
            arguments = self._arguments(command, places, self._confinement(command, work, parts), user, mark)

            def watch(pid: int) -> Callable[[], Stop | None]:
                return DiskWatch(work, pid, command.limits.disk).reason

            return run_supervised(arguments, command, pipe, mark, on_line=on_line, cancel=cancel, watch=watch)

    def _arguments(
        self, command: Command, places: Places, confinement: dict[str, object], user: int, mark: str
    ) -> list[str]:
        invocation, work = command.invocation(places), Path(places.workspace).parent
        order: dict[str, object] = {
            "limits": resource_limits(command.limits, user),
            "make": [],
            "copy": None,
            "folder": places.workspace,
            "arguments": invocation.arguments,
            "environment": {**invocation.environment, MARK: mark},
            "results_fd": places.results_fd,
            "supervise": True,
            "parent": os.getpid(),
            "confine": confinement,
        }
        arguments = [str(command.environment.interpreter), "-I", "-S", str(_INSIDE / "enter.py"), json.dumps(order)]
        if os.geteuid() != 0:
            return arguments
        shown = [command.environment.folder.resolve(), *(Path(path) for path in places.folders.values())]
        staging = {
            "sources": [
                str(path) for path in (*shown, *command.shows, command.environment.prefix, _INSIDE.resolve(), work)
            ],
            "place": "",
            "user": user,
            "arguments": arguments,
            "parent": os.getpid(),
        }
        return [sys.executable, "-I", "-S", str(_INSIDE / "private_mounts.py"), json.dumps(staging)]

    def _confinement(self, command: Command, work: Path, parts: TreeParts) -> dict[str, object]:
        """Return which files the command may use, and the filter on its system calls.

        A rule holds for everything below its folder, and nothing can be taken out of it again.
        """
        program = filter_program(namespaces=False, signals=self._interface >= _SCOPES_SIGNALS)
        assert program is not None, "the probe refuses machines without a table of system calls"
        if command.programs:
            runtime = self._cache.of_programs(command.programs)
            shown, look, write = [], [work / "repo"], []
        else:
            runtime = self._cache.of(command.environment, command.shows)
            shown = [command.environment.folder.resolve(), *(path.resolve() for path in command.folders.values())]
            shown.append(work / "repo")
            look, write = [], [*_own(work, parts), *_folders(parts)]
        read = [*(Path(part.path) for part in runtime.parts if not part.link), *map(Path, _ETC), *shown]
        # Python finds modules by the names in a folder, the top of its own library among them.
        listed = {Path(part.path).parent for part in runtime.interpreter if part.path.endswith(".py")}
        allowed = {"read": read, "look": look, "list": listed, "write": [*write, *map(Path, _DEVICES)]}
        rules = {kind: _by_folder(paths) for kind, paths in allowed.items()}
        return {"version": self._interface, "filter": program.hex(), **rules}

    def _version(self) -> str:
        return f"{self._interface} (Linux {platform.release()})" if self._interface else ""

    def _reduced(self) -> tuple[str, ...]:
        unscoped = () if self._interface >= _SCOPES_SIGNALS else ("tests can't send signals, not even to themselves",)
        return (*REDUCED, *unscoped)

    def _try(self) -> Probe:
        if sys.platform != "linux":
            return Probe(works=False, why_not="Landlock is part of Linux alone", mend="Use the Docker backend.")
        if filter_program() is None:
            why_not = f"there is no table of system calls for {platform.machine()}"
            return Probe(works=False, why_not=why_not, mend="Use the Docker backend.")
        if self._interface < _LEAST_VERSION:
            told = f"offers version {self._interface}" if self._interface else "offers none, or it is switched off"
            return Probe(
                works=False,
                version=self._version(),
                why_not=f"Landlock {_LEAST_VERSION} is needed and this kernel {told}",
                mend="Start Linux 6.2 or newer, with `landlock` among the names of the boot option `lsm=`.",
            )
        token, lines = os.urandom(8).hex().encode(), list[bytes]()
        with tempfile.TemporaryDirectory(prefix="gistpoint-probe-") as name:
            ended = self.run(probe_command(Path(name).resolve(), token), on_line=lines.append)
        if ended.stop is Stop.EXITED and ended.exit_code == 0 and lines == [token]:
            return Probe(works=True, version=self._version(), warning="; ".join(self._reduced()))
        complaint = (ended.output.strip().splitlines() or [f"it left with status {ended.exit_code}"])[-1]
        return Probe(works=False, version=self._version(), why_not=complaint, mend=_mend(complaint))


def _mend(complaint: str) -> str:
    if "private mount namespace" in complaint or "Permission denied" in complaint:
        return (
            "Started by root, what a run needs must lie in folders open to all users: set GISTPOINT_HOME to such a "
            "folder and use a Python outside of root's home, or run gistpoint as an ordinary user."
        )
    if "Function not implemented" in complaint or "Operation not permitted" in complaint:
        return "A container's own filter on system calls may forbid Landlock here: allow it, or use the Docker backend."
    return "Run `gistpoint doctor` as an ordinary user to see whether it is root that makes the difference."


def _unused_user() -> int:
    """Return a user under which no process runs here."""
    busy = set[int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                busy.add(entry.stat().st_uid)
    return random.SystemRandom().choice([user for user in _USERS if user not in busy])


def _by_folder(paths: Iterable[Path]) -> dict[str, list[str]]:
    """Return the names of `paths` by the folder that they stand in: they are many, and a command line is short."""
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(str(path.parent), []).append(path.name)
    return found


def _folders(parts: TreeParts) -> list[Path]:
    return [parts.tree / folder for folder in parts.folders]


def _own(work: Path, parts: TreeParts) -> list[Path]:
    """Return what is the run's own in a work folder whose tree is not."""
    return [work / "home", work / "tmp", *(parts.tree / path for path in parts.paths)]


def _share(parts: TreeParts) -> None:
    """Let everybody add to the writable folders, where nobody can remove or rename what is not his own."""
    for folder in _folders(parts):
        folder.chmod(0o1777)
