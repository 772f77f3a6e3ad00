"""Estimates the share of a model's context that a conversation fills, and detects endpoints that cut it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from msgspec import UNSET

from gistpoint.core.attempts.events import ModelTurn
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.chat import ChatMessage
from gistpoint.core.estimates import tokens_in
from gistpoint.core.tools.declaration import Tool

_CHARACTERS_A_TOKEN = 16
"""More characters than an average token has in any text, which sets a lower bound for token counts."""
_THOUGHT = re.compile(
    r"^.*</think(?:ing)?>|^.*\[/THINK\]|^<\|channel\|?>(?:analysis|thought).*?(?:<channel\||<\|end\|)>",
    re.DOTALL,
)
"""Thinking that a server left in the text of a reply, perhaps without its opening mark."""


def prompt_tokens(
    state: AttemptState, messages: Sequence[ChatMessage], tools: Sequence[Tool], *, loop_version: int
) -> int:
    """Return an upper estimate of a request's tokens: the last exchange's counted tokens, plus new messages.

    Reasoning that is not sent back does not count, except in version 1 of the loop. The first request of an
    attempt is estimated from the length of its messages and of the declarations of its tools.
    """
    characters = sum(map(_characters, messages))
    if not state.turns:
        schemas = json.dumps([tool.json_schema() for tool in tools]) if tools else ""
        return tokens_in(len(schemas) + characters)
    last = state.turns[-1]
    exchanged = last.usage.tokens
    if loop_version > 1 and not last.echoed:
        exchanged += tokens_in(_length_of_others(last)) - last.usage.reasoning_tokens
    return max(exchanged + tokens_in(_characters_since(messages)), characters // _CHARACTERS_A_TOKEN)


def _characters_since(messages: Sequence[ChatMessage]) -> int:
    """Return the number of characters in the messages after the last reply."""
    new = 0
    for message in reversed(messages):
        if message.role == "assistant":
            break
        new += _characters(message)
    return new


def _characters(message: ChatMessage) -> int:
    return len(message.content) + sum(len(call.arguments) for call in message.tool_calls)


def _length_of_others(turn: ModelTurn) -> int:
    """Return the number of characters in members sent back with a reply, such as signed reasoning."""
    members = [turn.extra, *(call.extra for call in turn.tool_calls)]
    return sum(len(json.dumps(item)) for item in members if item is not UNSET)


def history_cut(state: AttemptState, messages: Sequence[ChatMessage], turn: ModelTurn) -> str | None:
    """Return a sentence if an endpoint did not read all of `messages`, to which `turn` replies; else None.

    Some servers silently drop the beginning of a conversation that does not fit, and count fewer tokens than
    before (Ollama). But templates of reasoning models also drop earlier thinking: some with each reply, and
    others when a user writes (Qwen3), as this loop does after a reply without a call. So a request that ends
    with a user's message proves nothing, and dropped thinking accounts for as many missing tokens as it
    contained. A change of the offered tools can also make a request shorter, and estimates prove nothing.
    """
    if not state.turns or turn.tools is not UNSET or messages[-1].role == "user":
        return None
    before = state.turns[-1].usage
    now = turn.usage
    if before.estimated or now.estimated:
        return None
    fewer = before.prompt_tokens - now.prompt_tokens
    if fewer <= 0 or fewer <= _thinking_tokens(state):
        return None
    return (
        f"The endpoint read {now.prompt_tokens} tokens of a conversation of which it had read"
        f" {before.prompt_tokens}"
        " before, so it drops the beginning. Give it a longer context and resume the run."
    )


def _thinking_tokens(state: AttemptState) -> int:
    """Return an upper estimate of the tokens of thinking that were sent with the request before this one."""
    return sum(map(_thinking_of, state.turns[:-1]))


def _thinking_of(turn: ModelTurn) -> int:
    found = _THOUGHT.match(turn.content)
    written = len(found[0]) if found else 0
    sent_back = _length_of_others(turn) + (len(turn.reasoning or "") if turn.echoed else 0)
    counted = turn.usage.reasoning_tokens if sent_back else 0
    return max(counted, tokens_in(sent_back)) + tokens_in(written)
