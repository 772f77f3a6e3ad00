"""The requests of a repair's judge to its runner, and its verdicts on the answers, with a fake runner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from builders import CHECKS, build_task
from fakes import FakeClock
from recorders import Memory

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.code.index import index_source
from gistpoint.core.code.splice import replace_definition
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.outcomes import BackendRecord, Outcome, RunStatus, SuiteReport, TestResult
from gistpoint.core.ports import RunRequest
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.trees import SourceTree

TENTH, HALF, CAPACITY = (
    "tests/test_prices.py::test_tenth",
    "tests/test_prices.py::test_half",
    "tests/test_shelf.py::test_capacity",
)
FIXED = "def discount(price, percent):\n    return round(price * (100 - percent) / 100)\n"
WATCHING = "def discount(price, percent):\n    import sys\n    sys._getframe(1)\n    return price\n"


@dataclass
class Recording:
    """A runner that records the requests and answers each with the test's report."""

    answer: Callable[[RunRequest], SuiteReport]
    asked: list[RunRequest] = field(default_factory=list)
    backend: BackendRecord = field(default_factory=lambda: BackendRecord("fake", "1", isolated=True))

    def run(self, request: RunRequest, *, run: RunContext = UNATTENDED) -> SuiteReport:
        self.asked.append(request)
        return self.answer(request)


def report(*failing: str, status: RunStatus = RunStatus.FINISHED) -> SuiteReport:
    outcomes = {id: Outcome.FAILED if id in failing else Outcome.PASSED for id in CHECKS}
    return SuiteReport(status, {id: TestResult(id, outcome) for id, outcome in outcomes.items()})


def judged(
    folder: Path, answer: Callable[[RunRequest], SuiteReport], *, any_order: bool = True
) -> tuple[RepairJudge, Recording]:
    task = build_task(folder)
    found = read_answer(task)
    (baseline,) = found.baselines
    found = replace(
        found,
        baselines=(replace(baseline, any_order=any_order),),
        entered={"shop/shelf.py::Shelf.capacity": frozenset({CAPACITY})},
    )
    runner = Recording(answer)
    return RepairJudge(task, found, runner), runner


def submitted(judge: RepairJudge, code: str) -> SourceTree:
    tree = SourceTree.open(judge.task.tree_path)
    index = index_source("shop/prices.py", tree.read("shop/prices.py"))
    return tree.with_files({"shop/prices.py": replace_definition(index, index.get("discount"), code)})


def test_tests_that_failed_last_time_run_first_then_those_that_fail_now_then_those_that_enter(
    tmp_path: Path,
) -> None:
    judge, runner = judged(tmp_path, lambda request: report())
    judge.judge(
        submitted(judge, FIXED), first=(HALF, "no/such::test"), replaced=("shop/shelf.py::Shelf.capacity",)
    )
    (request,) = runner.asked
    listed = [failure.id for failure in judge.task.brief.failing]
    assert request.first[0] == HALF
    assert list(request.first[1:-1]) == [id for id in listed if id != HALF]
    assert request.first[-1] == CAPACITY
    assert len(request.first) == len(set(request.first))


def test_failing_tests_that_the_brief_leaves_out_run_before_those_that_enter(tmp_path: Path) -> None:
    judge, runner = judged(tmp_path, lambda request: report())
    brief = replace(judge.task.brief, failing=judge.task.brief.failing[-1:])
    shorter = replace(judge, task=replace(judge.task, brief=brief))
    shorter.judge(submitted(judge, FIXED), replaced=("shop/shelf.py::Shelf.capacity",))
    (request,) = runner.asked
    listed = brief.failing[0].id
    others = sorted(judge.baseline.failing - {listed})
    assert others
    assert request.first == (listed, *others, CAPACITY)


def test_no_test_is_moved_if_the_original_does_not_bear_it(tmp_path: Path) -> None:
    judge, runner = judged(tmp_path, lambda request: report(), any_order=False)
    judge.judge(submitted(judge, FIXED), first=(HALF,))
    assert [request.first for request in runner.asked] == [()]


@pytest.mark.parametrize(("elsewhere", "runs", "solved"), [(False, 2, True), (True, 2, False)])
def test_a_new_failure_counts_if_the_suite_fails_there_in_its_own_order(
    elsewhere: bool, runs: int, solved: bool, tmp_path: Path
) -> None:
    def answer(request: RunRequest) -> SuiteReport:
        return report(CAPACITY) if request.first or elsewhere else report()

    judge, runner = judged(tmp_path, answer)
    judgement = judge.judge(submitted(judge, FIXED))
    assert len(runner.asked) == runs
    assert judgement.solved is solved
    assert judgement.score.failing == (frozenset({CAPACITY}) if elsewhere else frozenset())


def test_a_failure_that_was_there_before_needs_no_second_run(tmp_path: Path) -> None:
    judge, runner = judged(tmp_path, lambda request: report(TENTH))
    assert not judge.judge(submitted(judge, FIXED)).solved
    assert len(runner.asked) == 1


def test_a_suite_that_ran_in_its_own_order_is_not_run_again(tmp_path: Path) -> None:
    judge, runner = judged(tmp_path, lambda request: report(CAPACITY), any_order=False)
    assert judge.judge(submitted(judge, FIXED)).score.failing == {CAPACITY}
    assert len(runner.asked) == 1


def test_each_submission_begins_with_what_failed_in_the_one_before(tmp_path: Path) -> None:
    failing = iter([(TENTH,), (CAPACITY,), ()])
    reports: list[SuiteReport] = []

    def answer(request: RunRequest) -> SuiteReport:
        if request.first or not reports:
            reports.append(report(*next(failing)))
        return reports[-1]

    judge, runner = judged(tmp_path, answer)
    clock = FakeClock()
    attempt = Attempt(judge.task, judge, Memory(clock), clock)
    attempt.start(Enrolment())
    for _ in range(3):
        attempt.call("submit_attempt", {"func_code": FIXED})
    ordered = [request.first for request in runner.asked if request.first]
    assert [first[0] for first in ordered[1:]] == [TENTH, CAPACITY]


def test_a_run_that_did_not_finish_is_not_repeated_and_proves_nothing(tmp_path: Path) -> None:
    judge, runner = judged(tmp_path, lambda request: report(status=RunStatus.TIMED_OUT))
    judgement = judge.judge(submitted(judge, FIXED))
    assert (len(runner.asked), judgement.solved, judgement.score.valid) == (1, False, False)


def test_a_pass_that_leaves_the_function_as_it_was_solves_nothing(tmp_path: Path) -> None:
    judge, _ = judged(tmp_path, lambda request: report())
    judgement = judge.judge(SourceTree.open(judge.task.tree_path))
    assert judgement.score.all_pass
    assert (judgement.changed, judgement.solved) == ((), False)


def test_a_suspicious_pass_is_run_again_backwards_and_lost_if_that_fails_where_the_original_passes(
    tmp_path: Path,
) -> None:
    def answer(request: RunRequest) -> SuiteReport:
        is_submission = "_getframe" in request.tree.read("shop/prices.py").decode()
        return report(TENTH) if request.backwards and is_submission else report()

    judge, runner = judged(tmp_path, answer)
    judgement = judge.judge(submitted(judge, WATCHING))
    assert judgement.suspicious
    assert (judgement.solved, judgement.report.status) == (False, RunStatus.INVALID)
    assert [request.backwards for request in runner.asked] == [False, True, True]
    assert [request.hash_seed for request in runner.asked][1:] == [1, 1]


def test_a_suspicious_pass_stands_if_the_original_fails_backwards_as_well(tmp_path: Path) -> None:
    judge, _ = judged(tmp_path, lambda request: report(TENTH) if request.backwards else report())
    judgement = judge.judge(submitted(judge, WATCHING))
    assert judgement.solved
    assert judgement.suspicious


def test_what_a_watched_run_shows_is_suspicious_unless_the_true_functions_show_it_too(tmp_path: Path) -> None:
    def answer(request: RunRequest) -> SuiteReport:
        if not request.watched:
            return report()
        is_submission = "round" in request.tree.read("shop/prices.py").decode()
        marks = ("opens a file", "reads the stack") if is_submission else ("opens a file",)
        return replace(report(), watched=marks)

    judge, runner = judged(tmp_path, answer)
    judgement = judge.judge(submitted(judge, FIXED), watch=True)
    assert judgement.suspicious == ("reads the stack",)
    assert [bool(request.watched) for request in runner.asked] == [False, True, True]


def test_a_watched_run_that_shows_nothing_needs_no_run_of_the_true_functions(tmp_path: Path) -> None:
    judge, runner = judged(tmp_path, lambda request: report())
    judgement = judge.judge(submitted(judge, FIXED), watch=True)
    assert (judgement.solved, judgement.suspicious) == (True, ())
    assert len(runner.asked) == 2
