"""An attempt whose journal can't be read is named as damaged, without made-up values, wherever it is printed."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from builders import build_task
from fakes import FakeClock
from study_folders import judge_of

from gistpoint.core.attempts.identity import Enrolment
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.exports.registry import NAMES
from gistpoint.sessions.journal import JOURNAL
from gistpoint.tui.cli import main

DAMAGES = {
    "an empty file": lambda data: b"",
    "other text": lambda data: b"not a journal\n",
    "without its start": lambda data: data.partition(b"\n")[2],
    "a changed line": lambda data: data.replace(b"README.md", b"READYOU.m"),
}
_ALWAYS = {"attempt_id", "result", "problem", "events", "head", "branch"}


@pytest.fixture(params=DAMAGES)
def damaged(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    task = build_task(tmp_path / "tasks")
    store = AttemptStore(tmp_path / "home" / "data" / "attempts", FakeClock(), "test")
    opened = store.start(task, judge_of(task), Enrolment())
    opened.attempt.call("read_file", {"file_path": "README.md"})
    opened.close()
    journal = opened.journal.path
    journal.write_bytes(DAMAGES[request.param](journal.read_bytes()))
    return journal.parent.name


def _tells_nothing_false(text: str) -> None:
    assert "1970" not in text
    assert "damaged" in text


def test_the_table(damaged: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attempt", "export", "--to", "csv"]) == 1
    text = capsys.readouterr().out
    _tells_nothing_false(text)
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["attempt_id"] == damaged
    assert row["result"] == "damaged"
    assert row["solved"] == row["solved_by_tests"] == row["score"] == row["submissions"] == ""
    if not row["started"]:
        assert not [name for name, cell in row.items() if cell and name not in _ALWAYS]


def test_json(damaged: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attempt", "export", "--to", "json"]) == 1
    text = capsys.readouterr().out
    _tells_nothing_false(text)
    (row,) = json.loads(text)["attempts"]
    assert (row["result"], row["solved"]) == ("damaged", None)


def test_the_list_and_one_attempt(damaged: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["attempt", "list"])
    assert "1970" not in capsys.readouterr().out
    assert main(["attempt", "show", damaged]) == 1
    _tells_nothing_false(capsys.readouterr().out)


def test_an_archive_keeps_the_journal_as_it_is(
    damaged: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attempt", "export", "--to", "archive", "-o", "out.tar.zst"]) == 1
    assert "1970" not in capsys.readouterr().out
    assert (tmp_path / "out.tar.zst").is_file()
    assert (tmp_path / "home" / "data" / "attempts" / damaged / JOURNAL).is_file()


@pytest.mark.parametrize("format", NAMES)
def test_a_recorded_run(damaged: str, format: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attempt", "export", damaged, "--to", format, "-o", "run.out"]) != 0
    shown = capsys.readouterr()
    assert "1970" not in shown.out
    assert shown.err
    written = Path("run.out")
    assert not written.exists() or "1970-01-01" not in written.read_text("utf-8")
