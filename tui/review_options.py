"""What `gistpoint reviews` can be told."""

from __future__ import annotations

import argparse
from collections.abc import Callable

Run = Callable[[argparse.Namespace], int]


def add_review_commands(parser: argparse.ArgumentParser, command: Callable[[str, str], Run]) -> None:
    """Add the commands below `gistpoint reviews` to its parser."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    export = commands.add_parser("export", help="labels, comments and verdicts as CSV or JSON lines")
    export.add_argument("--format", choices=["csv", "jsonl"], default="csv", help="default: csv")
    export.add_argument("--output", metavar="FILE", help="instead of standard output")
    export.add_argument("--reviewer", action="append", default=[], metavar="NAME", help="of these reviewers alone")
    export.set_defaults(run=command("reviews", "export"))

    merge = commands.add_parser("merge", help="take in what others said: files of reviews, or folders of them")
    merge.add_argument("paths", nargs="+", metavar="PATH", help="a reviewer's .jsonl, or a folder of them")
    merge.set_defaults(run=command("reviews", "merge"))

    agreement = commands.add_parser(
        "agreement",
        help="Cohen's kappa of two reviewers, label by label",
        description="Compares two reviewers on the runs that both reviewed: per label over the steps that both have "
        "seen, and over the runs; and over the verdicts.",
    )
    agreement.add_argument("reviewers", nargs="*", metavar="NAME", help="two of them; may be left out if there are two")
    agreement.add_argument("--json", action="store_true", help="as JSON")
    agreement.set_defaults(run=command("reviews", "agree"))
