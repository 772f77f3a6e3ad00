"""Success against the size and position of the corrupted function (Breakpoint, section 4.1.2, figure 4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np

from gistpoint.core.analysis.building import FindingsBuilder, TableBuilder
from gistpoint.core.analysis.findings import Curve, Findings, Hexagons, Number, Plot, Value
from gistpoint.core.analysis.firth import mcfadden, null_log_likelihood
from gistpoint.core.analysis.pooling import LEAST_ROWS_OF_HEXAGONS, counts_of, too_few
from gistpoint.core.analysis.regression import SuccessRegression, likelihood_ratio_p, regress
from gistpoint.core.analysis.samples import FOUND, Pool, StandardScores, measuring, pools, standard_scores
from gistpoint.core.study.data import StudyData

SOLVER_MEAN = "solver's mean"
_CONTOURS = (0.75, 0.95)
_COLUMNS = (
    "pool",
    "model",
    "term",
    "b",
    "change in the odds",
    "p (Wald)",
    "p (jackknife)",
    "McFadden R2",
    "AIC",
    "p without the term",
)


def difficulty(data: StudyData) -> Findings:
    """Return the regressions of success on each difficulty metric alone and on all together, per mode.

    The model is logistic (Breakpoint, section 4.1.2). If there are several solvers, each model is fitted with
    and without the solver's mean as a covariate: the paper's text omits it and its published code includes
    it.
    """
    scores = [standard_scores(data, metric) for metric in data.study.report.difficulty]
    groups = measuring(data, FOUND)
    found = FindingsBuilder()
    table = found.table("Success against difficulty, by mode", _COLUMNS, NOTE)
    for pool in pools(groups):
        if not pool.rows or not any(one.scores for one in scores):
            continue
        scored = pool.with_metrics(scores)
        if found.too_few(*scored.needs("Success against the metrics")):
            continue
        joint = _add_models(found, table, scored, scores)
        if len(scores) != 2 or joint is None:
            continue
        needs = ("attempts", LEAST_ROWS_OF_HEXAGONS, len(scored.rows))
        if not found.too_few(f"The map of success ({pool.name})", needs):
            found.plot(_map(scored, scores, joint))
    add_metric_by_mode(found, pools(groups), scores)
    found.note(_scale(scores))
    found.settings(groups)
    return found.findings()


NOTE = (
    "b is the change in the log odds of success per standard deviation of the metric, over the"
    " repair tasks of the study. Brackets contain the interval by the two-way jackknife over persons"
    " and tasks; next to it is Wald's, as the paper prints it, which treats all attempts as"
    " independent. 'p without the term' is the likelihood-ratio test of leaving the term out. The"
    " paper's published code has the solver's mean as a covariate that its text does not name: if"
    " there are several solvers, both are shown. If the data, or those without one person or task,"
    " are separated, the fit has Firth's penalty; R2, AIC and 'p without the term' are then not"
    " given."
)


def _scale(scores: Sequence[StandardScores]) -> str:
    units = "; ".join(one.words for one in scores if one.scores)
    return f"Units: {units}." if units else ""


def _add_models(
    found: FindingsBuilder, table: TableBuilder, pool: Pool, scores: Sequence[StandardScores]
) -> SuccessRegression | None:
    """Add the models of one pool, and return the one with all metrics, without the solver's mean.

    None if that model is not identified.
    """
    joint: SuccessRegression | None = None
    sizes = sorted({1, len(scores)})
    chosen = [subset for size in sizes for subset in combinations(scores, size)]
    null = null_log_likelihood(np.array([float(row.solved) for row in pool.rows]))
    solvers = len(set(pool.solver_of))
    for with_mean, subset in product((False, True) if solvers > 1 else (False,), chosen):
        # Models are fitted with and without the solver's mean, which the paper's code includes and its text
        # does not mention (decision 86). People count as a single solver, their group, so they have no mean
        # to adjust for.
        columns = {one.metric: one.values(pool.rows) for one in subset}
        if with_mean:
            columns[SOLVER_MEAN] = list(pool.solver_means)
        model = regress(pool.rows, columns)
        title = " + ".join(columns)
        if model is None:
            table.row(pool.name, title, "not identified: the columns depend on each other", *[None] * 7)
            continue
        if len(subset) == len(scores) and not with_mean:
            joint = model
        for term in columns:
            table.row(pool.name, title, *_term(pool, columns, model, term, null))
            found.number(f"{pool.label}/{pool.mode}/{title}/{term}", model.coefficient(term))
    return joint


def _term(
    pool: Pool, columns: dict[str, list[float]], model: SuccessRegression, term: str, null: float
) -> tuple[Number | Value, ...]:
    fit = model.fit
    # A penalised fit does not maximise the likelihood: R2, AIC and the likelihood-ratio test would be wrong.
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
    reduced_log_likelihood = null
    if left:
        smaller = regress(pool.rows, left)
        # Likelihoods are comparable only if neither model is penalised.
        if smaller is None or smaller.fit.firth:
            return None
        reduced_log_likelihood = smaller.fit.log_likelihood
    return likelihood_ratio_p(max(0.0, 2 * (model.fit.log_likelihood - reduced_log_likelihood)))


def _map(pool: Pool, scores: Sequence[StandardScores], joint: SuccessRegression) -> Plot:
    """Return the hexagons of figure 4, with contours of the joint regression.

    The contours are those of log odds 0 and of the 75th and 95th percentiles of difficulty.
    """
    across, up = scores
    x, y = across.values(pool.rows), up.values(pool.rows)
    constant, b_x, b_y = (float(value) for value in joint.fit.coefficients)
    logits = constant + b_x * np.array(x) + b_y * np.array(y)
    # A percentile of the difficulty is the complementary percentile of the log odds.
    levels = [("zero log odds", 0.0)]
    levels += [(f"{share:.0%} of difficulty", float(np.quantile(logits, 1 - share))) for share in _CONTOURS]
    low, high = min(y), max(y)
    lines = []
    for name, level in levels:
        points = [
            (place, (level - constant - b_x * place) / b_y) for place in np.linspace(min(x), max(x), 60)
        ]
        shown = [(float(a), float(b)) for a, b in points if low <= b <= high] if b_y else []
        if len(shown) > 1:
            lines.append(
                Curve(
                    name,
                    tuple(a for a, _ in shown),
                    tuple(b for _, b in shown),
                    dashed=not name.startswith("zero"),
                )
            )
    return Plot(
        f"bp-4-{pool.label}-{pool.mode}",
        f"Success by {across.metric} and {up.metric}: {pool.name}",
        f"{across.metric} (z)",
        f"{up.metric} (z)",
        (Hexagons(tuple(x), tuple(y), tuple(float(row.solved) for row in pool.rows), "share solved"), *lines),
        caption="Share solved in each hexagon; lines are contours of the joint regression.",
        counts=counts_of(pool.rows),
    )


def add_metric_by_mode(
    found: FindingsBuilder, known: Sequence[Pool], scores: Sequence[StandardScores]
) -> None:
    """Add tests of whether a metric's slope differs between the modes of a pool's solvers (section 4.1.3)."""
    table = found.table(
        "Metric x mode",
        ("pool", "term", "against", "difference of slopes", "p (Wald)", "p (jackknife)"),
        "How much the metric's slope differs from that in the mode 'against', in log odds per standard"
        " deviation.",
    )
    together: dict[str, list[Pool]] = defaultdict(list)
    for pool in known:
        together[pool.label].append(pool)
    for (label, members), one in product(together.items(), scores):
        # One regression with interaction terms gives the difference between slopes an interval and a p value.
        with_metric = (pool.with_metrics([one]) for pool in members)
        usable = [pool for pool in with_metric if too_few(*pool.needs("")) is None]
        if len(usable) < 2:
            continue
        rows = [row for pool in usable for row in pool.rows]
        modes = np.array([pool.mode for pool in usable for _ in pool.rows])
        base, *others = (pool.mode for pool in usable)
        columns = {one.metric: np.array(one.values(rows))}
        for other in others:
            columns[other] = np.asarray(modes == other, dtype=float)
            columns[f"{one.metric} x {other}"] = columns[other] * columns[one.metric]
        model = regress(rows, columns)
        if model is None:
            continue
        for mode in others:
            term = f"{one.metric} x {mode}"
            number = found.number(f"{label}/{term}", model.coefficient(term))
            table.row(label, term, base, number, model.wald_p(term), model.p(term))
