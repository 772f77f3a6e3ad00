"""`gistpoint review`: the screen for recorded runs."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.tui.commands.output import interactive

if TYPE_CHECKING:
    from textual.screen import Screen


class NoTerminalError(UserError):
    """The screen needs a terminal."""


def review(options: argparse.Namespace) -> int:
    """Open the list of runs, or a run where one alone was named."""
    if not interactive():
        raise NoTerminalError("The review screen needs a terminal.", hint="gistpoint show RUN prints a run.")
    from gistpoint.tui.review_app import ReviewApp

    paths: list[str] = options.paths
    return ReviewApp(Locations.of_user(), partial(_screen, paths)).run_to_exit_code()


def _screen(paths: list[str]) -> Screen[None]:
    from gistpoint.tui.screens.review.screen import ReviewScreen

    def opening():
        from gistpoint.sessions.runs.opening import open_run

        return open_run(paths[0])

    return ReviewScreen(paths[0], opening)
