"""The files that a suite may change are found in few runs, stored with the baseline and read carefully."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from builders import CHECKS, build_task
from fakes import FakeRunner

from gistpoint.core.errors import TaskError
from gistpoint.core.generation.intake import take_in
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.kinds.protecting import NOTHING, find_protection
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.outcomes import Outcome, RunStatus, SuiteReport, TestResult, Writable
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import RunRequest
from gistpoint.core.tasks.documents import PROTECTIONS_FILE, write_baseline
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.protection import Protection
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree, write_tree

PASSED = frozenset({"t.py::a", "t.py::b"})


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    folder = tmp_path / "files"
    for path in ("t.py", "made/keep.txt", "own/file"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x")
    write_tree(folder, tmp_path / "tree.tar")
    return SourceTree.open(tmp_path / "tree.tar")


@dataclass
class Suite:
    """A suite of two tests: `b` passes if it may change the paths in `writes`, which the watch notices."""

    writes: Writable | None = field(default_factory=Writable)
    also_needs: Writable = field(default_factory=Writable)
    """The paths that it needs in addition, which the watch does not notice."""
    broken: RunStatus = RunStatus.FINISHED
    flaky: Callable[[int], bool] = lambda run: False
    asked: list[RunRequest] = field(default_factory=list)

    def run(self, request: RunRequest, _: str = "") -> SuiteReport:
        self.asked.append(request)
        may, needs = request.writable, self.writes or Writable()
        folders, paths = {*needs.folders, *self.also_needs.folders}, {*needs.paths, *self.also_needs.paths}
        fine = may is None or (folders <= {*may.folders, "absent"} and paths <= {*may.paths, "made/new"})
        fine = fine and not self.flaky(len(self.asked))
        outcomes = {"t.py::a": Outcome.PASSED, "t.py::b": Outcome.PASSED if fine else Outcome.FAILED}
        results = {id: TestResult(id, outcome) for id, outcome in outcomes.items()}
        return SuiteReport(self.broken, results, seconds=0.1, writes=self.writes if request.watch else None)


def found(suite: Suite, tree: SourceTree, passed: frozenset[str] = PASSED) -> Protection | SuiteReport:
    return find_protection(RunRequest(tree, EnvironmentPins(), 10.0), passed, suite.run)


def test_one_run_if_the_suite_changes_nothing(tree: SourceTree) -> None:
    suite = Suite()
    assert found(suite, tree) == Protection(NOTHING)
    assert [request.writable for request in suite.asked] == [NOTHING]


def test_three_if_it_does(tree: SourceTree) -> None:
    writes = Writable(("made", "absent"), ("own/file", "made/new"))
    suite = Suite(writes)
    assert found(suite, tree) == Protection(Writable(("made",), ("own/file",)))
    assert [(request.writable, request.watch) for request in suite.asked] == [
        (NOTHING, False), (None, True), (Writable(("made",), ("own/file",)), False),
    ]  # fmt: skip


def test_tests_that_do_not_pass_here_anyway_are_no_reason(tree: SourceTree) -> None:
    suite = Suite()
    assert found(suite, tree, PASSED | {"t.py::elsewhere"}) == Protection(NOTHING)
    assert len(suite.asked) == 2


@pytest.mark.parametrize(
    ("suite", "reason"),
    [
        (
            Suite(Writable(("made",)), also_needs=Writable(("own",))),
            "1 test of its suite does not pass otherwise",
        ),
        (Suite(Writable((), (".",)), also_needs=Writable(("own",))), "changes too many of its files"),
        (Suite(None, also_needs=Writable(("own",))), "could not be determined"),
    ],
)
def test_a_suite_that_can_not_be_held_to_it(tree: SourceTree, suite: Suite, reason: str) -> None:
    told = found(suite, tree)
    assert isinstance(told, Protection)
    assert told.writable is None
    assert reason in told.reason
    assert reason in told.words


@pytest.mark.parametrize("status", [RunStatus.INFRASTRUCTURE, RunStatus.CANCELLED])
def test_a_failure_of_the_harness_says_nothing_of_the_suite(tree: SourceTree, status: RunStatus) -> None:
    told = found(Suite(broken=status), tree)
    assert isinstance(told, SuiteReport)
    assert told.status is status


class TestIntake:
    @pytest.fixture
    def take(self, tree: SourceTree) -> Callable[[Suite, int], Protection | None]:
        repository = Repository(Source("folder", "tiny", "1"), tree, EnvironmentPins())

        def intake(suite: Suite, runs: int) -> Protection | None:
            class Runner(FakeRunner):
                def run(self, request: RunRequest, **_: object) -> SuiteReport:
                    return suite.run(request)

            return take_in(repository, Runner({}), runs=runs).protection

        return intake

    def test_it_takes_no_run_more(self, take: Callable[[Suite, int], Protection | None]) -> None:
        for runs in (1, 2, 3):
            suite = Suite()
            assert take(suite, runs) == Protection(NOTHING)
            assert [request.writable for request in suite.asked] == [None] * (runs - 1) + [NOTHING]

    def test_two_more_if_the_suite_changes_its_tree(
        self, take: Callable[[Suite, int], Protection | None]
    ) -> None:
        suite = Suite(Writable(("made",)))
        assert take(suite, 3) == Protection(Writable(("made",)))
        assert len(suite.asked) == 5

    def test_a_flaky_test_is_not_taken_for_one_that_writes(
        self, take: Callable[[Suite, int], Protection | None]
    ) -> None:
        suite = Suite(flaky=lambda run: run == 3)
        assert take(suite, 3) == Protection(NOTHING)
        assert len(suite.asked) == 5
        suite = Suite(flaky=lambda run: run == 2)
        assert take(suite, 3) == Protection(NOTHING)
        assert len(suite.asked) == 3


class TestOldTasks:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        task = build_task(tmp_path)
        write_baseline(task.folder, replace(read_answer(task).baselines[0], protections={}))
        return task.folder

    def judge(self, folder: Path, runner: FakeRunner) -> RepairJudge:
        task = read_task(folder)
        return RepairJudge(task, read_answer(task), runner)

    def test_the_first_scored_run_completes_them(self, folder: Path) -> None:
        runner = FakeRunner(CHECKS)
        judge = self.judge(folder, runner)
        tree = SourceTree.open(judge.task.tree_path)
        judge.judge(tree)
        assert runner.runs == 2
        judge.judge(tree)
        assert runner.runs == 3
        again = FakeRunner(CHECKS)
        self.judge(folder, again).judge(tree)
        assert again.runs == 1
        document = json.loads((folder / PROTECTIONS_FILE).read_text())
        assert document["protections"] == {"fake": {"folders": [], "paths": []}}

    def test_each_backend_has_its_own(self, folder: Path) -> None:
        for name in ("fake", "other"):
            runner = FakeRunner(CHECKS)
            runner.backend = replace(runner.backend, name=name)
            assert self.judge(folder, runner).protection() == Protection(NOTHING)
            assert runner.runs == 1
        assert set(read_answer(read_task(folder)).baselines[0].protections) == {"fake", "other"}

    def test_one_that_can_not_be_written_is_completed_for_the_attempt(self, folder: Path) -> None:
        judge = self.judge(folder, FakeRunner(CHECKS))
        (folder / "answer" / "baselines").rename(folder / "answer" / "away")
        for _ in range(2):
            assert judge.protection() == Protection(NOTHING)
        assert judge.runner.runs == 1  # type: ignore[attr-defined]

    def test_a_failure_of_the_harness_costs_nothing_and_is_not_kept(self, folder: Path) -> None:
        runner = FakeRunner(CHECKS, status=RunStatus.INFRASTRUCTURE)
        judge = self.judge(folder, runner)
        judgement = judge.judge(SourceTree.open(judge.task.tree_path))
        assert judgement.report.status is RunStatus.INFRASTRUCTURE
        assert not judgement.counts
        assert read_answer(read_task(folder)).baselines[0].protections == {}


@pytest.mark.parametrize(
    "told",
    [
        {"folders": ["../up"], "paths": []},
        {"folders": [], "paths": ["/etc/passwd"]},
        {"folders": ["a/../../b"], "paths": []},
        {"folders": ["a\0b"], "paths": []},
        {"folders": [1], "paths": []},
        {"folders": []},
        {"reason": 1},
        [],
    ],
)
def test_a_record_that_names_what_is_not_in_the_tree_is_refused(tmp_path: Path, told: object) -> None:
    task = build_task(tmp_path)
    (file,) = (task.folder / "answer/baselines").iterdir()
    file.write_text(json.dumps({**json.loads(file.read_text()), "protections": {"bwrap": told}}))
    with pytest.raises(TaskError, match="protections"):
        read_answer(task)


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    task = build_task(tmp_path)
    kept = {
        "bwrap": Protection(Writable((".", "made"), ("own/file",))),
        "plain": Protection(None, "its suite changes too many of its files"),
    }
    write_baseline(task.folder, replace(read_answer(task).baselines[0], protections=kept))
    assert read_answer(task).baselines[0].protections == kept
