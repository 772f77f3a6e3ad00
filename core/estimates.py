"""Figures from few facts: tokens from the length of a text, and the interval of a share."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

CHARACTERS_PER_TOKEN = 3
"""Fewer than English or code has by any tokenizer in use, so that an estimate is too high rather than too low."""
_Z_95 = 1.959963984540054
"""The quantile of the normal distribution between whose negative and itself 95 % lie."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a request to a model may cost at most."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    """The longest reply that room is kept for."""
    cost_usd: float | None = None
    """None without a price."""


def tokens_in(characters: int) -> int:
    """Return an upper estimate of the tokens of a text, whatever the model: a third of its characters, rounded up."""
    return -(-characters // CHARACTERS_PER_TOKEN)


def wilson(count: float, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, `count` of `of`, by Wilson's score (1927, JASA 22); (0, 1) of nothing.

    Unlike the normal interval it stays within 0 and 1, and it holds for few cases and for shares near the ends.
    """
    if of <= 0:
        return 0.0, 1.0
    share, square = count / of, _Z_95 * _Z_95
    centre = share + square / (2 * of)
    half = _Z_95 * sqrt(share * (1 - share) / of + square / (4 * of * of))
    whole = 1 + square / of
    return max(0.0, (centre - half) / whole), min(1.0, (centre + half) / whole)
