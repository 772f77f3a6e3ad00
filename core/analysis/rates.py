"""Solve rates by solver and mode, on the tasks that all solvers attempted and on all tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.findings import Bars, Findings, Number, Plot
from gistpoint.core.analysis.intervals import share
from gistpoint.core.analysis.pooling import PooledRows, by_mode, groups, shared_tasks
from gistpoint.core.attempts.results import Standing
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.tasks.strata import FAILING_STRATA, failing_stratum

SAME, ALL = "same tasks", "all tasks"


def solve_rates(data: StudyData) -> Findings:
    """Return the share solved by solver and mode, and the passes by standing (Breakpoint, figure 2)."""
    all_groups = groups(data)
    found = FindingsBuilder()
    solved = found.table(
        "Solved, by solver and mode",
        ("solver", "mode", "solved", "attempts", f"share, {ALL}", f"share, {SAME}"),
    )
    by_tests = found.table(
        "Solved by the tests alone, and the state of these passes",
        ("solver", "mode", "by the tests", f"share, {ALL}", *STANDINGS),
        BY_TESTS,
    )
    by_failing = found.table(
        "Solved, by the number of failing tests",
        ("solver", "mode", "failing tests", "solved", "attempts", "share"),
        BY_FAILING,
    )
    found.settings(all_groups)
    strata = {task.id: failing_stratum(task.failing) for task in data.tasks.values()}
    for mode, members in by_mode(all_groups).items():
        shared = shared_tasks(members)
        if len(members) > 1 and not shared:
            found.note(f"{mode}: no task was attempted by all, so none of its rates are on the same tasks.")
        for group in members:
            key, on_shared = f"{group.label}/{mode}", group.on(shared).rows
            rate = found.number(f"{key}/all", share(group.rows))
            by_tests.row(group.label, mode, *_by_tests(group, found))
            same = found.number(f"{key}/same", share(on_shared)) if on_shared else ""
            solved.row(group.label, mode, group.solved, len(group.rows), rate, same)
            if len({strata.get(row.task, "") for row in group.rows}) > 1:
                for stratum, rows in _by_stratum(group, strata).items():
                    number = found.number(f"{key}/failing {stratum}", share(rows))
                    passed = sum(row.solved for row in rows)
                    by_failing.row(group.label, mode, stratum, passed, len(rows), number)
    for name, title in (("same", SAME), ("all", ALL)):
        if any(key.endswith(f"/{name}") for key in found.numbers):
            found.plot(_bars(f"bp-2-{name}", f"Share solved, {title}", all_groups, found.numbers, name))
    return found.findings()


BY_FAILING = (
    "The Breakpoint paper has tasks with at least five failing tests. Fewer tests show less of a fault, so"
    " sets with other numbers should be compared by stratum."
)


def _by_stratum(group: PooledRows, strata: Mapping[str, str]) -> dict[str, list[AttemptRow]]:
    """Return the rows of a group by the stratum of their task, in order, without tasks of unknown strata."""
    rows = {name: [row for row in group.rows if strata.get(row.task) == name] for name in FAILING_STRATA}
    return {name: members for name, members in rows.items() if members}


BY_TESTS = (
    "'By the tests alone' is the rate of the Breakpoint paper, regardless of reviewers and confirmations."
    " In the table above, a contradicted pass counts after a reviewer has accepted it. Passes that nobody"
    " asked about are counted separately."
)
STANDINGS = tuple(str(standing) for standing in Standing if standing is not Standing.EXEMPT)


def _by_tests(group: PooledRows, found: FindingsBuilder) -> tuple[Number | int, ...]:
    """Return the number of rows solved by the tests alone, their share, and their count for each standing."""
    rows = [row.by_the_tests for row in group.rows]
    rate = found.number(f"{group.label}/{group.mode}/tests", share(rows))
    standings = Counter(row.confirmation for row in rows if row.solved)
    return standings.total(), rate, *(standings[standing] for standing in STANDINGS)


def _bars(
    identity: str, title: str, found: Sequence[PooledRows], numbers: Mapping[str, Number], name: str
) -> Plot:
    modes = tuple(dict.fromkeys(group.mode for group in found))
    nothing = Number(None)
    marks = []
    for label in dict.fromkeys(group.label for group in found):
        marks.append(Bars.of(label, {mode: numbers.get(f"{label}/{mode}/{name}", nothing) for mode in modes}))
    return Plot(
        identity,
        title,
        "mode",
        "share solved",
        tuple(marks),
        "Whiskers: 95% intervals over persons and tasks.",
    )
