"""Candidates tried in processes of their own: the tests that can see them, on a tree with them in it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import CancelledError
from gistpoint.core.generation.failures import Lines, read_failure
from gistpoint.core.generation.proof import corrupted_tree
from gistpoint.core.outcomes import Outcome, RunStatus, SuiteReport
from gistpoint.core.ports import EnvironmentPins, ProbeFailure, ProbeReport, Runner, RunProgress, RunRequest
from gistpoint.core.tasks.model import Target
from gistpoint.core.trees import SourceTree


class FreshRuns:
    """Runs parts of one tree's suite."""

    def __init__(
        self, runner: Runner, tree: SourceTree, environment: EnvironmentPins, passed: frozenset[str], timeout_s: float
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
        lines: Sequence[Lines],
        stop_after: int | None,
        cancel: CancelToken | None,
    ) -> ProbeReport:
        """Run `tests`, which stand on `lines` once `targets` are corrupted. Raises `CodeError` and `CancelledError`."""
        chosen = frozenset(tests)
        stop = _Enough(stop_after, chosen, cancel)
        request = RunRequest(
            corrupted_tree(self._tree, targets),
            self._environment,
            self._timeout_s,
            select=() if chosen >= self._passed else tuple(tests),
        )
        report = self._runner.run(request, on_progress=stop.count, cancel=stop)
        if cancel is not None:
            cancel.check()
        status = RunStatus.FINISHED if stop.reached else report.status
        return ProbeReport(status, _failed(report, tests, lines, whole=not stop.reached), len(report.results))


class _Enough(CancelToken):
    """Cancelled with another token, or when enough tests have failed."""

    def __init__(self, most: int | None, chosen: Collection[str], outer: CancelToken | None) -> None:
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
        """Whether the run is to stop."""
        return self.reached or (self._outer is not None and self._outer.cancelled)

    def check(self) -> None:
        """Raise `CancelledError` when the run is to stop."""
        if self.cancelled:
            raise CancelledError("Stopped at your request.")

    def count(self, progress: RunProgress) -> None:
        """Take a test as it ends."""
        latest = progress.latest
        self._failed += latest is not None and latest.id in self._chosen and latest.outcome is not Outcome.PASSED


def _failed(
    report: SuiteReport, tests: Sequence[str], lines: Sequence[Lines], *, whole: bool
) -> dict[str, ProbeFailure]:
    """Return the tests that did not pass, those that were no longer collected behind the others."""
    chosen = frozenset(tests)
    failed = {
        id: read_failure(result.message, lines)
        for id, result in report.results.items()
        if id in chosen and result.outcome is not Outcome.PASSED
    }
    if whole and report.status is RunStatus.FINISHED:
        errors = {error.id: read_failure(error.message, lines) for error in report.collection_errors}
        for id in tests:
            if id not in report.results:
                failed[id] = errors.get(id.partition("::")[0], ProbeFailure(""))
    return failed
