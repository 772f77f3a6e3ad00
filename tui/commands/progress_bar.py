"""The progress line on a terminal: the name of the work, a bar, a count and times."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from gistpoint.core.readable import duration
from gistpoint.tui.commands.output import drawn_on

_BAR_WIDTH = 12
"""The width of the bar, in cells."""
_NARROW, _WIDE = 60, 100
"""The widths, in cells, from which there is room for the bar and for the key that stops."""


class ProgressBar:
    """A line at the bottom of standard error, drawn several times a second."""

    def __init__(self) -> None:
        console = Console(file=drawn_on(sys.stderr), highlight=False)
        name = TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True))
        columns: list[ProgressColumn] = [
            SpinnerColumn("dots" if console.encoding.startswith("utf") else "line"),
            name,
            *([BarColumn(bar_width=_BAR_WIDTH)] if console.width >= _NARROW else []),
            TextColumn("{task.fields[count]}", markup=False, table_column=Column(no_wrap=True)),
            _Times(table_column=Column(no_wrap=True)),
        ]
        if console.width >= _WIDE:
            columns.append(TextColumn("Ctrl+C stops", style="dim"))
        self._progress = Progress(
            *columns, console=console, transient=True, expand=True, redirect_stdout=sys.stdout.isatty()
        )
        self._task = self._progress.add_task("", total=None, visible=False, count="", left_s=None)
        self._progress.start()

    def show(
        self,
        name: str,
        done: int = 0,
        total: int | None = None,
        *,
        count: str = "",
        left_s: float | None = None,
        restart: bool = False,
    ) -> None:
        """Show the current work. `restart` resets the clock. Without `total`, the bar only moves."""
        if restart:
            self._progress.reset(self._task, total=total, description=name)
        if not count and total:
            count = f"{done}/{total}"
        self._progress.update(
            self._task,
            description=name,
            completed=done,
            total=total,
            visible=True,
            count=count,
            left_s=left_s,
        )

    def line(self, text: str) -> None:
        """Print a line that remains above the bar."""
        self._progress.console.print(Text(text), soft_wrap=True)

    def close(self) -> None:
        """Remove the bar."""
        self._progress.stop()


class _Times(ProgressColumn):
    """The elapsed and the remaining time; the latter is reported by the work or estimated from the count."""

    def render(self, task: Task) -> Text:
        """Return the times as text."""
        left: float | None = task.fields.get("left_s")
        if left is None:
            left = task.time_remaining
        passed = duration(1000 * (task.elapsed or 0))
        return Text(passed if left is None else f"{passed}, {duration(1000 * left)} left")
