"""The attacks on confirmation: none is confirmed on any backend, although some pass the suite."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples import sampled
from working_backends import on_one_backend, on_the_other_backends

from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import RunRequest
from gistpoint.sandbox.attacks.table import ANSWERS, SMALL, Attack
from gistpoint.sandbox.attacks.trying import (
    ANSWERED,
    ANSWERED_TESTS,
    ATTACKED,
    answered_tree,
    source_of,
    try_answer,
)
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.confirmation import ForgeryTrial
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.testruns import SuiteRunner

BELIEVED = ("equal_object", "equal_number", "from_frames", "from_the_tests", "from_a_counter")
"""Attacks that pass a suite in their own process, so that only confirmation stops them."""


@pytest.fixture
def trial(backend: Backend, environments: EnvironmentStore, tmp_path: Path) -> ForgeryTrial:
    return ForgeryTrial(
        backend,
        environments,
        answered_tree(tmp_path),
        ANSWERED,
        ANSWERED_TESTS,
        limits=SMALL,
        timeout_s=60.0,
    )


@on_one_backend
def test_no_forged_answer_is_confirmed(trial: ForgeryTrial, backend: Backend, tmp_path: Path) -> None:
    tree = answered_tree(tmp_path)
    assert trial.passes(tree)[0]
    found = [try_answer(backend, attack, trial, tree) for attack in ANSWERS]
    assert [finding.attack.name for finding in found if not finding.as_promised] == [], found


@on_the_other_backends
def test_a_forged_answer_is_confirmed_on_no_backend(
    trial: ForgeryTrial, backend: Backend, tmp_path: Path
) -> None:
    (attack,) = (attack for attack in ANSWERS if attack.file == "from_a_counter")
    assert try_answer(backend, attack, trial, answered_tree(tmp_path)).as_promised


@on_one_backend
@pytest.mark.parametrize(
    "attack", sampled([a for a in ANSWERS if a.file in BELIEVED], 2), ids=lambda attack: attack.name
)
def test_it_passes_a_suite_in_its_own_process(
    attack: Attack, backend: Backend, environments: EnvironmentStore, tmp_path: Path
) -> None:
    tree = answered_tree(tmp_path).with_files({ATTACKED: source_of(attack).encode()})
    report = SuiteRunner(backend, environments).run(RunRequest(tree, EnvironmentPins(), timeout_s=60))
    assert set(report.passed) == set(ANSWERED_TESTS), report
