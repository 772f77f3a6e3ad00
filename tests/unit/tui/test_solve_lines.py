"""A file of code in the wrong place of a typed line leads to a question instead of a call."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import CHECKS, build_task
from fakes import FakeClock, FakeRunner
from recorders import Memory

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.kinds.commandline import QuestionError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.tasks.model import Mode
from gistpoint.tui.commands.solve_lines import read_call


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Attempt]:
    begun = {}
    for mode in (Mode.REMOVE, Mode.DISCOVERY):
        task = build_task(tmp_path_factory.mktemp(mode), mode)
        attempt = Attempt(
            task, RepairJudge(task, read_answer(task), FakeRunner(CHECKS)), Memory(FakeClock()), FakeClock()
        )
        attempt.start(Enrolment())
        begun[mode.value] = attempt
    return begun


@pytest.mark.parametrize(
    "words", ["a.py f @{file}", "f a.py @{file}", "f @{file} a.py", "a.py @{file} func_name=f"]
)
def test_a_file_in_the_place_of_another_argument_is_asked_about(
    attempts: dict[str, Attempt], tmp_path: Path, words: str
) -> None:
    file = tmp_path / "code.py"
    with pytest.raises(QuestionError, match="Usage: replace_function func_code func_name file_path"):
        read_call(f"replace_function {words.format(file=file)}", attempts["discovery"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("@{file} f a.py", "x"),
        ("@{file} a.py f", "x"),
        ("func_name=f file_path=a.py @{file}", "x"),
        ("f a.py func_code=@{file}", "x"),
        ("'def f(): return 1' f @types/a.py", "def f(): return 1"),
    ],
)
def test_a_file_in_its_place_is_read(
    attempts: dict[str, Attempt], tmp_path: Path, words: str, code: str
) -> None:
    file = tmp_path / "code.py"
    file.write_text("x")
    name, arguments = read_call(f"replace_function {words.format(file=file)}", attempts["discovery"])
    assert (name, arguments["func_code"], arguments["func_name"]) == ("replace_function", code, "f")


def test_code_of_a_single_argument_may_hold_an_at_sign(attempts: dict[str, Attempt]) -> None:
    line = "submit_attempt def product(a, b): return a @ b"
    assert read_call(line, attempts["remove"])[1] == {"func_code": "def product(a, b): return a @ b"}
