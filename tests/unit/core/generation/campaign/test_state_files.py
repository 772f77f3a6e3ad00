"""The state of a campaign: whole lines count, torn ones do not, and one process writes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gistpoint.core.generation.verdicts import (
    CandidateVerdict,
    Cost,
    ProvenCorruption,
    Reason,
    Specimen,
    StateFile,
    StateFileError,
)
from gistpoint.core.tasks.model import Failure, Target

TARGET = Target("a.py", "f", "def f(): 1", "def f(): 2")
KEPT = CandidateVerdict(
    "k1",
    ("a.py::f",),
    Reason.KEPT,
    "",
    {"good": 2},
    Cost((0.25, 0.5), 1, 1, 2.0),
    ProvenCorruption(
        (TARGET,),
        (Failure("t::a", "E 1\x1b\ud800"), Failure("t::b")),
        ("t::c",),
        True,
        {"parts": [{"good": True}]},
    ),
    Specimen((TARGET,), "finished", ("t::a",), False),
)
DROPPED = CandidateVerdict("k2", ("a.py::g",), Reason.HANGS, "it hangs")


def test_what_was_added_is_there_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "x" / "state.jsonl"
    with StateFile(path, {"settings": {"seed": 1}}) as state:
        state.add(KEPT)
        state.add(DROPPED)
        state.add(KEPT)
        state.add_control("k1", {"agrees": True})
    assert len(path.read_text().splitlines()) == 5
    with StateFile(path, {}) as state:
        assert state.verdicts == {"k1": KEPT, "k2": DROPPED}
        assert state.controls == {"k1": {"agrees": True}}


@pytest.mark.parametrize("cut", [1, 5, 60])
def test_torn_last_line_is_cut_off_and_rewritten(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "state.jsonl"
    with StateFile(path, {}) as state:
        state.add(DROPPED)
        state.add(KEPT)
    path.write_bytes(path.read_bytes()[:-cut])
    with StateFile(path, {}) as state:
        assert list(state.verdicts) == ["k2"]
        state.add(KEPT)
    with StateFile(path, {}) as state:
        assert state.verdicts == {"k2": DROPPED, "k1": KEPT}


def test_second_process_is_told_to_wait(tmp_path: Path) -> None:
    path = tmp_path / "state.jsonl"
    with StateFile(path, {}), pytest.raises(StateFileError, match="Another process"):
        StateFile(path, {})


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"type": "verdict", "key": "x"}', "Line 3"),
        ("nonsense", "Line 3"),
        ('{"type": "secret", "secret": "00"}', "Line 3"),
        ('{"type": "secret", "secret": "of nothing"}', "Line 3"),
    ],
)
def test_damage_in_the_middle_is_told_with_its_line(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "state.jsonl"
    with StateFile(path, {}):
        pass
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(StateFileError, match=told) as caught:
        StateFile(path, {})
    assert caught.value.hint


def test_file_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.jsonl"
    path.write_text(json.dumps({"format": "gistpoint.campaign", "version": 99}) + "\n")
    with pytest.raises(StateFileError, match="version 99"):
        StateFile(path, {})
