"""`gistpoint code` on the demo's library."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from gistpoint.tui.cli import main

LIBRARY = str(Path(__file__).parents[3] / "core" / "demo" / "library")


def test_the_table_is_sorted_and_cut(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["code", LIBRARY, "--sort", "degree", "--most", "3"]) == 0
    heading, *rows, more = capsys.readouterr().out.splitlines()
    degrees = [int(row.split("\t")[4]) for row in rows]
    assert heading.split("\t")[0] == "function"
    assert len(rows) == 3
    assert degrees == sorted(degrees, reverse=True)
    assert more.startswith("... 72 more")


def test_csv_holds_every_function_and_no_test(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["code", LIBRARY, "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 75
    assert all(row["function"].startswith("sporvei/") for row in rows)


def test_conditions_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["code", LIBRARY, "--where", "cyclomatic>=4", "--where", "seats", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "gistpoint.code/1"
    assert document["functions"]
    assert all(row["cyclomatic"] >= 4 and "seats" in row["function"] for row in document["functions"])


def test_a_neighbourhood_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["code", LIBRARY, "--around", "Network.reach"]) == 0
    assert "Network.route" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", [["--around", "nothing"], ["--sort", "nope"], ["--where", "nope>=1"]])
def test_mistakes_are_told_in_two_lines(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["code", LIBRARY, *wrong]) == 2
    assert "Traceback" not in capsys.readouterr().err
