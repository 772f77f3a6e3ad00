"""The look from inside the sandbox finds copies of the package and of the answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gistpoint.core.generation.check import PROBE, settings_of

ORIGINAL = "if value > ceiling: return ceiling elif value < floor: return floor else: return value"


def look(tmp_path: Path, *, answer: Path, path: Path) -> str:
    workspace = tmp_path / "workspace"
    (workspace / "clamping").mkdir(parents=True)
    (workspace / "clamping" / "__init__.py").write_text("def clamp(value, floor, ceiling):\n    pass\n")
    probe = PROBE.format(packages=["clamping"], answer=str(answer), originals=[ORIGINAL])
    (workspace / "test_look.py").write_text(probe)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(workspace), str(path)])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_look.py"]
    done = subprocess.run(command, cwd=workspace, env=environment, capture_output=True, text=True, check=False)
    return done.stdout


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    assert "3 passed" in look(tmp_path, answer=tmp_path / "absent.json", path=tmp_path / "site")


@pytest.mark.parametrize(
    ("file", "text", "failing"),
    [
        ("clamping/__init__.py", "", "another copy of clamping can be imported"),
        ("vendored.py", ORIGINAL.replace(" return", "\n        return"), "holds the original"),
    ],
)
def test_copies_are_found(tmp_path: Path, file: str, text: str, failing: str) -> None:
    copy = tmp_path / "site" / file
    copy.parent.mkdir(parents=True)
    copy.write_text(text)
    assert failing in look(tmp_path, answer=tmp_path / "absent.json", path=tmp_path / "site")


def test_an_answer_that_can_be_read_is_found(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    answer.write_text("{}")
    (tmp_path / "site").mkdir()
    assert "the answer can be read from inside" in look(tmp_path, answer=answer, path=tmp_path / "site")


@pytest.mark.parametrize(
    ("pytest_args", "settings"),
    [
        (("-o", "addopts=", "tests", "--ignore=tests/odd"), ["-o", "addopts="]),
        (("--override-ini=addopts=", "-p", "no:cov", "-k", "not slow"), ["--override-ini=addopts=", "-p", "no:cov"]),
        (("-c", "-o", "-x"), ["-c", "-o"]),
        (("tests", "-o"), ["-o"]),
        (("--deselect", "p.py::test", "-m", "not slow"), []),
        (
            ("-oaddopts=", "-pno:cov", "-cother.ini", "--color", "no", "--pdb", "-x"),
            ["-oaddopts=", "-pno:cov", "-cother.ini"],
        ),
    ],
)
def test_the_settings_of_the_suite_hold_for_the_look(pytest_args: tuple[str, ...], settings: list[str]) -> None:
    assert list(settings_of(pytest_args)) == settings
