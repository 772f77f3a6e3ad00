"""The table of the lines that a search has found, which is imported when it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from gistpoint.sessions.runs.found_lines import FoundLine
from gistpoint.tui.tables import Column
from gistpoint.tui.widgets.table import Table

_RUN: Column[FoundLine] = Column(
    "run",
    lambda found: PurePath(found.first.run).name,
    rank=1,
    least=16,
    keeps_end=True,
    style=lambda found: "$text-secondary",
)


def step_words(found: FoundLine) -> str:
    """Return the number of a line's step, counted from 1, as text; empty for a line of the header."""
    return "" if found.first.step is None else str(found.first.step + 1)


def _line_marks(found: FoundLine) -> list[tuple[int, int]]:
    """Return the start and the end of each match in a line, counted without the line's indent."""
    line = found.quoted
    indent = len(line) - len(line.lstrip())
    return [(max(0, start - indent), max(0, end - indent)) for start, end in found.marks]


LINE_COLUMNS: tuple[Column[FoundLine], ...] = (
    Column(
        "step",
        step_words,
        lambda found: found.first.step,
        width=4,
        right=True,
        rank=2,
        style=lambda found: "$foreground 60%",
    ),
    Column("part", lambda found: found.part, rank=4, style=lambda found: "$text-primary"),
    Column("line", lambda found: found.quoted.strip(), rank=3, least=24, marks=_line_marks),
    Column(
        "traceback of",
        lambda found: found.first.error,
        rank=5,
        least=16,
        style=lambda found: "$text-error",
    ),
)
"""The columns of a list of found lines, except the run. The error is from the traceback around a line."""


class HitList(Table["FoundLine"]):
    """The table of found lines, in the order in which they were found."""

    HEAD = 0

    def __init__(self, *, id: str) -> None:
        super().__init__(LINE_COLUMNS, id=id)

    def show_lines(self, lines: Sequence[FoundLine], *, names_runs: bool) -> None:
        """Show found lines; with `names_runs`, also the run of each."""
        self.columns = (_RUN, *LINE_COLUMNS) if names_runs else LINE_COLUMNS
        self.show(lines)
