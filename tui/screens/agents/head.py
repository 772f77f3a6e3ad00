"""The lines at the top of a watched run: its condition, its rates, and the activity of its jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.cells import cell_len

from gistpoint.core.text import plural, visible_line
from gistpoint.sessions.agentruns.condition import condition_parts
from gistpoint.sessions.agentruns.figure_lines import summary_lines
from gistpoint.sessions.agentruns.figures import RunFigures
from gistpoint.sessions.agentruns.jobs import JobStatus
from gistpoint.sessions.agentruns.store import RunSettings
from gistpoint.tui.agent_rows import JobRow
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.record_list import fitted_cells

_SEPARATOR = " · "
_SOLVED = "solved"
"""The prefix of all rates of solved jobs."""
_PADDING = 2
TALL = 30
"""The height of a screen, in lines, from which all parts are shown."""


def head_lines(settings: RunSettings, totals: RunFigures, rows: Sequence[JobRow]) -> list[list[str]]:
    """Return the condition, the rates, and the counts, costs and tokens: a list of parts for each."""
    model = settings.model_and_api
    where = f"{model} at {settings.host}" if settings.host else model
    figures = summary_lines(totals, "")  # no other line names the run
    rates = [f"{name} {words}" for name, words in figures.items() if name.startswith(_SOLVED)]
    if totals.solved is not None and totals.solved_bounds is not None:
        to_be_read = f"; {totals.to_be_read} more to be read" if totals.to_be_read else ""
        rates[0] = f"{_SOLVED} {totals.solved.words}; {totals.solved_bounds.short_words}{to_be_read}"
    spent = [f"cost {figures['cost']}"] if totals.cost_usd is not None else []
    spent.append(plural(totals.prompt_tokens + totals.completion_tokens, "token"))
    return [
        [where, *condition_parts(settings)],
        rates if totals.counted else [],
        [*count_words(rows), *spent],
    ]


def packed(parts: Sequence[str], width: int) -> list[str]:
    """Return the parts with dots between them, in lines of at most `width` cells; a longer part is cut."""
    lines: list[str] = []
    for part in map(visible_line, parts):
        longer = f"{lines[-1]}{_SEPARATOR}{part}" if lines else part
        if lines and cell_len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return [fitted_cells(line, width) if cell_len(line) > width else line for line in lines]


def count_words(rows: Sequence[JobRow]) -> list[str]:
    """Return the numbers of jobs in each state, and of waiting requests, in words; zeros are left out."""
    statuses = Counter(row.job.status for row in rows)
    at_work = [row for row in rows if row.at_work]
    waiting = sum(row.shown.waits for row in at_work)
    counts = {
        "at work": len(at_work),
        "queued": statuses[JobStatus.QUEUED],
        "left": sum(row.job.status is JobStatus.BEGUN and not row.live for row in rows),
        "halted": sum(row.halted for row in rows),
        "excluded": statuses[JobStatus.EXCLUDED],
        "taken over": sum(row.shown.has_person for row in rows),
        "mixed": sum(row.shown.mixed and row.shown.ending is not None for row in rows),
    }
    words = [f"{count} {name}" for name, count in counts.items() if count]
    return [*words, f"{plural(waiting, 'request')} waiting"] if waiting else words


class RunHead(Plain):
    """The lines about a run. The screen is laid out again only if their number changes."""

    DEFAULT_CSS = """
    RunHead { height: auto; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__("", id="run-head")
        self._parts: Sequence[Sequence[str]] = ()
        self._lines: list[str] = []

    def show(self, parts: Sequence[Sequence[str]]) -> None:
        """Show other lines, each given as its parts."""
        self._parts = parts
        self.fit()

    def fit(self) -> None:
        """Break the lines for the size of the screen. In a low one, each list of parts gets one line."""
        width, height = self.screen.size
        most = None if height >= TALL else 1
        lines = [line for parts in self._parts for line in packed(parts, max(1, width - _PADDING))[:most]]
        if lines != self._lines:
            moved = len(lines) != len(self._lines)
            self._lines = lines
            self.update("\n".join(lines), layout=moved)
