"""Long work of a command, shown on a screen in a terminal and as lines without one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TypeVar

from gistpoint.core.errors import CancelledError
from gistpoint.core.locations import Locations
from gistpoint.core.running import RunContext
from gistpoint.core.text import plural
from gistpoint.tui.commands.output import ProgressLine, interactive
from gistpoint.tui.object_graph import build_services

Result = TypeVar("Result")


def add_plain(parser: argparse.ArgumentParser) -> None:
    """Add `--plain`."""
    parser.add_argument("--plain", action="store_true", help="lines of text in a terminal too, in place of the screen")


def watched(options: argparse.Namespace, work: Callable[[RunContext], Result]) -> Result:
    """Do the work and show its progress; return what it returns, and raise what it raises.

    Without a terminal, and with `--plain`, the progress goes to standard error line by line. Who leaves the screen
    stops the work: raises `CancelledError`, after the ids of the tasks that were kept are printed.
    """
    if options.plain or not interactive():
        with ProgressLine() as progress:
            return work(RunContext(progress=progress.making))
    from gistpoint.tui.campaign_app import CampaignApp

    app = CampaignApp(Locations.of_user(), work, lambda: build_services(options))
    try:
        app.run_to_exit_code()
    except BaseException:
        app.stop()
        raise
    if app.at_work:
        print("stopping …", file=sys.stderr)
    try:
        return app.result()
    except CancelledError as error:
        kept = app.view.shown.kept
        for task in kept:
            print(task.id)
        goes_on = app.view.shown.campaign is not None  # a single task begins anew
        told = f" What was made is kept ({plural(len(kept), 'task')}), and the same command goes on." if goes_on else ""
        raise CancelledError(f"Stopped.{told}") from error
