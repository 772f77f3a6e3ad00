"""The protocol of the loop: requests to a model, handling of its replies, and how its work ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_attempts import LOOK, MISS, SOLVE, AtWork, ByTurn, gist_at_work, repair_at_work
from builders import CHECKS
from fakes import FakeRunner
from gist_tasks import FAITHFUL
from scripted_endpoint import ScriptedModel, reply

from gistpoint.core.agents import loop
from gistpoint.core.agents.loop import AnnouncedRequest, TerminationReason, WorkEnd
from gistpoint.core.agents.settings import AgentSettings, TokenPrice, prompt_text
from gistpoint.core.attempts.clock import ClockActivity
from gistpoint.core.attempts.events import ModelTurn, PauseReason
from gistpoint.core.attempts.state import fold
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, Sampling, Usage
from gistpoint.core.errors import CancelledError
from gistpoint.core.estimates import Estimate, tokens_in
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.sandbox.endpoints.retrying import Backoff, RetryingModel

TALK = reply(content="I think that it is the price.")


def turns(work: AtWork) -> list[ModelTurn]:
    return list(work.state.turns)


# Requests to a model


def test_a_model_reads_what_a_person_reads_byte_for_byte(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    model = ByTurn([reply(LOOK, content="Let me look."), reply(SOLVE)])
    assert work.go(model) == WorkEnd(TerminationReason.ENDED)
    assert work.ended == ("solved", "")
    first, second = model.asked
    assert first == [
        ChatMessage("system", prompt_text("agent-2")),
        ChatMessage("user", render_brief(work.task)),
    ]
    assert second[:2] == first
    assert second[2].content == "Let me look."
    assert second[3:] == [ChatMessage("tool", work.state.calls[0].text or "", tool_call_id="id-0")]
    assert model.offered[0] == [tool.name for tool in work.attempt.tools]


def test_a_model_may_be_asked_without_a_prompt(tmp_path: Path) -> None:
    model = ByTurn([reply(SOLVE)])
    repair_at_work(tmp_path).go(model, AgentSettings(system="none"))
    assert [message.role for message in model.asked[0]] == ["user"]


def test_a_turn_is_journalled_before_its_calls_with_all_that_it_was(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    said = reply(
        LOOK,
        LOOK,
        content="Hm.",
        usage=Usage(900, 30, 800, 12, 0.25),
    )
    said = replace(
        said,
        retried=(ChatProblem.TIMED_OUT,),
        lost=Usage(7, 0, estimated=True),
        fingerprint="f",
        request_id="r",
    )
    said = replace(said, message=replace(said.message, reasoning="Where?"))
    work.go(ByTurn([said, reply(SOLVE, usage=Usage(1_000, 10))]))
    assert work.types[2:8] == ["view", "model_turn", "tool_call", "tool_result", "tool_call", "tool_result"]
    made = json.loads(json.dumps(work.memory.events[3].data.written()))
    latency = made.pop("latency_ms")
    assert latency >= 0
    calls = [{"id": f"id-{n}", "name": "read_file", "arguments": json.dumps(LOOK[1])} for n in range(2)]
    assert made == {
        "turn": 1, "content": "Hm.", "reasoning": "Where?", "tool_calls": calls, "finish": "tool_calls", "model": "m-1",
        "fingerprint": "f", "request_id": "r", "retried": ["timed_out"],
        "usage": {"prompt": 900, "completion": 30, "cached": 800, "reasoning": 12, "cost_usd": 0.25},
        "lost": {"prompt": 7, "estimated": True},
    }  # fmt: skip
    assert [call.turn for call in work.state.calls] == [1, 1, 2]
    assert work.memory.events[6].data.written()["request_id"] == "id-1"
    assert work.state.spent.usage == Usage(1907, 40, 800, 12, 0.25, True)


def test_the_calls_of_a_reply_are_made_in_order_until_the_attempt_ends(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    work.go(ByTurn([reply(LOOK, MISS, LOOK, SOLVE, LOOK, LOOK)]))
    assert [call.tool for call in work.state.calls] == [
        "read_file",
        "submit_attempt",
        "read_file",
        "submit_attempt",
    ]
    assert work.ended == ("solved", "")
    assert work.state.remaining.tool_uses == 12


def test_the_last_use_offers_only_what_submits_and_the_turn_says_so(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path, budgets=Budgets(3, 1))
    smaller = reply(SOLVE, usage=Usage(50, 10))  # fewer schemas are sent, and no history was cut
    model = ByTurn([reply(LOOK), reply(LOOK), smaller])
    assert work.go(model).reason is TerminationReason.ENDED
    assert model.offered[2] == ["submit_attempt"]
    assert [turn.written().get("tools") for turn in turns(work)] == [None, None, ("submit_attempt",)]
    assert work.ended == ("solved", "")


# Replies that call nothing


@pytest.mark.parametrize(
    ("said", "code", "replies", "prompt"),
    [
        (TALK, "no_tool_call", 3, "no-call-2"),
        (reply(content="And so on and", finish="length"), "truncated", 3, "cut-off-2"),
        (reply(refusal="I will not."), "declined", 2, "again-2"),
        (reply(SOLVE, finish="content_filter"), "declined", 2, "again-2"),
        (reply(content="Not mine.", finish="not_supported"), "not_supported", 1, ""),
        (reply(), "no_tool_call", 3, "no-call-2"),
    ],
    ids=["talks", "cut off", "refuses", "filtered", "not supported", "silent"],
)
def test_who_never_calls_gives_up_for_a_reason(
    tmp_path: Path, said: ChatReply, code: str, replies: int, prompt: str
) -> None:
    work = repair_at_work(tmp_path)
    model = ScriptedModel([said])
    assert work.go(model).reason is TerminationReason.ENDED
    assert work.ended == ("gave_up", code)
    assert len(turns(work)) == replies
    assert not work.state.calls
    told = [message.content for message in model.asked[-1] if message.role == "user"][1:]
    assert told == [prompt_text(prompt) for _ in range(replies - 1)]


def test_a_call_in_between_restarts_the_count(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    model = ScriptedModel([TALK, TALK, reply(LOOK), TALK, TALK, reply(SOLVE)])
    work.go(model)
    assert work.ended == ("solved", "")


def test_no_mixture_of_useless_replies_goes_on_for_ever(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    model = ScriptedModel([TALK, reply(content="a", finish="length"), reply(refusal="No."), TALK])
    work.go(model)
    assert (work.ended, len(model.asked)) == (("gave_up", "declined"), 3)


def test_a_model_that_calls_wrongly_for_ever_uses_up_its_budget(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    work.go(ScriptedModel([reply(("read_file", "{'file_path'"))]))
    assert work.ended == ("calls_exhausted", "")
    assert len(turns(work)) == 18  # two of the three refusals at the last use are free
    assert work.state.spent.malformed == 18


def test_a_gist_of_who_gives_up_is_handed_in_as_it_was_saved(tmp_path: Path) -> None:
    work = gist_at_work(tmp_path)
    work.go(ScriptedModel([reply(("write_gist", {"content": FAITHFUL})), TALK]))
    assert work.ended == ("gave_up", "no_tool_call")
    assert work.state.solved


# Limits


@pytest.mark.parametrize("over", [0, 1])
def test_the_context_is_what_was_counted_and_what_is_new_and_room_for_a_reply(
    tmp_path: Path, over: int
) -> None:
    work = repair_at_work(tmp_path)
    model = ByTurn([reply(LOOK, usage=Usage(5_000, 70)), reply(SOLVE, usage=Usage(6_000, 1))])
    straight = repair_at_work(tmp_path / "straight")
    straight.go(ByTurn([reply(LOOK), reply(SOLVE)]))
    needed = 5_070 + tokens_in(len(straight.state.calls[0].text or "")) + 900
    settings = AgentSettings(context_tokens=needed - over, sampling=Sampling(max_output_tokens=900))
    assert work.go(model, settings).reason is TerminationReason.ENDED
    assert work.ended == (("context_exhausted", "") if over else ("solved", ""))
    assert len(model.asked) == 2 - over


def test_a_brief_that_does_not_fit_is_never_sent(tmp_path: Path) -> None:
    work, model = repair_at_work(tmp_path), ByTurn([reply(SOLVE)])
    work.go(model, AgentSettings(context_tokens=4_200))
    assert (work.ended, model.asked) == (("context_exhausted", ""), [])


@pytest.mark.parametrize("gist", [False, True])
def test_an_endpoint_that_says_the_context_is_full_ends_the_attempt(tmp_path: Path, gist: bool) -> None:
    work = gist_at_work(tmp_path) if gist else repair_at_work(tmp_path)
    first = reply(("write_gist", {"content": FAITHFUL})) if gist else reply(LOOK)
    work.go(ByTurn([first, ChatFailure(ChatProblem.CONTEXT_FULL, "Too long.")]))
    assert work.ended == ("context_exhausted", "")
    assert work.state.solved is gist


def test_the_tokens_of_an_attempt_are_a_budget(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    model = ScriptedModel([reply(LOOK, usage=Usage(1_000, 100))])
    work.go(model, AgentSettings(attempt_tokens=3_000))
    assert work.ended == ("token_cap", "")
    assert work.state.spent.usage.tokens <= 3_000
    assert len(model.asked) == 2  # a third request would exceed the remaining 800 tokens


def test_requests_that_failed_are_no_tokens_of_the_attempt(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    first = replace(reply(LOOK, usage=Usage(1_000, 100)), lost=Usage(9_000))
    work.go(ByTurn([first, reply(SOLVE, usage=Usage(1_200, 10))]), AgentSettings(attempt_tokens=3_000))
    assert work.ended == ("solved", "")
    assert (work.state.spent.replies.tokens, work.state.spent.failed.tokens) == (2_310, 9_000)


@dataclass
class SlowToFail(ByTurn):
    """A model whose requests take 40 s; the first `failures` of them fail or, with `drops`, are cancelled."""

    failures: int = 2
    drops: bool = False
    clock: Any = None

    def complete(self, messages: Any, tools: Any, *, cancel: CancelToken = NEVER) -> ChatReply | ChatFailure:
        cancel.check()
        self.clock.advance(40_000)
        cancel.check()  # which writes a heartbeat
        if not self.failures:
            return super().complete(messages, tools, cancel=cancel)
        self.failures -= 1
        if self.drops:
            raise CancelledError("It was stopped.")
        return ChatFailure(ChatProblem.SERVER_ERROR, "Oh.", usage=Usage(10))


@pytest.mark.parametrize("how", ["sent again", "halted", "dropped"])
def test_the_time_of_requests_without_a_reply_is_not_the_model_s(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_HEARTBEAT_S", 0.0)
    work = repair_at_work(tmp_path, budgets=Budgets(16, 4, time_limit_s=60))
    slow = SlowToFail([reply(SOLVE)], failures=3, drops=how == "dropped", clock=work.clock)

    def sleep(seconds: float, cancel: CancelToken) -> None:
        cancel.sleep(0.0)

    model = RetryingModel(slow, Backoff(requests=4 if how == "sent again" else 1), sleep)
    for _ in range(0 if how == "sent again" else 3):
        assert work.go(model).reason is (
            TerminationReason.STOPPED if slow.drops else TerminationReason.HALTED
        )
        assert not work.state.ended
    assert work.go(model).reason is TerminationReason.ENDED
    assert work.ended == ("solved", "")
    assert work.types.count("heartbeat") >= 8
    clock = work.state.clock
    assert (clock.thinking, clock.paused) == (40_000, 120_000)
    assert fold(work.memory.events).clock == clock


def test_a_reply_to_a_shortened_conversation_takes_none_of_the_model_s_time(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    replies = [reply(LOOK, usage=Usage(5_000, 10)), reply(LOOK, usage=Usage(900, 10))]
    assert work.go(SlowToFail(replies, failures=0, clock=work.clock)).problem == loop.HISTORY_CUT
    assert (work.state.clock.thinking, work.state.clock.paused) == (40_000, 40_000)


def test_time_is_up_while_a_model_thinks(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path, budgets=Budgets(16, 4, time_limit_s=60))

    class Slow(ByTurn):
        def complete(
            self, messages: Any, tools: Any, *, cancel: CancelToken = NEVER
        ) -> ChatReply | ChatFailure:
            work.clock.advance(40_000)
            return super().complete(messages, tools, cancel=cancel)

    assert work.go(Slow([reply(LOOK)])).reason is TerminationReason.ENDED
    assert work.ended == ("time_cap", "")
    assert len(turns(work)) == 1
    assert work.state.clock.of(ClockActivity.THINKING) == 80_000


# Cost


def test_no_request_is_sent_that_may_cost_too_much(tmp_path: Path) -> None:
    work, model, seen = repair_at_work(tmp_path), ByTurn([reply(LOOK)]), list[Estimate]()

    def may_ask(estimate: Estimate) -> bool:
        seen.append(estimate)
        return len(seen) < 3

    settings = AgentSettings(price=TokenPrice(1.0, 10.0, 0.5), sampling=Sampling(max_output_tokens=1_000))
    left = work.go(model, settings, may_ask=may_ask)
    assert (left.reason, left.halted, work.ended) == (TerminationReason.OVER_COST, None, ("", ""))
    assert len(model.asked) == 2
    assert all(e.cost_usd == pytest.approx(e.prompt_tokens / 1e6 + 0.01) for e in seen)
    assert work.state.spent.usage.cost_usd == pytest.approx(2 * (100 * 1.0 + 10 * 10.0) / 1e6)


@dataclass
class FailsOnce:
    """A model whose first request fails, and which replies to the next one."""

    name: str = "fails once"
    requests: int = 0

    def complete(self, messages: Any, tools: Any, *, cancel: CancelToken = NEVER) -> ChatReply | ChatFailure:
        self.requests += 1
        failure = ChatFailure(ChatProblem.TIMED_OUT, "No reply.", usage=Usage(1_000_000))
        return failure if self.requests == 1 else reply(SOLVE)


@pytest.mark.parametrize(("most_usd", "requests"), [(1.005, 1), (1.5, 2)])
def test_a_failed_request_is_not_sent_again_if_both_may_cost_too_much(
    tmp_path: Path, most_usd: float, requests: int
) -> None:
    work, failing, announced = repair_at_work(tmp_path), FailsOnce(), list[AnnouncedRequest]()
    settings = AgentSettings(price=TokenPrice(1.0, 10.0), sampling=Sampling(max_output_tokens=1_000))
    left = work.go(
        RetryingModel(failing, Backoff(first_s=0.0)),
        settings,
        may_ask=lambda estimate: (estimate.cost_usd or 0.0) <= most_usd,
        announce=announced.append,
    )
    sent = [one for one in announced if one.usage.tokens]
    assert failing.requests == len(sent) == requests
    assert len(announced) - len(sent) == 1, "the failed request is announced as over (decision 210)"
    assert left.reason is (TerminationReason.OVER_COST if requests == 1 else TerminationReason.ENDED)
    lost = left.lost if requests == 1 else work.state.turns[0].lost
    assert isinstance(lost, Usage)
    assert (lost.prompt_tokens, lost.cost_usd) == (1_000_000, 1.0)


def test_a_price_wins_over_the_endpoint_s_word() -> None:
    usage = Usage(1_000_000, 100_000, cost_usd=9.0, cached_tokens=400_000)
    assert AgentSettings(price=TokenPrice(1.0, 10.0, 0.5)).cost(usage) == pytest.approx(0.6 + 0.2 + 1.0)
    assert AgentSettings(price=TokenPrice(1.0, 10.0)).cost(usage) == pytest.approx(2.0)
    assert AgentSettings().cost(usage) == 9.0


def test_what_is_written_to_a_cache_has_a_price_of_its_own() -> None:
    usage = Usage(1_000_000, 100_000, cached_tokens=400_000, written_tokens=200_000)
    price = TokenPrice(1.0, 10.0, 0.5, 1.25)
    assert price.cost(usage) == pytest.approx(0.4 + 0.2 + 0.25 + 1.0)
    assert TokenPrice(1.0, 10.0, 0.5).cost(usage) == pytest.approx(0.6 + 0.2 + 1.0)
    settings = AgentSettings(price=price, sampling=Sampling(max_output_tokens=1_000))
    assert settings.estimate(1_000_000).cost_usd == pytest.approx(1.25 + 0.01)
    assert (usage + usage).written_tokens == 400_000


def test_a_price_without_one_for_writing_keeps_the_digest_of_a_run() -> None:
    assert msgspec.to_builtins(TokenPrice(1.0, 10.0)) == {"input": 1.0, "output": 10.0, "cached": None}


# Endpoints that fail


@pytest.mark.parametrize("problem", [p for p in ChatProblem if p is not ChatProblem.CONTEXT_FULL])
def test_an_endpoint_s_failure_halts_and_never_ends(tmp_path: Path, problem: ChatProblem) -> None:
    work = repair_at_work(tmp_path)
    failure = ChatFailure(problem, "It said no.", usage=Usage(50, 0, estimated=True))
    left = work.go(ByTurn([reply(LOOK), failure]))
    assert (left.reason, left.problem, left.message) == (TerminationReason.HALTED, problem, "It said no.")
    assert left.stops_run is (
        problem
        in (
            ChatProblem.NOT_AUTHORISED,
            ChatProblem.ACCOUNT_EMPTY,
            ChatProblem.UNKNOWN_MODEL,
        )
    )
    assert left.lost == Usage(50, 0, estimated=True)
    assert work.ended == ("", "")
    again = work.cut(len(work.memory.events))
    assert again.go(ByTurn([reply(LOOK), reply(SOLVE)])).reason is TerminationReason.ENDED
    assert again.ended == ("solved", "")


def test_waiting_for_an_endpoint_is_a_pause_and_no_working_time(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    limited = ChatFailure(ChatProblem.RATE_LIMITED, "Later.")

    def sleep(seconds: float, cancel: CancelToken) -> None:
        with cancel.waiting():  # waits may be nested
            cancel.sleep(0.0)
            work.clock.advance(30_000)

    model = RetryingModel(ScriptedModel([limited, limited, reply(SOLVE)]), Backoff(), sleep)
    work.go(model)
    assert work.ended == ("solved", "")
    assert work.types.count("pause") == work.types.count("resume") == 2
    reasons = {event.data.written()["reason"] for event in work.memory.events if event.type == "pause"}
    assert reasons == {PauseReason.ENDPOINT_WAIT}
    clock = work.state.clock
    assert (clock.of(ClockActivity.PAUSED), clock.active) == (60_000, 0)
    assert work.state.spent.retried == 2


def test_a_conversation_that_got_shorter_halts_before_it_is_believed(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    left = work.go(ByTurn([reply(LOOK, usage=Usage(4_000, 10)), reply(SOLVE, usage=Usage(2_048, 10))]))
    assert (left.reason, left.problem, left.stops_run) == (TerminationReason.HALTED, "history_cut", False)
    assert "2048 tokens of a conversation of which it had read 4000" in left.message
    assert (len(turns(work)), left.lost.prompt_tokens) == (1, 2_048)


def test_estimated_tokens_prove_no_cut(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    work.go(
        ByTurn([reply(LOOK, usage=Usage(4_000, 10)), reply(SOLVE, usage=Usage(2_048, 10, estimated=True))])
    )
    assert work.ended == ("solved", "")


def test_a_submission_that_could_not_be_judged_halts(tmp_path: Path) -> None:
    runner = FakeRunner(CHECKS, status=RunStatus.INFRASTRUCTURE)
    work = repair_at_work(tmp_path, runner=runner)
    left = work.go(ByTurn([reply(SOLVE)]))
    assert (left.reason, left.problem, work.ended) == (TerminationReason.HALTED, "infrastructure", ("", ""))
    runner.status = RunStatus.FINISHED
    again = work.cut(len(work.memory.events))
    again.go(ByTurn([reply(SOLVE)]))
    assert again.ended == ("solved", "")


# Stopping


def test_it_stops_between_calls_and_goes_on_with_those_that_are_missing(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    left = work.go(ByTurn([reply(LOOK, LOOK, SOLVE)]), stop=lambda: len(work.state.calls) == 2)
    assert (left.reason, len(work.state.calls)) == (TerminationReason.STOPPED, 2)
    model = ByTurn([reply(LOOK)])
    assert work.go(model).reason is TerminationReason.ENDED
    assert (work.ended, model.asked) == (("solved", ""), [])


def test_a_reply_that_is_awaited_is_dropped_and_counted_as_lost(tmp_path: Path) -> None:
    work, asked = repair_at_work(tmp_path), list[int]()

    class Silent(ByTurn):
        def complete(
            self, messages: Any, tools: Any, *, cancel: CancelToken = NEVER
        ) -> ChatReply | ChatFailure:
            asked.append(1)
            while True:
                cancel.check()

    left = work.go(Silent([reply(LOOK)]), stop=lambda: bool(asked))
    assert (left.reason, left.lost.estimated, left.lost.prompt_tokens > 100) == (
        TerminationReason.STOPPED,
        True,
        True,
    )
    assert work.state.pause is None
    assert not turns(work)


def test_a_wait_that_is_dropped_costs_only_the_requests_before_it(tmp_path: Path) -> None:
    work, asked, announced = repair_at_work(tmp_path), list[int](), list[AnnouncedRequest]()

    class Waits(ByTurn):
        def complete(
            self, messages: Any, tools: Any, *, cancel: CancelToken = NEVER
        ) -> ChatReply | ChatFailure:
            cancel.failed(Usage(70))
            asked.append(1)
            cancel.sleep(600)
            raise AssertionError

    left = work.go(Waits([reply(LOOK)]), stop=lambda: bool(asked), announce=announced.append)
    assert (left.reason, left.lost.tokens) == (TerminationReason.STOPPED, 70)
    assert [(one.turn, one.failed.tokens) for one in announced] == [(1, 0), (1, 70)]
    assert (announced[0].usage.tokens > 0, announced[1].usage.tokens) == (True, 0)
    assert not turns(work)


def test_the_caller_hears_of_every_turn_and_every_call(tmp_path: Path) -> None:
    work, heard = repair_at_work(tmp_path), list[tuple[int, int]]()
    model = ByTurn([reply(LOOK, LOOK), reply(SOLVE)])
    work.go(model, on_turn=lambda state, _: heard.append((len(state.turns), len(state.calls))))
    assert heard == [(1, 0), (1, 1), (1, 2), (2, 2), (2, 3)]


def test_an_ended_attempt_asks_nothing(tmp_path: Path) -> None:
    work, model = repair_at_work(tmp_path), ByTurn([reply(SOLVE)])
    work.go(model)
    events = len(work.memory.events)
    assert work.go(model) == WorkEnd(TerminationReason.ENDED)
    assert (len(model.asked), len(work.memory.events)) == (1, events)


def test_the_texts_of_a_reply_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MOST_CHARACTERS", 50)
    monkeypatch.setattr(loop, "MOST_CALLS", 2)
    work = repair_at_work(tmp_path)
    big = reply(*[("read_file", "x" * 90)] * 9, content="y" * 90, ids=["i" * 900] * 9)
    work.go(ByTurn([big, reply(SOLVE)]), stop=lambda: len(turns(work)) == 1)
    (turn,) = turns(work)
    assert (len(turn.content), len(turn.tool_calls), len(turn.tool_calls[0].arguments)) == (50, 2, 50)
    assert len(turn.tool_calls[0].id) == 200


# Processes that die


SCRIPT: Sequence[ChatReply] = [
    reply(LOOK, ("read_file", "{'"), content="First."),
    reply(content="I wonder."),
    reply(MISS, ("list_directory", {}), content="Try."),
    reply(content="Half a sen", finish="length"),
    reply(LOOK, SOLVE, LOOK, content="That's it."),
]
GIST_SCRIPT: Sequence[ChatReply] = [
    reply(("list_directory", {}), ("write_gist", {"content": FAITHFUL}), content="Here."),
    reply(content="Done."),
]


def result_of(work: AtWork) -> Mapping[str, object]:
    state = work.state
    return {
        "ended": work.ended,
        "left": state.remaining,
        "calls": [(c.tool, c.text, c.refused, c.turn, c.remaining) for c in state.calls],
        "turns": [(t.turn, t.content, t.tool_calls) for t in state.turns],
        "submissions": [(s.number, s.score, s.solved) for s in state.submissions],
        "spent": state.spent,
    }


@pytest.mark.parametrize(
    ("begun", "script"), [(repair_at_work, SCRIPT), (gist_at_work, GIST_SCRIPT)], ids=["repair", "gist"]
)
def test_a_journal_cut_anywhere_is_worked_to_the_same_end(
    tmp_path: Path, begun: Callable[[Path], AtWork], script: Sequence[ChatReply]
) -> None:
    straight, model = begun(tmp_path), ByTurn(script)
    straight.go(model)
    wanted, requests = result_of(straight), len(model.asked)
    assert straight.state.ended
    for events in range(2, len(straight.memory.events) + 1):
        asked_before = straight.types[:events].count("model_turn")
        again, second = straight.cut(events), ByTurn(script)
        assert again.go(second) == WorkEnd(TerminationReason.ENDED)
        assert result_of(again) == wanted, events
        assert len(second.asked) == requests - asked_before
        assert second.asked == model.asked[asked_before:], "it is asked what it would have been asked"
        assert fold(again.memory.events).spent == straight.state.spent
        calls = [
            event.data.written()["call_id"] for event in again.memory.events if event.type == "tool_call"
        ]
        assert len(calls) == len(set(calls))


def test_an_endpoint_that_counts_too_few_tokens_does_not_make_the_context_longer(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    model = ByTurn([reply(LOOK, content="x" * 40_000, usage=Usage(10, 10))] * 9)
    work.go(model, AgentSettings(context_tokens=10_000))
    assert work.ended == ("context_exhausted", "")
    assert len(model.asked) < 5
