"""Paired differences between models on the same tasks, clustered by library.

Both models attempt the same tasks, so the standard error of the difference between their rates is computed
from the differences by task: the more the two models correlate, the smaller this error is. Tasks of one
library are alike, so the libraries are left out in turn rather than the tasks.

Source: Miller, Adding error bars to evals, arXiv 2411.00640, 2024.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.findings import Findings, Number
from gistpoint.core.analysis.intervals import Z_95, Floats, Scale, Units, jackknife_of_mean
from gistpoint.core.analysis.pooling import LEAST_TASKS, PooledRows, by_mode, groups
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

LEAST_LIBRARIES = 5
"""The fewest libraries over which an interval is computed: few clusters hide their spread (decision 162)."""
UNPAIRED = "unpaired"
"""The label of the interval that treats the two models' tasks as independent samples."""
NOTE = (
    f"The interval is over libraries if the tasks have {LEAST_LIBRARIES} or more, otherwise over tasks. The"
    f" one after '{UNPAIRED}' ignores that both models had the same tasks: the higher the correlation of"
    " their shares by task, the more is gained by pairing. With repeated runs, a task's share is the mean"
    " of its runs."
)


@dataclass(frozen=True)
class Paired:
    """The shares of two models at the tasks that both attempted."""

    first: Floats
    second: Floats
    libraries: tuple[str, ...]
    """The library of each task."""
    runs: int

    @classmethod
    def of(cls, first: Sequence[AttemptRow], second: Sequence[AttemptRow]) -> Paired:
        """Return the shares at shared tasks, in the order of their ids."""
        sides: list[dict[str, list[float]]] = [defaultdict(list), defaultdict(list)]
        for side, rows in zip(sides, (first, second), strict=True):
            for row in rows:
                side[row.task].append(float(row.solved))
        shared = sorted(sides[0].keys() & sides[1].keys())
        sources = {row.task: row.source for row in first}
        one, other = (np.array([float(np.mean(side[task])) for task in shared]) for side in sides)
        runs = sum(len(side[task]) for side in sides for task in shared)
        return cls(one, other, tuple(sources[task] for task in shared), runs)

    @property
    def correlation(self) -> float | None:
        """Pearson's correlation of the shares by task; None if one of them does not vary."""
        if min(np.ptp(self.first), np.ptp(self.second)) == 0:
            return None
        return float(np.corrcoef(self.first, self.second)[0, 1])

    @property
    def clustered(self) -> bool:
        """Whether the interval is over libraries."""
        return len(set(self.libraries)) >= LEAST_LIBRARIES

    @property
    def difference(self) -> Number:
        """The mean of the first model's shares minus the second's."""
        count = len(self.first)
        names = self.libraries if self.clustered else tuple(map(str, range(count)))
        units = Units.named([""] * count, names)
        spread = jackknife_of_mean(units, self.first - self.second)
        # The degrees of freedom are effective ones, because a few unusual libraries say little about the
        # spread of all.
        spread = replace(spread, by_model=np.zeros(1))
        middle = float(spread.estimate[0])
        half = Z_95 * float(np.sqrt((self.first.var(ddof=1) + self.second.var(ddof=1)) / count))
        iid = (middle - half, middle + half) if half else None
        number = spread.number(Scale.DIFFERENCE, iid=iid, rows=self.runs)
        return replace(number, tasks=count, iid_label=UNPAIRED)


_COLUMNS = (
    "mode",
    "first",
    "second",
    "libraries",
    "share of first",
    "share of second",
    "difference",
    "correlation",
)


def differences_of_models(data: StudyData) -> Findings:
    """Return the paired differences between models under the same condition (`models`)."""
    found = FindingsBuilder()
    table = found.table(
        "Differences between models, on the tasks that both attempted",
        _COLUMNS,
        NOTE,
    )
    for mode, members in by_mode([group for group in groups(data) if not group.people]).items():
        for one, other in combinations(members, 2):
            if one.condition != other.condition:
                continue
            paired = Paired.of(one.rows, other.rows)
            what = f"{one.label} minus {other.label}, {mode},"
            if found.too_few(what, ("tasks attempted by both", LEAST_TASKS, len(paired.first))):
                continue
            name = f"{one.label} minus {other.label}/{mode}"
            table.row(
                mode,
                one.label,
                other.label,
                len(set(paired.libraries)),
                float(paired.first.mean()),
                float(paired.second.mean()),
                found.number(name, paired.difference),
                paired.correlation,
            )
            found.number(f"{name}/correlation", _correlation(paired, one, other))
    return found.findings()


def _correlation(paired: Paired, one: PooledRows, other: PooledRows) -> Number:
    note = "" if paired.correlation is not None else f"all shares of {one.label} or {other.label} are equal"
    return Number(paired.correlation, tasks=len(paired.first), rows=paired.runs, note=note)
