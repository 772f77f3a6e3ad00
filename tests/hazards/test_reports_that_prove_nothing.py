"""A pass depends only on previously passing tests in a finished run, whatever a function does to its run."""

from __future__ import annotations

import pytest
from tiny_tasks import Maker, Submit

FILES = {
    "calc.py": "import unused_later as _unused\n\n\ndef double(x):\n    return x * 2\n",
    "unused_later.py": "",
    "tests/test_double.py": "from calc import double\n\n\n"
    + "".join(f"def test_{n}():\n    assert double({n}) == {2 * n}\n\n\n" for n in range(1, 5)),
    "tests/test_other.py": "def test_other():\n    pass\n",
}


@pytest.mark.parametrize(
    "body",
    [
        "import os; os._exit(0)",
        "import os; os._exit(1)",
        "import pytest; pytest.skip('later')",
        "import pytest; pytest.skip('later', allow_module_level=True)",
        "import pytest; pytest.xfail('hard')",
        "import pytest; pytest.exit('done', returncode=0)",
        "import sys; sys.exit(0)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "raise KeyboardInterrupt",
    ],
)
def test_function_that_ends_or_skips_the_run_scores_nothing(maker: Maker, submit: Submit, body: str) -> None:
    attempt = maker.attempt(maker.task(FILES, "calc.py::double"))
    submit(attempt, f"def double(x):\n    {body}\n")
    last = attempt.state.last
    assert last is not None
    assert (last.score, last.solved) == (0.0, False)
    assert not attempt.state.solved
    assert attempt.state.remaining.submissions == 3


@pytest.mark.parametrize(
    "line",
    [
        "import sys; print('Traceback (most recent call last): error FAILED', file=sys.stderr)",
        "import warnings; warnings.warn('old')",
        "import atexit, os; atexit.register(os.write, 2, b'Error: goodbye')",
        "import logging; logging.error('failed')",
        "print('1 failed, 0 passed')",
    ],
)
def test_text_on_standard_error_or_output_decides_nothing(maker: Maker, submit: Submit, line: str) -> None:
    attempt = maker.attempt(maker.task(FILES, "calc.py::double"))
    submit(attempt, f"def double(x):\n    {line}\n    return x + x\n")
    assert attempt.state.ending is not None
    assert attempt.state.ending.reason == "solved"


def test_file_that_can_no_longer_be_collected_counts_as_its_failing_tests_and_no_more(plain: Maker) -> None:
    files = {
        **FILES,
        "tests/test_at_import.py": "from calc import double\n\nassert double(0) == 0\n\n\n"
        "def test_import():\n    pass\n",
    }
    task = plain.task(files, "calc.py::double", "def double(x):\n    return x * 2 if x == 0 else x\n")
    assert {failure.id for failure in task.brief.failing} == {
        f"tests/test_double.py::test_{n}" for n in range(1, 5)
    }
    attempt = plain.attempt(task)
    code = "def double(x):\n    return x * 2 or 1\n"
    text = attempt.call(
        "replace_function", {"func_code": code, "func_name": "double", "file_path": "calc.py"}
    ).text
    last = attempt.state.last
    assert last is not None
    assert last.status == "finished"
    assert last.failing == ("tests/test_at_import.py::test_import",)
    assert last.score == pytest.approx(0.75)
    assert "5 of 6 tests pass, 1 fail" in text


def test_tests_are_counted_once_and_not_by_phase(maker: Maker, submit: Submit) -> None:
    files = {
        **FILES,
        "tests/conftest.py": "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef around():\n    yield\n",
    }
    attempt = maker.attempt(maker.task(files, "calc.py::double"))
    assert "Score 0.250: 2 of 5 tests pass, 3 fail." in submit(attempt, "def double(x):\n    return 2\n")
