"""Compares the results of the analyses of times with a known truth.

    PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 uv run python tests/studies/time_recovery.py [DRAWS]

Persons and tasks are drawn at random; times are log-normal, cut at a cap. Prints mean estimates next to the
truth, and how often 95% intervals contain it.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from math import exp, log
from random import Random

import numpy as np
from msgspec.structs import replace as changed
from study_rows import World, attempt_row

from gistpoint.core.analysis.censored import fit_censored
from gistpoint.core.analysis.cox import hazard_ratio
from gistpoint.core.analysis.findings import Number
from gistpoint.core.analysis.mixed import fit_mixed
from gistpoint.core.analysis.survival import median_time
from gistpoint.core.analysis.timeratios import condition_ratio, people, solved_only
from gistpoint.core.study.rows import AttemptRow

WORLD = World(
    people=20,
    tasks=24,
    per_person=8,
    effect=-0.511,
    assisted=True,
    cap=45,
    person_sd=0.4,
    task_sd=0.6,
    sigma=0.6,
)


def drawn(world: World, seed: int, by_task: float = 0.0) -> list[AttemptRow]:
    """Draw timed attempts; `by_task` is the standard deviation of the effect between tasks."""
    rows = people(replace(world, cap=1e9).data(seed))
    draw = Random(seed)
    shift = {row.task: draw.gauss(0, by_task) for row in sorted(rows, key=lambda row: row.task)}
    made = []
    for row in rows:
        minutes = (row.primary_s or 0.0) / 60 * (exp(shift[row.task]) if row.condition == "assisted" else 1.0)
        solved = minutes <= world.cap
        end = "solved" if solved else "time_cap"
        made.append(changed(row, solved=solved, end=end, primary_s=60 * min(minutes, world.cap)))
    return made


def held(number: Number, truth: float) -> tuple[bool, bool]:
    """Return whether the interval contains the truth, and whether the one for independent attempts does."""
    if number.low is None or number.high is None or number.iid is None:
        return False, False
    return number.low <= truth <= number.high, number.iid[0] <= truth <= number.iid[1]


def ratios(draws: int, by_task: float) -> None:
    """Print the ratio of times, with censoring and from the solved attempts alone."""
    found, alone, sigma, inside = [], [], [], []
    for seed in range(draws):
        rows = drawn(WORLD, seed, by_task)
        fit = condition_ratio(rows, "assisted", "alone")
        assert not hasattr(fit, "short"), fit
        number = fit.ratio("assisted")  # type: ignore[union-attr]
        found.append(log(number.value or 1))
        sigma.append(fit.sigma)  # type: ignore[union-attr]
        inside.append(held(number, exp(WORLD.effect)))
        only = solved_only(rows, "assisted", "alone")
        alone.append(log(only.value) if only is not None and only.value else np.nan)
    jack, wald = np.mean(inside, axis=0)
    whole = np.hypot(WORLD.sigma, WORLD.person_sd)
    print(
        f"effect that varies by {by_task:.1f} from task to task: {WORLD.effect} found {np.mean(found):.3f}, "
        f"solved only {np.nanmean(alone):.3f}; sigma with persons {whole:.3f} found {np.mean(sigma):.3f}; "
        f"holds: jackknife {100 * jack:.1f} %, Wald {100 * wald:.1f} %"
    )


def hazards(draws: int) -> None:
    """Print Cox's mean log hazard ratio with frailties, which is nearer to 0 than the effect on a person."""
    found = []
    for seed in range(draws):
        draw = np.random.default_rng(seed)
        rows = []
        ease = draw.normal(0, 0.6, 24)
        for person in range(20):
            frailty = draw.normal(0, 0.5)
            for place, task in enumerate(draw.permutation(24)[:8]):
                rate = exp(-3 + ease[task] + frailty - 0.7 * (place % 2))
                minutes = float(draw.exponential(1 / rate))
                name = ("alone", "assisted")[place % 2]
                rows.append(
                    attempt_row(
                        f"P{person}", f"t{task}", minutes < 60, minutes=min(minutes, 60), condition=name
                    )
                )
        number = hazard_ratio(rows, "assisted", "alone")
        assert isinstance(number, tuple)
        found.append(log(number[0].value or 1))
    print(f"Cox: -.7 for one person, frailty .5: found {np.mean(found):.3f}")


def spreads(draws: int) -> None:
    """Print the mixed model's mean standard deviations of log times without a cap, and its mean effect."""
    world = replace(WORLD, cap=1e9, people=30, tasks=30, effect=-0.5)
    fits = [fit_mixed(people(world.data(seed)), ["assisted"]) for seed in range(draws)]
    known = [fit for fit in fits if fit is not None]
    sds = np.mean([(fit.person_sd, fit.task_sd, fit.sigma) for fit in known], axis=0)
    effect = np.mean([fit.effects["assisted"][0] for fit in known])
    print(
        f"mixed: sd of persons .4 tasks .6 rest .6: {sds[0]:.2f} {sds[1]:.2f} {sds[2]:.2f}; effect -.5: {effect:.3f}; "
        f"{len(known)} of {draws} fits"
    )


def medians(draws: int) -> None:
    """Print the median for one task with 12 attempts; the true one is 30, with sigma .9 and cap 40."""
    fits, inside, curves = [], [], []
    for seed in range(draws):
        true = np.random.default_rng(seed).lognormal(log(30), 0.9, 12)
        solved = true <= 40
        fit = fit_censored(np.ones((12, 1)), np.log(np.minimum(true, 40)), solved)
        if fit is None:
            continue
        fits.append(exp(fit.coefficients[0]))
        inside.append(abs(fit.coefficients[0] - log(30)) <= 1.96 * fit.covariance[0, 0] ** 0.5)
        curves.append(median_time(np.minimum(true, 40), solved.astype(np.int64)))
    reached = np.where(np.isnan(curves), np.inf, curves)
    print(
        f"12 attempts, median 30: median of fits {np.median(fits):.1f}, Wald holds it {100 * np.mean(inside):.1f} %, "
        f"median of Kaplan-Meier's {np.median(reached):.1f}"
    )


def main() -> None:
    """Print the results of all analyses."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for by_task in (0.0, 0.4):
        ratios(draws, by_task)
    hazards(draws // 2)
    spreads(draws // 2)
    medians(10 * draws)


if __name__ == "__main__":
    main()
