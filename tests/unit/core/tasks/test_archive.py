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
