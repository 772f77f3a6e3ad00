"""`gistpoint admin paths`, `cache` and `clean`: where data are stored, and what the cache contains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from gistpoint.core.locations import Locations
from gistpoint.tui.commands.arguments import JSON, JsonWanted
from gistpoint.tui.commands.command import DONE
from gistpoint.tui.commands.options import CliCommand, OptionTable
from gistpoint.tui.commands.output import print_json, print_table

if TYPE_CHECKING:
    from gistpoint.sandbox.housekeeping import StoredItem


def paths(shown: JsonWanted) -> int:
    """Print the paths of all data, without creating any."""
    locations = Locations.of_user()
    places = {
        "data": locations.data,
        "tasks": locations.tasks,
        "attempts": locations.attempts,
        "validations": locations.validations,
        "glances": locations.glances,
        "judgements": locations.judgements,
        "external_results": locations.external_results,
        "logs": locations.logs,
        "config": locations.config,
        "cache": locations.cache,
        "environments": locations.environments,
    }
    if shown.json:
        print_json("gistpoint.paths/1", {name: str(path) for name, path in places.items()})
    else:
        print_table(["what", "where"], [[name, str(path)] for name, path in places.items()])
    return DONE


_MIB = 1 << 20


def listing(shown: JsonWanted) -> int:
    """Print the contents of the cache."""
    from gistpoint.sandbox import housekeeping

    _print(shown, housekeeping.kept(Locations.of_user().cache), "kept")
    return DONE


def clean(shown: JsonWanted) -> int:
    """Remove the contents of the cache, and print what was removed."""
    from gistpoint.sandbox import housekeeping

    _print(shown, housekeeping.clean(Locations.of_user().cache), "removed")
    return DONE


def _print(shown: JsonWanted, items: Sequence[StoredItem], word: str) -> None:
    total = sum(item.size for item in items)
    if shown.json:
        print_json("gistpoint.cache/1", {word: [asdict(item) for item in items], "bytes": total})
        return
    if items:
        rows = [[item.kind, item.name, f"{item.size / _MIB:.1f}", item.place] for item in items]
        print_table(["what", "name", "MiB", "where"], rows)
    print(f"{len(items)} {word}, {total / _MIB:.1f} MiB")


_SHOWN = OptionTable({"json": JSON})
PATHS = CliCommand(JsonWanted, paths, _SHOWN)
LIST = CliCommand(JsonWanted, listing, _SHOWN)
CLEAN = CliCommand(JsonWanted, clean, _SHOWN)
