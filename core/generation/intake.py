"""Intake: what a repository's suite shows on the original, three runs alike, or the reason why it is no good."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from gistpoint.core.attempts.protection import NOTHING, hold_to_writes
from gistpoint.core.cancel import CancelToken
from gistpoint.core.code.testfiles import is_test_path
from gistpoint.core.errors import InfrastructureError, NegativeVerdictError
from gistpoint.core.generation.testmap import TestMap
from gistpoint.core.outcomes import Outcome, RunStatus, SuiteReport
from gistpoint.core.ports import EnvironmentPins, Runner, RunProgress, RunRequest, Source, TestMapper, Writable
from gistpoint.core.tasks.protection import Protection
from gistpoint.core.trees import SourceTree

_SCRIPTS = {"setup.py", "noxfile.py", "conftest.py", "fabfile.py", "tasks.py"}


def packages_of(tree: SourceTree, import_roots: tuple[str, ...]) -> list[str]:
    """Return the names that can be imported from a tree's import roots, tests left out."""
    names: set[str] = set()
    for root in import_roots or (".",):
        folder = "" if root in (".", "") else posixpath.normpath(root)
        if not tree.is_directory(folder):
            continue
        prefix = f"{folder}/" if folder else ""
        for entry, kind in tree.entries(folder):
            path = prefix + entry
            if kind == "dir" and tree.is_file(f"{path}/__init__.py") and not is_test_path(f"{path}/__init__.py"):
                names.add(entry)
            elif kind == "file" and entry.endswith(".py") and not is_test_path(path) and entry not in _SCRIPTS:
                names.add(entry.removesuffix(".py"))
    return sorted(name for name in names if name.isidentifier())


RUNS = 3
MAX_SUITE_SECONDS = 60.0
LEAST_TIMEOUT_S = 30.0
LOOK = "`gistpoint doctor` says what works here; nothing that was found out is lost, the same command can be repeated."
_GRACE_SECONDS = 30.0
"""A run is stopped only this long behind the limit, so that a suite just above it is told as too slow."""


class NoGood(StrEnum):
    """Why no task can be made: a closed set, counted by generation."""

    NO_TESTS = "no_tests"
    NOT_GREEN = "suite_not_green"
    TOO_SLOW = "suite_too_slow"
    COULD_NOT_RUN = "suite_could_not_run"
    TOO_FEW_FAILING = "too_few_failing_tests"
    BREAKS_COLLECTION = "breaks_collection_only"
    HANGS = "hangs_or_exhausts_memory"
    NOT_REMOVABLE = "function_not_removable"
    NO_CANDIDATE = "no_candidate"
    NO_CORRUPTION = "model_gave_no_corruption"


class NoTaskError(NegativeVerdictError):
    """A repository or a corruption makes no task: a verdict, not a mistake."""

    def __init__(self, reason: NoGood, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository that is about to become a task."""

    source: Source
    tree: SourceTree
    environment: EnvironmentPins


@dataclass(frozen=True, slots=True)
class Intake:
    """What the suite of a repository shows on the original."""

    repository: Repository
    collected: frozenset[str]
    passed: frozenset[str]
    flaky: tuple[str, ...]
    seconds: float
    """The slowest run."""
    runs: int
    test_map: TestMap | None = None
    """Which tests enter which functions, where it was recorded."""
    protection: Protection | None = None
    """What of its tree the suite may change; None if that is not known."""

    @property
    def test_files(self) -> tuple[str, ...]:
        """Files from which tests were collected, sorted."""
        return tuple(sorted({id.partition("::")[0] for id in self.collected}))

    @property
    def timeout_s(self) -> float:
        """Seconds after which a run of the suite is stopped: five times what it took, and enough for a busy machine."""
        return float(max(LEAST_TIMEOUT_S, round(5 * self.seconds)))

    @property
    def writable(self) -> Writable | None:
        """What a run of the suite may change in its tree; None for everything."""
        return self.protection.writable if self.protection is not None else None


@dataclass(frozen=True, slots=True)
class MakingProgress:
    """Where the making of a task stands."""

    step: str
    """What is being done, in a few words."""
    run: RunProgress | None = None


OnMaking = Callable[[MakingProgress], None]


def take_in(
    repository: Repository,
    runner: Runner,
    *,
    runs: int = RUNS,
    deselect: tuple[str, ...] = (),
    on_progress: OnMaking | None = None,
    cancel: CancelToken | None = None,
) -> Intake:
    """Run the suite of the original `runs` times. Raises `NoTaskError` where it is not green, too slow or empty.

    A test whose outcome differs between two runs is flaky: deselected, and named. In the last run the tree is
    read-only. If the suite does not bear that, there is another one, and one in which it may change what it changes.
    """
    limit = MAX_SUITE_SECONDS + _GRACE_SECONDS
    request = RunRequest(repository.tree, repository.environment, limit, deselect=deselect)

    def run(request: RunRequest, step: str) -> SuiteReport:
        return run_step(runner, request, step, on_progress, cancel)

    reports: list[SuiteReport] = []
    for number in range(1, runs):
        reports.append(run(request, f"suite of the original, run {number} of {runs}"))
        _require_usable(reports[-1])
    last = run(replace(request, writable=NOTHING), f"suite of the original, run {runs} of {runs}, its tree read-only")
    read_only = _agrees(last, reports)
    if not read_only:
        last = run(replace(request, watch=True), f"suite of the original, run {runs} of {runs} again, its tree watched")
        _require_usable(last)
    reports.append(last)
    outcomes = [{id: result.outcome for id, result in report.results.items()} for report in reports]
    everything = set().union(*outcomes)
    flaky = sorted(id for id in everything if len({outcome.get(id) for outcome in outcomes}) > 1)
    stable = everything - set(flaky)
    red = sorted(id for id in stable if outcomes[0][id] in (Outcome.FAILED, Outcome.ERROR))
    if red:
        result = reports[0].results[red[0]]
        raise NoTaskError(
            NoGood.NOT_GREEN,
            f"The suite is not green: {len(red)} of {len(everything)} tests fail on the original, first {red[0]}.",
            hint=f"Deselect them with --pytest-args, or supply what they need with --with.\n{result.message}",
        )
    passed = frozenset(id for id in stable if outcomes[0][id] is Outcome.PASSED)
    if not passed:
        raise NoTaskError(NoGood.NO_TESTS, "No test of the suite passes on the original.")
    protection = Protection(NOTHING) if read_only else hold_to_writes(request, passed, last, run)
    if isinstance(protection, SuiteReport):
        raise InfrastructureError(f"The suite could not be run. {protection.reason}", hint=LOOK)
    seconds = max(report.seconds for report in reports)
    return Intake(repository, frozenset(stable), passed, tuple(flaky), seconds, runs, protection=protection)


def _agrees(report: SuiteReport, others: list[SuiteReport]) -> bool:
    """Whether a run shows what all others do, or a green suite where there are none."""
    if report.status is not RunStatus.FINISHED or report.collection_errors or report.seconds > MAX_SUITE_SECONDS:
        return False
    if not others:
        return bool(report.passed) and not report.failed
    ids = {id for other in others for id in other.results}
    known = {id: {other.results[id].outcome if id in other.results else None for other in others} for id in ids}
    return all(
        report.results[id].outcome in seen if id in report.results else None in seen for id, seen in known.items()
    )


def run_step(
    runner: Runner, request: RunRequest, step: str, on_progress: OnMaking | None, cancel: CancelToken | None
) -> SuiteReport:
    """Run a suite as one named step of the making of a task. Raises `CancelledError` when stopped."""

    def forward(progress: RunProgress) -> None:
        if on_progress is not None:
            on_progress(MakingProgress(step, progress))

    if on_progress is not None:
        on_progress(MakingProgress(step))
    report = runner.run(request, on_progress=forward, cancel=cancel)
    if cancel is not None:
        cancel.check()
    return report


def _require_usable(report: SuiteReport) -> None:
    tail = f"\n{report.output[-2000:]}" if report.output else ""
    if report.status is RunStatus.TIMED_OUT or report.seconds > MAX_SUITE_SECONDS:
        raise NoTaskError(
            NoGood.TOO_SLOW,
            f"The suite takes longer than {MAX_SUITE_SECONDS:g} s.",
            hint="Choose a part of it with --pytest-args.",
        )
    if report.collection_errors:
        error = report.collection_errors[0]
        raise NoTaskError(
            NoGood.NOT_GREEN,
            f"{error.id} can't be collected on the original.",
            hint=f"Supply what it needs with --with, or ignore it with --pytest-args.\n{error.message}",
        )
    if report.status is RunStatus.COULD_NOT_RUN or (report.status is RunStatus.FINISHED and not report.results):
        raise NoTaskError(
            NoGood.NO_TESTS,
            f"No tests were found. {report.reason}".rstrip(),
            hint=f"Say where they are with --pytest-args.{tail}",
        )
    if report.status is not RunStatus.FINISHED:
        raise NoTaskError(
            NoGood.COULD_NOT_RUN, f"The suite did not run to its end: {report.status}. {report.reason}", hint=tail
        )


STEP = "tests recorded with the functions that they enter"


def with_test_map(
    intake: Intake, mapper: TestMapper, *, on_progress: OnMaking | None = None, cancel: CancelToken | None = None
) -> Intake:
    """Return the intake with which tests enter which functions; one that has a map is returned as it is.

    Raises `RecordingError` where the watched run, four to fifteen times slower than the suite, did not come to its end,
    and `CancelledError`.
    """
    if intake.test_map is not None:
        return intake

    def tell(progress: RunProgress | None) -> None:
        if on_progress is not None:
            on_progress(MakingProgress(STEP, progress))

    tell(None)
    repository = intake.repository
    test_map, _ = mapper.record(repository.tree, repository.environment, intake.passed, on_progress=tell, cancel=cancel)
    return replace(intake, test_map=test_map)
