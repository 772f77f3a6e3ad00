"""Tests inside a package, with relative imports, make tasks that have faithful gists."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from working_backends import on_one_backend

from gistpoint.core.entrypoints.command import parse_entrypoint
from gistpoint.core.kinds.gist.intake import Examination, NoGist, NoGistError, write_gist_task
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.references import ReferenceMaker
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.gistruns.runner import GistRunner

MakeTree = Callable[[Mapping[str, str]], SourceTree]
Examine = Callable[[SourceTree], Examination]


@pytest.fixture
def examining(backend: Backend, environments: EnvironmentStore) -> Examine:
    runner = GistRunner(backend, environments)
    return lambda tree: Examination(Repository(Source("folder", "pkg", "1"), tree, EnvironmentPins()), runner)


def package_as_installed(name: str) -> dict[str, str]:
    """Return the Python files of an installed package, with its tests."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent
    return {f"{name}/{path.relative_to(folder)}": path.read_text("utf-8") for path in folder.rglob("*.py")}


@on_one_backend
@pytest.mark.parametrize(
    "test", ["ansi_test.py::AnsiTest::testForeAttributes", "isatty_test.py::IsattyTest::test_nonTTY"]
)
def test_a_test_inside_of_a_published_package_has_a_faithful_gist(
    test: str, examining: Examine, make_tree: MakeTree, tmp_path: Path
) -> None:
    """The tests import with `from ..ansi import Fore`, and helpers with `from .utils import StreamTTY`."""
    examination = examining(make_tree(package_as_installed("colorama")))
    entrypoint = parse_entrypoint(f"pytest colorama/tests/{test}")
    answer = examination.examine(entrypoint)
    assert answer.owned == ("colorama",)
    task = write_gist_task(examination.repository, entrypoint, answer, tmp_path)
    judge = GistJudge(task, answer, examination.runner)
    found = ReferenceMaker(judge, time.monotonic, budget_s=1.0).make()
    assert found.faithful, found.reason
    assert "from .." not in found.text
    assert judge.judge(found.text, thorough=False).score.self_contained


INSIDE = {
    "pkg/__init__.py": "",
    "pkg/core.py": "def double(x):\n    return 2 * x\n",
    "pkg/tests/__init__.py": "",
    "pkg/tests/data.txt": "4\n",
    "pkg/tests/test_core.py": """
from pathlib import Path

from ..core import double


def test_reads_beside_itself():
    assert double(2) == int((Path(__file__).parent / "data.txt").read_text())


def test_knows_its_package():
    assert double(2) == 4 and __package__ == "pkg.tests"
""",
}


@on_one_backend
@pytest.mark.parametrize("name", ["test_reads_beside_itself", "test_knows_its_package"])
def test_what_depends_on_its_place_is_still_refused(
    name: str, examining: Examine, make_tree: MakeTree
) -> None:
    with pytest.raises(NoGistError) as caught:
        examining(make_tree(INSIDE)).examine(parse_entrypoint(f"pytest pkg/tests/test_core.py::{name}"))
    assert caught.value.reason is NoGist.DEPENDS_ON_ITS_PLACE
