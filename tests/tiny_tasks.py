"""Tiny repositories made into real tasks, and real runs of their suites."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from recorders import Memory

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.code.index import index_source
from gistpoint.core.generation.intake import prove, take_in
from gistpoint.core.generation.making import write_proven
from gistpoint.core.generation.removal import removal_target
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import Runner
from gistpoint.core.tasks.model import Mode, Source, Target, Task
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.backends.bubblewrap import BubblewrapBackend
from gistpoint.sandbox.backends.plain import PlainBackend

PINS = EnvironmentPins(python="", pytest_args=("tests",))
"""An empty lock: the suite runs with gistpoint's pytest and needs no network."""
BACKENDS = [BubblewrapBackend if BubblewrapBackend().probe().works else PlainBackend]


@dataclass(frozen=True)
class Maker:
    """Makes tasks from files and starts attempts at them."""

    folder: Path
    runner: Runner
    made: dict[Hashable, Task] = field(default_factory=dict)
    """The tasks made so far, by what they were made from; makers may share the mapping."""

    def repository(self, files: Mapping[str, str]) -> Repository:
        place = self.folder / f"repository-{len(list(self.folder.iterdir()))}"
        for path, text in files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text, encoding="utf-8", newline="")
        tar = place.with_suffix(".tar")
        write_tree(place, tar)
        return Repository(Source("folder", "tiny", "1"), SourceTree.open(tar), PINS)

    def task(
        self,
        files: Mapping[str, str],
        target: str,
        corrupted: str | None = None,
        *,
        runs: int = 1,
        min_failing: int = 1,
        runner: Runner | None = None,
    ) -> Task:
        """Return a remove task, or a discovery task if `corrupted` is given, proven by runs of the suite."""
        if runner is not None:
            return self._task(files, target, corrupted, runs, min_failing, runner)
        parts = (self.runner.backend.name, *sorted(files.items()), target, corrupted, runs, min_failing)
        if parts not in self.made:
            self.made[parts] = self._task(files, target, corrupted, runs, min_failing, self.runner)
        return self.made[parts]

    def _task(
        self,
        files: Mapping[str, str],
        target: str,
        corrupted: str | None,
        runs: int,
        min_failing: int,
        runner: Runner,
    ) -> Task:
        repository = self.repository(files)
        intake = take_in(repository, runner, runs=runs)
        if corrupted is None:
            targets = (removal_target(repository.tree, target, frozenset(intake.test_files)),)
        else:
            path, _, qualname = target.partition("::")
            original = index_source(path, repository.tree.read(path)).get(qualname).dedented
            targets = (Target(path, qualname, original, corrupted),)
        proof = prove(intake, targets, runner, min_failing=min_failing)
        mode = Mode.REMOVE if corrupted is None else Mode.DISCOVERY
        return write_proven(intake, proof, mode, runner.backend.name, self.folder / "tasks")

    def attempt(self, task: Task, *, timeout_s: float | None = None) -> Attempt:
        if timeout_s is not None:
            task = replace(task, suite=replace(task.suite, timeout_s=timeout_s))
        attempt = Attempt(
            task, RepairJudge(task, read_answer(task), self.runner), Memory(SystemTime()), SystemTime()
        )
        attempt.start(Enrolment())
        return attempt


Submit = Callable[[Attempt, str], str]
