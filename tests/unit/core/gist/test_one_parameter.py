"""A brief that names one parameter of a test, and a score of all its instances (Gistify, A.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeClock
from gist_tasks import FILES, TRACE, FakeEntrypoints, build_gist_task
from recorders import Memory

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import Enrolment, Role
from gistpoint.core.entrypoints.command import parameter_in, parse_entrypoint
from gistpoint.core.entrypoints.runs import GistTrial, OriginalRun, TestRun, TestsRun
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.folder import read_answer, read_task, write_task
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.brief import gist_brief
from gistpoint.core.kinds.gist.judge import GistJudging
from gistpoint.core.kinds.gist.making import GistResults, GistTerms, MakeGists, MakeReference, make_gists
from gistpoint.core.kinds.gist.measures import measured
from gistpoint.core.kinds.gist.model import gist_settings
from gistpoint.core.kinds.gist.original_test import GistTest
from gistpoint.core.kinds.gist.overrides import settings_data
from gistpoint.core.kinds.gist.rates import Originals
from gistpoint.core.kinds.gist.score import GistJudgement, GistRun, score_gist, score_record
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.study.conditions import under
from gistpoint.core.study.declaration import Condition
from gistpoint.core.tasks.model import Source, Task
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree, write_tree

SOURCE = "from shop.prices import Basket\n\n\ndef test_total(x):\n    assert Basket().total(x) == 0\n"
PLACE = "tests/test_prices.py"
NODE = f"{PLACE}::test_total"
EVERYBODY = "all its instances are run"


def run_of(**failing: Outcome) -> TestsRun:
    """Return a run of the test's three instances, which pass unless another outcome is given."""
    ids = {"1": "a", "2.5-b": "b", "c": "c"}
    outcomes = {id: failing.get(short, Outcome.PASSED) for id, short in ids.items()}
    return TestsRun(RunStatus.FINISHED, {f"{NODE}[{id}]": TestRun(one) for id, one in outcomes.items()})


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """A gist of a test with three parameters."""
    made = build_gist_task(tmp_path)
    answer = read_answer(made)
    run = run_of()
    test = GistTest("test_total", SOURCE)
    of_kind = replace(gist_answer(answer), originals=(run, run), test=test)
    write_task(made, replace(answer, of_kind=of_kind))
    return made


def settled(task: Task, **given: Any) -> Task:
    return kind_of(task).settled(task, read_answer(task), given)


@pytest.mark.parametrize(("asked", "named"), [(True, "1"), ("2.5-b", "2.5-b"), (False, ""), ("", "")])
def test_the_brief_names_the_parameter_and_does_not_speak_of_the_others(
    asked: str | bool, named: str, task: Task
) -> None:
    attempted = settled(task, parameter=asked)
    assert gist_settings(attempted).parameter == named
    brief = gist_brief(attempted)
    static = kind_of(attempted).one_request(attempted, read_answer(task))
    if named:
        assert f"pytest '{NODE}[{named}]'" in brief
        assert f"pytest '{NODE}[{named}]'" in static.values["entrypoint"]
    assert (EVERYBODY in brief) == (EVERYBODY in static.prompt) == (not named)
    assert attempted.id == task.id


def test_a_brief_that_names_a_parameter_differs_in_nothing_else(task: Task) -> None:
    both = [gist_brief(one) for one in (settled(task, parameter=""), settled(task, parameter="c"))]
    sentence = " If the command names a test, all its instances are run, whatever their parameters."
    assert both[0].replace(sentence, "").replace(f"pytest {NODE}", f"pytest '{NODE}[c]'") == both[1]


@pytest.mark.parametrize("asked", ["3", "1]", "test_total[1]"])
def test_a_parameter_that_the_test_does_not_have_is_refused_with_those_it_has(asked: str, task: Task) -> None:
    with pytest.raises(UserError, match="has no parameter") as caught:
        settled(task, parameter=asked)
    assert "'2.5-b'" in caught.value.hint


def test_a_test_without_parameters_can_not_name_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a single test with parameters"):
        settled(build_gist_task(tmp_path), parameter=True)


def test_a_condition_of_a_study_names_the_first_parameter(task: Task) -> None:
    under_it = under(Condition(id="one", parameter=True), task, read_answer(task))
    assert gist_settings(under_it).parameter == "1"
    assert gist_settings(under(Condition(id="all"), task, read_answer(task))).parameter == ""


# The score


def scored(run: TestsRun, parameter: str) -> Any:
    test = GistTest("test_total", SOURCE)
    originals = Originals({path: text for path, text in FILES.items() if path.endswith(".py")})
    gist = SOURCE.replace("from shop.prices import Basket", "class Basket:\n    pass")
    score = score_gist(gist, GistRun(gist, run, [run_of(), run_of()]), originals, {"shop"}, test)
    return replace(score, instance=f"test_total[{parameter}]" if parameter else "")


@pytest.mark.parametrize(
    ("run", "parameter", "all_of_them", "named"),
    [
        (run_of(), "1", 1, 1),
        (run_of(b=Outcome.FAILED), "1", 0, 1),
        (run_of(a=Outcome.FAILED), "1", 0, 0),
        (run_of(a=Outcome.FAILED), "2.5-b", 0, 1),
        (TestsRun(RunStatus.TIMED_OUT, run_of().tests), "1", 0, 0),
        (run_of(b=Outcome.FAILED), "", 0, None),
    ],
)
def test_all_instances_are_scored_and_the_named_one_is_shown_apart(
    run: TestsRun, parameter: str, all_of_them: int, named: int | None
) -> None:
    score = scored(run, parameter)
    assert (score.execution_fidelity, score.instance_fidelity) == (all_of_them, named)
    record = score_record(score)
    assert ("instance" in record) == bool(parameter)
    figures = measured(record)
    assert (figures["fidelity"], figures["instance_fidelity"]) == (all_of_them, named)


class ScoredBefore(GistJudging):
    """A judge by which a gist fits the first parameter only, under the task's own settings."""

    def judge(self, gist: str, *, run: RunContext = UNATTENDED, thorough: bool = True) -> GistJudgement:
        trial = GistTrial(run_of(b=Outcome.FAILED), 0.1)
        return GistJudgement(scored(run_of(b=Outcome.FAILED), ""), None, trial)


def test_an_attempt_records_its_parameter_and_the_outcome_of_its_instance(task: Task) -> None:
    attempted = settled(task, parameter=True)
    clock = FakeClock()
    memory = Memory(clock)
    judge: Any = ScoredBefore(attempted, gist_answer(read_answer(task)), FakeEntrypoints())
    attempt = Attempt(attempted, judge, memory, clock, events=memory.events)
    attempt.start(Enrolment(role=Role.BASELINE))
    assert attempt.state.header.extra["gist_settings"]["parameter"] == "1"
    again = Attempt(task, judge, memory, clock, events=memory.events)
    again.resume_process()
    assert gist_settings(again.task).parameter == "1"
    told = again.call("submit_gist", {}).text
    assert "test_total[1], does what it does on the original" in told
    assert again.state.submissions[-1].metrics["instance"] == {"name": "test_total[1]", "fidelity": 1}


def test_records_without_a_parameter_are_as_before(task: Task) -> None:
    assert "parameter" not in settings_data(task)
    assert "parameter" not in (task.folder / "task.toml").read_text("utf-8")


# Making such a task


class Suite(FakeEntrypoints):
    """A suite with one test that has three parameter sets."""

    def run_original(self, *arguments: Any, **options: Any) -> OriginalRun:
        run = super().run_original(*arguments, **options)
        return replace(run, run=run_of(), trace=TRACE if options.get("trace") else None)


def fetch(scratch: Path, run: RunContext) -> tuple[Repository, Mapping[str, Any]]:
    for path, text in {**FILES, PLACE: SOURCE}.items():
        (scratch / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (scratch / "tree" / path).write_text(text)
    write_tree(scratch / "tree", scratch / "tree.tar")
    tree = SourceTree.open(scratch / "tree.tar")
    return Repository(Source("folder", "shop", "1"), tree, EnvironmentPins()), {}


def made(entrypoint: str, tasks: Path) -> GistResults:
    results = GistResults()
    asked = MakeGists(
        entrypoints=(entrypoint,),
        terms=GistTerms(one_parameter=True),
        reference=MakeReference(no_reference=True),
    )
    make_gists(asked, asked.named(), fetch, Suite(), tasks, results)
    return results


@pytest.mark.parametrize(
    ("entrypoint", "named"), [(f"pytest {NODE}", "1"), (f"pytest '{NODE}[2.5-b]'", "2.5-b")]
)
def test_a_task_is_made_that_names_the_parameter_of_its_command_or_the_first(
    entrypoint: str, named: str, tmp_path: Path
) -> None:
    (one,) = made(entrypoint, tmp_path).made
    stored = read_task(one.task.folder)
    assert gist_settings(stored).parameter == named
    assert parse_entrypoint(stored.of_kind.entrypoint) == parse_entrypoint(entrypoint)  # type: ignore[union-attr]


def test_a_command_with_an_unknown_parameter_makes_no_task(tmp_path: Path) -> None:
    (refused,) = made(f"pytest '{NODE}[9]'", tmp_path).refused
    assert "does not have the parameter '9'" in refused.message
    assert "It has 1, 2.5-b, c." in refused.hint


@pytest.mark.parametrize(
    ("command", "parameter"),
    [
        ("pytest t.py::test_a[1]", "1"),
        ("pytest 't.py::test_a[a b[c]]'", "a b[c]"),
        ("pytest t.py::test_a", ""),
        ("pytest t.py::test_a[1] t.py::test_b[2]", ""),
        ("python -c 'x[1]'", ""),
    ],
)
def test_the_parameter_in_a_command(command: str, parameter: str) -> None:
    assert parameter_in(command) == parameter
