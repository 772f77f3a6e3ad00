"""Landlock and seccomp: isolation by system calls alone, for machines where user namespaces are closed.

The command reads `/usr`, its interpreter, its environment and the named folders, and writes to one temporary folder.
It has no socket of any kind, sends no signal out, and runs under the filter on system calls. Its promises are less than
bubblewrap's: `REDUCED` says how. Started by root it runs as a user that nobody is, another one for each run, so that
its processes can be counted; folders that only root may enter are covered.
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
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.outcomes import BackendRecord
from gistpoint.sandbox.backends.base import Command, Ended, Places, Probe, Stop
from gistpoint.sandbox.backends.hostprefixes import installed_below
from gistpoint.sandbox.backends.probing import probe_command
from gistpoint.sandbox.backends.seccomp import filter_program
from gistpoint.sandbox.backends.supervised import MARK, new_mark, resource_limits, run_supervised
from gistpoint.sandbox.diskuse import DiskWatch
from gistpoint.sandbox.inside.confinement import landlock_version
from gistpoint.sandbox.process import result_pipe
from gistpoint.sandbox.runfolders import run_folder

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
_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin")
_ETC = ("ld.so.cache", "nsswitch.conf", "localtime", "mime.types", "alternatives", "hosts")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_MOST_FILES = 200_000


class LandlockBackend:
    """Runs commands that confine themselves before the tested code starts."""

    name = "landlock"

    def __init__(self, version: int | None = None) -> None:
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
            for folder in ("home", "tmp"):
                (work / folder).mkdir()
            user = os.getuid()
            if os.geteuid() == 0:
                user = _unused_user()
                _give_away(work, user)
            return self._run(command, work, user, on_line, cancel)

    def _run(
        self, command: Command, work: Path, user: int, on_line: Callable[[bytes], None], cancel: CancelToken | None
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
            arguments = self._arguments(command, places, user, mark)

            def watch(pid: int) -> Callable[[], Stop | None]:
                disk = DiskWatch(work, pid, command.limits.disk, _MOST_FILES)
                return lambda: Stop.TOO_MUCH_DISK if disk.exceeded() else None

            return run_supervised(arguments, command, pipe, mark, on_line=on_line, cancel=cancel, watch=watch)

    def _arguments(self, command: Command, places: Places, user: int, mark: str) -> list[str]:
        invocation, work = command.invocation(places), Path(places.workspace).parent
        shown = [command.environment.folder.resolve(), *(Path(path) for path in places.folders.values())]
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
            "confine": {**self._confinement(command.environment.prefix), "write": [str(work), *_DEVICES]},
        }
        confine = order["confine"]
        assert isinstance(confine, dict)
        confine["read"] = [*confine["read"], *map(str, shown)]
        arguments = [str(command.environment.interpreter), "-I", "-S", str(_INSIDE / "enter.py"), json.dumps(order)]
        if os.geteuid() != 0:
            return arguments
        staging = {
            "sources": [str(path) for path in (*shown, command.environment.prefix, _INSIDE.resolve(), work)],
            "place": "",
            "user": user,
            "arguments": arguments,
            "parent": os.getpid(),
        }
        return [sys.executable, "-I", "-S", str(_INSIDE / "private_mounts.py"), json.dumps(staging)]

    def _confinement(self, prefix: Path) -> dict[str, object]:
        program = filter_program(namespaces=False, signals=self._interface >= _SCOPES_SIGNALS)
        assert program is not None, "the probe refuses machines without a table of system calls"
        read, names = _readable(prefix)
        return {"version": self._interface, "filter": program.hex(), "read": list(read), "list": list(names)}

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


@cache
def _readable(prefix: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what may be read of the system and of `prefix`, and which folders may only be listed.

    A rule holds for everything below its folder and nothing can be taken out of it again. So a folder above one that
    stays closed gets no rule for its files; its other entries get theirs one by one.
    """
    roots = [Path(root) for root in _SYSTEM if Path(root).is_dir() and not Path(root).is_symlink()]
    if not any(prefix.is_relative_to(root) for root in roots):
        roots.append(prefix)
    read = [f"/etc/{name}" for name in _ETC]
    names: list[str] = []
    for root in roots:
        closed = set(installed_below(root)) | set(installed_below(prefix))
        waiting = [root]
        while waiting:
            here = waiting.pop()
            if here in closed:
                continue
            if any(path.is_relative_to(here) for path in closed):
                names.append(str(here))
                waiting.extend(path for path in here.iterdir() if not path.is_symlink())
            else:
                read.append(str(here))
    return tuple(read), tuple(names)


def _unused_user() -> int:
    """Return a user under which no process runs here."""
    busy = set[int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                busy.add(entry.stat().st_uid)
    return random.SystemRandom().choice([user for user in _USERS if user not in busy])


def _give_away(folder: Path, user: int) -> None:
    """Make `user` the owner of a folder and of all that lies below it."""
    os.chown(folder, user, user)
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(place, name), user, user, follow_symlinks=False)
