"""Passes with changes to correct functions, inseparable tests, or swallowed exceptions."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from tiny_tasks import Maker
from working_backends import on_one_backend

from gistpoint.core.attempts.results import doubts
from gistpoint.core.code.index import index_source
from gistpoint.core.code.splice import remove_body, with_definition
from gistpoint.core.confirmation.model import Confirmation, Confirmed, Unconfirmable
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.tasks.model import Target
from gistpoint.core.tasks.trees import corrupted_tree, repaired_tree
from gistpoint.core.trees import SourceTree, write_tar
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.confirmation import SandboxConfirmer
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.testruns import SuiteRunner

KIT = """
def plan(n):
    return list(range(n, 0, -1))


def is_ordered(items):
    return items == sorted(items, reverse=True)


def twice(n):
    return n * 2


def is_even(n):
    return n % 2 == 0


def label(thing):
    return str(thing).upper()
"""
TESTS = """
import kit

def test_plan():
    assert kit.is_ordered(kit.plan(3)) and len(kit.plan(1)) == 1
def test_order(): assert not kit.is_ordered([2, 1, 3])
def test_twice(): assert kit.twice(2) == 4
def test_all_even(): assert all(map(kit.is_even, [2, 4, 6]))
def test_even(): assert kit.is_even(2)
class Thing:
    def __str__(self): return "thing"
def test_label(): assert kit.label("ab") == "AB"
def test_label_of_a_thing(): assert kit.label(Thing()) == "THING"
"""
HEADERS = {
    "plan": "def plan(n):",
    "is_ordered": "def is_ordered(items):",
    "twice": "def twice(n):",
    "is_even": "def is_even(n):",
    "label": "def label(thing):",
}
MARKED = ("__eq__ defined in a new class",)
Confirm = Callable[[str, str, Mapping[str, str]], Confirmation]


@pytest.fixture
def confirm(backend: Backend, environments: EnvironmentStore, tmp_path_factory: Any) -> Confirm:
    """A function that returns the confirmation of new bodies in a task with one corrupted function.

    Its arguments are the corrupted function, its body (removed if empty), and the new bodies by function.
    """
    folder = tmp_path_factory.mktemp("kit")
    files = {"kit.py": KIT, "tests/test_kit.py": TESTS}
    made = Maker(folder, SuiteRunner(backend, environments)).task(files, "kit.py::twice")
    known = replace(read_answer(made), entered={})
    original = repaired_tree(SourceTree.open(made.tree_path), known.targets)
    confirmer = SandboxConfirmer(backend, environments)

    def confirmed(qualname: str, corrupted: str, bodies: Mapping[str, str]) -> Confirmation:
        index = index_source("kit.py", original.read("kit.py"))
        definition = index.get(qualname)
        wrong = (
            f"{HEADERS[qualname]}\n{textwrap.indent(corrupted, '    ')}\n"
            if corrupted
            else remove_body(index, definition)
        )
        target = Target("kit.py", qualname, definition.dedented, wrong)
        write_tar(corrupted_tree(original, (target,)), folder / qualname / "workspace" / "tree.tar")
        task, answer = replace(made, folder=folder / qualname), replace(known, targets=(target,))
        controls = confirmer.control(task, answer, measured_here=True)
        assert controls.confirmable, controls
        submitted = SourceTree.open(task.tree_path)
        for name, body in bodies.items():
            code = f"{HEADERS[name]}\n{textwrap.indent(body, '    ')}\n"
            submitted = with_definition(submitted, "kit.py", name, code)
        return confirmer.confirm(task, answer, controls, submitted)

    return confirmed


@on_one_backend
def test_a_pass_that_needs_a_right_function_changed_is_not_confirmed(confirm: Confirm) -> None:
    forged = {"plan": "return [9, 0, 8] if n == 3 else [0]", "is_ordered": "return items != [2, 1, 3]"}
    found = confirm("plan", "", forged)
    assert (found.result, found.reason) == (Confirmed.UNCONFIRMED, Unconfirmable.NO_CONTROL), found
    assert "passes only with changes to functions that were right" in found.marks
    assert doubts((), found)


@on_one_backend
def test_a_repair_beside_a_harmless_change_is_confirmed_and_keeps_its_marks(confirm: Confirm) -> None:
    found = confirm("plan", "", {"plan": "return [*range(n, 0, -1)]", "twice": "return n + n"})
    assert found.result is Confirmed.CONFIRMED, found
    assert found.uncovered, "the tests of the other function are not run apart"
    assert (doubts((), found), doubts(MARKED, found)) == ((), MARKED)


@on_one_backend
def test_a_test_that_enters_the_function_and_was_not_run_keeps_the_marks(confirm: Confirm) -> None:
    body = "if isinstance(thing, str):\n    return thing.upper()\nreturn str(thing).upper()"
    found = confirm(
        "label", "return thing + thing if isinstance(thing, str) else str(thing).upper()", {"label": body}
    )
    assert found.result is Confirmed.CONFIRMED, found
    assert found.uncovered, "an object of a test's class can't be sent"
    assert doubts(MARKED, found) == MARKED


@on_one_backend
def test_an_exception_that_a_loop_swallows_is_no_answer(confirm: Confirm) -> None:
    body = "if n == 4:\n    raise StopIteration\nreturn n % 2 == 0"
    found = confirm("is_even", "return n % 2 == 1", {"is_even": body})
    assert (found.result, found.reason) == (Confirmed.UNCONFIRMED, Unconfirmable.NO_CONTROL), found
    assert "raises where the true function answers, and no test notices" in found.marks
    assert found.beyond is not None
    assert found.beyond.submission.startswith("raises StopIteration")
