"""`gistpoint runs compare`: runs of one task as a tree of what each tried first, without a screen."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gistpoint.core.requests import Request
from gistpoint.core.text import plural, shortened, visible_line
from gistpoint.sessions.runs.action_tree import (
    RunActions,
    outcomes_of,
    rows_of,
    run_actions,
    tree_of,
    with_common_paths,
)
from gistpoint.sessions.runs.opening import ListedRun, split_name
from gistpoint.tui.commands.arguments import JSON, READ_AS, WHERE, read_files_as
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, argument
from gistpoint.tui.commands.output import print_json, print_text
from gistpoint.tui.commands.run_files import print_problems, problem_record
from gistpoint.tui.commands.run_list import print_nothing_found, read_runs


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRuns(Request):
    """A request to compare the runs of each task in files, folders and archives."""

    paths: tuple[str, ...]
    where: str = ""
    json: bool = False
    read_as: str = ""


def compare(request: CompareRuns) -> int:
    """Print a tree for each task.

    Return 2 if a named path can't be read, and 1 if nothing could be read or a run is doubtful.
    """
    read_files_as(request.read_as)
    problems: list[ListedRun] = []
    tasks: dict[str, list[RunActions]] = {}
    for listed, document, run in read_runs(request.paths, problems, request.where):
        is_named_after_file = run.task == split_name(listed.name)[0].name
        task = "" if is_named_after_file else run.task
        tasks.setdefault(task, []).append(run_actions(listed.name, document, run))
    found = {task: with_common_paths(runs) for task, runs in sorted(tasks.items())}
    if request.json:
        records = [_record(task, runs) for task, runs in found.items()]
        unread = [problem_record(item) for item in problems]
        print_json("gistpoint.run-trees/1", {"tasks": records, "problems": unread})
    else:
        for number, (task, runs) in enumerate(found.items()):
            if number:
                print()
            _print_tree(task, runs)
        if not found:
            print_nothing_found(request.paths, request.where, problems)
    return print_problems(problems, request.paths, DONE if found else NEGATIVE)


def _print_tree(task: str, runs: Sequence[RunActions]) -> None:
    """Print a tree: each line has the number of runs, how they ended, and what they did."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    print_text(f"{visible_line(task) or 'no task is recorded'}: {plural(len(runs), 'run')}")
    for row in rows_of(tree_of(runs)):
        node = row.node
        name = "" if node.parts else f"{runs[node.runs[0]].name}: "
        outcome = str(outcomes_of(node, runs))
        line = f"{len(node.runs):>5} {outcome:<14} {'  ' * row.depth}{name}{node.words}"
        print_text(shortened(visible_line(line), width))


def _record(task: str, runs: Sequence[RunActions]) -> dict[str, Any]:
    """Return the tree of a task as JSON data: a flat list of nodes, because a tree can be very deep."""
    nodes: list[dict[str, Any]] = []
    path: list[int] = []
    for number, row in enumerate(rows_of(tree_of(runs))):
        del path[row.depth :]
        outcomes = outcomes_of(row.node, runs)
        nodes.append(
            {
                "parent": path[-1] if path else None,
                "place": row.node.place + 1,
                "actions": [str(action) for action in row.node.actions],
                "runs": [runs[run].name for run in row.node.runs],
                "judged": outcomes.judged,
                "solved": outcomes.solved,
            }
        )
        path.append(number)
    found = [
        {
            "run": run.name,
            "verdict": run.run.verdict,
            "actions": len(run.actions),
            "steps": [step + 1 for step in run.steps],
            "more": run.is_cut,
        }
        for run in runs
    ]
    return {"task": task, "runs": found, "nodes": nodes}


COMPARE = CliCommand(
    CompareRuns,
    compare,
    {
        "paths": argument("PATH", "files, folders and archives of runs"),
        "where": WHERE,
        "json": JSON,
        "read_as": READ_AS,
    },
    about=(
        "Prints, for each task, a tree of what its runs tried first: a kind of work and its target, such as"
        " `edit fares.py::fare`. Each line has the number of runs, how many of those with an outcome were"
        " solved, and the actions that they have in common until they part ways."
    ),
)
