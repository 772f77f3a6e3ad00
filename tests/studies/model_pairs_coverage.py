"""Measures the interval of the difference between two models on the same tasks.

    PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 uv run python tests/studies/model_pairs_coverage.py [DRAWS]

40 tasks are from 1, 8 or 20 libraries, with standard deviations in log odds of 1.2 of tasks and .6 of
libraries. With several libraries, the first model's advantage varies between them with a standard deviation
of .4. Both models have 1 or 3 runs at each task, and the first is .8 better, or equally good. The truth is
the mean difference over libraries and tasks, by 200,000 draws. Prints the share of draws in which the
product's interval contains it, and in which the interval that ignores the pairing does, with their mean
half-widths, and the mean correlation of the models' shares.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.special import expit

from gistpoint.core.analysis.model_pairs import Paired

TASKS, OF_TASKS, OF_LIBRARIES, VARIES = 40, 1.2, 0.6, 0.4


def truth_of(shift: float, varies: float) -> float:
    """Return the mean difference between the models' chances, by simulation."""
    draw = np.random.default_rng(20270403)
    level = draw.normal(0, np.hypot(OF_TASKS, OF_LIBRARIES), 200_000)
    return float(np.mean(expit(level + shift + draw.normal(0, varies, len(level))) - expit(level)))


def main() -> None:
    """Print a line for each number of libraries and of runs, and each difference."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for libraries in (1, 8, 20):
        varies = VARIES if libraries > 1 else 0.0
        for runs in (1, 3):
            for shift in (0.8, 0.0):
                truth, found, together = truth_of(shift, varies), [], []
                for seed in range(draws):
                    draw = np.random.default_rng((20270404, libraries, runs, seed))
                    of = np.arange(TASKS) % libraries
                    spread = OF_LIBRARIES if libraries > 1 else 0.0
                    alone = np.hypot(OF_TASKS, OF_LIBRARIES) if libraries == 1 else OF_TASKS
                    level = draw.normal(0, alone, TASKS) + draw.normal(0, spread, libraries)[of]
                    better = level + shift + draw.normal(0, varies, libraries)[of]
                    first, second = (draw.binomial(runs, expit(one)) / runs for one in (better, level))
                    paired = Paired(first, second, tuple(f"lib{one}" for one in of), 2 * runs * TASKS)
                    number = paired.difference
                    if number.low is not None and number.high is not None and number.iid is not None:
                        found.append((number.low, number.high, *number.iid))
                        together.append(paired.correlation or 0.0)
                low, high, wide_low, wide_high = np.array(found).T
                print(
                    f"{libraries:2} libraries, {runs} runs, difference {truth:+.3f}: covers"
                    f" {100 * np.mean((low <= truth) & (truth <= high)):5.1f} half {np.mean(high - low) / 2:.3f};"
                    f" unpaired {100 * np.mean((wide_low <= truth) & (truth <= wide_high)):5.1f} half"
                    f" {np.mean(wide_high - wide_low) / 2:.3f}; correlation {np.mean(together):.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
