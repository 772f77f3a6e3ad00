"""Sessions of Copilot CLI: a reply has its reasoning, its calls and their results; side agents are marked."""

from __future__ import annotations

from pathlib import Path

from recorded_runs.assistants import copilot_events
from recorded_runs.written import answers, written_lines

from gistpoint.sessions.records.model import Actor, StepKind, Tokens


def test_calls_are_paired_by_id_across_a_side_agent(tmp_path: Path) -> None:
    run = written_lines(tmp_path / "events", copilot_events())
    steps = list(run.steps())
    assert [step.kind for step in steps] == [
        StepKind.STATE, StepKind.TASK, StepKind.TEST, StepKind.VIEW, StepKind.END
    ]  # fmt: skip
    reply, side = steps[2], steps[3]
    assert (reply.thought, reply.text, reply.id) == ("hm", "I test", "m1")
    assert answers(reply) == [("bash", "1 failed\nexit code 1", True), ("task", "it is in a.py", False)]
    assert reply.results[0].duration_s == 0.04
    assert (reply.flags, side.flags) == (frozenset({"error"}), frozenset({"side"}))
    assert [noted.text for noted in steps[1].also] == ["<now>Fix the mean</now>"]
    header = run.header
    assert (header.id, header.model, header.exit_status) == ("s1", "model-x", "routine")
    assert (header.tokens, header.duration_s) == (Tokens(90, 14, 7), 12.0)


def test_what_a_hook_did_joins_the_reply_that_it_ran_beside(tmp_path: Path) -> None:
    events = copilot_events()
    plain = list(written_lines(tmp_path / "plain", events).steps())
    told = [
        {"type": "hook.start", "data": {"hookType": "postToolUse", "input": {"note": "tidied by a hook"}}},
        {"type": "hook.end", "data": {"hookType": "postToolUse", "success": True}},
        {"type": "hook.end", "data": {"hookType": "postToolUse", "success": False, "error": "exit 1"}},
    ]
    at = next(number for number, event in enumerate(events) if event["type"] == "tool.execution_complete")
    steps = list(written_lines(tmp_path / "events", [*events[:at], *told, *events[at:]]).steps())
    assert len(steps) == len(plain) + 1
    assert "tidied by a hook" in [noted.text for noted in steps[3].also]
    assert len(steps[3].records) == len(plain[3].records) + 2


def test_an_unfinished_session_counts_what_its_replies_say(tmp_path: Path) -> None:
    run = written_lines(tmp_path / "events", copilot_events()[:8])
    assert (run.header.tokens.completion, run.header.exit_status) == (12, "")
    assert answers(run.step(2)) == [None, None]


def test_events_that_nobody_knows_are_shown_raw_and_lone_results_are_marked(tmp_path: Path) -> None:
    events = copilot_events()
    events[1]["type"] = "weather.changed"
    del events[4]
    steps = list(written_lines(tmp_path / "events", events).steps())
    assert steps[1].kind is StepKind.UNKNOWN
    started = next(step for step in steps if any(call.id == "c1" for call in step.calls))
    assert [result.call_id for result in started.results] == ["c1"]
    lone = next(step for step in steps if any(result.call_id == "c2" for result in step.results))
    assert (lone.actor, lone.flags) == (Actor.ENVIRONMENT, frozenset({"unpaired"}))
