"""Arguments and options that several commands share."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from gistpoint.core.errors import SourceError, UserError, did_you_mean
from gistpoint.core.requests import Request
from gistpoint.tui.commands.command import SANDBOX_HELP, UNSANDBOXED_HELP
from gistpoint.tui.commands.options import Option, OptionTable, argument, option

TASK_HELP = "id or its beginning, title, two-word name, folder or .tar.zst"
TASK = argument("TASK", TASK_HELP)


def backend_name(text: str) -> str:
    """Return the name of a backend. Raises `argparse.ArgumentTypeError` for an unknown one."""
    from gistpoint.sandbox.ladder import builtin_backends, installed_backends

    known = [*builtin_backends(), *installed_backends()]
    if text in known:
        return text
    raise argparse.ArgumentTypeError(
        f"there is no sandbox {text!r}: {', '.join(known)}.{did_you_mean(text, known)}"
    )


def sandbox_option(help: str = SANDBOX_HELP) -> Option:
    """Return the declaration of the option `--sandbox`, which takes the name of a backend."""
    return option(help, "--sandbox", metavar="BACKEND", read=backend_name)


ISOLATION = OptionTable(
    {"sandbox": sandbox_option(), "allow_unsandboxed": option(UNSANDBOXED_HELP)},
    title="isolation",
)
JSON = option("as JSON", "--json")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRequest(Request):
    """A request whose only option is the output as JSON."""

    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyRequest(Request):
    """A request without options."""


PLAIN = option("lines of text instead of the screen, even in a terminal", "--plain")
LINES = option("no screen: read tool calls from standard input, one per line, and answer them", "--lines")
READ_AS = option("read the files as this format", "--as", metavar="FORMAT")

WHERE = option(
    "only runs that match a query, such as 'not edited and tool:bash > 5' or @NAME for a kept one",
    metavar="QUERY",
)


def read_files_as(name: str) -> None:
    """Make this process read files in the named format or, if `name` is empty, in the one it recognises.

    Raises `UserError` for an unknown format.
    """
    from gistpoint.sessions.formats.registry import read_as

    read_as(name)


SUITE = OptionTable(
    {
        "extra": option("packages that the suite needs", "--with", metavar="REQUIREMENT"),
        "pytest_args": option("arguments for pytest, such as 'tests -o addopts='", metavar="ARGS"),
        "build_steps": option(
            "shell command to run before every test run", "--build-step", metavar="COMMAND"
        ),
        "exclude_newer": option("exclude packages newer than this", metavar="DATE"),
        "max_suite_seconds": option("refuse a suite that takes longer (default: {default})", metavar="S"),
    }
)
"""The options for the needs of a library's test suite."""


def typed_answer(question: str) -> str:
    """Ask on standard error, and return the typed line without spaces around it.

    Raises `UserError` if the input has ended, for example after Ctrl+D.
    """
    print(question, end="", file=sys.stderr, flush=True)
    try:
        return input().strip()
    except EOFError:
        print(file=sys.stderr)
        raise UserError("Nothing was answered.", hint="Run the command again, and type an answer.") from None


def settled_source(source: str, called: Sequence[str]) -> str:
    """Return a source in complete form. For a package without a version, offer the newest one.

    `called` are the words of the command. Raises `SourceError` for a source of no known form, and, unless
    the offer is accepted, for a missing version, with the complete command as the hint.
    """
    from gistpoint.sandbox.environments.sources import is_bare_name, newest_version, require_form

    if not is_bare_name(source):
        require_form(source)
        return source
    newest = newest_version(source)
    if sys.stdin.isatty() and sys.stderr.isatty():
        question = f"{source} was given without a version. The newest is {newest}. Use it? [Y/n] "
        if typed_answer(question).lower() in ("", "y", "yes"):
            return newest
    words = [newest if word == source else word for word in called]
    raise SourceError(
        f"{source} needs a version; the newest is {newest}.", hint=shlex.join(["gistpoint", *words])
    )
