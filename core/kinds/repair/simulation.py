"""Simulates repairs, with functions to be found, real scores, and no suspicious passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from gistpoint.core.attempts.harness import ForcedOutcome
from gistpoint.core.attempts.state import NoKindState
from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.splice import with_definition
from gistpoint.core.draws import uniform
from gistpoint.core.kinds.repair.judge import Judgement, RepairHarness
from gistpoint.core.kinds.repair.measures import searched
from gistpoint.core.kinds.repair.scoring import changed_targets, score, solved
from gistpoint.core.kinds.simulation import BACKEND, Scene, ScriptedRunner
from gistpoint.core.ports import RunRequest
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.trees import SourceTree


@dataclass
class ScriptedJudge:
    """A judge of repairs with a `ScriptedRunner`: scores are real, and no pass is suspicious."""

    task: Task
    answer: Answer
    runner: ScriptedRunner
    _changed: dict[tuple[tuple[str, bytes | None], ...], tuple[str, ...]] = field(default_factory=dict)
    """The targets that submissions changed, judged by the files they changed."""

    blank = NoKindState()
    backend = BACKEND

    def as_recorded(self, task: Task, of_kind: Mapping[str, Any], budgets: Budgets) -> Task:
        """Return the task with these budgets."""
        return replace(task, budgets=budgets)

    def harness(self, task: Task) -> RepairHarness:
        """Return the harness of a repair."""
        return RepairHarness(task, self)

    def ending_as(self, instead: ForcedOutcome) -> ScriptedJudge:
        """Return the judge itself: nothing is replayed with it."""
        return self

    def judge(
        self,
        tree: SourceTree,
        *,
        run: RunContext = UNATTENDED,
        first: tuple[str, ...] = (),
        replaced: tuple[str, ...] = (),
    ) -> Judgement:
        """Return the judgement of a tree, scored by the runner's report."""
        report = self.runner.run(RunRequest(tree, self.task.environment, self.task.suite.timeout_s))
        scored = score(self.answer.baselines[0], report)
        files = tuple(sorted(tree.overlay.items()))
        if files not in self._changed:
            self._changed[files] = changed_targets(tree, self.answer.targets)
        changed = self._changed[files]
        names = [target.name for target in self.answer.targets]
        return Judgement(report, scored, solved(scored, names, changed), changed)


class RepairScene(Scene):
    """The scene of a repair, in which a failing text replaces a corrupted function or an unrelated one."""

    @property
    def searched(self) -> bool:
        """Whether the brief does not name the corrupted functions."""
        return searched(self.task.mode)

    @cached_property
    def judge(self) -> ScriptedJudge:
        """The judge of scripted runs, which does not look for tricks."""
        return ScriptedJudge(self.task, self.answer, self.runner)

    def _wrong(self, number: int, *, finds: bool) -> tuple[str, str]:
        first = self.kind.expected(self.task, self.answer)[0]
        name = first.name
        text = first.given
        if not finds and self.searched:
            name, text = self._elsewhere(number) or (name, text)
        path, _, qualname = name.partition("::")
        last = text.rstrip("\n").rpartition("\n")[2]
        margin = last[: len(last) - len(last.lstrip())] or "    "
        longer = f"{text.rstrip()}\n{margin}attempted = {number}\n"
        try:
            with_definition(self.tree, path, qualname, longer)
        except CodeError:
            return name, text
        return name, longer

    def _elsewhere(self, number: int) -> tuple[str, str] | None:
        """Return the name and text of a random function outside of tests that is neither corrupted nor local.

        None if there is none.
        """
        targets = {name for name, _ in self.right}
        shuffled = sorted(
            self.functions, key=lambda known: uniform(self.task.id, "elsewhere", number, *known)
        )
        for path, qualname in shuffled:
            is_target = f"{path}::{qualname}" in targets
            is_local = "<locals>" in qualname
            if is_target or is_local:
                continue
            if self.is_test(path):
                continue
            return f"{path}::{qualname}", index_source(path, self.tree.read(path)).get(qualname).dedented
        return None
