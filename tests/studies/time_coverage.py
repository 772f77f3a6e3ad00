"""Measures the interval of the ratio of times between two conditions, before and after decision 160.

    PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 uv run python tests/studies/time_coverage.py [DRAWS [BEFORE
    [DESIGN...]]]

The times are drawn here: log-normal with standard deviations of .4 of persons, .7 of tasks and .7 of single
attempts unless stated otherwise, around 20 minutes, cut at a limit. The ratio is .7. For each design, prints
the bias, the standard deviation of the estimates, and for each interval the share of draws in which it
contains the truth, with the mean half-width on the log scale. `fixed` is the regression with a constant for
each task and the two-way jackknife of decision 87, which was the primary one before (BEFORE draws of it,
because it is slow); `mixed` is the product's.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from study_rows import attempt_row

from gistpoint.core.analysis.crossed_times import effects_on_times
from gistpoint.core.analysis.intervals import Units
from gistpoint.core.analysis.timeratios import TimeRegression, regress_times


@dataclass(frozen=True, kw_only=True)
class Design:
    """The design of a simulated study."""

    people: int = 12
    each: int = 6
    tasks: int = 24
    effect: float = float(np.log(0.7))
    varies: float = 0.0
    """The standard deviation of the effect over tasks."""
    limit: float = 60.0
    gives_up: float = 0.0
    """The chance that a person who would exceed the limit stops before it."""
    between: bool = False


DESIGNS = {
    "8 x 6 of 16": Design(people=8, tasks=16),
    "12 x 6 of 24": Design(),
    "12 x 6 of 24, effect varies": Design(varies=0.5),
    "12 x 6 of 24, no effect, limit 25": Design(effect=0.0, limit=25.0),
    "12 x 6 of 24, give-ups, limit 30": Design(limit=30.0, gives_up=0.6),
    "12 x 6 of 24, between": Design(between=True),
    "12 x 4 of 40": Design(each=4, tasks=40),
    "40 x 8 of 60": Design(people=40, each=8, tasks=60),
}


def drawn(design: Design, seed: int) -> tuple[Units, np.ndarray, np.ndarray, np.ndarray]:
    """Return persons and tasks, the columns, the log minutes, and whether each attempt is solved."""
    draw = np.random.default_rng((99, seed))
    count = design.people * design.each
    persons, places = np.repeat(np.arange(design.people), design.each), np.arange(count)
    tasks = draw.permutation(design.tasks)[places % design.tasks]
    side = persons % 2 if design.between else (places // design.tasks + places % design.tasks) % 2
    order = np.concatenate([draw.permutation(design.each) for _ in range(design.people)]).astype(float)
    logs = np.log(20) + draw.normal(0, 0.4, design.people)[persons] + draw.normal(0, 0.7, design.tasks)[tasks]
    logs += (design.effect + draw.normal(0, design.varies, design.tasks)[tasks]) * side
    logs += draw.normal(0, 0.7, count)
    solved = logs <= np.log(design.limit)
    logs = np.minimum(logs, np.log(design.limit))
    stops = ~solved & (draw.random(count) < design.gives_up)
    logs[stops] += np.log(draw.uniform(0.3, 0.9, int(stops.sum())))
    return Units(persons, tasks), np.column_stack([np.ones(count), side, order - order.mean()]), logs, solved


def before(units: Units, x: np.ndarray, logs: np.ndarray, solved: np.ndarray) -> tuple[float, float]:
    """Return the log ratio and half-width with a constant for each task; NaN if nothing can be fitted."""
    rows = [
        attempt_row(f"P{person}", f"t{task}", bool(passed), minutes=float(np.exp(log)))
        for person, task, passed, log in zip(units.persons, units.tasks, solved, logs, strict=True)
    ]
    found = regress_times("", rows, {"side": x[:, 1], "order": x[:, 2]})
    if not isinstance(found, TimeRegression):
        return np.nan, np.nan
    return float(found.spread.estimate[0]), float(found.spread.half[0])


def after(units: Units, x: np.ndarray, logs: np.ndarray, solved: np.ndarray) -> tuple[float, float]:
    """Return the log ratio and half-width of the product's model; NaN if nothing can be fitted."""
    found = effects_on_times(units, x, logs, solved, np.eye(3)[1:2])
    return (
        (np.nan, np.nan) if found is None else (float(found.spread.estimate[0]), float(found.spread.half[0]))
    )


def main() -> None:
    """Print a line for each design and model."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    slow = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    for name in sys.argv[3:] or DESIGNS:
        design = DESIGNS[name]
        for model, estimate, count in (("mixed", after, draws), ("fixed", before, slow)):
            if not count:
                continue
            found = np.array([estimate(*drawn(design, seed)) for seed in range(count)])
            known = np.isfinite(found).all(axis=1)
            errors, halves = found[known, 0] - design.effect, found[known, 1]
            print(
                f"{name:34} {model}: {known.sum()} draws, bias {errors.mean():+.3f} sd {errors.std():.3f}"
                f" covers {100 * np.mean(np.abs(errors) <= halves):5.1f} half {halves.mean():.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
