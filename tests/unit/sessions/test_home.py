"""A home records which version wrote it, and an older program does not touch a newer program's data."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gistpoint.core.locations import Locations
from gistpoint.sessions.home import MARK, VERSION, require_usable
from gistpoint.tui import cli

JOURNALS = Path(__file__).parents[2] / "data" / "journals"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Locations:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    return Locations.of_user()


def test_a_home_without_a_mark_is_used_and_marked(home: Locations) -> None:
    home.data.mkdir(parents=True)
    require_usable(home, "0.1.0")
    assert json.loads((home.data / MARK).read_bytes()) == {
        "format": "gistpoint.home",
        "version": VERSION,
        "program": "0.1.0",
    }
    require_usable(home, "0.0.9")


def test_nothing_is_made_where_there_is_no_home(home: Locations) -> None:
    require_usable(home, "0.1.0")
    assert not home.data.exists()


@pytest.mark.parametrize(
    "mark",
    [
        b'{"version": %d, "program": "7.0"}' % (VERSION + 1),
        b"\xff",
        b"[]",
        b"{}",
        b'{"version": true}',
        b"[" * 9000,
    ],
)
def test_every_command_refuses_a_newer_home_and_changes_nothing(
    home: Locations, mark: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    home.data.mkdir(parents=True)
    (home.data / MARK).write_bytes(mark)
    for words in (
        ["attempt", "list"],
        ["task", "list"],
        ["admin", "clean"],
        ["demo", "--play", "dear-tickets"],
    ):
        assert cli.main(words) == 2
        error = capsys.readouterr().err
        assert "was written by a newer gistpoint" in error or "is damaged, or a newer" in error
        assert str(home.data) in error
    assert [path.name for path in home.data.parent.rglob("*")] == ["data", MARK]


@pytest.mark.parametrize("place", ["", "data", "config", "cache"])
def test_a_file_in_place_of_a_folder_is_reported(
    home: Locations, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home.data.parent / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("a file")
    assert cli.main(["attempt", "list"]) == 2
    error = capsys.readouterr().err
    assert str(path) in error
    assert "GISTPOINT_HOME" in error


def test_what_earlier_versions_wrote_opens(home: Locations, capsys: pytest.CaptureFixture[str]) -> None:
    """Each journal under `tests/data/journals` was written by an earlier version, in a home without a mark."""
    names = sorted(path.stem for path in JOURNALS.glob("*.jsonl"))
    for name in names:
        folder = home.attempts / name
        folder.mkdir(parents=True)
        shutil.copy(JOURNALS / f"{name}.jsonl", folder / "journal.jsonl")
    assert names
    assert cli.main(["attempt", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["attempts"]
    assert sorted(row["attempt_id"] for row in listed) == names
    for name in names:
        assert cli.main(["attempt", "show", name]) == 0
        assert cli.main(["show", name]) == 0
        assert capsys.readouterr().out
    assert cli.main(["admin", "backup", str(home.data.parent / "b.tar.zst")]) == 0
