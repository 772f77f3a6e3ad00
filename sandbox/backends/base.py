"""The seam between a test run and the isolation it happens in.

A backend copies a folder into a place that the run may write, shows it an environment and named folders read-only,
starts one command there under limits, hands on what comes over the result pipe line by line, and leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gistpoint.sandbox.environments.interpreters import find_interpreter, own_version
from gistpoint.sandbox.limits import Limits

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken
    from gistpoint.core.outcomes import BackendRecord
    from gistpoint.core.ports import Writable


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment on this machine: a virtual environment's folder and the interpreter that it belongs to."""

    folder: Path
    interpreter: Path
    """The real path of the interpreter, outside the environment."""
    prefix: Path
    """The folder in which that interpreter is installed (`sys.base_prefix`)."""
    version: str
    """Such as `3.11`."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where things lie as the command sees them."""

    workspace: str
    python: str
    home: str
    temporary: str
    folders: Mapping[str, str]
    results_fd: int


@dataclass(frozen=True, slots=True)
class Invocation:
    """What to execute, and its whole environment: nothing is inherited."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Command:
    """One command to run in isolation."""

    tree: Path
    """Copied into the workspace before the command starts in it; never written."""
    environment: Environment
    invocation: Callable[[Places], Invocation]
    timeout_s: float
    folders: Mapping[str, Path] = field(default_factory=dict)
    """Folders shown read-only, by the name under which `Places.folders` tells where."""
    limits: Limits = field(default_factory=Limits)
    requests: int | None = None
    """A descriptor, such as a pipe's reading end, whose bytes come to the command as its standard input while it runs;
    without it, standard input is empty. It stays the caller's to close."""
    writable: Writable | None = None
    """What of the tree the command may change; None for everything, in a copy of its own."""
    watch: bool = False
    """Whether to report, in `Ended.writes`, what the command changes in its tree, all of which must be writable."""
    shows: tuple[Path, ...] = ()
    """Programs and folders of this machine that the command sees, read-only, beyond those that every run does; a
    program comes with the libraries that it loads, a folder as it is."""
    programs: tuple[str, ...] = ()
    """If there are any, the command finds these programs alone, no interpreter and no environment, and writes nothing.
    The plain backend can't hold that."""


class Stop(StrEnum):
    """Why a command is no longer running."""

    EXITED = "exited"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    OUT_OF_MEMORY = "out_of_memory"
    TOO_MUCH_DISK = "too_much_disk"
    TOO_MANY_RESULTS = "too_many_results"
    NOT_STARTED = "not_started"
    """The isolation itself failed before the command began; `output` says how."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. `exit_code` is negative for a signal, None where the command was stopped from outside."""

    stop: Stop
    exit_code: int | None
    output: str
    seconds: float
    reason: str = ""
    """What the isolation says of a failure of its own, in a sentence or two; empty for the usual words."""
    altered: tuple[str, ...] = ()
    """Paths of the tree that the command changed although they were not writable; a backend that does not let it has
    nothing to report."""
    writes: Writable | None = None
    """What the command changed in its tree, if that was asked for."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether a backend works on this machine, shown by running it."""

    works: bool
    version: str = ""
    why_not: str = ""
    mend: str = ""
    """The command or setting that would make it work."""
    warning: str = ""
    """What it does not keep although it works."""


class Backend(Protocol):
    """One kind of isolation."""

    @property
    def name(self) -> str:
        """The name by which `--sandbox` asks for it."""
        ...

    def probe(self) -> Probe:
        """Run a trivial command with the very settings of a real run."""
        ...

    def record(self, limits: Limits) -> BackendRecord:
        """Return what is written into each result."""
        ...

    def run(self, command: Command, *, on_line: Callable[[bytes], None], cancel: CancelToken | None = None) -> Ended:
        """Run to the end, the time limit or the cancel; no process, mount or file of it is left afterwards."""
        ...


_CODE = "import os, sys, ctypes, ssl; os.write(int(sys.argv[1]), sys.argv[2].encode() + b'\\n')"


def probe_command(base: Path, token: bytes) -> Command:
    """Return a command that writes `token` to its result pipe; its tree and environment are made below `base`."""
    base.chmod(0o755)
    interpreter = find_interpreter(own_version())
    tree, environment = base / "tree", base / "environment"
    for folder in (tree, environment / "bin"):
        folder.mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(interpreter.path)
    (environment / "pyvenv.cfg").write_text(f"home = {interpreter.path.parent}\n")

    def invocation(places: Places) -> Invocation:
        arguments = (places.python, "-I", "-c", _CODE, str(places.results_fd), token.decode())
        return Invocation(arguments, {"PATH": "/usr/bin:/bin"})

    described = Environment(environment, interpreter.path, interpreter.prefix, interpreter.version)
    return Command(tree, described, invocation, timeout_s=30.0)
