"""Keeps the members of a reply that are not read, because its host needs them back (decision 147)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_CHARACTERS = 1_000_000
"""The maximum length, as JSON, of the other members of one reply."""
_MOST_DEPTH = 32
"""More than any known member has; deeper values would exhaust the stack when the journal is written."""
_MOST_INTEGER = 1 << 63
_NAME_CHARACTERS = 200

_READ = frozenset(
    {"role", "content", "tool_calls", "tool_call_id", "reasoning_content", "reasoning", "refusal"}
)
"""The members of a message that are read, and sent as the conversation has them."""
_OF_REPLIES = frozenset({"annotations", "audio", "function_call", "executed_tools", "provider_metadata"})
"""Members that servers put into replies and refuse in requests, or that only describe a request.

`annotations`, `audio` and `function_call` are OpenAI's, `executed_tools` is Groq's, and `provider_metadata`
is Vercel's.
"""
_READ_IN_CALL = frozenset({"id", "type", "function", "index"})
_READ_IN_FUNCTION = frozenset({"name", "arguments"})


@dataclass
class OtherMembers:
    """The other members of one reply, within a limit on their total length."""

    left: int = MOST_CHARACTERS
    """The number of characters that further members may have."""
    left_out: dict[str, None] = field(default_factory=dict)
    """The names of members that are not kept, because they are too long, too deep, or not JSON."""

    def of_message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the other members of a message."""
        return self._kept(message, _READ | _OF_REPLIES)

    def of_call(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Return the other members of a call; the function's are under `function`."""
        function = call.get("function")
        if not isinstance(function, dict):
            return self._kept(call, _READ_IN_CALL | _READ_IN_FUNCTION)
        kept = self._kept(call, _READ_IN_CALL)
        inner = self._kept(function, _READ_IN_FUNCTION)
        return {**kept, "function": inner} if inner else kept

    def _kept(self, members: Mapping[str, Any], read: frozenset[str]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for name, value in members.items():
            # Servers send null or an empty value for members that a reply does not have.
            if name in read or value is None or value in ("", [], {}):
                continue
            length = _length(name, value)
            if length is None or length > self.left:
                self.left_out[name[:_NAME_CHARACTERS]] = None
                continue
            self.left -= length
            kept[name] = value
        return kept


def _length(name: str, value: object) -> int | None:
    """Return the length of a member as JSON; None if a journal can't hold it."""
    if not _is_plain(value, _MOST_DEPTH):
        return None
    return len(json.dumps({name: value}))


def _is_plain(value: object, depth: int) -> bool:
    """Whether a value is JSON of limited depth, with numbers that every reader of JSON can represent."""
    if depth == 0:
        return False
    if isinstance(value, dict):
        return all(_is_plain(item, depth - 1) for item in value.values())
    if isinstance(value, list):
        return all(_is_plain(item, depth - 1) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or -_MOST_INTEGER <= value < _MOST_INTEGER
