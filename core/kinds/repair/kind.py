"""Repairs as a kind of task.

Code that reads runs needs only the tools of the kinds, so judges and checks are imported on first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.kind import (
    ExpectedText,
    ExportedWork,
    Rejudged,
    StartText,
    TaskKind,
    Trial,
    TrialSubject,
)
from gistpoint.core.kinds.repair.measures import ANALYSES, MEASURES, SEVERAL, measured, searched
from gistpoint.core.tasks.model import SALTED, Answer, Mode, Target, Task
from gistpoint.core.tasks.names import fails, shown_name
from gistpoint.core.tools.replacing import REPAIR_TOOLS

if TYPE_CHECKING:
    from gistpoint.core.attempts.state import AttemptState, Submission
    from gistpoint.core.kinds.kind import Runners
    from gistpoint.core.kinds.measures import Analysis, Measure, MeasuredAttempt
    from gistpoint.core.kinds.repair.judge import RepairJudge
    from gistpoint.core.kinds.repair.simulation import RepairScene
    from gistpoint.core.running import RunContext
    from gistpoint.core.tasks.budgets import Budgets
    from gistpoint.core.tasks.fields import Fields
    from gistpoint.core.tasks.leaks import CheckFinding
    from gistpoint.core.tools.declaration import Tool
    from gistpoint.core.trees import SourceTree

_NUMBERS = {2: "Two", 3: "Three", 4: "Four", 5: "Five"}


def _function(name: str) -> str:
    """Return the qualified name in `path::qualname`, shortened for a title."""
    return shown_name(name.rpartition("::")[2])


class Repair(TaskKind["RepairJudge"]):
    """The kind in which a solver repairs one or more corrupted functions; the suite judges."""

    modes = (Mode.REMOVE, Mode.DISCOVERY)
    noun = "repair"
    score_rule = (
        "1 − tests failing now / tests failing at first, but never below 0. A test that passed on the"
        " original and does not pass now counts as failing."
    )
    has_targets = True
    confirms = True
    tools = tuple(dict.fromkeys(tool for tools in REPAIR_TOOLS.values() for tool in tools))

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The additional columns in rows of attempts, in order."""
        return MEASURES

    @property
    def analyses(self) -> tuple[Analysis, ...]:
        """The analyses of repairs alone."""
        return ANALYSES

    def tools_of(self, task: Task, budgets: Budgets) -> tuple[Tool, ...]:
        """Return the tools of the mode."""
        return REPAIR_TOOLS[task.mode]

    def passed_tree(self, task: Task, state: AttemptState, passing: Submission) -> SourceTree:
        """Return the corrupted tree with the replacement; in discovery, with earlier ones too."""
        from gistpoint.core.trees import SourceTree

        tree = SourceTree.open(task.tree_path)
        if searched(task.mode):
            for known in state.submissions:
                if known.number < passing.number:
                    tree = known.replacement.on(tree)
        return passing.replacement.on(tree)

    @property
    def reported_modes(self) -> tuple[str, ...]:
        """The modes, with several functions to be found as a separate mode."""
        return (*self.modes, SEVERAL)

    def reported_mode(self, mode: str, targets: int) -> str:
        """Return the mode, or `several` if solvers have to find several functions."""
        if targets > 1 and searched(mode):
            return SEVERAL
        return mode

    def searched(self, mode: str) -> bool:
        """Return whether the brief does not name the corrupted functions."""
        return searched(mode)

    def measured(self, attempt: MeasuredAttempt) -> Mapping[str, Any]:
        """Return the shares of the corrupted functions that were found and changed; empty if unknown."""
        return measured(attempt)

    def version(self, task: Task) -> int:
        """Return `SALTED` for a salted task whose functions solvers have to find, else the usual version."""
        if task.salt_sha256 and searched(task.mode):
            return SALTED
        return super().version(task)

    def read_answer(self, task: Task, fields: Fields) -> Answer:
        """Return the corrupted functions, the baselines, and the tests that enter each function.

        If a baseline was recorded elsewhere, only the part that the id covers counts (decision 158): the
        passing tests, if they are those of the suite. The changes that code under test may make are then
        determined again. Raises `TaskError` if any part is damaged, or if there is no function or no
        baseline.
        """
        from gistpoint.core.tasks.documents import ANSWER_FILE, basis_of, protections_of, read_baseline
        from gistpoint.core.tasks.entered import read_entered
        from gistpoint.core.tasks.identity import hash_of_ids

        targets = fields.get("targets", tuple[Target, ...])
        basis = basis_of(task.folder, fields.values)
        paths = sorted((task.folder / "answer" / "baselines").glob("*.json"))
        own = protections_of(task.folder, basis)
        found = [
            (replace(baseline, protections={**own, **(baseline.protections if here else {})}), here)
            for baseline, here in (read_baseline(path, basis) for path in paths)
        ]
        counting = [
            baseline
            for baseline, here in found
            if here or hash_of_ids(baseline.passed) == task.suite.ids_sha256
        ]
        # If no baseline counts, `verify` names the fault.
        baselines = tuple(counting or (baseline for baseline, _ in found))
        if not targets:
            raise TaskError(f"{ANSWER_FILE}: the key 'targets' does not name any functions.")
        if not baselines:
            raise TaskError("answer/baselines: there is no baseline, so submissions can't be scored.")
        metrics = fields.table("metrics").values
        provenance = fields.table("provenance").values
        return Answer(targets, baselines, metrics, provenance, entered=read_entered(task.folder))

    def verify(self, task: Task, answer: Answer) -> None:
        """Raise `TaskError` unless a baseline has the ids of the suite."""
        from gistpoint.core.tasks.documents import TASK_FILE
        from gistpoint.core.tasks.identity import hash_of_ids

        if all(hash_of_ids(baseline.passed) != task.suite.ids_sha256 for baseline in answer.baselines):
            raise TaskError(
                f"{TASK_FILE}: the key 'suite.ids_sha256' matches no baseline in answer/baselines."
            )

    def brief(self, task: Task) -> str:
        """Return the brief of a repair."""
        from gistpoint.core.kinds.repair.brief import repair_brief

        return repair_brief(task)

    def start(self, task: Task) -> StartText | None:
        """Return the part of the named function that the brief shows; None in discovery."""
        from gistpoint.core.kinds.repair.brief import stub

        if task.brief.target:
            return StartText(task.brief.target, stub(task), placeholder=True)
        return None

    def expected(self, task: Task, answer: Answer) -> tuple[ExpectedText, ...]:
        """Return the corrupted functions, with their corrupted and their original source."""
        return tuple(
            ExpectedText(target.name, target.corrupted, target.original) for target in answer.targets
        )

    def judge(self, task: Task, answer: Answer, runners: Runners) -> RepairJudge:
        """Return a judge that runs the suite."""
        from gistpoint.core.kinds.repair.judge import RepairJudge

        return RepairJudge(task, answer, runners.runner_for(task))

    def check(self, judge: RepairJudge, run: RunContext) -> Iterator[CheckFinding]:
        """Yield the findings on leaks in the workspace and sandbox, on both scores, and on protection."""
        from gistpoint.core.kinds.repair.check import repair_findings

        return repair_findings(judge, run)

    def trial(
        self, judge: RepairJudge, subject: TrialSubject, texts: Mapping[str, str], run: RunContext
    ) -> Trial:
        """Return a run of the suite on the corrupted tree, the original, or the corrupted tree with a fix."""
        from gistpoint.core.kinds.repair.trials import run_trial

        return run_trial(judge, subject, texts, run=run)

    def asks(self, task: Task) -> str:
        """Return a sentence on the missing body or the number of wrong functions, without naming any."""
        if not self.searched(task.mode):
            return "One function has lost its body: write it again."
        if not task.several:
            return "One function was corrupted: find and repair it."
        count = f"{_NUMBERS.get(task.brief.targets, 'Several')} functions"
        return f"{count} were corrupted: find and repair them."

    def title(self, task: Task, name: str) -> str:
        """Return a title with the name and the number of failing tests."""
        return f"Repair {name} · {fails(len(task.brief.failing))}"

    def subject(self, task: Task) -> str:
        """Return the removed function, or how many functions have to be found and how many tests fail."""
        if not self.searched(task.mode):
            return f"{_function(task.brief.target)} removed"
        number = "one"
        if task.several:
            number = str(task.brief.targets or "several")
        return f"find {number}, {fails(len(task.brief.failing))}"

    def answered(self, task: Task, functions: Sequence[str]) -> str:
        """Return the first corrupted function and the number of the others.

        Returns the subject if a function was removed, or if the functions are not known.
        """
        if not functions or not self.searched(task.mode):
            return self.subject(task)
        more = f" and {len(functions) - 1} more" if len(functions) > 1 else ""
        return f"{_function(functions[0])}{more} corrupted"

    def rejudged(self, judge: RepairJudge, files: Mapping[str, bytes | None]) -> Rejudged:
        """Return the judgement of a solver's changes to existing Python files."""
        from gistpoint.core.kinds.repair.scoring import taken_over
        from gistpoint.core.outcomes import FREE
        from gistpoint.core.trees import SourceTree

        tree = SourceTree.open(judge.task.tree_path)
        found = judge.judge(taken_over(tree, files.get, judge.task.suite.test_files))
        counts = found.report.status not in FREE
        return Rejudged(found.solved, found.score.value, found.reason, found.suspicious, counts)

    def exported_brief(self, task: Task, shell: str, place: str) -> str:
        """Return the brief of a repair for a solver with a shell."""
        from gistpoint.core.kinds.repair.brief import repair_brief

        return repair_brief(task, shell=shell)

    def exported(self, task: Task, answer: Answer) -> ExportedWork:
        """Return the files that the answer changes, in their original form.

        Raises `CodeError` if the answer does not fit the tree.
        """
        from gistpoint.core.tasks.trees import repaired_tree
        from gistpoint.core.trees import SourceTree

        repaired = repaired_tree(SourceTree.open(task.tree_path), answer.targets).overlay
        return ExportedWork(solution={path: data for path, data in repaired.items() if data is not None})

    def simulated(self, task: Task, answer: Answer) -> RepairScene:
        """Return the simulated scene of a repair."""
        from gistpoint.core.kinds.repair.simulation import RepairScene

        return RepairScene(self, task, answer)
