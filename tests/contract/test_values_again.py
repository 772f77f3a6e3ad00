"""Faults in values that occur again, contexts and settings are found, and do not stop honest repairs."""

from __future__ import annotations

import pytest
import values_again as faults
from examples import sampled
from fault_tasks import FaultTasks, is_caught
from working_backends import on_one_backend

from gistpoint.core.confirmation.model import Confirmed

FIRST = "timed"
"""A function that all tests of the library need (`tasks` in `conftest.py`)."""


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.LEFT, 3))
def test_what_a_call_leaves_to_later_calls_counts(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.LEFT[name])
    assert is_caught(found), found
    assert any("in its process" in mark for mark in found.marks), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.LOST, 3))
def test_what_belongs_to_an_answer_arrives_with_it(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.LOST[name])
    assert found.result is Confirmed.CONTRADICTED, found


@on_one_backend
@pytest.mark.parametrize("name", faults.OVERRIDDEN)
def test_what_a_class_has_hides_no_wrong_answer(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.OVERRIDDEN[name])
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.HONEST, 3))
def test_honest_repairs_beside_them_are_confirmed(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.HONEST[name])
    assert (found.result, found.marks) == (Confirmed.CONFIRMED, ()), found
