"""The output of commands: tables for people, and JSON with a schema for scripts.

Data is never interpreted as markup.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fcntl import F_GETFL, fcntl
from functools import lru_cache
from io import TextIOWrapper
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from gistpoint.core.errors import UserError
from gistpoint.core.locations import is_circular
from gistpoint.core.text import visible, visible_line
from gistpoint.core.unfinished import part_of, remove_abandoned
from gistpoint.tui import signs
from gistpoint.tui.machine_errors import require_drawable

if TYPE_CHECKING:
    from gistpoint.tui.tables import Column, Row


class ReadableTerminal:
    """A terminal as standard output or error, on which control characters in printed text are made visible.

    A name or message that a `print` has not made visible can therefore not control the terminal.
    """

    def __init__(self, terminal: TextIO) -> None:
        self.terminal = terminal
        """The stream itself, for code that draws with its own control characters."""

    def write(self, text: str) -> int:
        """Write text with visible control characters, except newlines and tabs. Return its length."""
        self.terminal.write(visible(text.replace("\r\n", "\n")))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several strings."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.terminal, name)


_PLAIN = str.maketrans(
    {"–": "-", "—": "-", "−": "-", "…": "...", "·": "-", "×": "x", "“": '"', "”": '"'}
    | {signs.GOOD: "ok", signs.BAD: "no", signs.DIFFERS: "!="}
)
"""Plain characters for signs that an encoding does not have."""


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return plain characters, or escapes, for what can't be encoded (an error handler of `codecs`)."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_PLAIN)
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end


codecs.register_error("gistpoint.plain", _plain)


def require_output() -> None:
    """Raise `UserError` if standard output is closed or can only be read (decision 192).

    Called before anything is done, since a command can't always print again what it has done.
    """
    stream = sys.stdout
    with suppress(AttributeError, OSError, ValueError):  # streams of tests have no file
        if stream is None or fcntl(stream.fileno(), F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise UserError(
                "Standard output is closed: what the command prints would be lost. Nothing was done.",
                hint="Send it to a file with `> FILE`, or to /dev/null if you do not need it.",
            )


def open_missing_streams() -> None:
    """Make all three streams usable: closed ones lead nowhere, and no text is refused by an encoding."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - stays open
        elif isinstance(stream, TextIOWrapper) and stream.writable():
            stream.reconfigure(errors="gistpoint.plain")


def drop_unwritable() -> None:
    """Drop output that can't be written, such as to a full disk: Python would fail again as it ends."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is None or stream.closed:
            continue
        try:
            stream.flush()
        except OSError:
            # The text stays in the stream's buffer, and Python flushes it once more as it ends.
            with suppress(OSError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)


@contextmanager
def readable_terminals() -> Iterator[None]:
    """Make printed control characters visible on terminals; other output is written unchanged."""
    before = sys.stdout, sys.stderr
    for name, stream in zip(("stdout", "stderr"), before, strict=True):
        if stream is not None and stream.isatty():
            setattr(sys, name, ReadableTerminal(stream))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def drawn_on(stream: TextIO) -> TextIO:
    """Return the stream for Rich, which draws with its own control characters."""
    return stream.terminal if isinstance(stream, ReadableTerminal) else stream


def print_json(schema: str, values: Mapping[str, Any]) -> None:
    """Print a JSON document. `schema` is the name and version of its form."""
    import json  # screens don't need it

    print(json.dumps({"schema": schema, **values}, indent=1, ensure_ascii=True))


def print_text(text: str) -> None:
    """Print text with visible control characters."""
    print(visible(text))


def spelled(value: str | float | None) -> str:
    """Return a value for a cell of a table: a float with four significant digits, and empty for None."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


_CELLS = 4_096
_READABLE, _GAP = 12, 3
"""The cells that a column with long text needs to be readable, and the cells between two columns."""


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; without a terminal, as columns separated by tabs.

    In a narrow terminal, the last columns are left out, and named, before any column becomes unreadable.
    Without a terminal, each row is printed as soon as it is there.
    """
    if not sys.stdout.isatty():
        shown = lru_cache(_CELLS)(visible_line)  # most cells repeat others
        for row in chain([headings], rows):
            print("\t".join(map(shown, row)))
        return
    rows = [[visible_line(cell) for cell in row] for row in rows]
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=drawn_on(sys.stdout))
    least = [min(_READABLE, max(map(cell_len, column))) for column in zip(headings, *rows, strict=True)]
    fitting = sum(end <= console.width for end in accumulate(width + _GAP for width in least))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    cells = [[row[at] for row in rows] for at in range(len(headings))]
    for heading, width, column in zip(headings[: max(1, fitting)], least, cells, strict=False):
        side: Literal["left", "right"] = "right" if _are_numbers(column) else "left"
        table.add_column(heading, overflow="ellipsis", min_width=min(width, console.width), justify=side)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row[: max(1, fitting)]))
    console.print(table)
    if left_out := headings[max(1, fitting) :]:
        print(f"Too narrow for: {', '.join(left_out)}. A wider terminal or `| cat` shows them.")


_NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?%?")


def _are_numbers(cells: Sequence[str]) -> bool:
    """Return whether all filled cells of a column are numbers; False if there are none."""
    filled = [cell for cell in cells if cell]
    return bool(filled) and all(_NUMBER.fullmatch(cell) for cell in filled)


def print_records(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> None:
    """Print a table with a row for each record.

    On a terminal, columns that are empty or repeat another are left out, as on screens. Other output keeps
    them, so that scripts can rely on the position of a column.
    """
    if sys.stdout.isatty():
        from gistpoint.tui.tables import telling

        rows = list(rows)
        columns = telling(columns, [[column.shown(row) for row in rows] for column in columns])
    print_table(
        [column.name for column in columns], ([column.shown(row) for column in columns] for row in rows)
    )


def for_output(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines for standard output.

    On a terminal, control characters are made visible; otherwise, only what can't be encoded is escaped.
    """
    if not sys.stdout.isatty():
        encoding = sys.stdout.encoding or "utf-8"
        yield from (line.encode(encoding, "backslashreplace").decode(encoding) for line in lines)
        return
    for line in lines:
        yield visible_line(line.rstrip("\r\n")) + "\n"


def write_whole(target: Path, pieces: Iterable[bytes], *, named: bool = True) -> None:
    """Write a file completely, as a temporary file that is then renamed. Raises `UserError` if that fails.

    If the user has `named` a link or a device, its target or the device is written to. Whatever has a name
    that gistpoint has chosen is replaced: in a shared folder, it could be a link to any of the user's files.
    """
    if target.is_dir():
        raise UserError(f"{target} is a folder.", hint="Name a file to write.")
    try:
        if named and target.exists() and not target.is_file():
            with target.open("wb") as device:
                device.writelines(pieces)
            return
        if is_circular(target):
            raise UserError(f"{target} can't be written: its links form a circle.")
        target = target.resolve() if named else target
        part = part_of(target)
        try:
            part.unlink(missing_ok=True)
            remove_abandoned(target)
            with part.open("xb") as file:
                file.writelines(pieces)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            f"{target} can't be written: {error.strerror}.",
            hint="Name another file, or change the rights of its folder or free some space.",
        ) from error


def make_folder(folder: Path) -> None:
    """Make a folder, and its parents if necessary. Raises `UserError` if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} can't be made: {error.strerror}.", hint="Name another one.") from error


def interactive() -> bool:
    """Return whether a screen can be shown: on a terminal, or in a browser through Textual's driver."""
    return bool(os.environ.get("TEXTUAL_DRIVER")) or (sys.stdin.isatty() and sys.stdout.isatty())


class NoTerminalError(UserError):
    """A screen was requested, but there is no terminal."""


def require_terminal(screen: str, *, hint: str) -> None:
    """Raise `NoTerminalError` if there is no terminal. `hint` names a command that prints instead.

    Raises another `UserError` if the terminal can't show the characters of the screens.
    """
    if not interactive():
        raise NoTerminalError(f"The {screen} screen needs a terminal.", hint=hint)
    require_drawable()
