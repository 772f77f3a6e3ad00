"""Judging a gist: the original test put in, run alone, compared with what was recorded, every figure with evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from gistpoint.core.cancel import CancelToken
from gistpoint.core.code.parsing import compile_module
from gistpoint.core.kinds.gist.entrypoints import Entrypoint, parse_entrypoint
from gistpoint.core.kinds.gist.execution import unfolded
from gistpoint.core.kinds.gist.existence import Originals
from gistpoint.core.kinds.gist.failures import ErrorCategory, ErrorKind, GistError
from gistpoint.core.kinds.gist.fakes import Watched, module_names, watched
from gistpoint.core.kinds.gist.fidelity import Fidelity, compare_commands, compare_tests
from gistpoint.core.kinds.gist.flags import vacuity_mutants
from gistpoint.core.kinds.gist.lines import physical_lines
from gistpoint.core.kinds.gist.masks import name_masks
from gistpoint.core.kinds.gist.model import GistAnswer
from gistpoint.core.kinds.gist.original_test import TestGuard, guard_of, missing_test
from gistpoint.core.kinds.gist.runs import CommandRun, GistTrial, Isolation, TestsRun
from gistpoint.core.kinds.gist.score import Flags, GistRun, GistScore, existence_of, score_gist
from gistpoint.core.kinds.gist.splicing import SplicedGist, splice_test
from gistpoint.core.ports import EntrypointRunner
from gistpoint.core.tasks.model import Task
from gistpoint.core.trees import SourceTree

MAX_CHARACTERS = 4_000_000
"""A longer gist is not read."""
MUTANTS = 5
_RUNS = 3


@dataclass(frozen=True, slots=True)
class GistProgress:
    """Where the judging of a gist stands: `step` in a few words, `done` runs of at most `total`."""

    step: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class GistJudgement:
    """The score, and the run that it was made from.

    `spliced` tells for each line of the text that ran which line of the gist as handed in it was; it and `trial` are
    None where nothing could be run. `flips` says that two runs of the same text came out differently.
    """

    score: GistScore
    spliced: SplicedGist | None = None
    trial: GistTrial | None = None
    flips: bool = False


@dataclass(frozen=True, slots=True)
class GistJudge:
    """Holds a task's answer and the runner, and judges gists."""

    task: Task
    answer: GistAnswer
    runner: EntrypointRunner

    def judge(
        self,
        gist: str,
        *,
        on_progress: Callable[[GistProgress], None] | None = None,
        cancel: CancelToken | None = None,
        thorough: bool = True,
    ) -> GistJudgement:
        """Score `gist`. Unless it is `thorough`, there is no vacuity probe, and no second run of what was run as it is.

        Lines are measured on the text with one statement a line. Fidelity is told by a run without the tracer, of the
        text as it stands, wherever the two differ, and holds only if it holds twice. Raises `InfrastructureError` if
        the isolation failed, and `CancelledError`.
        """
        unreadable = _unreadable(gist)
        if unreadable is not None:
            return GistJudgement(GistScore(None, False, None, None, None, unreadable, Flags()))
        originals, owned, test = self._originals(), self.answer.owned, self.answer.test
        try:
            spliced = self._spliced(gist)
        except (SyntaxError, ValueError):
            spliced = None
        if spliced is None:
            return GistJudgement(score_gist(gist, None, originals, owned, test))
        trials = _Trials(self, spliced.text, on_progress or (lambda progress: None), cancel)
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
        return parse_entrypoint(self.task.entrypoint)

    def run(
        self,
        text: str,
        *,
        measure: bool,
        seed: int = 0,
        watched: Watched | None = None,
        cancel: CancelToken | None = None,
    ) -> GistTrial:
        """Run a text as it stands, as scoring does."""
        return self.runner.run_gist(
            text,
            self.task.environment,
            self.entrypoint,
            owned=self.answer.owned,
            timeout_s=self.answer.timeout_s,
            forbidden=(str(self.task.folder.absolute()),) if self.task.folder != Path() else (),
            measure_lines=measure,
            hash_seed=seed,
            guard=self._guard(text),
            watched=watched,
            cancel=cancel,
        )

    def _guard(self, text: str) -> TestGuard | None:
        test = self.answer.test
        try:
            return guard_of(text, test.source, test.qualname) if test else None
        except (SyntaxError, ValueError):
            return None

    def fidelity(self, trial: GistTrial) -> Fidelity:
        """Compare a run with those of the original."""
        places = self._places(trial)
        if isinstance(trial.run, TestsRun):
            tests = [run for run in self.answer.originals if isinstance(run, TestsRun)]
            return compare_tests(tests, trial.run, places)
        commands = [run for run in self.answer.originals if isinstance(run, CommandRun)]
        return compare_commands(commands, trial.run, places, self.answer.compared_files)

    def _places(self, trial: GistTrial) -> list[Mapping[str, str]]:
        masks = name_masks(self.entrypoint, self.answer.modules)
        return [*[masks] * len(self.answer.originals), {**trial.places, **masks}]

    def _spliced(self, gist: str) -> SplicedGist | None:
        """Return what is run; None where there is nothing to run."""
        if not gist.strip():
            return None
        if self.answer.test is None:
            compile_module(gist, "<gist>")
            return SplicedGist(gist, tuple(range(1, len(physical_lines(gist)) + 1)))
        if missing_test(gist, self.answer.test.qualname):
            return None
        spliced = splice_test(gist, self.answer.test.source, self.answer.test.qualname, self.answer.owned)
        compile_module(spliced.text, "<gist>")
        return spliced

    def _originals(self) -> Originals:
        return _originals_of(self.task.tree_path, self.task.tree_sha256)

    def _used(self) -> tuple[str, ...]:
        """Return the names under which the test reaches modules of the codebase."""
        test = self.answer.test
        return module_names(test.source, self.answer.owned, self.answer.modules) if test else ()

    def watched(self, text: str) -> Watched:
        """Return what to watch a run of a text for."""
        existence = existence_of(text, self._originals(), self.answer.test.qualname if self.answer.test else "")
        return Watched() if existence is None else watched({*self.answer.owned, *self._used()}, existence)


@dataclass(slots=True)
class _Trials:
    """The runs that one text gets."""

    judge: GistJudge
    text: str
    tell: Callable[[GistProgress], None]
    cancel: CancelToken | None
    done: int = field(default=0)
    executed: frozenset[int] = frozenset()
    """The lines of `measured` that ran."""
    seen: list[Isolation] = field(default_factory=list)
    """What the runs of the text showed."""

    @property
    def measured(self) -> str:
        """The text with one statement a line."""
        return unfolded(self.text)

    def settle(self, *, thorough: bool) -> tuple[GistTrial, bool]:
        """Return the run that counts, and whether two runs came out differently."""
        measured = self.measured
        watched = self.judge.watched(measured)
        first = self._run("run", measured, watched, measure=True)
        self.executed = first.executed
        held = self.judge.fidelity(first).value == 1
        as_it_stands = measured == self.text
        if as_it_stands and not first.run.file_ran:
            return first, False
        watched = Watched(watched.modules)
        if not thorough:
            return (first if held or as_it_stands else self._run("run again", self.text, watched)), False
        second = self._run("run again", self.text, watched, seed=1)
        again = self.judge.fidelity(second).value == 1
        if held is again:
            return first if as_it_stands else second, False
        if held:
            return second, True
        third = self._run("run a third time", self.text, watched)
        return third, self.judge.fidelity(third).value == 0

    def vacuous(self) -> bool | None:
        """Ask whether the command notices when a function that ran returns nonsense; None where none can be changed."""
        test = self.judge.answer.test
        asked = False
        for name, mutant in vacuity_mutants(self.measured, self.executed, test.qualname if test else "", most=MUTANTS):
            asked = True
            trial = self._run(f"probe: {name} returns nonsense", mutant)
            if self.judge.fidelity(trial).value == 0:
                return False
        return True if asked else None

    def _run(
        self, step: str, text: str, watched: Watched | None = None, *, measure: bool = False, seed: int = 0
    ) -> GistTrial:
        if self.cancel is not None:
            self.cancel.check()
        self.tell(GistProgress(step, self.done, _RUNS + MUTANTS))
        self.done += 1
        trial = self.judge.run(text, measure=measure, seed=seed, watched=watched, cancel=self.cancel)
        if watched is not None:
            self.seen.append(trial.run.isolation)
        return trial


def _unreadable(gist: str) -> GistError | None:
    """Return why a text can't even be looked at; None for all others, wrong ones too."""
    told = ""
    if len(gist) > MAX_CHARACTERS:
        told = f"It is longer than {MAX_CHARACTERS:,} characters."
    else:
        try:
            compile_module(gist, "<gist>")
        except (SyntaxError, ValueError):
            return None
        except (RecursionError, MemoryError, OverflowError):
            told = "It is nested too deeply to be compiled."
    return GistError(ErrorCategory.PYTEST_RUNTIME, ErrorKind.SYNTAX, told) if told else None


def sources_of(tree: SourceTree) -> dict[str, str]:
    """Return the text of every Python file of a codebase by path."""
    return {path: data.decode("utf-8", "replace") for path, data in tree.read_all(".py")}


@lru_cache(maxsize=2)
def _originals_of(tar: Path, sha256: str) -> Originals:
    return Originals(sources_of(SourceTree.open(tar)))
