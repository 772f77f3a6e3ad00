"""A model of the behaviour of people and models in a study, to try out designs, reports and estimates.

One latent scale underlies everything: on it a person has an ability and a task a difficulty, in logits. The
working time that a person needs is log-normal, with median `median_minutes` where ability and difficulty are
equal:

    ln T = ln median + (sigma / 1.702) * (difficulty - ability) + ln(assist_ratio) * assisted + sigma * e

A task is solved if T is within the time limit and within the person's patience. Because the normal
distribution function of x is within 0.01 of the logistic one of 1.702 x (Haley 1952), the probability of
solving within the limit is approximately logistic in ability minus difficulty, with slope 1. The parameters
are thus the true values for estimates on either scale.

Nothing is random: every draw is a function of a sha256 over the seed and the names of what is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, pstdev

import msgspec

from gistpoint.core.attempts.reasons import EndReason, GiveUpCode
from gistpoint.core.draws import normal, uniform
from gistpoint.core.study.declaration import Assistance, Condition, StudyTask
from gistpoint.core.study.operations import StudyError
from gistpoint.core.tasks.model import Mode

LOGITS_PER_PROBIT = 1.702
_NORMAL = NormalDist()


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """The behaviour of simulated people. Abilities and difficulties are in logits, times in minutes.

    Raises `StudyError` if a parameter is out of range.
    """

    ability: float = 0.8
    """The standard deviation of the abilities of persons."""
    task: float = 1.2
    """The standard deviation of the difficulties of tasks of one mode."""
    slopes: dict[str, float] = msgspec.field(default_factory=lambda: {"code_lines": 0.6, "harmonic_out": 0.4})
    """Logits of difficulty per standard deviation of a metric; the rest of `task` differs by task."""
    discovery: float = 1.0
    """Logits by which finding a corrupted function is harder than writing a removed one."""
    gist: float = 0.5
    sigma: float = 0.9
    """The standard deviation of ln T for one person and one task."""
    median_minutes: float = 25.0
    assist_ratio: float = 0.7
    """The ratio of the time with assistance to the time without."""
    give_up: float = 0.1
    """The share of attempts that would be given up before the limit, at a time independent of T."""
    limit_minutes: float = 60.0
    """The minutes after which patience ends if neither the condition nor the task sets a limit."""
    optimism: float = 0.8
    """The median ratio of the forecast time to this person's median time for this task."""
    leaves: float = 0.05
    """The share of people who withdraw during the study."""

    def __post_init__(self) -> None:
        for name in ("ability", "task", "leaves", "give_up"):
            if not 0 <= getattr(self, name) < math.inf:
                raise StudyError(
                    f"The parameter {name} of the simulation is {getattr(self, name)}; it must be 0 or more."
                )
        for name in ("sigma", "median_minutes", "assist_ratio", "limit_minutes", "optimism"):
            if not 0 < getattr(self, name) < math.inf:
                raise StudyError(
                    f"The parameter {name} of the simulation is {getattr(self, name)}; it must be above 0."
                )
        if self.give_up > 1 or self.leaves > 1:
            raise StudyError(
                "The parameters give_up and leaves of the simulation are shares, so they are at most 1."
            )

    @property
    def per_logit(self) -> float:
        """The change of ln T per logit."""
        return self.sigma / LOGITS_PER_PROBIT

    def offset(self, mode: str) -> float:
        """Return the logits by which a mode is harder than `remove`."""
        return {Mode.DISCOVERY.value: self.discovery, Mode.GIST.value: self.gist}.get(mode, 0.0)

    def median_s(self, difficulty: float, ability: float, condition: Condition) -> float:
        """Return the median of T under a condition, in seconds."""
        ratio = self.assist_ratio if condition.assistance is not Assistance.NONE else 1.0
        return 60 * self.median_minutes * ratio * math.exp(self.per_logit * (difficulty - ability))

    def chance(self, difficulty: float, ability: float, condition: Condition, limit_s: float) -> float:
        """Return the probability of solving within a limit in seconds, if patience does not end earlier."""
        return _NORMAL.cdf(math.log(limit_s / self.median_s(difficulty, ability, condition)) / self.sigma)


class ModelBehaviour(msgspec.Struct, frozen=True, kw_only=True):
    """The behaviour of a simulated model: its probability of solving is logistic in skill and difficulty."""

    name: str
    skill: float = 0.0
    discrimination: float = 1.0
    """The decrease in the log odds of solving per logit of difficulty."""
    calls: float = 9.0
    """The median number of calls before its first submission."""
    seconds_per_turn: float = 12.0
    tokens_per_turn: int = 1_800
    repeats: int = 1

    def chance(self, difficulty: float) -> float:
        """Return the probability of solving a task of a difficulty."""
        return 1 / (1 + math.exp(-(self.skill - self.discrimination * difficulty)))


def difficulties(tasks: Sequence[StudyTask], behaviour: Behaviour, seed: int) -> dict[str, float]:
    """Return the difficulty of each task in logits, by task id.

    If the metrics explain more than the standard deviation `behaviour.task`, their part is scaled down to it.
    """
    scores = {name: _standardised(tasks, name) for name in behaviour.slopes}
    explained = {
        task.id: sum(slope * scores[name].get(task.id, 0.0) for name, slope in behaviour.slopes.items())
        for task in tasks
    }
    spread = pstdev(explained.values()) if explained else 0.0
    scale = min(1.0, behaviour.task / spread) if spread else 0.0
    remaining = math.sqrt(max(0.0, behaviour.task**2 - (scale * spread) ** 2))
    return {
        task.id: behaviour.offset(task.mode)
        + scale * explained[task.id]
        + remaining * normal(seed, "task", task.id)
        for task in tasks
    }


def _standardised(tasks: Sequence[StudyTask], metric: str) -> Mapping[str, float]:
    values = {task.id: task.metrics[metric] for task in tasks if metric in task.metrics}
    spread = pstdev(values.values()) if values else 0.0
    mean = fmean(values.values()) if values else 0.0
    if spread:
        return {task: (value - mean) / spread for task, value in values.items()}
    return {}


@dataclass(frozen=True, slots=True)
class AttemptCourse:
    """The course of one attempt. Seconds are active time from its start."""

    end: EndReason
    active_s: float
    """The time of the attempt's end."""
    wrong_at: tuple[float, ...] = ()
    """The times of the submissions that fail."""
    near: tuple[float, ...] = ()
    """For each failed submission, the share of the failing tests that it repairs."""
    finds: bool = True
    """Whether failed submissions at least change the corrupted function."""
    looks: int = 0
    """The number of information calls before the first submission."""
    reading_s: float = 0.0
    code: GiveUpCode | None = None
    pause_s: float = 0.0
    """The length of a break; it is not active time."""
    idle_s: float = 0.0
    """The time away without a pause; it is not active time."""
    forecast_minutes: float = 0.0
    forecast_chance: float = 0.0
    felt_minutes: float = 0.0
    ease: float = 0.0
    """The perceived ease, on a standard normal scale."""

    @property
    def solved(self) -> bool:
        """Whether the attempt solves the task."""
        return self.end is EndReason.SOLVED


@dataclass(frozen=True, slots=True)
class Allowance:
    """The budgets of a simulated attempt."""

    tool_uses: int
    submissions: int
    limit_s: float | None
    parts: int = 1
    """The number of submissions required for a correct answer: one per corrupted function."""


@dataclass(frozen=True)
class Crowd:
    """The people and models of a simulated study, and the courses of their attempts."""

    behaviour: Behaviour
    study: str
    seed: int
    difficulty: Mapping[str, float]

    def key(self, *about: object) -> tuple[object, ...]:
        """Return the key of a draw: seed, study, and the subject of the draw."""
        return self.seed, self.study, *about

    def ability(self, person: str) -> float:
        """Return a person's ability in logits."""
        return self.behaviour.ability * normal(*self.key("ability", person))

    def leaves_at(self, person: str, tasks: int) -> int | None:
        """Return after how many of the `tasks` a person withdraws; None if the person stays."""
        if tasks < 1 or uniform(*self.key("leaves", person)) >= self.behaviour.leaves:
            return None
        return int(uniform(*self.key("leaves at", person)) * tasks)

    def course(self, person: str, task: StudyTask, condition: Condition, allowed: Allowance) -> AttemptCourse:
        """Return the course of a person's attempt."""
        b = self.behaviour
        key = self.key("attempt", person, task.id, condition.id)
        difficulty = self.difficulty[task.id]
        ability = self.ability(person)
        median = b.median_s(difficulty, ability, condition)
        needed = median * math.exp(b.sigma * normal(*key, "time"))
        limit = allowed.limit_s or 60 * b.limit_minutes
        impatient = uniform(*key, "gives up") < b.give_up
        patience = limit * (0.1 + 0.9 * uniform(*key, "patience")) if impatient else math.inf
        ending = EndReason.SOLVED
        active = needed
        code = None
        if needed > min(limit, patience):
            active = min(limit, patience)
            if patience < limit or allowed.limit_s is None:
                ending = EndReason.GAVE_UP
                code = GiveUpCode.TOO_HARD
            elif uniform(*key, "tries") < 0.3:
                ending = EndReason.SUBMISSIONS_EXHAUSTED
                active = limit * (0.95 + 0.05 * uniform(*key, "last try"))
            else:
                ending = EndReason.TIME_CAP
        wrong = self._wrong_count(key, ending, allowed)
        times = sorted(active * (0.35 + 0.6 * uniform(*key, "wrong", number)) for number in range(wrong))
        if ending is EndReason.SUBMISSIONS_EXHAUSTED:
            times[-1] = active
        minutes = needed / 60
        typical = median / 60 * b.optimism
        return AttemptCourse(
            end=ending,
            active_s=active,
            wrong_at=tuple(times),
            near=tuple(uniform(*key, "near", number) for number in range(wrong)),
            finds=ending is EndReason.SOLVED or uniform(*key, "finds") < 0.6,
            looks=self._look_count(key, minutes, allowed, wrong),
            reading_s=min(0.2 * active, 45 * math.exp(0.4 * normal(*key, "reading"))),
            code=code,
            pause_s=600 * uniform(*key, "break") if uniform(*key, "breaks") < 0.1 else 0.0,
            idle_s=60 * (3 + 5 * uniform(*key, "idle")) if uniform(*key, "idles") < 0.05 else 0.0,
            forecast_minutes=typical * math.exp(0.5 * normal(*key, "forecast")),
            forecast_chance=b.chance(difficulty + normal(*key, "chance"), ability, condition, limit),
            felt_minutes=active / 60 * math.exp(0.25 * normal(*key, "felt")),
            ease=(ability - difficulty) / 2
            + (0.7 if ending is EndReason.SOLVED else -0.7)
            + normal(*key, "ease") / 2,
        )

    def course_of_model(
        self,
        model: ModelBehaviour,
        task: StudyTask,
        condition: Condition,
        allowed: Allowance,
        repeat: int = 0,
    ) -> AttemptCourse:
        """Return the course of a model's attempt."""
        key = self.key("model", model.name, task.id, condition.id, repeat)
        solved = uniform(*key, "solves") < model.chance(self.difficulty[task.id])
        wrong = self._wrong_count(
            key, EndReason.SOLVED if solved else EndReason.SUBMISSIONS_EXHAUSTED, allowed
        )
        wanted = round(model.calls * math.exp(0.4 * normal(*key, "calls")))
        right = allowed.parts if solved else 0
        looks = max(1, min(wanted, allowed.tool_uses - wrong - right))
        turns = looks + wrong + right
        seconds = turns * model.seconds_per_turn * math.exp(0.3 * normal(*key, "pace"))
        if allowed.limit_s is not None:
            seconds = min(seconds, 0.9 * allowed.limit_s)
        return AttemptCourse(
            end=EndReason.SOLVED if solved else EndReason.SUBMISSIONS_EXHAUSTED,
            active_s=seconds,
            wrong_at=tuple(seconds * (looks + number + 1) / turns for number in range(wrong)),
            near=tuple(uniform(*key, "near", number) for number in range(wrong)),
            finds=solved or uniform(*key, "finds") < 0.5,
            looks=looks,
        )

    def _wrong_count(self, key: tuple[object, ...], ending: EndReason, allowed: Allowance) -> int:
        """Return the number of submissions that fail."""
        if ending is EndReason.SUBMISSIONS_EXHAUSTED:
            return allowed.submissions
        spare = min(allowed.submissions, allowed.tool_uses) - allowed.parts
        return sum(uniform(*key, "tries in vain", number) < 0.35 for number in range(max(0, spare)))

    def _look_count(self, key: tuple[object, ...], minutes: float, allowed: Allowance, wrong: int) -> int:
        wanted = round((2 + 1.6 * math.sqrt(minutes)) * math.exp(0.3 * normal(*key, "looks")))
        return max(0, min(wanted, allowed.tool_uses - wrong - allowed.parts))
