"""What the commands about tasks can be told."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from gistpoint.tui.commands.validation_options import add_commands
from gistpoint.tui.generate_options import add_generate
from gistpoint.tui.import_options import DESCRIPTION as IMPORTING
from gistpoint.tui.import_options import add_import_options
from gistpoint.tui.model_options import add_model_options

Run = Callable[[argparse.Namespace], int]
Isolation = Callable[[argparse.ArgumentParser], None]
Command = Callable[[str, str], Run]


def add_task_commands(parser: argparse.ArgumentParser, isolation: Isolation, command: Command) -> None:
    """Add the commands below `gistpoint task` to its parser."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _making(commands, isolation, command)
    _made(commands, isolation, command)


def _making(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], isolation: Isolation, command: Command
) -> None:
    new = commands.add_parser(
        "new",
        help="make a task from an sdist, a folder or a git repository",
        description="Builds the environment, runs the suite three times, removes a function's body, or has a model "
        "corrupt it, runs again, and writes the task, or says why it is no good. The last line of standard output is "
        "the id of the task.",
    )
    new.add_argument("source", help="name==version, a folder, or git+URL@commit")
    new.add_argument("--mode", choices=["remove", "discovery"], default="remove", help="default: remove")
    new.add_argument("--function", metavar="PATH::QUALNAME", help="to remove or corrupt; else one picked at random")
    new.add_argument("--seed", type=int, default=0, help="of the random pick (default: 0)")
    new.add_argument("--with", dest="extra", action="append", default=[], metavar="REQUIREMENT", help="for the suite")
    new.add_argument("--pytest-args", default="", metavar="ARGS", help="such as 'tests -o addopts='")
    new.add_argument(
        "--build-step", dest="build_steps", action="append", default=[], metavar="COMMAND", help="before every test run"
    )
    new.add_argument("--exclude-newer", metavar="DATE", help="take no package that is newer")
    new.add_argument("--min-failing", type=int, default=5, metavar="N", help="failing tests a task needs (default: 5)")
    add_model_options(new)
    isolation(new)
    new.set_defaults(run=command("task_new", "new"))

    bringing = commands.add_parser("import", help="make tasks of a public data set's records", description=IMPORTING)
    add_import_options(bringing)
    isolation(bringing)
    bringing.set_defaults(run=command("task_import", "import_records"))

    add_generate(commands, isolation).set_defaults(run=command("task_generate", "generate"))


def _made(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], isolation: Isolation, command: Command
) -> None:
    listing = commands.add_parser("list", help="the tasks that are here")
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.set_defaults(run=command("tasks", "listing"))

    show = commands.add_parser("show", help="what a solver of a task is told")
    show.add_argument("task", help="id or its beginning, a folder or a .tar.zst")
    show.add_argument("--json", action="store_true", help="the public part as JSON")
    show.set_defaults(run=command("tasks", "show"))

    export = commands.add_parser("export", help="a task, with its answer, as one file that others can solve")
    export.add_argument("task", help="id or its beginning, or a folder")
    export.add_argument("--to", required=True, choices=["archive"], help="archive: a .tar.zst")
    export.add_argument("-o", "--output", required=True, metavar="PATH", help="the file to write, or a folder")
    export.set_defaults(run=command("tasks", "export"))

    delete = commands.add_parser("delete", help="remove a task; attempts of it keep their journals")
    delete.add_argument("task", help="id or its beginning")
    delete.add_argument("--yes", action="store_true", help="ask nothing")
    delete.set_defaults(run=command("tasks", "delete"))

    check = commands.add_parser("check", help="prove that a task leaks nothing and scores as it should")
    check.add_argument("task", help="id or its beginning, a folder or a .tar.zst")
    check.add_argument("--json", action="store_true", help="as JSON")
    isolation(check)
    check.set_defaults(run=command("tasks", "check"))

    add_commands(commands, command, isolation)
    baseline = commands.add_parser(
        "baseline",
        help="record what the suite shows on another backend",
        description="Runs the original three times and the corrupted tree once in the isolation asked for, and keeps "
        "the result beside the task's other baselines. Ids that differ between backends are shown.",
    )
    baseline.add_argument("task", help="id or its beginning, a folder or a .tar.zst")
    baseline.add_argument("--runs", type=int, default=3, metavar="N", help="of the original, three or more")
    baseline.add_argument("--json", action="store_true", help="as JSON")
    isolation(baseline)
    baseline.set_defaults(run=command("baselines", "baseline"))
