"""The journal keeps what was acknowledged, reveals changes, and has one writing process."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest
from examples import examples
from fakes import FakeClock
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.attempts.events import (
    BufferEdited,
    CallMade,
    EventData,
    Heartbeat,
    JournalEvent,
    NotesWritten,
    SuspectMarked,
    event_data,
)
from gistpoint.core.errors import AttemptError
from gistpoint.core.logs import files, line_hash, torn_path
from gistpoint.sessions import journal as journals
from gistpoint.sessions.heads import Head, HeadFile, head_path, read_head
from gistpoint.sessions.journal import JOURNAL, JournalWriter, decoded, encode, read_journal

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


TEXT = st.text(st.characters(), max_size=8)
OBJECT = st.dictionaries(TEXT, JSON, max_size=3)
NEWER = "Its events have format version 2"
SUSPECT = SuspectMarked("a.py::f")


def undeclared(members: dict[str, Any]) -> dict[str, Any]:
    """Return the members that are not fields of a call."""
    return {name: value for name, value in members.items() if name not in CallMade.__struct_fields__}


def written(folder: Path, count: int = 5) -> Path:
    writer = JournalWriter(folder, FakeClock())
    for number in range(count):
        writer.append(NotesWritten(f"line {number}"))
    writer.close()
    return folder / JOURNAL


@examples(60)
@given(
    items=st.lists(
        st.builds(
            CallMade, call_id=TEXT, tool=TEXT, extra=OBJECT.map(undeclared), arguments=OBJECT, thought=TEXT
        )
        | st.builds(NotesWritten, TEXT)
        | st.just(Heartbeat()),
        max_size=6,
    )
)
def test_what_is_appended_is_read_back_in_a_chain(
    tmp_path_factory: pytest.TempPathFactory, items: list[EventData]
) -> None:
    folder, clock = tmp_path_factory.mktemp("journal"), FakeClock()
    writer = JournalWriter(folder, clock)
    events = []
    for data in items:
        clock.advance(7)
        events.append(writer.append(data))
    writer.close()
    content = read_journal(folder / JOURNAL)
    assert list(content.events) == events
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert (content.torn, content.broken_at, content.head) == (0, None, writer.head)
    head = ""
    for line, event in zip((folder / JOURNAL).read_bytes().split(b"\n"), events, strict=False):
        assert event.prev == head
        assert line.isascii()
        head = line_hash(line)


def test_durable_event_is_synced_before_append_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = JournalWriter(tmp_path, FakeClock())
    synced: list[int] = []
    monkeypatch.setattr(files, "sync_file", lambda file: synced.append(os.fstat(file).st_size))
    writer.append(SUSPECT)
    assert synced == [(tmp_path / JOURNAL).stat().st_size]
    writer.close()


def test_events_in_groups_are_written_at_once_and_synced_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Waiting:
        started: ClassVar[list[Waiting]] = []

        def __init__(self, seconds: float, function: Any) -> None:
            self.seconds, self.function, self.daemon = seconds, function, False

        def start(self) -> None:
            self.started.append(self)

        def cancel(self) -> None:
            self.started.remove(self)

    monkeypatch.setattr(journals, "Timer", Waiting)
    synced: list[int] = []
    monkeypatch.setattr(files, "sync_file", lambda file: synced.append(os.fstat(file).st_size))
    writer = JournalWriter(tmp_path, FakeClock())
    synced.clear()
    for number in range(10):
        writer.append(BufferEdited(buffer="a.py::f", text=str(number)))
    assert read_head(tmp_path) == Head(0, "")
    assert len(read_journal(tmp_path / JOURNAL).events) == 10
    assert synced == []
    assert [timer.seconds for timer in Waiting.started] == [1.0]
    Waiting.started[0].function()
    assert synced == [(tmp_path / JOURNAL).stat().st_size]
    assert read_head(tmp_path) == Head(10, writer.head)
    writer.append(Heartbeat())
    assert len(Waiting.started) == 2
    writer.close()
    assert len(synced) == 2


@pytest.mark.parametrize("tail", [b"{", b'{"seq":6,"type":"note"', b"\0" * 40, b"\xff\xfe", b'{"seq":6}'])
def test_torn_tail_is_moved_away_when_opened_for_writing(tmp_path: Path, tail: bytes) -> None:
    path = written(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    content = read_journal(path)
    assert (len(content.events), content.torn) == (5, len(tail))
    assert not torn_path(path).exists()
    writer = JournalWriter(tmp_path, FakeClock())
    assert len(writer.events) == 5
    assert path.read_bytes() == whole
    assert torn_path(path).read_bytes() == tail + b"\n"
    writer.append(NotesWritten("after"))
    writer.close()
    content = read_journal(path)
    assert content.broken_at is None
    assert content.events[-1].seq == 6


@given(cut=st.integers(0, 2000))
@examples(40)
def test_a_journal_that_was_cut_is_not_gone_on_with_unless_it_came_from_elsewhere(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    path = written(folder)
    data = path.read_bytes()
    size = cut % (len(data) + 1)
    path.write_bytes(data[:size])
    for _ in range(2):
        if data[:size].count(b"\n") < 5:
            with pytest.raises(AttemptError, match=r"can be read, but not resumed\. It was cut off"):
                JournalWriter(folder, FakeClock())
        assert path.read_bytes() == data[:size]
    head_path(folder).unlink()
    writer = JournalWriter(folder, FakeClock())
    assert len(writer.events) == data[:size].count(b"\n")
    writer.append(SUSPECT)
    writer.close()
    content = read_journal(path)
    assert content.fault == ""
    assert content.kept == Head(len(content.events), content.head, len(content.events))


def test_events_of_two_threads_follow_each_other_in_the_chain(tmp_path: Path) -> None:
    reached, free = threading.Event(), threading.Event()

    class HeldClock(FakeClock):
        def mono_ms(self) -> int:
            if not reached.is_set():
                reached.set()
                assert free.wait(10)
            return super().mono_ms()

    writer = JournalWriter(tmp_path, HeldClock())
    first = threading.Thread(target=writer.append, args=(NotesWritten("first"),))
    second = threading.Thread(target=writer.append, args=(NotesWritten("second"),))
    first.start()
    assert reached.wait(10)
    second.start()
    second.join(0.2)  # unlocked, it would have written by now, with the number of the first event
    free.set()
    for thread in (first, second):
        thread.join(10)
    writer.close()
    content = read_journal(tmp_path / JOURNAL)
    assert content.broken_at is None
    assert [event.data for event in content.events] == [NotesWritten("first"), NotesWritten("second")]


def test_every_change_of_a_line_is_found_and_the_line_named(tmp_path: Path) -> None:
    path = written(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    edited = lines[2].replace(b"line 2", b"line X")
    path.write_bytes(b"".join([*lines[:2], edited, *lines[3:]]))
    assert read_journal(path).broken_at == 4
    path.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    assert read_journal(path).broken_at == 3
    path.write_bytes(b"".join([lines[1], lines[0], *lines[2:]]))
    assert read_journal(path).broken_at == 1
    path.write_bytes(b"".join([*lines, lines[-1]]))
    assert read_journal(path).broken_at == 6
    path.write_bytes(b"".join(lines))
    assert read_journal(path).broken_at is None


def test_the_number_of_the_last_line_is_checked_though_no_other_line_holds_its_hash(tmp_path: Path) -> None:
    path = written(tmp_path)
    for number in (b"4", b"6"):
        first, last = path.read_bytes().rstrip(b"\n").rsplit(b"\n", 1)
        other = tmp_path / number.decode()
        other.mkdir()
        (other / JOURNAL).write_bytes(first + b"\n" + last.replace(b'"seq":5', b'"seq":' + number) + b"\n")
        assert read_journal(other / JOURNAL).broken_at == 5


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"x",
        b"\xff",
        b"[" * 9000,
        b'{"seq":1e999,"type":"a","utc_ms":1,"mono_ms":1,"data":{},"prev":""}',
        b'{"seq":1,"type":"a","utc_ms":1,"mono_ms":1,"data":[1],"prev":""}',
        b'{"seq":"x","type":"a","utc_ms":1,"mono_ms":1,"data":{},"prev":""}',
    ],
)
def test_whole_line_that_is_no_event_is_named_and_the_lock_let_go(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path, 2)
    path.write_bytes(path.read_bytes() + line + b"\n")
    for _ in range(2):
        with pytest.raises(AttemptError, match=r"not resumed\. Line 3 is not an event"):
            JournalWriter(tmp_path, FakeClock())
    content = read_journal(path)
    assert (len(content.events), content.broken_at) == (2, 3)


def test_the_head_is_of_the_last_event_that_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = JournalWriter(tmp_path, FakeClock())
    at_sync: list[Head | None] = []
    monkeypatch.setattr(files, "sync_file", lambda file: at_sync.append(read_head(tmp_path)))
    first = writer.append(SUSPECT)
    assert (at_sync, read_head(tmp_path)) == ([Head(0, "")], Head(1, writer.head)), (
        "after the event, never before it"
    )
    writer.append(Heartbeat())
    assert read_head(tmp_path) == Head(1, line_hash(encode(first)))
    last = writer.append(SUSPECT)
    assert read_head(tmp_path) == Head(3, line_hash(encode(last)))
    writer.close()
    monkeypatch.undo()
    JournalWriter(tmp_path, FakeClock()).close()
    assert read_head(tmp_path) == Head(3, line_hash(encode(last)))


def test_a_journal_may_be_ahead_of_its_head(tmp_path: Path) -> None:
    path = written(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    HeadFile(tmp_path, Head(2, line_hash(lines[1]))).close()
    assert read_journal(path).fault == ""
    writer = JournalWriter(tmp_path, FakeClock())
    assert len(writer.events) == 5
    writer.close()
    assert read_head(tmp_path) == Head(5, line_hash(lines[4]))


def test_a_recomputed_chain_does_not_have_the_head(tmp_path: Path) -> None:
    path, other = written(tmp_path / "a"), tmp_path / "b"
    writer = JournalWriter(other, FakeClock())
    for number in range(9):
        writer.append(NotesWritten(f"another {number}"))
    writer.close()
    path.write_bytes((other / JOURNAL).read_bytes())
    content = read_journal(path)
    assert content.broken_at is None
    assert content.fault == "It was rewritten: event 5 is not the one that was stored."
    with pytest.raises(AttemptError, match="was rewritten"):
        JournalWriter(tmp_path / "a", FakeClock())


@pytest.mark.parametrize(
    "head", [b"noise", b"[]", b"{}", b'{"format":"gistpoint.head","version":2}', b"[" * 9000, b"\xff"]
)
def test_a_head_that_can_not_be_read_is_no_missing_one(tmp_path: Path, head: bytes) -> None:
    path = written(tmp_path)
    head_path(tmp_path).write_bytes(head)
    assert "can't be read" in read_journal(path).fault
    with pytest.raises(AttemptError, match="can't be read"):
        JournalWriter(tmp_path, FakeClock())


@pytest.mark.parametrize("head", [b"", b"\0" * 256])
def test_a_head_that_a_power_cut_left_empty_is_a_missing_one(tmp_path: Path, head: bytes) -> None:
    path = written(tmp_path)
    head_path(tmp_path).write_bytes(head)
    assert (read_journal(path).fault, read_journal(path).kept) == ("", None)


def test_a_journal_without_an_event_can_be_discarded(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "a", FakeClock())
    writer.discard()
    assert not (tmp_path / "a").exists()
    assert read_head(tmp_path / "a") is None
    writer = JournalWriter(tmp_path / "b", FakeClock())
    writer.append(SUSPECT)
    writer.discard()
    assert len(read_journal(tmp_path / "b" / JOURNAL).events) == 1


def test_second_writer_is_refused_until_the_first_has_closed(tmp_path: Path) -> None:
    first = JournalWriter(tmp_path, FakeClock())
    with pytest.raises(AttemptError, match="open in another window or process"):
        JournalWriter(tmp_path, FakeClock())
    code = (
        "import sys\nfrom pathlib import Path\nfrom gistpoint.core.machine_time import SystemTime\n"
        "from gistpoint.core.errors import AttemptError\nfrom gistpoint.sessions.journal import JournalWriter\n"
        "try:\n    JournalWriter(Path(sys.argv[1]), SystemTime()).close()\nexcept AttemptError:\n    sys.exit(3)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    assert subprocess.run(command, check=False).returncode == 3
    first.append(SUSPECT)
    first.close()
    first.close()
    assert subprocess.run(command, check=False).returncode == 0
    assert len(read_journal(tmp_path / JOURNAL).events) == 1


def test_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = JournalWriter(tmp_path, FakeClock())
    writer.append(NotesWritten("before"))
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: _full(write, file, data))
    with pytest.raises(OSError, match="No space"):
        writer.append(NotesWritten("does not fit"))
    monkeypatch.undo()
    writer.append(NotesWritten("after"))
    writer.close()
    content = read_journal(tmp_path / JOURNAL)
    assert [event.data.written()["text"] for event in content.events] == ["before", "after"]
    assert (content.broken_at, content.torn) == (None, 0)


def _full(write: Any, file: int, data: Any) -> int:
    if len(data) > 20:
        return int(write(file, data[:20]))
    raise OSError(errno.ENOSPC, "No space left on device")


def test_data_that_is_no_json_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, FakeClock())
    with pytest.raises(TypeError):
        writer.append(CallMade(call_id="", tool="", arguments={"text": object()}))
    writer.append(SUSPECT)
    writer.close()
    assert len(read_journal(tmp_path / JOURNAL).events) == 1


def test_line_is_one_line_of_json_with_the_stated_keys() -> None:
    line = encode(JournalEvent(3, "note", 10, 20, NotesWritten("a\nb\u2028c"), "ff"))
    assert line.count(b"\n") == 1
    assert list(json.loads(line)) == ["seq", "type", "utc_ms", "mono_ms", "prev", "data"]


@pytest.mark.parametrize("data", [{"schema": 2}, {"schema": 2, "attempt_id": 7}])
def test_a_journal_of_newer_events_is_read_and_not_resumed(tmp_path: Path, data: dict[str, Any]) -> None:
    path = tmp_path / JOURNAL
    for schema in (1, 2):
        event = event_data("attempt_started", {**data, "schema": schema})
        path.write_bytes(encode(JournalEvent(1, "attempt_started", 0, 0, event, "")))
        content = read_journal(path)
        assert len(content.events) == 1
        assert content.fault == (
            "" if schema == 1 else f"{NEWER}, but this version of gistpoint knows version 1."
        )
    before = path.read_bytes()
    with pytest.raises(AttemptError, match=rf"not resumed\. {NEWER}"):
        JournalWriter(tmp_path, FakeClock())
    assert path.read_bytes() == before


def test_missing_journal_is_told(tmp_path: Path) -> None:
    with pytest.raises(AttemptError, match="is missing"):
        read_journal(tmp_path / JOURNAL)


@pytest.mark.parametrize(
    "form",
    [
        lambda text: text.encode(),
        lambda text: b" " + text.encode() + b" \t",
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.replace('{"seq"', '{ "seq"').encode(),
        lambda text: text.encode() + b"{}",
        lambda text: text[:-1].encode(),
        lambda text: text.replace("noted", "\ud800").encode("utf-8", "surrogatepass"),
        lambda text: text.replace('"noted"', "NaN").encode(),
        lambda text: text.encode().replace(b"noted", b"\xff"),
    ],
)
def test_a_line_is_an_event_if_it_is_json(form: Any) -> None:
    data = {"text": "noted"}
    text = json.dumps({"seq": 1, "type": "other", "utc_ms": 2, "mono_ms": 3, "prev": "", "data": data})
    line = form(text)
    try:
        value = json.loads(line)
    except ValueError:
        assert decoded(line) is None
    else:
        event = decoded(line)
        assert event is not None
        assert repr(event.data.written()) == repr(value["data"])
