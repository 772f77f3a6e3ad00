"""Landlock and seccomp as a backend: isolation by system calls alone, for machines without user namespaces.

The command reads the parts of the machine that `runtime.py` lists, its environment and the named folders, and
writes to one temporary folder. It can't open sockets of any kind or send signals to other processes, and runs
under the filter on system calls. The guarantees are weaker than bubblewrap's; `REDUCED` lists how. If root
starts a run, the run gets an unused user, so that its processes can be counted, and the folders above its
files that not everyone may enter are covered.
"""

from __future__ import annotations

import contextlib
import os
import platform
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.backends.base import BackendProbe, Command, Ended, complaint_of
from gistpoint.sandbox.backends.entering import Confinement, run_supervised
from gistpoint.sandbox.backends.runtime import Runtime, RuntimeCache
from gistpoint.sandbox.backends.seccomp import filter_program
from gistpoint.sandbox.backends.trees import TreeParts, TreeStates, change_owner, laid_out
from gistpoint.sandbox.layout import run_folder
from gistpoint.sandbox.limits import KERNEL, WATCHED, enforcement
from gistpoint.sandbox.payload.confinement import landlock_version

if TYPE_CHECKING:
    from gistpoint.sandbox.limits import RunLimits

REDUCED = (
    "tests can't open sockets, not even on loopback",
    "no /proc and no shared memory",
    "names, sizes and modes of all files can be seen, and modes and times of your own files can be changed",
    "disk and total memory are checked several times a second, not limited by the kernel",
)
_USERS = range(61184, 65520)  # systemd's range for dynamic users; each is used for one run (decision 9)
_LEAST_VERSION = 3  # older versions let a run truncate files outside
_SCOPES_SIGNALS = 6
_ETC = ("/etc/hosts",)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_ByFolder = Mapping[str, Sequence[str]]


class LandlockBackend:
    """A backend whose commands run in processes that confine themselves before the tested code starts."""

    name = "landlock"
    expects: ClassVar[Mapping[str, str]] = {"mode": "either"}
    """A run can change the modes of the user's files, unless root starts it and it becomes another user."""

    def __init__(self, version: int | None = None, cache: RuntimeCache | None = None) -> None:
        self._cache = cache or RuntimeCache()
        self._interface = landlock_version() if version is None else min(version, landlock_version())
        self._probe: BackendProbe | None = None
        self._of_machine: dict[str, Mapping[str, _ByFolder]] = {}

    def probe(self) -> BackendProbe:
        """Run a trivial command with the settings of every run; return the result, which is cached."""
        if self._probe is None:
            self._probe = self._try()
        return self._probe

    def enforces(self) -> Mapping[str, str]:
        """Return how each limit is enforced, by its name."""
        return enforcement(memory=WATCHED, processes=KERNEL, disk=WATCHED, files=WATCHED, network=KERNEL)

    def record(self, limits: RunLimits) -> BackendRecord:
        """Return the record of an isolated run, which also lists its weaker guarantees."""
        enforced: dict[str, int | float | str] = {**limits.record(), "reduced": "; ".join(self._reduced())}
        return BackendRecord(self.name, self._version(), isolated=True, limits=enforced)

    def run(
        self, command: Command, *, on_line: Callable[[bytes], None], cancel: CancelToken = NEVER
    ) -> Ended:
        """Run `command` in a new temporary folder, the only one it may write to, and return how it ended."""
        with run_folder() as base:
            work = base / "work"
            parts = laid_out(command, work)
            for folder in (work, work / "home", work / "tmp"):
                folder.chmod(0o755)
            user = os.getuid()
            if os.geteuid() == 0:
                # One user per run, so that runs can't count, signal or change each other (decision 9).
                user = _unused_user()
                _share(parts)
                change_owner(_own_paths(work, parts), user)
            # Landlock has no exceptions within a folder, and lets users change the modes and times of their
            # own files, so changes are detected afterwards (decision 41).
            states = TreeStates.of(parts)
            confinement = Confinement(self._rules(command, work, parts), user)
            ended = run_supervised(command, work, on_line=on_line, cancel=cancel, confinement=confinement)
            return states.completed(ended, command)

    def _rules(self, command: Command, work: Path, parts: TreeParts) -> dict[str, object]:
        """Return the rules: the files that the command may use, and the filter on its system calls.

        A rule applies to everything below its path, without exceptions.
        """
        program = filter_program(namespaces=False, signals=self._interface >= _SCOPES_SIGNALS)
        assert program is not None, "the probe refuses machines without a table of system calls"
        if command.programs:
            # Read-only commands have no interpreter, no environment, and no place to write to (decision 40).
            runtime = self._cache.of_programs(command.programs)
            shown = []
            look = [work / "repo"]
            write = []
        else:
            runtime = self._cache.of(command.environment, command.shows)
            shown = [
                command.environment.folder.resolve(),
                *(path.resolve() for path in command.folders.values()),
                work / "repo",
            ]
            look = []
            write = [*_own_paths(work, parts), *_folders(parts)]
        machine = self._rules_of_machine(runtime)
        rules = {
            "read": _merged(machine["read"], _by_folder(shown)),
            "look": _by_folder(look),
            "list": machine["list"],
            "write": _by_folder([*write, *map(Path, _DEVICES)]),
        }
        return {"version": self._interface, "filter": program.hex(), **rules}

    def _rules_of_machine(self, runtime: Runtime) -> Mapping[str, _ByFolder]:
        """Return the rules for the machine's own files, by right (`read` or `list`).

        There are thousands of these rules, the same for every run, so they are made once for each runtime.
        """
        rules = self._of_machine.get(runtime.key)
        if rules is None:
            read = [Path(part.path) for part in runtime.parts if not part.link]
            # Python finds modules by listing folders, including the top of its standard library.
            listed = {Path(part.path).parent for part in runtime.interpreter if part.path.endswith(".py")}
            rules = {"read": _by_folder([*read, *map(Path, _ETC)]), "list": _by_folder(listed)}
            self._of_machine[runtime.key] = rules
        return rules

    def _version(self) -> str:
        if self._interface:
            return f"{self._interface} (Linux {platform.release()})"
        return ""

    def _reduced(self) -> tuple[str, ...]:
        unscoped = (
            ()
            if self._interface >= _SCOPES_SIGNALS
            else ("tests can't send signals, not even to themselves",)
        )
        return (*REDUCED, *unscoped)

    def _try(self) -> BackendProbe:
        if sys.platform != "linux":
            return BackendProbe(
                works=False, why_not="Landlock exists only on Linux", fix="Use the Docker backend."
            )
        if filter_program() is None:
            why_not = f"there is no table of system calls for {platform.machine()}"
            return BackendProbe(works=False, why_not=why_not, fix="Use the Docker backend.")
        if self._interface < _LEAST_VERSION:
            offer = (
                f"offers version {self._interface}"
                if self._interface
                else "does not offer it, or it is switched off"
            )
            return BackendProbe(
                works=False,
                version=self._version(),
                why_not=f"Landlock {_LEAST_VERSION} is needed, and this kernel {offer}",
                fix="Start Linux 6.2 or newer, with `landlock` among the names of the boot option `lsm=`.",
            )
        try:
            complaint = complaint_of(self)
        except OSError as error:
            complaint = f"the launcher could not be started: {error.strerror or error}"
        if not complaint:
            return BackendProbe(works=True, version=self._version(), warning="; ".join(self._reduced()))
        return BackendProbe(works=False, version=self._version(), why_not=complaint, fix=_fix_for(complaint))


def _fix_for(complaint: str) -> str:
    if "private mount namespace" in complaint or "Permission denied" in complaint:
        return (
            "If it is started by root, everything that a run needs must be in folders that all users"
            " can open: set GISTPOINT_HOME to such a folder and use a Python outside root's home, or"
            " run gistpoint as an ordinary user."
        )
    if "Function not implemented" in complaint or "Operation not permitted" in complaint:
        return (
            "A container's own filter of system calls may forbid Landlock here: allow it, or use the"
            " Docker backend."
        )
    return "Run `gistpoint doctor` as an ordinary user to see whether root is the reason."


def _unused_user() -> int:
    """Return a user under which no process runs on this machine."""
    busy = set[int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                busy.add(entry.stat().st_uid)
    # Chosen at random, because two programs that start at the same moment must rarely get the same user.
    return random.SystemRandom().choice([user for user in _USERS if user not in busy])


def _merged(one: _ByFolder, other: _ByFolder) -> dict[str, Sequence[str]]:
    return {folder: [*one.get(folder, ()), *other.get(folder, ())] for folder in (*one, *other)}


def _by_folder(paths: Iterable[Path]) -> dict[str, list[str]]:
    """Return the names of `paths` by their folders, which is shorter: a command line is limited in length."""
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(str(path.parent), []).append(path.name)
    return found


def _folders(parts: TreeParts) -> list[Path]:
    return [parts.tree / folder for folder in parts.folders]


def _own_paths(work: Path, parts: TreeParts) -> list[Path]:
    """Return the paths in a work folder that belong to the run, even if the whole tree does not."""
    return [work / "home", work / "tmp", *(parts.tree / path for path in parts.paths)]


def _share(parts: TreeParts) -> None:
    """Let everybody add to the writable folders; only the owner of a file can remove or rename it."""
    for folder in _folders(parts):
        folder.chmod(0o1777)
