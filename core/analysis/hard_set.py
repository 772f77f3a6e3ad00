"""Success on tasks high in both complexity and centrality, against the others (Breakpoint, figure 3b)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gistpoint.core.analysis.building import FindingsBuilder, TableBuilder
from gistpoint.core.analysis.difficulty import add_metric_by_mode
from gistpoint.core.analysis.findings import Bars, Findings, Number, Plot
from gistpoint.core.analysis.intervals import Kept, Scale, Units, jackknife, share
from gistpoint.core.analysis.pooling import LEAST_TASKS, PooledRows, by_mode, tasks_of
from gistpoint.core.analysis.rates import share_by_tests
from gistpoint.core.analysis.samples import FOUND, StandardScores, measuring, pools
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import StudyTask
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.soundness import counted_tasks

PERCENTILE = 90.0
PAPER = ("cyclomatic", "degree")
PUBLISHED_CODE = ("code_lines", "harmonic_out")
BY_TESTS_ON = ("hard, by the tests alone", "rest, by the tests alone")
NOTE = (
    "A task is hard if both metrics are at or above the 90th percentile of all functions of its library. The"
    " paper's text names cyclomatic complexity and degree; its published code uses lines of code and"
    " harmonic centrality. 'Nearly 40%' in the paper can be a difference or a ratio: both are given. The"
    " paper prints no interval."
)


@dataclass(frozen=True)
class HardSet:
    """The tasks of a study that are hard by each of several metrics, and the tasks that are not."""

    metrics: tuple[str, ...]
    hard: frozenset[str]
    rest: frozenset[str]
    """The tasks that are not hard; tasks with an unknown library or metric are in neither set."""


def hard_set(
    tasks: Iterable[StudyTask],
    candidates: Mapping[str, Sequence[Mapping[str, float]]],
    metrics: Sequence[str],
) -> HardSet:
    """Return tasks split by whether all metrics reach the 90th percentile of their own library's functions.

    `candidates` contains the metrics of each function of a library, by the library's name.
    """
    bars: dict[str, dict[str, float]] = {}
    # Tasks are compared with their own library, because a degree of 9 is high in a small library and low in a
    # large one (decision 86).
    for source, functions in candidates.items():
        values_of = {metric: [float(f[metric]) for f in functions if metric in f] for metric in metrics}
        bars[source] = {
            metric: float(np.percentile(values, PERCENTILE)) for metric, values in values_of.items() if values
        }
    hard: set[str] = set()
    rest: set[str] = set()
    for task in tasks:
        bar = bars.get(task.source, {})
        if bar.keys() & task.metrics.keys() >= set(metrics):
            is_hard = all(task.metrics[metric] >= bar[metric] for metric in metrics)
            (hard if is_hard else rest).add(task.id)
    return HardSet(tuple(metrics), frozenset(hard), frozenset(rest))


def hard_tasks(data: StudyData) -> Findings:
    """Return each solver's shares on hard tasks and on the others, with their difference and their ratio.

    Tasks are split by the metrics that the study declares, by those in the paper's text, and by those in its
    code.
    """
    found = FindingsBuilder()
    table = found.table(
        "Success on hard tasks",
        ("hard by", "group", "mode", "hard", "rest", "difference", "ratio", *BY_TESTS_ON),
        NOTE,
    )
    notes: list[str] = []
    groups = measuring(data, FOUND)
    crossed: list[StandardScores] = []
    for metrics in dict.fromkeys((tuple(data.study.report.hard), PAPER, PUBLISHED_CODE)):
        name = " and ".join(metrics)
        subset = hard_set(counted_tasks(data.study, data.tasks).values(), data.candidates, metrics)
        if not subset.hard and not subset.rest:
            continue
        notes.append(f"By {name}: {len(subset.hard)} hard tasks, {len(subset.rest)} others.")
        if subset.hard:
            flag = dict.fromkeys(subset.hard, 1.0) | dict.fromkeys(subset.rest, 0.0)
            crossed.append(StandardScores(f"hard by {name}", 0.0, 1.0, flag))
        for mode, members in by_mode(groups).items():
            _add_sides(found, table, name, mode, subset, members)
    if found.has_rows:
        add_metric_by_mode(found, pools(groups), crossed)
    # The number of hard tasks is reported even if there are too few for an estimate.
    if found.has_rows or found.has_shortfalls:
        found.note(*notes)
    return found.findings(without_rows=True)


def _add_sides(
    found: FindingsBuilder,
    table: TableBuilder,
    name: str,
    mode: str,
    tasks: HardSet,
    members: Iterable[PooledRows],
) -> None:
    """Add the shares of a mode's groups on hard and on other tasks, and their plot."""
    shown: dict[str, Mapping[str, Number]] = {}
    for group in members:
        sides = group.on(tasks.hard).rows, group.on(tasks.rest).rows
        hard_count, rest_count = map(tasks_of, sides)
        needs = ("hard tasks", LEAST_TASKS, hard_count), ("other tasks", LEAST_TASKS, rest_count)
        if found.too_few(f"Success on hard tasks by {name} ({group.label}, {mode})", *needs):
            continue
        gap, ratio = compared(*sides)
        parts = {"hard": share(sides[0]), "rest": share(sides[1]), "difference": gap, "ratio": ratio}
        parts |= {name: share_by_tests(rows) for name, rows in zip(BY_TESTS_ON, sides, strict=True)}
        table.row(name, group.label, mode, *found.numbers_of(f"{group.label}/{mode}/{name}", parts))
        shown[group.label] = parts
    if shown:
        marks = tuple(
            Bars.of(side, {label: numbers[side] for label, numbers in shown.items()})
            for side in ("hard", "rest")
        )
        identity, title = (
            f"bp-3b-{name.replace(' and ', '-')}-{mode}",
            f"Success on hard tasks by {name}: {mode}",
        )
        found.plot(Plot(identity, title, "solver", "share solved", marks, NOTE))


def compared(hard: Sequence[AttemptRow], rest: Sequence[AttemptRow]) -> tuple[Number, Number]:
    """Return the difference and the ratio of the shares solved on hard and on other tasks.

    The interval of the ratio is computed on the log scale; the ratio has no value if either share is 0.
    """
    rows = [*hard, *rest]
    of_hard = np.arange(len(rows)) < len(hard)
    solved = np.array([float(row.solved) for row in rows])
    units = Units.of(rows)

    def shares(kept: Kept) -> tuple[float, float]:
        sides = solved[kept & of_hard], solved[kept & ~of_hard]
        one, other = (float(side.mean()) if len(side) else np.nan for side in sides)
        return one, other

    def gap(kept: Kept) -> float:
        one, other = shares(kept)
        return one - other

    def ratio(kept: Kept) -> float:
        one, other = shares(kept)
        # On the log scale a ratio and its inverse have the same interval.
        return float(np.log(one / other)) if one > 0 and other > 0 else np.nan

    difference = jackknife(units, gap).number(Scale.DIFFERENCE)
    everything = np.ones(len(rows), dtype=bool)
    if not np.isfinite(ratio(everything)):
        return difference, replace(
            difference, value=None, low=None, high=None, note="no ratio: one side solved none"
        )
    return difference, jackknife(units, ratio).number(Scale.LOG)
