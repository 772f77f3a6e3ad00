"""Reference gists of tasks: made by program, tried as gists are scored, with their figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gistpoint.core.entrypoints.command import EntrypointKind
from gistpoint.core.errors import CancelledError
from gistpoint.core.kinds.gist.answer import ReferenceGist
from gistpoint.core.kinds.gist.failures import gist_error
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.reference import (
    Codebase,
    NoReferenceError,
    OracleVerdict,
    limits_of,
    make_reference,
)
from gistpoint.core.kinds.gist.score import GistScore
from gistpoint.core.kinds.gist.trace import read_trace
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.trees import SourceTree

Clock = Callable[[], float]


@dataclass(slots=True)
class ReferenceMaker:
    """Makes the reference gist of one task; `clock` gives seconds, `budget_s` bounds the reduction."""

    judge: GistJudge
    clock: Clock
    budget_s: float = 120.0
    on_query: Callable[[int, int], None] | None = None
    """Called before each run with its number and the lines of the text."""
    cancel: CancelToken = NEVER
    queries: int = field(default=0)
    _why: list[str] = field(default_factory=list)
    """What each text that failed before one held came to."""
    _refused: set[str] = field(default_factory=set)
    _held: bool = field(default=False)

    def make(self) -> ReferenceGist:
        """Return the smallest faithful gist that was found, or the reason why there is none.

        Raises `CancelledError` if it is stopped before a faithful one was found; if stopped later, returns that one.
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
                self._ask,
                out_of_time=lambda: self.cancel.cancelled or self.clock() - began > self.budget_s,
            )
        except (NoReferenceError, SyntaxError, RecursionError) as error:
            return ReferenceGist("", False, reason=str(error), seconds=self._since(began))
        if not found.faithful:
            return ReferenceGist(found.text, False, reason=self._reason(codebase, tree), seconds=self._since(began))
        score = self._score(found.text)
        return ReferenceGist(
            text=found.text,
            faithful=score.execution_fidelity == 1,
            line_execution=score.execution.rate if score.execution else None,
            line_existence=score.existence.rate if score.existence else None,
            how=found.how,
            reason="" if score.execution_fidelity == 1 else "It came out differently when it was scored.",
            seconds=self._since(began),
        )

    def _score(self, text: str) -> GistScore:
        """Judge a text that has held once; at length only if it does not hold under another hash seed as well."""
        again = self.judge.run(text, measure=False, seed=1)
        return self.judge.judge(text, thorough=self.judge.fidelity(again).value == 0).score

    def _path(self, codebase: Codebase) -> str:
        """Return the file that the command starts in."""
        entrypoint = self.judge.entrypoint
        if entrypoint.kind is not EntrypointKind.MODULE:
            return entrypoint.target
        names = {name: path for path, name in codebase.trace.modules.items()}
        return names.get(f"{entrypoint.target}.__main__") or names.get(entrypoint.target, "")

    def _reason(self, codebase: Codebase, tree: SourceTree) -> str:
        """Return why no text held: the limits that the failures speak of, and the last failure itself."""
        limits = limits_of(
            codebase,
            self._path(codebase),
            self.judge.entrypoint.qualname,
            refused=self._refused,
            evidence="\n".join(self._why),
            files=list(tree.files()),
        )
        return " ".join([*limits, f"The last try: {self._why[-1]}"])

    def _ask(self, text: str) -> OracleVerdict:
        self.queries += 1
        if self.on_query is not None:
            self.on_query(self.queries, text.count("\n"))
        try:
            trial = self.judge.run(text, measure=True, cancel=self.cancel)
        except CancelledError:
            if self._held:
                return OracleVerdict(False)
            raise
        fidelity = self.judge.fidelity(trial)
        holds = fidelity.value == 1 and trial.run.isolation.clean
        if holds:
            self._held = True
        elif not self._held:
            error = gist_error(text, self.judge.entrypoint.qualname, self.judge.answer.owned, trial.run, fidelity)
            self._why.append(f"{error.kind or error.category}: {error.evidence}" if error else trial.reason)
            self._refused.update(trial.run.isolation.refused_imports)
        return OracleVerdict(holds, trial.executed)

    def _since(self, began: float) -> float:
        return round(self.clock() - began, 1)
