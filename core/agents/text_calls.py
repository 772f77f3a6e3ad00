"""Parses calls that a model writes as text, and defines their requested form (decision 151).

A call is one JSON object with `name` and `arguments` in a fenced block. Other forms that models write are
read if they have a single meaning. Ambiguous text is either not a call or a malformed one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from gistpoint.core.chat import ToolRequest

_MOST_BLOCKS = 1_000
"""The maximum number of blocks that are read in one reply."""
_MARKS = "`{3,}|~{3,}"
_WORD = r"[ \t]*(?P<word>[\w+.-]*)[ \t]*(?=[{\[\n]|\Z)"
_OPENING = re.compile(rf"^[ \t]*(?P<fence>{_MARKS}){_WORD}|(?P<tag><tool_call>)", re.MULTILINE)
_INNER = re.compile(rf"(?P<fence>{_MARKS})\w*\s")
_BEFORE_OBJECT = re.compile(rf"\s*(?:(?:{_MARKS})\w*\s*)?")
_THOUGHT, _END_OF_THOUGHT = "<think>", "</think>"
_OF_CALLS = "tool_call"
_WORDS = frozenset(("", "json", _OF_CALLS))
"""The words after an opening fence that mark a block to search for calls."""
_ARGUMENTS = ("arguments", "parameters")
_MEMBERS = frozenset(("name", *_ARGUMENTS, "id", "type"))
"""The members that a call may have."""
_NAMED = re.compile(r'"name"\s*:')
_NAME = re.compile(r'"name"\s*:\s*"([^"\\]*)"')
_STRING_OR_BRACES = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|\{+|\}+', re.DOTALL)


def calls_in(reply: str) -> tuple[ToolRequest, ...]:
    """Return the calls in the text of a reply, in their order, including malformed ones.

    The arguments of a malformed call are the text of its block, in which the fault is found later.
    """
    text = _after_thought(reply).strip()
    is_object = text.startswith("{") and text.endswith("}")
    whole = _call(text, explicit=False) if is_object else None
    if whole is not None:
        return (whole,)
    blocks = (block for block in islice(_blocks(text), _MOST_BLOCKS) if block.readable)
    found = (_call(block.text, explicit=block.explicit) for block in blocks)
    return tuple(call for call in found if call is not None)


def written_call(name: str, arguments: str) -> str:
    """Return a call in the form in which models are asked to write it; `arguments` is a JSON object."""
    return f'```json\n{{"name": {json.dumps(name)}, "arguments": {arguments}}}\n```'


def _after_thought(reply: str) -> str:
    """Return a reply without the reasoning at its beginning, which may mention calls without making them."""
    if not reply.lstrip().startswith(_THOUGHT):
        return reply
    return reply.partition(_END_OF_THOUGHT)[2]


@dataclass(frozen=True, slots=True)
class _Block:
    text: str
    explicit: bool
    """Whether its marks show that it is a call."""
    readable: bool
    """Whether it may contain a call."""


def _blocks(text: str) -> Iterator[_Block]:
    """Yield the blocks between fences or tags; an unclosed block is readable only if it is an object."""
    at = 0
    while opening := _OPENING.search(text, at):
        word = (opening["word"] or "").casefold()
        is_call = bool(opening["tag"]) or word == _OF_CALLS
        readable = bool(opening["tag"]) or word in _WORDS
        end, at = _end(text, opening, is_read=readable)
        content = text[opening.end() : end]
        is_closed = at > end
        yield _Block(content, is_call, readable and (is_closed or _object(content) is not None))


def _end(text: str, opening: re.Match[str], *, is_read: bool) -> tuple[int, int]:
    """Return where the content of a block ends, and where the text after the block begins."""
    mark = re.escape(opening["tag"].replace("<", "</") if opening["tag"] else opening["fence"])
    # The object may contain the closing mark in a string, so the end of the object is found first.
    after = _end_of_object(text, opening.end()) if is_read else None
    if after is not None:
        inner = rf"(?:{_MARKS})?\s*" if opening["tag"] else ""
        closing = re.compile(rf"\s*{inner}(?P<mark>{mark}|\Z)").match(text, after)
        if closing is not None:
            return closing.start("mark"), closing.end()
    alone = mark if opening["tag"] else rf"^[ \t]*{mark}{re.escape(mark[-1])}*[ \t]*$"
    found = re.compile(alone, re.MULTILINE).search(text, opening.end())
    if found is None:
        return len(text), len(text)
    return found.start(), found.end()


def _end_of_object(text: str, start: int) -> int | None:
    """Return the end of the JSON object that begins a block; None if the block begins otherwise."""
    begun = _BEFORE_OBJECT.match(text, start)
    first = begun.end() if begun else start
    if not text.startswith("{", first):
        return None
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, first)[1]
    except (ValueError, RecursionError):
        return None


def _call(text: str, *, explicit: bool) -> ToolRequest | None:
    """Return the call in the text of a block; None if it contains none.

    Without such marks, an object is a call if it has a name and either arguments or only members of a call.
    """
    text = _without_fence(text.strip())
    found = _object(text)
    if found is None:
        return _malformed(text) if explicit or _NAMED.search(text) else None
    if not (explicit or found.is_call):
        return None
    if not (found.is_call and found.has_one_meaning):
        return _malformed(text)
    return ToolRequest("", found.value["name"], found.arguments)


def _without_fence(text: str) -> str:
    """Return the text of a fenced block within tags; text without a fence is returned as it is."""
    opening = _INNER.match(text)
    if opening is None or not text.endswith(opening["fence"]):
        return text
    return text[opening.end() : -len(opening["fence"])].strip()


def _malformed(text: str) -> ToolRequest:
    named = _NAME.search(text)
    return ToolRequest("", named[1] if named else "", text)


@dataclass(frozen=True, slots=True)
class _Object:
    value: Mapping[str, Any]
    members: int
    """The number of members as written, which exceeds the number in `value` if one is repeated."""

    @property
    def is_call(self) -> bool:
        """Whether it has a name, and either has arguments or consists of members that a call may have."""
        is_named = isinstance(self.value.get("name"), str)
        return is_named and (bool(self._given) or self._has_own_members)

    @property
    def has_one_meaning(self) -> bool:
        """Whether no member is repeated or unknown, and there is at most one member with arguments."""
        return self.members == len(self.value) and len(self._given) < 2 and self._has_own_members

    @property
    def arguments(self) -> str:
        """The arguments of a call as JSON, which some models write as a string within the object."""
        given = self.value[self._given[0]] if self._given else {}
        if isinstance(given, str) and _object(given) is not None:
            return given
        return json.dumps(given)

    @property
    def _given(self) -> list[str]:
        return [name for name in _ARGUMENTS if name in self.value]

    @property
    def _has_own_members(self) -> bool:
        return self.value.keys() <= _MEMBERS


def _object(text: str) -> _Object | None:
    """Return the JSON object that a string contains; None if it contains none.

    Line breaks within strings are accepted, and doubled braces are allowed.
    """
    for form in (text, _single_braces(text)):
        try:
            value, members = _loaded(form)
        except (ValueError, RecursionError):
            continue
        return _Object(value, members) if isinstance(value, dict) else None
    return None


def _loaded(text: str) -> tuple[Any, int]:
    """Return a JSON value, and the number of members that are written in it if it is an object."""
    counts = [0]

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        counts.append(len(pairs))
        return dict(pairs)

    value = json.loads(text, strict=False, object_pairs_hook=made)
    return value, counts[-1]  # the outermost object is completed last


def _single_braces(text: str) -> str:
    """Return text with doubled braces outside of strings made single: all of them, or the outermost."""
    text = text.strip()
    if not (text.startswith("{{") and text.endswith("}}")):
        return text
    runs = [found[0] for found in _STRING_OR_BRACES.finditer(text) if found[0][0] != '"']
    if all(len(run) % 2 == 0 for run in runs):
        return _STRING_OR_BRACES.sub(lambda found: _halved(found[0]), text)
    return text[1:-1]


def _halved(part: str) -> str:
    return part if part.startswith('"') else part[: len(part) // 2]
