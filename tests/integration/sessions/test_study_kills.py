"""A few of the kills that `tests/studies/study_kills.py` makes in hundreds."""

from __future__ import annotations

from pathlib import Path

from study_killing import kill_people


def test_a_participant_who_is_killed_goes_on_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    killed = kill_people(tmp_path, 8, seed=5)
    assert killed.faults == []
    assert killed.kills == 8
