"""The power of a design, by simulation."""

from __future__ import annotations

import math

import msgspec
import pytest
from study_rows import declared

from gistpoint.core.analysis.power import (
    PowerAssumptions,
    PowerDesign,
    PowerFigure,
    design_of,
    mean_log_odds_for,
    power_of,
)
from gistpoint.core.errors import CancelledError
from gistpoint.core.running import CancelToken, RunContext, RunProgress
from gistpoint.core.study.declaration import (
    Condition,
    ConditionsPer,
    DeclaredSolver,
    Design,
    PrimaryOutcome,
    Protocol,
    Study,
    StudyTask,
)
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


TASKS = [StudyTask(id=f"t{n}", mode="remove", source="s") for n in range(30)]


def _study(
    *contrast: str,
    conditions: int = 1,
    primary: PrimaryOutcome = PrimaryOutcome.SOLVE_RATE,
    between: bool = False,
) -> Study:
    per = ConditionsPer.BETWEEN if between else ConditionsPer.WITHIN
    solvers = tuple(DeclaredSolver(name=name, runs=("x",), condition="c0") for name in ("m", "n"))
    return declared(
        design=Design(tasks_per_person=6, conditions=per),
        condition=tuple(Condition(id=f"c{n}") for n in range(conditions)),
        solver=solvers,
        protocol=Protocol(primary=primary, primary_contrast=contrast),
    )


@pytest.mark.parametrize(
    ("contrast", "conditions", "used"),
    [
        ((), 1, 1),
        ((), 2, 1),
        ((), 3, 1),
        (("c0", "c1"), 2, 2),
        (("c2", "c1"), 3, 2),
        (("c0", "m"), 1, 1),
        (("c1", "m"), 2, 1),
        (("people", "m"), 3, 3),
    ],
)
@pytest.mark.parametrize("between", [False, True])
def test_power_counts_the_attempts_that_the_primary_estimate_uses(
    contrast: tuple[str, ...], conditions: int, used: int, *, between: bool
) -> None:
    """Attempts under other conditions are in no primary estimate, so they make its interval no narrower."""
    design = design_of(_study(*contrast, conditions=conditions, between=between), TASKS, 18)
    assert design.attempts == 18 * 6 * used // conditions
    people, each = design.of_people
    alone = msgspec.structs.replace(design, people=people, each=each, conditions=1, used=1)
    assert alone.attempts == design.attempts
    figures = [power_of(one, PowerAssumptions(), 1, draws=8) for one in (design, alone)]
    assert figures[0].attempts == design.attempts
    assert (figures[0].people, figures[0].each) == (18, 6), "what the organiser plans"
    if people == 18:  # the draws depend on the number of people
        assert figures[0].half_width == figures[1].half_width


def test_fewer_tasks_than_conditions_divide_the_people() -> None:
    design = PowerDesign(people=12, each=1, tasks=24, conditions=3, used=2, contrast=True)
    assert design.of_people == (8, 1)


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("people", [6, 48])
def test_the_power_of_two_models_has_runs_and_no_people(people: int, repeats: int) -> None:
    design = design_of(_study("m", "n"), TASKS, people, repeats)
    figure = power_of(design, PowerAssumptions(), 1, draws=5)
    assert (figure.people, figure.each, figure.attempts) == (0, 0, 2 * 30 * repeats)
    assert figure.half_width is not None


@pytest.mark.parametrize("contrast", [("c0", "m"), ("m", "n"), ("people", "c0")])
@pytest.mark.parametrize("primary", [PrimaryOutcome.TIME_RATIO, PrimaryOutcome.TIME_TO_SOLVE])
def test_no_width_is_promised_of_an_estimate_that_can_not_be_made(
    contrast: tuple[str, ...], primary: PrimaryOutcome
) -> None:
    with pytest.raises(StudyError, match="not a condition of people"):
        design_of(_study(*contrast, conditions=2, primary=primary), TASKS, 12)
    assert design_of(_study("c1", "c0", conditions=2, primary=primary), TASKS, 12).contrast
