"""Trying to change what pytest reads, as a submission would, in a run that is scored."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.ports import EnvironmentPins, RunRequest, Writable
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.testruns import Environments, SuiteRunner

if TYPE_CHECKING:
    from gistpoint.core.outcomes import SuiteReport
    from gistpoint.sandbox.attacks.table import Attack
    from gistpoint.sandbox.backends.base import Backend

_HERE = Path(__file__).parent
_TESTS = """import configparser
from pathlib import Path

import mod
from tests.helper import same

HERE = Path(__file__).parent


def test_it():
    assert mod.f() == "right"


def test_golden():
    assert mod.f() == (HERE / "data" / "golden.txt").read_text()


def test_helped():
    assert same(mod.f(), "right")


def test_configured():
    settings = configparser.ConfigParser()
    settings.read(HERE.parent / "setup.cfg")
    assert mod.f() == settings["suite"]["expected"]


def test_source():
    assert Path(mod.__file__).read_text().startswith("def f():")
"""
_SURROUNDINGS = {
    "conftest.py": "import mod\n",
    "setup.cfg": "[suite]\nexpected = right\n",
    "tests/__init__.py": "",
    "tests/conftest.py": "",
    "tests/data/golden.txt": "right",
    "tests/helper.py": "def same(one, other):\n    return one == other\n",
    "tests/test_attacked.py": _TESTS,
    "tests/inner/__init__.py": "",
    "tests/inner/test_inner.py": "def test_inner():\n    assert 0\n",
}


def attacked_files(attack: Attack) -> Mapping[str, str]:
    """Return the repository in which an attack takes place; all of its tests fail."""
    return {**_SURROUNDINGS, "mod.py": (_HERE / "trees" / f"{attack.file}.py").read_text("utf-8")}


def run_attacked(
    backend: Backend, attack: Attack, base: Path, environments: Environments, writable: Writable | None
) -> SuiteReport:
    """Run the suite of the repository in which `attack` takes place; its files are made below `base`."""
    folder, tar = base / "trees" / attack.file, base / "trees" / f"{attack.file}.tar"
    for path, text in attacked_files(attack).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    write_tree(folder, tar)
    request = RunRequest(SourceTree.open(tar), EnvironmentPins(), timeout_s=attack.timeout_s, writable=writable)
    return SuiteRunner(backend, environments).run(request)
