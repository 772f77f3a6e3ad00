"""What surrounds a call hides no fault, and does not keep honest repairs from being confirmed."""

from __future__ import annotations

import pytest
import surroundings as faults
from examples import sampled
from fault_tasks import FaultTasks, is_caught
from working_backends import on_one_backend

from gistpoint.core.confirmation.model import Confirmed

FIRST = "number"
"""A function that all tests of the library need (`tasks` in `conftest.py`)."""


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.SET, 3))
def test_what_a_test_sets_or_replaces_reaches_the_function(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.SET[name])
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.PARTS, 3))
def test_a_copy_has_all_parts_of_an_answer(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.PARTS[name])
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.BESIDE, 3))
def test_changes_of_the_library_and_the_process_count(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.BESIDE[name])
    assert is_caught(found), found
    assert any("in its process" in mark for mark in found.marks), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.HONEST, 2))
def test_honest_repairs_beside_them_are_confirmed(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.HONEST[name])
    assert (found.result, found.marks) == (Confirmed.CONFIRMED, ()), found
