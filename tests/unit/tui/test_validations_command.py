"""`gistpoint task validate` and `validations` on the command line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from builders import build_task
from fakes import FakeClock

from gistpoint.core.locations import Locations
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.annotations.validations import TaskVerdict
from gistpoint.sessions.annotations.validator import ValidationStore, Validator
from gistpoint.tui import cli
from gistpoint.tui.commands import validations

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    """Two tasks; ada judged both on this machine, bob elsewhere."""
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    made = [build_task(Locations.of_user().tasks, mode) for mode in (Mode.REMOVE, Mode.DISCOVERY)]
    ada = Validator(ValidationStore(Locations.of_user().validations, FakeClock()), "ada")
    bob = Validator(ValidationStore(tmp_path / "elsewhere", FakeClock()), "bob")
    for validator, verdicts in ((ada, "accept reject_leak"), (bob, "accept accept")):
        for task, verdict in zip(made, verdicts.split(), strict=True):
            validator.verdict(task.id, TaskVerdict(verdict))
    bob.comment(made[1].id, "\x1b[2Jfine")
    return made


def test_the_state_of_a_set(tasks: list[Task], tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["task", "validations", "--merge", str(tmp_path / "elsewhere")]) == cli.DONE
    said = capsys.readouterr()
    assert said.err == "3 operations added (bob 3), 0 were already known.\n"
    lines = said.out.splitlines()
    assert lines[0] == "task\ttitle\tmode\tsource\tstanding\tada\tbob\tcomments\truns"
    assert (
        f"{tasks[0].short_id}\tshop · discount removed\tremove\tshop 1.0\taccepted\taccept\taccept\t0\t0"
        in lines
    )
    row = f"{tasks[1].short_id}\tshop · find one, 4 fail\tdiscovery\tshop 1.0\tdisputed\treject_leak\taccept\t1\t0"
    assert row in lines
    assert lines[-1] == "2 tasks: 1 accepted, 1 disputed"
    assert cli.main(["task", "validations", tasks[0].id[:20], "--json"]) == cli.DONE
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "gistpoint.validations/1"
    assert [(row["task"], row["standing"]) for row in found["tasks"]] == [(tasks[0].id, "accepted")]


def test_a_decision_has_a_column_and_gives_the_state(
    tasks: list[Task], tmp_path: Path, capsys: Captured
) -> None:
    merged = ["task", "validations", "--merge", str(tmp_path / "elsewhere")]
    assert cli.main(merged) == cli.DONE
    store = ValidationStore(Locations.of_user().validations, FakeClock())
    Validator(store, "cleo").adjudicate(tasks[1].id, TaskVerdict.REJECT_LEAK)
    capsys.readouterr()
    assert cli.main(["task", "validations"]) == cli.DONE
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "task\ttitle\tmode\tsource\tstanding\tada\tbob\tcleo\tdecided\tcomments\truns"
    assert lines[-1] == "2 tasks: 1 accepted, 1 rejected"
    (row,) = [line for line in lines if line.startswith(tasks[1].short_id)]
    assert row.split("\t")[4:9] == ["rejected", "reject_leak", "accept", "-", "reject_leak by cleo"]
    assert cli.main(["task", "validations", "--json"]) == cli.DONE
    rows = {row["task"]: row for row in json.loads(capsys.readouterr().out)["tasks"]}
    assert (rows[tasks[1].id]["decided"], rows[tasks[1].id]["decided_by"]) == ("reject_leak", "cleo")
    assert rows[tasks[0].id]["decided"] is None


def test_agreement_and_export(tasks: list[Task], tmp_path: Path, capsys: Captured) -> None:
    folder = str(Locations.of_user().tasks)
    arguments = ["task", "validations", folder, "--merge", str(tmp_path / "elsewhere" / "bob.jsonl")]
    assert cli.main([*arguments, "--agreement", "ada", "bob"]) == cli.DONE
    out = capsys.readouterr().out
    assert "ada and bob: 2 tasks judged by both" in out
    assert "nine verdicts\t1\t0.500\t0.000" in out
    assert f"{tasks[1].short_id}\treject_leak\taccept" in out
    assert cli.main([*arguments, "--agreement", "ada", "bob", "--json"]) == cli.DONE
    agreed = json.loads(capsys.readouterr().out)["agreement"]
    assert (agreed["both_judged"], agreed["agreed"], agreed["kappa"]) == (2, 1, 0)
    assert cli.main(["task", "validations", "--export", "csv"]) == cli.DONE
    found = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert sorted((row["reviewer"], row["kind"]) for row in found) == [
        ("ada", "verdict"), ("ada", "verdict"), ("bob", "comment"), ("bob", "verdict"), ("bob", "verdict"),
    ]  # fmt: skip
    assert cli.main(["task", "validations", "--agreement", "ada", "carol"]) == cli.MISTAKE
    assert "There are validations by: ada, bob." in capsys.readouterr().err


def test_mistakes_are_told(tasks: list[Task], tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["task", "validate"]) == cli.MISTAKE
    assert "needs a terminal" in capsys.readouterr().err
    assert cli.main(["task", "validations", "nonsense"]) == cli.MISTAKE
    assert "There is no task" in capsys.readouterr().err
    (Locations.of_user().validations / "x.jsonl").write_text("nonsense\n")
    assert cli.main(["task", "validations"]) == cli.DONE
    assert "x.jsonl, line 1 is not an operation" in capsys.readouterr().err


def test_without_tasks_to_validate_the_demo_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path))
    monkeypatch.setattr(validations, "require_terminal", lambda *_screen, **_hint: None)
    assert cli.main(["task", "validate"]) == cli.MISTAKE
    said = capsys.readouterr().err
    assert "There are no tasks to validate." in said
    assert "`gistpoint demo` adds four" in said
