"""`gistpoint cache list` and `clean`: what can be built again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from gistpoint.core.locations import Locations
from gistpoint.sandbox import housekeeping
from gistpoint.sandbox.housekeeping import Kept
from gistpoint.tui.cli import DONE
from gistpoint.tui.commands.output import print_json, print_table

_MIB = 1 << 20


def listing(options: argparse.Namespace) -> int:
    """Print what is kept."""
    _print(options, housekeeping.kept(Locations.of_user().cache), "kept")
    return DONE


def clean(options: argparse.Namespace) -> int:
    """Remove it and print what is gone."""
    _print(options, housekeeping.clean(Locations.of_user().cache), "removed")
    return DONE


def _print(options: argparse.Namespace, items: Sequence[Kept], word: str) -> None:
    total = sum(item.size for item in items)
    if options.json:
        print_json("gistpoint.cache/1", {word: [asdict(item) for item in items], "bytes": total})
        return
    if items:
        rows = [[item.kind, item.name, f"{item.size / _MIB:.1f}", item.place] for item in items]
        print_table(["what", "name", "MiB", "where"], rows)
    print(f"{len(items)} {word}, {total / _MIB:.1f} MiB")
