"""Output that can't be written is never lost in silence."""

from __future__ import annotations

import errno
import io
import json
import sys
from pathlib import Path

import pytest
from machine_faults import CALLS, EXIT_CODES
from small_study import opened, study_at
from study_folders import Machine

from gistpoint.tui.cli import main


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", CALLS)
def test_no_command_does_anything_if_standard_output_is_closed(
    command: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    code = main([*command.split(), *CALLS[command]])
    assert code in EXIT_CODES - {0}
    assert "Standard output is closed" in capsys.readouterr().err
    assert not list(place.iterdir())


class FullDisk(io.StringIO):
    """A standard output on a full disk, which fails when its buffer is written."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["study", "--help"], ["attempt", "list"]])
def test_printing_to_a_full_disk_fails(
    words: list[str], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", FullDisk())
    assert main(words) == 2


def test_a_stream_that_can_only_be_read_counts_as_closed(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("/dev/null").open() as readable:
        monkeypatch.setattr(sys, "stdout", readable)
        assert main(["attempt", "list"]) == 2
    assert "Standard output is closed" in capsys.readouterr().err


def test_codes_that_could_not_be_printed_are_listed_by_another_command(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(Machine.at(place / "home").open(study_at(place / "study")))
    with monkeypatch.context() as full:
        full.setattr(sys, "stdout", FullDisk())
        assert main(["study", "enrol", "study", "--number", "2"]) == 2
    assert "gistpoint study progress study --json" in capsys.readouterr().err
    assert main(["study", "progress", "study", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["not_begun"]) == 3  # one was enrolled before
