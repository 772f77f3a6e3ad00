"""The difference between conditions of gists is the effect that the other condition would have had.

The truth is known: in the simulation, every attempt has a chance under both conditions, of which one occurs.
Hard tasks are attempted more often with the test given, so a difference of plain rates is wrong.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from scipy.special import expit
from study_rows import attempt_row, declared, study_data

from gistpoint.core.analysis.catalogue import analysis
from gistpoint.core.study.declaration import Condition
from gistpoint.core.study.rows import AttemptRow

GIVEN, BARE = "given", "bare"
STUDY = declared(condition=(Condition(id=GIVEN, give_test=True), Condition(id=BARE)))
PEOPLE, TASKS, DRAWS = 12, 16, 40
SPREAD_OF_PEOPLE, SPREAD_OF_TASKS = 0.8, 1.2
"""The standard deviations in logits."""
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(60)


def true_difference(effect: float) -> float:
    """Return the share solved, over all people and tasks, with the test given, minus the share without it."""
    logits = np.hypot(SPREAD_OF_PEOPLE, SPREAD_OF_TASKS) * _NODES
    return float((_WEIGHTS * (expit(logits + effect) - expit(logits))).sum() / _WEIGHTS.sum())


def simulated(seed: int, effect: float) -> list[AttemptRow]:
    """Return attempts of which each is made under one condition; giving the test adds `effect` logits."""
    draw = Random(seed)
    people = [draw.gauss(0, SPREAD_OF_PEOPLE) for _ in range(PEOPLE)]
    rows = []
    for task in range(TASKS):
        ease = draw.gauss(0, SPREAD_OF_TASKS)
        times_given = 6 if ease < 0 else 2
        for turn, person in enumerate(draw.sample(range(PEOPLE), 8)):
            condition = GIVEN if turn < times_given else BARE
            chance = float(expit(people[person] + ease + (effect if condition == GIVEN else 0.0)))
            rows.append(
                attempt_row(
                    f"P{person}",
                    f"t{task}",
                    draw.random() < chance,
                    mode="gist",
                    condition=condition,
                    condition_key="0/1",
                )
            )
    return rows


def share(rows: list[AttemptRow], condition: str) -> float:
    return float(np.mean([row.solved for row in rows if row.condition == condition]))


@pytest.mark.parametrize("effect", [0.0, 1.0])
def test_the_difference_within_tasks_recovers_what_the_condition_changes(effect: float) -> None:
    truth = 100 * true_difference(effect)
    errors, naive, held = [], [], 0
    for seed in range(DRAWS):
        rows = simulated(seed, effect)
        giving = analysis("gi-give-test")
        assert giving is not None
        number = giving.run(study_data(rows, study=STUDY)).numbers[f"people: {GIVEN} and {BARE}/fidelity"]
        assert number.value is not None
        assert number.low is not None
        assert number.high is not None
        errors.append(number.value - truth)
        naive.append(100 * (share(rows, GIVEN) - share(rows, BARE)) - truth)
        held += number.low <= truth <= number.high
    standard_error = float(np.std(errors)) / DRAWS**0.5
    assert abs(np.mean(errors)) < 3 * standard_error
    assert held >= 0.9 * DRAWS
    assert np.mean(naive) < -15, "hard tasks are attempted more often with the test given"
