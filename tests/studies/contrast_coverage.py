"""Compares four estimators of the difference between two conditions, on five designs.

    PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 uv run python tests/studies/contrast_coverage.py [DRAWS]

Success is logistic with standard deviations of .8 of persons and 1.2 of tasks, at a rate of .5 and an effect of .2 or
none. Each person meets both conditions, or only one (`between`). For the difference of plain means, the mean over
tasks with both conditions, the difference within persons and tasks (fixed effects), and the product's contrast, prints
the share of draws with an interval, the bias, the standard deviation of the estimates, the percentage of the
intervals that contain the truth, their mean half-width, and the share of all draws whose interval excludes 0. All but
the product's estimator are computed here; the interval of all four is the two-way jackknife's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from gistpoint.core.analysis.contrast import difference
from gistpoint.core.analysis.intervals import Units, jackknife

Floats = NDArray[np.float64]
Kept = NDArray[np.bool_]
DESIGNS = ((12, 4, 40), (12, 6, 24), (24, 4, 60), (24, 6, 24), (32, 4, 60))
PERSON_SD, TASK_SD, RATE = 0.8, 1.2, 0.5


def middle_of(rate: float) -> float:
    """Return the log odds whose logistic chance has the mean `rate` over persons and tasks."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    spread = float(np.hypot(PERSON_SD, TASK_SD))
    return float(
        brentq(lambda m: (weights * expit(m + spread * nodes)).sum() / weights.sum() - rate, -30, 30)
    )


def of_plain_means(values: Floats, side: Kept, units: Units) -> Callable[[Kept], float]:
    """Return the estimator that subtracts one side's mean from the other's."""
    return lambda kept: float(values[kept & side].mean() - values[kept & ~side].mean())


def over_shared_tasks(values: Floats, side: Kept, units: Units) -> Callable[[Kept], float]:
    """Return the estimator that averages the differences on tasks with both conditions; NaN without any."""

    def estimate(kept: Kept) -> float:
        found = []
        for task in units.task_numbers:
            one, other = kept & side & (units.tasks == task), kept & ~side & (units.tasks == task)
            if one.any() and other.any():
                found.append(values[one].mean() - values[other].mean())
        return float(np.mean(found)) if found else float("nan")

    return estimate


def within_both(values: Floats, side: Kept, units: Units) -> Callable[[Kept], float]:
    """Return the least squares estimator with a constant for each task and each person."""
    tasks, persons = (
        np.eye(units.tasks.max() + 1)[units.tasks],
        np.eye(units.persons.max() + 1)[units.persons],
    )
    others = np.hstack([tasks, persons])

    def estimate(kept: Kept) -> float:
        design, x = others[kept], side[kept].astype(float)
        left = x - design @ np.linalg.lstsq(design, x, rcond=None)[0]
        return float(left @ values[kept] / (left @ left)) if left @ left > 1e-8 else float("nan")

    return estimate


OTHERS = {"plain means": of_plain_means, "shared tasks": over_shared_tasks, "fixed effects": within_both}


def compared(people: int, each: int, tasks: int, between: bool, effect: float, draws: int) -> None:
    """Print a line for each estimator."""
    low, high = middle_of(RATE), middle_of(RATE + effect)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in (*OTHERS, "mixed model")}
    for number in range(draws):
        draw = np.random.default_rng((20270110, number))
        persons, places = np.repeat(np.arange(people), each), np.arange(people * each)
        given = draw.permutation(tasks)[places % tasks]
        side = (persons % 2 if between else (places // tasks + places % tasks) % 2) == 1
        skill, ease = PERSON_SD * draw.standard_normal(people), TASK_SD * draw.standard_normal(tasks)
        chance = expit(np.where(side, high, low) + skill[persons] + ease[given])
        values, units = (draw.random(len(chance)) < chance).astype(float), Units(persons, given)
        with np.errstate(all="ignore"):
            spreads = {name: jackknife(units, of(values, side, units)) for name, of in OTHERS.items()}
        spreads["mixed model"] = difference(units, values, side)
        for name, spread in spreads.items():
            found[name].append((float(spread.estimate[0]), float(spread.half[0])))
    print(f"{people} people, {each} of {tasks} tasks, {'between' if between else 'within'}, effect {effect}")
    for name, pairs in found.items():
        estimates, halves = np.array(pairs).T
        known = np.isfinite(halves)
        if not known.any():
            print(f"  {name:14} no interval")
            continue
        covers = 100 * np.mean(np.abs(estimates - effect)[known] <= halves[known])
        excludes = np.mean(known & (np.abs(estimates) > np.where(known, halves, np.inf)))
        print(
            f"  {name:14} has {known.mean():.2f} bias {np.nanmean(estimates) - effect:+.3f}"
            f" sd {np.nanstd(estimates):.3f} covers {covers:5.1f} half {halves[known].mean():.3f}"
            f" excludes 0 {excludes:.2f}",
            flush=True,
        )


def main() -> None:
    """Compare the estimators on all designs."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    for design in DESIGNS:
        for between in (False, True):
            for effect in (0.2, 0.0):
                compared(*design, between, effect, draws)


if __name__ == "__main__":
    main()
