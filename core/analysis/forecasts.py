"""Forecasts of time and success against the outcomes, and impressions after the task."""

from __future__ import annotations

from collections.abc import Sequence
from operator import sub

import numpy as np

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.correlations import correlation
from gistpoint.core.analysis.evaluation import EASE, answer
from gistpoint.core.analysis.findings import Curve, Findings, Number, Plot, Points, Shortfall
from gistpoint.core.analysis.intervals import Floats, Integers, Scale, Units, mean
from gistpoint.core.analysis.pooling import (
    LEAST_TASKS_OF_CORRELATION,
    people_of,
    primary_minutes,
    solved_of,
    tasks_of,
    too_few,
)
from gistpoint.core.analysis.timeratios import FORECAST, log_minutes, people
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

CHANCE, FELT = "forecast_chance", "felt_minutes"


def forecasts(data: StudyData) -> Findings:
    """Return forecasts against outcomes, perceived against measured minutes, and ease against times.

    The analysis is `forecast`.
    """
    found = FindingsBuilder()
    table = found.table("Forecasts and impressions", ("what", "estimate", "spread (factor of one sd)"))
    rows = people(data)

    def add(key: str, words: str, number: Number, spread: float | None = None) -> None:
        table.row(words, found.number(key, number), spread)

    if ahead := _answered(solved_of(rows), FORECAST):
        words = "forecast over needed minutes, solved attempts (geometric mean)"
        add("minutes", words, *_over_minutes(ahead))
        found.plot(_plot(ahead))
        found.note(
            "Forecasts of minutes are compared only for solved attempts, whose minutes are known"
            " and shorter than those of the others."
        )
    chances = people_of(data.rows)
    if stated := _answered(chances, CHANCE, zero=True):
        own, chance = [row for row, _ in stated], [value / 100 for _, value in stated]
        outcomes = [float(row.solved) for row in own]
        add("brier", "Brier score of the stated chance", _brier(own, chance, outcomes))
        rate = float(np.mean(outcomes))
        # This is the score of a forecaster who knows only the base rate; informative forecasts have lower
        # scores.
        constant = _brier(own, [rate] * len(own), outcomes)
        add("brier of the rate", "Brier score of always stating the rate", constant)
        over = list(map(sub, chance, outcomes))
        add("overconfidence", "mean stated chance minus share solved", mean(own, over, Scale.DIFFERENCE))
    if felt := _answered(rows, FELT):
        add("felt", "felt over measured minutes (geometric mean)", *_over_minutes(felt))
    if eased := _answered(rows, EASE):
        r = found.estimated(_ease_and_time(eased))
        if r is not None:
            add("ease and time", "rank correlation of ease (7 is very easy) and ln minutes", r)
    return found.findings()


def _ease_and_time(eased: Sequence[tuple[AttemptRow, float]]) -> Number | Shortfall:
    eased_rows = [row for row, _ in eased]
    what = "The correlation of ease and time"
    if short := too_few(what, ("tasks", LEAST_TASKS_OF_CORRELATION, tasks_of(eased_rows))):
        return short
    return _correlation([value for _, value in eased], eased_rows) or Shortfall(
        what, "different answers", 2, 1
    )


def _over_minutes(answers: Sequence[tuple[AttemptRow, float]]) -> tuple[Number, float | None]:
    """Return the geometric mean and geometric standard deviation of answers over measured minutes.

    The standard deviation is None for a single answer.
    """
    ratios = [np.log(value) - log for (_, value), log in zip(answers, _logs(answers), strict=True)]
    return mean([row for row, _ in answers], ratios, Scale.LOG), _spread(ratios)


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation: Pearson's r of the ranks; NaN if one variable is constant.

    Tied values get the mean of their ranks.
    """
    return _spearman(_order(first), _order(second))


def _order(values: Sequence[float] | Floats) -> Integers:
    """Return the place of each value among the distinct values, in ascending order."""
    return np.unique(np.asarray(values, dtype=float), return_inverse=True)[1]


def _spearman(first: Integers, second: Integers) -> float:
    x, y = _ranks(first), _ranks(second)
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale else float("nan")


def _ranks(order: Integers) -> Floats:
    """Return the ranks of values from `_order`, of which some may have been left out since."""
    counts = np.bincount(order)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[order], dtype=float)


def _correlation(values: Sequence[float], rows: Sequence[AttemptRow]) -> Number | None:
    # The order is the same in all refits of the jackknife, so that none of them has to sort.
    x, y = _order(values), _order(log_minutes(rows))
    return correlation(Units.of(rows), lambda kept: _spearman(x[kept], y[kept]))


def _answered(rows: Sequence[AttemptRow], item: str, *, zero: bool = False) -> list[tuple[AttemptRow, float]]:
    found: list[tuple[AttemptRow, float]] = []
    for row in rows:
        value = answer(row, item)
        if value is None:
            continue
        # A ratio of minutes needs a positive answer; a stated chance may be 0.
        if value > 0 or (zero and not value):
            found.append((row, value))
    return found


def _logs(answers: Sequence[tuple[AttemptRow, float]]) -> list[float]:
    return [float(value) for value in log_minutes(row for row, _ in answers)]


def _brier(rows: Sequence[AttemptRow], stated: Sequence[float], outcomes: Sequence[float]) -> Number:
    squares = [(one - other) ** 2 for one, other in zip(stated, outcomes, strict=True)]
    return mean(rows, squares, Scale.PROBABILITY)


def _spread(ratios: Sequence[float]) -> float | None:
    return float(np.exp(np.std(ratios, ddof=1))) if len(ratios) > 1 else None


def _plot(answers: Sequence[tuple[AttemptRow, float]]) -> Plot:
    x = tuple(value for _, value in answers)
    y = tuple(primary_minutes(row) for row, _ in answers)
    mark = Points("solved attempts", x, y)
    labels = ("Forecast and needed minutes", "forecast minutes", "needed minutes")
    ends = min((*x, *y), default=1.0), max((*x, *y), default=1.0)
    equal = Curve("needed as forecast", ends, ends, dashed=True)
    return Plot("forecast", *labels, (mark, equal), log_x=True, log_y=True)
