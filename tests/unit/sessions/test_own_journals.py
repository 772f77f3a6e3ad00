"""An attempt recorded by gistpoint's engine and journal is read like any other run."""

from __future__ import annotations

import json
from pathlib import Path

from acted_attempts import acted
from builders import CHECKS, build_task
from fakes import FakeClock, FakeRunner

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import Pane, PauseReason
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.records.model import Actor, StepKind, Tokens
from gistpoint.sessions.runs.opening import list_runs, open_run

CODE = "def discount(price, percent):\n    return price - price * percent // 100\n"


def test_a_recorded_attempt_opens(tmp_path: Path) -> None:
    task = build_task(tmp_path / "tasks")
    clock = FakeClock()
    store = AttemptStore(tmp_path / "attempts", clock, "test")
    recorded = store.start(
        task, RepairJudge(task, read_answer(task), FakeRunner(CHECKS)), Enrolment(participant="p7")
    )
    clock.advance(2_000)
    shown = recorded.attempt.call("read_file", {"file_path": "shop/prices.py"}, thought="look")
    clock.advance(3_000)
    recorded.attempt.call("submit_attempt", {"func_code": CODE})
    recorded.close()

    (listed,) = list_runs([tmp_path / "attempts"])
    assert listed.header is not None
    document = open_run(Path(listed.name).parent)
    steps = list(document.steps())
    run = document.header
    assert (run.format, run.actor, run.agent, run.task) == ("gistpoint", Actor.PERSON, "p7", task.id)
    assert (run.verdict, run.exit_status, run.submissions, run.duration_s) == ("solved", "solved", 1, 5.0)
    assert run.submission.strip() == CODE.strip()
    calls = [step for step in steps if step.calls]
    assert [step.kind for step in calls] == [StepKind.VIEW, StepKind.SUBMIT]
    assert (calls[0].thought, calls[0].results[0].text) == ("look", shown.text)
    assert calls[1].state["score"] == {"score": 1.0, "solved": True, "changed": ["shop/prices.py::discount"]}
    assert [step.kind for step in steps if step.kind in (StepKind.UNKNOWN, StepKind.DAMAGED)] == []
    assert not document.warnings


def test_what_a_person_did_is_a_step_and_what_accompanies_it_is_folded(tmp_path: Path) -> None:
    task = build_task(tmp_path / "tasks")
    clock = FakeClock()
    store = AttemptStore(tmp_path / "attempts", clock, "test")
    judge = RepairJudge(task, read_answer(task), FakeRunner(CHECKS))
    opened = store.start(task, judge, Enrolment(participant="p7"))
    attempt = opened.attempt

    def live(attempt: Attempt) -> None:
        for pane in (Pane.CODE, Pane.EDITOR):
            clock.advance(5_000)
            attempt.view(pane)
            attempt.heartbeat()
        attempt.edit("shop/prices.py::discount", f"draft {clock.utc_ms()}")
        attempt.use_affordance("scroll", 3)

    live(attempt)
    attempt.call("read_file", {"file_path": "shop/prices.py"})
    live(attempt)
    for text in ("w", "wh", "why"):
        attempt.note(text)
        attempt.heartbeat()
    attempt.pause(PauseReason.BREAK, "coffee")
    clock.advance(61_000)
    attempt.heartbeat()
    attempt.resume()
    live(attempt)
    clock.advance(120_000)
    attempt.ask_idle(clock.mono_ms() - 120_000)
    clock.advance(10_000)
    attempt.heartbeat()
    attempt.input_again()
    attempt.answer_idle(away=True)
    attempt.pasted("return width * depth", outside=True)
    attempt.suspect("shop/prices.py::discount")
    opened.close()
    again = store.resume(attempt.state.attempt_id, task, judge)
    live(again.attempt)
    again.attempt.call("submit_attempt", {"func_code": CODE})
    again.close()
    document = open_run(store.folder(attempt.state.attempt_id))
    steps = list(document.steps())
    assert [
        (step.kind.value, step.label, step.text.partition("\n")[0]) for step in steps if not step.calls
    ] == [
        ("task", "attempt_started", "# Repair a function whose body was removed"),
        ("note", "note", "why"),
        ("pause", "pause", "break"),
        ("pause", "idle_prompt", "for 130 s"),
        ("state", "comfort", "20 characters pasted, never shown, from outside"),
        ("note", "suspect", "shop/prices.py::discount"),
        ("state", "process_started", "the program was started again"),
        ("end", "attempt_ended", "solved"),
    ]
    assert [step.label for step in steps if step.calls] == ["read_file", "submit_attempt"]
    assert len(steps) == 10
    assert steps[2].state["folded"] == {"heartbeat": 3}
    assert "coffee" in steps[3].text
    assert "for 61 s" in steps[3].text
    assert "I was away" in steps[4].text
    assert steps[1].ended == steps[1].started
    assert sum(len(step.records) for step in steps) == document.record_count


def test_journals_of_earlier_versions_open_the_same_way(tmp_path: Path) -> None:
    events = [
        ("attempt_started", {"attempt_id": "a", "actor": "person", "task_id": "t", "mode": "remove"}),
        ("process_started", {"boot_id": "b"}),
        ("heartbeat", {}),
        ("idle_prompt", {"idle_ms": 150_000, "answer": "worked"}),
        ("view", {"pane": "tree"}),
        ("edit_buffer", {"buffer": "x", "text": "y"}),
    ]
    lines = [
        json.dumps({"seq": n, "type": type, "utc_ms": n, "mono_ms": n, "prev": "", "data": data})
        for n, (type, data) in enumerate(events, start=1)
    ]
    path = tmp_path / "journal.jsonl"
    path.write_text("\n".join(lines) + "\n")
    steps = list(open_run(path).steps())
    assert [(step.label, step.text) for step in steps] == [
        ("attempt_started", "The journal does not contain the brief: it was made by an earlier version."),
        ("idle_prompt", "for 150 s\nanswered: I was working"),
    ]
    assert steps[0].state["attempt"]["task_id"] == "t"


def test_malformed_calls_are_shown_as_they_came(tmp_path: Path) -> None:
    task = build_task(tmp_path / "tasks")
    store = AttemptStore(tmp_path / "attempts", FakeClock(), "test")
    recorded = store.start(
        task, RepairJudge(task, read_answer(task), FakeRunner(CHECKS)), Enrolment(actor="model")
    )
    recorded.attempt.call("read_file", None, raw="<file_path>README.md</file_path>")
    recorded.attempt.call("grep", {"pattern": "x"})
    recorded.close()
    calls = [step for step in open_run(recorded.journal.path.parent).steps() if step.calls]
    assert [(step.calls[0].arguments, step.calls[0].parsed) for step in calls] == [
        ("<file_path>README.md</file_path>", None),
        ('{"pattern": "x"}', {"pattern": "x"}),
    ]
    assert [step.state["malformed"] for step in calls] == ["not_json", "unknown_tool"]
    assert all({"refused", "error"} <= step.flags for step in calls)


def test_what_was_simulated_says_so(tmp_path: Path) -> None:
    task = build_task(tmp_path / "tasks")
    store = AttemptStore(tmp_path / "attempts", FakeClock(), "test")
    for actor in ("simulated", "person"):
        enrolment = Enrolment(actor=actor, participant="P01")
        recorded = store.start(task, RepairJudge(task, read_answer(task), FakeRunner(CHECKS)), enrolment)
        recorded.close()
        header = open_run(recorded.journal.path.parent).header
        assert header.extra.get("simulated", False) is (actor == "simulated")


def test_a_model_s_reply_is_a_step_with_its_tokens_and_its_cost(tmp_path: Path) -> None:
    document = open_run(acted("model", tmp_path).parent)
    said = [step for step in document.steps() if step.label == "model_turn"]
    assert [(step.text, step.thought, step.model) for step in said] == [
        ("Let me look.", "Where?", "m-1"),
        ("Hm.\nNo.", "", ""),
    ]
    assert (said[0].tokens, said[0].cost) == (Tokens(905, 30, 800, 12), 0.01)
    assert said[0].state["calls"] == ["read_file", "grep"]
    assert (document.header.model, document.header.tokens.prompt, document.header.cost) == ("m", 905, 0.01)
    actors = [step.actor for step in document.steps() if step.calls]
    assert actors == [Actor.AGENT, Actor.AGENT, Actor.PERSON]
    assert document.header.extra["mixed"] is True
    handovers = [step.text for step in document.steps() if step.label == "handover"]
    assert handovers == ["to the person\np7", "to the model\np7\nLook at discount."]
