"""Finding the corrupted function, and repairing it (Breakpoint, figure 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log

from gistpoint.core.analysis.findings import Findings, FindingsTable, Number, Plot, Value
from gistpoint.core.analysis.intervals import Scale, mean, share
from gistpoint.core.analysis.pooling import by_mode, keys_note
from gistpoint.core.analysis.regression import shifted
from gistpoint.core.analysis.samples import FOUND, bars, measuring
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
    "Found: at least one corrupted function was touched, as the paper counts it. Changed: its text differed in a "
    "submission. Both are recorded here for each attempt; the paper's code compares the names in tool calls. The share "
    "solved of those found is its conditional rate."
)
MOMENTS_NOTE = (
    "Active minutes and tool calls until a corrupted function was first shown, marked as a suspect, and touched: "
    "geometric means of the attempts that got there, whose number is given; the others have no time, so these means "
    "are too low as a measure of all. Calls before the first are counted as 1 more than they are, so that 0 has a "
    "logarithm, and 1 is taken off again."
)


def diagnosis(data: StudyData) -> Findings:
    """Give the shares found, changed, solved, and solved of those found, in discovery (Breakpoint, figure 6)."""
    numbers: dict[str, Number] = {}
    cells: list[tuple[Number | Value, ...]] = []
    moments: list[tuple[Number | Value, ...]] = []
    plots: list[Plot] = []
    groups = [group for group in measuring(data, FOUND) if is_searched(group.mode)]
    for mode, members in by_mode(groups).items():
        shown: list[tuple[str, Number, Number]] = []
        for group in members:
            rows = [row for row in group.rows if row.number(FOUND) is not None]
            if not rows:
                continue
            those = [row for row in rows if found(row)]
            made = {
                "found": share(rows, found),
                "changed": share([row for row in rows if row.number(DIAGNOSED) is not None], diagnosed),
                "solved": share(rows),
                "solved of found": share(those),
            }
            numbers |= {f"{group.label}/{mode}/{name}": number for name, number in made.items()}
            cells.append((group.label, mode, len(rows), *made.values()))
            shown.append((group.label, made["found"], made["solved"]))
            if group.people:
                moments += _moments(f"{group.label}, {mode}", rows)
        if shown:
            plots.append(_bars(mode, shown))
    if not cells:
        return Findings()
    columns = ("group", "mode", "attempts", "found", "changed", "solved", "solved of found")
    tables = [FindingsTable("Finding and repairing", columns, tuple(cells), NOTE)]
    if moments:
        told = ("group", "moment", "got there", "of", "minutes", "calls")
        tables.append(FindingsTable("How long it took to find", told, tuple(moments), MOMENTS_NOTE))
    note = keys_note(groups)
    return Findings(numbers, tuple(tables), tuple(plots), (note,) if note else ())


def found(row: AttemptRow) -> bool:
    """Whether at least one corrupted function was touched."""
    return (row.number(FOUND) or 0) > 0


def diagnosed(row: AttemptRow) -> bool:
    """Whether a submission changed at least one corrupted function."""
    return (row.number(DIAGNOSED) or 0) > 0


def calls_until(row: AttemptRow, seconds: float) -> int:
    """Count the calls that were made until a moment of the active clock."""
    return sum(call.at_s is not None and call.at_s <= seconds and not call.automatic for call in row.calls)


def _moments(label: str, rows: Sequence[AttemptRow]) -> list[tuple[Number | Value, ...]]:
    made: list[tuple[Number | Value, ...]] = []
    for name, moment in _MOMENTS:
        there = [(row, at) for row in rows if (at := moment(row)) is not None]
        who = [row for row, _ in there]
        minutes = mean(who, [log(max(at, 1.0) / 60) for _, at in there], Scale.LOG)
        counted = mean(who, [log(1 + calls_until(row, at)) for row, at in there], Scale.LOG)
        made.append((label, name, len(there), len(rows), minutes, shifted(counted, -1.0)))
    return made


def _bars(mode: str, shown: Sequence[tuple[str, Number, Number]]) -> Plot:
    marks = (
        bars("found", {label: one for label, one, _ in shown}),
        bars("solved", {label: one for label, _, one in shown}),
    )
    return Plot(f"bp-6-{mode}", f"Finding and repairing: {mode}", "solver", "share", marks, NOTE)
