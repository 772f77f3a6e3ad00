"""The command line: it parses arguments, runs a command, and turns errors into messages and exit codes.

Nothing slow is imported before a command needs it: `gistpoint --help` imports neither Textual nor Docker nor
git.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from gistpoint import __version__
from gistpoint.core.errors import CancelledError, NegativeVerdictError, UserError
from gistpoint.tui.commands.command import (
    DONE,
    INTERRUPTED,
    MISTAKE,
    NEGATIVE,
    SANDBOX_HELP,
    UNSANDBOXED_HELP,
    CommandParser,
    CommandRow,
    TopParser,
    WholeHelp,
    add_commands,
    readable,
    refuse_mistyped,
)
from gistpoint.tui.commands.output import (
    drop_unwritable,
    open_missing_streams,
    readable_terminals,
    require_output,
)
from gistpoint.tui.starting import hold_collection

# Modules are named by strings, so that only the module of the called command is imported (decision 58).
COMMANDS = (
    CommandRow("demo", "solve a task on a small library that comes with gistpoint", "demo:DEMO", screen=True),
    CommandRow("solve", "solve a task, or resume an attempt", "solve:SOLVE", screen=True),
    CommandRow("review", "read recorded runs step by step", "review:REVIEW", screen=True, outcomes=True),
    CommandRow(
        "glance",
        "read functions blind, and see how often faults are noticed",
        "glance:GLANCE",
        screen=True,
        shown=("all", "reader", "seconds", "reveal", "table", "merge"),
    ),
    CommandRow(
        "task new",
        "make a task from an sdist, a folder or a git repository",
        "task_making:NEW",
        shown=("mode", "function", "seed", "extra", "pytest_args", "exclude_newer"),
    ),
    CommandRow("task import", "make tasks from the records of a public data set", "task_import:IMPORT"),
    CommandRow(
        "task generate",
        "make many tasks from one or more libraries",
        "task_making:GENERATE",
        shown=(
            "mode",
            "faults",
            "count",
            "seed",
            "workers",
            "confirmable",
            "list",
            "pytest_args",
        ),
    ),
    CommandRow("task list", "list the tasks on this machine", "tasks:LIST"),
    CommandRow("task show", "print the brief of a task, as its solver gets it", "tasks:SHOW"),
    CommandRow("task export", "export tasks as one file each, or for another harness", "task_export:EXPORT"),
    CommandRow("task control", "find out whether passes of tasks can be confirmed", "confirming:CONTROL"),
    CommandRow("task delete", "delete a task; its attempts keep their journals", "tasks:DELETE"),
    CommandRow("task check", "prove that a task leaks nothing and is scored correctly", "tasks:CHECK"),
    CommandRow(
        "task validate", "judge tasks by hand, with the evidence on one screen", "validations:VALIDATE"
    ),
    CommandRow(
        "task validations",
        "print the progress of a set's validation, or the agreement of two validators",
        "validations:STATE",
    ),
    CommandRow(
        "gist new",
        "make gist tasks from a library's entrypoints",
        "gist_making:NEW",
        shown=("entrypoints", "sample", "hard", "pytest_args"),
    ),
    CommandRow("gist list", "list gist tasks with their difficulty and reference gists", "gist_listing:LIST"),
    CommandRow(
        "gist reference",
        "look for a gist automatically, to show that the task has a solution",
        "gists:REFERENCE",
    ),
    CommandRow(
        "gist conditions", "write the settings of the paper's conditions", "gist_listing:WRITE_CONDITIONS"
    ),
    CommandRow("gist score", "score a gist, with the evidence", "gists:SCORE"),
    CommandRow("attempt list", "list the attempts on this machine", "attempt_list:LIST", outcomes=True),
    CommandRow(
        "attempt show",
        "show an attempt: times, budgets, calls and submissions",
        "attempts:SHOW",
        outcomes=True,
    ),
    CommandRow(
        "attempt accept", "let a pass that needs a review count as solved", "attempts:ACCEPT", outcomes=True
    ),
    CommandRow("attempt reject", "record that a pass was not earned", "attempts:REJECT", outcomes=True),
    CommandRow(
        "attempt confirm",
        "have passes confirmed in a process without tests",
        "confirming:CONFIRM",
        outcomes=True,
    ),
    CommandRow(
        "attempt object",
        "explain why a pass that needs a review was earned",
        "confirming:OBJECT",
        outcomes=True,
    ),
    CommandRow(
        "attempt export",
        "export attempts as a table or an archive of journals, or one as a recorded run",
        "attempts:EXPORT",
        outcomes=True,
    ),
    CommandRow(
        "agent run",
        "have a model attempt tasks, or make the attempts that are missing",
        "agents:RUN",
        shown=("demo", "name", "model", "repeats", "max_cost"),
    ),
    CommandRow("agent resume", "complete a run", "agents:RESUME"),
    CommandRow(
        "agent settle", "decide jobs that an endpoint has halted, or list them", "agent_settling:SETTLE"
    ),
    CommandRow("agent list", "list the runs on this machine", "agent_reading:LIST"),
    CommandRow("agent show", "print the figures of a run", "agent_reading:SHOW"),
    CommandRow("agent stop", "stop a run that another process is making", "agent_reading:STOP"),
    CommandRow("agent watch", "watch a run or an attempt in progress", "agent_reading:WATCH", screen=True),
    CommandRow(
        "mcp",
        "serve a task's tools to a model in another program, over MCP",
        "mcp:MCP",
        shown=(
            "attempt",
            "budgets",
            "participant",
            "http",
            "client",
        ),
    ),
    CommandRow(
        "serve",
        "serve tasks or a study to participants in browsers",
        "serve:serve_options",
        shown=("people", "study", "new_links", "port", "public_url"),
    ),
    CommandRow("participant", "", "participant:PARTICIPANT", screen=True),
    CommandRow(
        "runs",
        "list recorded runs, of people and agents, in any known format",
        "run_list:LIST",
        shown=("where", "group", "json", "csv", "profile", "sort"),
        outcomes=True,
    ),
    CommandRow(
        "runs compare",
        "compare the runs of each task: what each tried first",
        "run_trees:COMPARE",
        outcomes=True,
    ),
    CommandRow(
        "runs watch",
        "list runs while they are being written, new failures first",
        "run_watch:WATCH",
        screen=True,
        outcomes=True,
    ),
    CommandRow("show", "print a recorded run, or one step of it", "show:SHOW", outcomes=True),
    CommandRow("search", "search recorded runs", "runs:SEARCH", outcomes=True),
    CommandRow("convert", "write a recorded run in another format", "runs:CONVERT", outcomes=True),
    CommandRow(
        "replay", "repeat the tool calls of a recorded run, and compare", "replay:REPLAY", outcomes=True
    ),
    CommandRow("rescore", "judge the results of another harness again", "rescore:RESCORE"),
    CommandRow(
        "reviews export",
        "export labels, comments and verdicts as CSV or JSON lines",
        "reviews:EXPORT",
        outcomes=True,
    ),
    CommandRow(
        "reviews summary", "count verdicts and labels by model and by task", "reviews:SUMMARY", outcomes=True
    ),
    CommandRow("reviews merge", "merge the reviews of others, from files or folders", "reviews:MERGE"),
    CommandRow(
        "reviews agreement", "print Cohen's kappa of two reviewers, label by label", "reviews:AGREEMENT"
    ),
    CommandRow(
        "findings judge",
        "have a model look for the labels of a rubric in recorded runs",
        "findings:JUDGE",
        shown=("judge", "context", "max_cost", "dry_run", "yes", "study"),
        outcomes=True,
    ),
    CommandRow(
        "findings read",
        "label a random part of the runs blind, then settle disputed claims",
        "findings:READ",
        screen=True,
        outcomes=True,
    ),
    CommandRow(
        "findings report", "print how often each label occurs, with proof", "findings:REPORT", outcomes=True
    ),
    CommandRow("doctor", "report which isolation works here, and how to fix the rest", "doctor:DOCTOR"),
    CommandRow("store use", "choose the database, or only files", "store:USE"),
    CommandRow("store init", "create the database's tables and roles", "store:INIT"),
    CommandRow(
        "store status", "show the store's contents, and what still has to be sent and fetched", "store:STATUS"
    ),
    CommandRow("store sync", "send and fetch everything", "store:SYNC"),
    CommandRow("store check", "find every difference between files and database", "store:CHECK"),
    CommandRow("code", "list a library's functions with complexity and centrality", "code:CODE"),
    CommandRow("study new", "make the folder of a study", "studies:NEW"),
    CommandRow("study check", "find out what is missing or wrong before a study opens", "studies:CHECK"),
    CommandRow("study open", "freeze the declaration and let people take part", "studies:OPEN"),
    CommandRow(
        "study join",
        "take part in a study: consent, forms and tasks, to the end",
        "study_taking:JOIN",
        screen=True,
    ),
    CommandRow("study progress", "show a study's progress", "study_taking:PROGRESS", screen=True),
    CommandRow("study enrol", "enrol participants, each with a code", "study_people:ENROL"),
    CommandRow(
        "study consent", "print the consent, or a participant's copy of it", "study_people:CONSENT", rare=True
    ),
    CommandRow(
        "study pay", "list minutes, completion and pay, without results", "study_people:PAY", rare=True
    ),
    CommandRow("study sync", "publish this machine's attempts into the folder", "study_people:SYNC"),
    CommandRow(
        "study share", "put a study on the team's store for other machines", "study_team:SHARE", rare=True
    ),
    CommandRow("study return", "free an assignment that can't be finished", "study_people:RETURN", rare=True),
    CommandRow(
        "study withdraw",
        "end somebody's participation, and erase their data on request",
        "study_people:WITHDRAW",
    ),
    CommandRow("study erase", "erase the people whose retention has ended", "study_people:ERASE", rare=True),
    CommandRow("study confirm", "confirm the passes of people", "study_beyond:CONFIRM", rare=True),
    CommandRow(
        "study compare", "compare passing repairs with the originals", "study_beyond:COMPARE", rare=True
    ),
    CommandRow("study read", "read passing changes blind", "study_beyond:READ", screen=True, rare=True),
    CommandRow("study amend", "put a changed declaration in force", "studies:AMEND"),
    CommandRow("study close", "end a study", "studies:CLOSE"),
    CommandRow(
        "study demo", "write a simulated study, to see what a report contains", "study_simulation:DEMO"
    ),
    CommandRow("study simulate", "fill a simulated study", "study_simulation:SIMULATE", rare=True),
    CommandRow(
        "study power", "predict the power of the design, before anybody takes part", "study_simulation:POWER"
    ),
    CommandRow(
        "study solvers",
        "list the recorded runs of the models that the study declares",
        "study_attempts:SOLVERS",
        rare=True,
    ),
    CommandRow(
        "study correct", "record what a span of an attempt counts as", "study_attempts:CORRECT", rare=True
    ),
    CommandRow("study exclude", "take an attempt out of the analyses", "study_attempts:EXCLUDE", rare=True),
    CommandRow(
        "study include", "include an attempt in the analyses again", "study_attempts:INCLUDE", rare=True
    ),
    CommandRow("study export", "export the data as tables for other programs", "study_attempts:EXPORT"),
    CommandRow("study audit", "prove that the folder has not been changed", "study_people:AUDIT", rare=True),
    CommandRow("study analyse", "print the estimates of a study as tables", "study_report:ANALYSE"),
    CommandRow(
        "study report", "write one page with all figures, methods and the checklist", "study_report:REPORT"
    ),
    CommandRow("admin paths", "print where gistpoint keeps its files", "storage:PATHS"),
    CommandRow("admin cache", "list environments, images and leftovers, with their sizes", "storage:LIST"),
    CommandRow(
        "admin clean", "remove what `admin cache` lists; tasks and attempts are not touched", "storage:CLEAN"
    ),
    CommandRow("admin backup", "write the whole home to one archive", "storage:BACKUP"),
    CommandRow("admin restore", "restore a home from a backup, whole or not at all", "storage:RESTORE"),
    CommandRow("admin completion", "print the completion script of bash, zsh or fish", "completion:SCRIPT"),
    CommandRow("admin baseline", "record the results of a task's suite on another backend", "tasks:BASELINE"),
)
"""All commands, in the order of the help. The module of a command is imported when the command is called."""

GROUPS = {
    "task": "make, list, show and check tasks",
    "gist": "make gist tasks and their reference gists, score a gist",
    "attempt": "list, show, settle and export attempts",
    "agent": "have a model attempt tasks, with a person's tools, budgets and judge",
    "reviews": "export, summarise, merge and compare reviews of runs",
    "findings": "look for behaviours in many runs: a model judges, a person checks, with proof",
    "store": "share tasks, attempts and annotations in a team's database",
    "study": "collect a human baseline: declare a study, take part in it, report its results",
    "admin": "paths, caches, backups, shell completion, baselines of other backends",
}
"""The help texts for words that begin several commands."""

FIRST = (
    "demo",
    "solve",
    "review",
    "task list",
    "task new",
    "task validate",
    "study new",
    "doctor",
)
"""The commands that a newcomer needs, in the order of the short help."""

SECTIONS = {
    "Solve": ("demo", "solve", "attempt"),
    "Review": (
        "review",
        "reviews",
        "findings",
        "runs",
        "runs compare",
        "runs watch",
        "show",
        "search",
        "convert",
        "glance",
    ),
    "Make": ("task", "gist", "code"),
    "Study": ("study", "serve"),
    "Agents": ("agent", "mcp", "replay", "rescore"),
    "Team": ("store",),
    "Admin": ("doctor", "admin"),
}
"""The commands, or first words of commands, that the help lists, by section."""

MOVED = {
    ("paths",): "admin paths",
    ("cache", "list"): "admin cache",
    ("cache", "clean"): "admin clean",
    ("cache",): "admin cache",
    ("completion",): "admin completion",
    ("task", "baseline"): "admin baseline",
}
"""The names of commands in earlier versions, which still work, with their present names."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit code."""
    refusal = _output_refusal()
    open_missing_streams()
    with readable_terminals():
        return _run(arguments) if refusal is None else _report(refusal)


def _output_refusal() -> UserError | None:
    try:
        require_output()
    except UserError as error:
        return error
    return None


def _run(arguments: Sequence[str] | None) -> int:
    if "_ARGCOMPLETE" in os.environ:
        # The program answers every Tab, because a script written once would know no ids (decision 97).
        from gistpoint.tui.commands.completion import complete

        complete(parser())
    try:
        words = _with_whole_names(_without_aliases(sys.argv[1:] if arguments is None else arguments))
        options = _parsed(words)
        _ask_on_terminal()
        _require_home()
        code = _call(options)
        sys.stdout.flush()
        return code
    except CancelledError as error:
        print(f"gistpoint: {readable(str(error))}", file=sys.stderr)
        return INTERRUPTED
    except UserError as error:
        return _report(error)
    except KeyboardInterrupt:
        print("\ngistpoint: stopped", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        from gistpoint.tui.machine_errors import STANDARD_OUTPUT, machine_error

        if isinstance(error, BrokenPipeError) and error.filename == STANDARD_OUTPUT:
            return DONE  # the reader of the output, such as `head`, has closed it
        found = machine_error(error)
        if found is None:
            raise
        return _report(found)
    finally:
        drop_unwritable()


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    """Return the parsed arguments.

    A request for help or the version is printed, and then ends the program. Raises `OSError` if the output
    can't be written.
    """
    try:
        return parser().parse_args(words, argparse.Namespace(called=(*words,)))
    except SystemExit:
        sys.stdout.flush()
        raise


def _require_home() -> None:
    """Raise `UserError` if folders can't be used, or a newer version has written them (decision 177)."""
    from gistpoint.core.locations import Locations
    from gistpoint.sessions.home import require_usable

    require_usable(Locations.of_user(), __version__)


def _call(options: argparse.Namespace) -> int:
    """Call a command, and hide the outcomes of people in open studies from it (decision 191).

    The commands on a study hide them themselves, because some need outcomes that they do not show.
    Participants see their own outcomes.
    """
    from gistpoint.sessions.blinding import Blinding

    def is_hidden(study: str, attempt: Path) -> bool:
        from gistpoint.sessions.studies.blinded import is_hidden  # rarely needed: few attempts are of a study

        return is_hidden(study, attempt, unblind=getattr(options, "unblind", False))

    _, *words = getattr(options, "called_as", "gistpoint").split()
    has_own_rule = words[:1] in (["study"], ["participant"])
    Blinding.of_process = None if has_own_rule else Blinding(is_hidden)
    try:
        return called_command(options)
    finally:
        Blinding.of_process = None


def called_command(options: argparse.Namespace) -> int:
    """Run the function of the parsed command, and return its exit code."""
    code: int = options.run(options)
    return code


def _ask_on_terminal() -> None:
    """Make this process ask on the terminal whether code may run without isolation."""
    from gistpoint.object_graph import ProcessConsent
    from gistpoint.tui.consent import ask_consent

    ProcessConsent.asker = ask_consent


_ALIASES = {"version": ["--version"], "tasks": ["task", "list"], "attempts": ["attempt", "list"]}
"""The arguments for which a single word is an alias."""


def _without_aliases(given: Sequence[str]) -> list[str]:
    """Return the words of a call without aliases: `help task new` becomes `task new --help`."""
    words, first = [*given], 0
    while first < len(words) and words[first].startswith("-"):
        first += 2 if words[first] == "--sandbox" else 1
    before, name, rest = words[:first], words[first : first + 1], words[first + 1 :]
    if name and name[0] in GROUPS and rest[:1] == ["help"]:
        name, rest = ["help"], [*name, *rest[1:]]
    if name == ["help"]:
        return [*before, *_with_new_name(rest[rest[:1] == ["help"] :]), "--help"]
    return [*before, *_with_new_name([*(_ALIASES.get(name[0], name) if name else ()), *rest])]


def _with_new_name(words: Sequence[str]) -> list[str]:
    """Return the words of a command by its present name; two words that name one command are joined.

    If the name is an old one, a line on standard error names the present one.
    """
    for old, new in MOVED.items():
        if tuple(words[: len(old)]) == old:
            print(f"`gistpoint {' '.join(old)}` is called `gistpoint {new}` now.", file=sys.stderr)
            return [*new.split(), *words[len(old) :]]
    whole = " ".join(words[:2])
    if whole in TWO_WORDS:
        return [whole, *words[2:]]
    refuse_mistyped(words, TWO_WORDS)
    return [*words]


TWO_WORDS = frozenset(
    row.name for row in COMMANDS if row.name.partition(" ")[0] in {other.name for other in COMMANDS}
)
"""The commands of two words whose first word is also a command; the parser gets them as one word."""


def _with_whole_names(words: Sequence[str]) -> Sequence[str]:
    """Return the arguments with each task name (two words and a digit) joined, as if it had been quoted."""
    if not any(len(word) == 1 and word.isdigit() for word in words):
        return words  # most calls: importing the names' words would delay them
    from gistpoint.core.tasks.names import with_whole_names

    return with_whole_names(words)


def _report(error: UserError) -> int:
    print(f"gistpoint: {readable(error.message)}", file=sys.stderr)
    if error.hint:
        print(readable(error.hint), file=sys.stderr)
    return NEGATIVE if isinstance(error, NegativeVerdictError) else MISTAKE


def parser() -> CommandParser:
    """Return the parser of the whole command line."""
    top = TopParser(
        prog="gistpoint",
        description=(
            "Solve, replay and validate repository-level coding tasks with the tools and budgets of agents."
        ),
        epilog=(
            "Without a command, gistpoint opens its home screen. `gistpoint help COMMAND` explains"
            " one. The exit code is 0 for success, 1 for a negative verdict, 2 for a usage error and"
            " 130 after Ctrl+C."
        ),
    )
    helps = {row.name: row.help for row in COMMANDS}
    top.first, top.sections = {name: helps[name] for name in FIRST}, SECTIONS
    top.add_argument("--version", action="version", version=f"gistpoint {__version__}")
    top.set_defaults(run=_home)
    _add_isolation(top)
    add_commands(top, COMMANDS, GROUPS)
    top.also = {"version": "--version", **_also_in("")}
    for group in GROUPS:
        if (parser_of_group := top.command(group)) is not None:
            parser_of_group.also = _also_in(group)
    top.add_argument("--help-all", action=WholeHelp, help="show every command and option")
    return top


def _also_in(group: str) -> dict[str, str]:
    """Return `help` and the former words that a group (empty: the program) accepts, with the present ones."""
    before = group.split()
    old = {former[-1]: new for former, new in MOVED.items() if [*former[:-1]] == before}
    return {"help": "help", **old}


def _add_isolation(top: CommandParser) -> None:
    """Add the options of `arguments.ISOLATION` before any command.

    They are declared again here, since importing that module takes as long as the help.
    """

    def named(text: str) -> str:
        from gistpoint.tui.commands.arguments import backend_name

        return backend_name(text)

    group = top.add_argument_group("isolation")
    group.add_argument(
        "--sandbox", metavar="BACKEND", type=named, default=argparse.SUPPRESS, help=SANDBOX_HELP
    )
    group.add_argument(
        "--allow-unsandboxed", action="store_true", default=argparse.SUPPRESS, help=UNSANDBOXED_HELP
    )


def _home(options: argparse.Namespace) -> int:
    """Open the home screen. Without a terminal, print the tasks."""
    hold_collection()
    from gistpoint.tui.commands.output import interactive

    if not interactive():
        from gistpoint.tui.commands.tasks import ListTasks, listing

        return listing(ListTasks())
    from gistpoint.core.locations import Locations
    from gistpoint.core.requests import IsolationChoice
    from gistpoint.object_graph import build_services
    from gistpoint.tui.app import GistpointApp, ServicesMaker
    from gistpoint.tui.commands.arguments import ISOLATION
    from gistpoint.tui.commands.options import request_of

    isolation = request_of(IsolationChoice, ISOLATION, options)
    return GistpointApp(
        ServicesMaker(Locations.of_user(), lambda: build_services(isolation))
    ).run_to_exit_code()
