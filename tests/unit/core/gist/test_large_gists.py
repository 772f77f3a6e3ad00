"""A large gist is judged in steps that are reported, and no step compares all pairs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from gist_tasks import FAITHFUL, FakeEntrypoints, build_gist_task

from gistpoint.core.errors import CancelledError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.flags import vacuity_mutants
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.running import CancelToken, RunContext, RunProgress

SPARE = "def spare_{0}(x):\n    y = x + {0}\n    return y\n\n\n"


def judge_in(folder: Path) -> GistJudge:
    task = build_gist_task(folder)
    return GistJudge(task, gist_answer(read_answer(task)), FakeEntrypoints())


def test_each_step_before_between_and_after_the_runs_is_reported(tmp_path: Path) -> None:
    seen: list[RunProgress] = []
    gist = FAITHFUL + "".join(SPARE.format(number) for number in range(200))
    judgement = judge_in(tmp_path).judge(gist, run=RunContext(progress=seen.append))
    assert judgement.score.execution_fidelity == 1
    steps = [progress.phase for progress in seen]
    assert steps[:3] == ["reading the codebase", "reading the gist", "run"]
    assert steps[-1] == "comparing its lines with the codebase"
    done = [progress.done for progress in seen]
    assert done == sorted(done)
    assert all(progress.done <= progress.total for progress in seen)


@pytest.mark.parametrize("at", ["reading the codebase", "reading the gist", "watch the comparisons"])
def test_each_step_can_be_cancelled(at: str, tmp_path: Path) -> None:
    cancel = CancelToken()

    def report(progress: RunProgress) -> None:
        if progress.phase == at:
            cancel.cancel()

    with pytest.raises(CancelledError):
        judge_in(tmp_path).judge(FAITHFUL, run=RunContext(cancel, report))


def test_the_functions_of_a_large_gist_are_ranked_without_trying_each_line_on_each() -> None:
    functions = 4_000
    gist = "".join(SPARE.format(number) for number in range(functions))
    began = time.process_time()
    found = list(vacuity_mutants(gist, frozenset(range(1, 5 * functions)), "test_it", most=2))
    took = time.process_time() - began
    assert [name for name, _ in found] == ["spare_0", "spare_1"]
    # Each function with each line that ran would be 80 million comparisons.
    assert took < 4
