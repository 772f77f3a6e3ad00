"""`gistpoint glance` on the command line."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from builders import build_task
from fakes import FakeClock
from scripted_endpoint import Answer, completion, endpoint
from study_folders import declare

from gistpoint.core.corruption.blind import BlindAnswer, BlindItem, ShownVersion, blind_items
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.annotations.glance_reader import BlindReply, GlanceReader, GlanceStore
from gistpoint.tui import cli

Captured = pytest.CaptureFixture[str]
KEY = "sk-0123456789-secret"


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    """A task of each repair mode; ada read the corrupted version on this machine, bob elsewhere."""
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    made = [build_task(Locations.of_user().tasks, mode) for mode in (Mode.REMOVE, Mode.DISCOVERY)]
    here = GlanceStore(Locations.of_user().glances, FakeClock())
    there = GlanceStore(tmp_path / "elsewhere", FakeClock())
    GlanceReader(here, "ada").read(item_of(made[1]), BlindReply(BlindAnswer.FAULT, 3), ShownVersion.CORRUPTED)
    GlanceReader(there, "bob").read(item_of(made[1]), BlindReply(BlindAnswer.NOTHING), ShownVersion.CORRUPTED)
    return made


def item_of(task: Task) -> BlindItem:
    (item,) = blind_items(task, read_answer(task))
    return item


def test_a_removed_body_is_not_read(tasks: list[Task]) -> None:
    assert blind_items(tasks[0], read_answer(tasks[0])) == ()
    assert item_of(tasks[1]).function == "shop/prices.py::discount"
    assert item_of(tasks[1]).families == ("unknown",)


def test_a_file_that_is_no_set_is_refused(tasks: list[Task], tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "notes.txt").write_text("first\nsecond\n")
    assert cli.main(["glance", str(tmp_path / "notes.txt"), "--table"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("There is no task")) == ("", 2)


def test_a_merge_of_something_else_is_refused(tasks: list[Task], tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "notes.txt").write_text("first\n")
    assert cli.main(["glance", "--all", "--table", "--merge", str(tmp_path / "notes.txt")]) == 2
    said = capsys.readouterr()
    assert (said.out, "notes.txt" in said.err) == ("", True)


def test_the_table_has_rates_and_agreement(tasks: list[Task], tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["glance", "--table", "--all", "--merge", str(tmp_path / "elsewhere")]) == cli.DONE
    said = capsys.readouterr()
    assert said.err == "1 operation added (bob 1), 0 were already known.\n"
    lines = said.out.splitlines()
    assert lines[0] == "readers\tby\tname\tseen\trate\t95%\talarms\trate\t95%\tdoubtful"
    assert f"people\ttask\t{tasks[1].short_id}\t1 of 2\t0.50\t0.09-0.91\t0 of 0\t-\t-\t0" in lines
    assert "ada\tbob\t1\t0\t0.00\t0\t0\t-" in lines
    assert cli.main(["glance", "--json", tasks[1].short_id]) == cli.DONE
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "gistpoint.glance/1"
    assert {row["by"] for row in found["rates"]} == {"task", "family", "all"}
    assert found["agreement"][0]["agreed"] == 0
    assert cli.main(["glance", "--csv", tasks[1].short_id]) == cli.DONE
    row = next(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert (row["by"], row["rate"], row["untouched_read"]) == ("task", "0.5", "0")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--table", "--judge-model", "m"), "--judge-model makes new readings"),
        (("--max-cost", "1"), "--max-cost is only for a reading model"),
        (("--judge-model", ""), "--judge-model is empty"),
    ],
)
def test_options_of_a_reading_model_are_not_passed_over(
    arguments: tuple[str, ...], said: str, capsys: Captured
) -> None:
    assert cli.main(["glance", "--all", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_what_was_not_read_is_said(tasks: list[Task], capsys: Captured) -> None:
    assert cli.main(["glance", "--table", tasks[0].short_id]) == cli.DONE
    assert "Nobody has read any of these tasks yet" in capsys.readouterr().out
    assert cli.main(["glance", "--table"]) == 2
    assert "--all" in capsys.readouterr().err
    assert cli.main(["glance", "--all"]) == 2
    assert "needs a terminal" in capsys.readouterr().err


def said(answer: str, line: int) -> Answer:
    words = json.dumps({"answer": answer, "line": line, "words": "{ because }"})
    return completion(f"Let me see {{x}}.\n```json\n{words}\n```")


def seen(request: dict[str, Any], _: Mapping[str, str]) -> Answer:
    """Reply like a model that notices the plus in place of the minus."""
    shown = request["messages"][-1]["content"]
    assert "shop" not in shown  # it names neither the library nor the task
    return said("fault", 3) if "+ price" in shown else said("nothing", 2)


def test_a_model_reads_each_function_many_times_and_goes_on_where_it_was(
    tasks: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    command = ["glance", "--all", "--judge-model", "m", "--times", "6"]
    with endpoint(seen) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        assert cli.main([*command[:-1], "4"]) == cli.DONE
        assert cli.main(command) == cli.DONE
        assert len(served.requests) == 6
    captured = capsys.readouterr()
    assert "4 of 4 answers" in captured.err
    assert "2 of 2 answers" in captured.err
    line = next(line for line in captured.out.splitlines()[::-1] if line.startswith("model m\tall"))
    assert line.split("\t")[3:8] == ["3 of 3", "1.00", "0.44-1.00", "0 of 3", "0.00"]
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    readings = (
        GlanceStore(Locations.of_user().glances, FakeClock()).book.state(tasks[1].id, "model m").readings
    )
    assert {reading.words for reading in readings} == {"{ because }"}
    assert {len(reading.prompt_sha256) for reading in readings} == {64}
    assert cli.main(["glance", "--json", "--all"]) == cli.DONE
    readers = {
        row["readers"]: row["read"]
        for row in json.loads(capsys.readouterr().out)["rates"]
        if row["by"] == "all"
    }
    assert readers == {"people": 1, "model m": 3}  # counted separately


@pytest.mark.parametrize(
    ("steps", "requests", "why"),
    [
        ([completion("I can't say.")], 3, "contains no answer: I can't say"),
        ([Answer("no", status=401)], 1, "gistpoint: "),
        ([said("fault", 3)], 1, "no price is known"),
    ],
)
def test_a_model_that_is_of_no_use_is_not_asked_on(
    tasks: list[Task],
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    steps: list[Answer],
    requests: int,
    why: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    cap = ["--max-cost", "0.5"] if "price" in why else []
    with endpoint(*steps) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        assert cli.main(["glance", tasks[1].short_id, "--judge-model", "m", *cap]) == cli.NEGATIVE
        assert len(served.requests) == requests
    assert why in capsys.readouterr().err


def test_tasks_are_listed_and_chosen_by_their_glance_rate(
    tasks: list[Task], tmp_path: Path, capsys: Captured
) -> None:
    assert cli.main(["task", "list"]) == cli.DONE
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("\t")[-1] == "glance_rate"
    assert {line.split("\t")[0]: line.split("\t")[-1] for line in lines[1:]} == {
        tasks[0].short_id: "",
        tasks[1].short_id: "1.00",
    }
    for query, found in (
        ("glance_rate > .5", [tasks[1]]),
        ("glance_rate < .5", []),
        ("mode:discovery failing>=1", [tasks[1]]),
        ("remove", [tasks[0]]),
    ):
        assert cli.main(["task", "list", "--ids", "--where", query]) == cli.DONE
        assert capsys.readouterr().out.split() == [task.id for task in found], query
    assert cli.main(["task", "list", "--where", "size<2"]) == 2
    assert "glance_rate" in capsys.readouterr().err
    assert cli.main(["task", "list", "--json", "--where", "glance_rate>0.5"]) == cli.DONE
    (row,) = json.loads(capsys.readouterr().out)["tasks"]
    assert (row["id"], row["glance_rate"]) == (tasks[1].id, 1.0)
    assert cli.main(["task", "show", "--json", tasks[1].id]) == cli.DONE
    assert json.loads(capsys.readouterr().out)["glance_rate"] == 1.0


def test_the_tasks_of_a_study_are_a_set(tasks: list[Task], tmp_path: Path, capsys: Captured) -> None:
    study = declare(tmp_path / "study")
    shutil.rmtree(Locations.of_user().tasks)  # they remain only in the study's folder
    assert cli.main(["glance", "--json", str(study)]) == cli.DONE
    rates = json.loads(capsys.readouterr().out)["rates"]
    assert [(row["name"], row["seen"]) for row in rates if row["by"] == "task"] == [(tasks[1].id, 1)]
