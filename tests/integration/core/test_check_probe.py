"""The probe that runs in the sandbox finds copies of the package and of the answer, wherever they are."""

from __future__ import annotations

import json
import os
import py_compile
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gistpoint.core.kinds.repair import inside_look
from gistpoint.core.kinds.repair.check import settings_of
from gistpoint.core.kinds.repair.inside_look import CopySearch

ORIGINAL = "if value > ceiling: return ceiling elif value < floor: return floor else: return value"
SOURCE = "def clamp(value, floor, ceiling):\n    " + ORIGINAL.replace(" return", "\n        return") + "\n"
OLDER = "def clamp(value, low, high):\n    return min(high, max(low, value))\n"


ORDER = {
    "name": "Clamping",
    "targets": [{"file": "clamping/bounds.py", "names": ["clamp"], "lines": ORIGINAL}],
}


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    for path, content in {
        "clamping_1-1.0.dist-info/RECORD": "",
        "control/clamping-1.0.dist-info/METADATA": "Name: clamping",
        "other/bounds.py": OLDER,
        "vendor/clamping/bounds.py": "def clamped(value):\n    return clamp(value)\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(content)
    assert list(CopySearch(ORDER).below(str(tmp_path))) == []


def text(path: str, content: str) -> Callable[[Path], None]:
    def write(site: Path) -> None:
        (site / path).parent.mkdir(parents=True)
        (site / path).write_text(content)

    return write


def zipped(site: Path) -> None:
    with zipfile.ZipFile(site / "bundle-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("vendor/other.py", SOURCE)


def bytecode(site: Path) -> None:
    folder = site / "vendor" / "clamping" / "__pycache__"
    folder.mkdir(parents=True)
    (site / "bounds.py").write_text(OLDER)
    py_compile.compile(str(site / "bounds.py"), str(folder / "bounds.cpython-311.pyc"))


@pytest.mark.parametrize(
    ("plant", "failing"),
    [
        (text("data/notes.txt", f"before\n{SOURCE}after"), "data/notes.txt contains lines of the original"),
        (
            text("vendor/clamping/bounds.py", OLDER),
            "vendor/clamping/bounds.py is another copy of clamping/bounds.py",
        ),
        (
            text("x/clamping-2.0.dist-info/RECORD", ""),
            "x/clamping-2.0.dist-info belongs to the same distribution",
        ),
        (zipped, "bundle-1.0-py3-none-any.whl/vendor/other.py contains lines of the original"),
        (
            bytecode,
            "vendor/clamping/__pycache__/bounds.cpython-311.pyc is another copy of clamping/bounds.py",
        ),
    ],
)
def test_copies_are_found(tmp_path: Path, plant: Callable[[Path], None], failing: str) -> None:
    plant(tmp_path)
    assert list(CopySearch(ORDER).below(str(tmp_path))) == [f"{tmp_path}/{failing}"]


def look(tmp_path: Path, *, answer: Path, path: Path) -> str:
    workspace = tmp_path / "workspace"
    (workspace / "clamping").mkdir(parents=True)
    (workspace / "clamping" / "__init__.py").write_text(SOURCE)
    (workspace / "test_look.py").write_text(Path(inside_look.__file__).read_text())
    order = {**ORDER, "packages": ["clamping"], "answer": str(answer), "everywhere": False}
    (workspace / "test_look.py.json").write_text(json.dumps(order))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(workspace), str(path)])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "workspace or reach"]
    return subprocess.run(
        command, cwd=workspace, env=environment, capture_output=True, text=True, check=False
    ).stdout


def test_a_copy_that_can_be_imported_is_found(tmp_path: Path) -> None:
    (tmp_path / "site" / "clamping").mkdir(parents=True)
    (tmp_path / "site" / "clamping" / "__init__.py").touch()
    found = look(tmp_path, answer=tmp_path / "absent.json", path=tmp_path / "site")
    assert "another copy of clamping can be imported" in found


def test_an_answer_that_can_be_read_is_found(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    assert "2 passed" in look(tmp_path / "before", answer=answer, path=tmp_path / "site")
    answer.write_text("{}")
    assert "the answer can be read from inside" in look(tmp_path, answer=answer, path=tmp_path / "site")


@pytest.mark.parametrize(
    ("pytest_args", "settings"),
    [
        (("-o", "addopts=", "tests", "--ignore=tests/odd"), ["-o", "addopts="]),
        (
            ("--override-ini=addopts=", "-p", "no:cov", "-k", "not slow"),
            ["--override-ini=addopts=", "-p", "no:cov"],
        ),
        (("-c", "-o", "-x"), ["-c", "-o"]),
        (("tests", "-o"), ["-o"]),
        (("--deselect", "p.py::test", "-m", "not slow"), []),
        (
            ("-oaddopts=", "-pno:cov", "-cother.ini", "--color", "no", "--pdb", "-x"),
            ["-oaddopts=", "-pno:cov", "-cother.ini"],
        ),
    ],
)
def test_the_settings_of_the_suite_hold_for_the_probe(
    pytest_args: tuple[str, ...], settings: list[str]
) -> None:
    assert list(settings_of(pytest_args)) == settings
