"""Runs of an entrypoint: the protocol that runs it, the results of a run, and their wording."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.core.running import NEVER, CancelToken

if TYPE_CHECKING:
    from gistpoint.core.entrypoints.command import Entrypoint
    from gistpoint.core.outcomes import BackendRecord
    from gistpoint.core.pins import EnvironmentPins
    from gistpoint.core.trees import SourceTree

DOCTEST = "doctest:"
"""The prefix of doctests' names."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception: the qualified name of its type, and its message."""

    type: str
    message: str

    @property
    def text(self) -> str:
        """The type and the message, as at the end of a traceback."""
        return f"{self.type}: {self.message}"


@dataclass(frozen=True, slots=True)
class TestRun:
    """One test of a run with its output; `phase` is `setup`, `call` or `teardown` if it failed there."""

    __test__ = False

    outcome: Outcome
    stdout: str = ""
    stderr: str = ""
    raised: Raised | None = None
    phase: str = ""
    fixed: str | None = None
    """For a test that is made at run time, the hash of the data it is made from; otherwise None."""


@dataclass(frozen=True, slots=True)
class TestGuard:
    """The facts by which a run verifies that the test that ran is the one that was inserted."""

    __test__ = False

    first: int
    last: int
    """The last physical line of the test; `first` is the line of its first decorator, if it has one."""
    decorated: bool
    """Whether decorators other than pytest's marks may have wrapped the test."""
    pytest_names: Mapping[str, str]
    """The attribute of pytest to which each imported name refers; empty for pytest itself."""
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """For a command with several tests, the lines of each test by qualified name."""
    doctests: Mapping[str, str] = field(default_factory=dict)
    """The hash of each docstring that is run, by the name of its object; see `docstring_sha256`."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The module names and the lines of code that are observed in a run.

    `lines` are those on which no comparison should depend. `observed` are the lines of the test and of
    functions in the codebase's test files: the values that they use are observed, in a run whose outcome does
    not count.
    """

    modules: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    observed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Operand:
    """A class of an object that a test used, a base of such a class, or a replaced function.

    `names` are its qualified name and its names at the gist's top level. `specials` are the special methods
    that it defines itself, each with its origin (`gist`, `environment`, `elsewhere`) and its first line in
    the gist.
    """

    names: tuple[str, ...]
    specials: tuple[tuple[str, str, int], ...] = ()
    wild: str = ""
    """The module of an environment's class whose objects may equal anything."""
    replaced: bool = False
    """Whether it is a function of a library that was replaced."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """The observations of the import blocker inside a run."""

    refused_imports: tuple[str, ...] = ()
    original_reads: tuple[str, ...] = ()
    """Files of the codebase that the run opened or tried to open."""
    network: tuple[str, ...] = ()
    """Addresses outside of the machine that were requested; none was reached."""
    own_modules: tuple[str, ...] = ()
    """Files that the run itself wrote and then executed."""
    made_functions: tuple[str, ...] = ()
    """Names of functions in code without a file that the environment executed."""
    made_elsewhere: tuple[str, ...] = ()
    """Names of code without a file that the environment executed, each with the function called for it."""
    made_here: tuple[str, ...] = ()
    """Names of code without a file (a string, marshalled bytes) that the gist or the codebase executed."""
    processes: tuple[str, ...] = ()
    """Programs that were started."""
    stand_ins: tuple[tuple[str, str], ...] = ()
    """The codebase's module names that were bound to an object other than the gist, each with its kind."""
    equal_to_all: tuple[str, ...] = ()
    """Qualified names of functions that made every comparison true."""
    operands: tuple[Operand, ...] | None = None
    """Classes outside the environment of the objects that the test used; None if not observed."""
    classes: tuple[Operand, ...] = ()
    """All classes outside the environment that existed at the end of an observed run."""

    @property
    def clean(self) -> bool:
        """Whether the run used nothing of the codebase."""
        return not self.refused_imports and not self.original_reads


@dataclass(frozen=True, slots=True)
class TestsRun:
    """A run of a pytest entrypoint, with its tests by node id."""

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
    """A run of a command that is not a test."""

    status: RunStatus
    exit_status: int = 0
    """The exit status, or the negative number of the signal that ended the program."""
    stdout: str = ""
    stderr: str = ""
    raised: Raised | None = None
    """The exception that ended the program; None if there was none."""
    isolation: Isolation = Isolation()
    files: Mapping[str, str] = field(default_factory=dict)
    """Hashes of the written files, by path below the working folder; a task lists those that count."""

    @property
    def file_ran(self) -> bool:
        """Whether the file could be compiled and started."""
        compiled = self.raised is None or self.raised.type not in (
            "SyntaxError",
            "IndentationError",
            "TabError",
        )
        return compiled and self.status is RunStatus.FINISHED


@dataclass(frozen=True, slots=True)
class OriginalRun:
    """A run of an entrypoint on the original, with raw outputs.

    `places` are the paths of this run with the words that replace them; `trace` is the tracer's output, or
    None if none was requested; `network` contains the addresses outside of the machine that were requested
    and refused.
    """

    run: TestsRun | CommandRun
    seconds: float
    places: Mapping[str, str] = field(default_factory=dict)
    trace: Mapping[str, object] | None = None
    network: tuple[str, ...] = ()
    reason: str = ""
    """The reason why a run is not `FINISHED`, in a sentence."""
    output: str = ""
    """The end of the output that is not part of `run`, as information for people."""
    defined: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """For each test, the file of the codebase with its code, and the first line of the code."""
    waited: float = 0.0
    """The part of `seconds` in which the run waited for a processor (decision 144)."""


@dataclass(frozen=True, slots=True)
class GistTrial:
    """A run of a gist alone.

    `executed` are the physical lines of the gist that ran; empty if they were not measured.
    """

    run: TestsRun | CommandRun
    seconds: float
    executed: frozenset[int] = frozenset()
    places: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    output: str = ""
    began: bool = True
    """Whether the harness announced its start, which it does before it reads the gist."""


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """The output of a solver's shell command: standard output and error in order.

    `refused` is the reason why the command did not run; empty if it ran.
    """

    text: str
    exit_status: int | None
    seconds: float
    refused: str = ""
    status: RunStatus = RunStatus.FINISHED
    reason: str = ""
    """Why the command was stopped, as a sentence; empty if it ended by itself."""


def shown_run(run: TestsRun | CommandRun) -> str:
    """Return the outcomes, output and exceptions of a run as text."""
    parts = [] if run.status is RunStatus.FINISHED else [f"The run ended as {run.status}."]
    parts += [f"The import of {name} was refused." for name in run.isolation.refused_imports]
    if isinstance(run, CommandRun):
        parts.append(f"Exit status {run.exit_status}.")
        parts += _streams(run.stdout, run.stderr)
        return "\n".join(parts)
    if run.collection_error is not None:
        parts.append(f"It could not be imported.\n{run.collection_error.text}")
    elif not run.tests:
        parts.append("No test was collected.")
    parts += [_test(id, test) for id, test in run.tests.items()]
    return "\n".join(parts)


def _test(id: str, test: TestRun) -> str:
    raised = [test.raised.text] if test.raised else []
    return "\n".join(
        [f"{id.partition('::')[2] or id}: {test.outcome}", *raised, *_streams(test.stdout, test.stderr)]
    )


def _streams(stdout: str, stderr: str) -> list[str]:
    pairs = (("standard output", stdout), ("standard error", stderr))
    return [f"{name}:\n{text.rstrip()}" for name, text in pairs if text.strip()]


class EntrypointRunner(Protocol):
    """Runs a gist task's command on the original and on a gist, and a solver's shell commands.

    Every run is separate and has no network. Errors of the code under test are never raised: the status of
    the result reports them. The methods raise `CancelledError` if a run was stopped on request, and
    `InfrastructureError` if the isolation failed.
    """

    @property
    def backend(self) -> BackendRecord:
        """The isolation in which code runs."""
        ...

    def tests(
        self, tree: SourceTree, environment: EnvironmentPins, *, timeout_s: float, cancel: CancelToken = NEVER
    ) -> tuple[str, ...]:
        """Return the ids of all tests that the suite collects, in its order.

        Raises `InfrastructureError` if the tests could not be collected.
        """
        ...

    def run_original(
        self,
        tree: SourceTree,
        environment: EnvironmentPins,
        entrypoint: Entrypoint,
        *,
        timeout_s: float,
        trace: bool = False,
        elsewhere: bool = False,
        hash_seed: int = 0,
        cancel: CancelToken = NEVER,
    ) -> OriginalRun:
        """Run the command in the repository's tree, with its packages importable, and return the run.

        With `elsewhere`, only the file of the entrypoint is copied, under another name, into an empty folder;
        the packages are importable from another place, and the fixtures of its `conftest.py` files are
        available. With `trace`, the run is traced.
        """
        ...

    def run_gist(
        self,
        text: str,
        environment: EnvironmentPins,
        entrypoint: Entrypoint,
        *,
        owned: Collection[str],
        timeout_s: float,
        forbidden: Collection[str] = (),
        measure_lines: bool = True,
        hash_seed: int = 0,
        guard: TestGuard | None = None,
        watched: Watched | None = None,
        cancel: CancelToken = NEVER,
    ) -> GistTrial:
        """Run a gist alone in an empty folder, without the packages `owned`, and return the run.

        `forbidden` are host folders that contain the codebase, for isolation that can't hide them. A run of a
        test other than the one that `guard` describes does not count. The run is watched for what `watched`
        lists; what was observed is in the `isolation` of the trial's `run`. With `measure_lines`, the lines
        that ran are measured.
        """
        ...

    def run_command(
        self,
        command: str,
        environment: EnvironmentPins,
        *,
        execution: bool,
        timeout_s: float,
        tree: SourceTree | None = None,
        files: Mapping[str, str] | None = None,
        cancel: CancelToken = NEVER,
    ) -> CommandOutput:
        """Run a shell command in `tree`, or in an empty folder, with `files` in addition; return its output.

        Without `execution`, only commands that read files are run: no interpreter and no pytest.
        """
        ...
