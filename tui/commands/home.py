"""`gistpoint` without a command: the home screen, or the tasks as text."""

from __future__ import annotations

import argparse

from gistpoint.tui.cli import build_services
from gistpoint.tui.commands.output import interactive


def home(options: argparse.Namespace) -> int:
    """Open the home screen; without a terminal print the tasks."""
    if not interactive():
        from gistpoint.tui.commands.tasks import listing

        return listing(argparse.Namespace(json=False))
    from gistpoint.tui.app import GistpointApp

    return GistpointApp(build_services(options)).run_to_exit_code()
