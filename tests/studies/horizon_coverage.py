"""Measures the bias and the interval of a model's horizon when human minutes are estimates.

    PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 uv run python tests/studies/horizon_coverage.py [DRAWS [PEOPLE...]]

The medians of 48 tasks are log-normal around 20 minutes, with a standard deviation of 1.2. People's times
vary around them with standard deviations of .8 and, between persons, .4, and are cut at 60 minutes; each
person attempts 6 tasks. The model's log odds of solving a task are -.75 for each doubling of the median past
20 minutes, so its horizon is 20. For 3 and 6 people a task (or PEOPLE), prints the geometric mean of the
horizons, the share of the intervals that contain 20, and the mean half-width on the log scale: for METR's
choices (geometric mean of solved times, penalised, jackknife over tasks), which the product used before, and
for the product's fit of estimated minutes. Its fits with the penalty or a probit link get no interval here.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.special import expit

from gistpoint.core.analysis.horizon import fit_horizon
from gistpoint.core.analysis.intervals import Units, jackknife
from gistpoint.core.analysis.measured_horizon import HorizonLink, HumanMinutes, Runs

TASKS, EACH, TRUTH, CAP = 48, 6, 20.0, 60.0
FITS = {
    "not penalised": (HorizonLink.LOGIT, 0.0),
    "penalised": (HorizonLink.LOGIT, 0.1),
    "probit": (HorizonLink.PROBIT, 0.0),
}


def drawn(seed: int, per_task: int) -> tuple[Units, np.ndarray, np.ndarray, np.ndarray]:
    """Return the units, log minutes and successes of people, and the successes of the model."""
    draw = np.random.default_rng((20270201, per_task, seed))
    people = TASKS * per_task // EACH
    persons = np.repeat(np.arange(people), EACH)
    tasks = np.concatenate([draw.permutation(TASKS) for _ in range(per_task)])
    medians = np.log(20) + draw.normal(0, 1.2, TASKS)
    logs = medians[tasks] + draw.normal(0, 0.4, people)[persons] + draw.normal(0, 0.8, len(tasks))
    model = draw.random(TASKS) < expit(-0.75 * (medians - np.log(TRUTH)) / np.log(2))
    return Units(persons, tasks), np.minimum(logs, np.log(CAP)), logs <= np.log(CAP), model.astype(float)


def as_metr(units: Units, logs: np.ndarray, solved: np.ndarray, model: np.ndarray) -> tuple[float, float]:
    """Return the log horizon and the half-width of its interval, with human minutes taken as known."""
    counts = np.bincount(units.tasks[solved], minlength=TASKS)
    known = np.flatnonzero(counts)
    minutes = np.exp(np.bincount(units.tasks[solved], logs[solved], TASKS)[known] / counts[known])

    def estimate(kept: np.ndarray) -> float:
        fit = fit_horizon(minutes[kept], model[known][kept], np.ones(int(kept.sum())))
        return np.nan if fit is None else float(np.log(fit.at(0.5)))

    spread = jackknife(Units(np.full(len(known), -1), known), estimate)
    return float(spread.estimate[0]), float(spread.half[0])


def main() -> None:
    """Print a line for each number of people and each fit."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    for per_task in [int(word) for word in sys.argv[2:]] or (3, 6):
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in ("METR's choices", *FITS)}
        for seed in range(draws):
            units, logs, solved, model = drawn(seed, per_task)
            found["METR's choices"].append(as_metr(units, logs, solved, model))
            minutes = HumanMinutes.of(units, logs, solved)
            assert minutes is not None
            runs = Runs(np.arange(TASKS), model, np.ones(TASKS), np.ones(TASKS))
            for name, (link, penalty) in FITS.items():
                spread = runs.spread(minutes, (0.5,), link, penalty, interval=name == "not penalised")[1]
                found[name].append((float(spread.estimate[0]), float(spread.half[0])))
        for name, pairs in found.items():
            estimates, halves = np.array(pairs).T
            known = np.isfinite(estimates)
            covers = np.abs(estimates - np.log(TRUTH)) <= halves
            print(
                f"{per_task} people a task, {name:15} of {draws} draws {known.sum()} horizons, mean"
                f" {np.exp(estimates[known].mean()):5.1f} sd {estimates[known].std():.3f}"
                + (
                    f" intervals {np.isfinite(halves).sum()} cover {100 * covers[np.isfinite(halves)].mean():5.1f}"
                    f" half {np.nanmean(halves):.3f}"
                    if np.isfinite(halves).any()
                    else ""
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
