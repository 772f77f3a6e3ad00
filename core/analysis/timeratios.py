"""Ratios of the times to solve, by censored log-normal regression.

An attempt that did not solve its task is censored at its time; exp(b) is the ratio of times for one unit of
x. Conditions and positions are assigned by chance: their model has random tasks and persons
(`crossed_times`). People's answers, such as forecasts, depend on the task: their model is ln t = task + b x +
sigma e, within tasks. In that model, tasks with a single attempt or without a solved one carry no information
about b and are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.censored import CensoredFit, fit_censored
from gistpoint.core.analysis.censored_refits import CensoredRows
from gistpoint.core.analysis.crossed_times import effects_on_times
from gistpoint.core.analysis.evaluation import answer
from gistpoint.core.analysis.findings import Findings, Number, Shortfall
from gistpoint.core.analysis.intervals import (
    Z_95,
    Floats,
    Integers,
    Kept,
    Scale,
    Spread,
    Units,
    jackknife_of_fits,
)
from gistpoint.core.analysis.pooling import (
    LEAST_SOLVED_OF_TIMES,
    LEAST_TASKS,
    people_of,
    primary_minutes,
    solved_of,
    too_few,
    under,
)
from gistpoint.core.analysis.samples import StandardScores, standard_scores
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.measuring import COMPETING
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.text import plural

OF_MODEL = "model"
"""The label of an interval with the standard error of the model itself."""
FAMILIARITY, FORECAST = "knew_code", "forecast_minutes"
POSITION = "position in the order"
"""The name of the regression's column for the position in a person's order; no condition can have it."""
GIVING_UP = (
    "Giving up counts here like being stopped by a limit at that moment, as if these people would have"
    " continued as quickly as the others. They would have been slower; `time-km` shows how much that can"
    " matter."
)

NOTE = (
    "Below 1, the time to solve is shorter. All are censored log-normal regressions: an attempt that was not"
    " solved took at least its time. A ratio of conditions compares all attempts under the first with all"
    " under the second; tasks and persons are random effects, and the position in the person's order is a"
    " covariate. A task or a person with only one of the conditions counts too. Familiarity and forecast are"
    " compared within tasks, that is, between persons at the same task (each task has a constant), with the"
    " condition and the position as covariates; tasks with a single attempt, or without a solved one, are"
    " left out. A metric is the same for all attempts at a task, so it is compared across tasks, with the"
    " mode and the condition as covariates. 'Solved only, within tasks' compares the solved attempts at the"
    " same task under the two conditions by least squares. Papers print such ratios; they are too close to"
    " 1, because people who take too long drop out. 'Given the forecast' compares solved attempts across"
    " tasks, with the logarithm of the forecast as the covariate."
)
"""The note below the table of ratios, which explains the comparison in each row."""


@dataclass(frozen=True)
class TimeRegression:
    """The effects of a regression of ln t, with their variances."""

    names: tuple[str, ...]
    spread: Spread
    """The estimates and jackknife variances of the effects, on the log scale."""
    errors: Floats
    """Standard errors by the model's own likelihood."""
    sigma: float
    solved: int

    label: str = "i.i.d."
    """The label of Wald's interval."""

    def ratio(self, name: str) -> Number:
        """Return exp(b) of an effect with its jackknife interval, and Wald's interval as `iid`."""
        place = self.names.index(name)
        middle, half = float(self.spread.estimate[place]), Z_95 * float(self.errors[place])
        iid = float(np.exp(middle - half)), float(np.exp(middle + half))
        return replace(self.spread.number(Scale.LOG, place, iid=iid), iid_label=self.label)


def people(data: StudyData) -> tuple[AttemptRow, ...]:
    """Return the countable rows of people that have a primary time above 0."""
    return tuple(row for row in people_of(data.rows) if primary_minutes(row) > 0)


def given_up(rows: Iterable[AttemptRow]) -> tuple[str, ...]:
    """Return a tuple with the note on giving up in regressions of times; empty if nobody gave up."""
    return (GIVING_UP,) if any(row.censored == COMPETING for row in rows) else ()


def untimed(data: StudyData) -> tuple[str, ...]:
    """Return a tuple with the note on attempts that have no time; empty if each has one."""
    missing = sum(primary_minutes(row) <= 0 for row in people_of(data.rows))
    if not missing:
        return ()
    return (
        "Left out of the analyses of times, because their time is missing:"
        f" {plural(missing, 'counted attempt')}.",
    )


def log_minutes(rows: Iterable[AttemptRow]) -> Floats:
    """Return the natural logarithms of the primary times in minutes."""
    return np.log([primary_minutes(row) for row in rows])


def regress_times(
    what: str,
    rows: Sequence[AttemptRow],
    columns: Mapping[str, ArrayLike],
    *,
    within_tasks: bool = True,
    contrasts: Mapping[str, Mapping[str, float]] | None = None,
    interval: bool = True,
) -> TimeRegression | Shortfall:
    """Return the regression of ln t on columns by maximum likelihood.

    The regression is within tasks; without `within_tasks`, it has a single constant. `contrasts` maps the
    name of each further linear combination to the weights of the effects in it. The variances are the two-way
    jackknife's (`intervals.jackknife`); the variance for single attempts is the likelihood's own, scaled by
    the degrees of freedom used up by the tasks.

    Returns a shortfall if fewer than ten attempts are solved, or if the effects of the columns can't be
    separated or fitted. Without `interval`, no refits are made and there is no interval.
    """
    y, solved = log_minutes(rows), np.array([row.solved for row in rows], dtype=bool)
    x = np.column_stack([np.asarray(values, dtype=float) for values in columns.values()])
    units = Units.of(rows)
    # Tasks without information about the effects would only add parameters.
    kept = _informative(units.tasks, solved) if within_tasks else np.ones(len(rows), dtype=bool)
    if short := too_few(what, ("solved attempts", LEAST_SOLVED_OF_TIMES, int((solved & kept).sum()))):
        return short
    if not _are_separable(x[kept], units.tasks[kept] if within_tasks else None):
        return Shortfall(what, "task attempted in more than one of the ways compared", 1, 0)
    sums = _sums(tuple(columns), contrasts or {})
    count = x.shape[1]

    def fitted(chosen: Kept, start: CensoredFit | None = None) -> CensoredFit | None:
        # If a person is left out, a task may have only one attempt left, or no solved attempt.
        if within_tasks:
            chosen = chosen & _informative(units.tasks, solved, chosen)
        tasks = units.tasks[chosen] if within_tasks else np.zeros(int(chosen.sum()), dtype=np.int64)
        return fit_censored(_with_tasks(x[chosen], tasks), y[chosen], solved[chosen], start)

    full = fitted(np.ones(len(rows), dtype=bool))
    if full is None:
        return Shortfall(what, "solved attempt in each of the ways compared", 1, 0)
    # The likelihood estimates a parameter per task: its variances are scaled by the lost degrees of freedom.
    free = 1 - len(full.coefficients) / int(kept.sum())
    covariance = sums @ full.covariance[:count, :count] @ sums.T / free

    # Only the persons and tasks of the rows used are left out in turn, because others would count as units
    # without influencing the estimate.
    used = tuple(row for row, keep in zip(rows, kept, strict=True) if keep)
    tasks = units.tasks[kept] if within_tasks else np.zeros(int(kept.sum()), dtype=np.int64)
    places = np.unique(tasks, return_inverse=True)[1].ravel()
    data = CensoredRows(x[kept], y[kept], solved[kept], places)

    def refitted(chosen: Kept) -> Floats:
        if within_tasks:
            chosen = np.array([_informative(tasks, data.solved, one) for one in chosen])
        effects, constants = full.coefficients[:count], full.coefficients[count:]
        return data.refits(chosen, effects, constants, full.sigma) @ sums.T

    estimate = sums @ full.coefficients[:count]
    spread = jackknife_of_fits(Units.of(used), estimate, refitted, np.diag(covariance), interval=interval)
    names = (*columns, *(contrasts or {}))
    return TimeRegression(
        names, spread, np.sqrt(np.diag(covariance)), full.sigma / free**0.5, int((solved & kept).sum())
    )


def _sums(names: tuple[str, ...], contrasts: Mapping[str, Mapping[str, float]]) -> Floats:
    extra = [[weights.get(name, 0.0) for name in names] for weights in contrasts.values()]
    return np.vstack([np.eye(len(names)), *(np.array([line]) for line in extra)])


def _informative(tasks: Integers, solved: Kept, chosen: Kept | None = None) -> Kept:
    """Return which rows belong to a task that has a solved attempt and at least one more."""
    considered = np.ones(len(tasks), dtype=bool) if chosen is None else chosen
    size = int(tasks.max(initial=-1)) + 1
    counts = np.bincount(tasks[considered], minlength=size)
    successes = np.bincount(tasks[considered & solved], minlength=size)
    return np.asarray(considered & (counts[tasks] > 1) & (successes[tasks] > 0))


def _with_tasks(x: Floats, tasks: Integers) -> Floats:
    _, place = np.unique(tasks, return_inverse=True)
    return np.column_stack([x, np.eye(int(place.max(initial=-1)) + 1)[place]])


def _are_separable(x: Floats, tasks: Integers | None) -> bool:
    """Return whether the columns vary within tasks and are linearly independent there."""
    if not len(x):
        return False
    places = np.zeros(len(x), dtype=np.int64) if tasks is None else np.unique(tasks, return_inverse=True)[1]
    counts = np.bincount(places)
    means = np.column_stack([np.bincount(places, weights=column) / counts for column in x.T])
    return bool(np.linalg.matrix_rank(x - means[places]) == x.shape[1])


# Conditions and people's answers


def contrasts_of(data: StudyData) -> tuple[tuple[str, str], ...]:
    """Return the pairs (condition, reference) of people's conditions.

    A declared contrast of two conditions comes first and reads "the first against the second"; every other
    condition is paired with the first of the study.
    """
    names = [condition.id for condition in data.study.conditions_of_people]
    declared = data.study.protocol.primary_contrast
    first = [(declared[0], declared[1])] if len(declared) == 2 and set(declared) <= set(names) else []
    others = [(name, names[0]) for name in names[1:]]
    return tuple(first + [pair for pair in others if set(pair) not in map(set, first)])


def position_column(rows: Sequence[AttemptRow]) -> dict[str, ArrayLike]:
    """Return the centred place in the person's order as the column `POSITION`.

    Empty if a place is unknown, or if all places are equal.
    """
    places = [row.position for row in rows if row.position is not None]
    if len(places) < len(rows) or len(set(places)) < 2:
        return {}
    return {POSITION: np.array(places, dtype=float) - float(np.mean(places))}


def condition_ratio(
    rows: Sequence[AttemptRow], condition: str, reference: str, *, interval: bool = True
) -> TimeRegression | Shortfall:
    """Return the ratio of the time under `condition` to the time under `reference`.

    The regression has random tasks and persons, and the position in the person's order as a covariate
    (`crossed_times`); an attempt counts even if its task was attempted under one condition only. Returns a
    shortfall if fewer than ten attempts are solved, or if the effect can't be separated or fitted. Without
    `interval`, no refits are made and there is no interval.
    """
    pair = under(rows, condition, reference)
    what = f"The ratio of times, {condition} to {reference},"
    if not pair:
        return Shortfall(what, "solved attempts", LEAST_SOLVED_OF_TIMES, 0)
    columns: dict[str, ArrayLike] = {condition: [float(row.condition == condition) for row in pair]}
    return regress_across(what, pair, {**columns, **position_column(pair)}, interval=interval)


def regress_across(
    what: str,
    rows: Sequence[AttemptRow],
    columns: Mapping[str, ArrayLike],
    *,
    contrasts: Mapping[str, Mapping[str, float]] | None = None,
    interval: bool = True,
) -> TimeRegression | Shortfall:
    """Return the regression of ln t on columns that were assigned by chance, with random tasks and persons.

    `contrasts` is as for `regress_times`. Returns a shortfall if fewer than ten attempts are solved, or if
    the effects can't be separated or fitted. Without `interval`, no refits are made and there is no interval.
    """
    y, solved = log_minutes(rows), np.array([row.solved for row in rows], dtype=bool)
    if short := too_few(what, ("solved attempts", LEAST_SOLVED_OF_TIMES, int(solved.sum()))):
        return short
    x = np.column_stack([np.asarray(values, dtype=float) for values in columns.values()])
    sums = _sums(tuple(columns), contrasts or {})
    # The constant is not an effect of interest.
    with_constant = np.column_stack([np.ones(len(rows)), x])
    weights = np.column_stack([np.zeros(len(sums)), sums])
    found = None
    if _are_separable(x, None):
        found = effects_on_times(Units.of(rows), with_constant, y, solved, weights, interval=interval)
    if found is None and np.ptp(y) == 0:
        return Shortfall(what, "different times", 2, 1)
    if found is None:
        return Shortfall(what, "solved attempt in each of the ways compared", 1, 0)
    names = (*columns, *(contrasts or {}))
    return TimeRegression(names, found.spread, found.errors, found.sigma, int(solved.sum()), OF_MODEL)


def time_ratios(data: StudyData) -> Findings:
    """Return the ratios of times between conditions, and per unit of each covariate (`time-ratio`).

    The covariates are familiarity with the code, the forecast (per doubling), and the declared difficulty
    metrics (per standard deviation over the tasks).
    """
    rows = people(data)
    found = FindingsBuilder()
    table = found.table(
        "Ratios of times",
        ("effect", "ratio of times", "sigma of ln t", "solved", "solved only, within tasks"),
        NOTE,
    )

    def add(
        key: str, words: str, fit: TimeRegression | Shortfall, name: str, solved_alone: Number | None = None
    ) -> None:
        regression = found.estimated(fit)
        if regression is None:
            return
        ratio = found.number(key, regression.ratio(name))
        table.row(words, ratio, regression.sigma, regression.solved, solved_alone)
        found.numbers_of(key, {"solved only": solved_alone})

    for condition, reference in contrasts_of(data):
        name = f"{condition} to {reference}"
        fit = condition_ratio(rows, condition, reference)
        solved_alone = None if isinstance(fit, Shortfall) else solved_only(rows, condition, reference)
        add(name, name, fit, condition, solved_alone)
        form = randomised_form(rows, condition, reference)
        if form is not None:
            found.number(f"{name}/given the forecast", form)
            table.row(f"{name}, solved only, given the forecast", form, None, None, None)
    for item, (words, turned) in _ANSWERS.items():
        answers = _positive_answers(rows, item)
        if answers:
            column = [turned(value) for _, value in answers]
            answering = [row for row, _ in answers]
            add(
                item,
                words,
                _given_conditions(f"The ratio of times for {words}", answering, item, column),
                item,
            )
    for metric in data.study.report.difficulty:
        scores = standard_scores(data, metric)
        measured = [row for row in rows if metric in data.tasks[row.task].metrics]
        if measured:
            words = f"one standard deviation of {metric}"
            add(metric, words, _of_metric(f"The ratio of times for {words}", measured, scores), metric)
            found.note(f"Unit: {scores.words}." if scores.scores else "")
    found.note(*given_up(rows), *untimed(data))
    return found.findings()


_ANSWERS: Mapping[str, tuple[str, Callable[[float], float]]] = {
    FAMILIARITY: ("each point of familiarity with the code (1 to 5)", float),
    FORECAST: ("twice the forecast", np.log2),
}
"""The words for one unit and the transformation of each item whose effect is estimated."""


def _positive_answers(rows: Iterable[AttemptRow], item: str) -> list[tuple[AttemptRow, float]]:
    answers = ((row, answer(row, item)) for row in rows)
    return [(row, value) for row, value in answers if value is not None and value > 0]


def _given_conditions(
    what: str, rows: Sequence[AttemptRow], item: str, column: Sequence[float]
) -> TimeRegression | Shortfall:
    columns: dict[str, ArrayLike] = {item: column, **indicators(rows, "condition"), **position_column(rows)}
    return regress_times(what, rows, columns)


def indicators(rows: Sequence[AttemptRow], name: str) -> dict[str, ArrayLike]:
    """Return an indicator column for each value of an attribute except the first, which is the reference."""
    values = [str(getattr(row, name)) for row in rows]
    return {
        f"{name} {other}": [float(value == other) for value in values] for other in sorted(set(values))[1:]
    }


def _of_metric(what: str, rows: Sequence[AttemptRow], scores: StandardScores) -> TimeRegression | Shortfall:
    # The scale is that of the regressions of success, so that a standard deviation is the same throughout the
    # report.
    rows = [row for row in rows if row.task in scores.scores]
    if not rows:
        return Shortfall(what, "different values of the metric", 2, 1)
    columns: dict[str, ArrayLike] = {scores.metric: scores.values(rows)}
    columns |= indicators(rows, "mode") | indicators(rows, "condition")
    # A metric is constant within a task: a regression within tasks could not estimate its effect.
    return regress_times(what, rows, columns, within_tasks=False)


def solved_only(rows: Sequence[AttemptRow], condition: str, reference: str) -> Number | None:
    """Return the ratio by least squares of ln t on solved attempts within tasks, with HC3 errors.

    None if no task was solved under both conditions, or if there are too few solved attempts.
    """
    solved = solved_of(under(rows, condition, reference))
    tasks = Units.of(solved).tasks
    kept = [
        row
        for row, keep in zip(solved, _informative(tasks, np.ones(len(solved), dtype=bool)), strict=True)
        if keep
    ]
    helped = np.array([[float(row.condition == condition)] for row in kept]).reshape(-1, 1)
    tasks = Units.of(kept).tasks
    if not _are_separable(helped, tasks):
        return None
    return _least_squares(kept, _with_tasks(helped, tasks), "solved attempts only, HC3 errors")


def randomised_form(rows: Sequence[AttemptRow], condition: str, reference: str) -> Number | None:
    """Return the ratio of times of solved attempts from ln t = a + b x + c ln forecast, with HC3 errors.

    This is the form in which METR analysed its randomised trial of developers (2025). None if fewer than ten
    solved attempts have a forecast above 0, if all of those are under one condition, or if the forecast can't
    be separated from the condition or the constant, as when all forecasts are equal.
    """
    pair = solved_of(under(rows, condition, reference))
    answers = _positive_answers(pair, FORECAST)
    answering = [row for row, _ in answers]
    helped = [float(row.condition == condition) for row in answering]
    if len(answering) < LEAST_SOLVED_OF_TIMES or len(set(helped)) < 2:
        return None
    x = np.column_stack([helped, np.ones(len(answering)), np.log([value for _, value in answers])])
    return _least_squares(answering, x, "solved attempts only, given the forecast, HC3 errors")


def _least_squares(rows: Sequence[AttemptRow], x: Floats, note: str) -> Number | None:
    """Return exp(b) of the first column by least squares of ln t, with HC3 errors.

    The interval is Wald's with HC3 (MacKinnon & White 1985, Journal of Econometrics 29) and treats attempts
    as independent. None if the columns are linearly dependent or there are too few rows.
    """
    if len(rows) <= x.shape[1] or np.linalg.matrix_rank(x) < x.shape[1]:
        return None
    y = log_minutes(rows)
    inner = np.linalg.inv(x.T @ x)
    b = inner @ x.T @ y
    # HC3 divides each residual by 1 minus its leverage, so it is undefined at a leverage of 1.
    leverage = np.einsum("ij,jk,ik->i", x, inner, x)
    units = Units.of(rows)
    number = Number(
        float(np.exp(b[0])), persons=units.person_count, tasks=units.task_count, rows=len(rows), note=note
    )
    if (leverage > 1 - 1e-9).any():
        return number
    pulled = x * ((y - x @ b) / (1 - leverage))[:, None]
    half = Z_95 * float(np.sqrt((inner @ pulled.T @ pulled @ inner)[0, 0]))
    return (
        replace(number, iid=(float(np.exp(b[0] - half)), float(np.exp(b[0] + half))))
        if half > 1e-9
        else number
    )


def ratios_by_mode(data: StudyData) -> Findings:
    """Return the ratio of times in each mode, and the quotient of each pair of modes' ratios (`time-mode`).

    Empty with fewer than two modes.
    """
    rows = people(data)
    found = FindingsBuilder()
    table = found.table(
        "Ratios of times by mode",
        ("condition", "mode", "ratio"),
        "The ratio of the time under the first condition to that under the second, in each mode, from one"
        " censored log-normal regression of all attempts under either, with random tasks and persons, and"
        " the mode and the position in the person's order as covariates. A mode needs tasks that were"
        " attempted under both conditions. `A over B` is the ratio of the two ratios: below 1, the condition"
        " shortens the times more in A than in B.",
    )
    if len({row.mode for row in rows}) < 2:
        return Findings()
    for condition, reference in contrasts_of(data):
        name = f"{condition} to {reference}"
        pair = under(rows, condition, reference)
        modes: list[str] = []
        for mode, tasks in _modes_with_both(pair, condition, reference).items():
            needs = ("tasks attempted in both conditions", LEAST_TASKS, tasks)
            if not found.too_few(f"The ratio of times, {name}, {mode},", needs):
                modes.append(mode)
        # Both ratios come from one fit, so that their difference has its own interval.
        contrasts = {f"{one} over {other}": {one: 1.0, other: -1.0} for one, other in _pairs(modes)}
        regression = found.estimated(_by_mode(name, pair, condition, modes, contrasts))
        if regression is None:
            continue
        for effect in (*modes, *contrasts):
            table.row(name, effect, found.number(f"{name}/{effect}", regression.ratio(effect)))
    found.note(*given_up(rows), *untimed(data))
    return found.findings()


def _by_mode(
    name: str,
    pair: Sequence[AttemptRow],
    condition: str,
    modes: Sequence[str],
    contrasts: Mapping[str, Mapping[str, float]],
) -> TimeRegression | Shortfall:
    """Return one regression of times on the condition in each mode, so that modes can be contrasted.

    Returns a shortfall if fewer than ten attempts are solved, or if the effects can't be separated or fitted.
    """
    what = f"The ratio of times by mode, {name},"
    rows = [row for row in pair if row.mode in modes]
    if not rows:
        return Shortfall(what, "solved attempts", LEAST_SOLVED_OF_TIMES, 0)
    ways = [(row.condition, row.mode) for row in rows]
    columns: dict[str, ArrayLike] = {
        mode: [float(way == (condition, mode)) for way in ways] for mode in modes
    }
    # Without effects of the modes, a difference between modes would appear as a difference between
    # conditions.
    covariates = {**indicators(rows, "mode"), **position_column(rows)}
    return regress_across(what, rows, {**columns, **covariates}, contrasts=contrasts)


def _modes_with_both(rows: Sequence[AttemptRow], condition: str, reference: str) -> dict[str, int]:
    """Return, for each mode, how many tasks were attempted under both conditions and solved at least once."""
    counts = dict.fromkeys(sorted({row.mode for row in rows}), 0)
    by_task: dict[str, list[AttemptRow]] = defaultdict(list)
    for row in rows:
        by_task[row.task].append(row)
    for attempts in by_task.values():
        attempted_in = {row.condition for row in attempts}
        if attempted_in == {condition, reference} and solved_of(attempts):
            counts[attempts[0].mode] += 1
    return counts


def _pairs(modes: Sequence[str]) -> list[tuple[str, str]]:
    return [(one, other) for place, other in enumerate(modes) for one in modes[place + 1 :]]
