"""Curves of the time to solve, with numbers at risk and bands, under two treatments of giving up.

Giving up is not independent censoring, because people who give up would have taken longer. (a) Treated as
censoring, the curve estimates the share solved if nobody gave up (Kaplan-Meier); (b) as a competing event,
the share that solves without ever giving up (Aalen-Johansen). The truth lies between the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.findings import Curve, Findings, Number, Plot
from gistpoint.core.analysis.intervals import Z_95, Floats, Integers, Kept, Scale, Spread, Units, jackknife
from gistpoint.core.analysis.pooling import (
    LEAST_SOLVED_OF_SURVIVAL,
    PRIMARY_MINUTES,
    PooledRows,
    by_mode,
    groups,
    persons_of,
    primary_minutes,
    tasks_of,
)
from gistpoint.core.analysis.timeratios import untimed
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

RISK_TIMES = 6
CENSORED, SOLVED, GAVE_UP = 0, 1, 2
GIVING_UP = "competing"


@dataclass(frozen=True)
class Times:
    """The primary times of some attempts in minutes, and how each ended."""

    minutes: Floats
    ends: Integers
    """How each attempt ended: `SOLVED`, `GAVE_UP` or `CENSORED`."""
    units: Units
    rows: tuple[AttemptRow, ...]

    @classmethod
    def of(cls, rows: Sequence[AttemptRow]) -> Times:
        """Return the times of those rows whose primary time is above 0."""
        timed = tuple(row for row in rows if primary_minutes(row) > 0)
        ends = [_end(row) for row in timed]
        minutes = np.array([primary_minutes(row) for row in timed], dtype=float)
        return cls(minutes, np.array(ends, dtype=np.int64), Units.of(timed), timed)

    @property
    def solved(self) -> Kept:
        """Whether each attempt solved its task."""
        return np.asarray(self.ends == SOLVED)


def _end(row: AttemptRow) -> int:
    if row.solved:
        return SOLVED
    return GAVE_UP if row.censored == GIVING_UP else CENSORED


def steps(minutes: Floats, ends: Integers) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the distinct times of solving, and step functions just after each of them.

    The second array is the survival by Kaplan & Meier's product over those at risk (1958, JASA 53), with
    giving up as censoring; the third is Greenwood's sum for its variance; the fourth is 1 minus Aalen &
    Johansen's cumulative incidence of solving (1978, Scandinavian Journal of Statistics 5), with giving up as
    a competing event.
    """
    times, place = np.unique(minutes, return_inverse=True)
    at_risk = len(minutes) - np.searchsorted(np.sort(minutes), times, side="left")
    solved = np.bincount(place, weights=ends == SOLVED, minlength=len(times))
    ended = np.bincount(place, weights=ends != CENSORED, minlength=len(times))
    survival: Floats = np.cumprod(1 - solved / at_risk, dtype=np.float64)
    nobody_ended = np.concatenate([[1.0], np.cumprod(1 - ended / at_risk)[:-1]]) if len(times) else survival
    left = 1 - np.cumsum(nobody_ended * solved / at_risk)
    # A share of 0 must be exact: a rounding error would count as a share not yet solved, with an interval.
    left = np.where(left > 1e-12, left, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        greenwood = np.cumsum(solved / (at_risk * (at_risk - solved)))
    has_solved = solved > 0
    return times[has_solved], survival[has_solved], greenwood[has_solved], left[has_solved]


def _step_function_at(times: Floats, values: Floats, when: ArrayLike, before: float = 1.0) -> Floats:
    """Return a right-continuous step function at the times `when`; it is `before` until its first step."""
    return np.concatenate([[before], values])[
        np.searchsorted(times, np.asarray(when, dtype=float), side="right")
    ]


def not_yet_solved(minutes: Floats, ends: Integers, when: ArrayLike, *, competing: bool = False) -> Floats:
    """Return the shares not yet solved at given times, in minutes.

    The estimate is Kaplan-Meier's; if `competing`, it is Aalen-Johansen's, with giving up as a competing
    event.
    """
    times, survival, _, incidence = steps(minutes, ends)
    return _step_function_at(times, incidence if competing else survival, when)


def median_time(minutes: Floats, ends: Integers) -> float:
    """Return the first time at which the Kaplan-Meier curve is at most 1/2; NaN if it never is."""
    times, survival, _, _ = steps(minutes, ends)
    below = np.flatnonzero(survival <= 0.5 + 1e-12)
    return float(times[below[0]]) if len(below) else np.nan


def at_risk(minutes: Floats, when: ArrayLike) -> tuple[int, ...]:
    """Return the numbers of attempts at risk just before each of the given times, in minutes."""
    return tuple(int((minutes >= moment).sum()) for moment in np.asarray(when, dtype=float))


def _log_minus_log(values: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(-np.log(values))
    return np.where(np.isfinite(found), found, np.nan)


def band(times: Times, when: Floats, *, competing: bool = False) -> Spread:
    """Return the curve at given times with its jackknife variances, on log(-log).

    The estimates are NaN where the share is 0 or 1. For `competing` see `not_yet_solved`.
    """
    return jackknife(
        times.units,
        lambda kept: _log_minus_log(
            not_yet_solved(times.minutes[kept], times.ends[kept], when, competing=competing)
        ),
    )


def curves(data: StudyData) -> Findings:
    """Return the curves and median times of people by condition and mode (`time-km`)."""
    found = FindingsBuilder()
    table = found.table(
        "Times to solve",
        (
            "who",
            "mode",
            "solved",
            "attempts",
            "median, minutes",
            "solved at the end (a)",
            "solved at the end (b)",
        ),
        "The median is Kaplan and Meier's. People who gave up count (a) as censored, (b) as never solving.",
    )
    for mode, members in by_mode(group for group in groups(data) if group.people).items():
        fit: list[tuple[PooledRows, Times]] = []
        for group in members:
            times = Times.of(group.rows)
            solved = int(times.solved.sum())
            if found.too_few(
                f"The curve of {group.label}, {mode},", ("solved attempts", LEAST_SOLVED_OF_SURVIVAL, solved)
            ):
                continue
            fit.append((group, times))
            numbers = found.numbers_of(f"{group.label}/{mode}", _numbers(times))
            table.row(group.label, mode, solved, len(times.rows), *numbers)
        if fit:
            found.plot(_plot(mode, fit))
    found.note(
        "People who gave up would have taken longer: (a) counts giving up as censored, (b) as a"
        " competing event (Aalen and Johansen).",
        *untimed(data),
    )
    return found.findings()


def _numbers(times: Times) -> dict[str, Number]:
    end = float(times.minutes[times.solved].max())
    median = jackknife(
        times.units, lambda kept: np.log(median_time(times.minutes[kept], times.ends[kept]))
    ).number(Scale.LOG)
    if median.value is None:
        median = Number(
            None,
            persons=persons_of(times.rows),
            tasks=tasks_of(times.rows),
            rows=len(times.rows),
            note="not reached: fewer than half are solved",
        )
    # Neither treatment of giving up is right; the truth lies between (a) and (b).
    found = {"median": median}
    for name, competing in (("a", False), ("b", True)):
        number = band(times, np.array([end]), competing=competing).number(Scale.LOG_MINUS_LOG)
        left = float(not_yet_solved(times.minutes, times.ends, end, competing=competing))
        iid = None if competing else greenwood_interval(times, end)
        found[f"end_{name}"] = _solved_share(number, left, iid, everybody=bool(times.solved.all()))
    return found


def greenwood_interval(times: Times, when: float) -> tuple[float, float] | None:
    """Return Greenwood's interval of the share solved at a time, by log(-log).

    The interval treats attempts as independent. None if the share is 0 or 1.
    """
    moments, survival, greenwood, _ = steps(times.minutes, times.ends)
    left, variance = (
        float(_step_function_at(moments, survival, when)),
        float(_step_function_at(moments, greenwood, when, 0.0)),
    )
    if not 0 < left < 1:
        return None
    half = Z_95 * np.sqrt(variance) / abs(np.log(left))
    low, high = left ** np.exp(half), left ** np.exp(-half)
    return 1 - float(high), 1 - float(low)


ALL_SOLVED = "no interval: all attempts are solved"
NONE_LASTED_LONGER = "no interval: no attempt lasted longer than the last solved one, so the curve ends at 1"


def _solved_share(left: Number, value: float, iid: tuple[float, float] | None, *, everybody: bool) -> Number:
    """Return the share solved, with its interval, from the share not yet solved.

    `everybody` is true if all attempts are solved; it is needed because the curve also ends at 1 if all
    unsolved attempts ended before the last solved one.
    """
    why = ALL_SOLVED if everybody else NONE_LASTED_LONGER
    note = left.note or ("" if left.low is not None else why)
    low, high = (None, None) if left.low is None or left.high is None else (1 - left.high, 1 - left.low)
    return Number(1 - value, low, high, left.persons, left.tasks, left.rows, iid, note)


def _plot(mode: str, fit: Sequence[tuple[PooledRows, Times]]) -> Plot:
    risk = np.linspace(0, max(float(times.minutes.max()) for _, times in fit), RISK_TIMES)
    marks: list[Curve] = []
    for group, times in fit:
        moments, survival, _, incidence = steps(times.minutes, times.ends)
        x = np.concatenate([[0.0], moments, [times.minutes.max()]])
        low, high = band(times, x).bounds(Scale.LOG_MINUS_LOG)
        # At time 0, the share not yet solved is 1, for which log(-log) is not defined.
        low[0] = high[0] = 1.0
        marks.append(
            Curve(group.label, tuple(x.tolist()), _solved(survival), _rest(high), _rest(low), steps=True)
        )
        if (times.ends == GAVE_UP).any():
            never = f"{group.label}, giving up never solves"
            marks.append(Curve(never, tuple(x.tolist()), _solved(incidence), steps=True, dashed=True))
    return Plot(
        f"time-km-{mode}",
        f"Solved over time, {mode}",
        PRIMARY_MINUTES,
        "share solved",
        tuple(marks),
        "Kaplan-Meier, who gave up as censored; dashed: giving up as never solving. Bands: 95% intervals"
        " over persons and tasks, where some but not all are solved.",
        at_risk={group.label: at_risk(times.minutes, risk) for group, times in fit},
        risk_times=tuple(risk.tolist()),
    )


def _solved(survival: Floats) -> tuple[float, ...]:
    return (0.0, *(1 - survival).tolist(), 1 - float(survival[-1]))


def _rest(values: Floats) -> tuple[float, ...]:
    return tuple((1 - values).tolist())
