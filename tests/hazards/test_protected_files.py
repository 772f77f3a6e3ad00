"""Test files are recognised by whole names and by the collected tests; one guard protects them."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_trees import Link, ask, context_of
from tiny_tasks import Maker

from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.errors import SourceError

CODE = "def f():\n    return 2\n"


@pytest.mark.parametrize(
    "path",
    [
        "latest.py",
        "contest/rules.py",
        "pkg/attestation.py",
        "pkg/testament/x.py",
        "protest.py",
        "pkg/greatest.py",
        "src/pytest_x/plugin.py",
    ],
)
def test_path_that_only_contains_the_word_is_no_test(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "test" / "my-tests"
    folder.mkdir(parents=True)
    context = context_of({path: "def f():\n    return 1\n"}, folder)
    assert not is_protected(path, frozenset())
    assert not ask(context, "replace_function", func_code=CODE, func_name="f", file_path=path).refused


@pytest.mark.parametrize(
    "path",
    [
        "tests/x.py",
        "pkg/tests/deep/x.py",
        "test_x.py",
        "pkg/x_test.py",
        "conftest.py",
        "pkg/conftest.py",
        "Tests/x.py",
    ],
)
def test_files_of_tests_are_refused(tmp_path: Path, path: str) -> None:
    context = context_of({path: "def f():\n    return 1\n"}, tmp_path)
    assert ask(context, "replace_function", func_code=CODE, func_name="f", file_path=path).refused


def test_file_in_which_tests_were_collected_is_refused_whatever_its_name(plain: Maker) -> None:
    files = {
        "calc.py": "def double(x):\n    return x * 2\n",
        "tests/test_double.py": "from checks import *\n",
        "checks.py": "from calc import double\n\n\ndef test_a():\n    assert double(2) == 4\n\n\n"
        "def helper():\n    return 1\n",
        "pytest.ini": "[pytest]\npython_files = test_*.py checks.py\ntestpaths = . tests\naddopts = checks.py\n",
    }
    task = plain.task(files, "calc.py::double", "def double(x):\n    return x\n")
    assert "checks.py" in task.suite.test_files
    attempt = plain.attempt(task)
    result = attempt.call(
        "replace_function",
        {"func_code": "def helper():\n    return 2", "func_name": "helper", "file_path": "checks.py"},
    )
    assert "belongs to the tests" in result.text
    assert attempt.state.remaining.submissions == 4


@pytest.mark.parametrize("path", ["tests/test_x.py", "conftest.py", "alias.py"])
def test_guard_stands_before_both_submission_tools(tmp_path: Path, path: str) -> None:
    files = {
        "tests/test_x.py": "def f():\n    return 1\n",
        "conftest.py": "def f():\n    return 1\n",
        "alias.py": Link("conftest.py"),
    }
    context = context_of(files, tmp_path, target=f"{path}::f")
    assert "belongs to the tests" in ask(context, "submit_attempt", func_code=CODE).text
    arguments = {"func_code": CODE, "func_name": "f", "file_path": path}
    assert "belongs to the tests" in ask(context, "replace_function", **arguments).text


def test_no_task_is_made_of_a_function_of_the_tests(plain: Maker) -> None:
    files = {
        "calc.py": "def f():\n    return 1\n",
        "tests/test_f.py": "def help():\n    return 1\n\n\ndef test_f():\n    assert help() == 1\n",
    }
    with pytest.raises(SourceError, match="belongs to the tests"):
        plain.task(files, "tests/test_f.py::help")
