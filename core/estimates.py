"""Computes basic estimates: the tokens of text, intervals of shares, and the agreement of two raters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from math import sqrt

CHARACTERS_PER_TOKEN = 3
"""Less than any tokeniser's average for English or code, so that estimates err on the high side."""
_Z_95 = 1.959963984540054
"""The 97.5% quantile of the standard normal distribution."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The tokens and the cost that are reserved for a request to a model before it is sent."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    """The number of tokens of the context reserved for the reply."""
    cost_usd: float | None = None
    """The highest possible cost in US dollars; None without a price."""


def tokens_in(characters: int) -> int:
    """Return an upper estimate of a string's tokens for any model: a third of its characters, rounded up."""
    return -(-characters // CHARACTERS_PER_TOKEN)


def wilson(count: float, of: int) -> tuple[float, float]:
    """Return Wilson's 95% score interval of the share `count` / `of`; (0, 1) without trials.

    Wilson 1927, JASA 22. Unlike the normal interval it stays within 0 and 1, and it is accurate for small
    samples and for shares near the ends.
    """
    if of <= 0:
        return 0.0, 1.0
    share, square = count / of, _Z_95 * _Z_95
    centre = share + square / (2 * of)
    half = _Z_95 * sqrt(share * (1 - share) / of + square / (4 * of * of))
    whole = 1 + square / of
    return max(0.0, (centre - half) / whole), min(1.0, (centre + half) / whole)


def cohen_kappa(pairs: Iterable[tuple[Hashable, Hashable]]) -> float | None:
    """Return Cohen's kappa of two raters' categories for the same units, from -1 to 1.

    (p_o - p_e) / (1 - p_e), with p_o the share of units with agreement and p_e the sum over categories of the
    product of both raters' shares. The result is None without units, or if agreement by chance is certain
    (p_e = 1).

    Source: J. Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement
    20(1), 1960, equation 1.
    """
    units = list(pairs)
    if not units:
        return None
    total = len(units)
    left, right = Counter(one for one, _ in units), Counter(other for _, other in units)
    agreed = sum(one == other for one, other in units) * total
    chance = sum(count * right[category] for category, count in left.items())
    # Both are in units of 1 / total squared, so that the test for certainty is exact.
    return None if chance == total * total else (agreed - chance) / (total * total - chance)
