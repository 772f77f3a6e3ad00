"""Revenue counts full crates at their price."""

import pytest
from orchard import revenue


@pytest.mark.parametrize(
    ("weights", "expected"),
    [([], 0), ([400], 800), ([400, 600], 1800), ([400, 601], 2002), ([500, 500, 500], 2800)],
)
def test_full_crates_are_cheaper(weights: list[int], expected: int) -> None:
    """A tenth is taken off."""
    assert revenue(weights, 1000, 2000) == expected
