"""The options of `gistpoint task generate`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from gistpoint.tui.argument_types import counted, natural
from gistpoint.tui.model_options import add_model_options


def add_generate(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    isolation: Callable[[argparse.ArgumentParser], None],
) -> argparse.ArgumentParser:
    """Add the command to those of `task` and return its parser; `isolation` adds the options of every run of tests."""
    parser = commands.add_parser(
        "generate",
        help="make many tasks of one or more libraries",
        description="Gets to know each library once, then tries its functions in an order that the seed decides until "
        "enough are proven to make a task. The same command goes on where it was stopped; the same seed makes the same "
        "tasks, whatever the number of workers. Exit code 1 where a source gave fewer tasks than wanted.",
    )
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="name==version, a folder, or git+URL@commit")
    parser.add_argument("--batch", metavar="FILE.toml", help="sources with their arguments, requirements and stars")
    parser.add_argument(
        "--mode", choices=["remove", "discovery", "multi"], default="discovery",
        help="a body deleted, a function subtly corrupted, or 2 to 4 near to each other (default: discovery)",
    )  # fmt: skip
    parser.add_argument("--count", type=counted, default=20, metavar="N", help="tasks of each source (default: 20)")
    parser.add_argument("--hard", action="store_true", help="only complex and well-connected functions")
    parser.add_argument("--min-failing", type=counted, default=5, metavar="N", help="failing tests a task needs (5)")
    parser.add_argument("--seed", type=int, default=0, help="of the order and of the corruptions (default: 0)")
    parser.add_argument("--workers", type=counted, metavar="N", help="processes (default: one per core)")
    parser.add_argument("--cluster", metavar="ADDRESS", help="decide on the Dask cluster with this scheduler instead")
    parser.add_argument(
        "--control",
        type=natural,
        default=0,
        metavar="N",
        help="candidates to try on the whole suite as well",
    )
    parser.add_argument("--json", action="store_true", help="the tables as JSON")
    parser.add_argument(
        "--with", dest="extra", action="append", default=[], metavar="REQUIREMENT", help="for the suite"
    )
    parser.add_argument("--pytest-args", default="", metavar="ARGS", help="such as 'tests -o addopts='")
    parser.add_argument(
        "--build-step", dest="build_steps", action="append", default=[], metavar="COMMAND", help="before every test run"
    )
    parser.add_argument("--exclude-newer", metavar="DATE", help="take no package that is newer")
    add_model_options(parser)
    isolation(parser)
    return parser
