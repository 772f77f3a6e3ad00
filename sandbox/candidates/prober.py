"""Judges candidates in a fork of a warm process if their code can be swapped, and otherwise in a fresh run.

Code in a fork has the same user as the process that judges it, so a candidate that is kept is confirmed by a
run of the whole suite (decision 36).
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice

from gistpoint.core.code.testmap import TestMap
from gistpoint.core.errors import CancelledError, EnvironmentBuildError
from gistpoint.core.outcomes import Outcome, RunStatus, SuiteReport
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import ProbeFailure, ProbeReport, Runner, RunRequest
from gistpoint.core.running import NEVER, CancelToken, RunContext, RunProgress
from gistpoint.core.tasks.model import Target
from gistpoint.core.tasks.trees import corrupted_tree
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend, Stop
from gistpoint.sandbox.candidates.warm import (
    Bounds,
    LineSpan,
    Order,
    Orders,
    ProbeTally,
    ServerGoneError,
    WarmSuite,
    read_failure,
)
from gistpoint.sandbox.limits import RunLimits, suite_timeout
from gistpoint.sandbox.testruns import EnvironmentSource, SuiteRunner


class FreshRuns:
    """A runner of parts of one tree's suite in new processes, with corrupted functions."""

    def __init__(
        self,
        runner: Runner,
        tree: SourceTree,
        environment: EnvironmentPins,
        passed: frozenset[str],
        timeout_s: float,
    ) -> None:
        self._runner = runner
        self._tree = tree
        self._environment = environment
        self._passed = passed
        self._timeout_s = timeout_s

    def run(
        self,
        targets: tuple[Target, ...],
        tests: Sequence[str],
        lines: Sequence[LineSpan],
        stop_after: int | None,
        cancel: CancelToken,
        *,
        whole_suite: bool = False,
    ) -> ProbeReport:
        """Run `tests` with `targets` corrupted, which are on `lines` of the new files; return the report.

        The run stops when `stop_after` of the tests have failed, if that is given. If `whole_suite` is true,
        all tests run, but other tests are not reported. Raises `CodeError` if a target does not fit its file,
        and `CancelledError` if `cancel` is cancelled.
        """
        chosen = frozenset(tests)
        stop = _FailureLimit(stop_after, chosen, cancel)
        request = RunRequest(
            corrupted_tree(self._tree, targets),
            self._environment,
            self._timeout_s,
            select=() if whole_suite or chosen >= self._passed else tuple(tests),
        )
        report = self._runner.run(request, run=RunContext(stop, stop.count))
        cancel.check()
        # A run that was stopped because enough tests failed counts as finished, although it was cancelled.
        status = RunStatus.FINISHED if stop.reached else report.status
        failed = _failures(report, tests, lines, whole_suite=not stop.reached)
        most = len(failed) if stop_after is None else stop_after  # the run may have continued for a moment
        return ProbeReport(
            status,
            dict(islice(failed.items(), most)),
            len(report.results),
            reason="" if stop.reached else report.reason,
        )


class _FailureLimit(CancelToken):
    """A token that is cancelled when another token is cancelled, or when enough tests have failed."""

    def __init__(self, most: int | None, chosen: Collection[str], outer: CancelToken) -> None:
        super().__init__()
        self._most = most
        self._chosen = chosen
        self._outer = outer
        self._failed = 0

    @property
    def reached(self) -> bool:
        """Whether enough tests have failed."""
        return self._most is not None and self._failed >= self._most

    @property
    def cancelled(self) -> bool:
        """Whether the run has to stop."""
        return self.reached or self._outer.cancelled

    def check(self) -> None:
        """Raise `CancelledError` if the run has to stop."""
        if self.cancelled:
            raise CancelledError("Stopped at your request.")

    def count(self, progress: RunProgress) -> None:
        """Count the failed tests in `progress`."""
        latest = progress.latest
        self._failed += (
            latest is not None and latest.id in self._chosen and latest.outcome is not Outcome.PASSED
        )


def _failures(
    report: SuiteReport, tests: Sequence[str], lines: Sequence[LineSpan], *, whole_suite: bool
) -> dict[str, ProbeFailure]:
    """Return the failures of the tests that did not pass, by id; tests without a result come last.

    They are left out if the run did not finish, or if `whole_suite` is false: the run was stopped early.
    """
    chosen = frozenset(tests)
    failed = {
        id: read_failure(result.message, lines)
        for id, result in report.results.items()
        if id in chosen and result.outcome is not Outcome.PASSED
    }
    # Only a finished run shows what is missing; a stopped run has merely not reached the missing tests.
    if whole_suite and report.status is RunStatus.FINISHED:
        errors = {error.id: read_failure(error.message, lines) for error in report.collection_errors}
        for id in tests:
            if id not in report.results:
                failed[id] = errors.get(id.partition("::")[0], ProbeFailure(""))
    return failed


_LEAST_START_S = 60.0
_LEAST_PATIENCE_S = 2.0
_TIMES = 5
_MOST_FAILED_STARTS = 2
_MOST_CHECKS = 4
_STOPPED = {Stop.OUT_OF_MEMORY: RunStatus.OUT_OF_MEMORY, Stop.CANCELLED: RunStatus.CANCELLED}


class SuiteProber:
    """A prober of candidates for one tree; implements `gistpoint.core.ports.Prober`.

    A fork of the collected suite gets the corrupted code in place of the original, and the corrupted file on
    disk, which other processes and later imports read. If a corruption has further effects, a fresh run is
    made: for functions that ran during an import, for changed parameters, for code that can't be swapped, and
    if a test that failed also fails in a fork of the original (decision 36).
    """

    def __init__(
        self,
        backend: Backend,
        environments: EnvironmentSource,
        tree: SourceTree,
        environment: EnvironmentPins,
        test_map: TestMap,
        passed: Collection[str],
        *,
        seconds: float,
        limits: RunLimits | None = None,
    ) -> None:
        """`passed` are the ids of tests that pass on the original, `seconds` is the duration of the suite."""
        self._backend = backend
        self._environments = environments
        self._tree = tree
        self._pins = environment
        self._map = test_map
        self._passed = frozenset(passed)
        self._seconds = seconds
        self._patience = patience(test_map)
        self._limits = limits or RunLimits()
        self._orders = Orders(tree)
        runner = SuiteRunner(backend, environments, self._limits)
        self._fresh = FreshRuns(runner, tree, environment, self._passed, suite_timeout(seconds))
        self._lock = threading.Lock()
        self._warm: list[WarmSuite] = []
        self._trouble = ""
        self._starts_in_vain = 0
        self._checks = 0
        self._sound: set[str] = set()
        self._unsound: set[str] = set()
        # Bound to the list, not to `self`, which the finalizer would otherwise keep alive forever.
        weakref.finalize(self, _close_all, self._warm)

    def decide(
        self,
        targets: tuple[Target, ...],
        select: tuple[str, ...] = (),
        *,
        stop_after: int | None = None,
        cancel: CancelToken = NEVER,
    ) -> ProbeReport:
        """Run the tests `select`, or all that reach `targets`, with `targets` corrupted; return the report.

        Only tests that pass on the original count. The run stops when `stop_after` tests have failed, if
        that is given. Raises `CodeError` if a target does not fit its file. Cancellation and failures of the
        harness are statuses of the report.
        """
        began = time.perf_counter()
        with self._lock:
            order = self._orders.make(targets)
            names = [target.name for target in targets]
            tests = [id for id in select or self._map.seeing(names) if id in self._passed]
            try:
                report = self._decide(targets, names, order, tests, stop_after, cancel)
            except CancelledError as error:
                # A fork may still be running, and its records would be mistaken for the next candidate's.
                self._close()
                report = ProbeReport(RunStatus.CANCELLED, reason=error.message)
            except (EnvironmentBuildError, OSError) as error:
                report = ProbeReport(RunStatus.INFRASTRUCTURE, reason=str(error))
        return replace(report, seconds=time.perf_counter() - began)

    def close(self) -> None:
        """End the warm process and all processes that it started."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        _close_all(self._warm)

    def _decide(
        self,
        targets: tuple[Target, ...],
        names: Sequence[str],
        order: Order,
        tests: list[str],
        stop_after: int | None,
        cancel: CancelToken,
    ) -> ProbeReport:
        cancel.check()
        if not tests:
            return ProbeReport(RunStatus.FINISHED)
        # A fork keeps the results that an import has computed with the original code.
        imported = [name for name in names if name in self._map.at_import]
        why = f"{imported[0]} runs while modules are imported" if imported else order.unfit or self._trouble
        if not why:
            found = self._try_warm(order, tests, stop_after, cancel)
            if isinstance(found, ProbeReport):
                return found
            why = found
        whole_suite = not self._unsound.isdisjoint(tests)  # such tests depend on the effects of earlier tests
        report = self._fresh.run(targets, tests, order.lines, stop_after, cancel, whole_suite=whole_suite)
        return replace(report, how="fresh", reason=report.reason or why)

    def _try_warm(
        self, order: Order, tests: list[str], stop_after: int | None, cancel: CancelToken
    ) -> ProbeReport | str:
        """Return the report of a fork, or why a fork is not enough."""
        try:
            suite = self._started(cancel)
        except ServerGoneError as error:
            self._starts_in_vain += 1
            if self._starts_in_vain >= _MOST_FAILED_STARTS:
                self._trouble = str(error)
            self._close()
            return str(error)
        bounds = self._bounds(tests)
        try:
            tally = ProbeTally(suite.ids, order.lines)
            tally.take(suite.ask(order, tests, bounds, stop_after=stop_after, cancel=cancel))
            if not tally.unfit and tally.failed:
                self._check(suite, tally.failed, cancel)
        except ServerGoneError as error:
            self._close()
            ended = error.ended
            status = RunStatus.TIMED_OUT if ended is None else _STOPPED.get(ended.stop, RunStatus.CRASHED)
            return ProbeReport(status, reason=str(error))
        if tally.unfit:
            return tally.unfit
        doubtful = sorted(tally.failed.keys() & self._unsound)
        if doubtful:
            return f"{doubtful[0]} fails in a fork of the original too"
        return tally.report(bounds)

    def _started(self, cancel: CancelToken) -> WarmSuite:
        if not self._warm:
            built = self._environments.get(self._pins, self._backend, cancel=cancel)
            suite = WarmSuite(self._backend, built, self._tree, self._pins, self._limits)
            self._warm.append(suite)
            suite.start(max(_LEAST_START_S, suite_timeout(self._seconds)), cancel)
            self._starts_in_vain = 0
        return self._warm[0]

    def _bounds(self, tests: Collection[str]) -> Bounds:
        """Return the limits of a probe: the limits of a run of the suite, scaled to the tests to run."""
        # At most the suite's time: the recorded times are those of an observed, far slower run.
        seconds = sum(self._map.tests.get(id, 0.0) for id in tests)
        return Bounds(suite_timeout(min(seconds, self._seconds)), self._limits.memory // 2, self._patience)

    def _check(self, suite: WarmSuite, failed: Collection[str], cancel: CancelToken) -> None:
        """Check once for each test whether it passes in a fork of the original, without earlier tests.

        The first few checks cover only the failed tests; then a run of the whole suite in reverse order saves
        most of the later checks.
        """
        if self._checks == _MOST_CHECKS:
            self._checks += 1
            tally = ProbeTally(suite.ids)
            bounds = self._bounds(self._passed)
            tally.take(suite.ask(None, self._passed, bounds, backwards=True, cancel=cancel))
            self._sound |= tally.passed
        new = [id for id in failed if id not in self._sound and id not in self._unsound]
        if not new:
            return
        self._checks += 1
        tally = ProbeTally(suite.ids).take(suite.ask(None, new, self._bounds(new), cancel=cancel))
        self._sound |= tally.passed
        self._unsound |= set(new) - tally.passed


def patience(test_map: TestMap) -> dict[str, float]:
    """Return, for each test file, the seconds of processor time after which a test counts as hanging.

    A sleeping test counts as hanging after 1.5 times as many seconds (decision 94). The recorded times are
    several times as long as those of an ordinary run. The first test that needs a shared fixture makes it,
    and any test may be the first, so the limit depends on the longest test of the file, and is at least the
    time of the longest test of all.
    """
    longest: dict[str, float] = {}
    for id, seconds in test_map.tests.items():
        file = id.partition("::")[0]
        longest[file] = max(seconds, longest.get(file, 0.0))
    least = max([_LEAST_PATIENCE_S, *longest.values()])
    return {file: max(least, _TIMES * seconds) for file, seconds in longest.items()}


def _close_all(suites: list[WarmSuite]) -> None:
    while suites:
        suites.pop().close()
