"""Hazard ratios of solving between conditions, by Cox's proportional hazards model.

Cox 1972, Journal of the Royal Statistical Society B 34.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from lifelines import CoxPHFitter
from lifelines.exceptions import ConvergenceError
from lifelines.statistics import proportional_hazard_test

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.findings import Findings, Number, Shortfall
from gistpoint.core.analysis.intervals import Z_95, Floats, Kept, Scale, Units, jackknife
from gistpoint.core.analysis.pooling import (
    LEAST_SOLVED_OF_TIMES,
    primary_minutes,
    solved_of,
    too_few,
    under,
)
from gistpoint.core.analysis.timeratios import OF_MODEL, contrasts_of, given_up, people
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

_ROUNDS = 60
_LEAST_INFORMATION = 1e-6
"""The information below which the effect is infinite, or no task identifies it."""
NOTE = (
    "The ratio compares attempts at the same task and averages over people: if people differ, it is"
    " closer to 1 than the ratio for a single person."
)


def proportional_hazards(data: StudyData) -> Findings:
    """Return the hazard ratios of solving by Cox's model, stratified by task (`time-cox`)."""
    rows = people(data)
    found = FindingsBuilder()
    table = found.table(
        "Rates of solving",
        ("conditions", "ratio of the rates of solving", "proportional, p (Schoenfeld)"),
        f"The interval after '{OF_MODEL}' treats attempts as independent. Above 1: solved sooner.",
    )
    for condition, reference in contrasts_of(data):
        name = f"{condition} to {reference}"
        estimated = found.estimated(hazard_ratio(rows, condition, reference))
        if estimated is not None:
            ratio, p = estimated
            table.row(name, found.number(name, ratio), p)
    found.note(NOTE, *given_up(rows))
    return found.findings()


def hazard_ratio(
    rows: Sequence[AttemptRow], condition: str, reference: str
) -> tuple[Number, float | None] | Shortfall:
    """Return the hazard ratio of two conditions, and the p-value of proportionality (Schoenfeld's test).

    Only tasks attempted under both conditions are used. Returns a shortfall if fewer than ten attempts at
    them are solved, or if the model can't be fitted; p is None if lifelines does not converge.
    """
    pair = under(rows, condition, reference)
    ways = {(row.task, row.condition) for row in pair}
    # The model is stratified by task: a task under one condition alone carries no information.
    pair = [row for row in pair if {(row.task, condition), (row.task, reference)} <= ways]
    what = f"The ratio of rates of solving, {condition} to {reference},"
    solved = len(solved_of(pair))
    if short := too_few(what, ("solved attempts at tasks of both conditions", LEAST_SOLVED_OF_TIMES, solved)):
        return short
    helped = np.array([float(row.condition == condition) for row in pair])
    # This module's own likelihood is fitted, and tests compare it with lifelines: lifelines takes 0.2 s per
    # fit, and the jackknife refits without each person and task (decision 87).
    partial = PartialLikelihood.of(pair)
    everything = np.ones(len(pair), dtype=bool)
    full = partial.fit(helped, everything)
    if full is None:
        return Shortfall(what, "task solved in more than one of the ways compared", 1, 0)

    def estimate(kept: Kept) -> float:
        fit = partial.fit(helped, kept)
        return float("nan") if fit is None else fit[0]

    spread = jackknife(Units.of(pair), estimate, full[1])
    # The interval that papers print is shown as well (decision 87).
    of_model, p = _by_lifelines(pair, helped)
    return replace(spread.number(Scale.LOG, iid=of_model), iid_label=OF_MODEL), p


@dataclass(frozen=True)
class PartialLikelihood:
    """Cox's partial likelihood of one effect, stratified by task.

    Ties are treated by Efron's method (1977, JASA 72).
    """

    solved: Kept
    at_risk: Kept
    """For each attempt (a row), the attempts at its task still at risk at its time."""
    tied: Kept
    """For each attempt, the attempts at its task that were solved at the same time."""
    rank: Floats
    """The rank of an attempt among those tied with it, from 0, divided by their number."""

    @classmethod
    def of(cls, rows: Sequence[AttemptRow]) -> PartialLikelihood:
        """Return the partial likelihood of rows, each compared with the others at its task."""
        minutes = np.array([primary_minutes(row) for row in rows])
        solved = np.array([row.solved for row in rows], dtype=bool)
        tasks = Units.of(rows).tasks
        alike = tasks[:, None] == tasks
        tied = alike & (minutes[:, None] == minutes) & solved
        before = np.tril(tied, -1).sum(axis=1)
        return cls(
            solved, alike & (minutes >= minutes[:, None]), tied, before / np.maximum(tied.sum(axis=1), 1)
        )

    def fit(self, x: Floats, kept: Kept) -> tuple[float, float] | None:
        """Return the log hazard ratio of x and its variance, by Newton's method.

        None if the ratio is infinite or not identified, or if the method does not converge.
        """
        ended = self.solved & kept
        risk, tied, value = self.at_risk[np.ix_(ended, kept)], self.tied[np.ix_(ended, kept)], x[kept]
        rank, ended_x = self.rank[ended], x[ended]
        b = 0.0
        for _ in range(_ROUNDS):
            weight = np.exp(b * value)
            total = risk @ weight - rank * (tied @ weight)
            first = risk @ (weight * value) - rank * (tied @ (weight * value))
            second = risk @ (weight * value**2) - rank * (tied @ (weight * value**2))
            score = float((ended_x - first / total).sum())
            information = float((second / total - (first / total) ** 2).sum())
            if information < _LEAST_INFORMATION:
                return None
            step = score / information
            if abs(step) < 1e-10:
                return b, 1 / information
            b += max(-1.0, min(1.0, step))
        return None


def _by_lifelines(
    rows: Sequence[AttemptRow], helped: Floats
) -> tuple[tuple[float, float] | None, float | None]:
    """Return lifelines' interval of the ratio, and Schoenfeld's p-value; both None if it does not converge.

    Neither is clustered by person: with a dozen persons and a stratum for each task, the sandwich estimate is
    less than half of the variance, and the test based on it rejects three times too often (decision 155).
    """
    frame = pd.DataFrame(
        {
            "minutes": [primary_minutes(row) for row in rows],
            "solved": [row.solved for row in rows],
            "x": helped,
            "task": [row.task for row in rows],
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fit = CoxPHFitter().fit(frame, "minutes", "solved", strata=["task"])
            test = proportional_hazard_test(fit, frame, time_transform="rank")
        except (ConvergenceError, np.linalg.LinAlgError, ValueError):
            return None, None
    middle, half = float(fit.params_["x"]), Z_95 * float(fit.standard_errors_["x"])
    return (float(np.exp(middle - half)), float(np.exp(middle + half))), float(test.p_value[0])
