"""Impossible calls: each is an event, costs what the brief says, and never keeps an attempt alive."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import CHECKS, REPAIR, build_task
from examples import examples
from fakes import FakeClock, FakeRunner
from gist_tasks import FAITHFUL, OWNED, GistCase, gist_case
from hypothesis import given
from hypothesis import strategies as st
from recorders import Memory

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import EndReason
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.attempts.malformed import RAW_CHARACTERS
from gistpoint.core.attempts.state import AttemptState, fold
from gistpoint.core.errors import AttemptError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.model import GistSettings
from gistpoint.core.kinds.gist.tools import GIST_BUFFER
from gistpoint.core.kinds.repair.judge import LAST_USE, RepairJudge
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.tasks.budgets import Budgets, Remaining
from gistpoint.core.tasks.model import Mode, Rules, Task
from gistpoint.sessions.journal import JournalWriter, read_journal

MALFORMED: list[tuple[str, dict[str, Any] | None, str, str]] = [
    ("nonsense", {}, "", "unknown_tool"),
    ("nonsense", None, "no json", "unknown_tool"),
    ("submit_gist", {}, "", "unknown_tool"),
    ("read_file", None, "", "not_json"),
    ("read_file", None, "{'file_path': 'README.md'}", "not_json"),
    ("read_file", None, '{"file_path": "README.md"', "not_json"),
    ("read_file", None, '{"file_path": NaN}', "not_json"),
    ("read_file", None, "[" * 100_000, "not_json"),
    ("read_file", None, '["README.md"]', "not_object"),
    ("read_file", None, "null", "not_object"),
    ("read_file", None, '"README.md"', "not_object"),
    ("read_file", None, '{"path": "README.md"}', "bad_arguments"),
    ("read_file", {}, "", "bad_arguments"),
    ("read_file", {"file_path": None}, "", "bad_arguments"),
    ("read_file", {"path": "README.md"}, "", "bad_arguments"),
    (
        "read_file",
        {"file_path": "README.md", "lines": "3"},
        '{"file_path": "README.md", "lines": "3"}',
        "bad_arguments",
    ),
    ("read_file", {"file_path": ["README.md"]}, "", "bad_arguments"),
    ("search_code", {"pattern": 3}, "", "bad_arguments"),
    ("search_code", {"pattern": True}, "", "bad_arguments"),
    ("submit_attempt", {"code": REPAIR}, "", "bad_arguments"),
    ("submit_attempt", {}, "", "bad_arguments"),
]
"""Tool, arguments, their text, and the problem of the call."""


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return build_task(tmp_path_factory.mktemp("task"), Mode.REMOVE)


def attempt_of(
    task: Task, budgets: Budgets | None = None, *, tool_semantics: int = 2
) -> tuple[Attempt, Memory]:
    clock = FakeClock()
    memory = Memory(clock)
    attempt = Attempt(task, RepairJudge(task, read_answer(task), FakeRunner(CHECKS)), memory, clock)
    attempt.start(Enrolment(), budgets=budgets, tool_semantics=tool_semantics)
    return attempt, memory


def ended(attempt: Attempt) -> str:
    return attempt.state.ending.reason if attempt.state.ending else ""


# Journalled events


@pytest.mark.parametrize(("tool", "arguments", "raw", "why"), MALFORMED, ids=range(len(MALFORMED)))
def test_every_call_is_an_event_and_costs_a_use(
    task: Task, tool: str, arguments: dict[str, Any] | None, raw: str, why: str
) -> None:
    attempt, memory = attempt_of(task)
    result = attempt.call(tool, arguments, raw=raw)
    assert result.refused
    assert attempt.state.remaining == Remaining(15, 4)
    call, answer = memory.events[-2:]
    made = call.data.written()
    assert (call.type, made["tool"], made["malformed"]) == ("tool_call", tool, why)
    assert made.get("raw", "") == raw
    assert made.get("arguments") == (arguments if arguments is not None else made.get("arguments"))
    assert answer.data.written()["budget"] == {"tool_uses": 15, "submissions": 4}
    assert attempt.state.calls[0].malformed == why
    assert not attempt.state.submissions


def test_a_sound_call_says_nothing_of_being_malformed(task: Task) -> None:
    attempt, memory = attempt_of(task)
    text = '{"file_path": "README.md"}'
    assert attempt.call("read_file", {"file_path": "README.md"}, raw=text).text == (
        attempt.call("read_file", None, raw=text).text.replace("14 tool", "15 tool")
    )
    calls = [event.data.written() for event in memory.events if event.type == "tool_call"]
    assert [sorted(data) for data in calls] == [["arguments", "call_id", "tool", "turn"]] * 2
    assert calls[0]["arguments"] == calls[1]["arguments"] == json.loads(text)


def test_the_turn_is_the_caller_s(task: Task) -> None:
    attempt, memory = attempt_of(task)
    attempt.call("list_directory", {})
    attempt.call("list_directory", {}, turn=77, extra={"request_id": "a"})
    attempt.call("nonsense", {}, turn=77, extra={"request_id": "b", "turn": 1, "call_id": "x"})
    attempt.call("list_directory", {})
    calls = [event.data.written() for event in memory.events if event.type == "tool_call"]
    assert [data["turn"] for data in calls] == [1, 77, 77, 4]
    assert [data["call_id"] for data in calls] == ["call-1", "call-2", "call-3", "call-4"]
    assert [data.get("request_id") for data in calls] == [None, "a", "b", None]
    assert [(call.turn, call.number) for call in attempt.state.calls] == [(1, 1), (77, 2), (77, 3), (4, 4)]


@pytest.mark.parametrize(
    ("tool", "arguments", "raw"),
    [
        ("read_file", None, "x" * 3_000_000),
        ("read_file", None, f'{{"file_path": "a"}}{" " * RAW_CHARACTERS}x'),
        ("read_file", None, f"[{'1, ' * RAW_CHARACTERS}1]"),
        ("n" * 1_000_000, {"a": "b" * 1_000_000}, ""),
        ("read_file", {"k" * 1_000_000: "v"}, ""),
        ("read_file", {f"k{number}": "v" * 20_000 for number in range(50)}, ""),
        ("read_file", {"file_path": float("nan")}, ""),
        ("list_directory", {"path": b"src"}, ""),
        ("list_directory", {"path": 10**5_000}, ""),
    ],
    ids=["text", "object in its cut", "list", "names", "argument", "arguments", "nan", "bytes", "number"],
)
def test_what_is_journalled_of_it_is_bounded_and_json(
    tmp_path: Path, task: Task, tool: str, arguments: dict[str, Any] | None, raw: str
) -> None:
    journal = JournalWriter(tmp_path, FakeClock())
    attempt = Attempt(task, RepairJudge(task, read_answer(task), FakeRunner(CHECKS)), journal, FakeClock())
    attempt.start(Enrolment())
    before = (tmp_path / "journal.jsonl").stat().st_size
    text = attempt.call(tool, arguments, raw=raw).text
    journal.close()
    assert len(text) < 1_000
    assert (tmp_path / "journal.jsonl").stat().st_size - before < RAW_CHARACTERS + 20_000
    (call,) = fold(read_journal(tmp_path / "journal.jsonl").events).calls
    assert (call.text, call.malformed, call.remaining.tool_uses) == (
        text,
        attempt.state.calls[0].malformed,
        15,
    )
    # The journalled call gets the same answer as the original one.
    again, _ = attempt_of(task)
    json_arguments = dict(call.arguments) if arguments is not None else None
    assert again.call(call.tool, json_arguments, raw=call.raw).text == text


def test_deep_arguments_do_not_end_the_program(tmp_path: Path, task: Task) -> None:
    deep: Any = "x"
    for _ in range(20_000):
        deep = {"a": deep}
    journal = JournalWriter(tmp_path, FakeClock())
    attempt = Attempt(task, RepairJudge(task, read_answer(task), FakeRunner(CHECKS)), journal, FakeClock())
    attempt.start(Enrolment())
    assert attempt.call("read_file", {"file_path": deep}).refused
    journal.close()
    assert attempt.state.calls[0].malformed == "bad_arguments"


# Costs


@pytest.mark.parametrize("costs", [False, True])
def test_a_malformed_submission_never_costs_a_submission(task: Task, costs: bool) -> None:
    attempt, _ = attempt_of(replace(task, rules=Rules(refused_costs_attempt=costs)))
    attempt.call("submit_attempt", {"code": REPAIR})
    attempt.call("submit_attempt", None, raw="def f")
    assert attempt.state.remaining == Remaining(14, 4)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("nonsense", {}),
        ("read_file", {"file_path": "README.md"}),
        ("read_file", {}),
        ("submit_attempt", {"x": "y"}),
    ],
)
def test_where_only_a_submission_can_follow_the_third_in_a_row_ends_the_attempt(
    task: Task, tool: str, arguments: dict[str, Any]
) -> None:
    attempt, _ = attempt_of(task, Budgets(2, 1))
    attempt.call("nonsense", {})
    assert attempt.state.remaining == Remaining(1, 1)
    for _ in range(2):
        result = attempt.call(tool, arguments)
        assert result.refused
        assert result.text.count(LAST_USE) == 1
        assert result.text.endswith("[1 tool use and 1 submission left]")
        assert not attempt.state.ended
    result = attempt.call(tool, arguments)
    assert result.text.endswith("[0 tool uses and 1 submission left]")
    assert ended(attempt) == EndReason.CALLS_EXHAUSTED


def test_a_submission_can_follow_two_slips(task: Task) -> None:
    attempt, _ = attempt_of(task, Budgets(1, 1))
    attempt.call("read_file", {"file_path": "README.md"})
    attempt.call("submit_attempt", {})
    attempt.call("submit_attempt", {"func_code": REPAIR})
    assert ended(attempt) == EndReason.SOLVED


def test_a_run_that_fails_through_the_harness_breaks_the_row(task: Task) -> None:
    clock = FakeClock()
    runner = FakeRunner(CHECKS, status=RunStatus.INFRASTRUCTURE)
    attempt = Attempt(task, RepairJudge(task, read_answer(task), runner), Memory(clock), clock)
    attempt.start(Enrolment(), budgets=Budgets(1, 1))
    for _ in range(2):
        attempt.call("nonsense", {})
        attempt.call("nonsense", {})
        attempt.call("submit_attempt", {"func_code": REPAIR})
    assert attempt.state.remaining == Remaining(1, 1)
    for _ in range(3):
        attempt.call("nonsense", {})
    assert ended(attempt) == EndReason.CALLS_EXHAUSTED


def test_after_a_submission_the_last_use_is_taken_at_once(task: Task) -> None:
    attempt, _ = attempt_of(task, Budgets(2, 2))
    attempt.call("submit_attempt", {"func_code": REPAIR.replace("100", "99")})
    attempt.call("nonsense", {})
    assert ended(attempt) == EndReason.CALLS_EXHAUSTED


def test_an_attempt_begun_under_the_old_semantics_keeps_the_old_cost(task: Task) -> None:
    attempt, memory = attempt_of(task, Budgets(1, 1), tool_semantics=1)
    for tool, arguments, raw, _ in MALFORMED:
        assert attempt.call(tool, arguments, raw=raw).refused
    assert attempt.state.remaining == Remaining(1, 1)
    memory.change(0, tool_semantics=None)
    again = Attempt(task, attempt.judge, memory, memory.clock, events=memory.events)
    again.resume_process()
    assert again.call("nonsense", {}).text == attempt.state.calls[0].text
    assert again.state.remaining == Remaining(1, 1)


def test_an_attempt_of_a_newer_version_is_not_gone_on_with(task: Task) -> None:
    attempt, memory = attempt_of(task, tool_semantics=3)
    with pytest.raises(AttemptError, match="newer version of gistpoint"):
        Attempt(task, attempt.judge, memory, memory.clock, events=memory.events).resume_process()


def test_new_attempts_say_what_holds(task: Task, tmp_path: Path) -> None:
    attempt, _ = attempt_of(task)
    assert attempt.state.header.tool_semantics == 2
    assert gist_case(tmp_path).attempt.state.header.tool_semantics == 2
    assert task.limits.tool_semantics == 1


# Gists


def gist(folder: Path, steps: int = 50, score_budget: int = 0) -> GistCase:
    return gist_case(folder, GistSettings(OWNED, score_budget=score_budget), budgets=Budgets.of_steps(steps))


@pytest.mark.parametrize(
    ("tool", "arguments", "raw"),
    [
        ("bash", {"command": "ls"}, ""),
        ("score_gist", {"content": 3}, ""),
        ("write_gist", None, "text"),
        ("submit_gist", {"gist": FAITHFUL}, ""),
    ],
)
def test_in_a_gist_it_costs_a_step_and_hands_nothing_in(
    tmp_path: Path, tool: str, arguments: dict[str, Any] | None, raw: str
) -> None:
    case = gist(tmp_path, score_budget=1)
    assert case.attempt.call(tool, arguments, raw=raw).text.endswith("[49 steps and 1 score left]")
    assert not case.ended
    assert case.attempt.state.submissions == ()


def test_scores_that_are_used_up_are_asked_for_at_a_step_each(tmp_path: Path) -> None:
    case = gist(tmp_path, steps=4, score_budget=1)
    case.call("score_gist", content=FAITHFUL)
    assert case.steps == 4
    while not case.ended:
        case.call("score_gist")
    assert case.ended == EndReason.STEPS_EXHAUSTED


def test_a_text_that_can_t_be_scored_takes_a_score(tmp_path: Path) -> None:
    case = gist(tmp_path, score_budget=2)
    assert case.call("score_gist", content="\ud800").startswith("Refused: ")
    assert case.attempt.state.remaining == Remaining(50, 1, 1)


def test_the_last_step_may_be_a_malformed_one(tmp_path: Path) -> None:
    case = gist(tmp_path, steps=2)
    case.call("write_gist", content=FAITHFUL)
    case.call("nonsense")
    assert (case.ended, case.attempt.state.solved) == (EndReason.STEPS_EXHAUSTED, True)


# Any sequence of calls

SOUND: list[tuple[str, dict[str, Any] | None, str]] = [
    ("list_directory", {}, ""),
    ("list_directory", {"path": None}, ""),
    ("read_file", {"file_path": "README.md"}, ""),
    ("read_file", {"file_path": "nowhere.py"}, ""),
    ("search_code", None, '{"pattern": "["}'),
    ("submit_attempt", {"func_code": REPAIR.replace("100", "99")}, ""),
    ("submit_attempt", {"func_code": "def discount("}, ""),
]
CALLS = st.one_of(st.sampled_from(SOUND), st.sampled_from([case[:3] for case in MALFORMED]))


def take(attempt: Attempt, calls: list[tuple[str, dict[str, Any] | None, str]]) -> None:
    for tool, arguments, raw in calls:
        if not attempt.state.ended:
            attempt.call(tool, arguments, raw=raw)


@examples(60)
@given(st.lists(CALLS, max_size=14), st.integers(1, 5), st.integers(1, 3))
def test_budgets_hold_for_any_calls_and_the_attempt_ends(
    task: Task, calls: list[tuple[str, dict[str, Any] | None, str]], uses: int, submissions: int
) -> None:
    attempt, memory = attempt_of(task, Budgets(uses, submissions))
    take(attempt, calls)
    free, seen = 0, set[str]()
    left = Remaining(uses, submissions)
    for call in attempt.state.calls:
        submitted = any(s.call_id == call.call_id for s in attempt.state.submissions)
        earlier = any(s.call_id in seen for s in attempt.state.submissions)
        waits = left.tool_uses == 1 and not earlier
        carried_out = not call.malformed and not (waits and call.tool != "submit_attempt")
        free = 0 if carried_out or not waits or free == 2 else free + 1
        left = left.spend(tool_uses=0 if free else 1, submissions=int(submitted))
        assert call.remaining == left
        assert call.refused or carried_out
        seen.add(call.call_id)
    assert attempt.state.ended == (left.tool_uses == 0 or left.submissions == 0)
    for _ in range(3 * uses):
        take(attempt, [("nonsense", {}, "")])
    assert attempt.state.ended
    assert fold(memory.events, AttemptState(of_kind=attempt.judge.blank)) == attempt.state


@examples(25)
@given(st.lists(CALLS, min_size=1, max_size=6), st.integers(1, 4), st.data())
def test_a_process_killed_at_any_event_comes_to_the_same_state(
    task: Task, calls: list[tuple[str, dict[str, Any] | None, str]], uses: int, data: st.DataObject
) -> None:
    whole, events = attempt_of(task, Budgets(uses, 2))
    take(whole, calls)
    killed, memory = attempt_of(task, Budgets(uses, 2))
    memory.dies_at = data.draw(st.integers(3, len(events.events) + 1))
    with suppress(KeyboardInterrupt):
        take(killed, calls)
    memory.dies_at = 0
    again = Attempt(task, killed.judge, memory, memory.clock, events=memory.events)
    again.resume_process()
    again.finish_pending()
    take(again, calls[len(again.state.calls) :])

    def figures(attempt: Attempt) -> list[Any]:
        return [(c.call_id, c.tool, c.malformed, c.text, c.remaining, c.refused) for c in attempt.state.calls]

    assert figures(again) == figures(whole)
    assert (again.state.remaining, ended(again)) == (whole.state.remaining, ended(whole))
    assert again.state.refused_free == whole.state.refused_free


OF_GIST: list[tuple[str, dict[str, Any] | None, str]] = [
    ("write_gist", {"content": FAITHFUL}, ""),
    ("write_gist", {"content": "\ud800"}, ""),
    ("edit_gist", {"old": "nowhere", "new": ""}, ""),
    ("score_gist", {}, ""),
    ("score_gist", {"content": None}, ""),
    ("score_gist", {"content": "\ud800"}, ""),
    ("score_gist", {"content": 1}, ""),
    ("list_directory", None, '{"path": null}'),
    ("bash", {"command": "ls"}, ""),
    ("submit_gist", {"content": FAITHFUL}, ""),
    ("read_file", None, "README.md"),
]


@examples(30)
@given(st.lists(st.sampled_from(OF_GIST), max_size=8), st.integers(1, 5), st.integers(0, 2), st.booleans())
def test_in_a_gist_each_call_costs_its_step_or_its_score(
    tmp_path_factory: pytest.TempPathFactory,
    calls: list[tuple[str, dict[str, Any] | None, str]],
    steps: int,
    scores: int,
    dies: bool,
) -> None:
    case = gist(tmp_path_factory.mktemp("gist"), steps, scores)
    if dies:
        case.memory.dies_at = len(case.memory.events) + 2 * len(calls)
    with suppress(KeyboardInterrupt):
        take(case.attempt, calls)
    if dies:
        case = case.resumed()
        case.attempt.finish_pending()
        take(case.attempt, calls[len(case.attempt.state.calls) :])
    left = Remaining(steps, 1, scores)
    for call in case.attempt.state.calls:
        scored = call.tool == "score_gist" and not call.malformed and left.scores
        if call.automatic:
            left = left.spend(submissions=1)
        else:
            left = left.spend(tool_uses=0 if scored else 1, scores=1 if scored else 0)
        assert call.remaining == left
    assert bool(case.ended) == (left.tool_uses == 0)


def test_what_was_typed_is_saved_before_a_malformed_call_too(tmp_path: Path) -> None:
    case = gist(tmp_path)
    case.attempt.edit(GIST_BUFFER, FAITHFUL)
    case.call("nonsense")
    assert [call.tool for call in case.attempt.state.calls] == ["write_gist", "nonsense"]
    assert case.steps == 48
