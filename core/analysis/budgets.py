"""Success by budget, by submission and by time (Breakpoint, figures 7 and 8)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.difficulty_curves import budget_series
from gistpoint.core.analysis.findings import Curve, Findings, Number, Plot, Points
from gistpoint.core.analysis.intervals import share
from gistpoint.core.analysis.pooling import (
    LEAST_SOLVED_OF_SURVIVAL,
    PRIMARY_MINUTES,
    PooledRows,
    primary_minutes,
    solved_of,
)
from gistpoint.core.analysis.rates import BY_TESTS_ALONE, share_by_tests
from gistpoint.core.analysis.samples import FOUND, measuring
from gistpoint.core.analysis.task_means import difference_within_tasks, discordant, exact_mcnemar
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

STANDARD = "16/4"
_TIMES = 20
BUDGET_NOTE = (
    "A budget is tool uses / submissions; conditions share a line only if they differ in nothing but"
    f" their budgets. The difference is within tasks, from {STANDARD} if the solver has it, otherwise"
    " from the smallest budget; next to it is the exact McNemar test by task. Truncating attempts"
    " with a large budget would not be the same: solvers who know that their budget is smaller plan"
    " differently."
)
SUBMISSION_NOTE = (
    "The share of all attempts that were solved by their n-th submission that counts, as if they had stopped"
    " there. Attempts that ended before count as not solved."
)


def success_by_budget(data: StudyData) -> Findings:
    """Return the share solved under each budget, and its difference within tasks from a base budget.

    The base is 16/4 if the solver has that budget, otherwise its smallest one. Breakpoint, figure 7.
    """
    found = FindingsBuilder()
    table = found.table(
        "Success by budget",
        ("solver", "mode", "budget", "solved", BY_TESTS_ALONE, "difference within tasks", "p (McNemar)"),
        BUDGET_NOTE,
    )
    marks: dict[str, list[Points]] = defaultdict(list)
    used: list[PooledRows] = []
    for series in budget_series(data, measuring(data, FOUND)):
        members = dict(series.members)
        used += members.values()
        base = STANDARD if STANDARD in members else next(iter(members))
        rates = {budget: share(group.rows) for budget, group in members.items()}
        for budget, group in members.items():
            key = f"{series.label}/{series.mode}/{budget}"
            gap: Number | str = "base"
            p = None
            # Attempts that were made under each budget are compared, within tasks. Truncating attempts under
            # a larger budget would not do, because their solvers planned for that budget.
            if budget != base:
                pair = group.rows, members[base].rows
                gap = found.number(f"{key} less {base}", difference_within_tasks(*pair))
                p = None if gap.value is None else exact_mcnemar(*discordant(*pair))
            tests = found.number(f"{key}/tests", share_by_tests(group.rows))
            table.row(series.label, series.mode, budget, found.number(key, rates[budget]), tests, gap, p)
        tool_uses = (float(budget.partition("/")[0]) for budget in rates)
        points = Points.of(series.label, zip(tool_uses, rates.values(), strict=True), labels=rates)
        marks[series.mode].append(points)
    for mode, drawn in marks.items():
        title = f"Success by budget: {mode}"
        found.plot(Plot(f"bp-7-{mode}", title, "tool uses", "share solved", tuple(drawn), log_x=True))
    found.settings(used)
    return found.findings()


def success_by_submission(data: StudyData) -> Findings:
    """Return the share solved by the n-th submission, and for people by time (Breakpoint, figure 8)."""
    found = FindingsBuilder()
    table = found.table("Solved by submission", ("group", "mode", "submission", "solved"), SUBMISSION_NOTE)
    by_submission: dict[str, list[Curve]] = defaultdict(list)
    by_time: dict[str, list[Curve]] = defaultdict(list)
    unknown: list[str] = []
    groups = measuring(data, FOUND)
    for group in groups:
        most = max((len(counting(row)) for row in group.rows), default=0)
        if not most:
            continue
        if any(row.solved and not solved_by(row, most) for row in group.rows):
            unknown.append(
                f"{group.label}, {group.mode}: left out, because the records do not show which submission"
                " solved the task."
            )
            continue
        rates = {n: share(group.rows, partial(solved_by, number=n)) for n in range(1, most + 1)}
        found.numbers_of(f"{group.label}/{group.mode}", rates)
        for n, rate in rates.items():
            table.row(group.label, group.mode, n, rate)
        by_submission[group.mode].append(_steps(group.label, rates))
        curve = _over_time(group.label, group.rows) if group.people else None
        if curve is not None:
            by_time[group.mode].append(curve)
    for mode, marks in by_submission.items():
        title = f"Solved by the n-th submission: {mode}"
        found.plot(Plot(f"bp-8-{mode}", title, "submission", "share solved", tuple(marks)))
    for mode, marks in by_time.items():
        title = f"Solved by time: {mode}"
        identity = f"bp-8-time-{mode}"
        found.plot(Plot(identity, title, PRIMARY_MINUTES, "share of all attempts", tuple(marks)))
    if found.has_rows:
        found.settings(groups)
    found.note(*unknown)
    return found.findings(without_rows=True)


def counting(row: AttemptRow) -> tuple[bool, ...]:
    """Return whether each submission that counts solved the task, in the order of the submissions."""
    return tuple(one.solved for one in sorted(row.submitted, key=lambda one: one.number) if one.counts)


def solved_by(row: AttemptRow, number: int) -> bool:
    """Return whether one of the first `number` submissions that count solved the task."""
    return row.solved and any(counting(row)[:number])


def _steps(label: str, rates: Mapping[float, Number] | Mapping[int, Number]) -> Curve:
    shown = Points.of(label, [(float(x), rate) for x, rate in rates.items()])
    has_band = np.isfinite((*shown.low, *shown.high)).all()
    low, high = (shown.low, shown.high) if has_band else ((), ())
    return Curve(label, shown.x, shown.y, low, high, steps=True)


def _over_time(label: str, rows: Sequence[AttemptRow]) -> Curve | None:
    """Return the share of attempts solved by each time of the primary clock.

    The result is None if fewer than five attempts with a time are solved.
    """
    timed = [row for row in rows if row.primary_s is not None]
    times = [primary_minutes(row) for row in solved_of(timed)]
    if len(times) < LEAST_SOLVED_OF_SURVIVAL:
        return None
    at = np.linspace(0, max(times), _TIMES + 1)[1:].tolist()
    return _steps(label, {minutes: share(timed, partial(_solved_in, minutes=minutes)) for minutes in at})


def _solved_in(row: AttemptRow, minutes: float) -> bool:
    return row.solved and primary_minutes(row) <= minutes + 1e-9
