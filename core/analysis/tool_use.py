"""Tool calls by solver (Breakpoint, figures 10 and 11; Gistify, table 7)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.findings import Findings, Matrix, Number, Plot, Points
from gistpoint.core.analysis.gist_quality import execution_of
from gistpoint.core.analysis.intervals import Floats, Kept, Scale, Units, jackknife, mean
from gistpoint.core.analysis.pooling import LEAST_ATTEMPTS_OF_RATE, PooledRows, by_mode
from gistpoint.core.analysis.samples import FIDELITY, FOUND, measuring
from gistpoint.core.kinds.registry import declared
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow, CallRow

INFORMATION = frozenset({"view", "search"})
KINDS = ("view", "search", "execute", "other")
NOTE = (
    "Information calls read the codebase: views and searches. Refused calls count, because they use up the"
    " budget. The paper prints no interval."
)
DERIVED = "Columns in round brackets are kinds of calls, for runs whose tools are not gistpoint's."


def information_and_submissions(data: StudyData) -> Findings:
    """Return the mean numbers of information calls and of submissions (Breakpoint, figure 10)."""
    found = FindingsBuilder()
    title = "Calls for information, and submissions"
    table = found.table(title, ("group", "mode", "information calls", "submissions"), NOTE)
    groups = _with_calls(data, FOUND)
    for mode, members in by_mode(groups).items():
        marks = []
        for group in members:
            numbers = {
                "information": mean(group.rows, list(map(information_calls, group.rows)), Scale.AMOUNT),
                "submissions": mean(
                    group.rows, [float(row.submissions or 0) for row in group.rows], Scale.AMOUNT
                ),
            }
            table.row(group.label, mode, *found.numbers_of(f"{group.label}/{mode}", numbers))
            if len(group.rows) >= LEAST_ATTEMPTS_OF_RATE:
                marks.append(_point(group.label, numbers["submissions"], numbers["information"]))
        title = f"Information against submissions: {mode}"
        found.plot(Plot(f"bp-10-{mode}", title, "submissions", "information calls", tuple(marks), NOTE))
    found.note(_without_calls(data, FOUND))
    found.settings(groups)
    return found.findings()


def _with_calls(data: StudyData, measure: str) -> list[PooledRows]:
    """Return the groups that have calls, without the rows of files that record none."""
    found = []
    for group in measuring(data, measure):
        rows = tuple(row for row in group.rows if row.has_known_calls)
        if any(row.calls for row in rows):
            found.append(replace(group, rows=rows))
    return found


def _without_calls(data: StudyData, measure: str) -> str:
    """Return the note on the runs whose files record no call; empty if there are none."""
    parts = []
    for group in measuring(data, measure):
        missing = sum(not row.has_known_calls for row in group.rows)
        if missing:
            parts.append(f"{group.label}, {group.mode}: {missing} of {len(group.rows)}")
    return f"Left out, because their files record no call: {'; '.join(parts)}." if parts else ""


def _point(label: str, x: Number, y: Number) -> Points:
    low, high = (() if bound is None else (bound,) for bound in (y.low, y.high))
    return Points(label, (x.value or 0.0,), (y.value or 0.0,), low, high)


def calls_by_tool(data: StudyData) -> Findings:
    """Return the mean number of calls to each tool in an attempt (Breakpoint, figure 11)."""
    found = FindingsBuilder()
    groups = _with_calls(data, FOUND)
    for mode, members in by_mode(groups).items():
        names = _columns(members)
        table = found.table(f"Calls by tool: {mode}", ("group", *names))
        values = []
        for group in members:
            calls = list(map(_called, group.rows))
            numbers = {
                name: mean(group.rows, [float(one[name]) for one in calls], Scale.AMOUNT) for name in names
            }
            table.row(group.label, *found.numbers_of(f"{group.label}/{mode}", numbers))
            values.append(tuple(number.value for number in numbers.values()))
        counts = tuple((len(group.rows),) * len(names) for group in members)
        matrix = Matrix(tuple(group.label for group in members), names, tuple(values), counts)
        found.plot(Plot(f"bp-11-{mode}", f"Mean calls by tool: {mode}", "tool", "solver", (matrix,)))
        if any(name.startswith("(") for name in names):
            found.note(DERIVED)
    found.note(_without_calls(data, FOUND))
    found.settings(groups)
    return found.findings()


def kinds_of_calls(data: StudyData) -> Findings:
    """Return the mean calls of a gist attempt, and the percentage of each kind of call (Gistify, table 7).

    As in the paper, the rows with and without execution are also averaged where a solver has one of each.
    """
    found = FindingsBuilder()
    columns = ("solver", "execution", "gists", "calls", *(f"{kind} %" for kind in KINDS))
    table = found.table("Kinds of calls", columns, POOLED)
    groups = _with_calls(data, FIDELITY)
    settings: dict[str, dict[str, list[PooledRows]]] = defaultdict(lambda: defaultdict(list))
    for group in groups:
        execution = execution_of(data, group.condition)
        settings[group.who][execution].append(group)
        table.row(
            group.label, execution, len(group.rows), *found.numbers_of(group.label, profile([group.rows]))
        )
    for who, by_execution in settings.items():
        pair = by_execution["without"], by_execution["with"]
        if list(map(len, pair)) == [1, 1]:
            sides = [group.rows for (group,) in pair]
            cells = found.numbers_of(f"{who}/mean of both", profile(sides))
            table.row(who, "mean of both", sum(map(len, sides)), *cells)
    found.note(_without_calls(data, FIDELITY))
    found.settings(groups)
    return found.findings()


POOLED = "Percentages are of all calls of the group's attempts; edits and hand-ins are other calls."


def own_calls(row: AttemptRow) -> tuple[CallRow, ...]:
    """Return the calls that the solver made, without those that the program made for it."""
    return tuple(call for call in row.calls if not call.automatic)


def information_calls(row: AttemptRow) -> int:
    """Return the number of the solver's views and searches."""
    return sum(call.kind in INFORMATION for call in own_calls(row))


def profile(sides: Sequence[Sequence[AttemptRow]]) -> dict[str, Number]:
    """Return the mean number of calls of an attempt (`calls`), and the percentage of each of `KINDS`.

    The percentages are of all calls and sum to 100. With several sides, such as with and without execution,
    each figure is the unweighted mean over them.
    """
    rows = [row for side in sides for row in side]
    counted = [
        Counter(call.kind if call.kind in KINDS else "other" for call in own_calls(row)) for row in rows
    ]
    table = np.array([[one[kind] for kind in KINDS] for one in counted], dtype=float)
    side_of = np.repeat(np.arange(len(sides)), [len(side) for side in sides])

    def estimate(kept: Kept) -> Floats:
        profiles = []
        for side in range(len(sides)):
            calls = table[kept & (side_of == side)]
            sums = calls.sum(axis=0)
            parts = 100 * sums / sums.sum() if sums.sum() else np.full(len(KINDS), np.nan)
            profiles.append([sums.sum() / len(calls) if len(calls) else np.nan, *parts])
        return np.asarray(np.mean(profiles, axis=0), dtype=np.float64)

    spread = jackknife(Units.of(rows), estimate)
    kinds = {name: spread.number(Scale.PERCENT, place) for place, name in enumerate(KINDS, start=1)}
    return {"calls": spread.number(Scale.AMOUNT), **kinds}


def _column(call: CallRow) -> str:
    return call.tool if declared(call.tool) is not None else f"({call.kind or 'other'})"


def _called(row: AttemptRow) -> Counter[str]:
    return Counter(_column(call) for call in own_calls(row))


def _columns(groups: Sequence[PooledRows]) -> tuple[str, ...]:
    total: Counter[str] = Counter()
    for group in groups:
        for row in group.rows:
            total.update(_called(row))
    return tuple(sorted(total, key=lambda name: (name.startswith("("), name)))
