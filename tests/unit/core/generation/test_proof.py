"""Tests that fail by chance during the proof of a corruption are not failing tests of the task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import CHECKS, GOOD, write_files
from fakes import FakeRunner

from gistpoint.core.code.testmap import TestMap
from gistpoint.core.generation.intake import Intake, NoGood, NoTaskError, prove, take_in
from gistpoint.core.generation.removal import removal_target
from gistpoint.core.outcomes import SuiteReport
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import RunRequest
from gistpoint.core.tasks.model import Source, ToolLimits
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree

DISCOUNT = "shop/prices.py::discount"
TELL = frozenset(id for id in CHECKS if "test_prices" in id)
ODD = "tests/test_clock.py::test_debounce"


class Busy:
    """A test that fails in given runs, like one that measures time."""

    def __init__(self, *failing_runs: int) -> None:
        self.run, self.failing_runs = 0, failing_runs

    def __call__(self, names: object) -> None:
        self.run += 1
        assert self.run not in self.failing_runs, "too late"


def intake_of(folder: Path, runner: FakeRunner, entering: frozenset[str] | None = TELL) -> Intake:
    write_files(GOOD, folder)
    tree = SourceTree.open(folder / "workspace" / "tree.tar")
    intake = take_in(Repository(Source("folder", "shop", "1"), tree, EnvironmentPins()), runner)
    if entering is None:
        return intake
    return replace(intake, test_map=TestMap({DISCOUNT: entering}, tests=dict.fromkeys(intake.passed, 0.01)))


def test_what_fails_by_chance_does_not_count(tmp_path: Path) -> None:
    runner = FakeRunner({**CHECKS, ODD: Busy(4)})
    intake = intake_of(tmp_path, runner)
    proof = prove(intake, (removal_target(intake.repository.tree, DISCOUNT),), runner)
    assert proof.failing == TELL
    assert proof.passed_corrupted == intake.passed - TELL
    assert ODD not in {failure.id for failure in proof.failures(ToolLimits())}
    assert runner.runs == 3 + 2 + 2


def test_what_fails_again_counts_though_nothing_was_seen_to_enter(tmp_path: Path) -> None:
    runner = FakeRunner({**CHECKS, ODD: Busy(4, 5)})
    intake = intake_of(tmp_path, runner)
    assert prove(intake, (removal_target(intake.repository.tree, DISCOUNT),), runner).failing == TELL | {ODD}


@pytest.mark.parametrize("entering", [TELL | {ODD}, None])
def test_the_suite_runs_once_where_every_failing_test_enters_or_nothing_is_known(
    tmp_path: Path, entering: frozenset[str] | None
) -> None:
    runner = FakeRunner({**CHECKS, ODD: Busy(4)})
    intake = intake_of(tmp_path, runner, entering)
    assert prove(intake, (removal_target(intake.repository.tree, DISCOUNT),), runner).failing == TELL | {ODD}
    assert runner.runs == 3 + 1 + 2


def test_chance_does_not_make_a_task_of_too_few(tmp_path: Path) -> None:
    runner = FakeRunner({**CHECKS, ODD: Busy(4)})
    intake = intake_of(tmp_path, runner)
    with pytest.raises(NoTaskError) as caught:
        prove(intake, (removal_target(intake.repository.tree, DISCOUNT),), runner, min_failing=len(TELL) + 1)
    assert caught.value.reason is NoGood.TOO_FEW_FAILING


class Behind:
    """A test that fails on the corrupted tree only after `leaves`, because of the state that it left."""

    def __init__(self) -> None:
        self.left = False

    def leaves(self, names: Mapping[str, object]) -> None:
        self.left = names["discount"](90, 10) is None  # type: ignore[operator]

    def __call__(self, names: object) -> None:
        assert not self.left, "left behind"


class Selecting(FakeRunner):
    """A runner of the selected tests alone or, without a selection, of all tests, those in `first` first."""

    def run(self, request: RunRequest, **more: Any) -> SuiteReport:
        order = request.select or tuple(dict.fromkeys([*request.first, *self.checks]))
        behind.left = False
        return replace(self, checks={id: self.checks[id] for id in order}).run_all(request, **more)

    def run_all(self, request: RunRequest, **more: Any) -> SuiteReport:
        return super().run(request, **more)


behind = Behind()


@pytest.mark.parametrize("moves", [True, False])
def test_a_test_that_fails_only_behind_another_forbids_to_move_it(tmp_path: Path, moves: bool) -> None:
    checks = (
        {**CHECKS, ODD: lambda names: None}
        if moves
        else {**CHECKS, "tests/test_a.py::test_leaves": behind.leaves, ODD: behind}
    )
    runner = Selecting(checks)
    intake = intake_of(tmp_path, runner, TELL | {ODD})
    proof = prove(intake, (removal_target(intake.repository.tree, DISCOUNT),), runner)
    assert proof.failing == (TELL if moves else TELL | {ODD})
    assert proof.any_order is moves
