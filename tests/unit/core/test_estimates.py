"""Estimates from few observations."""

from __future__ import annotations

import pytest

from gistpoint.core.estimates import tokens_in, wilson


def test_tokens_are_rounded_up() -> None:
    assert [tokens_in(characters) for characters in (0, 1, 3, 4)] == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [
        (3, 4, 0.3006, 0.9544),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (50, 100, 0.4038, 0.5962),
        (0, 0, 0.0, 1.0),
    ],
)
def test_wilson_s_interval(count: int, of: int, low: float, high: float) -> None:
    """The figures are from `statsmodels.stats.proportion.proportion_confint(method="wilson")`."""
    assert wilson(count, of) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))
