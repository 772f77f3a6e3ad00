"""Estimates recover the parameters of a simulated study; tests/studies/study_recovery.py prints them all."""

from __future__ import annotations

import pytest
from studies.study_recovery import coverage, recovered, study

from gistpoint.core.study.simulating import Behaviour


def test_every_parameter_is_found_within_two_standard_errors() -> None:
    behaviour = Behaviour()
    found = {one.name: one for one in recovered(study(20, 30, 30, 1, behaviour), behaviour)}
    assert set(found) == {
        "share solved",
        "time ratio",
        "slope of code_lines",
        "slope of harmonic_out",
        "sigma of log time",
        "horizon, minutes",
    }
    assert {name: one.distance(2.09) for name, one in found.items()} == {
        name: pytest.approx(0, abs=2) for name in found
    }


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    found = coverage(5, Behaviour())
    for name in ("share solved", "time ratio"):
        assert len(found[name]) == 5
        assert sum(found[name]) >= 4
