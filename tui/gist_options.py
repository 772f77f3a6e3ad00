"""What `gistpoint gist` can be told."""

from __future__ import annotations

import argparse
from collections.abc import Callable

Run = Callable[[argparse.Namespace], int]
_TASK = "id or its beginning, a folder or a .tar.zst"


def add_gist_commands(
    parser: argparse.ArgumentParser,
    isolation: Callable[[argparse.ArgumentParser], None],
    command: Callable[[str, str], Run],
) -> None:
    """Add the commands below `gistpoint gist` to its parser."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    new = commands.add_parser(
        "new",
        help="make gist tasks of a library's entrypoints",
        description="Runs each entrypoint three times on the original, once elsewhere and once traced, and makes a "
        "task of it or says why there is none. Exit code 1 where no task was made.",
    )
    new.add_argument("source", help="name==version, a folder, or git+URL@commit")
    new.add_argument(
        "--entrypoint", action="append", default=[], metavar="COMMAND",
        help="'pytest path::test' or 'python -m package ARGUMENTS'; several times for several tasks",
    )  # fmt: skip
    new.add_argument(
        "--sample", type=int, default=0, metavar="N", help="draw N tests of the suite, of every difficulty"
    )
    new.add_argument("--seed", type=int, default=0, help="of the draw (default: 0)")
    new.add_argument("--allow-failing", action="store_true", help="take entrypoints that fail on the original, too")
    new.add_argument(
        "--compare-file", dest="compared", action="append", default=[], metavar="PATH",
        help="a file that the command writes and that must come out alike",
    )  # fmt: skip
    _settings(new)
    new.add_argument("--with", dest="extra", action="append", default=[], metavar="REQUIREMENT", help="for the suite")
    new.add_argument("--pytest-args", default="", metavar="ARGS", help="options, such as '-o asyncio_mode=auto'")
    new.add_argument(
        "--build-step", dest="build_steps", action="append", default=[], metavar="COMMAND", help="before each original"
    )
    new.add_argument("--exclude-newer", metavar="DATE", help="take no package that is newer")
    new.add_argument("--json", action="store_true", help="as JSON")
    isolation(new)
    new.set_defaults(run=command("gists", "new"))
    _of_a_task(commands, isolation, command)


def _of_a_task(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    isolation: Callable[[argparse.ArgumentParser], None],
    command: Callable[[str, str], Run],
) -> None:
    reference = commands.add_parser(
        "reference",
        help="make a gist by program: a known bound for the task",
        description="Extracts what the trace reached, inlines it into one file, and reduces it while the score holds. "
        "Written beside the task's answer. Exit code 1 where no faithful one was found. Ctrl-C stops it.",
    )
    reference.add_argument("task", help=_TASK)
    reference.add_argument("--seconds", type=float, default=120.0, metavar="S", help="for reducing it (default: 120)")
    reference.add_argument("--print", dest="show", action="store_true", help="print the gist")
    reference.add_argument("--json", action="store_true", help="as JSON")
    isolation(reference)
    reference.set_defaults(run=command("gists", "reference"))

    score = commands.add_parser(
        "score",
        help="score a gist, with the evidence",
        description="Every figure with what speaks for it. Exit code 1 where the gist is not faithful.",
    )
    score.add_argument("task", help=_TASK)
    score.add_argument("file", help="the gist")
    score.add_argument("--lines", action="store_true", help="the evidence for every line")
    score.add_argument("--json", action="store_true", help="as JSON")
    isolation(score)
    score.set_defaults(run=command("gists", "score"))


def _settings(new: argparse.ArgumentParser) -> None:
    group = new.add_argument_group("what the solver may do and is told")
    group.add_argument("--execution", action="store_true", help="code may be run before the hand-in")
    group.add_argument("--strategy", choices=["tracing", "reading"], default="", help="advice in the brief")
    group.add_argument("--give-test", action="store_true", help="the brief holds the test, and the gist begins with it")
    group.add_argument(
        "--tool", dest="tools", action="append", default=[],
        choices=["trace", "repo_graph", "bash", "edit_and_execute"], help="offer this tool as well",
    )  # fmt: skip
    group.add_argument("--steps", type=int, default=50, metavar="N", help="tool calls (default: 50)")
    group.add_argument(
        "--score-budget", type=int, default=0, metavar="N", help="uses of score_gist in a counted attempt (default: 0)"
    )
