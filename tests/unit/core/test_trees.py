"""Trees become deterministic tars, and none of their entries points to a parent or outside."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest
from small_trees import Link, tree_of

from gistpoint.core.errors import TaskError
from gistpoint.core.tasks.leaks import leaks_of
from gistpoint.core.trees import SourceTree, sha256_of, write_tar, write_tree


def laid_out(folder: Path) -> Path:
    for path, text in {
        "pkg/__init__.py": "",
        "pkg/mod.py": "x = 1\n",
        "pkg/__pycache__/mod.cpython-311.pyc": "x",
        "pkg/stale.pyc": "x",
        ".git/HEAD": "ref",
        "build/lib/pkg/mod.py": "x = 1\n",
        "pkg/build/kept.py": "x = 1\n",
        "pkg.egg-info/SOURCES.txt": "x",
        "env/pyvenv.cfg": "home",
        "env/lib/pkg/mod.py": "x = 1\n",
        "run.sh": "#!/bin/sh\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "run.sh").chmod(0o700)
    (folder / "alias.py").symlink_to("pkg/mod.py")
    (folder / "outside").symlink_to("/etc")
    return folder


def test_written_tree_leaves_out_history_bytecode_environments_and_links_out(tmp_path: Path) -> None:
    write_tree(laid_out(tmp_path / "repo"), tmp_path / "tree.tar")
    tree = SourceTree.open(tmp_path / "tree.tar")
    assert sorted(tree.members) == [
        "alias.py",
        "pkg/__init__.py",
        "pkg/build/kept.py",
        "pkg/mod.py",
        "run.sh",
    ]
    assert tree.members["run.sh"].executable
    assert not tree.members["pkg/mod.py"].executable


def linked(folder: Path) -> Path:
    laid_out(folder)
    (folder / "pkg/data").mkdir()
    for path, target in {
        "absolute.py": folder / "pkg/mod.py",
        "pkg/data/absolute.py": folder.absolute() / "pkg/mod.py",
        "pkg/data/folder": folder / "pkg/build",
        "pkg/data/of_link.py": folder / "alias.py",
        "by_name.py": f"../{folder.name}/pkg/mod.py",
        "pkg/data/by_name.py": f"../../../{folder.name}/alias.py",
        "gone.py": folder / "gone",
        "pkg/data/plain.py": "../../alias.py",
        "to_folder/": folder / "pkg/data",
    }.items():
        (folder / path).symlink_to(target)
    return folder


def test_links_inside_the_folder_do_not_name_it(tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to("b")
    places = [linked(tmp_path / "a"), linked(tmp_path / "b"), tmp_path / "alias"]
    assert len({write_tree(place, tmp_path / f"{place.name}.tar") for place in places}) == 1
    assert str(tmp_path).encode() not in (tmp_path / "a.tar").read_bytes()
    tree = SourceTree.open(tmp_path / "a.tar")
    assert not list(leaks_of(tree, ()))
    assert {path: member.link for path, member in tree.members.items() if member.link} == {
        "alias.py": "pkg/mod.py",
        "absolute.py": "pkg/mod.py",
        "pkg/data/absolute.py": "../mod.py",
        "pkg/data/folder": "../build",
        "pkg/data/of_link.py": "../mod.py",
        "by_name.py": "pkg/mod.py",
        "pkg/data/by_name.py": "../mod.py",
        "gone.py": "gone",
        "pkg/data/plain.py": "../../alias.py",
        "to_folder": "pkg/data",
    }
    for path in ("absolute.py", "pkg/data/by_name.py", "pkg/data/plain.py", "to_folder/folder/kept.py"):
        assert tree.read(path) == b"x = 1\n"


def test_same_content_gives_the_same_bytes_whenever_and_wherever_it_is_written(tmp_path: Path) -> None:
    first, second = laid_out(tmp_path / "a"), laid_out(tmp_path / "elsewhere")
    os.utime(second / "pkg/mod.py", (1, 1))
    (second / "pkg/mod.py").chmod(0o600)
    (second / "pkg").rename(second / "x")
    (second / "x").rename(second / "pkg")
    assert write_tree(first, tmp_path / "1.tar") == write_tree(second, tmp_path / "2.tar")
    with tarfile.open(tmp_path / "1.tar") as archive:
        for info in archive:
            assert (info.mtime, info.uid, info.gid, info.uname, info.gname) == (0, 0, 0, "", "")


def test_tar_of_a_tree_is_that_of_the_folder(tmp_path: Path) -> None:
    digest = write_tree(laid_out(tmp_path / "repo"), tmp_path / "tree.tar")
    tree = SourceTree.open(tmp_path / "tree.tar")
    assert write_tar(tree, tmp_path / "again.tar") == digest == sha256_of(tmp_path / "tree.tar")
    changed = tree.with_files({"pkg/mod.py": b"x = 2\n", "new.py": b""})
    assert write_tar(changed, tmp_path / "changed.tar") != digest
    assert SourceTree.open(tmp_path / "changed.tar").read("pkg/mod.py") == b"x = 2\n"
    assert tree.read("pkg/mod.py") == b"x = 1\n"


def test_overlay_is_seen_by_every_question(tmp_path: Path) -> None:
    tree = tree_of({"a.py": "old", "l.py": Link("a.py")}, tmp_path)
    assert tree.read("a.py") == b"old"
    changed = tree.with_files({"a.py": b"newer", "deep/b.py": b""})
    assert changed.read("a.py") == changed.read("l.py") == b"newer"
    assert changed.size("l.py") == 5
    assert list(changed.files(".py")) == ["a.py", "deep/b.py"]
    assert ("deep", "dir") in changed.entries()
    assert dict(changed.read_all(".py")) == {"a.py": b"newer", "deep/b.py": b""}


def test_damaged_tar_is_a_task_error(tmp_path: Path) -> None:
    tree = tree_of({"a.py": "x" * 4000}, tmp_path)
    data = tree.tar.read_bytes()
    for name, content in {"empty": b"", "noise": b"noise" * 500, "zip": b"PK\3\4" + b"\0" * 600}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(TaskError, match="can't be read"):
            SourceTree.open(tmp_path / name)
    tree.tar.write_bytes(data[:2000])
    with pytest.raises(TaskError):
        tree.read("a.py")
    with pytest.raises(TaskError, match=r"a\.py can't be read in full"):
        dict(tree.read_all(".py"))
    with pytest.raises(TaskError):
        SourceTree.open(tmp_path / "missing")


@pytest.mark.parametrize("above", [Link("/etc"), Link("pkg"), "a file"])
@pytest.mark.parametrize("deep", ["lnk/canary", "lnk/deep/er/canary"])
def test_an_entry_below_what_is_no_folder_is_refused(tmp_path: Path, above: str | Link, deep: str) -> None:
    for order in ({"pkg/a.py": "", "lnk": above, deep: "x"}, {deep: Link("x"), "lnk": above}):
        with pytest.raises(
            TaskError, match=f"contains '{deep}' below 'lnk', which is not a folder. Get the task again"
        ):
            tree_of(order, tmp_path)


@pytest.mark.parametrize("path", ["x/" * 300 + "y", "x" * 256, "é" * 128, "/".join(["x" * 200] * 16)])
def test_a_path_that_no_file_system_holds_is_refused(tmp_path: Path, path: str) -> None:
    with tarfile.open(tmp_path / "tree.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo(path))
    with pytest.raises(TaskError, match=r"contains the path '.{100}'\.\.\., which is too long or too deep"):
        SourceTree.open(tmp_path / "tree.tar")


def test_a_path_of_ordinary_depth_is_laid_out(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "tree.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("x/" * 150 + "y" * 255))
    assert SourceTree.open(tmp_path / "tree.tar").members


def test_folders_that_are_nested_too_deeply_are_no_repository(tmp_path: Path) -> None:
    deep = tmp_path / "repository"
    deep.mkdir()
    here = os.open(deep, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("x", dir_fd=here)
        inner = os.open("x", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    with pytest.raises(TaskError, match="nested too deeply"):
        write_tree(deep, tmp_path / "tree.tar")
