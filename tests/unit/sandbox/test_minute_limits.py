"""No minute has more requests or tokens than the limits allow, whenever conversations ask."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_endpoint import Answer, ScriptedModel, completion, endpoint, reply

from gistpoint.core.agents.solvers import RequestPace
from gistpoint.core.chat import ChatMessage, Usage
from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.running import CancelToken
from gistpoint.object_graph import endpoint_solver
from gistpoint.sandbox.endpoints.limits import WINDOW_S, MinuteLimits, MinuteWindow
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings, endpoint_settings
from gistpoint.sandbox.endpoints.throttle import HostGate, ThrottledModel
from gistpoint.sessions.agentruns.beginning import AgentPace

HELLO = [ChatMessage("user", "Hello.")]


@dataclass
class Asked:
    """A request in a simulation: its arrival, and its estimated and actual tokens."""

    at: float
    estimate: int
    used: int
    sent: float = -1.0


ARRIVALS = st.lists(
    st.builds(
        lambda gap, estimate, share: (gap, estimate, int(estimate * share)),
        st.sampled_from([0.0, 0.0, 0.01, 1.0, 20.0, 59.9, 60.0, 61.0, 300.0]),
        st.integers(0, 1_500),
        st.floats(0, 1),
    ),
    min_size=1,
    max_size=60,
)


def simulated(requests: list[Asked], limits: MinuteLimits) -> None:
    """Send requests as conversations would, each trying again after the requested wait."""
    now = [0.0]
    window = MinuteWindow(limits, lambda: now[0])
    looks = sorted((asked.at, number, -1) for number, asked in enumerate(requests))
    charges = {}
    while looks:
        now[0], number, _ = looks.pop(0)
        asked = requests[number]
        if number not in charges:
            charges[number] = window.join(asked.estimate)
        seconds = window.wait_s(charges[number])
        if seconds > 0:
            looks = sorted([*looks, (now[0] + seconds, number, 0)])
        else:
            asked.sent = now[0]
            window.used(charges[number], asked.used)


@given(ARRIVALS, st.none() | st.integers(1, 6), st.none() | st.integers(1, 3_000))
@settings(deadline=None)
def test_no_minute_has_more_than_the_limits(
    arrivals: list[tuple[float, int, int]], requests: int | None, tokens: int | None
) -> None:
    at, asked = 0.0, list[Asked]()
    for gap, estimate, used in arrivals:
        at += gap
        least = estimate if tokens is None else min(estimate, tokens)
        asked.append(Asked(at, estimate, min(used, least)))
    simulated(asked, MinuteLimits(requests, tokens))
    for first in asked:
        assert first.sent >= first.at
        minute = [item for item in asked if first.sent <= item.sent < first.sent + 60]
        assert requests is None or len(minute) <= requests
        assert tokens is None or sum(item.used for item in minute) <= tokens
    if requests is None and tokens is None:
        assert all(item.sent == item.at for item in asked)


@given(st.lists(st.sampled_from([0.0, 0.5, 7.0, 30.0, 90.0]), min_size=1, max_size=40), st.integers(1, 5))
def test_no_request_waits_longer_than_it_has_to(gaps: list[float], most: int) -> None:
    at, asked = 0.0, list[Asked]()
    for gap in gaps:
        at += gap
        asked.append(Asked(at, 0, 0))
    simulated(asked, MinuteLimits(requests=most))
    for number, item in enumerate(asked):
        free = asked[number - most].sent + WINDOW_S if number >= most else 0.0
        # A request that is not the next one tries again after a quarter of a second.
        assert item.sent <= max(item.at, free) + 0.25 * (number + 1)


def test_what_was_used_counts_and_not_what_was_estimated() -> None:
    now = [0.0]
    window = MinuteWindow(MinuteLimits(tokens=1_000), lambda: now[0])
    first = window.join(900)
    assert window.wait_s(first) == 0
    second = window.join(300)
    assert window.wait_s(second) == WINDOW_S
    window.used(first, 700)
    assert window.wait_s(second) == 0
    window.used(second, 5_000)
    third = window.join(1)
    now[0] = 60.0
    assert window.wait_s(third) == pytest.approx(1.0)
    now[0] = 61.0
    assert window.wait_s(third) == 0


def test_a_request_that_is_larger_than_the_limit_waits_for_a_minute_of_its_own() -> None:
    now = [0.0]
    window = MinuteWindow(MinuteLimits(tokens=100), lambda: now[0])
    assert window.wait_s(window.join(1)) == 0
    large = window.join(5_000)
    assert window.wait_s(large) == WINDOW_S
    now[0] = WINDOW_S
    assert window.wait_s(large) == 0


def test_a_small_request_does_not_overtake_a_large_one() -> None:
    now = [0.0]
    window = MinuteWindow(MinuteLimits(tokens=100), lambda: now[0])
    assert window.wait_s(window.join(60)) == 0
    large, small = window.join(90), window.join(1)
    assert window.wait_s(small) > 0
    assert window.wait_s(large) == WINDOW_S
    now[0] = WINDOW_S
    assert window.wait_s(small) > 0
    assert (large.at, small.at) == (None, None)
    assert window.wait_s(large) == 0
    assert window.wait_s(small) == 0


def test_who_leaves_makes_room_for_the_next() -> None:
    now = [0.0]
    window = MinuteWindow(MinuteLimits(tokens=100), lambda: now[0])
    assert window.wait_s(window.join(60)) == 0
    large, small = window.join(90), window.join(1)
    window.leave(large)
    assert window.wait_s(small) == 0


# In conversations


@dataclass
class Watched(CancelToken):
    """A token that records waits, and advances a clock."""

    now: float = 0.0
    waits: int = 0
    depth: int = 0
    stops_at: float = float("inf")
    slept: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        self.waits += self.depth == 0
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def sleep(self, seconds: float) -> None:
        with self.waiting():
            self.slept.append(seconds)
            self.now += seconds
            if self.now >= self.stops_at:
                raise CancelledError("Stopped.")


def throttled(token: Watched, limits: MinuteLimits) -> ThrottledModel:
    gate = HostGate(now=lambda: token.now, limits=limits)
    model = ScriptedModel([reply(content="Fine.", usage=Usage(100, 10))])
    return ThrottledModel(model, gate, reserve=500)


def test_a_wait_for_a_limit_is_one_pause() -> None:
    token = Watched()
    model = throttled(token, MinuteLimits(requests=2))
    for _ in range(3):
        model.complete(HELLO, [], cancel=token)
    assert (token.waits, token.now) == (1, pytest.approx(WINDOW_S))


def test_tokens_are_reserved_for_a_reply_and_then_counted() -> None:
    token = Watched()
    model = throttled(token, MinuteLimits(tokens=700))
    model.complete(HELLO, [], cancel=token)
    assert token.now == 0
    model.complete(HELLO, [], cancel=token)  # 110 used, and about 503 more
    assert token.now == 0
    model.complete(HELLO, [], cancel=token)
    assert token.now >= WINDOW_S


def test_who_stops_waiting_holds_up_nobody() -> None:
    token = Watched()
    model = throttled(token, MinuteLimits(requests=1))
    model.complete(HELLO, [], cancel=token)
    token.stops_at = 20.0
    with pytest.raises(CancelledError):
        model.complete(HELLO, [], cancel=token)
    token.stops_at = float("inf")
    model.complete(HELLO, [], cancel=token)
    assert token.now == pytest.approx(WINDOW_S, abs=5)


def test_threads_share_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gistpoint.sandbox.endpoints.limits.WINDOW_S", 0.2)
    gate = HostGate(limits=MinuteLimits(requests=3))
    model = ThrottledModel(ScriptedModel([reply(content="Fine.")]), gate)
    threads = [threading.Thread(target=model.complete, args=(HELLO, [])) for _ in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)


def test_a_stream_that_is_refused_counts_as_a_request_of_its_own() -> None:
    token = Watched()
    with endpoint(Answer({"error": "no stream"}, 400), completion("Fine.")) as served:
        solver = endpoint_solver(
            EndpointSettings("m", served.url, ApiKey(""), limits=MinuteLimits(requests=1))
        )
        token.stops_at = 1.0
        with pytest.raises(CancelledError):
            solver.model().complete(HELLO, [], cancel=token)
        assert len(served.requests) == 1


# Sources of limits


def test_limits_are_in_the_users_settings_and_those_of_a_run_replace_them(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[llm]\nmodel = "m"\nbase_url = "http://h/v1"\nrequests_per_minute = 30\ntokens_per_minute = 9000.0\n'
        "silence_s = 20\nfirst_token_s = 900\nno_stream = true\n"
    )
    found = endpoint_settings(tmp_path, {})
    assert found.limits == MinuteLimits(30, 9_000)
    assert (found.silence_s, found.first_token_s, found.no_stream, found.timeout_s) == (20, 900, True, None)
    assert found.paced(RequestPace(tokens_per_minute=5)).limits == MinuteLimits(30, 5)
    (tmp_path / "config.toml").write_text('[llm]\nmodel = "m"\nbase_url = "http://h/v1"\n')
    plain = endpoint_settings(tmp_path, {})
    assert not plain.limits
    assert (plain.silence_s, plain.first_token_s, plain.no_stream) == (120, 600, False)
    assert plain.paced(RequestPace(no_stream=True)).no_stream


def test_a_cluster_has_no_common_limit() -> None:
    assert AgentPace(requests_per_minute=5).requests == RequestPace(5)
    with pytest.raises(UserError, match="across the workers"):
        _ = AgentPace(cluster="tcp://h:1", requests_per_minute=5).requests
    assert AgentPace(cluster="tcp://h:1").requests == RequestPace()
