"""What is made whole or not at all, and what killed processes left."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from killed_processes import mark_of_killed

from gistpoint.core.logs import replace_file
from gistpoint.core.unfinished import (
    leftovers_below,
    made_in,
    mark,
    part_of,
    remove_abandoned,
    scratch_folder,
    scratch_leftovers,
    whole_folder,
)


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_folder_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "made") as part:
        (part / "file").write_text("one")
        assert not (tmp_path / "made").exists()
    assert _names(tmp_path) == {"made"}
    assert (tmp_path / "made" / "file").read_text() == "one"


def test_a_full_disk_leaves_no_folder_and_names_the_target(tmp_path: Path) -> None:
    def make() -> None:
        with whole_folder(tmp_path / "made") as part:
            (part / "file").write_text("half")
            raise OSError(28, "No space left on device", str(part / "file"))

    with pytest.raises(OSError, match="No space") as failed:
        make()
    assert failed.value.filename == str(tmp_path / "made")
    assert not _names(tmp_path)


def test_an_empty_folder_is_filled_and_another_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with whole_folder(tmp_path / "empty") as part:
        (part / "file").touch()
    assert _names(tmp_path / "empty") == {"file"}
    with pytest.raises(OSError, match="not empty"), whole_folder(tmp_path / "empty") as part:
        (part / "other").touch()
    assert _names(tmp_path / "empty") == {"file"}
    assert _names(tmp_path) == {"empty"}


MACHINE, _, PROCESS = mark().partition("-")
OTHERS = {
    "of this process": f".a.{mark()}.part",
    "of another machine": f".a.gp{'0' * 6}-{mark_of_killed().partition('-')[2]}.part",
    "not ours": ".a.notes.part",
    "of another file": f".b.{mark_of_killed()}.part",
}


@pytest.mark.parametrize("what", OTHERS)
def test_only_what_a_killed_process_of_this_machine_left_is_removed(what: str, tmp_path: Path) -> None:
    (tmp_path / f".a.{mark_of_killed()}.part").mkdir()
    (tmp_path / f".a.{mark_of_killed()}-77.part").touch()
    (tmp_path / OTHERS[what]).touch()
    remove_abandoned(tmp_path / "a")
    assert _names(tmp_path) == {OTHERS[what]}


def test_of_two_that_make_one_folder_the_second_fails_and_removes_nothing(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "a") as first:
        (first / "file").touch()
        with pytest.raises(FileExistsError, match="/a'"), whole_folder(tmp_path / "a"):
            pass
    assert _names(tmp_path / "a") == {"file"}


def test_what_belongs_to_another_user_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = tmp_path / f".a.{mark_of_killed()}.part"
    left.touch()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    remove_abandoned(tmp_path / "a")
    assert leftovers_below([tmp_path]) == []
    assert left.exists()


def test_a_folder_for_making_removes_the_earlier_ones_of_killed_processes(tmp_path: Path) -> None:
    (tmp_path / f".making-{mark_of_killed()}-abc" / "inside").mkdir(parents=True)
    (tmp_path / f".unpacking-{mark_of_killed()}-abc").mkdir()
    made = made_in(tmp_path, "making")
    assert _names(tmp_path) == {made.name, f".unpacking-{mark_of_killed()}-abc"}


def test_a_temporary_folder_removes_the_earlier_ones_of_the_same_purpose(tmp_path: Path) -> None:
    (tmp_path / f"gistpoint-build-{mark_of_killed()}-x").mkdir()
    (tmp_path / f"gistpoint-uv-{mark_of_killed()}-x").mkdir()
    (tmp_path / f"gistpoint-build-{mark()}-x").mkdir()
    with scratch_folder("build", tmp_path) as name:
        assert _names(tmp_path) == {
            Path(name).name, f"gistpoint-uv-{mark_of_killed()}-x", f"gistpoint-build-{mark()}-x"
        }  # fmt: skip
    assert not Path(name).exists()


def test_housekeeping_finds_old_leftovers_in_a_home_and_nothing_else(tmp_path: Path) -> None:
    old, day = tmp_path / "data" / f".task.gp{'0' * 6}-1.part", 25 * 3600
    young = tmp_path / "data" / f".task.gp{'1' * 6}-1.part"
    names = (
        ".deleted/x",
        "attempts/01m82p",
        ".notes-240131-1530",
        ".a.240131-0900.part",
        f".a.{mark()}.part",
    )
    for path in (old, young, *(tmp_path / "data" / name for name in names)):
        path.mkdir(parents=True)
        os.utime(path, (time.time() - day, time.time() - day))
    os.utime(young)
    assert leftovers_below([tmp_path]) == [old]


def test_housekeeping_finds_temporary_folders_of_killed_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in (
        f"gistpoint-uv-{mark_of_killed()}-x",
        f"gistpoint-uv-{mark()}-x",
        f"gistpoint-uv-{mark()}-old",
        "gistpoint-notes",
        "other",
    ):
        (tmp_path / name).mkdir()
    os.utime(tmp_path / f"gistpoint-uv-{mark()}-old", (0, 0))
    assert [path.name for path in scratch_leftovers()] == [f"gistpoint-uv-{mark_of_killed()}-x"]


def test_records_are_written_under_names_that_are_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", killed)
    monkeypatch.setattr(Path, "unlink", lambda self, missing_ok=False: None)
    with pytest.raises(KeyboardInterrupt):
        replace_file(tmp_path / "a", b"half")
    monkeypatch.undo()
    (left,) = tmp_path.iterdir()
    left.rename(tmp_path / left.name.replace(mark(), mark_of_killed()))
    assert part_of(tmp_path / "a").name == f".a.{mark()}.part"
    remove_abandoned(tmp_path / "a")
    assert not _names(tmp_path)
