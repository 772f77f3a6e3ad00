"""Runs the suite on a submission and says what it is worth; the only place where an attempt meets the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gistpoint.core.cancel import CancelToken
from gistpoint.core.code.compare import same_behaviour_tree
from gistpoint.core.code.errors import CodeError
from gistpoint.core.code.index import index_source
from gistpoint.core.outcomes import RunStatus, SuiteReport
from gistpoint.core.ports import Runner, RunProgress, RunRequest
from gistpoint.core.scoring import Score, score, solved
from gistpoint.core.tasks.model import Answer, Baseline, Target, Task
from gistpoint.core.trees import SourceTree

FREE = frozenset({RunStatus.INFRASTRUCTURE})
"""Statuses that cost no submission: the harness failed, not the solver."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a submission is worth, and the run that says so."""

    report: SuiteReport
    score: Score
    solved: bool
    changed: tuple[str, ...]
    """Corrupted functions whose text differs from the corrupted one."""

    @property
    def counts(self) -> bool:
        """Whether it costs a submission."""
        return self.report.status not in FREE


@dataclass(frozen=True, slots=True)
class Judge:
    """Holds a task's answer and the runner, and judges trees."""

    task: Task
    answer: Answer
    runner: Runner

    @property
    def baseline(self) -> Baseline:
        """The baseline that fits the runner's backend."""
        return self.answer.baseline_for(self.runner.backend.name)

    def judge(
        self,
        tree: SourceTree,
        *,
        on_progress: Callable[[RunProgress], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> Judgement:
        """Run the whole suite on `tree`, whose tests are the original ones, and score it."""
        request = RunRequest(
            tree=tree,
            environment=self.task.environment,
            timeout_s=self.task.suite.timeout_s,
            deselect=self.task.suite.deselected,
            expected=self.baseline.collected,
        )
        report = self.runner.run(request, on_progress=on_progress, cancel=cancel)
        changed = changed_targets(tree, self.answer.targets)
        result = score(self.baseline, report)
        names = [target.name for target in self.answer.targets]
        return Judgement(report, result, solved(result, names, changed), changed)


def changed_targets(tree: SourceTree, targets: tuple[Target, ...]) -> tuple[str, ...]:
    """Return the targets whose syntax tree, docstrings aside, is no longer the corrupted one."""
    changed = []
    for target in targets:
        try:
            now = index_source(target.path, tree.read(target.path)).get(target.qualname).source
            if same_behaviour_tree(now, target.corrupted):
                continue
        except (CodeError, FileNotFoundError):
            pass
        changed.append(target.name)
    return tuple(changed)


def test_run_data(call_id: str, judgement: Judgement, task: Task) -> dict[str, Any]:
    """Return the data of the `test_run` event of a submission."""
    report, score = judgement.report, judgement.score
    failures = [
        (result.id, result.message[: task.limits.failure_characters])
        for result in report.failed
        if result.id in score.failing
    ]
    return {
        "call_id": call_id,
        "status": report.status.value,
        "reason": report.reason,
        "counts": judgement.counts,
        "passed": score.passing,
        "failing": sorted(score.failing) if score.valid else [],
        "failures": failures[:20],
        "seconds": round(report.seconds, 3),
        "backend": {
            "name": report.backend.name,
            "version": report.backend.version,
            "isolated": report.backend.isolated,
        },
    }
