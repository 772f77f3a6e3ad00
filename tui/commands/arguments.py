"""Arguments that several commands take, and their values."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from gistpoint.core.errors import SourceError, UserError

if TYPE_CHECKING:
    from gistpoint.core.generation.settings import SourceSpec


TASK_HELP = "id or its beginning, a name in the demo, a folder or a .tar.zst"


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


def add_suite(
    parser: argparse.ArgumentParser,
    *,
    pytest_args: str = "such as 'tests -o addopts='",
    build_step: str = "before every test run",
    longest: str = "above which a run of the suite is too slow",
) -> None:
    """Add the options that a library's suite needs; callers may replace the help of three of them."""
    from gistpoint.core.tasks.repository import MAX_SUITE_SECONDS

    parser.add_argument(
        "--with", dest="extra", action="append", default=[], metavar="REQUIREMENT", help="for the suite"
    )
    parser.add_argument("--pytest-args", default="", metavar="ARGS", help=pytest_args)
    parser.add_argument(
        "--build-step", dest="build_steps", action="append", default=[], metavar="COMMAND", help=build_step
    )
    parser.add_argument("--exclude-newer", metavar="DATE", help="take no package that is newer")
    parser.add_argument(
        "--max-suite-seconds", type=positive, default=MAX_SUITE_SECONDS, metavar="S",
        help=f"{longest} (default: {MAX_SUITE_SECONDS:g})",
    )  # fmt: skip


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


def number(text: str) -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from error


def whole(text: str) -> int:
    """Return a whole number."""
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from error


def require_not_empty(options: argparse.Namespace, *names: str) -> None:
    """Raise `UserError` if one of these options was given without a value, as an unset shell variable does."""
    for name in names:
        if getattr(options, name) == "":
            raise UserError(f"--{name.replace('_', '-')} is empty.", hint="Give it a value, or leave it out.")


def settled_source(options: argparse.Namespace, source: str) -> str:
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
    words = [newest if word == source else word for word in getattr(options, "called", (source,))]
    raise SourceError(f"{source} needs a version; the newest is {newest}.", hint=shlex.join(["gistpoint", *words]))


def spec_of(options: argparse.Namespace, source: str) -> SourceSpec:
    """Return a source with the options for its suite; raises `UserError` for arguments that can't be split."""
    from gistpoint.core.generation.settings import SourceSpec

    try:
        pytest_args = tuple(shlex.split(options.pytest_args))
    except ValueError as error:
        raise UserError(f"--pytest-args can't be split into words: {error}.", hint="Close what is quoted.") from error
    return SourceSpec(
        source,
        pytest_args,
        tuple(options.extra),
        options.exclude_newer,
        tuple(options.build_steps),
        max_suite_seconds=options.max_suite_seconds,
    )
