"""Logs of model APIs: each message once, side calls apart, replies in all forms that logs keep."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from recorded_runs.coding_agents import exchanges

from gistpoint.sessions.formats.api_log.api_log import _answered_at
from gistpoint.sessions.records.model import StepKind, Tokens
from gistpoint.sessions.records.record import Record
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import list_runs, open_run


def opened(path: Path, records: list[Any], number: int = 1) -> RunDocument:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    document = open_run(f"{path}#{number}")
    document.build()
    return document


def test_a_conversation_has_each_message_once(tmp_path: Path) -> None:
    document = opened(tmp_path / "log", exchanges())
    system, task, turn, last = document.steps()
    assert (system.kind, system.text, task.text) == (StepKind.SYSTEM, "You repair code.", "Fix é")
    assert (turn.thought, turn.text, turn.results[0].text) == ("Test first", "I test", "1 failed")
    assert (turn.tokens, turn.state, "error" in turn.flags) == (
        Tokens(15, 2, 5),
        {"stop_reason": "tool_use"},
        True,
    )
    assert (last.text, last.started) == ("Mended.", 1_700_000_006)
    assert document.header.tokens == Tokens(30, 4, 10)
    assert document.header.duration_s == 6
    assert not [one for step in document.steps() for one in step.also]


def test_a_side_call_is_a_run_of_its_own(tmp_path: Path) -> None:
    document = opened(tmp_path / "log", exchanges(), 2)
    assert [step.text for step in document.steps()] == ["Find a title.", "Fix é", "A title"]
    assert [entry.header.tokens.prompt for entry in list_runs([tmp_path / "log"]) if entry.header] == [30, 15]


def as_texts(exchange: dict[str, Any]) -> dict[str, Any]:
    """Return an exchange of a HAR file, with its bodies as strings."""
    request, response = exchange["request"], exchange["response"]
    return {
        "startedDateTime": "2026-05-01T10:00:00Z", "time": 1500,
        "request": {"method": "POST", "postData": {"text": json.dumps(request["body"])}},
        "response": {"status": 200, "content": {"text": json.dumps(response["body"])}},
    }  # fmt: skip


def as_stream(exchange: dict[str, Any]) -> dict[str, Any]:
    """Return an exchange whose reply arrived as events."""
    body = exchange["response"]["body"]
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**body, "content": []}}]
    for number, block in enumerate(body["content"]):
        key, delta = {"text": ("text", "text"), "thinking": ("thinking", "thinking")}.get(
            block["type"], ("input", "partial_json")
        )
        whole = block[key] if isinstance(block[key], str) else json.dumps(block[key])
        empty = {**block, key: {} if key == "input" else ""}
        events.append({"type": "content_block_start", "index": number, "content_block": empty})
        events += [
            {"type": "content_block_delta", "index": number, "delta": {delta: piece}}
            for piece in (whole[:4], whole[4:])
        ]
        events.append({"type": "content_block_stop", "index": number})
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": body["stop_reason"]},
            "usage": {"output_tokens": 2},
        }
    )
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return {"request": exchange["request"], "response": {"status_code": 200, "body_raw": text}}


def as_proxy(exchange: dict[str, Any]) -> dict[str, Any]:
    """Return an exchange of a proxy, with the reply among the request's members."""
    return {**exchange["request"]["body"], "response": exchange["response"]["body"]}


@pytest.mark.parametrize("form", [as_texts, as_stream, as_proxy])
def test_bodies_are_found_in_the_forms_that_logs_have(
    tmp_path: Path, form: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    document = opened(tmp_path / "log", [form(exchange) for exchange in exchanges()])
    assert [step.text for step in document.steps()] == ["You repair code.", "Fix é", "I test", "Mended."]
    assert document.step(2).calls[0].parsed == {"command": "pytest -q"}
    assert document.step(2).results[0].call_id == "tu1"


def called(index: int | None, identity: str = "", name: str = "", arguments: object = "") -> dict[str, Any]:
    """Return a piece of a call in a streamed completion."""
    whole = {"index": index, "id": identity, "function": {"name": name, "arguments": arguments}}
    return {key: value for key, value in whole.items() if value not in ("", None)}


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([called(0, "a", "f", "{"), called(0, "", "", "}")], [("a", "f", "{}")]),
        ([called(0, "a", "f", "{"), called(0, "a", "", "}")], [("a", "f", "{}")]),
        ([called(0, "a", "f", "{"), called(0, "z", "", "}")], [("a", "f", "{}")]),
        ([called(0, "a", "read_"), called(0, "", "file", "{}")], [("a", "read_file", "{}")]),
        ([called(0, "a", "f", {"a": 1})], [("a", "f", '{"a": 1}')]),
        # Two calls, their pieces mixed
        (
            [called(1, "b", "g"), called(0, "a", "f", "{"), called(1, "", "", "[]"), called(0, "", "", "}")],
            [("a", "f", "{}"), ("b", "g", "[]")],
        ),
        # One index for all
        ([called(0, "a", "f", "{}"), called(0, "b", "f", "{}")], [("a", "f", "{}"), ("b", "f", "{}")]),
        (
            [called(0, "", "f", '{"a": 1}'), called(0, "", "f", '{"a": 1}')],
            [("", "f", '{"a": 1}'), ("", "f", '{"a": 1}')],
        ),
        # No index
        (
            [called(None, "a", "f", "{"), called(None, "", "", "}"), called(None, "b", "g", "{}")],
            [("a", "f", "{}"), ("b", "g", "{}")],
        ),
        ([called(None, "a", "f", "{"), called(None, "a", "", "}")], [("a", "f", "{}")]),
        (
            [called(None, "", "f", '{"a": 1}'), called(None, "", "f", '{"a": 1}')],
            [("", "f", '{"a": 1}'), ("", "f", '{"a": 1}')],
        ),
    ],
)
def test_pieces_of_calls_belong_together_by_index_and_id(
    pieces: list[dict[str, Any]], expected: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]} for piece in pieces]
    text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    asked = {"model": "m", "messages": [{"role": "user", "content": "Go"}]}
    document = opened(tmp_path / "log", [{"request": asked, "response": text}])
    found = [(call.id, call.tool, call.arguments) for call in document.step(1).calls]
    assert found == expected


def test_pieces_of_blocks_belong_together_by_index(tmp_path: Path) -> None:
    message = {"type": "message", "role": "assistant", "model": "m", "content": []}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for number in (0, 1):
        block = {"type": "tool_use", "id": f"t{number}", "name": "f", "input": {}}
        events.append({"type": "content_block_start", "index": number, "content_block": block})
    for text in ('{"a": ', "7}"):
        delta = {"type": "input_json_delta", "partial_json": text}
        events += [{"type": "content_block_delta", "index": number, "delta": delta} for number in (0, 1)]
    events += [{"type": "content_block_stop", "index": number} for number in (0, 1)]
    streamed = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    asked = {"model": "m", "messages": [{"role": "user", "content": "Go"}]}
    document = opened(tmp_path / "log", [{"request": asked, "response": streamed}])
    assert [(call.id, call.parsed) for call in document.step(1).calls] == [("t0", {"a": 7}), ("t1", {"a": 7})]


def test_a_har_file_and_a_cassette_are_lists_of_exchanges(tmp_path: Path) -> None:
    har, cassette = tmp_path / "har", tmp_path / "cassette"
    har.write_text(json.dumps({"log": {"version": "1.2", "entries": [as_texts(one) for one in exchanges()]}}))
    cassette.write_text(json.dumps({"interactions": exchanges(), "version": 1}, indent=1))
    for file in (har, cassette):
        assert [entry.name for entry in list_runs([file])] == [f"{file}#1", f"{file}#2"]


def test_errors_and_retries_stand_in_their_conversation(tmp_path: Path) -> None:
    first, *_, last = exchanges()
    failed = {
        **first,
        "response": {"body": {"type": "error", "error": {"type": "overloaded", "message": "Try later"}}},
    }
    document = opened(tmp_path / "log", [failed, first, last])
    assert [step.kind for step in document.steps()] == [
        StepKind.SYSTEM, StepKind.TASK, StepKind.ERROR, StepKind.TEST, StepKind.MESSAGE,
    ]  # fmt: skip
    assert document.step(2).text == "Try later"


def test_replies_of_the_responses_api_are_continued_by_their_id(tmp_path: Path) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "ls"}'}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done"}]}

    def reply(identity: str, item: dict[str, Any]) -> dict[str, Any]:
        return {
            "object": "response",
            "id": identity,
            "model": "gpt-x",
            "output": [item],
            "reasoning": {"effort": "low"},
        }

    answer = [{"type": "function_call_output", "call_id": "c1", "output": "a.py"}]
    document = opened(tmp_path / "log", [
        {"request": {"model": "gpt-x", "input": "List", "instructions": "Be brief."}, "response": reply("r1", call)},
        {"request": {"model": "gpt-x", "input": answer, "previous_response_id": "r1", "instructions": "Be brief."},
         "response": reply("r2", said)},
    ])  # fmt: skip
    assert [(step.text, step.thought) for step in document.steps()] == [
        ("Be brief.", ""), ("List", ""), ("", ""), ("Done", ""),
    ]  # fmt: skip
    assert document.step(2).results[0].text == "a.py"


def test_a_result_of_a_batch_is_a_run_without_a_prompt(tmp_path: Path) -> None:
    body = exchanges()[2]["response"]["body"]
    result = {"custom_id": "task-7", "result": {"type": "succeeded", "message": body}}
    document = opened(tmp_path / "log", [result, {**result, "custom_id": "task-8"}], 2)
    assert (document.header.task, [step.text for step in document.steps()]) == ("task-8", ["Mended."])


def test_records_without_a_conversation_are_counted(tmp_path: Path) -> None:
    counted = {"request": {"url": "/v1/messages/count_tokens"}, "response": {"body": {"input_tokens": 5}}}
    document = opened(tmp_path / "log", [exchanges()[0], counted])
    assert document.warnings == ("Left out: 1 record with neither a request to a model nor a reply.",)


@pytest.mark.parametrize("spent", [10**400, 1e299, -1e299, float("nan"), True, "5", None])
def test_a_duration_that_leads_out_of_the_calendar_gives_no_time(spent: object) -> None:
    exchange = {"startedDateTime": "2026-01-01T00:00:00Z", "time": spent}
    assert _answered_at(Record(cast(Any, exchange))) is None
    assert _answered_at(Record(cast(Any, {**exchange, "time": 1500}))) == 1_767_225_601.5
