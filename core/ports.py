"""The protocols that the core needs and that `sandbox/` and `sessions/` implement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from gistpoint.core.running import NEVER, UNATTENDED, CancelToken, RunContext

if TYPE_CHECKING:
    from gistpoint.core.callgraph import ObservedCall
    from gistpoint.core.chat import ChatFailure, ChatMessage, ChatReply
    from gistpoint.core.code.testmap import TestMap
    from gistpoint.core.outcomes import BackendRecord, RunStatus, SuiteReport, Writable
    from gistpoint.core.pins import EnvironmentPins
    from gistpoint.core.tasks.model import Target
    from gistpoint.core.trees import SourceTree


class TimeSource(Protocol):
    """The source of timestamps and durations; tests use a fake."""

    def utc_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""
        ...

    def mono_ms(self) -> int:
        """Milliseconds of a monotonic clock that stops while the machine sleeps."""
        ...

    def boot_id(self) -> str:
        """Return the id of the machine's boot: monotonic times of two boots can't be compared."""
        ...


@dataclass(frozen=True, slots=True)
class WatchedSpan:
    """Lines of a file, from the first to the last, counted from 1, whose code is watched as it runs."""

    path: str
    first: int
    last: int


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
    """Exactly the ids that must be collected; None if they are not known yet."""
    first: tuple[str, ...] = ()
    """Ids to run before all others, in this order, so that the important results come first."""
    backwards: bool = False
    """Run in the opposite order."""
    hash_seed: int = 0
    """The seed of the interpreter's hashes, which decides the order of sets (`PYTHONHASHSEED`)."""
    writable: Writable | None = None
    """The parts of the tree that the run may change; None for everything, in a separate copy."""
    watch: bool = False
    """Whether to report what the run changes in its tree."""
    watched: tuple[WatchedSpan, ...] = ()
    """Submitted code that an audit hook watches, with `expected` as the tests; empty for a plain run."""


class Runner(Protocol):
    """Runs a suite in a place where code of a repository may run."""

    @property
    def backend(self) -> BackendRecord:
        """The isolation of its runs."""
        ...

    def run(
        self,
        request: RunRequest,
        *,
        run: RunContext = UNATTENDED,
    ) -> SuiteReport:
        """Run and report. Never raises because of the code under test; the report's status shows what
        happened.
        """
        ...


class TestMapper(Protocol):
    """Records which tests run which functions."""

    def record(
        self,
        tree: SourceTree,
        environment: EnvironmentPins,
        ids: Collection[str],
        *,
        run: RunContext = UNATTENDED,
    ) -> tuple[TestMap, tuple[ObservedCall, ...]]:
        """Run the tests named by `ids` once and return the functions that they entered, and the calls between
        them.

        Outcomes are ignored: some tests fail only because they are watched. Raises `RecordingError` if the
        run did not end by itself, `CancelledError` if it was stopped.
        """
        ...


@dataclass(frozen=True, slots=True)
class ProbeFailure:
    """The outcome of a test that passes on the original."""

    message: str
    """The failure in pytest's words, bounded, paths relative to the repository."""
    assertion: bool = False
    """Whether an assertion of a test failed; false for any other exception, and for a test that was skipped.
    """
    through_target: bool = False
    """Whether the traceback, or that of its cause, passes through the code of a corrupted function."""
    error_type: str = ""
    """The name of the exception's class, without its module; empty if there is none."""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """The results of some tests on a corrupted tree, which decide if a candidate is worth a run of the whole
    suite.
    """

    status: RunStatus
    """As for a run of the suite; also `FINISHED` if the probe stopped after enough failures."""
    failed: Mapping[str, ProbeFailure] = field(default_factory=dict)
    """The tests that pass on the original and did not pass in the probe, in the order in which they ran."""
    ran: int = 0
    """How many tests finished."""
    seconds: float = 0.0
    """Seconds from the request to the result."""
    how: str = "warm"
    """`warm`: in a fork of a process that has collected the suite; `fresh`: in a new process."""
    reason: str = ""
    """Why the status is not `FINISHED`, or why the probe was `fresh`."""


class Prober(Protocol):
    """Tries candidates on the tests that can see them; made for one tree, its environment and its test map.

    Only for gistpoint's own corruptions: unlike a `Runner`, it believes what the tested process reports.
    """

    def decide(
        self,
        targets: tuple[Target, ...],
        select: tuple[str, ...] = (),
        *,
        stop_after: int | None = None,
        cancel: CancelToken = NEVER,
    ) -> ProbeReport:
        """Run the tests `select` with `targets` corrupted; empty for all tests that can see them by the test
        map.

        Stops after `stop_after` failures. Never raises because of the code under test; raises `CodeError` if
        a target does not fit its file.
        """
        ...

    def close(self) -> None:
        """End the warm process. A later `decide` starts it again."""
        ...


class Linter(Protocol):
    """Finds suspicious code without running it."""

    def findings(self, texts: Sequence[str]) -> list[Counter[str]]:
        """Return how often each rule is broken in each text, which is one definition at the left margin.

        Raises `InfrastructureError` if the linter can't be run.
        """
        ...


class ChatModel(Protocol):
    """A language model that can call tools."""

    @property
    def name(self) -> str:
        """The model's name as it is requested."""
        ...

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply | ChatFailure:
        """Send a conversation and return the answer; `tools` are declarations in JSON schema.

        Raises `CancelledError` when stopped; failures of an endpoint or a model are returned.
        """
        ...
