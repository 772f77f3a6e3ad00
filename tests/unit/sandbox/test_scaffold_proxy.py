"""The proxy of an agent: one host, the key outside, every reply journalled before it is passed on."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from scripted_endpoint import Answer, chunk, completion, endpoint, events_of

from gistpoint.core.agents.scaffolds import RelayedRequest
from gistpoint.core.attempts.events import ModelTurn
from gistpoint.core.chat import ChatProblem, Usage
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings
from gistpoint.sandbox.scaffolds import proxy
from gistpoint.sandbox.scaffolds.proxy import PLACEHOLDER, proxied

KEY = "sk-secret-of-the-test"
CHAT = "/v1/chat/completions"


@dataclass
class FakeSeat:
    """The part of a seat that a proxy uses."""

    allowed: bool = True
    turns: list[ModelTurn] = field(default_factory=list)
    failures: list[tuple[ChatProblem, str]] = field(default_factory=list)
    limits: list[tuple[int | None, int]] = field(default_factory=list)
    lost: Usage = field(default_factory=Usage)

    @contextmanager
    def relayed(
        self, characters: int, limit: int | None = None, replies: int = 1
    ) -> Iterator[RelayedRequest | None]:
        self.limits.append((limit, replies))
        yield RelayedRequest() if self.allowed else None

    def observed(self, turn: ModelTurn, request: RelayedRequest) -> None:
        self.turns.append(turn)

    @contextmanager
    def request_under_way(self) -> Iterator[RelayedRequest]:
        yield RelayedRequest()

    def paid(self, usage: Usage, request: RelayedRequest) -> None:
        self.lost += usage

    def not_answered(
        self, problem: ChatProblem, message: str, request: RelayedRequest, lost: Usage | None = None
    ) -> None:
        self.failures.append((problem, message))
        self.lost += lost or Usage()


class Connection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("agent", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


@contextmanager
def served(tmp_path: Path, url: str, seat: FakeSeat) -> Iterator[Connection]:
    settings = EndpointSettings("m-1", url, ApiKey(KEY))
    (tmp_path / "s").unlink(missing_ok=True)
    with proxied(seat, settings, tmp_path / "s"):  # type: ignore[arg-type]
        connection = Connection(tmp_path / "s")
        yield connection
        connection.close()


def post(connection: Connection, body: Any, path: str = CHAT, **headers: str) -> tuple[int, str]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, data, {"Content-Type": "application/json", **headers})
    response = connection.getresponse()
    return response.status, response.read().decode()


ASKED = {"model": "m-1", "messages": [{"role": "user", "content": "Hello"}]}


def test_a_reply_passes_and_is_journalled_and_the_key_is_only_outside(tmp_path: Path) -> None:
    seat = FakeSeat()
    with endpoint(completion(f"The key is {KEY}.")) as host, served(tmp_path, host.url, seat) as connection:
        for name in ("Authorization", "x-api-key", "x-goog-api-key"):
            status, text = post(connection, ASKED, **{name: PLACEHOLDER, "Cookie": "c", "X-Other": "o"})
            assert (status, KEY in text, "[key]" in text) == (200, False, True)
        assert host.requests == [ASKED] * 3
        sent = [
            {k: v for k, v in headers.items() if KEY in v or PLACEHOLDER in v} for headers in host.headers
        ]
        assert sent == [{"authorization": f"Bearer {KEY}"}, {"x-api-key": KEY}, {"x-goog-api-key": KEY}]
        assert all("cookie" not in headers and headers["x-other"] == "o" for headers in host.headers)
    assert [turn.content for turn in seat.turns] == ["The key is [key]."] * 3
    assert [turn.usage for turn in seat.turns] == [Usage(100, 10)] * 3


@pytest.mark.parametrize(
    ("body", "path", "status"),
    [
        ({**ASKED, "model": "another"}, CHAT, 400),
        ({"contents": []}, "/v1beta/models/another:generateContent", 400),
        (b"{", CHAT, 400),
        (ASKED, "@evil.example/v1/chat/completions", 400),
        (ASKED, "http://evil.example/v1/chat/completions", 400),
    ],
)
def test_other_models_and_other_hosts_are_refused(body: Any, path: str, status: int, tmp_path: Path) -> None:
    seat = FakeSeat()
    with endpoint(completion("x")) as host, served(tmp_path, host.url, seat) as connection:
        assert post(connection, body, path)[0] == status
        assert host.requests == []


def test_the_limit_and_the_number_of_replies_are_reserved(tmp_path: Path) -> None:
    seat = FakeSeat()
    with endpoint(completion("x")) as host, served(tmp_path, host.url, seat) as connection:
        post(connection, {**ASKED, "n": 3, "max_tokens": 7})
        post(connection, ASKED)
    assert seat.limits == [(7, 3), (None, 1)]


def test_nothing_is_sent_once_the_seat_is_over(tmp_path: Path) -> None:
    seat = FakeSeat(allowed=False)
    with endpoint(completion("x")) as host, served(tmp_path, host.url, seat) as connection:
        assert post(connection, ASKED)[0] == 403
        assert host.requests == []


@pytest.mark.parametrize(
    ("answer", "status", "problem"),
    [
        (
            Answer({"error": {"message": f"Slow down, {KEY}"}}, 429, {"Retry-After": "7"}),
            429,
            ChatProblem.RATE_LIMITED,
        ),
        (Answer({"error": {"message": "no"}}, 401), 401, ChatProblem.NOT_AUTHORISED),
        (Answer("<html>", 503), 503, ChatProblem.SERVER_ERROR),
        (Answer({"odd": 1}), 200, ChatProblem.MALFORMED_REPLY),
        (
            Answer({"error": {"message": "Overloaded", "type": "overloaded_error"}}),
            200,
            ChatProblem.SERVER_ERROR,
        ),
        (Answer({"error": {"message": f"Bad key {KEY}", "code": 401}}), 200, ChatProblem.NOT_AUTHORISED),
        (Answer({"choices": [{"error": {"message": "odd"}}]}), 200, ChatProblem.SERVER_ERROR),
        (completion("half", finish="error"), 200, ChatProblem.SERVER_ERROR),
        (completion("half", finish="model_context_window_exceeded"), 200, ChatProblem.CONTEXT_FULL),
        (Answer("", 302, {"Location": "http://evil.example"}), 302, ChatProblem.MALFORMED_REPLY),
    ],
)
def test_failures_pass_and_are_the_endpoints(
    answer: Answer, status: int, problem: ChatProblem, tmp_path: Path
) -> None:
    seat = FakeSeat()
    with endpoint(answer) as host, served(tmp_path, host.url, seat) as connection:
        told, text = post(connection, ASKED)
        assert told == status
        assert KEY not in text
    ((found, message),) = seat.failures
    assert (found, KEY in message) == (problem, False)
    assert not seat.turns


def test_a_host_that_is_gone_or_stops_in_the_middle_costs_what_was_sent(tmp_path: Path) -> None:
    seat = FakeSeat()
    with served(tmp_path, "http://127.0.0.1:9/v1", seat) as connection:
        assert post(connection, ASKED)[0] == 502
    with (
        endpoint(Answer(completion("x").body, cut=20)) as host,
        served(tmp_path, host.url, seat) as connection,
        pytest.raises((http.client.HTTPException, OSError)),
    ):
        post(connection, ASKED)
    assert [problem for problem, _ in seat.failures] == [ChatProblem.NO_CONNECTION] * 2
    assert seat.lost.tokens > 20


def broken(*events: Any) -> Answer:
    """Return a stream with these events that breaks off."""
    return Answer(blocks=[f"data: {json.dumps(event)}\n\n".encode() for event in events], cut=0)


BEGUN = {"type": "message_start", "message": {"usage": {"input_tokens": 40, "output_tokens": 1}}}
WRITTEN = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x" * 3_000}}
SERVED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/v1/messages", broken(BEGUN, WRITTEN)),
        ("/v1/messages", Answer(blocks=[events_of(BEGUN, WRITTEN, SERVED, done=False)])),
        (CHAT, broken(chunk(content="x" * 3_000), {"choices": [], "usage": {"prompt_tokens": 40}})),
        (
            "/v1beta/models/m-1:streamGenerateContent",
            broken(
                {
                    "candidates": [{"content": {"parts": [{"text": "x" * 3_000}]}}],
                    "usageMetadata": {"promptTokenCount": 40},
                }
            ),
        ),
    ],
)
def test_a_reply_that_breaks_off_costs_what_was_received(path: str, answer: Answer, tmp_path: Path) -> None:
    seat = FakeSeat()
    with (
        endpoint(answer) as host,
        served(tmp_path, host.url, seat) as connection,
        suppress(http.client.HTTPException, OSError),
    ):
        post(connection, ASKED, path)
    ((problem, _),) = seat.failures
    assert problem in (ChatProblem.NO_CONNECTION, ChatProblem.SERVER_ERROR)
    assert (seat.lost.prompt_tokens, seat.lost.completion_tokens, seat.turns) == (40, 1_000, [])


def test_a_program_hears_that_a_slow_reply_is_being_received(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "_PATIENCE_S", 0.01)
    heard = threading.Event()
    slow = Answer(blocks=[events_of(chunk(content="I "), done=False), 0.1, *(
        events_of(chunk(content=word), done=False) for word in ("look ", "around.")
    ), heard, events_of(chunk(finish="stop"))])  # fmt: skip
    with (
        endpoint(slow) as host,
        served(tmp_path, host.url, FakeSeat()) as connection,
    ):
        connection.request("POST", CHAT, json.dumps(ASKED))
        response = connection.getresponse()
        assert response.readline() == b": the reply is being received\n"
        heard.set()
        assert b"around." in response.read()


@pytest.mark.parametrize(
    ("answer", "finish"),
    [
        (Answer({"error": {"message": "Blocked.", "code": "content_filter"}}, 400), "content_filter"),
        (
            Answer({"error": {"message": "No.", "code": "tool_use_failed", "failed_generation": "x"}}, 400),
            "tool_use_failed",
        ),
    ],
)
def test_an_error_that_is_the_models_own_is_its_reply(answer: Answer, finish: str, tmp_path: Path) -> None:
    seat = FakeSeat()
    with endpoint(answer) as host, served(tmp_path, host.url, seat) as connection:
        assert post(connection, ASKED)[0] == 400
    (turn,) = seat.turns
    assert (turn.finish, seat.failures) == (finish, [])
    assert [call.arguments for call in turn.tool_calls] == ["x"] * (finish == "tool_use_failed")


@pytest.mark.parametrize("path", ["/v1/responses/compact", "/v1/completions", "/v1/embeddings"])
def test_an_answer_that_is_no_reply_costs_the_usage_that_it_reports(path: str, tmp_path: Path) -> None:
    seat = FakeSeat()
    name = "prompt_tokens" if "responses" not in path else "input_tokens"
    with (
        endpoint(Answer({"output": [], "usage": {name: 70}}), Answer({"data": []})) as host,
        served(tmp_path, host.url, seat) as connection,
    ):
        post(connection, ASKED, path)
        post(connection, ASKED, path)
    assert (seat.lost.prompt_tokens, seat.turns, seat.failures) == (70, [], [])
