"""How often each solver solves tasks of each mode: on the tasks that all have attempted, and on all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gistpoint.core.analysis.findings import Bars, Findings, FindingsTable, Number, Plot
from gistpoint.core.analysis.intervals import share
from gistpoint.core.analysis.pooling import PooledRows, by_mode, groups, keys_note, shared_tasks
from gistpoint.core.attempts.results import Standing
from gistpoint.core.study.data import StudyData

SAME, ALL = "same tasks", "all tasks"


def solve_rates(data: StudyData) -> Findings:
    """Return the share solved by solver and mode (Breakpoint, figure 2), on the probability scale."""
    found = groups(data)
    numbers: dict[str, Number] = {}
    rows: list[tuple[Number | str | int, ...]] = []
    beside: list[tuple[Number | str | int, ...]] = []
    notes = [keys_note(found)]
    for mode, members in by_mode(found).items():
        shared = shared_tasks(members)
        if len(members) > 1 and not shared:
            notes.append(f"{mode}: no task was attempted by all, so none of its rates are on the same tasks.")
        for group in members:
            numbers[f"{group.label}/{mode}/all"] = rate = share(group.rows)
            cells: list[Number | str | int] = [group.label, mode, group.solved, len(group.rows), rate]
            beside.append((group.label, mode, *_by_tests(group, numbers)))
            on_shared = group.on(shared).rows
            if on_shared:
                numbers[f"{group.label}/{mode}/same"] = same = share(on_shared)
                cells.append(same)
            else:
                cells.append("")
            rows.append(tuple(cells))
    if not rows:
        return Findings()
    table = FindingsTable(
        "Solved, by solver and mode",
        ("solver", "mode", "solved", "attempts", f"share, {ALL}", f"share, {SAME}"),
        tuple(rows),
    )
    plots = tuple(
        _bars(f"bp-2-{name}", f"Share solved, {title}", found, numbers, name)
        for name, title in (("same", SAME), ("all", ALL))
        if any(key.endswith(f"/{name}") for key in numbers)
    )
    by_tests = FindingsTable(
        "Solved by the tests alone, and how these passes stand",
        ("solver", "mode", "by the tests", f"share, {ALL}", *STANDINGS),
        tuple(beside),
        BY_TESTS,
    )
    return Findings(numbers, (table, by_tests), plots, tuple(filter(None, notes)))


BY_TESTS = (
    "By the tests alone is the rate of the Breakpoint paper: whatever reviewers and confirmations say. In the table "
    "above a contradicted pass counts once a reviewer accepted it. Passes that nobody asked about are counted apart."
)
STANDINGS = tuple(str(standing) for standing in Standing if standing is not Standing.EXEMPT)


def _by_tests(group: PooledRows, numbers: dict[str, Number]) -> tuple[Number | int, ...]:
    """Return how many rows the tests alone call solved, their share, and how many of these stand in each way."""
    rows = [row.by_the_tests for row in group.rows]
    numbers[f"{group.label}/{group.mode}/tests"] = rate = share(rows)
    passes = [row for row in rows if row.solved]
    return len(passes), rate, *(sum(row.confirmation == standing for row in passes) for standing in STANDINGS)


def _bars(identity: str, title: str, found: Sequence[PooledRows], numbers: Mapping[str, Number], name: str) -> Plot:
    modes = tuple(dict.fromkeys(group.mode for group in found))
    nothing = Number(None)
    marks = []
    for label in dict.fromkeys(group.label for group in found):
        shown = [numbers.get(f"{label}/{mode}/{name}", nothing) for mode in modes]
        marks.append(
            Bars(
                label,
                modes,
                tuple(number.value for number in shown),
                tuple(number.low for number in shown),
                tuple(number.high for number in shown),
            )
        )
    return Plot(identity, title, "mode", "share solved", tuple(marks), "Whiskers: 95 %, over persons and tasks.")
