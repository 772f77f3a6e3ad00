"""Success against the number of simultaneous corruptions (Breakpoint, figure 3a)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import ndtr

from gistpoint.core.analysis.building import FindingsBuilder, TableBuilder
from gistpoint.core.analysis.findings import Findings, Number, Plot, Points
from gistpoint.core.analysis.intervals import share
from gistpoint.core.analysis.pooling import (
    PooledRows,
    groups_of,
    having,
    regression_needs,
)
from gistpoint.core.analysis.rates import BY_TESTS_ALONE, share_by_tests
from gistpoint.core.analysis.regression import regress
from gistpoint.core.analysis.samples import FOUND, alike_but_for
from gistpoint.core.kinds.registry import is_searched
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow


def corruptions(data: StudyData) -> Findings:
    """Return the share solved by number of corruptions k, the slope of its log odds on k, and a trend test.

    As in the paper's figure, the briefs for one and for several corruptions are pooled where budgets are
    equal.
    """
    found = FindingsBuilder()
    title = "Success by number of corruptions"
    table = found.table(
        title,
        ("group", "k", "attempts", "solved", BY_TESTS_ALONE, "all found", "solved and all found"),
    )
    trends = found.table(
        "Trend",
        (
            "group",
            "slope for each corruption",
            "p (Wald)",
            "p (jackknife)",
            "Cochran-Armitage z",
            "p (trend)",
        ),
        TREND_NOTE,
    )
    marks: list[Points] = []
    settings: list[str] = []
    for label, rows in _by_budget(data).items():
        count = {row.task: data.tasks[row.task].corruptions for row in rows}
        counts = sorted(set(count.values()))
        if len(counts) < 2:
            continue
        settings.append(f"{label}: {', '.join(sorted({row.condition_key for row in rows}))}")
        by_count = {k: [row for row in rows if count[row.task] == k] for k in counts}
        rates = {k: found.number(f"{label}/{k}", share(members)) for k, members in by_count.items()}
        for k, members in by_count.items():
            tests = found.number(f"{label}/{k}/tests", share_by_tests(members))
            table.row(label, k, len(members), rates[k], tests, *_found_all(members))
        marks.append(Points.of(label, [(k, rate) for k, rate in rates.items() if rate.value is not None]))
        _add_trend(found, trends, label, rows, count)
    found.plot(Plot("bp-3a", title, "corrupted functions", "share solved", tuple(marks)))
    found.note(f"Settings: {'; '.join(settings)}.")
    return found.findings()


def _add_trend(
    found: FindingsBuilder,
    table: TableBuilder,
    label: str,
    rows: Sequence[AttemptRow],
    count: Mapping[str, int],
) -> None:
    """Add the slope of the log odds on a task's number of corruptions, and the Cochran-Armitage test."""
    what = f"The trend of success with the number of corruptions ({label})"
    if found.too_few(what, *regression_needs(rows)):
        return
    slope = regress(rows, {"k": [float(count[row.task]) for row in rows]})
    if slope is None:
        return
    solved, tried = (
        Counter(count[row.task] for row in rows if row.solved),
        Counter(count[row.task] for row in rows),
    )
    z = cochran_armitage([(k, solved[k], tried[k]) for k in sorted(tried)])
    coefficient = found.number(f"{label}/slope", slope.coefficient("k"))
    table.row(label, coefficient, slope.wald_p("k"), slope.p("k"), z, float(2 * ndtr(-abs(z))))


def _found_all(rows: Sequence[AttemptRow]) -> tuple[Number | None, Number | None]:
    """Return the share of rows that found all corrupted functions, and the share that also solved the task.

    Both are None if no row records which functions were found.
    """
    measured = having(rows, FOUND)
    if not measured:
        return None, None
    return share(measured, _all_found), share(measured, lambda row: row.solved and _all_found(row))


TREND_NOTE = (
    "The slope is in log odds, with the two-way jackknife's interval and Wald's next to it; the test"
    " of Cochran and Armitage treats all attempts as independent. 'Found' means that a corrupted"
    " function was touched."
)


def cochran_armitage(counts: Sequence[tuple[float, int, int]]) -> float:
    """Return the z statistic of the Cochran-Armitage trend test, from (dose, successes, trials).

    Armitage 1955, Biometrics 11. Returns 0 if the variance is 0.
    """
    dose, success, trials = (np.array(column, dtype=float) for column in zip(*counts, strict=True))
    total, solved = trials.sum(), success.sum()
    difference = total * (dose * success).sum() - solved * (dose * trials).sum()
    spread = total * (dose**2 * trials).sum() - (dose * trials).sum() ** 2
    variance = solved * (total - solved) * spread / total
    return float(difference / np.sqrt(variance)) if variance > 0 else 0.0


def _all_found(row: AttemptRow) -> bool:
    return (row.number(FOUND) or 0) >= 1


def _by_budget(data: StudyData) -> Mapping[str, list[AttemptRow]]:
    """Return the rows of discovery by a label of solver, conditions and budget; both briefs are pooled."""
    discovery = [row for row in data.rows if is_searched(row.mode) and row.task in data.tasks]
    alike_groups: dict[tuple[object, ...], list[PooledRows]] = defaultdict(list)
    for group in groups_of(discovery):
        first = group.rows[0]
        budgets = (first.tool_use_budget, first.submission_budget, first.time_limit_s)
        # The brief for several corruptions has its own template, and the paper's figure pools both.
        alike = alike_but_for(data.study.condition_of(group.condition)) or group.condition
        alike_groups[(group.who, alike, *budgets, group.settings)].append(group)
    named: dict[str, list[list[AttemptRow]]] = defaultdict(list)
    for members in alike_groups.values():
        conditions = sorted({group.condition for group in members})
        first = members[0].rows[0]
        budget = (
            f" ({first.tool_use_budget}/{first.submission_budget})"
            if first.tool_use_budget is not None
            else ""
        )
        label = f"{members[0].who}, {', '.join(conditions)}{budget}"
        named[label].append([row for group in members for row in group.rows])
    return {
        label if len(several) == 1 else f"{label}, settings {place}": rows
        for label, several in named.items()
        for place, rows in enumerate(several, start=1)
    }
