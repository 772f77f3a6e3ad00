"""Measures the intervals and the test of Cox's model on data with and without proportional hazards.

    PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 uv run python tests/studies/cox_coverage.py [DRAWS [BEFORE]]

12 persons attempt 15 of 60 tasks, half of them under each condition. Times are exponential with a rate that depends
on the task, and on the person in the second world; in the third, the effect of the condition ends after some time.
Prints for each world the share of draws in which the test of proportional hazards rejects at 5%, and in which the
intervals contain the true ratio: the model's and the jackknife's. BEFORE draws are also fitted by lifelines, for
Schoenfeld's test with equal information of all events, with and without clusters of persons, and for the clustered
interval.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter

import numpy as np
import pandas as pd
from lifelines import CoxPHFitter
from lifelines.statistics import proportional_hazard_test
from study_rows import attempt_row

from gistpoint.core.analysis.cox import hazard_ratio
from gistpoint.core.analysis.pooling import primary_minutes
from gistpoint.core.study.rows import AttemptRow

PEOPLE, EACH, TASKS, RATIO, LIMIT = 12, 15, 60, 1.6, 45.0
WORLDS = {"equal persons": (0.0, False), "persons differ": (0.5, False), "effect ends": (0.0, True)}


def drawn(seed: int, person_sd: float, ends: bool) -> list[AttemptRow]:
    """Return the attempts of one study."""
    draw = np.random.default_rng((20270109, seed))
    ease, skill = draw.normal(0, 0.8, TASKS), draw.normal(0, person_sd, PEOPLE)
    order, rows = draw.permutation(TASKS), []
    for number in range(PEOPLE * EACH):
        person, task = number // EACH, int(order[number % TASKS])
        helped = (number // TASKS + number) % 2 == 0
        rate = np.exp(ease[task] + skill[person]) / 20
        if ends and helped:
            # Three times the rate for five minutes, then the rate without help.
            early = draw.exponential(1 / (3 * rate))
            minutes = early if early < 5 else 5 + draw.exponential(1 / rate)
        else:
            minutes = draw.exponential(1 / (rate * (RATIO if helped else 1)))
        rows.append(
            attempt_row(
                f"P{person}",
                f"t{task}",
                bool(minutes < LIMIT),
                minutes=min(minutes, LIMIT),
                condition="help" if helped else "alone",
            )
        )
    return rows


def by_lifelines(rows: list[AttemptRow]) -> tuple[float, float, float, float]:
    """Return the clustered interval of the log ratio, and p-values of the tests with and without clusters."""
    frame = pd.DataFrame(
        {
            "minutes": [primary_minutes(row) for row in rows],
            "solved": [row.solved for row in rows],
            "x": [float(row.condition == "help") for row in rows],
            "task": [row.task for row in rows],
            "person": [row.participant for row in rows],
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = CoxPHFitter().fit(frame.drop(columns="person"), "minutes", "solved", strata=["task"])
        alone = proportional_hazard_test(plain, frame.drop(columns="person"), time_transform="rank")
        fit = CoxPHFitter().fit(frame, "minutes", "solved", strata=["task"], cluster_col="person")
        test = proportional_hazard_test(fit, frame, time_transform="rank")
    middle, error = float(fit.params_["x"]), float(fit.standard_errors_["x"])
    return middle - 1.96 * error, middle + 1.96 * error, float(test.p_value[0]), float(alone.p_value[0])


def main() -> None:
    """Print a line for each world and, unless BEFORE is 0, another for the results of lifelines."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    slow = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    for name, (person_sd, ends) in WORLDS.items():
        counts: Counter[str] = Counter()
        before: Counter[str] = Counter()
        errors, halves = [], []
        for seed in range(draws):
            rows = drawn(seed, person_sd, ends)
            found = hazard_ratio(rows, "help", "alone")
            if not isinstance(found, tuple) or found[1] is None or not found[0].low or not found[0].high:
                counts["not estimated"] += 1
                continue
            number, p = found
            counts["test rejects"] += p < 0.05
            counts["model contains"] += number.iid is not None and number.iid[0] <= RATIO <= number.iid[1]
            counts["jackknife contains"] += found[0].low <= RATIO <= found[0].high
            errors.append(np.log((number.value or 1) / RATIO))
            halves.append(np.log(found[0].high / found[0].low) / 2)
            if seed < slow:
                low, high, with_clusters, without = by_lifelines(rows)
                before["clustered contains"] += low <= np.log(RATIO) <= high
                before["clustered test rejects"] += with_clusters < 0.05
                before["test of lifelines rejects"] += without < 0.05
        print(
            f"{name:15} {_words(counts, draws)}; bias {np.mean(errors):+.3f} sd {np.std(errors):.3f}"
            f" half {np.mean(halves):.3f}",
            flush=True,
        )
        if slow:
            print(f"{name:15} before: {_words(before, slow)}", flush=True)


def _words(counts: Counter[str], draws: int) -> str:
    return ", ".join(f"{what} {100 * count / draws:.1f}" for what, count in sorted(counts.items()))


if __name__ == "__main__":
    main()
