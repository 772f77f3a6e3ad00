"""A harness that did not start: the control run's decision, and how often a submission is given back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from gistpoint.core.entrypoints.runs import CommandRun, GistTrial, Isolation
from gistpoint.core.errors import HarnessFailedError
from gistpoint.core.kinds.beginning import MOST_GIVEN_BACK, ControlledRunner, check_beginning
from gistpoint.core.kinds.gist.score import GistVerdict, settled_verdict
from gistpoint.core.outcomes import BackendRecord, RunStatus, SuiteReport
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import RunRequest
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.trees import SourceTree

GIVEN, SUBMITTED = SourceTree(Path("given"), {}), SourceTree(Path("submitted"), {})
DIED = SuiteReport(RunStatus.CRASHED, reason="It died.", began=False, output="some\nlast words\n")
BEGAN = SuiteReport(RunStatus.CRASHED, reason="It died.")


@dataclass
class Scripted:
    """A runner whose answer depends on the tree that it runs."""

    of_submitted: SuiteReport
    of_given: SuiteReport
    backend: BackendRecord = field(default_factory=lambda: BackendRecord("fake"))
    runs: list[SourceTree] = field(default_factory=list)

    def run(self, request: RunRequest, *, run: RunContext = UNATTENDED) -> SuiteReport:
        self.runs.append(request.tree)
        return self.of_given if request.tree is GIVEN else self.of_submitted


@pytest.mark.parametrize(
    ("submitted", "given", "status", "runs"),
    [
        (BEGAN, DIED, RunStatus.CRASHED, 1),
        (DIED, BEGAN, RunStatus.CRASHED, 2),
        (DIED, DIED, RunStatus.HARNESS_FAILED, 2),
        (replace(DIED, status=RunStatus.TIMED_OUT), DIED, RunStatus.HARNESS_FAILED, 2),
        (replace(DIED, status=RunStatus.CANCELLED), DIED, RunStatus.CANCELLED, 1),
        (DIED, replace(DIED, status=RunStatus.CANCELLED), RunStatus.CANCELLED, 2),
    ],
)
def test_the_control_decides(
    submitted: SuiteReport, given: SuiteReport, status: RunStatus, runs: int
) -> None:
    scripted = Scripted(submitted, given)
    report = ControlledRunner(scripted, lambda: GIVEN).run(RunRequest(SUBMITTED, EnvironmentPins(), 1.0))
    assert (report.status, len(scripted.runs)) == (status, runs)
    if status is RunStatus.HARNESS_FAILED:
        assert "last words" in report.reason


def _trial(*, began: bool) -> GistTrial:
    run = CommandRun(RunStatus.CRASHED, 1, "", "", None, Isolation())
    return GistTrial(run, 0.0, output="last words", began=began)


def test_the_control_of_a_gist_decides() -> None:
    check_beginning(True, lambda: pytest.fail("no control is needed"))
    check_beginning(False, lambda: _trial(began=True))
    with pytest.raises(HarnessFailedError, match="last words"):
        check_beginning(False, lambda: _trial(began=False))


def test_a_hand_in_is_given_back_three_times() -> None:
    failed = GistVerdict("", RunStatus.HARNESS_FAILED, reason="It did not begin.")
    for before in range(MOST_GIVEN_BACK):
        verdict = settled_verdict(failed, before)
        assert (verdict.counts, verdict.score) == (False, None)
        assert f"number {before + 1} of at most 3" in verdict.reason
    charged = settled_verdict(failed, MOST_GIVEN_BACK)
    assert (charged.counts, charged.status, charged.solved) == (True, RunStatus.CRASHED, False)
    assert charged.score is not None
    assert charged.score.error is not None
    assert "so this one counts" in charged.score.error.evidence
