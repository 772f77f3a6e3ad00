"""Confirms passes on one backend, with the controls of their task (decision 113)."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.splice import with_definition
from gistpoint.core.confirmation.differences import (
    FunctionName,
    NotConfirmableError,
    changed_functions,
    test_paths,
    without,
)
from gistpoint.core.confirmation.likeness import same_data
from gistpoint.core.confirmation.model import (
    AnsweredCall,
    Confirmation,
    Confirmed,
    Confirmer,
    Controls,
    Unconfirmable,
)
from gistpoint.core.confirmation.showing import (
    Shower,
    answer_text,
    call_text,
    effects_text,
    same_answer,
    same_effects,
    same_without_order,
)
from gistpoint.core.errors import EnvironmentBuildError, InfrastructureError, TaskError
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import Runner, RunRequest, WatchedSpan
from gistpoint.core.running import UNATTENDED, RunContext, RunProgress
from gistpoint.core.suspicion.submission import submitted_spans
from gistpoint.core.tasks.equivalence import Equivalence, EquivalenceTester
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.confirmation.controls import LEAST_S, ConfirmationCase, ControlRuns, ran, unlike_tests
from gistpoint.sandbox.confirmation.pair import Exchange, PairReport
from gistpoint.sandbox.confirmation.repeating import PlainCall, plain_calls, repeated
from gistpoint.sandbox.confirmation.submission import RunPlace, SubmissionProcess
from gistpoint.sandbox.limits import RunLimits, suite_timeout
from gistpoint.sandbox.testruns import EnvironmentSource, SuiteRunner

SWITCH = "GISTPOINT_CONFIRM"
_COMPARED_TESTS = 3
"""The number of failing tests whose answers are compared with those of the true function."""
_ASKED_OTHERWISE = "gives different answers when asked again"
_WRITTEN_OTHERWISE = "changes more than the bodies of functions, so it can't be confirmed"
_NOT_AGAIN = "does not pass again while it is watched"
_FEWER_TESTS = "changes other functions, so fewer tests can be run"
_NEEDS_OTHERS = "passes only with changes to functions that were right"
_RAISES = "raises where the true function answers, and no test notices"
_CHANGES_MORE = "changes what the true function never changes"
_CHANGES_DETAIL = "The tests pass only because of a change that the true function never makes."
_RUNS_MORE = "answers with text that the library runs as code, but differently from the true function"
_OTHER_DATA = "answers a call of a failing test differently from the true function"
_MOST_OTHERWISE = 20
"""The largest number of calls with other data that are put to the true function a second time."""
_NOT_ANSWERED = "does not answer in a separate process, although the true function does"


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

    def control(self, task: Task, answer: Answer, *, run: RunContext = UNATTENDED) -> Controls:
        """Return the controls of a task; see `Confirmer.control`."""
        try:
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
            case = self._case(task, answer, run, data=controls.data_hidden)
            found = _checked(case, controls, submitted, run)
            if found.result is Confirmed.UNCONFIRMED:
                found = _with(
                    found, marks=(*found.marks, *_watched_marks(self._suites, task, answer, submitted, run))
                )
            if found.result is not Confirmed.CONTRADICTED:
                found = self._with_beyond(case, submitted, controls, found, run)
        except (EnvironmentBuildError, InfrastructureError, TaskError, CodeError, OSError) as error:
            found = _unconfirmed(Unconfirmable.SANDBOX, str(error))
        return _with(found, seconds=round(time.monotonic() - began, 3))

    def _case(self, task: Task, answer: Answer, run: RunContext, *, data: bool = True) -> ConfirmationCase:
        """Return the case of a task; `data` is whether the tests' data files are hidden as well."""
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
        """Return `found` with the smallest input beyond the tests on which the functions differ, if any."""
        if self._beyond is None:
            return found
        task = case.task
        try:
            report = self._beyond.compare(
                case.original,
                submitted,
                task.environment,
                # The outermost functions, because a function inside another can't be called on its own.
                list(map(str, case.targets)),
                controls.tests,
                test_files=task.suite.test_files,
                timeout_s=max(LEAST_S, suite_timeout(case.seconds)),
                run=run,
            )
        except (InfrastructureError, NotConfirmableError):
            return found
        example = report.example
        # A call that a test makes says more than an input that no test uses.
        is_noted = found.beyond is not None
        if is_noted or report.verdict is not Equivalence.DIFFERS or example is None:
            return _with(found, varied=report.varied)
        beyond = AnsweredCall(example.function, example.call, example.original, example.repair)
        return _with(found, beyond=beyond, varied=report.varied)


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
        return _unconfirmed(controls.reason or Unconfirmable.NO_CONTROL, controls.detail)
    try:
        return _PassCheck(case, controls, submitted, run).confirmation()
    except NotConfirmableError as error:
        # Other passes of this task can be confirmed, so this submission gets a mark.
        mark = _FEWER_TESTS if error.reason is Unconfirmable.NO_CONTROL else _WRITTEN_OTHERWISE
        return _unconfirmed(error.reason, error.detail, (mark,))


def _with(found: Confirmation, **changes: object) -> Confirmation:
    return msgspec.structs.replace(found, **changes)


def _unconfirmed(reason: Unconfirmable, detail: str, marks: tuple[str, ...] = ()) -> Confirmation:
    return Confirmation(Confirmed.UNCONFIRMED, reason, detail, marks=marks)


# A pass


def _alike_with_effects(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    return same_without_order(first, second) and same_effects(first, second)


class _OtherAnswer(NamedTuple):
    """A call that the true function answers differently."""

    call: AnsweredCall
    raises: bool
    """Whether the submission raises an exception where the true function answers with a value."""


class _PassCheck:
    """The runs that confirm or contradict one pass."""

    def __init__(
        self, case: ConfirmationCase, controls: Controls, submitted: SourceTree, run: RunContext
    ) -> None:
        self.case = case
        self.controls = controls
        self.submitted = submitted
        self.run = run

    def confirmation(self) -> Confirmation:
        """Run the tests that count, with the submission in a separate process; return the result.

        Raises `NotConfirmableError` if the submission can't be run that way, and `CancelledError` if stopped.
        """
        changed = changed_functions(self.case.original, self.submitted)
        others = [name for name in changed if name not in self.case.targets]
        needed = self._need_of(others) if others else None
        if needed is not None:
            return needed
        functions = tuple(dict.fromkeys((*self.case.targets, *changed)))
        self.run.progress(RunProgress("running", 0, 2))
        tests, learned = self._known_tests(functions)
        report = ran(self.case, functions, tests, self.submitted, learned, self.run)
        if report.conclusion.status is not RunStatus.FINISHED:
            late = report.conclusion.status is RunStatus.TIMED_OUT
            reason = Unconfirmable.TOO_SLOW if late else Unconfirmable.SANDBOX
            return _counted(_unconfirmed(reason, report.conclusion.reason, (_NOT_ANSWERED,)), report, tests)
        failing = report.failing(tests)
        self.run.progress(RunProgress("running", 1, 2))
        if failing:
            found = self._of_failing(functions, learned, failing, report)
            if found.result is Confirmed.CONTRADICTED and self._passes_with_all_changes(
                functions, learned, failing, report
            ):
                found = _unconfirmed(Unconfirmable.STATE_OUTSIDE, _CHANGES_DETAIL, (_CHANGES_MORE,))
            return _counted(found, report, tests)
        return _counted(self._of_passing(functions, learned, tests, report, others), report, tests)

    def _of_passing(
        self,
        functions: Sequence[FunctionName],
        learned: Sequence[Mapping[str, Sequence[str]]],
        tests: Sequence[str],
        report: PairReport,
        others: Sequence[FunctionName],
    ) -> Confirmation:
        """Return the result if all tests pass, after checking whether they pass for the wrong reasons."""
        unmade = [id for id in tests if report.asked[id].unmade]
        if unmade:
            contradicted = self._with_all_changes(functions, learned, unmade)
            if contradicted is not None:
                return contradicted
        unlike = self._unlike(functions, learned, tests, report)
        if unlike:
            detail = f"A call of {unlike[0]} gets a different answer in another process."
            return _unconfirmed(Unconfirmable.STATE_OUTSIDE, detail, (_ASKED_OTHERWISE,))
        other = self._other_answer(functions, report, tests)
        if other is not None and other.raises:
            # Loops and `getattr` swallow some exceptions, so that a test passes without an answer.
            detail = f"A call of {other.call.test} raises where the true function answers with a value."
            return _with(_unconfirmed(Unconfirmable.NO_CONTROL, detail, (_RAISES,)), beyond=other.call)
        return Confirmation(
            Confirmed.CONFIRMED,
            uncovered=self._uncovered(tests, others),
            beyond=other.call if other is not None else None,
        )

    def _need_of(self, others: Sequence[FunctionName]) -> Confirmation | None:
        """Return why a pass needs changes to functions that were right; None if the targets suffice.

        A submission could otherwise replace what tests judge by, such as a comparison or a helper that
        asserts, together with the target.
        """
        tree = self.submitted
        for name in others:
            right = index_source(name.path, self.case.original.read(name.path)).get(name.qualname)
            tree = with_definition(tree, name.path, name.qualname, right.source)
        alone = _PassCheck(self.case, self.controls, tree, self.run).confirmation()
        if alone.result is Confirmed.CONFIRMED:
            return None
        detail = f"Without the changes to {', '.join(map(str, others))}, it is {alone.words}. {alone.detail}"
        found = _unconfirmed(Unconfirmable.NO_CONTROL, detail.rstrip(), (_NEEDS_OTHERS, *alone.marks))
        return _with(found, beyond=alone.contradiction, calls=alone.calls, tests=alone.tests)

    def _uncovered(self, tests: Collection[str], others: Sequence[FunctionName]) -> int:
        """Return the minimum number of tests that pass in the submission's own process alone.

        These are the tests that enter a target or fail with the corrupted function but were not run, and one
        for each other changed function, of whose tests only those that also enter a target are run.
        """
        return len(self.case.failing.union(self.case.entering).difference(tests)) + len(others)

    def _other_answer(
        self, functions: Sequence[FunctionName], report: PairReport, tests: Collection[str]
    ) -> _OtherAnswer | None:
        """Return the first call of the tests that the true function answers with other data, if any.

        A call that raises, where the true function answers with a value, comes before all others.

        A test with such a call may pass, because it does not look at these data, or because the library's own
        comparison accepts them (decision 131). Calls that the true function does not answer in the same way
        twice do not count.
        """
        calls = [call for call in plain_calls(report, steps=True) if call.test in frozenset(tests)]
        otherwise = self._true_answers(functions, calls, hash_seed=0)
        if not otherwise:
            return None
        again = self._true_answers(functions, [call for call, _ in otherwise], hash_seed=1)
        steady = {id(call): answer for call, (_, answer) in again}
        found: _OtherAnswer | None = None
        for call, (exchange, answer) in otherwise:
            known = steady.get(id(call))
            if known is None or not same_data(exchange.request, answer.answer, known.answer):
                continue
            raises = exchange.answer.get("re") == "raised" and answer.answer.get("re") == "value"
            if found is None or raises:
                asked = functions[call.first.request["function"]]
                found = _OtherAnswer(_shown(asked, call.test, call.first, answer, exchange), raises)
            if raises:
                break
        return found

    def _true_answers(
        self, functions: Sequence[FunctionName], calls: Sequence[PlainCall], *, hash_seed: int
    ) -> list[tuple[PlainCall, tuple[Exchange, Exchange]]]:
        """Return the first calls, at most 20, that the true function answers with other data.

        Each is paired with its first exchange that differs, as recorded and with the true function's answer.
        """

        def is_alike(exchange: Exchange, answer: Mapping[str, Any]) -> bool:
            return same_data(exchange.request, exchange.answer, answer)

        case = self.case
        tree = without(case.original, case.hidden)
        process = SubmissionProcess(case.place, tree, functions, hash_seed=hash_seed)
        try:
            found = ((call, repeated(process, call, is_alike)) for call in calls)
            return [(call, pair) for call, pair in found if pair is not None][:_MOST_OTHERWISE]
        finally:
            process.close()

    def _known_tests(
        self, functions: Sequence[FunctionName]
    ) -> tuple[Sequence[str], Sequence[Mapping[str, Sequence[str]]]]:
        """Return the tests that count, and what the true function's answers contain and change, by function.

        The latter is in the order of `functions`. If the controls do not cover all functions, it is learned
        now. Raises `NotConfirmableError` if none of the tests that distinguish a wrong submission can be run.
        """
        names = [str(name) for name in functions]
        known = self.controls
        if all(name in known.answers for name in names):
            parts = [{"answers": known.answers[name], "writes": known.writes[name]} for name in names]
            runs = [{} if known.runs is None else {"runs": known.runs}, *({} for _ in names[1:])]
            return known.tests, [{**part, **more} for part, more in zip(parts, runs, strict=True)]
        true = ran(self.case, functions, known.tests, self.case.original, (), self.run)
        passed = true.passed()
        if not frozenset(known.telling).intersection(passed):
            # A submission chooses the functions that it changes, and thereby the tests that can be run. The
            # remaining tests must still distinguish it from a wrong submission.
            detail = "No test that counts can be run with the other functions that were changed."
            raise NotConfirmableError(Unconfirmable.NO_CONTROL, detail)
        return passed, true.learned

    def _passes_with_all_changes(
        self,
        functions: Sequence[FunctionName],
        learned: Sequence[Mapping[str, Sequence[str]]],
        failing: Sequence[str],
        report: PairReport,
    ) -> bool:
        """Whether the tests failed only because changes that a right repair may make were not made."""
        without_unmade = [id for id in failing if id not in report.asked or not report.asked[id].unmade]
        return not without_unmade and self._with_all_changes(functions, learned, failing) is None

    def _with_all_changes(
        self,
        functions: Sequence[FunctionName],
        learned: Sequence[Mapping[str, Sequence[str]]],
        tests: Sequence[str],
    ) -> Confirmation | None:
        """Return the result of the tests if all changes are made; None if they still pass.

        In the first run, objects that the true function never changes stayed unchanged, because a test could
        otherwise be made to pass by changing its arguments. A wrong change therefore had no effect there.
        """
        report = ran(self.case, functions, tests, self.submitted, learned, self.run, all_changes=True)
        if report.conclusion.status is not RunStatus.FINISHED:
            return _unconfirmed(Unconfirmable.SANDBOX, report.conclusion.reason, (_NOT_ANSWERED,))
        failing = report.failing(tests)
        return self._of_failing(functions, learned, failing, report) if failing else None

    def _unlike(
        self,
        functions: Sequence[FunctionName],
        learned: Sequence[Mapping[str, Sequence[str]]],
        tests: Sequence[str],
        report: PairReport,
    ) -> list[str]:
        """Return the tests with a call whose answer or effects are different in another process.

        A difference that the true function shows too, such as a logged time, does not count.
        """
        case = self.case
        found = unlike_tests(case, functions, self.submitted, report, _alike_with_effects, steps=True)
        if not found:
            return []
        true = ran(case, functions, tests, case.original, learned, self.run)
        unsteady = frozenset(
            unlike_tests(case, functions, case.original, true, _alike_with_effects, steps=True)
        )
        return [id for id in found if id not in unsteady]

    def _of_failing(
        self,
        functions: Sequence[FunctionName],
        learned: Sequence[Mapping[str, Sequence[str]]],
        failing: Sequence[str],
        report: PairReport,
    ) -> Confirmation:
        """Return the contradiction if the true function answers a call of a failing test differently.

        Otherwise the result is unconfirmed, with the reason.
        """
        # A failing test alone contradicts nothing, because it may fail for other reasons in this process.
        judged = [id for id in failing if id in report.asked and report.asked[id].problem in _ANSWERS]
        if judged:
            looked = judged[:_COMPARED_TESTS]
            true = ran(self.case, functions, looked, self.case.original, learned, self.run)
            for id in looked:
                call = _answered_otherwise(functions, id, true, report) if id in true.passed() else None
                if call is not None:
                    return Confirmation(Confirmed.CONTRADICTED, contradiction=call)
        asked = report.asked.get(failing[0])
        if asked is not None and asked.problem is Unconfirmable.RUNS_TEXT:
            return self._of_text(functions, learned, failing[0], asked.words)
        if asked is not None and asked.problem is not None:
            return _unconfirmed(asked.problem, f"{failing[0]}: {asked.words}", (_NOT_ANSWERED,))
        return self._of_other_calls(functions, failing, report)

    def _of_other_calls(
        self, functions: Sequence[FunctionName], failing: Sequence[str], report: PairReport
    ) -> Confirmation:
        """Return the result for failing tests whose calls differ from those in the true function's run.

        Tests with random inputs make other calls in each run. The calls of the failing run are therefore put
        to the true function, and the result is marked if it gives another answer.
        """
        other = self._other_answer(functions, report, failing)
        if other is None:
            words = "fails, although every call is answered as the true function answers it"
            return _unconfirmed(Unconfirmable.NOT_DETERMINISTIC, f"{failing[0]} {words}.")
        test = other.call.test
        detail = f"{test} fails, but makes other calls in each run, so that it contradicts nothing."
        found = _unconfirmed(Unconfirmable.NOT_DETERMINISTIC, detail, (_OTHER_DATA,))
        return _with(found, beyond=other.call)

    def _of_text(
        self,
        functions: Sequence[FunctionName],
        learned: Sequence[Mapping[str, Sequence[str]]],
        test: str,
        words: str,
    ) -> Confirmation:
        """Return the result for a test that ran code which was not run in the controls.

        It is marked if the true function runs no such code in this test.
        """
        true = ran(self.case, functions, [test], self.case.original, learned, self.run)
        asked = true.asked.get(test)
        is_new = asked is None or asked.problem is not Unconfirmable.RUNS_TEXT
        return _unconfirmed(Unconfirmable.RUNS_TEXT, f"{test}: {words}", (_RUNS_MORE,) if is_new else ())


_ANSWERS = (None, Unconfirmable.SANDBOX)
"""The problems with which a failing test's calls are compared: ending the process is an answer too."""


def _counted(found: Confirmation, report: PairReport, tests: Sequence[str]) -> Confirmation:
    return _with(found, calls=report.calls, tests=len(tests))


def _answered_otherwise(
    functions: Sequence[FunctionName], test: str, true: PairReport, report: PairReport
) -> AnsweredCall | None:
    """Return the first call of a test that the true function answers differently.

    If no answer differs, the first call with different effects is returned; None if there is none either. The
    calls after the first different request are not compared.
    """
    pairs = list(zip(true.asked[test].exchanges, report.asked[test].exchanges, strict=False))
    otherwise: tuple[Exchange, Exchange] | None = None
    for expected, found in pairs:
        if _without_number(expected) != _without_number(found):
            break
        # Effects come second, because the first different answer explains a failure best.
        if not same_answer(expected.answer, found.answer):
            return _shown(_asked(functions, expected), test, expected, expected, found)
        if otherwise is None and not same_effects(expected.answer, found.answer):
            otherwise = expected, found
    if otherwise is None:
        return None
    return _shown(_asked(functions, otherwise[0]), test, otherwise[0], *otherwise)


def _without_number(exchange: Exchange) -> Mapping[str, object]:
    return {name: value for name, value in exchange.request.items() if name != "call"}


def _asked(functions: Sequence[FunctionName], exchange: Exchange) -> FunctionName:
    place: int = exchange.request.get("function", 0)
    return functions[place]


def _shown(
    function: FunctionName, test: str, call: Exchange, expected: Exchange, found: Exchange
) -> AnsweredCall:
    """Return a call with its expected and its found answer as texts.

    `expected` and `found` are exchanges of the call itself, or of a later request to an object that it
    returned.
    """
    request = expected.request
    first, second = Shower(), Shower()
    text = call_text(function.qualname, call.request, first)
    for shower in (first, second):
        shower.take(call.request)
        shower.take(request)
    shown = [answer_text(expected.answer, first), answer_text(found.answer, second)]
    if shown[0] == shown[1]:
        shown = [effects_text(request, expected.answer, first), effects_text(request, found.answer, second)]
    if call.request != request:
        shown = [f"then {text}" for text in shown]
    return AnsweredCall(str(function), text, shown[0], shown[1], test)


# A pass that is not confirmed is watched (decision 116)


def _watched_marks(
    suites: Runner, task: Task, answer: Answer, submitted: SourceTree, run: RunContext
) -> tuple[str, ...]:
    """Return marks for what the submission does in another run of the suite, and the original does not.

    A mark is added if that run does not finish. Empty if the original can't be watched.
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
    # Nothing was seen, so there is nothing to compare with the original, and a run is saved.
    if report.status is RunStatus.FINISHED and not report.watched:
        return ()
    original = repaired_tree(given, answer.targets)
    true = suites.run(replace(request, tree=original, watched=_spans(given, original)), run=run)
    run.check()
    if true.status is not RunStatus.FINISHED:
        return ()  # the suite itself can't be watched
    seen = tuple(mark for mark in report.watched if mark not in true.watched)
    return seen if report.status is RunStatus.FINISHED else (*seen, _NOT_AGAIN)


def _spans(given: SourceTree, tree: SourceTree) -> tuple[WatchedSpan, ...]:
    return tuple(WatchedSpan(*span) for span in submitted_spans(given, tree))
