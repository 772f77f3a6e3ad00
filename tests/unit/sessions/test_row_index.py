"""The index of rows: its content, and lists that survive its damage and other processes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gistpoint.sessions.row_index import IndexedRow, RowIndex

ROWS = [
    IndexedRow(f"k{number:04}", b"s%d" % number, (number, f"t{number % 3}"), b"r" * number)
    for number in range(1200)
]
COLUMNS = ("number", "text")


def index_at(place: Path, form: str = "rows 1") -> RowIndex:
    return RowIndex(place / "lists" / "rows.sqlite", form, COLUMNS)


def test_rows_come_back_as_they_were_put(tmp_path: Path) -> None:
    index = index_at(tmp_path)
    assert list(index.rows()) == []
    assert index.some(["k0001"]) == {}
    assert not (tmp_path / "lists").exists(), "reading makes nothing"
    index.put(ROWS)
    again = index_at(tmp_path)
    assert list(again.rows()) == ROWS[::-1]
    wanted = [row.key for row in ROWS[100:900]]
    assert again.some([*wanted, "gone"]) == {row.key: row for row in ROWS[100:900]}
    changed = ROWS[5]._replace(state=b"later", row=b"new")
    again.put([changed], removed=["k0006"])
    assert index.some(["k0005", "k0006"]) == {"k0005": changed}
    assert len(index.all_keys()) == len(ROWS) - 1


def test_what_is_removed_leaves_no_bytes(tmp_path: Path) -> None:
    index = index_at(tmp_path)
    index.put([IndexedRow("k", b"s", (1, "participant-p07"), b"what they did"), ROWS[3]])
    index.put((), removed=["k"])
    data = (tmp_path / "lists" / "rows.sqlite").read_bytes()
    assert b"p07" not in data
    assert b"what they did" not in data


def test_another_form_begins_anew(tmp_path: Path) -> None:
    index_at(tmp_path).put(ROWS[:3])
    other = index_at(tmp_path, "rows 2")
    assert list(other.rows()) == []
    other.put(ROWS[4:5])
    assert list(other.rows()) == ROWS[4:5]
    assert list(index_at(tmp_path).rows()) == []


@pytest.mark.parametrize("damage", ["cut", "noise", "a folder", "of others"])
def test_a_damaged_index_is_made_again_or_done_without(tmp_path: Path, damage: str) -> None:
    index, file = index_at(tmp_path), tmp_path / "lists" / "rows.sqlite"
    index.put(ROWS)
    match damage:
        case "cut":
            file.write_bytes(file.read_bytes()[:5000])
        case "noise":
            file.write_bytes(b"\0\1" * 9000)
        case "a folder":
            file.unlink()
            file.mkdir()
        case "of others":
            file.unlink()
            with closing(sqlite3.connect(file)) as other:
                other.execute("CREATE TABLE form (other TEXT)")
    list(index.rows())
    index.some(["k0001"])
    index.put(ROWS[:2])
    index.put(ROWS[:2])
    assert list(index.rows()) == ([] if damage == "a folder" else ROWS[1::-1])


def test_an_index_that_is_held_or_cant_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gistpoint.sessions.row_index._WAIT_S", 0.01)
    index = index_at(tmp_path)
    index.put(ROWS[:2])
    with closing(sqlite3.connect(tmp_path / "lists" / "rows.sqlite")) as other:
        other.execute("BEGIN EXCLUSIVE")
        index.put(ROWS[2:3])
        assert list(index.rows()) == []
        other.rollback()
    assert list(index.rows()) == ROWS[1::-1]
    (tmp_path / "file").write_text("")
    nowhere = RowIndex(tmp_path / "file" / "rows.sqlite", "rows 1", COLUMNS)
    nowhere.put(ROWS[:2])
    assert list(nowhere.rows()) == []
