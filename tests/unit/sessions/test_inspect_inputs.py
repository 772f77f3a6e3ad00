"""Inspect logs: additions to a model's input are steps, and the missing parts of an archive are named."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from recorded_runs.inspect_logs import inspect_chunked, inspect_header

from gistpoint.sessions.records.model import Actor, StepKind
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import open_run
from gistpoint.tui.cli import main

WRONG = "Your submission was incorrect. Please proceed."


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


def model(messages: list[Any], reply: dict[str, Any], at: int) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 3}
    return {
        "event": "model", "model": "m", "uuid": f"m{at}", "input": messages,
        "timestamp": f"2026-06-10T18:23:{at:02}+00:00", "completed": f"2026-06-10T18:23:{at + 1:02}+00:00",
        "output": {"choices": [{"message": reply}], "usage": usage},
    }  # fmt: skip


def conversation() -> tuple[list[Any], list[Any]]:
    """Return the messages and events of three model calls, with equal user messages after two replies."""
    call = {"id": "c1", "function": "bash", "arguments": {"cmd": "ls"}}
    messages = [
        said("system", "You repair code."), said("user", "Fix the mean"),
        said("assistant", "I look", tool_calls=[call]), said("tool", "stats.py", tool_call_id="c1", function="bash"),
        said("user", WRONG), said("assistant", "Once more"), said("user", WRONG), said("assistant", "Given up"),
    ]  # fmt: skip
    events = [
        {"event": "sample_init", "uuid": "i", "sample": {"input": "Fix the mean", "id": 1}},
        model(messages[:2], messages[2], 1),
        {
            "event": "tool",
            "uuid": "t",
            "id": "c1",
            "function": "bash",
            "arguments": {"cmd": "ls"},
            "result": "stats.py",
        },
        model(messages[:5], messages[5], 5),
        model(messages[:7], messages[7], 9),
    ]
    return messages, events


def log(path: Path, sample: dict[str, Any]) -> RunDocument:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(inspect_header()))
        archive.writestr(
            "samples/1_epoch_1.json", json.dumps({"id": 1, "epoch": 1, "input": "Fix the mean", **sample})
        )
    document = open_run(path)
    document.build()
    return document


def lines(document: RunDocument) -> list[tuple[Actor, str]]:
    return [(step.actor, step.text) for step in document.steps()]


TOLD = [
    (Actor.USER, "Fix the mean"), (Actor.SYSTEM, "You repair code."), (Actor.AGENT, "I look"), (Actor.USER, WRONG),
    (Actor.AGENT, "Once more"), (Actor.USER, WRONG), (Actor.AGENT, "Given up"),
]  # fmt: skip


def test_what_an_input_adds_is_a_step_in_its_place(tmp_path: Path) -> None:
    messages, events = conversation()
    document = log(tmp_path / "a", {"messages": messages, "events": events})
    assert lines(document)[1:] == TOLD[1:]
    assert "Fix the mean" in document.step(0).text
    assert document.step(2).results[0].text == "stats.py"


def test_inputs_that_are_ranges_of_a_pool_give_the_same_steps(tmp_path: Path) -> None:
    messages, events = conversation()
    for event, size in zip([one for one in events if one["event"] == "model"], (2, 5, 7), strict=True):
        event["input"], event["input_refs"] = [], [[0, size]]
    document = log(tmp_path / "a", {"events": events, "events_data": {"messages": messages}})
    assert lines(document)[1:] == TOLD[1:]


def test_messages_that_no_event_has_are_steps_at_the_end(tmp_path: Path) -> None:
    messages, events = conversation()
    later = said("user", "One word more, after all calls.")
    document = log(tmp_path / "a", {"messages": [*messages, later], "events": events})
    assert lines(document)[-1] == (Actor.USER, later["content"])
    assert len(lines(document)) == len(TOLD) + 1


def test_a_prompt_that_a_solver_rewrote_is_a_step(tmp_path: Path) -> None:
    messages, events = conversation()
    rewritten = [messages[0], said("user", "Question: Fix the mean\nAnswer in one word."), *messages[2:]]
    for event, size in zip([one for one in events if one["event"] == "model"], (2, 5, 7), strict=True):
        event["input"] = rewritten[:size]
    document = log(tmp_path / "a", {"messages": rewritten, "events": events})
    assert [text for _, text in lines(document)].count(rewritten[1]["content"]) == 1


def test_search_finds_what_a_user_said_between_the_turns(tmp_path: Path) -> None:
    messages, events = conversation()
    log(tmp_path / "a.eval", {"messages": messages, "events": events})
    assert main(["search", "submission was incorrect", str(tmp_path / "a.eval")]) == 0


def test_what_a_solver_put_an_answer_in_the_place_of_is_also_recorded(tmp_path: Path) -> None:
    event = model([said("user", "Which?")], said("assistant", "42"), 1)
    event["call"] = {"request": {"messages": [said("user", "Which?")]}, "response": {
        "choices": [{"message": said("assistant", "attachment://abc0")}]}}  # fmt: skip
    again = {**model([], said("assistant", "Because"), 2), "call": {"response": {"content": [
        {"type": "text", "text": "Because"}]}}}  # fmt: skip
    document = log(tmp_path / "a.json", {
        "id": 1, "epoch": 1, "input": "Which?", "events": [event, again], "messages": [],
        "attachments": {"abc0": "I think it is 42."}, "scores": {},
    })  # fmt: skip
    first, second = [step for step in document.steps() if step.actor is Actor.AGENT]
    assert (first.text, [(one.path, one.text) for one in first.also]) == (
        "42", [("call.response", "I think it is 42.")])  # fmt: skip
    assert not second.also


def test_time_and_tokens_come_from_the_events_if_the_sample_has_none(tmp_path: Path) -> None:
    messages, events = conversation()
    run = log(tmp_path / "a", {"messages": messages, "events": events}).header
    assert (run.duration_s, run.tokens.prompt, run.tokens.completion) == (9.0, 30, 9)
    assert {"duration_s", "tokens"} <= run.derived


@pytest.mark.parametrize("share", [0.03, 0.3, 0.6])
def test_a_chunked_archive_that_was_cut_off_says_what_is_missing(
    tmp_path: Path, share: float, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = inspect_chunked(tmp_path / "whole.eval").read_bytes()
    cut = tmp_path / "cut.eval"
    cut.write_bytes(whole[: int(len(whole) * share)])
    code = main(["runs", str(cut)])
    out, error = capsys.readouterr()
    assert "Traceback" not in out + error
    assert "damaged at byte 0" not in out + error
    if share < 0.1:
        assert code != 0
        assert str(cut) in error
        return
    assert main(["show", f"{cut}"]) == code == 0
    out = capsys.readouterr().out
    assert "The archive is cut off, or still being written" in out
    document = open_run(cut)
    document.build()
    assert document.step_count
    assert sum(step.kind is StepKind.DAMAGED for step in document.steps()) <= 1
