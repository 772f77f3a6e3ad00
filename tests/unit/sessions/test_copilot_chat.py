"""Chats of GitHub Copilot: a step for each round of a request, and one for its question and its failure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recorded_runs.assistants import copilot_request, copilot_running
from recorded_runs.written import written, written_lines

from gistpoint.sessions.formats.copilot.copilot_chat import FORMAT
from gistpoint.sessions.records.model import Actor, StepKind, TextScope, parts_of
from gistpoint.sessions.runs.opening import open_run
from gistpoint.sessions.runs.searching import Query, search_document


def test_a_round_is_a_step_and_its_calls_have_their_results(tmp_path: Path) -> None:
    run = written(
        tmp_path / "chat",
        {"responderUsername": "GitHub Copilot", "requests": [copilot_request(), copilot_running()]},
    )
    steps = list(run.steps())
    assert [(step.actor, step.kind) for step in steps] == [
        (Actor.USER, StepKind.TASK), (Actor.AGENT, StepKind.EDIT), (Actor.AGENT, StepKind.MESSAGE),
        (Actor.USER, StepKind.MESSAGE), (Actor.AGENT, StepKind.TEST), (Actor.AGENT, StepKind.MESSAGE),
    ]  # fmt: skip
    look = steps[1]
    assert [result and result.text for result in map(look.result_of, look.calls)] == ["1: x\n2: y", "made"]
    assert look.edits[0].new == "x = 1"
    assert steps[0].text == "Fix the mean\n[attached: file:a.py]"
    assert [noted.text for noted in steps[0].also] == ["<context>today</context>"]
    assert (steps[2].thought, steps[2].tokens.prompt, steps[2].tokens.completion) == ("short", 900, 12)
    assert [noted.text for noted in steps[2].also] == ["The quota ends soon."]
    test = steps[4]
    assert (test.thought, test.text) == ("hm", "Tests in test_a.py")
    assert (test.results[0].text, test.results[0].returncode, test.flags) == (
        "1 failed",
        1,
        frozenset({"error"}),
    )
    assert steps[5].edits[0].path == "/r/a.py"
    header = run.header
    assert (header.format, header.id, header.model, header.duration_s) == (
        "copilot-chat",
        "s1",
        "copilot/model-x",
        2.5,
    )


def test_a_request_that_failed_ends_with_the_error(tmp_path: Path) -> None:
    failed = copilot_request(errorDetails={"message": "net::ERR_NETWORK_CHANGED"})
    steps = list(
        written(tmp_path / "chat", {"requests": [failed, {**copilot_running(), "isCanceled": True}]}).steps()
    )
    assert (steps[3].kind, steps[3].text) == (StepKind.ERROR, "net::ERR_NETWORK_CHANGED")
    assert steps[-1].kind is StepKind.END


def test_a_session_that_is_stored_as_changes_is_the_session_that_they_lead_to(tmp_path: Path) -> None:
    session = {"sessionId": "s2", "creationDate": 1, "requests": [copilot_running()]}
    changes = [
        {"kind": 0, "v": session},
        {"kind": 1, "k": ["customTitle"], "v": "Mean of nothing, é"},
        {"kind": 2, "k": ["requests", 0, "response"], "i": 2, "v": [{"value": "Nearly"}]},
        {"kind": 2, "k": ["requests"], "v": [copilot_request()]},
        {"kind": 1, "k": ["requests", 0, "message"], "v": "what now?"},
        {"kind": 3, "k": ["creationDate"]},
        {"kind": 2, "k": ["requests", 9, "response"], "v": ["x"]},
    ]
    run = written_lines(tmp_path / "log", changes)
    steps = list(run.steps())
    assert run.header.task == "Mean of nothing, é"
    assert (steps[0].text, steps[1].text) == ("what now?", "Tests in Nearly")
    assert steps[2].text.startswith("Fix the mean")


def test_every_text_of_a_round_is_in_one_step(tmp_path: Path) -> None:
    run = written(tmp_path / "chat", {"requests": [copilot_request()]})
    texts = [text for step in run.steps() for scope, _, text in parts_of(step) if scope is not TextScope.ALSO]
    assert sum("Done." in text for text in texts) == 1
    assert sum("I look" in text for text in texts) == 1


def test_what_comes_after_a_chat_is_a_step_even_if_it_is_no_request(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text("".join(json.dumps({"issue": number, "history": ["x"]}) + "\n" for number in range(2)))
    document = open_run(path, known=FORMAT)
    assert [step.index for step in document.steps()] == [0]
    assert document.header.format == "copilot-chat"


@pytest.mark.parametrize("details", [[{"value": "a = 1"}, {"value": "b = 2"}], {"output": "a = 1\nb = 2"}])
def test_the_output_of_a_call_is_its_result_in_either_form(tmp_path: Path, details: object) -> None:
    request = copilot_running()
    part = next(part for part in request["response"] if part.get("kind") == "toolInvocationSerialized")
    part.pop("toolSpecificData", None)
    part["resultDetails"] = details
    run = written(tmp_path / "chat", {"responderUsername": "GitHub Copilot", "requests": [request]})
    texts = [result.text for step in run.steps() for result in step.results]
    assert any("a = 1" in text and "b = 2" in text for text in texts)
    found = list(search_document(run, Query("b = 2")))
    assert [hit.scope for hit in found] == [TextScope.RESULT]
