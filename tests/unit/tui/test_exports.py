"""Tasks and attempts are exported as files, tasks are deleted, and nothing is lost in the process."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from builders import CHECKS, REPAIR, build_services, build_task
from fakes import FakeClock, FakeRunner

from gistpoint.core.attempts.identity import Enrolment, Role
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.attempts import AttemptStore, OpenAttempt
from gistpoint.sessions.tasks import TaskStore
from gistpoint.tui import cli

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def task(home: Path) -> Task:
    return build_task(home / "data" / "tasks", Mode.DISCOVERY)


def attempt(home: Path, task: Task, participant: str = "", *, code: str = "") -> OpenAttempt:
    services = build_services(home, clock=FakeClock(), runner=FakeRunner(CHECKS))
    store = AttemptStore(home / "data" / "attempts", FakeClock(), "test")
    opened = store.start(task, services.judge_for(task), Enrolment(participant=participant, role=Role.QA))
    opened.attempt.call("list_directory", {})
    if code:
        place = {"func_name": "discount", "file_path": "shop/prices.py"}
        opened.attempt.call("replace_function", {"func_code": code, **place})
    return opened


def test_a_task_goes_out_as_one_file_and_comes_in_as_the_same(
    home: Path, task: Task, capsys: Captured
) -> None:
    for target, made in ((home / "out.tar.zst",) * 2, (home, home / f"{task.short_id}.tar.zst")):
        assert cli.main(["task", "export", task.short_id, "--to", "archive", "-o", str(target)]) == 0
        assert capsys.readouterr().out == f"{made}\n"
        brought = TaskStore(home / "elsewhere").add(made)
        assert (brought.id, read_answer(brought)) == (task.id, read_answer(task))
    assert cli.main(["task", "export", task.short_id, "--to", "pdf", "-o", "x"]) == 2
    assert "archive, harbor" in capsys.readouterr().err
    assert (
        cli.main(["task", "export", task.id, "--to", "archive", "-o", str(home / "no" / "such" / "place")])
        == 2
    )
    assert "can't be written" in capsys.readouterr().err


def test_archives_of_several_tasks_go_into_a_new_folder(home: Path, task: Task, capsys: Captured) -> None:
    other = build_task(home / "data" / "tasks", Mode.REMOVE)
    both = [task.id, other.id]
    assert cli.main(["task", "export", *both, "--to", "archive", "-o", str(home / "new" / "folder")]) == 0
    assert {path.name for path in (home / "new" / "folder").iterdir()} == {
        f"{one.short_id}.tar.zst" for one in (task, other)
    }
    assert cli.main(["task", "export", *both, "--to", "archive", "-o", str(home / "one.tar.zst")]) == 2
    assert "Name a folder." in capsys.readouterr().err


def test_a_task_is_deleted_after_a_question_and_never_under_an_open_attempt(
    home: Path, task: Task, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    opened = attempt(home, task)
    assert cli.main(["task", "delete", task.id, "--yes"]) == 2
    assert "is open" in capsys.readouterr().err
    opened.close()
    assert cli.main(["task", "delete", task.id]) == 2
    assert "Nothing was deleted" in capsys.readouterr().err
    assert cli.main(["task", "delete", task.short_id, "--yes"]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("1 attempt at this task")) == (f"{task.short_id}: deleted\n", 1)
    assert [path for path in (home / "data" / "tasks").iterdir() if path.name != ".deleted"] == []
    assert cli.main(["attempt", "show", opened.attempt.state.attempt_id]) == 0


def test_the_demo_and_a_folder_elsewhere_are_not_deleted(
    home: Path, tmp_path: Path, capsys: Captured
) -> None:
    elsewhere = build_task(tmp_path / "mine")
    demo = build_task(home / "cache" / "demo", Mode.REMOVE, demo=True)
    for name in (str(elsewhere.folder), str(demo.folder)):
        assert cli.main(["task", "delete", name, "--yes"]) == 2
        assert "not one of your own tasks" in capsys.readouterr().err
    assert elsewhere.folder.is_dir()
    assert demo.folder.is_dir()


def test_attempts_are_written_as_tables(
    home: Path, task: Task, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gistpoint.core.attempts.engine.participant_code", str)  # as in earlier versions
    one, two = attempt(home, task, "=p1,\n\u202e"), attempt(home, task, "p2", code=REPAIR)
    for opened in (one, two):
        opened.close()
    assert cli.main(["attempt", "export", "--to", "csv"]) == 0
    rows = {row["attempt_id"]: row for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    assert set(rows) == {one.attempt.state.attempt_id, two.attempt.state.attempt_id}
    row = rows[two.attempt.state.attempt_id]
    assert (row["actor"], row["role"], row["participant"]) == ("person", "qa", "p2")
    assert (row["solved"], row["score"], row["reading_ms"], row["head_kept"]) == ("True", "1.0", "0", "True")
    assert rows[one.attempt.state.attempt_id]["participant"] == "'=p1,\n\u202e"
    place = home / "attempts.json"
    assert (
        cli.main(["attempt", "export", two.attempt.state.attempt_id, "--to", "json", "-o", str(place)]) == 0
    )
    printed = capsys.readouterr().out
    (listed,) = json.loads(place.read_text())["attempts"]
    assert listed["head"] in printed
    assert cli.main(["attempt", "list", "--json"]) == 0
    assert listed in json.loads(capsys.readouterr().out)["attempts"]


def test_an_archive_of_journals_is_read_elsewhere_and_marked_there(
    home: Path, task: Task, capsys: Captured
) -> None:
    opened = attempt(home, task, "p1", code=REPAIR)
    identity = opened.attempt.state.attempt_id
    archive = home / "all.tar.zst"
    assert cli.main(["attempt", "export", "--to", "archive", "-o", str(archive)]) == 0, (
        "also while it is open"
    )
    opened.close()
    assert identity in capsys.readouterr().out
    assert cli.main(["runs", str(archive)]) == 0
    assert "solved" in capsys.readouterr().out
    assert cli.main(["attempt", "export", "--to", "archive"]) == 2
    assert "-o PATH" in capsys.readouterr().err
    assert cli.main(["attempt", "export", "--to", "jsn"]) == 2
    assert "'jsn'. Did you mean 'json'?\nKnown: csv, json, archive, atif" in capsys.readouterr().err


def test_one_attempt_is_written_as_any_recorded_run(home: Path, task: Task, capsys: Captured) -> None:
    opened = [attempt(home, task, name, code=REPAIR) for name in ("p1", "p2")]
    for item in opened:
        item.close()
    identity = opened[0].attempt.state.attempt_id
    for name, said in (
        ("atif", "ATIF-v1.7"),
        ("markdown", "tool uses and 3 submissions left"),
        ("chat", "list_directory"),
    ):
        assert cli.main(["attempt", "export", identity, "--to", name]) == 0
        assert said in capsys.readouterr().out
        assert cli.main(["attempt", "export", "--to", name]) == 2
        assert "but 2 are selected" in capsys.readouterr().err
    assert cli.main(["attempt", "export", identity, "--to", "pdf"]) == 2
    assert "no export format 'pdf'" in capsys.readouterr().err


def test_a_damaged_attempt_is_written_and_told(home: Path, task: Task, capsys: Captured) -> None:
    opened = attempt(home, task)
    opened.close()
    journal = home / "data" / "attempts" / opened.attempt.state.attempt_id / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:2]))
    for name in ("csv", "json"):
        assert cli.main(["attempt", "export", "--to", name]) == 1
        assert "It was cut off" in capsys.readouterr().out


def test_tasks_go_to_another_harness_once_each(home: Path, task: Task, capsys: Captured) -> None:
    target = home / "harbor"
    named = [task.short_id, str(task.folder), str(task.folder.parent)]
    assert (
        cli.main(
            ["task", "export", *named, "--to", "harbor", "-o", str(target), "--agent-hosts", "a.org, b.org"]
        )
        == 0
    )
    assert capsys.readouterr().out == f"{target}\n"
    (made,) = [folder for folder in target.iterdir() if folder.name.endswith(task.short_id)]
    assert (made / "tests" / "test.sh").stat().st_mode & 0o111
    assert (made / "tests" / "verify.pyz").read_bytes().startswith(b"#!")
    assert '"b.org"' in (made / "task.toml").read_text(encoding="utf-8")
    assert cli.main(["task", "export", task.short_id, "--to", "harbor", "-o", str(target)]) == 2
    for url in ("http://[", "ftp://a", "here"):
        asked = ["-o", str(target / "new"), "--tools", "mcp", "--mcp-url", url]
        assert cli.main(["task", "export", task.short_id, "--to", "harbor", *asked]) == 2
    assert "already exists" in capsys.readouterr().err
