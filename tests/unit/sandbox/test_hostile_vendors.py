"""Hostile endpoints behind the vendors' own APIs: nothing raises, nothing is unbounded, and no key leaks."""

from __future__ import annotations

import copy
import gzip
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from native_endpoints import KEY, candidate, message, model_at
from scripted_endpoint import Answer, closing, endpoint

from gistpoint.core.chat import ChatApi, ChatFailure, ChatMessage, ChatProblem, ChatReply
from gistpoint.core.errors import CancelledError
from gistpoint.core.running import CancelToken
from gistpoint.sandbox.endpoints import anthropic_bodies, gemini_bodies, native_bodies, transport
from gistpoint.sandbox.endpoints.models import chat_model_at
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings

HELLO = [ChatMessage("user", "Hello.")]
NATIVE: list[ChatApi] = ["anthropic", "gemini"]
both = pytest.mark.parametrize("api", NATIVE)


def asked(api: ChatApi, answer: Any, **changes: Any) -> ChatReply | ChatFailure:
    with endpoint(answer) as served:
        return model_at(api, served.url, **changes).complete(HELLO, [])


def whole(api: ChatApi, word: str = "a") -> Any:
    """Return a body that uses every member that is read."""
    if api == "anthropic":
        blocks = [
            {"type": "thinking", "thinking": word, "signature": word},
            {"type": "text", "text": word},
            {"type": "tool_use", "id": word, "name": word, "input": {word: word}},
        ]
        details = {"output_tokens_details": {"thinking_tokens": 1}, "cache_read_input_tokens": 1}
        usage = {"input_tokens": 1, "output_tokens": 2, **details}
        return message(blocks, "refusal", usage, stop_details={"explanation": word}).body
    call = {"functionCall": {"id": word, "name": word, "args": {word: word}}, "thoughtSignature": word}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "thoughtsTokenCount": 1, "totalTokenCount": 3}
    body: Any = candidate([{"text": word, "thought": True}, {"text": word}, call], usage=usage).body
    return {**body, "promptFeedback": {"blockReason": ""}}


def failed(api: ChatApi) -> Any:
    """Return an error's body with every member that is read."""
    if api == "anthropic":
        error = {"type": "rate_limit_error", "message": "m", "details": {"error_code": "x"}}
        return {"type": "error", "error": error}
    details = [{"reason": "x", "violations": [{"quotaId": "x"}], "retryDelay": "3s"}]
    return {"error": {"code": 429, "message": "m", "status": "s", "details": details}}


ODD: list[Any] = [None, True, -1, 1e400, 10**30, "", "\ud800", [], [None], {}, {"a": [1]}, "x" * 5_000]


def with_odd_members(body: Any) -> Iterator[Any]:
    """Yield copies of a body in each of which one member, at any depth, has an odd value, or is missing."""
    for path in paths(body):
        for value in ODD:
            changed = copy.deepcopy(body)
            place = changed
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = value
            yield changed
        changed = copy.deepcopy(body)
        place = changed
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]
        yield changed


def paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield (*before, name)
        yield from paths(item, (*before, name))


@both
def test_any_member_may_have_any_type(api: ChatApi) -> None:
    """The bodies are read as if received; a next request is made from each reply."""
    read = anthropic_bodies if api == "anthropic" else gemini_bodies
    settings = EndpointSettings("m", "http://h", ApiKey(KEY), api=api)
    bodies = 0
    for body in [*with_odd_members(whole(api)), *with_odd_members(failed(api)), *ODD]:
        data = settings.withheld.removed_from(json.loads(json.dumps(body)))
        reply = read.reply_of(data, settings, 10)
        read.error_problem(400, data)
        bodies += 1
        if isinstance(reply, ChatReply):
            assert 0 <= reply.usage.prompt_tokens < 1 << 41
            request = read.request_of([*HELLO, reply.message, *HELLO], [], settings)
            json.dumps(request, allow_nan=False).encode()
            msgspec.json.encode(dict(reply.message.extra))
    assert bodies > 300


@both
def test_an_error_next_to_a_reply_is_the_endpoints(api: ChatApi) -> None:
    body = whole(api)
    answered = asked(api, Answer({**body, "error": {"message": "gone", "code": 500}}))
    assert isinstance(answered, ChatFailure)
    assert (answered.problem, "gone" in answered.message) == (ChatProblem.SERVER_ERROR, True)
    assert answered.usage.completion_tokens == 2
    without = asked(api, Answer({**body, "error": {"message": "", "code": 0}}))
    assert isinstance(without, ChatReply)


@both
@pytest.mark.parametrize("status", [200, 400, 429, 500])
@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"\xff\xfe\x00", b"[" * 100_000, b"null", b"[]", b'{"error": null}', b'{"error": [1]}'],
    ids=range(8),
)
def test_a_body_that_is_none_is_a_failure(api: ChatApi, status: int, body: bytes) -> None:
    failure = asked(api, Answer(body, status))
    assert isinstance(failure, ChatFailure)
    wanted = {200: ChatProblem.MALFORMED_REPLY, 429: ChatProblem.RATE_LIMITED, 500: ChatProblem.SERVER_ERROR}
    if status != 400 and not (status == 200 and b"error" in body):
        assert failure.problem is wanted[status]


@both
@pytest.mark.parametrize("status", [200, 500])
def test_a_body_without_an_end_is_not_read_to_its_end(
    api: ChatApi, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MOST_BYTES", 100_000)
    failure = asked(api, Answer(b'{"content": "' + b"x" * 3_000_000, status))
    assert isinstance(failure, ChatFailure)
    assert "MiB" in failure.message


@both
def test_too_many_values_are_not_parsed(api: ChatApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MOST_VALUES", 1_000)
    failure = asked(api, Answer(b'{"content": [' + b"[]," * 2_000 + b"[]]}"))
    assert isinstance(failure, ChatFailure)
    assert "too much of it" in failure.message


@both
def test_a_compressed_body_is_not_unpacked(api: ChatApi) -> None:
    packed = gzip.compress(json.dumps(whole(api)).encode())
    with endpoint(Answer(packed, 200, {"Content-Encoding": "gzip"})) as served:
        failure = model_at(api, served.url).complete(HELLO, [])
        assert served.headers[0]["accept-encoding"] == "identity"
    assert isinstance(failure, ChatFailure)
    assert failure.problem is ChatProblem.MALFORMED_REPLY


@both
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_takes_no_conversation_to_another_server(api: ChatApi, status: int) -> None:
    with (
        endpoint(Answer(whole(api))) as other,
        endpoint(Answer("", status, {"Location": other.url})) as served,
    ):
        failure = model_at(api, served.url).complete(HELLO, [])
        assert other.requests == []
    assert isinstance(failure, ChatFailure)
    assert failure.problem is ChatProblem.REJECTED
    assert "redirects" in failure.message


@both
def test_parts_that_are_too_large_or_too_deep_are_not_kept(
    api: ChatApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_bodies, "MOST_KEPT", 10_000)
    reply = asked(api, Answer(whole(api, "b" * 5_000)))
    assert isinstance(reply, ChatReply)
    assert (reply.message.extra, reply.message.host) == ({}, "")
    deep: Any = "x"
    for _ in range(150):
        deep = [deep]
    body = whole(api)
    parts = body["content"] if api == "anthropic" else body["candidates"][0]["content"]["parts"]
    parts.append({"type": "new", "new": deep})
    reply = asked(api, Answer(body))
    assert isinstance(reply, ChatReply)
    assert reply.message.extra == {}


# The key


def leaks(api: ChatApi, answer: Any, **changes: Any) -> ChatReply | ChatFailure:
    said = asked(api, answer, **changes)
    text = repr(said) + json.dumps(dict(said.message.extra) if isinstance(said, ChatReply) else {})
    assert KEY not in text
    return said


@both
def test_a_key_that_is_sent_back_is_in_no_part_of_a_reply(api: ChatApi) -> None:
    assert "[key]" in repr(leaks(api, Answer(whole(api, f"a {KEY} b"))))


@both
def test_a_key_in_two_parts_is_in_no_text(api: ChatApi) -> None:
    if api == "anthropic":
        answer = message([{"type": "text", "text": KEY[:7]}, {"type": "text", "text": KEY[7:]}])
    else:
        answer = candidate([{"text": KEY[:7]}, {"text": KEY[7:]}])
    reply = leaks(api, answer)
    assert isinstance(reply, ChatReply)
    assert reply.message.content == "[key]"


@both
@pytest.mark.parametrize("status", [200, 302, 400, 429, 500])
def test_a_key_in_an_error_is_in_no_message(api: ChatApi, status: int) -> None:
    def echo(request: Any, headers: Any) -> Answer:
        return Answer({"error": {"message": f"who is {KEY}, with {dict(headers)}?", "code": 400}}, status)

    failure = leaks(api, echo)
    assert isinstance(failure, ChatFailure)
    if status >= 400:
        assert "who is [key]" in failure.message
    plain = leaks(api, Answer(f"{'x' * 290} {KEY}", 500))
    assert isinstance(plain, ChatFailure)
    assert KEY[:5] not in plain.message


@both
def test_no_key_is_sent_where_none_is_set(api: ChatApi, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, KEY)
    with endpoint(Answer(whole(api))) as served:
        settings = EndpointSettings("m", served.url.removesuffix("/v1"), timeout_s=60.0, api=api)
        chat_model_at(settings).complete(HELLO, [])
    assert KEY not in str(served.headers)
    assert "none" in str(served.headers)


# Connections


@pytest.mark.parametrize("api", ["openai", *NATIVE])
def test_a_connection_closed_without_a_reply_is_paid(api: ChatApi) -> None:
    with closing() as url:
        failure = model_at(api, url).complete(HELLO, [])
    assert isinstance(failure, ChatFailure)
    assert (failure.problem, failure.usage.estimated) == (ChatProblem.NO_CONNECTION, True)
    assert "reached" not in failure.message


@both
def test_a_server_that_is_not_there_can_not_be_reached(api: ChatApi) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    failure = model_at(api, f"http://127.0.0.1:{port}").complete(HELLO, [])
    assert isinstance(failure, ChatFailure)
    assert failure.problem is ChatProblem.NO_CONNECTION
    assert "can't be reached" in failure.message


@both
def test_a_reply_that_stops_in_the_middle_is_paid(api: ChatApi) -> None:
    body = json.dumps(whole(api)).encode()
    failure = asked(api, Answer(body, cut=50))
    assert isinstance(failure, ChatFailure)
    assert failure.problem is ChatProblem.NO_CONNECTION
    assert failure.usage.prompt_tokens > 0


@both
def test_a_silent_server_is_left_at_the_limit_and_when_the_work_is_cancelled(api: ChatApi) -> None:
    gate, token = threading.Event(), CancelToken()
    with endpoint(Answer(whole(api), wait=gate)) as served:
        failure = model_at(api, served.url, timeout_s=0.3).complete(HELLO, [])
        assert isinstance(failure, ChatFailure)
        assert failure.problem is ChatProblem.TIMED_OUT
        threading.Timer(0.2, token.cancel).start()
        with pytest.raises(CancelledError):
            model_at(api, served.url).complete(HELLO, [], cancel=token)
        gate.set()
