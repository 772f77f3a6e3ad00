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
from io import BufferedWriter, FileIO, TextIOWrapper
from itertools import accumulate, chain, islice
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Literal, TextIO

from gistpoint.core.errors import UserError
from gistpoint.core.locations import is_circular
from gistpoint.core.text import is_ordinary, visible, visible_line
from gistpoint.core.unfinished import part_of, remove_abandoned
from gistpoint.tui import signs
from gistpoint.tui.machine_errors import STANDARD_OUTPUT, require_drawable

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

    Called before anything is done, since a command can't always repeat its output.
    """
    stream = sys.stdout
    with suppress(AttributeError, OSError, ValueError):  # a stream that a test captures has no descriptor
        if stream is None or fcntl(stream.fileno(), F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise UserError(
                "Standard output is closed: what the command prints would be lost. Nothing was done.",
                hint="Send it to a file with `> FILE`, or to /dev/null if you do not need it.",
            )


class _Output(FileIO):
    """Standard output. Its errors contain its name, which the system adds only for files opened by name."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = STANDARD_OUTPUT
            raise


class _Errors(FileIO):
    """Standard error. A message that can't be written is dropped, since no other place could report that."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BlockingIOError:
            raise
        except OSError:
            return memoryview(data).nbytes


def open_missing_streams() -> None:
    """Replace closed standard streams with the null device, and make the others accept any text.

    Characters that the encoding does not have are replaced. Errors of standard output contain its name;
    those of standard error are ignored.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - stays open
        elif isinstance(stream, TextIOWrapper) and stream.writable():
            stream.reconfigure(errors="gistpoint.plain")
            if stream is getattr(sys, f"__{name}__"):  # otherwise a test captures it, and must keep doing so
                setattr(sys, name, _reopened(stream, _Output if name == "stdout" else _Errors))


def _reopened(stream: TextIOWrapper, kind: type[FileIO]) -> TextIOWrapper:
    """Return a stream for the same open file, with the same encoding and buffering."""
    stream.flush()
    raw = kind(stream.fileno(), "wb", closefd=False)
    is_buffered = not isinstance(stream.buffer, FileIO)
    return TextIOWrapper(
        BufferedWriter(raw) if is_buffered else raw,
        encoding=stream.encoding,
        errors=stream.errors,
        newline="\n",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def drop_unwritable() -> None:
    """Drop output that can't be written, such as to a full disk: Python would fail again as it ends."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if stream is None or stream.closed:
            continue
        try:
            stream.flush()
        except OSError:
            # The text stays in the buffer, and Python flushes it again on exit: redirected, that succeeds.
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
    print(indented_json({"schema": schema, **values}))


def indented_json(value: object) -> str:
    """Return what `json.dumps(value, indent=1)` returns, in a tenth of the time."""
    import json  # screens don't need it

    import msgspec

    text = json.dumps(value)  # with an indent, the standard library uses its slow encoder in Python
    try:
        return msgspec.json.format(text, indent=1)
    except (msgspec.MsgspecError, RecursionError):  # NaN and infinity, which only Python's JSON allows
        return json.dumps(value, indent=1)


def print_text(text: str) -> None:
    """Print text with visible control characters."""
    print(visible(text))


def spelled(value: str | float | None) -> str:
    """Return a value as the text of a table's cell: floats have four significant digits, None is empty."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


_READABLE, _GAP = 12, 3
"""The cells that a column with long text needs to be readable, and the cells between two columns."""
_MEASURED, _LONG_GAP = 200, 2
"""The number of rows that determine the columns of a long table, and the cells between its columns."""


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, whole: int = 0) -> None:
    """Print a table; without a terminal, as columns separated by tabs.

    In a narrow terminal, the last columns are left out, and named, before any column becomes unreadable. The
    first `whole` columns are never cut. Without a terminal, and in a long table, each row is printed as soon
    as it is known.
    """
    if not sys.stdout.isatty():
        write = sys.stdout.write
        for row in chain([headings], rows):
            write(_tabbed(row))
        return
    found = iter(rows)
    rows = list(islice(found, _MEASURED))
    if (following := next(found, None)) is not None:
        _print_long_table(headings, rows, chain([following], found), whole)
    else:
        _print_drawn(headings, rows, whole)


def _print_drawn(headings: Sequence[str], rows: Iterable[Sequence[str]], whole: int) -> None:
    """Print a short table on a terminal, whose cells may take several lines."""
    rows = [[visible_line(cell) for cell in row] for row in rows]
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=drawn_on(sys.stdout))
    least = _least([max(map(cell_len, column)) for column in zip(headings, *rows, strict=True)], whole)
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
        print(_too_narrow(left_out))


def _tabbed(row: Sequence[str]) -> str:
    """Return a row as a line of cells with tabs between them."""
    # A line is tested once, instead of each of a million cells.
    if is_ordinary("".join(row)):
        return "\t".join(row) + "\n"
    return "\t".join(map(visible_line, row)) + "\n"


def _print_long_table(
    headings: Sequence[str], measured: Sequence[Sequence[str]], rows: Iterable[Sequence[str]], whole: int
) -> None:
    """Print rows on a terminal as they become known, each on one line.

    The `measured` rows come first, and determine the widths; longer cells of later rows are cut.
    """
    from rich.cells import cell_len, set_cell_size

    def line(cells: Sequence[str]) -> str:
        return (" " * _LONG_GAP).join(map(cell, cells, widths, numeric)).rstrip() + "\n"

    def cell(text: str, width: int, is_number: bool) -> str:
        text = visible_line(text)
        length = len(text) if text.isascii() else cell_len(text)
        if length > width:
            return set_cell_size(text, width - 1) + "…" if width > 1 else "…"
        return " " * (width - length) + text if is_number else text + " " * (width - length)

    columns = list(zip(headings, *measured, strict=True))
    widths = _fitted(
        [max(map(cell_len, map(visible_line, column))) for column in columns],
        get_terminal_size().columns,
        whole,
    )
    numeric = [_are_numbers(column[1:]) for column in columns]
    write = sys.stdout.write
    write(line(headings))
    write(signs.RULE * (sum(widths) + _LONG_GAP * (len(widths) - 1)) + "\n")
    for row in chain(measured, rows):
        write(line(row))
    if left_out := headings[len(widths) :]:
        print(_too_narrow(left_out))


def _fitted(widths: list[int], room: int, whole: int) -> list[int]:
    """Return the widths of the first columns, so that as many as stay readable fit into `room` cells.

    The first `whole` columns keep their width, unless they are wider than the room.
    """
    least = _least(widths, whole)
    fitting = max(1, sum(end - _LONG_GAP <= room for end in accumulate(n + _LONG_GAP for n in least)))
    found, excess = widths[:fitting], sum(widths[:fitting]) + _LONG_GAP * (fitting - 1) - room
    may_be_cut = range(whole if fitting > whole else 0, fitting)
    while excess > 0 and max(found[at] for at in may_be_cut) > 1:
        widest = max(may_be_cut, key=found.__getitem__)
        found[widest] -= 1
        excess -= 1
    return found


def _least(widths: list[int], whole: int) -> list[int]:
    """Return the widths to which columns may be cut; the first `whole` ones may not."""
    return widths[:whole] + [min(_READABLE, width) for width in widths[whole:]]


def _too_narrow(headings: Sequence[str]) -> str:
    return f"Too narrow for: {', '.join(headings)}. A wider terminal or `| cat` shows them."


_NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?%?")


def _are_numbers(cells: Sequence[str]) -> bool:
    """Return whether all filled cells of a column are numbers; False if there are none."""
    filled = [cell for cell in cells if cell]
    return bool(filled) and all(_NUMBER.fullmatch(cell) for cell in filled)


def print_records(columns: Sequence[Column[Row]], rows: Iterable[Row], *, whole: int = 0) -> None:
    """Print a table with a row for each record.

    On a terminal, columns that are empty or repeat another are left out, as on screens; in a long table, the
    first rows decide. Other output keeps them, so that scripts can rely on the position of a column. The
    first `whole` columns are never cut.
    """
    if sys.stdout.isatty():
        from gistpoint.tui.tables import informative_columns

        found = iter(rows)
        measured = list(islice(found, _MEASURED))
        columns = informative_columns(
            columns, [[column.shown(row) for row in measured] for column in columns]
        )
        rows = chain(measured, found)
    cells = [column.shown for column in columns]
    print_table(
        [column.name for column in columns],
        ([cell(row) for cell in cells] for row in rows),
        whole=whole,
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


def is_stream(target: Path) -> bool:
    """Return whether a target is standard output or a device, even if a shell sends it to a file."""
    return target.absolute().parts[1:2] in (("dev",), ("proc",)) or (target.exists() and not target.is_file())


def warn_unless_html(target: Path) -> None:
    """Warn if the name of a page's file does not end in `.html`: browsers show such a file as plain text."""
    if target.suffix.lower() not in (".html", ".htm") and not is_stream(target):
        name = visible_line(target.name)
        print(
            f"gistpoint: {name} does not end in .html, so browsers show the page as plain text.",
            file=sys.stderr,
        )


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
