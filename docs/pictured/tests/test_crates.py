"""Crates are filled in the order of picking."""

import pytest
from orchard.crates import Crate, heaviest, pack


@pytest.mark.parametrize(
    ("weights", "loads"),
    [
        ([], [0]),
        ([300], [300]),
        ([300, 700], [1000]),
        ([300, 701], [300, 701]),
        ([500, 500, 500, 500], [1000, 1000]),
        ([900, 200, 800], [900, 1000]),
    ],
)
def test_crates_are_filled_to_their_limit(weights: list[int], loads: list[int]) -> None:
    """No crate holds more than its limit."""
    assert [crate.load for crate in pack(weights, 1000)] == loads


def test_what_fits_into_no_crate_is_refused() -> None:
    """The weight is named."""
    with pytest.raises(ValueError, match="1001 g"):
        pack([1001], 1000)


def test_the_heaviest_crate() -> None:
    """Nothing weighs nothing."""
    assert heaviest(pack([400, 600, 200], 1000)) == 1000
    assert heaviest([]) == 0


def test_an_empty_crate_has_room() -> None:
    """For what is below its limit."""
    assert Crate(10).has_room_for(3)
