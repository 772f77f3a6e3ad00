"""Streamed replies of vendors' own APIs equal those that are sent whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from native_endpoints import candidate, message, model_at, signature_of
from scripted_endpoint import Answer, endpoint

from gistpoint.core.chat import ChatApi, ChatFailure, ChatMessage, ChatProblem, ChatReply
from gistpoint.core.estimates import tokens_in

HELLO = [ChatMessage("user", "Hello.")]
BLOCKS = [
    {"type": "thinking", "thinking": "Which one? Né.", "signature": signature_of(1)},
    {"type": "redacted_thinking", "data": signature_of(2)},
    {"type": "text", "text": "I look."},
    {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "read_file",
        "input": {"file_path": "ä.py", "lines": [1, 2]},
    },
    {"type": "tool_use", "id": "toolu_2", "name": "list_directory", "input": {}},
]
PARTS = [
    {"text": "Which ", "thought": True},
    {"text": "one?", "thought": True},
    {"text": "I "},
    {"text": "look."},
    {
        "functionCall": {"id": "1", "name": "read_file", "args": {"file_path": "ä.py"}},
        "thoughtSignature": "s+/==",
    },
    {"functionCall": {"name": "list_directory", "args": {}}},
    {"text": "", "thoughtSignature": "t+/=="},
    {"text": "More"},
]
USAGE = {
    "input_tokens": 50,
    "cache_read_input_tokens": 9,
    "cache_creation_input_tokens": 7,
    "output_tokens": 80,
}
COUNTS = {"promptTokenCount": 50, "candidatesTokenCount": 20, "thoughtsTokenCount": 5, "totalTokenCount": 75}


def pieces_of(text: str, size: int = 4) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def message_events(body: Any) -> list[dict[str, Any]]:
    """Return the events of a message, in the form of https://platform.claude.com/docs/en/build-with-claude/streaming."""
    first = {**body["usage"], "output_tokens": 1}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**body, "content": [], "stop_reason": None, "usage": first}},
        {"type": "ping"},
    ]
    for index, block in enumerate(body["content"]):
        growing = {"text": "text_delta", "thinking": "thinking_delta", "signature": "signature_delta"}
        texts = {name: value for name, value in block.items() if name in growing}
        empty = {**block, **dict.fromkeys(texts, ""), **({"input": {}} if "input" in block else {})}
        deltas = [
            {"type": growing[name], name: piece}
            for name, value in texts.items()
            for piece in pieces_of(value)
        ]
        if block.get("input"):
            written = json.dumps(block["input"], ensure_ascii=False)
            deltas += [
                {"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces_of(written)]
            ]
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": index},
        ]
    end = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    counted = {"output_tokens": body["usage"]["output_tokens"], "input_tokens": None}
    return [*events, {"type": "message_delta", "delta": end, "usage": counted}, {"type": "message_stop"}]


def candidate_events(body: Any) -> list[dict[str, Any]]:
    """Return the chunks of a response, one for each part; the last part comes with the end."""
    (whole,) = body["candidates"]
    parts = whole["content"]["parts"]
    about = {name: value for name, value in body.items() if name != "candidates"}
    early = {**about, "usageMetadata": {"promptTokenCount": 50, "totalTokenCount": 50}}
    return [
        *(
            {**early, "candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]}
            for part in parts[:-1]
        ),
        {**about, "candidates": [{**whole, "content": {"role": "model", "parts": parts[-1:]}}]},
    ]


def streamed(events: Sequence[dict[str, Any]], **more: Any) -> Answer:
    lines = [f"event: {event.get('type', 'message')}\ndata: {json.dumps(event)}\n\n" for event in events]
    return Answer(blocks=["".join(lines).encode()], **more)


def asked(api: ChatApi, answer: Answer, **changes: Any) -> ChatReply | ChatFailure:
    with endpoint(answer) as served:
        return model_at(api, served.url, **changes).complete(HELLO, [])


WHOLE: dict[ChatApi, Answer] = {
    "anthropic": message(BLOCKS, "tool_use", USAGE),
    "gemini": candidate(PARTS, usage=COUNTS),
}
EVENTS: dict[ChatApi, list[dict[str, Any]]] = {
    "anthropic": message_events(WHOLE["anthropic"].body),
    "gemini": candidate_events(WHOLE["gemini"].body),
}
JOINED = [{"text": "Which one?", "thought": True}, {"text": "I look."}, *PARTS[4:]]


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_a_reply_in_pieces_is_the_reply_sent_whole(api: ChatApi) -> None:
    with endpoint(WHOLE[api], streamed(EVENTS[api])) as served:
        whole = model_at(api, served.url, no_stream=True).complete(HELLO, [])
        found = model_at(api, served.url).complete(HELLO, [])
    assert isinstance(whole, ChatReply)
    assert isinstance(found, ChatReply)
    assert (whole.streamed, found.streamed) == (False, True)
    if api == "anthropic":
        assert found == replace(whole, streamed=True)
        assert found.message.extra["blocks"] == BLOCKS
        assert found.usage.written_tokens == 7
    else:
        # Text is joined, and signatures stay where they were.
        assert found.message.extra["parts"] == JOINED
        assert found.message.reasoning == "Which one?"
        same = replace(whole.message, extra=found.message.extra, reasoning=found.message.reasoning)
        assert found == replace(whole, message=same, streamed=True)


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_a_stream_is_requested_unless_no_stream_is_set(api: ChatApi) -> None:
    with endpoint(WHOLE[api]) as served:
        assert isinstance(model_at(api, served.url).complete(HELLO, []), ChatReply)  # a server may ignore it
        model_at(api, served.url, no_stream=True).complete(HELLO, [])
    ways = [
        ("stream" in request, "streamGenerate" in path)
        for request, path in zip(served.requests, served.paths, strict=True)
    ]
    assert ways == [(api == "anthropic", api == "gemini"), (False, False)]


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_a_reply_that_breaks_off_is_the_endpoint_s_failure_and_costs_what_it_reported(api: ChatApi) -> None:
    events = EVENTS[api][: -2 if api == "anthropic" else -1]
    failure = asked(api, streamed(events))
    assert isinstance(failure, ChatFailure)
    assert (failure.problem, "in the middle" in failure.message) == (ChatProblem.NO_CONNECTION, True)
    assert failure.usage.prompt_tokens == (66 if api == "anthropic" else 50)
    cut = asked(api, streamed(events[:3], cut=0))
    assert isinstance(cut, ChatFailure)
    assert (cut.problem, cut.usage.prompt_tokens) == (ChatProblem.NO_CONNECTION, failure.usage.prompt_tokens)


ERRORS: dict[ChatApi, dict[str, Any]] = {
    "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    "gemini": {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}},
}


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
@pytest.mark.parametrize("ends", ["with an error", "without an end", "in silence"])
def test_a_reply_that_is_lost_in_the_middle_costs_what_was_received(api: ChatApi, ends: str) -> None:
    body = {
        "anthropic": message([{"type": "text", "text": "x" * 3_000}], usage=USAGE).body,
        "gemini": candidate([{"text": "x" * 3_000}, {"text": "More"}], usage=COUNTS).body,
    }[api]
    events = message_events(body)[:-3] if api == "anthropic" else candidate_events(body)[:-1]
    blocks = [*(streamed([*events, ERRORS[api]] if ends == "with an error" else events).blocks or ())]
    last: list[Any] = [5.0] if ends == "in silence" else []
    failure = asked(api, Answer(blocks=[*blocks, *last]), silence_s=0.5)
    assert isinstance(failure, ChatFailure)
    assert failure.usage.prompt_tokens == (66 if api == "anthropic" else 50)
    assert failure.usage.completion_tokens >= 990
    assert failure.usage.estimated


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_silence_is_limited_before_a_reply_and_within_it(api: ChatApi) -> None:
    began = streamed(EVENTS[api][:4]).blocks or ()
    failure = asked(api, Answer(blocks=[*began, 5.0]), silence_s=0.2, first_token_s=60.0)
    assert isinstance(failure, ChatFailure)
    assert (failure.problem, "in the middle" in failure.message) == (ChatProblem.TIMED_OUT, True)
    failure = asked(api, Answer(blocks=[b": wait\n\n", 5.0]), silence_s=60.0, first_token_s=0.2)
    assert isinstance(failure, ChatFailure)
    assert (failure.problem, "before its reply" in failure.message) == (ChatProblem.TIMED_OUT, True)
    assert failure.usage.estimated
    assert failure.usage.prompt_tokens >= tokens_in(len("Hello."))


def test_an_error_in_the_middle_of_a_message() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    failure = asked("anthropic", streamed([*EVENTS["anthropic"][:5], error]))
    assert isinstance(failure, ChatFailure)
    assert (failure.problem, "Overloaded" in failure.message) == (ChatProblem.SERVER_ERROR, True)


def test_an_error_in_the_middle_of_a_response() -> None:
    error = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    failure = asked("gemini", streamed([*EVENTS["gemini"][:2], error]))
    assert isinstance(failure, ChatFailure)
    assert (failure.problem, "overloaded" in failure.message) == (ChatProblem.SERVER_ERROR, True)


def test_arguments_that_are_not_json_are_a_malformed_call() -> None:
    events = EVENTS["anthropic"]
    broken = [
        event for event in events if not str(event.get("delta", {}).get("partial_json", "")).endswith("}")
    ]
    assert len(broken) == len(events) - 1
    reply = asked("anthropic", streamed(broken))
    assert isinstance(reply, ChatReply)
    call, other = reply.message.tool_calls
    assert (isinstance(json.loads(call.arguments), str), other.arguments) == (True, "{}")


def test_a_blocked_prompt_ends_a_stream() -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5}}
    reply = asked("gemini", streamed([blocked]))
    assert isinstance(reply, ChatReply)
    assert (reply.finish, reply.usage.prompt_tokens) == ("content_filter", 5)
