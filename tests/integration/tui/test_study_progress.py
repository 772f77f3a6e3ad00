"""The output of `gistpoint study progress`, and the refusals of `join` before a screen opens."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_study import do, failing_judge_for, judge_for, opened, participation, study_at, take_part
from study_folders import Machine

from gistpoint.core.attempts.harness import TaskJudge
from gistpoint.core.study.flags import FLAGS
from gistpoint.core.study.operations import ORGANISER, STUDY, Enrolled, StudyError, StudyOperationKind, person
from gistpoint.core.study.steps import ReadyStep
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.studies.loading import rows_of_people
from gistpoint.sessions.studies.monitoring import Monitor
from gistpoint.tui.cli import main
from gistpoint.tui.commands.study_taking import app_of
from gistpoint.tui.study_opening import open_study
from gistpoint.tui.study_progress import bar, row_words


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


def _watched(
    place: Path,
    judge: Callable[[Task], TaskJudge],
    monkeypatch: pytest.MonkeyPatch,
    printed: Callable[[], str],
) -> tuple[list[str], set[str]]:
    """Return an organiser's view of a study whose only person has completed it, and the attempts' ends."""
    monkeypatch.setenv("GISTPOINT_HOME", str(place / "home"))
    machine, root = Machine.at(place / "home"), place / "study"
    condition = [{"id": "few", "submissions": 1}]
    study_at(root, {"condition": condition, "quality": {"exclude_on": sorted(FLAGS), "reviewers": 0}})
    opened(machine.open(root))
    take_part(participation(machine, root, judge=judge))
    folder = machine.open(root)
    rows = Monitor(folder, hidden=True).read().progress.rows
    seen = [row_words(row, hidden=True) for row in rows]
    for more in ([], ["--json"]):
        assert main(["study", "progress", str(root), *more]) == 0
        seen.append(printed())
    shown = [re.sub(r"\b[0-9a-z]{20}\b", "ATTEMPT", text).replace(str(place), "PLACE") for text in seen]
    return sorted(shown), {row.end for row in rows_of_people(folder)[0]}


def test_nothing_that_is_shown_depends_on_outcomes_while_they_are_hidden(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def printed() -> str:
        return capsys.readouterr().out

    solved, ends = _watched(tmp_path / "solved", judge_for, monkeypatch, printed)
    failed, other_ends = _watched(tmp_path / "failed", failing_judge_for, monkeypatch, printed)
    assert (ends, other_ends) == ({"solved"}, {"submissions_exhausted"})
    assert solved == failed


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
    first = app_of(open_study(str(root)), "P08")
    with pytest.raises(StudyError, match=r"^P08 already takes part in another window"):
        app_of(open_study(str(root)), "P08")
    assert app_of(open_study(str(root)), "P09").part.code == "P09"
    del first
    gc.collect()
    assert app_of(open_study(str(root)), "P08").part.code == "P08"


def test_nobody_joins_without_a_terminal(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "join", str(root), "--code", "P07"]) == 2
    assert "needs a terminal" in capsys.readouterr().err


def test_who_is_not_enrolled_is_refused_in_a_sentence(root: Path) -> None:
    with pytest.raises(StudyError, match=r"^The code 'P99' is not enrolled in this study\."):
        app_of(open_study(str(root)), "P99")
    assert app_of(open_study(str(root)), "P08").part.code == "P08"


def test_bars() -> None:
    assert [bar(number, 4) for number in (0, 1, 3, 4, 9)] == [
        "      0/4", "█▎    1/4", "███▊  3/4", "█████ 4/4", "█████ 9/4",
    ]  # fmt: skip
