"""`gistpoint admin paths`, `cache`, `clean`, `backup` and `restore`: where data is stored, and its backup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint import __version__
from gistpoint.core.locations import Locations, path_of
from gistpoint.core.requests import Count, Request
from gistpoint.core.text import plural
from gistpoint.tui.commands.arguments import JSON, JsonRequest
from gistpoint.tui.commands.command import DONE
from gistpoint.tui.commands.options import CliCommand, OptionTable, argument, option
from gistpoint.tui.commands.output import print_json, print_table, print_text
from gistpoint.tui.commands.progress import long_work

if TYPE_CHECKING:
    from gistpoint.sandbox.housekeeping import StoredItem


def paths(request: JsonRequest) -> int:
    """Print the paths of all data, without creating any. Return the exit code."""
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
    if request.json:
        print_json("gistpoint.paths/1", {name: str(path) for name, path in places.items()})
    else:
        print_table(["what", "where"], [[name, str(path)] for name, path in places.items()])
    return DONE


_MIB, _DAY_S = 1 << 20, 24 * 3600


def listing(request: JsonRequest) -> int:
    """Print the contents of the cache. Return the exit code."""
    from gistpoint.sandbox import housekeeping

    locations = Locations.of_user()
    _print(request, housekeeping.kept(locations.cache, _homes(locations)), "kept")
    return DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanCache(JsonRequest):
    """A request to empty the cache, or to remove what was not used for `unused` days."""

    unused: Count | None = None


def clean(request: CleanCache) -> int:
    """Remove and print the cache's contents, or those not used for `unused` days. Return the exit code."""
    from gistpoint.sandbox import housekeeping

    locations, unused_s = Locations.of_user(), float(request.unused or 0) * _DAY_S
    _print(request, housekeeping.clean(locations.cache, _homes(locations), unused_s), "removed")
    return DONE


def _homes(locations: Locations) -> list[Path]:
    return list(dict.fromkeys([locations.data, locations.config]))


def _print(request: JsonRequest, items: Sequence[StoredItem], word: str) -> None:
    total = sum(item.size for item in items)
    if request.json:
        print_json("gistpoint.cache/1", {word: [asdict(item) for item in items], "bytes": total})
        return
    if items:
        rows = [[item.kind, item.name, f"{item.size / _MIB:.1f}", item.place] for item in items]
        print_table(["what", "name", "MiB", "where"], rows)
    print(f"{len(items)} {word}, {total / _MIB:.1f} MiB")


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeBackup(Request):
    """A request to write the whole home to an archive."""

    path: str
    with_key: bool = False


def backup(request: MakeBackup) -> int:
    """Write the home to an archive, and check it. Return the exit code."""
    from gistpoint.sessions.backup import make_backup

    target = path_of(request.path)
    with long_work(kept="Nothing was written.") as work:
        made = make_backup(Locations.of_user(), target, __version__, work.run, with_key=request.with_key)
    print_text(f"{target}: {plural(made.files, 'file')}, {made.bytes / _MIB:.1f} MiB, written and checked.")
    if made.left_out:
        print_text(f"Left out: {plural(made.left_out, 'file')}: links, or files that vanished meanwhile.")
    if made.with_key:
        print_text("It contains the key of this machine: whoever has it can forge records. Keep it safe.")
    else:
        print_text("The key of this machine is not in it; --with-key includes it.")
    return DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreBackup(Request):
    """A request to restore a home from an archive."""

    path: str
    replace: bool = False


def restore(request: RestoreBackup) -> int:
    """Restore a home from an archive, completely or not at all. Return the exit code."""
    from gistpoint.sessions.backup import restore_backup

    locations = Locations.of_user()
    with long_work(kept="The home is unchanged.") as work:
        found = restore_backup(
            locations, path_of(request.path), __version__, work.run, replace=request.replace
        )
    print_text(f"Restored {plural(found.files, 'file')}, {found.bytes / _MIB:.1f} MiB, to {locations.data}.")
    for folder in found.aside:
        print_text(f"What was there before is in {folder}.")
    if not found.with_key:
        print_text("The backup contains no key: records of other machines can be read, but not checked here.")
    return DONE


_ARCHIVE = argument("PATH", "the archive, such as home.tar.zst")
BACKUP = CliCommand(
    MakeBackup,
    backup,
    {
        "path": _ARCHIVE,
        "with_key": option("include the key by which this machine recognises its own records"),
    },
    about=(
        "Writes tasks, attempts, runs, reviews and settings to one archive, and checks it. Attempts may be"
        " open meanwhile. Caches and the folders of studies are not part of it."
    ),
)
RESTORE = CliCommand(
    RestoreBackup,
    restore,
    {"path": _ARCHIVE, "replace": option("move what is in the home aside, to a folder next to it")},
    about=(
        "Restores what `gistpoint admin backup` wrote. The archive is unpacked and checked first, so the"
        " home is either unchanged or restored as a whole."
    ),
)
_SHOWN = OptionTable({"json": JSON})
PATHS = CliCommand(JsonRequest, paths, _SHOWN)
LIST = CliCommand(JsonRequest, listing, _SHOWN)
CLEAN = CliCommand(
    CleanCache,
    clean,
    {
        "unused": option("remove only what has not been used for this many days", metavar="DAYS"),
        "json": JSON,
    },
)
