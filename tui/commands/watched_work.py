"""Does the long work of a command and shows its progress, on a screen or as lines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from gistpoint.core.errors import CancelledError
from gistpoint.core.locations import Locations
from gistpoint.core.requests import IsolationChoice
from gistpoint.core.running import RunContext
from gistpoint.object_graph import build_services
from gistpoint.tui.commands.output import interactive
from gistpoint.tui.commands.progress import long_work

Result = TypeVar("Result")


def watched(
    work: Callable[[RunContext], Result],
    *,
    isolation: IsolationChoice,
    plain: bool,
    kept: str,
    quiet: bool = False,
    stays: bool = True,
) -> Result:
    """Do the work and show its progress. Return its result, or raise its exception.

    The screen stays open after the work if `stays` is set. Without a terminal, or if `plain`, the progress is
    printed to standard error, and if `quiet`, it is not shown. Leaving the screen, or Ctrl+C, stops the work
    and raises `CancelledError` with a sentence on what is `kept`.
    """
    if plain or quiet or not interactive():
        with long_work(quiet=quiet, kept=kept) as at_work:
            return work(at_work.run)
    from gistpoint.tui.campaign_app import CampaignApp

    app = CampaignApp(Locations.of_user(), work, lambda: build_services(isolation), stays=stays)
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
