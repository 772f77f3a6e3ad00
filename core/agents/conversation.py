"""The conversation with a model: folded from the journal of its attempt,
stored nowhere (docs/decisions/0074).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import zip_longest

from gistpoint.core.agents.settings import (
    AGAIN,
    CUT_OFF,
    HANDOVER,
    NO_CALL,
    AgentSettings,
    filled,
    prompt_text,
)
from gistpoint.core.attempts.events import ModelTurn, RequestedCall
from gistpoint.core.attempts.identity import MODEL
from gistpoint.core.attempts.parts import AttemptCall, Handover
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.chat import ChatMessage, ToolRequest, sound_requests

NOT_SUPPORTED = "not_supported"
"""The word by which a built-in solver ends a reply to a task that it has no way to go about."""
_NOT_MADE = "This call was not carried out."


class ReplyKind(StrEnum):
    """What becomes of a reply."""

    CALLS = "calls"
    NO_CALL = "no_call"
    CUT_OFF = "cut_off"
    REFUSED = "refused"
    NOT_SUPPORTED = "not_supported"


_ASKED_AGAIN = {ReplyKind.NO_CALL: NO_CALL, ReplyKind.CUT_OFF: CUT_OFF, ReplyKind.REFUSED: AGAIN}


def kind_of_reply(turn: ModelTurn) -> ReplyKind:
    """Return the kind of a reply; the calls of one that was refused or filtered are not to be trusted."""
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
    """Return the calls of the last reply that are still to be made;
    none after another driver has had the attempt.
    """
    if not state.turns:
        return ()
    turn = state.turns[-1]
    was_handed_over = bool(state.handovers) and state.handovers[-1].turns == len(state.turns)
    if was_handed_over or kind_of_reply(turn) is not ReplyKind.CALLS:
        return ()
    made = [call for call in state.calls if call.requested and call.turn == turn.turn]
    return turn.tool_calls[len(made) :]


def calls_in_vain(state: AttemptState) -> list[ReplyKind]:
    """Return the kinds of the last replies in a row that called no tool,
    since a person last had the attempt.
    """
    since = state.handovers[-1].turns if state.handovers else 0
    kinds: list[ReplyKind] = []
    for turn in reversed(state.turns[since:]):
        kind = kind_of_reply(turn)
        if kind is ReplyKind.CALLS:
            break
        kinds.insert(0, kind)
    return kinds


def conversation(state: AttemptState, settings: AgentSettings) -> list[ChatMessage]:
    """Return the messages that a model is sent next: prompt, brief, its replies, and what came of each.

    The brief and the answers are those that a person reads, byte for byte.
    """
    messages = list[ChatMessage]()
    if settings.system != "none":
        messages.append(ChatMessage("system", prompt_text(settings.system)))
    messages.append(ChatMessage("user", state.header.brief))
    by_turn = defaultdict[int, list[AttemptCall]](list)
    for call in state.calls:
        if call.requested:
            by_turn[call.turn].append(call)
    made = 0
    messages += _handed_back(state, 0)
    for number, turn in enumerate(state.turns, start=1):
        if kind_of_reply(turn) is ReplyKind.CALLS:
            messages += _called(turn, by_turn[turn.turn], made)
            made += len(turn.tool_calls)
        else:
            messages += _asked_again(turn)
        messages += _handed_back(state, number)
    return messages


def _called(turn: ModelTurn, calls: Sequence[AttemptCall], made: int) -> Iterable[ChatMessage]:
    """Yield a reply and an answer to each of its calls, also to one that was not carried out."""
    asked = tuple(ToolRequest(call.id, call.name, call.arguments) for call in turn.tool_calls)
    echoes = sound_requests(asked, made)
    yield ChatMessage("assistant", turn.content, echoes, reasoning=turn.reasoning or "")
    answers = [call.text for call in calls]
    for echo, text in zip_longest(echoes, answers[: len(echoes)]):
        yield ChatMessage("tool", _NOT_MADE if text is None else text, tool_call_id=echo.id)


def _asked_again(turn: ModelTurn) -> Iterable[ChatMessage]:
    """Yield the words of a reply without calls, and the request for a call that fits it."""
    words = turn.content or turn.refusal
    if words:
        yield ChatMessage("assistant", words, reasoning=turn.reasoning or "")
    yield ChatMessage("user", prompt_text(_ASKED_AGAIN.get(kind_of_reply(turn), NO_CALL)))


def _handed_back(state: AttemptState, turns: int) -> Iterable[ChatMessage]:
    """Yield the message to a model to which a person gives an attempt back after so many turns."""
    taken: Handover | None = None
    for handover in state.handovers:
        if handover.to != MODEL:
            taken = handover
        elif taken is not None and handover.turns == turns:
            yield _handover_message(state.calls[taken.calls : handover.calls], handover.note)


def _handover_message(calls: Sequence[AttemptCall], note: str) -> ChatMessage:
    """Return what a person did, call by call, and the person's note."""
    own = [call for call in calls if not call.requested]
    parts = [f"{call.tool} {json.dumps(dict(call.arguments))}\n{call.text or ''}" for call in own]
    values = {
        "calls": "\n\n".join(parts) or "(none)",
        "note": f"The person's note: {note}" if note else "",
    }
    return ChatMessage("user", filled(prompt_text(HANDOVER), values).strip())
