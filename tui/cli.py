"""The command line: parses, puts the object graph together, and hands over to one command.

Nothing heavy is imported before a command needs it: `gistpoint --help` loads neither Textual nor Docker nor git.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gistpoint import __version__
from gistpoint.core.errors import CancelledError, NegativeVerdictError, UserError
from gistpoint.tui.argument_types import positive, step_number
from gistpoint.tui.gist_options import add_gist_commands
from gistpoint.tui.machine_options import add_machine_commands
from gistpoint.tui.review_options import add_review_commands
from gistpoint.tui.task_options import add_task_commands

if TYPE_CHECKING:
    from gistpoint.core.attempts.identity import Role
    from gistpoint.core.ports import EntrypointRunner, Runner
    from gistpoint.core.tasks.model import Task
    from gistpoint.sandbox.backends.base import Backend
    from gistpoint.tui.services import Services

DONE, NEGATIVE, MISTAKE = 0, 1, 2
"""Exit codes: done; a negative verdict (not solved, check failed, no task, no match); a mistake of the user's."""

_RUN = "a file, FILE#ID for one of several runs in it, or the id of an attempt"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        return code
    except CancelledError as error:
        print(f"gistpoint: {error}", file=sys.stderr)
        return NEGATIVE
    except UserError as error:
        return _told(error)
    except KeyboardInterrupt:
        print("\ngistpoint: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return DONE


def _told(error: UserError) -> int:
    from gistpoint.core.text import visible

    print(f"gistpoint: {visible(error.message)}", file=sys.stderr)
    if error.hint:
        print(visible(error.hint), file=sys.stderr)
    return NEGATIVE if isinstance(error, NegativeVerdictError) else MISTAKE


def build_services(options: argparse.Namespace, *, role: Role | None = None) -> Services:
    """Put the object graph together for one run of the program."""
    from gistpoint.core.attempts.clock import SystemTime
    from gistpoint.core.attempts.identity import Enrolment, Role
    from gistpoint.core.locations import Locations
    from gistpoint.sessions.attempts import AttemptStore
    from gistpoint.sessions.tasks import TaskStore
    from gistpoint.tui.commands.consent import Consent
    from gistpoint.tui.runners import Runners
    from gistpoint.tui.services import Services, is_our_demo

    locations, clock, consent = Locations.of_user(), SystemTime(), Consent()
    enrolment = Enrolment(
        role=role or Role(getattr(options, "role", None) or Role.BASELINE),
        participant=getattr(options, "participant", "") or "",
    )

    runners = Runners(lambda demo, ask: build_runner(options, demo=demo, ask=ask))

    def runner_for(task: Task) -> Runner:
        return runners.get(is_our_demo(task, locations), consent.ask)

    entrypoints = Runners(lambda demo, ask: build_entrypoint_runner(options, demo=demo, ask=ask))

    def entrypoints_for(task: Task) -> EntrypointRunner:
        return entrypoints.get(is_our_demo(task, locations), consent.ask)

    def prepare(task: Task) -> None:
        made = entrypoints if task.mode.value == "gist" else runners
        made.prepare(is_our_demo(task, locations))

    return Services(
        locations=locations,
        tasks=TaskStore(locations.tasks, locations.demo),
        attempts=AttemptStore(locations.attempts, clock, __version__, locations.reviews),
        clock=clock,
        runner_for=runner_for,
        entrypoints_for=entrypoints_for,
        prepare=prepare,
        enrolment=enrolment,
        consent=consent,
    )


def build_runner(
    options: argparse.Namespace, *, demo: bool = False, ask: Callable[[str], bool] | None = None
) -> Runner:
    """Choose the isolation and return a runner on it; `ask` asks for consent. Raises `SandboxUnavailableError`."""
    from gistpoint.core.locations import Locations
    from gistpoint.sandbox.environments.store import EnvironmentStore
    from gistpoint.sandbox.testruns import SuiteRunner

    return SuiteRunner(_chosen_backend(options, demo, ask), EnvironmentStore(Locations.of_user().cache))


def build_entrypoint_runner(
    options: argparse.Namespace, *, demo: bool = False, ask: Callable[[str], bool] | None = None
) -> EntrypointRunner:
    """Choose the isolation as `build_runner` does, and return what runs gists on it."""
    from gistpoint.core.locations import Locations
    from gistpoint.sandbox.environments.store import EnvironmentStore
    from gistpoint.sandbox.gistruns.runner import GistRunner

    return GistRunner(_chosen_backend(options, demo, ask), EnvironmentStore(Locations.of_user().cache))


def _chosen_backend(options: argparse.Namespace, demo: bool, ask: Callable[[str], bool] | None) -> Backend:
    from gistpoint.core.errors import SandboxUnavailableError
    from gistpoint.core.locations import Locations
    from gistpoint.core.user_settings import read_user_settings
    from gistpoint.sandbox.ladder import UNSANDBOXED, choose, has_consented, remember_consent
    from gistpoint.tui.commands.consent import ask_consent

    locations = Locations.of_user()
    requested = getattr(options, "sandbox", None) or read_user_settings(locations.config).sandbox or None
    allowed = bool(getattr(options, "allow_unsandboxed", False))
    try:
        backend = choose(requested, consented=demo or allowed or has_consented(locations.config))
    except SandboxUnavailableError as error:
        if demo or requested not in (None, "plain") or not (ask or ask_consent)(error.message):
            raise
        allowed, backend = True, choose(requested, consented=True)
    if allowed and backend.name == UNSANDBOXED:
        remember_consent(locations.config)
    return backend


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="gistpoint",
        description="Solve, replay and validate repository-level coding tasks with the tools and budgets of agents.",
        epilog="Without a command, gistpoint opens its home screen. Exit codes: 0 done, 1 a negative verdict, "
        "2 a mistake in how it was called.",
    )
    top.add_argument("--version", action="version", version=f"gistpoint {__version__}")
    top.set_defaults(run=_command("home", "home", screen=True))
    _isolation(top)
    commands = top.add_subparsers(title="commands", metavar="COMMAND")

    _solving_commands(commands)
    add_task_commands(commands.add_parser("task", help="make, list, show and check tasks"), _isolation, _command)
    add_gist_commands(
        commands.add_parser("gist", help="make gist tasks and their reference gists, score a gist"),
        _isolation,
        _command,
    )
    _attempt_commands(commands.add_parser("attempt", help="list, show, settle and export attempts"))
    _run_commands(commands)

    add_review_commands(
        commands.add_parser("reviews", help="export, merge and compare what reviewers said about runs"), _command
    )
    add_machine_commands(commands, _command)
    _code_command(commands.add_parser("code", help="a library's functions with complexity and centrality"))
    paths = commands.add_parser("paths", help="print where gistpoint keeps things")
    paths.add_argument("--json", action="store_true", help="as JSON")
    paths.set_defaults(run=_command("paths", "paths"))
    return top


def _solving_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    demo = commands.add_parser("demo", help="solve a task on a small library that comes with gistpoint")
    demo.add_argument("task", nargs="?", help="remove, discovery, two, gist or an id; without it the home screen opens")
    demo.add_argument("--play", action="store_true", help="play a recorded attempt before your eyes")
    demo.add_argument("--speed", type=positive, default=1.0, help="how many times as fast as it was recorded")
    _by_lines(demo)
    _isolation(demo)
    demo.set_defaults(run=_command("demo", "demo", screen=True))

    solve = commands.add_parser("solve", help="solve a task, or go on with an attempt")
    solve.add_argument("what", metavar="TASK|ATTEMPT", help="id or its beginning, a task's folder or its .tar.zst")
    solve.add_argument("--new", action="store_true", help="begin another attempt although one is unfinished")
    solve.add_argument(
        "--role", choices=["baseline", "qa", "author", "training"], help="what the attempt is for (default: baseline)"
    )
    solve.add_argument("--participant", default="", help="a pseudonym, recorded with the attempt")
    _by_lines(solve)
    solve.add_argument(
        "--gist-settings", metavar="FILE",
        help="tools, steps, advice and test of this attempt of a gist, as TOML or JSON (docs/guide/gists.md)",
    )  # fmt: skip
    _isolation(solve)
    solve.set_defaults(run=_command("solve", "solve", screen=True))

    review = commands.add_parser("review", help="read recorded runs step by step")
    review.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="files, folders, archives, FILE#ID for one of several, attempts' ids",
    )
    review.add_argument("--reviewer", default="", metavar="NAME", help="who reviews: a pseudonym (default: the login)")
    review.add_argument("--blind", action="store_true", help="hide model and outcome until the verdict")
    _isolation(review)
    review.set_defaults(run=_command("review", "review", screen=True))


def _by_lines(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lines", action="store_true", help="no screen: read tool calls from standard input, one a line, and answer"
    )


def _code_command(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="name==version, a folder, or git+URL@commit")
    parser.add_argument("--sort", default="harmonic_out", metavar="COLUMN", help="default: harmonic_out")
    parser.add_argument("--ascending", action="store_true", help="the smallest first")
    parser.add_argument(
        "--where", action="append", default=[], metavar="CONDITION", help="such as 'degree>=4', or words of the name"
    )
    parser.add_argument("--most", type=int, default=40, metavar="N", help="rows to show (default: 40)")
    parser.add_argument("--tests", action="store_true", help="take the tests' own code as well")
    parser.add_argument("--csv", action="store_true", help="all rows and columns as CSV")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--around", metavar="FUNCTION", help="draw the callers and callees of one function")
    parser.add_argument("--depth", type=int, default=1, metavar="N", help="of the drawing (default: 1)")
    parser.set_defaults(run=_command("code", "code"))


def _attempt_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = commands.add_parser("list", help="the attempts that are here")
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.set_defaults(run=_command("attempts", "listing"))
    show = commands.add_parser("show", help="an attempt: times, budgets, calls and submissions")
    show.add_argument("attempt", help="id or its beginning")
    show.add_argument("--json", action="store_true", help="as JSON")
    show.set_defaults(run=_command("attempts", "show"))
    accept = commands.add_parser(
        "accept",
        help="let a pass that is to be read count as solved",
        description="Writes a review: the attempt's pass was read and was earned.",
    )
    reject = commands.add_parser(
        "reject",
        help="say that a pass was not earned",
        description="Writes a review: the attempt's pass was read and does not count as solved.",
    )
    for command, name, needed in ((accept, "accept", False), (reject, "reject", True)):
        command.add_argument("attempt", help="id or its beginning")
        command.add_argument("--why", required=needed, default="", metavar="TEXT", help="what was seen in it")
        command.add_argument("--reviewer", default="", metavar="NAME", help="who read it (default: the login)")
        command.set_defaults(run=_command("attempts", name))

    export = commands.add_parser(
        "export",
        help="attempts as a table, as an archive of journals, or one as a recorded run",
        description="Without -o a table goes to standard output. The exit code is 1 if an attempt is damaged; it is "
        "written all the same.",
    )
    export.add_argument("attempts", nargs="*", metavar="ATTEMPT", help="ids or their beginnings (default: all)")
    export.add_argument(
        "--to", required=True, metavar="FORMAT", help="csv, json, archive; of one also atif, chat, markdown, html, cast"
    )
    export.add_argument("-o", "--output", metavar="PATH", help="the file to write")
    export.set_defaults(run=_command("attempt_export", "export"))


def _run_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    runs = commands.add_parser("runs", help="list recorded runs, of people and agents, in any known format")
    runs.add_argument("paths", metavar="PATH", nargs="+", help="a file, a folder or an archive")
    runs.add_argument("--json", action="store_true", help="as JSON")
    runs.set_defaults(run=_command("runs", "listing"))

    show = commands.add_parser("show", help="print a recorded run, or one step of it")
    show.add_argument("recorded", metavar="RUN", help=_RUN)
    show.add_argument("--step", type=step_number, metavar="N", help="all of the step N, counted from 1")
    show.add_argument("--json", action="store_true", help="the run, or the step, as ATIF")
    show.set_defaults(run=_command("runs", "show"))

    search = commands.add_parser(
        "search",
        help="search recorded runs",
        description="Prints every line with a match, with its run and step; as JSON every match. Case counts where the "
        "pattern has an upper-case letter.",
    )
    search.add_argument("pattern", metavar="PATTERN", help="a text, or with --regex a regular expression")
    search.add_argument("paths", metavar="PATH", nargs="+", help="a file, a folder, an archive or FILE#ID")
    search.add_argument("--regex", action="store_true", help="PATTERN is a regular expression")
    search.add_argument(
        "--scope", action="append", choices=["thought", "text", "call", "result", "diff", "also"],
        help="where to look, several times for several places (default: everywhere)",
    )  # fmt: skip
    search.add_argument("--json", action="store_true", help="as JSON")
    search.set_defaults(run=_command("runs", "search"))

    convert = commands.add_parser("convert", help="write a recorded run in another format")
    convert.add_argument("recorded", metavar="RUN", help=_RUN)
    convert.add_argument("--to", required=True, metavar="FORMAT", help="atif, chat, markdown, html or cast")
    convert.add_argument("-o", "--output", metavar="FILE", help="where to (default: standard output)")
    convert.set_defaults(run=_command("runs", "convert"))
    _replay_command(commands)


def _replay_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    replay = commands.add_parser(
        "replay",
        help="make the tool calls of a recorded run again, and compare",
        description="Makes each recorded tool call again in a fresh workspace of the task. The exit code is 1 where "
        "a result or the verdict differs, or a call could not run.",
    )
    replay.add_argument("recorded", metavar="RUN", help=_RUN)
    replay.add_argument("--task", help="id or its beginning, a folder or a .tar.zst (default: the one it was made on)")
    replay.add_argument("--json", action="store_true", help="as JSON")
    _isolation(replay)
    replay.set_defaults(run=_command("replay", "replay"))


def _isolation(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("isolation")
    group.add_argument(
        "--sandbox", metavar="BACKEND", default=None, help="bwrap, docker, landlock or plain; overrules config.toml"
    )
    group.add_argument(
        "--allow-unsandboxed",
        action="store_true",
        help="if no isolation works, run the repository's code and builds of what it needs as yourself",
    )


def _command(module: str, function: str, *, screen: bool = False) -> Callable[[argparse.Namespace], int]:
    """Return a function that imports its command only when it is called; `screen` where it opens one."""

    def run(options: argparse.Namespace) -> int:
        from importlib import import_module

        if screen:
            from gistpoint.tui.starting import hold_collection

            hold_collection()
        command: Callable[[argparse.Namespace], int] = getattr(
            import_module(f"gistpoint.tui.commands.{module}"), function
        )
        return command(options)

    return run
