"""Passes whose fault something else hides: none of them is confirmed, and the honest repairs next to them are."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import hidden_faults as faults
import msgspec
import pytest
from examples import sampled
from tiny_tasks import Maker
from working_backends import on_one_backend

from gistpoint.core.code.index import index_source
from gistpoint.core.code.splice import with_definition
from gistpoint.core.confirmation.model import Confirmation, Confirmed, Controls, Unconfirmable
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.tasks.model import Answer, Target, Task
from gistpoint.core.tasks.trees import corrupted_tree, repaired_tree
from gistpoint.core.trees import SourceTree, write_tar
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.confirmation import SandboxConfirmer
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.testruns import SuiteRunner

LIBRARY = "kit.py"


@dataclass(frozen=True)
class Tasks:
    """Tasks on one library, each for one or more of its functions, of which the suite is run once."""

    task: Task
    answer: Answer
    confirmer: SandboxConfirmer
    folder: Path
    known: dict[tuple[tuple[str, str], ...], tuple[Task, Answer, Controls]]

    def case(self, corrupted: Mapping[str, str]) -> tuple[Task, Answer, Controls]:
        """Return a task whose functions have these bodies, with its answer and its controls."""
        key = tuple(corrupted.items())
        if key not in self.known:
            original = repaired_tree(SourceTree.open(self.task.tree_path), self.answer.targets)
            index = index_source(LIBRARY, original.read(LIBRARY))
            targets = tuple(
                Target(LIBRARY, name, index.get(name).dedented, _code(name, body))
                for name, body in corrupted.items()
            )
            folder = self.folder / f"case-{len(self.known)}"
            write_tar(corrupted_tree(original, targets), folder / "workspace" / "tree.tar")
            task, answer = replace(self.task, folder=folder), replace(self.answer, targets=targets)
            self.known[key] = (task, answer, self.confirmer.control(task, answer))
        return self.known[key]

    def confirmed(
        self, bodies: Mapping[str, str], corrupted: Mapping[str, str], *, old: bool = False
    ) -> Confirmation:
        """Return what becomes of bodies of the functions of a task; with `old`, of a task made before."""
        task, answer, controls = self.case(corrupted)
        assert controls.confirmable, controls
        if old:
            controls = msgspec.structs.replace(controls, each=False)
        tree = SourceTree.open(task.tree_path)
        for name, body in bodies.items():
            tree = with_definition(tree, LIBRARY, name, _code(name, body))
        return self.confirmer.confirm(task, answer, controls, tree)


def _code(name: str, body: str) -> str:
    if body.startswith("def "):
        return body
    return f"{faults.HEADERS[name]}\n{textwrap.indent(body.strip(), '    ')}\n"


@pytest.fixture(scope="module")
def made() -> dict[str, Tasks]:
    return {}


@pytest.fixture
def tasks(
    backend: Backend, environments: EnvironmentStore, made: dict[str, Tasks], tmp_path_factory: Any
) -> Tasks:
    if backend.name not in made:
        folder = tmp_path_factory.mktemp(backend.name)
        task = Maker(folder, SuiteRunner(backend, environments)).task(faults.FILES, "kit.py::price")
        answer = replace(read_answer(task), entered={})
        made[backend.name] = Tasks(task, answer, SandboxConfirmer(backend, environments), folder, {})
    return made[backend.name]


def _corrupted(bodies: Mapping[str, str]) -> dict[str, str]:
    return {name: faults.CORRUPTED[name] for name in bodies}


def is_caught(found: Confirmation) -> bool:
    """Whether a forged pass is contradicted, or neither confirmed nor without a mark."""
    unconfirmed = found.result is Confirmed.UNCONFIRMED and bool(found.marks)
    return found.result is Confirmed.CONTRADICTED or unconfirmed


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.SWALLOWED, 2))
def test_an_exception_of_a_test_that_is_swallowed_confirms_nothing(tasks: Tasks, name: str) -> None:
    bodies = faults.SWALLOWED[name]
    found = tasks.confirmed(bodies, _corrupted(bodies))
    assert is_caught(found), found
    assert any("exception of a test" in mark for mark in found.marks), found


@on_one_backend
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("name", sampled(faults.BLAMED, 2))
def test_a_function_that_covers_for_another_confirms_nothing(tasks: Tasks, name: str, old: bool) -> None:
    bodies = faults.BLAMED[name]
    both = ("gross", "net") if "net" in bodies else ("encode", "decode")
    found = tasks.confirmed(bodies, _corrupted(dict.fromkeys(both)), old=old)
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.READ, 2))
def test_what_the_library_can_read_is_no_note(tasks: Tasks, name: str) -> None:
    bodies = faults.READ[name]
    found = tasks.confirmed(bodies, _corrupted(bodies))
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.ASLEEP, 2))
def test_answers_that_change_late_or_for_iterators_are_found(tasks: Tasks, name: str) -> None:
    bodies = faults.ASLEEP[name]
    found = tasks.confirmed(bodies, _corrupted(bodies))
    assert (found.result, found.reason) == (Confirmed.UNCONFIRMED, Unconfirmable.STATE_OUTSIDE), found
    assert found.marks


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.HONEST, 3))
def test_honest_repairs_beside_them_are_confirmed(tasks: Tasks, name: str) -> None:
    bodies = faults.HONEST[name]
    found = tasks.confirmed(bodies, _corrupted(bodies))
    assert (found.result, found.marks) == (Confirmed.CONFIRMED, ()), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.ADDED, 2))
def test_a_header_that_suits_all_callers_is_confirmed(tasks: Tasks, name: str) -> None:
    function, code = faults.ADDED[name]
    found = tasks.confirmed({function: code}, _corrupted({function: code}))
    assert (found.result, found.marks) == (Confirmed.CONFIRMED, ()), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.MOVED, 1))
def test_a_header_that_does_not_is_not(tasks: Tasks, name: str) -> None:
    function, code = faults.MOVED[name]
    found = tasks.confirmed({function: code}, _corrupted({function: code}))
    assert (found.result, found.reason) == (Confirmed.UNCONFIRMED, Unconfirmable.HEADER_CHANGED), found
    assert found.marks


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.UNCONTROLLED, 1))
def test_each_function_of_a_task_needs_a_test_of_its_own(tasks: Tasks, name: str) -> None:
    _task, _answer, controls = tasks.case(faults.UNCONTROLLED[name])
    assert (controls.confirmable, controls.reason) == (False, Unconfirmable.NO_CONTROL), controls
    assert "only kit.py::" in controls.detail


@on_one_backend
def test_an_old_task_whose_functions_have_no_tests_of_their_own_confirms_nothing(tasks: Tasks) -> None:
    corrupted = faults.UNCONTROLLED["a function whose answer no test uses"]
    _, _, controls = tasks.case({"price": corrupted["price"]})
    task, answer, _ = tasks.case(corrupted)
    place, other = "kit.py::price", "kit.py::rows"
    old = msgspec.structs.replace(
        controls,
        each=False,
        answers={place: controls.answers[place], other: ("iterator elsewhere",)},
        writes={place: controls.writes[place], other: ()},
    )
    tree = SourceTree.open(task.tree_path)
    tree = with_definition(tree, LIBRARY, "price", _code("price", "return amount * rate"))
    found = tasks.confirmer.confirm(task, answer, old, tree)
    assert (found.result, found.reason) == (Confirmed.UNCONFIRMED, Unconfirmable.NO_CONTROL), found
    assert found.detail == "No test that counts fails if only kit.py::rows is wrong."
