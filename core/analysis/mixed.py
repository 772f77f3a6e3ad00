"""A linear mixed model of the log times of solved attempts, with variances for persons and for tasks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.regression import mixed_linear_model

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.findings import Findings, Number
from gistpoint.core.analysis.intervals import Z_95
from gistpoint.core.analysis.pooling import (
    LEAST_PERSONS,
    LEAST_SOLVED_OF_TIMES,
    LEAST_TASKS,
    persons_of,
    primary_minutes,
    solved_of,
    tasks_of,
)
from gistpoint.core.analysis.timeratios import people
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

NOTE = "Based on solved attempts only, so it describes these; it does not estimate how long tasks take."


models: Any = mixed_linear_model
_METHODS = ("bfgs", "nm")
"""The optimisers in order: a fast one, then one without gradients for variances near zero."""


@dataclass(frozen=True)
class MixedFit:
    """The fit of ln minutes = constant + condition + person + task + noise, by REML."""

    effects: dict[str, tuple[float, float]]
    """For each condition but the first, its coefficient against the first, and its standard error."""
    person_sd: float
    task_sd: float
    sigma: float


def fit_mixed(rows: Sequence[AttemptRow], conditions: Sequence[str]) -> MixedFit | None:
    """Return the fit of crossed random effects of persons and tasks by restricted maximum likelihood.

    `conditions` are all conditions but the first, which is the reference. All rows form one group with two
    variance components, because `groups=` would nest one factor in the other. None if no optimiser converges.
    """
    exog = pd.DataFrame({"the constant": np.ones(len(rows))})
    for name in conditions:
        exog[name] = [float(row.condition == name) for row in rows]
    log_minutes = np.log([primary_minutes(row) for row in rows])
    parts = [_indicators([row.participant for row in rows]), _indicators([row.task for row in rows])]
    components = models.VCSpec(
        ["person", "task"], [[names] for names, _ in parts], [[matrix] for _, matrix in parts]
    )
    model = models.MixedLM(log_minutes, exog, groups=np.zeros(len(rows)), exog_vc=components)
    fit = next((fit for method in _METHODS if (fit := _fitted(model, method)) is not None), None)
    if fit is None:
        return None
    sds = np.sqrt(np.maximum(fit.vcomp, 0))
    effects = {name: (float(fit.fe_params[name]), float(fit.bse_fe[name])) for name in conditions}
    return MixedFit(effects, float(sds[0]), float(sds[1]), float(np.sqrt(fit.scale)))


def _fitted(model: Any, method: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fit = model.fit(reml=True, method=method)
        except (np.linalg.LinAlgError, ValueError):
            return None
    return fit if fit.converged and np.isfinite(fit.bse_fe).all() else None


def _indicators(names: Sequence[str]) -> tuple[list[str], np.ndarray[Any, Any]]:
    levels = sorted(set(names))
    return levels, np.array([[float(name == column) for column in levels] for name in names])


def mixed_times(data: StudyData) -> Findings:
    """Return the standard deviations of persons and tasks, and conditions' ratios, of solved attempts.

    The standard deviations are of ln minutes; the ratios are exp of the coefficients. The analysis is
    `time-mixed`.
    """
    rows = solved_of(people(data))
    if not rows:
        return Findings()
    found = FindingsBuilder()
    table = found.table("Log times of solved attempts, by persons and tasks", ("term", "estimate"))
    found.note(NOTE)
    persons, tasks = persons_of(rows), tasks_of(rows)
    what = "The spread of persons and tasks"
    needs = (("solved attempts", LEAST_SOLVED_OF_TIMES, len(rows)), ("persons", LEAST_PERSONS, persons))
    if found.too_few(what, *needs, ("tasks", LEAST_TASKS, tasks)):
        return found.findings()
    declared = [condition.id for condition in data.study.conditions_of_people]
    attempted = {row.condition for row in rows}
    conditions = [name for name in declared if name in attempted]
    fit = fit_mixed(rows, conditions[1:])
    if fit is None:
        found.not_estimated(f"{what} (the fit did not converge)", "solved attempts", len(rows) + 1, len(rows))
        return found.findings()
    extent = Number(None, persons=persons, tasks=tasks, rows=len(rows))
    spreads = {"persons": fit.person_sd, "tasks": fit.task_sd, "rest": fit.sigma}
    words = {"persons": "sd of persons", "tasks": "sd of tasks", "rest": "sd of the rest"}
    for name, value in spreads.items():
        table.row(words[name], found.number(f"sd/{name}", replace(extent, value=value, note="descriptive")))
    for name, (effect, error) in fit.effects.items():
        key = f"{name} to {conditions[0]}"
        iid = float(np.exp(effect - Z_95 * error)), float(np.exp(effect + Z_95 * error))
        ratio = replace(extent, value=float(np.exp(effect)), iid=iid, note="Wald, solved only")
        table.row(f"ratio, {key}", found.number(key, ratio))
    return found.findings()
