"""The append log and the lock: the order of writes to the disk, and the holders of locks."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import pytest

from gistpoint.core.errors import UserError
from gistpoint.core.logs import (
    AppendLog,
    FileLock,
    LogContent,
    LogKind,
    NoLocksError,
    create_file,
    files,
    is_held,
    locks,
    read_log,
    replace_file,
    take,
    torn_path,
    wait_for,
)

KIND = LogKind("test.log", 2, b'{"format":"test.log","version":2}\n')


def appended(path: Path, *lines: bytes) -> None:
    with AppendLog(path, KIND, wait_for(path)) as log:
        for line in lines:
            log.append(line)


def test_a_new_log_has_its_header_and_is_in_its_folder_before_it_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    path = tmp_path / "x.jsonl"
    monkeypatch.setattr(files, "sync_file", lambda file: order.append(f"file {os.fstat(file).st_size}"))
    monkeypatch.setattr(files, "sync_folder", lambda place: order.append(place.name))
    appended(path, b"1\n", b"22\n")
    size = len(KIND.header)
    assert order == [f"file {size + 2}", tmp_path.name, f"file {size + 5}"]
    assert path.read_bytes() == KIND.header + b"1\n22\n"


@pytest.mark.parametrize("bytes_torn", [1, 65_535, 65_536, 65_537, 200_000])
def test_a_torn_line_is_on_the_disk_aside_before_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_torn: int
) -> None:
    path = tmp_path / "x.jsonl"
    appended(path, b"1\n")
    whole = path.read_bytes()
    path.write_bytes(whole + b"x" * bytes_torn)
    order: list[str] = []
    cut = os.ftruncate
    monkeypatch.setattr(files, "sync_file", lambda file: order.append("file"))
    monkeypatch.setattr(files, "sync_folder", lambda place: order.append("folder"))
    monkeypatch.setattr(os, "ftruncate", lambda file, size: (order.append(f"cut {size}"), cut(file, size)))
    appended(path, b"2\n")
    assert order == ["file", "folder", f"cut {len(whole)}", "file"]
    assert path.read_bytes() == whole + b"2\n"
    assert torn_path(path).read_bytes() == b"x" * bytes_torn + b"\n"
    assert torn_path(path).stat().st_mode & 0o777 == 0o600


def test_what_was_torn_off_one_log_is_never_another_log(tmp_path: Path) -> None:
    for name in ("x.jsonl", "x", "x.torn", "x.json"):
        assert torn_path(tmp_path / name) != tmp_path / name


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl"
    appended(path, b"1\n")
    before, write = path.read_bytes(), os.write

    def full(file: int, data: bytes) -> int:
        if len(data) > 3:
            return write(file, bytes(data)[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            appended(path, b"123456789\n")
    assert path.read_bytes() == before
    appended(path, b"2\n")
    assert read_log(path, KIND).lines[1:] == (b"1", b"2")


def test_a_file_is_replaced_whole_and_on_the_disk_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, order = tmp_path / "x.json", list[str]()
    replace_file(path, b"old", durable=False, mode=0o600)
    monkeypatch.setattr(
        files, "sync_file", lambda file: order.append(f"{os.fstat(file).st_size} {path.read_text()}")
    )
    monkeypatch.setattr(files, "sync_folder", lambda place: order.append(path.read_text()))
    replace_file(path, b"the new one", mode=0o600)
    assert order == ["11 old", "the new one"]
    replace_file(path, b"third", durable=False, mode=0o600)
    assert len(order) == 2
    monkeypatch.setattr(os, "fdopen", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(OSError, match="full"):
        replace_file(path, b"fourth")
    assert [(found.name, found.read_bytes()) for found in tmp_path.iterdir()] == [("x.json", b"third")]
    assert path.stat().st_mode & 0o777 == 0o600


def test_of_two_who_create_a_file_the_first_decides(tmp_path: Path) -> None:
    path = tmp_path / "key"
    create_file(path, b"first")
    create_file(path, b"second")
    assert [(found.name, found.read_bytes()) for found in tmp_path.iterdir()] == [("key", b"first")]


@pytest.mark.parametrize(
    ("first", "refused"),
    [
        (b'{"format":"test.log","version":1}', False),
        (b'{"format":"test.log","version":2}', False),
        (b'{"format":"test.log","version":3}', True),
        (b'{"format":"test.log","version":"2"}', True),
        (b'{"format":"test.log","version":true}', True),
        (b'{"format":"another","version":3}', False),
        (b'{"version":3}', False),
        (b'["version"]', False),
        (b'"version"' + b"[" * 9_000, False),
        (b"\xff", False),
    ],
)
def test_only_a_newer_version_of_the_same_kind_is_refused(
    tmp_path: Path, first: bytes, refused: bool
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(first + b"\ntorn")
    if not refused:
        assert read_log(path, KIND) == LogContent((first,), b"torn")
        appended(path, b"1\n")
        assert path.read_bytes() == first + b"\n1\n"
        return
    with pytest.raises(
        UserError, match=r"x\.jsonl is version .* of test\.log, but this version of gistpoint knows version 2"
    ):
        read_log(path, KIND)
    with pytest.raises(UserError, match="Install a newer gistpoint") as kept:  # its frames keep the log alive
        appended(path, b"1\n")
    assert kept.value.__traceback__ is not None
    assert path.read_bytes() == first + b"\ntorn"
    assert not is_held(path)


def test_the_lock_is_held_by_one_and_let_go_with_its_object(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_held(path)
    held = take(path)
    assert held is not None
    assert is_held(path)
    assert take(path) is None
    held.release()
    held.release()
    assert not is_held(path)
    again = take(path)
    assert again is not None
    del again
    assert not is_held(path)
    (tmp_path / "folder").mkdir()
    with wait_for(os.open(tmp_path / "folder", os.O_RDONLY)):
        assert is_held(tmp_path / "folder")
        assert take(os.open(tmp_path / "folder", os.O_RDONLY)) is None


def test_who_waits_has_it_when_the_holder_lets_go(tmp_path: Path) -> None:
    path, order = tmp_path / "lock", list[str]()
    held = wait_for(path)

    def wait() -> None:
        with wait_for(path):
            order.append("second")

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.05)
    order.append("first")
    held.release()
    thread.join()
    assert order == ["first", "second"]


def test_who_shares_it_lets_others_share_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with wait_for(path, shared=True):
        with wait_for(path, shared=True):
            assert take(path) is None
        assert take(path) is None
    taken = take(path)
    assert taken is not None
    taken.release()


def test_a_glance_at_the_lock_makes_nobody_fail(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    glance = wait_for(path, shared=True)
    threading.Timer(0.03, glance.release).start()
    taken = take(path)
    assert taken is not None
    taken.release()


def test_a_file_system_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    path = tmp_path / "lock"
    path.touch()
    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    for ask in (take, wait_for):
        with pytest.raises(NoLocksError, match="lock can't be locked: No locks available"):
            ask(path)
    assert is_held(path), "nobody can say that it is free"


def test_a_file_that_can_not_be_opened_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        FileLock(tmp_path)


def test_without_locks_no_empty_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    (tmp_path / "filled").write_text("a line\n")
    for name in ("new", "filled"):
        with pytest.raises(NoLocksError, match=name):
            wait_for(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["filled"]
