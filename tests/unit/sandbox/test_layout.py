from __future__ import annotations

import io
import subprocess
import sys
import tarfile

import pytest

from gistpoint.core.errors import TaskError
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.layout import fill_control, lay_out


def tree_of(tmp_path, *members):
    with tarfile.open(tmp_path / "t.tar", "w:") as archive:
        for name, kind, data in members:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, 0o755 if data.startswith(b"#!") else 0o600
            if kind == tarfile.SYMTYPE:
                info.linkname = data.decode()
                archive.addfile(info)
            else:
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return SourceTree.open(tmp_path / "t.tar")


FILE, LINK = tarfile.REGTYPE, tarfile.SYMTYPE


def test_files_links_and_overlay(tmp_path):
    tree = tree_of(tmp_path, ("a/b.py", FILE, b"old"), ("run", FILE, b"#!/bin/sh"), ("l", LINK, b"a/b.py"))
    lay_out(tree.with_files({"a/b.py": b"new", "c/d.py": b"more"}), tmp_path / "w")
    assert (tmp_path / "w/l").read_text() == "new"
    assert (tmp_path / "w/c/d.py").read_text() == "more"
    assert (tmp_path / "w/run").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "w/a/b.py").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "w/a").stat().st_mode & 0o777 == 0o755


def test_links_that_lead_out_are_cut(tmp_path):
    (tmp_path / "secret").write_text("x")
    tree = tree_of(
        tmp_path,
        ("f/keep", FILE, b"x"),
        ("out", LINK, b"../secret"),
        ("absolute", LINK, str(tmp_path / "secret").encode()),
        ("a/b/c/e", LINK, b"../../../f"),
        ("a/b/c/x", LINK, b"e/../../secret"),
        ("circle", LINK, b"circle"),
        ("inner", LINK, b"f/keep"),
    )
    lay_out(tree, tmp_path / "w")
    links = {
        path.relative_to(tmp_path / "w").as_posix()
        for path in (tmp_path / "w").rglob("*")
        if path.is_symlink()
    }
    assert links == {"a/b/c/e", "inner"}


def test_a_file_below_a_link_does_not_leave(tmp_path):
    (tmp_path / "outside").mkdir()
    tree = tree_of(tmp_path, ("d", LINK, str(tmp_path / "outside").encode()))
    lay_out(tree.with_files({"d/file": b"x"}), tmp_path / "w")
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_file_that_is_also_a_folder(tmp_path):
    with pytest.raises(TaskError, match="as a file and as a folder"):
        lay_out(tree_of(tmp_path, ("a", FILE, b"x")).with_files({"a/b": b"y"}), tmp_path / "w")


def test_a_tree_survives_the_way_there_and_back(tmp_path):
    tree = tree_of(tmp_path, ("a/b.py", FILE, b"x\r\n\0"), ("l", LINK, b"a"), ("run", FILE, b"#!"))
    lay_out(tree, tmp_path / "w")
    first = write_tree(tmp_path / "w", tmp_path / "again.tar")
    lay_out(SourceTree.open(tmp_path / "again.tar"), tmp_path / "v")
    assert write_tree(tmp_path / "v", tmp_path / "third.tar") == first


def test_a_run_loads_the_payload_without_compiling_it(tmp_path):
    control = tmp_path / "control"
    fill_control(control, EnvironmentPins(), {"shown.py": "plain_sides.py"})
    (control / "shown.py").write_text("this is no Python")
    command = [sys.executable, "-c", "import shown; print(shown.__doc__)"]
    ended = subprocess.run(command, cwd=control, capture_output=True, text=True)
    assert ended.stdout.strip(), ended.stderr
