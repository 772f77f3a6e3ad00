"""`gistpoint attempt list` shows the newest attempts, or the requested ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import build_services, build_task
from fakes import FakeClock

from gistpoint.core.attempts.identity import MODEL, Enrolment, Role
from gistpoint.sessions import attempts as stored_attempts
from gistpoint.tui import cli
from gistpoint.tui.commands import attempt_list, output

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of six attempts, newest first: one per day, of two participants and a model, at two tasks."""
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    clock = FakeClock()
    services = build_services(tmp_path / "home", clock=clock)
    tasks = [build_task(services.locations.tasks), build_task(services.locations.tasks, library="other")]
    model = Enrolment(MODEL, Role.QA, solver={"kind": "chat", "model": "Glossy-7b", "host": "here"})
    people = [Enrolment(participant="p07"), Enrolment(participant="p08"), model]
    found = []
    for number in range(6):
        opened = services.start(tasks[number % 2], enrolment=people[number % 3])
        found.append(opened.journal.path.parent.name)
        opened.close()
        clock.advance(24 * 3_600_000)
    return found[::-1]


def listed(capsys: Captured, *words: str) -> list[str]:
    assert cli.main(["attempt", "list", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    return [line.split("\t")[0] for line in lines[1:] if "\t" in line]


def test_filters_and_limits(ids: list[str], capsys: Captured) -> None:
    assert listed(capsys) == ids
    assert listed(capsys, "--last", "2") == ids[:2]
    assert listed(capsys, "--participant", "p08") == [ids[1], ids[4]]
    assert listed(capsys, "--model", "glossy") == [ids[0], ids[3]]
    assert cli.main(["attempt", "list"]) == 0
    days = [line.split("\t")[6][:10] for line in capsys.readouterr().out.splitlines()[1:7]]
    assert listed(capsys, "--since", days[2]) == ids[:3]
    assert listed(capsys, "--until", days[2]) == ids[2:]
    assert listed(capsys, "--since", days[4], "--until", days[1], "--participant", "p07") == [ids[2]]
    assert listed(capsys, "--since", days[2], "--last", "1") == ids[:1]


def test_a_terminal_shows_the_newest_and_says_so(
    ids: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr(attempt_list, "NEWEST", 4)
    monkeypatch.setenv("COLUMNS", "240")
    assert cli.main(["attempt", "list"]) == 0
    shown = capsys.readouterr().out
    assert [name in shown for name in ids] == [True] * 4 + [False] * 2
    assert "Only the newest 4 are listed" in shown
    assert cli.main(["attempt", "list", "--all"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ids)
    assert "Only the newest" not in shown


def test_a_long_list_on_a_terminal_has_a_line_for_each_attempt(
    ids: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr(output, "_MEASURED", 2)
    monkeypatch.setenv("COLUMNS", "200")
    assert cli.main(["attempt", "list", "--all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["attempt", "task", "mode"]
    assert [line.split()[0] for line in lines[2 : 2 + len(ids)]] == ids
    assert max(map(len, lines[: 2 + len(ids)])) <= 200
    monkeypatch.setenv("COLUMNS", "30")
    assert cli.main(["attempt", "list", "--all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines[: 2 + len(ids)])) <= 30
    assert [line.split()[0].rstrip("…") == name[:11] for line, name in zip(lines[2:], ids, strict=False)]
    assert any(line.startswith("Too narrow for: mode, ") for line in lines)


def test_json_reads_only_the_journals_of_the_requested_attempts(
    ids: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    whole = stored_attempts._summary
    monkeypatch.setattr(
        stored_attempts, "_summary", lambda folder: (read.append(folder.name), whole(folder))[1]
    )
    assert cli.main(["attempt", "list"]) == 0
    read.clear()
    capsys.readouterr()
    assert cli.main(["attempt", "list", "--json", "--last", "2"]) == 0
    rows = json.loads(capsys.readouterr().out)["attempts"]
    assert [row["attempt_id"] for row in rows] == read == ids[:2]


def test_what_cant_be_found_or_read_is_said(ids: list[str], capsys: Captured) -> None:
    assert cli.main(["attempt", "list", "--participant", "p99"]) == 0
    assert capsys.readouterr().out == "There are no such attempts yet.\n"
    assert cli.main(["attempt", "list", "--since", "yesterday"]) == 2
    assert "'yesterday' is not a date." in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["attempt", "list", "--last", "3", "--all"])
