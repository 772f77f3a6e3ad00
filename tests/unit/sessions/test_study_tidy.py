"""The tidy tables of a study: the content of cells, valid keys, and the mark of simulated data."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from builders import REPAIR
from held_studies import Held

from gistpoint.core.attempts.identity import SIMULATED
from gistpoint.core.study.operations import (
    Excluded,
    RelabelledSpan,
    StudyError,
    StudyOperationKind,
    TimesCorrected,
)
from gistpoint.core.study.rows import AttemptRow
from gistpoint.sessions.exports.study.columns import CellType, TidyColumn, attempts_table, cells_of, tables
from gistpoint.sessions.exports.study.datapackage import DATAPACKAGE
from gistpoint.sessions.exports.study.registry import StudyExport, study_exporter
from gistpoint.sessions.exports.study.tidy import cell
from gistpoint.sessions.studies.loading import of_person
from gistpoint.sessions.studies.solvers import runs_by_attempt

WRONG = REPAIR.replace("100", "99")
SOLVER = {"name": "model-x", "runs": ["runs/x/*"], "condition": "alone", "scaffold": "ours"}


def _held(place: Path, **changes: Any) -> Held:
    """Return a study with three attempts of two people and a model's run.

    One attempt has corrected times, and one is excluded.
    """
    held = Held.at(place, solver=[SOLVER], **changes)
    discovery, remove = held.tasks
    actor = SIMULATED if held.folder.study.simulated else "person"
    first = held.attempt("P01", remove, actor=actor)
    second = held.attempt("P01", discovery, WRONG, actor=actor)
    held.attempt("P02", remove, actor=actor)
    held.model_run(remove, "runs/x", actor=SIMULATED if held.folder.study.simulated else "model")
    spans = (RelabelledSpan(1_000, 11_000, "paused"),)
    corrected = TimesCorrected(spans=spans, why='a call, "urgent"\r\nand long')
    held.folder.record("P01", f"attempt:{first}", StudyOperationKind.CORRECTED, corrected)
    held.folder.record("P01", f"attempt:{second}", StudyOperationKind.EXCLUDED, Excluded(why="fire drill"))
    return held


def _files(held: Held, person: str = "") -> dict[str, bytes]:
    loaded = held.load()
    journals = {one.id: one.journal for one in held.folder.attempts()}
    data = of_person(loaded.data, person) if person else loaded.data
    return dict(study_exporter("tidy")(StudyExport(data, journals, runs_by_attempt(loaded.solvers))))


def _table(files: dict[str, bytes], name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(files[name].decode("utf-8"), newline="")))


def test_the_tables_of_a_study(tmp_path: Path) -> None:
    files = _files(_held(tmp_path))
    assert list(files) == [*(f"{table.name}.csv" for table in tables()), DATAPACKAGE]
    attempts = _table(files, "attempts.csv")
    assert len(attempts) == 4
    people = [row for row in attempts if row["participant"]]
    assert [row["simulated"] for row in attempts] == ["false"] * 4
    assert sorted((row["participant"], row["counted"], row["exclusion"]) for row in people) == [
        ("P01", "false", "excluded"),
        ("P01", "true", ""),
        ("P02", "true", ""),
    ]
    corrected = next(row for row in people if row["active_s"] != row["active_corrected_s"])
    assert (corrected["active_s"], corrected["active_corrected_s"], corrected["primary_s"]) == (
        "60.000",
        "50.000",
        "50.000",
    )
    assert corrected["comforts"] == "{}"
    (model,) = [row for row in attempts if row["solver"]]
    assert (model["actor"], model["participant"], model["assignment"], model["solved"]) == (
        "model",
        "",
        "",
        "true",
    )
    said = _table(files, "exclusions.csv")
    assert [
        (row["kind"], row["words"], row["from_s"], row["to_s"]) for row in said if row["kind"] == "corrected"
    ] == [("corrected", 'a call, "urgent"\r\nand long', "1.000", "11.000")]
    assert [(row["kind"], row["words"]) for row in said if row["kind"] == "excluded"] == [
        ("excluded", "fire drill")
    ]
    assert sorted(row["position"] for row in _table(files, "assignments.csv")) == ["1", "1", "2"]
    assert {row["tool"] for row in _table(files, "calls.csv")} == {
        "read_file",
        "submit_attempt",
        "replace_function",
    }
    viewed = [row for row in _table(files, "calls.csv") if row["kind"] == "view"]
    assert [row["arguments"] for row in viewed] == ['{"file_path": "shop/prices.py"}'] * 4
    assert len(_table(files, "submissions.csv")) == 4
    tasks = _table(files, "tasks.csv")
    assert all(float(row["code_lines"]) > 0 and not row["gist_calls"] for row in tasks)
    assert "::discount" not in files["tasks.csv"].decode()
    (solver,) = _table(files, "solvers.csv")
    assert (solver["runs"], solver["solved"], solver["tasks"]) == ("1", "1", "1")
    assert {row["item"] for row in _table(files, "answers.csv")} >= {"aids_ai", "aids_words"}


def test_the_files_are_rfc_4180_and_the_same_every_time(tmp_path: Path) -> None:
    held = _held(tmp_path)
    files = _files(held)
    assert files == _files(held)
    for name, content in files.items():
        if name.endswith(".csv"):
            assert content.decode("utf-8").endswith("\r\n")
            rows = list(csv.reader(io.StringIO(content.decode("utf-8"), newline=""), strict=True))
            assert len({len(row) for row in rows}) == 1


def test_the_dictionary_describes_every_column_and_file(tmp_path: Path) -> None:
    files = _files(_held(tmp_path))
    package = json.loads(files[DATAPACKAGE])
    assert package["profile"] == "tabular-data-package"
    for resource, table in zip(package["resources"], tables(), strict=True):
        content = files[resource["path"]]
        assert resource["profile"] == "tabular-data-resource"
        assert resource["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        assert resource["bytes"] == len(content)
        header = content.decode().partition("\r\n")[0].split(",")
        assert [field["name"] for field in resource["schema"]["fields"]] == header
        assert all(field["description"] for field in resource["schema"]["fields"])
        assert resource["schema"]["primaryKey"] == list(table.key)
        rows = _table(files, resource["path"])
        keys = [tuple(row[name] for name in table.key) for row in rows]
        assert len(set(keys)) == len(keys)
        for reference in table.references:
            of = next(one for one in package["resources"] if one["name"] == reference.table)
            known = {row[of["schema"]["primaryKey"][0]] for row in _table(files, of["path"])}
            assert {row[reference.column] for row in rows} - {""} <= known


def test_every_time_is_told_to_be_in_seconds() -> None:
    for table in tables():
        for column in table.columns:
            timed = column.name.endswith("_s") or column.name == "seconds"
            assert (column.unit == "s") is timed, (table.name, column.name)


def test_the_attempts_table_leaves_out_only_what_has_a_table_of_its_own() -> None:
    columns = {column.name for column in attempts_table().columns}
    assert set(cells_of(AttemptRow(attempt="a", study="s", task="t"))) - columns == {
        "submitted",
        "calls",
        "flags",
        "answers",
    }


@pytest.mark.parametrize(
    ("type", "unit", "value", "shown"),
    [
        (CellType.NUMBER, "s", 0.0005, "0.001"),
        (CellType.NUMBER, "s", 59.9996, "60.000"),
        (CellType.NUMBER, "s", 1.234, "1.234"),
        (CellType.NUMBER, "", 1 / 3, "0.3333333333"),
        (CellType.NUMBER, "", 1.0, "1"),
        (CellType.NUMBER, "s", None, ""),
        (CellType.YES_NO, "", False, "false"),
        (CellType.LIST, "", [3, 7], "[3, 7]"),
        (CellType.TABLE, "", {"b": 1, "a": 2}, '{"a": 2, "b": 1}'),
        (CellType.TEXT, "", "a\0b", "a\\x00b"),
        (CellType.WHOLE, "", 0, "0"),
    ],
)
def test_a_cell(type: CellType, unit: str, value: Any, shown: str) -> None:
    assert cell(TidyColumn("x", "", type, unit), value) == shown


def test_milliseconds_become_seconds_with_three_decimals() -> None:
    column = TidyColumn("x", "", CellType.NUMBER, "s")
    assert all(cell(column, ms / 1000) == f"{ms // 1000}.{ms % 1000:03}" for ms in range(0, 4_000_000, 97))


def test_simulated_data_say_so(tmp_path: Path) -> None:
    files = _files(_held(tmp_path, simulated=True))
    assert list(files) == [*(f"SIMULATED-{table.name}.csv" for table in tables()), DATAPACKAGE]
    for table in tables():
        rows = _table(files, f"SIMULATED-{table.name}.csv")
        assert all(row["simulated"] == "true" for row in rows), table.name
    package = json.loads(files[DATAPACKAGE])
    assert package["simulated"] is True
    assert package["title"].startswith("SIMULATED")


def test_what_there_is_of_one_person(tmp_path: Path) -> None:
    held = _held(tmp_path)
    files = _files(held, "P02")
    assert [row["participant"] for row in _table(files, "participants.csv")] == ["P02"]
    assert [row["participant"] for row in _table(files, "attempts.csv")] == ["P02"]
    assert all(b"P01" not in content and b"model-x" not in content for content in files.values())
    with pytest.raises(StudyError, match="Nobody with the code"):
        _files(held, "P99")


def test_an_unknown_format() -> None:
    with pytest.raises(StudyError, match="no export of studies"):
        study_exporter("xls")
