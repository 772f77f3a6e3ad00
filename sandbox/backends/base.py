"""The interface between a test run and its isolation.

A backend copies a folder into a place that the run may write to, shows it an environment and named folders
read-only, starts one command there under limits, passes on the lines of the result pipe, and leaves nothing
behind.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from gistpoint.core.errors import SandboxUnavailableError
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.unfinished import scratch_folder
from gistpoint.sandbox.layout import MountPaths
from gistpoint.sandbox.limits import RunLimits

if TYPE_CHECKING:
    from gistpoint.core.outcomes import BackendRecord, Writable
    from gistpoint.core.pins import ImagePins


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter outside of any virtual environment."""

    path: Path
    prefix: Path
    """The folder in which the interpreter is installed (`sys.base_prefix`)."""
    version: str
    """The version of Python, such as `3.11`."""


@cache
def own_interpreter() -> Interpreter:
    """Return the interpreter that runs gistpoint, or that its virtual environment is based on."""
    path = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return Interpreter(path, Path(sys.base_prefix).resolve(), version)


IMAGES_RUN_ON = "docker"
"""The only backend that can run commands in an image that a task names."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment on this machine or in an image, and the interpreter that it is based on."""

    folder: Path
    interpreter: Path
    """The real path of the interpreter, outside the environment."""
    prefix: Path
    """The folder in which that interpreter is installed (`sys.base_prefix`)."""
    version: str
    """The version of Python, such as `3.11`."""
    image: ImagePins | None = None
    """The image that is the environment, or None; the paths are then those in the image."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """The arguments to execute, and the complete environment, because none is inherited."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Command:
    """One command to run in isolation."""

    tree: Path
    """The folder that is copied into the workspace before the command starts there; never written to."""
    environment: Environment
    invocation: Callable[[MountPaths], Invocation]
    timeout_s: float
    patience: float = field(default=1.0, kw_only=True)
    """The multiple of the limit that a command may take while it waits for a processor (decision 144).

    Only for commands that no solver submitted: a hostile command could wait on purpose.
    """
    folders: Mapping[str, Path] = field(default_factory=dict)
    """The folders that are shown read-only, by their names in `MountPaths.folders`."""
    limits: RunLimits = field(default_factory=RunLimits)
    requests: int | None = None
    """A descriptor whose bytes the command gets as its standard input while it runs, or None.

    It can be the reading end of a pipe; the caller closes it. Without it, standard input is empty.
    """
    writable: Writable | None = None
    """The part of the tree that the command may change; None for everything, in a separate copy."""
    watch: bool = False
    """Whether to report the command's changes to its tree in `Ended.writes`.

    The whole tree must be writable then.
    """
    shows: tuple[Path, ...] = ()
    """Further programs and folders on this machine that the command sees, read-only.

    A program is shown with the libraries that it loads, a folder with its whole content.
    """
    programs: tuple[str, ...] = ()
    """If given, the command finds only these programs, no interpreter and no environment.

    The command then can't write anything. The plain backend can't enforce that.
    """


class Stop(StrEnum):
    """The reason why a command is no longer running."""

    EXITED = "exited"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    OUT_OF_MEMORY = "out_of_memory"
    TOO_MUCH_DISK = "too_much_disk"
    TOO_MANY_RESULTS = "too_many_results"
    NOT_STARTED = "not_started"
    """The isolation itself failed, so nothing in the run counts; `reason` or `output` explains how."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a command.

    `exit_code` is negative for a signal, and None if the command was stopped from outside. If the command did
    not start, it is the isolation's exit code, or None.
    """

    stop: Stop
    exit_code: int | None
    output: str
    seconds: float
    reason: str = ""
    """The isolation's explanation of its own failure, in one or two sentences; empty if there is none."""
    altered: tuple[str, ...] = ()
    """The paths of the tree that the command changed although they were not writable.

    There are none for a backend that prevents such changes.
    """
    writes: Writable | None = None
    """The command's changes to its tree if `Command.watch` is set, otherwise None."""
    waited: float = 0.0
    """The part of `seconds` in which the command waited for a processor; 0 without `patience`."""


@dataclass(frozen=True, slots=True)
class BackendProbe:
    """Whether a backend works on this machine, determined by running it."""

    works: bool
    version: str = ""
    why_not: str = ""
    fix: str = ""
    """The remedy, such as a command, a setting or another backend; empty if none is known."""
    warning: str = ""
    """A guarantee that the backend does not give although it works."""


class Backend(Protocol):
    """One kind of isolation."""

    expects: ClassVar[Mapping[str, str]]
    """The outcomes of attacks that differ from those in `attacks.table`, by the attack's name.

    They are declared here, so that backends from other packages can have them too (decision 63).
    """

    @property
    def name(self) -> str:
        """The name that `--sandbox` accepts."""
        ...

    def enforces(self) -> Mapping[str, str]:
        """Return how each of `limits.LIMITS` is enforced on this machine (see `limits.enforcement`)."""
        ...

    def probe(self) -> BackendProbe:
        """Run a trivial command with the settings of a real run, and return whether that works."""
        ...

    def record(self, limits: RunLimits) -> BackendRecord:
        """Return the description of the backend that is written into each result."""
        ...

    def run(
        self, command: Command, *, on_line: Callable[[bytes], None], cancel: CancelToken = NEVER
    ) -> Ended:
        """Run `command` to its end, its time limit or its cancellation, and return how it ended.

        None of its processes, mounts and files remain afterwards.
        """
        ...


def run_on(
    backend: Backend, command: Command, *, on_line: Callable[[bytes], None], cancel: CancelToken = NEVER
) -> Ended:
    """Run `command` on `backend`, and return how it ended; an `OSError` is returned as `NOT_STARTED`."""
    try:
        return backend.run(command, on_line=on_line, cancel=cancel)
    # Not the submission's fault, because none of its code has run (decision 121).
    except OSError as error:
        reason = f"The isolation ({backend.name}) could not be started: {error}."
        return Ended(Stop.NOT_STARTED, None, "", 0.0, reason=reason)


_CODE = "import os, sys, ctypes, ssl; os.write(int(sys.argv[1]), sys.argv[2].encode() + b'\\n')"


_TRIED_BYTES = 1 << 16
_PROBE_S = 30.0
NO_ANSWER = "gave no answer"
"""The complaint about a backend whose trivial command did not end in time."""


def _require_room() -> None:
    """Raise `SandboxUnavailableError` if nothing can be written to the folder for temporary files.

    Otherwise, a backend would seem not to work, and a weaker one, or none, would be used in its place.
    """
    try:
        with tempfile.TemporaryFile() as file:
            file.write(bytes(_TRIED_BYTES))
    except OSError as error:
        place = os.environ.get("TMPDIR", "/tmp")
        raise SandboxUnavailableError(
            f"Isolation could not be tried: {place} can't be written ({error.strerror}).",
            hint=(
                "Free some space there, or set TMPDIR to another folder. Until then, it is not known which "
                "backends work here."
            ),
        ) from error


def complaint_of(backend: Backend) -> str:
    """Run a trivial command with the settings of every run; return why it failed, empty if it did not.

    Raises `SandboxUnavailableError` if no temporary file can be written, because a failure would then say
    nothing about the backend, and `OSError` if the backend could not be started.
    """
    _require_room()
    token = os.urandom(8).hex().encode()
    lines = list[bytes]()
    try:
        with scratch_folder("probe") as name:
            ended = backend.run(probe_command(Path(name).resolve(), token), on_line=lines.append)
    except OSError:
        _require_room()
        raise
    succeeded = ended.stop is Stop.EXITED and ended.exit_code == 0
    if succeeded and lines == [token]:
        return ""
    _require_room()
    if ended.stop is Stop.TIMED_OUT:
        return f"it {NO_ANSWER} within {_PROBE_S:g} s"
    return (ended.output.strip().splitlines() or [f"it ended with status {ended.exit_code}"])[-1]


def probe_command(base: Path, token: bytes) -> Command:
    """Return a command that writes `token` to its result pipe.

    Its tree and its environment are created below `base`.
    """
    base.chmod(0o755)
    interpreter = own_interpreter()
    tree = base / "tree"
    environment = base / "environment"
    for folder in (tree, environment / "bin"):
        folder.mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(interpreter.path)
    (environment / "pyvenv.cfg").write_text(f"home = {interpreter.path.parent}\n")

    def invocation(places: MountPaths) -> Invocation:
        arguments = (places.python, "-I", "-c", _CODE, str(places.results_fd), token.decode())
        return Invocation(arguments, {"PATH": "/usr/bin:/bin"})

    described = Environment(environment, interpreter.path, interpreter.prefix, interpreter.version)
    # On a busy machine, a backend that works would seem not to, and a weaker one would take its place.
    return Command(tree, described, invocation, timeout_s=_PROBE_S, patience=10.0)
