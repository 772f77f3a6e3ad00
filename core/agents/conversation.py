"""The conversation with a model, folded from the journal and stored nowhere (decision 74)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import zip_longest

from msgspec import UNSET

from gistpoint.core.agents.settings import (
    AGAIN,
    CUT_OFF,
    HANDOVER,
    NO_CALL,
    TEXT_ANSWER,
    TEXT_CALLS,
    TEXT_FIRST_ANSWER,
    TEXT_NO_CALL,
    TEXT_SYSTEM,
    TEXT_TOOLS,
    AgentSettings,
    filled,
    prompt_text,
)
from gistpoint.core.agents.text_calls import calls_in, written_call
from gistpoint.core.attempts.events import ModelTurn, RequestedCall
from gistpoint.core.attempts.identity import MODEL
from gistpoint.core.attempts.parts import AttemptCall, Handover
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.chat import ChatMessage, ToolRequest, sound_requests
from gistpoint.core.tools.declaration import Tool
from gistpoint.core.tools.dialects import text_tool

NOT_SUPPORTED = "not_supported"
"""The `finish` of a built-in solver's reply to a task that it can't attempt."""
_NOT_MADE = "This call was not carried out."


class ReplyKind(StrEnum):
    """The kind of a model's reply, which decides what follows."""

    CALLS = "calls"
    NO_CALL = "no_call"
    CUT_OFF = "cut_off"
    REFUSED = "refused"
    NOT_SUPPORTED = "not_supported"


_ASKED_AGAIN = {ReplyKind.NO_CALL: NO_CALL, ReplyKind.CUT_OFF: CUT_OFF, ReplyKind.REFUSED: AGAIN}


def kind_of_reply(turn: ModelTurn) -> ReplyKind:
    """Return the kind of a reply; calls in a refused or filtered reply are ignored."""
    if turn.finish == NOT_SUPPORTED:
        return ReplyKind.NOT_SUPPORTED
    if turn.refusal or turn.finish == "content_filter":
        return ReplyKind.REFUSED
    if turn.tool_calls:
        return ReplyKind.CALLS
    if turn.finish == "length":
        return ReplyKind.CUT_OFF
    return ReplyKind.NO_CALL


def missing_calls(state: AttemptState) -> Sequence[RequestedCall]:
    """Return the calls of the last reply that remain to be made; none after a handover."""
    if not state.turns:
        return ()
    turn = state.turns[-1]
    was_handed_over = bool(state.handovers) and state.handovers[-1].turns == len(state.turns)
    if was_handed_over or kind_of_reply(turn) is not ReplyKind.CALLS:
        return ()
    called = [call for call in state.calls if call.requested and call.turn == turn.turn]
    return turn.tool_calls[len(called) :]


def has_unread_calls(state: AttemptState) -> bool:
    """Return whether any reply without a call contains the text of a call that was not recognised."""
    return any(kind_of_reply(turn) is ReplyKind.NO_CALL and calls_in(turn.content) for turn in state.turns)


def calls_in_vain(state: AttemptState) -> list[ReplyKind]:
    """Return the kinds of the last consecutive replies without calls, since the last handover."""
    since = state.handovers[-1].turns if state.handovers else 0
    kinds: list[ReplyKind] = []
    for turn in reversed(state.turns[since:]):
        kind = kind_of_reply(turn)
        if kind is ReplyKind.CALLS:
            break
        kinds.insert(0, kind)
    return kinds


def conversation(
    state: AttemptState,
    settings: AgentSettings,
    tools: Sequence[Tool] = (),
    offered: Sequence[Tool] | None = None,
) -> list[ChatMessage]:
    """Return the messages of a model's next request: the prompt, the brief, and each reply with its answers.

    The brief and the answers equal those that a person reads, byte for byte. For calls as text, the prompt
    describes `tools`, the tools of the attempt. If the tools `offered` now are not the ones last offered to
    the model, the last message names them.
    """
    messages = _system(settings, tools)
    messages.append(ChatMessage("user", state.header.brief))
    by_turn = defaultdict[int, list[AttemptCall]](list)
    for call in state.calls:
        if call.requested:
            by_turn[call.turn].append(call)
    ids: list[str] = []
    messages += _handed_back(state, settings, 0)
    for number, turn in enumerate(state.turns, start=1):
        if turn.tools is not UNSET:
            _name_tools(messages, turn.tools, settings)
        if kind_of_reply(turn) is not ReplyKind.CALLS:
            messages += _asked_again(turn, settings)
        elif settings.calls_as_text:
            messages += _called_as_text(turn, by_turn[turn.turn], settings)
        else:
            messages += _reply_and_answers(turn, by_turn[turn.turn], ids)
        messages += _handed_back(state, settings, number)
    if offered is not None and (names := tuple(tool.name for tool in offered)) != offered_before(state):
        _name_tools(messages, names, settings)
    return messages


def offered_before(state: AttemptState) -> tuple[str, ...]:
    """Return the names of the tools offered with the last reply; before the first, those of the attempt.

    Empty if the journal records neither.
    """
    names = state.header.tool_names
    for turn in state.turns:
        if turn.tools is not UNSET:
            names = turn.tools
    if names is UNSET:
        return ()
    return names


def _system(settings: AgentSettings, tools: Sequence[Tool]) -> list[ChatMessage]:
    """Return the message with the system prompt, if there is one.

    Even without a prompt, a model that writes its calls as text needs instructions.
    """
    parts: list[str] = []
    if settings.system != "none":
        of_text = settings.calls_as_text
        parts.append(settings.reply_text(TEXT_SYSTEM) if of_text else prompt_text(settings.system))
    if settings.calls_as_text:
        described = "\n".join(map(text_tool, tools))
        parts.append(filled(settings.reply_text(TEXT_CALLS), {"tools": described}))
    return [ChatMessage("system", "\n\n".join(parts))] if parts else []


def _name_tools(messages: list[ChatMessage], names: Sequence[str], settings: AgentSettings) -> None:
    """If calls are text, list the callable tools in the last message; native calls need no list."""
    if settings.calls_as_text:
        text = filled(settings.reply_text(TEXT_TOOLS), {"tools": ", ".join(names)})
        messages[-1] = replace(messages[-1], content=f"{messages[-1].content}\n\n{text}")


def _called_as_text(
    turn: ModelTurn, calls: Sequence[AttemptCall], settings: AgentSettings
) -> Iterable[ChatMessage]:
    """Yield a reply as the model wrote it, then a user message with the answer to each of its calls."""
    echoes = sound_requests(
        tuple(ToolRequest(call.id, call.name, call.arguments) for call in turn.tool_calls), ()
    )
    # The text is empty only if the endpoint removed the calls from it.
    yield _reply_message(turn, turn.content or "\n\n".join(written_call(e.name, e.arguments) for e in echoes))
    text = settings.reply_text(TEXT_FIRST_ANSWER if turn.unmade else TEXT_ANSWER)
    answers = [call.text for call in calls]
    parts = [
        filled(text, {"name": echo.name, "answer": _NOT_MADE if answer is None else answer})
        for echo, answer in zip_longest(echoes, answers[: len(echoes)])
    ]
    yield ChatMessage("user", "\n\n".join(parts))


def _reply_and_answers(
    turn: ModelTurn, calls: Sequence[AttemptCall], ids: list[str]
) -> Iterable[ChatMessage]:
    """Yield a reply and the answer to each of its calls, including calls not carried out.

    `ids` are those of earlier calls; the reply's are added.
    """
    asked = tuple(
        ToolRequest(call.id, call.name, call.arguments, call.extra or {}) for call in turn.tool_calls
    )
    echoes = sound_requests(asked, ids)
    ids += [echo.id for echo in echoes]
    yield _reply_message(turn, turn.content, echoes)
    answers = [call.text for call in calls]
    for echo, text in zip_longest(echoes, answers[: len(echoes)]):
        yield ChatMessage("tool", _NOT_MADE if text is None else text, tool_call_id=echo.id)


def _reply_message(turn: ModelTurn, words: str, calls: tuple[ToolRequest, ...] = ()) -> ChatMessage:
    """Return the message of a reply, with the members that are sent back only to the host that wrote them."""
    return ChatMessage(
        "assistant",
        words,
        calls,
        reasoning=turn.reasoning or "",
        extra=turn.extra or {},
        host=turn.host or "",
    )


def _asked_again(turn: ModelTurn, settings: AgentSettings) -> Iterable[ChatMessage]:
    """Yield the text of a reply without calls, and a suitable request for a call."""
    # The text of a filtered reply is the endpoint's, not the model's.
    words = turn.content or ("" if turn.finish == "content_filter" else turn.refusal)
    if words:
        yield _reply_message(turn, words)
    stem = _ASKED_AGAIN.get(kind_of_reply(turn), NO_CALL)
    is_in_text = stem == NO_CALL and settings.calls_as_text
    yield ChatMessage("user", settings.reply_text(TEXT_NO_CALL if is_in_text else stem))


def _handed_back(state: AttemptState, settings: AgentSettings, turns: int) -> Iterable[ChatMessage]:
    """Yield the message for a model to which a person hands an attempt back after this many turns."""
    taken: Handover | None = None
    for handover in state.handovers:
        if handover.to != MODEL:
            taken = handover
        elif taken is not None and handover.turns == turns:
            text = settings.reply_text(HANDOVER)
            yield _handover_message(text, state.calls[taken.calls : handover.calls], handover.note)


def _handover_message(text: str, calls: Sequence[AttemptCall], note: str) -> ChatMessage:
    """Return `text` as a user message, with a person's own calls and note filled in."""
    own = [call for call in calls if not call.requested]
    parts = [f"{call.tool} {json.dumps(dict(call.arguments))}\n{call.text or ''}" for call in own]
    values = {
        "calls": "\n\n".join(parts) or "(none)",
        "note": f"The person's note: {note}" if note else "",
    }
    return ChatMessage("user", filled(text, values).strip())
