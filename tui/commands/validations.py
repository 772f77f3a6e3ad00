"""`gistpoint task validate` and `validations`: tasks judged by hand, and how far that is."""

from __future__ import annotations

import argparse
import getpass
import sys
from dataclasses import asdict
from pathlib import Path

from gistpoint.core.attempts.clock import SystemTime
from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.core.text import visible_line
from gistpoint.sessions.sidefiles.agreement import csv_lines, jsonl_lines
from gistpoint.sessions.tasks import TaskSet, TaskStore, read_set
from gistpoint.sessions.validations.agreement import COLUMNS, VerdictAgreement, rows, verdict_agreement
from gistpoint.sessions.validations.state import TaskProgress, progress, totals
from gistpoint.sessions.validations.validating import ValidationStore
from gistpoint.tui.cli import DONE, build_services
from gistpoint.tui.commands.output import for_output, interactive, print_json, print_table


class NoTerminalError(UserError):
    """The screen needs a terminal."""


def validate(options: argparse.Namespace) -> int:
    """Open the queue."""
    if not interactive():
        raise NoTerminalError(
            "The validation screen needs a terminal.", hint="gistpoint task validations prints where a set stands."
        )
    from gistpoint.tui.screens.validate.desk import Desk
    from gistpoint.tui.validate_app import ValidateApp

    services = build_services(options)
    tasks = read_set(options.set, services.tasks)
    if not tasks.tasks:
        _tell(tasks.problems)
        raise UserError("There is no task to validate.", hint="`gistpoint task new SOURCE` makes one.")
    desk = Desk.of(services, tasks, options.reviewer or getpass.getuser())
    return ValidateApp(desk).run_to_exit_code()


def state(options: argparse.Namespace) -> int:
    """Print a row for each task, what was said as rows, or how far two validators agree."""
    locations = Locations.of_user()
    store = ValidationStore(locations.validations, SystemTime())
    if options.merge:
        merged = store.merge(Path(path) for path in options.merge)
        _tell(merged.problems)
        print(f"{merged.added} operations taken in, {merged.known} known before.", file=sys.stderr)
    tasks = read_set(options.set, TaskStore(locations.tasks, locations.demo))
    _tell((*store.problems, *tasks.problems))
    ids = [task.id for task in tasks.tasks]
    if options.export:
        found = rows(store.book, ids)
        sys.stdout.writelines(for_output(csv_lines(found, COLUMNS) if options.export == "csv" else jsonl_lines(found)))
        return DONE
    agreed = _agreement(store, ids, options.agreement) if options.agreement else None
    table = progress(store.book, ids)
    if options.json:
        _print_as_json(tasks, table, agreed)
    elif agreed is not None:
        _print_agreement(agreed)
    else:
        _print_state(tasks, table, store.book.reviewers)
    return DONE


def _tell(problems: tuple[str, ...]) -> None:
    for problem in problems:
        print(f"gistpoint: {visible_line(problem)}", file=sys.stderr)


def _agreement(store: ValidationStore, ids: list[str], names: list[str]) -> VerdictAgreement:
    for name in names:
        if name not in store.book.reviewers:
            listed = ", ".join(store.book.reviewers) or "nobody yet"
            raise UserError(f"There is no validation by {name!r}.", hint=f"There are validations by: {listed}.")
    return verdict_agreement(store.book, ids, names[0], names[1])


def _print_as_json(tasks: TaskSet, table: tuple[TaskProgress, ...], agreed: VerdictAgreement | None) -> None:
    values: dict[str, object] = {
        "tasks": [{**asdict(row), "standing": row.standing.value} for row in table],
        "totals": {standing.value: count for standing, count in totals(table).items()},
        "problems": list(tasks.problems),
    }
    if agreed is not None:
        shares = {"observed": agreed.observed, "observed_accept": agreed.observed_accept}
        told = {key: value for key, value in asdict(agreed).items() if key != "tasks"}
        values["agreement"] = {**told, **shares, "both_judged": agreed.tasks}
    print_json("gistpoint.validations/1", values)


def _print_state(tasks: TaskSet, table: tuple[TaskProgress, ...], reviewers: tuple[str, ...]) -> None:
    by_id = {task.id: task for task in tasks.tasks}
    print_table(
        ["task", "mode", "source", "standing", *reviewers, "comments", "runs"],
        [
            [
                by_id[row.task].short_id,
                f"{by_id[row.task].mode}{' several' if by_id[row.task].several else ''}",
                f"{by_id[row.task].source.name} {by_id[row.task].source.revision[:12]}",
                row.standing.value,
                *(row.verdicts[name].value if name in row.verdicts else "-" for name in reviewers),
                str(row.comments),
                str(row.trials),
            ]
            for row in table
        ],
    )
    counts = ", ".join(f"{count} {standing.value}" for standing, count in totals(table).items() if count)
    print(f"{len(table)} tasks: {counts or 'none'}")


def _print_agreement(found: VerdictAgreement) -> None:
    first, second = visible_line(found.first), visible_line(found.second)
    print(f"{first} and {second}: {found.tasks} tasks judged by both")
    print_table(
        ["on", "agreed", "share", "kappa"],
        [
            ["nine verdicts", str(found.agreed), _number(found.observed), _number(found.kappa)],
            ["accepted or not", str(found.agreed_accept), _number(found.observed_accept), _number(found.kappa_accept)],
        ],
    )
    if found.disagreements:
        print_table(
            ["task", found.first, found.second],
            [[item.task[:12], item.first.value, item.second.value] for item in found.disagreements],
        )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
