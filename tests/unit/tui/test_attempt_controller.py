"""The controller of an attempt: one call at a time, waiting actions, writing, and leaving."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from builders import CHECKS, REPAIR, build_task
from fakes import FakeClock, FakeRunner
from recorders import Memory
from unit.tui.owners import PATIENCE_S, FakeOwner

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import EventData, GiveUpCode, JournalEvent, Pane
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.errors import AttemptError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.outcomes import Outcome, SuiteReport
from gistpoint.core.ports import RunRequest
from gistpoint.core.running import UNATTENDED, RunContext, RunProgress
from gistpoint.core.tasks.model import Mode
from gistpoint.core.tools.declaration import Tool
from gistpoint.tui.screens.solve.controller import (
    AttemptController,
    CallBegun,
    CallFailed,
    CallFinished,
    CallProgressed,
    StateChanged,
    StepPlayed,
)

WRONG = REPAIR.replace("// 100", "// 99")
READ = {"file_path": "shop/prices.py"}


@dataclass
class HeldMemory(Memory):
    """A journal whose thread waits before it writes an event of a type, until it is released."""

    held_at: str = ""
    reached: threading.Event = field(default_factory=threading.Event)
    free: threading.Event = field(default_factory=threading.Event)

    def append(self, data: EventData) -> JournalEvent:
        if data.type == self.held_at:
            self.reached.set()
            assert self.free.wait(PATIENCE_S)
        return super().append(data)


@dataclass
class Solving:
    """A controller with its running attempt."""

    owner: FakeOwner
    runner: FakeRunner
    memory: HeldMemory
    attempt: Attempt
    controller: AttemptController
    done: list[str] = field(default_factory=list)

    def tool(self, name: str) -> Tool:
        return next(tool for tool in self.attempt.tools if tool.name == name)

    def read(self) -> None:
        self.controller.call(self.tool("read_file"), READ)

    def submit(self, code: str = WRONG, *, yields: bool = False) -> None:
        self.controller.call(self.tool("submit_attempt"), {"func_code": code}, yields=yields)

    def types(self) -> list[str]:
        return [event.type for event in self.memory.events]

    def note(self, word: str) -> Callable[[], None]:
        return lambda: self.done.append(word)

    def until_back(self) -> None:
        """Handle messages up to the end of the call, as the screen does before it calls `run_waiting`."""
        finished = len(self.owner.of(CallFinished))
        self.owner.take(lambda: len(self.owner.of(CallFinished)) > finished and not self.controller.calling)

    @contextmanager
    def held_before(self, type: str, begin: Callable[[], None]) -> Iterator[None]:
        """Start a call and hold its thread before it writes an event."""
        self.memory.held_at = type
        begin()
        assert self.memory.reached.wait(PATIENCE_S)
        try:
            yield
        finally:
            self.memory.held_at = ""
            self.memory.free.set()

    @contextmanager
    def running(self, *, yields: bool = False) -> Iterator[None]:
        """Start a submission and hold its run after the first test."""
        gate = self.runner.gate = threading.Event()
        self.submit(yields=yields)
        self.owner.take(lambda: self.owner.of(CallProgressed))
        try:
            yield
        finally:
            gate.set()


@pytest.fixture
def solving(tmp_path: Path) -> Iterator[Solving]:
    task = build_task(tmp_path, Mode.REMOVE)
    owner, runner, clock = FakeOwner(), FakeRunner(CHECKS), FakeClock()
    memory = HeldMemory(clock)
    attempt = Attempt(task, RepairJudge(task, read_answer(task), runner), memory, clock)
    attempt.start(Enrolment())
    controller = AttemptController(owner, attempt)
    yield Solving(owner, runner, memory, attempt, controller)
    controller.close()


# Calls


def test_a_call_is_told_of_begun_and_finished(solving: Solving) -> None:
    solving.read()
    assert solving.controller.calling
    solving.until_back()
    (begun,), (finished,) = solving.owner.of(CallBegun), solving.owner.of(CallFinished)
    assert begun.tool is solving.tool("read_file")
    assert begun.words == "read_file shop/prices.py"
    assert "def discount" in finished.result.text
    kinds = [type(message) for message in solving.owner.messages]
    assert kinds.index(CallBegun) < kinds.index(StateChanged) < kinds.index(CallFinished)
    assert not solving.controller.busy
    assert solving.controller.tool is None


def test_a_run_tells_its_progress_and_what_failed_so_far(solving: Solving) -> None:
    solving.submit()
    solving.until_back()
    last = solving.owner.of(CallProgressed)[-1]
    assert last.progress.done == last.progress.total == len(CHECKS)
    state = solving.attempt.state
    assert state.last is not None
    assert not state.last.solved
    assert last.failed.count > 0
    assert last.failed.first in CHECKS
    solving.submit(REPAIR)
    solving.until_back()
    assert solving.owner.of(CallProgressed)[-1].failed.count == 0, "each run counts its own"


def test_a_test_that_ends_with_an_error_has_failed_so_far(
    solving: Solving, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_checks = solving.runner.run

    def run_with_errors(request: RunRequest, *, run: RunContext = UNATTENDED) -> SuiteReport:
        def report(progress: RunProgress) -> None:
            latest = progress.latest
            if latest is not None and latest.outcome is Outcome.FAILED:
                progress = replace(progress, latest=replace(latest, outcome=Outcome.ERROR))
            run.progress(progress)

        return run_checks(request, run=RunContext(run.cancel, report))

    monkeypatch.setattr(solving.runner, "run", run_with_errors)
    solving.submit()
    solving.until_back()
    state = solving.attempt.state
    assert state.last is not None
    assert solving.owner.of(CallProgressed)[-1].failed.count == len(state.last.failing) > 0


def test_a_run_can_be_cancelled_and_counts_all_the_same(solving: Solving) -> None:
    with solving.running():
        assert solving.controller.cancellable
        assert not solving.controller.yielding
        assert solving.controller.tool is solving.tool("submit_attempt")
        solving.controller.cancel()
        solving.until_back()
    assert not solving.controller.cancellable
    assert solving.attempt.state.remaining.submissions == 3
    assert solving.owner.of(CallFinished)[-1].result is not None


def test_a_call_that_runs_no_code_is_not_cancellable(solving: Solving) -> None:
    with solving.held_before("tool_result", solving.read):
        assert solving.controller.calling
        assert not solving.controller.cancellable


def test_why_no_call_could_be_made_is_told(solving: Solving) -> None:
    solving.attempt.give_up(GiveUpCode.OTHER)
    solving.read()
    solving.owner.take(lambda: solving.owner.of(CallFailed))
    assert isinstance(solving.owner.of(CallFailed)[0].error, AttemptError)
    solving.owner.take(lambda: not solving.controller.calling)


def test_a_call_that_a_process_left_is_finished_under_its_own_name(solving: Solving) -> None:
    with solving.held_before("tool_result", solving.read):
        clock, events = FakeClock(boot="boot-2"), list(solving.memory.events)
    memory = Memory(clock, events)
    attempt = Attempt(solving.attempt.task, solving.attempt.judge, memory, clock, events=events)
    attempt.resume_process()
    owner = FakeOwner()
    controller = AttemptController(owner, attempt)
    assert controller.tool is not None
    controller.finish_pending()
    owner.take(lambda: owner.of(CallFinished) and not controller.calling)
    assert owner.of(CallBegun)[0].words == "finishing the call under way"
    assert owner.of(CallBegun)[0].tool.name == "read_file"
    assert attempt.state.pending is None
    controller.close()


# Requests that wait for a call


def test_what_is_asked_for_between_calls_is_done_at_once(solving: Solving) -> None:
    assert solving.controller.when_free(solving.note("now"))
    assert solving.done == ["now"]


def test_the_last_thing_asked_for_during_a_short_call_is_done_when_it_came_back(solving: Solving) -> None:
    with solving.held_before("tool_result", solving.read):
        assert solving.controller.when_free(solving.note("first"))
        assert solving.controller.when_free(solving.note("second"))
        assert solving.done == []
    solving.until_back()
    assert solving.done == [], "only the screen knows when the end of the call is shown"
    solving.controller.run_waiting()
    solving.controller.run_waiting()
    assert solving.done == ["second"]


def test_nothing_waits_for_code_that_runs(solving: Solving) -> None:
    with solving.running():
        assert not solving.controller.when_free(solving.note("never"))
    solving.until_back()
    solving.controller.run_waiting()
    assert solving.done == []


def test_a_run_that_is_answered_already_is_waited_for(solving: Solving) -> None:
    answered, free = threading.Event(), threading.Event()

    def hold(event: JournalEvent, state: object) -> None:
        if event.type == "tool_result":
            answered.set()
            assert free.wait(PATIENCE_S)

    solving.attempt.subscribe(hold)
    solving.submit()
    assert answered.wait(PATIENCE_S)
    assert solving.controller.calling
    assert solving.controller.when_free(solving.note("after"))
    assert solving.done == []
    free.set()
    solving.until_back()
    solving.controller.run_waiting()
    assert solving.done == ["after"]


def test_a_run_of_another_process_that_is_answered_already_is_waited_for(solving: Solving) -> None:
    with solving.held_before("test_run", solving.submit):
        clock, events = FakeClock(boot="boot-2"), list(solving.memory.events)
    memory = HeldMemory(clock, events)
    attempt = Attempt(solving.attempt.task, solving.attempt.judge, memory, clock, events=events)
    attempt.resume_process()
    owner = FakeOwner()
    controller = AttemptController(owner, attempt)
    resumed = Solving(owner, solving.runner, memory, attempt, controller)
    answered, free = threading.Event(), threading.Event()

    def hold(event: JournalEvent, state: object) -> None:
        if event.type == "tool_result":
            answered.set()
            assert free.wait(PATIENCE_S)

    attempt.subscribe(hold)
    controller.finish_pending()
    assert answered.wait(PATIENCE_S)
    assert controller.when_free(resumed.note("after"))
    assert resumed.done == []
    free.set()
    resumed.until_back()
    controller.run_waiting()
    assert resumed.done == ["after"]
    controller.close()


def test_an_earlier_answer_is_not_that_of_the_run_under_way(solving: Solving) -> None:
    solving.read()
    solving.until_back()
    with solving.held_before("tool_call", solving.submit):
        assert not solving.controller.when_free(solving.note("never"))
    solving.until_back()
    assert solving.done == []


def test_a_call_that_yields_is_stopped_for_another_one(solving: Solving) -> None:
    with solving.running(yields=True):
        assert solving.controller.yielding
        solving.controller.make_way(solving.note("way"))
        assert solving.done == []
        solving.until_back()
    solving.controller.run_waiting()
    assert solving.done == ["way"]


def test_a_call_that_does_not_yield_is_not_stopped(solving: Solving) -> None:
    with solving.running():
        solving.controller.make_way(solving.note("beside"))
        assert solving.done == ["beside"]
        assert solving.controller.calling


# Other events


def test_events_are_written_in_the_order_they_were_asked_for(solving: Solving) -> None:
    solving.controller.view(Pane.EDITOR)
    solving.controller.edited("shop/prices.py::discount", "def discount(): ...\n")
    solving.controller.noted("look at the rounding")
    solving.controller.after_writing(solving.note("written"))
    solving.owner.take(lambda: solving.done)
    assert solving.attempt.state.notes == "look at the rounding"
    assert solving.types()[-3:] == ["view", "edit_buffer", "note"]


def test_affordances_are_counted_and_written_once(solving: Solving) -> None:
    for kind in ("scroll", "search", "scroll"):
        solving.controller.use_affordance(kind)
    assert "comfort" not in solving.types()
    solving.controller.flush()
    solving.controller.flush()
    solving.controller.after_writing(solving.note("written"))
    solving.owner.take(lambda: solving.done)
    assert dict(solving.attempt.state.affordances) == {"scroll": 2, "search": 1}
    assert solving.types().count("comfort") == 2


def test_a_function_is_marked_and_the_mark_taken_back(solving: Solving) -> None:
    for count in (1, 0):
        solving.controller.suspect("shop/prices.py::discount")
        solving.controller.after_writing(solving.note("written"))
        solving.owner.take(lambda: solving.done)
        solving.done.clear()
        assert len(solving.attempt.state.suspects) == count


def test_a_failure_to_write_is_told_unless_the_attempt_takes_no_more(solving: Solving) -> None:
    def refuses() -> None:
        raise AttemptError("It is over.")

    def breaks() -> None:
        raise OSError("The disk is full.")

    solving.controller.write(refuses)
    solving.controller.write(breaks)
    solving.owner.take(lambda: solving.owner.of(CallFailed))
    solving.controller.write(breaks, failed=lambda error: solving.done.append(str(error)))
    solving.owner.take(lambda: solving.done)
    (failed,) = solving.owner.of(CallFailed)
    assert isinstance(failed.error, OSError)
    assert solving.done == ["The disk is full."]


# A recorded attempt


def test_a_recorded_attempt_is_played_and_nothing_else_begins_meanwhile(solving: Solving) -> None:
    steps = [
        {"kind": "note", "text": "as recorded"},
        {"kind": "tool_call", "tool": "read_file", "arguments": READ},
    ]
    with solving.held_before("tool_result", lambda: solving.controller.play(steps, 1.0)):
        assert solving.controller.playing
        assert solving.controller.busy
        assert not solving.controller.when_free(solving.note("never"))
    solving.owner.take(lambda: len(solving.owner.of(StepPlayed)) == 2 and not solving.controller.playing)
    first, second = solving.owner.of(StepPlayed)
    assert first.result is None
    assert "def discount" in second.result.text
    assert solving.done == []


# Leaving


def test_what_waits_is_written_before_the_attempt_is_left(solving: Solving) -> None:
    solving.controller.use_affordance("scroll")
    for number in range(20):
        solving.controller.edited("shop/prices.py::discount", f"# {number}\n")
    solving.controller.close()
    assert solving.attempt.state.buffers == {"shop/prices.py::discount": "# 19\n"}
    assert dict(solving.attempt.state.affordances) == {"scroll": 1}
    written = len(solving.memory.events)
    solving.controller.noted("too late")
    solving.controller.close()
    assert len(solving.memory.events) == written


def test_a_run_that_is_left_is_stopped_and_stays_unanswered(solving: Solving) -> None:
    with solving.running():
        solving.controller.when_free(solving.note("never"))
        before = len(solving.owner.messages)
        solving.controller.close()
        until = threading.Event()
        threading.Thread(target=lambda: (solving.controller._calls.finish(PATIENCE_S), until.set())).start()
        assert until.wait(PATIENCE_S)
    assert solving.attempt.state.pending is not None, "the next process makes the call again"
    assert "tool_result" not in solving.types()
    solving.controller.run_waiting()
    assert solving.done == []
    assert not [m for m in solving.owner.messages[before:] if isinstance(m, CallFinished)]


def test_what_was_to_follow_a_call_does_not_once_the_attempt_is_left(solving: Solving) -> None:
    with solving.held_before("tool_result", solving.read):
        assert solving.controller.when_free(solving.note("never"))
        solving.memory.free.set()
    solving.controller.close()
    solving.controller.run_waiting()
    assert solving.done == []


def test_a_recorded_attempt_that_is_left_plays_no_further(solving: Solving) -> None:
    steps = [{"kind": "note", "text": "first"}, {"kind": "note", "text": "second", "think_s": 600}]
    solving.controller.play(steps, 1.0)
    solving.owner.take(lambda: solving.owner.of(StepPlayed))
    solving.controller.close()
    assert not solving.controller.playing
    assert solving.attempt.state.notes == "first"
