"""Solve rates by solver and mode, on the tasks that all solvers attempted and on all tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gistpoint.core.analysis.building import FindingsBuilder, TableBuilder
from gistpoint.core.analysis.findings import Bars, Findings, Number, Plot
from gistpoint.core.analysis.intervals import share
from gistpoint.core.analysis.pooling import PooledRows, by_mode, groups, shared_tasks
from gistpoint.core.attempts.results import Standing
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Study
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.tasks.strata import FAILING_STRATA, failing_stratum

SAME, ALL = "same tasks", "all tasks"


def solve_rates(data: StudyData) -> Findings:
    """Return the share solved by solver and mode (Breakpoint, figure 2), and the passes by standing.

    Where tasks differ in them, the shares are also split by the number of failing tests, the origin of the
    fault, and the release date.
    """
    all_groups = groups(data)
    found = FindingsBuilder()
    solved = found.table(
        "Solved, by solver and mode",
        ("solver", "mode", "solved", "attempts", f"share, {ALL}", BY_TESTS_ALONE, f"share, {SAME}"),
    )
    by_tests = found.table(
        "Solved by the tests alone, and the state of these passes",
        ("solver", "mode", "by the tests", f"share, {ALL}", *STANDINGS),
        BY_TESTS,
    )
    by_failing = found.table(
        "Solved, by the number of failing tests",
        ("solver", "mode", "failing tests", "solved", "attempts", "share", BY_TESTS_ALONE),
        BY_FAILING,
    )
    by_exposure = found.table(
        "Solved, by what a model may have seen in training",
        ("solver", "mode", "tasks", "solved", "attempts", "share", BY_TESTS_ALONE),
        BY_EXPOSURE,
    )
    found.settings(all_groups)
    strata = {task.id: failing_stratum(task.failing) for task in data.tasks.values()}
    for mode, members in by_mode(all_groups).items():
        shared = shared_tasks(members)
        if len(members) > 1 and not shared:
            found.note(f"{mode}: no task was attempted by all, so none of its rates are on the same tasks.")
        for group in members:
            key, on_shared = f"{group.label}/{mode}", group.on(shared).rows
            found.note(_part_of_shared(group.on(shared), len(shared)))
            rate = found.number(f"{key}/all", share(group.rows))
            by_tests.row(group.label, mode, *_by_tests(group, found))
            same = found.number(f"{key}/same", share(on_shared)) if on_shared else ""
            tests = found.numbers[f"{key}/tests"]
            solved.row(group.label, mode, group.solved, len(group.rows), rate, tests, same)
            for name, rows in _by_exposure(data, group).items():
                add_share(found, by_exposure, key, (group.label, mode, name), rows)
            if len({strata.get(row.task, "") for row in group.rows}) > 1:
                for stratum, rows in _by_stratum(group, strata).items():
                    add_share(found, by_failing, key, (group.label, mode, stratum), rows, "failing ")
    for name, title in (("same", SAME), ("all", ALL)):
        if any(key.endswith(f"/{name}") for key in found.numbers):
            found.plot(_bars(f"bp-2-{name}", f"Share solved, {title}", all_groups, found.numbers, name))
    return found.findings()


def _part_of_shared(group: PooledRows, shared: int) -> str:
    """Return a note if a solver's settings divide the shared tasks, so that rates cover different tasks.

    Empty otherwise, and if the group has none of the tasks.
    """
    if not 0 < len(group.tasks) < shared:
        return ""
    return (
        f"{group.label}, {group.mode}: these settings had {len(group.tasks)} of the {shared} tasks that all"
        f" attempted, so the share under '{SAME}' is on those alone."
    )


BY_TESTS_ALONE = "share, by the tests alone"
"""The heading of the column with the paper's rate, next to the rate that counts."""
BEFORE, AFTER = "released before the cutoff", "released after the cutoff"
HISTORY, NEW = "fault in public history", "fault made for the task"
BY_EXPOSURE = (
    "The correction of a fault from a library's history is public, and a library that was released before a"
    " model's cutoff may be part of its training. The cutoff is that of each model in study.toml; people are"
    " shown by the earliest of them. Months of release are in releases.csv."
)


def share_by_tests(rows: Sequence[AttemptRow]) -> Number:
    """Return the share solved by the tests alone, as in the paper."""
    return share([row.by_the_tests for row in rows])


def add_share(
    found: FindingsBuilder,
    table: TableBuilder,
    key: str,
    cells: tuple[str, str, str],
    rows: Sequence[AttemptRow],
    prefix: str = "",
) -> None:
    """Add a row with the number solved, the share, and the share by the tests alone."""
    name = f"{key}/{prefix}{cells[-1]}"
    numbers = {name: share(rows), f"{name}/tests": share_by_tests(rows)}
    found.numbers |= numbers
    table.row(*cells, sum(row.solved for row in rows), len(rows), *numbers.values())


def _by_exposure(data: StudyData, group: PooledRows) -> dict[str, list[AttemptRow]]:
    """Return a group's rows by the origin of the fault and by the release date.

    A split is left out if either side is empty. Rows of tasks with an unknown release date are on neither
    side of the second split.
    """
    cutoff = _cutoff_of(data.study, group.rows[0].solver)
    known = [(row, data.tasks[row.task]) for row in group.rows if row.task in data.tasks]
    in_history = [(row, task.in_history) for row, task in known]
    before = [(row, task.released <= cutoff) for row, task in known if task.released and cutoff]
    return _split(in_history, HISTORY, NEW) | _split(before, BEFORE, AFTER)


def _split(rows: Sequence[tuple[AttemptRow, bool]], true: str, false: str) -> dict[str, list[AttemptRow]]:
    """Return the rows grouped by the value paired with them; empty if either side is empty."""
    sides = {true: [row for row, value in rows if value], false: [row for row, value in rows if not value]}
    return sides if all(sides.values()) else {}


def _cutoff_of(study: Study, solver: str) -> str:
    """Return a model's training cutoff, or for people the earliest cutoff of any model; empty if unknown."""
    cutoffs = {model.name: model.cutoff for model in study.solver if model.cutoff}
    return cutoffs.get(solver, "") if solver else min(cutoffs.values(), default="")


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
