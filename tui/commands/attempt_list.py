"""`gistpoint attempt list`: list the attempts on this machine, each row as soon as it is there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import chain, islice
from operator import attrgetter

from gistpoint.core.attempts.results import AttemptResult, Standing, by_tests_words, solved_words
from gistpoint.core.errors import UserError
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.requests import Count, Request
from gistpoint.core.text import visible_line
from gistpoint.sessions.attempt_summary import ListedAttempt
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.tasks import TaskStore
from gistpoint.tui.commands.arguments import JSON, TASK_HELP
from gistpoint.tui.commands.command import DONE
from gistpoint.tui.commands.options import CliCommand, OptionTable, option
from gistpoint.tui.commands.output import print_json, print_records
from gistpoint.tui.commands.stores import attempt_store, store_of_tasks, task_named
from gistpoint.tui.tables import Column

_DAY_MS = 24 * 3_600_000
"""A day, in milliseconds. Older attempts are not reported as having piled up."""


NEWEST = 50
"""The number of attempts that a terminal shows unless more are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAttempts(Request):
    """A request to list the attempts on this machine, newest first, or some of them."""

    task: str = ""
    participant: str = ""
    model: str = ""
    since: str = ""
    until: str = ""
    last: Count | None = None
    """The maximum number of attempts; None for `NEWEST` on a terminal, and for all elsewhere."""
    all: bool = False
    json: bool = False


def listing(request: ListAttempts) -> int:
    """Print the attempts, newest first, and return the exit code.

    Without a terminal, each row is printed as soon as it has been read, except as JSON.
    """
    store = attempt_store()
    task = task_named(request.task).id if request.task else ""
    found = filter(_wanted(request, task), store.listed())
    if request.json:
        from gistpoint.sessions.attempt_outcomes import attempt_rows  # would delay the rows of the table

        chosen = [row.attempt_id for row in islice(found, request.last)]
        print_json("gistpoint.attempts/1", attempt_rows(list(store.summaries_of(chosen))))
        _print_copies(store)
        return DONE
    first = next(found, None)
    if first is None:
        is_filtered = task or request != ListAttempts(last=request.last, all=request.all)
        which, hint = ("such attempts", "") if is_filtered else ("attempts", _BEGIN)
        print(f"There are no {which} yet.{hint}")
        return DONE
    most = request.last or (NEWEST if sys.stdout.isatty() and not request.all else None)
    counted = _FirstRows(chain([first], found), most)
    tasks = store_of_tasks()
    print_records(columns_of(tasks), counted)
    tasks.keep_listed()
    by_tests = by_tests_words(counted.standings)
    print(f"{solved_words(counted.results)}{f'; {by_tests}' if by_tests else ''}.")
    if counted.more:
        print(f"Only the newest {most} are listed; --last N lists more, and --all lists every attempt.")
    _print_copies(store)
    _print_piles(store, task)
    return DONE


def _print_piles(store: AttemptStore, task: str) -> None:
    from gistpoint.sessions.leases import piles  # would delay the rows of the table
    from gistpoint.sessions.served import KIND as MCP_SOLVER

    for pile in piles(store, MCP_SOLVER, SystemTime().utc_ms() - _DAY_MS, task):
        print(pile.words)


def _print_copies(store: AttemptStore) -> None:
    for copy, original in store.copies.items():
        print(f"gistpoint: Not counted: {visible_line(f'{copy} is a copy of {original}')}.", file=sys.stderr)


_BEGIN = " `gistpoint demo` starts one."


class _FirstRows:
    """The first `most` rows of a list. Iterating over them collects the results of ended attempts."""

    def __init__(self, rows: Iterator[ListedAttempt], most: int | None) -> None:
        self._rows, self._most = rows, most
        self.results: list[AttemptResult] = []
        self.standings: list[Standing | None] = []
        """The results and standings of the attempts that have ended."""
        self.more = False

    def __iter__(self) -> Iterator[ListedAttempt]:
        for row in islice(self._rows, self._most):
            if row.ended:
                self.results.append(row.result)
                self.standings.append(row.standing)
            yield row
        self.more = next(self._rows, None) is not None


def _wanted(request: ListAttempts, task: str) -> Callable[[ListedAttempt], bool]:
    """Return the condition for the requested attempts. Raises `UserError` for an invalid date."""
    tests: list[Callable[[ListedAttempt], bool]] = []
    if task:
        tests.append(lambda row: row.task_id == task)
    if request.participant:
        tests.append(lambda row: row.participant == request.participant)
    if request.model:
        tests.append(lambda row: request.model.casefold() in row.model.casefold())
    if request.since:
        since = _utc_ms(request.since)
        tests.append(lambda row: row.started_utc_ms >= since)
    if request.until:
        until = _utc_ms(request.until) + _DAY_MS
        tests.append(lambda row: row.started_utc_ms < until)
    if len(tests) < 2:
        return tests[0] if tests else lambda row: True
    return lambda row: all(test(row) for test in tests)


def _utc_ms(day: str) -> int:
    try:
        return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError as error:
        raise UserError(f"{day!r} is not a date.", hint="Give a day in UTC, such as 2026-05-31.") from error


def columns_of(tasks: TaskStore) -> tuple[Column[ListedAttempt], ...]:
    """Return the columns of `gistpoint attempt list`. A task that no longer exists is shown by its id.

    Only the tasks of the attempts that are shown are read.
    """

    @cache
    def words(task_id: str, mode: str) -> tuple[str, str]:
        task = tasks.listed_one(task_id)
        return (task_id[:12], mode) if task is None else (task.title, task.shown_mode)

    return (
        Column("attempt", attrgetter("attempt_id")),
        Column("task", lambda row: words(row.task_id, row.mode)[0]),
        Column("mode", lambda row: words(row.task_id, row.mode)[1]),
        Column("actor", attrgetter("actor")),
        Column("role", attrgetter("role")),
        Column("participant", lambda row: row.participant or "–"),
        Column("started", attrgetter("started")),
        Column("active", attrgetter("active")),
        Column("calls", attrgetter("calls")),
        Column("last", attrgetter("last")),
        Column("best", attrgetter("best")),
        Column("outcome", attrgetter("outcome")),
        Column("confirmation", attrgetter("confirmation")),
    )


LIST = CliCommand(
    ListAttempts,
    listing,
    OptionTable(
        {
            "task": option(f"only those at one task: {TASK_HELP}", metavar="TASK"),
            "participant": option("only those of one participant", metavar="CODE"),
            "model": option("only those of models whose name contains this", metavar="NAME"),
            "since": option("only those begun on this day or later (UTC)", metavar="DAY"),
            "until": option("only those begun on this day or earlier (UTC)", metavar="DAY"),
            "last": option(f"only the newest N (default: all, in a terminal {NEWEST})", metavar="N"),
            "all": option("all attempts, even in a terminal"),
            "json": JSON,
        },
        one_of=(("last", "all"),),
    ),
)
