"""Output of commands: tables for people, JSON with a schema for scripts.

Text from outside is never markup.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from gistpoint.core.errors import UserError
from gistpoint.core.text import visible, visible_line

if TYPE_CHECKING:
    from gistpoint.tui.tables import Column, Row


class ReadableTerminal:
    """A terminal as standard output or error of a command: what is printed has its control characters
    visible.

    So a name or a message that a `print` forgot to make visible can't act on the terminal.
    """

    def __init__(self, terminal: TextIO) -> None:
        self.terminal = terminal
        """The stream itself, for what draws with control characters of its own."""

    def write(self, text: str) -> int:
        """Write a text, with its newlines and tabs as they are; return how many characters it has."""
        self.terminal.write(visible(text.replace("\r\n", "\n")))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write some texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.terminal, name)


@contextmanager
def readable_terminals() -> Iterator[None]:
    """Have what is printed to a terminal made visible, until the end; a pipe gets the bytes as they are."""
    before = sys.stdout, sys.stderr
    for name, stream in zip(("stdout", "stderr"), before, strict=True):
        if stream is not None and stream.isatty():
            setattr(sys, name, ReadableTerminal(stream))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def drawn_on(stream: TextIO) -> TextIO:
    """Return a stream for Rich, which draws with control characters of its own."""
    return stream.terminal if isinstance(stream, ReadableTerminal) else stream


def print_json(schema: str, values: Mapping[str, Any]) -> None:
    """Print one JSON document. `schema` names its form and version."""
    import json  # a screen needs none

    print(json.dumps({"schema": schema, **values}, indent=1, ensure_ascii=True))


def print_text(text: str) -> None:
    """Print text from anywhere with visible control characters."""
    print(visible(text))


def spelled(value: str | float | None) -> str:
    """Return a value as a cell of a table: a number with four digits, nothing if it is unknown."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


_READABLE, _GAP = 12, 3
"""Cells that a column needs at least if its content has as many, and the cells between two columns."""


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table. Without a terminal, print plain columns that a script can cut.

    In a narrow terminal, the last columns are omitted and named before any becomes unreadable.
    """
    rows = [[visible_line(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in [list(headings), *rows]:
            print("\t".join(row))
        return
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=drawn_on(sys.stdout))
    least = [min(_READABLE, max(map(cell_len, column))) for column in zip(headings, *rows, strict=True)]
    fitting = sum(end <= console.width for end in accumulate(width + _GAP for width in least))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, width in zip(headings[: max(1, fitting)], least, strict=False):
        table.add_column(heading, overflow="ellipsis", min_width=min(width, console.width))
    for row in rows:
        table.add_row(*(Text(cell) for cell in row[: max(1, fitting)]))
    console.print(table)
    if left_out := headings[max(1, fitting) :]:
        print(f"Too narrow for: {', '.join(left_out)}. A wider terminal shows them, or `| cat`.")


def print_records(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> None:
    """Print a row for each record."""
    print_table(
        [column.name for column in columns], ([column.shown(row) for column in columns] for row in rows)
    )


def for_output(lines: Iterable[str]) -> Iterator[str]:
    """Make control characters visible on a terminal. A pipe gets the bytes unchanged."""
    if not sys.stdout.isatty():
        encoding = sys.stdout.encoding or "utf-8"
        yield from (line.encode(encoding, "backslashreplace").decode(encoding) for line in lines)
        return
    for line in lines:
        yield visible_line(line.rstrip("\r\n")) + "\n"


def write_whole(target: Path, pieces: Iterable[bytes], *, named: bool = True) -> None:
    """Write a temporary file, then rename it, so that the file is never half-written. Raises `UserError`.

    A link or a device that the user has `named` is written to. Where the name is gistpoint's, the file takes
    the place of whatever is there: in a shared folder that may be a link to any file of the user.
    """
    if target.is_dir():
        raise UserError(f"{target} is a folder.", hint="Name a file to write.")
    try:
        if named and target.exists() and not target.is_file():
            with target.open("wb") as device:
                device.writelines(pieces)
            return
        target = target.resolve() if named else target
        part = target.with_name(f".{target.name[:200]}.{os.getpid()}.part")
        try:
            part.unlink(missing_ok=True)
            with part.open("xb") as file:
                file.writelines(pieces)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{target} can't be written: {error.strerror}.") from error
    except RuntimeError as error:  # before Python 3.13 links in a circle are no OSError
        raise UserError(f"{target} can't be written: its links lead in a circle.") from error


def make_folder(folder: Path) -> None:
    """Make a folder and its parents if necessary. Raises `UserError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} can't be made: {error.strerror}.", hint="Name another one.") from error


def interactive() -> bool:
    """Whether there is a terminal for a screen, or a browser in its place, to which Textual's driver speaks."""
    return bool(os.environ.get("TEXTUAL_DRIVER")) or (sys.stdin.isatty() and sys.stdout.isatty())


class NoTerminalError(UserError):
    """A screen needs a terminal."""


def require_terminal(screen: str, *, hint: str) -> None:
    """Raise `NoTerminalError` without a terminal; `hint` names the command that prints instead."""
    if not interactive():
        raise NoTerminalError(f"The {screen} screen needs a terminal.", hint=hint)
