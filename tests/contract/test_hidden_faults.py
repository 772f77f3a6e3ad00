"""Passes with a fault that something else hides are not confirmed; corresponding honest repairs are."""

from __future__ import annotations

from collections.abc import Mapping

import hidden_faults as faults
import msgspec
import pytest
from examples import sampled
from fault_tasks import LIBRARY, FaultTasks, is_caught
from working_backends import on_one_backend

from gistpoint.core.code.splice import with_definition
from gistpoint.core.confirmation.model import Confirmed, Unconfirmable
from gistpoint.core.trees import SourceTree

FIRST = "price"
"""A function that all tests of the library need (`tasks` in `conftest.py`)."""


def _corrupted(bodies: Mapping[str, str]) -> dict[str, str]:
    return {name: faults.CORRUPTED[name] for name in bodies}


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.SWALLOWED, 1))
def test_an_exception_of_a_test_that_is_swallowed_confirms_nothing(tasks: FaultTasks, name: str) -> None:
    bodies = faults.SWALLOWED[name]
    found = tasks.confirmed(bodies, _corrupted(bodies))
    assert is_caught(found), found
    assert any("exception of a test" in mark for mark in found.marks), found


@on_one_backend
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("name", sampled(faults.BLAMED, 1))
def test_a_function_that_covers_for_another_confirms_nothing(tasks: FaultTasks, name: str, old: bool) -> None:
    bodies = faults.BLAMED[name]
    both = ("gross", "net") if "net" in bodies else ("encode", "decode")
    found = tasks.confirmed(bodies, _corrupted(dict.fromkeys(both)), old=old)
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.READ, 1))
def test_what_the_library_can_read_is_no_note(tasks: FaultTasks, name: str) -> None:
    bodies = faults.READ[name]
    found = tasks.confirmed(bodies, _corrupted(bodies))
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.ASLEEP, 1))
def test_answers_that_change_late_or_for_iterators_are_found(tasks: FaultTasks, name: str) -> None:
    bodies = faults.ASLEEP[name]
    found = tasks.confirmed(bodies, _corrupted(bodies))
    assert (found.result, found.reason) == (Confirmed.UNCONFIRMED, Unconfirmable.STATE_OUTSIDE), found
    assert found.marks


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.HONEST, 2))
def test_honest_repairs_beside_them_are_confirmed(tasks: FaultTasks, name: str) -> None:
    bodies = faults.HONEST[name]
    found = tasks.confirmed(bodies, _corrupted(bodies))
    assert (found.result, found.marks) == (Confirmed.CONFIRMED, ()), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.ADDED, 1))
def test_a_header_that_suits_all_callers_is_confirmed(tasks: FaultTasks, name: str) -> None:
    function, code = faults.ADDED[name]
    found = tasks.confirmed({function: code}, _corrupted({function: code}))
    assert (found.result, found.marks) == (Confirmed.CONFIRMED, ()), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.MOVED, 1))
def test_a_header_that_does_not_is_not(tasks: FaultTasks, name: str) -> None:
    function, code = faults.MOVED[name]
    found = tasks.confirmed({function: code}, _corrupted({function: code}))
    assert (found.result, found.reason) == (Confirmed.UNCONFIRMED, Unconfirmable.HEADER_CHANGED), found
    assert found.marks


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.UNCONTROLLED, 1))
def test_each_function_of_a_task_needs_a_test_of_its_own(tasks: FaultTasks, name: str) -> None:
    _task, _answer, controls = tasks.case(faults.UNCONTROLLED[name])
    assert (controls.confirmable, controls.reason) == (False, Unconfirmable.NO_CONTROL), controls
    assert "only kit.py::" in controls.detail


@on_one_backend
def test_an_old_task_whose_functions_have_no_tests_of_their_own_confirms_nothing(tasks: FaultTasks) -> None:
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
    tree = with_definition(tree, LIBRARY, "price", tasks.code("price", "return amount * rate"))
    found = tasks.confirmer.confirm(task, answer, old, tree)
    assert (found.result, found.reason) == (Confirmed.UNCONFIRMED, Unconfirmable.NO_CONTROL), found
    assert found.detail == "No test that counts fails if only kit.py::rows is wrong."
