"""The protocols required by the core and implemented by `sandbox/` and `sessions/`."""

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
        """Return the milliseconds since the epoch, in UTC."""
        ...

    def mono_ms(self) -> int:
        """Return the milliseconds of a monotonic clock that stops while the machine sleeps."""
        ...

    def boot_id(self) -> str:
        """Return the id of the machine's boot; monotonic times of two boots can't be compared."""
        ...


@dataclass(frozen=True, slots=True)
class WatchedSpan:
    """Lines of a file, counted from 1, first and last inclusive, whose code is watched during a run."""

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
    """The test ids to run, in order; empty for the whole suite."""
    deselect: tuple[str, ...] = ()
    expected: frozenset[str] | None = None
    """The exact set of ids that must be collected; None if unknown."""
    first: tuple[str, ...] = ()
    """The ids to run first, in order, so that important results come first."""
    backwards: bool = False
    """Whether to run in reverse order."""
    hash_seed: int = 0
    """The seed of the interpreter's hashes, which determines the order of sets (`PYTHONHASHSEED`)."""
    writable: Writable | None = None
    """The parts of the tree that the run may change; None for all, in a separate copy."""
    watch: bool = False
    """Whether to report the run's changes to its tree."""
    patience: float = 1.0
    """The factor by which the run may exceed its time limit while it waits for a processor (decision 144)."""
    watched: tuple[WatchedSpan, ...] = ()
    """The submitted code for an audit hook to watch, with `expected` as the tests; empty for none."""


class Runner(Protocol):
    """Runs suites, isolated like any code of a repository."""

    @property
    def backend(self) -> BackendRecord:
        """The isolation of the runs."""
        ...

    def run(
        self,
        request: RunRequest,
        *,
        run: RunContext = UNATTENDED,
    ) -> SuiteReport:
        """Run the suite, and return its report.

        Never raises because of the code under test; the status shows what happened.
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
        """Run tests once; return the functions they enter, and the calls between functions.

        Outcomes are ignored, because some tests fail only under observation. Raises `RecordingError` if the
        run was cut short, and `CancelledError` if the user stopped it.
        """
        ...


@dataclass(frozen=True, slots=True)
class ProbeFailure:
    """The failure, in a probe, of a test that passes on the original."""

    message: str
    """pytest's text of the failure, bounded, with paths relative to the repository."""
    assertion: bool = False
    """Whether an assertion of the test failed; false for any other exception, and for a skipped test."""
    through_target: bool = False
    """Whether the traceback, or its cause's, passes through a corrupted function."""
    error_type: str = ""
    """The bare name of the exception's class; empty if there is none."""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """The results of some tests on a corrupted tree, which decide whether the whole suite is run."""

    status: RunStatus
    """The status, as for a run of a suite; also `FINISHED` if the probe stopped after enough failures."""
    failed: Mapping[str, ProbeFailure] = field(default_factory=dict)
    """The failures of tests that pass on the original, in the order of the probe."""
    ran: int = 0
    """The number of tests that finished."""
    seconds: float = 0.0
    """The seconds from the request to the result."""
    how: str = "warm"
    """`warm` for a fork of a process with the suite collected, `fresh` for a new process."""
    reason: str = ""
    """The reason why the status is not `FINISHED`, or why the probe was `fresh`."""


class Prober(Protocol):
    """Probes candidates on the tests that can see them, for one tree, environment and test map.

    Only for gistpoint's own corruptions: unlike a `Runner`, it trusts the reports of the tested process.
    """

    def decide(
        self,
        targets: tuple[Target, ...],
        select: tuple[str, ...] = (),
        *,
        stop_after: int | None = None,
        cancel: CancelToken = NEVER,
    ) -> ProbeReport:
        """Run the tests `select`, by default all that see the corrupted `targets`, and return the report.

        Stops after `stop_after` failures. Never raises because of the code under test; raises `CodeError` if
        a target does not fit its file.
        """
        ...

    def close(self) -> None:
        """End the warm process, which a later `decide` restarts."""
        ...


class Linter(Protocol):
    """Finds suspicious code without running it."""

    def findings(self, texts: Sequence[str]) -> list[Counter[str]]:
        """Return the number of violations of each rule for each definition in `texts`.

        A definition starts at the left margin. Raises `InfrastructureError` if the linter can't be run.
        """
        ...


class ChatModel(Protocol):
    """A language model that can call tools."""

    @property
    def name(self) -> str:
        """The model's requested name."""
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
