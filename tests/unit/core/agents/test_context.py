"""The context of a model: the estimated size of requests, and the signs that an endpoint cut one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from agent_attempts import LOOK, SOLVE, ByTurn, repair_at_work
from scripted_endpoint import reply

from gistpoint.core.agents.loop import TerminationReason
from gistpoint.core.agents.settings import LOOP_VERSION, AgentSettings
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatReply, Usage
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.tasks.budgets import Budgets

THINKING = "hm " * 300
Template = Callable[[Sequence[ChatMessage]], str]


def thinking_of(message: ChatMessage) -> tuple[str, str]:
    """Return the thinking in a message, as reasoning that is sent back or in its text, and the rest."""
    before, mark, after = message.content.replace("◁/think▷", "</think>").rpartition("</think>")
    return (message.reasoning + before + mark, after) if mark else (message.reasoning, message.content)


def qwen3(messages: Sequence[ChatMessage]) -> str:
    """Drop the thinking of replies before the last message from a user (Qwen3's chat template)."""
    last = max(number for number, message in enumerate(messages) if message.role == "user")
    return "".join(
        "".join(thinking_of(message)) if number > last else thinking_of(message)[1]
        for number, message in enumerate(messages)
    )


def last_alone(messages: Sequence[ChatMessage]) -> str:
    """Drop the thinking of all replies but the last."""
    last = max((n for n, message in enumerate(messages) if message.role == "assistant"), default=0)
    return "".join(
        "".join(thinking_of(message)) if number == last else thinking_of(message)[1]
        for number, message in enumerate(messages)
    )


def whole(messages: Sequence[ChatMessage]) -> str:
    return "".join("".join(thinking_of(message)) for message in messages)


@dataclass
class Counting(ByTurn):
    """A model behind a server that counts the tokens that its template keeps, at most `window`."""

    template: Template = whole
    window: int = 1 << 40
    counts: list[int] = field(default_factory=list)

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply | ChatFailure:
        said = super().complete(messages, tools, cancel=cancel)
        assert isinstance(said, ChatReply)
        # Ollama leaves out whole messages from the beginning until the others fit.
        kept = list(messages)
        while len(self.template(kept)) // 4 > self.window:
            del kept[1]
        self.counts.append(len(self.template(kept)) // 4)
        return replace(said, usage=replace_prompt(said.usage, self.counts[-1]))


def replace_prompt(usage: Usage, prompt: int) -> Usage:
    return Usage(prompt, usage.completion_tokens, reasoning_tokens=usage.reasoning_tokens)


def thought(said: ChatReply, *, in_text: bool, times: int = 3) -> ChatReply:
    """Return a reply with thinking, in its text or as reasoning that is sent back."""
    usage = Usage(0, 1_010, reasoning_tokens=0 if in_text else 300 * times)
    message = said.message
    if in_text:
        message = replace(message, content=f"<think>{THINKING * times}</think>{message.content}")
    else:
        message = replace(message, reasoning=THINKING * times)
    return replace(said, message=message, usage=usage, echoed=not in_text)


TALKS = reply(content="I wonder.")


@pytest.mark.parametrize("in_text", [True, False], ids=["in the text", "sent back"])
@pytest.mark.parametrize("template", [qwen3, last_alone, whole])
def test_a_template_that_drops_earlier_thinking_cuts_nothing(
    tmp_path: Path, template: Template, in_text: bool
) -> None:
    script = [reply(LOOK), reply(LOOK), TALKS, reply(LOOK), TALKS, TALKS, reply(LOOK), reply(SOLVE)]
    model = Counting(
        [thought(said, in_text=in_text, times=9 - number) for number, said in enumerate(script)],
        template=template,
    )
    work = repair_at_work(tmp_path)
    assert work.go(model).reason is TerminationReason.ENDED
    assert work.ended == ("solved", "")
    drops = [now < before for before, now in zip(model.counts, model.counts[1:], strict=False)]
    assert any(drops) is (template is not whole)


def test_thinking_in_marks_that_are_not_known_may_be_dropped_when_a_user_writes(tmp_path: Path) -> None:
    script = [thought(said, in_text=True) for said in (reply(LOOK), reply(LOOK), TALKS, reply(SOLVE))]
    marked = [
        replace(
            said, message=replace(said.message, content=said.message.content.replace("</think>", "◁/think▷"))
        )
        for said in script
    ]
    model = Counting(marked, template=qwen3)
    work = repair_at_work(tmp_path)
    assert work.go(model).reason is TerminationReason.ENDED
    assert work.ended == ("solved", "")
    assert model.counts[3] < model.counts[2]


def test_only_the_beginning_of_a_conversation_that_was_cut_is_never_believed(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    model = Counting([reply(LOOK)] * 9, window=1_300)
    left = work.go(model)
    assert (left.reason, left.problem) == (TerminationReason.HALTED, "history_cut")
    assert model.counts[-1] < model.counts[-2] <= 1_300


def test_a_cut_at_a_reply_without_a_call_is_found_when_the_tools_answer_again(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path, budgets=Budgets(40, 4))
    script = [reply(LOOK), reply(LOOK), TALKS, *[reply(LOOK)] * 30]
    left = work.go(Counting(script, window=1_300))
    assert (left.reason, left.problem) == (TerminationReason.HALTED, "history_cut")


def test_thinking_explains_no_more_tokens_than_it_has(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    first = thought(reply(LOOK), in_text=False)
    script = [
        replace(first, usage=Usage(3_000, 1_010, reasoning_tokens=1_000)),
        replace(first, usage=Usage(5_000, 1_010, reasoning_tokens=1_000)),
        replace(first, usage=Usage(3_500, 10)),
    ]
    left = work.go(ByTurn(script))
    assert (left.reason, left.problem) == (TerminationReason.HALTED, "history_cut")


# The estimate


def reasoner(*, echoed: bool = False, extra: Mapping[str, Any] | None = None) -> ByTurn:
    """Return a model that thinks 20,000 tokens per reply; its host counts those that are sent back."""
    said = []
    for number in range(19):
        prompt = 1_400 + number * (20_050 if echoed else 50)
        made = reply(LOOK, usage=Usage(prompt, 20_050, reasoning_tokens=20_000))
        message = replace(made.message, reasoning="...", extra=extra or {}, host="h" if extra else "")
        said.append(replace(made, message=message, echoed=echoed))
    return ByTurn(said)


CONTEXT = AgentSettings(context_tokens=26_000)


def test_reasoning_that_is_not_sent_back_fills_no_context(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    work.go(reasoner(), CONTEXT)
    assert (work.ended, len(work.state.turns)) == (("calls_exhausted", ""), 18)


def test_reasoning_that_is_sent_back_does(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    work.go(reasoner(echoed=True), CONTEXT)
    assert (work.ended, len(work.state.turns)) == (("context_exhausted", ""), 2)
    assert work.state.turns[0].written()["echoed"] is True


def test_signed_reasoning_counts_by_its_length(tmp_path: Path) -> None:
    signed = {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x" * 60_000}]}
    work = repair_at_work(tmp_path)
    model = reasoner(extra=signed)
    characters = len(json.dumps(signed))
    fits = 1_450 + -(-characters // 3) + 1_000 + 4_096
    work.go(model, AgentSettings(context_tokens=fits - 1_500))
    assert work.ended == ("context_exhausted", "")
    assert len(work.state.turns) == 1


def test_a_run_of_the_first_version_counts_as_it_did(tmp_path: Path) -> None:
    work = repair_at_work(tmp_path)
    work.go(reasoner(), AgentSettings(context_tokens=26_000, loop_version=1))
    assert (work.ended, len(work.state.turns)) == (("context_exhausted", ""), 7)


def test_new_runs_have_the_new_version_except_with_the_first_prompt() -> None:
    assert LOOP_VERSION == 2
    assert AgentSettings().loop_version == 2
    assert AgentSettings(system="agent-1").loop_version == 1
