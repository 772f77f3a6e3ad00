"""Trials of a task: its suite run on the corrupted tree, on the original, or on somebody's own fix, to judge the task.

A trial is no attempt: nothing of it counts for a solver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gistpoint.core.attempts.state import AttemptResult
from gistpoint.core.cancel import CancelToken
from gistpoint.core.code.index import index_source
from gistpoint.core.code.splice import replace_definition
from gistpoint.core.generation.proof import repaired_tree
from gistpoint.core.kinds.repair.judge import Judge, Judgement
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import RunProgress
from gistpoint.core.tasks.model import Baseline
from gistpoint.core.trees import SourceTree


class Subject(StrEnum):
    """What a trial runs the suite on."""

    CORRUPTED = "corrupted"
    ORIGINAL = "original"
    FIX = "fix"
    REFERENCE = "reference"
    """The reference gist of a gist task, scored."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of the suite, and the ids in which it is not as the task says."""

    subject: Subject
    judgement: Judgement
    odd: tuple[str, ...] = ()

    @property
    def finished(self) -> bool:
        """Whether the run proves anything."""
        return self.judgement.report.status is RunStatus.FINISHED

    @property
    def as_expected(self) -> bool:
        """Whether the run finished with what the task says; of a fix, whether it counts as solved."""
        if self.subject is Subject.FIX:
            return self.judgement.result is AttemptResult.SOLVED
        return self.finished and not self.odd


def run_trial(
    judge: Judge,
    subject: Subject,
    fix: Mapping[str, str] | None = None,
    *,
    on_progress: Callable[[RunProgress], None] | None = None,
    cancel: CancelToken | None = None,
) -> Trial:
    """Run the suite. `fix` is new code by `path::qualname`; raises `CodeError` where it can't take a function's place.

    Raises `CancelledError` when cancelled.
    """
    tree = SourceTree.open(judge.task.tree_path)
    if subject is Subject.ORIGINAL:
        tree = repaired_tree(tree, judge.answer.targets)
    for name, code in (fix or {}).items() if subject is Subject.FIX else ():
        path, _, qualname = name.partition("::")
        index = index_source(path, tree.read(path))
        tree = tree.with_files({path: replace_definition(index, index.get(qualname), code)})
    judgement = judge.judge(tree, on_progress=on_progress, cancel=cancel)
    if cancel is not None:
        cancel.check()
    return Trial(subject, judgement, odd_ids(subject, judge.baseline, judgement))


def odd_ids(subject: Subject, baseline: Baseline, judgement: Judgement) -> tuple[str, ...]:
    """Return the ids of B that passed where the task says they fail, or the other way round; of a fix, none."""
    if judgement.report.status is not RunStatus.FINISHED or subject is Subject.FIX:
        return ()
    wanted = baseline.passed if subject is Subject.ORIGINAL else baseline.passed & baseline.passed_corrupted
    return tuple(sorted(wanted ^ (judgement.report.passed & baseline.passed)))


@dataclass(frozen=True, slots=True)
class Shown:
    """How often a test passed in how many finished runs of the original and of the corrupted tree."""

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
    """The tests of B over the runs at the making of the task and those asked for since; only finished ones count."""

    baseline: Baseline
    original_runs: int
    corrupted_runs: int
    odd_original: Mapping[str, int]
    odd_corrupted: Mapping[str, int]

    def of(self, id: str) -> Shown:
        """Return how often a test of B passed."""
        odd = self.odd_corrupted.get(id, 0)
        passes = id in self.baseline.passed_corrupted
        corrupted = self.corrupted_runs - odd if passes else odd
        original = self.original_runs - self.odd_original.get(id, 0)
        return Shown(id, original, self.original_runs, corrupted, self.corrupted_runs)

    @property
    def flaky(self) -> tuple[Shown, ...]:
        """The tests in which runs of one tree disagree, by id."""
        return tuple(self.of(id) for id in sorted({*self.odd_original, *self.odd_corrupted}))


def steadiness(baseline: Baseline, trials: Iterable[tuple[Subject, Iterable[str]]]) -> Steadiness:
    """Count the finished trials of original and corrupted tree, given by the ids in which each was not as expected."""
    odd: dict[Subject, Counter[str]] = {subject: Counter() for subject in Subject}
    runs = Counter({Subject.ORIGINAL: baseline.runs, Subject.CORRUPTED: 1})
    for subject, ids in trials:
        runs[subject] += 1
        odd[subject].update(id for id in ids if id in baseline.passed)
    return Steadiness(
        baseline, runs[Subject.ORIGINAL], runs[Subject.CORRUPTED], odd[Subject.ORIGINAL], odd[Subject.CORRUPTED]
    )
