"""The results of a test suite's run: the outcome of each test id, and whether the run is valid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of one test, including its subtests and rerun phases."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"


class RunStatus(StrEnum):
    """The way in which a run ended; its results count only if it is `FINISHED`."""

    FINISHED = "finished"
    INVALID = "invalid"
    """The report contradicts itself, its exit status or the sentinels."""
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    CRASHED = "crashed"
    """The process died, or ended without a finish record."""
    COULD_NOT_RUN = "could_not_run"
    """pytest started but could not collect a test to run."""
    INFRASTRUCTURE = "infrastructure"
    """The run could not be prepared, which costs no submission."""
    HARNESS_FAILED = "harness_failed"
    """The harness did not start, or something other than the submission ended it (decision 121)."""
    CANCELLED = "cancelled"


FREE = frozenset({RunStatus.INFRASTRUCTURE, RunStatus.HARNESS_FAILED})
"""The statuses that cost no submission, because the harness failed, not the solver.

A cancelled run is not among them: its progress has shown how many tests fail (decision 3).
"""


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of one test in a run."""

    __test__ = False

    id: str
    outcome: Outcome
    seconds: float = 0.0
    message: str = ""
    """pytest's text of the failure, bounded, with paths relative to the repository; empty if passed."""


@dataclass(frozen=True, slots=True)
class BackendRecord:
    """The isolation of a run, as recorded in every result."""

    name: str
    version: str = ""
    isolated: bool = True
    limits: Mapping[str, int | float | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Writable:
    """The parts of its tree that a run may change, by relative path; everything else is protected."""

    folders: tuple[str, ...] = ()
    """The folders in which the run creates and removes its own entries; `.` is the tree itself."""
    paths: tuple[str, ...] = ()
    """The files and folders that the run may change or remove, with their contents."""


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The results of one run by test id; `reason` is a sentence if the status is not `FINISHED`."""

    status: RunStatus
    results: Mapping[str, TestResult] = field(default_factory=dict)
    reason: str = ""
    collection_errors: tuple[TestResult, ...] = ()
    in_flight: str = ""
    """The id of the test running when the process died."""
    seconds: float = 0.0
    backend: BackendRecord = field(default_factory=lambda: BackendRecord("none", isolated=False))
    output: str = ""
    """The bounded tail of standard output and error, for people and never parsed."""
    writes: Writable | None = None
    """The run's changes to its tree, if requested, except bytecode, which Python does not need."""
    began: bool = True
    """Whether the reporter announced its start, which precedes all imports from the tree."""
    waited: float = 0.0
    """The part of `seconds` in which the run waited for a processor; 0 unless its request had patience."""
    watched: tuple[str, ...] = ()
    """Acts of the watched code that may influence its judge, sorted; empty if nothing was watched."""

    @property
    def passed(self) -> frozenset[str]:
        """The ids that passed; empty unless the run finished."""
        if self.status is not RunStatus.FINISHED:
            return frozenset()
        return frozenset(id for id, result in self.results.items() if result.outcome is Outcome.PASSED)

    @property
    def failed(self) -> tuple[TestResult, ...]:
        """The results that failed or errored, in the order of the run."""
        return tuple(r for r in self.results.values() if r.outcome in (Outcome.FAILED, Outcome.ERROR))
