"""A task's archive has the same bytes every time, and unpacking it yields only the files of a task."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from builders import build_task

from gistpoint.core.errors import TaskError
from gistpoint.core.kinds import archive as archives
from gistpoint.core.kinds.archive import pack_task, unpack_task
from gistpoint.core.kinds.folder import read_answer, write_task
from gistpoint.core.tasks.model import Mode, Task


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return build_task(tmp_path / "made", Mode.REMOVE)


def test_packed_task_is_unpacked_as_it_was(task: Task, tmp_path: Path) -> None:
    pack_task(task.folder, tmp_path / "a.tar.zst")
    pack_task(task.folder, tmp_path / "b.tar.zst")
    assert (tmp_path / "a.tar.zst").read_bytes() == (tmp_path / "b.tar.zst").read_bytes()
    unpacked = unpack_task(tmp_path / "a.tar.zst", tmp_path / "into")
    assert unpacked.folder == tmp_path / "into" / task.id
    assert read_answer(unpacked) == read_answer(task)
    assert unpack_task(tmp_path / "a.tar.zst", tmp_path / "into") == unpacked
    assert [path.name for path in (tmp_path / "into").iterdir()] == [task.id]


def test_packed_task_keeps_the_map_of_tests(task: Task, tmp_path: Path) -> None:
    entered = {"pkg.py::f": frozenset({"t.py::a"})}
    write_task(task, replace(read_answer(task), entered=entered))
    pack_task(task.folder, tmp_path / "a.tar.zst")
    assert read_answer(unpack_task(tmp_path / "a.tar.zst", tmp_path / "into")).entered == entered


def test_archive_without_answer_holds_none(task: Task, tmp_path: Path) -> None:
    pack_task(task.folder, tmp_path / "public.tar.zst", with_answer=False)
    unpacked = unpack_task(tmp_path / "public.tar.zst", tmp_path / "into")
    assert not (unpacked.folder / "answer").exists()


def rewritten(task: Task, place: Path, change: Callable[[tarfile.TarFile], None]) -> Path:
    """Return an archive of the task after `change` added something to it."""
    pack_task(task.folder, place)
    buffer = io.BytesIO(zstandard.ZstdDecompressor().stream_reader(place.read_bytes()).read())
    with tarfile.open(fileobj=buffer, mode="a:") as tar:
        change(tar)
    place.write_bytes(zstandard.ZstdCompressor().compress(buffer.getvalue()))
    return place


def everything_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/tmp/gistpoint-evil",
        "//evil",
        "/evil",
        "answer/../../evil",
        "workspace/../task.toml",
        "evil",
        "sub/evil.json",
        "answer/baselines/../../../evil.json",
        "answer/baselines/.json",
        ".",
        "..",
        "./task.toml",
        "workspace/evil",
        "x\nevil",
    ],
)
def test_member_that_is_no_file_of_a_task_is_refused(task: Task, tmp_path: Path, name: str) -> None:
    def add(tar: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.size = 4
        tar.addfile(info, io.BytesIO(b"evil"))

    archive = rewritten(task, tmp_path / "evil.tar.zst", add)
    before = everything_below(tmp_path)
    with pytest.raises(TaskError, match="which is not a file of a task"):
        unpack_task(archive, tmp_path / "into")
    assert everything_below(tmp_path) == before | {"into"}
    assert not Path(name).is_absolute() or not Path(name).exists()


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE],
)
def test_member_that_is_no_plain_file_is_refused(task: Task, tmp_path: Path, kind: bytes) -> None:
    def add(tar: tarfile.TarFile) -> None:
        info = tarfile.TarInfo("answer/baselines/x.json")
        info.type, info.linkname = kind, "/etc/passwd"
        tar.addfile(info)

    with pytest.raises(TaskError, match="which is not a file of a task"):
        unpack_task(rewritten(task, tmp_path / "evil.tar.zst", add), tmp_path / "into")
    assert not list((tmp_path / "into").iterdir())


def test_archive_that_grows_too_large_or_too_many_is_refused(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack_task(task.folder, tmp_path / "a.tar.zst")
    monkeypatch.setattr(archives, "MAX_BYTES", 1000)
    with pytest.raises(TaskError, match="more than 1000 bytes"):
        unpack_task(tmp_path / "a.tar.zst", tmp_path / "into")
    monkeypatch.undo()
    monkeypatch.setattr(archives, "MAX_MEMBERS", 2)
    with pytest.raises(TaskError):
        unpack_task(tmp_path / "a.tar.zst", tmp_path / "into")
    assert not list((tmp_path / "into").iterdir())


@pytest.mark.parametrize(
    "content",
    [b"", b"noise", b"\x28\xb5\x2f\xfd", zstandard.compress(b"noise" * 400), zstandard.compress(b"")],
)
def test_what_is_no_archive_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.tar.zst").write_bytes(content)
    with pytest.raises(TaskError):
        unpack_task(tmp_path / "x.tar.zst", tmp_path / "into")


def test_cut_archive_is_told(task: Task, tmp_path: Path) -> None:
    pack_task(task.folder, tmp_path / "a.tar.zst")
    data = (tmp_path / "a.tar.zst").read_bytes()
    for size in range(0, len(data), max(1, len(data) // 20)):
        (tmp_path / "a.tar.zst").write_bytes(data[:size])
        with pytest.raises(TaskError):
            unpack_task(tmp_path / "a.tar.zst", tmp_path / "into")


def test_id_of_a_task_without_answer_is_no_path(task: Task, tmp_path: Path) -> None:
    public = task.folder / "task.toml"
    public.write_text(public.read_text().replace(task.id, "../../outside"))
    pack_task(task.folder, tmp_path / "a.tar.zst", with_answer=False)
    with pytest.raises(TaskError, match="'id'"):
        unpack_task(tmp_path / "a.tar.zst", tmp_path / "in" / "to")
    assert not (tmp_path / "outside").exists()


def _dressed(tar: tarfile.TarFile, name: str, **about: object) -> None:
    """Add a member of two bytes, whose header has further fields."""
    info = tarfile.TarInfo(name)
    for field, value in {"size": 2, **about}.items():
        setattr(info, field, value)
    tar.addfile(info, io.BytesIO(b"{}"))


def _public(task: Task) -> bytes:
    return (task.folder / "task.toml").read_bytes()


def _again(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))


ODD: dict[str, Callable[[Task, tarfile.TarFile], object]] = {
    "a second manifest of another task": lambda task, tar: _again(
        tar, "task.toml", _public(task).replace(task.id.encode(), b"0" * 64)
    ),
    "a second manifest with a path as its id": lambda task, tar: _again(
        tar, "task.toml", _public(task).replace(task.id.encode(), b"../../x")
    ),
    "a second tree": lambda task, tar: _again(tar, "workspace/tree.tar", b"\0" * 10_240),
    "a second answer": lambda task, tar: _again(tar, "answer/answer.json", b"{}"),
    "a manifest nested too deeply": lambda task, tar: _again(
        tar, "task.toml", _public(task) + b"x = " + (b"{" + b".".join([b"a"] * 60) + b" = ") * 99 + b"1" + b"}" * 99
    ),
    "an answer nested too deeply": lambda task, tar: _again(tar, "answer/answer.json", b'{"x":' + b"[" * 100_000),
    "a manifest of many tables": lambda task, tar: _again(
        tar, "task.toml", _public(task) + b"\n" * 250_000
    ),
    "a manifest of one long line": lambda task, tar: _again(tar, "task.toml", _public(task) + b"#" * (1 << 24)),
    "names that differ by case": lambda _, tar: _dressed(tar, "answer/baselines/FAKE-none.json"),
    "names that differ by normal form": lambda _, tar: [
        _dressed(tar, f"answer/baselines/{name}.json") for name in ("a\u0065\u0301", "a\u00e9")
    ],
    "a name that no file system takes": lambda _, tar: _dressed(tar, f"answer/baselines/{'a' * 300}.json"),
    "a name with control characters": lambda _, tar: _dressed(tar, "answer/baselines/a\x1b[31m\u202e.json"),
    "a contiguous file": lambda _, tar: _dressed(tar, "answer/baselines/x.json", type=tarfile.CONTTYPE),
    "a folder in a file's place": lambda _, tar: _dressed(tar, "task.toml/x"),
    "many members": lambda _, tar: [_dressed(tar, f"answer/baselines/b{n}.json") for n in range(1_001)],
}  # fmt: skip
"""Additions that somebody may make to the archive of a task that is already here."""


@pytest.mark.parametrize("name", ODD)
def test_a_refused_archive_leaves_the_store_as_it_was(task: Task, tmp_path: Path, name: str) -> None:
    store = tmp_path / "store"
    pack_task(task.folder, tmp_path / "a.tar.zst")
    unpack_task(tmp_path / "a.tar.zst", store)
    before = {path: path.is_file() and path.read_bytes() for path in store.rglob("*")}
    archive = rewritten(task, tmp_path / "evil.tar.zst", lambda tar: ODD[name](task, tar))
    with pytest.raises(TaskError) as refused:
        unpack_task(archive, store)
    assert {path: path.is_file() and path.read_bytes() for path in store.rglob("*")} == before
    assert str(tmp_path) not in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 500


def test_owners_rights_and_times_of_an_archive_are_not_taken_over(task: Task, tmp_path: Path) -> None:
    def add(tar: tarfile.TarFile) -> None:
        content = _public(task)
        info = tarfile.TarInfo("task.toml")
        info.size, info.mode, info.uid, info.mtime = len(content), 0o6777, 4_000_000, 1 << 60
        tar.addfile(info, io.BytesIO(content))

    place = unpack_task(rewritten(task, tmp_path / "a.tar.zst", add), tmp_path / "store").folder / "task.toml"
    assert not place.stat().st_mode & 0o7133
    assert place.stat().st_uid == tmp_path.stat().st_uid
    assert place.stat().st_mtime < 1 << 40
