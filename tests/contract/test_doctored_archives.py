"""A task that somebody doctored before passing it on confirms no more than the original task does."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_tasks import Maker
from working_backends import on_one_backend

from gistpoint.core.code.splice import with_definition
from gistpoint.core.confirmation.controls import CONTROLS_FILE, controls_of_here, write_controls
from gistpoint.core.confirmation.model import Confirmation, Confirmed, Unconfirmable
from gistpoint.core.kinds.archive import pack_task, unpack_task
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.tasks.entered import ENTERED_FILE
from gistpoint.core.tasks.model import CANARY, Task
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.confirmation import SandboxConfirmer
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.testruns import SuiteRunner

FILES = {
    "shop.py": "def price(amount, rate):\n    return amount - amount * rate // 100\n",
    "tests/test_shop.py": textwrap.dedent("""
        import shop
        def test_nothing(): assert shop.price(0, 10) == 0
        def test_price(): assert shop.price(100, 10) == 90
        def test_more(): assert shop.price(200, 50) == 100
        def test_other(): assert 1 == 1
        """),
}
WRONG = "def price(amount, rate):\n    return amount and 7\n"
"""A wrong body, which passes only where the amount is 0."""
LENIENT = "tests/test_shop.py::test_nothing"


def rewrite(folder: Path, file: str, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads((folder / file).read_text())
    change(document)
    (folder / file).write_text(json.dumps(document))


def _controls(folder: Path) -> None:
    rewrite(folder, CONTROLS_FILE, lambda file: file["controls"].update(tests=[LENIENT], telling=[LENIENT]))


def _entered(folder: Path) -> None:
    text = json.dumps({
        "format": "gistpoint.entered", "version": 1, "canary": CANARY, "tests": [LENIENT],
        "functions": {"shop.py::price": [0]},
    })  # fmt: skip
    (folder / ENTERED_FILE).write_text(text)


def _failing(folder: Path) -> None:
    for path in folder.glob("answer/baselines/*.json"):
        rewrite(
            folder, str(path.relative_to(folder)), lambda file: file.update(passed_corrupted=file["passed"])
        )


DOCTORED: dict[str, Callable[[Path], object]] = {
    "controls": _controls,
    "controls and tests that enter": lambda folder: [_controls(folder), _entered(folder)],
    "controls and tests that fail": lambda folder: [_controls(folder), _failing(folder)],
    "all": lambda folder: [_controls(folder), _entered(folder), _failing(folder)],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Task]:
    return {}


@pytest.fixture
def confirmer(backend: Backend, environments: EnvironmentStore) -> SandboxConfirmer:
    return SandboxConfirmer(backend, environments)


@pytest.fixture
def task(
    backend: Backend,
    environments: EnvironmentStore,
    confirmer: SandboxConfirmer,
    made: dict[str, Task],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Task:
    if backend.name not in made:
        folder = tmp_path_factory.mktemp(backend.name)
        made[backend.name] = task = Maker(folder, SuiteRunner(backend, environments)).task(
            FILES, "shop.py::price"
        )
        write_controls(task.folder, confirmer.control(task, read_answer(task), measured_here=True), CANARY)
    return made[backend.name]


def passed_on(task: Task, change: Callable[[Path], object], tmp_path: Path) -> Task:
    folder = tmp_path / "doctored"
    shutil.copytree(task.folder, folder)
    change(folder)
    pack_task(folder, tmp_path / "passed-on.tar.zst")
    return unpack_task(tmp_path / "passed-on.tar.zst", tmp_path / "elsewhere")


def confirmed(confirmer: SandboxConfirmer, task: Task, code: str) -> Confirmation:
    """Return the confirmation as `sessions/confirming.py` asks for it."""
    answer = read_answer(task)
    controls = controls_of_here(task.folder) or confirmer.control(task, answer)
    tree = with_definition(SourceTree.open(task.tree_path), "shop.py", "price", code)
    return confirmer.confirm(task, answer, controls, tree)


@on_one_backend
@pytest.mark.parametrize("what", DOCTORED)
def test_wrong_body_is_contradicted_whatever_was_doctored(
    task: Task, confirmer: SandboxConfirmer, what: str, tmp_path: Path
) -> None:
    other = passed_on(task, DOCTORED[what], tmp_path)
    found = confirmed(confirmer, other, WRONG)
    assert found.result is Confirmed.CONTRADICTED, found
    right = confirmed(confirmer, other, FILES["shop.py"])
    assert (right.result, right.uncovered, right.tests) == (Confirmed.CONFIRMED, 0, 3), right


@on_one_backend
def test_controls_made_again_say_what_the_answer_said(
    task: Task, confirmer: SandboxConfirmer, tmp_path: Path
) -> None:
    """Both ways to determine the tests must agree with the controls of the original task."""
    true = confirmer.control(task, read_answer(task), measured_here=True)
    other = passed_on(task, DOCTORED["all"], tmp_path)
    again = confirmer.control(other, read_answer(other))
    same = ("confirmable", "answers", "writes", "runs", "failing", "entered", "entering", "calls")
    for name in same:
        assert getattr(again, name) == getattr(true, name), name
    assert set(again.tests) == set(true.tests)
    assert set(again.telling) == set(true.telling)
    assert true.failing == tuple(f"tests/test_shop.py::test_{name}" for name in ("more", "nothing", "price"))


@on_one_backend
@pytest.mark.parametrize(
    "header",
    [
        "@__import__('functools').cache\ndef price(amount, rate):",
        "def price(amount, rate: __import__('os').getpid()):",
    ],
)
def test_an_original_that_runs_more_while_it_is_imported_confirms_nothing(
    task: Task, confirmer: SandboxConfirmer, header: str, tmp_path: Path
) -> None:
    body = "    return amount - amount * rate // 100\n"

    def change(folder: Path) -> None:
        rewrite(
            folder, "answer/answer.json", lambda file: file["targets"][0].update(original=f"{header}\n{body}")
        )

    other = passed_on(task, change, tmp_path)
    assert controls_of_here(other.folder) is None
    again = confirmer.control(other, read_answer(other))
    assert (again.confirmable, again.reason) == (False, Unconfirmable.HEADER_CHANGED), again
