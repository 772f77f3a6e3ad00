"""Judges the results of other harnesses with gistpoint's judge; verdicts are stored per requesting person."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gistpoint.core.diffs import DiffError
from gistpoint.core.errors import InfrastructureError, UserError
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.locations import path_of
from gistpoint.core.login import login_name
from gistpoint.core.requests import Request
from gistpoint.core.tasks.model import Task
from gistpoint.core.tasks.trees import patched
from gistpoint.core.text import visible_line
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.annotations.external_results import Comparison, ExternalResult, ExternalResultStore
from gistpoint.sessions.exports.tasks.returned import LeftOut, ReturnedResult, read_returned
from gistpoint.sessions.services import Services
from gistpoint.sessions.tasks import read_set

_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class RescoredResult:
    """A result of another harness, and the verdict of gistpoint's judge."""

    task: Task
    returned: ReturnedResult
    result: ExternalResult | None
    """The verdict; None if the result was not judged, for the reason `why`."""
    why: str = ""

    @property
    def differs(self) -> bool:
        """Whether the verdicts differ; a claimed pass that is suspicious or does not apply counts too."""
        if self.result is None:
            return False
        if self.result.comparison is Comparison.DIFFERS:
            return True
        is_unproven = self.result.comparison in (Comparison.DOES_NOT_APPLY, Comparison.TO_BE_READ)
        return is_unproven and self.result.their_solved is True

    @property
    def words(self) -> str:
        """The outcome in a few words."""
        if self.result is None:
            return self.why
        if self.result.comparison is Comparison.TO_BE_READ:
            return f"TO BE READ: {visible_line(', '.join(self.result.suspicious[:3]))}"
        if self.differs:
            theirs = figure(self.result.their_solved, self.result.their_score)
            own = f"it is {figure(self.result.solved, self.result.score)}"
            if self.result.comparison is Comparison.DOES_NOT_APPLY:
                own = "the patch does not apply"
            return f"DIFFERS: they say {theirs}, {own}"
        return self.result.comparison.value.replace("_", " ")

    @property
    def noted(self) -> str:
        """The text of the last column; empty if the harness reported no outcome to compare with."""
        missing = self.result is not None and self.result.comparison is Comparison.NO_FIGURE
        return "" if missing else self.words


@dataclass(frozen=True, slots=True, kw_only=True)
class RescoreResults(Request):
    """A request to judge the results of another harness; `tasks` names the tasks to which they may belong."""

    path: str
    tasks: tuple[str, ...]
    reviewer: str = ""
    """The person who makes the request; empty for the login name."""


class Rescoring:
    """The results that another harness returned for some tasks, and the new verdicts on them."""

    def __init__(self, services: Services, request: RescoreResults) -> None:
        """Read the results and tasks. Raises `UserError` if they can't be read."""
        self._services = services
        found = read_returned(path_of(request.path))
        self._returned = found.results
        selected = read_set(request.tasks, services.tasks)
        self.tasks: Sequence[Task] = selected.tasks
        self.problems = selected.problems
        """The reasons why tasks named by `--tasks` can't be read."""
        self._store = ExternalResultStore(services.locations.external_results, services.clock)
        self._person = self._store.codec.name_of(request.reviewer or login_name(), "reviewer")
        self.rows: list[RescoredResult] = []
        self.left_out: list[LeftOut] = list(found.left_out)
        """The results that are not judged: those for tasks that were not requested, and foreign ones."""

    def judge(self, begin: Callable[[int, int, Task], None]) -> None:
        """Judge the results for the requested tasks, store the verdicts, and add other results to `left_out`.

        `begin` is called before each judgement with the number of earlier results, the number of all results,
        and the task.
        """
        for number, one in enumerate(self._returned):
            task = next((task for task in self.tasks if task.id.startswith(one.task)), None)
            if task is None:
                run = f" ({one.run})" if one.run else ""
                self.left_out.append(LeftOut(f"gistpoint-{one.task}{run}", "--tasks does not name this task"))
                continue
            begin(number, len(self._returned), task)
            row = _judged(task, one, self._services)
            self.rows.append(row)
            if row.result is not None:
                self._store.keep(self._person, task.id, row.result)


def _judged(task: Task, one: ReturnedResult, services: Services) -> RescoredResult:
    if one.attempt:
        return RescoredResult(task, one, None, _own_attempt(task, one, services))
    if one.patch is None and one.files is None:
        return RescoredResult(
            task, one, None, "could not be judged: the harness kept none of the solver's changes"
        )
    judge: Any = services.judge_for(task)
    tree = SourceTree.open(task.tree_path)
    try:
        files: Mapping[str, bytes | None] = (
            (one.files or {}) if one.patch is None else patched(tree, one.patch)
        )
    except DiffError as error:
        return RescoredResult(
            task, one, _result(one, judge, solved=False, score=0.0, fits=False, reason=str(error))
        )
    try:
        found = kind_of(task).rejudged(judge, files)
    except InfrastructureError as error:
        return RescoredResult(task, one, None, f"could not be judged: {error}")
    if found is None:
        return RescoredResult(task, one, None, f"tasks in the mode {task.mode} can't be judged again")
    if not found.counts:
        return RescoredResult(task, one, None, f"could not be judged: {found.reason}")
    result = _result(
        one, judge, solved=found.solved, score=found.score, reason=found.reason, suspicious=found.suspicious
    )
    return RescoredResult(task, one, result)


def _own_attempt(task: Task, one: ReturnedResult, services: Services) -> str:
    """Return in words whether the store confirms a log's claim that an attempt is gistpoint's own."""
    id = visible_line(one.attempt)[:40]
    try:
        known = services.attempts.summary(one.attempt)
    except UserError:
        return f"could not be judged: it claims to be the attempt {id}, which is not in the store"
    is_same = known.attempt_id == one.attempt and known.task_id == task.id
    contradicts = one.solved is not None and bool(known.state.solved) != one.solved
    if not is_same or contradicts:
        return f"could not be judged: it claims to be the attempt {id}, which contradicts it"
    return f"gistpoint's own attempt {id}"


def _result(
    one: ReturnedResult,
    judge: Any,
    *,
    solved: bool,
    score: float,
    reason: str,
    fits: bool = True,
    suspicious: tuple[str, ...] = (),
) -> ExternalResult:
    if not fits:
        comparison = Comparison.DOES_NOT_APPLY
    elif solved and suspicious:
        comparison = Comparison.TO_BE_READ
    elif one.solved is None:
        comparison = Comparison.NO_FIGURE
    else:
        same = one.solved == solved and (one.score is None or abs(one.score - score) < _EQUAL)
        comparison = Comparison.SAME if same else Comparison.DIFFERS
    backend = judge.backend
    return ExternalResult(
        harness=one.harness,
        run=one.run[:200],
        solved=solved,
        score=score,
        comparison=comparison,
        backend=backend.name,
        isolated=backend.isolated,
        their_solved=one.solved,
        their_score=one.score,
        suspicious=suspicious,
        reason=reason[:2000],
    )


def figure(solved: bool | None, score: float | None) -> str:
    """Return a verdict and its score in words; `-` if there is no verdict."""
    return "-" if solved is None else _word(solved) + ("" if score is None else f" {score:.3f}")


def _word(solved: bool | None) -> str:
    return "solved" if solved else "not solved"
