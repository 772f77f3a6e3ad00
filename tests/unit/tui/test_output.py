"""What commands print: tables in narrow terminals, and a full disk behind standard output."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gistpoint.tui import cli
from gistpoint.tui.commands.output import print_table

Captured = pytest.CaptureFixture[str]
HEADINGS = ["attempt", "task", "mode", "started", "outcome"]
ROW = ["01m82paj0np8jkawgvfe", "1a1ec2b7ab6b", "discovery", "2026-11-22 22:30", "solved"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("columns", "left_out"), [("200", []), ("60", ["outcome"]), ("8", HEADINGS[1:])])
def test_columns_that_do_not_fit_are_named_and_the_others_readable(
    monkeypatch: pytest.MonkeyPatch, columns: str, left_out: list[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stdout", terminal)
    print_table(HEADINGS, [ROW])
    shown = terminal.getvalue()
    assert (f"Too narrow for: {', '.join(left_out)}." in shown) is bool(left_out)
    if columns != "8":
        assert ROW[0][:11] in shown
        assert ROW[1] in shown
    assert ("solved" in shown) is (not left_out)


def test_a_table_without_rows_has_its_headings(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", terminal)
    print_table(HEADINGS, [])
    assert "attempt" in terminal.getvalue()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_behind_the_output_is_reported(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gistpoint", "task", "list", "--json"]
    with Path("/dev/full").open("wb", buffering=0) as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, env={**os.environ, "GISTPOINT_HOME": str(tmp_path)}
        )
    assert done.returncode == 2
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_home_that_is_a_file_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Captured) -> None:
    home = tmp_path / "home"
    home.write_text("")
    monkeypatch.setenv("GISTPOINT_HOME", str(home))
    assert cli.main(["demo", "remove", "--lines"]) == 2
    assert "can't be used: Not a directory" in capsys.readouterr().err
