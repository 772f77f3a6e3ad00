"""A task is written completely or not at all, and the remains of a killed program are removed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import CHECKS, GOOD, write_files
from fakes import FakeMapper, FakeRunner
from killed_processes import mark_of_killed

from gistpoint.core.errors import RecordingError
from gistpoint.core.generation.intake import STEP, Intake, NoGood, NoTaskError, prove, take_in, with_test_map
from gistpoint.core.generation.making import write_proven
from gistpoint.core.generation.removal import removal_target
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.outcomes import Outcome, SuiteReport, TestResult
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import RunRequest
from gistpoint.core.running import UNATTENDED, RunContext, RunProgress
from gistpoint.core.tasks.model import Mode, Source, Task
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree
from gistpoint.core.unfinished import mark

DISCOUNT = "shop/prices.py::discount"


def repository(folder: Path) -> Repository:
    write_files(GOOD, folder)
    tree = SourceTree.open(folder / "workspace" / "tree.tar")
    return Repository(Source("folder", "shop", "1"), tree, EnvironmentPins())


@pytest.fixture
def intake(tmp_path: Path) -> Intake:
    return take_in(repository(tmp_path), FakeRunner(CHECKS))


class Clocked(FakeRunner):
    """A runner whose suite has a test with the current time in its id."""

    def run(self, request: RunRequest, *, run: RunContext = UNATTENDED) -> SuiteReport:
        report = super().run(request, run=run)
        id = f"tests/test_prices.py::test_day[{self.runs} o'clock]"
        return replace(report, results={**report.results, id: TestResult(id, Outcome.PASSED)})


def test_a_suite_with_other_ids_in_every_run_is_refused_with_what_to_leave_out(tmp_path: Path) -> None:
    with pytest.raises(NoTaskError) as refused:
        take_in(repository(tmp_path), Clocked(CHECKS))
    assert refused.value.reason is NoGood.IDS_VARY
    assert "test_day[1 o'clock] and " in refused.value.message
    assert refused.value.hint.endswith("--deselect tests/test_prices.py::test_day")


def test_a_suite_may_take_as_long_as_was_allowed(tmp_path: Path) -> None:
    class Slow(FakeRunner):
        def run(self, request: RunRequest, *, run: RunContext = UNATTENDED) -> SuiteReport:
            return replace(super().run(request, run=run), seconds=70.0)

    with pytest.raises(NoTaskError, match=r"longer than 60 s\.") as refused:
        take_in(repository(tmp_path), Slow(CHECKS))
    assert "--max-suite-seconds" in refused.value.hint
    assert take_in(repository(tmp_path), Slow(CHECKS), max_seconds=70.0).seconds == 70.0


@pytest.mark.parametrize(("seconds", "waited", "taken"), [(300.0, 250.0, True), (300.0, 200.0, False)])
def test_waiting_for_a_processor_does_not_make_a_suite_slow(
    seconds: float, waited: float, taken: bool, tmp_path: Path
) -> None:
    class OnABusyMachine(FakeRunner):
        def run(self, request: RunRequest, *, run: RunContext = UNATTENDED) -> SuiteReport:
            assert request.patience > 1
            return replace(super().run(request, run=run), seconds=seconds, waited=waited)

    if taken:
        found = take_in(repository(tmp_path), OnABusyMachine(CHECKS))
        # Later runs wait on this machine too, so their time limit depends on the clock.
        assert (found.seconds, found.timeout_s) == (seconds, 5 * seconds)
        assert found.protection is not None
        return
    with pytest.raises(NoTaskError, match="not counting 200 s of waiting for a processor") as refused:
        take_in(repository(tmp_path), OnABusyMachine(CHECKS))
    assert refused.value.reason is NoGood.TOO_SLOW


def written(intake: Intake, into: Path) -> Task:
    runner = FakeRunner(CHECKS)
    proof = prove(intake, (removal_target(intake.repository.tree, DISCOUNT),), runner, min_failing=1)
    return write_proven(intake, proof, Mode.REMOVE, runner.backend.name, into)


def test_what_a_killed_program_left_is_swept_away_and_what_is_under_way_is_not(
    intake: Intake, tmp_path: Path
) -> None:
    into = tmp_path / "tasks"
    killed, another = f".making-{mark_of_killed()}-x", f".making-{mark()}-x"
    for name in (killed, another):
        (into / name / "workspace").mkdir(parents=True)
        (into / name / "workspace" / "tree.tar").write_bytes(b"half")
    task = written(intake, into)
    assert {path.name for path in into.iterdir()} == {task.id, another}


def test_a_task_keeps_the_map_that_was_recorded(intake: Intake, tmp_path: Path) -> None:
    mapper, told = FakeMapper((DISCOUNT,)), list[RunProgress]()
    known = with_test_map(intake, mapper, run=RunContext(progress=told.append))
    assert with_test_map(known, mapper) is known
    assert mapper.runs == 1
    assert {progress.step for progress in told} == {STEP}
    assert read_answer(written(known, tmp_path / "with")).entered == {DISCOUNT: intake.passed}
    assert read_answer(written(intake, tmp_path / "without")).entered == {}


def test_a_suite_that_cannot_be_watched_is_told(intake: Intake) -> None:
    with pytest.raises(RecordingError, match="did not finish"):
        with_test_map(intake, FakeMapper(watchable=False))
