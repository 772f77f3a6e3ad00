"""A trial runs the real suite and reports failures, their kinds and the target; all other ends are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import CHECKS, GOOD
from fakes import FakeRunner
from tiny_tasks import Maker

from gistpoint.core.code.names import FunctionRef
from gistpoint.core.corruption.corruptions import replaced_target
from gistpoint.core.corruption.rounds import LoopSettings, ModelTrial, SubmissionVerdict
from gistpoint.core.errors import InfrastructureError
from gistpoint.core.generation.by_model import SuiteTrials, example_texts, is_assertion, last_line, rating
from gistpoint.core.generation.intake import Intake, take_in
from gistpoint.core.outcomes import RunStatus
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.testruns import SuiteRunner

FILES = {
    "fares.py": '''def tariff(zones):
    """Return what a ticket costs."""
    if zones < 1:
        raise ValueError("no zones")
    return 20 + 5 * zones


def ticket(zones):
    return {"price": tariff(zones)}
''',
    "tests/test_fares.py": """import pytest
from fares import tariff, ticket


def test_tariff_of_one():
    assert tariff(1) == 25


@pytest.mark.parametrize("zones", [2, 3])
def test_tickets(zones):
    assert ticket(zones)["price"] == 20 + 5 * zones


class TestNone:
    def test_no_zones(self):
        with pytest.raises(ValueError):
            tariff(0)


def test_sums():
    assert sum([1, 2]) == 3
""",
}


def trial_of(intake: Intake, runner: SuiteRunner | FakeRunner, body: str) -> ModelTrial:
    ref = FunctionRef("fares.py", "tariff")
    code = f'def tariff(zones):\n    """Return what a ticket costs."""\n{body}'
    target = replaced_target(intake.repository.tree, ref, code)
    return SuiteTrials(intake, runner, rating(4, 2, 15))(target)


def test_real_runs(tmp_path: Path) -> None:
    runner = SuiteRunner(PlainBackend(), EnvironmentStore(tmp_path / "cache"))
    maker = Maker(tmp_path / "place", runner)
    maker.folder.mkdir()
    intake = take_in(maker.repository(FILES), runner, runs=1)
    body = "    if zones < 1:\n        raise ValueError('no zones')\n    return {}"
    quiet = trial_of(intake, runner, body.format("20 + 6 * zones"))
    assert (quiet.verdict, quiet.failing, quiet.tests) == (SubmissionVerdict.ACCEPTED, 3, 5)
    assert (quiet.by_assertion, quiet.through_target, quiet.messages) == (3, 0, 3)
    assert [failure.id for failure in quiet.failures] == [
        "tests/test_fares.py::test_tariff_of_one",
        "tests/test_fares.py::test_tickets[2]",
    ]
    assert "assert" in quiet.failures[0].text
    loud = trial_of(intake, runner, body.format("20 + 5 * zones.count"))
    assert (loud.failing, loud.by_assertion, loud.through_target) == (3, 0, 3)
    assert loud.subtlety < quiet.subtlety
    silent = trial_of(intake, runner, "    return 20 + 5 * max(zones, 1)")
    assert (silent.failing, silent.by_assertion) == (1, 1)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (RunStatus.TIMED_OUT, SubmissionVerdict.HANGS),
        (RunStatus.OUT_OF_MEMORY, SubmissionVerdict.HANGS),
        (RunStatus.CRASHED, SubmissionVerdict.COULD_NOT_RUN),
        (RunStatus.INVALID, SubmissionVerdict.COULD_NOT_RUN),
        (RunStatus.INFRASTRUCTURE, None),
    ],
)
def test_runs_that_do_not_finish(
    tmp_path: Path, status: RunStatus, verdict: SubmissionVerdict | None
) -> None:
    runner = FakeRunner(CHECKS)
    maker = Maker(tmp_path / "place", runner)
    maker.folder.mkdir()
    intake = take_in(maker.repository(GOOD), runner, runs=1)
    broken = FakeRunner(CHECKS, status=status)
    ref, original = (
        FunctionRef("shop/prices.py", "discount"),
        "def discount(price, percent):\n    return price",
    )
    target = replaced_target(intake.repository.tree, ref, original)
    trials = SuiteTrials(intake, broken, rating(4, 2, 15))
    if verdict is None:
        with pytest.raises(InfrastructureError):
            trials(target)
    else:
        assert trials(target).verdict is verdict
    nothing = replace(trials, runner=FakeRunner({}))
    assert nothing(target).verdict is SubmissionVerdict.BREAKS_COLLECTION


def test_what_failures_say() -> None:
    assert is_assertion("    assert f(1) == 2\nE   assert 3 == 2\n\ntests/t.py:4: AssertionError")
    assert is_assertion("E   Failed: DID NOT RAISE <class 'ValueError'>")
    assert not is_assertion("E   TypeError: assert is no function\n\npkg/a.py:3: TypeError")
    assert (
        last_line("E   assert 3 == 2\nE    +  where 3 = f(1)\n\ntests/t.py:4: AssertionError")
        == "E    +  where 3 = f(1)"
    )
    assert last_line("") == ""


def test_settings_for_tasks_and_examples(tmp_path: Path) -> None:
    assert (LoopSettings.for_tasks(1).min_failing, LoopSettings.for_tasks(2).most_failing) == (2, 15)
    assert (LoopSettings.for_tasks(5).min_failing, LoopSettings.for_tasks(5).most_failing) == (5, 40)
    maker = Maker(tmp_path, FakeRunner({}))
    tree = maker.repository(FILES).tree
    ids = [
        f"tests/test_fares.py::{name}"
        for name in ("test_tickets[2]", "test_tickets[3]", "TestNone::test_no_zones")
    ]
    text = example_texts(tree, [*ids, "gone.py::test_x", "tests/test_fares.py::test_gone"])
    assert text.startswith("# tests/test_fares.py::test_tickets\n@pytest.mark.parametrize")
    assert "# tests/test_fares.py::TestNone.test_no_zones\ndef test_no_zones(self):" in text
    assert text.count("# tests/") == 2
