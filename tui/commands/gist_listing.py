"""`gistpoint gist list` and `conditions`: list gist tasks by difficulty, and write settings to compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gistpoint.core.entrypoints.command import command_line
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.gist.answer import ReferenceGist
from gistpoint.core.kinds.gist.documents import GistFigures, read_figures
from gistpoint.core.kinds.gist.model import gist_task, is_gist
from gistpoint.core.kinds.gist.overrides import CONDITIONS, overrides_data, toml_lines
from gistpoint.core.kinds.titles import author_title
from gistpoint.core.locations import Locations
from gistpoint.core.metrics.bars import TOP, hard_subset
from gistpoint.core.requests import Count, Request
from gistpoint.core.tasks.model import Task
from gistpoint.core.tasks.names import word_name
from gistpoint.core.text import plural
from gistpoint.sessions.tasks import TaskStore
from gistpoint.tui.commands.arguments import JSON, TASK
from gistpoint.tui.commands.command import DONE
from gistpoint.tui.commands.options import CliCommand, option
from gistpoint.tui.commands.output import make_folder, print_json, print_records, write_whole
from gistpoint.tui.tables import Column


def shown_reference(reference: ReferenceGist) -> str:
    """Return the result of a reference gist as text."""
    if not reference.faithful:
        return f"none: {' '.join(reference.reason.split())[:200]} ({reference.seconds:.0f} s)"
    rates = (reference.line_execution or 0, reference.line_existence or 0)
    return f"faithful, execution {rates[0]:.1f}, existence {rates[1]:.1f} ({reference.seconds:.0f} s)"


def reference_record(reference: ReferenceGist | None) -> dict[str, Any] | None:
    """Return a reference gist as JSON data, without its text; None if there is none."""
    if reference is None:
        return None
    return {key: value for key, value in asdict(reference).items() if key != "text"}


@dataclass(frozen=True, slots=True)
class _Row:
    """A gist task with its figures, and the axes by which it is in the hard subset."""

    task: Task
    figures: GistFigures
    hard: tuple[str, ...]


def _figure_of(name: str) -> Callable[[_Row], str]:
    return lambda row: str(getattr(row.figures.difficulty, name))


def _reference_words(row: _Row) -> str:
    return "not tried" if row.figures.reference is None else shown_reference(row.figures.reference)


COLUMNS: tuple[Column[_Row], ...] = (
    Column("id", lambda row: row.task.short_id),
    Column("name", lambda row: word_name(row.task.id)),
    Column("source", lambda row: f"{row.task.source.name} {row.task.source.revision[:12]}"),
    Column("entrypoint", lambda row: command_line(gist_task(row.task).command)),
    Column("calls", _figure_of("calls")),
    Column("functions", _figure_of("functions")),
    Column("files", _figure_of("files")),
    Column("depth", _figure_of("depth")),
    Column("lines %", lambda row: f"{100 * row.figures.difficulty.lines_covered:.1f}"),
    Column("hard by", lambda row: ", ".join(row.hard)),
    Column("reference", _reference_words),
)
"""The columns of `gistpoint gist list`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGists(Request):
    """A request to list the gist tasks, or only the hard subset."""

    hard: Count = 0
    """The number of tasks on each axis of the hard subset; 0 for all tasks."""
    json: bool = False


def listing(request: ListGists) -> int:
    """Print the gist tasks, or the hard subset, with their difficulty. Return the exit code."""
    measured = _measured_gists()
    by_calls, by_files = hard_subset(
        {task.id: float(figures.difficulty.calls) for task, figures in measured},
        {task.id: float(figures.difficulty.files) for task, figures in measured},
        request.hard or TOP,
    )
    axes = {"calls": by_calls, "files": by_files}
    rows = [
        _Row(task, figures, tuple(name for name, chosen in axes.items() if task.id in chosen))
        for task, figures in measured
    ]
    shown = [row for row in rows if row.hard or not request.hard]
    if request.json:
        subset = {
            "of": len(rows),
            "calls": len(by_calls),
            "files": len(by_files),
            "both": len(by_calls & by_files),
        }
        print_json("gistpoint.gist-list/1", {"gists": [_record(row) for row in shown], "hard_subset": subset})
        return DONE
    if not rows:
        print(
            "There are no gist tasks with an answer yet. `gistpoint gist new SOURCE --sample 10` makes some."
        )
        return DONE
    print_records(COLUMNS, shown)
    if request.hard:
        print(
            f"{len(shown)} of {plural(len(rows), 'task')}; {len(by_calls & by_files)} are hard by calls and"
            " by files."
        )
    return DONE


def _measured_gists() -> list[tuple[Task, GistFigures]]:
    """Return the stored gist tasks that have figures, with the figures."""
    locations = Locations.of_user()
    stored = TaskStore(locations.tasks, demo=locations.demo).tasks()
    gists = [task for task in stored if isinstance(task, Task) and is_gist(task)]
    return [(task, figures) for task in gists if (figures := read_figures(task)) is not None]


def _record(row: _Row) -> dict[str, Any]:
    return {
        "id": row.task.id,
        "title": author_title(row.task),
        "entrypoint": command_line(gist_task(row.task).command),
        "difficulty": asdict(row.figures.difficulty),
        "hard_by": list(row.hard),
        "reference": reference_record(row.figures.reference),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteConditions(Request):
    """A request to write a file into a folder for each condition, with its settings for a gist task."""

    task: str
    output: Path


def find_gist(name: str) -> Task:
    """Return a gist task.

    Raises `TaskError` if no task has this name, and `UserError` if it is of another kind.
    """
    locations = Locations.of_user()
    task = TaskStore(locations.tasks, demo=locations.demo).find(name)
    if not is_gist(task):
        raise UserError(
            f"The task {task.short_id} is not a gist task.",
            hint="`gistpoint gist list` lists the gist tasks.",
        )
    return task


def conditions(request: WriteConditions) -> int:
    """Write a file with the settings of each condition in the paper. Return the exit code.

    Raises `UserError` if one of the files already exists with other settings, or if a condition does not
    apply.
    """
    task, folder = find_gist(request.task), request.output
    make_folder(folder)
    texts: dict[Path, bytes] = {}
    for name, condition in CONDITIONS.items():
        condition.on(task, "")  # raises `UserError` if the condition does not apply to the task
        path = folder / f"{name}.toml"
        texts[path] = ("\n".join(toml_lines(overrides_data(condition))) + "\n").encode()
        if path.exists() and path.read_bytes() != texts[path]:
            raise UserError(
                f"{path} already exists, with different settings.", hint="Name another folder, or move it."
            )
    for path, text in texts.items():
        write_whole(path, [text], named=False)
        print(f"gistpoint solve {task.short_id} --gist-settings {path}")
    return DONE


LIST = CliCommand(
    ListGists,
    listing,
    {
        "hard": option(
            f"only the hard subset: the first N by calls and the first N by files (default: {TOP})",
            metavar="N",
            bare=TOP,
        ),
        "json": JSON,
    },
    about=(
        "Lists the calls, functions, files, depth and lines of each gist task, the result of its reference"
        " gist, and the hard subset: the tasks with the most calls and those that touch the most files,"
        " ranked among all tasks on this machine."
    ),
)
WRITE_CONDITIONS = CliCommand(
    WriteConditions,
    conditions,
    {"task": TASK, "output": option("the folder to write", "-o", "--output", metavar="FOLDER")},
    about=(
        "Writes a file of settings for each condition that Gistify compares (table 3), for `gistpoint"
        " solve TASK --gist-settings FILE`, `agent run` and studies. Attempts under all conditions of"
        " a task can share one data folder."
    ),
)
