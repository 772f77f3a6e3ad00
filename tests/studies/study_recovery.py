"""Checks how well estimates and their intervals recover the parameters of simulated studies.

    PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 uv run python tests/studies/study_recovery.py [SEEDS]
    [--engine]

First, 40 people attempt all of 60 tasks: each estimate is printed next to the truth, with its distance in
standard errors (of the interval). Then SEEDS (100) studies of 16 people who attempt 6 of 24 tasks: the share
of the 95% intervals that contain the truth. With `--engine`, also 40 people and 64 tasks through the real
engine, in a temporary folder.

The truth of a rate or a slope is that of all people and tasks that could have been drawn, by quadrature;
rates and slopes are marginal, so slopes are nearer to zero than for one person and one task.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import norm
from study_rows import declared, study_data

from gistpoint.core.analysis.censored import fit_censored
from gistpoint.core.analysis.difficulty import difficulty
from gistpoint.core.analysis.findings import Number
from gistpoint.core.analysis.horizon import horizons
from gistpoint.core.analysis.intervals import Kept, Scale, Units, jackknife
from gistpoint.core.analysis.rates import solve_rates
from gistpoint.core.analysis.timeratios import log_minutes, time_ratios
from gistpoint.core.draws import normal
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Assistance, ChatSettings, Condition, Design, Protocol, StudyTask
from gistpoint.core.study.measuring import CENSORED, COMPETING
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.simulating import (
    LOGITS_PER_PROBIT,
    Allowance,
    AttemptCourse,
    Behaviour,
    Crowd,
    ModelBehaviour,
    difficulties,
)

ALONE = Condition(id="alone", time_limit_s=3600)
ASSISTED = Condition(
    id="assisted",
    time_limit_s=3600,
    assistance=Assistance.CHAT,
    chat=ChatSettings(model="simulated-assistant"),
)
ALLOWED = Allowance(16, 4, 3600.0)
METRICS = ("code_lines", "harmonic_out")
MODEL = ModelBehaviour(name="model-x", skill=0.4, repeats=6)
RATE = "simulated people, alone/remove/all"
RATIO = "assisted to alone"
SLOPES = {metric: f"simulated people, alone/remove/{' + '.join(METRICS)}/{metric}" for metric in METRICS}
HORIZON = "simulated model-x/censored log-normal median/not penalised/p50"
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True)
class Recovered:
    """An estimate, the true value, and the scale on which its interval is symmetric."""

    name: str
    number: Number
    truth: float
    scale: Scale = Scale.PLAIN

    @property
    def held(self) -> bool | None:
        """Whether the interval contains the truth; None if there is no interval."""
        low, high = self.number.low, self.number.high
        return None if low is None or high is None else low <= self.truth <= high

    def distance(self, quantile: float) -> float:
        """Return the distance of the estimate from the truth, in standard errors.

        `quantile` is the interval's.
        """
        low, high, value = self.number.low, self.number.high, self.number.value
        assert low is not None
        assert high is not None
        assert value is not None
        if self.scale is Scale.LOG:
            low, high, value = math.log(low), math.log(high), math.log(value)
        truth = math.log(self.truth) if self.scale is Scale.LOG else self.truth
        return (value - truth) / ((high - low) / 2 / quantile)


def study(people: int, tasks: int, each: int, seed: int, behaviour: Behaviour) -> StudyData:
    """Simulate outcomes without the engine: each person attempts `each` tasks, alternating the conditions."""
    made = [
        StudyTask(
            id=f"t{n:03}",
            mode="remove",
            source="railway",
            metrics={metric: normal(seed, "metric", metric, n) for metric in METRICS},
        )
        for n in range(tasks)
    ]
    crowd = Crowd(behaviour, "recovery", seed, difficulties(made, behaviour, seed))
    rows = [*_people(crowd, made, people, each), *_runs(crowd, made)]
    described = declared(
        simulated=True,
        condition=(ALONE, ASSISTED),
        design=Design(tasks_per_person=each),
        protocol=Protocol(primary_contrast=("assisted", "alone")),
    )
    return study_data(rows, study=described, metrics={task.id: task.metrics for task in made})


def _people(crowd: Crowd, tasks: list[StudyTask], people: int, each: int) -> Iterator[AttemptRow]:
    for person in range(people):
        for number in range(each):
            place = person * each + number
            task = tasks[place % len(tasks)]
            condition = (ALONE, ASSISTED)[(place // len(tasks) + place % len(tasks)) % 2]
            course = crowd.course(f"P{person:02}", task, condition, ALLOWED)
            yield _row(course, task, condition, participant=f"P{person:02}", actor="simulated")


def _runs(crowd: Crowd, tasks: list[StudyTask]) -> Iterator[AttemptRow]:
    for task in tasks:
        for repeat in range(MODEL.repeats):
            course = crowd.course_of_model(MODEL, task, ALONE, ALLOWED, repeat)
            yield _row(course, task, ALONE, solver=MODEL.name, actor="model", attempt=f"{task.id}-{repeat}")


def _row(course: AttemptCourse, task: StudyTask, condition: Condition, **who: Any) -> AttemptRow:
    censored = "" if course.solved else COMPETING if course.code else CENSORED
    settings: dict[str, Any] = {
        "attempt": f"{who.get('participant')}-{task.id}",
        "study": "recovery",
        "simulated": True,
        "task": task.id,
        "source": task.source,
        "mode": task.mode,
        "condition": condition.id,
        "condition_key": "16/4",
        "role": "baseline",
        "end": course.end.value,
        "solved": course.solved,
        "censored": censored,
        "primary_s": course.active_s,
        "active_s": course.active_s,
    }
    return AttemptRow(**(settings | who))


# The truth


def true_chance(behaviour: Behaviour, difficulty: float, spread: float) -> float:
    """Return the chance of solving a task without assistance, averaged over people and tasks.

    `spread` is the standard deviation of ability minus difficulty.
    """
    latent = spread * _NODES - difficulty

    def within(limit_s: float) -> float:
        base = math.log(limit_s / 60 / behaviour.median_minutes) / behaviour.sigma
        return float((_WEIGHTS * norm.cdf(base + latent / LOGITS_PER_PROBIT)).sum())

    patience = [3600 * (0.1 + 0.9 * (n + 0.5) / 40) for n in range(40)]
    impatient = sum(map(within, patience)) / len(patience)
    return (1 - behaviour.give_up) * within(3600) + behaviour.give_up * impatient


def true_rate(behaviour: Behaviour) -> float:
    """Return the true share of tasks that people solve without assistance."""
    return true_chance(behaviour, 0.0, math.hypot(behaviour.ability, behaviour.task))


def true_slopes(behaviour: Behaviour) -> dict[str, float]:
    """Return the marginal slopes of success on each standardised metric, from the best logistic fit."""
    explained = math.sqrt(sum(slope**2 for slope in behaviour.slopes.values()))
    own = math.sqrt(behaviour.task**2 - explained**2)
    spread = math.hypot(own, behaviour.ability)
    chance = np.array([true_chance(behaviour, explained * z, spread) for z in _NODES])
    x, at = np.column_stack([np.ones_like(_NODES), _NODES]), np.zeros(2)
    for _ in range(50):
        fitted = expit(x @ at)
        at = at + np.linalg.solve(
            (x.T * (_WEIGHTS * fitted * (1 - fitted))) @ x, x.T @ (_WEIGHTS * (chance - fitted))
        )
    return {metric: float(at[1]) * behaviour.slopes[metric] / explained for metric in METRICS}


def true_sigma(behaviour: Behaviour) -> float:
    """Return the standard deviation of log times within a task, within and between persons."""
    return math.hypot(behaviour.sigma, behaviour.per_logit * behaviour.ability)


def true_horizon(behaviour: Behaviour) -> float:
    """Return the minutes of a task that the model solves half of the time."""
    return behaviour.median_minutes * math.exp(behaviour.per_logit * MODEL.skill / MODEL.discrimination)


# Estimates


def sigma_of(data: StudyData) -> Number:
    """Return sigma of log times within tasks and conditions, with its jackknife on the log scale."""
    rows = [row for row in data.rows if not row.solver]
    units, y = Units.of(rows), log_minutes(rows)
    solved = np.array([row.solved for row in rows], dtype=bool)
    helped = np.array([row.condition == ASSISTED.id for row in rows], dtype=float)

    def estimate(kept: Kept) -> float:
        _, tasks = np.unique(units.tasks[kept], return_inverse=True)
        x = np.column_stack([helped[kept], np.eye(int(tasks.max()) + 1)[tasks]])
        fit = fit_censored(x, y[kept], solved[kept])
        return float("nan") if fit is None else math.log(fit.sigma)

    return jackknife(units, estimate, 1 / (2 * solved.sum())).number(Scale.LOG)


def recovered(data: StudyData, behaviour: Behaviour, *, everything: bool = True) -> Iterator[Recovered]:
    """Yield the estimates that a study allows, each with its true value."""
    rates = solve_rates(data).numbers
    yield Recovered("share solved", rates[RATE], true_rate(behaviour))
    ratios = time_ratios(data).numbers
    if RATIO in ratios:
        yield Recovered("time ratio", ratios[RATIO], behaviour.assist_ratio, Scale.LOG)
    slopes: Mapping[str, Number] = difficulty(data).numbers
    for metric, truth in true_slopes(behaviour).items():
        if SLOPES[metric] in slopes:
            yield Recovered(f"slope of {metric}", slopes[SLOPES[metric]], truth)
    if everything:
        yield Recovered("sigma of log time", sigma_of(data), true_sigma(behaviour), Scale.LOG)
        yield Recovered(
            "horizon, minutes", horizons(data).numbers[HORIZON], true_horizon(behaviour), Scale.LOG
        )


def coverage(
    seeds: int, behaviour: Behaviour, people: int = 16, tasks: int = 24, each: int = 6
) -> dict[str, list[bool]]:
    """Return, for each estimate, whether its interval contains the truth, by study."""
    found: dict[str, list[bool]] = {}
    for seed in range(seeds):
        for one in recovered(study(people, tasks, each, seed, behaviour), behaviour, everything=False):
            if one.held is not None:
                found.setdefault(one.name, []).append(one.held)
    return found


def through_the_engine(behaviour: Behaviour) -> None:
    """Simulate a whole study, load it, and print its estimates."""
    from gistpoint.core.demo.functions import write_simulated_tasks
    from gistpoint.core.locations import Locations
    from gistpoint.sessions.studies.loading import load_study
    from gistpoint.sessions.studies.simulation import fill
    from gistpoint.tui.study_opening import open_study

    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "recovery"
        list(write_simulated_tasks(root / "tasks", Locations.of_user().demo))
        text = (
            (Path(__file__).parents[2] / "core" / "demo" / "study.toml")
            .read_text("utf-8")
            .partition("[[solver]]")[0]
        )
        (root / "study.toml").write_text(text, "utf-8")
        count = fill(root, Locations.of_user(), behaviour, 40, 1)
        data = load_study(open_study(str(root))).data
        print(
            f"through the engine: {count.attempts} attempts of {count.people} people, {len(data.rows)} rows"
        )
        numbers = {**time_ratios(data).numbers, **solve_rates(data).numbers}
        for key, truth in ((RATIO, behaviour.assist_ratio), (RATE, true_rate(behaviour))):
            number = numbers[key]
            print(f"{key:45} {number.value:8.3f} [{number.low:.3f}, {number.high:.3f}]  truth {truth:.3f}")


def main() -> None:
    """Print all estimates and coverages."""
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    behaviour = Behaviour()
    quantile = 2.02  # of Student's t with 39 degrees of freedom
    print("40 people x 60 tasks                estimate      truth   distance in s.e.")
    for one in recovered(study(40, 60, 60, 1, behaviour), behaviour):
        print(f"{one.name:32} {one.number.value:11.3f} {one.truth:10.3f} {one.distance(quantile):12.2f}")
    seeds = numbers[0] if numbers else 100
    print(f"\n95 % intervals that hold the truth, {seeds} studies of 16 people x 6 of 24 tasks")
    for name, held in coverage(seeds, behaviour).items():
        print(f"{name:32} {100 * sum(held) / len(held):6.1f} % of {len(held)}")
    if "--engine" in sys.argv:
        through_the_engine(behaviour)


if __name__ == "__main__":
    main()
