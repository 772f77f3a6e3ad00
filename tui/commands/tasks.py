"""`gistpoint task`: list, show, delete and check tasks, and record their baselines."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from math import nan
from operator import attrgetter
from typing import Any, Generic, TypeVar

from gistpoint.core.errors import AttemptError, TaskError, UserError
from gistpoint.core.generation.intake import BaselineDifference, differences, record_baseline
from gistpoint.core.generation.verdicts import READER
from gistpoint.core.kinds.checking import check_task
from gistpoint.core.kinds.confirming import confirmable_in, confirmable_row, confirmable_words
from gistpoint.core.kinds.folder import content_sha256, read_answer
from gistpoint.core.kinds.registry import kind_named, kind_of, render_brief
from gistpoint.core.kinds.titles import author_title, titled_id
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.requests import IsolationChoice, Request
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.documents import write_baseline
from gistpoint.core.tasks.model import Task
from gistpoint.core.tasks.names import word_name
from gistpoint.core.tasks.repository import RUNS
from gistpoint.core.tasks.strata import failing_stratum
from gistpoint.core.text import plural, visible_line
from gistpoint.object_graph import build_runner, build_services, print_note
from gistpoint.sessions.annotations.glance_rates import task_rates
from gistpoint.sessions.annotations.glance_reader import GlanceStore
from gistpoint.sessions.services import is_our_demo
from gistpoint.sessions.task_documents import TASKS_INDEX, ListedTask
from gistpoint.sessions.tasks import BrokenTask, TaskStore, listed_task, repeated
from gistpoint.tui.commands.arguments import ISOLATION, JSON, TASK
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, OptionTable, option
from gistpoint.tui.commands.output import print_json, print_records, print_text
from gistpoint.tui.commands.progress import ProgressLine, long_work
from gistpoint.tui.commands.stores import attempt_store
from gistpoint.tui.tables import Column, parse_query

AnyTask = TypeVar("AnyTask", Task, ListedTask)
COLUMNS: tuple[Column[ListedTask], ...] = (
    Column("id", attrgetter("short_id")),
    Column("name", attrgetter("name")),
    Column("task", attrgetter("title")),
    Column("mode", attrgetter("shown_mode")),
    Column("source", lambda row: f"{row.source} {row.revision[:12]}"),
    Column("tests", lambda row: str(row.tests), value=attrgetter("tests")),
    Column("failing", lambda row: str(row.failing), value=attrgetter("failing")),
    Column("uses", lambda row: str(row.budgets.tool_uses), value=attrgetter("budgets.tool_uses")),
    Column("submissions", lambda row: str(row.budgets.submissions), value=attrgetter("budgets.submissions")),
)
"""The columns of `gistpoint task list` that the rows of the list contain."""


def _columns_of(store: TaskStore) -> tuple[Column[ListedTask], ...]:
    """Return the columns of `gistpoint task list`; the last two need further files of the listed tasks."""

    def difficulty(row: ListedTask) -> str:
        kind = kind_named(row.mode)
        if kind is None or not kind.has_difficulty():
            return ""
        return kind.difficulty_words(kind.difficulty(store.whole(row)))

    def confirmable(row: ListedTask) -> str:
        folder = store.folder_of(row.id)
        return "" if folder is None else confirmable_in(folder, row.mode)

    return (*COLUMNS, Column("difficulty", difficulty), Column("confirmable", confirmable))


def _figured(task: Task) -> dict[str, Any]:
    figures = kind_of(task).difficulty(task)
    return {"difficulty": figures} if figures else {}


def _store() -> TaskStore:
    locations = Locations.of_user()
    return TaskStore(
        locations.tasks, demo=locations.demo, note=print_note, index=locations.lists / TASKS_INDEX
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTasks(Request):
    """A request to list the stored tasks."""

    json: bool = False
    where: str = ""
    ids: bool = False


def listing(request: ListTasks) -> int:
    """Print the stored tasks with their sources, as a view for organisers. Return the exit code."""
    rates, store = _glance_rates(), _store()
    columns = (*_columns_of(store), *([_rate_column(rates)] if rates or request.where else []))
    matches = parse_query(_SPACED_OPERATOR.sub(r"\1", request.where), columns).matches
    if request.json:
        whole = _Found(store.tasks(), (lambda task: matches(listed_task(task))) if request.where else None)
        same = {id: earlier.id for id, earlier in repeated(list(whole), content_sha256).items()}
        rows = [{**_row(task, rates), **_figured(task), "same_as": same.get(task.id)} for task in whole.tasks]
        problems = [{"folder": item.folder.name, "problem": item.problem} for item in whole.broken]
        print_json("gistpoint.tasks/1", {"tasks": rows, "broken": problems})
        return DONE
    found = _Found(store.listed(), matches if request.where else None)
    if request.ids:
        for task in found:
            print(task.id)
    else:
        _print_tasks(columns, found, store)
    for item in found.broken:
        print(visible_line(f"{item.folder.name}: {item.problem}"), file=sys.stderr)
    return DONE


class _Found(Generic[AnyTask]):
    """The tasks that match a query; iterating over them also collects those that can't be read."""

    def __init__(
        self, entries: Iterator[AnyTask | BrokenTask], matches: Callable[[AnyTask], bool] | None
    ) -> None:
        self._entries: Iterator[AnyTask | BrokenTask] = entries
        self._matches: Callable[[AnyTask], bool] | None = matches
        self.tasks: list[AnyTask] = []
        self.broken: list[BrokenTask] = []
        self.any = False
        """Whether there is any task, even if it does not match."""

    def __iter__(self) -> Iterator[AnyTask]:
        for entry in self._entries:
            self.any = True
            if isinstance(entry, BrokenTask):
                self.broken.append(entry)
            elif self._matches is None or self._matches(entry):
                self.tasks.append(entry)
                yield entry


def _print_tasks(columns: Sequence[Column[ListedTask]], found: _Found[ListedTask], store: TaskStore) -> None:
    """Print the tasks; without a terminal, print each as soon as it has been read."""
    rows = iter(found)
    first = list(islice(rows, 1))
    if not found.any:
        print("There are no tasks yet. `gistpoint demo` adds four; `gistpoint task new SOURCE` makes one.")
        return
    print_records(columns, chain(first, rows))
    for id, earlier in repeated(found.tasks, store.content_sha256).items():
        print(f"{id[:12]} is the same task as {earlier.short_id}, under another id.")


_SPACED_OPERATOR = re.compile(r"\s*(<=|>=|<|>|=)\s*")
"""A comparison operator with the spaces around it, which the syntax of queries doesn't allow."""


def _glance_rates() -> Mapping[str, float]:
    return task_rates(GlanceStore(Locations.of_user().glances, SystemTime()).book)


def _rate_column(rates: Mapping[str, float]) -> Column[ListedTask]:
    """Return the column with glance rates. A task without a rate matches no comparison."""
    return Column(
        "glance_rate",
        lambda task: f"{rates[task.id]:.2f}" if task.id in rates else "",
        value=lambda task: rates.get(task.id, nan),
    )


def _row(task: Task, rates: Mapping[str, float]) -> dict[str, Any]:
    return {
        "id": task.id,
        "title": author_title(task),
        "name": word_name(task.id),
        "mode": task.mode,
        "several": task.several,
        "source": {"kind": task.source.kind, "name": task.source.name, "revision": task.source.revision},
        "tests": task.suite.tests,
        "failing": len(task.brief.failing),
        "failing_stratum": failing_stratum(len(task.brief.failing)),
        "budgets": asdict(task.budgets),
        "demo": task.demo,
        "glance_rate": rates.get(task.id),
        **confirmable_row(task),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTask(Request):
    """A request about a task. With `json`, the output is JSON."""

    task: str
    json: bool = False


def show(request: NamedTask) -> int:
    """Print the brief of a task, exactly as a solver gets it. Return the exit code."""
    task = _store().find(request.task)
    read = _read_by_model(task)
    if request.json:
        failing = [asdict(failure) for failure in task.brief.failing]
        print_json(
            "gistpoint.task/1",
            {
                **_row(task, _glance_rates()),
                **({"reader": read} if read else {}),
                "brief": render_brief(task),
                "failing_tests": failing,
            },
        )
    else:
        print(f"{titled_id(task)}, shown to its solvers as {word_name(task.id)}", file=sys.stderr)
        print_text(render_brief(task))
        if words := confirmable_words(task):
            print(f"passes can be confirmed: {words}", file=sys.stderr)
        number = len(task.brief.failing)
        print(f"failing tests: {number} (stratum {failing_stratum(number)})", file=sys.stderr)
        if read:
            print(
                f"read blind by {visible_line(str(read['model']))}: the fault was named in {read['named']} of"
                f" {plural(int(read['read']), 'reading')}",
                file=sys.stderr,
            )
    return DONE


_READ = ("model", "read", "named", "elsewhere", "alarms")


def _read_by_model(task: Task) -> dict[str, Any]:
    """Return the counts of a blind reader's readings, with the model; empty if there are none."""
    try:
        record = read_answer(task).provenance.get(READER)
    except TaskError:
        return {}
    if not isinstance(record, Mapping) or not record.keys() >= set(_READ):
        return {}
    return {key: record[key] for key in _READ}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTask(Request):
    """A request to delete a task; with `yes`, without a question."""

    task: str
    yes: bool = False


def delete(request: DeleteTask) -> int:
    """Delete a task of the user, after a question. Return the exit code.

    Raises `AttemptError` if an attempt at the task is open, and `UserError` if the answer is not yes.
    """
    store, attempts = _store(), attempt_store()
    task = store.find(request.task)
    tried = [summary for summary in attempts.outlines() if summary.task_id == task.id]
    if opened := next((summary.attempt_id for summary in tried if summary.open), ""):
        raise AttemptError(f"Attempt {opened} at this task is open.", hint="Close it first.")
    if tried:
        kept = f"{len(tried)} {'attempt' if len(tried) == 1 else 'attempts'}"
        print(f"{kept} at this task can still be read, but not resumed.", file=sys.stderr)
    if not (request.yes or _agreed(f"Delete task {titled_id(task)}? Type yes: ")):
        raise UserError("Nothing was deleted.", hint="Without a terminal, confirm with --yes.")
    store.remove(task)
    print(f"{task.short_id}: deleted")
    from gistpoint.sessions.team.address import chosen_address

    if chosen_address(Locations.of_user().config) is not None:
        print(
            "If it is on the team's store, it stays there; `gistpoint store sync --deleted` fetches it again."
        )
    return DONE


def _agreed(question: str) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() == "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTask(NamedTask):
    """A request to check a task."""

    isolation: IsolationChoice = field(default_factory=IsolationChoice)


def check(request: CheckTask) -> int:
    """Print the findings of all checks. Return 1 if one of them failed."""
    task = _store().find(request.task)
    judge = build_services(request.isolation).judge_for(task)
    findings = []
    with ProgressLine(quiet=request.json) as progress:
        for finding in check_task(judge, read_answer(task), run=RunContext(progress=progress.making)):
            findings.append(finding)
            if not request.json:
                word = "reduced" if finding.reduced else "ok" if finding.passed else "FAILED"
                progress.line(f"{word:>8}  {finding.name}: {finding.detail}", stamped=False)
    good = all(finding.passed for finding in findings)
    if request.json:
        rows = [asdict(finding) for finding in findings]
        verdict = {"passed": good, "backend": judge.backend.name, "checks": rows}
        print_json("gistpoint.check/1", {"id": task.id, "title": author_title(task), **verdict})
    else:
        print(f"{titled_id(task)}: {'clean' if good else 'not clean'} on {judge.backend.name}")
    return DONE if good else NEGATIVE


_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBaseline(CheckTask):
    """A request to record a baseline of a task, with `runs` runs of the original."""

    runs: int = RUNS


def baseline(request: RecordBaseline) -> int:
    """Record a baseline on the chosen backend, and print how it differs from the other baselines.

    Return the exit code. Raises `UserError` for fewer than `RUNS` runs.
    """
    if request.runs < RUNS:
        raise UserError(f"--runs must be {RUNS} or more: fewer runs do not reveal flaky tests.")
    locations = Locations.of_user()
    task = TaskStore(locations.tasks, demo=locations.demo).find(request.task)
    answer = read_answer(task)
    runner = build_runner(request.isolation, demo=is_our_demo(task, locations))
    with long_work(quiet=request.json, kept="Nothing was written.") as work:
        made = record_baseline(task, answer, runner, runs=request.runs, run=work.run)
    write_baseline(task.folder, made)
    found = differences(answer, made)
    if request.json:
        rows = {
            name: {
                "only_here": sorted(difference.only_here),
                "only_there": sorted(difference.only_there),
                "failing_only_here": sorted(difference.failing_only_here),
                "failing_only_there": sorted(difference.failing_only_there),
            }
            for name, difference in found.items()
        }
        print_json(
            "gistpoint.baseline/1",
            {
                "id": task.id,
                "backend": made.backend,
                "runs": made.runs,
                "passed": len(made.passed),
                "differs": rows,
            },
        )
        return DONE
    passing = f"{len(made.passed)} pass in {plural(made.runs, 'run')}"
    print(f"{titled_id(task)} on {made.backend}: {passing}, {len(made.failing)} fail")
    for name, difference in found.items():
        _print_difference(name, difference)
    return DONE


def _print_difference(name: str, difference: BaselineDifference) -> None:
    if not difference.any:
        print(f"The same ids as on {name}")
        return
    for words, ids in (
        (f"pass here, not on {name}", difference.only_here),
        (f"pass on {name}, not here", difference.only_there),
        (f"fail when corrupted here, not on {name}", difference.failing_only_here),
        (f"fail when corrupted on {name}, not here", difference.failing_only_there),
    ):
        if ids:
            print(f"{len(ids)} {words}:")
            for id in sorted(ids)[:_SHOWN]:
                print(f"  {visible_line(id)}")
            if len(ids) > _SHOWN:
                print(f"  and {len(ids) - _SHOWN} more (--json has all)")


LIST = CliCommand(
    ListTasks,
    listing,
    OptionTable(
        {
            "json": JSON,
            "where": option(
                "list only matching tasks, such as 'discovery failing>5 glance_rate<0.2': words,"
                " column:words, column<number",
                metavar="QUERY",
            ),
            "ids": option("only full ids, one per line: a file of them is a set"),
        },
        one_of=(("json", "ids"),),
    ),
)
SHOW = CliCommand(NamedTask, show, {"task": TASK, "json": option("print the public part as JSON")})
DELETE = CliCommand(
    DeleteTask,
    delete,
    {"task": TASK, "yes": option("don't ask")},
)
CHECK = CliCommand(CheckTask, check, {"task": TASK, "json": JSON, "isolation": ISOLATION})
BASELINE = CliCommand(
    RecordBaseline,
    baseline,
    {
        "task": TASK,
        "runs": option("number of runs of the original, three or more", metavar="N"),
        "json": JSON,
        "isolation": ISOLATION,
    },
    about=(
        "Runs the original three times and the corrupted tree once in the chosen isolation, and keeps"
        " the result with the task's other baselines. Ids that differ between backends are shown."
    ),
)
