"""`gistpoint rescore`: results of other harnesses, judged by gistpoint's own judge."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gistpoint.core.diffs import DiffError
from gistpoint.core.errors import InfrastructureError, UserError
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.tasks.model import Task
from gistpoint.core.tasks.trees import patched
from gistpoint.core.text import plural, visible_line
from gistpoint.core.trees import SourceTree
from gistpoint.object_graph import build_services
from gistpoint.sessions.annotations.external_results import Comparison, ExternalResult, ExternalResultStore
from gistpoint.sessions.exports.tasks.returned import ReturnedResult, read_returned
from gistpoint.sessions.tasks import read_set
from gistpoint.tui.commands.arguments import add_isolation, isolation_of
from gistpoint.tui.commands.command import DONE, NEGATIVE, Handler
from gistpoint.tui.commands.output import print_json, print_records
from gistpoint.tui.commands.progress import long_work
from gistpoint.tui.tables import Column

if TYPE_CHECKING:
    from gistpoint.sessions.services import Services


_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class _Row:
    task: Task
    returned: ReturnedResult
    result: ExternalResult | None
    """None if it was not judged; `why` says why."""
    why: str = ""

    @property
    def differs(self) -> bool:
        """Whether the harness says something else; also of a patch that does not apply, or a pass to be read."""
        claimed = self.result is not None and self.result.their_solved is True
        refused = (Comparison.DOES_NOT_APPLY, Comparison.TO_BE_READ)
        unfit = self.result is not None and self.result.comparison in refused
        return (claimed and unfit) or (self.result is not None and self.result.comparison is Comparison.DIFFERS)

    @property
    def words(self) -> str:
        if self.result is None:
            return self.why
        if self.result.comparison is Comparison.TO_BE_READ:
            return f"TO BE READ: {visible_line(', '.join(self.result.suspicious[:3]))}"
        if self.differs:
            theirs = _figure(self.result.their_solved, self.result.their_score)
            unfit = self.result.comparison is Comparison.DOES_NOT_APPLY
            ours = "the patch does not apply" if unfit else f"it is {_figure(self.result.solved, self.result.score)}"
            return f"DIFFERS: they say {theirs}, {ours}"
        return self.result.comparison.value.replace("_", " ")

    @property
    def noted(self) -> str:
        """What the last column says; nothing where the harness just has no figure."""
        missing = self.result is not None and self.result.comparison is Comparison.NO_FIGURE
        return "" if missing else self.words


_COLUMNS: tuple[Column[_Row], ...] = (
    Column("task", lambda row: row.task.short_id),
    Column("harness", lambda row: row.returned.harness),
    Column("run", lambda row: visible_line(row.returned.run)[:40]),
    Column("theirs", lambda row: _figure(row.returned.solved, row.returned.score)),
    Column("ours", lambda row: _figure(row.result.solved, row.result.score) if row.result else "-"),
    Column("", lambda row: row.noted),
)


def rescore_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint rescore`."""
    parser.description = (
        "Reads what solvers left in another harness, puts it into the repository, and runs gistpoint's own judge. "
        "The results are kept in a file of yours, never as attempts. Exit code 1 if a figure differs."
    )
    parser.add_argument("path", metavar="PATH", help="a Harbor job, a log of Inspect, or SWE-bench's predictions")
    parser.add_argument("--tasks", nargs="+", required=True, metavar="SET", help="the tasks that were exported")
    parser.add_argument("--reviewer", default="", metavar="NAME", help="a pseudonym (default: the login)")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_isolation(parser)
    return rescore


def rescore(options: argparse.Namespace) -> int:
    """Judge every result, keep it, and print both figures."""
    services = build_services(isolation_of(options))
    returned = read_returned(Path(options.path).expanduser())
    tasks = read_set(options.tasks, services.tasks).tasks
    store = ExternalResultStore(services.locations.external_results, services.clock)
    person = store.codec.name_of(options.reviewer or getpass.getuser(), "reviewer")
    rows: list[_Row] = []
    unknown = 0
    with long_work(
        quiet=getattr(options, "json", False), kept="The results that were judged are kept.", asks_token=False
    ) as work:
        work.progress.stage("judging results")
        for number, one in enumerate(returned, 1):
            task = next((task for task in tasks if task.id.startswith(one.task)), None)
            if task is None:
                unknown += 1
                continue
            work.progress.count(number - 1, len(returned), task.short_id)
            row = _judged(task, one, services)
            rows.append(row)
            if row.result is not None:
                store.keep(person, task.id, row.result)
    if options.json:
        print_json("gistpoint.external-results/1", {"results": [_json(row) for row in rows], "unknown": unknown})
    else:
        print_records(_COLUMNS, rows)
        print(_summary(rows, tasks))
        if unknown:
            print(f"{plural(unknown, 'result')} of tasks that --tasks does not name.")
    return NEGATIVE if any(row.differs for row in rows) else DONE


def _summary(rows: Sequence[_Row], tasks: Sequence[Task]) -> str:
    """Return both counts in a line, and a second one that names the tasks without a result."""
    judged = [row.result for row in rows if row.result is not None]
    theirs = [row.returned.solved for row in rows if row.returned.solved is not None]
    line = f"Solved: {sum(one.solved for one in judged)} of {len(judged)} by gistpoint's judge"
    if suspicious := sum(one.solved and bool(one.suspicious) for one in judged):
        line += f" ({suspicious} suspicious)"
    if theirs:
        line += f", {sum(theirs)} of {len(theirs)} by theirs"
    there = {row.task.id for row in rows}
    missing = ", ".join(task.short_id for task in tasks if task.id not in there)
    return f"{line}.\nWithout a result: {missing}." if missing else f"{line}."


def _judged(task: Task, one: ReturnedResult, services: Services) -> _Row:
    if one.attempt:
        return _Row(task, one, None, _own_attempt(task, one, services))
    if one.patch is None and one.files is None:
        return _Row(task, one, None, "could not be judged: the harness kept nothing that the solver left")
    judge: Any = services.judge_for(task)
    tree = SourceTree.open(task.tree_path)
    try:
        files: Mapping[str, bytes | None] = (one.files or {}) if one.patch is None else patched(tree, one.patch)
    except DiffError as error:
        return _Row(task, one, _result(one, judge, solved=False, score=0.0, fits=False, reason=str(error)))
    try:
        found = kind_of(task).rejudged(judge, files)
    except InfrastructureError as error:
        return _Row(task, one, None, f"could not be judged: {error}")
    if found is None:
        return _Row(task, one, None, f"tasks of the mode {task.mode} can't be judged again")
    if not found.counts:
        return _Row(task, one, None, f"could not be judged: {found.reason}")
    result = _result(
        one, judge, solved=found.solved, score=found.score, reason=found.reason, suspicious=found.suspicious
    )
    return _Row(task, one, result)


def _own_attempt(task: Task, one: ReturnedResult, services: Services) -> str:
    """Return what the store says of an attempt that a log claims to be gistpoint's own."""
    id = visible_line(one.attempt)[:40]
    try:
        known = services.attempts.summary(one.attempt)
    except UserError:
        return f"could not be judged: it claims to be the attempt {id}, which is not in the store"
    same = known.attempt_id == one.attempt and known.task_id == task.id
    if not same or (one.solved is not None and bool(known.state.solved) != one.solved):
        return f"could not be judged: it claims to be the attempt {id}, which says otherwise"
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


def _figure(solved: bool | None, score: float | None) -> str:
    return "-" if solved is None else _word(solved) + ("" if score is None else f" {score:.3f}")


def _word(solved: bool | None) -> str:
    return "solved" if solved else "not solved"


def _json(row: _Row) -> dict[str, Any]:
    import msgspec

    result = None if row.result is None else msgspec.to_builtins(row.result)
    returned = row.returned
    theirs = {"solved": returned.solved, "score": returned.score}
    head = {"task": row.task.id, "harness": returned.harness, "run": returned.run, "theirs": theirs}
    return {**head, "ours": result, "comparison": row.words}
