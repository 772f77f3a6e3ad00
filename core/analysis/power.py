"""Estimates the precision and power of a design by simulating the outcomes of its primary analysis.

Success is logistic in the sum of a normal person effect and a normal task effect; times are log-normal with
the same effects, and those beyond a limit are censored. Each draw is analysed by the functions that the
report uses: the mean of shares, the contrast (`contrast`), and the regression of times (`crossed_times`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from gistpoint.core.analysis.contrast import difference
from gistpoint.core.analysis.crossed_times import effects_on_times
from gistpoint.core.analysis.intervals import NO_PERSON, Scale, Spread, Units, jackknife_of_mean
from gistpoint.core.running import UNATTENDED, RunContext, RunProgress
from gistpoint.core.study.declaration import ConditionsPer, PrimaryOutcome, Study, StudyTask
from gistpoint.core.study.operations import StudyError
from gistpoint.core.study.simulating import LOGITS_PER_PROBIT
from gistpoint.core.study.soundness import (
    CORRECT_CONTRAST,
    PEOPLE_OF_ALL,
    times_without_people,
    training_tasks,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DRAWS = 400
PEOPLE = (6, 8, 12, 16, 24, 32, 48)
"""The numbers of people for which figures are computed unless one is requested."""
MODEL_SD = 0.7
"""The standard deviation, in logits, of the part of a task's difficulty that is specific to a model."""
LIMIT_IN_SDS = 0.8
"""The distance of the time limit from the median time, in standard deviations (`sigma`) of ln t."""


class PowerAssumptions(msgspec.Struct, frozen=True, kw_only=True):
    """The assumptions about the outcomes. Raises `StudyError` if an assumption is out of range."""

    ability: float = 0.8
    """The standard deviation of the person effects, in logits."""
    task: float = 1.2
    """The standard deviation of the task effects, in logits."""
    rate: float = 0.5
    """The share solved; 0.5 makes the interval widest."""
    sigma: float = 0.9
    """The standard deviation of ln t for one person and one task."""
    effect: float | None = None
    """The difference between rates, or the ratio of times, to be detected; None if no power is wanted."""

    def __post_init__(self) -> None:
        if min(self.ability, self.task) < 0 or self.sigma <= 0:
            raise StudyError("Standard deviations must be at least 0, and that of times above 0.")
        if not 0 < self.rate < 1:
            raise StudyError(f"The rate is {self.rate:g}, but must be between 0 and 1.")


class PowerDesign(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a study, and what its primary analysis compares."""

    people: int
    each: int
    tasks: int
    outcome: PrimaryOutcome = PrimaryOutcome.SOLVE_RATE
    contrast: bool = False
    """Whether two conditions, or people and a model, are compared."""
    with_model: bool = False
    models: bool = False
    """Whether both sides are models, so no people are compared."""
    repeats: int = 1
    """The number of runs of each model at each task."""
    between: bool = False
    """Whether each person works under only one of the conditions."""
    conditions: int = 1
    """The number of conditions among which people's attempts are divided."""
    used: int = 1
    """The number of conditions whose attempts the estimate uses."""

    @property
    def of_people(self) -> tuple[int, int]:
        """The number of people whose attempts the estimate uses, and how many such attempts each makes."""
        if self.models:
            return 0, 0
        if self.between:
            return self.people * self.used // self.conditions, self.each
        each = self.each * self.used // self.conditions
        # With fewer tasks than conditions, only some people have a task under a condition in use.
        return (self.people, each) if each else (self.people * self.each * self.used // self.conditions, 1)

    @property
    def attempts(self) -> int:
        """The number of attempts by people that the estimate uses; of models, if only models are compared."""
        people, each = self.of_people
        return 2 * self.tasks * self.repeats if self.models else people * each

    @property
    def of_times(self) -> bool:
        """Whether the primary outcome is a time."""
        return self.outcome in (PrimaryOutcome.TIME_RATIO, PrimaryOutcome.TIME_TO_SOLVE)

    @property
    def scale(self) -> Scale:
        """The scale on which the interval is symmetric, as in the report; times are logarithms already."""
        return Scale.PLAIN if self.contrast or self.of_times else Scale.PROBABILITY

    @property
    def what(self) -> str:
        """The name of the estimate, in words."""
        if not self.contrast:
            return "median time" if self.of_times else "share solved"
        if self.models:
            return "share solved, difference between models"
        sides = "people to the model" if self.with_model else "two conditions"
        if self.of_times:
            return f"ratio of times, {sides}"
        return (
            "share solved, people minus the model"
            if self.with_model
            else "share solved, difference between conditions"
        )


class PowerFigure(msgspec.Struct, frozen=True, kw_only=True):
    """The simulated precision and power of one design."""

    people: int
    each: int
    tasks: int
    attempts: int
    """The attempts of people that the estimate uses; those of models, if only models are compared."""
    half_width: float | None
    """The mean half-width of the 95% interval: a difference between shares, or a factor of times.

    None if no draw had an interval.
    """
    estimated: float = 1.0
    """The share of draws that had an interval."""
    power: float | None = None
    """The share of all draws whose interval excludes "no effect"; None if no effect is assumed."""


def design_of(study: Study, tasks: Sequence[StudyTask], people: int, repeats: int = 1) -> PowerDesign:
    """Return the declared design of a study for a number of people, and of runs of a model at each task.

    Raises `StudyError` if all of the study's tasks are for training, or if the report can't make the primary
    estimate because it compares times with those of a model.
    """
    by_id = {task.id: task for task in tasks}
    counted = len(by_id.keys() - {*training_tasks(study, by_id)})
    if not counted:
        raise StudyError("The study has no tasks to count, so nothing can be computed for it.")
    contrast = study.protocol.primary_contrast
    outcome = study.protocol.primary
    compared_models = sum(solver.name in contrast for solver in study.solver)
    if fault := times_without_people(study):
        raise StudyError(fault, hint=CORRECT_CONTRAST)
    conditions = [condition.id for condition in study.conditions_of_people]
    has_ratio = outcome is PrimaryOutcome.TIME_RATIO and len(conditions) > 1
    compared = has_ratio or len(contrast) == 2
    # Without a contrast, the estimate is for the first condition; a ratio of times compares the second with
    # it.
    named = contrast or conditions[: 2 if has_ratio else 1]
    used = len(conditions) if PEOPLE_OF_ALL in named else sum(name in conditions for name in named)
    of_models = compared_models == 2
    return PowerDesign(
        people=0 if of_models else people,
        each=0 if of_models else min(study.design.tasks_per_person, counted),
        tasks=counted,
        outcome=outcome,
        contrast=compared,
        with_model=compared_models > 0,
        models=of_models,
        repeats=repeats,
        between=study.design.conditions is ConditionsPer.BETWEEN,
        conditions=len(conditions),
        used=used,
    )


def power_of(
    design: PowerDesign,
    assumed: PowerAssumptions,
    seed: int,
    *,
    draws: int = DRAWS,
    run: RunContext = UNATTENDED,
) -> PowerFigure:
    """Simulate a design's outcomes, analyse each draw, and return the precision and the power.

    Each draw has its own seed, derived from `seed`. Raises `CancelledError` when cancelled, and `StudyError`
    if the assumed effect is impossible.
    """
    drawing = _Drawing(design, assumed)
    halves: list[float] = []
    detected = 0
    for number in range(draws):
        run.check()
        run.progress(RunProgress("simulating", number, draws, step=f"{design.people} people"))
        digest = sha256(f"{seed}\x1fpower\x1f{design.people}\x1f{number}".encode()).digest()
        spread = drawing.analysed(np.random.default_rng(int.from_bytes(digest[:8])))
        if spread is None:
            continue
        low, high = (float(bound[0]) for bound in spread.bounds(design.scale))
        if not np.isfinite(high - low):
            continue
        halves.append((high - low) / 2)
        detected += not low <= 0 <= high
    mean = float(np.mean(halves)) if halves else None
    return PowerFigure(
        people=design.people,
        each=design.each,
        tasks=design.tasks,
        attempts=design.attempts,
        half_width=float(np.exp(mean)) if mean is not None and design.of_times else mean,
        estimated=len(halves) / draws,
        power=detected / draws if assumed.effect is not None and design.contrast else None,
    )


@dataclass(frozen=True)
class _Drawing:
    """The drawing and analysis of one design's outcomes. Raises `StudyError` for an impossible effect."""

    design: PowerDesign
    assumed: PowerAssumptions

    def __post_init__(self) -> None:
        effect = self.assumed.effect
        if effect is None:
            return
        if self.design.of_times and effect <= 0:
            raise StudyError(f"The effect is a ratio of times, so it must be above 0, not {effect:g}.")
        if not self.design.of_times and not 0 < self.assumed.rate + effect < 1:
            raise StudyError(
                f"The effect is a difference in rates: {self.assumed.rate:g} plus {effect:g} is not a rate.",
                hint="Give a smaller one, or another --rate.",
            )

    def analysed(self, draw: np.random.Generator) -> Spread | None:
        """Return the estimate of one draw; None if the report's model could not be fitted."""
        design, assumed = self.design, self.assumed
        people, each = design.of_people
        persons = np.repeat(np.arange(people), each)
        places = np.arange(people * each)
        tasks = draw.permutation(design.tasks)[places % design.tasks]
        side = persons % 2 if design.between else (places // design.tasks + places % design.tasks) % 2
        skill = draw.normal(0, assumed.ability, people)[persons]
        ease = draw.normal(0, assumed.task, design.tasks)
        latent = skill + ease[tasks]
        units = Units(persons, tasks)
        if design.of_times:
            return self._of_times(draw, units, side, latent)
        return self._of_rates(draw, units, side, latent, ease)

    def _of_rates(
        self, draw: np.random.Generator, units: Units, side: Integers, latent: Floats, ease: Floats
    ) -> Spread:
        design, assumed = self.design, self.assumed
        spread = float(np.hypot(assumed.ability, assumed.task))
        low, high = (
            mean_log_odds_for(rate, spread) for rate in (assumed.rate, assumed.rate + (assumed.effect or 0.0))
        )
        # In a comparison with a model, the effect applies to all people; between two conditions, only to the
        # second.
        middle: float | Floats = low
        if design.with_model:
            middle = high
        elif design.contrast:
            middle = np.where(side == 1, high, low)
        solved = (draw.random(len(latent)) < expit(middle + latent)).astype(float)
        if not design.contrast:
            return jackknife_of_mean(units, solved)
        if not design.with_model:
            return difference(units, solved, side == 1)
        each = np.repeat(np.arange(design.tasks), design.repeats)
        nobody = np.full(len(each), NO_PERSON)
        by_model = self._of_model(draw, ease, assumed.rate, each)
        if design.models:
            better = self._of_model(draw, ease, assumed.rate + (assumed.effect or 0.0), each)
            runs = Units(np.concatenate([nobody, nobody]), np.concatenate([each, each]))
            return difference(runs, np.concatenate([better, by_model]), np.arange(2 * len(each)) < len(each))
        both = Units(np.concatenate([units.persons, nobody]), np.concatenate([units.tasks, each]))
        return difference(both, np.concatenate([solved, by_model]), both.persons != NO_PERSON)

    def _of_model(self, draw: np.random.Generator, ease: Floats, rate: float, runs: Integers) -> Floats:
        """Return the outcomes of a model's runs: repeats of a task share its difficulty for the model."""
        middle = mean_log_odds_for(rate, float(np.hypot(self.assumed.task, MODEL_SD)))
        chance = expit(middle + ease + draw.normal(0, MODEL_SD, self.design.tasks))
        return np.asarray(draw.random(len(runs)) < chance[runs], dtype=float)

    def _of_times(
        self, draw: np.random.Generator, units: Units, side: Integers, latent: Floats
    ) -> Spread | None:
        design, assumed = self.design, self.assumed
        effect = np.log(assumed.effect) if assumed.effect is not None else 0.0
        logs = -assumed.sigma / LOGITS_PER_PROBIT * latent + draw.normal(0, assumed.sigma, len(latent))
        logs = logs + (effect * side if design.contrast else 0.0)
        limit = LIMIT_IN_SDS * assumed.sigma
        columns = [np.ones(len(logs))]
        if design.contrast:
            # This is the report's covariate, the position of a task in the person's order, which has no
            # effect here.
            places = np.argsort(draw.random(design.of_people), axis=1).ravel()
            columns += [side.astype(float), places - places.mean()]
        sums = np.eye(len(columns))[len(columns) > 1 :][:1]
        found = effects_on_times(units, np.column_stack(columns), np.minimum(logs, limit), logs < limit, sums)
        return None if found is None else found.spread


def mean_log_odds_for(rate: float, spread: float) -> float:
    """Return m such that the mean of expit(m + spread z) over normal z is `rate`, by bisection.

    The mean is computed by Gauss-Hermite quadrature with 60 nodes.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = float((weights * expit(middle + spread * nodes)).sum() / weights.sum())
        low, high = (middle, high) if mean < rate else (low, middle)
    return (low + high) / 2
