"""The arithmetic of a score."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.kinds.repair.measures import SEVERAL, searched
from gistpoint.core.kinds.repair.scoring import score, solved, taken_over
from gistpoint.core.outcomes import Outcome, RunStatus, SuiteReport, TestResult
from gistpoint.core.tasks.model import Baseline, Mode
from gistpoint.core.trees import SourceTree

IDS = ["a", "b", "c", "d", "e", "f"]


def baseline(passed: set[str], passed_corrupted: set[str]) -> Baseline:
    return Baseline("fake", "none", 3, frozenset(IDS), frozenset(passed), frozenset(passed_corrupted))


def report(status: RunStatus = RunStatus.FINISHED, **outcomes: Outcome) -> SuiteReport:
    return SuiteReport(status, {id: TestResult(id, outcome) for id, outcome in outcomes.items()})


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.PASSED])
def test_everything_but_a_pass_counts_as_failing(outcome: Outcome) -> None:
    result = score(baseline({"a", "b"}, {"a"}), report(a=Outcome.PASSED, b=outcome))
    assert result.failing == {"b"}
    assert result.value == 0.0


def test_missing_tests_count_as_failing() -> None:
    result = score(baseline({"a", "b", "c"}, set()), report(a=Outcome.PASSED))
    assert result.failing == {"b", "c"}
    assert result.value == pytest.approx(1 / 3)
    assert not result.all_pass


def test_failures_that_were_there_before_do_not_count() -> None:
    result = score(baseline({"a", "b"}, {"a"}), report(a=Outcome.PASSED, b=Outcome.PASSED, f=Outcome.FAILED))
    assert (result.value, result.all_pass, result.passing) == (1.0, True, 2)


def test_breaking_more_than_was_broken_is_worth_nothing() -> None:
    result = score(
        baseline({"a", "b", "c"}, {"a", "b"}), report(a=Outcome.FAILED, b=Outcome.FAILED, c=Outcome.PASSED)
    )
    assert result.value == 0.0


@pytest.mark.parametrize("status", [s for s in RunStatus if s is not RunStatus.FINISHED])
def test_run_that_did_not_finish_is_worth_nothing_whatever_it_reports(status: RunStatus) -> None:
    result = score(baseline({"a"}, set()), report(status, a=Outcome.PASSED))
    assert (result.value, result.valid, result.all_pass, result.failing) == (0.0, False, False, {"a"})


@given(
    passed=st.sets(st.sampled_from(IDS), min_size=1),
    corrupted=st.sets(st.sampled_from(IDS)),
    now=st.dictionaries(st.sampled_from(IDS), st.sampled_from(list(Outcome))),
)
def test_score_is_the_formula(passed: set[str], corrupted: set[str], now: dict[str, Outcome]) -> None:
    result = score(baseline(passed, corrupted & passed), report(**now))
    failing = {id for id in passed if now.get(id) is not Outcome.PASSED}
    f0 = passed - corrupted
    assert result.failing == failing
    assert result.passing == len(passed) - len(failing)
    assert 0.0 <= result.value <= 1.0
    if f0:
        assert result.value == pytest.approx(max(0.0, 1 - len(failing) / len(f0)))
    assert (result.value == 1.0) == (not failing)


def test_solved_needs_every_target_changed() -> None:
    everything = score(baseline({"a"}, set()), report(a=Outcome.PASSED))
    assert solved(everything, ["m::f", "m::g"], ["m::g", "m::f", "m::h"])
    assert not solved(everything, ["m::f", "m::g"], ["m::g"])
    assert not solved(score(baseline({"a"}, set()), report()), ["m::f"], ["m::f"])


def test_only_changed_code_outside_of_tests_is_taken_over() -> None:
    tree = SourceTree(Path("tree.tar"), {}).with_files(
        {"same.py": b"a = 1\n", "changed.py": b"b = 1\n", "gone.py": b"c = 1\n", "test_it.py": b"d = 1\n"}
    )
    solvers = {
        "same.py": b"a = 1\n",
        "changed.py": b"b = 2\n",
        "test_it.py": b"d = 2\n",
        "new.py": b"e = 1\n",
    }
    taken = taken_over(tree, solvers.get, ["test_it.py"])
    changed = {path for path in taken.files() if taken.read(path) != tree.read(path)}
    assert (set(taken.files()), changed) == (set(tree.files()), {"changed.py"})
    assert taken.read("changed.py") == b"b = 2\n"


def test_solvers_search_for_the_function_in_discovery_tasks_only() -> None:
    assert {mode: searched(mode) for mode in (Mode.REMOVE, Mode.DISCOVERY, SEVERAL, Mode.GIST)} == {
        Mode.REMOVE: False,
        Mode.DISCOVERY: True,
        SEVERAL: True,
        Mode.GIST: False,
    }
