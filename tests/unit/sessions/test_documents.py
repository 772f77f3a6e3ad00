"""An open run is read lazily, bounded in memory, safe between threads, and complete in the end."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.errors import CancelledError
from gistpoint.core.running import CancelToken
from gistpoint.core.text import visible_line
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import BytesBlob
from gistpoint.sessions.records.loading import load_record, text_pieces
from gistpoint.sessions.records.model import ByteRange, CutText, TextScope
from gistpoint.sessions.runs.opening import join_name, list_runs, open_run, split_name
from gistpoint.sessions.runs.rendering import show
from gistpoint.sessions.runs.searching import Query, SearchError, search_bytes, search_document
from gistpoint.sessions.runs.searching_files import search


def write_run(path: Path, count: int, text: str = "x", indent: int | None = 2) -> Path:
    messages = [
        {"role": ("assistant", "user")[n % 2], "content": f"message {n} {text}"} for n in range(count)
    ]
    opening = [
        {"role": "system", "content": "You fix. COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"},
        {"role": "user", "content": "Fix."},
    ]
    document = {
        "info": {"mini_version": "1"},
        "messages": opening + messages,
        "trajectory_format": "mini-swe-agent-1",
    }
    path.write_text(json.dumps(document, indent=indent))
    return path


def test_a_first_step_needs_no_whole_index(tmp_path: Path) -> None:
    document = open_run(write_run(tmp_path / "a", 6000, "y" * 900))
    assert document.step(0).text.startswith("You fix")
    assert not document.finished
    assert document.step_count < 3002
    assert document.header.step_count is None
    document.build()
    assert (document.step_count, document.header.step_count) == (3002, 3002)


def test_progress_and_cancel(tmp_path: Path) -> None:
    document = open_run(write_run(tmp_path / "a", 6000, "y" * 900))
    token = CancelToken()
    seen: list[int] = []

    def watch(progress: object) -> None:
        seen.append(document.progress.done)
        token.cancel()

    with pytest.raises(CancelledError):
        document.build(watch, token)
    assert len(seen) == 1
    document.build()
    assert document.progress.finished
    assert document.progress.done == document.progress.total


def test_steps_are_kept_in_bounds(tmp_path: Path) -> None:
    document = open_run(write_run(tmp_path / "a", 1000))
    first = document.step(5)
    assert document.step(5) is first
    for index in range(6, 6 + limits.CACHED_STEPS):
        document.step(index)
    assert document.step(5) is not first
    assert document.step(5) == first


def test_threads_see_the_same_steps(tmp_path: Path) -> None:
    document = open_run(write_run(tmp_path / "a", 2000, "z" * 500))
    found: list[list[str]] = []
    builder = threading.Thread(target=document.build)
    readers = [
        threading.Thread(target=lambda: found.append([document.step(n).text for n in range(0, 1000, 50)]))
        for _ in range(3)
    ]
    for thread in (builder, *readers):
        thread.start()
    for thread in (builder, *readers):
        thread.join()
    assert found[0] == found[1] == found[2]
    assert found[0][3] == f"message {2 * 148} {'z' * 500}"


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("unit", ["line of text\n", 'quoted "text" \\ and é \U0001f600\t', "\u0000\u202e"])
def test_a_long_text_is_cut_and_can_be_had_whole(indent: int | None, unit: str, tmp_path: Path) -> None:
    text = unit * (1_500_000 // len(unit))
    document = open_run(write_run(tmp_path / "a", 4, text, indent))
    document.build()
    long = document.step(2).text
    assert isinstance(long, CutText)
    assert len(long) <= limits.STRING_HEAD
    assert (whole := f"message 0 {text}").startswith(long)
    pieces = list(document.full_text(long))
    assert len(pieces) > 1
    assert "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16") == whole
    assert "long" in document.step(2).flags


def test_indented_and_compact_files_give_the_same(tmp_path: Path) -> None:
    layouts = [open_run(write_run(tmp_path / str(indent), 300, indent=indent)) for indent in (None, 1, 2, 4)]
    texts = [
        [(step.text, step.calls, [r.text for r in step.results]) for step in document.steps()]
        for document in layouts
    ]
    assert texts[0] == texts[1] == texts[2] == texts[3]
    assert len(texts[0]) == 152


@pytest.mark.parametrize("indent", [1, 2, 4])
def test_the_last_step_needs_no_index(tmp_path: Path, indent: int) -> None:
    document = open_run(write_run(tmp_path / "a", 6000, "\n    }\n  ] y" * 90, indent=indent))
    last = document.last_step()
    assert last is not None
    assert not document.finished
    document.build()
    known = document.step(document.step_count - 1)
    assert replace(last, index=known.index) == known


def test_the_end_of_another_array_is_not_taken_for_the_runs(tmp_path: Path) -> None:
    step = {"action": "ls", "observation": "", "response": "", "state": {}, "thought": ""}
    steps = [{**step, "thought": f"thought {n}"} for n in range(3)]
    history = [{"role": "user", "content": f"{n} " + "z" * 9_000} for n in range(800)]
    path = tmp_path / "a"
    path.write_text(
        json.dumps({"environment": "e", "trajectory": steps, "history": history, "info": {}}, indent=2)
    )
    last = open_run(path).last_step()
    assert last is not None
    assert "thought 2" in last.thought


def _session(count: int) -> list[str]:
    """Return the lines of a session that alternates a reply with a call and its result."""
    lines: list[str] = []
    for n in range(count):
        call = {"type": "tool_use", "id": f"c{n}", "name": "Bash", "input": {"command": f"echo {n}"}}
        reply = {"role": "assistant", "id": f"m{n}", "model": "model-x", "content": [call]}
        result = {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": f"c{n}", "content": f"said {n}"}],
        }
        for kind, message in (("assistant", reply), ("user", result)):
            lines.append(
                json.dumps({"type": kind, "uuid": f"{kind}{n}", "sessionId": "s", "message": message}) + "\n"
            )
    return lines


@pytest.mark.parametrize("cut", [0, 1, 40])
def test_a_file_that_is_appended_to_is_read_on(tmp_path: Path, cut: int) -> None:
    lines = "".join(_session(30))
    path = tmp_path / "a.jsonl"
    at = sum(map(len, _session(9))) - cut
    path.write_text(lines[:at])
    document = open_run(path)
    document.build()
    assert not document.grow()
    assert bool(document.warnings) is (cut > 1)
    with path.open("a") as file:
        file.write(lines[at:])
    assert document.changed
    assert document.grow()
    assert not document.finished
    document.build()
    assert document.warnings == ()
    assert not document.changed
    assert list(document.steps()) == list(open_run(path).steps())


def test_the_steps_of_a_followed_run_stay_in_memory_however_often_it_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lines = tmp_path / "a.jsonl", "".join(_session(30))
    path.write_text(lines[:200])
    monkeypatch.setattr(limits, "CACHED_BYTES", 4 * len(lines))
    document = open_run(path)
    for at in range(230, len(lines), 30):
        list(document.steps())
        with path.open("a") as file:
            file.write(lines[at - 30 : at])
        assert document.grow()
    steps = list(document.steps())
    assert all(document.step(index) is step for index, step in enumerate(steps))


def test_a_file_that_is_rewritten_is_not_read_on(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(_session(9)))
    document = open_run(path)
    document.build()
    path.write_text("".join(_session(12)[2:]))
    assert document.changed
    assert not document.grow()
    again = open_run(write_run(tmp_path / "b", 6))
    again.build()
    write_run(tmp_path / "b", 8)
    assert not again.grow()


def test_where_the_layout_does_not_tell_the_index_does(tmp_path: Path) -> None:
    assert open_run(write_run(tmp_path / "a", 40, indent=None)).last_step() is None


def test_search_finds_what_is_shown(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a", 40, 'say "Hello" [x]\t\u00e9')
    document = open_run(path)
    plain = list(search_document(document, Query('"hello" [X]')))
    assert plain == []
    found = list(search_document(document, Query('"hello"')))
    assert len(found) == 40
    assert {hit.scope for hit in found} == {TextScope.TEXT, TextScope.RESULT}
    hit = next(hit for hit in found if hit.scope is TextScope.TEXT)
    assert hit.step is not None
    assert document.step(hit.step).text[hit.start : hit.end] == '"Hello"'
    assert [hit.step for hit in search_document(document, Query(r"message (7|8)\b", regex=True))] == [5, 6]
    assert [hit.step for hit in search_document(document, Query(r"[mn]essage 7", regex=True))] == [5]
    assert len(list(search_document(document, Query("\u00e9", scopes=[TextScope.RESULT])))) == 20
    assert len(list(search("hello", [tmp_path]))) == 40
    with pytest.raises(SearchError, match="not a regular expression"):
        Query("(", regex=True)


_PIECES = st.sampled_from(
    [b"a", b"A", b"s", b"S", b"k", b"fi", b'"', b"\\", b"\xc3", b"\xff", *map(str.encode, "ßﬁſKİØ日")]
)


@given(
    st.lists(_PIECES, max_size=200).map(b"".join),
    st.lists(st.sampled_from(["a", "s", "k", "fi", '"']), min_size=1),
)
def test_no_place_of_a_text_is_missed_in_any_bytes(data: bytes, needle: list[str]) -> None:
    form = "".join(needle).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "CHUNK", 64)
        for lower in (False, True):
            text = data.lower() if lower else data
            there = {at for at in range(len(text)) if text.startswith(form, at)}
            found = list(search_bytes(BytesBlob(data), (form,), lower=lower))
            assert there <= set(found)
            assert lower or there == set(found)
            some = search_bytes(BytesBlob(data), (form,), lower=lower)
            after, expected = next(some, None), found
            while after is not None:
                assert after == expected[0]
                expected = [place for place in expected if place >= after + 50]
                try:
                    after = some.send(after + 50)
                except StopIteration:
                    after = None
            assert not expected


def test_search_finds_in_long_texts(tmp_path: Path) -> None:
    document = open_run(write_run(tmp_path / "a", 4, "word " * 500_000 + "needle " + "word " * 10))
    hits = list(search_document(document, Query("needle")))
    assert [hit.start for hit in hits] == [10 + 2_500_000] * 4
    assert [hit.line[-15:] for hit in hits] == ["word word word "] * 4


def test_names_with_a_hash_split_where_the_file_is(tmp_path: Path) -> None:
    path = tmp_path / "run#1.json"
    write_run(path, 2)
    assert split_name(str(path)) == (path, "")
    assert split_name(join_name(str(path), "a#b/c")) == (path, "a%23b/c")
    assert split_name("x" * 5000 + "#y") == (Path("x" * 5000), "y")


def test_show_prints_a_run_and_a_step(tmp_path: Path) -> None:
    document = open_run(write_run(tmp_path / "a", 4))
    lines = list(show(document))
    assert "format       mini-swe-agent 1" in lines
    assert lines[-1].endswith("message 2 x")
    step = "\n".join(show(document, 3))
    assert "── text\nmessage 0 x" in step
    assert "── result\nmessage 1 x" in step
    with pytest.raises(IndexError):
        list(show(document, 99))


@pytest.mark.parametrize("prefix", ["", "x", "xy", "xyz"])
@pytest.mark.parametrize("unit", ["\u00e9", "\u6f22", "\U0001f600", "\\n", "\\u00e9", "\\ud83d\\ude00"])
def test_pieces_of_a_text_never_split_a_character(unit: str, prefix: str) -> None:
    literal = f'"{prefix}{unit * (limits.CHUNK // len(unit.encode()) + 9)}"'
    blob = BytesBlob(literal.encode())
    pieces = list(text_pieces(blob, ByteRange("", 0, blob.size)))
    assert len(pieces) == 2
    assert "".join(pieces) == json.loads(literal)


_ODD = st.sampled_from(
    [
        rb'"\ud800"', rb'"\ud83d\ude00"', b'"\xff"', b'"\xed\xa0\x80"', b'"a\x01b"', b"NaN", b"-Infinity", b"1e400",
        b"-0", b"-0.0", b"01", b"9007199254740993", b"18446744073709551616", b"-9223372036854775809", b"1" * 400,
        b"1" * 5000, b'{"a": 1, "b": 2, "a": 3}', b"[1,]", b'"\\/"', b"null", b"true", b'"open', b"",
    ]
)  # fmt: skip


@given(
    _ODD
    | st.lists(_ODD).map(lambda items: b"[" + b", ".join(items) + b"]")
    | st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(st.characters(exclude_categories=())),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    ).map(lambda value: json.dumps(value).encode())
    | st.binary(max_size=12)
)
def test_a_record_is_decoded_as_the_standard_library_does(raw: bytes) -> None:
    try:
        expected = repr(
            json.loads(raw.strip(b" \t\r\n\0\xef\xbb\xbf").decode("utf-8", "replace"), strict=False)
        )
    except (ValueError, RecursionError):
        expected = "can't be decoded"
    value, damage = load_record(BytesBlob(raw), 0, len(raw))
    assert (damage or repr(value)) == expected


def test_a_run_is_found_by_the_name_that_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "red\x1b[31m\udcff" / "a\nb#c.json"
    path.parent.mkdir()
    write_run(path, 2)
    printed = visible_line(str(path))
    assert not Path(printed).exists()
    assert split_name(printed) == (path, "")
    assert split_name(f"{printed}#a%23b") == (path, "a%23b")
    assert open_run(printed).step(0).text
    assert [listed.header is not None for listed in list_runs([printed])] == [True]
    write_run(path.parent / "a␊b#c.json", 2)
    assert split_name(printed)[0] == path.parent / "a␊b#c.json"
    assert split_name(str(tmp_path / "röt")) == (tmp_path / "röt", "")
