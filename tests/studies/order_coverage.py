"""Measures the intervals of the effects of a task's place, and of the condition before it.

    PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 uv run python tests/studies/order_coverage.py [DRAWS]

Each of 12 or 24 persons attempts 6 of 24 tasks, each under one of two conditions at random. Minutes are log-normal
around 15, with standard deviations of .3 of persons, .4 of tasks and .4 of attempts, halved by help and cut at
30. Either each later place changes the time by -.08 of its logarithm, or help with the task before changes it
by .25, or neither does. Prints the share of draws in which the interval contains the truth, the bias and the
mean half-width on the log scale, and the share of draws in which the interval excludes 1.
"""

from __future__ import annotations

import sys
from math import log

import numpy as np
from study_rows import attempt_row, declared, study_data

from gistpoint.core.analysis.order import effects_of_order
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Condition

TASKS, EACH, LIMIT = 24, 6, 30.0
TWO = declared(condition=(Condition(id="alone"), Condition(id="assisted")))
EFFECTS = {"each place later/times": 0, "after assisted rather than alone/times": 1}


def drawn(seed: int, people: int, learning: float, carry: float) -> StudyData:
    """Return the attempts of one study."""
    draw = np.random.default_rng((20270402, people, seed))
    ease, rows = draw.normal(0, 0.4, TASKS), []
    for person in range(people):
        skill, helped = draw.normal(0, 0.3), False
        for position, task in enumerate(draw.choice(TASKS, EACH, replace=False), start=1):
            before, helped = helped, bool(draw.random() < 0.5)
            logs = log(15) + skill + ease[task] - log(2) * helped + learning * position
            logs += carry * before + draw.normal(0, 0.4)
            rows.append(
                attempt_row(
                    f"P{person:02}",
                    f"t{task}",
                    bool(logs <= log(LIMIT)),
                    minutes=float(np.exp(min(logs, log(LIMIT)))),
                    position=position,
                    condition="assisted" if helped else "alone",
                )
            )
    return study_data(rows, study=TWO)


def main() -> None:
    """Print a line for each number of people, world and effect."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for people in (12, 24):
        for learning, carry in ((-0.08, 0.0), (0.0, 0.25), (0.0, 0.0)):
            found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in EFFECTS}
            for seed in range(draws):
                numbers = effects_of_order(drawn(seed, people, learning, carry)).numbers
                for name in EFFECTS:
                    number = numbers.get(name)
                    if number is not None and number.value and number.low and number.high:
                        ends = log(number.value), log(number.low), log(number.high)
                        found[name].append(ends)
            for name, place in EFFECTS.items():
                truth = (learning, carry)[place]
                value, low, high = np.array(found[name]).T
                print(
                    f"{people} people, learning {learning:+.2f}, carry-over {carry:+.2f}: {name:40}"
                    f" {len(value)} draws, covers {100 * np.mean((low <= truth) & (truth <= high)):5.1f}"
                    f" bias {value.mean() - truth:+.3f} half {np.mean(high - low) / 2:.3f}"
                    f" excludes 1 {np.mean((low > 0) | (high < 0)):.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
