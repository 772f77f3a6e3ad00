"""What the core needs from outside: protocols that `sandbox/` and `sessions/` implement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from gistpoint.core.attempts.events import Event
    from gistpoint.core.cancel import CancelToken
    from gistpoint.core.gist.entrypoint_tests import TestGuard
    from gistpoint.core.gist.entrypoints import Entrypoint
    from gistpoint.core.gist.runs import CommandOutput, GistTrial, OriginalRun
    from gistpoint.core.outcomes import BackendRecord, SuiteReport, TestResult
    from gistpoint.core.trees import SourceTree


class TimeSource(Protocol):
    """Where stamps and durations come from; tests use a fake."""

    def utc_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""
        ...

    def mono_ms(self) -> int:
        """Milliseconds of a monotonic clock that stands still while the machine sleeps."""
        ...

    def boot_id(self) -> str:
        """Names the boot of the machine: monotonic times of two boots can't be compared."""
        ...


class Recorder(Protocol):
    """Takes the events of an attempt; `append` returns only when a durable one is on the disk."""

    def append(self, type: str, data: Mapping[str, Any], *, durable: bool = True) -> Event:
        """Write one event behind the last and return it as written."""
        ...


@dataclass(frozen=True, slots=True)
class EnvironmentPins:
    """What a repository's suite needs to run, pinned: the same wherever and whenever it is built."""

    python: str = "3.11"
    lock: tuple[str, ...] = ()
    """Requirement lines `name==version`, each with its hashes; pytest and its plugins are among them."""
    resolved: str = ""
    """Date of the resolution, ISO 8601."""
    import_roots: tuple[str, ...] = (".",)
    """Folders of the tree from which its packages are imported, such as `src`."""
    plugins: tuple[str, ...] = ()
    """pytest plugins to load by name; none is loaded by its entry point."""
    pytest_args: tuple[str, ...] = ()
    build_steps: tuple[str, ...] = ()
    """Shell commands that run in the workspace before the tests of every run, in the same isolation."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """`name` and `version` of the distribution under repair, for suites that ask importlib.metadata for it, and
    `entry_points` where it has some."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run of a suite on a tree."""

    tree: SourceTree
    environment: EnvironmentPins
    timeout_s: float
    select: tuple[str, ...] = ()
    """Test ids to run, in this order; empty for the whole suite."""
    deselect: tuple[str, ...] = ()
    expected: frozenset[str] | None = None
    """The ids that must be collected, no more and no fewer; None where they are not known yet."""
    first: tuple[str, ...] = ()
    """Ids to run before all others, in this order, so that what is wanted is known soonest; the rest follows."""
    backwards: bool = False
    """Run in the opposite order."""
    hash_seed: int = 0
    """How the interpreter orders what has no order (`PYTHONHASHSEED`)."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Where a run stands; sent as it goes."""

    phase: str
    """`preparing`, `collecting`, `running` or `finished`."""
    done: int = 0
    total: int = 0
    latest: TestResult | None = None


class Runner(Protocol):
    """Runs a suite where code from a repository may run."""

    @property
    def backend(self) -> BackendRecord:
        """The isolation it has."""
        ...

    def run(
        self,
        request: RunRequest,
        *,
        on_progress: Callable[[RunProgress], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> SuiteReport:
        """Run and report. Never raises for what the code under test does; the report's status tells."""
        ...


class EntrypointRunner(Protocol):
    """Runs the command of a gist task: on the original, on a gist alone, and what a solver types.

    Every run is one of its own, without network, and never raises for what the code under test does: the status of
    its result tells. `CancelledError` is raised where a run was stopped on request, `InfrastructureError` where the
    isolation failed.
    """

    @property
    def backend(self) -> BackendRecord:
        """The isolation it has."""
        ...

    def tests(
        self, tree: SourceTree, environment: EnvironmentPins, *, timeout_s: float, cancel: CancelToken | None = None
    ) -> tuple[str, ...]:
        """Return the ids of all tests that the suite collects, in its order. Raises `InfrastructureError`."""
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
        cancel: CancelToken | None = None,
    ) -> OriginalRun:
        """Run the command in the repository's tree, its packages importable.

        `elsewhere` copies the file of the entrypoint alone, under another name, into an empty folder, with the
        packages importable from another place and the fixtures of its `conftest.py` files at hand.
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
        cancel: CancelToken | None = None,
    ) -> GistTrial:
        """Run a gist alone in an empty folder; modules of the top-level names `owned` can't be imported.

        `forbidden` are folders of the host that hold the codebase, for isolation that can't keep them out of sight.
        A run in which something else than the test that `guard` describes is tested is not believed.
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
        cancel: CancelToken | None = None,
    ) -> CommandOutput:
        """Run a shell command in `tree`, or in an empty folder, with `files` written beside what is there.

        Without `execution` only commands that read are run: no interpreter and no pytest.
        """
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """Where a repository comes from: `kind` is `sdist`, `folder` or `git`."""

    kind: str
    name: str
    revision: str
    """Version of an sdist, commit of a git repository, hash of a folder's content."""
    location: str = ""
    """As the user gave it; never written into a task."""


class SourceFetcher(Protocol):
    """Brings a repository onto this machine."""

    def fetch(self, specification: str, into: Path) -> tuple[Source, Path]:
        """Fetch what `specification` names below `into`; return what it is and the folder of its files."""
        ...


class EnvironmentResolver(Protocol):
    """Finds out what a repository's suite needs, and pins it."""

    def resolve(
        self,
        folder: Path,
        *,
        extra_requirements: tuple[str, ...],
        exclude_newer: str | None,
        pytest_args: tuple[str, ...],
    ) -> EnvironmentPins:
        """Pin everything by version and hash. Raises `EnvironmentBuildError` naming the requirement."""
        ...
