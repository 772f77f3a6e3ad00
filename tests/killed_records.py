"""Processes that are killed right after a record, and what their endpoint knows about their requests."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from agent_runs import LOOK, RIGHT, SOLVES, Home
from fakes import FakeClock

from gistpoint.core.agents import loop
from gistpoint.core.agents.scaffolds import Seat, covered
from gistpoint.core.agents.settings import TokenPrice
from gistpoint.core.attempts.events import ModelTurn, ProcessStarted
from gistpoint.core.attempts.state import fold
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, Usage
from gistpoint.core.logs import AppendLog
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.agentruns.store import JOBS_FILE
from gistpoint.sessions.journal import JOURNAL, read_journal

PRICE = TokenPrice(1000.0, 2000.0)
FAILED, REPLIED = Usage(50), Usage(100, 10)
"""The reported usage of each request that fails, and of each reply."""
CHARACTERS, TOKENS = 300, 100
"""The length of a program's request, and the estimate of its tokens."""


@dataclass
class KilledProcess:
    """The records of a process that is killed after the one with this number, counted from 1; 0 for never."""

    after: int = 0
    records: list[bytes] = field(default_factory=list)

    @property
    def is_dead(self) -> bool:
        """Whether the process has been killed."""
        return 0 < self.after <= len(self.records)

    @property
    def unsent_tokens(self) -> int:
        """The tokens of a request that was announced by the last record, and that was never sent."""
        last = json.loads(self.records[-1]) if self.is_dead else {}
        is_sent = last.get("kind") != "asked" or (last["request"] and last["turn"])
        return 0 if is_sent else int(last["tokens"])


@contextmanager
def killed(after: int = 0) -> Iterator[KilledProcess]:
    """Let each thread end, and write nothing more, once that many records are written."""
    process, append = KilledProcess(after), AppendLog.append

    def until_dead(log: AppendLog, lines: bytes, *, durable: bool = True) -> None:
        if process.is_dead:
            raise SystemExit
        append(log, lines, durable=durable)
        process.records.append(lines)
        if process.is_dead:
            raise SystemExit

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(AppendLog, "append", until_dead)
        with suppress(SystemExit):  # if the main thread was writing
            yield process


def move_time_with(clock: FakeClock, patched: pytest.MonkeyPatch) -> None:
    """Let gistpoint's loop take its times from a clock, and write a heartbeat whenever it could."""

    def sleep(seconds: float) -> None:
        clock.advance(math.ceil(seconds * 1000))

    time = SimpleNamespace(monotonic=lambda: clock.mono_ms() / 1000, sleep=sleep)
    patched.setattr(loop, "time", time)
    patched.setattr(loop, "_HEARTBEAT_S", 0.0)
    patched.setattr(loop, "_TICK_S", 60.0)


@dataclass
class SentRequest:
    """A request that the endpoint has received."""

    name: str
    """The text of its reply."""
    turn: int
    began_ms: int
    ended_ms: int = 0
    """When its answer was sent; 0 if its process was killed before."""
    has_failed: bool = False
    is_answered: bool = False


@dataclass
class Endpoint:
    """A model that fails as often as planned at each turn, takes a different time each time, and remembers."""

    clock: FakeClock
    fails: dict[int, int]
    """The number of further failures at each turn."""
    problem: ChatProblem = ChatProblem.TIMED_OUT
    on_failure: Callable[[], None] = lambda: None
    sent: list[SentRequest] = field(default_factory=list)
    name: str = "m-1"

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply | ChatFailure:
        """Answer a request of gistpoint's own loop."""
        turn = sum(message.role == "assistant" for message in messages) + 1
        sent = self.begun(turn)
        self.clock.advance(1_000 * (4 + len(self.sent)))
        cancel.check()
        sent.ended_ms = self.clock.mono_ms()
        if not self.fails.get(turn):
            answer, sent.is_answered = SOLVES[turn - 1], True
            return replace(answer, message=replace(answer.message, content=sent.name), usage=REPLIED)
        self.fails[turn] -= 1
        self.on_failure()
        sent.has_failed = True
        return ChatFailure(self.problem, "No reply.", usage=FAILED)

    @property
    def answered_ms(self) -> int:
        """How long the requests that got a reply were under way."""
        return sum(sent.ended_ms - sent.began_ms for sent in self.sent if sent.is_answered)

    def begun(self, turn: int = 0) -> SentRequest:
        """Return a new request."""
        self.sent.append(SentRequest(f"reply {len(self.sent)}", turn, self.clock.mono_ms()))
        return self.sent[-1]

    def attempt(self, seat: Seat) -> None:
        """Solve the task as a program does: of two requests at once, the one that was sent first fails."""
        self._passes(seat, 2_000)
        with seat.relayed(CHARACTERS) as first:
            assert first is not None
            one = self.begun()
            self._passes(seat, 3_000)
            with seat.relayed(CHARACTERS) as second:
                assert second is not None
                other = self.begun()
                self._passes(seat, 5_000)
                one.ended_ms, one.has_failed = self.clock.mono_ms(), True
                seat.not_answered(ChatProblem.TIMED_OUT, "No reply.", first, FAILED)
                self._passes(seat, 7_000)
                other.ended_ms = self.clock.mono_ms()
                seat.observed(ModelTurn(turn=0, content=other.name, usage=REPLIED), second)
        seat.call(*LOOK)
        with seat.relayed(CHARACTERS) as third:
            assert third is not None
            last = self.begun()
            self._passes(seat, 11_000)
            last.ended_ms = self.clock.mono_ms()
            seat.observed(ModelTurn(turn=0, content=last.name, usage=REPLIED), third)
        seat.call(*RIGHT)

    def _passes(self, seat: Seat, ms: int) -> None:
        self.clock.advance(ms)
        seat.beat()


def require_whole(home: Home, endpoint: Endpoint, unsent_tokens: int = 0) -> None:
    """Require that the figures of the only job are those of the endpoint and of the raw records."""
    folders = [place for place in (home.folder / "attempts").iterdir() if (place / JOURNAL).is_file()]
    journals = [read_journal(place / JOURNAL).events for place in folders]
    replied = {turn.content for events in journals for turn in fold(events).turns}
    answered = [sent for sent in endpoint.sent if sent.name in replied]
    lost = [sent for sent in endpoint.sent if sent.name not in replied]
    estimates = _estimates(home)
    usages = [FAILED if sent.has_failed else Usage(estimates.get(sent.turn, TOKENS)) for sent in lost]
    usages += [REPLIED] * len(answered) + [Usage(unsent_tokens)]
    (row,) = home.figures(home.runs.open("r")).attempts
    counted = (row.tokens or 0) + row.lost_tokens, (row.cost_usd or 0.0) + (row.lost_usd or 0.0)
    expected = sum(usage.tokens for usage in usages), sum(PRICE.cost(usage) for usage in usages)
    assert counted == pytest.approx(expected), f"tokens and cost {counted}, not {expected}"
    now = home.clock.mono_ms()
    spans, of_replies = (
        [(sent.began_ms, sent.ended_ms or now) for sent in requests] for requests in (endpoint.sent, answered)
    )
    lost_s = (covered(spans) - covered(of_replies)) / 1000
    assert row.lost_s == pytest.approx(lost_s), f"{row.lost_s} s lost, not {lost_s}"
    passed_ms = sum(
        after.mono_ms - before.mono_ms
        for events in journals
        for before, after in pairwise(events)
        if not isinstance(after.data, ProcessStarted)
    )
    took_s = (row.wall_s or 0.0) + row.abandoned_s
    assert took_s == pytest.approx(passed_ms / 1000), f"{took_s} s in attempts, not {passed_ms / 1000}"


def _estimates(home: Home) -> dict[int, int]:
    """Return the announced number of tokens of gistpoint's own request for each turn."""
    lines = map(json.loads, (home.folder / "runs" / "r" / JOBS_FILE).read_bytes().splitlines())
    asked = [line for line in lines if line.get("kind") == "asked" and not line["request"]]
    return {line["turn"]: line["tokens"] for line in asked if line["tokens"]}
