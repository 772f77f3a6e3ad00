"""The interval of every estimate: a two-way delete-one jackknife over persons and tasks.

Attempts are not independent: a person who is good at one task is good at others, and a task that is hard for
one person is hard for others. Let q be the estimate on all rows, P the number of persons and T that of tasks.
Then

- V_P = (P - 1) / P * sum over persons of (q without the person - q) squared; V_T likewise over tasks;
- V_A likewise over single attempts of persons, or the fit's own variance where a likelihood is fitted;
- the variance is V = max(V_P + V_T - V_A, V_P, V_T), or V_A if neither persons nor tasks differ although
  single attempts do;
- the 95% interval is q +/- t(0.975, min(P, T) - 1) * sqrt(V), on the scale that suits the estimate.

The interval of a probability is symmetric in its log odds, with the standard error sqrt(V) / (q (1 - q)) and
t of the effective degrees of freedom (decision 154):

- G groups have d = min(G - 1, 2 G / (k - (G - 3) / (G - 1))) degrees, where k is the kurtosis of their
  deviations: a few unusual tasks that make up most of V_T say little about its size;
- persons and tasks together have (V_P + V_T) squared / (V_P squared / d_P + V_T squared / d_T) degrees.

Where a model with random persons and tasks is fitted by its likelihood, V = max(V_P + V_T - V_A, V_M), with
the model's own variance V_M and t of the same effective degrees: with a dozen persons, V_P and V_T of a model
with as many effects as persons and tasks each contain most of V_A, and the larger of them is too large
(decision 160).

Rows of models belong to no person: they are left out with their task, and an estimate on them alone has the
variance V_T.

Sources: Cameron, Gelbach & Miller, Robust inference with multiway clustering, Journal of Business & Economic
Statistics 29(2), 2011; MacKinnon, Nielsen & Webb, Jackknife inference with two-way clustering, 2024; O'Neill,
Some useful moment results in sampling problems, American Statistician 68(4), 2014 (degrees of a variance by
kurtosis); Satterthwaite, Biometrics Bulletin 2(6), 1946.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, expit, logit, ndtri, stdtrit

from gistpoint.core.analysis.findings import Number
from gistpoint.core.analysis.pooling import LEAST_ATTEMPTS_OF_RATE, LEAST_PERSONS, LEAST_TASKS
from gistpoint.core.estimates import wilson
from gistpoint.core.study.rows import AttemptRow

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Kept = NDArray[np.bool_]
Estimator = Callable[[Kept], ArrayLike]
"""A function from the rows kept to the estimates, on the interval's scale; NaN where there is no estimate."""

NO_PERSON = -1
_NOTHING = 1e-12
"""The standard error up to which refits differ only by rounding, relative to estimates above 1."""
LEVEL = 0.95
Z_95 = float(ndtri((1 + LEVEL) / 2))
"""The normal quantile for intervals that treat attempts as independent."""
EXACT = (
    "all or none solved: exact interval (Clopper-Pearson) for as many trials as there are persons or tasks"
)
UNSTABLE = (
    "no interval: without one of the persons, tasks or attempts there is no estimate, or one at the"
    " end of its scale"
)
SINGLE = "persons and tasks do not differ at all: the variance is that of single attempts"


class Scale(StrEnum):
    """The scale on which an interval is symmetric."""

    PLAIN = "plain"
    PROBABILITY = "probability"
    """A probability, whose interval is symmetric in the log odds."""
    DIFFERENCE = "difference"
    """The difference between two probabilities, clipped to [-1, 1]."""
    PERCENT = "percent"
    """A percentage, clipped to [0, 100]."""
    POINTS = "percentage points"
    """The difference between two percentages, clipped to [-100, 100]."""
    AMOUNT = "amount"
    """An amount, clipped to values of at least 0."""
    LOG = "log"
    LOGIT = "logit"
    LOG_MINUS_LOG = "log(-log)"
    """A probability of survival, whose interval is symmetric in log(-log)."""
    FISHER = "artanh"
    """A correlation, whose interval is symmetric in Fisher's z."""

    def back(self, value: ArrayLike) -> Floats:
        """Return a value on this scale transformed back to the printed scale, within its limits."""
        given = np.asarray(value, dtype=float)
        match self:
            case Scale.LOG:
                # An estimate or bound above the largest float is infinite, and is not shown.
                with np.errstate(over="ignore"):
                    natural = np.exp(given)
            case Scale.LOGIT:
                natural = expit(given)
            case Scale.LOG_MINUS_LOG:
                natural = np.exp(-np.exp(given))
            case Scale.FISHER:
                natural = np.tanh(given)
            case _:
                natural = np.clip(given, *self.limits)
        return np.asarray(natural, dtype=float)

    @property
    def limits(self) -> tuple[float, float]:
        """The minimum and the maximum possible value, as printed; infinite where there is no limit."""
        return _LIMITS.get(self, (-np.inf, np.inf))

    def cut(self, interval: tuple[float, float] | None) -> tuple[float, float] | None:
        """Return an interval clipped to the possible values; None stays None."""
        if interval is None:
            return None
        low, high = np.clip(interval, *self.limits).tolist()
        return low, high


_LIMITS = {
    Scale.PROBABILITY: (0.0, 1.0),
    Scale.DIFFERENCE: (-1.0, 1.0),
    Scale.PERCENT: (0.0, 100.0),
    Scale.POINTS: (-100.0, 100.0),
    Scale.AMOUNT: (0.0, np.inf),
    Scale.FISHER: (-1.0, 1.0),
}


@dataclass(frozen=True)
class Units:
    """The person and the task of each row, numbered from 0; rows of models have the person `NO_PERSON`."""

    persons: Integers
    tasks: Integers

    @classmethod
    def of(cls, rows: Sequence[AttemptRow]) -> Units:
        """Return the numbered persons and tasks of rows."""
        return cls.named(["" if row.solver else row.participant for row in rows], [row.task for row in rows])

    @classmethod
    def named(cls, persons: Sequence[str], tasks: Sequence[str]) -> Units:
        """Return persons and tasks numbered in the order of their names; an empty name is `NO_PERSON`."""
        people = {name: place for place, name in enumerate(sorted({name for name in persons if name}))}
        places = {name: place for place, name in enumerate(sorted(set(tasks)))}
        return cls(
            np.array([people.get(name, NO_PERSON) for name in persons], dtype=np.int64),
            np.array([places[name] for name in tasks], dtype=np.int64),
        )

    @cached_property
    def person_numbers(self) -> Integers:
        """The numbers of the persons that have rows, ascending."""
        return np.unique(self.persons[self.persons != NO_PERSON])

    @cached_property
    def task_numbers(self) -> Integers:
        """The numbers of the tasks that have rows, ascending."""
        return np.unique(self.tasks)

    @property
    def person_count(self) -> int:
        """The number of persons that have rows."""
        return len(self.person_numbers)

    @property
    def task_count(self) -> int:
        """The number of tasks that have rows."""
        return len(self.task_numbers)

    @property
    def fewest(self) -> int:
        """min(P, T), or T if all rows are of models."""
        return min(self.person_count, self.task_count) if self.person_count else self.task_count

    @property
    def no_interval(self) -> str:
        """The reason why there is no interval; empty if there are enough persons and tasks."""
        if self.task_count < LEAST_TASKS:
            return f"no interval: at least {LEAST_TASKS} tasks are needed (here: {self.task_count})"
        if 0 < self.person_count < LEAST_PERSONS:
            return f"no interval: at least {LEAST_PERSONS} persons are needed (here: {self.person_count})"
        return ""


@dataclass(frozen=True)
class Spread:
    """Estimates with their jackknife variances, on the scale of the interval."""

    estimate: Floats
    by_persons: Floats
    by_tasks: Floats
    by_rows: Floats
    """V_A: over single attempts of persons (zero if all rows are of models), or the fit's own variance."""
    units: Units
    asked: bool = True
    """Whether an interval was requested; otherwise the variances are NaN."""
    degrees: Floats | None = None
    """The effective degrees of freedom of the variance; None for min(P, T) - 1."""
    by_model: Floats | None = None
    """V_M: the variance by a model with random persons and tasks; None if V_P and V_T are the floor."""
    without_persons: Floats | None = None
    """The refits without each person, as (persons, estimates), if there are any."""

    @cached_property
    def variance(self) -> Floats:
        """max(V_P + V_T - V_A, V_P, V_T), or max(V_P + V_T - V_A, V_M).

        It is V_T if all rows are of models, and V_A where `flat`, so that no interval has zero width.
        """
        # Rows of models are left out with their task, because there is no person to leave out (decision 87).
        if not self.units.person_count:
            return self.by_tasks
        # A row that is left out with its person is also left out with its task: V_P + V_T contains the
        # variance of single attempts twice, so V_A is subtracted once (Cameron, Gelbach & Miller 2011;
        # decision 87).
        both = self.by_persons + self.by_tasks - self.by_rows
        # The sum can be below V_P or V_T, even below 0: the larger one-way variance is the floor, or that of
        # the model (decision 160).
        floor = np.maximum(self.by_persons, self.by_tasks) if self.by_model is None else self.by_model
        found = np.maximum(both, floor)
        return np.where(self.flat, self.by_rows, found)

    @cached_property
    def flat(self) -> Kept:
        """Whether, for each estimate, neither persons nor tasks differ, although single rows do."""
        # Equal means of persons and of tasks leave rounding errors, so the comparison is relative to V_A.
        return (self.by_persons + self.by_tasks <= 1e-12 * self.by_rows) & (self.by_rows > 0)

    @cached_property
    def varies(self) -> Kept:
        """Whether each estimate changes in any refit by more than a rounding error; true where unknown."""
        size = np.maximum(1.0, np.abs(self.estimate))
        with np.errstate(invalid="ignore"):
            return ~np.asarray(np.sqrt(self.variance) <= _NOTHING * size)

    @cached_property
    def half(self) -> Floats:
        """Half the width of the interval; NaN if none was requested, or with too few persons or tasks."""
        if self.units.no_interval:
            return np.full_like(self.estimate, np.nan)
        # Student's t, for the smaller number of persons or tasks, replaces a normal quantile because six
        # people carry little information (decision 87).
        fewest = np.full_like(self.estimate, self.units.fewest - 1)
        degrees = fewest if self.by_model is None else self._effective_degrees
        return np.asarray(stdtrit(degrees, (1 + LEVEL) / 2) * np.sqrt(self.variance), dtype=float)

    @property
    def _effective_degrees(self) -> Floats:
        """The effective degrees of freedom, or one less than the fewer of persons and tasks if unknown."""
        fewest = np.full_like(self.estimate, self.units.fewest - 1)
        if self.degrees is None:
            return fewest
        # If neither persons nor tasks differ, their deviations have no kurtosis.
        return np.where(np.isfinite(self.degrees) & ~self.flat, self.degrees, fewest)

    def bounds(self, scale: Scale = Scale.PLAIN) -> tuple[Floats, Floats]:
        """Return the lower and upper bounds on the printed scale."""
        if scale is Scale.PROBABILITY:
            return self._bounds_of_probability()
        # Some scales reverse the order: on log(-log), the upper end is the lower share.
        one, other = scale.back(self.estimate - self.half), scale.back(self.estimate + self.half)
        return np.minimum(one, other), np.maximum(one, other)

    def _bounds_of_probability(self) -> tuple[Floats, Floats]:
        """Return bounds that are symmetric in the log odds; NaN at 0 and 1, where there are none."""
        share = self.estimate
        if self.units.no_interval:
            return np.full_like(share, np.nan), np.full_like(share, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            # A symmetric interval misses high rates above and low rates below: the variance shrinks as the
            # estimate nears an end, so almost all misses would be on the inner side (decision 154).
            quantile = stdtrit(self._effective_degrees, (1 + LEVEL) / 2)
            half = quantile * np.sqrt(self.variance) / (share * (1 - share))
            low, high = expit(logit(share) - half), expit(logit(share) + half)
        return low, high

    def number(
        self,
        scale: Scale = Scale.PLAIN,
        place: int = 0,
        *,
        iid: tuple[float, float] | None = None,
        note: str = "",
        rows: int | None = None,
    ) -> Number:
        """Return the estimate at `place` on the printed scale, with its interval and the counts of its units.

        `iid` is the interval that treats attempts as independent, and `rows` replaces the count of rows.
        Where a requested interval is missing, the note contains the reason.
        """
        value = _finite(scale.back(self.estimate)[place])
        low, high = (_finite(bound[place]) for bound in self.bounds(scale))
        notes = [note] if note else []
        misses_bounds = value is not None and (low is None or high is None)
        if self.units.no_interval:
            notes.append(self.units.no_interval)
        elif self.asked and misses_bounds:
            # If a refit without one person or task has no estimate, there is no interval, and the note
            # reports it (decision 87).
            notes.append(UNSTABLE)
            low = high = None
        elif value is not None and not self.varies[place]:
            # An interval of zero width would claim certainty (decision 87).
            notes.append("no interval: nothing varies")
            low = high = None
        elif self.units.person_count and self.flat[place]:
            notes.append(SINGLE)
        return Number(
            value,
            low,
            high,
            persons=self.units.person_count,
            tasks=self.units.task_count,
            rows=len(self.units.tasks) if rows is None else rows,
            iid=scale.cut(iid),
            note="; ".join(notes),
        )


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def jackknife(
    units: Units, estimate: Estimator, own_variance: ArrayLike | None = None, *, interval: bool = True
) -> Spread:
    """Return estimates with their jackknife variances, by P + T refits and one for each attempt of a person.

    `own_variance`, that of a fitted likelihood, replaces the refits without single attempts. If there are too
    few persons or tasks for an interval, or `interval` is false, nothing is refitted and the variances are
    NaN.
    """
    everything = np.ones(len(units.tasks), dtype=bool)
    full = _vector(estimate(everything))
    # Only the interval requires refits, not the estimate.
    if units.no_interval or not interval:
        unknown = np.full_like(full, np.nan)
        return Spread(full, unknown, unknown, unknown, units, interval)

    def refits(left_out: list[Kept]) -> Floats:
        return np.array([_vector(estimate(~gone)) for gone in left_out]).reshape(-1, len(full))

    def one_way(refits: Floats) -> _OneWay:
        # As in the module's formula, deviations are from the estimate on all rows, not from the mean refit.
        return _OneWay.of((refits - full) ** 2)

    people = refits([units.persons == person for person in units.person_numbers])
    tasks = refits([units.tasks == task for task in units.task_numbers])
    # The refits without single attempts account for most of the work; a fitted likelihood supplies their
    # variance.
    if own_variance is not None:
        rows = _vector(own_variance)
    else:
        identity = np.eye(len(units.tasks), dtype=bool)
        rows = one_way(
            refits([identity[place] for place in np.flatnonzero(units.persons != NO_PERSON)])
        ).variance
    return replace(_spread(full, one_way(people), one_way(tasks), rows, units), without_persons=people)


def jackknife_of_fits(
    units: Units,
    full: Floats,
    refitted: Callable[[Kept], Floats],
    by_rows: Floats,
    by_model: Floats | None = None,
    *,
    interval: bool = True,
) -> Spread:
    """Return estimates with the jackknife variances from one batch of refits, and the variances by a model.

    `refitted` is a function from the rows kept by each refit, as (refits, rows), to the estimates, as
    (refits, estimates). `by_rows` is V_A, and `by_model` is V_M, if there is a model. If there are too few
    persons or tasks for an interval, or `interval` is false, nothing is refitted and the variances are NaN.
    """
    if units.no_interval or not interval:
        unknown = np.full_like(full, np.nan)
        return Spread(full, unknown, unknown, unknown, units, interval)
    people = units.persons != units.person_numbers[:, None]
    tasks = units.tasks != units.task_numbers[:, None]
    with np.errstate(invalid="ignore"):  # NaN where both are infinite
        refits = refitted(np.vstack([people, tasks]))
        squares = (refits - full) ** 2
    count = len(people)
    spread = _spread(full, _OneWay.of(squares[:count]), _OneWay.of(squares[count:]), by_rows, units)
    return replace(spread, by_model=by_model, without_persons=refits[:count])


@dataclass(frozen=True)
class _OneWay:
    """The jackknife variance over persons, tasks or attempts, and its effective degrees of freedom."""

    variance: Floats
    degrees: Floats

    @classmethod
    def of(cls, squares: Floats) -> _OneWay:
        """Return the variance and degrees from refits' squared deviations: one row per group left out."""
        count, total = len(squares), squares.sum(axis=0)
        if not count:
            return cls(total, np.full_like(total, np.nan))
        normal = (count - 3) / (count - 1) if count > 1 else 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            kurtosis = count * (squares**2).sum(axis=0) / total**2
            # A kurtosis below that of a normal distribution would give more degrees than there are groups.
            degrees = np.minimum(count - 1, 2 * count / np.maximum(kurtosis - normal, 0))
            variance = np.asarray((count - 1) / count * total)  # 0 times infinity for one group
        return cls(variance, np.maximum(1.0, degrees))


def _spread(estimate: Floats, people: _OneWay, tasks: _OneWay, rows: Floats, units: Units) -> Spread:
    weight = people.variance + tasks.variance
    with np.errstate(divide="ignore", invalid="ignore"):
        # Satterthwaite's degrees of a sum of variances; a side without variance does not count.
        parts = [np.where(one.variance > 0, one.variance**2 / one.degrees, 0.0) for one in (people, tasks)]
        degrees = weight**2 / (parts[0] + parts[1])
    return Spread(estimate, people.variance, tasks.variance, rows, units, degrees=degrees)


def _vector(values: ArrayLike) -> Floats:
    return np.atleast_1d(np.asarray(values, dtype=float))


def jackknife_of_mean(units: Units, values: ArrayLike) -> Spread:
    """Return the mean of values with the same variances as `jackknife` computes, in closed form."""
    given = np.asarray(values, dtype=float)
    total, count = float(given.sum()), len(given)
    mean = total / count if count else np.nan

    def without(members: Integers, chosen: Kept) -> _OneWay:
        size = int(members.max(initial=-1)) + 1
        sums = np.bincount(members[chosen], weights=given[chosen], minlength=size)
        counts = np.bincount(members[chosen], minlength=size)
        sums, counts = sums[counts > 0], counts[counts > 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            # The mean without a group is the remaining sum over the remaining count.
            left = (total - sums) / (count - counts)
        return _OneWay.of((left[:, None] - mean) ** 2)

    people = units.persons != NO_PERSON
    everything = np.ones(count, dtype=bool)
    single = np.arange(count, dtype=np.int64)
    return _spread(
        _vector(mean),
        without(units.persons, people),
        without(units.tasks, everything),
        without(single, people).variance,
        units,
    )


def clopper_pearson(count: float, of: int) -> tuple[float, float]:
    """Return the exact 95% interval of `count` successes in `of` trials; (0, 1) without trials.

    Clopper & Pearson 1934, Biometrika 26.
    """
    if of <= 0:
        return 0.0, 1.0
    tail = (1 - LEVEL) / 2
    low = 0.0 if count <= 0 else float(betaincinv(count, of - count + 1, tail))
    high = 1.0 if count >= of else float(betaincinv(count + 1, of - count, 1 - tail))
    return low, high


def share(
    rows: Sequence[AttemptRow], succeeded: Callable[[AttemptRow], bool] = lambda row: row.solved
) -> Number:
    """Return the share of rows that succeeded, a probability, with Wilson's interval as `iid`.

    If all or none succeeded, the jackknife has no width: the interval is then the exact interval
    (Clopper-Pearson) for min(persons, tasks) trials, and `iid` is the exact interval for as many trials as
    rows. The number has no value if there are fewer rows than `LEAST_ATTEMPTS_OF_RATE`; the note has their
    count.
    """
    return share_of(Units.of(rows), [succeeded(row) for row in rows])


def share_of(units: Units, succeeded: Sequence[bool], unit: str = "attempts") -> Number:
    """Return the share of true outcomes, computed as by `share`; `unit` names the outcomes in a note."""
    outcomes = [float(one) for one in succeeded]
    count, total = int(sum(outcomes)), len(outcomes)
    if not outcomes:
        return Number(None, note=f"no {unit}")
    if total < LEAST_ATTEMPTS_OF_RATE:
        # One solved attempt is not a rate of 100%, and must not get a bar of full height.
        return Number(
            None,
            persons=units.person_count,
            tasks=units.task_count,
            rows=total,
            note=f"{count} of {total}: no rate from fewer than {LEAST_ATTEMPTS_OF_RATE} {unit}",
        )
    if 0 < count < total:
        return jackknife_of_mean(units, outcomes).number(Scale.PROBABILITY, iid=wilson(count, total))
    # If all or none succeeded, every refit is the same and the jackknife's interval would have zero width.
    # The exact interval uses the fewer of persons and tasks as its number of trials (decision 87).
    rate = count / total
    low, high = (None, None) if units.no_interval else clopper_pearson(rate * units.fewest, units.fewest)
    return Number(
        rate,
        low,
        high,
        persons=units.person_count,
        tasks=units.task_count,
        rows=total,
        iid=clopper_pearson(count, total),
        note=units.no_interval or EXACT,
    )


def mean(rows: Sequence[AttemptRow], values: Sequence[float], scale: Scale = Scale.PLAIN) -> Number:
    """Return the mean of one value per row with its jackknife interval; the number has no value without rows.

    On the log scale `values` are natural logarithms, and the result is their geometric mean.
    """
    if not rows:
        return Number(None, note="no attempts")
    return jackknife_of_mean(Units.of(rows), values).number(scale)
