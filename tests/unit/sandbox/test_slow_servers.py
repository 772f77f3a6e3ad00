"""A slow server is waited for while it shows activity, and never gets a pending request again."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from scripted_endpoint import Answer, chunk, completion, endpoint, events_of

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply
from gistpoint.core.errors import CancelledError
from gistpoint.core.running import CancelToken
from gistpoint.sandbox.endpoints.hosts import is_busy, is_local
from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
from gistpoint.sandbox.endpoints.retrying import Backoff, RetryingModel
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings
from gistpoint.sandbox.endpoints.throttle import HostGate, ThrottledModel

HELLO = [ChatMessage("user", "Hello.")]
QUICK = Backoff(first_s=0.01, longest_s=0.02)
ROLE, WORD, LAST = (
    events_of(item, done=False) for item in (chunk(role="assistant"), chunk(content="Fine."), chunk("stop"))
)
LOOKED = 0.3
"""A time in seconds in which a client checks its limits several times."""


@dataclass
class Clock:
    """A clock that servers advance."""

    at: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> float:
        return self.at

    def passes(self, seconds: float) -> Any:
        def advance() -> None:
            with self.lock:
                self.at += seconds

        return advance


def model_at(url: str, gate: HostGate | None = None, **changes: Any) -> OpenAICompatibleModel:
    return OpenAICompatibleModel(EndpointSettings("m", url, ApiKey(""), **changes), gate)


def asked(clock: Clock, *blocks: Any, **changes: Any) -> tuple[ChatReply | ChatFailure, bool]:
    """Return the answer to a request, and whether the server noticed that the client had left."""
    with endpoint(Answer(blocks=blocks)) as served:
        place = served.url.split("/")[2]
        answer = model_at(served.url, HostGate(now=clock.now, place=place), **changes).complete(HELLO, [])
        return answer, served.left.acquire(timeout=10 if isinstance(answer, ChatFailure) else 0)


# Limits on silence


def test_a_reply_that_goes_on_may_take_longer_than_any_silence() -> None:
    clock = Clock()
    pieces = [WORD, clock.passes(110), LOOKED] * 5
    answer, _ = asked(clock, ROLE, *pieces, LAST)
    assert isinstance(answer, ChatReply)
    assert answer.message.content == "Fine." * 5


def test_silence_in_the_middle_of_a_reply_is_a_failure_that_the_server_notices() -> None:
    clock = Clock()
    failure, noticed = asked(clock, ROLE, WORD, LOOKED, clock.passes(121), threading.Event())
    assert isinstance(failure, ChatFailure)
    assert (failure.problem, noticed) == (ChatProblem.TIMED_OUT, True)
    assert "sent nothing for 120 s in the middle of its reply" in failure.message
    assert failure.usage.estimated
    assert failure.usage.completion_tokens == 2


@pytest.mark.parametrize("first", [ROLE, b": keep-alive\n\n", b""])
def test_a_long_prompt_is_read_in_silence(first: bytes) -> None:
    clock = Clock()
    answer, _ = asked(clock, first, LOOKED, clock.passes(590), LOOKED, WORD, LAST)
    assert isinstance(answer, ChatReply)
    failure, noticed = asked(clock, first, LOOKED, clock.passes(601), threading.Event())
    assert isinstance(failure, ChatFailure)
    assert "sent nothing for 600 s before its reply" in failure.message
    assert noticed


def test_comments_show_that_a_server_is_there() -> None:
    clock = Clock()
    answer, _ = asked(clock, *[b": keep-alive\n\n", LOOKED, clock.passes(500)] * 4, WORD, LAST)
    assert isinstance(answer, ChatReply)


def test_a_reply_that_drips_ends_at_the_limit_of_the_whole() -> None:
    clock = Clock()
    drips = [WORD, clock.passes(119), 0.06] * 60
    failure, noticed = asked(clock, ROLE, *drips, threading.Event())
    assert isinstance(failure, ChatFailure)
    assert "gave no complete reply within 3600 s" in failure.message
    assert noticed


@pytest.mark.parametrize("changes", [{"timeout_s": 50.0}, {"timeout_s": 50.0, "no_stream": True}])
def test_a_limit_that_is_given_is_that_of_the_whole_reply(changes: dict[str, Any]) -> None:
    clock = Clock()
    failure, _ = asked(clock, ROLE, WORD, LOOKED, clock.passes(51), threading.Event(), **changes)
    assert isinstance(failure, ChatFailure)
    assert "gave no complete reply within 50 s" in failure.message


def test_a_reply_that_is_sent_whole_has_the_shorter_limit() -> None:
    clock = Clock()
    failure, _ = asked(clock, LOOKED, clock.passes(301), threading.Event(), no_stream=True)
    assert isinstance(failure, ChatFailure)
    assert "gave no complete reply within 300 s" in failure.message


# A client that leaves


@pytest.mark.parametrize("blocks", [None, (ROLE, WORD, threading.Event())])
def test_a_server_notices_at_once_that_a_request_was_cancelled(blocks: Sequence[Any] | None) -> None:
    cancel, got = CancelToken(), threading.Event()
    answer = Answer(wait=threading.Event()) if blocks is None else Answer(blocks=blocks)

    def step(request: object, headers: object) -> Answer:
        got.set()
        return answer

    with endpoint(step) as served:
        threading.Thread(target=lambda: (got.wait(10), cancel.cancel()), daemon=True).start()
        with pytest.raises(CancelledError):
            model_at(served.url).complete(HELLO, [], cancel=cancel)
        assert served.left.acquire(timeout=10)


# Requests that a local server still works on


@dataclass
class Stubborn:
    """A server that works on its first request until `done`, whether or not its client has left."""

    url: str = ""
    story: list[str] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)


@contextmanager
def stubborn() -> Iterator[Stubborn]:
    server = Stubborn()
    body = json.dumps(completion("Fine.").body).encode()
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    def serve(place: socket.socket) -> None:
        for number in range(9):
            try:
                caller, _ = place.accept()
            except OSError:
                return
            with caller:
                caller.recv(65_536)
                server.story.append(f"begins {number}")
                if number == 0:
                    server.done.wait(30)
                server.story.append(f"ends {number}")
                caller.sendall(reply)

    with socket.create_server(("127.0.0.1", 0)) as place:
        server.url = f"http://127.0.0.1:{place.getsockname()[1]}/v1"
        thread = threading.Thread(target=serve, args=(place,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.done.set()
            place.shutdown(socket.SHUT_RDWR)


def gated(url: str, backoff: Backoff, **changes: Any) -> tuple[RetryingModel, HostGate]:
    gate = HostGate(backoff, place=url.split("/")[2])
    return RetryingModel(ThrottledModel(model_at(url, gate, **changes), gate), backoff), gate


def test_what_a_local_server_works_on_is_not_sent_again_before_it_lets_go() -> None:
    with stubborn() as server:
        model, gate = gated(server.url, QUICK, timeout_s=2.0)

        def later() -> None:
            while not gate.host.still_works:
                time.sleep(0.01)
            threading.Timer(0.5, server.done.set).start()

        threading.Thread(target=later, daemon=True).start()
        reply = model.complete(HELLO, [])
        assert isinstance(reply, ChatReply)
        assert set(reply.retried) == {ChatProblem.TIMED_OUT}
        assert server.story[:3] == ["begins 0", "ends 0", "begins 1"]


def test_nothing_is_sent_to_a_local_server_that_does_not_let_go() -> None:
    with stubborn() as server:
        model, gate = gated(server.url, Backoff(requests=2, first_s=0.01, patience_s=0.2), timeout_s=0.2)
        failure = model.complete(HELLO, [])
        assert isinstance(failure, ChatFailure)
        assert (failure.problem, server.story) == (ChatProblem.TIMED_OUT, ["begins 0"])
        assert "still working on a request that was given up" in failure.message
        assert gate.host.still_works


def test_a_server_that_notices_is_asked_again_at_once_and_does_one_at_a_time() -> None:
    with endpoint(Answer(wait=threading.Event()), completion("Fine.")) as served:
        model, gate = gated(served.url, QUICK, timeout_s=2.0)
        reply = model.complete(HELLO, [])
        assert isinstance(reply, ChatReply)
        assert (served.most_at_work, len(served.requests)) == (1, 2)
        assert not gate.host.still_works


def test_a_request_that_waits_its_turn_is_not_given_up_while_the_server_works() -> None:
    clock, turn = Clock(), threading.Event()
    slow = Answer(blocks=[*[WORD, LOOKED, clock.passes(400)] * 4, LAST, turn.set])
    with endpoint(slow, Answer(blocks=[turn, WORD, LAST])) as served:
        gate = HostGate(now=clock.now, place=served.url.split("/")[2])
        answers: list[ChatReply | ChatFailure] = []

        def ask() -> None:
            answers.append(model_at(served.url, gate, silence_s=500.0).complete(HELLO, []))

        first = threading.Thread(target=ask)
        first.start()
        while not served.requests:
            time.sleep(0.01)
        ask()
        first.join(30)
    assert [type(answer) for answer in answers] == [ChatReply, ChatReply]


@pytest.mark.parametrize(
    ("place", "local"),
    [
        ("127.0.0.1:8080", True),
        ("localhost:8000", True),
        ("[::1]:8000", True),
        ("gpu-box", True),
        ("gpu.local:80", True),
        ("192.168.1.7:11434", True),
        ("10.0.0.3", True),
        ("api.openai.com", False),
        ("8.8.8.8:80", False),
    ],
)
def test_local_hosts(place: str, local: bool) -> None:
    assert is_local(place) is local


# Servers that are not ready


@pytest.mark.parametrize(
    ("status", "words", "busy"),
    [
        (503, "Loading model", True),
        (503, "slot unavailable", True),
        (503, "server busy, please try again.  maximum pending requests exceeded", True),
        (503, "without a word", False),
        (500, "loading", False),
    ],
)
def test_words_of_a_server_that_is_not_ready(status: int, words: str, busy: bool) -> None:
    assert is_busy(status, words) is busy


def test_a_server_that_loads_its_model_is_waited_for() -> None:
    loading = Answer({"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}, 503)
    with endpoint(*[loading] * 8, completion("Fine.")) as served:
        model, _ = gated(served.url, QUICK)
        reply = model.complete(HELLO, [])
    assert isinstance(reply, ChatReply)
    assert len(reply.retried) == 8


def test_a_server_that_never_gets_ready_is_waited_for_so_long() -> None:
    slept: list[float] = []
    loading = Answer({"error": {"message": "Loading model"}}, 503)
    with endpoint(loading) as served:
        model = RetryingModel(model_at(served.url), sleep=lambda seconds, cancel: slept.append(seconds))
        failure = model.complete(HELLO, [])
    assert isinstance(failure, ChatFailure)
    assert failure.problem is ChatProblem.SERVER_ERROR
    assert 600 <= sum(slept) < 700
