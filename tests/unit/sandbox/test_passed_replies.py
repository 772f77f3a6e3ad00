"""Replies that a proxy passes on: their text, calls and usage in four APIs, whole, streamed, and odd."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET

from gistpoint.core.attempts.events import ModelTurn
from gistpoint.core.chat import Usage
from gistpoint.sandbox.scaffolds.passed_replies import reply_in

CALL = {"path": "a.py"}


def streamed(*events: Any) -> bytes:
    lines = [f"event: x\ndata: {json.dumps(event)}\n\n" for event in events]
    return "".join(["retry: 1\n\n", *lines, "data: [DONE]\n\n"]).encode()


def message(usage: dict[str, int]) -> dict[str, Any]:
    return {"id": "msg_1", "type": "message", "model": "m", "content": [], "usage": usage}


MESSAGE = {
    **message(
        {
            "input_tokens": 5,
            "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 1,
            "output_tokens": 7,
        }
    ),
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "read", "input": CALL},
    ],
    "stop_reason": "tool_use",
}
MESSAGE_EVENTS = [
    {"type": "message_start", "message": message({"input_tokens": 5, "cache_read_input_tokens": 3,
                                                  "cache_creation_input_tokens": 1, "output_tokens": 1})},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "I look."}},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "c1", "name": "read",
                                                                  "input": {}}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"path": '}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '"a.py"}'}},
    {"type": "ping"},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
    {"type": "message_stop"},
]  # fmt: skip
RESPONSE = {
    "id": "msg_1",
    "object": "response",
    "model": "m",
    "status": "completed",
    "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path": "a.py"}'},
    ],
    "usage": {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 2},
    },
}
RESPONSE_EVENTS = [
    {"type": "response.created", "response": {"id": "msg_1"}},
    *({"type": "response.output_item.done", "item": item} for item in RESPONSE["output"]),
    {"type": "response.completed", "response": {**RESPONSE, "output": []}},
]
CHAT_USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 7,
    "prompt_tokens_details": {"cached_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
CHAT_CALL = {"index": 0, "id": "c1", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}
CHAT = {
    "id": "msg_1",
    "model": "m",
    "choices": [
        {
            "message": {"content": "I look.", "reasoning_content": "hm", "tool_calls": [CHAT_CALL]},
            "finish_reason": "tool_calls",
        }
    ],
    "usage": CHAT_USAGE,
}
CHAT_EVENTS = [
    {"id": "msg_1", "model": "m", "choices": [{"delta": {"role": "assistant", "reasoning": "hm"}}]},
    {"id": "msg_1", "model": "m", "choices": [{"delta": {"content": "I "}}]},
    {"id": "msg_1", "model": "m", "choices": [{"delta": {"content": "look.", "tool_calls": [
        {"index": 0, "id": "c1", "function": {"name": "read", "arguments": ""}}]}}]},
    {"id": "msg_1", "model": "m", "choices": [{"delta": {"tool_calls": [
        {"index": 0, "function": {"arguments": '{"path": "a.py"}'}}]}, "finish_reason": "tool_calls"}]},
    {"id": "msg_1", "model": "m", "choices": [], "usage": CHAT_USAGE},
]  # fmt: skip
GENERATED = {
    "responseId": "msg_1",
    "modelVersion": "m",
    "candidates": [
        {
            "content": {
                "parts": [
                    {"text": "hm", "thought": True},
                    {"text": "I look."},
                    {"functionCall": {"id": "c1", "name": "read", "args": CALL}, "thoughtSignature": "s"},
                ]
            },
            "finishReason": "tool_calls",
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 9,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 2,
        "cachedContentTokenCount": 3,
    },
}


@pytest.mark.parametrize(
    ("path", "body", "reasoning"),
    [
        ("/v1/messages?beta=true", json.dumps(MESSAGE).encode(), 0),
        ("/v1/messages", streamed(*MESSAGE_EVENTS), 0),
        ("/v1/responses", json.dumps(RESPONSE).encode(), 2),
        ("/v1/responses", streamed(*RESPONSE_EVENTS), 2),
        ("/x/chat/completions", json.dumps(CHAT).encode(), 2),
        ("/x/chat/completions", streamed(*CHAT_EVENTS), 2),
        ("/v1beta/models/m:generateContent", json.dumps(GENERATED).encode(), 2),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", streamed(GENERATED), 2),
        ("/v1beta/models/m:streamGenerateContent", json.dumps([GENERATED]).encode(), 2),
    ],
)
def test_a_reply_is_read_in_every_api(path: str, body: bytes, reasoning: int) -> None:
    turn = reply_in(path, {"tools": [{"name": "read"}]}, body, 0.25)
    assert isinstance(turn, ModelTurn)
    (call,) = turn.tool_calls
    assert (call.id, call.name, json.loads(call.arguments)) == ("c1", "read", CALL)
    assert (turn.content, turn.reasoning, turn.model, turn.request_id) == ("I look.", "hm", "m", "msg_1")
    assert turn.usage == Usage(9, 7, 3, reasoning, written_tokens=int("/messages" in path))
    assert turn.finish in ("tool_use", "completed", "tool_calls")
    assert (turn.latency_ms, turn.tools) == (250, ("read",))


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        ([{"type": "function", "function": {"name": "a"}}, {"type": "web_search"}], ("a", "web_search")),
        ([{"type": "namespace", "name": "x", "tools": [{"name": "a"}, {"name": "b"}]}], ("a", "b")),
        ([{"functionDeclarations": [{"name": "a"}]}, {"googleSearch": {}}, 7], ("a", "")),
        ("odd", ()),
        (None, ()),
    ],
)
def test_offered_tools_are_named_in_every_api(tools: object, names: tuple[str, ...]) -> None:
    turn = reply_in("/chat/completions", {"tools": tools}, json.dumps(CHAT).encode(), 0.0)
    assert isinstance(turn, ModelTurn)
    assert turn.tools == names


def test_what_asks_for_no_reply_is_no_turn() -> None:
    assert reply_in("/v1/messages/count_tokens", {}, b'{"input_tokens": 9}', 0.0) is None
    assert reply_in("/v1/models", {}, b"{}", 0.0) is None


def test_missing_usage_is_estimated_from_the_texts() -> None:
    body = {"choices": [{"message": {"content": "x" * 300}, "finish_reason": "stop"}]}
    turn = reply_in("/chat/completions", {"messages": "y" * 3_000}, json.dumps(body).encode(), 0.0)
    assert isinstance(turn, ModelTurn)
    assert turn.usage.estimated
    assert turn.usage.prompt_tokens >= 1_000
    assert turn.usage.completion_tokens == 100
    assert turn.reasoning is UNSET


def usage_with(path: str, body: object) -> Usage:
    turn = reply_in(path, {"messages": "y" * 3_000}, json.dumps(body).encode(), 0.0)
    assert isinstance(turn, ModelTurn)
    return turn.usage


def completed(*texts: str, **usage: Any) -> dict[str, Any]:
    choices = [{"index": index, "message": {"content": text}} for index, text in enumerate(texts)]
    return {"choices": choices, "usage": usage} if usage else {"choices": choices}


def test_a_relayed_reply_is_counted_as_gistpoints_own_is() -> None:
    xai = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 35}
    xai["completion_tokens_details"] = {"reasoning_tokens": 20}  # type: ignore[assignment]
    assert usage_with("/chat/completions", completed("a", **xai)) == Usage(10, 25, 0, 20)
    paid = {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.25}
    assert usage_with("/chat/completions", completed("a", **paid)).cost_usd == 0.25
    ticks = {"input_tokens": 10, "output_tokens": 5, "cost_in_usd_ticks": 25_000_000}
    response = {"object": "response", "output": [], "usage": ticks}
    assert usage_with("/responses", response).cost_usd == 0.0025
    zero = usage_with("/chat/completions", completed("x" * 300, prompt_tokens=0, completion_tokens=0))
    assert (zero.estimated, zero.prompt_tokens > 1_000, zero.completion_tokens) == (True, True, 100)
    thought = {"promptTokenCount": 10, "totalTokenCount": 30, "thoughtsTokenCount": 20}
    candidates = [{"finishReason": "MAX_TOKENS"}]
    generated = {"candidates": candidates, "usageMetadata": thought}
    assert usage_with(":generateContent", generated) == Usage(10, 20, 0, 20)
    most = {"prompt_tokens": 1 << 60, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 99}}
    odd = usage_with("/chat/completions", completed("a", **most))
    assert (odd.estimated, odd.prompt_tokens < 2_000) == (True, True)


def test_further_replies_to_a_request_are_neither_read_nor_free() -> None:
    whole = reply_in("/chat/completions", {}, json.dumps(completed("a", "b" * 300)).encode(), 0.0)
    chunks = [{"choices": [{"index": index, "delta": {"content": text}}]} for index, text in
              ((0, "I "), (1, "b" * 300), (0, "look."), (1, "b"))]  # fmt: skip
    pieces = reply_in("/chat/completions", {}, streamed(*chunks), 0.0)
    candidates = [{"content": {"parts": [{"text": text}]}, "index": index} for index, text in
                  enumerate(("a", "b" * 300))]  # fmt: skip
    generated = reply_in(":generateContent", {}, json.dumps({"candidates": candidates}).encode(), 0.0)
    for turn, text in ((whole, "a"), (pieces, "I look."), (generated, "a")):
        assert isinstance(turn, ModelTurn)
        assert turn.content == text
        assert turn.usage.completion_tokens > 100


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe", b"[", b"null", b"7", b'{"choices": 7}', b'{"choices": [{"message": "x"}]}', b"data: [1]\n\n",
     b'data: {"choices": [{"delta": {"tool_calls": [7]}}]}\n\n', b"[" * 100_000],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/messages", "/responses", "/chat/completions", ":generateContent"])
def test_odd_bodies_are_no_reply_and_no_error(path: str, body: bytes) -> None:
    assert reply_in(path, {}, body, 0.0) is None
