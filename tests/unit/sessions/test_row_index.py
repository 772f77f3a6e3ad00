"""The index of rows: its content, and lists that survive its damage and other processes."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gistpoint.sessions import row_index
from gistpoint.sessions.row_index import IndexedRow, RowIndex

ROWS = [IndexedRow(f"k{number:04}", b"s%d" % number, b"r" * number) for number in range(1200)]


def kept(index: RowIndex) -> list[IndexedRow]:
    return [row for _, row in sorted(index.some(index.all_keys()).items())]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "rows.sqlite"


@pytest.fixture
def index(path: Path) -> Iterator[RowIndex]:
    with closing(RowIndex(path)) as index:
        yield index


def test_a_row_is_found_only_in_its_state(index: RowIndex, path: Path) -> None:
    index.put(IndexedRow("a", b"1", b"row"), {"words": b"w"})
    assert index.get("a", b"1") == b"row"
    assert index.cell("a", b"1", "words") == b"w"
    assert index.get("a", b"2") is index.get("b", b"1") is index.cell("a", b"2", "words") is None
    index.add_cells("a", b"1", {"more": b"m"})
    index.add_cells("a", b"2", {"stale": b"m"})
    assert index.cell("a", b"1", "more") == b"m"
    assert index.cell("a", b"1", "stale") is None
    index.put(IndexedRow("a", b"2", b"new"))
    assert index.cell("a", b"2", "more") is None, "a new state has no cells of the old one"
    index.close()
    with closing(RowIndex(path)) as again:
        assert again.get("a", b"2") == b"new"
    assert index.get("a", b"2") == b"new", "a closed index opens again"


def test_many_rows_come_back_as_they_were_put(index: RowIndex, path: Path) -> None:
    assert kept(index) == []
    assert not path.parent.exists(), "reading makes nothing"
    index.put_many(ROWS)
    with closing(RowIndex(path)) as again:
        assert kept(again) == ROWS
        wanted = [row.key for row in ROWS[100:900]]
        assert again.some([*wanted, "gone"]) == {row.key: row for row in ROWS[100:900]}
        changed = ROWS[5]._replace(state=b"later", row=b"new")
        again.put_many([changed], removed=["k0006"])
        assert index.some(["k0005", "k0006"]) == {"k0005": changed}
        assert len(index.all_keys()) == len(ROWS) - 1


def test_a_row_that_is_too_large_is_not_kept_and_costs_no_other(index: RowIndex, path: Path) -> None:
    large = IndexedRow("large", b"s", b"r" * (row_index.LARGEST_ROW + 1))
    index.put_many(ROWS)
    for _ in range(3):
        index.put(large, {"words": b"w"})
        index.put_many([large])
    assert kept(index) == ROWS
    index.put(large._replace(row=b"r"), {"words": b"w", "long": large.row})
    assert index.cell("large", b"s", "words") == b"w"
    assert index.cell("large", b"s", "long") is None
    index.put_many((), removed=["large"])
    index.close()
    with closing(sqlite3.connect(path)) as database:
        assert not database.execute("SELECT name FROM cells").fetchall()


def test_what_is_removed_leaves_no_bytes(index: RowIndex, path: Path) -> None:
    index.put(IndexedRow("k", b"s", b"participant-p07"), {"more": b"what they did"})
    index.put_many(ROWS[3:4], removed=["k"])
    index.close()
    data = path.read_bytes()
    assert b"p07" not in data
    assert b"what they did" not in data


def filled(path: Path) -> Path:
    with closing(RowIndex(path)) as index:
        for number in range(50):
            index.put(IndexedRow(str(number), b"1", b"x" * 1000), {"words": b"y" * 1000})
    return path


def of_others(statement: str, version: int) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.unlink()
        with closing(sqlite3.connect(path)) as other:
            other.execute(f"PRAGMA user_version = {version}")
            other.execute(statement)
            other.commit()

    return damage


def torn(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * 4096 + data[8192:])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no database": lambda path: path.write_text("no database" * 1000),
    "noise": lambda path: path.write_bytes(b"\0\1" * 9000),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "torn": torn,
    "an earlier layout": of_others("CREATE TABLE entries (kind TEXT, key TEXT)", 1),
    "an earlier layout of lists": of_others("CREATE TABLE rows (key TEXT, state BLOB, row BLOB)", 0),
    "other tables": of_others("CREATE TABLE t (a)", 2),
    "a view": of_others("CREATE VIEW rows AS SELECT 1", 2),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_is_made_again(path: Path, damage: str) -> None:
    DAMAGES[damage](filled(path))
    for _ in range(2):  # what is wrong inside is only noticed when it is read
        with closing(RowIndex(path)) as index:
            index.some(["7"])
            for number in range(50):
                index.get(str(number), b"1")
                index.put(IndexedRow(str(number), b"1", b"x"))
    with closing(RowIndex(path)) as index:
        assert index.get("7", b"1") == b"x"
        assert len(kept(index)) == 50


def test_a_locked_index_is_done_without(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_index, "_BUSY_S", 0.0)
    filled(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with closing(RowIndex(path)) as index:
            assert index.get("1", b"1") is None
            assert index.some(["1"]) == {}
            index.put(IndexedRow("1", b"1", b"z"))
            index.put_many([IndexedRow("1", b"1", b"z")])
        other.execute("ROLLBACK")
    with closing(RowIndex(path)) as index:
        assert index.get("1", b"1") == b"x" * 1000


@pytest.mark.parametrize("first", ["read", "write"])
def test_a_lock_is_not_waited_for_again_at_once(
    path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    monkeypatch.setattr(row_index, "_BUSY_S", 0.0)
    filled(path)
    now = [1000.0]
    monkeypatch.setattr(row_index.time, "monotonic", lambda: now[0])
    new = IndexedRow("new", b"1", b"z")
    with closing(RowIndex(path)) as index, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        if first == "read":
            assert index.get("1", b"1") is None
        else:
            index.put(new)
        other.execute("ROLLBACK")
        index.put(new)
        assert index.get("new", b"1") is None
        assert (index.get("1", b"1") is None) is (first == "read")
        now[0] += 60
        index.put(new)
        assert index.get("new", b"1") == b"z"


@pytest.mark.parametrize("place", ["a file", "a folder", "a link", "a pipe"])
def test_a_place_where_no_index_can_be_is_done_without(tmp_path: Path, path: Path, place: str) -> None:
    own = filled(tmp_path / "own.sqlite")
    if place == "a file":
        path.parent.write_text("")
    else:
        path.parent.mkdir()
        makers: dict[str, Callable[[], object]] = {
            "a folder": path.mkdir,
            "a link": lambda: path.symlink_to(own),
            "a pipe": lambda: os.mkfifo(path),
        }
        makers[place]()
    with closing(RowIndex(path)) as index:
        index.put(IndexedRow("1", b"1", b"z"))
        assert index.get("1", b"1") is None
        assert kept(index) == []
    with closing(RowIndex(own)) as index:
        assert index.get("1", b"1") == b"x" * 1000


def test_a_read_only_index_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path)
    connect = sqlite3.connect

    def read_only(database: Path, **options: Any) -> sqlite3.Connection:
        return connect(f"file:{database}?mode=ro", uri=True, **options)

    monkeypatch.setattr(row_index.sqlite3, "connect", read_only)
    with closing(RowIndex(path)) as index:
        for _ in range(2):
            assert index.get("1", b"1") == b"x" * 1000
            index.put(IndexedRow("1", b"1", b"z"))
            index.add_cells("1", b"1", {"a": b"b"})
            index.put_many([IndexedRow("1", b"1", b"z")], removed=["2"])
    monkeypatch.undo()
    with closing(RowIndex(path)) as index:
        assert index.get("1", b"1") == b"x" * 1000


def test_an_index_on_a_full_disk_is_read(path: Path) -> None:
    filled(path)
    with closing(RowIndex(path)) as index:
        assert index.get("1", b"1") == b"x" * 1000
        assert index._database is not None
        (pages,) = index._database.execute("PRAGMA page_count").fetchone()
        index._database.execute(f"PRAGMA max_page_count = {pages}")  # SQLite reports a full disk
        index.put_many(IndexedRow(str(number), b"2", b"x" * 100_000) for number in range(50))
        assert index.get("1", b"1") == b"x" * 1000
        assert index.get("1", b"2") is None
    with closing(RowIndex(path)) as index:
        index.put(IndexedRow("1", b"2", b"later"))
        assert index.get("1", b"2") == b"later"


def test_a_row_that_cant_be_kept_costs_no_other(index: RowIndex) -> None:
    index.put(IndexedRow("a", b"1", b"row"))
    index.put(IndexedRow("\ud800", b"1", b"row"))
    index.put(IndexedRow("long", b"1", b"x" * (row_index.LARGEST_ROW + 1)))
    index.add_cells("a", b"1", {"long": b"x" * (row_index._LARGEST_CELL + 1)})
    assert index.get("\ud800", b"1") is index.get("long", b"1") is None
    assert index.get("a", b"1") == b"row"


_WRITES = """
import sys
from pathlib import Path
from gistpoint.sessions.row_index import IndexedRow, RowIndex
index = RowIndex(Path(sys.argv[1]))
for number in range(100):
    name = f"{sys.argv[2]} {number}"
    index.put(IndexedRow(name, b"1", name.encode()), {"more": b"m"})
    index.get(name, b"1")
    index.put_many([IndexedRow(f"both {number}", b"1", b"x")])
index.close()
"""


def test_two_processes_write_at_once(path: Path) -> None:
    written = [
        subprocess.Popen([sys.executable, "-c", _WRITES, path, name], stderr=subprocess.PIPE)
        for name in ("one", "two")
    ]
    assert [process.communicate()[1] for process in written] == [b"", b""]
    with closing(RowIndex(path)) as index:
        rows = kept(index)
        assert {row.row for row in rows if not row.key.startswith("both")} == {
            row.key.encode() for row in rows if not row.key.startswith("both")
        }
        assert {row.key.split()[0] for row in rows} == {"one", "two", "both"}


def test_an_index_is_bounded_in_size_and_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index.sqlite"
    with closing(RowIndex(path, most_bytes=60_000)) as index:
        for number in range(100):
            index.put(IndexedRow(f"{number:03}", b"1", b"x" * 1000))
    assert path.stat().st_size < 60_000
    with closing(RowIndex(path)) as index:
        left = [number for number in range(100) if index.get(f"{number:03}", b"1")]
        assert 10 <= len(left) <= 40
    now = time.time()
    monkeypatch.setattr(row_index.time, "time", lambda: now + 40 * 86_400)
    with closing(RowIndex(path, most_bytes=None)) as index:
        index.put(IndexedRow("new", b"1", b"x"))
    with closing(RowIndex(path)) as index:
        assert index.get(f"{left[0]:03}", b"1"), "without a limit, nothing is removed"
        index.put(IndexedRow("new", b"1", b"x"))
    with closing(RowIndex(path)) as index:
        assert [number for number in left if index.get(f"{number:03}", b"1")] == left[:1]
