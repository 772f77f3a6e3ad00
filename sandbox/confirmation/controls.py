"""Makes the controls of a task: runs that show which of its tests can confirm a pass (decision 113)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gistpoint.core.confirmation.differences import (
    FunctionName,
    answering_nothing,
    does_nothing,
    outermost,
    without,
)
from gistpoint.core.confirmation.model import Controls, Unconfirmable
from gistpoint.core.confirmation.showing import same_without_order
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.core.tasks.model import Answer, Target, Task
from gistpoint.core.tasks.trees import corrupted_tree
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.confirmation.pair import MOST_CALLS, Exchange, Pair, PairOrder, PairReport
from gistpoint.sandbox.confirmation.repeating import plain_calls, repeated
from gistpoint.sandbox.confirmation.submission import RunPlace, SubmissionProcess
from gistpoint.sandbox.limits import suite_timeout

LEAST_S = 60.0
"""The minimum time limit of a confirmation, for short suites, since two processes have to start."""
_CONTROL_S = 300.0
"""The minimum time limit of a control, which runs once, with all tests that enter the function."""
_MOST_REPEATS = 2
"""The maximum number of times that a call is repeated if it is late."""
_SHARE = 0.5
"""The share of the suite's time that a confirmation's tests may take."""


@dataclass(frozen=True, slots=True)
class ConfirmationCase:
    """A task, and the data that all of its runs share."""

    task: Task
    answer: Answer
    place: RunPlace
    given: SourceTree
    original: SourceTree
    hidden: tuple[str, ...]
    seconds: float
    """The duration of a suite run."""

    @property
    def targets(self) -> tuple[FunctionName, ...]:
        """The functions that the task is about. Raises `NotConfirmableError` for a class."""
        return tuple(dict.fromkeys(map(self.outermost, self.answer.targets)))

    @property
    def failing(self) -> frozenset[str]:
        """The ids of the tests that fail with the corrupted function."""
        return self.answer.baseline_for(self.place.backend.name).failing

    @property
    def entering(self) -> tuple[str, ...]:
        """The sorted ids of the tests that pass on the original and enter a function of the task.

        These are all passing tests if it is unknown for some function which tests enter it.
        """
        entered, passed = self.answer.entered, self.answer.baseline_for(self.place.backend.name).passed
        known = [entered.get(target.name) for target in self.answer.targets]
        if not all(known):
            return tuple(sorted(passed))
        return tuple(sorted(frozenset().union(*(ids or () for ids in known)) & passed))

    def tests_of(self, function: FunctionName, tests: Sequence[str]) -> list[str]:
        """Return those of `tests` that enter `function`, or a function in it; all if that is unknown."""
        of_function = [target for target in self.answer.targets if self.outermost(target) == function]
        known = [self.answer.entered.get(target.name) for target in of_function]
        if not all(known):
            return list(tests)
        entering = frozenset().union(*(ids or () for ids in known))
        return [id for id in tests if id in entering]

    def wrong_alone(self, function: FunctionName) -> Iterator[SourceTree]:
        """Yield trees in which one function of the task is wrong: it answers nothing, or is corrupted."""
        yield answering_nothing(self.original, (function,))
        for target in self.answer.targets:
            if self.outermost(target) == function and not does_nothing(target.corrupted):
                yield corrupted_tree(self.original, (target,))

    def outermost(self, target: Target) -> FunctionName:
        """Return the outermost function around a target."""
        return outermost(self.original, target.name)


class ControlRuns:
    """The runs that show which tests of a task can confirm a pass."""

    def __init__(self, case: ConfirmationCase, run: RunContext) -> None:
        self.case = case
        self.run = run

    def controls(self) -> Controls:
        """Run the true function, the corrupted function and one that returns None; return the controls.

        If no test counts, or no test would notice a wrong function, the controls contain the reason instead
        of tests.
        """
        case, run = self.case, self.run
        functions, tests = case.targets, case.entering
        if not tests:
            return Controls(
                confirmable=False, reason=Unconfirmable.NO_CONTROL, detail="No test enters the function."
            )
        run.progress(RunProgress("running", 0, 3))
        true = run_pair(case, functions, tests, case.original, (), run)
        unusable = self._unusable(true)
        if unusable is not None:
            return unusable
        # A function whose true answers vary can't contradict a pass, so its tests do not count.
        unsteady = frozenset(differing_tests(case, functions, case.original, true, run))
        counting = [id for id in true.passed() if id not in unsteady]
        if not counting:
            return self._not_confirmable(*_most_frequent(true), true)
        run.progress(RunProgress("running", 1, 3))
        telling = self._telling(functions, counting, true)
        if not telling:
            detail = (
                "The tests that count pass with the corrupted function too, or with one that returns None."
            )
            return self._not_confirmable(Unconfirmable.NO_CONTROL, detail, true)
        chosen = _within_bounds(true, counting, telling, case.seconds)
        alone = uncontrolled(case, chosen, true.learned, run)
        if alone is not None:
            return self._not_confirmable(Unconfirmable.NO_CONTROL, without_control(alone), true)
        names = list(map(str, functions))
        parts = dict(zip(names, true.learned, strict=True))
        runs = true.learned[0].get("runs")
        return Controls(
            confirmable=True,
            tests=tuple(chosen),
            telling=tuple(id for id in chosen if id in telling),
            entering=len(frozenset().union(*self._entered(functions, tests, true).values())),
            calls=sum(true.asked[id].calls for id in chosen),
            answers={name: tuple(part["answers"]) for name, part in parts.items()},
            writes={name: tuple(part["writes"]) for name, part in parts.items()},
            each=True,
            runs=None if runs is None else tuple(runs),
            reasons=self._reasons(true, len(unsteady)),
            seconds=round(true.seconds, 3),
            failing=tuple(sorted(case.failing)),
            entered=self._entered(functions, tests, true),
        )

    def _entered(
        self, functions: Sequence[FunctionName], tests: Sequence[str], true: PairReport
    ) -> Mapping[str, tuple[str, ...]]:
        """Return the tests that enter each function of the task, by the names of the targets.

        The tests are taken from the answer; if it names none, they are those that called the function in the
        true run. A test with a call that could not be sent may have called any function.
        """
        case = self.case
        found: dict[str, tuple[str, ...]] = {}
        for target in case.answer.targets:
            place = functions.index(case.outermost(target))
            called = (id for id in tests if id in true.asked and true.asked[id].enters(place))
            known = case.answer.entered.get(target.name)
            found[target.name] = tuple(sorted(known & frozenset(tests) if known else called))
        return found

    def _unusable(self, true: PairReport) -> Controls | None:
        """Return controls with the reason why the true function's run is unusable; None for a usable run."""
        if true.conclusion.status is not RunStatus.FINISHED:
            return self._not_confirmable(Unconfirmable.SANDBOX, true.conclusion.reason, true)
        # A library that executes strings as code would run the submission's code in the process of the tests.
        if any(asked.problem is Unconfirmable.RUNS_TEXT for asked in true.asked.values()):
            return self._not_confirmable(
                Unconfirmable.RUNS_TEXT, _explanation_of(true, Unconfirmable.RUNS_TEXT), true
            )
        return None

    def _telling(
        self, functions: Sequence[FunctionName], counting: Sequence[str], true: PairReport
    ) -> frozenset[str]:
        """Return the tests that fail with both wrong functions, or with either if none fails with both.

        The result is empty if all tests pass with one of the wrong functions.
        """
        case, found = self.case, frozenset(counting)
        for wrong in (case.given, answering_nothing(case.original, functions)):
            report = run_pair(case, functions, counting, wrong, true.learned, self.run)
            failing = frozenset(counting).difference(report.passed())
            if not failing:
                return frozenset()
            fail_with_both = found & failing
            found = fail_with_both or found | failing
        return found

    def _not_confirmable(self, reason: Unconfirmable, detail: str, true: PairReport) -> Controls:
        return Controls(
            confirmable=False,
            reason=reason,
            detail=detail,
            entering=len(self.case.entering),
            calls=true.calls,
            reasons=self._reasons(true, 0),
            seconds=round(true.seconds, 3),
        )

    def _reasons(self, true: PairReport, unsteady: int) -> Mapping[str, int]:
        found = true.reasons()
        if unsteady:
            found[Unconfirmable.NOT_DETERMINISTIC.value] += unsteady
        return found


def _explanation_of(report: PairReport, reason: Unconfirmable) -> str:
    """Return the explanation of the first test that can't count for a reason; empty if there is none."""
    return next((asked.words for asked in report.asked.values() if asked.problem is reason), "")


def _most_frequent(report: PairReport) -> tuple[Unconfirmable, str]:
    """Return the most frequent reason why tests can't count, and an explanation of it."""
    counted = Counter(report.reasons())
    if not counted:
        return Unconfirmable.NO_CONTROL, "No test calls the function while it runs."
    reason = Unconfirmable(counted.most_common(1)[0][0])
    words = _explanation_of(report, reason)
    return reason, words or "The tests fail if the function runs in a separate process."


def _within_bounds(
    true: PairReport, counting: Sequence[str], telling: Collection[str], seconds: float
) -> list[str]:
    """Return the tests that confirm a pass: as many as the limits allow, those in `telling` first."""
    allowed = max(LEAST_S / 2, _SHARE * seconds)
    chosen: list[str] = []
    calls, taken = 0, 0.0
    for id in sorted(counting, key=lambda id: (id not in telling, true.results[id].seconds)):
        calls += true.asked[id].calls
        taken += true.results[id].seconds
        # The first test is kept even if it exceeds the limits, since nothing could be confirmed without it.
        if chosen and (calls > MOST_CALLS or taken > allowed):
            break
        chosen.append(id)
    return chosen


def run_pair(
    case: ConfirmationCase,
    functions: Sequence[FunctionName],
    tests: Sequence[str],
    submitted: SourceTree,
    learned: Sequence[Mapping[str, Sequence[str]]],
    run: RunContext,
    *,
    all_changes: bool = False,
    unset: Sequence[str] = (),
) -> PairReport:
    """Run `tests` on the original, with the functions of `submitted` in another process; return the report.

    If `learned` is empty, what the answers of the functions contain is recorded. `all_changes` and `unset`
    are as in `PairOrder`.
    """
    timeout = _run_limit(case, LEAST_S if learned else _CONTROL_S)
    order = PairOrder(
        case.original, submitted, functions, case.hidden, tests, timeout, learned, all_changes, unset
    )
    return Pair(case.place, order).run(run)


def _run_limit(case: ConfirmationCase, least_s: float) -> float:
    """Return the time limit of one run, in seconds."""
    return max(least_s, suite_timeout(case.seconds))


def uncontrolled(
    case: ConfirmationCase,
    tests: Sequence[str],
    learned: Sequence[Mapping[str, Sequence[str]]],
    run: RunContext,
) -> FunctionName | None:
    """Return a function of a task that could be wrong alone without failing a test; None if there is none.

    Such a function could answer anything, and would be confirmed by the tests of the other functions. The
    result is also None for a task with one function, whose controls are enough.
    """
    functions = case.targets
    if len(functions) == 1:
        return None  # the controls of the task are those of this function
    nothing = run_pair(case, functions, tests, answering_nothing(case.original, functions), learned, run)
    failing = nothing.failing(tests)
    for place, function in enumerate(functions):
        own = case.tests_of(function, tests)
        for number, wrong in enumerate(case.wrong_alone(function)):
            # If a test called only this function, it also fails when the other functions are right, so it
            # needs no separate run.
            is_known = number == 0 and any(nothing.asked[id].functions == {place} for id in failing)
            if not is_known and not run_pair(case, functions, own, wrong, learned, run).failing(own):
                return function
    return None


def without_control(function: FunctionName) -> str:
    """Return why passes can't be confirmed: no test notices if only this function is wrong."""
    return f"No test that counts fails if only {function} is wrong."


def differing_tests(
    case: ConfirmationCase,
    functions: Sequence[FunctionName],
    submitted: SourceTree,
    report: PairReport,
    run: RunContext,
    alike: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] = same_without_order,
    *,
    steps: bool = False,
) -> list[str]:
    """Return the tests with a call whose answer, as judged by `alike`, differs when the call is repeated.

    The calls are repeated in reverse order, in another process with another hash seed. With `steps`, so are
    the later requests to the iterators and functions in their answers. A test is returned once for each
    such call. Calls that are late are repeated once more, in a new process; the second result counts, and a
    call that is late again counts as one with a different answer (decision 159). A call is late if it is
    not answered in time, or can't be repeated within the time limit of a run.
    """
    limit = _run_limit(case, LEAST_S if steps else _CONTROL_S)
    tree = without(submitted, case.hidden)
    calls = list(reversed(plain_calls(report, steps=steps)))

    def is_alike(exchange: Exchange, answer: Mapping[str, Any]) -> bool:
        return answer["re"] != "gone" and alike(exchange.answer, answer)

    found: list[str] = []
    for _ in range(_MOST_REPEATS):
        process = SubmissionProcess(case.place, tree, functions, hash_seed=1)
        # A submission that answers as slowly as the limit allows, and only when it is repeated, would
        # otherwise never be confirmed, and its pass would count like one that was never checked (decision
        # 135).
        deadline = time.monotonic() + limit
        late = []
        try:
            for call in calls:
                run.check()
                is_over = process.is_late or time.monotonic() > deadline
                differs = is_over or repeated(process, call, is_alike) is not None
                if is_over or process.is_late:
                    late.append(call)
                elif differs:
                    found.append(call.test)
        finally:
            process.close()
        calls = late
        if not calls:
            break
    return [*found, *(call.test for call in calls)]
