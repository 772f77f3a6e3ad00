"""Anthropic's Messages API: the requests, the replies and their meaning, and the errors."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from anthropic.types import message_create_params
from native_endpoints import KEY, message, model_at
from pydantic import TypeAdapter
from scripted_endpoint import Answer, endpoint

from gistpoint.core.chat import (
    LONGEST_REPLY,
    ChatFailure,
    ChatMessage,
    ChatProblem,
    ChatReply,
    Sampling,
    ToolRequest,
    Usage,
    sound_requests,
)
from gistpoint.sandbox.endpoints.anthropic_bodies import request_of
from gistpoint.sandbox.endpoints.settings import EndpointSettings

HELLO = [ChatMessage("system", "Repair it."), ChatMessage("user", "Hello.")]
TOOL = {
    "name": "read_file",
    "description": "Read a file.",
    "parameters": {
        "type": "object",
        "properties": {"file_path": {"type": "string", "description": "Its path."}},
        "required": ["file_path"],
        "additionalProperties": False,
    },
}
THOUGHT = {"type": "thinking", "thinking": "Let me see.", "signature": "EqQB+/=="}
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgB+/=="}
MARK = {"type": "ephemeral"}


def used(number: int, path: str = "a.py") -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "read_file", "input": {"file_path": path}}


def asked(answer: Answer, messages: list[ChatMessage] = HELLO, **changes: Any) -> ChatReply | ChatFailure:
    with endpoint(answer) as served:
        return model_at("anthropic", served.url, **changes).complete(messages, [TOOL])


def reply_to(answer: Answer) -> ChatReply:
    reply = asked(answer)
    assert isinstance(reply, ChatReply), reply
    return reply


def next_request(*answers: Answer, words: str = "") -> dict[str, Any]:
    """Return the request after a reply whose calls were answered, and to which `words` were added."""
    with endpoint(*answers, message()) as served:
        model = model_at("anthropic", served.url)
        reply = model.complete(HELLO, [TOOL])
        assert isinstance(reply, ChatReply), reply
        tools = [ChatMessage("tool", "text of a", tool_call_id=c.id) for c in reply.message.tool_calls]
        said = [ChatMessage("user", words)] if words else []
        model.complete([*HELLO, reply.message, *tools, *said], [TOOL])
        return served.requests[-1]


# Requests


def test_the_request_is_one_that_the_package_knows() -> None:
    request = next_request(message([THOUGHT, REDACTED, used(1), used(2)], "tool_use"), words="Go on.")
    known = TypeAdapter(message_create_params.MessageCreateParamsStreaming).validate_python(request)
    assert known["model"] == "m"
    assert sorted(request) == ["max_tokens", "messages", "model", "stream", "system", "tools"]
    assert request["tools"] == [
        {
            "name": "read_file",
            "description": "Read a file.",
            "input_schema": TOOL["parameters"],
            "cache_control": MARK,
        }
    ]
    assert request["system"] == [{"type": "text", "text": "Repair it.", "cache_control": MARK}]
    assert request["max_tokens"] == LONGEST_REPLY


def test_the_key_and_the_path_are_those_of_the_vendor() -> None:
    with endpoint(message([{"type": "text", "text": "Fine."}])) as served:
        model_at("anthropic", served.url).complete(HELLO, [])
    assert served.paths == ["/v1/messages"]
    assert KEY in served.headers[0]["authorization"]
    assert served.headers[0]["accept-encoding"] == "identity"


def test_no_other_credential_of_the_environment_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-of-another-host")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-another-host")
    with endpoint(message([{"type": "text", "text": "Fine."}])) as served:
        model_at("anthropic", served.url).complete(HELLO, [])
    assert "another-host" not in str(served.headers)


def test_blocks_come_back_in_their_order_and_the_answers_in_one_message() -> None:
    content = [THOUGHT, REDACTED, {"type": "text", "text": "Both."}, used(1), THOUGHT, used(2, "b.py")]
    first, written, answered = next_request(message(content, "tool_use"), words="Go on.")["messages"]
    assert first == {
        "role": "user",
        "content": [{"type": "text", "text": "Hello.", "cache_control": MARK}],
    }
    assert written == {"role": "assistant", "content": content}
    assert answered == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "text of a"},
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": "text of a"},
            {"type": "text", "text": "Go on.", "cache_control": MARK},
        ],
    }


def test_at_most_four_blocks_are_marked_and_never_one_of_the_model() -> None:
    rounds = [
        (
            ChatMessage("assistant", "", (ToolRequest(f"c{n}", "read_file", "{}"),)),
            ChatMessage("tool", "x", tool_call_id=f"c{n}"),
        )
        for n in range(5)
    ]
    messages = [*HELLO, *(one for pair in rounds for one in pair)]
    settings = EndpointSettings("m", "http://h", api="anthropic")
    assert json.dumps(request_of(messages, [TOOL], settings)).count("cache_control") == 4
    assert "cache_control" not in json.dumps(request_of(messages, [], settings)), "it is not asked again"


def test_what_the_api_refuses_to_take_back_is_left_out() -> None:
    blank = {"type": "text", "text": " \n"}
    sent = next_request(message([THOUGHT, blank, used(1)], "tool_use"))["messages"]
    assert sent[1]["content"] == [THOUGHT, used(1)]
    empty = [*HELLO, ChatMessage("assistant", "", (ToolRequest("c", "x", "{}"),)), ChatMessage("tool", "")]
    rows = request_of(empty, [], EndpointSettings("m", "http://h", api="anthropic"))["messages"]
    assert rows[-1]["content"] == [{"type": "tool_result", "tool_use_id": ""}]


def test_calls_that_the_journal_changed_are_sent_as_it_has_them() -> None:
    odd = {**used(1), "name": "read file; rm -rf /"}
    with endpoint(message([THOUGHT, odd], "tool_use"), message()) as served:
        model = model_at("anthropic", served.url)
        reply = model.complete(HELLO, [TOOL])
        assert isinstance(reply, ChatReply)
        written = ChatMessage(
            "assistant",
            "",
            (ToolRequest("toolu_1", "read_file__rm_-rf__", '{"file_path": "a.py"}'),),
            extra=reply.message.extra,
            host=reply.message.host,
        )
        model.complete([*HELLO, written, ChatMessage("tool", "no", tool_call_id="toolu_1")], [TOOL])
    assert served.requests[1]["messages"][1]["content"] == [{**odd, "name": "read_file__rm_-rf__"}]


def test_a_call_with_another_id_in_the_conversation_keeps_its_thinking() -> None:
    content = [THOUGHT, used(1), THOUGHT, used(1, "b.py")]
    with endpoint(message(content, "tool_use"), message()) as served:
        model = model_at("anthropic", served.url)
        reply = model.complete(HELLO, [TOOL])
        assert isinstance(reply, ChatReply)
        calls = sound_requests(reply.message.tool_calls, ["toolu_1"])
        tools = [ChatMessage("tool", "text", tool_call_id=call.id) for call in calls]
        model.complete([*HELLO, replace(reply.message, tool_calls=calls), *tools], [TOOL])
        _, written, answered = served.requests[1]["messages"]
    ids = ["call00002", "call00003"]
    assert written["content"] == [
        THOUGHT,
        {**used(1), "id": ids[0]},
        THOUGHT,
        {**used(1, "b.py"), "id": ids[1]},
    ]
    assert [block["tool_use_id"] for block in answered["content"]] == ids


def test_a_reply_that_the_journal_tells_whole_is_not_kept_twice() -> None:
    assert not reply_to(message([{"type": "text", "text": "Fine."}, used(1)], "tool_use")).message.extra
    assert reply_to(message([{"type": "text", "text": "Fine.", "citations": []}])).message.extra


@pytest.mark.parametrize(
    ("sampling", "fields"),
    [
        (Sampling(), {"max_tokens": LONGEST_REPLY}),
        (Sampling(0.0, 0.9, max_output_tokens=500), {"max_tokens": 500, "temperature": 0.0, "top_p": 0.9}),
        (
            Sampling(thinking_tokens=4_000),
            {"max_tokens": LONGEST_REPLY, "thinking": {"type": "enabled", "budget_tokens": 4_000}},
        ),
        (
            Sampling(thinking_tokens=40_000),
            {"max_tokens": 48_000, "thinking": {"type": "enabled", "budget_tokens": 40_000}},
        ),
        (
            Sampling(reasoning_effort="high"),
            {
                "max_tokens": LONGEST_REPLY,
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "high"},
            },
        ),
    ],
)
def test_sampling_is_sent_as_the_api_spells_it(sampling: Sampling, fields: dict[str, Any]) -> None:
    settings = EndpointSettings("m", "http://h", sampling=sampling, api="anthropic")
    request = request_of(HELLO, [], settings)
    assert {name: value for name, value in request.items() if name not in ("messages", "system")} == fields
    TypeAdapter(message_create_params.MessageCreateParamsNonStreaming).validate_python(
        {"model": "m", **request}
    )


# Replies


def test_a_reply_with_thinking_and_calls() -> None:
    content = [
        THOUGHT,
        {"type": "text", "text": "I'll "},
        {"type": "text", "text": "look."},
        used(1),
        used(2),
    ]
    usage = {  # the counts of https://platform.claude.com/docs/en/build-with-claude/prompt-caching
        "input_tokens": 50,
        "cache_read_input_tokens": 100_000,
        "cache_creation_input_tokens": 248,
        "output_tokens": 503,
        "output_tokens_details": {"thinking_tokens": 300},
        "service_tier": "standard",
    }
    reply = reply_to(message(content, "tool_use", usage))
    assert reply.usage == Usage(100_298, 503, cached_tokens=100_000, reasoning_tokens=300, written_tokens=248)
    assert reply.message.content == "I'll look."
    assert reply.message.reasoning == "Let me see."
    assert [(call.id, call.name, call.arguments) for call in reply.message.tool_calls] == [
        ("toolu_1", "read_file", '{"file_path": "a.py"}'),
        ("toolu_2", "read_file", '{"file_path": "a.py"}'),
    ]
    assert (reply.finish, reply.model) == ("tool_calls", "claude-scripted-1")
    assert reply.request_id == "msg_01XFDUDYJgAACzvnptvVoYEL"


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("refusal", "content_filter"),
    ],
)
def test_how_a_reply_ends(stop: str, finish: str) -> None:
    assert reply_to(message([{"type": "text", "text": "Fine."}], stop)).finish == finish


def test_a_refusal_is_told_in_the_vendors_words() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "It may enable cyber harm."}
    reply = reply_to(message([], "refusal", stop_details=details))
    assert (reply.finish, reply.refusal) == ("content_filter", "It may enable cyber harm.")


def test_a_call_at_the_limit_of_tokens_may_be_cut_and_is_not_made() -> None:
    answer = message([THOUGHT, used(1), used(2)], "max_tokens")
    reply = reply_to(answer)
    assert [call.id for call in reply.message.tool_calls] == ["toolu_1"]
    assert reply.finish == "length"
    assert next_request(answer)["messages"][1]["content"] == [THOUGHT, used(1)]
    alone = next_request(
        message([THOUGHT, {"type": "text", "text": "Now"}, used(1)], "max_tokens"), words="On."
    )
    assert alone["messages"][1]["content"] == [THOUGHT, {"type": "text", "text": "Now"}]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (message([], "model_context_window_exceeded"), ChatProblem.CONTEXT_FULL),
        (
            message([{"type": "text", "text": "And"}], "model_context_window_exceeded"),
            ChatProblem.CONTEXT_FULL,
        ),
        (message([{"type": "text", "text": "Searching."}], "pause_turn"), ChatProblem.SERVER_ERROR),
        (message([], "something_new"), ChatProblem.SERVER_ERROR),
        (message([], usage={"input_tokens": 9, "output_tokens": 0}), ChatProblem.MALFORMED_REPLY),
    ],
)
def test_what_is_no_reply_of_the_model_is_a_failure_that_is_paid(
    answer: Answer, problem: ChatProblem
) -> None:
    failure = asked(answer)
    assert isinstance(failure, ChatFailure)
    assert failure.problem is problem
    assert failure.usage.prompt_tokens > 0


def test_an_empty_reply_for_which_tokens_were_counted_is_the_models_own() -> None:
    assert reply_to(message([], usage={"input_tokens": 9, "output_tokens": 2})).message.content == ""


# Errors, from https://platform.claude.com/docs/en/api/errors, and from the threads that are named


def error(kind: str, words: str, **details: str) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": kind, "message": words}
    if details:
        inner["details"] = details
    return {"type": "error", "error": inner, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}


ERRORS = [
    (401, error("authentication_error", "invalid x-api-key"), ChatProblem.NOT_AUTHORISED),
    (403, error("permission_error", "Your API key does not have permission."), ChatProblem.NOT_AUTHORISED),
    (402, error("billing_error", "There is an issue with your billing."), ChatProblem.ACCOUNT_EMPTY),
    (404, error("not_found_error", "model: claude-0"), ChatProblem.UNKNOWN_MODEL),
    (413, error("request_too_large", "Request exceeds the maximum size"), ChatProblem.CONTEXT_FULL),
    (429, error("rate_limit_error", "This request would exceed your rate limit."), ChatProblem.RATE_LIMITED),
    (500, error("api_error", "Internal server error"), ChatProblem.SERVER_ERROR),
    (504, error("timeout_error", "The request timed out."), ChatProblem.TIMED_OUT),
    (529, error("overloaded_error", "Overloaded"), ChatProblem.SERVER_ERROR),
    (400, error("invalid_request_error", "max_tokens: must be at least 1"), ChatProblem.REJECTED),
    # https://github.com/All-Hands-AI/OpenHands/issues/5036
    (
        400,
        error("invalid_request_error", "prompt is too long: 210134 tokens > 200000 maximum"),
        ChatProblem.CONTEXT_FULL,
    ),
    # https://github.com/docker/docker-agent/issues/569
    (
        400,
        error(
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length"
            " or `max_tokens` and try again",
        ),
        ChatProblem.CONTEXT_FULL,
    ),
    # https://github.com/anthropics/claude-code/issues/4684
    (
        400,
        error(
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade"
            " or purchase credits.",
        ),
        ChatProblem.ACCOUNT_EMPTY,
    ),
    # anthropic.types.shared.EnforcedSpendLimitReachedErrorDetails
    (
        429,
        error("rate_limit_error", "You have reached it.", error_code="enforced_spend_limit_reached"),
        ChatProblem.ACCOUNT_EMPTY,
    ),
]


@pytest.mark.parametrize(("status", "body", "problem"), ERRORS)
def test_what_an_error_means(status: int, body: dict[str, Any], problem: ChatProblem) -> None:
    failure = asked(Answer(body, status, {"retry-after": "7"}))
    assert isinstance(failure, ChatFailure)
    assert failure.problem is problem
    assert body["error"]["message"][:200] in failure.message
    assert failure.retry_after_s == 7


def test_an_error_with_a_status_of_success() -> None:
    failure = asked(Answer(error("overloaded_error", "Overloaded")))
    assert isinstance(failure, ChatFailure)
    assert failure.problem is ChatProblem.SERVER_ERROR
    assert "Overloaded" in failure.message


def test_an_output_that_a_filter_stopped_is_a_refusal() -> None:
    reply = reply_to(
        Answer(error("invalid_request_error", "Output blocked by content filtering policy"), 400)
    )
    assert (reply.finish, reply.refusal) == ("content_filter", "Output blocked by content filtering policy")
    assert reply.usage.estimated


def test_an_address_that_ends_in_v1_is_named_as_the_likely_mistake() -> None:
    with endpoint(Answer("", 404)) as served:
        failure = model_at("anthropic", served.url + "/v1").complete(HELLO, [])
    assert isinstance(failure, ChatFailure)
    assert "may have to end before /v1" in failure.message


def test_nothing_is_retried_by_the_package() -> None:
    with endpoint(Answer(error("overloaded_error", "Overloaded"), 529)) as served:
        model_at("anthropic", served.url).complete(HELLO, [])
    assert len(served.requests) == 1
