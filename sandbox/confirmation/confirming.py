"""Confirms passes on one backend, with the controls of their task (decision 113)."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import msgspec

from gistpoint.core.code.parsing import CodeError
from gistpoint.core.confirmation.differences import (
    NotConfirmableError,
    require_same_at_import,
    test_paths,
)
from gistpoint.core.confirmation.model import (
    AnsweredCall,
    Confirmation,
    Confirmed,
    Confirmer,
    Controls,
    Unconfirmable,
)
from gistpoint.core.errors import EnvironmentBuildError, InfrastructureError, TaskError
from gistpoint.core.outcomes import FREE, RunStatus
from gistpoint.core.ports import Runner, RunRequest, WatchedSpan
from gistpoint.core.running import UNATTENDED, RunContext, RunProgress
from gistpoint.core.suspicion.submission import submitted_spans
from gistpoint.core.tasks.equivalence import Equivalence, EquivalenceTester
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.confirmation.controls import (
    LEAST_S,
    ConfirmationCase,
    ControlRuns,
)
from gistpoint.sandbox.confirmation.passing import (
    BusyMachineError,
    NoControlError,
    PassCheck,
    unconfirmed,
    with_changes,
)
from gistpoint.sandbox.confirmation.submission import RunPlace
from gistpoint.sandbox.limits import RunLimits, suite_timeout
from gistpoint.sandbox.testruns import EnvironmentSource, SuiteRunner

SWITCH = "GISTPOINT_CONFIRM"
_NOT_AGAIN = "does not pass again while it is watched"
_WRITTEN_OTHERWISE = "changes more than the bodies of functions, so it can't be confirmed"
_FEWER_TESTS = "changes other functions, so fewer tests can be run"


class SandboxConfirmer:
    """Confirms passes on one backend; implements `gistpoint.core.confirmation.model.Confirmer`."""

    def __init__(
        self,
        backend: Backend,
        environments: EnvironmentSource,
        limits: RunLimits | None = None,
        beyond: EquivalenceTester | None = None,
    ) -> None:
        """`beyond` looks for inputs beyond the tests on which the submission and the original differ."""
        self._backend = backend
        self._environments = environments
        self._limits = limits or RunLimits()
        self._beyond = beyond
        self._suites = SuiteRunner(backend, environments, limits)

    def control(
        self, task: Task, answer: Answer, *, measured_here: bool = False, run: RunContext = UNATTENDED
    ) -> Controls:
        """Return the controls of a task; see `Confirmer.control`."""
        try:
            if not measured_here:
                answer = self._measured_again(task, answer, run)
            case = self._case(task, answer, run)
            found = msgspec.structs.replace(ControlRuns(case, run).controls(), data_hidden=True)
            shown = replace(case, hidden=test_paths(case.original, task.suite.test_files, data=False))
            if not found.confirmable and shown.hidden != case.hidden:
                # The function may need files that only the tests seem to read, so these are not hidden.
                found = ControlRuns(shown, run).controls()
            return found
        except NotConfirmableError as error:
            return Controls(confirmable=False, reason=error.reason, detail=error.detail)
        except (EnvironmentBuildError, InfrastructureError, TaskError, CodeError, OSError) as error:
            return Controls(confirmable=False, reason=Unconfirmable.SANDBOX, detail=str(error))

    def confirm(
        self,
        task: Task,
        answer: Answer,
        controls: Controls,
        submitted: SourceTree,
        *,
        run: RunContext = UNATTENDED,
    ) -> Confirmation:
        """Return the result of confirming a pass; see `Confirmer.confirm`."""
        began = time.monotonic()
        try:
            answer = as_measured(answer, controls, self._backend.name)
            case = self._case(task, answer, run, data=controls.data_hidden)
            found = _checked(case, controls, submitted, run)
            # A test outside the controls could only run in the submission's process, where the submission
            # can patch the test.
            is_judged_elsewhere = not case.failing.issubset(controls.tests)
            if found.result is Confirmed.UNCONFIRMED or (is_judged_elsewhere and found.uncovered):
                found = with_changes(
                    found, marks=(*found.marks, *watched_marks(self._suites, task, answer, submitted, run))
                )
            if found.result is not Confirmed.CONTRADICTED:
                found = self._with_beyond(case, submitted, controls, found, run)
        except (EnvironmentBuildError, InfrastructureError, TaskError, CodeError, OSError) as error:
            found = unconfirmed(Unconfirmable.SANDBOX, str(error))
        return with_changes(found, seconds=round(time.monotonic() - began, 3))

    def _measured_again(self, task: Task, answer: Answer, run: RunContext) -> Answer:
        """Return an answer whose deciding values were measured here, unless the task's id covers them.

        It does not record which tests enter the functions, because the controls determine that. Raises
        `NotConfirmableError` if importing the original has more effects than importing the corrupted tree,
        which the id covers, because the process of the tests imports the original. Raises
        `InfrastructureError` if the suite can't be run.
        """
        given = SourceTree.open(task.tree_path)
        try:
            require_same_at_import(given, repaired_tree(given, answer.targets))
        except CodeError as error:
            raise NotConfirmableError(Unconfirmable.HEADER_CHANGED, str(error)) from error
        baseline = answer.baseline_for(self._backend.name)
        request = RunRequest(
            tree=given,
            environment=task.environment,
            timeout_s=task.suite.timeout_s,
            deselect=task.suite.deselected,
            expected=baseline.collected,
        )
        report = self._suites.run(request, run=run.step("running the suite with the corrupted code"))
        run.check()
        if report.status in (*FREE, RunStatus.INFRASTRUCTURE):
            raise InfrastructureError(report.reason or "The suite could not be run.")
        passed = report.passed & baseline.passed
        measured = replace(baseline, passed_corrupted=passed, seconds=report.seconds)
        return replace(answer, baselines=(measured,), entered={})

    def _case(self, task: Task, answer: Answer, run: RunContext, *, data: bool = True) -> ConfirmationCase:
        """Return the case of a task; with `data`, the tests' data files are hidden as well."""
        run.progress(RunProgress("preparing"))
        given = SourceTree.open(task.tree_path)
        original = repaired_tree(given, answer.targets)
        environment = self._environments.get(task.environment, self._backend, cancel=run.cancel)
        place = RunPlace(self._backend, environment, task.environment, self._limits)
        hidden = test_paths(original, task.suite.test_files, data=data)
        seconds = answer.baseline_for(self._backend.name).seconds
        return ConfirmationCase(task, answer, place, given, original, hidden, seconds)

    def _with_beyond(
        self,
        case: ConfirmationCase,
        submitted: SourceTree,
        controls: Controls,
        found: Confirmation,
        run: RunContext,
    ) -> Confirmation:
        """Return `found` with the smallest input beyond the tests on which the functions differ, if any.

        `found` is returned unchanged if the functions can't be compared.
        """
        if self._beyond is None:
            return found
        task = case.task
        try:
            report = self._beyond.compare(
                case.original,
                submitted,
                task.environment,
                # The outermost functions, because a nested function can't be called alone.
                list(map(str, case.targets)),
                controls.tests,
                first=controls.telling,
                test_files=task.suite.test_files,
                timeout_s=max(LEAST_S, suite_timeout(case.seconds)),
                run=run,
            )
        except (InfrastructureError, NotConfirmableError):
            return found
        example = report.example
        # A call that a test makes is a stronger finding than an input that no test uses.
        is_noted = found.beyond is not None
        if is_noted or report.verdict is not Equivalence.DIFFERS or example is None:
            return with_changes(found, varied=report.varied)
        beyond = AnsweredCall(example.function, example.call, example.original, example.repair)
        return with_changes(found, beyond=beyond, varied=report.varied)


def as_measured(answer: Answer, controls: Controls, backend: str) -> Answer:
    """Return an answer in which the controls' findings about the tests replace the answer's own."""
    if controls.failing is None:
        return answer
    baseline = answer.baseline_for(backend)
    passed = baseline.passed.difference(controls.failing)
    entered = {name: frozenset(ids) for name, ids in controls.entered.items()}
    return replace(
        answer,
        baselines=(replace(baseline, passed_corrupted=passed), *answer.baselines),
        entered={**answer.entered, **entered},
    )


def confirmer_on(
    backend: Backend, environments: EnvironmentSource, beyond: EquivalenceTester | None = None
) -> Confirmer | None:
    """Return the confirmer of passes on a backend; `beyond` is as for `SandboxConfirmer`.

    Returns None if the user has switched confirmation off with `GISTPOINT_CONFIRM=no`.
    """
    if os.environ.get(SWITCH) == "no":
        return None
    return SandboxConfirmer(backend, environments, beyond=beyond)


def _checked(
    case: ConfirmationCase, controls: Controls, submitted: SourceTree, run: RunContext
) -> Confirmation:
    """Return the result of running the two processes, or why the pass can't be confirmed."""
    if not controls.confirmable:
        return unconfirmed(controls.reason or Unconfirmable.NO_CONTROL, controls.detail)
    try:
        return PassCheck(case, controls, submitted, run).confirmation()
    except NoControlError as error:
        return unconfirmed(Unconfirmable.NO_CONTROL, str(error))  # no fault of the submission
    except BusyMachineError as error:
        return unconfirmed(Unconfirmable.SANDBOX, str(error))  # asked again later (decision 159)
    except NotConfirmableError as error:
        # Other passes of this task can be confirmed, so this submission gets a mark.
        mark = _FEWER_TESTS if error.reason is Unconfirmable.NO_CONTROL else _WRITTEN_OTHERWISE
        return unconfirmed(error.reason, error.detail, (mark,))


# A pass that is not confirmed is watched (decision 116)


def watched_marks(
    suites: Runner, task: Task, answer: Answer, submitted: SourceTree, run: RunContext
) -> tuple[str, ...]:
    """Return marks for what only the submission, not the original, does in another, watched run of the suite.

    A mark is added if the submission's run does not finish, or if a test that passes again with the original
    fails in it. Empty if the original can't be watched.
    """
    given = SourceTree.open(task.tree_path)
    baseline = answer.baseline_for(suites.backend.name)
    request = RunRequest(
        tree=submitted,
        environment=task.environment,
        timeout_s=task.suite.timeout_s,
        deselect=task.suite.deselected,
        expected=baseline.collected,
        hash_seed=1,
        watched=_spans(given, submitted),
    )
    report = suites.run(request, run=run)
    run.check()
    is_late = report.status is RunStatus.TIMED_OUT
    passes_again = report.status is RunStatus.FINISHED and baseline.passed <= report.passed
    # Without a finding, there is nothing to compare with the original, so a run is saved.
    if passes_again and not report.watched:
        return ()
    original = repaired_tree(given, answer.targets)
    true = suites.run(replace(request, tree=original, watched=_spans(given, original)), run=run)
    run.check()
    if true.status is not RunStatus.FINISHED:
        return ()  # the suite itself can't be watched
    if is_late:  # not necessarily because of the submission (decision 159)
        report = suites.run(request, run=run)
        run.check()
    seen = tuple(mark for mark in report.watched if mark not in true.watched)
    # Tests may fail because they are watched: only those that the original passes again count.
    lost = (baseline.passed & true.passed) - report.passed
    return (*seen, _NOT_AGAIN) if lost or report.status is not RunStatus.FINISHED else seen


def _spans(given: SourceTree, tree: SourceTree) -> tuple[WatchedSpan, ...]:
    return tuple(WatchedSpan(*span) for span in submitted_spans(given, tree))
