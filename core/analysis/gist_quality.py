"""How good gists are: fidelity, where their lines come from, how many run, how much of the test they keep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from gistpoint.core.analysis.findings import Findings, FindingsTable, Number, Plot, Value
from gistpoint.core.analysis.intervals import share
from gistpoint.core.analysis.pooling import PooledRows, keys_note
from gistpoint.core.analysis.samples import FIDELITY, bars, measuring
from gistpoint.core.analysis.task_means import difference_within_tasks, mean_over_tasks, percent, share_over_tasks
from gistpoint.core.attempts.events import EndReason
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

Cells = tuple[Number | Value, ...]
_LIMITS = frozenset({EndReason.STEPS_EXHAUSTED, EndReason.CALLS_EXHAUSTED})
MOCKED = (
    "A gist that puts a fake in the place of the codebase ('mocked') is not faithful, whatever its run shows; line "
    "rates are of the others. The paper has no such rule. 'Of those not mocked' is the fidelity without such gists."
)
BY_TASK = (
    "Rates are means over tasks, in percent; intervals are by the two-way jackknife over persons and tasks, and beside "
    "them those that take all attempts as independent. The paper prints neither."
)


def execution_of(data: StudyData, condition: str) -> str:
    """Return whether a condition lets gists be executed: with, without, or as the task says."""
    declared = data.study.condition_of(condition)
    if declared is None or declared.execution is None:
        return "as the task says"
    return "with" if declared.execution else "without"


def quality(data: StudyData) -> Findings:
    """Return fidelity and the rates of lines by solver and execution, and by scaffold (Gistify, table 1)."""
    found = measuring(data, FIDELITY)
    if not found:
        return Findings()
    numbers: dict[str, Number] = {}
    cells = []
    for group in found:
        made = _table_1(group.rows)
        cells.append((group.label, execution_of(data, group.condition), len(group.rows), *made))
        for name, cell in zip(("fidelity", "existence", "execution"), made, strict=False):
            if isinstance(cell, Number):
                numbers[f"{group.label}/{name}"] = cell
    columns = ("fidelity %", "line existence %", "line execution %", "of those not mocked %", "mocked")
    tables = [
        FindingsTable("Gists by solver and execution", ("solver", "execution", "gists", *columns), tuple(cells), MOCKED)
    ]
    scaffolds = _by_scaffold(found)
    if scaffolds:
        told = ("scaffold", "solvers", "gists", *columns)
        note = "Models with the same scaffold and condition, all together."
        tables.append(FindingsTable("Gists by scaffold", told, tuple(scaffolds), note))
    drawn = bars("fidelity", {group.label: numbers[f"{group.label}/fidelity"] for group in found})
    plot = Plot("gi-1", "Execution fidelity", "solver", "% of gists", (drawn,))
    return Findings(numbers, tuple(tables), (plot,), tuple(filter(None, (BY_TASK, keys_note(found)))))


def _table_1(rows: Sequence[AttemptRow]) -> Cells:
    own = [row for row in rows if not row.says("mocked")]
    return (
        share_over_tasks(rows),
        mean_over_tasks(own, lambda row: row.number("line_existence")),
        mean_over_tasks(own, lambda row: row.number("line_execution")),
        share_over_tasks(own),
        len(rows) - len(own),
    )


def _by_scaffold(found: Iterable[PooledRows]) -> list[Cells]:
    together: dict[tuple[str, str, bool], list[PooledRows]] = defaultdict(list)
    for group in found:
        if not group.people and (scaffold := group.rows[0].scaffold):
            together[(scaffold, group.condition, group.rows[0].simulated)].append(group)
    cells: list[Cells] = []
    for (scaffold, condition, _), members in sorted(together.items()):
        rows = [row for group in members for row in group.rows]
        cells.append((f"{scaffold}, {condition}", len(members), len(rows), *_table_1(rows)))
    return cells


def conditions(data: StudyData) -> Findings:
    """Return one row for each condition of each solver, with its difference to the base (Gistify, table 3).

    The base is the first condition of the declaration that the solver has.
    """
    order = [condition.id for condition in data.study.condition]
    numbers: dict[str, Number] = {}
    cells: list[Cells] = []
    found = measuring(data, FIDELITY)
    for who in dict.fromkeys(group.who for group in found):
        members = sorted(
            (group for group in found if group.who == who),
            key=lambda group: order.index(group.condition) if group.condition in order else len(order),
        )
        base = members[0]
        for group in members:
            own = [row for row in group.rows if not row.says("mocked")]
            faithful = share_over_tasks(group.rows)
            difference = percent(difference_within_tasks(group.rows, base.rows)) if group is not base else None
            numbers[f"{group.label}/fidelity"] = faithful
            if difference is not None:
                numbers[f"{group.label}/difference"] = difference
            cells.append(
                (
                    who,
                    group.condition,
                    len(group.rows),
                    faithful,
                    mean_over_tasks(own, lambda row: row.number("line_existence")),
                    mean_over_tasks(own, lambda row: row.number("line_execution")),
                    percent(share(group.rows, lambda row: row.end in _LIMITS)),
                    difference if difference is not None else "base",
                )
            )
    if not cells:
        return Findings()
    table = FindingsTable(
        "Gists by condition",
        (
            "solver",
            "condition",
            "gists",
            "fidelity %",
            "line existence %",
            "line execution %",
            "limit of steps reached %",
            "difference of fidelity to the base",
        ),
        tuple(cells),
        "The difference is the mean over the tasks that both conditions have, in percentage points. The limit is that "
        "of steps, or of tool uses where the steps are not limited.",
    )
    return Findings(numbers, (table,), notes=(BY_TASK, MOCKED))


def tests_kept(data: StudyData) -> Findings:
    """Return fidelity beside the pass rate and the overlap with the original test (Gistify, table 6)."""
    numbers: dict[str, Number] = {}
    cells: list[Cells] = []
    for group in measuring(data, FIDELITY):
        passing = [row for row in group.rows if row.number("pass_rate")]
        made = {
            "fidelity": share_over_tasks(group.rows),
            "pass_rate": mean_over_tasks(passing, lambda row: row.number("pass_rate")),
            "recall": mean_over_tasks(group.rows, lambda row: row.number("test_recall")),
            "f1": mean_over_tasks(group.rows, overlap_f1),
        }
        numbers |= {f"{group.label}/{name}": number for name, number in made.items()}
        cells.append(
            (
                group.label,
                len(group.rows),
                made["fidelity"],
                made["pass_rate"],
                len(passing),
                made["recall"],
                made["f1"],
            )
        )
    if not cells:
        return Findings()
    columns = (
        "solver",
        "gists",
        "fidelity %",
        "pass rate %",
        "gists with a pass",
        "test score (recall) %",
        "test F1 %",
    )
    note = (
        "The pass rate is of gists with at least one passing test, as in the paper; their number stands beside it. The "
        "paper's test score is the recall of the original test's lines; F1 also counts lines that were added."
    )
    return Findings(numbers, (FindingsTable("Tests of the gists", columns, tuple(cells), note),), notes=(BY_TASK,))


def overlap_f1(row: AttemptRow) -> float | None:
    """Return the harmonic mean of the recall and the precision of the test's lines, in percent."""
    recall, precision = row.number("test_recall"), row.number("test_precision")
    if recall is None or precision is None:
        return None
    return 2 * recall * precision / (recall + precision) if recall + precision else 0.0
