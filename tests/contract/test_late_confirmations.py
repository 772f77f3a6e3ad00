"""Late answers count against a submission only if it is late again and the true function is not.

See decision 159.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tiny_tasks import Maker
from working_backends import on_one_backend

from gistpoint.core.confirmation.model import Confirmation, Confirmed, Controls, Unconfirmable
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.confirmation import SandboxConfirmer, controls, pair
from gistpoint.sandbox.confirmation.submission import CALL_LIMIT_S, SubmissionProcess
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.testruns import SuiteRunner

FILES = {
    "kit.py": "def twice(n):\n    return n * 2\n",
    "tests/test_kit.py": "import kit\n\n\ndef test_two():\n    assert kit.twice(2) == 4\n\n\n"
    "def test_three():\n    assert kit.twice(3) == 6\n",
}
NOT_ANSWERED = "does not answer in a separate process, although the true function does"
OTHERWISE = "gives different answers when asked again"


def late_processes(late: list[bool]) -> Callable[..., SubmissionProcess]:
    """Return a class of processes; the nth one answers no call in time if the nth item of `late` is true."""
    begun = iter(late)

    class LateProcess(SubmissionProcess):
        def __init__(self, *args: object, **named: object) -> None:
            super().__init__(*args, **named)  # type: ignore[arg-type]
            self.is_late = next(begun, False)

        def answer(self, line: bytes, limit_s: float = CALL_LIMIT_S) -> bytes | None:
            return None if self.is_late else super().answer(line, limit_s)

    return LateProcess


@dataclass(frozen=True)
class Case:
    """A task whose true function is submitted."""

    confirmer: SandboxConfirmer
    task: Task
    answer: Answer
    controls: Controls

    def confirmed(self) -> Confirmation:
        tree = repaired_tree(SourceTree.open(self.task.tree_path), self.answer.targets)
        return self.confirmer.confirm(self.task, self.answer, self.controls, tree)


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    return {}


@pytest.fixture
def case(
    backend: Backend,
    environments: EnvironmentStore,
    cases: dict[str, Case],
    tmp_path_factory: pytest.TempPathFactory,
) -> Case:
    if backend.name not in cases:
        maker = Maker(tmp_path_factory.mktemp(backend.name), SuiteRunner(backend, environments))
        task = maker.task(FILES, "kit.py::twice")
        confirmer, answer = SandboxConfirmer(backend, environments), read_answer(task)
        cases[backend.name] = Case(confirmer, task, answer, confirmer.control(task, answer))
    return cases[backend.name]


@on_one_backend
@pytest.mark.parametrize(
    ("late", "result", "reason", "marks"),
    [
        pytest.param([True], Confirmed.CONFIRMED, None, (), id="the submission, once"),
        pytest.param(
            [True, True], Confirmed.UNCONFIRMED, Unconfirmable.SANDBOX, (), id="the true function too"
        ),
        pytest.param(
            [True, False, True],
            Confirmed.UNCONFIRMED,
            Unconfirmable.TOO_SLOW,
            (NOT_ANSWERED,),
            id="the submission, twice",
        ),
    ],
)
def test_a_late_run_is_compared_with_the_true_function(
    case: Case,
    monkeypatch: pytest.MonkeyPatch,
    late: list[bool],
    result: Confirmed,
    reason: Unconfirmable | None,
    marks: tuple[str, ...],
) -> None:
    monkeypatch.setattr(pair, "SubmissionProcess", late_processes(late))
    found = case.confirmed()
    assert (found.result, found.reason, found.marks) == (result, reason, marks), found


@on_one_backend
@pytest.mark.parametrize(
    ("late", "marks"),
    [
        pytest.param([True], (), id="the submission, once"),
        pytest.param([True, True], (OTHERWISE,), id="the submission, twice"),
        pytest.param([True] * 4, (), id="the true function too"),
    ],
)
def test_late_repeated_calls_are_compared_with_the_true_function(
    case: Case, monkeypatch: pytest.MonkeyPatch, late: list[bool], marks: tuple[str, ...]
) -> None:
    monkeypatch.setattr(controls, "SubmissionProcess", late_processes(late))
    found = case.confirmed()
    assert found.marks == marks, found
    assert (found.result is Confirmed.CONFIRMED) is not bool(marks), found


@on_one_backend
def test_a_task_made_while_a_call_is_late_keeps_its_tests(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controls, "SubmissionProcess", late_processes([True]))
    found = case.confirmer.control(case.task, case.answer)
    assert sorted(found.tests) == sorted(case.controls.tests)
