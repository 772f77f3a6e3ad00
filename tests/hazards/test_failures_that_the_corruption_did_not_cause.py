"""Tests that flip, are skipped or are expected to fail are not scored; failing suites make no task."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_tasks import Maker, Submit

from gistpoint.core.generation.intake import NoGood, NoTaskError
from gistpoint.core.kinds.folder import read_answer

TESTS = "from calc import double\n\n\n" + "".join(
    f"def test_{n}():\n    assert double({n}) == {2 * n}\n\n\n" for n in range(1, 4)
)


def test_flipping_skipped_and_expected_failures_are_outside_the_failing_set(
    plain: Maker, submit: Submit, tmp_path: Path
) -> None:
    counter = tmp_path / "counter"
    files = {
        "calc.py": "def double(x):\n    return x * 2\n",
        "tests/test_double.py": TESTS,
        "tests/test_more.py": f"""import pathlib
import pytest
from calc import double


def test_flips():
    place = pathlib.Path({str(counter)!r})
    number = int(place.read_text() if place.exists() else 0)
    place.write_text(str(number + 1))
    assert number % 2 == 0 and double(1) == 2


@pytest.mark.skip
def test_skipped():
    assert double(1) == 2


@pytest.mark.xfail
def test_expected():
    assert double(1) == 3
""",
    }
    task = plain.task(files, "calc.py::double", runs=3)
    assert task.suite.deselected == ("tests/test_more.py::test_flips",)
    baseline = read_answer(task).baselines[0]
    wanted = {f"tests/test_double.py::test_{n}" for n in range(1, 4)}
    assert baseline.failing == baseline.passed == wanted
    assert {failure.id for failure in task.brief.failing} == wanted
    attempt = plain.attempt(task)
    submit(attempt, "def double(x):\n    return x + x\n")
    assert attempt.state.solved


def test_repository_whose_suite_fails_already_makes_no_task(plain: Maker) -> None:
    files = {
        "calc.py": "def double(x):\n    return x * 2\n",
        "tests/test_double.py": TESTS + "def test_red():\n    assert double(1) == 3\n",
    }
    with pytest.raises(NoTaskError, match=r"the first of them is tests/test_double\.py::test_red") as caught:
        plain.task(files, "calc.py::double")
    assert caught.value.reason is NoGood.NOT_GREEN


def test_corruption_that_breaks_too_few_tests_makes_no_task(plain: Maker) -> None:
    files = {"calc.py": "def double(x):\n    return x * 2\n", "tests/test_double.py": TESTS}
    with pytest.raises(NoTaskError, match="3 tests fail; a task needs at least 5") as caught:
        plain.task(files, "calc.py::double", min_failing=5)
    assert caught.value.reason is NoGood.TOO_FEW_FAILING
