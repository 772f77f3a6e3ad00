"""Which files are moved with an entrypoint's file that runs elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gistpoint.core.entrypoints.command import parse_entrypoint
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.gistruns.runner import moved_files

Make = Callable[[Mapping[str, str]], SourceTree]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(files: Mapping[str, str]) -> SourceTree:
        for name, text in files.items():
            (tmp_path / "files" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "files" / name).write_text(text)
        write_tree(tmp_path / "files", tmp_path / "tree.tar")
        return SourceTree.open(tmp_path / "tree.tar")

    return made


def test_a_test_takes_along_what_it_may_import_and_no_data_and_no_other_test(make: Make) -> None:
    tree = make(
        {
            "conftest.py": "",
            "pkg/code.py": "",
            "tests/__init__.py": "",
            "tests/conftest.py": "",
            "tests/compat.py": "",
            "tests/server/__init__.py": "",
            "tests/server/deep/sockets.py": "",
            "tests/server/test_server.py": "",
            "tests/server/conftest.py": "",
            "tests/data/page.html": "",
            "tests/test_a.py": "",
            "tests/test_b.py": "",
        }
    )
    files, called = moved_files(tree, parse_entrypoint("pytest tests/test_a.py::test_it"))
    assert called.target == "moved_1/test_moved.py"
    assert set(files) == {
        "conftest.py",
        "moved_1/__init__.py",
        "moved_1/conftest.py",
        "moved_1/compat.py",
        "moved_1/server/__init__.py",
        "moved_1/server/deep/sockets.py",
        "moved_1/test_moved.py",
    }


def test_a_script_goes_alone(make: Make) -> None:
    files, called = moved_files(
        make({"tool.py": "print()", "other.py": ""}), parse_entrypoint("python tool.py")
    )
    assert (called.target, files) == ("moved.py", {"moved.py": b"print()"})
