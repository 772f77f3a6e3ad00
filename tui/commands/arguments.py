"""Arguments that several commands take, and their values."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence

from gistpoint.core.errors import SourceError, did_you_mean
from gistpoint.core.requests import IsolationChoice
from gistpoint.tui.commands.command import SANDBOX_HELP, UNSANDBOXED_HELP
from gistpoint.tui.commands.options import Word, Words, add_words, argument, number, option, request_of, whole

TASK_HELP = "id or its beginning, a name in the demo, a folder or a .tar.zst"
TASK = argument("TASK", TASK_HELP)


def backend_name(text: str) -> str:
    """Return the name of a backend. Raises `argparse.ArgumentTypeError`."""
    from gistpoint.sandbox.ladder import builtin_backends, installed_backends

    known = [*builtin_backends(), *installed_backends()]
    if text in known:
        return text
    raise argparse.ArgumentTypeError(f"there is no sandbox {text!r}: {', '.join(known)}.{did_you_mean(text, known)}")


def sandbox_word(help: str = SANDBOX_HELP) -> Word:
    """Return the word for the name of a backend."""
    return option("--sandbox", metavar="BACKEND", help=help, read=backend_name)


ISOLATION = Words(
    {"sandbox": sandbox_word(), "allow_unsandboxed": option("--allow-unsandboxed", help=UNSANDBOXED_HELP)},
    title="isolation",
)
JSON = option("--json", help="as JSON")
PLAIN = option("--plain", help="lines of text in a terminal too, in place of the screen")
LINES = option("--lines", help="no screen: read tool calls from standard input, one a line, and answer")
READ_AS = option("--as", metavar="FORMAT", help="read the files as this format")


def read_files_as(name: str) -> None:
    """Read files as the named format; empty for the one that each is recognised as. Raises `UserError`."""
    from gistpoint.sessions.formats.registry import read_as

    read_as(name)


def add_isolation(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the isolation."""
    add_words(parser, IsolationChoice, ISOLATION)


def add_sandbox(parser: argparse.ArgumentParser, words: str) -> None:
    """Add `--sandbox` alone."""
    parser.add_argument("--sandbox", metavar="BACKEND", type=backend_name, default=argparse.SUPPRESS, help=words)


def isolation_of(options: argparse.Namespace) -> IsolationChoice:
    """Return the isolation that parsed options ask for."""
    return request_of(IsolationChoice, ISOLATION, options)


def add_lines(parser: argparse.ArgumentParser) -> None:
    """Add `--lines`, for an attempt without a screen."""
    parser.add_argument(
        "--lines", action="store_true", help="no screen: read tool calls from standard input, one a line, and answer"
    )


def add_read_as(parser: argparse.ArgumentParser) -> None:
    """Add the option that forces a format, which `heed_read_as` heeds."""
    parser.add_argument("--as", dest="read_as", default="", metavar="FORMAT", help="read the files as this format")


def heed_read_as(options: argparse.Namespace) -> None:
    """Read files as the format that the options name, if they name one. Raises `UserError` if there is none."""
    from gistpoint.sessions.formats.registry import read_as

    read_as(options.read_as)


SUITE = Words(
    {
        "extra": option("--with", metavar="REQUIREMENT", help="for the suite"),
        "pytest_args": option("--pytest-args", metavar="ARGS", help="such as 'tests -o addopts='"),
        "build_steps": option("--build-step", metavar="COMMAND", help="before every test run"),
        "exclude_newer": option("--exclude-newer", metavar="DATE", help="take no package that is newer"),
        "max_suite_seconds": option(
            "--max-suite-seconds", metavar="S", help="above which a run of the suite is too slow (default: {default})"
        ),
    }
)
"""The words of what a library's suite needs."""


def counted(text: str) -> int:
    """Return a whole number of 1 or more."""
    value = whole(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


def step_number(text: str) -> int:
    """Return the number of a step of a run."""
    try:
        return counted(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a step: a step is given by its number, counted from 1, as `gistpoint show RUN` prints it"
        ) from error


def natural(text: str) -> int:
    """Return a whole number of 0 or more."""
    value = whole(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return value


def port(text: str) -> int:
    """Return the number of a TCP port, or 0 for any that is free."""
    value = natural(text)
    if value > 65_535:
        raise argparse.ArgumentTypeError("must be 65535 or less")
    return value


def positive(text: str) -> float:
    """Return a finite number above 0."""
    value = number(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("must be a number above 0")
    return value


def share(text: str) -> float:
    """Return a number above 0, and 1 or less."""
    try:
        value = positive(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0 and up to 1") from error
    if value > 1:
        raise argparse.ArgumentTypeError("must be at most 1")
    return value


def settled_source(source: str, called: Sequence[str]) -> str:
    """Return a source that names something by its form; of a package without a version the newest, after a yes.

    Raises `SourceError`, without a terminal also for a missing version, with the command that has it.
    """
    from gistpoint.sandbox.environments.sources import is_bare_name, newest_version, require_form

    if not is_bare_name(source):
        require_form(source)
        return source
    newest = newest_version(source)
    if sys.stdin.isatty() and sys.stderr.isatty():
        print(f"{source} is given without a version. The newest is {newest}. Take it? [Y/n] ", end="", file=sys.stderr)
        sys.stderr.flush()
        if input().strip().lower() in ("", "y", "yes"):
            return newest
    words = [newest if word == source else word for word in called]
    raise SourceError(f"{source} needs a version; the newest is {newest}.", hint=shlex.join(["gistpoint", *words]))
