"""Measures how often the corrupted function is found and repaired (Breakpoint, figure 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log

from gistpoint.core.analysis.building import FindingsBuilder, TableBuilder
from gistpoint.core.analysis.findings import Bars, Findings, Number, Plot
from gistpoint.core.analysis.intervals import Scale, mean, share
from gistpoint.core.analysis.pooling import (
    by_mode,
    having,
)
from gistpoint.core.analysis.regression import shifted
from gistpoint.core.analysis.samples import FOUND, measuring
from gistpoint.core.kinds.registry import is_searched
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

DIAGNOSED = "diagnosed"
_MOMENTS: tuple[tuple[str, Callable[[AttemptRow], float | None]], ...] = (
    ("first view", lambda row: row.first_view_s),
    ("first mark", lambda row: row.first_mark_s),
    ("first touch", lambda row: row.first_touch_s),
)
NOTE = (
    "Found: at least one corrupted function was touched, as the paper counts it. Changed: the"
    " function's text differed in a submission. Both are recorded here for each attempt; the paper's code"
    " compares the names in tool calls. The share solved of those found is the paper's conditional rate."
)
MOMENTS_NOTE = (
    "Active minutes and tool calls until a corrupted function was first shown, marked as a suspect,"
    " and touched: geometric means of the attempts that got there, whose number is given; the others"
    " have no time, so these means are too low as a measure of all attempts. Times below one second count as"
    " one second. 1 is added to the number of calls before taking logarithms, because it can be 0, and"
    " subtracted again afterwards."
)


def diagnosis(data: StudyData) -> Findings:
    """Return the shares that found, changed and repaired a corrupted function, in discovery (figure 6).

    Also return the share of attempts with such a find that were solved and, for people, the minutes and calls
    until a corrupted function was first viewed, marked and touched.
    """
    builder = FindingsBuilder()
    table = builder.table(
        "Finding and repairing",
        ("group", "mode", "attempts", "found", "changed", "solved", "solved of found"),
        NOTE,
    )
    moments = builder.table(
        "How long it took to find", ("group", "moment", "got there", "of", "minutes", "calls"), MOMENTS_NOTE
    )
    groups = [group for group in measuring(data, FOUND) if is_searched(group.mode)]
    for mode, members in by_mode(groups).items():
        shown: dict[str, Mapping[str, Number]] = {}
        for group in members:
            rows = having(group.rows, FOUND)
            if not rows:
                continue
            numbers = {
                "found": share(rows, found),
                "changed": share(having(rows, DIAGNOSED), diagnosed),
                "solved": share(rows),
                "solved of found": share([row for row in rows if found(row)]),
            }
            table.row(group.label, mode, len(rows), *builder.numbers_of(f"{group.label}/{mode}", numbers))
            shown[group.label] = numbers
            if group.people:
                _add_moments(moments, f"{group.label}, {mode}", rows)
        if shown:
            builder.plot(_bars(mode, shown))
    builder.settings(groups)
    return builder.findings()


def found(row: AttemptRow) -> bool:
    """Return whether at least one corrupted function was touched."""
    return (row.number(FOUND) or 0) > 0


def diagnosed(row: AttemptRow) -> bool:
    """Return whether a submission changed at least one corrupted function."""
    return (row.number(DIAGNOSED) or 0) > 0


def calls_until(row: AttemptRow, seconds: float) -> int:
    """Return the number of the solver's calls up to a time of the active clock, in seconds."""
    times = [call.at_s for call in row.calls if not call.automatic]
    return sum(at is not None and at <= seconds for at in times)


def _add_moments(table: TableBuilder, label: str, rows: Sequence[AttemptRow]) -> None:
    for name, moment in _MOMENTS:
        there = [(row, at) for row in rows if (at := moment(row)) is not None]
        who = [row for row, _ in there]
        minutes = mean(who, [log(max(at, 1.0) / 60) for _, at in there], Scale.LOG)
        counted = mean(who, [log(1 + calls_until(row, at)) for row, at in there], Scale.LOG)
        table.row(label, name, len(there), len(rows), minutes, shifted(counted, -1.0))


def _bars(mode: str, shown: Mapping[str, Mapping[str, Number]]) -> Plot:
    marks = tuple(
        Bars.of(name, {label: numbers[name] for label, numbers in shown.items()})
        for name in ("found", "solved")
    )
    return Plot(f"bp-6-{mode}", f"Finding and repairing: {mode}", "solver", "share", marks, NOTE)
