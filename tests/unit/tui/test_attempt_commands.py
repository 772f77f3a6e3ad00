"""`attempt list`, `show`, `accept` and `reject`: a suspicious pass is visible, and a review settles it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from builders import CHECKS, REPAIR, SUSPICIOUS, build_task
from fakes import FakeRunner

from gistpoint import object_graph
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.locations import Locations
from gistpoint.core.logs import line_hash
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.heads import COPIES, head_path
from gistpoint.sessions.journal import JOURNAL
from gistpoint.tui import cli

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(object_graph, "build_runner", lambda options, demo=False, **more: FakeRunner(CHECKS))
    return build_task(tmp_path / "home" / "data" / "tasks")


def solve(task: Task, code: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> tuple[int, str, str]:
    """Submit code; return the exit code, the final messages and the attempt's id."""
    call = {"tool": "submit_attempt", "arguments": {"func_code": code}}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(call) + "\n"))
    code_of_exit = cli.main(["solve", task.short_id, "--new", "--lines"])
    said = capsys.readouterr().err
    return code_of_exit, said, said.split()[1]


def shown(attempt: str, capsys: Captured) -> tuple[str, dict[str, Any]]:
    assert cli.main(["attempt", "show", attempt]) == 0
    text = capsys.readouterr().out
    assert cli.main(["attempt", "show", attempt, "--json"]) == 0
    return text, json.loads(capsys.readouterr().out)


def test_a_suspicious_pass_is_told_everywhere(
    task: Task, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    status, said, attempt = solve(task, SUSPICIOUS, monkeypatch, capsys)
    assert (status, said.rstrip().rsplit(": ", 2)[1:]) == (
        1,
        ["solved, to be read; suspicious", "gc.collect"],
    )
    _, _, clean = solve(task, REPAIR, monkeypatch, capsys)
    text, values = shown(attempt, capsys)
    assert "outcome\tsolved, to be read" in text
    assert "suspicious\tgc.collect" in text
    assert (values["solved"], values["result"], values["suspicious"]) == (
        False,
        "solved, to be read",
        ["gc.collect"],
    )
    assert values["ended"] == "solved, to be read"
    (submitted,) = values["submitted"]
    assert (submitted["passed"], submitted["solved"], submitted["suspicious"]) == (
        True,
        False,
        ["gc.collect"],
    )
    assert cli.main(["attempt", "list"]) == 0
    listed = capsys.readouterr().out
    assert "solved, to be read" in listed
    assert "1 of 2 solved, 1 more to be read; 2 of 2 by the tests alone: 2 not asked." in listed
    assert cli.main(["attempt", "list", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["solved"], figures["solved_to_be_read"]) == (1, 1)
    assert {row["attempt_id"]: row["solved"] for row in figures["attempts"]} == {attempt: False, clean: True}
    assert {row["budgets"]["submissions"] for row in figures["attempts"]} == {task.budgets.submissions}
    for chosen, count in ((["--last", "1"], 1), (["--until", "2000-01-01"], 0), (["--participant", "x"], 0)):
        assert cli.main(["attempt", "list", "--json", *chosen]) == 0
        assert len(json.loads(capsys.readouterr().out)["attempts"]) == count
    assert cli.main(["attempt", "export", "--to", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == figures
    assert cli.main(["attempt", "export", attempt, "--to", "csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["solved"], row["result"], row["suspicious"]) == (
        "False",
        "solved, to be read",
        '["gc.collect"]',
    )
    assert cli.main(["attempt", "export", attempt, "--to", "markdown"]) == 0
    assert "solved, to be read" in capsys.readouterr().out
    assert cli.main(["runs", attempt_folder(attempt), "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert (run["verdict"], run["suspicious"]) == ("solved, to be read", ["gc.collect"])
    assert cli.main(["show", attempt]) == 0
    assert "solved, to be read" in capsys.readouterr().out


def test_a_damaged_attempt_counts_as_solved_nowhere(
    task: Task, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    _, _, attempt = solve(task, SUSPICIOUS, monkeypatch, capsys)
    journal = Path(attempt_folder(attempt)) / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"suspicious":["gc.collect"]', b'"suspicious":[]'))
    assert cli.main(["attempt", "list"]) == 0
    listed = capsys.readouterr().out
    assert "0 of 1 solved." in listed
    assert "breaks at line" in listed
    assert cli.main(["attempt", "list", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    (row,) = figures["attempts"]
    assert (figures["solved"], figures["solved_to_be_read"]) == (0, 0)
    assert (row["solved"], row["result"], row["ended"]) == (None, "damaged", "damaged")
    assert cli.main(["attempt", "accept", attempt]) == 2
    assert "its outcome is: damaged" in capsys.readouterr().err
    assert cli.main(["runs", attempt_folder(attempt), "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["verdict"] == "unsolved"
    assert cli.main(["show", attempt]) == 0
    assert "This journal is damaged" in capsys.readouterr().out
    for format in ("atif", "markdown", "chat", "html"):
        assert cli.main(["convert", attempt_folder(attempt), "--to", format]) == 1
        assert "This journal is damaged" in capsys.readouterr().err


def attempt_folder(attempt: str) -> str:
    from gistpoint.core.locations import Locations

    return str(Locations.of_user().attempts / attempt)


def test_reviews_settle_it(task: Task, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    _, _, attempt = solve(task, SUSPICIOUS, monkeypatch, capsys)
    assert cli.main(["attempt", "accept", attempt, "--reviewer", "r1", "--why", "It only tidies up."]) == 0
    assert capsys.readouterr().out == f"{attempt}: solved.\n"
    text, values = shown(attempt, capsys)
    assert "reviewed\tr1: accept: It only tidies up." in text
    assert (values["solved"], values["result"]) == (True, "solved")
    assert values["reviews"] == [
        {"reviewer": "r1", "verdict": "accept", "reasons": [], "why": "It only tidies up."}
    ]
    assert cli.main(["attempt", "reject", attempt, "--reviewer", "r2", "--why", "No."]) == 0
    assert capsys.readouterr().out == f"{attempt}: solved, to be read. Reviewers do not agree.\n"
    assert cli.main(["attempt", "reject", attempt[:20], "--reviewer", "r1", "--why", "No, indeed."]) == 0
    assert capsys.readouterr().out == f"{attempt}: solved, rejected.\n"
    _, values = shown(attempt, capsys)
    assert (values["solved"], values["result"], values["ended"]) == (False, "not solved", "solved, rejected")
    assert cli.main(["reviews", "export", "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in physical_lines(capsys.readouterr().out)]
    assert [(row["reviewer"], row["verdict"], row["reasons"]) for row in rows] == [
        ("r1", "exclude", ["shortcut"]), ("r2", "exclude", ["shortcut"]),
    ]  # fmt: skip


def test_a_pass_that_is_not_suspicious_is_accepted_only_against_a_rejection(
    task: Task, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    _, _, attempt = solve(task, REPAIR, monkeypatch, capsys)
    assert cli.main(["attempt", "accept", attempt, "--reviewer", "r1"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"There is nothing to settle: {attempt} is solved" in captured.err
    _, values = shown(attempt, capsys)
    assert (values["result"], values["reviews"]) == ("solved", [])
    assert cli.main(["attempt", "reject", attempt, "--reviewer", "r1", "--why", "Looked up."]) == 0
    assert capsys.readouterr().out == f"{attempt}: solved, rejected.\n"
    assert cli.main(["attempt", "accept", attempt, "--reviewer", "r1"]) == 0
    assert capsys.readouterr().out == f"{attempt}: solved.\n"


def test_what_can_not_be_settled_is_refused(
    task: Task, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    wrong = REPAIR.replace("100", "99")
    _, _, attempt = solve(task, wrong, monkeypatch, capsys)
    for command in (["accept", attempt], ["reject", attempt, "--why", "No."]):
        assert cli.main(["attempt", *command]) == 2
        assert "has no pass to settle" in capsys.readouterr().err
    assert cli.main(["attempt", "reject", attempt, "--why", " "]) == 2
    with pytest.raises(SystemExit):
        cli.main(["attempt", "reject", attempt])
    assert cli.main(["attempt", "accept", "nothing"]) == 2


def test_an_attempt_says_what_it_is_for_and_whose_it_is(
    task: Task, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert cli.main(["solve", task.short_id, "--lines", "--role", "qa", "--participant", "p-1"]) == 1
    _, values = shown(capsys.readouterr().err.split()[1], capsys)
    assert (values["role"], values["participant"]) == ("qa", "p-1")


def test_who_kept_the_head_is_told_and_one_rewritten_by_hand_reported(
    task: Task, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    _, _, attempt = solve(task, REPAIR, monkeypatch, capsys)
    text, values = shown(attempt, capsys)
    assert "its head was kept here from the start" in text
    assert (values["head_kept"], values["head_kept_by"]) == (True, "this machine")
    places = Locations.of_user()
    (places.proofs / COPIES).rename(places.proofs / "aside")
    head = head_path(places.attempts / attempt)
    signed = json.loads(head.read_bytes())
    for more, words, by in (
        ({"key": "0" * 16}, "kept by another machine", "another machine"),
        ({"key": "", "tag": ""}, "kept before heads were authenticated", "unsigned"),
    ):
        head.write_text(json.dumps(signed | more))
        text, values = shown(attempt, capsys)
        assert words in text
        assert (values["head_kept"], values["head_kept_by"]) == (False, by)
    (places.proofs / "aside").rename(places.proofs / COPIES)
    journal = places.attempts / attempt / JOURNAL
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:2]))
    head.write_text(json.dumps(signed | {"seq": 2, "sha256": line_hash(lines[1])}))
    assert cli.main(["attempt", "show", attempt]) == 1
    assert "does not have the tag of this machine" in capsys.readouterr().out
    assert cli.main(["solve", attempt, "--lines"]) != 0
    assert journal.read_bytes() == b"".join(lines[:2])
