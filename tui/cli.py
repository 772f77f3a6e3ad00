"""The command line: reads a line, runs one command, and turns what went wrong into a message and an exit code.

Nothing heavy is imported before a command needs it: `gistpoint --help` loads neither Textual nor Docker nor git.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence

from gistpoint import __version__
from gistpoint.core.errors import CancelledError, NegativeVerdictError, UserError
from gistpoint.tui import commands
from gistpoint.tui.commands.command import DONE, INTERRUPTED, MISTAKE, NEGATIVE, CommandParser, Commands, readable
from gistpoint.tui.object_graph import add_isolation, build_services
from gistpoint.tui.starting import hold_collection


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    if "_ARGCOMPLETE" in os.environ:
        from gistpoint.tui.commands.completion import complete

        complete(parser())
    try:
        words = _understood(sys.argv[1:] if arguments is None else arguments)
        options = parser().parse_args(words, argparse.Namespace(called=(*words,)))
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except CancelledError as error:
        print(f"gistpoint: {readable(str(error))}", file=sys.stderr)
        return INTERRUPTED
    except UserError as error:
        return _reported(error)
    except KeyboardInterrupt:
        print("\ngistpoint: stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return DONE
    except OSError as error:
        if error.errno not in _OF_THE_USER:
            raise
        what = str(error.filename) if error.filename is not None else "A file"
        return _reported(UserError(f"{what} can't be used: {error.strerror}."))


_SAID_OTHERWISE = {"version": ["--version"], "tasks": ["task", "list"], "attempts": ["attempt", "list"]}
"""First words that mean a command which has another name."""


def _understood(given: Sequence[str]) -> list[str]:
    """Return the words of the command that is meant: `help task new` is `task new --help`."""
    words, first = [*given], 0
    while first < len(words) and words[first].startswith("-"):
        first += 2 if words[first] == "--sandbox" else 1
    before, name, rest = words[:first], words[first : first + 1], words[first + 1 :]
    if name == ["help"]:
        return [*before, *rest, "--help"]
    return [*before, *(_SAID_OTHERWISE.get(name[0], name) if name else ()), *rest]


_OF_THE_USER = frozenset({
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ENOSPC, errno.EDQUOT,
})  # fmt: skip
"""Errors of the system that are no fault of the program: what may not be read or written, and a full disk."""


def _reported(error: UserError) -> int:
    print(f"gistpoint: {readable(error.message)}", file=sys.stderr)
    if error.hint:
        print(readable(error.hint), file=sys.stderr)
    return NEGATIVE if isinstance(error, NegativeVerdictError) else MISTAKE


def parser() -> CommandParser:
    """Return the parser of the whole command line."""
    top = CommandParser(
        prog="gistpoint",
        description="Solve, replay and validate repository-level coding tasks with the tools and budgets of agents.",
        epilog="Without a command, gistpoint opens its home screen. `gistpoint help COMMAND` explains one. Exit codes: "
        "0 done, 1 a negative verdict, 2 a mistake in how it was called, 130 stopped with Ctrl+C.",
    )
    top.add_argument("--version", action="version", version=f"gistpoint {__version__}")
    top.set_defaults(run=_home)
    add_isolation(top)
    groups = Commands(top, required=False)
    _add_commands(groups)
    _add_study(groups.group("study", "collect a human baseline: declare a study, take part in it, report it"))
    return top


def _home(options: argparse.Namespace) -> int:
    """Open the home screen; without a terminal print the tasks."""
    hold_collection()
    from gistpoint.tui.commands.output import interactive

    if not interactive():
        return commands.tasks.listing(argparse.Namespace(json=False, where="", ids=False))
    from gistpoint.core.locations import Locations
    from gistpoint.tui.app import GistpointApp, ServicesMaker

    return GistpointApp(ServicesMaker(Locations.of_user(), lambda: build_services(options))).run_to_exit_code()


def _add_commands(top: Commands) -> None:
    """Add every command: its name, its help, and the function that adds its options."""
    top.add(
        "demo",
        "solve a task on a small library that comes with gistpoint",
        lambda: commands.demo.demo_options,
        screen=True,
    )
    top.add("solve", "solve a task, or resume an attempt", lambda: commands.solve.solve_options, screen=True)
    top.add("review", "read recorded runs step by step", lambda: commands.review.review_options, screen=True)

    top.add(
        "glance",
        "read functions blind, and see how often a fault is seen",
        lambda: commands.glance.glance_options,
        screen=True,
    )

    task = top.group("task", "make, list, show and check tasks")
    task.add("new", "make a task from an sdist, a folder or a git repository", lambda: commands.task_making.new_options)
    task.add("import", "make tasks of a public data set's records", lambda: commands.task_import.import_options)
    task.add("generate", "make many tasks of one or more libraries", lambda: commands.task_making.generate_options)
    task.add("list", "the tasks that are here", lambda: commands.tasks.list_options)
    task.add("show", "the brief of a task, as its solver gets it", lambda: commands.tasks.show_options)
    task.add("export", "tasks as one file each, or for another harness", lambda: commands.task_export.export_options)
    task.add("delete", "remove a task; attempts of it keep their journals", lambda: commands.tasks.delete_options)
    task.add("check", "prove that a task leaks nothing and scores as it should", lambda: commands.tasks.check_options)
    task.add(
        "validate",
        "judge tasks by hand, with the evidence on one screen",
        lambda: commands.validations.validate_options,
    )
    task.add(
        "validations",
        "where a set's validation stands, and how far two validators agree",
        lambda: commands.validations.state_options,
    )
    task.add("baseline", "record what the suite shows on another backend", lambda: commands.tasks.baseline_options)

    _add_gists(top)

    attempt = top.group("attempt", "list, show, settle and export attempts")
    attempt.add("list", "the attempts that are here", lambda: commands.attempts.list_options)
    attempt.add("show", "an attempt: times, budgets, calls and submissions", lambda: commands.attempts.show_options)
    attempt.add("accept", "let a pass that is to be read count as solved", lambda: commands.attempts.accept_options)
    attempt.add("reject", "say that a pass was not earned", lambda: commands.attempts.reject_options)
    attempt.add(
        "export",
        "attempts as a table, as an archive of journals, or one as a recorded run",
        lambda: commands.attempts.export_options,
    )

    agent = top.group("agent", "let a model attempt tasks, with a person's tools, budgets and judge")
    agent.add("run", "attempts of tasks by a model, or what is missing of them", lambda: commands.agents.run_options)
    agent.add("resume", "do what is missing of a run", lambda: commands.agents.resume_options)
    agent.add("list", "the runs that are here", lambda: commands.agents.list_options)
    agent.add("show", "the figures of a run", lambda: commands.agents.show_options)
    agent.add("stop", "stop a run that another process carries out", lambda: commands.agents.stop_options)
    agent.add("watch", "look on while a run or an attempt goes on", lambda: commands.agents.watch_options, screen=True)
    top.add("mcp", "serve a task's tools to a model in another program, over MCP", lambda: commands.mcp.mcp_options)

    top.add("serve", "serve tasks or a study to participants in browsers", lambda: commands.serve.serve_options)
    top.add("participant", "", lambda: commands.participant.participant_options, screen=True)

    _add_runs(top)

    top.add(
        "doctor", "say which isolation works here, and what would mend the rest", lambda: commands.doctor.doctor_options
    )
    store = top.group("store", "share tasks, attempts and annotations in a team's database")
    store.add("use", "choose the database, or files alone", lambda: commands.store.use_options)
    store.add("init", "make the database's tables and roles", lambda: commands.store.init_options)
    store.add("status", "what it has, and what is to be sent and fetched", lambda: commands.store.status_options)
    store.add("sync", "send and fetch everything", lambda: commands.store.sync_options)
    store.add("check", "find every difference between files and database", lambda: commands.store.check_options)
    cache = top.group("cache", "list or clean what can be built again")
    cache.add("list", "environments, images and leftovers, with their sizes", lambda: commands.storage.list_options)
    cache.add(
        "clean", "remove them; nothing of a task or an attempt is touched", lambda: commands.storage.clean_options
    )
    top.add("code", "a library's functions with complexity and centrality", lambda: commands.code.code_options)
    top.add("paths", "print where gistpoint keeps things", lambda: commands.storage.paths_options)
    top.add(
        "completion", "print the completion of a shell: bash, zsh or fish", lambda: commands.completion.script_options
    )


def _add_runs(top: Commands) -> None:
    """Add the commands on recorded runs, and what reviewers said about them."""
    top.add("runs", "list recorded runs, of people and agents, in any known format", lambda: commands.runs.list_options)
    top.add("show", "print a recorded run, or one step of it", lambda: commands.runs.show_options)
    top.add("search", "search recorded runs", lambda: commands.runs.search_options)
    top.add("convert", "write a recorded run in another format", lambda: commands.runs.convert_options)
    top.add(
        "replay", "make the tool calls of a recorded run again, and compare", lambda: commands.replay.replay_options
    )

    top.add("rescore", "judge the results of another harness again", lambda: commands.rescore.rescore_options)

    reviews = top.group("reviews", "export, merge and compare what reviewers said about runs")
    reviews.add("export", "labels, comments and verdicts as CSV or JSON lines", lambda: commands.reviews.export_options)
    reviews.add(
        "merge",
        "take in what others said: files of reviews, or folders of them",
        lambda: commands.reviews.merge_options,
    )
    reviews.add(
        "agreement", "Cohen's kappa of two reviewers, label by label", lambda: commands.reviews.agreement_options
    )


def _add_gists(top: Commands) -> None:
    gist = top.group("gist", "make gist tasks and their reference gists, score a gist")
    gist.add("new", "make gist tasks of a library's entrypoints", lambda: commands.gist_making.new_options)
    gist.add("list", "gist tasks by difficulty, with their reference", lambda: commands.gist_listing.list_options)
    gist.add(
        "reference", "make a gist by program: a known bound for the task", lambda: commands.gists.reference_options
    )
    gist.add(
        "conditions",
        "write the settings of the paper's conditions",
        lambda: commands.gist_listing.conditions_options,
    )
    gist.add("score", "score a gist, with the evidence", lambda: commands.gists.score_options)


def _add_study(study: Commands) -> None:
    """Add the commands of a study."""
    study.add("new", "make the folder of a study", lambda: commands.studies.new_options)
    study.add("check", "what is missing or unsound before it opens", lambda: commands.studies.check_options)
    study.add("open", "freeze the declaration and let people take part", lambda: commands.studies.open_options)
    study.add(
        "join", "take part: consent, forms, tasks, to the end", lambda: commands.study_taking.join_options, screen=True
    )
    study.add("progress", "how far it is", lambda: commands.study_taking.progress_options, screen=True)
    study.add("enrol", "enrol participants: a code each", lambda: commands.study_people.enrol_options)
    study.add("sync", "publish this machine's attempts into the folder", lambda: commands.study_people.sync_options)
    study.add("share", "put it on the team's store, for other machines", lambda: commands.study_team.share_options)
    study.add("return", "free an assignment that can't be finished", lambda: commands.study_people.return_options)
    study.add("withdraw", "end somebody's part, and erase on request", lambda: commands.study_people.withdraw_options)
    study.add("erase", "erase the people whose retention has ended", lambda: commands.study_people.erase_options)
    study.add("compare", "passing repairs beside the originals", lambda: commands.study_beyond.compare_options)
    study.add("read", "read passing changes blind", lambda: commands.study_beyond.read_options, screen=True)
    study.add("amend", "put a changed declaration in force", lambda: commands.studies.amend_options)
    study.add("close", "end a study", lambda: commands.studies.close_options)
    study.add("demo", "a simulated study, to see what a report tells", lambda: commands.study_simulation.demo_options)
    study.add("simulate", "fill a simulated study", lambda: commands.study_simulation.simulate_options)
    study.add(
        "power", "what the design can tell, before anybody is asked", lambda: commands.study_simulation.power_options
    )
    study.add("solvers", "the recorded runs of declared models", lambda: commands.study_attempts.solvers_options)
    study.add("correct", "say what a span of an attempt counts as", lambda: commands.study_attempts.correct_options)
    study.add("exclude", "take an attempt out of the analyses", lambda: commands.study_attempts.exclude_options)
    study.add("include", "take an attempt back in", lambda: commands.study_attempts.include_options)
    study.add("export", "the data as tables, for other programs", lambda: commands.study_attempts.export_options)
    study.add("audit", "prove that the folder is as it was written", lambda: commands.study_people.audit_options)
    study.add("analyse", "the estimates of a study, as tables", lambda: commands.study_report.analyse_options)
    study.add(
        "report", "one page with all figures, methods and the checklist", lambda: commands.study_report.report_options
    )
