"""The evaluation by people: solve rate, times and ease (Breakpoint, section 4.4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.findings import Findings, Number
from gistpoint.core.analysis.hard_set import hard_set
from gistpoint.core.analysis.intervals import Kept, Scale, Units, jackknife, mean, share
from gistpoint.core.analysis.pooling import PooledRows, groups, primary_minutes, solved_of
from gistpoint.core.analysis.rates import BY_TESTS_ALONE, share_by_tests
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.soundness import counted_tasks

EASE = "ease"
"""The item of the Single Ease Question, 1 (very difficult) to 7 (very easy)."""


def answer(row: AttemptRow, item: str) -> float | None:
    """Return an attempt's first numeric answer to an item of any questionnaire; None if there is none."""
    for column, value in row.answers.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and column.rpartition(".")[2] == item:
            return float(value)
    return None


def evaluation_by_people(data: StudyData) -> Findings:
    """Return, by mode and condition, the share solved, the times of solved attempts and ease (`bp-4.4`)."""
    found = FindingsBuilder()
    table = found.table(
        "Evaluation by people",
        (
            "mode",
            "who",
            "solved",
            "share",
            BY_TESTS_ALONE,
            "shortest, minutes",
            "longest",
            "median",
            "ease, 1 to 7",
        ),
        "Times are those of solved attempts only, so they are shorter than the tasks really take;"
        " ease: 7 is very easy. 'hard' rows are the tasks of the hard set, which are also in the row of their"
        " mode.",
    )
    subset = hard_set(counted_tasks(data.study, data.tasks).values(), data.candidates, data.study.report.hard)
    of_people = [group for group in groups(data) if group.people]
    hard = [replace(group.on(subset.hard), mode=f"{group.mode}, hard") for group in of_people]
    for group in (*of_people, *(group for group in hard if group.rows)):
        numbers = {
            "solved": share(group.rows),
            "by the tests": share_by_tests(group.rows),
            "median": _median_of_solved(group),
            "ease": _ease(group),
        }
        rate, tests, median, ease = found.numbers_of(f"{group.label}/{group.mode}", numbers)
        times = [row.primary_s / 60 for row in group.rows if row.solved and row.primary_s is not None]
        solved = f"{group.solved} of {len(group.rows)}"
        shortest, longest = min(times, default=None), max(times, default=None)
        table.row(group.mode, group.label, solved, rate, tests, shortest, longest, median, ease)
    return found.findings()


def _median_of_solved(group: PooledRows) -> Number | None:
    solved = [row for row in solved_of(group.rows) if primary_minutes(row) > 0]
    if not solved:
        return None
    # Times are skewed, so the median's interval is on the log scale, like all intervals of times.
    times = np.log([primary_minutes(row) for row in solved])

    def estimate(kept: Kept) -> float:
        return float(np.median(times[kept])) if kept.any() else np.nan

    return jackknife(Units.of(solved), estimate).number(Scale.LOG)


def _ease(group: PooledRows) -> Number | None:
    answers = [(row, value) for row in group.rows if (value := answer(row, EASE)) is not None]
    return mean([row for row, _ in answers], [value for _, value in answers]) if answers else None
