"""The files that are moved with the file of an entrypoint that runs elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gistpoint.core.entrypoints.command import parse_entrypoint
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.gistruns.moving import moved_files

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


INSIDE = {
    "src/pkg/__init__.py": "",
    "src/pkg/core.py": "",
    "src/pkg/conftest.py": "from .core import one\n",
    "src/pkg/test_beside.py": "from .core import one\nfrom . import core\n",
    "src/pkg/tests/__init__.py": "",
    "src/pkg/tests/helpers.py": "from ..core import one\nfrom ... import nothing\n",
    "src/pkg/tests/inner/__init__.py": "",
    "src/pkg/tests/inner/deep.py": "from ...core import one\nfrom ..helpers import one\n",
    "src/pkg/tests/test_other.py": "",
    "src/pkg/tests/test_a.py": (
        '"""é"""; from ..core import (\n    one,\n)\n'
        "from .helpers import one\n"
        "from . import helpers\n"
        "from .test_other import two\n"
        "from . import helpers, test_other\n"
        "from.. \\\n    import core\n"
        "def test_it():\n"
        "    from ..core import one  # é\n"
        "    from .inner.deep import one; from .. import core\n"
    ),
}


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_an_import_of_what_stays_behind_becomes_absolute_in_a_test_inside_of_the_package(
    line_end: str, make: Make
) -> None:
    tree = make({})
    tree = tree.with_files({path: text.replace("\n", line_end).encode() for path, text in INSIDE.items()})
    files, called = moved_files(tree, parse_entrypoint("pytest src/pkg/tests/test_a.py::test_it"))
    assert called.target == "moved_1/moved_2/moved_3/test_moved.py"
    texts = {path: data.decode().replace("\r\n", "\n") for path, data in files.items()}
    assert texts["moved_1/moved_2/moved_3/test_moved.py"] == (
        '"""é"""; from pkg.core import (\n    one,\n)\n'
        "from .helpers import one\n"
        "from . import helpers\n"
        "from pkg.tests.test_other import two\n"
        "from pkg.tests import helpers, test_other\n"
        "from pkg \\\nimport core\n"
        "def test_it():\n"
        "    from pkg.core import one  # é\n"
        "    from .inner.deep import one; from pkg import core\n"
    )
    # An import that leads out of all packages fails on the original too.
    assert (
        texts["moved_1/moved_2/moved_3/helpers.py"] == "from pkg.core import one\nfrom ... import nothing\n"
    )
    inner = texts["moved_1/moved_2/moved_3/inner/deep.py"]
    assert inner == "from pkg.core import one\nfrom ..helpers import one\n"
    assert texts["moved_1/moved_2/conftest.py"] == "from pkg.core import one\n"


def test_a_test_beside_the_modules_it_tests_imports_them_absolutely(make: Make) -> None:
    tree = make(INSIDE)
    files, _ = moved_files(tree, parse_entrypoint("pytest src/pkg/test_beside.py::test_it"))
    assert files["moved_1/moved_2/test_moved.py"] == b"from pkg.core import one\nfrom pkg import core\n"


def test_several_files_inside_of_the_package_keep_names_and_lose_their_way_back(make: Make) -> None:
    tree = make(INSIDE)
    files, _ = moved_files(
        tree, parse_entrypoint("pytest src/pkg/tests/test_a.py src/pkg/tests/test_other.py")
    )
    text = files["src/pkg/tests/test_a.py"].decode()
    assert "from pkg.core import one" in text
    assert "from .test_other import two" in text


def test_a_file_that_python_can_not_parse_is_moved_as_it_is(make: Make) -> None:
    broken = "from ..core import (\n"
    tree = make({**INSIDE, "src/pkg/tests/test_a.py": broken})
    files, called = moved_files(tree, parse_entrypoint("pytest src/pkg/tests/test_a.py::test_it"))
    assert files[called.target].decode() == broken
