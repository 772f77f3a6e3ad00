"""What the core needs from outside: protocols that `sandbox/` and `sessions/` implement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from gistpoint.core.kinds.gist.runs import EntrypointRunner as EntrypointRunner

if TYPE_CHECKING:
    from pathlib import Path

    from gistpoint.core.attempts.events import Event
    from gistpoint.core.callgraph.graph import ObservedCall
    from gistpoint.core.cancel import CancelToken
    from gistpoint.core.chat import ChatFailure, ChatMessage, ChatReply
    from gistpoint.core.generation.testmap import TestMap
    from gistpoint.core.outcomes import BackendRecord, RunStatus, SuiteReport, TestResult
    from gistpoint.core.tasks.model import Target
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
class Writable:
    """What of its tree a run may change; whatever else lies there is kept as it is. Paths are relative to the tree."""

    folders: tuple[str, ...] = ()
    """Folders, `.` for the tree itself, in which the run makes and removes entries of its own."""
    paths: tuple[str, ...] = ()
    """Files and folders that are the run's to change or remove, with all that lies in them."""


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
    writable: Writable | None = None
    """What of the tree the run may change; None for everything, in a copy of its own."""
    watch: bool = False
    """Whether to report what the run changes in its tree."""


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


class TestMapper(Protocol):
    """Records which tests run which functions."""

    def record(
        self,
        tree: SourceTree,
        environment: EnvironmentPins,
        ids: Collection[str],
        *,
        on_progress: Callable[[RunProgress], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> tuple[TestMap, tuple[ObservedCall, ...]]:
        """Run the tests named by `ids` once and return what they entered, and which code called which.

        How the tests come out is of no account: some fail only because they are watched. Raises `RecordingError` where
        the run did not end by itself, `CancelledError` where it was stopped.
        """
        ...


@dataclass(frozen=True, slots=True)
class ProbeFailure:
    """How one test came out that passes on the original."""

    message: str
    """The failure as pytest words it, bounded, paths relative to the repository."""
    assertion: bool = False
    """Whether an assertion of a test failed; false for any other exception, and for a test that was skipped."""
    through_target: bool = False
    """Whether the traceback, or that of an exception behind it, passes through the code of a corrupted function."""
    error_type: str = ""
    """The name of the exception's class, without its module; empty where there is none."""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What some tests show on a corrupted tree. It decides whether a candidate is worth a run of the whole suite."""

    status: RunStatus
    """As for a run of the suite; `FINISHED` also where the probe stopped after enough failures."""
    failed: Mapping[str, ProbeFailure] = field(default_factory=dict)
    """The tests that pass on the original and did not pass here, in the order they ran."""
    ran: int = 0
    """How many tests came to their end."""
    seconds: float = 0.0
    """From the question to the answer."""
    how: str = "warm"
    """`warm`: in a fork of a process that has collected the suite; `fresh`: in a process of its own."""
    reason: str = ""
    """Why the status is not `FINISHED`, or why the probe was a fresh one."""


class Prober(Protocol):
    """Tries candidates on the tests that can see them; made for one tree, its environment and its test map.

    For gistpoint's own corruptions alone: unlike a `Runner`, it believes what the tested process says of itself.
    """

    def decide(
        self,
        targets: tuple[Target, ...],
        select: tuple[str, ...] = (),
        *,
        stop_after: int | None = None,
        cancel: CancelToken | None = None,
    ) -> ProbeReport:
        """Run the tests `select` with `targets` corrupted; empty for all that the test map says can see them.

        Stops after `stop_after` failures. Never raises for what the code does; raises `CodeError` where a target does
        not fit its file.
        """
        ...

    def close(self) -> None:
        """End what is kept warm. A later `decide` starts it again."""
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


class ChatModel(Protocol):
    """A language model that can call tools."""

    @property
    def name(self) -> str:
        """The model's name as it is asked for."""
        ...

    def complete(
        self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]], *, cancel: CancelToken | None = None
    ) -> ChatReply | ChatFailure:
        """Send a conversation and return what comes back; `tools` are declarations in JSON schema.

        Raises `CancelledError` when stopped, and nothing for what an endpoint or a model does.
        """
        ...
