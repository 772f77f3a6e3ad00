"""Seconds in a few characters, rounded before their form is chosen."""

from __future__ import annotations

import pytest

from gistpoint.tui.time_drawing import seconds


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""), (0, "0s"), (0.35, "0.35s"), (9.994, "9.99s"), (9.996, "10.0s"), (99.94, "99.9s"),
        (99.96, "1:40"), (125, "2:05"),
    ],
)  # fmt: skip
def test_seconds_are_drawn_in_a_few_characters(value: float | None, shown: str) -> None:
    assert seconds(value) == shown
