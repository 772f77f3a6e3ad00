"""The index of runs: the same answers with it, without it, and while it is broken."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from recorded_runs import make_all

from gistpoint.core.folding import folded
from gistpoint.core.locations import Locations
from gistpoint.sessions.annotations.settling import first_key
from gistpoint.sessions.records.model import TextScope
from gistpoint.sessions.runs import opening, run_index
from gistpoint.sessions.runs.opening import list_runs
from gistpoint.sessions.runs.run_index import FILE, RunIndex, WordCollector, may_contain, read_run, state_of
from gistpoint.sessions.runs.searching import Query
from gistpoint.sessions.runs.searching_files import search
from gistpoint.tui import cli
from gistpoint.tui.commands.run_list import found_runs


@given(st.text(max_size=30), st.text(max_size=200), st.text(max_size=20))
@example("", "\u017ftop Stra\u00dfe \u212a \u0130x", "")
@example("a", "b" * 100, "c")
def test_words_never_rule_out_what_a_text_contains(before: str, wanted: str, after: str) -> None:
    words = WordCollector()
    words.add(before + wanted + after)
    packed = words.packed()
    assert packed is not None
    for form in (wanted, wanted.lower(), wanted.upper(), wanted[3:-2]):
        if folded(form) in folded(before + wanted + after):
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


@pytest.mark.parametrize("escaped", [True, False])
@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("\u0130stanbul", "istanbul"),
        ("\u0130STANBUL", "i\u0307stanbul"),
        ("i\u0307stanbul", "\u0130stanbul"),
        ("k\u0131rm\u0131z\u0131", "KIRMIZI"),
        ("Stra\u00dfe", "STRASSE"),
        ("GRO\u1e9eE", "gro\u00dfe"),
        ("STRASSE", "stra\u00dfe"),
        ("\u017ftop", "stop"),
        ("\u212aelvin", "kelvin"),
        ("o\ufb03ce", "Office"),
        ("\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c2"),
    ],
)
def test_letters_whose_case_has_another_length_are_found_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, asked: str, escaped: bool
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    path = tmp_path / "run.jsonl"
    messages = [
        {"role": "user", "content": f"Go to {written}."},
        {"role": "assistant", "content": f"I am in {written}."},
    ]
    line = json.dumps({"task_id": f"t/{written}", "messages": messages}, ensure_ascii=escaped)
    path.write_text(f"{line}\n{line.replace('t/', 'u/')}\n", encoding="utf-8")
    for _ in range(2):  # at first from the run, then from the index
        for where in (f'text:"{asked}"', f'meta:"{asked}"', f'final:"{asked}"'):
            assert len(names(path, where)) == 2, where
    query = Query(asked, scopes=[TextScope.TEXT], ignore_case=True)
    assert [hit.line[hit.column : hit.column + hit.end - hit.start] for hit in search(query, [path])] == [
        written
    ] * 4  # fmt: skip


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("meta.seed=9", True),
        ("meta.seed=7", True),
        ("meta.seed:9", True),
        ("meta.seed > 8", True),
        ("meta.env.seed=7", False),
        ("meta.seed=8", False),
        ("meta.seed!=8", True),
        ("meta.seed!=9", False),
    ],
)
def test_every_recorded_value_under_a_key_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, found: bool
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    path = tmp_path / "run.json"
    messages = [{"role": "user", "content": "Fix it."}, {"role": "assistant", "content": "Done."}]
    recorded = {"model_config": {"seed": 7}, "env": {"seed": 9, "note": "words"}}
    path.write_text(json.dumps({"messages": messages, **recorded}), encoding="utf-8")
    assert bool(names(path, where)) is found


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
            database.execute("UPDATE rows SET row = ?", (row,))
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
    (Locations.of_user().config / "queries.toml").write_text("a = 1\nall = 'edited'\n")
    assert cli.main(["runs", runs, "--where", "@a"]) == 2
    assert "@a can't be used: Line 1 of queries.toml" in capsys.readouterr().err
    assert cli.main(["runs", "--queries"]) == 0
    shown = capsys.readouterr()
    assert "@all\tedited" in shown.out
    assert "@a can't be used: Line 1" in shown.err
    cli.main(["runs", runs, "--where", "@all", "--json"])
    assert json.loads(capsys.readouterr().out)["runs"] == found
    with pytest.raises(SystemExit):
        cli.main(["runs", runs, "--where", "-edited"])
    assert "write --where=-edited" in capsys.readouterr().err


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
