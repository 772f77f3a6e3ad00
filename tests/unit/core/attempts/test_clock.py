"""Clocks folded from events: each millisecond belongs to one activity, and none crosses two processes."""

from __future__ import annotations

from typing import Any

import pytest
from fakes import FakeClock
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.attempts.clock import ACTIVE, ClockActivity
from gistpoint.core.attempts.events import JournalEvent, Pane, event_data
from gistpoint.core.attempts.state import AttemptState, advance, fold
from gistpoint.core.machine_time import SystemTime


class Tape:
    """Events as an engine would write them, on a clock that the test advances."""

    def __init__(self) -> None:
        self.time = FakeClock()
        self.events: list[JournalEvent] = []
        self.add("attempt_started", budgets={"tool_uses": 16, "submissions": 4})
        self.add("process_started", boot_id="1")

    def add(self, type: str, after: int = 0, **data: Any) -> Tape:
        self.time.advance(after)
        number, utc_ms, mono_ms = len(self.events) + 1, self.time.utc_ms(), self.time.mono_ms()
        self.events.append(JournalEvent(number, type, utc_ms, mono_ms, event_data(type, data)))
        return self

    def restart(self, away_ms: int, *, mono_ms: int) -> Tape:
        """Start another process, `away_ms` of wall time later, whose monotonic clock shows `mono_ms`."""
        self.time = FakeClock(self.time.utc_ms() + away_ms, mono_ms, "boot-2")
        return self.add("process_started", boot_id="2")

    @property
    def state(self) -> AttemptState:
        return fold(self.events)

    def times(self) -> dict[str, int]:
        clock = self.state.clock
        return {activity.value: ms for activity in ClockActivity if (ms := clock.of(activity))}


def test_time_belongs_to_what_had_the_focus() -> None:
    tape = (
        Tape()
        .add("view", 1_000, pane="code")
        .add("view", 2_000, pane="editor")
        .add("view", 4_000, pane="brief")
    )
    tape.add("heartbeat", 8_000)
    assert tape.times() == {"reading": 9_000, "exploring": 2_000, "editing": 4_000}
    assert tape.state.clock.active == 15_000


def test_who_looks_at_the_brief_again_had_left_it_all_the_same() -> None:
    tape = Tape().add("view", pane="brief")
    assert not tape.state.left_brief
    tape.add("view", pane="code").add("view", pane="brief")
    assert tape.state.left_brief


@pytest.mark.parametrize("pane", list(Pane))
def test_every_pane_has_an_active_clock(pane: Pane) -> None:
    tape = Tape().add("view", pane=pane.value).add("heartbeat", 10)
    assert tape.state.clock.running in ACTIVE
    assert tape.state.clock.active == 10


def test_tools_and_tests_are_waiting_and_no_time_of_the_solver() -> None:
    tape = Tape().add("tool_call", 500, call_id="call-1", tool="read_file").add("heartbeat", 5_000)
    tape.add("view", 100, pane="editor").add("tool_result", 900, call_id="call-1", text="x").add(
        "heartbeat", 30
    )
    assert tape.times() == {"reading": 500, "waiting": 6_000, "editing": 30}
    assert tape.state.calls[0].at_ms == 500


def test_pause_stops_the_clock_until_resumed() -> None:
    tape = Tape().add("pause", 100, reason="break").add("view", 3_000, pane="code").add("resume", 4_000)
    tape.add("heartbeat", 10)
    assert tape.times() == {"reading": 100, "paused": 7_000, "exploring": 10}
    assert tape.state.pause is None


def test_nothing_is_counted_after_the_end() -> None:
    tape = Tape().add("attempt_ended", 100, reason="gave_up").add("note", 60_000, text="x")
    assert tape.state.clock.active == 100


def test_an_attempt_that_was_ended_during_a_call_waits_for_nothing() -> None:
    tape = Tape().add("tool_call", 500, call_id="call-1", tool="read_file")
    tape.add("attempt_ended", 2_000, reason="withdrawn").add("heartbeat", 5_000)
    assert tape.times() == {"reading": 500, "waiting": 2_000, "paused": 5_000}


def test_no_duration_crosses_a_start_of_a_process() -> None:
    for mono in (5, 10_000_000):
        tape = Tape().add("view", 100, pane="code").add("heartbeat", 5_000).restart(3_600_000, mono_ms=mono)
        tape.add("heartbeat", 200)
        assert tape.times() == {"reading": 100, "exploring": 5_200}
        assert tape.state.clock.away == 3_600_000
        assert tape.state.processes == 2


def test_a_pause_outlasts_a_restart() -> None:
    tape = Tape().add("pause", 100, reason="break").restart(9_000, mono_ms=7).add("heartbeat", 50)
    assert tape.state.pause is not None
    assert tape.times() == {"reading": 100, "paused": 50}


def test_wall_clock_set_back_gives_no_negative_time() -> None:
    tape = Tape()
    tape.time = FakeClock(tape.time.utc_ms() - 86_400_000, tape.time.mono_ms() + 40)
    tape.add("heartbeat")
    assert tape.times() == {"reading": 40}
    assert tape.state.clock.asleep == 0
    tape.restart(-10_000, mono_ms=3)
    assert tape.state.clock.away == 0


def test_a_monotonic_clock_that_goes_back_takes_no_time_away() -> None:
    clock = Tape().add("heartbeat", 1_000).state.clock
    assert clock.mono_ms is not None
    assert clock.utc_ms is not None
    assert clock.at(clock.mono_ms - 400, clock.utc_ms).reading == clock.reading == 1_000


def test_sleep_shows_as_a_gap_and_not_as_work() -> None:
    tape = Tape().add("heartbeat", 1_000)
    tape.time = FakeClock(tape.time.utc_ms() + 7_200_000, tape.time.mono_ms() + 3_000)
    tape.add("heartbeat")
    assert tape.times() == {"reading": 4_000}
    assert tape.state.clock.asleep == 7_197_000


def test_small_corrections_of_the_wall_clock_are_no_sleep() -> None:
    tape = Tape()
    tape.time = FakeClock(tape.time.utc_ms() + 2_500, tape.time.mono_ms() + 1_000)
    assert tape.add("heartbeat").state.clock.asleep == 0


@pytest.mark.parametrize(("slept_ms", "asleep"), [(2_000, 0), (2_001, 2_001)])
def test_more_than_two_seconds_are_a_sleep(slept_ms: int, asleep: int) -> None:
    tape = Tape()
    tape.time = FakeClock(tape.time.utc_ms() + 1_000 + slept_ms, tape.time.mono_ms() + 1_000)
    assert tape.add("heartbeat").state.clock.asleep == asleep


def test_idle_answered_away_moves_the_time_and_worked_does_not() -> None:
    tape = Tape().add("view", 1_000, pane="code").add("heartbeat", 180_000)
    worked = Tape().add("view", 1_000, pane="code").add("heartbeat", 180_000)
    tape.add("idle_prompt", 500, answer="away", idle_ms=150_000)
    worked.add("idle_prompt", 500, answer="worked", idle_ms=150_000)
    assert tape.times() == {"reading": 1_000, "exploring": 30_500, "idle": 150_000}
    assert worked.times() == {"reading": 1_000, "exploring": 180_500}


def thinking() -> Tape:
    """Return a tape of ten seconds in the code, two minutes without input, and three after the question."""
    tape = Tape().add("view", 1_000, pane="code").add("heartbeat", 10_000)
    since = tape.time.mono_ms()
    return tape.add("idle_prompt", 120_000, stage="asked", since_mono_ms=since).add("heartbeat", 180_000)


def test_a_question_that_nobody_answers_makes_the_time_since_the_last_input_idle_at_once() -> None:
    tape = thinking()
    assert tape.times() == {"reading": 1_000, "exploring": 10_000, "idle": 300_000}
    tape.add("idle_prompt", 0, stage="input").add("heartbeat", 5_000)
    assert tape.times() == {"reading": 1_000, "exploring": 15_000, "idle": 300_000}


def test_it_stays_idle_after_a_crash_and_nobody_can_answer_for_it_any_more() -> None:
    tape = thinking().restart(9_000, mono_ms=77).add("heartbeat", 1_000)
    tape.add("idle_prompt", 0, answer="worked", idle_ms=300_000)
    assert tape.times() == {"reading": 1_000, "exploring": 11_000, "idle": 300_000}
    assert not tape.state.doubt


def test_who_answers_that_it_was_work_gets_the_time_back_also_later() -> None:
    tape = thinking().add("idle_prompt", 0, stage="input").add("view", 2_000, pane="editor")
    tape.add("idle_prompt", 3_000, answer="worked", idle_ms=300_000).add("heartbeat", 1_000)
    assert tape.times() == {"reading": 1_000, "exploring": 312_000, "editing": 4_000}


def test_several_spans_are_answered_for_together_each_as_what_had_the_focus() -> None:
    tape = (
        thinking().add("idle_prompt", 0, stage="input").add("view", 0, pane="editor").add("heartbeat", 4_000)
    )
    since = tape.time.mono_ms()
    tape.add("idle_prompt", 120_000, stage="asked", since_mono_ms=since).add(
        "idle_prompt", 6_000, stage="input"
    )
    assert tape.state.doubt.total_ms(tape.state.clock) == 426_000
    assert tape.times() == {"reading": 1_000, "exploring": 10_000, "editing": 4_000, "idle": 426_000}
    tape.add("idle_prompt", 0, answer="worked")
    assert tape.times() == {"reading": 1_000, "exploring": 310_000, "editing": 130_000}


def test_nobody_works_behind_the_cover() -> None:
    tape = thinking().add("idle_prompt", 300_000, stage="covered").add("heartbeat", 3_600_000)
    assert tape.times() == {"reading": 1_000, "exploring": 10_000, "idle": 4_200_000}
    tape.add("idle_prompt", 0, answer="worked").add("heartbeat", 1_000)
    assert tape.times() == {"reading": 1_000, "exploring": 611_000, "idle": 3_600_000}


def test_who_was_away_stays_idle_and_works_from_the_answer_on() -> None:
    tape = thinking().add("idle_prompt", 0, answer="away", idle_ms=300_000).add("heartbeat", 1_000)
    assert tape.times() == {"reading": 1_000, "exploring": 11_000, "idle": 300_000}


@pytest.mark.parametrize("since", [-(10**9), 10**12])
def test_the_question_never_takes_more_than_the_pane_has(since: int) -> None:
    tape = (
        Tape().add("view", 1_000, pane="code").add("idle_prompt", 2_000, stage="asked", since_mono_ms=since)
    )
    tape.add("idle_prompt", 500, answer="worked")
    assert sum(tape.times().values()) == 3_500
    assert tape.times()["reading"] == 1_000


@pytest.mark.parametrize("idle_ms", [10_000_000, -5])
def test_idle_never_takes_more_than_there_is(idle_ms: int) -> None:
    tape = Tape().add("view", 1_000, pane="code").add("idle_prompt", 2_000, answer="away", idle_ms=idle_ms)
    assert sum(tape.times().values()) == 3_000
    assert tape.state.clock.exploring >= 0


def test_process_that_dies_loses_at_most_the_time_since_the_last_heartbeat() -> None:
    tape = Tape().add("view", 0, pane="code")
    for _ in range(12):
        tape.add("heartbeat", 5_000)
    tape.time.advance(4_999)
    tape.restart(60_000, mono_ms=1)
    assert tape.state.clock.exploring == 60_000
    assert 64_999 - tape.state.clock.exploring < 5_000


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(
                ["view", "pause", "resume", "tool_call", "tool_result", "heartbeat", "restart", "note"]
            ),
            st.integers(0, 100_000),
            st.sampled_from(list(Pane)),
        ),
        max_size=25,
    )
)
def test_every_millisecond_of_a_process_belongs_to_exactly_one_activity(
    steps: list[tuple[str, int, Pane]],
) -> None:
    tape, lived, calls = Tape(), 0, 0
    for type, ms, pane in steps:
        if type == "restart":
            tape.restart(ms, mono_ms=ms)
            continue
        lived += ms
        calls += type == "tool_call"
        data = {"view": {"pane": pane.value}, "tool_call": {"call_id": f"call-{calls}", "tool": "x"},
                "tool_result": {"call_id": f"call-{calls}"}, "note": {"text": "x"}}.get(type, {})  # fmt: skip
        before = tape.state.clock
        tape.add(type, ms, **data)
        moved = {a: tape.state.clock.of(a) - before.of(a) for a in ClockActivity}
        assert [a for a, change in moved.items() if change] == ([before.running] if ms else [])
    assert sum(tape.times().values()) == lived
    state = AttemptState()
    for event in tape.events:
        state = advance(state, event)
    assert state == tape.state


def test_clock_can_be_asked_between_events() -> None:
    tape = Tape().add("view", 0, pane="editor")
    time = tape.time
    time.advance(1_234)
    assert tape.state.clock.at(time.mono_ms(), time.utc_ms()).editing == 1_234
    assert tape.state.clock.editing == 0


def test_system_time_moves_and_names_its_boot() -> None:
    system = SystemTime()
    assert system.utc_ms() > 1_700_000_000_000
    first = system.mono_ms()
    assert system.mono_ms() >= first
    assert system.boot_id() == SystemTime().boot_id() != ""
