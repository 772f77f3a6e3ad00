"""What solvers do with their tools (Breakpoint, figures 10 and 11; Gistify, table 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from gistpoint.core.analysis.findings import Findings, FindingsTable, Matrix, Number, Plot, Points, Value
from gistpoint.core.analysis.gist_quality import execution_of
from gistpoint.core.analysis.intervals import Floats, Kept, Scale, Units, jackknife, mean
from gistpoint.core.analysis.pooling import PooledRows, by_mode, keys_note
from gistpoint.core.analysis.samples import FIDELITY, FOUND, measuring
from gistpoint.core.kinds.registry import declared
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow, CallRow

INFORMATION = frozenset({"view", "search"})
KINDS = ("view", "search", "execute", "other")
NOTE = (
    "Information calls read from the codebase: views and searches. Calls that were refused count, because they cost. "
    "The paper prints no interval."
)
DERIVED = "Columns in round brackets are kinds of calls, for runs whose tools are not gistpoint's."


def information_and_submissions(data: StudyData) -> Findings:
    """Give the mean calls for information against the mean submissions (Breakpoint, figure 10)."""
    numbers: dict[str, Number] = {}
    cells: list[tuple[Number | Value, ...]] = []
    plots: list[Plot] = []
    found = [group for group in measuring(data, FOUND) if any(row.calls for row in group.rows)]
    for mode, members in by_mode(found).items():
        marks = []
        for group in members:
            read = mean(group.rows, [float(information_calls(row)) for row in group.rows], Scale.AMOUNT)
            handed_in = mean(group.rows, [float(row.submissions) for row in group.rows], Scale.AMOUNT)
            numbers |= {f"{group.label}/{mode}/information": read, f"{group.label}/{mode}/submissions": handed_in}
            cells.append((group.label, mode, read, handed_in))
            marks.append(
                Points(
                    group.label,
                    (handed_in.value or 0.0,),
                    (read.value or 0.0,),
                    () if read.low is None else (read.low,),
                    () if read.high is None else (read.high,),
                )
            )
        title = f"Information against submissions: {mode}"
        plots.append(Plot(f"bp-10-{mode}", title, "submissions", "information calls", tuple(marks), NOTE))
    if not cells:
        return Findings()
    columns = ("group", "mode", "information calls", "submissions")
    note = keys_note(found)
    table = FindingsTable("Calls for information, and submissions", columns, tuple(cells), NOTE)
    return Findings(numbers, (table,), tuple(plots), (note,) if note else ())


def calls_by_tool(data: StudyData) -> Findings:
    """Give the mean calls of each tool in an attempt (Breakpoint, figure 11)."""
    numbers: dict[str, Number] = {}
    tables: list[FindingsTable] = []
    plots: list[Plot] = []
    found = [group for group in measuring(data, FOUND) if any(row.calls for row in group.rows)]
    derived = False
    for mode, members in by_mode(found).items():
        names = _columns(members)
        derived = derived or any(name.startswith("(") for name in names)
        cells: list[tuple[Number | Value, ...]] = []
        for group in members:
            made = [mean(group.rows, [float(_called(row)[name]) for row in group.rows], Scale.AMOUNT) for name in names]
            numbers |= {f"{group.label}/{mode}/{name}": one for name, one in zip(names, made, strict=True)}
            cells.append((group.label, *made))
        tables.append(FindingsTable(f"Calls by tool: {mode}", ("group", *names), tuple(cells)))
        values = tuple(tuple(n.value for n in row[1:] if isinstance(n, Number)) for row in cells)
        counts = tuple((len(group.rows),) * len(names) for group in members)
        matrix = Matrix(tuple(group.label for group in members), names, values, counts)
        plots.append(Plot(f"bp-11-{mode}", f"Mean calls by tool: {mode}", "tool", "solver", (matrix,)))
    if not tables:
        return Findings()
    return Findings(
        numbers, tuple(tables), tuple(plots), tuple(filter(None, (DERIVED if derived else "", keys_note(found))))
    )


def kinds_of_calls(data: StudyData) -> Findings:
    """Give the calls of a run at a gist, and the percentages that view, search, execute (Gistify, table 7).

    As in the paper the rows with and without execution are also averaged, where a solver has both.
    """
    numbers: dict[str, Number] = {}
    cells: list[tuple[Number | Value, ...]] = []
    found = [group for group in measuring(data, FIDELITY) if any(row.calls for row in group.rows)]
    settings: dict[str, dict[str, list[PooledRows]]] = {}
    for group in found:
        execution = execution_of(data, group.condition)
        settings.setdefault(group.who, {}).setdefault(execution, []).append(group)
        made = profile([group.rows])
        numbers |= {f"{group.label}/{name}": number for name, number in made.items()}
        cells.append((group.label, execution, len(group.rows), *made.values()))
    for who, by_execution in settings.items():
        pair = [by_execution.get(execution, []) for execution in ("without", "with")]
        if all(len(groups) == 1 for groups in pair):
            sides = [groups[0].rows for groups in pair]
            made = profile(sides)
            numbers |= {f"{who}/mean of both/{name}": number for name, number in made.items()}
            cells.append((who, "mean of both", sum(map(len, sides)), *made.values()))
    if not cells:
        return Findings()
    columns = ("solver", "execution", "gists", "calls", *(f"{kind} %" for kind in KINDS))
    note = keys_note(found)
    table = FindingsTable("Kinds of calls", columns, tuple(cells), POOLED)
    return Findings(numbers, (table,), notes=(note,) if note else ())


POOLED = "Percentages are of all calls of the group's attempts; edits and hand-ins are other calls."


def own_calls(row: AttemptRow) -> tuple[CallRow, ...]:
    """Return the calls that the solver made; those that the program made for it are left out."""
    return tuple(call for call in row.calls if not call.automatic)


def information_calls(row: AttemptRow) -> int:
    """Count the calls that read from the codebase."""
    return sum(call.kind in INFORMATION for call in own_calls(row))


def profile(sides: Sequence[Sequence[AttemptRow]]) -> dict[str, Number]:
    """Return the mean calls of an attempt and which percentages view, search, execute, do something else.

    Percentages are of all calls and sum to 100. Of several sides, such as with and without execution, the figures are
    the means of the sides' own.
    """
    rows = [row for side in sides for row in side]
    counted = [Counter(call.kind if call.kind in KINDS else "other" for call in own_calls(row)) for row in rows]
    table = np.array([[one[kind] for kind in KINDS] for one in counted], dtype=float)
    side_of = np.repeat(np.arange(len(sides)), [len(side) for side in sides])

    def estimate(kept: Kept) -> Floats:
        made = []
        for side in range(len(sides)):
            mine = table[kept & (side_of == side)]
            sums = mine.sum(axis=0)
            parts = 100 * sums / sums.sum() if sums.sum() else np.full(len(KINDS), np.nan)
            made.append([sums.sum() / len(mine) if len(mine) else np.nan, *parts])
        return np.asarray(np.mean(made, axis=0), dtype=np.float64)

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
