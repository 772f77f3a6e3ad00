"""`gistpoint glance` on the command line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from builders import build_task
from fakes import FakeClock

from gistpoint.core.corruption.blind import BlindAnswer, BlindItem, ShownVersion, blind_items
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.annotations.glance_reader import BlindlySaid, GlanceReader, GlanceStore
from gistpoint.tui import cli

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    """A task of each mode; ada read the corrupted one here, bob elsewhere."""
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    made = [build_task(Locations.of_user().tasks, mode) for mode in (Mode.REMOVE, Mode.DISCOVERY)]
    here = GlanceStore(Locations.of_user().glances, FakeClock())
    there = GlanceStore(tmp_path / "elsewhere", FakeClock())
    GlanceReader(here, "ada").read(item_of(made[1]), BlindlySaid(BlindAnswer.FAULT, 3), ShownVersion.CORRUPTED)
    GlanceReader(there, "bob").read(item_of(made[1]), BlindlySaid(BlindAnswer.NOTHING), ShownVersion.CORRUPTED)
    return made


def item_of(task: Task) -> BlindItem:
    (item,) = blind_items(task, read_answer(task))
    return item


def test_a_removed_body_is_not_read(tasks: list[Task]) -> None:
    assert blind_items(tasks[0], read_answer(tasks[0])) == ()
    assert item_of(tasks[1]).function == "shop/prices.py::discount"
    assert item_of(tasks[1]).families == ("unknown",)


def test_the_table_has_rates_and_agreement(tasks: list[Task], tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["glance", "--table", "--all", "--merge", str(tmp_path / "elsewhere")]) == cli.DONE
    said = capsys.readouterr()
    assert said.err == "1 operations added, 0 were there already.\n"
    lines = said.out.splitlines()
    assert lines[0].startswith("readers\tby\tname\tread\tseen\tglance rate (95 %)")
    assert f"people\ttask\t{tasks[1].short_id}\t2\t1\t0.50 (0.09 to 0.91)\t0\t0\t-" in lines
    assert "ada\tbob\t1\t0\t0.00\t0\t0\t-" in lines
    assert cli.main(["glance", "--json", tasks[1].short_id]) == cli.DONE
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "gistpoint.glance/1"
    assert {row["by"] for row in found["rates"]} == {"task", "family", "all"}
    assert found["agreement"][0]["agreed"] == 0
    assert cli.main(["glance", "--csv", tasks[1].short_id]) == cli.DONE
    row = next(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert (row["by"], row["rate"], row["untouched_read"]) == ("task", "0.5", "0")


def test_what_was_not_read_is_said(tasks: list[Task], capsys: Captured) -> None:
    assert cli.main(["glance", "--table", tasks[0].short_id]) == cli.DONE
    assert "Nobody has read any of these tasks yet" in capsys.readouterr().out
    assert cli.main(["glance", "--table"]) == cli.MISTAKE
    assert "--all" in capsys.readouterr().err
    assert cli.main(["glance", "--all"]) == cli.MISTAKE
    assert "needs a terminal" in capsys.readouterr().err
