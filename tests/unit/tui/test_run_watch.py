"""`gistpoint runs watch` without a terminal."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from screens.review.reviewing import TURNS, mini_run

from gistpoint.core.code.source_text import physical_lines
from gistpoint.sessions.records import limits
from gistpoint.tui import cli
from gistpoint.tui.commands import run_watch
from gistpoint.tui.screens.review.watching import WatchedRows


def failing(path: Path) -> Path:
    mini_run(path, TURNS, task="mean")
    path.write_text(path.read_text("utf-8").replace('"Submitted"', '"RuntimeError"'), "utf-8")
    os.utime(path, (time.time() - 5,) * 2)  # it is not read while it may still be written
    return path


def between_looks(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], object]) -> None:
    """Do something instead of each wait between two checks; after the last, end the watch."""
    left = list(acts)

    def wait(_seconds: float) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    monkeypatch.setattr(run_watch, "_pause", wait)


def test_a_line_is_printed_for_each_piece_of_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(tmp_path / "old.traj.json")
    source = failing(tmp_path.parent / f"{tmp_path.name}-source.traj.json")
    new = tmp_path / "new.traj.json"
    between_looks(monkeypatch, lambda: shutil.copy2(source, new), new.unlink)
    monkeypatch.setattr("gistpoint.sessions.runs.watching._COST", 0)
    assert cli.main(["runs", "watch", str(tmp_path)]) == 130
    first, failed, gone = capsys.readouterr().out.splitlines()
    assert first == "Watching 1 run: 1 failed."
    assert failed.split()[1:] == ["failed", str(new), "mean", "RuntimeError", "8", "steps"]
    assert gone.split()[1:3] == ["gone", str(new)]


def test_json_has_an_object_for_each_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = failing(tmp_path / "old.traj.json")
    assert cli.main(["runs", "watch", str(tmp_path), "--json", "--for", "0.1"]) == 0
    (report,) = map(json.loads, physical_lines(capsys.readouterr().out))
    assert (report["news"], report["state"], report["run"]) == ("new", "failed", str(run))
    assert (report["exit_status"], report["steps"]) == ("RuntimeError", 8)


def test_a_path_that_does_not_exist_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["runs", "watch", str(tmp_path / "none")]) == 2
    assert "There is no file or folder" in capsys.readouterr().err


def test_files_that_are_left_out_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        failing(tmp_path / f"{number}.traj.json")
    monkeypatch.setattr(limits, "MEMBERS", 2)
    monkeypatch.setattr("gistpoint.sessions.runs.watching._COST", 0)
    between_looks(monkeypatch, lambda: shutil.copy2(tmp_path / "0.traj.json", tmp_path / "9.traj.json"))
    assert cli.main(["runs", "watch", str(tmp_path)]) == 130
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0] == "Watching 2 runs: 2 failed."
    assert [line for line in shown.err.splitlines() if "left out" in line] == [
        "gistpoint: 1 file left out: only the first 2 in a folder are read.",
        "gistpoint: 2 files left out: only the first 2 in a folder are read.",
    ]
    assert WatchedRows((), True, 1, (), left_out=2).words == "watching, 1 being written, 2 files left out"


def test_lines_are_refused_to_a_blind_reviewer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["runs", "watch", str(tmp_path), "--blind"]) == 2
    assert "--blind is only for the screen" in capsys.readouterr().err
