"""`study solvers`, `correct`, `exclude`, `include` and `export` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from held_studies import Held

from gistpoint.core.study.operations import Exported, ModelsRead, StudyOperationKind
from gistpoint.sessions.exports.study.datapackage import DATAPACKAGE
from gistpoint.tui import cli

Captured = pytest.CaptureFixture[str]
SOLVER = {"name": "model-x", "runs": ["runs/x/*"], "condition": "alone"}


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Held:
    """A study with one attempt of a person and one run of a model, in the user's home."""
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    study = Held.at(tmp_path, solver=[SOLVER])
    study.attempt("P01", study.tasks[1])
    study.model_run(study.tasks[1], "runs/x")
    return study


def _said(capsys: Captured, *arguments: str, code: int = 0) -> dict[str, Any]:
    assert cli.main(["study", *arguments, "--json"]) == code
    values: dict[str, Any] = json.loads(capsys.readouterr().out)
    return values


def _attempt(held: Held) -> str:
    return next(iter(held.folder.attempts())).id


def test_solvers(held: Held, capsys: Captured) -> None:
    root = str(held.folder.root)
    (held.folder.root / "runs" / "x" / "notes.txt").write_text("nothing")
    (solver,) = _said(capsys, "solvers", root)["solvers"]
    assert [(run["task"][:12], run["solved"], bool(run["why_not"])) for run in solver["runs"]] == [
        (held.tasks[1].id[:12], True, False),
        ("", None, True),
    ]
    assert cli.main(["study", "solvers", root]) == 0
    printed = capsys.readouterr().out
    assert "model-x: 2 runs, 1 matched, 1 counted" in printed
    assert "solved" in printed
    held.folder.reload()
    (said,) = held.folder.ledger.study.all(ModelsRead)
    assert said.solver == "model-x"
    assert len(said.runs) == 1


def test_a_solver_without_runs_is_a_negative_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    held = Held.at(tmp_path, solver=[SOLVER])
    (solver,) = _said(capsys, "solvers", str(held.folder.root), code=1)["solvers"]
    assert solver["notes"] == ["'runs/x/*' matches no file below the study's folder."]


def test_correct(held: Held, capsys: Captured) -> None:
    root, attempt = str(held.folder.root), _attempt(held)
    span = ("--from", "0:10", "--to", "25.5", "--as", "idle", "--why", "the telephone")
    values = _said(capsys, "correct", root, attempt[:12], *span)
    assert (values["active_s"], values["active_corrected_s"], values["primary_s"]) == (60.0, 44.5, 44.5)
    assert held.row(attempt).active_corrected_s == 44.5
    writers = {path.name.partition("@")[0] for path in (held.folder.root / "log").iterdir()}
    assert writers == {"P01", "organiser"}
    (written,) = [one for one in held.folder.ledger.operations if one.kind == StudyOperationKind.CORRECTED]
    assert written.reviewer.startswith("P01@")
    for wrong in (("25", "10"), ("0", "1:01"), ("5", "5")):
        arguments = ["study", "correct", root, attempt, "--from", wrong[0], "--to", wrong[1], "--as", "work"]
        assert cli.main([*arguments, "--why", "x"]) == 2
        assert "The span does not fit" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["soon", "1:2:3:4", "-5", "1.2345"])
def test_a_time_that_is_none(held: Held, wrong: str) -> None:
    arguments = [
        "study",
        "correct",
        str(held.folder.root),
        "x",
        f"--from={wrong}",
        "--to",
        "9",
        "--as",
        "idle",
    ]
    with pytest.raises(SystemExit):
        cli.main([*arguments, "--why", "x"])


def test_exclude_and_include(held: Held, capsys: Captured) -> None:
    root, attempt = str(held.folder.root), _attempt(held)
    assert _said(capsys, "exclude", root, attempt, "--why", "fire drill") == {
        "schema": "gistpoint.study-decision/1",
        "attempt": attempt,
        "counted": False,
        "exclusion": "excluded",
    }
    assert not held.row(attempt).counted
    assert cli.main(["study", "include", root, attempt, "--why", "it was the other one"]) == 0
    assert capsys.readouterr().out == f"{attempt}: included, and counts.\n"
    assert held.row(attempt).counted
    assert cli.main(["study", "exclude", root, attempt, "--why", "x"]) == 0
    assert capsys.readouterr().out == f"{attempt}: excluded, and does not count: the organiser excluded it.\n"
    assert cli.main(["study", "exclude", root, "nothing", "--why", "x"]) == 2
    assert "is not a published attempt" in capsys.readouterr().err


def test_export_is_for_after_the_study_was_closed(held: Held, tmp_path: Path, capsys: Captured) -> None:
    root, out = str(held.folder.root), tmp_path / "out"
    assert cli.main(["study", "export", root, "--to", "tidy", "-o", str(out)]) == 2
    assert "--unblind" in capsys.readouterr().err
    assert not out.exists()
    values = _said(capsys, "export", root, "--to", "tidy", "-o", str(out), "--unblind")
    assert (out / "tidy" / DATAPACKAGE).is_file()
    assert len(values["files"]) == 12
    held.folder.reload()
    assert held.folder.ledger.study.has(StudyOperationKind.UNBLINDED)
    (said,) = held.folder.ledger.study.all(Exported)
    assert (said.to, len(said.people)) == (("tidy",), 1)
    held.folder.record("organiser", "study", StudyOperationKind.CLOSED)
    assert cli.main(["study", "export", root, "--to", "tidy", "-o", str(out)]) == 0
    assert capsys.readouterr().out.endswith(f"12 files in {out}\n")


def test_a_public_export_names_nobody(held: Held, tmp_path: Path, capsys: Captured) -> None:
    root, out = str(held.folder.root), tmp_path / "out"
    held.folder.record("organiser", "study", StudyOperationKind.CLOSED)
    assert cli.main(["study", "export", root, "--to", "tidy", "--public", "-o", str(out)]) == 0
    held.folder.reload()
    (said,) = held.folder.ledger.study.all(Exported)
    assert (said.public, len(said.people)) == (True, 1)
    capsys.readouterr()
    assert cli.main(["study", "audit", root, "--public", str(out)]) == 0
    assert capsys.readouterr().out.endswith(f"{out}: clean\n")
    (out / "tidy" / "leak.txt").write_text("of P01")
    (finding, *_) = _said(capsys, "audit", root, "--public", str(out), code=1)["findings"]
    assert finding["where"] == "tidy/leak.txt"
    with pytest.raises(SystemExit):
        cli.main(["study", "export", root, "--to", "tidy", "--public", "--person", "P01", "-o", str(out)])


def test_the_export_of_one_person_is_theirs_at_any_time(held: Held, tmp_path: Path, capsys: Captured) -> None:
    root, out = str(held.folder.root), str(tmp_path / "out")
    assert cli.main(["study", "export", root, "--to", "tidy", "-o", out, "--person", "P01"]) == 0
    assert cli.main(["study", "export", root, "--to", "tidy", "-o", out, "--person", "P02"]) == 2
    assert "Nobody with the code" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["study", "export", root, "--to", "xls", "-o", out])


def test_simulated_attempts_among_others_are_a_mistake(held: Held, tmp_path: Path, capsys: Captured) -> None:
    held.attempt("P02", held.tasks[1], actor="simulated")
    root, out = str(held.folder.root), tmp_path / "out"
    for arguments in (["solvers", root], ["export", root, "--to", "tidy", "-o", str(out), "--unblind"]):
        assert cli.main(["study", *arguments]) == 2
        assert "a study is either simulated or not" in capsys.readouterr().err
    assert not out.exists()
