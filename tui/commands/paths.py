"""`gistpoint paths`: where things are kept."""

from __future__ import annotations

import argparse

from gistpoint.core.locations import Locations
from gistpoint.tui.commands.output import print_json, print_table


def paths(options: argparse.Namespace) -> int:
    """Print every place; none is made by this."""
    locations = Locations.of_user()
    places = {
        "data": locations.data,
        "tasks": locations.tasks,
        "attempts": locations.attempts,
        "validations": locations.validations,
        "logs": locations.logs,
        "config": locations.config,
        "cache": locations.cache,
        "environments": locations.environments,
    }
    if options.json:
        print_json("gistpoint.paths/1", {name: str(path) for name, path in places.items()})
    else:
        print_table(["what", "where"], [[name, str(path)] for name, path in places.items()])
    return 0
