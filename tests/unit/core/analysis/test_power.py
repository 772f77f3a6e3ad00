"""The power of a design, by simulation."""

from __future__ import annotations

import math

import pytest

from gistpoint.core.analysis.power import (
    PowerAssumptions,
    PowerDesign,
    PowerFigure,
    mean_log_odds_for,
    power_of,
)
from gistpoint.core.errors import CancelledError
from gistpoint.core.running import CancelToken, RunContext, RunProgress
from gistpoint.core.study.declaration import PrimaryOutcome
from gistpoint.core.study.operations import StudyError

SIXTEEN = PowerDesign(people=16, each=6, tasks=24)


def _of(design: PowerDesign, draws: int = 60, **assumed: float) -> PowerFigure:
    return power_of(design, PowerAssumptions(**assumed), 1, draws=draws)


@pytest.mark.parametrize(
    ("people", "each", "tasks", "half_width"),
    [(6, 4, 8, 0.26), (8, 6, 16, 0.19), (16, 6, 24, 0.14), (30, 8, 40, 0.10)],
)
def test_half_widths_of_a_rate_are_those_to_expect(
    people: int, each: int, tasks: int, half_width: float
) -> None:
    found = _of(PowerDesign(people=people, each=each, tasks=tasks), draws=150)
    assert found.half_width == pytest.approx(half_width, abs=0.02)
    assert (found.attempts, found.estimated, found.power) == (people * each, 1, None)


def test_the_same_seed_gives_the_same_figure() -> None:
    assert _of(SIXTEEN) == _of(SIXTEEN)
    assert _of(SIXTEEN) != power_of(SIXTEEN, PowerAssumptions(), 2, draws=60)


def test_people_and_tasks_that_differ_more_widen_the_interval() -> None:
    widths = [_of(SIXTEEN, ability=sd, task=sd).half_width or 0 for sd in (0.1, 1.5)]
    assert widths[0] < widths[1]


@pytest.mark.parametrize("kind", ["conditions", "between", "model", "times"])
def test_a_larger_effect_is_told_more_often_and_none_hardly_ever(kind: str) -> None:
    outcome = PrimaryOutcome.TIME_RATIO if kind == "times" else PrimaryOutcome.SOLVE_RATE
    design = PowerDesign(
        people=16,
        each=6,
        tasks=24,
        outcome=outcome,
        contrast=True,
        with_model=kind == "model",
        between=kind == "between",
    )
    none, large = (1.0, 0.3) if kind == "times" else (0.0, 0.45)
    seldom, often = (_of(design, effect=effect).power for effect in (none, large))
    assert seldom is not None
    assert often is not None
    assert seldom < 0.15
    assert often > 0.6


def test_times_are_known_to_within_a_factor() -> None:
    found = _of(PowerDesign(people=16, each=6, tasks=24, outcome=PrimaryOutcome.TIME_TO_SOLVE))
    assert found.half_width is not None
    assert 1.2 < found.half_width < 1.6


def test_too_few_people_or_tasks_give_no_interval() -> None:
    assert _of(PowerDesign(people=2, each=4, tasks=8), draws=3).half_width is None
    assert _of(PowerDesign(people=8, each=2, tasks=2), draws=3).half_width is None


def test_the_middle_of_a_chance_gives_its_rate() -> None:
    assert mean_log_odds_for(0.5, 1.4) == pytest.approx(0, abs=1e-6)
    assert mean_log_odds_for(0.7, 0.0) == pytest.approx(math.log(0.7 / 0.3))


def test_effects_that_can_not_be_are_refused() -> None:
    with pytest.raises(StudyError, match="is not a rate"):
        _of(PowerDesign(people=8, each=4, tasks=8, contrast=True), effect=0.7)
    with pytest.raises(StudyError, match="above 0"):
        _of(
            PowerDesign(people=8, each=4, tasks=8, outcome=PrimaryOutcome.TIME_RATIO, contrast=True),
            effect=-0.2,
        )


def test_it_tells_its_progress_and_can_be_stopped() -> None:
    seen: list[RunProgress] = []
    power_of(SIXTEEN, PowerAssumptions(), 1, draws=3, run=RunContext(progress=seen.append))
    assert [progress.done for progress in seen] == [0, 1, 2]
    stopped = CancelToken()
    stopped.cancel()
    with pytest.raises(CancelledError):
        power_of(SIXTEEN, PowerAssumptions(), 1, run=RunContext(stopped))
