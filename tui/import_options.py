"""The command line of `gistpoint task import`."""

from __future__ import annotations

import argparse


def add_import_options(parser: argparse.ArgumentParser) -> None:
    """Add what `task import` takes, besides the isolation."""
    parser.add_argument("data_set", choices=["breakpoint"], help="whose form the records have")
    parser.add_argument("file", nargs="?", metavar="FILE", help="JSON or JSON lines; without it, those that wait")
    parser.add_argument(
        "--sources", metavar="FILE.toml", help="where repositories are to be had, and what their suites need"
    )
    parser.add_argument("--only", metavar="TEXT", help="records whose repository, file or function holds this text")
    parser.add_argument("--pending", action="store_true", help="list the records that wait for their repository")
    parser.add_argument(
        "--min-failing", type=int, default=5, metavar="N", help="failing tests a task needs (default: 5)"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


DESCRIPTION = (
    "Makes tasks of the public data set's records: each repository is fetched, its suite run three times, and every "
    "record proven on it. A record whose repository can't be had is kept, and tried again by the next call. "
    "Exit code 1 where a record was refused or waits."
)
