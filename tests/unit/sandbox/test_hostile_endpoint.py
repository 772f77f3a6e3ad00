"""A hostile endpoint: its influence is bounded, and its statements about itself are checked."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from typing import Any

import pytest
from scripted_endpoint import Answer, completion, endpoint

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply
from gistpoint.sandbox.endpoints import transport
from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings

KEY, PASSWORD = "sk-secret-0123456789/abc", "pa$sword-123"


def asked(url: str, **changes: Any) -> ChatReply | ChatFailure:
    model = OpenAICompatibleModel(EndpointSettings("m", url, ApiKey(KEY), **{"timeout_s": 60.0, **changes}))
    return model.complete([ChatMessage("user", "Hello.")], [])


@pytest.mark.parametrize(
    "answer",
    [
        completion([{"type": "text", "text": KEY[:7]}, {"type": "text", "text": KEY[7:]}]),  # type: ignore[arg-type]
        completion(None, ("read_file", '{"path": "' + KEY.replace("-", "\\u002d") + '"}')),
        completion(None, ("read_file", '{"path": "' + KEY.replace("/", "\\/") + '"}')),
    ],
)
def test_a_key_in_parts_or_escaped_is_taken_out_of_a_reply(answer: Answer) -> None:
    with endpoint(answer) as served:
        reply = asked(served.url)
    assert isinstance(reply, ChatReply)
    said = reply.message.content + "".join(call.arguments for call in reply.message.tool_calls)
    assert "[key]" in said
    assert not any(part in said for part in (KEY, "u002d", "\\/"))


def test_what_is_escaped_without_a_key_stays_as_it_was_sent() -> None:
    raw = '{"code":  "a\\n\\u00e9 \\ud800"}'
    with endpoint(completion(None, ("write", raw))) as served:
        reply = asked(served.url)
    assert isinstance(reply, ChatReply)
    assert reply.message.tool_calls[0].arguments == raw


def test_the_password_of_an_address_is_in_no_message() -> None:
    def echo(request: dict[str, Any], headers: Any) -> Answer:
        return Answer({"error": {"message": f"who is {headers['authorization']}, with {PASSWORD}?"}}, 403)

    with endpoint(echo) as served:
        failure = asked(served.url.replace("//", "//user:pa%24sword-123@"))
        sent = served.headers[0]["authorization"].split()[1]
    assert isinstance(failure, ChatFailure)
    assert "who is Basic [key], with [key]?" in failure.message
    assert sent not in failure.message


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_takes_no_conversation_to_another_server(status: int) -> None:
    with (
        endpoint(completion("Mine now.")) as other,
        endpoint(Answer("", status, {"Location": other.url})) as served,
    ):
        failure = asked(served.url)
        assert other.requests == []
    assert isinstance(failure, ChatFailure)
    assert failure.problem is ChatProblem.REJECTED
    assert "redirects" in failure.message


@pytest.mark.parametrize("cost", [10**400, 1e300, -1, float("nan"), "1", True])
def test_a_cost_that_can_not_be_is_none(cost: object) -> None:
    usage = {"prompt_tokens": 10**30, "completion_tokens": -5, "cost": cost}
    with endpoint(completion("Hello.", usage=usage)) as served:
        reply = asked(served.url)
    assert isinstance(reply, ChatReply)
    assert reply.usage.cost_usd is None
    assert reply.usage.estimated
    assert 0 < reply.usage.tokens < 1000


@pytest.mark.parametrize("status", [200, 400, 500])
def test_the_body_of_an_error_is_bounded_as_well(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MOST_BYTES", 1000)
    with endpoint(Answer("x" * 3000, status)) as served:
        failure = asked(served.url)
    assert isinstance(failure, ChatFailure)
    assert "sent more than" in failure.message


@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize("depth", [300, 900, 3_000, 100_000])
def test_a_body_of_any_depth_is_a_failure(status: int, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    for body in (deep, '{"error": ' + deep + "}", '{"error": {"message": ' + deep + "}}"):
        with endpoint(Answer(body, status)) as served:
            failure = asked(served.url)
        assert isinstance(failure, ChatFailure)
        assert len(failure.message) < 1_500


def test_a_reply_of_a_million_empty_values_is_not_unpacked() -> None:
    body = json.dumps(completion("Hello.").body)[:-1] + ', "x": [' + "{}," * transport.MOST_VALUES + "{}]}"
    with endpoint(Answer(body)) as served:
        failure = asked(served.url)
    assert isinstance(failure, ChatFailure)
    assert failure.problem is ChatProblem.MALFORMED_REPLY
    assert "too much" in failure.message


@pytest.mark.parametrize("status", [200, 500])
def test_what_is_small_while_compressed_is_not_unpacked(status: int) -> None:
    with endpoint(Answer(gzip.compress(b"x" * 100_000), status, {"Content-Encoding": "gzip"})) as served:
        failure = asked(served.url)
        assert served.headers[0]["accept-encoding"] == "identity"
    assert isinstance(failure, ChatFailure)
    assert "xxx" not in failure.message


@pytest.mark.parametrize("status", [b"200 OK", b"500 No"])
def test_a_reply_that_drips_is_dropped_at_the_time_limit_with_its_thread(status: bytes) -> None:
    dripping = True

    def drip() -> None:
        caller, _ = place.accept()
        with caller:
            caller.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 100000\r\n\r\n")
            try:
                while dripping:
                    caller.sendall(b" ")
                    time.sleep(0.01)
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as place:
        server = threading.Thread(target=drip, daemon=True)
        server.start()
        failure = asked(f"http://127.0.0.1:{place.getsockname()[1]}/v1", timeout_s=0.3)
        assert isinstance(failure, ChatFailure)
        assert failure.problem is ChatProblem.TIMED_OUT
        server.join(60)
        gone = not server.is_alive()
        dripping = False
    assert gone
