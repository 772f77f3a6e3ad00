"""The options of `gistpoint task validate` and `validations`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

_SET = (
    "folders of tasks, files with an id or a path a line, tasks by id (or its beginning), folder or .tar.zst; "
    "without any, all tasks that are here"
)


def add_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    command: Callable[[str, str], Callable[[argparse.Namespace], int]],
    isolation: Callable[[argparse.ArgumentParser], None],
) -> None:
    """Add both commands; `command` returns what runs a function of a module, `isolation` adds its own options."""
    validate = commands.add_parser(
        "validate",
        help="judge tasks by hand, with the evidence on one screen",
        description="Opens a queue of tasks. What you say is kept in a file of yours in the data folder, never in a "
        "task. Verdicts of others are not shown: `gistpoint task validations` compares them.",
    )
    validate.add_argument("set", nargs="*", metavar="SET", help=_SET)
    validate.add_argument("--reviewer", default="", metavar="NAME", help="who judges: a pseudonym (default: the login)")
    isolation(validate)
    validate.set_defaults(run=command("validations", "validate"))

    state = commands.add_parser(
        "validations",
        help="where a set's validation stands, and how far two validators agree",
        description="Prints a row for each task with the verdicts of its validators. --agreement compares two of them: "
        "raw agreement, Cohen's kappa and the tasks on which they differ.",
    )
    state.add_argument("set", nargs="*", metavar="SET", help=_SET)
    form = state.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--export", choices=["csv", "jsonl"], help="every verdict, comment, run and check that stands")
    state.add_argument("--agreement", nargs=2, metavar="NAME", help="compare two validators")
    state.add_argument(
        "--merge", action="append", default=[], metavar="PATH", help="first take in a validator's .jsonl, or a folder"
    )
    state.set_defaults(run=command("validations", "state"))
