"""Judges one pass: the runs that confirm or contradict it (decision 113)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from gistpoint.core.code.index import index_source
from gistpoint.core.code.splice import with_definition
from gistpoint.core.confirmation.differences import (
    FunctionName,
    NotConfirmableError,
    changed_functions,
)
from gistpoint.core.confirmation.model import (
    Confirmation,
    Confirmed,
    Controls,
    Unconfirmable,
)
from gistpoint.core.confirmation.showing import (
    same_effects,
    same_without_order,
)
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.confirmation.changeable import unchangeable, unread
from gistpoint.sandbox.confirmation.controls import (
    ConfirmationCase,
    differing_tests,
    run_pair,
    uncontrolled,
    without_control,
)
from gistpoint.sandbox.confirmation.deviations import (
    CHANGES_MORE,
    DOES_MORE,
    LEAVES,
    RAISES,
    first_deviation,
    varying_tests,
)
from gistpoint.sandbox.confirmation.pair import Asked, PairReport
from gistpoint.sandbox.confirmation.readable import readable
from gistpoint.sandbox.confirmation.true_answers import OtherAnswer, TrueAnswers
from gistpoint.sandbox.payload.library_state import OF_LIBRARY

_COMPARED_TESTS = 3
"""The number of failing tests whose answers are compared with those of the true function."""
_VARIES = "gives different answers when asked again"
_NEEDS_OTHERS = "passes only with changes to functions that were right"
_NEEDS_ANOTHER = "passes only with another changed function, and not with the true one in its place"
_LARGER = "makes calls larger than the true function does, so that they can't be repeated"
_SWALLOWS = "swallows an exception of a test that the true function does not cause"
_CHANGES_PROCESS = "changes or shares something in its process that the true function leaves alone"
_SETS_MORE = "sets attributes that the true function does not set, and that the library can read"
_CHANGES_DETAIL = "The tests pass only because of a change that the true function never makes."
_RUNS_MORE = "answers with text that the library runs as code, but differently from the true function"
_OTHER_DATA = "answers a call of a failing test differently from the true function"
_CALLS_DIFFERENTLY = "calls functions of a test differently from the true function"
_NOT_ANSWERED = "does not answer in a separate process, although the true function does"


# Why such a call can hide a wrong answer: loops and `getattr` swallow some exceptions, so a test may pass
# without an answer, and a test that compares with an argument may pass because the argument was changed.
_DETAILS = {
    RAISES: "raises where the true function answers with a value",
    CHANGES_MORE: "changes an argument that the true function leaves as it was",
    DOES_MORE: "is answered differently, with output, warnings or logs that the true function does not have",
    LEAVES: "is left to other code, with NotImplemented, where the true function answers",
}


def with_changes(found: Confirmation, **changes: object) -> Confirmation:
    """Return a confirmation with some of its fields replaced."""
    return msgspec.structs.replace(found, **changes)


def unconfirmed(reason: Unconfirmable, detail: str, marks: tuple[str, ...] = ()) -> Confirmation:
    """Return the confirmation of a pass that can't be confirmed, with the reason."""
    return Confirmation(Confirmed.UNCONFIRMED, reason, detail, marks=marks)


def _alike_with_effects(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    return same_without_order(first, second) and same_effects(first, second)


class NoControlError(Exception):
    """No pass of a task can be confirmed, because no test judges one of its functions."""


class BusyMachineError(Exception):
    """The true function answers too late as well, so a late submission shows nothing about the pass."""


class PassCheck:
    """The runs that confirm or contradict one pass."""

    def __init__(
        self,
        case: ConfirmationCase,
        controls: Controls,
        submitted: SourceTree,
        run: RunContext,
        alone: FunctionName | None = None,
    ) -> None:
        """`alone` is the only function that differs from the original, if only its tests are to be run."""
        self.alone = alone
        self.case = case
        self.controls = controls
        self.submitted = submitted
        self.run = run
        self.later: list[PairReport] = []
        """Later runs of the submission, whose answers have to equal those of the first run."""
        self.unsteady: frozenset[str] = frozenset()
        """The tests with calls that the true function answers differently each time."""

    def confirmation(self) -> Confirmation:
        """Run the tests that count, with the submission in a separate process; return the result.

        Raises `NotConfirmableError` if the submission can't be run that way, `NoControlError` if a function
        of the task could be wrong alone without failing a test, and `BusyMachineError` if the true function
        is late as well.
        """
        changed = changed_functions(self.case.original, self.submitted)
        others = [name for name in changed if name not in self.case.targets]
        needed = self._needing_others(others) if others else None
        if needed is not None:
            return needed
        functions = tuple(dict.fromkeys((*self.case.targets, *changed)))
        self.run.progress(RunProgress("running", 0, 2))
        tests, learned = self._known_tests(functions)
        if not others:  # otherwise, the targets alone have already been confirmed
            self._check_controls(tests, learned)
        if self.alone is not None:
            tests = self.case.tests_of(self.alone, tests)
        report = self._run_submission(functions, tests, learned)
        if report.conclusion.status is not RunStatus.FINISHED:
            late = report.conclusion.status is RunStatus.TIMED_OUT
            reason = Unconfirmable.TOO_SLOW if late else Unconfirmable.SANDBOX
            return _counted(unconfirmed(reason, report.conclusion.reason, (_NOT_ANSWERED,)), report, tests)
        failing = report.failing(tests)
        self.run.progress(RunProgress("running", 1, 2))
        if failing:
            found = self._of_failing(functions, learned, failing, report)
            if found.result is Confirmed.CONTRADICTED and self._passes_with_all_changes(
                functions, learned, failing, report
            ):
                found = unconfirmed(Unconfirmable.STATE_OUTSIDE, _CHANGES_DETAIL, (CHANGES_MORE,))
            return _counted(found, report, tests)
        return _counted(self._of_passing(functions, learned, tests, report, others), report, tests)

    def _run_submission(
        self,
        functions: Sequence[FunctionName],
        tests: Sequence[str],
        learned: Sequence[Mapping[str, Sequence[str]]],
        *,
        all_changes: bool = False,
        unset: Sequence[str] = (),
    ) -> PairReport:
        """Run tests with the submission and return the report; the last two arguments are as in `PairOrder`.

        If the run is late, the true function is run in the same way. If that is not late, the submission is
        run again, and the second run counts (decision 159). Raises `BusyMachineError` if the true function is
        late as well.
        """

        def once(tree: SourceTree) -> PairReport:
            return run_pair(
                self.case, functions, tests, tree, learned, self.run, all_changes=all_changes, unset=unset
            )

        report = once(self.submitted)
        if not report.is_late:
            return report
        if once(self.case.original).is_late:
            raise BusyMachineError("The true function answers too late as well, since the machine is busy.")
        return once(self.submitted)

    def _true_run(
        self,
        functions: Sequence[FunctionName],
        tests: Sequence[str],
        learned: Sequence[Mapping[str, Sequence[str]]],
    ) -> PairReport:
        """Run tests with the true functions, once more if the run is late, and return the report."""
        report = run_pair(self.case, functions, tests, self.case.original, learned, self.run)
        if report.is_late:
            report = run_pair(self.case, functions, tests, self.case.original, learned, self.run)
        return report

    def _of_passing(
        self,
        functions: Sequence[FunctionName],
        learned: Sequence[Mapping[str, Sequence[str]]],
        tests: Sequence[str],
        report: PairReport,
        others: Sequence[FunctionName],
    ) -> Confirmation:
        """Return the result if all tests pass; they may pass for the wrong reasons."""
        unmade = [id for id in tests if report.asked[id].has_unmade_change]
        if unmade:
            contradicted = self._with_all_changes(functions, learned, unmade)
            if contradicted is not None:
                return contradicted
        for check in (self._swallowing, self._too_large, self._changing_process, self._writing_past):
            fault = check(functions, learned, tests, report)
            if fault is not None:
                return fault
        differing = self._differing(functions, learned, tests, report)
        if differing:
            return self._of_differing(differing[0])
        true = TrueAnswers(self.case, functions, learned, self.run)
        other = true.first_difference(report, tests)
        covered = self._covering(true, other, functions, learned, tests, report)
        if covered is None and not others:
            covered = self._covered_by_another()
        if covered is not None:
            return covered
        return Confirmation(
            Confirmed.CONFIRMED,
            uncovered=self._uncovered(tests, others),
            beyond=other.call if other is not None else None,
        )

    def _covering(
        self,
        true: TrueAnswers,
        other: OtherAnswer | None,
        functions: Sequence[FunctionName],
        learned: Sequence[Mapping[str, Sequence[str]]],
        tests: Sequence[str],
        report: PairReport,
    ) -> Confirmation | None:
        """Return what hides a wrong answer from the tests; None if nothing does.

        `other` is the first call that the true function answers with other data.
        """
        if other is not None and other.mark:
            detail = f"A call of {other.call.test} {_DETAILS[other.mark]}."
            return with_changes(
                unconfirmed(Unconfirmable.NO_CONTROL, detail, (other.mark,)), beyond=other.call
            )
        attributes = true.attributes.found()
        if attributes and not self._passes_without(attributes, functions, learned, tests):
            return unconfirmed(Unconfirmable.STATE_OUTSIDE, _CHANGES_DETAIL, (_SETS_MORE,))
        changed = next(varying_tests(report, self.later, self.unsteady), None)
        return None if changed is None else self._of_differing(changed)

    def _of_differing(self, test: str) -> Confirmation:
        detail = f"A call of {test} gets a different answer in another process."
        return unconfirmed(Unconfirmable.STATE_OUTSIDE, detail, (_VARIES,))

    def _needing_others(self, others: Sequence[FunctionName]) -> Confirmation | None:
        """Return why a pass needs changes to functions that were right; None if the targets suffice.

        Together with the target, a submission could otherwise replace functions by which tests judge, such as
        a comparison or a helper that asserts.
        """
        tree = self.submitted
        for name in others:
            right = index_source(name.path, self.case.original.read(name.path)).get(name.qualname)
            tree = with_definition(tree, name.path, name.qualname, right.source)
        alone = PassCheck(self.case, self.controls, tree, self.run).confirmation()
        if alone.result is Confirmed.CONFIRMED:
            return None
        detail = f"Without the changes to {', '.join(map(str, others))}, it is {alone.words}. {alone.detail}"
        found = unconfirmed(Unconfirmable.NO_CONTROL, detail.rstrip(), (_NEEDS_OTHERS, *alone.marks))
        return with_changes(found, beyond=alone.contradiction, calls=alone.calls, tests=alone.tests)

    def _covered_by_another(self) -> Confirmation | None:
        """Return why a pass needs one target to compensate for another; None if each is right alone.

        Each target that differs from the original is run with the true bodies of all others. Otherwise, two
        wrong ones could agree with each other, or one of them could undo what the other does wrong.
        """
        case = self.case
        changed = frozenset(changed_functions(case.original, self.submitted))
        targets = [name for name in case.targets if name in changed]
        if len(case.targets) == 1 or self.alone is not None:
            return None
        for name in targets:
            own = index_source(name.path, self.submitted.read(name.path)).get(name.qualname)
            tree = with_definition(case.original, name.path, name.qualname, own.source)
            found = PassCheck(case, self.controls, tree, self.run, name).confirmation()
            if found.result is not Confirmed.CONFIRMED:
                detail = (
                    f"With the true bodies of the other functions, {name} is {found.words}. {found.detail}"
                )
                marks = (_NEEDS_ANOTHER, *found.marks)
                found_alone = unconfirmed(Unconfirmable.NO_CONTROL, detail.rstrip(), marks)
                return with_changes(found_alone, beyond=found.contradiction or found.beyond)
        return None

    def _swallowing(
        self,
        functions: Sequence[FunctionName],
        learned: Sequence[Mapping[str, Sequence[str]]],
        tests: Sequence[str],
        report: PairReport,
    ) -> Confirmation | None:
        """Return why a pass depends on exceptions of tests that the submission swallows; None if it does not.

        A test may make its assertions in a function that it passes as an argument. The exceptions of that
        function reach the test only through the submission. Those that the true function also lets it raise
        in this test do not count.
        """
        suspected = [id for id in tests if report.asked[id].swallowed]
        if not suspected:
            return None
        true = self._true_run(functions, suspected, learned)
        for id in suspected:
            known = true.asked[id].raised if id in true.asked else frozenset()
            others = sorted(report.asked[id].swallowed - known)
            if others:
                detail = (
                    f"A function of {id} raises in the submission, which does not pass it on: {others[0]}"
                )
                return unconfirmed(Unconfirmable.NO_CONTROL, detail, (_SWALLOWS,))
        return None

    def _too_large(
        self,
        functions: Sequence[FunctionName],
        learned: Sequence[Mapping[str, Sequence[str]]],
        tests: Sequence[str],
        report: PairReport,
    ) -> Confirmation | None:
        """Return why calls that are larger than the true function's can't be repeated; None if none is.

        A submission can make its own calls large through the content of its answers to earlier calls.
        """
        suspected = [id for id in tests if report.asked[id].has_unkept_calls]
        if not suspected:
            return None
        true = self._true_run(functions, tests, learned)
        if any(asked.has_unkept_calls for asked in true.asked.values()):
            return None
        detail = f"Calls to {suspected[0]} are too large to repeat."
        return unconfirmed(Unconfirmable.TOO_MANY_CALLS, detail, (_LARGER,))

    def _changing_process(
        self,
        functions: Sequence[FunctionName],
        learned: Sequence[Mapping[str, Sequence[str]]],
        tests: Sequence[str],
        report: PairReport,
    ) -> Confirmation | None:
        """Return why a pass depends on changes that the tests' process can't see; None if it does not.

        A test that checks that something is unchanged, or that answers are separate objects, passes whatever
        the submission does in its own process.
        """
        every = frozenset[str]().union(*(report.asked[id].state for id in tests))
        harmless = unchangeable(self.case.original, every)
        harmless |= unread(self.case.original, self.case.hidden, every)
        suspected = [id for id in tests if report.asked[id].state - harmless]
        if not suspected:
            return None
        true = self._true_run(functions, suspected, learned)
        known = harmless.union(*(asked.state for asked in true.asked.values()))
        if all(report.asked[id].state <= known for id in suspected):
            return None
        # What a call does to objects of earlier calls can depend on the tests before its own.
        after_all = self._true_run(functions, tests, learned).asked
        every_state = frozenset[str]().union(*(asked.state for asked in after_all.values()))
        known |= {word for word in every_state if word.startswith(OF_LIBRARY)}
        for id in suspected:
            others = sorted(report.asked[id].state - known - after_all.get(id, Asked()).state)
            if others:
                detail = f"A call of {id} changes or shares {others[0]}, which the true function does not."
                return unconfirmed(Unconfirmable.STATE_OUTSIDE, detail[:500], (_CHANGES_PROCESS,))
        return None

    def _writing_past(
        self,
        functions: Sequence[FunctionName],
        learned: Sequence[Mapping[str, Sequence[str]]],
        tests: Sequence[str],
        report: PairReport,
    ) -> Confirmation | None:
        """Return why a pass depends on lost output; None if there is none, or the true function has some too.

        Output that goes to a descriptor, or comes from a program that is started, does not reach the tests'
        process, where a test could check that there is none.
        """
        if not report.has_written or self._true_run(functions, tests, learned).has_written:
            return None
        detail = "It writes to its output past sys.stdout and sys.stderr, which the true function does not."
        return unconfirmed(Unconfirmable.STATE_OUTSIDE, detail, (_CHANGES_PROCESS,))

    def _check_controls(self, tests: Sequence[str], learned: Sequence[Mapping[str, Sequence[str]]]) -> None:
        """Raise `NoControlError` if a function of the task has no control.

        Older controls do not record whether each function has one; this is then checked now.
        """
        if self.controls.each or self.alone is not None:
            return
        function = uncontrolled(self.case, tests, learned[: len(self.case.targets)], self.run)
        if function is not None:
            raise NoControlError(without_control(function))

    def _uncovered(self, tests: Collection[str], others: Sequence[FunctionName]) -> int:
        """Return the minimum number of tests that pass only in the submission's own process.

        These are the tests that enter a target, or fail with the corrupted function, and were not run; and at
        least one test of each other changed function, whose tests are run only if they enter a target as
        well.
        """
        return len(self.case.failing.union(self.case.entering).difference(tests)) + len(others)

    def _passes_without(
        self,
        attributes: Collection[str],
        functions: Sequence[FunctionName],
        learned: Sequence[Mapping[str, Sequence[str]]],
        tests: Sequence[str],
    ) -> bool:
        """Whether the tests still pass if attributes that only the submission sets are not set.

        Only attributes that code of the original could read count. For example, a repair may fill a cache
        that the true function leaves empty; a test that passes without the cache does not depend on it.
        """
        unset = readable(self.case.original, attributes)
        if not unset:
            return True
        report = self._run_submission(functions, tests, learned, unset=unset)
        self.later.append(report)
        return report.conclusion.status is RunStatus.FINISHED and not report.failing(tests)

    def _known_tests(
        self, functions: Sequence[FunctionName]
    ) -> tuple[Sequence[str], Sequence[Mapping[str, Sequence[str]]]]:
        """Return the tests that count, and what the true functions' answers contain, by function.

        If the controls do not cover all functions, this is learned now. Raises `NotConfirmableError` if no
        test that fails with a wrong function is left.
        """
        names = [str(name) for name in functions]
        known = self.controls
        if all(name in known.answers for name in names):
            parts = [{"answers": known.answers[name], "writes": known.writes[name]} for name in names]
            runs = [{} if known.runs is None else {"runs": known.runs}, *({} for _ in names[1:])]
            return known.tests, [{**part, **more} for part, more in zip(parts, runs, strict=True)]
        true = self._true_run(functions, known.tests, ())
        passed = true.passed()
        if not frozenset(known.telling).intersection(passed):
            # A submission chooses the functions that it changes, and so the tests that can be run. The
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
        may_be_repaired = all(report.asked.get(id, Asked()).has_unmade_change for id in failing)
        return may_be_repaired and self._with_all_changes(functions, learned, failing) is None

    def _with_all_changes(
        self,
        functions: Sequence[FunctionName],
        learned: Sequence[Mapping[str, Sequence[str]]],
        tests: Sequence[str],
    ) -> Confirmation | None:
        """Return the result of the tests if all changes are made; None if they still pass.

        In the first run, objects that the true function was never seen to change stayed unchanged, because
        otherwise a test could be made to pass by changing its arguments. A wrong change therefore had no
        effect there.
        """
        report = self._run_submission(functions, tests, learned, all_changes=True)
        self.later.append(report)
        if report.conclusion.status is not RunStatus.FINISHED:
            return unconfirmed(Unconfirmable.SANDBOX, report.conclusion.reason, (_NOT_ANSWERED,))
        failing = report.failing(tests)
        return self._of_failing(functions, learned, failing, report) if failing else None

    def _differing(
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
        found = differing_tests(
            case, functions, self.submitted, report, self.run, _alike_with_effects, steps=True
        )
        if not found:
            return []
        true = self._true_run(functions, tests, learned)
        self.unsteady = frozenset(
            differing_tests(case, functions, case.original, true, self.run, _alike_with_effects, steps=True)
        )
        return [id for id in found if id not in self.unsteady]

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
            compared = judged[:_COMPARED_TESTS]
            true = self._true_run(functions, compared, learned)
            for id in compared:
                call = first_deviation(functions, id, true, report) if id in true.passed() else None
                if call is not None:
                    return Confirmation(Confirmed.CONTRADICTED, contradiction=call)
        asked = report.asked.get(failing[0])
        if asked is not None and asked.problem is Unconfirmable.RUNS_TEXT:
            return self._of_text(functions, learned, failing[0], asked.words)
        if asked is not None and asked.problem is not None:
            return unconfirmed(asked.problem, f"{failing[0]}: {asked.words}", (_NOT_ANSWERED,))
        return self._of_other_calls(functions, learned, failing, report)

    def _of_other_calls(
        self,
        functions: Sequence[FunctionName],
        learned: Sequence[Mapping[str, Sequence[str]]],
        failing: Sequence[str],
        report: PairReport,
    ) -> Confirmation:
        """Return the result for failing tests whose calls differ from those that the true function gets.

        Tests with random inputs make different calls in each run. The true function therefore repeats the
        calls of the failing run, and the result is marked if an answer differs.
        """
        true = TrueAnswers(self.case, functions, learned, self.run)
        other = true.other_answer(report, failing)
        if other is None and true.unrepeated:
            detail = f"{failing[0]} fails, and its calls can't be repeated with the true function."
            return unconfirmed(Unconfirmable.NOT_DETERMINISTIC, detail, (_CALLS_DIFFERENTLY,))
        if other is None:
            words = "fails, although every call is answered as the true function answers it"
            return unconfirmed(Unconfirmable.NOT_DETERMINISTIC, f"{failing[0]} {words}.")
        test = other.call.test
        detail = f"{test} fails, but makes other calls in each run, so that it contradicts nothing."
        found = unconfirmed(Unconfirmable.NOT_DETERMINISTIC, detail, (_OTHER_DATA,))
        return with_changes(found, beyond=other.call)

    def _of_text(
        self,
        functions: Sequence[FunctionName],
        learned: Sequence[Mapping[str, Sequence[str]]],
        test: str,
        words: str,
    ) -> Confirmation:
        """Return the result for a test that ran code from strings that the controls did not see.

        It is marked if the true function runs no such code in this test.
        """
        true = self._true_run(functions, [test], learned)
        asked = true.asked.get(test)
        is_new = asked is None or asked.problem is not Unconfirmable.RUNS_TEXT
        return unconfirmed(Unconfirmable.RUNS_TEXT, f"{test}: {words}", (_RUNS_MORE,) if is_new else ())


_ANSWERS = (None, Unconfirmable.SANDBOX)
"""The problems with which a failing test's calls are still compared; ending the process is an answer too."""


def _counted(found: Confirmation, report: PairReport, tests: Sequence[str]) -> Confirmation:
    return with_changes(found, calls=report.calls, tests=len(tests))
