"""The indexes of rows and of runs: the same answers with them, without them, and while they are broken."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from recorded_runs import make_all

from gistpoint.core.locations import Locations
from gistpoint.sessions import entry_index
from gistpoint.sessions.annotations.settling import first_key
from gistpoint.sessions.entry_index import EntryIndex
from gistpoint.sessions.runs import opening, run_index
from gistpoint.sessions.runs.opening import list_runs
from gistpoint.sessions.runs.run_index import FILE, RunIndex, WordCollector, may_contain, read_run, state_of
from gistpoint.tui import cli
from gistpoint.tui.commands.run_list import found_runs


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[EntryIndex]:
    with closing(EntryIndex(tmp_path / "cache" / "index.sqlite")) as index:
        yield index


def test_an_entry_is_found_only_in_its_state(rows: EntryIndex, tmp_path: Path) -> None:
    rows.put("run", "a", "1", b"row", {"words": b"w"})
    assert rows.get("run", "a", "1") == b"row"
    assert rows.column("run", "a", "1", "words") == b"w"
    assert (
        rows.get("run", "a", "2")
        is rows.get("other", "a", "1")
        is rows.column("run", "a", "2", "words")
        is None
    )
    rows.add_columns("run", "a", "1", {"more": b"m"})
    rows.add_columns("run", "a", "2", {"stale": b"m"})
    assert rows.column("run", "a", "1", "more") == b"m"
    assert rows.column("run", "a", "1", "stale") is None
    rows.put("run", "a", "2", b"new")
    assert rows.column("run", "a", "2", "more") is None, "a new state has no columns of the old one"
    rows.close()
    with closing(EntryIndex(tmp_path / "cache" / "index.sqlite")) as again:
        assert again.get("run", "a", "2") == b"new"


def filled(path: Path) -> Path:
    with closing(EntryIndex(path)) as index:
        for number in range(50):
            index.put("run", str(number), "1", b"x" * 1000, {"words": b"y" * 1000})
    return path


@pytest.mark.parametrize("damage", ["no database", "", "torn", "other tables", "a view"])
def test_a_damaged_index_is_made_again(tmp_path: Path, damage: str) -> None:
    path = filled(tmp_path / "index.sqlite")
    if damage == "torn":
        data = path.read_bytes()
        path.write_bytes(data[:4096] + b"\xff" * 4096 + data[8192:])
    elif damage in ("other tables", "a view"):
        path.unlink()
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA user_version = 1")
            other.execute(
                "CREATE TABLE t (a)" if damage == "other tables" else "CREATE VIEW entries AS SELECT 1"
            )
            other.commit()
    else:
        path.write_text(damage * 1000)
    for _ in range(2):  # errors inside are only noticed when it is read
        with closing(EntryIndex(path)) as index:
            for number in range(50):
                index.get("run", str(number), "1")
                index.put("run", str(number), "1", b"x")
    with closing(EntryIndex(path)) as index:
        assert index.get("run", "7", "1") == b"x"


def test_a_locked_index_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_index, "_BUSY_S", 0.0)
    path = filled(tmp_path / "index.sqlite")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with closing(EntryIndex(path)) as index:
            assert index.get("run", "1", "1") is None
            index.put("run", "1", "1", b"z")
        other.execute("ROLLBACK")
    with closing(EntryIndex(path)) as index:
        assert index.get("run", "1", "1") == b"x" * 1000


def test_a_lock_is_not_waited_for_again_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_index, "_BUSY_S", 0.0)
    path = filled(tmp_path / "index.sqlite")
    now = [1000.0]
    monkeypatch.setattr(entry_index.time, "monotonic", lambda: now[0])
    with closing(EntryIndex(path)) as index, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        index.put("run", "new", "1", b"z")
        other.execute("ROLLBACK")
        index.put("run", "new", "1", b"z")
        assert index.get("run", "new", "1") is None
        now[0] += 60
        index.put("run", "new", "1", b"z")
        assert index.get("run", "new", "1") == b"z"


@pytest.mark.parametrize("place", ["a file", "a folder", "a link", "a pipe"])
def test_a_place_where_no_index_can_be_is_done_without(tmp_path: Path, place: str) -> None:
    path = tmp_path / "cache" / "index.sqlite"
    if place == "a file":
        (tmp_path / "cache").write_text("")
    else:
        path.parent.mkdir()
        own = tmp_path / "own.sqlite"
        filled(own)
        makers = {
            "a folder": path.mkdir,
            "a link": lambda: path.symlink_to(own),
            "a pipe": lambda: os.mkfifo(path),
        }
        makers[place]()
    with closing(EntryIndex(path)) as index:
        assert not index.works
        index.put("run", "1", "1", b"z")
        assert index.get("run", "1", "1") is None


def test_a_read_only_index_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = filled(tmp_path / "index.sqlite")
    connect = sqlite3.connect

    def read_only(database: Path, **options: Any) -> sqlite3.Connection:
        return connect(f"file:{database}?mode=ro", uri=True, **options)

    monkeypatch.setattr(entry_index.sqlite3, "connect", read_only)
    with closing(EntryIndex(path)) as index:
        assert index.get("run", "1", "1") == b"x" * 1000
        index.put("run", "1", "1", b"z")
        index.add_columns("run", "1", "1", {"a": b"b"})


def test_an_index_is_bounded_in_size_and_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index.sqlite"
    with closing(EntryIndex(path, most_bytes=60_000)) as index:
        for number in range(100):
            index.put("run", f"{number:03}", "1", b"x" * 1000)
    assert path.stat().st_size < 60_000
    with closing(EntryIndex(path)) as index:
        kept = [number for number in range(100) if index.get("run", f"{number:03}", "1")]
        assert 10 <= len(kept) <= 40
    now = time.time()
    monkeypatch.setattr(entry_index.time, "time", lambda: now + 40 * 86_400)
    with closing(EntryIndex(path)) as index:
        assert index.get("run", f"{kept[0]:03}", "1"), "what is used stays"
        index.put("run", "new", "1", b"x")
    with closing(EntryIndex(path)) as index:
        assert [number for number in kept if index.get("run", f"{number:03}", "1")] == kept[:1]


@given(st.text(max_size=30), st.text(max_size=200), st.text(max_size=20))
@example("", "\u017ftop Stra\u00dfe \u212a \u0130x", "")
@example("a", "b" * 100, "c")
def test_words_never_rule_out_what_a_text_contains(before: str, wanted: str, after: str) -> None:
    words = WordCollector()
    words.add(before + wanted + after)
    packed = words.packed()
    assert packed is not None
    for form in (wanted, wanted.lower(), wanted.upper(), wanted[3:-2]):
        if form.casefold() in (before + wanted + after).casefold():
            assert may_contain(packed, form)
    assert not may_contain(packed, "zq" * 20 + "xvj")


QUERIES = [
    "",
    'error:"error"',
    'text:"mean" and not edited',
    'call:"python" or result:"passed"',
    'thought:"look" and tool:bash > 0',
    "final:done or answer:patch",
    "not (edited or tested)",
    "meta.id:1 or steps > 5",
    'text:"no such text anywhere"',
]


def names(folder: Path, where: str) -> list[tuple[str, Any]]:
    return [(item.name, item.kept) for item in found_runs([str(folder)], [], where)]


@pytest.mark.parametrize("where", QUERIES)
def test_a_query_finds_the_same_with_and_without_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, runs_of_all_formats: Path
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path))
    first = names(runs_of_all_formats, where)
    assert (tmp_path / "cache" / FILE).is_file()
    again = names(runs_of_all_formats, where)
    monkeypatch.setattr(run_index, "RunIndex", lambda folder: RunIndex(None))
    without = names(runs_of_all_formats, where)
    assert first == again == without


@pytest.fixture(scope="module")
def runs_of_all_formats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    make_all(folder)
    return folder


def test_what_is_known_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs_of_all_formats: Path
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path))
    before = names(runs_of_all_formats, 'text:"mean"')

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a run was read again")

    monkeypatch.setattr(run_index, "read_to_its_end", refuse)
    monkeypatch.setattr(opening, "_in_file", refuse)
    monkeypatch.setattr("gistpoint.sessions.runs.run_queries.open_run", refuse)
    assert names(runs_of_all_formats, 'text:"mean"') == before


def test_a_file_that_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    path = tmp_path / "run.json"

    def write(text: str) -> None:
        messages = [{"role": "user", "content": "Fix it."}, {"role": "assistant", "content": text}]
        path.write_text(json.dumps({"messages": messages}), encoding="utf-8")

    write("one")
    assert [kept.digest.final for _, kept in names(path, "")] == ["one"]
    write("two")
    assert [kept.digest.final for _, kept in names(path, "")] == ["two"]
    assert names(path, "text:one") == []
    assert len(names(path, "text:two")) == 1


def test_another_version_of_the_readers_reads_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs_of_all_formats: Path
) -> None:
    listed = next(found for found in list_runs([runs_of_all_formats]) if found.header is not None)
    with closing(RunIndex(tmp_path)) as index:
        read_run(listed, index, first_key)
        assert index.get(listed.name) is not None
    monkeypatch.setattr(run_index, "_version_of_code", lambda: "another")
    with closing(RunIndex(tmp_path)) as index:
        assert index.get(listed.name) is None


def test_a_run_of_several_files_has_the_state_of_all(tmp_path: Path, runs_of_all_formats: Path) -> None:
    folder = runs_of_all_formats / "d-folder"
    before = state_of(folder)
    assert before is not None
    event = sorted((folder / "events").iterdir())[-1]
    text = event.read_text()
    event.write_text(text + " ")
    assert state_of(folder) != before
    event.write_text(text)
    assert state_of(tmp_path / "missing") is None


def test_hostile_rows_are_missing_rows(tmp_path: Path, runs_of_all_formats: Path) -> None:
    listed = next(found for found in list_runs([runs_of_all_formats]) if found.header is not None)
    with closing(RunIndex(tmp_path)) as index:
        kept = read_run(listed, index, first_key)
        assert index.get(listed.name) == kept
    for row in (b"", b"\xc1", b"\x90", b"\x96\xc0\xc0\xc0\xc0\xc0\xc0", b"\x81\xa1a\x01"):
        with closing(sqlite3.connect(tmp_path / FILE)) as database:
            database.execute("UPDATE entries SET row = ?", (row,))
            database.commit()
        with closing(RunIndex(tmp_path)) as index:
            assert index.get(listed.name) is None
            assert index.listed(Path(listed.name)) is None


def test_queries_are_kept_under_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    make_all(tmp_path / "runs")
    runs = str(tmp_path / "runs")
    assert cli.main(["runs", "--save-query", "idle", "--where", 'not edited and cause:"x\\y"']) == 0
    assert cli.main(["runs", "--save-query", "all", "--where", "@idle or edited"]) == 0
    capsys.readouterr()
    assert cli.main(["runs", "--queries"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "@all\t@idle or edited",
        '@idle\tnot edited and cause:"x\\y"',
    ]
    cli.main(["runs", runs, "--where", "@all", "--json"])
    found = json.loads(capsys.readouterr().out)["runs"]
    assert found
    assert all("edited" in run["happened"] for run in found)
    assert cli.main(["runs", "--save-query", "1st", "--where", "a"]) == 2
    assert cli.main(["runs", "--save-query", "bad", "--where", "(a"]) == 2
    assert cli.main(["runs", "--save-query", "empty"]) == 2
    assert cli.main(["runs", "--forget-query", "idle"]) == 0
    capsys.readouterr()
    assert cli.main(["runs", runs, "--where", "@all"]) == 2
    assert "in @all: Character 1: no query is kept as 'idle'" in capsys.readouterr().err
    (Locations.of_user().config / "queries.toml").write_text("a = 1\n")
    assert cli.main(["runs", runs, "--where", "@a"]) == 2
    assert "is not the name of a query" in capsys.readouterr().err


def test_the_other_commands_take_queries_too(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    runs_of_all_formats: Path,
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path))
    runs, where = str(runs_of_all_formats), "format:mini and edited"
    wanted = {item.name for item in found_runs([runs], [], where)}
    assert wanted
    cli.main(["search", "e", runs, "--where", where, "--json"])
    assert {hit["run"] for hit in json.loads(capsys.readouterr().out)["hits"]} == wanted
    folder = tmp_path / "converted"
    cli.main(["convert", runs, "--where", where, "--to", "markdown", "-o", str(folder)])
    assert len(list(folder.glob("*.md"))) == len(wanted)
    assert cli.main(["convert", runs, "--where", where, "--to", "markdown"]) == 2
    capsys.readouterr()
    assert cli.main(["reviews", "export", "--where", where]) == 2
    assert "--where needs the runs" in capsys.readouterr().err
    cli.main(["reviews", "export", runs, "--where", where])
    assert capsys.readouterr().out.startswith("path,task,")


def test_times_and_sizes_that_were_set_back_are_no_reason_to_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "a" / "run.jsonl"
    run.parent.mkdir()
    run.write_text("one")
    known, before = run.stat(), state_of(run)
    run.write_text("two")
    os.utime(run, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert run.stat().st_mtime_ns == known.st_mtime_ns
    assert state_of(run) != before
    monkeypatch.chdir(run.parent)
    here = state_of(Path("run.jsonl"))
    assert here == state_of(run)
    (tmp_path / "b").mkdir()
    os.link(run, tmp_path / "b" / "run.jsonl")
    monkeypatch.chdir(tmp_path / "b")
    assert state_of(Path("run.jsonl")) != here
