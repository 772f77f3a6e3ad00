"""Output of commands: tables for people, JSON with a schema for scripts; text from outside is never markup."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from signal import SIGINT, SIGTERM, signal
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gistpoint.core.errors import UserError
from gistpoint.core.running import CancelToken, RunProgress
from gistpoint.core.text import visible, visible_line
from gistpoint.tui.tables import Column, Row

if TYPE_CHECKING:
    from gistpoint.core.generation.progress import CampaignProgress


def print_json(schema: str, values: Mapping[str, Any]) -> None:
    """Print one JSON document; `schema` names its form and version."""
    print(json.dumps({"schema": schema, **values}, indent=1, ensure_ascii=True))


def print_text(text: str) -> None:
    """Print text from anywhere, its control characters visible."""
    print(visible(text))


def spelled(value: str | float | None) -> str:
    """Return a value as a cell of a table: a number with four digits, nothing if it is unknown."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


_READABLE, _GAP = 12, 3
"""Cells that a column needs at least if its content has as many, and the cells between two columns."""


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; without a terminal as plain columns that a script can cut.

    In a narrow terminal the last columns are left out, and named, before any becomes unreadable.
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

    console = Console()
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
    print_table([column.name for column in columns], ([column.shown(row) for column in columns] for row in rows))


def for_output(lines: Iterable[str]) -> Iterator[str]:
    """Make control characters visible on a terminal; a pipe gets the bytes as they are."""
    if not sys.stdout.isatty():
        encoding = sys.stdout.encoding or "utf-8"
        yield from (line.encode(encoding, "backslashreplace").decode(encoding) for line in lines)
        return
    for line in lines:
        yield visible_line(line.rstrip("\r\n")) + "\n"


def write_whole(target: Path, pieces: Iterable[bytes]) -> None:
    """Write a temporary file, then rename it, so that the file is never half-written. Raises `UserError`."""
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


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, unless they are there. Raises `UserError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} can't be made: {error.strerror}.", hint="Name another one.") from error


def duration(milliseconds: int) -> str:
    """Return a duration as `1:02:03` or `2:03`."""
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def stamp(utc_ms: int) -> str:
    """Return a time stamp in local time with its zone: `2026-01-31 09:05 CET`; empty for 0."""
    return datetime.fromtimestamp(utc_ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M %Z") if utc_ms else ""


def interactive() -> bool:
    """Whether there is a terminal for a screen, or a browser in its place, to which Textual's driver speaks."""
    return bool(os.environ.get("TEXTUAL_DRIVER")) or (sys.stdin.isatty() and sys.stdout.isatty())


class NoTerminalError(UserError):
    """A screen needs a terminal."""


def require_terminal(screen: str, *, hint: str) -> None:
    """Raise `NoTerminalError` without a terminal; `hint` names the command that prints instead."""
    if not interactive():
        raise NoTerminalError(f"The {screen} screen needs a terminal.", hint=hint)


_INTERVAL_S = 0.1
_LOGGED_S = 30.0


class ProgressLine:
    """A context that shows `RunProgress` and plain lines as they come."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._step = ""
        self._shown_at = float("-inf")
        self._started = time.monotonic()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clear()

    def making(self, progress: RunProgress) -> None:
        """Show the progress of making a task."""
        from gistpoint.core.generation.progress import CampaignProgress

        if isinstance(progress, CampaignProgress):
            self._campaign(progress)
            return
        if progress.note:
            self.line(progress.note)
            return
        if not progress.step:
            self.count(progress.phase)
            return
        if progress.step != self._step:
            self.line(progress.step)
            self._step = progress.step
        now = time.monotonic()
        if not progress.phase or not self._live or now - self._shown_at < _INTERVAL_S:
            return
        self._shown_at = now
        count = f"{progress.done}/{progress.total}" if progress.total else progress.phase
        sys.stderr.write(f"\r\x1b[2K  {count}  {now - self._started:.0f} s")
        sys.stderr.flush()

    def _campaign(self, progress: CampaignProgress) -> None:
        """Show what a campaign does in one line; without a terminal a line every half minute, for a log."""
        now = time.monotonic()
        if now - self._shown_at < (_INTERVAL_S if self._live else _LOGGED_S):
            return
        if self._live:
            self.count(fitting(campaign_parts(progress), shutil.get_terminal_size().columns - 3))
            return
        self._shown_at = now
        self.line("; ".join(campaign_parts(progress)))

    def detail(self, text: str) -> None:
        """Show a line of a running tool; the next one replaces it. Nothing is shown without a terminal."""
        if self._live:
            sys.stderr.write(f"\r\x1b[2K  {visible_line(text)[:76]}")
            sys.stderr.flush()

    def count(self, text: str) -> None:
        """Show a running count; the next line replaces it. Nothing is shown without a terminal."""
        now = time.monotonic()
        if self._live and now - self._shown_at >= _INTERVAL_S:
            self._shown_at = now
            sys.stderr.write(f"\r\x1b[2K  {visible_line(text)[: shutil.get_terminal_size().columns - 3]}")
            sys.stderr.flush()

    def line(self, text: str) -> None:
        """Print a permanent line."""
        self._clear()
        print(visible_line(text), file=sys.stderr, flush=True)

    def _clear(self) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


def campaign_parts(progress: CampaignProgress) -> list[str]:
    """Return what is known of a campaign, the most important first."""
    parts = [f"{len(progress.kept)}/{progress.wanted} kept of {progress.tried} tried of {progress.candidates}"]
    left = "" if progress.remaining is None else f", about {duration(round(1000 * progress.remaining))} left"
    parts.append(f"{duration(round(1000 * progress.elapsed))}{left}")
    for trial in progress.trials:
        function = trial.function.partition("::")[2]
        number = f", try {trial.attempt}" if trial.attempt else ""
        latest = f", before it: {_words(trial.latest)}" if trial.latest else ""
        parts.append(f"{function}{number}{f' ({trial.family})' if trial.family else ''}{latest}")
    parts.append(f"{progress.tests_per_second:.0f} tests/s")
    parts += [f"{count} {_words(reason)}" for reason, count in progress.dropped.items()]
    return parts


def _words(name: str) -> str:
    return name.replace("_", " ")


def fitting(parts: Sequence[str], width: int) -> str:
    """Return the parts that fit into a line of `width` cells, the last one cut where it ends."""
    text = visible_line("; ".join(parts))
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"


@contextmanager
def interruptible() -> Iterator[CancelToken]:
    """Turn the first Ctrl-C into a cancel; the second ends the program as ever."""
    cancel = CancelToken()

    def stop(*_: object) -> None:
        cancel.cancel()
        signal(SIGINT, before)

    before = signal(SIGINT, stop)
    try:
        yield cancel
    finally:
        signal(SIGINT, before)


@contextmanager
def orderly_end() -> Iterator[None]:
    """Let SIGTERM end the program as an exit does, so that processes and folders are put away first."""

    def stop(*_: object) -> None:
        raise SystemExit(128 + SIGTERM)

    before = signal(SIGTERM, stop)
    try:
        yield
    finally:
        signal(SIGTERM, before)
