"""Gists of whole files, folders, doctests and tests defined elsewhere: run and attacked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from working_backends import on_one_backend

from gistpoint.core.entrypoints.command import parse_entrypoint
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.intake import Examination, NoGist, NoGistError, write_gist_task
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.references import ReferenceMaker, reference_of
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.gistruns.runner import GistRunner

pytestmark = on_one_backend
CORE = """\"\"\"Numbers.

>>> double(1)
2
\"\"\"


def double(x):
    \"\"\"Return twice a number.

    >>> from pkg.core import double
    >>> double(2)
    4
    \"\"\"
    return 2 * x


class Box:
    def get(self):
        \"\"\"Return what is in it.

        >>> Box().get()
        7
        \"\"\"
        return 7
"""
BASE = """
import unittest

from pkg.core import double


class DoubleMixin:
    def test_zero(self):
        self.assertEqual(double(0), self.ZERO)


class Made(unittest.TestCase):
    @classmethod
    def load(cls, cases):
        def attach(name, given, wanted):
            def run(self):
                self.assertEqual(double(given), wanted)

            setattr(cls, f"test_{name}", run)

        for name, (given, wanted) in cases.items():
            attach(name, given, wanted)
"""
TESTS = """
import unittest

from pkg.core import Box, double

from .base import DoubleMixin, Made


class InheritingTest(unittest.TestCase, DoubleMixin):
    ZERO = 0

    def test_own(self):
        self.assertEqual(double(1), 2)


class MadeTest(Made):
    pass


MadeTest.load({"three": (3, 6)})
exec("def test_from_a_string(): assert double(1) == 2")


def test_box():
    assert Box().get() == 7
"""
FILES = {
    "pkg/__init__.py": "",
    "pkg/core.py": CORE,
    "tests/__init__.py": "",
    "tests/base.py": BASE,
    "tests/test_core.py": TESTS,
    "tests/eight.txt": "8",
    "tests/test_data.py": (
        "from pathlib import Path\n\nimport tests\nfrom pkg.core import double\n\n\n"
        "def test_data():\n    assert double(4) == int((Path(tests.__file__).parent / 'eight.txt').read_text())\n"
    ),
    "tests/test_more.py": "from pkg.core import double\n\n\ndef test_more():\n    assert double(5) == 10\n",
    "tests/test_clash.py": "from pkg.core import Box\n\n\ndef test_box():\n    assert Box().get()\n",
}
DOUBLE = "def double(x):\n    return 2 * x\n\n\n"
BOX = "class Box:\n    def get(self):\n        return 7\n\n\n"
INHERITING = f"""import unittest

{DOUBLE}class DoubleMixin:
    def test_zero(self):
        self.assertEqual(double(0), self.ZERO)


class InheritingTest(unittest.TestCase, DoubleMixin):
    ZERO = 0
"""
MADE = f"""import unittest

{DOUBLE}{BASE.partition("class Made")[1]}{BASE.partition("class Made")[2]}

class MadeTest(Made):
    pass


MadeTest.load({{"three": (3, 6)}})
"""
SEVERAL = "def test_more():\n    assert double(5) == 10\n\n\ndef test_box():\n    assert Box().get()\n"


@pytest.fixture
def examination(
    backend: Backend, environments: EnvironmentStore, make_tree: Callable[[Mapping[str, str]], SourceTree]
) -> Examination:
    repository = Repository(Source("folder", "pkg", "1"), make_tree(FILES), EnvironmentPins())
    return Examination(repository, GistRunner(backend, environments))


def judge_of(command: str, examination: Examination, folder: Path) -> GistJudge:
    entrypoint = parse_entrypoint(command)
    task = write_gist_task(examination.repository, entrypoint, examination.examine(entrypoint), folder)
    return GistJudge(task, gist_answer(read_answer(task)), examination.runner)


@pytest.mark.parametrize(
    ("command", "gist", "changes", "failing"),
    [
        pytest.param(
            "pytest tests/test_core.py::InheritingTest::test_zero",
            INHERITING,
            {"self.assertEqual(double(0), self.ZERO)": "pass"},
            {
                "return 2 * x": "return 3",
                "    ZERO = 0": "    ZERO = 0\n\n\nInheritingTest.test_zero = lambda self: None",
            },
            id="inherited from another file",
        ),
        pytest.param(
            "pytest tests/test_core.py::MadeTest::test_three",
            MADE,
            {"self.assertEqual(double(given), wanted)": "pass"},
            {
                "(3, 6)": "(0, 0)",
                "return 2 * x": "return 3",
                '"three"': '"four"',
                'MadeTest.load({"three": (3, 6)})': (
                    'MadeTest.load({"three": (3, 6)})\nright = MadeTest.test_three\n'
                    'MadeTest.load({"three": (0, 0)})\nMadeTest.test_three.__wrapped__ = right\n'
                ),
            },
            id="made at run time",
        ),
        pytest.param(
            "pytest tests/test_more.py tests/test_clash.py",
            DOUBLE + BOX + SEVERAL,
            {"assert double(5) == 10": "pass"},
            {
                "return 2 * x": "return 3",
                "    assert Box().get()\n": "    assert Box().get()\n\n\ntest_more = test_box\n",
                "test_more": "test_others",
            },
            id="two files",
        ),
        pytest.param(
            "pytest --doctest-modules pkg/core.py",
            DOUBLE + BOX.replace("get(self):\n        return", "get(self): return"),
            {},
            {
                "return 2 * x": "return 3",
                "class Box": "class Bag",
                "return 7": "return 7\n\n\nBox.get.__doc__ = '>>> 1\\n1\\n'",
            },
            id="doctests",
        ),
    ],
)
def test_a_gist_is_faithful_and_changed_tests_do_not_help(
    command: str,
    gist: str,
    changes: Mapping[str, str],
    failing: Mapping[str, str],
    examination: Examination,
    tmp_path: Path,
) -> None:
    judge = judge_of(command, examination, tmp_path)
    score = judge.judge(gist, thorough=False).score
    assert score.execution_fidelity == 1, (score.error, score.fidelity)
    for old, new in changes.items():
        changed = judge.judge(gist.replace(old, new), thorough=False).score
        assert changed.execution_fidelity == 1
        assert changed.flags.test_changed
    for old, new in failing.items():
        assert old in gist
        assert judge.judge(gist.replace(old, new), thorough=False).score.execution_fidelity == 0, new


def test_a_reference_of_a_test_that_its_file_does_not_define_is_tried(
    examination: Examination, tmp_path: Path
) -> None:
    judge = judge_of("pytest tests/test_core.py::InheritingTest::test_zero", examination, tmp_path)
    # The clock advances by a second per reading, so only a few cuts are tried (tests/integration/core tries
    # all).
    seconds = itertools.count()
    found = reference_of(judge, lambda given: ReferenceMaker(given, lambda: float(next(seconds)), 8.0))
    assert found.faithful, found.reason
    assert "self.assertEqual(double(0), self.ZERO)" in found.text
    assert judge.judge(found.text, thorough=False).score.execution_fidelity == 1


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("pytest tests/test_core.py::test_from_a_string", NoGist.NO_SUCH_TEST),
        ("pytest tests/test_core.py tests/test_clash.py -k box", NoGist.NAMES_CLASH),
        ("pytest tests/none", NoGist.NO_SUCH_TEST),
        ("pytest tests/test_data.py", NoGist.DEPENDS_ON_ITS_PLACE),
    ],
)
def test_what_has_no_text_or_no_name_of_its_own_is_refused(
    command: str, reason: NoGist, examination: Examination
) -> None:
    with pytest.raises(NoGistError) as caught:
        examination.examine(parse_entrypoint(command))
    assert caught.value.reason is reason, caught.value


def test_a_whole_file_is_an_entrypoint(examination: Examination) -> None:
    answer = examination.examine(parse_entrypoint("pytest tests/test_core.py -k 'not string'"))
    assert answer.test is not None
    assert {one.qualname: one.defined_as for one in answer.test.each} == {
        "InheritingTest.test_own": "",
        "InheritingTest.test_zero": "DoubleMixin.test_zero",
        "MadeTest.test_three": "Made.load",
        "test_box": "",
    }
