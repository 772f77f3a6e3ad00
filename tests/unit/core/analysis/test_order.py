"""Effects of the order of tasks: their recovery, and least squares as an independent check."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from study_rows import attempt_row, declared, study_data

from gistpoint.core.analysis.order import effects_of_order
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Condition

TWO = declared(condition=(Condition(id="alone"), Condition(id="assisted")))


def drawn(seed: int, learning: float = 0.0, carry: float = 0.0, people: int = 40, each: int = 8) -> StudyData:
    """Return attempts at 24 tasks; each place later changes ln minutes by `learning`, help before by `carry`."""
    draw = np.random.default_rng(seed)
    ease = draw.normal(0, 0.4, 24)
    rows = []
    for person in range(people):
        skill, helped = draw.normal(0, 0.3), False
        for position, task in enumerate(draw.choice(24, each, replace=False), start=1):
            before, helped = helped, bool(draw.random() < 0.5)
            logs = log(15) + skill + ease[task] - 0.5 * helped + learning * position
            logs += carry * (before and position > 1) + draw.normal(0, 0.4)
            rows.append(
                attempt_row(
                    f"P{person:02}", f"t{task}", logs <= log(18), minutes=exp(min(logs, log(18))), position=position,
                    condition="assisted" if helped else "alone",
                )
            )  # fmt: skip
    return study_data(rows, study=TWO)


def test_learning_and_carry_over_are_found() -> None:
    found = effects_of_order(drawn(1, learning=-0.1)).numbers
    after = effects_of_order(drawn(1, carry=0.3)).numbers
    place, carried = found["each place later/times"], after["after assisted rather than alone/times"]
    assert place.value == pytest.approx(exp(-0.1), abs=0.03)
    assert place.low is not None
    assert place.high is not None
    assert place.low < exp(-0.1) < place.high < 1
    assert found["last place to first/times"].value == pytest.approx(place.value**7)
    assert carried.value == pytest.approx(exp(0.3), abs=0.15)
    assert carried.low is not None
    assert carried.low > 1
    assert found["each place later/shares"].value > 0  # type: ignore[operator]
    assert after["after assisted rather than alone/shares"].value < 0  # type: ignore[operator]


def test_an_order_without_effects_has_none() -> None:
    held = total = 0
    for seed in range(4):
        found = effects_of_order(drawn(seed + 10, people=20)).numbers
        for number in found.values():
            none = 1.0 if (number.value or 0) > 0.4 else 0.0
            assert number.low is not None
            assert number.high is not None
            held += number.low <= none <= number.high
            total += 1
    assert total >= 24
    assert held >= 0.85 * total


def test_with_equal_persons_and_tasks_the_shares_are_least_squares() -> None:
    draw = np.random.default_rng(3)
    rows = [
        attempt_row(f"P{n % 12}", f"t{n // 12}", bool(draw.random() < 0.5), position=1 + (n // 12 + n) % 6,
                    minutes=10.0 + n % 7, condition=("alone", "assisted")[int(draw.integers(2))])
        for n in range(144)
    ]  # fmt: skip
    found = effects_of_order(study_data(rows, study=TWO)).numbers["each place later/shares"]
    x = np.column_stack(
        [np.ones(144), [row.position for row in rows], [row.condition == "assisted" for row in rows]]
    )
    theirs = np.linalg.lstsq(
        x.astype(float), np.array([row.solved for row in rows], dtype=float), rcond=None
    )[0]
    assert found.value == pytest.approx(theirs[1], abs=0.01)


def test_an_order_that_is_not_known_has_no_effects() -> None:
    rows = [attempt_row(f"P{n % 5}", f"t{n}", n % 2 == 0, minutes=5 + n) for n in range(40)]
    found = effects_of_order(study_data(rows))
    assert not found.numbers
    assert "solved attempts with a position" in found.not_estimated[0].words


def test_one_condition_has_positions_and_no_carry_over() -> None:
    rows = [
        attempt_row(f"P{n % 8}", f"t{n // 8}", n % 3 > 0, minutes=5 + n % 11, position=1 + n // 8)
        for n in range(64)
    ]
    found = effects_of_order(study_data(rows))
    assert not [name for name in found.numbers if "after" in name]
