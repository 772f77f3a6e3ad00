"""The engine: costs of calls, ends of attempts, persistence, and continuation after a process has died."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from builders import CHECKS, REPAIR, build_task
from fakes import FakeClock, FakeRunner
from recorders import Memory

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import (
    EndReason,
    GiveUpCode,
    JournalEvent,
    Pane,
    PauseReason,
    QuestionnaireAnswered,
)
from gistpoint.core.attempts.identity import Enrolment, Role, new_attempt_id
from gistpoint.core.attempts.state import fold
from gistpoint.core.errors import AttemptError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import LAST_USE, RepairJudge
from gistpoint.core.kinds.repair.scoring import changed_targets
from gistpoint.core.outcomes import FREE, RunStatus
from gistpoint.core.running import CancelToken, RunContext
from gistpoint.core.tasks.budgets import Budgets, Remaining
from gistpoint.core.tasks.model import Mode, Rules, Task

WRONG = REPAIR.replace("// 100", "// 99")
HALF = "def discount(price, percent):\n    return price if not percent else None\n"
BREAKS = "def discount(price, percent):\n    return 1 / 0\n"


@dataclass
class Bench:
    """A task with an attempt in progress."""

    task: Task
    runner: FakeRunner
    clock: FakeClock
    memory: Memory
    attempt: Attempt

    @property
    def left(self) -> Remaining:
        return self.attempt.state.remaining

    @property
    def ended(self) -> str:
        ending = self.attempt.state.ending
        return ending.reason if ending else ""

    def look(self) -> str:
        return self.attempt.call("read_file", {"file_path": "shop/prices.py"}).text

    def submit(self, code: str, name: str = "discount", **more: Any) -> str:
        if self.task.mode is Mode.REMOVE:
            return self.attempt.call("submit_attempt", {"func_code": code}, **more).text
        arguments = {"func_code": code, "func_name": name, "file_path": "shop/prices.py"}
        return self.attempt.call("replace_function", arguments, **more).text

    def resumed(self) -> Bench:
        clock = FakeClock(self.clock.utc_ms() + 60_000, 77, "boot-2")
        memory = Memory(clock, list(self.memory.events))
        attempt = Attempt(self.task, self.attempt.judge, memory, clock, events=memory.events)
        attempt.resume_process()
        return Bench(self.task, self.runner, clock, memory, attempt)


def bench(
    folder: Path, mode: Mode = Mode.REMOVE, *, budgets: Budgets | None = None, rules: Rules | None = None
) -> Bench:
    task = build_task(folder, mode, budgets=budgets)
    task = replace(task, rules=rules or task.rules)
    runner, clock = FakeRunner(CHECKS), FakeClock()
    memory = Memory(clock)
    attempt = Attempt(task, RepairJudge(task, read_answer(task), runner), memory, clock)
    attempt.start(Enrolment())
    return Bench(task, runner, clock, memory, attempt)


def types(events: list[JournalEvent]) -> list[str]:
    return [event.type for event in events]


# Budgets


def test_call_costs_one_use_and_a_submission_one_of_each(tmp_path: Path) -> None:
    b = bench(tmp_path)
    assert b.left == Remaining(16, 4)
    assert b.look().endswith("\n[15 tool uses and 4 submissions left]")
    assert b.submit(HALF).endswith("\n[14 tool uses and 3 submissions left]")
    assert b.left == Remaining(14, 3)


@pytest.mark.parametrize("path", ["nowhere.py", "../x", "/etc/passwd"])
def test_refused_look_costs_a_use(tmp_path: Path, path: str) -> None:
    b = bench(tmp_path)
    result = b.attempt.call("read_file", {"file_path": path})
    assert result.refused
    assert b.left == Remaining(15, 4)


@pytest.mark.parametrize("code", ["", "def discount(", "def other(): pass", "x = 1"])
@pytest.mark.parametrize(("costs", "left"), [(False, Remaining(15, 4)), (True, Remaining(15, 3))])
def test_submission_refused_before_any_test_costs_what_the_task_says(
    tmp_path: Path, code: str, costs: bool, left: Remaining
) -> None:
    b = bench(tmp_path, rules=Rules(refused_costs_attempt=costs))
    assert b.submit(code).startswith("Refused: ")
    assert b.left == left
    assert b.runner.runs == 0
    assert b.attempt.state.submissions == ()


def test_at_the_last_use_without_a_submission_only_a_submission_can_follow(tmp_path: Path) -> None:
    b = bench(tmp_path, budgets=Budgets(3, 1))
    b.look()
    assert b.attempt.offered() == b.attempt.tools
    assert b.look().endswith(f"[1 tool use and 1 submission left]\n{LAST_USE}")
    assert [tool.name for tool in b.attempt.offered()] == ["submit_attempt"]
    assert b.attempt.price(b.attempt.offered()[0]).last_tool_use
    refused = b.attempt.call("read_file", {"file_path": "README.md"})
    assert refused.refused
    assert LAST_USE in refused.text
    assert b.left == Remaining(1, 1)
    b.submit(REPAIR)
    assert b.ended == "solved"
    assert b.attempt.offered() == ()


def test_at_the_last_use_after_a_submission_every_tool_remains(tmp_path: Path) -> None:
    b = bench(tmp_path, budgets=Budgets(3, 2))
    b.submit(HALF)
    text = b.look()
    assert LAST_USE not in text
    assert b.attempt.offered() == b.attempt.tools


def test_infrastructure_failure_costs_nothing_and_is_no_submission(tmp_path: Path) -> None:
    b = bench(tmp_path, budgets=Budgets(2, 1))
    b.look()
    b.runner.status = RunStatus.INFRASTRUCTURE
    assert "It costs no submission." in b.submit(REPAIR)
    assert b.left == Remaining(1, 1)
    assert b.ended == ""
    assert b.attempt.state.last is None
    assert [tool.name for tool in b.attempt.offered()] == ["submit_attempt"]
    b.runner.status = RunStatus.FINISHED
    b.submit(REPAIR)
    assert b.ended == "solved"
    assert len(b.attempt.state.submissions) == 2


def test_harness_failures_are_counted_by_the_journal_and_given_back_three_times(tmp_path: Path) -> None:
    b = bench(tmp_path, budgets=Budgets(16, 4))
    b.runner.status = RunStatus.HARNESS_FAILED
    for number in (1, 2, 3):
        assert f"this is number {number} of at most 3" in b.submit(REPAIR)
    assert (b.left, fold(b.memory.events).given_back) == (Remaining(16, 4), 3)
    assert "score" not in types(b.memory.events)
    assert "so this one counts" in b.submit(REPAIR)
    assert b.left == Remaining(15, 3)
    assert b.attempt.state.last is not None
    assert (b.attempt.state.last.status, b.attempt.state.last.score) == ("crashed", 0.0)


@pytest.mark.parametrize("status", [s for s in RunStatus if s not in {RunStatus.FINISHED, *FREE}])
def test_run_that_did_not_finish_scores_zero_and_counts(tmp_path: Path, status: RunStatus) -> None:
    b = bench(tmp_path)
    b.runner.status = status
    text = b.submit(REPAIR)
    assert "Score 0." in text
    assert b.left == Remaining(15, 3)
    last = b.attempt.state.last
    assert last is not None
    assert (last.score, last.solved, last.status, last.failing) == (0.0, False, status.value, ())


def test_cancelled_run_counts(tmp_path: Path) -> None:
    b = bench(tmp_path)
    b.runner.gate, cancel = threading.Event(), CancelToken()
    cancel.cancel()
    assert "was cancelled" in b.submit(REPAIR, run=RunContext(cancel))
    assert b.left == Remaining(15, 3)


def test_two_attempts_at_once_never_share_a_budget(tmp_path: Path) -> None:
    first, second = bench(tmp_path / "a"), bench(tmp_path / "b", budgets=Budgets(32, 8))
    barrier = threading.Barrier(2)

    def work(b: Bench, looks: int, submissions: int) -> None:
        barrier.wait()
        for _ in range(looks):
            b.look()
        for _ in range(submissions):
            b.submit(HALF)

    threads = [threading.Thread(target=work, args=a) for a in [(first, 5, 2), (second, 9, 6)]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert first.left == Remaining(9, 2)
    assert second.left == Remaining(17, 2)


def test_one_call_runs_at_a_time_and_the_rest_stays_alive(tmp_path: Path) -> None:
    b = bench(tmp_path)
    b.runner.gate = threading.Event()
    begun = threading.Event()
    thread = threading.Thread(
        target=lambda: b.submit(REPAIR, run=RunContext(progress=lambda progress: begun.set()))
    )
    thread.start()
    assert begun.wait(10)
    with pytest.raises(AttemptError, match="A tool call is running"):
        b.look()
    with pytest.raises(AttemptError, match="A tool call is running"):
        b.attempt.pause(PauseReason.BREAK)
    with pytest.raises(AttemptError, match="A tool call is running"):
        b.attempt.give_up(GiveUpCode.TIRED)
    assert b.attempt.finish_pending() is None
    b.attempt.note("while it runs")
    b.attempt.edit("shop/prices.py::discount", "half")
    b.clock.advance(8_000)
    b.attempt.heartbeat()
    b.runner.gate.set()
    thread.join()
    assert b.ended == "solved"
    assert b.attempt.state.notes == "while it runs"
    assert b.attempt.state.clock.waiting == 8_000


# End reasons


def test_solved(tmp_path: Path) -> None:
    b = bench(tmp_path)
    assert b.submit(REPAIR).startswith("Score 1.000: 6 of 6 tests pass, 0 fail.")
    assert b.ended == EndReason.SOLVED
    with pytest.raises(AttemptError, match="has ended: solved"):
        b.look()


def test_submissions_exhausted(tmp_path: Path) -> None:
    b = bench(tmp_path, budgets=Budgets(16, 2))
    b.submit(WRONG)
    assert b.ended == ""
    b.submit(HALF)
    assert b.ended == EndReason.SUBMISSIONS_EXHAUSTED


def test_calls_exhausted(tmp_path: Path) -> None:
    b = bench(tmp_path, budgets=Budgets(3, 2))
    b.submit(HALF)
    b.look()
    b.look()
    assert b.ended == EndReason.CALLS_EXHAUSTED


def test_time_cap_runs_on_the_active_clock_alone(tmp_path: Path) -> None:
    b = bench(tmp_path, budgets=Budgets(16, 4, 60))
    b.attempt.pause(PauseReason.BREAK)
    b.clock.advance(3_600_000)
    b.attempt.resume()
    b.clock.advance(59_000)
    b.attempt.heartbeat()
    assert b.ended == ""
    b.clock.advance(1_000)
    b.attempt.heartbeat()
    assert b.ended == EndReason.TIME_CAP


def test_time_cap_is_met_by_a_call_too_and_never_in_the_middle_of_one(tmp_path: Path) -> None:
    b = bench(tmp_path, budgets=Budgets(16, 4, 60))
    b.clock.advance(59_000)
    b.look()
    b.clock.advance(1_000)
    with pytest.raises(AttemptError, match="has ended: time_cap"):
        b.look()
    assert len(b.attempt.state.calls) == 1
    assert b.left == Remaining(15, 4)


@pytest.mark.parametrize("code", list(GiveUpCode))
def test_gave_up_and_skipped_with_reasons(tmp_path: Path, code: GiveUpCode) -> None:
    b, other = bench(tmp_path / "a"), bench(tmp_path / "b")
    b.attempt.give_up(code, "too [odd]\x1b")
    other.attempt.skip(code)
    assert b.attempt.state.ending is not None
    assert (b.ended, b.attempt.state.ending.code, b.attempt.state.ending.text) == (
        "gave_up",
        code,
        "too [odd]\x1b",
    )
    assert other.ended == "skipped"
    b.attempt.give_up(code)
    b.attempt.heartbeat()
    b.attempt.suspect("a::b")
    assert types(b.memory.events).count("attempt_ended") == 1
    assert types(b.memory.events)[-1] == "attempt_ended"


@pytest.mark.parametrize("reason", [EndReason.INFRASTRUCTURE, EndReason.WITHDRAWN, EndReason.DISQUALIFIED])
def test_reasons_set_from_outside(tmp_path: Path, reason: EndReason) -> None:
    b = bench(tmp_path)
    b.attempt.end(reason, "the machine broke")
    assert b.ended == reason


def test_paused_attempt_takes_no_call(tmp_path: Path) -> None:
    b = bench(tmp_path)
    b.attempt.pause(PauseReason.INTERRUPTED, "telephone")
    with pytest.raises(AttemptError, match="is paused"):
        b.look()
    b.attempt.resume()
    b.look()
    assert b.left == Remaining(15, 4)


# Discovery and remove


def test_passing_without_changing_the_corrupted_function_goes_on_and_says_nothing_of_targets(
    tmp_path: Path,
) -> None:
    b = bench(tmp_path, Mode.DISCOVERY)
    around = (
        "def total(self, percent=0):\n    whole = sum(p * c for _, p, c in self.items)\n"
        "    return whole - whole * percent // 100\n"
    )
    text = b.submit(around, name="Basket.total")
    assert text == "Score 1.000: 6 of 6 tests pass, 0 fail.\n[15 tool uses and 3 submissions left]"
    assert b.ended == ""
    last = b.attempt.state.last
    assert last is not None
    assert (last.score, last.solved, last.changed) == (1.0, False, ())
    b.submit(REPAIR)
    assert b.ended == "solved"


@pytest.mark.parametrize(
    "same",
    [
        'def discount(price, percent):\n    """Other words."""\n    return price + price * percent // 100\n',
        "def discount(price, percent):\n    # a comment\n    return (price + (price * percent) // 100)\n",
    ],
)
def test_change_of_docstring_comment_or_layout_is_no_change(tmp_path: Path, same: str) -> None:
    b = bench(tmp_path, Mode.DISCOVERY)
    b.submit(same)
    last = b.attempt.state.last
    assert last is not None
    assert last.changed == ()


def test_change_is_judged_in_the_submission_that_is_scored(tmp_path: Path) -> None:
    b = bench(tmp_path, Mode.DISCOVERY)
    b.submit(WRONG)
    b.submit("def discount(price, percent):\n    return price + price * percent // 100\n")
    assert [s.changed for s in b.attempt.state.submissions] == [("shop/prices.py::discount",), ()]


def test_replacement_persists_in_discovery(tmp_path: Path) -> None:
    b = bench(tmp_path, Mode.DISCOVERY)
    b.submit(
        "def add(self, name, price, count=1):\n    self.items.append((name, price, count))\n    self.seen = True\n",
        name="Basket.add",
    )
    assert "self.seen = True" in b.look()
    assert "self.seen = True" in b.resumed().look()
    b.submit(REPAIR)
    assert b.ended == "solved"
    assert b"self.seen = True" in b.attempt.tree.read("shop/prices.py")


def test_each_submission_starts_again_in_remove(tmp_path: Path) -> None:
    b = bench(tmp_path)
    b.submit(BREAKS)
    assert "1 / 0" not in b.look()
    assert b.attempt.state.replacements == ()
    b.submit(REPAIR)
    assert b.ended == "solved"


def test_tests_cannot_be_replaced_and_the_other_mode_has_no_such_tool(tmp_path: Path) -> None:
    b = bench(tmp_path / "a", Mode.DISCOVERY)
    result = b.attempt.call(
        "replace_function",
        {
            "func_code": "def test_total(): pass",
            "func_name": "test_total",
            "file_path": "tests/test_prices.py",
        },
    )
    assert "belongs to the tests" in result.text
    assert b.left == Remaining(15, 4)
    assert b.attempt.call("submit_attempt", {"func_code": REPAIR}).refused
    assert bench(tmp_path / "b").attempt.call("replace_function", {}).refused


def test_deleted_target_counts_as_changed(tmp_path: Path) -> None:
    b = bench(tmp_path, Mode.DISCOVERY)
    targets = b.attempt.judge.answer.targets
    assert changed_targets(b.attempt.tree, targets) == ()
    assert changed_targets(b.attempt.tree.with_files({"shop/prices.py": b"x = 1\n"}), targets) == (
        targets[0].name,
    )


def test_answer_shows_counts_and_the_first_failing_test_that_counts(tmp_path: Path) -> None:
    b = bench(tmp_path)
    text = b.submit(HALF)
    assert text.startswith(
        "Score 0.200: 2 of 6 tests pass, 4 fail.\n\ntests/test_prices.py::test_tenth (failed)\n"
    )


# Records


def test_events_of_a_call_stand_in_order_and_carry_turn_and_call(tmp_path: Path) -> None:
    b = bench(tmp_path)
    b.attempt.call("list_directory", {}, thought="where am I?", extra={"tokens": 12, "call_id": "forged"})
    b.submit(REPAIR)
    assert types(b.memory.events) == [
        "attempt_started", "process_started", "tool_call", "tool_result",
        "tool_call", "submit", "test_run", "score", "tool_result", "attempt_ended",
    ]  # fmt: skip
    call = b.memory.events[2].data.written()
    assert (call["turn"], call["call_id"], call["thought"], call["tokens"]) == (
        1,
        "call-1",
        "where am I?",
        12,
    )
    assert b.memory.events[3].data.written()["text"] == b.attempt.state.calls[0].text
    assert b.memory.events[3].data.written()["budget"] == {"tool_uses": 15, "submissions": 4}


def test_start_records_what_the_format_asks_for(tmp_path: Path) -> None:
    b = bench(tmp_path)
    header = b.attempt.state.header.written()
    for key in ("schema", "attempt_id", "task_id", "tree_sha256", "actor", "participant", "role", "study", "condition",
                "assignment", "tools_sha256", "brief_sha256", "budgets", "comforts_off", "backend"):  # fmt: skip
        assert key in header
    assert header["role"] == Role.BASELINE
    assert header["backend"]["isolated"] is True


def test_attempt_ids_sort_by_time_and_never_repeat() -> None:
    ids = [new_attempt_id(ms) for ms in (0, 1, 31, 32, 1_700_000_000_000, 1_900_000_000_000)]
    assert ids == sorted(ids)
    assert len({new_attempt_id(5) for _ in range(200)}) == 200
    assert {len(id) for id in ids} == {20}


def test_affordances_suspects_notes_buffers_cost_nothing(tmp_path: Path) -> None:
    b = bench(tmp_path)
    b.attempt.use_affordance("scroll", 3)
    b.attempt.use_affordance("scroll")
    b.attempt.suspect("shop/prices.py::discount")
    b.attempt.suspect("a.py::f")
    b.attempt.suspect("a.py::f", marked=False)
    b.attempt.note("n")
    b.attempt.note("n")
    b.attempt.edit("x", "1")
    b.attempt.edit("x", "1")
    b.attempt.view(Pane.CODE)
    b.attempt.view(Pane.CODE)
    state = b.attempt.state
    assert (state.affordances, state.buffers, state.notes) == ({"scroll": 4}, {"x": "1"}, "n")
    assert [s.name for s in state.suspects] == ["shop/prices.py::discount"]
    assert b.left == Remaining(16, 4)
    assert [types(b.memory.events).count(t) for t in ("note", "edit_buffer", "view")] == [1, 1, 1]


def test_listener_sees_every_event_with_the_state_after_it(tmp_path: Path) -> None:
    b = bench(tmp_path)
    seen: list[tuple[str, int]] = []
    b.attempt.subscribe(lambda event, state: seen.append((event.type, state.remaining.tool_uses)))
    b.look()
    assert seen == [("tool_call", 16), ("tool_result", 15)]


# Continuing


def test_resumed_attempt_stands_where_it_was(tmp_path: Path) -> None:
    b = bench(tmp_path)
    b.look()
    b.submit(HALF)
    b.attempt.note("a note")
    b.attempt.edit("shop/prices.py::discount", "def disc")
    b.attempt.view(Pane.EDITOR)
    b.clock.advance(5_000)
    b.attempt.heartbeat()
    r = b.resumed()
    before, after = b.attempt.state, r.attempt.state
    for name in ("remaining", "calls", "submissions", "notes", "buffers", "pane", "knowledge"):
        assert getattr(after, name) == getattr(before, name)
    assert after.clock.active == before.clock.active == 5_000
    assert after.processes == 2
    assert r.attempt.finish_pending() is None


def test_attempt_of_another_task_or_without_a_start_is_refused(tmp_path: Path) -> None:
    b, other = bench(tmp_path / "a"), bench(tmp_path / "b", Mode.DISCOVERY)
    attempt = Attempt(other.task, other.attempt.judge, b.memory, b.clock, events=b.memory.events)
    with pytest.raises(AttemptError, match="belongs to another task"):
        attempt.resume_process()
    with pytest.raises(AttemptError, match="does not contain the start"):
        Attempt(b.task, b.attempt.judge, b.memory, b.clock).resume_process()


@pytest.mark.parametrize("mode", [Mode.REMOVE, Mode.DISCOVERY])
@pytest.mark.parametrize("code", [REPAIR, HALF])
@pytest.mark.parametrize("event", range(3, 11))
def test_process_that_dies_before_any_event_of_a_submission_goes_on_to_the_same_end(
    tmp_path: Path, mode: Mode, code: str, event: int
) -> None:
    straight = bench(tmp_path / "straight", mode, budgets=Budgets(2, 1))
    straight.look()
    straight.submit(code)
    b = bench(tmp_path / "killed", mode, budgets=Budgets(2, 1))
    b.memory.dies_at = event
    with suppress(KeyboardInterrupt):
        b.look()
        b.submit(code)
    assert len(b.memory.events) == event - 1
    r = b.resumed()
    result = r.attempt.finish_pending()
    assert (result is None) == (b.attempt.state.pending is None)
    if not r.attempt.state.calls:
        r.look()
    if not r.attempt.state.submissions:
        r.submit(code)
    assert r.ended == straight.ended
    assert r.left == straight.left
    state, wanted = r.attempt.state, straight.attempt.state
    assert [c.text for c in state.calls] == [c.text for c in wanted.calls]
    assert [(s.score, s.solved, s.changed, s.counts) for s in state.submissions] == [
        (s.score, s.solved, s.changed, s.counts) for s in wanted.submissions
    ]
    assert r.attempt.tree.read("shop/prices.py") == straight.attempt.tree.read("shop/prices.py")


def test_call_that_could_not_be_written_leaves_the_attempt_usable(tmp_path: Path) -> None:
    b = bench(tmp_path)
    b.memory.dies_at = len(b.memory.events) + 1
    with pytest.raises(KeyboardInterrupt):
        b.look()
    b.memory.dies_at = 0
    b.look()
    assert b.left == Remaining(15, 4)


def test_another_call_waits_for_the_one_that_a_dead_process_left(tmp_path: Path) -> None:
    b = bench(tmp_path)
    b.memory.dies_at = 4
    with pytest.raises(KeyboardInterrupt):
        b.look()
    r = b.resumed()
    with pytest.raises(AttemptError, match="A tool call is running"):
        r.look()
    assert r.attempt.finish_pending() is not None
    r.look()
    assert r.left == Remaining(14, 4)


def test_budget_object_counts_down_to_zero_and_no_further() -> None:
    assert Remaining(1, 0).spend(tool_uses=3, submissions=1) == Remaining(0, 0)
    assert Budgets.of(16) == Budgets(16, 4)
    assert Budgets.of(2) == Budgets(2, 1)
    assert Budgets.of(32, 3, 60) == Budgets(32, 3, 60)


def test_a_repair_has_nothing_to_hand_in(tmp_path: Path) -> None:
    b = bench(tmp_path)
    b.attempt.hand_in(EndReason.CONTEXT_EXHAUSTED)
    assert b.attempt.state.ending is not None
    assert b.attempt.state.ending.reason == "context_exhausted"


def test_the_header_of_a_person_tells_of_no_settings(tmp_path: Path) -> None:
    b = bench(tmp_path)
    assert not {"solver", "model"} & b.memory.events[0].data.written().keys()


def test_an_attempt_that_was_left_takes_no_event_more(tmp_path: Path) -> None:
    b = bench(tmp_path)
    b.attempt.leave()
    written = len(b.memory.events)
    late: list[Callable[[], object]] = [
        lambda: b.attempt.note("too late"),
        lambda: b.attempt.call("read_file", {"file_path": "shop/prices.py"}),
        b.attempt.heartbeat,
    ]
    for write in late:
        with pytest.raises(AttemptError, match="in another process"):
            write()
    assert len(b.memory.events) == written
    assert b.attempt.state.pending is None


# In a study


def test_a_questionnaire_is_answered_in_a_pause_that_survives_its_process(tmp_path: Path) -> None:
    b = bench(tmp_path)
    assert not b.attempt.state.left_brief
    b.clock.advance(40_000)
    b.attempt.pause(PauseReason.QUESTIONNAIRE)
    b = b.resumed()
    assert b.attempt.state.left_brief
    assert b.attempt.state.pause is not None
    b.attempt.answer(QuestionnaireAnswered(questionnaire="forecast", values={"minutes": 12, "chance": None}))
    b.attempt.resume()
    b = b.resumed()
    assert [given.values for given in b.attempt.state.questionnaires] == [{"minutes": 12, "chance": None}]
    assert b.attempt.state.pause is None
    assert b.attempt.state.clock.reading == 40_000


def test_a_header_has_the_study_only_where_there_is_one(tmp_path: Path) -> None:
    b = bench(tmp_path)
    assert not {"protocol_sha256", "assistance", "gist_help_sha256"} & b.attempt.state.header.written().keys()
    memory = Memory(b.clock)
    attempt = Attempt(b.task, b.attempt.judge, memory, b.clock)
    attempt.start(Enrolment(study="s", protocol_sha256="ab", assistance="none"))
    header = memory.events[0].data.written()
    assert (header["study"], header["protocol_sha256"], header["assistance"]) == ("s", "ab", "none")
    assert "gist_help_sha256" not in header
