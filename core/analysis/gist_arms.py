"""Compares gists between conditions, and their test scores with fidelity (Gistify, 3.4, 4.3 and A.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product

import numpy as np

from gistpoint.core.analysis.building import FindingsBuilder, TableBuilder
from gistpoint.core.analysis.correlations import correlation, fisher_interval, pearson, pearson_p
from gistpoint.core.analysis.findings import Findings, Number
from gistpoint.core.analysis.intervals import Kept, Units
from gistpoint.core.analysis.pooling import (
    LEAST_TASKS,
    LEAST_TASKS_OF_CORRELATION,
    PooledRows,
    having,
    shared_tasks,
    tasks_of,
)
from gistpoint.core.analysis.samples import FIDELITY, alike_but_for, measuring
from gistpoint.core.analysis.task_means import (
    difference_within_tasks,
    discordant,
    exact_mcnemar,
    mean_over_tasks,
    percent,
    share_over_tasks,
)
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Condition
from gistpoint.core.study.rows import AttemptRow

STATIC_NOTE = (
    "Static: a condition whose solver has no tools, but gets the files that the test touches."
    " Differences are within the tasks that both conditions have, in percentage points. The paper"
    " used only tasks that fit into the context; here a task that did not fit has no attempt, so it"
    " counts on neither side."
)
GIVEN_NOTE = (
    "Conditions that differ only in whether the test's body is given. Differences are within tasks,"
    " in percentage points. The paper prints 42.0 and 60.0 for fidelity, 68.4 and 85.3 for the test"
    " score, without a significance test."
)
PARAMETER_NOTE = (
    "Conditions that differ only in whether the brief names one parameter of the test. All instances are"
    " scored in both. Differences are within tasks, in percentage points."
)
CORRELATION_NOTE = (
    "Pearson's r of the test score (the recall of the original test's lines) and fidelity: by task, of the"
    " means of a solver's attempts, and over solvers and conditions, of their means. The paper's r = .76 with"
    " p = .01 fits ten pairs, so it is one of means."
)


def static_against_agentic(data: StudyData) -> Findings:
    """Return the comparison of each solver without tools and with tools (Gistify, section 4.3)."""

    def differs(one: Condition, other: Condition) -> bool:
        return one.tools == () and other.tools != ()

    return _arms(data, differs, "Static against agentic", ("static", "agentic"), STATIC_NOTE)


def given_test(data: StudyData) -> Findings:
    """Return the comparison of conditions with and without the test's body (Gistify, section 3.4)."""

    def differs(one: Condition, other: Condition) -> bool:
        gives_only_first = one.give_test is True and other.give_test is not True
        alike = alike_but_for(one, "give_test") == alike_but_for(other, "give_test")
        return alike and gives_only_first

    return _arms(data, differs, "Test given or not", ("given", "not given"), GIVEN_NOTE)


def named_parameter(data: StudyData) -> Findings:
    """Return the comparison of conditions whose briefs name one parameter or none (Gistify, A.5)."""

    def differs(one: Condition, other: Condition) -> bool:
        names_only_first = one.parameter is True and other.parameter is not True
        alike = alike_but_for(one, "parameter") == alike_but_for(other, "parameter")
        return alike and names_only_first

    compared = (*_RATES, ("pass rate", lambda row: row.number("pass_rate")))
    return _arms(data, differs, "One parameter named or none", ("one", "none"), PARAMETER_NOTE, compared)


def _arms(
    data: StudyData,
    differs: Callable[[Condition, Condition], bool],
    title: str,
    sides: tuple[str, str],
    note: str,
    compared: Sequence[tuple[str, Callable[[AttemptRow], float | None]]] = (),
) -> Findings:
    found = FindingsBuilder()
    columns = (
        "conditions",
        "metric",
        sides[0],
        sides[1],
        "difference",
        "tasks one did better",
        "p (McNemar)",
    )
    table = found.table(title, columns, note)
    used: list[PooledRows] = []
    groups = measuring(data, FIDELITY)
    for one, other in product(groups, repeat=2):
        first, second = data.study.condition_of(one.condition), data.study.condition_of(other.condition)
        if first is None or second is None:
            continue
        if one.who != other.who or not differs(first, second):
            continue
        used += [one, other]
        name = f"{one.who}: {_condition_of(one, groups)} and {_condition_of(other, groups)}"
        shared = shared_tasks([one, other])
        if found.too_few(f"{title} ({name})", ("shared tasks", LEAST_TASKS, len(shared))):
            continue
        rows = one.on(shared).rows, other.on(shared).rows
        more, less = discordant(*rows)
        gap = found.number(f"{name}/fidelity", percent(difference_within_tasks(*rows)))
        rates, p = map(share_over_tasks, rows), exact_mcnemar(more, less)
        table.row(name, "fidelity", *rates, gap, f"{more} and {less}", p)
        for metric, measure in compared or _RATES:
            measured = _measured_on_both(rows, measure)
            difference = difference_within_tasks(measured[0], measured[1], measure)
            if difference.value is not None:
                means = [mean_over_tasks(side, measure) for side in measured]
                table.row(name, metric, *means, found.number(f"{name}/{metric}", difference), None, None)
    found.settings(used)
    return found.findings()


def _condition_of(group: PooledRows, groups: Iterable[PooledRows]) -> str:
    """Return the name of a group's condition, with a number if its solver has several settings there."""
    alike = [other.key for other in groups if (other.who, other.condition) == (group.who, group.condition)]
    number = f" (settings {alike.index(group.key) + 1})" if len(alike) > 1 else ""
    return f"{group.condition}{number}"


def _measured_on_both(
    sides: Sequence[Sequence[AttemptRow]], measure: Callable[[AttemptRow], float | None]
) -> list[list[AttemptRow]]:
    """Return each side's rows with a value, at tasks where both sides have one.

    Otherwise the sides' means would cover different tasks from their difference.
    """
    known = [[row for row in side if measure(row) is not None] for side in sides]
    both = frozenset.intersection(*(frozenset(row.task for row in side) for side in known))
    return [[row for row in side if row.task in both] for side in known]


_RATES: tuple[tuple[str, Callable[[AttemptRow], float | None]], ...] = (
    ("line existence", lambda row: None if row.is_true("mocked") else row.number("line_existence")),
    ("line execution", lambda row: None if row.is_true("mocked") else row.number("line_execution")),
    ("test score", lambda row: row.number("test_recall")),
)


def test_score_and_fidelity(data: StudyData) -> Findings:
    """Return the correlations of test score and fidelity, over tasks and solvers (Gistify, section 3.4)."""
    found = FindingsBuilder()
    columns = ("solver", "over", "pairs", "r", "p (as if independent)")
    table = found.table("Test score and fidelity", columns, CORRELATION_NOTE)
    all_groups = measuring(data, FIDELITY)
    groups = [group for group in all_groups if having(group.rows, "test_recall")]
    for group in groups:
        rows = having(group.rows, "test_recall")
        what = f"The correlation of test score and fidelity by task ({group.label})"
        if found.too_few(what, ("tasks", LEAST_TASKS_OF_CORRELATION, tasks_of(rows))):
            continue
        number = _by_task(rows)
        if number is not None and number.value is not None:
            p = pearson_p(number.value, number.tasks)
            table.row(group.label, "by task", number.tasks, found.number(f"{group.label}/by task", number), p)
    _add_by_solver(found, table, "people", [group for group in groups if group.people])
    _add_by_solver(found, table, "models", [group for group in groups if not group.people])
    found.settings(groups)
    return found.findings()


def _add_by_solver(
    found: FindingsBuilder, table: TableBuilder, label: str, members: Sequence[PooledRows]
) -> None:
    """Add the correlation of mean test score and fidelity over solvers and conditions, as in the paper."""
    what = f"The correlation of test score and fidelity by solver ({label})"
    needs = ("solvers and conditions", LEAST_TASKS_OF_CORRELATION, len(members))
    if not members or found.too_few(what, needs):
        return
    scores = [
        mean_over_tasks(group.rows, lambda row: row.number("test_recall")).value or 0.0 for group in members
    ]
    r = pearson(scores, [share_over_tasks(group.rows).value or 0.0 for group in members])
    if r is not None:
        rows = [row for group in members for row in group.rows]
        number = Number(
            r, tasks=tasks_of(rows), rows=len(rows), iid=fisher_interval(r, len(members)), note=MEANS
        )
        p = pearson_p(r, len(members))
        table.row(label, "by solver", len(members), found.number(f"{label}/by solver", number), p)


MEANS = "no interval but Fisher's: the means of solvers on the same tasks are not independent"


def _by_task(rows: Sequence[AttemptRow]) -> Number | None:
    units = Units.of(rows)
    values = np.array([[row.number("test_recall") or 0.0, float(row.solved)] for row in rows])
    size = tasks_of(rows)

    def estimate(kept: Kept) -> float:
        counts = np.bincount(units.tasks[kept], minlength=size)
        there = counts > 0
        means = [
            np.bincount(units.tasks[kept], weights=column[kept], minlength=size)[there] for column in values.T
        ]
        found = pearson(means[0] / counts[there], means[1] / counts[there])
        return np.nan if found is None else found

    return correlation(units, estimate, size)
