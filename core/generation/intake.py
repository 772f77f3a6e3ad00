"""Intake: the outcomes of a repository's suite on the original, the same in three runs, or why it is unusable."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from gistpoint.core.callgraph import ObservedCall
from gistpoint.core.code.testmap import TestMap
from gistpoint.core.errors import InfrastructureError, NegativeVerdictError, RecordingError
from gistpoint.core.kinds.protecting import NOTHING, hold_to_writes
from gistpoint.core.outcomes import Outcome, RunStatus, SuiteReport, Writable
from gistpoint.core.ports import Runner, RunRequest, TestMapper
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.protection import Protection
from gistpoint.core.tasks.repository import MAX_SUITE_SECONDS, RUNS, Repository

LEAST_TIMEOUT_S = 30.0
LOOK = "`gistpoint doctor` shows what works here. The results so far are kept: the same command can be repeated."
_GRACE_SECONDS = 30.0
"""Seconds past the limit before a run is stopped, so that a suite just above it is reported as too slow."""


class NoGood(StrEnum):
    """Why no task can be made: a closed set, counted by generation."""

    NO_TESTS = "no_tests"
    NOT_GREEN = "suite_not_green"
    TOO_SLOW = "suite_too_slow"
    IDS_VARY = "test_ids_vary"
    COULD_NOT_RUN = "suite_could_not_run"
    TOO_FEW_FAILING = "too_few_failing_tests"
    BREAKS_COLLECTION = "breaks_collection_only"
    HANGS = "hangs_or_exhausts_memory"
    NOT_REMOVABLE = "function_not_removable"
    NO_CANDIDATE = "no_candidate"
    NO_CORRUPTION = "model_gave_no_corruption"


class NoTaskError(NegativeVerdictError):
    """A repository or a corruption can't make a task: a verdict, not a mistake."""

    def __init__(self, reason: NoGood, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Intake:
    """The results of a repository's suite on the original."""

    repository: Repository
    collected: frozenset[str]
    passed: frozenset[str]
    flaky: tuple[str, ...]
    seconds: float
    """Seconds of the slowest run."""
    runs: int
    test_map: TestMap | None = None
    """Which tests enter which functions, if that was recorded."""
    protection: Protection | None = None
    """Which parts of its tree the suite may change; None if unknown."""

    @property
    def test_files(self) -> tuple[str, ...]:
        """Files that tests were collected from, sorted."""
        return tuple(sorted({id.partition("::")[0] for id in self.collected}))

    @property
    def timeout_s(self) -> float:
        """Seconds after which a run of the suite is stopped: five times its duration, and enough for a busy machine."""
        return float(max(LEAST_TIMEOUT_S, round(5 * self.seconds)))

    @property
    def writable(self) -> Writable | None:
        """The parts of the tree that a run of the suite may change; None for everything."""
        return self.protection.writable if self.protection is not None else None


def take_in(
    repository: Repository,
    runner: Runner,
    *,
    runs: int = RUNS,
    max_seconds: float = MAX_SUITE_SECONDS,
    deselect: tuple[str, ...] = (),
    run: RunContext = UNATTENDED,
) -> Intake:
    """Run the suite of the original `runs` times. Raises `NoTaskError` if it is not green, too slow or empty.

    It is too slow if a run takes more than `max_seconds`.

    A test whose outcome differs between two runs is flaky: it is deselected and listed. In the last run the tree is
    read-only. If the suite fails with that, another run records its changes, and a third one allows only these.
    """
    limit = max_seconds + _GRACE_SECONDS
    request = RunRequest(repository.tree, repository.environment, limit, deselect=deselect)

    def suite(request: RunRequest, step: str) -> SuiteReport:
        return run_step(runner, request, step, run)

    def require_usable(report: SuiteReport) -> None:
        _require_usable(report, max_seconds)

    reports: list[SuiteReport] = []
    for number in range(1, runs):
        reports.append(suite(request, f"suite of the original, run {number} of {runs}"))
        require_usable(reports[-1])
    last_step = f"suite of the original, run {runs} of {runs}"
    last = suite(replace(request, writable=NOTHING), f"{last_step}, its tree read-only")
    read_only = last.seconds <= max_seconds and _agrees(last, reports)
    if not read_only:
        last = suite(replace(request, watch=True), f"{last_step} again, its tree watched")
        require_usable(last)
    reports.append(last)
    outcomes = [{id: result.outcome for id, result in report.results.items()} for report in reports]
    everything = set().union(*outcomes)
    flaky = sorted(id for id in everything if len({outcome.get(id) for outcome in outcomes}) > 1)
    stable = everything - set(flaky)
    _require_lasting_ids(outcomes)
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
    protection = Protection(NOTHING) if read_only else hold_to_writes(request, passed, last, suite)
    if isinstance(protection, SuiteReport):
        raise InfrastructureError(f"The suite could not be run. {protection.reason}", hint=LOOK)
    seconds = max(report.seconds for report in reports)
    return Intake(repository, frozenset(stable), passed, tuple(flaky), seconds, runs, protection=protection)


def _require_lasting_ids(runs: Sequence[Collection[str]]) -> None:
    """Raise `NoTaskError` if every run has tests that no other one has: each later run would have unknown ones."""
    made_anew = [sorted(id for id in ids if sum(id in other for other in runs) == 1) for ids in runs]
    if len(runs) < 2 or not all(made_anew):
        return
    functions = sorted({id.partition("[")[0] for ids in made_anew for id in ids})
    raise NoTaskError(
        NoGood.IDS_VARY,
        f"In every run some tests have another id, such as {made_anew[0][0]} and {made_anew[1][0]}.",
        hint=f"Leave them out with --pytest-args: {' '.join(f'--deselect {shlex.quote(name)}' for name in functions)}",
    )


def _agrees(report: SuiteReport, others: list[SuiteReport]) -> bool:
    """Whether a run has the results of all others, or is green if there are none."""
    if report.status is not RunStatus.FINISHED or report.collection_errors:
        return False
    if not others:
        return bool(report.passed) and not report.failed
    ids = {id for other in others for id in other.results}
    known = {id: {other.results[id].outcome if id in other.results else None for other in others} for id in ids}
    return all(
        report.results[id].outcome in seen if id in report.results else None in seen for id, seen in known.items()
    )


def run_step(runner: Runner, request: RunRequest, step: str, run: RunContext) -> SuiteReport:
    """Run a suite as one named step of making a task. Raises `CancelledError` when stopped."""
    report = runner.run(request, run=run.step(step))
    run.check()
    return report


def _require_usable(report: SuiteReport, max_seconds: float) -> None:
    tail = f"\n{report.output[-2000:]}" if report.output else ""
    if report.status is RunStatus.TIMED_OUT or report.seconds > max_seconds:
        raise NoTaskError(
            NoGood.TOO_SLOW,
            f"The suite takes longer than {max_seconds:g} s.",
            hint="Choose a part of it with --pytest-args, or allow more with --max-suite-seconds.",
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


def record_tests(intake: Intake, mapper: TestMapper, run: RunContext) -> tuple[TestMap, tuple[ObservedCall, ...]]:
    """Record the functions that tests enter and their calls in one run, four to fifteen times slower than others.

    Raises `RecordingError` if the run did not finish, and `CancelledError`.
    """
    repository = intake.repository
    return mapper.record(repository.tree, repository.environment, intake.passed, run=run.step(STEP))


def with_test_map(intake: Intake, mapper: TestMapper, *, run: RunContext = UNATTENDED) -> Intake:
    """Return the intake with its test map; one that has a map is returned unchanged.

    Raises as `record_tests` does.
    """
    return intake if intake.test_map is not None else replace(intake, test_map=record_tests(intake, mapper, run)[0])


def with_test_map_if_it_ends(intake: Intake, mapper: TestMapper, *, run: RunContext = UNATTENDED) -> Intake:
    """Return the intake with its test map; without one, and with a note, if the watched run did not finish."""
    try:
        return with_test_map(intake, mapper, run=run)
    except RecordingError as error:
        run.note(f"{error.message} Attempts will not run the tests of a changed function first.")
        return intake
