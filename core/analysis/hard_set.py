"""Success on the hard tasks, high in complexity and in centrality, against the rest (Breakpoint, figure 3b)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gistpoint.core.analysis.difficulty import metric_by_mode
from gistpoint.core.analysis.findings import Findings, FindingsTable, Number, Plot, Shortfall, Value
from gistpoint.core.analysis.intervals import Kept, Scale, Units, jackknife, share
from gistpoint.core.analysis.pooling import LEAST_TASKS, by_mode, tasks_of, too_few
from gistpoint.core.analysis.samples import FOUND, StandardScores, bars, measuring, pools
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import StudyTask
from gistpoint.core.study.rows import AttemptRow

PERCENTILE = 90.0
PAPER = ("cyclomatic", "degree")
PUBLISHED_CODE = ("code_lines", "harmonic_out")
NOTE = (
    "A task is hard if both metrics are at or above the 90th percentile of all functions of its library. The paper's "
    "text names cyclomatic complexity and degree; its published code takes code lines and harmonic centrality. 'Nearly "
    "40 %' in the paper can be a difference or a ratio: both are given. The paper prints no interval."
)


@dataclass(frozen=True)
class HardSet:
    """The tasks of a study that are hard by two metrics, and the rest."""

    metrics: tuple[str, ...]
    hard: frozenset[str]
    rest: frozenset[str]
    """Tasks that are not hard; those whose library or metrics are not known are in neither."""


def hard_set(
    tasks: Iterable[StudyTask], candidates: Mapping[str, Sequence[Mapping[str, float]]], metrics: Sequence[str]
) -> HardSet:
    """Tell the hard tasks from the rest, by the percentiles of each task's own library."""
    bars: dict[str, dict[str, float]] = {}
    for source, functions in candidates.items():
        known = {metric: [float(f[metric]) for f in functions if metric in f] for metric in metrics}
        bars[source] = {metric: float(np.percentile(values, PERCENTILE)) for metric, values in known.items() if values}
    hard: set[str] = set()
    rest: set[str] = set()
    for task in tasks:
        bar = bars.get(task.source, {})
        if not all(metric in bar and metric in task.metrics for metric in metrics):
            continue
        (hard if all(task.metrics[metric] >= bar[metric] for metric in metrics) else rest).add(task.id)
    return HardSet(tuple(metrics), frozenset(hard), frozenset(rest))


def hard_tasks(data: StudyData) -> Findings:
    """Give each solver's share on hard tasks and on the rest, their difference and ratio, by both definitions."""
    numbers: dict[str, Number] = {}
    cells: list[tuple[Number | Value, ...]] = []
    plots: list[Plot] = []
    short: list[Shortfall] = []
    notes: list[str] = []
    tables: list[FindingsTable] = []
    found = measuring(data, FOUND)
    crossed: list[StandardScores] = []
    for metrics in dict.fromkeys((tuple(data.study.report.hard), PAPER, PUBLISHED_CODE)):
        name = " and ".join(metrics)
        made = hard_set(data.tasks.values(), data.candidates, metrics)
        if not made.hard and not made.rest:
            continue
        notes.append(f"By {name}: {len(made.hard)} hard tasks, {len(made.rest)} others.")
        flag = dict.fromkeys(made.hard, 1.0) | dict.fromkeys(made.rest, 0.0)
        crossed.append(StandardScores(f"hard by {name}", 0.0, 1.0, flag if made.hard else {}))
        for mode, members in by_mode(found).items():
            shown: list[tuple[str, Number, Number]] = []
            for group in members:
                sides = [group.on(made.hard).rows, group.on(made.rest).rows]
                what = f"Success on hard tasks by {name} ({group.label}, {mode})"
                lack = too_few(
                    what,
                    ("hard tasks", LEAST_TASKS, tasks_of(sides[0])),
                    ("other tasks", LEAST_TASKS, tasks_of(sides[1])),
                )
                if lack is not None:
                    short.append(lack)
                    continue
                hard, rest = share(sides[0]), share(sides[1])
                gap, ratio = compared(*sides)
                shown.append((group.label, hard, rest))
                cells.append((name, group.label, mode, hard, rest, gap, ratio))
                key = f"{group.label}/{mode}/{name}"
                numbers |= {f"{key}/hard": hard, f"{key}/rest": rest, f"{key}/difference": gap, f"{key}/ratio": ratio}
            if shown:
                plots.append(_bars(name, mode, shown))
    if cells:
        columns = ("hard by", "group", "mode", "hard", "rest", "difference", "ratio")
        tables.append(FindingsTable("Success on hard tasks", columns, tuple(cells), NOTE))
        with_mode, more = metric_by_mode(pools(found), [one for one in crossed if one.of])
        tables += [with_mode] if with_mode is not None else []
        numbers.update(more)
    return Findings(numbers, tuple(tables), tuple(plots), tuple(notes) if cells or short else (), tuple(short))


def compared(hard: Sequence[AttemptRow], rest: Sequence[AttemptRow]) -> tuple[Number, Number]:
    """Return the difference and the ratio of two shares solved; no ratio where one of them is 0."""
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
        return float(np.log(one / other)) if one > 0 and other > 0 else np.nan

    difference = jackknife(units, gap).number(Scale.DIFFERENCE)
    everything = np.ones(len(rows), dtype=bool)
    if not np.isfinite(ratio(everything)):
        return difference, replace(difference, value=None, low=None, high=None, note="no ratio: one side solved none")
    return difference, jackknife(units, ratio).number(Scale.LOG)


def _bars(name: str, mode: str, shown: Sequence[tuple[str, Number, Number]]) -> Plot:
    marks = (
        bars("hard", {label: one for label, one, _ in shown}),
        bars("rest", {label: one for label, _, one in shown}),
    )
    identity = f"bp-3b-{name.replace(' and ', '-')}-{mode}"
    return Plot(identity, f"Success on hard tasks by {name}: {mode}", "solver", "share solved", marks, NOTE)
