"""Success by budget, and within an attempt by submission and by time (Breakpoint, figures 7 and 8)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from gistpoint.core.analysis.difficulty_curves import budget_series
from gistpoint.core.analysis.findings import Curve, Findings, FindingsTable, Number, Plot, Points, Value
from gistpoint.core.analysis.intervals import share
from gistpoint.core.analysis.pooling import LEAST_SOLVED_OF_SURVIVAL, keys_note
from gistpoint.core.analysis.samples import FOUND, measuring
from gistpoint.core.analysis.task_means import difference_within_tasks, discordant, exact_mcnemar
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

STANDARD = "16/4"
_TIMES = 20
BUDGET_NOTE = (
    "A budget is tool uses / submissions; conditions are on one line only if they differ in nothing but budgets. The "
    f"difference is within tasks, to {STANDARD} where the solver has it and else to the least budget, with the exact "
    "McNemar test by task beside it. Cutting attempts at a large budget short would not be the same: who knows of a "
    "smaller one plans otherwise."
)
SUBMISSION_NOTE = (
    "The share of all attempts that were solved by their n-th submission that counts, as if they had stopped there. "
    "Attempts that ended before count as not solved."
)


def success_by_budget(data: StudyData) -> Findings:
    """Give the share solved under each budget, and its difference within tasks to 16/4 (Breakpoint, figure 7)."""
    numbers: dict[str, Number] = {}
    cells: list[tuple[Number | Value, ...]] = []
    marks: dict[str, list[Points]] = {}
    found = []
    for series in budget_series(data, measuring(data, FOUND)):
        members = dict(series.members)
        found += list(members.values())
        base = STANDARD if STANDARD in members else next(iter(members))
        rates = {budget: share(group.rows) for budget, group in members.items()}
        for budget, group in members.items():
            gap, p = None, None
            if budget != base:
                gap = difference_within_tasks(group.rows, members[base].rows)
                p = exact_mcnemar(*discordant(group.rows, members[base].rows)) if gap.value is not None else None
                numbers[f"{series.label}/{series.mode}/{budget} less {base}"] = gap
            numbers[f"{series.label}/{series.mode}/{budget}"] = rates[budget]
            cells.append((series.label, series.mode, budget, rates[budget], gap if gap is not None else "base", p))
        marks.setdefault(series.mode, []).append(
            Points(
                series.label,
                tuple(float(budget.partition("/")[0]) for budget in rates),
                tuple(_plain(rate.value) for rate in rates.values()),
                tuple(_plain(rate.low) for rate in rates.values()),
                tuple(_plain(rate.high) for rate in rates.values()),
                tuple(rates),
            )
        )
    if not cells:
        return Findings()
    columns = ("solver", "mode", "budget", "solved", "difference within tasks", "p (McNemar)")
    table = FindingsTable("Success by budget", columns, tuple(cells), BUDGET_NOTE)
    plots = tuple(
        Plot(f"bp-7-{mode}", f"Success by budget: {mode}", "tool uses", "share solved", tuple(drawn), log_x=True)
        for mode, drawn in marks.items()
    )
    note = keys_note(found)
    return Findings(numbers, (table,), plots, (note,) if note else ())


def success_by_submission(data: StudyData) -> Findings:
    """Give the share solved by the n-th submission, and for people by active time (Breakpoint, figure 8)."""
    numbers: dict[str, Number] = {}
    cells: list[tuple[Number | Value, ...]] = []
    by_submission: dict[str, list[Curve]] = {}
    by_time: dict[str, list[Curve]] = {}
    unknown: list[str] = []
    found = measuring(data, FOUND)
    for group in found:
        most = max((len(counting(row)) for row in group.rows), default=0)
        if not most:
            continue
        if any(row.solved and not solved_by(row, most) for row in group.rows):
            unknown.append(f"{group.label}, {group.mode}: left out, as its records do not tell what solved.")
            continue
        rates = [share(group.rows, partial(solved_by, number=n)) for n in range(1, most + 1)]
        for n, rate in enumerate(rates, start=1):
            numbers[f"{group.label}/{group.mode}/{n}"] = rate
            cells.append((group.label, group.mode, n, rate))
        by_submission.setdefault(group.mode, []).append(
            _steps(group.label, [float(n) for n in range(1, most + 1)], rates)
        )
        if group.people and (curve := _over_time(group.label, group.rows)) is not None:
            by_time.setdefault(group.mode, []).append(curve)
    if not cells:
        return Findings(notes=tuple(unknown))
    plots = [
        Plot(f"bp-8-{mode}", f"Solved by the n-th submission: {mode}", "submission", "share solved", tuple(marks))
        for mode, marks in by_submission.items()
    ]
    plots += [
        Plot(f"bp-8-time-{mode}", f"Solved by active time: {mode}", "minutes", "share of all attempts", tuple(marks))
        for mode, marks in by_time.items()
    ]
    table = FindingsTable(
        "Solved by submission", ("group", "mode", "submission", "solved"), tuple(cells), SUBMISSION_NOTE
    )
    note = keys_note(found)
    return Findings(numbers, (table,), tuple(plots), tuple(filter(None, (note, *unknown))))


def counting(row: AttemptRow) -> tuple[bool, ...]:
    """Return whether each submission that counts solved the task, in their order."""
    return tuple(one.solved for one in sorted(row.submitted, key=lambda one: one.number) if one.counts)


def solved_by(row: AttemptRow, number: int) -> bool:
    """Whether one of the first submissions that count solved the task; a pass that does not count never does."""
    return row.solved and any(counting(row)[:number])


def _steps(label: str, x: Sequence[float], rates: Sequence[Number]) -> Curve:
    whole = all(rate.low is not None and rate.high is not None for rate in rates)
    return Curve(
        label,
        tuple(x),
        tuple(_plain(rate.value) for rate in rates),
        tuple(_plain(rate.low) for rate in rates) if whole else (),
        tuple(_plain(rate.high) for rate in rates) if whole else (),
        steps=True,
    )


def _over_time(label: str, rows: Sequence[AttemptRow]) -> Curve | None:
    """The share of all attempts solved by a time of the primary clock; attempts that ended unsolved never are."""
    times = [row.primary_s for row in rows if row.solved and row.primary_s is not None]
    known = [row for row in rows if row.primary_s is not None]
    if len(times) < LEAST_SOLVED_OF_SURVIVAL:
        return None
    at = [float(minutes) for minutes in np.linspace(0, max(times) / 60, _TIMES + 1)[1:]]
    rates = [share(known, partial(_solved_in, minutes=minutes)) for minutes in at]
    return _steps(label, at, rates)


def _solved_in(row: AttemptRow, minutes: float) -> bool:
    return row.solved and (row.primary_s or 0) <= 60 * minutes + 1e-9


def _plain(value: float | None) -> float:
    return float("nan") if value is None else value
