"""Google's Gemini API: the requests, the replies and their meaning, and the errors."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest
from google.genai import types
from native_endpoints import KEY, candidate, model_at
from pydantic import TypeAdapter
from scripted_endpoint import Answer, endpoint

from gistpoint.core.chat import (
    ChatFailure,
    ChatMessage,
    ChatProblem,
    ChatReply,
    Sampling,
    Usage,
    sound_requests,
)
from gistpoint.core.errors import EndpointError
from gistpoint.sandbox.endpoints.gemini_bodies import request_of
from gistpoint.sandbox.endpoints.models import chat_model_at
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
THOUGHT = {"text": "**Looking**", "thought": True}
SIGNED = base64.b64encode(
    b"\xfb\xff\xfe" * 20 + b"\xff"
).decode()  # with signs that two forms spell differently


def called(path: str = "a.py", signature: str = "", **more: Any) -> dict[str, Any]:
    part = {"functionCall": {"name": "read_file", "args": {"file_path": path}, **more}}
    return {**part, **({"thoughtSignature": signature} if signature else {})}


def asked(answer: Answer, **changes: Any) -> ChatReply | ChatFailure:
    with endpoint(answer) as served:
        return model_at("gemini", served.url, **changes).complete(HELLO, [TOOL])


def reply_to(answer: Answer) -> ChatReply:
    reply = asked(answer)
    assert isinstance(reply, ChatReply), reply
    return reply


def next_request(answer: Answer, words: str = "") -> dict[str, Any]:
    """Return the request after a reply whose calls were answered, and to which `words` were added."""
    with endpoint(answer, candidate([{"text": "Fine."}])) as served:
        model = model_at("gemini", served.url)
        reply = model.complete(HELLO, [TOOL])
        assert isinstance(reply, ChatReply), reply
        tools = [ChatMessage("tool", "text of a", tool_call_id=c.id) for c in reply.message.tool_calls]
        said = [ChatMessage("user", words)] if words else []
        model.complete([*HELLO, reply.message, *tools, *said], [TOOL])
        return served.requests[-1]


def known(request: dict[str, Any]) -> None:
    """Let the package's own types read a request; members that they don't know are an error."""
    assert types.Content.model_config.get("extra") == "forbid"
    TypeAdapter(list[types.Content]).validate_python(request["contents"])
    types.GenerationConfig.model_validate(request["generationConfig"])
    for tool in request.get("tools", ()):
        types.Tool.model_validate(tool)
    if "systemInstruction" in request:
        types.Content.model_validate(request["systemInstruction"])


# Requests


def test_the_request_is_one_that_the_package_knows() -> None:
    parts = [THOUGHT, called(signature=SIGNED), called("b.py", id="x1")]
    request = next_request(candidate(parts), words="Go on.")
    known(request)
    assert sorted(request) == ["contents", "generationConfig", "systemInstruction", "tools"]
    assert request["systemInstruction"] == {"parts": [{"text": "Repair it."}]}
    declaration = {
        "name": "read_file",
        "description": "Read a file.",
        "parametersJsonSchema": TOOL["parameters"],
    }
    assert request["tools"] == [{"functionDeclarations": [declaration]}]


def test_parts_come_back_as_they_came_and_ids_only_where_they_were_given() -> None:
    parts = [THOUGHT, {"text": "Both."}, called(signature=SIGNED), called("b.py", id="x1")]
    first, written, answered = next_request(candidate(parts), words="Go on.")["contents"]
    assert first == {"role": "user", "parts": [{"text": "Hello."}]}
    assert written == {"role": "model", "parts": parts}
    response = {"name": "read_file", "response": {"output": "text of a"}}
    assert answered == {
        "role": "user",
        "parts": [
            {"functionResponse": response},
            {"functionResponse": {"id": "x1", **response}},
            {"text": "Go on."},
        ],
    }


def test_a_call_with_another_id_in_the_conversation_keeps_its_signature() -> None:
    parts = [called(signature=SIGNED, id="x1"), {"text": "Both."}, called("b.py", id="x1"), called()]
    with endpoint(candidate(parts), candidate([{"text": "Fine."}])) as served:
        model = model_at("gemini", served.url)
        reply = model.complete(HELLO, [TOOL])
        assert isinstance(reply, ChatReply)
        calls = sound_requests(reply.message.tool_calls, ["x1"])
        tools = [ChatMessage("tool", "text", tool_call_id=call.id) for call in calls]
        model.complete([*HELLO, replace(reply.message, tool_calls=calls), *tools], [TOOL])
        _, written, answered = served.requests[1]["contents"]
    assert written["parts"] == [
        called(signature=SIGNED, id="call00002"),
        {"text": "Both."},
        called("b.py", id="call00003"),
        called(),
    ]
    ids = [part["functionResponse"].get("id") for part in answered["parts"]]
    assert ids == ["call00002", "call00003", None]


def test_the_key_the_path_and_the_limit_are_those_of_the_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "key-of-another-host")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project-of-another")
    with endpoint(candidate([{"text": "Fine."}])) as served:
        reply = model_at("gemini", served.url).complete(HELLO, [])
        model_at("gemini", served.url, no_stream=True).complete(HELLO, [])
    assert isinstance(reply, ChatReply)
    assert served.paths == ["/v1/models/m:streamGenerateContent?alt=sse", "/v1/models/m:generateContent"]
    headers, _ = served.headers
    assert headers["x-goog-api-key"] == KEY
    assert headers["accept-encoding"] == "identity"
    assert "another" not in str(served.headers)
    assert sorted(served.requests[0]) == ["contents", "generationConfig", "systemInstruction"]


@pytest.mark.parametrize("name", ["../m", "m?key=x", "m&x", "m#x"])
def test_a_name_that_would_change_the_path_is_refused(name: str) -> None:
    with pytest.raises(EndpointError, match="not a name"):
        chat_model_at(EndpointSettings(name, api="gemini"))


@pytest.mark.parametrize(
    ("sampling", "fields"),
    [
        (Sampling(), {"thinkingConfig": {"includeThoughts": True}}),
        (
            Sampling(0.0, 0.9, 7, 500, thinking_tokens=1_000),
            {
                "temperature": 0.0,
                "topP": 0.9,
                "seed": 7,
                "maxOutputTokens": 500,
                "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 1_000},
            },
        ),
        (
            Sampling(reasoning_effort="low"),
            {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"}},
        ),
    ],
)
def test_sampling_is_sent_as_the_api_spells_it(sampling: Sampling, fields: dict[str, Any]) -> None:
    request = request_of(HELLO, [], EndpointSettings("m", "http://h", sampling=sampling, api="gemini"))
    assert request["generationConfig"] == fields
    known(request)


# Replies


def test_a_reply_with_thoughts_and_calls() -> None:
    usage = {  # the members of https://ai.google.dev/api/generate-content#UsageMetadata
        "promptTokenCount": 1_000,
        "cachedContentTokenCount": 800,
        "candidatesTokenCount": 20,
        "thoughtsTokenCount": 300,
        "totalTokenCount": 1_320,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1_000}],
    }
    parts = [THOUGHT, {"text": "I'll look."}, called(signature=SIGNED), called("b.py", id="x1")]
    reply = reply_to(candidate(parts, usage=usage))
    assert reply.usage == Usage(1_000, 320, cached_tokens=800, reasoning_tokens=300)
    assert (reply.message.content, reply.message.reasoning) == ("I'll look.", "**Looking**")
    assert [(call.id, call.name, call.arguments) for call in reply.message.tool_calls] == [
        ("", "read_file", '{"file_path": "a.py"}'),
        ("x1", "read_file", '{"file_path": "b.py"}'),
    ]
    assert (reply.finish, reply.model, reply.request_id) == ("tool_calls", "gemini-scripted-1", "aBcD123")


@pytest.mark.parametrize(
    ("finish", "wanted"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("NEW_REASON", "NEW_REASON"),
    ],
)
def test_how_a_reply_ends(finish: str, wanted: str) -> None:
    assert reply_to(candidate([{"text": "And"}], finish)).finish == wanted


def test_a_blocked_prompt_is_a_refusal() -> None:
    body = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 61, "totalTokenCount": 61},
        "modelVersion": "gemini-2.5-flash",
    }
    reply = reply_to(Answer(body))
    assert (reply.finish, reply.message.content) == ("content_filter", "")
    assert reply.usage == Usage(61, 0)


SAID = 'Malformed function call: print(default_api.read_file(file_path="a.py"'


@pytest.mark.parametrize(
    ("answer", "name", "arguments"),
    [
        (candidate(None, "MALFORMED_FUNCTION_CALL", finishMessage=SAID), "read_file", SAID),
        (candidate([], "MALFORMED_FUNCTION_CALL"), "unnamed", "Malformed function call"),
        # Calls that the API reports as malformed are not made, even if they can be read
        # (https://github.com/NousResearch/hermes-agent/pull/83886).
        (candidate([called()], "MALFORMED_FUNCTION_CALL", finishMessage=SAID), "read_file", SAID),
        (candidate(None, "UNEXPECTED_TOOL_CALL"), "unnamed", "Malformed function call"),
        (candidate([called()], "UNEXPECTED_TOOL_CALL"), "read_file", '{"file_path": "a.py"}'),
    ],
)
def test_a_malformed_call_is_the_models_own(answer: Answer, name: str, arguments: str) -> None:
    reply = reply_to(answer)
    (call,) = reply.message.tool_calls
    assert (call.name, call.arguments, reply.finish) == (name, arguments, "tool_calls")


def test_a_malformed_call_is_told_as_text_since_it_has_no_signature() -> None:
    usage = {"promptTokenCount": 61, "totalTokenCount": 61}
    answer = candidate([THOUGHT], "MALFORMED_FUNCTION_CALL", usage, finishMessage=SAID)
    _, written, answered = next_request(answer)["contents"]
    assert written == {"role": "model", "parts": [{"text": f"read_file {SAID}"}]}
    assert answered == {"role": "user", "parts": [{"text": "text of a"}]}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (candidate(None, "OTHER"), ChatProblem.SERVER_ERROR),
        (candidate(None, "MALFORMED_RESPONSE"), ChatProblem.SERVER_ERROR),
        (candidate(None, ""), ChatProblem.SERVER_ERROR),
        (candidate([{"text": "x"}], "MISSING_THOUGHT_SIGNATURE"), ChatProblem.REJECTED),
        (candidate([], usage={"promptTokenCount": 9, "totalTokenCount": 9}), ChatProblem.MALFORMED_REPLY),
        (Answer({"usageMetadata": {"promptTokenCount": 9}}), ChatProblem.MALFORMED_REPLY),
    ],
)
def test_what_is_no_reply_of_the_model_is_a_failure_that_is_paid(
    answer: Answer, problem: ChatProblem
) -> None:
    failure = asked(answer)
    assert isinstance(failure, ChatFailure)
    assert failure.problem is problem
    assert failure.usage.prompt_tokens > 0


# Errors, in the form of https://cloud.google.com/apis/design/errors, and from the threads that are named


def error(code: int, status: str, words: str, *details: dict[str, Any]) -> dict[str, Any]:
    inner: dict[str, Any] = {"code": code, "message": words, "status": status}
    if details:
        inner["details"] = list(details)
    return {"error": inner}


def quota(*ids: str) -> dict[str, Any]:
    kind = "type.googleapis.com/google.rpc.QuotaFailure"
    return {"@type": kind, "violations": [{"quotaId": id, "quotaMetric": "x"} for id in ids]}


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.074824224s"}
SPENT = "You exceeded your current quota, please check your plan and billing details."
MINUTE = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
KEY_INVALID = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
ERRORS = [
    (
        error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", KEY_INVALID),
        ChatProblem.NOT_AUTHORISED,
    ),
    (
        error(
            400,
            "INVALID_ARGUMENT",
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        ),
        ChatProblem.CONTEXT_FULL,
    ),
    (error(400, "INVALID_ARGUMENT", "Function call is missing a thought_signature"), ChatProblem.REJECTED),
    (error(403, "PERMISSION_DENIED", "The caller does not have permission."), ChatProblem.NOT_AUTHORISED),
    (error(404, "NOT_FOUND", "models/m is not found for API version v1beta"), ChatProblem.UNKNOWN_MODEL),
    # https://github.com/google-gemini/gemini-cli/issues/8437
    (error(429, "RESOURCE_EXHAUSTED", SPENT, quota(MINUTE), RETRY), ChatProblem.RATE_LIMITED),
    (error(429, "RESOURCE_EXHAUSTED", SPENT, quota(MINUTE, DAY), RETRY), ChatProblem.ACCOUNT_EMPTY),
    (error(429, "RESOURCE_EXHAUSTED", f"{SPENT}\n* Quota exceeded, limit: 0"), ChatProblem.ACCOUNT_EMPTY),
    (
        error(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."),
        ChatProblem.ACCOUNT_EMPTY,
    ),
    (error(429, "RESOURCE_EXHAUSTED", "Resource exhausted. Try again later."), ChatProblem.RATE_LIMITED),
    (error(500, "INTERNAL", "An internal error has occurred."), ChatProblem.SERVER_ERROR),
    (error(503, "UNAVAILABLE", "The model is overloaded. Please try again later."), ChatProblem.SERVER_ERROR),
    (error(504, "DEADLINE_EXCEEDED", "Deadline expired."), ChatProblem.TIMED_OUT),
]


@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize(("body", "problem"), ERRORS)
def test_what_an_error_means(body: dict[str, Any], problem: ChatProblem, as_list: bool) -> None:
    failure = asked(Answer([body] if as_list else body, body["error"]["code"]))
    assert isinstance(failure, ChatFailure)
    assert failure.problem is problem
    assert f"answered {body['error']['code']}: {body['error']['message'].split()[0]}" in failure.message
    waits = RETRY in body["error"].get("details", ())
    assert failure.retry_after_s == (34.074824224 if waits else None)


def test_a_header_for_the_wait_goes_before_the_body() -> None:
    body = error(429, "RESOURCE_EXHAUSTED", SPENT, RETRY)
    failure = asked(Answer(body, 429, {"Retry-After": "3"}))
    assert isinstance(failure, ChatFailure)
    assert failure.retry_after_s == 3


def test_an_error_with_a_status_of_success() -> None:
    failure = asked(Answer(error(503, "UNAVAILABLE", "The model is overloaded.")))
    assert isinstance(failure, ChatFailure)
    assert (failure.problem, "overloaded" in failure.message) == (ChatProblem.SERVER_ERROR, True)


def test_nothing_is_retried_by_the_package() -> None:
    with endpoint(Answer(error(503, "UNAVAILABLE", "Overloaded."), 503)) as served:
        model_at("gemini", served.url).complete(HELLO, [])
    assert len(served.requests) == 1
