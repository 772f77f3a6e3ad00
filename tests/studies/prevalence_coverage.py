"""Measures how often the interval of a prevalence contains the true one, with simulated judges and labels.

    PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 uv run python tests/studies/prevalence_coverage.py [DRAWS] [CELL...]

Whether a run has the label is drawn for each run with the chance of its task, a beta distribution with the
given mean and intraclass correlation. The judge is right at random in the given share of runs; a skewed judge
is wrong only where the label is absent. Labels are a random part of the runs. For each cell, prints the runs
with the label expected among the labels, the percentage of draws with too few labels, the percentage of
intervals that contain the truth, the percentage of all draws with an interval that misses it, the true
squared correlation, the mean width divided by that of the labels alone (in draws where both have one), and
the estimate's mean error in points. Cells that break a promise are named, and the exit code is then 1. With
`uv run --with ppi-python`, the estimates are compared with that package.

The draws, the truth and the counts are computed here; only `prevalence_of` is the product's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from gistpoint.core.analysis.prevalence import Prevalence, prevalence_of

Floats = NDArray[np.float64]
DESIGNS = {"forty": (40, 5), "twelve": (12, 15), "six": (6, 30), "hundred": (100, 20)}
"""The numbers of tasks, and of runs of each task."""
LABELS = (10, 20, 30, 60)
SHARES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
RIGHT = (0.6, 0.8, 0.95)
CORRELATIONS = (0.0, 0.2)
LEAST_COVERAGE = 0.92
EXPECTED = 5


@dataclass(frozen=True)
class Cell:
    """The conditions of a simulation."""

    design: str
    labels: int
    share: float
    right: float
    correlation: float
    skewed: bool = False

    @property
    def expected(self) -> float:
        """The number of runs with the label that are expected among the labels."""
        return self.labels * self.share

    @property
    def squared_correlation(self) -> float:
        """The squared correlation of judge and person over all runs."""
        false = (1 - self.right) / (1 - self.share) if self.skewed else 1 - self.right
        found = (1.0 if self.skewed else self.right) * self.share
        judged = found + false * (1 - self.share)
        product = self.share * (1 - self.share) * judged * (1 - judged)
        return (found - self.share * judged) ** 2 / product


def drawn(cell: Cell, draw: np.random.Generator) -> Floats:
    """Return the counts of each task, in the columns that `prevalence_of` expects."""
    tasks, each = DESIGNS[cell.design]
    chance = np.full(tasks, cell.share)
    if cell.correlation:
        size = (1 - cell.correlation) / cell.correlation
        chance = draw.beta(cell.share * size, (1 - cell.share) * size, tasks)
    label = draw.random((tasks, each)) < chance[:, None]
    wrong = draw.random((tasks, each)) < (
        np.where(label, 0.0, (1 - cell.right) / (1 - cell.share)) if cell.skewed else 1 - cell.right
    )
    judged = label ^ wrong
    labelled = np.zeros(tasks * each, dtype=bool)
    labelled[draw.choice(tasks * each, cell.labels, replace=False)] = True
    mine = labelled.reshape(tasks, each)
    columns = (mine, mine & label, mine & judged, mine & label & judged, ~mine, ~mine & judged)
    return np.stack([column.sum(axis=1) for column in columns], axis=1).astype(float)


@dataclass(frozen=True)
class CellResult:
    """The figures of a cell; unless stated otherwise, they are shares of the draws."""

    cell: Cell
    draws: int
    too_few: float
    covered: float
    """Of the draws with an interval; NaN without one."""
    missed: float
    """Of all draws: an interval that misses the truth."""
    width: float
    """The mean width, as a ratio to that of the labels alone, in draws where both have an interval."""
    error: float

    @property
    def shortfall(self) -> str:
        """The promise that the cell breaks; empty if it breaks none."""
        bears = min(self.cell.expected, self.cell.labels - self.cell.expected) >= EXPECTED
        if bears and self.covered < LEAST_COVERAGE:
            return f"coverage {self.covered:.3f}"
        if not bears and self.too_few < 0.5:
            return f"too few in {self.too_few:.3f} of the draws only"
        if not bears and self.missed > 1 - LEAST_COVERAGE:
            return f"wrong in {self.missed:.3f} of all draws"
        if bears and self.cell.squared_correlation > 0.2 and not self.width < 1:
            return f"{self.width:.3f} as wide as labels alone"
        return ""


def simulated(cell: Cell, draws: int, seed: int = 0) -> CellResult:
    """Return the figures of a cell."""
    draw = np.random.default_rng([seed, *map(ord, repr(cell))])
    few, covered, intervals, errors = 0, 0, 0, 0.0
    widths: list[tuple[float, float]] = []
    for _ in range(draws):
        counts = drawn(cell, draw)
        found, alone = prevalence_of(counts), prevalence_of(counts, alone=True)
        errors += (found.value or 0.0) - cell.share
        if found.low is None or found.high is None:
            few += 1
            continue
        intervals += 1
        covered += found.low <= cell.share <= found.high
        if alone.low is not None and alone.high is not None:
            widths.append((found.high - found.low, alone.high - alone.low))
    mean = np.array(widths).mean(axis=0) if widths else np.full(2, np.nan)
    return CellResult(
        cell,
        draws,
        few / draws,
        covered / intervals if intervals else float("nan"),
        (intervals - covered) / draws,
        float(mean[0] / mean[1]),
        errors / draws,
    )


def halved(cell: Cell, draws: int, seed: int = 1) -> tuple[float, float] | None:
    """Return the number of labels that should halve the interval, and the actual ratio of mean widths.

    The number is the cell's labels plus the median of those that are missing. None if most draws with an
    interval give no such number, or no draw has an interval.
    """
    draw = np.random.default_rng(seed)
    now = [prevalence_of(drawn(cell, draw)) for _ in range(draws)]
    more = [found.more_labels for found in now if not found.too_few]
    if not more or sum(one is None for one in more) > len(more) / 2:
        return None
    labels = cell.labels + int(np.median([one for one in more if one is not None]))
    then_cell = Cell(cell.design, labels, cell.share, cell.right, cell.correlation, cell.skewed)
    then = [prevalence_of(drawn(then_cell, draw)) for _ in range(draws)]
    return labels, float(np.mean(list(_widths(then))) / np.mean(list(_widths(now))))


def _widths(found: list[Prevalence]) -> Iterator[float]:
    return (one.high - one.low for one in found if one.high is not None and one.low is not None)


HALVED = tuple(
    Cell(design, labels, share, right, correlation)
    for design, (labels, share, right) in product(
        ("hundred", "forty", "six"), ((30, 0.3, 0.75), (20, 0.5, 0.85))
    )
    for correlation in CORRELATIONS
)


def cells(chosen: tuple[str, ...] = ()) -> Iterator[Cell]:
    """Yield the cells of the chosen designs, by default all; skewed judges only in some of them."""
    for design, labels, share, correlation in product(chosen or tuple(DESIGNS), LABELS, SHARES, CORRELATIONS):
        if labels * share < 1:  # always too few
            continue
        for right in RIGHT:
            if design != "hundred" or right == max(
                RIGHT
            ):  # many runs matter where a judge is almost always right
                yield Cell(design, labels, share, right, correlation)
        if design != "hundred":
            yield Cell(design, labels, share, 0.85, correlation, skewed=True)


def compared_with_ppi_py(draws: int, seed: int = 2) -> float | None:
    """Return the largest difference between the estimates and ppi-python's; None without ppi-python."""
    try:
        from ppi_py import ppi_mean_pointestimate
    except ImportError:
        return None
    draw, largest = np.random.default_rng(seed), 0.0
    for number in range(draws):
        labels, share, right = (
            LABELS[number % len(LABELS)],
            SHARES[number % len(SHARES)],
            RIGHT[number % len(RIGHT)],
        )
        cell = Cell("twelve", labels, share, right, 0.2)
        counts = drawn(cell, draw)
        n, present, judged, both, m, alone = counts.sum(axis=0).astype(int)
        label = np.repeat(
            [1.0, 1.0, 0.0, 0.0], [both, present - both, judged - both, n - present - judged + both]
        )
        judge = np.repeat(
            [1.0, 0.0, 1.0, 0.0], [both, present - both, judged - both, n - present - judged + both]
        )
        rest = np.repeat([1.0, 0.0], [alone, m - alone])
        theirs = float(np.squeeze(ppi_mean_pointestimate(label, judge, rest)))
        ours = prevalence_of(counts).value
        assert ours is not None
        largest = max(largest, abs(min(1.0, max(0.0, theirs)) - ours))
    return largest


def main(arguments: list[str]) -> int:
    """Print the figures of every cell, and those that break a promise. Return 1 if there are any."""
    draws = int(arguments[0]) if arguments else 2_000
    print("tasks labels share right icc skew expects |  too few covered missed   r2  width  error")
    results = []
    for cell in cells(tuple(arguments[1:])):
        found = simulated(cell, draws)
        results.append(found)
        print(
            f"{cell.design:>7} {cell.labels:3} {cell.share:5} {cell.right:5} {cell.correlation:3}"
            f" {'skew' if cell.skewed else '-':>4} {cell.expected:5.1f} | {found.too_few:7.1%} {found.covered:7.1%}"
            f" {found.missed:6.1%} {cell.squared_correlation:5.2f} {found.width:6.3f} {100 * found.error:+6.2f}"
            f"  {found.shortfall}",
            flush=True,
        )
    broken = [found for found in results if found.shortfall]
    borne = [found for found in results if found.cell.expected >= EXPECTED and found.covered == found.covered]
    print(f"{len(results)} cells, {len(borne)} with {EXPECTED} expected; least coverage there:")
    print(f"  {min(found.covered for found in borne):.1%}; {len(broken)} cells break a promise")
    for cell in HALVED:
        print(f"halving: {cell}: {halved(cell, min(draws, 400))}")
    print(f"largest difference from ppi_py: {compared_with_ppi_py(500)}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
