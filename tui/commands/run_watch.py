"""`gistpoint runs watch`: a live list of runs while they are being written, on a screen or as lines."""

from __future__ import annotations

import json
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.core.login import login_name
from gistpoint.core.readable import time_of_day, utc_datetime
from gistpoint.core.requests import Request, ValueBounds
from gistpoint.core.text import plural, visible_line
from gistpoint.sessions.runs.opening import left_out_words
from gistpoint.sessions.runs.watching import FolderWatch, News, Report
from gistpoint.tui.commands.arguments import READ_AS, read_files_as
from gistpoint.tui.commands.command import DONE
from gistpoint.tui.commands.options import CliCommand, argument, option
from gistpoint.tui.commands.output import interactive

_POLL_S = 1.0
"""Seconds between two checks of the files."""
_PRINTED = frozenset({News.NEW, News.ENDED, News.FAILED, News.QUIET, News.GONE, News.UNREAD})


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRuns(Request):
    """A request to watch the runs in files and folders."""

    paths: tuple[str, ...]
    plain: bool = False
    json: bool = False
    seconds: Annotated[float | None, ValueBounds(above=0)] = None
    reviewer: str = ""
    blind: bool = False
    read_as: str = ""


def watch(request: WatchRuns) -> int:
    """Show the runs on a screen, or print a line for each piece of news, until stopped or `seconds` are over.

    Return the exit code. Raises `UserError` if a path does not exist, and if lines, which name outcomes, are
    requested for a blind review.
    """
    for path in request.paths:
        if not Path(path).exists():
            raise UserError(f"There is no file or folder called {path!r}.")
    read_files_as(request.read_as)
    if request.plain or request.json or request.seconds is not None or not interactive():
        if request.blind:
            raise UserError("--blind is only for the screen: lines name outcomes.", hint="Leave it out.")
        return _print_news(request)
    from gistpoint.tui.commands.review import review_settings
    from gistpoint.tui.review_app import ReviewApp

    locations = Locations.of_user()
    settings = review_settings(locations, request.reviewer or login_name(), blind=request.blind)

    def load() -> Any:
        from gistpoint.tui.screens.review.reading_runs import row_reader
        from gistpoint.tui.screens.review.runs import RunsScreen
        from gistpoint.tui.screens.review.watching import ListWatch

        paths = list(request.paths)
        return partial(RunsScreen, paths, settings, watch=ListWatch(paths, settings, row_reader))

    return ReviewApp(locations, load, request.paths).run_to_exit_code()


def _print_news(request: WatchRuns) -> int:
    """Print lines until the seconds of the request are over, or until Ctrl+C."""
    found = FolderWatch(request.paths)
    until, left_out = time.monotonic() + (request.seconds or math.inf), 0
    while True:
        is_beginning = not found.complete
        _print(found.look(), as_json=request.json, quiet=is_beginning and not request.json)
        if is_beginning and found.complete and not request.json:
            print(_beginning(found), flush=True)
        if found.left_out != left_out:
            left_out = found.left_out
            print(f"gistpoint: {left_out_words(left_out)}", file=sys.stderr, flush=True)
        left = min(_POLL_S, until - time.monotonic())
        if left <= 0:
            return DONE
        _pause(left)


def _pause(seconds: float) -> None:
    time.sleep(seconds)


def _beginning(found: FolderWatch) -> str:
    """Return a line about the runs that were there when the watch began."""
    runs = [run for run in found.runs.values() if run.listed.header is not None]
    counts = Counter(run.state.value for run in runs)
    parts = [f"{count:,} {state}" for state, count in sorted(counts.items())]
    return f"Watching {plural(len(runs), 'run')}{': ' if parts else ''}{', '.join(parts)}."


def _print(reports: Sequence[Report], *, as_json: bool, quiet: bool) -> None:
    for report in () if quiet else reports:
        if as_json:
            print(json.dumps(_record(report)), flush=True)
        elif report.news in _PRINTED:
            print(_line(report), flush=True)


def _line(report: Report) -> str:
    """Return a line with the time, the news, the run, its task, its recorded end and its number of steps."""
    run, header = report.run, report.run.listed.header
    at = time_of_day(round(1000 * time.time()))
    if header is None:
        return visible_line(f"{at}  {report.news.value:<8}  {run.listed.name}: {run.listed.problem}")
    facts = [header.task, header.verdict, header.exit_status]
    steps = [] if header.step_count is None else [plural(header.step_count, "step")]
    return visible_line(
        "  ".join([at, f"{report.news.value:<8}", run.listed.name, *filter(None, facts), *steps])
    )


def _record(report: Report) -> dict[str, Any]:
    run, header = report.run, report.run.listed.header
    return {
        "schema": "gistpoint.run-news/1",
        "news": report.news.value,
        "run": run.listed.name,
        "state": run.state.value,
        "changed": utc_datetime(round(1000 * run.changed_at)).isoformat(timespec="milliseconds"),
        "task": None if header is None else header.task,
        "verdict": None if header is None else header.verdict,
        "exit_status": None if header is None else header.exit_status,
        "steps": None if header is None else header.step_count,
        "problem": run.listed.problem or run.warning or None,
    }


WATCH = CliCommand(
    WatchRuns,
    watch,
    {
        "paths": argument("FOLDER", "folders or files of runs"),
        "plain": option("print lines, even on a terminal"),
        "json": option("print a JSON object per line"),
        "seconds": option("print lines for this many seconds, then end", "--for", metavar="SECONDS"),
        "reviewer": option("the reviewer's pseudonym (default: the login)", metavar="NAME"),
        "blind": option("hide the model and the outcome until the verdict"),
        "read_as": READ_AS,
    },
    about=(
        "Lists runs while programs write them, new failures first. A run has failed if its recorded outcome"
        " or end reason says so, or if its last step is an error and nothing follows. Without a terminal,"
        " prints a line whenever a run begins, ends, fails, stops growing or vanishes."
    ),
)
