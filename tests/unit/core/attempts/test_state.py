"""The fold is pure, the same in pieces as at once, and tolerates unknown events."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.attempts.clock import ClockActivity
from gistpoint.core.attempts.events import EVENTS, JournalEvent, Pane, event_data
from gistpoint.core.attempts.revealed import Knowledge
from gistpoint.core.attempts.state import AttemptState, fold
from gistpoint.core.chat import Usage
from gistpoint.core.tools.declaration import Revealed

TEXT = st.text(max_size=6)


def test_the_time_of_a_failed_request_is_not_the_models() -> None:
    events = [
        JournalEvent(number, type, at, at, event_data(type, data))
        for number, (at, type, data) in enumerate([
            (0, "view", {"pane": "model"}),
            (9_000, "request_failed", {"problem": "timed_out", "duration_ms": 8_000}),
            (9_500, "request_failed", {"problem": "timed_out", "duration_ms": 99_000}),
        ])
    ]  # fmt: skip
    first, last = fold(events[:2]).clock, fold(events).clock
    assert (first.thinking, first.waiting) == (1_000, 8_000)
    assert (last.thinking, last.waiting, last.active) == (0, 9_500, 0)


CALLS = st.integers(1, 5).map("call-{}".format)


def of(type: str, **data: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    return st.tuples(st.just(type), st.fixed_dictionaries(data))


BUDGET = st.fixed_dictionaries({"tool_uses": st.integers(0, 16), "submissions": st.integers(0, 4)})
ANY = st.one_of(
    of("attempt_started", budgets=BUDGET),
    of("process_started"),
    of("view", pane=st.sampled_from([p.value for p in Pane]) | TEXT),
    of("tool_call", call_id=CALLS, tool=TEXT),
    of(
        "tool_result",
        call_id=CALLS,
        text=TEXT,
        budget=BUDGET,
        revealed=st.just({"entries": [["a/b.py", "file"]], "files": ["a/b.py"]}),
    ),
    of(
        "submit",
        call_id=CALLS,
        replacement=st.fixed_dictionaries({"path": TEXT, "qualname": TEXT, "code": TEXT}),
        persistent=st.booleans(),
    ),
    of("test_run", call_id=CALLS, status=TEXT, failures=st.just([["a", "b"]])),
    of("score", call_id=CALLS, score=st.floats(0, 1), solved=st.booleans()),
    of("pause", reason=TEXT),
    of("resume"),
    of("note", text=TEXT),
    of("comfort", kind=TEXT),
    of("heartbeat"),
    of("edit_buffer", buffer=TEXT, text=TEXT),
    of("suspect", function=TEXT, marked=st.booleans()),
    of("idle_prompt", answer=TEXT | st.sampled_from(["worked", "away"]), idle_ms=st.integers(0, 10**6)),
    of("idle_prompt", stage=st.just("asked"), since_mono_ms=st.integers(0, 2_000_000)),
    of("idle_prompt", stage=st.sampled_from(["covered", "input"]) | TEXT),
    of("model_turn", turn=st.integers(1, 9), content=TEXT, usage=st.just({"prompt": 3, "completion": 1})),
    of("handover", to=st.sampled_from(["person", "model"])),
    of("attempt_ended", reason=TEXT),
    of("questionnaire"),
    of("correction"),
    of("crash"),
    of("from_the_future", anything=TEXT),
)
TAPES = st.lists(st.tuples(ANY, st.integers(0, 10_000)), max_size=20)


def events_of(tape: list[tuple[tuple[str, dict[str, Any]], int]]) -> list[JournalEvent]:
    events, now = [], 1_000_000
    for number, ((type, data), ms) in enumerate(tape, start=1):
        now += ms
        events.append(JournalEvent(number, type, now, now, event_data(type, data)))
    return events


@given(tape=TAPES, cut=st.integers(0, 20))
def test_folding_a_beginning_and_then_the_rest_equals_folding_the_whole(tape: Any, cut: int) -> None:
    events = events_of(tape)
    whole = fold(events)
    assert fold(events[cut:], fold(events[:cut])) == whole
    assert fold(events) == whole
    assert whole.events == len(events)


@given(tape=TAPES.filter(bool), at=st.integers(1, 20), type=st.text(min_size=1, max_size=12))
def test_unknown_types_are_counted_and_change_nothing_else(tape: Any, at: int, type: str) -> None:
    if type in EVENTS:
        return
    events = events_of(tape)
    now = events[min(at, len(events)) - 1].utc_ms
    stranger = JournalEvent(99, type, now, now, event_data(type, {"text": "from another version"}))
    plain, mixed = fold(events), fold([*events[:at], stranger, *events[at:]])
    assert (mixed.unknown, mixed.events) == (plain.unknown + 1, plain.events + 1)
    for name in (
        "calls",
        "submissions",
        "replacements",
        "notes",
        "pause",
        "ending",
        "remaining",
        "knowledge",
        "buffers",
    ):
        assert getattr(mixed, name) == getattr(plain, name)


@given(tape=TAPES)
def test_fold_leaves_the_events_and_earlier_states_alone(tape: Any) -> None:
    events = events_of(tape)
    copies = [repr(event) for event in events]
    states = [fold(events[:n]) for n in range(len(events) + 1)]
    shown = [repr(state) for state in states]
    fold(events)
    assert [repr(event) for event in events] == copies
    assert [repr(state) for state in states] == shown


def test_last_and_best_submissions_are_told_apart() -> None:
    tape: list[tuple[tuple[str, dict[str, Any]], int]] = []
    for number, (score, counts) in enumerate(
        [(0.5, True), (0.8, True), (0.8, True), (0.2, True), (1.0, False)], start=1
    ):
        call = f"call-{number}"
        tape += [
            (("tool_call", {"call_id": call, "tool": "submit_attempt"}), 10),
            (
                (
                    "submit",
                    {"call_id": call, "replacement": {"path": "a", "qualname": "f", "code": str(number)}},
                ),
                0,
            ),
            (("test_run", {"call_id": call, "status": "finished", "counts": counts}), 0),
            (("score", {"call_id": call, "score": score}), 0),
            (("tool_result", {"call_id": call}), 0),
        ]
    state = fold(events_of(tape))
    assert len(state.submissions) == 5
    assert state.last is not None
    assert state.best is not None
    assert (state.last.number, state.last.score) == (4, 0.2)
    assert (state.best.number, state.best.score) == (2, 0.8)


def test_a_submission_that_solved_is_better_than_one_with_the_same_score() -> None:
    """All tests pass with all of them, but the first left a corrupted function unchanged."""
    tape: list[tuple[tuple[str, dict[str, Any]], int]] = []
    for number, solved in enumerate([False, True, True], start=1):
        call = f"call-{number}"
        tape += [
            (("tool_call", {"call_id": call, "tool": "replace_function"}), 10),
            (
                (
                    "submit",
                    {"call_id": call, "replacement": {"path": "a", "qualname": "f", "code": str(number)}},
                ),
                0,
            ),
            (("test_run", {"call_id": call, "status": "finished", "counts": True}), 0),
            (("score", {"call_id": call, "score": 1.0, "solved": solved}), 0),
            (("tool_result", {"call_id": call}), 0),
        ]
    state = fold(events_of(tape))
    assert state.best is not None
    assert (state.best.number, state.best.solved) == (2, True)


def test_a_submission_whose_run_is_not_over_is_no_result_yet() -> None:
    state = fold(
        events_of(
            [
                (("tool_call", {"call_id": "call-1", "tool": "submit_attempt"}), 10),
                (
                    (
                        "submit",
                        {"call_id": "call-1", "replacement": {"path": "a", "qualname": "f", "code": "1"}},
                    ),
                    0,
                ),
            ]
        )
    )
    assert len(state.submissions) == 1
    assert (state.last, state.best) == (None, None)


def test_empty_attempt_has_nothing() -> None:
    state = AttemptState()
    assert (state.attempt_id, state.pending, state.last, state.best, state.solved, state.ended) == (
        "",
        None,
        None,
        None,
        False,
        False,
    )


def test_knowledge_is_what_results_have_shown() -> None:
    known = Knowledge().with_revealed(Revealed(entries=(("pkg/deep/mod.py", "file"),)), "call-1")
    assert known.children("") == [("pkg", "dir")]
    assert known.children("pkg/deep") == [("pkg/deep/mod.py", "file")]
    assert known.listed == {}
    more = known.with_revealed(Revealed(listed=("pkg",), functions=(("pkg/deep/mod.py::f", 1, 3),)), "call-2")
    assert more.listed == {"pkg": "call-2"}
    assert more.functions["pkg/deep/mod.py::f"].end == 3
    assert known.functions == {}


@given(tape=TAPES.filter(bool))
def test_every_millisecond_is_counted_once_whatever_is_asked_and_answered(tape: Any) -> None:
    events = events_of([item for item in tape if item[0][0] != "process_started"] or [(("heartbeat", {}), 0)])
    clock = fold(events).clock
    assert sum(clock.of(activity) for activity in ClockActivity) == events[-1].mono_ms - events[0].mono_ms
    assert all(clock.of(activity) >= 0 for activity in ClockActivity)


def turn(number: int, seq: int, **members: Any) -> JournalEvent:
    return JournalEvent(seq, "model_turn", 0, 0, event_data("model_turn", {"turn": number, **members}))


def test_what_a_model_spent_is_the_sum_of_its_turns_with_the_tries_that_were_lost() -> None:
    events = [
        turn(
            1, 1, usage={"prompt": 100, "completion": 7, "cached": 50, "cost_usd": 0.5}, retried=["timed_out"]
        ),
        turn(
            2,
            2,
            usage={"prompt": 200, "completion": 3, "reasoning": 2},
            lost={"prompt": 40, "estimated": True},
        ),
        JournalEvent(
            3, "tool_call", 0, 0, event_data("tool_call", {"call_id": "c", "tool": "x", "malformed": "y"})
        ),
    ]
    spent = fold(events).spent
    assert (spent.turns, spent.retried, spent.malformed) == (2, 1, 1)
    assert spent.usage == Usage(340, 10, cost_usd=0.5, estimated=True, cached_tokens=50, reasoning_tokens=2)


def test_an_attempt_that_a_person_and_a_model_had_is_mixed() -> None:
    start = JournalEvent(1, "attempt_started", 0, 0, event_data("attempt_started", {"actor": "model"}))
    taken = JournalEvent(2, "handover", 0, 0, event_data("handover", {"to": "person", "by": "p1"}))
    back = JournalEvent(3, "handover", 0, 0, event_data("handover", {"to": "model"}))
    assert (fold([start]).drivers, fold([start]).mixed) == (("model",), False)
    state = fold([start, taken, back])
    assert (state.drivers, state.mixed) == (("model", "person"), True)
