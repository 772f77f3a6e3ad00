"""Success against the size and the place of the corrupted function (Breakpoint, section 4.1.2 and figure 4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from gistpoint.core.analysis.findings import (
    Curve,
    Findings,
    FindingsTable,
    Hexagons,
    Number,
    Plot,
    Shortfall,
    Value,
)
from gistpoint.core.analysis.firth import mcfadden, null_log_likelihood
from gistpoint.core.analysis.pooling import LEAST_ROWS_OF_HEXAGONS, keys_note, too_few
from gistpoint.core.analysis.regression import SuccessRegression, likelihood_ratio_p, regress
from gistpoint.core.analysis.samples import FOUND, Pool, StandardScores, measuring, pools, standard_scores
from gistpoint.core.study.data import StudyData

SOLVER_MEAN = "solver's mean"
_CONTOURS = (0.75, 0.95)
_CELLS = tuple[Number | Value, ...]
_COLUMNS = (
    "pool",
    "model",
    "term",
    "b",
    "change of the odds",
    "p (Wald)",
    "p (jackknife)",
    "McFadden R2",
    "AIC",
    "p without the term",
)


def difficulty(data: StudyData) -> Findings:
    """Regress success on each difficulty metric alone and on all together, per mode (Breakpoint, section 4.1.2).

    Each model is made with and without the solver's mean as a covariate: the paper leaves it out of its text and its
    published code has it.
    """
    scores = [standard_scores(data, metric) for metric in data.study.report.difficulty]
    found = measuring(data, FOUND)
    cells: list[_CELLS] = []
    numbers: dict[str, Number] = {}
    plots: list[Plot] = []
    short: list[Shortfall] = []
    for pool in pools(found):
        if not pool.rows or not any(one.of for one in scores):
            continue
        known = pool.with_metrics(scores)
        if (lack := known.lacks("Success against the metrics")) is not None:
            short.append(lack)
            continue
        made = _models(known, scores)
        cells.extend(made.cells)
        numbers.update(made.numbers)
        if len(scores) == 2 and made.joint is not None:
            lack = too_few(f"The map of success ({pool.name})", ("attempts", LEAST_ROWS_OF_HEXAGONS, len(known.rows)))
            if lack is not None:
                short.append(lack)
            else:
                plots.append(_map(known, scores, made.joint))
    by_mode, by_mode_numbers = metric_by_mode(pools(found), scores)
    numbers.update(by_mode_numbers)
    tables = [FindingsTable("Success against difficulty, by mode", _COLUMNS, tuple(cells), NOTE)] if cells else []
    tables += [by_mode] if by_mode is not None else []
    notes = (_scale(scores), keys_note(found)) if tables else ()
    return Findings(numbers, tuple(tables), tuple(plots), tuple(note for note in notes if note), tuple(short))


NOTE = (
    "b is the change of the log odds of success with one standard deviation of the metric, over the repair tasks of "
    "the study. Brackets hold the interval by the two-way jackknife over persons and tasks; beside it Wald's, as the "
    "paper prints it, which takes all attempts as independent. 'p without the term' is the likelihood-ratio test of "
    "leaving the term out. The paper's published code has the solver's mean as a covariate that its text does not "
    "name: both are shown. Where data are separated the fit has Firth's penalty, and R2 and AIC are not given."
)


def _scale(scores: Sequence[StandardScores]) -> str:
    told = "; ".join(one.words for one in scores if one.of)
    return f"Units: {told}." if told else ""


class _Models:
    """The models of one pool."""

    def __init__(self) -> None:
        self.cells: list[_CELLS] = []
        self.numbers: dict[str, Number] = {}
        self.joint: SuccessRegression | None = None


def _models(pool: Pool, scores: Sequence[StandardScores]) -> _Models:
    made = _Models()
    solvers = len(set(pool.solver_of)) > 1
    sizes = sorted({1, len(scores)})
    chosen = [subset for size in sizes for subset in combinations(scores, size)]
    null = null_log_likelihood(np.array([float(row.solved) for row in pool.rows]))
    for with_mean in (False, True) if solvers else (False,):
        for subset in chosen:
            columns = {one.metric: one.values(pool.rows) for one in subset}
            if with_mean:
                columns[SOLVER_MEAN] = list(pool.solver_means)
            model = regress(pool.rows, columns)
            title = " + ".join(columns)
            if model is None:
                made.cells.append((pool.name, title, "not identified: the columns depend on each other", *[None] * 7))
                continue
            if len(subset) == len(scores) and not with_mean:
                made.joint = model
            for term in columns:
                made.cells.append((pool.name, title, *_term(pool, columns, model, term, null)))
                made.numbers[f"{pool.label}/{pool.mode}/{title}/{term}"] = model.coefficient(term)
    return made


def _term(
    pool: Pool, columns: dict[str, list[float]], model: SuccessRegression, term: str, null: float
) -> tuple[Number | Value, ...]:
    fit = model.fit
    plain = not fit.firth
    return (
        term,
        model.coefficient(term),
        model.odds_change(term) if term != SOLVER_MEAN else None,
        model.wald_p(term),
        model.p(term),
        mcfadden(fit.log_likelihood, null) if plain else None,
        fit.aic if plain else None,
        _without(pool, columns, model, term, null) if plain else None,
    )


def _without(
    pool: Pool, columns: dict[str, list[float]], model: SuccessRegression, term: str, null: float
) -> float | None:
    left = {name: values for name, values in columns.items() if name != term}
    smaller = regress(pool.rows, left) if left else None
    if left and (smaller is None or smaller.fit.firth):
        return None
    below = smaller.fit.log_likelihood if smaller is not None else null
    return likelihood_ratio_p(max(0.0, 2 * (model.fit.log_likelihood - below)))


def _map(pool: Pool, scores: Sequence[StandardScores], joint: SuccessRegression) -> Plot:
    """The hexagons of figure 4 with the line of zero log odds and the 75th and 95th percentiles of difficulty."""
    across, up = scores
    x, y = across.values(pool.rows), up.values(pool.rows)
    constant, b_x, b_y = (float(value) for value in joint.fit.coefficients)
    logits = constant + b_x * np.array(x) + b_y * np.array(y)
    # The difficulty that a share of the rows stays below is the log odds that this share stays above.
    levels = [("zero log odds", 0.0)]
    levels += [(f"{share:.0%} of difficulty", float(np.quantile(logits, 1 - share))) for share in _CONTOURS]
    low, high = min(y), max(y)
    lines = []
    for name, level in levels:
        points = [(place, (level - constant - b_x * place) / b_y) for place in np.linspace(min(x), max(x), 60)]
        shown = [(float(a), float(b)) for a, b in points if low <= b <= high] if b_y else []
        if len(shown) > 1:
            lines.append(
                Curve(name, tuple(a for a, _ in shown), tuple(b for _, b in shown), dashed=not name.startswith("zero"))
            )
    return Plot(
        f"bp-4-{pool.label}-{pool.mode}",
        f"Success by {across.metric} and {up.metric}: {pool.name}",
        f"{across.metric} (z)",
        f"{up.metric} (z)",
        (Hexagons(tuple(x), tuple(y), tuple(float(row.solved) for row in pool.rows)), *lines),
        caption="Share solved in each hexagon; lines are contours of the joint regression.",
    )


def metric_by_mode(
    found: Sequence[Pool], scores: Sequence[StandardScores]
) -> tuple[FindingsTable | None, dict[str, Number]]:
    """Test for each pool whether a metric's slope differs between modes (section 4.1.3 says that it does)."""
    together: dict[str, list[Pool]] = defaultdict(list)
    for pool in found:
        together[pool.label].append(pool)
    cells: list[_CELLS] = []
    numbers: dict[str, Number] = {}
    for label, members in together.items():
        for one in scores:
            usable = [pool.with_metrics([one]) for pool in members]
            usable = [pool for pool in usable if pool.lacks("") is None]
            if len(usable) < 2:
                continue
            rows = [row for pool in usable for row in pool.rows]
            values = np.array(one.values(rows))
            modes = np.array([pool.mode for pool in usable for _ in pool.rows])
            columns = {one.metric: values}
            for other in usable[1:]:
                columns[other.mode] = np.asarray(modes == other.mode, dtype=float)
                columns[f"{one.metric} x {other.mode}"] = columns[other.mode] * values
            model = regress(rows, columns)
            if model is None:
                continue
            for other in usable[1:]:
                term = f"{one.metric} x {other.mode}"
                number = model.coefficient(term)
                cells.append((label, term, usable[0].mode, number, model.wald_p(term), model.p(term)))
                numbers[f"{label}/{term}"] = number
    if not cells:
        return None, {}
    columns_told = ("pool", "term", "against", "difference of slopes", "p (Wald)", "p (jackknife)")
    note = "How much the metric's slope differs from that in the mode 'against', in log odds for a standard deviation."
    return FindingsTable("Metric x mode", columns_told, tuple(cells), note), numbers
