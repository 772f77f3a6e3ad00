"""Long work of a command, shown on a screen in a terminal and as lines without one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TypeVar

from gistpoint.core.errors import CancelledError
from gistpoint.core.locations import Locations
from gistpoint.core.running import RunContext
from gistpoint.tui.commands.output import interactive
from gistpoint.tui.commands.progress import long_work
from gistpoint.tui.object_graph import build_services

Result = TypeVar("Result")


def add_plain(parser: argparse.ArgumentParser) -> None:
    """Add `--plain`."""
    parser.add_argument("--plain", action="store_true", help="lines of text in a terminal too, in place of the screen")


def watched(
    options: argparse.Namespace, work: Callable[[RunContext], Result], *, kept: str, stays: bool = True
) -> Result:
    """Do the work and show its progress; return what it returns, and raise what it raises.

    `stays` keeps the screen after the work, until it is left. Without a terminal, and with `--plain`, the progress goes
    to standard error, and with `--json` nowhere. Who leaves the screen or presses Ctrl+C stops the work: raises
    `CancelledError` with a sentence of what is `kept`.
    """
    if options.plain or getattr(options, "json", False) or not interactive():
        with long_work(options, kept=kept) as at_work:
            return work(at_work.run)
    from gistpoint.tui.campaign_app import CampaignApp

    app = CampaignApp(Locations.of_user(), work, lambda: build_services(options), stays=stays)
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
        raise CancelledError(f"Stopped. {kept}") from error
