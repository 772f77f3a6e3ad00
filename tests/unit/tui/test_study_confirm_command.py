"""`study confirm`, and its effect on `study solvers` and `progress`, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import build_task
from confirmers import CONTROLLED, ScriptedConfirmer, controlled
from held_studies import Held
from small_study import opened, participation, study_at, take_part
from study_folders import Machine

from gistpoint import object_graph
from gistpoint.core.confirmation.model import Controls, Unconfirmable
from gistpoint.core.study.progress import TaskCoverage
from gistpoint.tui import cli
from gistpoint.tui.base_app import OneScreenApp
from gistpoint.tui.commands import study_beyond
from gistpoint.tui.screens.validate.overview import confirmable_line
from gistpoint.tui.study_progress import columns

Captured = pytest.CaptureFixture[str]


def test_passes_of_people_are_confirmed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(object_graph, "build_confirmer", lambda options, **more: ScriptedConfirmer())
    root, machine = study_at(tmp_path / "study"), Machine.at(tmp_path / "home")
    opened(machine.open(root))
    take_part(participation(machine, root))
    assert cli.main(["study", "confirm", str(root), "--unblind"]) == 0
    assert capsys.readouterr().out.count(": confirmed") == 2
    assert cli.main(["study", "confirm", str(root), "--json", "--unblind"]) == 0
    assert json.loads(capsys.readouterr().out)["attempts"] == []
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "other"))
    assert cli.main(["study", "confirm", str(root), "--unblind"]) == 0
    assert "No pass with a journal on this machine has to be confirmed" in capsys.readouterr().out


def test_an_open_study_shows_nothing_that_depends_on_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """The commands' output is the same whether nobody has passed, somebody has, or all are confirmed."""
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(object_graph, "build_confirmer", lambda options, **more: ScriptedConfirmer())
    root, machine = study_at(tmp_path / "study"), Machine.at(tmp_path / "home")
    opened(machine.open(root))
    part = participation(machine, root)
    shown = []
    for act in (lambda: None, lambda: take_part(part), lambda: None):
        act()
        codes = [cli.main(["study", what, str(root)]) for what in ("confirm", "compare", "read")]
        codes.append(cli.main(["study", "confirm", str(root), "--json"]))
        shown.append((codes, capsys.readouterr()))
    assert shown[0] == shown[1] == shown[2]
    assert "hidden until" in shown[0][1].out
    assert shown[0][1].err.count("outcomes are hidden until it is closed") == 2
    assert cli.main(["study", "confirm", str(root), "--unblind", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["attempts"] == []  # they were confirmed, unseen


def test_another_machine_names_the_passes_that_it_may_not_add_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    root, machine = study_at(tmp_path / "study"), Machine.at(tmp_path / "home")
    opened(machine.open(root))
    take_part(participation(machine, root))
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "other"))
    assert cli.main(["study", "confirm", str(root), "--unblind"]) == 1
    assert "Other machines have the journals of 2 passes" in capsys.readouterr().out


def test_the_runs_of_models_have_both_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    held = Held.at(tmp_path, solver=[{"name": "model-x", "runs": ["runs/x/*"], "condition": "alone"}])
    held.model_run(held.tasks[1], "runs/x")
    cli.main(["study", "solvers", str(held.folder.root)])
    assert "1 of 1 solved; 1 of 1 by the tests alone: 1 not asked" in capsys.readouterr().out


def test_the_progress_hides_both_rates_alike(tmp_path: Path) -> None:
    row = TaskCoverage("t1", "remove", "shop", {"few": 3}, 0, 1, None, 2, {"not asked": 1, "confirmed": 1})
    study = Held.at(tmp_path).folder.study
    shown, hidden = ({column.name for column in columns(study, hidden=hides)} for hides in (False, True))
    assert shown - hidden == {"by tests", "confirmation", "median"}
    assert row.by_tests == 2


@pytest.mark.parametrize(
    ("controls", "words"),
    [
        (None, "not known (the task is older)"),
        (CONTROLLED, "yes, by 1 of 2 tests"),
        (Controls(False, Unconfirmable.RUNS_TEXT), "no (runs_text)"),
    ],
)
def test_validation_says_whether_passes_can_be_confirmed(
    tmp_path: Path, controls: Controls | None, words: str
) -> None:
    task = build_task(tmp_path)
    if controls is not None:
        controlled(task.folder, controls=controls)
    assert [line.text for line in confirmable_line(task)] == [f"passes    can be confirmed: {words}"]


@pytest.mark.parametrize("reader", ["maria k", "organiser", "../x", "a" * 65])
def test_a_reader_whose_answers_could_not_be_saved_reads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, reader: str
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    held = Held.at(tmp_path)
    held.attempt("P0", held.tasks[0])
    monkeypatch.setattr(study_beyond, "require_terminal", lambda *_screen, **_hint: None)
    monkeypatch.setattr(study_beyond, "login_name", lambda: reader)
    monkeypatch.setattr(OneScreenApp, "run_to_exit_code", lambda app: 0)
    command = ["study", "read", str(held.folder.root), "--unblind"]
    assert cli.main([*command, "--reader", "maria-k"]) == 0
    for more in ([], ["--reader", reader]):
        assert cli.main([*command, *more]) == 2
        assert "can't be the pseudonym of a reader" in capsys.readouterr().err
