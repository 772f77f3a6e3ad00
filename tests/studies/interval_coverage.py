"""Measures how often intervals contain the true value if persons and tasks are both drawn at random.

    PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 uv run python tests/studies/interval_coverage.py

Success is logistic with standard deviations .8 of persons and 1.2 of tasks unless stated otherwise. Prints the
share of draws whose 95% interval contains the truth, for the two-way jackknife and for independent attempts,
and the mean half-width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm

from gistpoint.core.analysis.intervals import NO_PERSON, Units, jackknife, jackknife_of_mean
from gistpoint.core.analysis.versus import differences
from gistpoint.core.estimates import wilson

DESIGNS = ((6, 4, 8), (8, 6, 16), (16, 6, 24), (30, 8, 40))
"""The numbers of people, of tasks for each of them, and of tasks."""
PERSON_SD, TASK_SD = 0.8, 1.2


@dataclass(frozen=True)
class Coverage:
    """The shares of draws whose intervals contained the truth, and the mean half-width."""

    jackknife: float
    iid: float
    half: float


def true_rate(middle: float, deviation: float) -> float:
    """Return the mean of a logistic chance over a normal distribution, by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    return float((weights * expit(middle + deviation * nodes)).sum() / weights.sum())


def assigned(
    people: int, each: int, tasks: int, draw: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return persons and their tasks such that all tasks are attempted nearly equally often."""
    persons = np.repeat(np.arange(people), each)
    order = draw.permutation(tasks)
    return persons, order[np.arange(people * each) % tasks]


def rate_coverage(
    people: int = 16, each: int = 6, tasks: int = 24, middle: float = 0.3, seeds: int = 2000, first: int = 0
) -> Coverage:
    """Return the coverage of people's success rate."""
    truth = true_rate(middle, float(np.hypot(PERSON_SD, TASK_SD)))
    held = np.zeros((seeds, 2), dtype=bool)
    half = np.zeros(seeds)
    for seed in range(seeds):
        draw = np.random.default_rng((first, seed))
        persons, given = assigned(people, each, tasks, draw)
        skill, ease = draw.normal(0, PERSON_SD, people), draw.normal(0, TASK_SD, tasks)
        solved = draw.random(len(persons)) < expit(middle + skill[persons] + ease[given])
        found = jackknife_of_mean(Units(persons, given), solved)
        low, high = found.bounds()
        one, other = wilson(float(solved.sum()), len(solved))
        held[seed] = low[0] <= truth <= high[0], one <= truth <= other
        half[seed] = found.half[0]
    jack, iid = held.mean(axis=0)
    return Coverage(float(jack), float(iid), float(half.mean()))


def difference_coverage(
    people: int = 12, each: int = 6, tasks: int = 24, runs: int = 1, middle: float = 0.5, seeds: int = 1000
) -> Coverage:
    """Return the coverage of people's rate minus a model's on the same tasks.

    A part of a task's difficulty is common to people and the model.
    """
    own = 0.7
    truth = true_rate(middle, float(np.hypot(PERSON_SD, TASK_SD))) - true_rate(
        0.0, float(np.hypot(TASK_SD, own))
    )
    held = np.zeros((seeds, 2), dtype=bool)
    half = np.zeros(seeds)
    for seed in range(seeds):
        draw = np.random.default_rng((1, seed))
        persons, given = assigned(people, each, tasks, draw)
        skill, ease = draw.normal(0, PERSON_SD, people), draw.normal(0, TASK_SD, tasks)
        solved = draw.random(len(persons)) < expit(middle + skill[persons] + ease[given])
        again = np.repeat(np.arange(tasks), runs)
        by_model = draw.random(len(again)) < expit(ease[again] + draw.normal(0, own, tasks)[again])
        y = np.concatenate([solved, by_model]).astype(float)
        units = Units(
            np.concatenate([persons, np.full(len(again), NO_PERSON)]), np.concatenate([given, again])
        )

        def estimate(kept: NDArray[np.bool_], units: Units = units, y: NDArray[np.float64] = y) -> float:
            return float(np.nanmean(differences(units, y, units.persons != NO_PERSON, kept)))

        found = jackknife(units, estimate)
        low, high = found.bounds()
        one, other = solved.mean(), by_model.mean()
        wide = norm.ppf(0.975) * np.sqrt(one * (1 - one) / len(solved) + other * (1 - other) / len(by_model))
        held[seed] = low[0] <= truth <= high[0], abs(found.estimate[0] - truth) <= wide
        half[seed] = found.half[0]
    jack, iid = held.mean(axis=0)
    return Coverage(float(jack), float(iid), float(half.mean()))


def main() -> None:
    """Print all coverages."""
    print("rate of people                       jackknife    i.i.d.   half-width")
    for people, each, tasks in DESIGNS:
        for middle in (0.3, 1.5):
            found = rate_coverage(people, each, tasks, middle)
            rate = true_rate(middle, float(np.hypot(PERSON_SD, TASK_SD)))
            print(f"{people:3} x {each} on {tasks:2}, rate {rate:.2f}            {_line(found)}")
    print("people minus a model, same tasks")
    for people, each, tasks, runs in ((8, 6, 16, 1), (12, 6, 24, 1), (12, 6, 24, 4), (30, 8, 40, 2)):
        found = difference_coverage(people, each, tasks, runs)
        print(f"{people:3} x {each} on {tasks:2}, {runs} run(s) a task      {_line(found)}")


def _line(found: Coverage) -> str:
    return f"{100 * found.jackknife:6.1f} % {100 * found.iid:8.1f} % {found.half:10.3f}"


if __name__ == "__main__":
    main()
