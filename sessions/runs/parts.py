"""The texts of a step as they are drawn, searched and exported, and where in the step each of them stands."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from enum import StrEnum

from gistpoint.sessions.runs.model import ByteRange, Call, CutText, Escaped, Json, Step, concatenated


class Scope(StrEnum):
    """Where in a step a text stands."""

    THOUGHT = "thought"
    TEXT = "text"
    CALL = "call"
    RESULT = "result"
    DIFF = "diff"
    ALSO = "also"
    """What the raw records say beside all that."""


def parts_of(step: Step) -> Iterator[tuple[Scope, int, str]]:
    """Yield every text of a step in the order it is shown, with its scope and its number among those of that scope."""
    yield Scope.THOUGHT, 0, step.thought
    yield Scope.TEXT, 0, step.text
    for number, call in enumerate(step.calls):
        yield Scope.CALL, number, call_text(call)
    for number, result in enumerate(step.results):
        yield Scope.RESULT, number, result.text
    yield Scope.DIFF, 0, step.diff or ""
    yield Scope.ALSO, 0, also_text(step)


def call_text(call: Call) -> str:
    """Return the arguments of a call: an object's under their names, nested ones as JSON; others as recorded."""
    if not call.parsed:
        return call.arguments
    lines: list[str] = []
    for key, value in call.parsed.items():
        lines += ["\n" if lines else "", f"{key}: ", value if isinstance(value, str) else json_text(value)]
    return concatenated(lines)


def also_text(step: Step) -> str:
    """Return what the raw records say beside all that, each text under the keys that lead to it."""
    lines: list[str] = []
    for noted in step.also:
        lines += ["\n" if lines else "", f"{noted.path}: ", noted.text]
    return concatenated(lines)


def json_text(value: Json, indent: int | None = 2) -> str:
    """Return a value as JSON; a string in it that is cut for its length is cut in the text too."""
    if not _has_cut(value):
        return json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    cut: dict[str, CutText] = {}
    nonce = os.urandom(8).hex()
    shown = json.dumps(_marked(value, cut, nonce), ensure_ascii=False, indent=indent, default=str)
    pieces: list[str] = []
    for piece in re.split(rf"({nonce}\d+)", shown):
        if piece in cut:
            literals = [Escaped(source) for source in cut[piece].pieces if isinstance(source, ByteRange)]
            pieces.append(CutText(json.dumps(str(cut[piece]), ensure_ascii=False)[1:-1], *literals))
        else:
            pieces.append(piece)
    return concatenated(pieces)


def _has_cut(value: Json) -> bool:
    if isinstance(value, dict):
        return any(_has_cut(item) for item in value.values())
    return any(_has_cut(item) for item in value) if isinstance(value, list) else isinstance(value, CutText)


def _marked(value: Json, cut: dict[str, CutText], nonce: str) -> Json:
    """Put a mark in the place of each string that is cut."""
    if isinstance(value, CutText):
        cut[f"{nonce}{len(cut)}"] = value
        return f"{nonce}{len(cut) - 1}"
    if isinstance(value, list):
        return [_marked(item, cut, nonce) for item in value]
    if isinstance(value, dict):
        return {key: _marked(item, cut, nonce) for key, item in value.items()}
    return value
