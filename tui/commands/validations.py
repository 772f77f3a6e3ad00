"""`gistpoint task validate` and `task validations`: judge tasks by hand, and print the progress."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from gistpoint.core.errors import UserError
from gistpoint.core.kinds.titles import author_title
from gistpoint.core.locations import Locations
from gistpoint.core.login import login_name
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.requests import IsolationChoice, Request
from gistpoint.core.text import plural, visible_line
from gistpoint.object_graph import build_services, live_annotations
from gistpoint.sessions.annotations.agreement import VerdictAgreement, verdict_agreement
from gistpoint.sessions.annotations.rows import VALIDATION_COLUMNS, csv_lines, jsonl_lines, validation_rows
from gistpoint.sessions.annotations.validations import TaskProgress, progress, totals
from gistpoint.sessions.annotations.validator import ValidationStore
from gistpoint.sessions.tasks import TaskSet, TaskStore, read_set
from gistpoint.tui.commands.arguments import ISOLATION, JSON
from gistpoint.tui.commands.command import DONE
from gistpoint.tui.commands.merging import counts_of, merge_files
from gistpoint.tui.commands.options import CliCommand, OptionTable, argument, option
from gistpoint.tui.commands.output import for_output, print_json, print_records, print_table, require_terminal
from gistpoint.tui.tables import Column
from gistpoint.tui.titles import mode_words

_MAKE_SOME = "`gistpoint demo` adds four; `gistpoint task new SOURCE` makes one."
_SET = (
    "folders of tasks, files with one task per line, tasks by id, title, two-word name, folder or .tar.zst;"
    " if none is given, all tasks on this machine"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateTasks(Request):
    """A request to judge tasks as a validator."""

    set: tuple[str, ...] = ()
    """The set's tasks, folders and files; empty for all tasks on this machine."""
    reviewer: str = ""
    """The name of the validator; empty for the login name."""
    adjudicate: bool = False
    """Whether to decide the tasks on which validators disagree."""
    isolation: IsolationChoice


def validate(request: ValidateTasks) -> int:
    """Open the queue of tasks for a validator. Return the exit code.

    Raises `UserError` if there are no tasks.
    """
    from gistpoint.tui.base_app import OneScreenApp
    from gistpoint.tui.screens.validate.screen import ValidateScreen
    from gistpoint.tui.screens.validate.session import ValidationSession

    services = build_services(request.isolation)
    tasks = read_set(request.set, services.tasks)
    require_terminal("validation", hint="gistpoint task validations prints the progress of a set.")
    if not tasks.tasks:
        _print_problems(tasks.problems)
        raise UserError("There are no tasks to validate.", hint=_MAKE_SOME)
    reviewer = request.reviewer or login_name()
    session = ValidationSession.of(
        services,
        tasks,
        reviewer,
        live_annotations(services.locations, "validations", reviewer),
        adjudicates=request.adjudicate,
    )
    styles, kept = "screens/validate/validate.tcss", " Your answers and text are kept."
    return OneScreenApp(
        services.locations, styles, lambda: ValidateScreen(session), kept=kept
    ).run_to_exit_code()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowValidations(Request):
    """A request to print the validations of tasks, or how far two validators agree."""

    set: tuple[str, ...] = ()
    json: bool = False
    export: Literal["csv", "jsonl"] | None = None
    agreement: tuple[str, str] | None = None
    """The names of two validators to compare; None for no comparison."""
    merge: tuple[Path, ...] = ()
    """The files of validations to merge first."""


def state(request: ShowValidations) -> int:
    """Print a row for each task, all annotations, or the agreement of two validators. Return the exit code.

    Raises `UserError` if a name has no validations, or if both an export and the agreement are requested.
    """
    if request.export and request.agreement:
        raise UserError(
            "An export has the verdicts, but no agreement.",
            hint="Leave out --export; --json has the figures.",
        )
    locations = Locations.of_user()
    store = ValidationStore(locations.validations, SystemTime())
    if request.merge:
        print(counts_of(merge_files(store, request.merge)), file=sys.stderr)
    tasks = read_set(request.set, TaskStore(locations.tasks, demo=locations.demo))
    _print_problems((*store.problems, *tasks.problems))
    ids = [task.id for task in tasks.tasks]
    if request.export:
        found = validation_rows(store.book, ids)
        sys.stdout.writelines(
            for_output(
                csv_lines(found, VALIDATION_COLUMNS) if request.export == "csv" else jsonl_lines(found)
            )
        )
        return DONE
    agreed = _agreement(store, ids, request.agreement) if request.agreement else None
    table = progress(store.book, ids)
    if request.json:
        _print_as_json(tasks, table, agreed)
    elif agreed is not None:
        _print_agreement(agreed)
    else:
        _print_state(tasks, table, store.book.reviewers)
    return DONE


def _print_problems(problems: tuple[str, ...]) -> None:
    for problem in problems:
        print(f"gistpoint: {visible_line(problem)}", file=sys.stderr)


def _agreement(store: ValidationStore, ids: list[str], names: tuple[str, str]) -> VerdictAgreement:
    for name in names:
        if name not in store.book.reviewers:
            listed = ", ".join(store.book.reviewers) or "nobody yet"
            raise UserError(
                f"There is no validation by {name!r}.", hint=f"There are validations by: {listed}."
            )
    return verdict_agreement(store.book, ids, names[0], names[1])


def _print_as_json(tasks: TaskSet, table: tuple[TaskProgress, ...], agreed: VerdictAgreement | None) -> None:
    titles = {task.id: author_title(task) for task in tasks.tasks}
    values: dict[str, object] = {
        "tasks": [
            {**asdict(row), "standing": row.standing.value, "title": titles[row.task]} for row in table
        ],
        "totals": {standing.value: count for standing, count in totals(table).items()},
        "problems": list(tasks.problems),
    }
    if agreed is not None:
        shares = {"observed": agreed.observed, "observed_accept": agreed.observed_accept}
        figures = {key: value for key, value in asdict(agreed).items() if key != "tasks"}
        values["agreement"] = {**figures, **shares, "both_judged": agreed.tasks}
    print_json("gistpoint.validations/1", values)


def _print_state(tasks: TaskSet, table: tuple[TaskProgress, ...], reviewers: tuple[str, ...]) -> None:
    by_id = {task.id: task for task in tasks.tasks}
    columns: list[Column[TaskProgress]] = [
        Column("task", lambda row: by_id[row.task].short_id),
        Column("title", lambda row: author_title(by_id[row.task])),
        Column("mode", lambda row: mode_words(by_id[row.task])),
        Column("source", lambda row: f"{by_id[row.task].source.name} {by_id[row.task].source.revision[:12]}"),
        Column("standing", lambda row: row.standing.value),
        *(_verdicts_of(name) for name in reviewers),
        *_decisions(table),
        Column("comments", lambda row: str(row.comments)),
        Column("runs", lambda row: str(row.trials)),
    ]
    print_records(columns, table)
    counts = ", ".join(f"{count} {standing.value}" for standing, count in totals(table).items() if count)
    print(f"{plural(len(table), 'task')}: {counts or 'none'}")


def _decisions(table: tuple[TaskProgress, ...]) -> tuple[Column[TaskProgress], ...]:
    """Return a column with the decisions in force; an empty tuple if no task is decided."""
    if all(row.decided is None for row in table):
        return ()
    return (
        Column(
            "decided",
            lambda row: f"{row.decided.value} by {row.decided_by}" if row.decided is not None else "-",
        ),
    )


def _verdicts_of(reviewer: str) -> Column[TaskProgress]:
    return Column(reviewer, lambda row: row.verdicts[reviewer].value if reviewer in row.verdicts else "-")


def _print_agreement(found: VerdictAgreement) -> None:
    first, second = visible_line(found.first), visible_line(found.second)
    print(f"{first} and {second}: {plural(found.tasks, 'task')} judged by both")
    print_table(
        ["on", "agreed", "share", "kappa"],
        [
            ["nine verdicts", str(found.agreed), _number(found.observed), _number(found.kappa)],
            [
                "accepted or not",
                str(found.agreed_accept),
                _number(found.observed_accept),
                _number(found.kappa_accept),
            ],
        ],
    )
    if found.disagreements:
        print_table(
            ["task", found.first, found.second],
            [[item.task[:12], item.first.value, item.second.value] for item in found.disagreements],
        )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


VALIDATE = CliCommand(
    ValidateTasks,
    validate,
    {
        "set": argument("SET", _SET),
        "reviewer": option("the validator's pseudonym (default: the login)", metavar="NAME"),
        "adjudicate": option("decide the tasks on which validators disagree; their verdicts are shown"),
        "isolation": ISOLATION,
    },
    about=(
        "Opens a queue of tasks. Your answers are kept in your own file in the data folder, never"
        " in a task. Verdicts of others are not shown: `gistpoint task validations` compares them,"
        " and "
        "--adjudicate decides where they differ."
    ),
)
STATE = CliCommand(
    ShowValidations,
    state,
    OptionTable(
        {
            "set": argument("SET", _SET),
            "json": JSON,
            "export": option("every current verdict, comment, run and check"),
            "agreement": option("compare two validators", metavar="NAME"),
            "merge": option("first merge a validator's .jsonl (not an export), or a folder", metavar="PATH"),
        },
        one_of=(("json", "export"),),
    ),
    about=(
        "Prints a row for each task with the verdicts of its validators. --agreement compares two of them: "
        "raw agreement, Cohen's kappa and the tasks on which they differ."
    ),
)
