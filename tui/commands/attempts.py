"""`gistpoint attempt`: list, show, accept, reject and export attempts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import chain, islice
from typing import Any

from gistpoint import __version__
from gistpoint.core.attempts.clock import ClockActivity, SystemTime
from gistpoint.core.attempts.results import AttemptResult, Standing, by_tests_words, solved_words
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.confirming import confirmation_lines, confirmation_words
from gistpoint.core.kinds.titles import author_title
from gistpoint.core.locations import Locations, path_of
from gistpoint.core.readable import duration, stamp
from gistpoint.core.requests import Count, Request
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import plural, visible_line
from gistpoint.sessions.agentruns.scaffolding import LOGS
from gistpoint.sessions.annotations.keys import attempt_key
from gistpoint.sessions.annotations.reviewer import ReviewStore
from gistpoint.sessions.annotations.reviews import RunVerdictGiven
from gistpoint.sessions.annotations.settling import verdicts
from gistpoint.sessions.attempt_outcomes import (
    ATTEMPT_WRITERS,
    AcceptPass,
    RejectPass,
    accept_pass,
    attempt_row,
    attempt_rows,
    reject_pass,
)
from gistpoint.sessions.attempt_summary import (
    AttemptSummary,
    ListedAttempt,
    actor_words,
    hidden_words,
    outcome,
    score_words,
)
from gistpoint.sessions.attempts import ATTEMPTS_INDEX, AttemptStore
from gistpoint.sessions.blinding import Blinding
from gistpoint.sessions.exports.registry import NAMES, exporter
from gistpoint.sessions.heads import HeadOrigin
from gistpoint.sessions.leases import piles
from gistpoint.sessions.served import KIND as MCP_SOLVER
from gistpoint.sessions.task_documents import TASKS_INDEX
from gistpoint.sessions.tasks import TaskStore, TaskTitles
from gistpoint.tui.commands.arguments import JSON, TASK_HELP
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, OptionTable, argument, option
from gistpoint.tui.commands.output import print_json, print_records, print_table, write_whole
from gistpoint.tui.tables import Column
from gistpoint.tui.titles import mode_words

_DAY_MS = 24 * 3_600_000
"""A day, in milliseconds. Older attempts are not reported as having piled up."""


def attempt_store() -> AttemptStore:
    """Return the store of the user's attempts."""
    locations = Locations.of_user()
    return AttemptStore(
        locations.attempts,
        SystemTime(),
        __version__,
        locations.reviews,
        index=locations.lists / ATTEMPTS_INDEX,
        blinding=Blinding.of_process,
    )


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

    Without a terminal, rows are printed while others are still read, except as JSON.
    """
    store = attempt_store()
    task = task_named(request.task).id if request.task else ""
    found = filter(_wanted(request, task), store.listed())
    if request.json:
        chosen = {row.attempt_id for row in islice(found, request.last)}
        every = [summary for summary in store.summaries() if summary.attempt_id in chosen]
        print_json("gistpoint.attempts/1", attempt_rows(every))
        _print_copies(store)
        return DONE
    first = next(found, None)
    if first is None:
        is_filtered = task or request != ListAttempts(last=request.last, all=request.all)
        which, hint = ("such attempts", "") if is_filtered else ("attempts", _BEGIN)
        print(f"There are no {which} yet.{hint}")
        return DONE
    most = request.last or (NEWEST if sys.stdout.isatty() and not request.all else None)
    counted = _Counted(chain([first], found), most)
    print_records(columns_of(store_of_tasks()), counted)
    by_tests = by_tests_words(counted.standings)
    print(f"{solved_words(counted.results)}{f'; {by_tests}' if by_tests else ''}.")
    if counted.more:
        print(f"Only the newest {most} are listed; --last N lists more, and --all lists every attempt.")
    _print_copies(store)
    for pile in piles(store, MCP_SOLVER, SystemTime().utc_ms() - _DAY_MS, task):
        print(pile.words)
    return DONE


def _print_copies(store: AttemptStore) -> None:
    for copy, original in store.copies.items():
        print(f"gistpoint: Not counted: {visible_line(f'{copy} is a copy of {original}')}.", file=sys.stderr)


_BEGIN = " `gistpoint demo` starts one."


class _Counted:
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
    return lambda row: all(test(row) for test in tests)


def _utc_ms(day: str) -> int:
    try:
        return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError as error:
        raise UserError(f"{day!r} is not a date.", hint="Give a day in UTC, such as 2026-05-31.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowAttempt(Request):
    """A request to print an attempt."""

    attempt: str
    json: bool = False


def show(request: ShowAttempt) -> int:
    """Print an attempt. Return 1 if its journal is damaged."""
    summary = attempt_store().summary(request.attempt)
    reviews = verdicts(_reviews().book, attempt_key(summary.attempt_id))
    if request.json:
        print_json("gistpoint.attempt/1", _attempt_values(summary, reviews))
        return NEGATIVE if summary.problem else DONE
    if summary.withheld:
        print_table(["what", "value"], [*_first_rows(summary), *_time_rows(summary.state)])
        print(hidden_words(summary))
        return NEGATIVE if summary.problem else DONE
    calls = summary.state.calls
    print_table(["what", "value"], [*_attempt_rows(summary, reviews), *_log_rows(summary)])
    print_table(
        ["call", "tool", "refused", "answer begins"],
        [
            [c.call_id, c.tool, "yes" if c.refused else "", (c.text or "").partition("\n")[0][:80]]
            for c in calls
        ],
    )
    return NEGATIVE if summary.problem else DONE


def _attempt_values(summary: AttemptSummary, reviews: Sequence[RunVerdictGiven]) -> dict[str, Any]:
    state = summary.state
    calls = [
        {
            "call_id": c.call_id,
            "tool": c.tool,
            "arguments": dict(c.arguments),
            "refused": c.refused,
            "text": c.text,
        }
        for c in state.calls
    ]
    review_rows = [
        {"reviewer": g.reviewer, "verdict": g.verdict.value, "reasons": [*map(str, g.reasons)], "why": g.note}
        for g in reviews
    ]
    submitted = [
        {
            "number": s.number,
            "passed": s.solved,
            "solved": s.solved and not s.doubts and not summary.problem,
            "score": s.score,
            "suspicious": [*s.doubts],
            "flags": [*s.flags],
        }
        for s in state.submissions
    ]
    more = {"reviews": review_rows, "submitted": submitted, "calls": calls, "notes": state.notes}
    if summary.withheld:
        more = dict.fromkeys(more)
    return {**attempt_row(summary), **more}


def _first_rows(summary: AttemptSummary) -> list[list[str]]:
    return [
        ["attempt", summary.attempt_id],
        ["task", summary.task_id[:12]],
        ["title", task_titles()(summary.task_id)],
        *(
            [["branch", f"of {summary.branch}: another machine continued the attempt"]]
            if summary.branch
            else []
        ),
        ["actor", actor_words(summary)],
        ["role", summary.role],
        ["participant", summary.participant or "–"],
        ["started", stamp(summary.started_utc_ms)],
        ["outcome", outcome(summary)],
        ["record", _record(summary)],
    ]


def _time_rows(state: AttemptState) -> list[list[str]]:
    times = [[activity.value, duration(state.clock.of(activity))] for activity in ClockActivity]
    return [*times, ["active", duration(state.clock.active)]]


def _attempt_rows(summary: AttemptSummary, reviews: Sequence[RunVerdictGiven]) -> list[list[str]]:
    state = summary.state
    return [
        *_first_rows(summary),
        *([["suspicious", ", ".join(state.suspicious)]] if state.suspicious else []),
        *_confirmation_rows(state),
        *([["flags", ", ".join(state.last.flags)]] if state.last is not None and state.last.flags else []),
        *[["reviewed", f"{given.reviewer}: {_verdict_words(given)}"] for given in reviews],
        *_time_rows(state),
        ["tool uses left", f"{state.remaining.tool_uses} of {state.budgets.tool_uses}"],
        ["submissions left", f"{state.remaining.submissions} of {state.budgets.submissions}"],
        ["last score", score_words(state.last)],
        ["best score", score_words(state.best)],
        *[
            [f"gist: {key}", json.dumps(value)]
            for key, value in state.header.extra.get("gist_settings", {}).items()
        ],
    ]


def _log_rows(summary: AttemptSummary) -> list[list[str]]:
    """Return the rows for the lease, the scaffold, and the logs that the scaffold has written."""
    solver = summary.state.header.solver or {}
    rows = [[name, str(solver[name])] for name in ("lease",) if name in solver]
    scaffold = solver.get("scaffold")
    if isinstance(scaffold, Mapping):
        rows.append(["framework", f"{scaffold.get('name')} {scaffold.get('version')}"])
        folder = Locations.of_user().attempts / summary.attempt_id / LOGS
        logs = sorted(folder.iterdir()) if folder.is_dir() else []
        rows += [["its own log", str(path)] for path in logs if path.suffix in (".json", ".jsonl")]
    return rows


def _confirmation_rows(state: AttemptState) -> list[list[str]]:
    """Return the rows for the confirmation of a pass, and for marks in its text that no longer matter."""
    if state.confirmation is None:
        words = confirmation_words(state)
        return [["confirmation", words]] if words else []
    notes = [mark for mark in state.marks if mark not in state.suspicious]
    rows = [["confirmation", line] for line in confirmation_lines(state.confirmation)]
    return [*rows, ["seen in its text", ", ".join(notes)]] if notes else rows


def _record(summary: AttemptSummary) -> str:
    if summary.problem:
        return f"damaged, for reading only: {summary.problem}"
    if summary.kept is None:
        return "intact; its head was not kept here: the attempt was made elsewhere, or by an earlier version"
    if summary.kept.origin is HeadOrigin.UNSIGNED:
        return "intact; its head was kept before heads were authenticated, so anybody could have written it"
    if summary.kept.origin is HeadOrigin.OTHER:
        return "intact; its head was kept by another machine, so it can't be checked here"
    if not summary.witnessed:
        return f"intact; its head is kept here from event {summary.kept.since} on"
    return "intact; its head was kept here from the start"


def accept(request: AcceptPass) -> int:
    """Record that a pass was read and counts. Return the exit code."""
    return _print_settled(accept_pass(attempt_store(), _reviews(), request))


def reject(request: RejectPass) -> int:
    """Record that a pass was read and does not count. Return the exit code."""
    return _print_settled(reject_pass(attempt_store(), _reviews(), request))


def _print_settled(summary: AttemptSummary) -> int:
    others = " Reviewers do not agree." if summary.accepted is None else ""
    print(f"{summary.attempt_id}: {outcome(summary)}.{others}")
    return DONE


def _reviews() -> ReviewStore:
    return ReviewStore(Locations.of_user().reviews, SystemTime())


def _verdict_words(given: RunVerdictGiven) -> str:
    reasons = f" ({', '.join(given.reasons)})" if given.reasons else ""
    return f"{given.verdict.value.replace('_', ' ')}{reasons}{': ' + given.note if given.note else ''}"


def task_named(name: str) -> Task:
    """Return the user's or demo's task with a name. Raises `TaskError` if there is none or more than one."""
    locations = Locations.of_user()
    return TaskStore(locations.tasks, demo=locations.demo, index=locations.lists / TASKS_INDEX).find(name)


def task_titles() -> TaskTitles:
    """Return a function from a task's id to its title for authors, for the user's and the demo's tasks."""
    return TaskTitles(store_of_tasks())


def store_of_tasks() -> TaskStore:
    """Return the store of the user's and the demo's tasks."""
    locations = Locations.of_user()
    return TaskStore(locations.tasks, demo=locations.demo, index=locations.lists / TASKS_INDEX)


def columns_of(tasks: TaskStore) -> tuple[Column[ListedAttempt], ...]:
    """Return the columns of `gistpoint attempt list`. A task that no longer exists is shown by its id.

    Only the tasks of the attempts that are shown are read.
    """

    @cache
    def words(task_id: str, mode: str) -> tuple[str, str]:
        task = tasks.stored(task_id)
        return (task_id[:12], mode) if task is None else (author_title(task), mode_words(task))

    return (
        Column("attempt", lambda row: row.attempt_id),
        Column("task", lambda row: words(row.task_id, row.mode)[0]),
        Column("mode", lambda row: words(row.task_id, row.mode)[1]),
        Column("actor", lambda row: row.actor),
        Column("role", lambda row: row.role),
        Column("participant", lambda row: row.participant or "–"),
        Column("started", lambda row: row.started),
        Column("active", lambda row: row.active),
        Column("calls", lambda row: row.calls),
        Column("last", lambda row: row.last),
        Column("best", lambda row: row.best),
        Column("outcome", lambda row: row.outcome),
        Column("confirmation", lambda row: row.confirmation),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportAttempts(Request):
    """A request to export the named attempts, or all if none is named."""

    attempts: tuple[str, ...] = ()
    to: str
    output: str | None = None


def export(request: ExportAttempts) -> int:
    """Export attempts. Return 1 if one of them is damaged; it is exported nevertheless.

    Raises `UserError` if there are none, or if they don't suit the format or the output.
    """
    store = attempt_store()
    chosen = [store.summary(name) for name in dict.fromkeys(request.attempts)] or list(store.summaries())
    if not chosen:
        raise UserError("There are no attempts yet.")
    if (write := ATTEMPT_WRITERS.get(request.to)) is None:
        return _as_run(request, chosen)
    data = write(store, chosen)
    if request.output is not None:
        write_whole(path_of(request.output), [data])
        for summary in chosen:
            problem = f"  {summary.problem}" if summary.problem else ""
            print(
                f"{summary.attempt_id}  {plural(summary.state.events, 'event')}  head {summary.head}{problem}"
            )
    elif request.to == "archive":
        raise UserError("An archive can't be printed on a terminal.", hint="Name a file with -o PATH.")
    else:
        sys.stdout.write(data.decode("utf-8"))
    return NEGATIVE if any(summary.problem for summary in chosen) else DONE


def _as_run(request: ExportAttempts, chosen: Sequence[AttemptSummary]) -> int:
    from gistpoint.tui.commands.runs import ConvertRun, convert

    if request.to in NAMES and len(chosen) > 1:
        raise UserError(
            f"{request.to} takes a single attempt, but {len(chosen)} are selected.", hint="Name one of them."
        )
    exporter(request.to)
    summary = chosen[0]
    code = convert(ConvertRun(recorded=summary.attempt_id, to=request.to, output=request.output))
    if summary.problem:
        print(f"gistpoint: {summary.attempt_id} is damaged. {visible_line(summary.problem)}", file=sys.stderr)
    return NEGATIVE if summary.problem else code


_ATTEMPT = argument("ATTEMPT", "id or its beginning")
_SETTLED = OptionTable(
    {
        "attempt": _ATTEMPT,
        "why": option("what you saw in the pass", metavar="TEXT"),
        "reviewer": option("who read it (default: the login)", metavar="NAME"),
    }
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
            "last": option(f"at most so many, the newest (on a terminal, {NEWEST})", metavar="N"),
            "all": option("every one, also on a terminal"),
            "json": JSON,
        },
        one_of=(("last", "all"),),
    ),
)
SHOW = CliCommand(ShowAttempt, show, {"attempt": _ATTEMPT, "json": JSON})
ACCEPT = CliCommand(
    AcceptPass,
    accept,
    _SETTLED,
    about="Writes a review which records that you have read the attempt's pass and that it was earned.",
)
REJECT = CliCommand(
    RejectPass,
    reject,
    _SETTLED,
    about=(
        "Writes a review which records that you have read the attempt's pass and that it does not count"
        " as solved."
    ),
)
EXPORT = CliCommand(
    ExportAttempts,
    export,
    {
        "attempts": argument("ATTEMPT", "ids or their beginnings (default: all)"),
        "to": option(
            f"{', '.join(ATTEMPT_WRITERS)}; for a single attempt also {', '.join(NAMES)}", metavar="FORMAT"
        ),
        "output": option("the file to write", "-o", "--output", metavar="PATH"),
    },
    about=(
        "Without -o a table goes to standard output. The exit code is 1 if an attempt is damaged; it is still"
        " written."
    ),
)
