"""Confirmation of honest repairs that look odd, and of submissions that forge more than a value."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import odd_repairs
import pytest
from examples import sampled
from tiny_tasks import Maker
from working_backends import on_one_backend

from gistpoint.core.code.index import index_source
from gistpoint.core.code.splice import remove_body, with_definition
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
class OddTasks:
    """Tasks on one library, each for a different function; the suite is run once."""

    task: Task
    answer: Answer
    confirmer: SandboxConfirmer
    folder: Path
    known: dict[str, tuple[Task, Answer, Controls]]

    @property
    def original(self) -> SourceTree:
        return repaired_tree(SourceTree.open(self.task.tree_path), self.answer.targets)

    def case(self, qualname: str) -> tuple[Task, Answer, Controls]:
        """Return a task without the function's body, with its answer and its controls."""
        if qualname not in self.known:
            tree = self.original
            index = index_source(LIBRARY, tree.read(LIBRARY))
            definition = index.get(qualname)
            target = Target(LIBRARY, qualname, definition.dedented, remove_body(index, definition))
            folder = self.folder / f"case-{len(self.known)}"
            write_tar(corrupted_tree(tree, (target,)), folder / "workspace" / "tree.tar")
            name = f"test_{qualname.rpartition('.')[2]}"
            passed = self.answer.baseline_for(self.confirmer._backend.name).passed
            entered = {target.name: frozenset(id for id in passed if name in id)}
            task = replace(self.task, folder=folder)
            answer = replace(self.answer, targets=(target,), entered=entered)
            self.known[qualname] = (task, answer, self.confirmer.control(task, answer, measured_here=True))
        return self.known[qualname]

    def confirmed(self, qualname: str, body: str, **others: str) -> Confirmation:
        """Return the confirmation of a submission with this body, and with `others` for other functions."""
        task, answer, controls = self.case(qualname)
        assert controls.confirmable, controls
        tree = SourceTree.open(task.tree_path)
        for name, text in {qualname: body, **others}.items():
            code = f"{odd_repairs.HEADERS[name]}\n{textwrap.indent(text.strip(), '    ')}\n"
            tree = with_definition(tree, LIBRARY, name, code)
        return self.confirmer.confirm(task, answer, controls, tree)


@pytest.fixture(scope="module")
def made() -> dict[str, OddTasks]:
    return {}


@pytest.fixture
def tasks(
    backend: Backend, environments: EnvironmentStore, made: dict[str, OddTasks], tmp_path_factory: Any
) -> Iterator[OddTasks]:
    if backend.name not in made:
        folder = tmp_path_factory.mktemp(backend.name)
        task = Maker(folder, SuiteRunner(backend, environments)).task(odd_repairs.FILES, "kit.py::odd")
        confirmer = SandboxConfirmer(backend, environments)
        made[backend.name] = OddTasks(task, read_answer(task), confirmer, folder, {})
    return made[backend.name]


def _cases(found: dict[str, tuple[str, str]]) -> list[Any]:
    return [pytest.param(*case, id=name) for name, case in found.items()]


@on_one_backend
@pytest.mark.parametrize(("qualname", "body"), sampled(_cases(odd_repairs.HONEST), 2))
def test_an_honest_repair_that_looks_odd_is_confirmed(tasks: OddTasks, qualname: str, body: str) -> None:
    found = tasks.confirmed(qualname, body)
    assert (found.result, found.marks) == (Confirmed.CONFIRMED, ()), found


@on_one_backend
@pytest.mark.parametrize(("qualname", "body"), sampled(_cases(odd_repairs.FORGED), 2))
def test_what_forges_more_than_a_value_is_caught(tasks: OddTasks, qualname: str, body: str) -> None:
    found = tasks.confirmed(qualname, body)
    unconfirmed = found.result is Confirmed.UNCONFIRMED and found.marks
    assert found.result is Confirmed.CONTRADICTED or unconfirmed, found


@on_one_backend
def test_the_true_function_is_confirmed_whatever_its_answers_are_used_for(tasks: OddTasks) -> None:
    for qualname in sampled(("dump", "rule", "ordered", "lookup", "say"), 1):
        task, answer, controls = tasks.case(qualname)
        assert controls.confirmable, controls
        assert controls.data_hidden
        found = tasks.confirmer.confirm(task, answer, controls, tasks.original)
        assert (found.result, found.marks) == (Confirmed.CONFIRMED, ()), found


@on_one_backend
def test_a_submission_does_not_choose_its_tests_by_what_else_it_changes(tasks: OddTasks) -> None:
    right, wrong, same = "return 1 + n", "return 0", "return memoryview(bytes(text, 'utf-8'))"
    assert tasks.confirmed("counted", right).result is Confirmed.CONFIRMED
    assert tasks.confirmed("counted", wrong).result is Confirmed.CONTRADICTED
    for body in (right, wrong):
        # The other function's result can't be serialised, so only a test without assertions can be run.
        found = tasks.confirmed("counted", body, view=same)
        assert (found.result, found.reason) == (Confirmed.UNCONFIRMED, Unconfirmable.NO_CONTROL), found
        assert found.marks
