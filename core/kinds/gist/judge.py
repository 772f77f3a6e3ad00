"""Judging a gist: put in the original test, run it alone, compare it with the record; every figure has evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path

from gistpoint.core.entrypoints.command import COMMAND_FILE, Entrypoint
from gistpoint.core.entrypoints.programs import program_text
from gistpoint.core.entrypoints.runs import GistTrial, Isolation, Watched
from gistpoint.core.kinds.gist.bench import GistJudging
from gistpoint.core.kinds.gist.failures import unreadable
from gistpoint.core.kinds.gist.fidelity import Fidelity, compare, name_masks
from gistpoint.core.kinds.gist.flags import Flags, module_names, vacuity_mutants, watched
from gistpoint.core.kinds.gist.model import gist_task
from gistpoint.core.kinds.gist.original_test import blocks_of_tests, guard_for, ready_text
from gistpoint.core.kinds.gist.rates import Originals, existence_of, unfolded
from gistpoint.core.kinds.gist.score import GistJudgement, GistRun, GistScore, score_gist
from gistpoint.core.running import NEVER, UNATTENDED, CancelToken, RunContext, RunProgress
from gistpoint.core.trees import SourceTree

MUTANTS = 5
_RUNS = 3


@dataclass(frozen=True)
class GistJudge(GistJudging):
    """Judges gists by running them."""

    def judge(
        self,
        gist: str,
        *,
        run: RunContext = UNATTENDED,
        thorough: bool = True,
    ) -> GistJudgement:
        """Score `gist`. Unless `thorough`, skip the vacuity probe and the second run of an unchanged text.

        Lines are measured on the text with one statement a line. If an untraced run of the text itself differs, that
        run decides fidelity, which holds only if it holds twice. Raises `InfrastructureError` if the isolation failed,
        and `CancelledError`.
        """
        fault = unreadable(gist)
        if fault is not None:
            return GistJudgement(GistScore(None, False, None, None, None, fault, Flags()))
        originals, owned, test = self._originals(), self.answer.owned, self.answer.test
        try:
            spliced = ready_text(gist, test, owned)
        except (SyntaxError, ValueError):
            spliced = None
        if spliced is None:
            return GistJudgement(score_gist(gist, None, originals, owned, test))
        trials = _Trials(self, spliced.text, run)
        trial, flips = trials.settle(thorough=thorough)
        vacuous = trials.vacuous() if thorough and self.fidelity(trial).value else None
        made = GistRun(
            text=spliced.text,
            run=trial.run,
            originals=self.answer.originals,
            executed=trials.executed,
            places=self._places(trial),
            compared_files=self.answer.compared_files,
            vacuous=vacuous,
            seen=trials.seen,
            habits=self.answer.habits,
            used=self._used(),
        )
        return GistJudgement(score_gist(gist, made, originals, owned, test), spliced, trial, flips)

    @property
    def entrypoint(self) -> Entrypoint:
        """The command of the task."""
        return gist_task(self.task).command

    def run(
        self,
        text: str,
        *,
        measure: bool,
        seed: int = 0,
        watched: Watched | None = None,
        cancel: CancelToken = NEVER,
    ) -> GistTrial:
        """Run a text unchanged, as scoring does."""
        test = self.answer.test
        return self.runner.run_gist(
            text,
            self.task.environment,
            self.entrypoint,
            owned=self.answer.owned,
            timeout_s=self.answer.timeout_s,
            forbidden=(str(self.task.folder.absolute()),) if self.task.folder != Path() else (),
            measure_lines=measure,
            hash_seed=seed,
            guard=guard_for(text, test) if test else None,
            watched=watched,
            cancel=cancel,
        )

    def fidelity(self, trial: GistTrial) -> Fidelity:
        """Compare a run with the runs of the original."""
        return compare(self.answer.originals, trial.run, self._places(trial), self.answer.compared_files)

    def _places(self, trial: GistTrial) -> list[Mapping[str, str]]:
        masks = name_masks(self.entrypoint, self.answer.modules)
        return [*[masks] * len(self.answer.originals), {**trial.places, **masks}]

    def sources(self) -> dict[str, str]:
        """Return the text of every Python file of the codebase, and of the command itself if it is none of them."""
        started = program_text(self.entrypoint, self.task.environment.metadata)
        return sources_of(SourceTree.open(self.task.tree_path)) | ({COMMAND_FILE: started} if started else {})

    def _originals(self) -> Originals:
        started = program_text(self.entrypoint, self.task.environment.metadata)
        return _originals_of(self.task.tree_path, self.task.tree_sha256, started)

    def _used(self) -> tuple[str, ...]:
        """Return the names under which the test reaches modules of the codebase."""
        test = self.answer.test
        sources = dict.fromkeys(one.source for one in test.each) if test else {}
        found = [module_names(source, self.answer.owned, self.answer.modules) for source in sources]
        return tuple(dict.fromkeys(name for names in found for name in names))

    def watched(self, text: str) -> Watched:
        """Return the things to watch for in a run of a text."""
        existence = existence_of(text, self._originals(), self.answer.test.qualname if self.answer.test else "")
        return Watched() if existence is None else watched({*self.answer.owned, *self._used()}, existence)


@dataclass(slots=True)
class _Trials:
    """The runs of one text."""

    judge: GistJudge
    text: str
    running: RunContext
    done: int = field(default=0)
    executed: frozenset[int] = frozenset()
    """The lines of `measured` that ran."""
    seen: list[Isolation] = field(default_factory=list)
    """The observations of the runs of the text."""

    @property
    def measured(self) -> str:
        """The text with one statement a line."""
        return unfolded(self.text)

    def settle(self, *, thorough: bool) -> tuple[GistTrial, bool]:
        """Return the run that counts, and whether two runs had different outcomes."""
        measured = self.measured
        watched = self.judge.watched(measured)
        first = self._run("run", measured, watched, measure=True)
        self.executed = first.executed
        held = self.judge.fidelity(first).value == 1
        unchanged = measured == self.text
        if unchanged and not first.run.file_ran:
            return first, False
        watched = Watched(watched.modules)
        if not thorough:
            return (first if held or unchanged else self._run("run again", self.text, watched)), False
        second = self._run("run again", self.text, watched, seed=1)
        again = self.judge.fidelity(second).value == 1
        if held is again:
            return first if unchanged else second, False
        if held:
            return second, True
        third = self._run("run a third time", self.text, watched)
        return third, self.judge.fidelity(third).value == 0

    def vacuous(self) -> bool | None:
        """Return whether the command passes even if functions return nonsense; None if none can be changed."""
        test = self.judge.answer.test
        asked = False
        tests = blocks_of_tests(self.measured, test) if test else frozenset[str]()
        most = MUTANTS + len(tests)
        mutants = vacuity_mutants(self.measured, self.executed, test.qualname if test else "", most=most)
        for name, mutant in islice(((name, mutant) for name, mutant in mutants if name not in tests), MUTANTS):
            asked = True
            trial = self._run(f"probe: {name} returns nonsense", mutant)
            if self.judge.fidelity(trial).value == 0:
                return False
        return True if asked else None

    def _run(
        self, step: str, text: str, watched: Watched | None = None, *, measure: bool = False, seed: int = 0
    ) -> GistTrial:
        self.running.check()
        self.running.progress(RunProgress(step, self.done, _RUNS + MUTANTS))
        self.done += 1
        trial = self.judge.run(text, measure=measure, seed=seed, watched=watched, cancel=self.running.cancel)
        if watched is not None:
            self.seen.append(trial.run.isolation)
        return trial


def sources_of(tree: SourceTree) -> dict[str, str]:
    """Return the text of every Python file of a codebase by path."""
    return {path: data.decode("utf-8", "replace") for path, data in tree.read_all(".py")}


@lru_cache(maxsize=2)
def _originals_of(tar: Path, sha256: str, started: str) -> Originals:
    return Originals(sources_of(SourceTree.open(tar)) | ({COMMAND_FILE: started} if started else {}))
