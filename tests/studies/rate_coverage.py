"""Measures how often the interval of a rate contains the true rate, up to the ends of the scale.

    PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 uv run python tests/studies/rate_coverage.py [DRAWS] [DESIGN...]

Success is logistic, with a standard deviation of .8 of persons and of 1.2 or 2.5 of tasks. For each of 72
cells, prints the median effective number of attempts, r (1 - r) / V, and for the interval on the plain scale
with t of min(persons, tasks) - 1 degrees and for the product's interval: the percentage of draws that contain
the truth, those with the truth above and below, and the mean half-width. The draws, the jackknife and the
plain interval are computed here; only the product's interval comes from `gistpoint.core.analysis.intervals`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, stdtrit

from gistpoint.core.analysis.intervals import Scale, Units, clopper_pearson, jackknife_of_mean

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
DESIGNS = {
    "crossed-8": (8, 16, 0),
    "six-12": (12, 24, 6),
    "crossed-12": (12, 24, 0),
    "eight-40": (40, 60, 8),
    "crossed-40": (40, 60, 0),
    "unbalanced-40": (40, 60, -1),
}
"""People, tasks, and tasks per person: 0 for all, -1 for 2 to 20 at random, early tasks more often."""
RATES = (0.03, 0.05, 0.5, 0.8, 0.9, 0.95)
DEVIATIONS = ((0.8, 1.2), (0.8, 2.5))


def true_rate(middle: float, deviation: float) -> float:
    """Return the mean of a logistic chance over a normal distribution, by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    return float((weights * expit(middle + deviation * nodes)).sum() / weights.sum())


def assigned(people: int, tasks: int, each: int, draw: np.random.Generator) -> tuple[Integers, Integers]:
    """Return the person and the task of each attempt."""
    if each > 0:
        order = draw.permutation(tasks)
        return np.repeat(np.arange(people), each), order[np.arange(people * each) % tasks]
    if each == 0:
        return np.repeat(np.arange(people), tasks), np.tile(np.arange(tasks), people)
    weights = np.linspace(3, 1, tasks) / np.linspace(3, 1, tasks).sum()
    chosen = [draw.choice(tasks, int(draw.integers(2, tasks // 3)), False, weights) for _ in range(people)]
    return np.repeat(np.arange(people), [len(one) for one in chosen]), np.concatenate(chosen)


def variance_without(values: Floats, groups: Integers) -> float:
    """Return the jackknife variance of the mean, leaving each group out in turn."""
    means = [values[groups != group].mean() for group in np.unique(groups)]
    return float((len(means) - 1) / len(means) * ((np.array(means) - values.mean()) ** 2).sum())


@dataclass
class Tally:
    """The counts of one kind of interval: the truth inside, above or below; and the half-widths."""

    inside: int = 0
    above: int = 0
    below: int = 0
    halves: list[float] = field(default_factory=list)

    def add(self, truth: float, low: float, high: float) -> None:
        """Count an interval."""
        self.inside += low <= truth <= high
        self.above += truth > high
        self.below += truth < low
        self.halves.append((high - low) / 2)

    def words(self) -> str:
        """Return the counts as percentages, and the mean half-width."""
        of = len(self.halves) / 100
        shares = f"{self.inside / of:5.1f} ({self.above / of:4.1f} above, {self.below / of:4.1f} below)"
        return f"{shares} half {np.mean(self.halves):.3f}"


def cell(
    design: tuple[int, int, int], rate: float, deviations: tuple[float, float], draws: int
) -> Iterator[str]:
    """Yield, as strings, the median effective number of attempts, and the counts of both intervals."""
    people, tasks, each = design
    of_people, of_tasks = deviations
    middle = brentq(lambda m: true_rate(m, float(np.hypot(of_people, of_tasks))) - rate, -30, 30)
    plain, product, effective = Tally(), Tally(), []
    for number in range(draws):
        draw = np.random.default_rng((20270108, number))
        persons, given = assigned(people, tasks, each, draw)
        skill, ease = of_people * draw.standard_normal(people), of_tasks * draw.standard_normal(tasks)
        solved = (draw.random(len(persons)) < expit(middle + skill[persons] + ease[given])).astype(float)
        share, units = solved.mean(), Units(persons, given)
        if share in (0.0, 1.0):
            low, high = clopper_pearson(share * units.fewest, units.fewest)
            plain.add(rate, low, high)
            product.add(rate, low, high)
            continue
        by_persons, by_tasks = variance_without(solved, persons), variance_without(solved, given)
        by_rows = share * (1 - share) / (len(solved) - 1)
        variance = max(by_persons + by_tasks - by_rows, by_persons, by_tasks)
        effective.append(share * (1 - share) / max(variance, 1e-12))
        half = float(stdtrit(units.fewest - 1, 0.975)) * variance**0.5
        plain.add(rate, max(0.0, share - half), min(1.0, share + half))
        ends = jackknife_of_mean(units, solved).bounds(Scale.PROBABILITY)
        product.add(rate, float(ends[0][0]), float(ends[1][0]))
    yield f"{np.median(effective) if effective else 0:6.1f}"
    yield plain.words()
    yield product.words()


def main() -> None:
    """Print a line for each cell."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for name in sys.argv[2:] or DESIGNS:
        for rate in RATES:
            for deviations in DEVIATIONS:
                found = "   ".join(cell(DESIGNS[name], rate, deviations, draws))
                print(f"{name:14} {rate:.2f} {deviations[1]:.1f} {found}", flush=True)


if __name__ == "__main__":
    main()
