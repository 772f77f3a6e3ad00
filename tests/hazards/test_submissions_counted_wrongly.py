"""Every attempt has separate budgets, and every submission a separate result."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from builders import CHECKS, REPAIR, build_task
from fakes import FakeClock, FakeRunner
from recorders import Memory

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.tasks.model import Mode, Task

HALF = "def discount(price, percent):\n    return price if not percent else None\n"
NONE = "def discount(price, percent):\n    return 1 / 0\n"


def begun(task: Task, judge: RepairJudge) -> Attempt:
    attempt = Attempt(task, judge, Memory(FakeClock()), FakeClock())
    attempt.start(Enrolment())
    return attempt


def test_attempts_at_once_with_one_judge_and_one_runner_share_no_budget(tmp_path: Path) -> None:
    task = build_task(tmp_path)
    judge = RepairJudge(task, read_answer(task), FakeRunner(CHECKS))
    attempts = [begun(task, judge) for _ in range(8)]

    def work(attempt: Attempt) -> int:
        for _ in range(4):
            assert not attempt.state.ended
            attempt.call("submit_attempt", {"func_code": HALF})
        return len(attempt.state.submissions)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, attempts)) == [4] * 8
    for attempt in attempts:
        assert (attempt.state.remaining.tool_uses, attempt.state.remaining.submissions) == (12, 0)
        assert attempt.state.ending is not None
        assert attempt.state.ending.reason == "submissions_exhausted"


def test_later_submission_overwrites_no_earlier_one(tmp_path: Path) -> None:
    task = build_task(tmp_path, Mode.REMOVE)
    attempt = begun(task, RepairJudge(task, read_answer(task), FakeRunner(CHECKS)))
    for code in (HALF, NONE):
        attempt.call("submit_attempt", {"func_code": code})
    state = attempt.state
    assert state.last is not None
    assert state.best is not None
    assert [s.replacement.code for s in state.submissions] == [HALF, NONE]
    assert [s.score for s in state.submissions] == [state.best.score, state.last.score]
    assert (state.best.number, state.last.number) == (1, 2)
    assert (state.last.score or 0) < (state.best.score or 0)
    attempt.call("submit_attempt", {"func_code": REPAIR})
    assert attempt.state.last == attempt.state.best
