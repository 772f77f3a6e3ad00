"""What a run of a test suite showed: a set of test ids, each with its outcome, and whether the run can be believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gistpoint.core.ports import Writable


class Outcome(StrEnum):
    """The outcome of one test, its subtests and rerun phases folded into it."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"


class RunStatus(StrEnum):
    """How a run ended. Only `FINISHED` lets a single result of it count."""

    FINISHED = "finished"
    INVALID = "invalid"
    """The report contradicts itself, its exit status or the sentinels."""
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    CRASHED = "crashed"
    """The process died, or left without a finish record."""
    COULD_NOT_RUN = "could_not_run"
    """pytest started but collected nothing it could run."""
    INFRASTRUCTURE = "infrastructure"
    """The harness failed: costs no attempt."""
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test of a run."""

    __test__ = False

    id: str
    outcome: Outcome
    seconds: float = 0.0
    message: str = ""
    """The failure as pytest words it, bounded, paths relative to the repository; empty for a test that passed."""


@dataclass(frozen=True, slots=True)
class BackendRecord:
    """Which isolation a run had, as it is written into every result."""

    name: str
    version: str = ""
    isolated: bool = True
    limits: Mapping[str, int | float | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The results of one run by test id; `reason` says in a sentence why a status is not `FINISHED`."""

    status: RunStatus
    results: Mapping[str, TestResult] = field(default_factory=dict)
    reason: str = ""
    collection_errors: tuple[TestResult, ...] = ()
    in_flight: str = ""
    """The test that was running when the process died."""
    seconds: float = 0.0
    backend: BackendRecord = field(default_factory=lambda: BackendRecord("none", isolated=False))
    output: str = ""
    """The bounded tail of standard output and error: information for people, never parsed."""
    writes: Writable | None = None
    """What the run changed in its tree, if that was asked for; bytecode aside, which Python does without."""

    @property
    def passed(self) -> frozenset[str]:
        """The ids that passed; empty unless the run finished."""
        if self.status is not RunStatus.FINISHED:
            return frozenset()
        return frozenset(id for id, result in self.results.items() if result.outcome is Outcome.PASSED)

    @property
    def failed(self) -> tuple[TestResult, ...]:
        """Tests that failed or errored, in the order they ran."""
        return tuple(r for r in self.results.values() if r.outcome in (Outcome.FAILED, Outcome.ERROR))
