"""Faults that get lost between two processes are found, and do not keep honest repairs from being confirmed."""

from __future__ import annotations

import lost_changes as faults
import pytest
from examples import sampled
from fault_tasks import FaultTasks, is_caught
from working_backends import on_one_backend

from gistpoint.core.confirmation.model import Confirmed

FIRST = "quiet"
"""A function that all tests of the library need (`tasks` in `conftest.py`)."""


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.LEFT, 3))
def test_what_a_call_leaves_to_later_calls_counts(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.LEFT[name])
    assert is_caught(found), found
    assert any("in its process" in mark for mark in found.marks), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.SPELLED, 2))
def test_an_answer_has_one_meaning_and_no_effect_by_itself(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.SPELLED[name])
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.KEPT, 1))
def test_other_parts_of_an_argument_are_changed_as_well(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.KEPT[name])
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.PAST, 1))
def test_output_past_the_streams_is_no_note(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.PAST[name])
    assert is_caught(found), found
    assert any("in its process" in mark for mark in found.marks), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.ENDED, 2))
def test_a_block_that_is_ended_in_another_way_confirms_nothing(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.ENDED[name])
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.MADE, 1))
def test_an_attribute_that_is_read_by_a_made_name_confirms_nothing(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.MADE[name])
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.ASKED, 1))
def test_an_object_that_is_passed_after_another_question_stays_as_it_was(
    tasks: FaultTasks, name: str
) -> None:
    found = tasks.confirmed(faults.ASKED[name])
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.PLACED, 1))
def test_a_warning_names_its_place(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.PLACED[name])
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.MERGED, 1))
def test_a_string_arrives_as_it_is(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.MERGED[name])
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.RECORDED, 1))
def test_all_of_a_log_record_arrives(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.RECORDED[name])
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.HONEST, 2))
def test_honest_repairs_beside_them_are_confirmed(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.HONEST[name])
    assert (found.result, found.marks) == (Confirmed.CONFIRMED, ()), found
