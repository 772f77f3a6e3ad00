"""Checks whether a forged function would be confirmed, without a task (for `doctor --self-test`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gistpoint.core.confirmation.differences import FunctionName, test_paths, without
from gistpoint.core.confirmation.showing import same_without_order
from gistpoint.core.errors import InfrastructureError
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import UNATTENDED
from gistpoint.core.text import failing_in_words
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.confirmation.pair import Pair, PairOrder, PairReport
from gistpoint.sandbox.confirmation.repeating import plain_calls, repeated
from gistpoint.sandbox.confirmation.submission import RunPlace, SubmissionProcess
from gistpoint.sandbox.limits import RunLimits
from gistpoint.sandbox.testruns import EnvironmentSource


class ForgeryTrial:
    """A trial of submissions of one function on one backend, against the answers of the true function."""

    def __init__(
        self,
        backend: Backend,
        environments: EnvironmentSource,
        original: SourceTree,
        name: str,
        tests: Sequence[str],
        *,
        limits: RunLimits,
        timeout_s: float,
    ) -> None:
        """`name` is the function as `path::qualname`; `tests` are the ids of all tests of `original`.

        Raises `InfrastructureError` if the tests do not pass with the true function in another process.
        """
        pins = EnvironmentPins()
        self._place = RunPlace(backend, environments.get(pins, backend), pins, limits)
        self._original = original
        self._functions = (FunctionName(*name.split("::")),)
        self._tests = tests
        self._timeout_s = timeout_s
        files = {test.partition("::")[0] for test in tests}
        self._hidden = test_paths(original, files, data=True)
        true = self._run(original, ())
        if true.failing(tests):
            raise InfrastructureError(
                f"The true function does not answer in a separate process on {backend.name}.",
                hint=true.output[-1000:],
            )
        self._learned = true.learned

    def passes(self, submitted: SourceTree) -> tuple[bool, str]:
        """Return whether a submission would be confirmed, and how its run ended."""
        report = self._run(submitted, self._learned)
        if report.conclusion.status is not RunStatus.FINISHED:
            return False, report.conclusion.reason
        failing = report.failing(self._tests)
        if failing:
            return False, failing_in_words(len(failing), len(self._tests))
        return not self._varies(submitted, report), "all tests pass"

    def _varies(self, submitted: SourceTree, report: PairReport) -> bool:
        tree = without(submitted, self._hidden)
        process = SubmissionProcess(self._place, tree, self._functions, hash_seed=1)
        try:
            calls = reversed(plain_calls(report, steps=True))
            asked = (
                repeated(process, call, lambda exchange, answer: same_without_order(exchange.answer, answer))
                for call in calls
            )
            return any(found is not None for found in asked)
        finally:
            process.close()

    def _run(self, submitted: SourceTree, known: Sequence[Mapping[str, Sequence[str]]]) -> PairReport:
        order = PairOrder(
            self._original, submitted, self._functions, self._hidden, self._tests, self._timeout_s, known
        )
        return Pair(self._place, order).run(UNATTENDED)
