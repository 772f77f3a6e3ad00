"""`gistpoint show`: a recorded run, one of its steps, its profile or its times, without a screen."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass

from gistpoint.core.errors import UserError
from gistpoint.core.requests import Count, Request
from gistpoint.core.text import plural
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.tui.commands.arguments import READ_AS, read_files_as
from gistpoint.tui.commands.options import CliCommand, argument, option, reader_of
from gistpoint.tui.commands.output import print_text
from gistpoint.tui.commands.run_files import settled_document
from gistpoint.tui.commands.runs import RUN_HELP, open_named, warn_if_doubtful

_LONGEST_SHOWN = 20_000
"""The number of characters above which a step's text is cut in the middle, without `--whole`."""
_CONTINUED = "\n" + " " * 13
"""The line break and the indent before each further line of a printed fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowRun(Request):
    """A request to print a run, or one of its steps."""

    recorded: str
    step: int | None = None
    json: bool = False
    profile: bool = False
    times: bool = False
    csv: bool = False
    whole: bool = False
    read_as: str = ""


def show(request: ShowRun) -> int:
    """Print a run, one of its steps, its profile or its times. Return 1 if the run is doubtful.

    Raises `UserError` for a step that does not exist, and for options that exclude each other.
    """
    read_files_as(request.read_as)
    if request.profile and request.step is not None:
        raise UserError(
            "--profile shows the whole run, but --step shows one step.", hint="Give one of the two."
        )
    if request.whole and (request.step is None or request.json):
        raise UserError("--whole is about the text of one step.", hint="Give --step too, and not --json.")
    if request.times or request.csv:
        return _print_times(request)
    document = open_named(request.recorded)
    if request.step is None:
        settled_document(document)
    if request.profile:
        from gistpoint.tui.commands.profiles import print_profile

        print_profile(document, as_json=request.json)
        return warn_if_doubtful(document)
    if request.step is not None and not document.ensure(request.step - 1):
        count = document.step_count
        raise UserError(f"{request.recorded} has {plural(count, 'step')}: there is no step {request.step}.")
    _print(document, request)
    return warn_if_doubtful(document)


def _print(document: RunDocument, request: ShowRun) -> None:
    """Print a run or one of its steps, as text or as ATIF."""
    if not request.json:
        from gistpoint.sessions.runs.rendering import show as lines_of

        limit = None if request.whole else _LONGEST_SHOWN
        for line in lines_of(document, request.step, limit=limit):
            # Further lines of a header's value are indented, so that none of them looks like another fact.
            print_text(line if request.step is not None else line.replace("\n", _CONTINUED))
    elif request.step is None:
        from gistpoint.sessions.exports.atif import atif_text

        sys.stdout.writelines(atif_text(document))
    else:
        from gistpoint.sessions.exports.atif import atif_step

        document.build()
        print(json.dumps(atif_step(document, request.step - 1), indent=2))


def _print_times(request: ShowRun) -> int:
    from gistpoint.tui.commands.times import print_times

    other = request.profile or request.step is not None or not request.times
    if other or (request.csv and request.json):
        raise UserError(
            "The times of a run are printed alone, as text, CSV or JSON.",
            hint="Give --times, --times --csv or --times --json, and nothing else.",
        )
    document = settled_document(open_named(request.recorded))
    print_times(document, as_json=request.json, as_csv=request.csv)
    return warn_if_doubtful(document)


def _step_number(text: str) -> int:
    """Return the number of a step. Raises `argparse.ArgumentTypeError` if the text is not one."""
    try:
        return _count(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a step: a step is given by its number, counted from 1, as `gistpoint show RUN`"
            " prints it"
        ) from error


_count: Callable[[str], int] = reader_of(Count)
SHOW = CliCommand(
    ShowRun,
    show,
    {
        "recorded": argument("RUN", RUN_HELP),
        "step": option("everything in step N, counted from 1", metavar="N", read=_step_number),
        "json": option("the run, or the step, as ATIF; a profile or times as JSON"),
        "profile": option("the work by time, waste, test runs and context"),
        "times": option("how long the model and each tool took"),
        "csv": option("with --times, a line for each step"),
        "whole": option("with --step, all of each text, however long"),
        "read_as": READ_AS,
    },
)
