"""`solve --gist-settings`: attempts at one gist under several conditions, in one home."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from builders import build_task
from gist_tasks import FakeEntrypoints, build_gist_task

from gistpoint import object_graph
from gistpoint.core.tasks.model import Task
from gistpoint.tui import cli

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    runner = FakeEntrypoints()
    monkeypatch.setattr(object_graph, "build_entrypoint_runner", lambda options, demo=False, **more: runner)
    return tmp_path / "home"


@pytest.fixture
def gist(home: Path) -> Task:
    return build_gist_task(home / "data" / "tasks")


def solved(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, *arguments: str, lines: str = ""
) -> tuple[int, str, str]:
    """Return the exit code, the output, and the attempt's id or the error."""
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    code = cli.main(["solve", "--lines", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err.split()[1] if code < 2 else captured.err


def shown(capsys: Captured, attempt: str) -> dict[str, Any]:
    assert cli.main(["attempt", "show", attempt, "--json"]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_each_condition_has_attempts_of_its_own(
    gist: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (tmp_path / "a.toml").write_text('tools = ["bash"]\nsteps = 7\ngive_test = true\n')
    (tmp_path / "b.json").write_text('{"strategy": "reading"}')
    a, b = (["--gist-settings", str(tmp_path / name)] for name in ("a.toml", "b.json"))
    _, brief, first = solved(monkeypatch, capsys, gist.id, *a, lines="bash ls\n")
    assert "You have 7 steps" in brief
    assert "def test_total" in brief.partition("## The tools")[2]
    assert "Exit status 0" in brief
    assert "[6 steps left]" in brief
    _, brief, second = solved(monkeypatch, capsys, gist.id, *b, lines="bash ls\n")
    assert "You have 50 steps" in brief
    _, _, third = solved(monkeypatch, capsys, gist.id, *a, "--new")
    _, brief, plain = solved(monkeypatch, capsys, gist.id)
    assert "You have 50 steps" in brief
    assert len({first, second, third, plain}) == 4
    # Without --new the newest unfinished attempt under the same settings is continued.
    assert [solved(monkeypatch, capsys, gist.id, *more)[2] for more in (a, b, [])] == [third, second, plain]
    _, brief, again = solved(monkeypatch, capsys, first)
    assert again == first
    assert "You have 7 steps" in brief
    rows = [shown(capsys, attempt) for attempt in (first, second, plain)]
    assert [row["gist_settings"]["tools"] for row in rows] == [["bash"], [], []]
    assert [row["gist_settings"]["strategy"] for row in rows] == ["", "reading", ""]
    assert [row["tool_uses_left"] for row in rows] == [6, 50, 50]
    assert cli.main(["attempt", "show", first]) == 0
    assert 'gist: tools\t["bash"]' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("stratgy = 'tracing'", "Did you mean 'strategy'?"),
        ("tools = ['edit_and_execute']", "execution is off"),
        ("x" * 70_000, "has more than 65536 bytes"),
    ],
)
def test_what_is_wrong_is_told_before_anything_begins(
    gist: Task,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    text: str,
    told: str,
) -> None:
    (tmp_path / "s.toml").write_text(text)
    code, _, error = solved(monkeypatch, capsys, gist.id, "--gist-settings", str(tmp_path / "s.toml"))
    assert (code, told in error) == (2, True)
    assert not (home / "data" / "attempts").exists()


def test_settings_are_for_new_attempts_of_gists(
    gist: Task, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (tmp_path / "s.toml").write_text("steps = 3")
    more = ["--gist-settings", str(tmp_path / "s.toml")]
    _, _, attempt = solved(monkeypatch, capsys, gist.id)
    code, _, error = solved(monkeypatch, capsys, attempt, *more)
    assert (code, "keeps its original settings" in error) == (2, True)
    repair = build_task(home / "data" / "tasks")
    code, _, error = solved(monkeypatch, capsys, repair.id, *more)
    assert (code, "is not a gist" in error) == (2, True)
    code, _, error = solved(monkeypatch, capsys, gist.id, "--gist-settings", str(tmp_path / "nowhere"))
    assert (code, "can't be read" in error) == (2, True)
