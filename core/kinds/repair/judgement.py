"""The judgement of a repair: the run of the suite, and its score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gistpoint.core.attempts.state import AttemptResult, result_of
from gistpoint.core.kinds.repair.scoring import Score
from gistpoint.core.outcomes import FREE, SuiteReport
from gistpoint.core.ports import Runner
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class Judgement:
    """The score of a submission, and the run that shows it."""

    report: SuiteReport
    score: Score
    solved: bool
    changed: tuple[str, ...]
    """Corrupted functions that are no longer equivalent to the corrupted one."""
    suspicious: tuple[str, ...] = ()
    """Why a pass has to be read before it counts as solved; such a pass was run twice."""

    @property
    def result(self) -> AttemptResult:
        """The result before anybody has read the submission."""
        return result_of(self.solved, self.suspicious)

    @property
    def reason(self) -> str:
        """Why the run did not finish; empty if it did."""
        return self.report.reason

    @property
    def counts(self) -> bool:
        """Whether it costs a submission."""
        return self.report.status not in FREE


class JudgesTrees(Protocol):
    """Runs the suite of one task on trees and scores them (`core.kinds.repair.judge.RepairJudge`)."""

    @property
    def runner(self) -> Runner:
        """The runner of the suite."""
        ...

    def judge(
        self,
        tree: SourceTree,
        *,
        run: RunContext = UNATTENDED,
        first: tuple[str, ...] = (),
        replaced: tuple[str, ...] = (),
    ) -> Judgement:
        """Run the suite on a tree and score it."""
        ...
