"""`gistpoint glance`: read functions blind, and print how often readers see a fault in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from gistpoint.core.corruption.blind import MOST_TIMES, BlindItem, blind_items, in_order
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.locations import Locations, path_of
from gistpoint.core.login import login_name
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.requests import Count, Natural, Positive, Request, ValueBounds
from gistpoint.core.running import RunContext
from gistpoint.core.study.reading import FILE as STUDY_FILE
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import visible_line
from gistpoint.sandbox.endpoints.settings import endpoint_settings
from gistpoint.sessions.annotations.agreement import GlanceAgreement
from gistpoint.sessions.annotations.glance_rates import (
    RATE_COLUMNS,
    GlanceShare,
    RateRow,
    agreements,
    rate_rows,
    rate_values,
    rates_json,
)
from gistpoint.sessions.annotations.glance_reader import GlanceReader, GlanceStore, read_by_model
from gistpoint.sessions.annotations.rows import csv_lines
from gistpoint.sessions.studies.exposures import record_exposures
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.tasks import TaskStore, read_set
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.merging import counts_of, merge_files
from gistpoint.tui.commands.model_options import chat_model
from gistpoint.tui.commands.options import CliCommand, OptionTable, argument, option
from gistpoint.tui.commands.output import for_output, print_json, print_records, print_table, require_terminal
from gistpoint.tui.commands.progress import ProgressLine, interruptible
from gistpoint.tui.study_opening import open_study
from gistpoint.tui.tables import Column

_SET = (
    "tasks by id, title, two-word name, folder or .tar.zst, folders of tasks, files with one of these per"
    " line, folders of studies"
)


_ONE_OF_THEM = "First read with --judge-model, then print the results with --table."


@dataclass(frozen=True, slots=True, kw_only=True)
class AskReadingModel(Request):
    """A request to have a model read functions instead of a person, each of them `times` times."""

    judge_model: str | None = None
    times: Annotated[int, ValueBounds(least=1, most=MOST_TIMES)] = 20
    max_cost: Positive | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintGlances(Request):
    """A request to print results. Without `table`, `json` and `csv`, functions are read instead."""

    table: bool = False
    json: bool = False
    csv: bool = False
    merge: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """Whether results are printed, instead of functions being read."""
        return self.table or self.json or self.csv


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGlances(Request):
    """A request to read functions blind, to have a model read them, or to print what readers saw."""

    set: tuple[str, ...] = ()
    all: bool = False
    reader: str = ""
    seconds: Positive | None = None
    seed: Natural = 0
    round: Count = 1
    reveal: bool = False
    model: AskReadingModel = field(default_factory=AskReadingModel)
    printed: PrintGlances = field(default_factory=PrintGlances)


def glance(request: ReadGlances) -> int:
    """Open the functions for reading, ask a model to read them, or print what readers saw.

    Return the exit code. Raises `UserError` if options contradict each other, or if there is nothing to read.
    """
    if request.model.judge_model is not None and request.printed.any:
        raise UserError(
            "--table, --json and --csv print results, but --judge-model makes new readings.",
            hint=_ONE_OF_THEM,
        )
    if request.model.judge_model is None and request.model != AskReadingModel():
        given = "--times" if request.model.max_cost is None else "--max-cost"
        raise UserError(
            f"{given} is only for a reading model, and no model is given.", hint="Add --judge-model NAME."
        )
    chosen = _chosen(request)
    if request.printed.any:
        return _print_table(request, chosen)
    if request.model.judge_model:
        return _ask_model(request, chosen)
    require_terminal("reading", hint="gistpoint glance --table SET prints what readers saw.")
    from gistpoint.tui.base_app import OneScreenApp
    from gistpoint.tui.screens.glance.reading import GlanceScreen

    locations = Locations.of_user()
    store = _store(request, locations)
    reader = GlanceReader(
        store, request.reader or login_name(), request.seed, request.round, request.seconds or 0.0
    )
    items = in_order(_items(chosen.tasks), request.seed, reader.name, request.round)
    if not items:
        raise UserError(
            "None of these tasks has a corrupted function to read.",
            hint="Tasks in discovery mode have one: gistpoint task generate SOURCE makes them.",
        )

    def on_read() -> None:
        for study in chosen.studies:
            study.reload()
            if study.ledger.person(reader.name).enrolled:
                record_exposures(study, reader.name)

    def first() -> GlanceScreen:
        return GlanceScreen(items, reader, at_once=request.reveal, on_read=on_read)

    return OneScreenApp(locations, "screens/glance/glance.tcss", first).run_to_exit_code()


def _ask_model(request: ReadGlances, chosen: _Chosen) -> int:
    """Have a model read what it has not read yet, and print its rates.

    Return 1 if some answers are missing.
    """
    locations = Locations.of_user()
    settings = endpoint_settings(locations.config, os.environ, request.model.judge_model)
    store = _store(request, locations)
    reader = GlanceReader(store, settings.model, request.seed, by_model=True)
    items = _items(chosen.tasks)
    cap = request.model.max_cost if request.model.max_cost is not None else settings.max_cost_usd
    with ProgressLine(quiet=request.printed.json) as progress, interruptible(progress) as cancel:
        run = RunContext(cancel, progress.making)
        result, asked = read_by_model(
            reader, chat_model(settings), items, request.model.times, max_cost_usd=cap, run=run
        )
    cost = "" if result.usage.cost_usd is None else f", ${result.usage.cost_usd:.4f}"
    print(f"{result.answered} of {asked} answers, {result.usage.tokens} tokens{cost}", file=sys.stderr)
    if result.detail:
        print(f"gistpoint: {visible_line(result.detail)}", file=sys.stderr)
    print_records(_COLUMNS, [row for row in rate_rows(store.book, items) if row.readers == reader.name])
    return DONE if result.answered == asked else NEGATIVE


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The tasks of a set, and the studies that contain some of them."""

    tasks: tuple[Task, ...]
    studies: tuple[StudyFolder, ...]


def _chosen(request: ReadGlances) -> _Chosen:
    if bool(request.set) == request.all:
        raise UserError(
            "Name tasks, or read all with --all, not both." if request.set else "No task was given.",
            hint="Give one of the two."
            if request.set
            else "gistpoint glance SET, or gistpoint glance --all.",
        )
    locations = Locations.of_user()
    store = TaskStore(locations.tasks, demo=locations.demo)
    studies = [open_study(name) for name in request.set if (path_of(name) / STUDY_FILE).is_file()]
    names = [name for name in request.set if not (path_of(name) / STUDY_FILE).is_file()]
    tasks: dict[str, Task] = {}
    if names or request.all:
        tasks.update((task.id, task) for task in _tasks_of_set(names, store))
    for study in studies:
        _print_problems(study.read.problems)
        tasks.update((identity, study.task(identity)) for identity in study.tasks)
    return _Chosen(tuple(tasks.values()), tuple(studies))


def _tasks_of_set(names: list[str], store: TaskStore) -> Iterable[Task]:
    """Return the tasks of a set; without names, all tasks. Problems are printed.

    Raises `UserError` if the named sets have problems and no task that can be read, and `TaskError` for a
    name that selects nothing.
    """
    found = read_set(names, store, distinct=True)
    is_empty = bool(names) and not found.tasks
    if is_empty and found.problems:
        raise UserError(
            f"There is no task in {', '.join(names)}: {found.problems[0]}",
            hint="A set is a file with the id of a task on each line: gistpoint task list --ids > FILE.",
        )
    _print_problems(found.problems)
    return found.tasks


def _items(tasks: Iterable[Task]) -> list[BlindItem]:
    return [item for task in tasks for item in blind_items(task, read_answer(task))]


def _store(request: ReadGlances, locations: Locations) -> GlanceStore:
    store = GlanceStore(locations.glances, SystemTime())
    if request.printed.merge:
        print(counts_of(merge_files(store, map(Path, request.printed.merge))), file=sys.stderr)
    _print_problems(store.problems)
    return store


def _print_problems(problems: Iterable[str]) -> None:
    for problem in problems:
        print(f"gistpoint: {visible_line(problem)}", file=sys.stderr)


# Printing what readers saw


def _print_table(request: ReadGlances, chosen: _Chosen) -> int:
    book = _store(request, Locations.of_user()).book
    rows = list(rate_rows(book, _items(chosen.tasks)))
    if request.printed.csv:
        sys.stdout.writelines(for_output(csv_lines((rate_values(row) for row in rows), RATE_COLUMNS)))
        return DONE
    agreed = agreements(book, [task.id for task in chosen.tasks])
    if request.printed.json:
        print_json("gistpoint.glance/1", rates_json(rows, agreed))
    elif not rows:
        print("Nobody has read any of these tasks yet: gistpoint glance SET.")
    else:
        print_records(_COLUMNS, rows)
        _print_agreements(agreed)
    return DONE


def _count(share: GlanceShare) -> str:
    return f"{share.count} of {share.cases}"


def _value(share: GlanceShare) -> str:
    return _number(share.value)


def _interval(share: GlanceShare) -> str:
    low, high = share.interval
    return f"{low:.2f}-{high:.2f}" if share.cases else "-"


_COLUMNS: tuple[Column[RateRow], ...] = (
    Column("readers", lambda row: row.readers),
    Column("by", lambda row: row.by),
    Column("name", lambda row: row.name[:12] if row.by == "task" else row.name),
    Column("seen", lambda row: _count(row.rate.seen)),
    Column("rate", lambda row: _value(row.rate.seen)),
    Column("95%", lambda row: _interval(row.rate.seen)),
    Column("alarms", lambda row: _count(row.rate.alarms)),
    Column("rate", lambda row: _value(row.rate.alarms)),
    Column("95%", lambda row: _interval(row.rate.alarms)),
    Column("doubtful", lambda row: str(row.rate.doubtful)),
)


def _print_agreements(agreed: Sequence[GlanceAgreement]) -> None:
    if agreed:
        print_table(
            ["reader", "and", "functions", "agreed", "kappa", "verdicts", "agreed", "kappa"],
            [
                [
                    one.first,
                    "again" if one.first == one.second else one.second,
                    str(one.functions),
                    str(one.agreed),
                    _number(one.kappa),
                    str(one.verdicts),
                    str(one.agreed_verdicts),
                    _number(one.kappa_verdicts),
                ]
                for one in agreed
            ],
        )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


_MODEL = OptionTable(
    {
        "judge_model": option("ask this model instead of a person", metavar="NAME"),
        "times": option("requests for each function (default: {default})", metavar="N"),
        "max_cost": option("limit for this call; needs a price, see the guide", metavar="USD"),
    },
    title="reading by a model",
    description=(
        "Each function is sent alone, many times, in one version or the other, in random order. The endpoint"
        " is that of OPENAI_BASE_URL and OPENAI_API_KEY, or of the table [llm] of config.toml, whose api may"
        " also be anthropic or gemini."
    ),
)
_RESULTS = ("table", "json", "csv")
_NOT_READ = (*_RESULTS, "judge_model")
_PRINTED = OptionTable(
    {
        "table": option("print rates and agreement instead of reading"),
        "json": option("the table as JSON"),
        "csv": option("the rates as CSV"),
        "merge": option("first merge a reader's .jsonl", metavar="PATH", only_with=_RESULTS),
    },
    title="results",
    one_of=(("json", "csv"),),
)
GLANCE = CliCommand(
    ReadGlances,
    glance,
    {
        "set": argument("SET", _SET),
        "all": option("all tasks on this machine"),
        "reader": option("the reader's pseudonym (default: the login)", metavar="NAME", not_with=_NOT_READ),
        "seconds": option(
            "hide the code after this time (default: no limit)", metavar="S", not_with=_NOT_READ
        ),
        "seed": option(
            "seed that decides which versions are shown (default: {default})", metavar="N", not_with=_RESULTS
        ),
        "round": option(
            "read the same versions again, in a different order (default: {default})",
            metavar="N",
            not_with=_NOT_READ,
        ),
        "reveal": option("show each diff immediately, not after the whole set", not_with=_NOT_READ),
        "model": _MODEL,
        "printed": _PRINTED,
    },
    about=(
        "Shows the corrupted functions of tasks one at a time, original or corrupted, without saying"
        " which; you answer what you see. The diffs are shown after the whole set. Your answers are"
        " kept in your own file in the data folder; --table prints how often faults were seen."
    ),
)
