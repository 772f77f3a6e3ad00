"""Measures how often the band of a difficulty curve contains the true curve, with random persons and tasks.

    PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 uv run python tests/studies/curve_bands.py [SIMULATIONS]

The log odds of success are a person's ability, minus a task's difficulty, minus the slope times the task's
metric. A logit on the metric alone estimates the curve of the means over persons and tasks, so the truth is
the chance at a value of the metric averaged over both. Prints the share of simulations whose band contains it
at z = -1, 0 and 1, for the two-way jackknife and for the paper's bootstrap of attempts.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import exp
from random import Random

import numpy as np
from scipy.special import expit
from study_rows import attempt_row

from gistpoint.core.analysis.difficulty_curves import resampled
from gistpoint.core.analysis.intervals import Scale
from gistpoint.core.analysis.regression import regress
from gistpoint.core.study.rows import AttemptRow

Z = (-1.0, 0.0, 1.0)


@dataclass(frozen=True)
class Setting:
    """The numbers of persons, of tasks per person and of tasks, and the parameters of the log odds."""

    people: int
    each: int
    tasks: int
    slope: float = -0.8
    person_sd: float = 0.8
    task_sd: float = 0.8
    model: bool = False
    """Whether the rows are those of a model: one solver, with ability 0."""


def draw(setting: Setting, seed: int) -> tuple[list[AttemptRow], list[float]]:
    """Draw the attempts of one study; return them with the metric of each attempt's task."""
    chance = Random(seed)
    z = [chance.gauss(0, 1) for _ in range(setting.tasks)]
    ease = [chance.gauss(0, setting.task_sd) for _ in range(setting.tasks)]
    rows, metric = [], []
    for person in range(setting.people):
        ability = 0.0 if setting.model else chance.gauss(0, setting.person_sd)
        for place in range(setting.each):
            task = (person * setting.each + place) % setting.tasks
            solved = chance.random() < 1 / (1 + exp(-(ability + ease[task] + setting.slope * z[task])))
            solver = "model-x" if setting.model else ""
            rows.append(attempt_row("" if solver else f"P{person}", f"t{task}", solved, solver=solver))
            metric.append(z[task])
    return rows, metric


AT = np.linspace(-3.0, 3.0, 25)
"""The z scores at which bands are compared, as in the paper."""


def true_chance(setting: Setting, z: float) -> float:
    """Return the mean chance over persons and tasks at metric `z`, by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    deviation = ((0.0 if setting.model else setting.person_sd) ** 2 + setting.task_sd**2) ** 0.5
    return float((weights * expit(setting.slope * z + deviation * nodes)).sum() / weights.sum())


def coverage(setting: Setting, simulations: int) -> tuple[dict[float, float], dict[float, float]]:
    """Return, for each z, the shares of jackknife bands and of bootstrap bands that contain the truth."""
    held = {z: [0, 0] for z in Z}
    for seed in range(simulations):
        rows, metric = draw(setting, seed)
        grid = np.column_stack([np.ones(len(Z)), np.array(Z)])
        model = regress(rows, {"metric": metric}, firth=True, grid=grid)
        if model is None:
            continue
        low, high = model.grid.bounds(Scale.LOGIT)
        solved = np.array([float(row.solved) for row in rows])
        drawn, _ = resampled(np.array(metric), solved, seed, AT)
        for place, z in enumerate(Z):
            truth = true_chance(setting, z)
            held[z][0] += bool(low[place] <= truth <= high[place])
            column = int(np.argmin(np.abs(AT - z)))
            lower, upper = np.quantile(expit(drawn[:, column]), [0.025, 0.975])
            held[z][1] += bool(lower <= truth <= upper)
    ours = {z: counts[0] / simulations for z, counts in held.items()}
    return ours, {z: counts[1] / simulations for z, counts in held.items()}


def main(simulations: int) -> None:
    """Print the coverage of four designs."""
    print(f"{simulations} simulations; nominal 95 %")
    for setting in (
        Setting(12, 8, 24),
        Setting(20, 8, 40),
        Setting(8, 6, 16),
        Setting(1, 60, 60, model=True),
    ):
        ours, paper = coverage(setting, simulations)
        told = "  ".join(f"z {z:+.0f}: {ours[z]:.1%} (bootstrap {paper[z]:.1%})" for z in Z)
        who = "a model" if setting.model else f"{setting.people} people x {setting.each}"
        print(f"{who} on {setting.tasks} tasks  {told}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
