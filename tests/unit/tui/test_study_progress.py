"""`gistpoint study progress` as printed, and what `join` refuses before a screen opens."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest
from small_study import do, opened, participation, study_at, take_part
from study_folders import Machine

from gistpoint.core.study.operations import ORGANISER, STUDY, Enrolled, StudyError, StudyOperationKind, person
from gistpoint.core.study.steps import ReadyStep
from gistpoint.tui.cli import main
from gistpoint.tui.commands.study_taking import app_of
from gistpoint.tui.study_progress import bar


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study that one of three people has completed, all on this machine."""
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    place = study_at(
        tmp_path / "study", {"design": {"tasks_per_person": 2, "per_source": 0, "target_per_task": 2}}
    )
    machine = Machine.at(tmp_path / "home")
    folder = opened(machine.open(place))
    for code in ("P08", "P09"):
        folder.record(code, person(code), StudyOperationKind.ENROLLED, Enrolled())
    take_part(participation(machine, place))
    return place


def printed(capsys: pytest.CaptureFixture[str], *line: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["study", "progress", *line, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_outcomes_are_hidden_until_the_study_is_closed(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(capsys, str(root))
    assert (found["people"]["enrolled"], found["people"]["consented"], found["people"]["done"]) == (3, 1, 1)
    assert sum(task["covered"]["few"] for task in found["tasks"]) == 2
    assert (found["open_cells"], found["people_needed"]) == (4, 3)
    assert not any({"solved", "median_s"} & task.keys() for task in found["tasks"])
    assert main(["study", "progress", str(root)]) == 0
    text = capsys.readouterr().out
    assert "need: 3 more people to close all gaps (4 open cells)" in text
    assert text.count("hidden until closed") == 4
    folder = Machine.at(root.parent / "home").open(root)
    assert not folder.ledger.study.has(StudyOperationKind.UNBLINDED)
    folder.record(ORGANISER, STUDY, StudyOperationKind.CLOSED)
    assert sum(task["solved"] for task in printed(capsys, str(root))["tasks"]) == 2


def test_who_looks_before_is_told_by_the_log(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, str(root), "--unblind")
    assert sum(task["solved"] for task in found["tasks"]) == 2
    assert Machine.at(root.parent / "home").open(root).ledger.study.has(StudyOperationKind.UNBLINDED)


def test_who_is_at_work_is_told_with_what_a_return_takes(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine.at(root.parent / "home")
    part = participation(machine, root, "P08")
    while not isinstance(step := part.step(), ReadyStep):
        do(part, step)
    assert "at_work" in (found := printed(capsys, str(root)))
    assert [(one["code"], one["ended"], one["given"], one["assignment"]) for one in found["at_work"]] == [
        ("P08", 0, 2, "")
    ]
    taken = part.begin(step)
    part.close(taken)
    work = printed(capsys, str(root))["at_work"][0]
    given = step.assignment
    assert (work["assignment"], work["task"], work["attempt"]) == (given.id, given.task, taken.step.attempt)
    assert main(["study", "progress", str(root)]) == 0
    text = capsys.readouterr().out
    assert f"at work  P08  0 of 2 done, at {given.task[:12]} since " in text
    assert (
        main(["study", "return", str(root), text.partition("assignment ")[2].split()[0], "--why", "it broke"])
        == 0
    )
    assert printed(capsys, str(root))["at_work"][0]["assignment"] == ""


def test_a_part_is_open_in_one_window_alone(root: Path) -> None:
    first = app_of(str(root), "P08")
    with pytest.raises(StudyError, match=r"^P08 already takes part in another window"):
        app_of(str(root), "P08")
    assert app_of(str(root), "P09").part.code == "P09"
    del first
    gc.collect()
    assert app_of(str(root), "P08").part.code == "P08"


def test_nobody_joins_without_a_terminal(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "join", str(root), "--code", "P07"]) == 2
    assert "needs a terminal" in capsys.readouterr().err


def test_who_is_not_enrolled_is_refused_in_a_sentence(root: Path) -> None:
    with pytest.raises(StudyError, match=r"^The code 'P99' is not enrolled in this study\."):
        app_of(str(root), "P99")
    assert app_of(str(root), "P08").part.code == "P08"


def test_bars() -> None:
    assert [bar(number, 4) for number in (0, 1, 3, 4, 9)] == [
        "      0/4", "█▎    1/4", "███▊  3/4", "█████ 4/4", "█████ 9/4",
    ]  # fmt: skip
