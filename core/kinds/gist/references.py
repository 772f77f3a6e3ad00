"""Makes reference gists of tasks automatically, judges them like other gists, and reports their figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gistpoint.core.entrypoints.command import Entrypoint, EntrypointKind
from gistpoint.core.entrypoints.runs import GistTrial, TestsRun, Watched
from gistpoint.core.errors import CancelledError
from gistpoint.core.kinds.gist.answer import ReferenceGist
from gistpoint.core.kinds.gist.failures import gist_error
from gistpoint.core.kinds.gist.fidelity import Fidelity
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.original_test import GistTest, SplicedGist, ready_text
from gistpoint.core.kinds.gist.reference import (
    Codebase,
    NoReferenceError,
    OracleVerdict,
    limits_of,
    make_reference,
)
from gistpoint.core.kinds.gist.score import GistJudgement, GistScore
from gistpoint.core.kinds.gist.trace import read_trace
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.running import NEVER, UNATTENDED, CancelToken, RunContext
from gistpoint.core.trees import SourceTree

Clock = Callable[[], float]


@dataclass(slots=True)
class ReferenceMaker:
    """Makes the reference gist of one task; `budget_s` limits the reduction, in seconds of `clock`."""

    judge: GistJudge
    clock: Clock
    budget_s: float = 120.0
    on_query: Callable[[int, int], None] | None = None
    """Called before each run, with the run's number and the number of lines in the text."""
    cancel: CancelToken = NEVER
    queries: int = field(default=0)
    _failures: list[str] = field(default_factory=list)
    """The failures of the gists before the first faithful one."""
    _refused_imports: set[str] = field(default_factory=set)
    _found_faithful: bool = field(default=False)

    def make(self) -> ReferenceGist:
        """Return the smallest faithful gist found, or the reason why there is none.

        Raises `CancelledError` if stopped before a faithful gist was found; if stopped later, the smallest
        one found is returned. Raises `InfrastructureError` if the isolation failed, and `TaskError` if the
        recorded trace is damaged.
        """
        began = self.clock()
        answer = self.judge.answer
        tree = SourceTree.open(self.judge.task.tree_path)
        codebase = Codebase(self.judge.sources(), read_trace(answer.trace), frozenset(answer.owned))
        try:
            found = make_reference(
                codebase,
                self._path(codebase),
                self.judge.entrypoint.qualname,
                self._query,
                out_of_time=lambda: self.cancel.cancelled or self.clock() - began > self.budget_s,
            )
        except (NoReferenceError, SyntaxError, RecursionError) as error:
            return ReferenceGist("", False, reason=str(error), seconds=self._since(began))
        if not found.faithful:
            return ReferenceGist(
                found.text, False, reason=self._reason(codebase, tree), seconds=self._since(began)
            )
        score = self._score(found.text)
        return ReferenceGist(
            text=found.text,
            faithful=score.execution_fidelity == 1,
            line_execution=score.execution.rate if score.execution else None,
            line_existence=score.existence.rate if score.existence else None,
            how=found.how,
            reason="" if score.execution_fidelity == 1 else "It had a different result when it was scored.",
            seconds=self._since(began),
        )

    def _score(self, text: str) -> GistScore:
        """Return the score of a gist that was faithful in one run.

        It is judged thoroughly only if a run with another hash seed is not faithful.
        """
        again = self.judge.run(text, measure=False, seed=1)
        return self.judge.judge(text, thorough=self.judge.fidelity(again).value == 0).score

    def _path(self, codebase: Codebase) -> str:
        """Return the file in which the command starts; empty for a module that the trace does not have."""
        entrypoint = self.judge.entrypoint
        if entrypoint.kind is not EntrypointKind.MODULE:
            return entrypoint.target
        names = {name: path for path, name in codebase.trace.modules.items()}
        return names.get(f"{entrypoint.target}.__main__") or names.get(entrypoint.target, "")

    def _reason(self, codebase: Codebase, tree: SourceTree) -> str:
        """Return why no gist was faithful: the limits to which the failures point, and the last failure."""
        limits = limits_of(
            codebase,
            self._path(codebase),
            self.judge.entrypoint.qualname,
            refused=self._refused_imports,
            evidence="\n".join(self._failures),
            files=list(tree.files()),
        )
        return " ".join([*limits, f"The last try: {self._failures[-1]}"])

    def _query(self, text: str) -> OracleVerdict:
        self.queries += 1
        if self.on_query is not None:
            self.on_query(self.queries, text.count("\n"))
        try:
            trial = self.judge.run(text, measure=True, cancel=self.cancel)
        except CancelledError:
            if self._found_faithful:
                return OracleVerdict(False)
            raise
        fidelity = self.judge.fidelity(trial)
        holds = fidelity.value == 1 and trial.run.isolation.clean
        if holds:
            self._found_faithful = True
        elif not self._found_faithful:
            self._note_failure(text, trial, fidelity)
        return OracleVerdict(holds, trial.executed)

    def _note_failure(self, text: str, trial: GistTrial, fidelity: Fidelity) -> None:
        """Record why a gist failed, for the case that no gist is faithful."""
        error = gist_error(text, self.judge.entrypoint.qualname, self.judge.answer.owned, trial.run, fidelity)
        why = trial.reason
        if error is not None:
            why = f"{error.kind or error.category}: {error.evidence}"
        self._failures.append(why)
        self._refused_imports.update(trial.run.isolation.refused_imports)

    def _since(self, began: float) -> float:
        return round(self.clock() - began, 1)


def reference_of(judge: GistJudge, maker: Callable[[GistJudge], ReferenceMaker]) -> ReferenceGist:
    """Return the reference gist that a maker makes, judged by a judge.

    If the command has several tests, a doctest, or a test that its own file does not define, the text of a
    faithful gist contains the original tests if they can be inserted; otherwise it is returned without them.
    Raises `CancelledError` if stopped before a faithful gist was found, and `InfrastructureError` if the
    isolation failed.
    """
    test = judge.answer.test
    if test is None or _is_written(test, judge.entrypoint.qualname):
        return maker(judge).make()
    found = maker(_SeveralTests(judge.task, judge.answer, judge.runner)).make()
    if not found.faithful:
        return found
    spliced = _ready(judge, found.text)
    if spliced is None:
        return found
    return replace(found, text=spliced.text)


def _is_written(test: GistTest, qualname: str) -> bool:
    """Return whether the command's test is a function that the test's file defines under that name."""
    return test.qualname == qualname and not test.defined_as and not test.doctest


def _ready(judge: GistJudge, text: str) -> SplicedGist | None:
    try:
        return ready_text(text, judge.answer.test, judge.answer.owned)
    except (SyntaxError, ValueError):
        return None


class _SeveralTests(GistJudge):
    """A judge that inserts the original tests, and gives the maker the file of the first test as a script."""

    @property
    def entrypoint(self) -> Entrypoint:
        """The file of the first test, as the entrypoint of a program."""
        first = self.answer.originals[0]
        ids = first.tests if isinstance(first, TestsRun) else ()
        return Entrypoint(EntrypointKind.SCRIPT, next(iter(ids), "").partition("::")[0])

    def run(
        self,
        text: str,
        *,
        measure: bool,
        seed: int = 0,
        watched: Watched | None = None,
        cancel: CancelToken = NEVER,
    ) -> GistTrial:
        """Return the run of a gist with the original tests.

        The executed lines are lines of the gist without these tests. If a test is missing or the text does
        not parse, nothing is run, and the status is `CRASHED`.
        """
        spliced = _ready(self, text)
        if spliced is None:
            return GistTrial(
                TestsRun(RunStatus.CRASHED), 0.0, reason="A test is missing, or the text does not parse."
            )
        trial = self._plain_judge.run(
            spliced.text, measure=measure, seed=seed, watched=watched, cancel=cancel
        )
        lines = (spliced.origin[line - 1] for line in trial.executed if line <= len(spliced.origin))
        return replace(trial, executed=frozenset(line for line in lines if line is not None))

    def fidelity(self, trial: GistTrial) -> Fidelity:
        """Return the fidelity of a run of the command to the original's runs."""
        return self._plain_judge.fidelity(trial)

    def judge(self, gist: str, *, run: RunContext = UNATTENDED, thorough: bool = True) -> GistJudgement:
        """Return the judgement of a gist, made like that of a hand-in."""
        return self._plain_judge.judge(gist, run=run, thorough=thorough)

    @property
    def _plain_judge(self) -> GistJudge:
        return GistJudge(self.task, self.answer, self.runner)
