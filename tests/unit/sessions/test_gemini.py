"""Gemini CLI and Qwen Code: calls with answers, retracted messages, and one step for rewritten ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recorded_runs.coding_agents import GEMINI, gemini_messages, gemini_stream, qwen_session

from gistpoint.sessions.formats.gemini.google_parts import google_parts
from gistpoint.sessions.records.model import Actor, StepKind, Tokens
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import linked_name, open_run


def opened(path: Path, records: list[dict[str, Any]]) -> RunDocument:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    document = open_run(path)
    document.build()
    return document


def log(tmp_path: Path, *records: dict[str, Any]) -> RunDocument:
    return opened(tmp_path / "log", [GEMINI, *records])


def test_a_message_is_a_step_with_its_calls(tmp_path: Path) -> None:
    document = log(tmp_path, *gemini_messages())
    session, task, turn, notice, last = document.steps()
    assert (session.kind, task.kind, notice.kind) == (StepKind.STATE, StepKind.TASK, StepKind.NOTE)
    assert task.text == "Fix the mean\n[image: image/png, 6 bytes]"
    assert (turn.kind, turn.thought, turn.model) == (StepKind.EDIT, "**Tests first**\nThey tell.", "gemini-x")
    assert [(result.call_id, result.returncode) for result in turn.results] == [("t1", 1), ("t2", None)]
    assert "error" in turn.flags
    assert turn.diff is not None
    assert "+return 2" in turn.diff
    assert (turn.tokens, last.text) == (Tokens(100, 10, 40, 2), "Mended.")
    assert (document.header.id, document.header.tokens.prompt) == ("gs-1", 200)


def test_an_object_and_a_log_tell_the_same(tmp_path: Path) -> None:
    whole = tmp_path / "object"
    whole.write_text(json.dumps({**GEMINI, "messages": gemini_messages()}, indent=2), encoding="utf-8")
    document = open_run(whole)
    document.build()
    texts = [(step.label, step.text) for step in document.steps()]
    assert texts == [(step.label, step.text) for step in log(tmp_path, *gemini_messages()).steps()][1:]


def test_a_message_that_is_written_again_is_one_step(tmp_path: Path) -> None:
    first, second, *_ = gemini_messages()
    begun = {**second, "toolCalls": [], "tokens": None}
    document = log(tmp_path, first, begun, second, {"$set": {"lastUpdated": "2026-05-01T10:01:00Z"}})
    assert [len(step.calls) for step in document.steps()] == [0, 0, 2]
    assert document.header.tokens.prompt == 100


def test_what_was_taken_back_stays_and_says_so(tmp_path: Path) -> None:
    first, second, third, last = gemini_messages()
    document = log(tmp_path, first, second, third, {"$rewindTo": "g2"}, last)
    assert [(step.label, "taken back" in step.flags) for step in document.steps()][1:] == [
        ("user", False), ("gemini", True), ("info", True), ("$rewindTo", False),
        ("gemini", False),
    ]  # fmt: skip


def test_messages_may_be_replaced(tmp_path: Path) -> None:
    first, second, _, last = gemini_messages()
    summary = {**first, "id": "new", "content": "A summary of what was said"}
    document = log(
        tmp_path, first, second, {"$set": {"messages": [summary, second], "summary": "Short"}}, last
    )
    labels = [(step.label, "taken back" in step.flags) for step in document.steps()][1:]
    assert labels == [
        ("user", True),
        ("gemini", False),
        ("$set", False),
        ("user", False),
        ("gemini", False),
    ]
    assert "Short" in document.step(3).text
    assert document.step(4).text == "A summary of what was said"


def test_a_log_that_grows_is_read_on(tmp_path: Path) -> None:
    records = [GEMINI, *gemini_messages()]
    document = opened(tmp_path / "log", records[:3])
    before = document.step_count
    (tmp_path / "log").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    assert document.grow()
    document.build()
    assert (before, document.step_count, document.step(4).text) == (3, 5, "Mended.")


def test_calls_that_were_cancelled_have_a_result(tmp_path: Path) -> None:
    call = {"id": "c", "name": "read_file", "args": {}, "status": "cancelled", "resultDisplay": "By the user"}
    document = log(
        tmp_path, {"id": "m", "type": "gemini", "timestamp": "2026-05-01T10:00:00Z", "toolCalls": [call]}
    )
    assert [(r.call_id, r.text, r.is_error) for r in document.step(1).results] == [("c", "By the user", True)]


def test_a_side_agent_lies_in_the_folder_of_its_session(tmp_path: Path) -> None:
    call = {"id": "c", "name": "investigate", "args": {}, "status": "success", "agentId": "sub-7"}
    document = log(
        tmp_path, {"id": "m", "type": "gemini", "timestamp": "2026-05-01T10:00:00Z", "toolCalls": [call]}
    )
    (link,) = document.step(1).links
    assert linked_name(str(tmp_path / "log"), link) is None
    side = tmp_path / "gs-1" / "sub-7.jsonl"
    side.parent.mkdir()
    side.write_text(json.dumps({**GEMINI, "kind": "subagent"}) + "\n", encoding="utf-8")
    assert linked_name(str(tmp_path / "log"), link) == str(side)
    assert open_run(side).header.agent == "gemini-cli side agent"


def test_events_of_the_stream_are_joined(tmp_path: Path) -> None:
    document = opened(tmp_path / "out", gemini_stream())
    begun, task, turn, last, end = document.steps()
    assert (begun.kind, task.actor, end.kind) == (StepKind.STATE, Actor.USER, StepKind.END)
    assert (turn.text, turn.kind, len(turn.records)) == ("I will run the tests first.", StepKind.TEST, 4)
    assert [(r.call_id, r.text, r.is_error) for r in turn.results] == [("u1", "No such program", True)]
    assert last.text == "There are none."
    header = document.header
    assert (header.id, header.model, header.exit_status, header.duration_s) == (
        "gs-2",
        "gemini-x",
        "success",
        5.5,
    )
    assert header.tokens == Tokens(50, 6, 4)
    assert not [one for step in document.steps() for one in step.also]


def test_a_session_of_qwen_marks_the_branch_that_was_left(tmp_path: Path) -> None:
    document = opened(tmp_path / "session", qwen_session())
    task, left, rewind, turn = document.steps()
    assert (task.kind, rewind.kind) == (StepKind.TASK, StepKind.CONTEXT)
    assert ("taken back" in left.flags, "taken back" in turn.flags, "taken back" in task.flags) == (
        True,
        False,
        False,
    )
    assert (turn.thought, turn.text, turn.calls[0].id) == ("Think", "I test", "q1")
    assert [(r.text, r.is_error) for r in turn.results] == [("timed out", True)]
    assert (turn.tokens, document.header.model) == (Tokens(12, 3, None, 1), "qwen-x")


def test_what_qwen_counts_joins_what_it_counted_and_a_failed_call_of_the_api_is_an_error(
    tmp_path: Path,
) -> None:
    def counted(name: str, parent: str, event: str, **more: str) -> dict[str, Any]:
        event_of = {"event.name": f"qwen-code.{event}", **more}
        return {"uuid": name, "parentUuid": parent, "sessionId": "qs-1", "type": "system", "subtype": "ui_telemetry",
                "systemPayload": {"uiEvent": event_of}}  # fmt: skip

    records = qwen_session()
    plain = opened(tmp_path / "plain", records)
    told = [counted("t1", "aaaaa", "tool_call", decision="auto_accept"), counted("t2", "t1", "api_response"),
            counted("t3", "t2", "api_error", error_message="429 too many")]  # fmt: skip
    document = opened(tmp_path / "session", [*records, *told])
    *same, failed = document.steps()
    assert [step.text for step in same] == [step.text for step in plain.steps()]
    assert len(same[-1].records) == 5
    assert (failed.kind, failed.text, "error" in failed.flags) == (StepKind.ERROR, "429 too many", True)


def test_parts_of_every_kind_have_a_text() -> None:
    parts = google_parts([
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}}, {"fileData": {"fileUri": "gs://a/b.pdf"}},
        {"codeExecutionResult": {"outcome": "OK", "output": "1"}}, "plain", {"unheard": "of"},
    ])  # fmt: skip
    assert parts.texts == ["print(1)", "[file: gs://a/b.pdf]", "1", "plain", '{\n  "unheard": "of"\n}']
