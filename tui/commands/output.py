"""How commands print: tables for people, JSON with a schema for scripts, nothing from outside as markup."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gistpoint.core.errors import UserError
from gistpoint.core.text import visible, visible_line


def print_json(schema: str, values: Mapping[str, Any]) -> None:
    """Print one JSON document; `schema` names its form and version."""
    print(json.dumps({"schema": schema, **values}, indent=1, ensure_ascii=True))


def print_text(text: str) -> None:
    """Print text from anywhere, its control characters visible."""
    print(visible(text))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; without a terminal as plain columns that a script can cut."""
    rows = [[visible_line(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in [list(headings), *rows]:
            print("\t".join(row))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="ellipsis")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def for_output(lines: Iterable[str]) -> Iterator[str]:
    """Make what the terminal would act on visible; a pipe gets the bytes as they are."""
    if not sys.stdout.isatty():
        encoding = sys.stdout.encoding or "utf-8"
        yield from (line.encode(encoding, "backslashreplace").decode(encoding) for line in lines)
        return
    for line in lines:
        yield visible_line(line.rstrip("\r\n")) + "\n"


def write_whole(target: Path, pieces: Iterable[bytes]) -> None:
    """Write beside a file and then take its place, so that nobody finds half of it. Raises `UserError`."""
    if target.is_dir():
        raise UserError(f"{target} is a folder.", hint="Name a file to write.")
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as device:
                device.writelines(pieces)
            return
        target = target.resolve()
        part = target.with_name(f".{target.name[:200]}.{os.getpid()}.part")
        try:
            with part.open("wb") as file:
                file.writelines(pieces)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{target} can't be written: {error.strerror}.") from error


def duration(milliseconds: int) -> str:
    """Return a duration as `1:02:03` or `2:03`."""
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def interactive() -> bool:
    """Whether there is a terminal for a screen."""
    return sys.stdin.isatty() and sys.stdout.isatty()
