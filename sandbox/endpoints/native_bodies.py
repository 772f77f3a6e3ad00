"""The common parts of the bodies of vendors' own APIs: members of any type, and parts that are kept."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, Usage

MOST_KEPT = 2_000_000
"""The limit on the parts that are kept of one reply, in characters of JSON; larger ones are not kept."""
_DEEPEST = 100
_MOST_INTEGER = 1 << 63

Block = dict[str, Any]


def kept(message: ChatMessage, parts: Mapping[str, Any], place: str) -> ChatMessage:
    """Return a message with the parts that its host gets back, unless a journal can't hold them."""
    if not _is_plain(parts) or len(json.dumps(parts)) > MOST_KEPT:
        return message
    return replace(message, extra=parts, host=place)


def _is_plain(value: object) -> bool:
    """Return whether a JSON value is nested no deeper than replies are, with numbers that JSON can hold."""
    level = [value]
    for _ in range(_DEEPEST):
        if not all(map(_is_sound, level)):
            return False
        lists = [item for item in level if isinstance(item, list)]
        tables = [item for item in level if isinstance(item, dict)]
        level = [item for one in lists for item in one] + [item for one in tables for item in one.values()]
    return not level


def _is_sound(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or abs(value) < _MOST_INTEGER


def blocks_of(value: object) -> list[Block]:
    """Return the items of a list that are JSON objects; empty if the value is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def table_of(value: object) -> Block:
    """Return the value if it is a JSON object; otherwise an empty object."""
    return value if isinstance(value, dict) else {}


def given(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a request that have a value: not those that are None or empty."""
    return {name: value for name, value in members.items() if value not in (None, [], {}, "")}


def malformed(what: str, usage: Usage | None = None) -> ChatFailure:
    """Return the failure of a body that is no reply, with the usage that it reports."""
    text = f"The endpoint's reply is malformed: {what}."
    return ChatFailure(ChatProblem.MALFORMED_REPLY, text, usage=usage or Usage())


def empty(finish: str, usage: Usage) -> ChatFailure:
    """Return the failure of a reply without content that ended for the endpoint's own reasons."""
    text = f"The reply is empty; it ended with {finish[:100]!r}."
    return ChatFailure(ChatProblem.SERVER_ERROR, text, usage=usage)
