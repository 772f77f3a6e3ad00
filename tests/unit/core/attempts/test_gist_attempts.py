"""Attempts at gists: steps, saving, the single submission, limits, hints before it, and dying processes."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from gist_tasks import FAITHFUL, IMPORTING, OWNED, TEST, WRONG, GistCase, gist_case

from gistpoint.core.attempts.clock import ClockActivity
from gistpoint.core.attempts.events import AttemptEnded, EndReason, GiveUpCode, JournalEvent
from gistpoint.core.attempts.identity import SHOWS_EVIDENCE, Role
from gistpoint.core.attempts.state import AttemptState, fold
from gistpoint.core.errors import AttemptError
from gistpoint.core.kinds.gist.model import GistSettings
from gistpoint.core.kinds.gist.score import read_evidence
from gistpoint.core.kinds.gist.state import gist_of
from gistpoint.core.kinds.gist.tools import GIST_BUFFER, OPTIONAL_TOOLS
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.running import CancelToken, RunContext, RunProgress
from gistpoint.core.tasks.budgets import Budgets, Remaining
from gistpoint.core.tools.declaration import Activity as ToolActivity
from gistpoint.core.tools.declaration import Group

EVERYTHING = GistSettings(OWNED, execution=True, tools=OPTIONAL_TOOLS)


def names(case: GistCase) -> list[str]:
    return [tool.name for tool in case.attempt.offered()]


# Tools


@pytest.mark.parametrize("tools", [(), OPTIONAL_TOOLS, ("trace",), ("bash", "edit_and_execute")])
@pytest.mark.parametrize("execution", [False, True])
def test_settings_decide_what_is_offered(tmp_path: Path, tools: tuple[str, ...], execution: bool) -> None:
    case = gist_case(tmp_path, GistSettings(OWNED, execution=execution, tools=tools))
    offered = names(case)
    assert offered[:5] == [
        "list_directory",
        "search_code",
        "read_file",
        "list_file_functions",
        "read_function",
    ]
    assert {"write_gist", "edit_gist"} <= set(offered)
    assert offered[-1] == "submit_gist"
    wanted = {tool for tool in tools if execution or tool != "edit_and_execute"}
    assert set(offered) & {*OPTIONAL_TOOLS, "score_gist"} == wanted
    hidden = case.attempt.call("edit_and_execute", {"content": FAITHFUL})
    assert hidden.refused is ("edit_and_execute" not in wanted)


def test_every_tool_has_its_two_groups(tmp_path: Path) -> None:
    case = gist_case(tmp_path, EVERYTHING, role=Role.DEMO)
    groups = {tool.name: (tool.group, tool.activity) for tool in case.attempt.tools}
    assert [name for name, (group, _) in groups.items() if group is Group.SUBMIT] == ["submit_gist"]
    assert {
        name: activity for name, (_, activity) in groups.items() if name not in names(gist_case(tmp_path))
    } == {
        "trace": ToolActivity.VIEW,
        "repo_graph": ToolActivity.SEARCH,
        "bash": ToolActivity.EXECUTE,
        "edit_and_execute": ToolActivity.EXECUTE,
        "score_gist": ToolActivity.EXECUTE,
    }


def test_trace_and_graph_tell_places(tmp_path: Path) -> None:
    case = gist_case(tmp_path, EVERYTHING)
    trace = case.call("trace")
    assert "  shop/prices.py:4  discount" in trace
    assert case.runner.runs == 0
    assert case.call("trace", command="python -m pytest tests/test_prices.py::test_total") == trace.replace(
        "49", "48"
    )
    assert "files and 3 functions" in case.call("trace", command="pytest tests/test_prices.py::test_other")
    assert case.runner.runs == 1
    assert case.attempt.call("trace", {"command": "rm -rf /"}).refused
    graph = case.call("repo_graph", name="Basket.add")
    assert "shop/prices.py:15  def  def add(self, name, price, count=1):" in graph
    assert "tests/test_prices.py:6  call" in graph
    assert case.attempt.call("repo_graph", {"name": "nothing_of_the_kind"}).refused


def test_bash_without_execution_says_why_not(tmp_path: Path) -> None:
    case = gist_case(tmp_path, GistSettings(OWNED, tools=("bash",)))
    assert "ran ls beside test_gist.py of 0" in case.call("bash", command="ls")
    refused = case.attempt.call("bash", {"command": "python -c 1"})
    assert refused.refused
    assert "Execution is off" in refused.text


# Steps and saving


def test_each_call_is_a_step_also_a_refused_one(tmp_path: Path) -> None:
    case = gist_case(tmp_path)
    case.call("read_file", file_path="nowhere.py")
    case.call("write_gist", content=WRONG)
    assert case.call("edit_gist", old="price + price", new="price - price").endswith("\n[47 steps left]")
    assert gist_of(case.attempt.state).text == FAITHFUL


@pytest.mark.parametrize("old", ["", "nothing like it", "price"])
def test_an_edit_that_fits_nowhere_or_twice_changes_nothing(tmp_path: Path, old: str) -> None:
    case = gist_case(tmp_path)
    case.call("write_gist", content=FAITHFUL)
    assert case.attempt.call("edit_gist", {"old": old, "new": "x"}).refused
    assert gist_of(case.attempt.state).text == FAITHFUL


def test_what_is_no_text_or_too_long_is_refused(tmp_path: Path) -> None:
    case = gist_case(tmp_path, GistSettings(OWNED, gist_characters=10))
    assert case.attempt.call("write_gist", {"content": "\ud800"}).refused
    assert case.attempt.call("write_gist", {"content": "x" * 11}).refused
    assert not case.attempt.call("write_gist", {"content": "x" * 10}).refused


def test_typing_costs_nothing_and_one_step_saves_all_of_it(tmp_path: Path) -> None:
    case = gist_case(tmp_path)
    for end in (10, 200, len(FAITHFUL)):
        case.attempt.edit(GIST_BUFFER, FAITHFUL[:end])
    assert case.steps == 50
    assert (gist_of(case.attempt.state).text, gist_of(case.attempt.state).now) == ("", FAITHFUL)
    tool = next(tool for tool in case.attempt.tools if tool.name == "list_directory")
    assert case.attempt.price(tool).tool_uses == 2
    case.call("list_directory")
    assert case.steps == 48
    assert [call.tool for call in case.attempt.state.calls] == ["write_gist", "list_directory"]
    assert (gist_of(case.attempt.state).text, gist_of(case.attempt.state).typed) == (FAITHFUL, None)
    assert case.attempt.price(tool).tool_uses == 1


def test_typing_back_to_what_is_saved_leaves_nothing_to_save(tmp_path: Path) -> None:
    case = gist_case(tmp_path)
    case.call("write_gist", content=FAITHFUL)
    case.attempt.edit(GIST_BUFFER, WRONG)
    case.attempt.edit(GIST_BUFFER, FAITHFUL)
    case.call("list_directory")
    assert case.steps == 48


def test_writing_tools_replace_what_was_typed_before_and_keep_what_is_typed_meanwhile(tmp_path: Path) -> None:
    case = gist_case(tmp_path, EVERYTHING)
    case.attempt.edit(GIST_BUFFER, "lost")
    case.call("write_gist", content=WRONG)
    assert gist_of(case.attempt.state).now == WRONG
    case.runner.gate = threading.Event()
    running = threading.Thread(target=lambda: case.call("edit_and_execute", content=FAITHFUL))
    running.start()
    while case.attempt.state.pending is None:
        time.sleep(0.005)
    case.attempt.edit(GIST_BUFFER, FAITHFUL + "# more\n")
    case.runner.gate.set()
    running.join()
    assert (gist_of(case.attempt.state).text, gist_of(case.attempt.state).now) == (
        FAITHFUL,
        FAITHFUL + "# more\n",
    )


def test_the_last_step_is_not_spent_on_a_save_that_leaves_none_for_the_call(tmp_path: Path) -> None:
    case = gist_case(tmp_path, budgets=Budgets.of_steps(2))
    case.call("list_directory")
    case.attempt.edit(GIST_BUFFER, FAITHFUL)
    with pytest.raises(AttemptError, match="Only one step is left"):
        case.call("list_directory")
    assert case.steps == 1
    assert case.call("submit_gist").startswith("Execution fidelity 1")
    assert case.ended == EndReason.SOLVED


def test_a_given_test_is_what_the_gist_begins_with(tmp_path: Path) -> None:
    case = gist_case(tmp_path, GistSettings(OWNED, give_test=True))
    assert gist_of(case.attempt.state).text == TEST
    assert gist_of(fold(case.memory.events, AttemptState(of_kind=case.attempt.judge.blank))).text == TEST


# The submission and the limits


@pytest.mark.parametrize(
    ("gist", "ended", "error"),
    [
        (FAITHFUL, "solved", None),
        (WRONG, "final_wrong", "pytest_runtime"),
        ("", "final_wrong", "file_creation"),
        (" \n", "final_wrong", "file_creation"),
        ("x = 1\n", "final_wrong", "missing_test"),
        ("def (:\n", "final_wrong", "pytest_runtime"),
        (IMPORTING, "final_wrong", "import_error"),
    ],
)
def test_one_hand_in_ends_the_attempt(tmp_path: Path, gist: str, ended: str, error: str | None) -> None:
    case = gist_case(tmp_path)
    if gist:
        case.call("write_gist", content=gist)
    result = case.attempt.call("submit_gist", {})
    state = case.attempt.state
    assert case.ended == ended
    assert state.solved is (ended == "solved")
    found = state.submissions[-1].metrics["error"]
    assert (found and found["category"]) == error
    assert state.remaining.submissions == 0
    assert result.found is case.attempt.found[result.call_id]
    assert read_evidence(state.submissions[-1].metrics["lines"]) == result.found.lines
    with pytest.raises(AttemptError, match="has ended"):
        case.call("list_directory")


@pytest.mark.parametrize(("gist", "solved"), [(FAITHFUL, True), (WRONG, False), ("", False)])
def test_at_the_step_limit_the_gist_as_last_saved_is_handed_in(
    tmp_path: Path, gist: str, solved: bool
) -> None:
    case = gist_case(tmp_path, budgets=Budgets.of_steps(3))
    case.attempt.edit(GIST_BUFFER, gist)
    while not case.attempt.state.ended:
        case.call("list_directory")
    state = case.attempt.state
    assert case.ended == EndReason.STEPS_EXHAUSTED
    assert (state.submissions[-1].gist, state.solved) == (gist, solved)
    assert state.calls[-1].automatic == EndReason.STEPS_EXHAUSTED
    assert len([call for call in state.calls if not call.automatic]) == 3


def test_what_is_typed_during_the_last_step_is_not_saved_by_one_that_is_not_there(tmp_path: Path) -> None:
    case = gist_case(tmp_path, budgets=Budgets.of_steps(1))

    def type_meanwhile(event: JournalEvent, state: AttemptState) -> None:
        if event.type == "tool_call":
            case.attempt.edit(GIST_BUFFER, FAITHFUL)

    case.attempt.subscribe(type_meanwhile)
    case.call("list_directory")
    state = case.attempt.state
    assert case.ended == EndReason.STEPS_EXHAUSTED
    assert [call.tool for call in state.calls] == ["list_directory", "submit_gist"]
    assert state.submissions[-1].gist == ""


@pytest.mark.parametrize("finishes", ["finish_pending", "call"])
def test_at_the_time_limit_what_was_typed_is_saved_and_handed_in(tmp_path: Path, finishes: str) -> None:
    case = gist_case(tmp_path, budgets=Budgets.of_steps(50, 600))
    case.attempt.edit(GIST_BUFFER, FAITHFUL)
    case.clock.advance(600_000)
    case.attempt.heartbeat()
    assert case.attempt.state.pending is not None
    assert case.attempt.state.pending.automatic == EndReason.TIME_CAP
    assert case.runner.runs == 0
    if finishes == "call":
        with pytest.raises(AttemptError, match="has ended: time_cap"):
            case.call("list_directory")
    else:
        case.attempt.finish_pending()
    assert case.ended == EndReason.TIME_CAP
    assert case.attempt.state.solved
    assert case.attempt.state.clock.of(ClockActivity.READING) == 600_000
    assert case.attempt.state.remaining == Remaining(49, 0)


def test_a_hand_in_whose_harness_fails_costs_nothing(tmp_path: Path) -> None:
    case = gist_case(tmp_path)
    case.call("write_gist", content=FAITHFUL)
    case.runner.fails = True
    assert "The sandbox is gone. It costs nothing." in case.call("submit_gist")
    assert (case.ended, case.steps) == ("", 49)
    case.runner.fails = False
    case.call("submit_gist")
    assert case.ended == EndReason.SOLVED


def test_a_limit_whose_harness_fails_ends_as_its_fault(tmp_path: Path) -> None:
    case = gist_case(tmp_path, budgets=Budgets.of_steps(1))
    case.runner.fails = True
    case.call("write_gist", content=FAITHFUL)
    assert case.ended == EndReason.INFRASTRUCTURE
    assert case.attempt.state.submissions[-1].gist == FAITHFUL


def test_a_cancelled_hand_in_counts(tmp_path: Path) -> None:
    case, cancel = gist_case(tmp_path), CancelToken()
    case.call("write_gist", content=FAITHFUL)
    case.runner.gate = threading.Event()
    cancel.cancel()
    case.attempt.call("submit_gist", {}, run=RunContext(cancel))
    assert (case.ended, case.attempt.state.submissions[-1].status) == ("final_wrong", RunStatus.CANCELLED)


# Hints before the submission


def test_scores_have_a_budget_of_their_own(tmp_path: Path) -> None:
    case = gist_case(tmp_path, GistSettings(OWNED, score_budget=2))
    case.call("write_gist", content=WRONG)
    assert case.call("score_gist").endswith("[49 steps and 1 score left]")
    case.attempt.edit(GIST_BUFFER, "half")
    assert case.call("score_gist", content=FAITHFUL).startswith("Execution fidelity 1")
    assert gist_of(case.attempt.state).text == WRONG
    assert gist_of(case.attempt.state).typed == "half"
    assert [trial.text for trial in gist_of(case.attempt.state).trials] == [WRONG, FAITHFUL]
    assert "score_gist" not in names(case)
    assert case.attempt.call("score_gist", {}).refused
    assert not case.attempt.state.solved


@pytest.mark.parametrize("role", Role)
def test_only_attempts_that_do_not_count_may_always_score(tmp_path: Path, role: Role) -> None:
    case = gist_case(tmp_path, role=role)
    free = role in SHOWS_EVIDENCE
    assert ("score_gist" in names(case)) is free
    assert case.attempt.state.budgets.scores == (None if free else 0)
    if free:
        for _ in range(3):
            case.call("score_gist", content=FAITHFUL)
        assert case.attempt.state.remaining.scores is None
        assert case.steps == 50


def test_nothing_gives_an_outcome_away_before_the_hand_in(tmp_path: Path) -> None:
    """Until they submit, attempts with a faithful and a wrong gist have equal events, answers and states."""

    def seen(folder: Path, gist: str) -> tuple[str, list[RunProgress]]:
        case, progress = gist_case(folder, GistSettings(OWNED, tools=OPTIONAL_TOOLS)), list[RunProgress]()
        said = [case.call("trace"), case.call("repo_graph", name="Basket"), case.call("bash", command="ls")]
        case.attempt.edit(GIST_BUFFER, gist)
        for tool, arguments in {"list_directory": {}, "edit_gist": {"old": "price", "new": ""}}.items():
            said.append(case.attempt.call(tool, arguments).text)
        said += [case.call("score_gist"), case.call("edit_and_execute", content=gist)]
        state = case.attempt.state
        assert case.runner.runs == 1  # only the shell's
        assert (state.submissions, gist_of(state).trials, case.attempt.found) == ((), (), {})
        events = [[event.type, event.data.written()] for event in case.memory.events]
        brief = json.dumps(case.attempt.brief)[1:-1]  # it explains how a gist is scored
        for word in (
            "fidelity",
            "executed",
            "existence",
            "line_",
            "passed",
            "failed",
            '"score"',
            "solved",
            "outcome",
        ):
            assert word not in json.dumps([said, events]).replace(brief, ""), word
        case.attempt.call("submit_gist", {}, run=RunContext(progress=progress.append))
        return "\n".join(said), progress

    faithful, wrong = FAITHFUL, FAITHFUL.replace("price - price", "price + price")
    assert len(faithful) == len(wrong)
    one, other = seen(tmp_path / "a", faithful), seen(tmp_path / "b", wrong)
    assert one == other
    assert one[1]
    assert all(progress.latest is None for progress in one[1])


# Processes that die


def run_through(case: GistCase) -> None:
    case.attempt.edit(GIST_BUFFER, FAITHFUL)
    for _ in range(2):
        if not case.attempt.state.ended:
            case.call("list_directory")
    if not case.attempt.state.ended:
        case.call("submit_gist")


@pytest.mark.parametrize("steps", [3, 50])
def test_a_process_that_dies_at_any_event_is_taken_up_and_comes_to_its_end(
    tmp_path: Path, steps: int
) -> None:
    whole = gist_case(tmp_path / "whole", budgets=Budgets.of_steps(steps))
    run_through(whole)
    for dies_at in range(3, len(whole.memory.events) + 1):
        case = gist_case(tmp_path / str(dies_at), budgets=Budgets.of_steps(steps), dies_at=dies_at)
        with suppress(KeyboardInterrupt):
            run_through(case)
        case = case.resumed()
        case.attempt.finish_pending()
        run_through(case)
        state = case.attempt.state
        assert state.ended
        assert state.pending is None
        assert state.solved
        assert len([s for s in state.submissions if s.counts]) == 1
        assert state.submissions[-1].gist == FAITHFUL
        assert fold(case.memory.events, AttemptState(of_kind=case.attempt.judge.blank)) == state


def test_a_hand_in_that_was_begun_is_judged_as_it_was_handed_in(tmp_path: Path) -> None:
    case = gist_case(tmp_path)
    case.call("write_gist", content=FAITHFUL)
    case.memory.dies_at = len(case.memory.events) + 3
    with pytest.raises(KeyboardInterrupt):
        case.call("submit_gist")
    assert case.memory.events[-1].type == "submit"
    case = case.resumed()
    case.attempt.edit(GIST_BUFFER, WRONG)
    assert case.attempt.finish_pending() is not None
    assert (case.ended, case.attempt.state.submissions[-1].gist) == (EndReason.SOLVED, FAITHFUL)


def test_a_tool_says_of_itself_whether_its_calls_run_code(tmp_path: Path) -> None:
    arguments = {
        "file_path": "shop/prices.py",
        "function_name": "discount",
        "pattern": "def",
        "content": "x = 1\n",
        "old": "x",
        "new": "y",
        "command": "pytest tests/test_prices.py::test_other",
    }
    settings = GistSettings(OWNED, tools=("trace", "repo_graph", "bash", "edit_and_execute"), execution=True)
    case = gist_case(tmp_path, settings, role=Role.TRAINING)
    for tool in sorted(case.attempt.tools, key=lambda tool: tool.submits):
        before = case.runner.runs
        case.attempt.call(
            tool.name, {a.name: arguments[a.name] for a in tool.arguments if a.name in arguments}
        )
        assert (case.runner.runs > before) == tool.runs_code, tool.name


@pytest.mark.parametrize("dies", range(4))
def test_who_gives_up_hands_in_what_was_saved_with_the_reason_and_its_code(tmp_path: Path, dies: int) -> None:
    case = gist_case(tmp_path)
    case.call("write_gist", content=FAITHFUL)
    case.memory.dies_at = len(case.memory.events) + 1 + dies
    with suppress(KeyboardInterrupt):
        case.attempt.hand_in(EndReason.GAVE_UP, GiveUpCode.NO_TOOL_CALL)
        case.attempt.finish_pending()
    case = case.resumed()
    case.attempt.hand_in(EndReason.GAVE_UP, GiveUpCode.NO_TOOL_CALL)
    case.attempt.finish_pending()
    assert case.attempt.state.solved
    assert len(case.attempt.state.submissions) == 1
    assert case.memory.events[-1].data == AttemptEnded("gave_up", "no_tool_call")


def test_a_hand_in_that_the_program_makes_for_a_solver_ends_by_its_result(tmp_path: Path) -> None:
    case = gist_case(tmp_path)
    case.attempt.call("write_gist", {"content": FAITHFUL}, automatic="static")
    case.attempt.call("submit_gist", {}, automatic="static")
    assert case.ended == "solved"
    assert [call.automatic for call in case.attempt.state.calls] == ["static", "static"]
    assert [call.automatic for call in fold(case.memory.events).calls] == ["static", "static"]
