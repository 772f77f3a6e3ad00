"""The agreement of reviewers on which attempts count."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import numpy as np

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.findings import Findings, or_nan
from gistpoint.core.analysis.intervals import Kept, Scale, Units, jackknife
from gistpoint.core.analysis.pooling import LEAST_UNITS_OF_KAPPA
from gistpoint.core.estimates import cohen_kappa
from gistpoint.core.study.data import ReviewDecision, StudyData

NOTE = (
    "A reviewer accepts an attempt, accepts it without its pass, or excludes it: these are three categories"
    " of Cohen's kappa (without weights). Only attempts that both decided on are compared."
)


def agreement_of_reviewers(data: StudyData) -> Findings:
    """Return Cohen's kappa of each pair of reviewers, who accept or exclude attempts (`agreement`).

    Rejecting only the pass is a separate decision: the attempt then counts as not solved.
    """
    by_reviewer: dict[str, dict[str, ReviewDecision]] = defaultdict(dict)
    for review in data.decisions:
        by_reviewer[review.reviewer][review.attempt] = review.decision
    rows = {row.attempt: row for row in data.rows}
    names = {reviewer: f"R{place}" for place, reviewer in enumerate(sorted(by_reviewer), start=1)}
    found = FindingsBuilder()
    columns = ("reviewers", "attempts", "share agreed", "kappa")
    table = found.table("Agreement of reviewers on attempts", columns, NOTE)
    for first, second in combinations(names, 2):
        one, other = by_reviewer[first], by_reviewer[second]
        shared = sorted(one.keys() & other.keys() & rows.keys())
        key = f"{names[first]} and {names[second]}"
        needs = ("attempts that both reviewed", LEAST_UNITS_OF_KAPPA, len(shared))
        if not shared or found.too_few(f"Kappa of {key}", needs):
            continue
        pairs = [(one[attempt], other[attempt]) for attempt in shared]
        agreed = sum(left is right for left, right in pairs)
        if cohen_kappa(pairs) is None:
            found.not_estimated(f"Kappa of {key}", "different decisions", 2, 1)
            continue

        def estimate(kept: Kept, pairs: list[tuple[ReviewDecision, ReviewDecision]] = pairs) -> float:
            return or_nan(cohen_kappa(pairs[place] for place in np.flatnonzero(kept)))

        # The attempts that two reviewers share are clustered by person and task, so the jackknife is over
        # persons and tasks (decision 87).
        units = Units.of([rows[attempt] for attempt in shared])
        kappa = found.number(key, jackknife(units, estimate).number(Scale.DIFFERENCE))
        table.row(key, len(shared), agreed / len(shared), kappa)
    return found.findings()
