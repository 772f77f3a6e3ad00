"""Runs a suite on the original to find its stable outcomes, and on corrupted trees to prove corruptions."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from gistpoint.core.callgraph import ObservedCall
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.code.testmap import TestMap
from gistpoint.core.errors import InfrastructureError, NegativeVerdictError, RecordingError
from gistpoint.core.generation.remedies import (
    Remedy,
    commonest_errors,
    remedy_for_collection,
    remedy_for_failures,
    remedy_for_start,
)
from gistpoint.core.kinds.protecting import NOTHING, hold_to_writes
from gistpoint.core.outcomes import FREE, Outcome, RunStatus, SuiteReport, Writable
from gistpoint.core.ports import Runner, RunRequest, TestMapper
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.model import Answer, Baseline, Failure, Target, Task, ToolLimits
from gistpoint.core.tasks.protection import Protection
from gistpoint.core.tasks.repository import MAX_SUITE_SECONDS, RUNS, Repository
from gistpoint.core.tasks.trees import corrupted_tree, repaired_tree
from gistpoint.core.text import failing_in_words, last_lines, plural
from gistpoint.core.trees import SourceTree

LEAST_TIMEOUT_S = 30.0
LOOK = (
    "`gistpoint doctor` shows what works here. The results so far are kept, so you can run the same"
    " command again."
)
_PATIENCE = 10.0
"""The factor by which a suite may exceed the limit while it waits for a processor on a busy machine."""
_GRACE_SECONDS = 30.0
"""How many seconds past the limit a run is stopped, so that a suite just above the limit is still timed."""


class NoGood(StrEnum):
    """A reason why no task can be made; generation counts these reasons."""

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
    """A repository or a corruption can't become a task: a verdict, not a user error."""

    def __init__(self, reason: NoGood, message: str, *, hint: str = "", remedy: Remedy | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.remedy = remedy
        """Arguments that may make the suite usable; None if none are known."""


@dataclass(frozen=True, slots=True)
class Intake:
    """The results of a repository's suite on the original."""

    repository: Repository
    collected: frozenset[str]
    passed: frozenset[str]
    flaky: tuple[str, ...]
    seconds: float
    """The duration of the slowest run."""
    runs: int
    test_map: TestMap | None = None
    """The functions that tests enter, if they were recorded."""
    protection: Protection | None = None
    """The parts of its tree that the suite may change; None if unknown."""

    @property
    def test_files(self) -> tuple[str, ...]:
        """The files that tests were collected from, sorted."""
        return tuple(sorted({id.partition("::")[0] for id in self.collected}))

    @property
    def timeout_s(self) -> float:
        """The time limit of a run in seconds: five times the suite's duration, but at least 30."""
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
    """Run the suite of the original `runs` times, and return its results.

    A test whose outcome differs between two runs is flaky: it is deselected and listed. In the last run the
    tree is read-only. If its results then differ, the run is repeated to record the changes that the suite
    makes, and once more with only these allowed. Raises `NoTaskError` if the suite is not green, is empty,
    does not finish within `max_seconds` or has different ids in every run, `InfrastructureError` if the
    sandbox fails, and `CancelledError` when stopped.
    """
    limit = max_seconds + _GRACE_SECONDS
    request = RunRequest(
        repository.tree, repository.environment, limit, deselect=deselect, patience=_PATIENCE
    )

    def suite(request: RunRequest, step: str) -> SuiteReport:
        return run_step(runner, request, step, run)

    reports: list[SuiteReport] = []
    for number in range(1, runs):
        reports.append(suite(request, f"running the suite on the original, {number} of {runs}"))
        require_usable(reports[-1], max_seconds)
    last_step = f"running the suite on the original, {runs} of {runs}"
    last = suite(replace(request, writable=NOTHING), f"{last_step}, its tree read-only")
    read_only = _took(last) <= max_seconds and _agrees(last, reports)
    if not read_only:
        last = suite(replace(request, watch=True), f"{last_step} again, its tree watched")
        require_usable(last, max_seconds)
    reports.append(last)
    outcomes = [{id: result.outcome for id, result in report.results.items()} for report in reports]
    everything = set().union(*outcomes)
    flaky = sorted(id for id in everything if len({outcome.get(id) for outcome in outcomes}) > 1)
    stable = everything - set(flaky)
    _require_lasting_ids(outcomes)
    passed = _passed(reports[0], stable, len(everything))
    protection = Protection(NOTHING) if read_only else hold_to_writes(request, passed, last, suite)
    if isinstance(protection, SuiteReport):
        raise InfrastructureError(f"The suite could not be run. {protection.reason}", hint=LOOK)
    seconds = max(report.seconds for report in reports)
    return Intake(repository, frozenset(stable), passed, tuple(flaky), seconds, runs, protection=protection)


def _passed(report: SuiteReport, stable: Collection[str], of: int) -> frozenset[str]:
    """Return the `stable` ids that pass, out of `of` ids.

    Raises `NoTaskError` if one of them fails or none passes.
    """
    outcomes = {id: report.results[id].outcome for id in stable}
    red = sorted(id for id, outcome in outcomes.items() if outcome in (Outcome.FAILED, Outcome.ERROR))
    if red:
        remedy, error = remedy_for_failures(red, of), last_lines(report.results[red[0]].message)
        raise NoTaskError(
            NoGood.NOT_GREEN,
            f"The suite does not pass: {failing_in_words(len(red), of)} on the original; the first of"
            f" them is {red[0]}.",
            hint=f"{_advice('Deselect them, or supply what they need with --with', remedy)}\n{error}",
            remedy=remedy,
        )
    passed = frozenset(id for id, outcome in outcomes.items() if outcome is Outcome.PASSED)
    if not passed:
        raise NoTaskError(NoGood.NO_TESTS, "No test of the suite passes on the original.")
    return passed


def _require_lasting_ids(runs: Sequence[Collection[str]]) -> None:
    """Raise `NoTaskError` if every run has tests that no other run has.

    Later runs would also have unknown tests.
    """
    made_again = [sorted(id for id in ids if sum(id in other for other in runs) == 1) for ids in runs]
    if len(runs) < 2 or not all(made_again):
        return
    functions = sorted({id.partition("[")[0] for ids in made_again for id in ids})
    raise NoTaskError(
        NoGood.IDS_VARY,
        f"Some tests have a different id in every run, such as {made_again[0][0]} and {made_again[1][0]}.",
        hint=(
            "Leave them out with --pytest-args:"
            f" {' '.join(f'--deselect {shlex.quote(name)}' for name in functions)}"
        ),
    )


def _agrees(report: SuiteReport, others: list[SuiteReport]) -> bool:
    """Return whether each test of the other runs has the same outcome in this run as in at least one of them.

    Without other runs, a test must pass and none may fail. False for a run that did not finish or has
    collection errors.
    """
    if report.status is not RunStatus.FINISHED or report.collection_errors:
        return False
    if not others:
        return bool(report.passed) and not report.failed
    ids = {id for other in others for id in other.results}
    return all(_outcome(report, id) in {_outcome(other, id) for other in others} for id in ids)


def _outcome(report: SuiteReport, id: str) -> Outcome | None:
    """Return the outcome of a test in a run; None if the test has none there."""
    return report.results[id].outcome if id in report.results else None


def run_step(runner: Runner, request: RunRequest, step: str, run: RunContext) -> SuiteReport:
    """Run a suite as one named step of making a task, and return its report.

    Raises `CancelledError` when stopped.
    """
    report = runner.run(request, run=run.step(step))
    run.check()
    return report


def _took(report: SuiteReport) -> float:
    """Return the seconds that a suite took, without its waits for a processor on a busy machine."""
    return report.seconds - report.waited


def require_usable(report: SuiteReport, max_seconds: float) -> None:
    """Raise `NoTaskError` if a run of the original's suite can't be used.

    It is unusable if it took too long, found no tests, did not run all of its files, or did not finish.
    """
    tail = f"\n{report.output[-2000:]}" if report.output else ""
    if report.status is RunStatus.TIMED_OUT or _took(report) > max_seconds:
        waited = (
            f" (not counting {report.waited:.0f} s of waiting for a processor)" if report.waited >= 1 else ""
        )
        raise NoTaskError(
            NoGood.TOO_SLOW,
            f"The suite takes longer than {max_seconds:g} s{waited}.",
            hint="Select a part of it with --pytest-args, or raise the limit with --max-suite-seconds.",
        )
    if report.collection_errors:
        first, *others = report.collection_errors
        found = remedy_for_collection(report)
        more = f" and {plural(len(others), 'other')}" if others else ""
        lines = commonest_errors([error.message for error in report.collection_errors])
        raise NoTaskError(
            NoGood.NOT_GREEN,
            f"{first.id}{more} can't be collected on the original.",
            hint=f"{_advice('Supply what it needs with --with', found)}\n{lines}",
            remedy=found,
        )
    if report.status is RunStatus.COULD_NOT_RUN or (
        report.status is RunStatus.FINISHED and not report.results
    ):
        remedy = remedy_for_start(report.output)
        raise NoTaskError(
            NoGood.NO_TESTS,
            f"No tests were found. {report.reason}".rstrip(),
            hint=f"{_advice('Give their location with --pytest-args', remedy)}{tail}",
            remedy=remedy,
        )
    if report.status is not RunStatus.FINISHED:
        raise NoTaskError(
            NoGood.COULD_NOT_RUN,
            f"The suite did not finish: {report.status}. {report.reason}",
            hint=tail,
        )


def _advice(words: str, remedy: Remedy | None) -> str:
    """Return what the user can do, with the options of a remedy if there is one."""
    return f"{words}." if remedy is None else f"{words}. These options may help: {remedy}"


STEP = "recording which functions each test uses"


def record_tests(
    intake: Intake, mapper: TestMapper, run: RunContext
) -> tuple[TestMap, tuple[ObservedCall, ...]]:
    """Record the functions that tests enter and their calls in one run, and return them.

    The run takes four to fifteen times as long as other runs. Raises `RecordingError` if it does not finish,
    and `CancelledError` when stopped.
    """
    repository = intake.repository
    return mapper.record(repository.tree, repository.environment, intake.passed, run=run.step(STEP))


def with_test_map(intake: Intake, mapper: TestMapper, *, run: RunContext = UNATTENDED) -> Intake:
    """Return the intake with its test map; an intake that has a map is returned unchanged.

    Raises `RecordingError` if the recorded run does not finish, and `CancelledError` when stopped.
    """
    return (
        intake
        if intake.test_map is not None
        else replace(intake, test_map=record_tests(intake, mapper, run)[0])
    )


def with_test_map_if_it_ends(intake: Intake, mapper: TestMapper, *, run: RunContext = UNATTENDED) -> Intake:
    """Return the intake with its test map; if the recording fails, say so and return the intake without one.

    Raises `CancelledError` when stopped.
    """
    try:
        return with_test_map(intake, mapper, run=run)
    except RecordingError as error:
        run.note(f"{error.message} Attempts will not run the tests of a changed function first.")
        return intake


DEFAULT_MIN_FAILING = 5


@dataclass(frozen=True, slots=True)
class CorruptionProof:
    """A corruption that was shown to break enough tests."""

    targets: tuple[Target, ...]
    tree: SourceTree
    report: SuiteReport
    failing: frozenset[str]
    any_order: bool = False
    """Whether the failing tests may run first, because the original then still passes and they still fail."""

    @property
    def passed_corrupted(self) -> frozenset[str]:
        """The ids that pass on the corrupted tree."""
        return self.report.passed

    def failures(self, limits: ToolLimits) -> tuple[Failure, ...]:
        """Return the failing tests as the brief lists them: all ids, the first few with their messages."""
        ran = [result for result in self.report.results.values() if result.id in self.failing]
        missing = sorted(self.failing - {result.id for result in ran})
        listed = [
            Failure(
                result.id, result.message[: limits.failure_characters] if n < limits.brief_failures else ""
            )
            for n, result in enumerate(ran)
        ]
        return (*listed, *(Failure(id) for id in missing))

    def baseline(self, intake: Intake, backend: str) -> Baseline:
        """Return the baseline of the suite on the original and the corrupted tree, both run on `backend`."""
        return Baseline(
            backend=backend,
            environment=sha256_of_json(sorted(intake.repository.environment.lock)),
            runs=intake.runs,
            collected=intake.collected,
            passed=intake.passed,
            passed_corrupted=self.passed_corrupted & intake.passed,
            seconds=round(intake.seconds, 2),
            any_order=self.any_order,
            protections={backend: intake.protection} if intake.protection else {},
        )


def prove(
    intake: Intake,
    targets: tuple[Target, ...],
    runner: Runner,
    *,
    min_failing: int = DEFAULT_MIN_FAILING,
    run: RunContext = UNATTENDED,
) -> CorruptionProof:
    """Run the whole suite on the corrupted tree and return the proof that enough tests fail.

    If the test map shows that the change can't affect a failing test, the suite is run again. A test that
    then passes failed by chance and doesn't count. Raises `NoTaskError` if the corruption can't become a
    task, `InfrastructureError` if the suite could not be run, `CodeError` if a target does not fit the tree,
    and `CancelledError` when stopped.
    """
    tree = corrupted_tree(intake.repository.tree, targets)
    request = request_of(intake, tree)
    names = ", ".join(target.name for target in targets)
    report = run_step(runner, request, f"running the suite with {names} corrupted", run)
    if report.status in FREE:
        raise InfrastructureError(
            f"The suite could not be run with {names} corrupted. {report.reason}", hint=LOOK
        )
    if report.status in (RunStatus.TIMED_OUT, RunStatus.OUT_OF_MEMORY):
        raise NoTaskError(NoGood.HANGS, f"The suite was stopped with {names} corrupted: {report.status}.")
    if report.status is not RunStatus.FINISHED:
        raise NoTaskError(
            NoGood.COULD_NOT_RUN,
            f"The suite did not run with {names} corrupted: {report.status}. {report.reason}",
        )
    if by_chance := _by_chance(intake, targets, intake.passed - report.passed):
        step = f"running the suite with {names} corrupted again, since a test failed that does not use it"
        again = run_step(runner, request, step, run)
        report = _with_passes(report, again, by_chance)
    failing = intake.passed - report.passed
    if len(failing) < min_failing:
        raise NoTaskError(
            NoGood.TOO_FEW_FAILING,
            f"With {names} corrupted, {failing_in_words(len(failing))}; a task needs at least {min_failing}.",
            hint="Choose another function, or lower --min-failing.",
        )
    if not any(result.id in failing for result in report.failed):
        raise NoTaskError(
            NoGood.BREAKS_COLLECTION, f"With {names} corrupted, only the collection of tests fails."
        )
    in_front = replace(request, first=tuple(id for id in report.results if id in failing))
    any_order = _can_run_first(in_front, intake, names, runner, run)
    return CorruptionProof(targets, tree, report, failing, any_order)


RUNS_OF_ONE = 5
"""The number of runs in which a single failing test has to fail (decision 142)."""


def require_proof_by_one(
    intake: Intake, proof: CorruptionProof, runner: Runner, *, run: RunContext = UNATTENDED
) -> None:
    """Raise `NoTaskError` if the only failing test does not use the function, or does not always fail.

    Raises `InfrastructureError` if the suite could not be run, and `CancelledError` when stopped.
    """
    if len(proof.failing) > 1:
        return
    (test,) = proof.failing
    names = [target.name for target in proof.targets]
    if intake.test_map is not None and test not in frozenset().union(*map(intake.test_map.tests_of, names)):
        raise NoTaskError(
            NoGood.TOO_FEW_FAILING,
            f"With {', '.join(names)} corrupted, only {test} fails, and it does not use the function.",
            hint=_ANOTHER,
        )
    for number in range(2, RUNS_OF_ONE + 1):
        step = f"running the suite again, since only one test fails, {number} of {RUNS_OF_ONE}"
        report = run_step(runner, request_of(intake, proof.tree), step, run)
        if report.status in FREE:
            raise InfrastructureError(f"The suite could not be run again. {report.reason}", hint=LOOK)
        if report.status is not RunStatus.FINISHED or intake.passed - report.passed != proof.failing:
            raise NoTaskError(
                NoGood.TOO_FEW_FAILING,
                f"With {', '.join(names)} corrupted, only {test} fails, and not in each of"
                f" {RUNS_OF_ONE} runs.",
                hint=_ANOTHER,
            )


_ANOTHER = "Choose another function."


def request_of(intake: Intake, tree: SourceTree) -> RunRequest:
    """Return the request to run the suite on a corrupted tree."""
    return RunRequest(
        tree,
        intake.repository.environment,
        intake.timeout_s,
        deselect=intake.flaky,
        expected=intake.collected,
        writable=intake.writable,
    )


def _can_run_first(in_front: RunRequest, intake: Intake, names: str, runner: Runner, run: RunContext) -> bool:
    """Return whether the failing tests can run first: the original still passes, and they also fail alone.

    A test may fail only because of what an earlier test left behind; run first, it would pass on the
    corrupted tree (decision 10). They are run in reverse order, because any of them may come first.
    """
    original = replace(in_front, tree=intake.repository.tree)
    step = "running the suite on the original, the failing tests first"
    if not run_step(runner, original, step, run).passed >= intake.passed:
        return False
    alone = replace(in_front, first=(), select=in_front.first[::-1], expected=frozenset(in_front.first))
    report = run_step(
        runner, alone, f"the failing tests alone, in reverse order, with {names} corrupted", run
    )
    return report.status is RunStatus.FINISHED and report.passed.isdisjoint(in_front.first)


def _by_chance(intake: Intake, targets: tuple[Target, ...], failing: frozenset[str]) -> frozenset[str]:
    """Return the failing tests that a change of the targets can't affect; empty without a test map."""
    if intake.test_map is None:
        return frozenset()
    return failing - set(intake.test_map.seeing(target.name for target in targets))


def _with_passes(report: SuiteReport, again: SuiteReport, ids: frozenset[str]) -> SuiteReport:
    """Return `report` with the results of `again` for those of the `ids` that passed there."""
    passing = {id: again.results[id] for id in ids & again.passed}
    return replace(report, results={**report.results, **passing})


# Another baseline of a task: the outcomes of its suite on another backend, which may differ for some ids


@dataclass(frozen=True, slots=True)
class BaselineDifference:
    """The ids in which two baselines differ; each set is empty if there is no difference."""

    only_here: frozenset[str]
    """Tests that pass here, but not there."""
    only_there: frozenset[str]
    failing_only_here: frozenset[str]
    """Tests that fail on the corrupted tree here, but not there."""
    failing_only_there: frozenset[str]

    @property
    def any(self) -> bool:
        """Whether there is a difference."""
        return bool(self.only_here or self.only_there or self.failing_only_here or self.failing_only_there)


def record_baseline(
    task: Task,
    answer: Answer,
    runner: Runner,
    *,
    runs: int = RUNS,
    run: RunContext = UNATTENDED,
) -> Baseline:
    """Run the original `runs` times and the corrupted tree once, and return the baseline.

    Raises `NoTaskError` if the suite is flaky or not green on this runner, or if the corruption breaks too
    few tests, `InfrastructureError` if the sandbox fails, and `CancelledError` when stopped.
    """
    tree = repaired_tree(SourceTree.open(task.tree_path), answer.targets)
    repository = Repository(task.source, tree, task.environment)
    out = task.suite.deselected
    longest = max(MAX_SUITE_SECONDS, task.suite.timeout_s)
    intake = take_in(repository, runner, runs=runs, max_seconds=longest, deselect=out, run=run)
    proof = prove(intake, answer.targets, runner, min_failing=task.rules.min_failing, run=run)
    if intake.flaky:
        raise NoTaskError(
            NoGood.NOT_GREEN,
            f"{plural(len(intake.flaky), 'test')} had different outcomes in the runs here; the first of"
            f" them is {intake.flaky[0]}.",
            hint=(
                "The task's list of deselected tests can't be changed: make the task again on this backend."
            ),
        )
    return proof.baseline(intake, runner.backend.name)


def differences(answer: Answer, baseline: Baseline) -> Mapping[str, BaselineDifference]:
    """Return how `baseline` differs from each other baseline of `answer`, by the name of its backend."""
    return {
        other.backend: BaselineDifference(
            baseline.passed - other.passed,
            other.passed - baseline.passed,
            (baseline.failing - other.failing) & other.passed,
            (other.failing - baseline.failing) & baseline.passed,
        )
        for other in answer.baselines
        if other.backend != baseline.backend
    }
