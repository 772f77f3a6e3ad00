"""The functions in an attempt's submissions that become bodies for making tasks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import CHECKS, GOOD, REPAIR, SUSPICIOUS, build_task
from fakes import FakeClock, FakeRunner
from recorders import Memory
from small_trees import tree_of

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import EndReason
from gistpoint.core.attempts.identity import PERSON, SIMULATED, Enrolment
from gistpoint.core.errors import SourceError
from gistpoint.core.generation.submissions import (
    FailedSubmission,
    FailedSubmissions,
    failed_submissions,
    origins_in,
    read_submissions,
    require_submissions,
    submissions_in_words,
    write_submissions,
)
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.core.trees import SourceTree

WRONG = REPAIR.replace("// 100", "// 99")
DISCOUNT = "shop/prices.py::discount"
TOTAL = '''def total(self, percent=0):
    """Return what all of it costs, with a discount."""
    return discount(sum(price for _, price, count in self.items), percent)
'''
BASKET = '''class Basket:
    """Things that someone buys."""

    def __init__(self):
        self.items = []

    def add(self, name, price, count=1):
        """Put something into the basket."""
        self.items.append((name, price, count + 1))

    def total(self, percent=0):
        """Return what all of it costs, with a discount."""
        return discount(sum(price * count for _, price, count in self.items), percent)
'''


def library(folder: Path, **changed: str) -> SourceTree:
    folder.mkdir(exist_ok=True)
    return tree_of({**GOOD, **changed}, folder)


def begun(
    folder: Path, mode: Mode = Mode.REMOVE, actor: str = PERSON, status: RunStatus = RunStatus.FINISHED
) -> Attempt:
    task, clock = build_task(folder / "tasks", mode), FakeClock()
    judge = RepairJudge(task, read_answer(task), FakeRunner(CHECKS, status=status))
    attempt = Attempt(task, judge, Memory(clock), clock, version="test")
    attempt.start(Enrolment(actor=actor), attempt_id="a1", budgets=Budgets(6, 4))
    return attempt


def submit(attempt: Attempt, code: str, name: str = "discount") -> None:
    if attempt.task.mode == Mode.REMOVE:
        attempt.call("submit_attempt", {"func_code": code})
    else:
        given = {"func_code": code, "func_name": name, "file_path": "shop/prices.py"}
        attempt.call("replace_function", given)


def found(folder: Path, attempt: Attempt, tree: SourceTree | None = None) -> list[FailedSubmission]:
    task: Task = attempt.task
    return failed_submissions(attempt.state, task, read_answer(task), tree or library(folder))


def test_a_submission_that_the_suite_refused_is_a_body(tmp_path: Path) -> None:
    attempt = begun(tmp_path)
    submit(attempt, WRONG)
    assert not found(tmp_path, attempt)  # its author is still at work
    attempt.end(EndReason.GAVE_UP)
    (item,) = found(tmp_path, attempt)
    assert (item.function, item.text) == (DISCOUNT, WRONG)
    assert item.origin == {"id": "a1", "submission": 1, "by": "person"}
    assert "// 99" in item.file


def test_a_pass_is_none_but_what_failed_before_it_is(tmp_path: Path) -> None:
    attempt = begun(tmp_path)
    submit(attempt, WRONG)
    submit(attempt, REPAIR)
    assert attempt.state.solved
    assert [item.number for item in found(tmp_path, attempt)] == [1]


def test_a_suspicious_submission_a_hand_in_at_a_limit_and_a_run_without_verdict_are_none(
    tmp_path: Path,
) -> None:
    odd = begun(tmp_path / "odd")
    submit(odd, SUSPICIOUS.replace("// 100", "// 99"))
    odd.end(EndReason.GAVE_UP)
    marked = replace(odd.state.submissions[0], suspicious=("imports gc",))
    assert not found(tmp_path / "odd", _with(odd, marked))
    failed = begun(tmp_path / "failed", status=RunStatus.HARNESS_FAILED)
    submit(failed, WRONG)
    failed.end(EndReason.GAVE_UP)
    assert not found(tmp_path / "failed", failed)
    handed = begun(tmp_path / "handed")
    handed.call("submit_attempt", {"func_code": WRONG}, automatic="tool_uses")
    handed.end(EndReason.GAVE_UP)
    assert len(handed.state.submissions) == 1
    assert not found(tmp_path / "handed", handed)


def _with(attempt: Attempt, submission: object) -> Attempt:
    from msgspec import structs

    attempt._state = structs.replace(attempt.state, submissions=(submission,))
    return attempt


def test_a_simulated_solver_believes_nothing(tmp_path: Path) -> None:
    attempt = begun(tmp_path, actor=SIMULATED)
    submit(attempt, WRONG)
    attempt.end(EndReason.GAVE_UP)
    assert not found(tmp_path, attempt)


def test_other_functions_that_a_solver_changed_are_bodies_and_the_planted_text_is_known(
    tmp_path: Path,
) -> None:
    attempt = begun(tmp_path, Mode.DISCOVERY)
    planted = read_answer(attempt.task).targets[0].corrupted
    submit(attempt, planted.replace("price +", "price  +"))
    submit(attempt, TOTAL, "Basket.total")
    submit(attempt, BASKET, "Basket")
    attempt.end(EndReason.GAVE_UP)
    by_name = {item.function: item for item in found(tmp_path, attempt)}
    assert by_name.keys() == {DISCOUNT, "shop/prices.py::Basket.total", "shop/prices.py::Basket.add"}
    assert by_name[DISCOUNT].planted == planted
    assert not by_name["shop/prices.py::Basket.total"].planted
    assert "count + 1" in by_name["shop/prices.py::Basket.add"].text


def test_a_function_that_has_changed_since_is_left_out(tmp_path: Path) -> None:
    attempt = begun(tmp_path)
    submit(attempt, WRONG)
    attempt.end(EndReason.GAVE_UP)
    other = GOOD["shop/prices.py"].replace("price * percent", "percent * price")
    assert not found(tmp_path, attempt, library(tmp_path, **{"shop/prices.py": other}))


def item(attempt: str, number: int, text: str = "x", study: str = "") -> FailedSubmission:
    return FailedSubmission("a.py::f", text, "", "", attempt, number, "person", study)


def test_the_newest_attempts_and_their_last_submissions_come_first(tmp_path: Path) -> None:
    submissions = FailedSubmissions.collected([item("1", 1, "a"), item("2", 1, "b"), item("2", 2, "c")])
    write_submissions(tmp_path, ("s",), submissions)
    assert read_submissions(tmp_path, ("s",)) == submissions
    assert not read_submissions(tmp_path, ()).by_function
    assert [body.text for body in submissions.of("a.py", "f", "b")] == ["c", "a"]
    assert (
        submissions.versions != FailedSubmissions.collected([item("1", 1, "a"), item("2", 1, "b")]).versions
    )


def test_what_was_left_out_is_said_if_there_is_nothing() -> None:
    with pytest.raises(SourceError, match="Left out: 2 attempts of a study that --study does not name"):
        require_submissions(FailedSubmissions(), "shop", {"of a study that --study does not name": 2, "x": 0})


def test_what_was_found_and_left_out_is_said() -> None:
    found = FailedSubmissions.collected([item("1", 1, "a"), item("2", 1, "b")])
    assert submissions_in_words(found, {"x": 0}) == "2 failed submissions at 1 function."
    assert submissions_in_words(found, {"by y": 1}).endswith(" Left out: 1 attempt by y.")


def test_origins_are_found_in_a_provenance_of_any_form() -> None:
    part = {"attempt": item("1", 1, study="s").origin}
    assert origins_in({"parts": [part, {"attempt": 3}, 4]}) == {("s", "1")}
    assert origins_in({"parts": 3}) == set()
    assert origins_in({"corruption": "remove_body"}) == set()
