"""Passes in which a failed check or a missing answer is hidden by something else that the run does."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hidden_failures as faults
import pytest
from examples import sampled
from fault_tasks import FaultTasks, fault_tasks, is_caught
from working_backends import on_one_backend

from gistpoint.core.confirmation.model import Confirmed, Unconfirmable
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.environments.store import EnvironmentStore

FIRST = "render"
"""A function that all tests of the library need (`tasks` in `conftest.py`)."""


@on_one_backend
@pytest.mark.parametrize("name", [*sampled(faults.ENDED, 2), "a check in a helper of the tests"])
def test_a_check_that_fails_counts_whatever_ends_its_block(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.ENDED[name])
    assert is_caught(found), found
    assert any("exception of a test" in mark for mark in found.marks), found


PLAIN = {
    "by an argument": {"pytest.ini": "[pytest]\naddopts = --assert=plain\n"},
    "by a docstring": {
        "pytest.ini": "[pytest]\n",
        "tests/test_kit.py": f'"PYTEST_DONT_REWRITE"\n{faults.TESTS}',
    },
}


@on_one_backend
@pytest.mark.parametrize("how", PLAIN)
def test_a_check_that_the_suite_does_not_let_pytest_rewrite_counts(
    how: str, backend: Backend, environments: EnvironmentStore, tmp_path: Path
) -> None:
    files = {**faults.FILES, **PLAIN[how]}
    del files["tests/test_doc.py"]
    plain = SimpleNamespace(FILES=files, HEADERS=faults.HEADERS, CORRUPTED=faults.CORRUPTED)
    found = fault_tasks(plain, "render", backend, environments, tmp_path).confirmed(
        {"Door.close": "return True"}
    )
    assert is_caught(found), found
    assert any("exception of a test" in mark for mark in found.marks), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.LEFT, 2))
def test_what_a_call_leaves_behind_in_its_process_counts(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.LEFT[name])
    assert (found.result, found.reason) == (Confirmed.UNCONFIRMED, Unconfirmable.STATE_OUTSIDE), found
    assert any("in its process" in mark for mark in found.marks), found


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.DONE, 2))
def test_output_that_only_the_submission_has_is_no_answer(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.DONE[name])
    assert is_caught(found), found


@on_one_backend
@pytest.mark.parametrize(
    "table", [faults.APART, faults.ALTERED, faults.RARE], ids=["apart", "altered", "rare"]
)
def test_calls_that_are_hard_to_compare_are_compared(tasks: FaultTasks, table: dict[str, Any]) -> None:
    for name in sampled(table, 1):
        found = tasks.confirmed(table[name])
        assert is_caught(found), (name, found)


@on_one_backend
@pytest.mark.parametrize("name", sampled(faults.HONEST, 2))
def test_honest_repairs_beside_them_are_confirmed(tasks: FaultTasks, name: str) -> None:
    found = tasks.confirmed(faults.HONEST[name])
    assert (found.result, found.marks) == (Confirmed.CONFIRMED, ()), found
