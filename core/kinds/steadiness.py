"""The steadiness of a task's tests over the runs that made it and its validators' trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gistpoint.core.kinds.kind import TrialSubject
from gistpoint.core.tasks.model import Baseline


@dataclass(frozen=True, slots=True)
class TestSteadiness:
    """The number of finished runs of the original and the corrupted tree in which a test passed."""

    __test__ = False

    id: str
    original: int
    original_runs: int
    corrupted: int
    corrupted_runs: int

    @property
    def flaky(self) -> bool:
        """Whether runs of one tree disagree."""
        return self.original not in (0, self.original_runs) or self.corrupted not in (0, self.corrupted_runs)


@dataclass(frozen=True, slots=True)
class Steadiness:
    """The steadiness of the baseline's passing tests over the finished runs that made the task and trials."""

    baseline: Baseline
    original_runs: int
    corrupted_runs: int
    odd_original: Mapping[str, int]
    odd_corrupted: Mapping[str, int]

    def of(self, id: str) -> TestSteadiness:
        """Return how often one of the baseline's passing tests passed."""
        odd = self.odd_corrupted.get(id, 0)
        passes = id in self.baseline.passed_corrupted
        corrupted = self.corrupted_runs - odd if passes else odd
        original = self.original_runs - self.odd_original.get(id, 0)
        return TestSteadiness(id, original, self.original_runs, corrupted, self.corrupted_runs)

    @property
    def flaky(self) -> tuple[TestSteadiness, ...]:
        """The tests in which runs of one tree disagree, sorted by id."""
        return tuple(self.of(id) for id in sorted({*self.odd_original, *self.odd_corrupted}))


def steadiness(baseline: Baseline, trials: Iterable[tuple[TrialSubject, Iterable[str]]]) -> Steadiness:
    """Return the steadiness over the runs that made the task and the given `trials`, which have finished.

    Each trial consists of its subject and the ids of tests whose results were not as expected.
    """
    odd: dict[TrialSubject, Counter[str]] = {subject: Counter() for subject in TrialSubject}
    runs = Counter({TrialSubject.ORIGINAL: baseline.runs, TrialSubject.CORRUPTED: 1})
    for subject, ids in trials:
        runs[subject] += 1
        odd[subject].update(id for id in ids if id in baseline.passed)
    return Steadiness(
        baseline,
        runs[TrialSubject.ORIGINAL],
        runs[TrialSubject.CORRUPTED],
        odd[TrialSubject.ORIGINAL],
        odd[TrialSubject.CORRUPTED],
    )
