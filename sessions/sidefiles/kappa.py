"""How far two raters agree beyond chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable


def cohen_kappa(pairs: Iterable[tuple[Hashable, Hashable]]) -> float | None:
    """Return Cohen's kappa of two raters' categories for the same units, -1 to 1.

    (p_o - p_e) / (1 - p_e), with p_o the share of units that they agree on and p_e the sum over the categories of the
    product of both raters' shares. None without units, and where chance agreement is certain (p_e = 1).
    Source: J. Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20(1),
    1960, equation 1.
    """
    units = list(pairs)
    if not units:
        return None
    total = len(units)
    left, right = Counter(one for one, _ in units), Counter(other for _, other in units)
    agreed = sum(one == other for one, other in units) * total
    chance = sum(count * right[category] for category, count in left.items())
    # Both in units of 1 / total squared, so that certainty is told exactly.
    return None if chance == total * total else (agreed - chance) / (total * total - chance)
