"""What a run of an entrypoint showed, as the sandbox reports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gistpoint.core.outcomes import Outcome, RunStatus


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception: its type's qualified name, and its message."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class TestRun:
    """One test of a run, with what it printed; `phase` is where it failed: `setup`, `call` or `teardown`."""

    __test__ = False

    outcome: Outcome
    stdout: str = ""
    stderr: str = ""
    raised: Raised | None = None
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Isolation:
    """What the blocker inside the run saw."""

    refused_imports: tuple[str, ...] = ()
    original_reads: tuple[str, ...] = ()
    """Files of the codebase that were opened, or tried to be."""
    network: tuple[str, ...] = ()
    """Addresses outside of the machine that were asked for; none was reached."""
    own_modules: tuple[str, ...] = ()
    """Files that the run itself had written, and executed."""
    made_functions: tuple[str, ...] = ()
    """Names of functions in code from nowhere that the environment's own code executed."""
    made_elsewhere: tuple[str, ...] = ()
    """Names of all such code, each with the function of the environment that was called for it."""
    made_here: tuple[str, ...] = ()
    """Names of code from nowhere (a string, marshalled bytes) that the gist's or the codebase's own code executed."""
    processes: tuple[str, ...] = ()
    """Programs that were started."""
    stand_ins: tuple[tuple[str, str], ...] = ()
    """Names of modules of the codebase under which something else than the gist stood, each with its kind."""
    equal_to_all: tuple[str, ...] = ()
    """Qualified names of functions that said yes to whatever they were compared with."""

    @property
    def clean(self) -> bool:
        """Whether nothing of the codebase was asked for."""
        return not self.refused_imports and not self.original_reads


@dataclass(frozen=True, slots=True)
class TestsRun:
    """A run of a pytest entrypoint, tests by node id."""

    __test__ = False

    status: RunStatus
    tests: Mapping[str, TestRun] = field(default_factory=dict)
    collection_error: Raised | None = None
    isolation: Isolation = Isolation()

    @property
    def file_ran(self) -> bool:
        """Whether the file could be imported and its tests were started."""
        return self.collection_error is None and bool(self.tests)


@dataclass(frozen=True, slots=True)
class CommandRun:
    """A run of a command that is no test."""

    status: RunStatus
    exit_status: int = 0
    """Negative: the signal that ended it."""
    stdout: str = ""
    stderr: str = ""
    raised: Raised | None = None
    """The exception that ended the program, if one did."""
    isolation: Isolation = Isolation()
    files: Mapping[str, str] = field(default_factory=dict)
    """Hashes of the files written, by path below the working folder; those that the task lists are compared."""

    @property
    def file_ran(self) -> bool:
        """Whether the file could be compiled and started."""
        compiled = self.raised is None or self.raised.type not in ("SyntaxError", "IndentationError", "TabError")
        return compiled and self.status is RunStatus.FINISHED


@dataclass(frozen=True, slots=True)
class OriginalRun:
    """A run of an entrypoint on the original; outputs are raw.

    `places` are the paths of this run with the words that stand for them; `trace` is as the tracer wrote it, None
    where none was asked for; `network` are the addresses outside of the machine that were asked for and refused.
    """

    run: TestsRun | CommandRun
    seconds: float
    places: Mapping[str, str] = field(default_factory=dict)
    trace: Mapping[str, object] | None = None
    network: tuple[str, ...] = ()
    reason: str = ""
    """Why a run is not `FINISHED`, in a sentence."""
    output: str = ""
    """The tail of what else was printed: information for people."""


@dataclass(frozen=True, slots=True)
class GistTrial:
    """A run of a gist alone; `executed` are the physical lines of it that ran, empty where they were not measured."""

    run: TestsRun | CommandRun
    seconds: float
    executed: frozenset[int] = frozenset()
    places: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """What a shell command of a solver printed, standard output and error as they came; `refused` is why it did not
    run at all.
    """

    text: str
    exit_status: int | None
    seconds: float
    refused: str = ""
    status: RunStatus = RunStatus.FINISHED
