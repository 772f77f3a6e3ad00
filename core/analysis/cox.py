"""Hazard ratios of solving between conditions, by Cox's proportional hazards model.

Sources: Cox, Journal of the Royal Statistical Society B 34, 1972; Grambsch & Therneau, Biometrika 81(3),
1994, with the exact information of each event, as in R's survival from version 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from scipy.special import chdtrc
from scipy.stats import rankdata

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.findings import Findings, Number, Shortfall
from gistpoint.core.analysis.intervals import Z_95, Floats, Kept, Scale, Spread, Units, jackknife_of_fits
from gistpoint.core.analysis.pooling import (
    LEAST_SOLVED_OF_TIMES,
    primary_minutes,
    solved_of,
    too_few,
    under,
)
from gistpoint.core.analysis.timeratios import OF_MODEL, contrasts_of, given_up, people, untimed
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

_ROUNDS = 60
_LEAST_INFORMATION = 1e-6
"""The information below which the effect counts as infinite, or as not identified by any task."""
NOTE = (
    "The ratio compares attempts at the same task and averages over people: if people differ, it is"
    " closer to 1 than the ratio for a single person, and moves towards 1 in the course of a task,"
    " so that the test of proportional rates rejects more often."
)


def proportional_hazards(data: StudyData) -> Findings:
    """Return the hazard ratios of solving by Cox's model, stratified by task (`time-cox`)."""
    rows = people(data)
    found = FindingsBuilder()
    table = found.table(
        "Rates of solving",
        ("conditions", "ratio of the rates of solving", "proportional, p (score test)"),
        f"The interval after '{OF_MODEL}' treats attempts as independent. Above 1: solved sooner.",
    )
    for condition, reference in contrasts_of(data):
        name = f"{condition} to {reference}"
        estimated = found.estimated(hazard_ratio(rows, condition, reference))
        if estimated is not None:
            ratio, p = estimated
            table.row(name, found.number(name, ratio), p)
    found.note(NOTE, *given_up(rows), *untimed(data))
    return found.findings()


def hazard_ratio(
    rows: Sequence[AttemptRow], condition: str, reference: str
) -> tuple[Number, float | None] | Shortfall:
    """Return the hazard ratio of two conditions, and the p-value of proportionality (`proportionality`).

    Only tasks attempted under both conditions are used. Returns a shortfall if fewer than ten attempts at
    them are solved, or if the model can't be fitted; p is None if only one time carries information.
    """
    pair = under(rows, condition, reference)
    ways = {(row.task, row.condition) for row in pair}
    # The model is stratified by task: a task attempted under only one condition carries no information.
    pair = [row for row in pair if {(row.task, condition), (row.task, reference)} <= ways]
    what = f"The ratio of rates of solving, {condition} to {reference},"
    solved = len(solved_of(pair))
    if short := too_few(what, ("solved attempts at tasks of both conditions", LEAST_SOLVED_OF_TIMES, solved)):
        return short
    helped = np.array([float(row.condition == condition) for row in pair])
    partial = PartialLikelihood.of(pair)
    full = partial.fit(helped)
    if full is None:
        return Shortfall(what, "task solved in more than one of the ways compared", 1, 0)
    b, variance = full
    half = Z_95 * variance**0.5
    # The interval that papers print is shown as well (decision 87), without clusters of persons: with a dozen
    # persons and a stratum for each task, a sandwich variance is far too small (decision 155).
    iid = float(np.exp(b - half)), float(np.exp(b + half))
    number = partial.spread(helped, b, variance, Units.of(pair)).number(Scale.LOG, iid=iid)
    return replace(number, iid_label=OF_MODEL), partial.proportionality(helped, b)


@dataclass(frozen=True)
class PartialLikelihood:
    """Cox's partial likelihood of one effect, stratified by task, whose events are the solved attempts.

    Ties are treated by Efron's method (1977, JASA 72). Many fits are computed as one batch of arrays.
    """

    minutes: Floats
    solved: Kept
    at_risk: csr_array
    """For each event (a row), the attempts at its task still at risk at its time."""
    tied: csr_array
    """For each event, the attempts at its task that were solved at the same time."""
    rank: Floats
    """The rank of an event among those tied with it, counted from 0, divided by their number."""

    @classmethod
    def of(cls, rows: Sequence[AttemptRow]) -> PartialLikelihood:
        """Return the partial likelihood of rows, each compared with the others at its task."""
        minutes = np.array([primary_minutes(row) for row in rows])
        solved = np.array([row.solved for row in rows], dtype=bool)
        tasks = Units.of(rows).tasks
        alike = tasks[:, None] == tasks
        tied = alike & (minutes[:, None] == minutes) & solved
        before = np.tril(tied, -1).sum(axis=1)
        rank = before / np.maximum(tied.sum(axis=1), 1)
        at_risk = alike & (minutes >= minutes[:, None])
        sparse = [
            csr_array(matrix[solved].astype(float))  # type: ignore[no-untyped-call]
            for matrix in (at_risk, tied)
        ]
        return cls(minutes, solved, sparse[0], sparse[1], rank[solved])

    def fit(self, x: Floats) -> tuple[float, float] | None:
        """Return the log hazard ratio of x and its variance; None if it is infinite or not identified."""
        found, variance = self.fits(x, np.ones((1, len(x)), dtype=bool))
        return (float(found[0]), float(variance[0])) if np.isfinite(found[0]) else None

    def fits(self, x: Floats, kept: Kept, start: float = 0.0) -> tuple[Floats, Floats]:
        """Return the log hazard ratios of x and their variances, by Newton's method from `start`.

        `kept`, as (fits, attempts), has the rows of each fit. Both are NaN where the ratio is infinite or not
        identified.
        """
        inside = kept.T.astype(float)
        b = np.full(len(kept), start)
        information = np.zeros(len(kept))
        done = np.zeros(len(kept), dtype=bool)
        with np.errstate(all="ignore"):
            for _ in range(_ROUNDS):
                residuals, weights = self._events(x, b, inside)
                information = weights.sum(axis=0)
                step = residuals.sum(axis=0) / information
                lost = ~(information >= _LEAST_INFORMATION)
                b = np.where(lost, np.nan, b)
                done = lost | (np.abs(step) < 1e-10)
                if done.all():
                    break
                b = np.where(done, b, b + np.clip(step, -1.0, 1.0))
            b = np.where(done, b, np.nan)
            return b, np.where(np.isfinite(b), 1 / information, np.nan)

    def _events(self, x: Floats, b: Floats, inside: Floats) -> tuple[Floats, Floats]:
        """Return Schoenfeld's residual and the information of each event, as (events, fits)."""
        weight = np.exp(x[:, None] * b) * inside
        total, first, second = (self._sums(weight * x[:, None] ** power) for power in range(3))
        counts = inside[self.solved] > 0
        mean = np.divide(first, total, out=np.zeros_like(first), where=counts)
        square = np.divide(second, total, out=np.zeros_like(second), where=counts)
        residuals = np.where(counts, x[self.solved][:, None] - mean, 0.0)
        return residuals, np.where(counts, square - mean**2, 0.0)

    def _sums(self, weights: Floats) -> Floats:
        return np.asarray(self.at_risk @ weights - self.rank[:, None] * (self.tied @ weights), dtype=float)

    def spread(self, x: Floats, b: float, variance: float, units: Units) -> Spread:
        """Return the log hazard ratio with jackknife variances, whose floor is the likelihood's variance."""
        full, by_model = np.array([b]), np.array([variance])
        if units.no_interval:
            unknown = np.full(1, np.nan)
            return Spread(full, unknown, unknown, unknown, units)

        def refitted(kept: Kept) -> Floats:
            return self.fits(x, kept, b)[0][:, None]

        changes = refitted(~np.eye(len(x), dtype=bool)) - full
        by_rows = (len(x) - 1) / len(x) * (changes**2).sum(axis=0)
        return jackknife_of_fits(units, full, refitted, by_rows, by_model)

    def proportionality(self, x: Floats, b: float) -> float | None:
        """Return the p-value of the score test of an effect of x that changes with the rank of the time.

        Each event has its own information: with a few attempts at a task, the last events have none, and a
        test that assumes equal information rejects wrongly (decision 160). The result is None if only one
        time carries information.
        """
        residuals, weights = self._events(x, np.array([b]), np.ones((len(x), 1)))
        residual, weight = residuals[:, 0], weights[:, 0]
        times = rankdata(self.minutes[self.solved])
        times = times - float(weight @ times / weight.sum())
        variance = float(weight @ times**2)
        if variance < _LEAST_INFORMATION:
            return None
        return float(chdtrc(1, float(residual @ times) ** 2 / variance))
