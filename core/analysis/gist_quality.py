"""The quality of gists: fidelity, the origin of their lines, and how much of the test they retain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from gistpoint.core.analysis.building import FindingsBuilder, TableBuilder
from gistpoint.core.analysis.findings import Bars, Findings, Number, Plot
from gistpoint.core.analysis.pooling import PooledRows
from gistpoint.core.analysis.samples import FIDELITY, measuring
from gistpoint.core.analysis.task_means import (
    difference_within_tasks,
    mean_over_tasks,
    percent,
    share_over_tasks,
)
from gistpoint.core.attempts.reasons import EndReason
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

_LIMITS = frozenset({EndReason.STEPS_EXHAUSTED, EndReason.CALLS_EXHAUSTED})
MOCKED = (
    "A gist that fakes the codebase ('mocked') is not faithful, whatever its run shows; line rates are"
    " those of the other gists. The paper has no such rule. 'Of those not mocked' is the fidelity without"
    " such gists."
)
BY_TASK = (
    "Rates are means over tasks, in percent; intervals are by the two-way jackknife over persons and"
    " tasks, and next to them are those that treat all attempts as independent. The paper prints"
    " neither."
)


def execution_of(data: StudyData, condition: str) -> str:
    """Return in words whether a condition allows executing gists: with, without, or as the task specifies."""
    declared = data.study.condition_of(condition)
    if declared is None or declared.execution is None:
        return "as the task says"
    return "with" if declared.execution else "without"


def quality(data: StudyData) -> Findings:
    """Return fidelity and line rates in percent, by solver and by scaffold (Gistify, table 1)."""
    found = FindingsBuilder()
    columns = ("fidelity %", "line existence %", "line execution %", "of those not mocked %", "mocked")
    table = found.table("Gists by solver and execution", ("solver", "execution", "gists", *columns), MOCKED)
    scaffolds = found.table(
        "Gists by scaffold",
        ("scaffold", "solvers", "gists", *columns),
        "Models with the same scaffold and condition, all together.",
    )
    groups = measuring(data, FIDELITY)
    fidelity: dict[str, Number] = {}
    for group in groups:
        rates = _line_rates(group.rows)
        found.numbers_of(group.label, rates)
        fidelity[group.label] = rates["fidelity"]
        execution = execution_of(data, group.condition)
        table.row(group.label, execution, len(group.rows), *rates.values(), *_not_mocked(group.rows))
    _add_scaffolds(scaffolds, groups)
    found.plot(Plot("gi-1", "Execution fidelity", "solver", "% of gists", (Bars.of("fidelity", fidelity),)))
    found.note(BY_TASK)
    found.settings(groups)
    return found.findings()


def _unmocked(rows: Sequence[AttemptRow]) -> list[AttemptRow]:
    return [row for row in rows if not row.is_true("mocked")]


def _line_rates(rows: Sequence[AttemptRow]) -> dict[str, Number]:
    # A mocked gist is not faithful, and its lines do not come from the codebase (decision 86).
    unmocked = _unmocked(rows)
    return {
        "fidelity": share_over_tasks(rows),
        "existence": mean_over_tasks(unmocked, lambda row: row.number("line_existence")),
        "execution": mean_over_tasks(unmocked, lambda row: row.number("line_execution")),
    }


def _not_mocked(rows: Sequence[AttemptRow]) -> tuple[Number, int]:
    # The fidelity without mocked gists has its own column (decision 86).
    unmocked = _unmocked(rows)
    return share_over_tasks(unmocked), len(rows) - len(unmocked)


def _add_scaffolds(table: TableBuilder, found: Iterable[PooledRows]) -> None:
    together: dict[tuple[str, str, bool], list[PooledRows]] = defaultdict(list)
    for group in found:
        first = group.rows[0]
        if first.scaffold and not group.people:
            together[(first.scaffold, group.condition, first.simulated)].append(group)
    for (scaffold, condition, _), members in sorted(together.items()):
        rows = [row for group in members for row in group.rows]
        rates = _line_rates(rows).values()
        table.row(f"{scaffold}, {condition}", len(members), len(rows), *rates, *_not_mocked(rows))


def conditions(data: StudyData) -> Findings:
    """Return a row for each condition of each solver, with its difference from the base (Gistify, table 3).

    The base is the first declared condition under which the solver has rows.
    """
    order = {condition.id: place for place, condition in enumerate(data.study.condition)}
    found = FindingsBuilder()
    table = found.table("Gists by condition", _CONDITION_COLUMNS, CONDITION_NOTE)
    by_solver: dict[str, list[PooledRows]] = defaultdict(list)
    for group in measuring(data, FIDELITY):
        by_solver[group.who].append(group)
    for who, members in by_solver.items():
        base, *_ = members = sorted(members, key=lambda group: order.get(group.condition, len(order)))
        for group in members:
            fidelity, existence, execution = _line_rates(group.rows).values()
            found.number(f"{group.label}/fidelity", fidelity)
            limited = share_over_tasks(group.rows, lambda row: row.end in _LIMITS)
            difference: Number | str = "base"
            if group is not base:
                gap = percent(difference_within_tasks(group.rows, base.rows))
                difference = found.number(f"{group.label}/difference", gap)
            cells = (fidelity, existence, execution, limited, difference)
            table.row(who, group.condition, len(group.rows), *cells)
    found.note(BY_TASK, MOCKED)
    return found.findings()


_CONDITION_COLUMNS = (
    "solver",
    "condition",
    "gists",
    "fidelity %",
    "line existence %",
    "line execution %",
    "limit of steps reached %",
    "difference in fidelity from the base",
)
CONDITION_NOTE = (
    "The difference is the mean over the tasks that both conditions have, in percentage points. The"
    " limit is the number of steps, or of tool uses if the steps are not limited."
)


def tests_kept(data: StudyData) -> Findings:
    """Return fidelity with the pass rate and the overlap with the original test (Gistify, table 6)."""
    found = FindingsBuilder()
    table = found.table("Tests of the gists", _TEST_COLUMNS, TEST_NOTE)
    for group in measuring(data, FIDELITY):
        passing = [row for row in group.rows if row.number("pass_rate")]
        numbers = {
            "fidelity": share_over_tasks(group.rows),
            "pass_rate": mean_over_tasks(passing, lambda row: row.number("pass_rate")),
            "recall": mean_over_tasks(group.rows, lambda row: row.number("test_recall")),
            "f1": mean_over_tasks(group.rows, overlap_f1),
        }
        fidelity, pass_rate, *overlaps = found.numbers_of(group.label, numbers)
        table.row(group.label, len(group.rows), fidelity, pass_rate, len(passing), *overlaps)
    found.note(BY_TASK)
    return found.findings()


_TEST_COLUMNS = (
    "solver",
    "gists",
    "fidelity %",
    "pass rate %",
    "gists with a pass",
    "test score (recall) %",
    "test F1 %",
)
TEST_NOTE = (
    "The pass rate is that of gists with at least one passing test, as in the paper; their number is"
    " next to it. The paper's test score is the recall of the original test's lines; F1 also counts"
    " added lines."
)


def overlap_f1(row: AttemptRow) -> float | None:
    """Return F1 of the test's lines in percent, from recall and precision; None if either is unknown."""
    recall, precision = row.number("test_recall"), row.number("test_precision")
    if recall is None or precision is None:
        return None
    return 2 * recall * precision / (recall + precision) if recall + precision else 0.0
