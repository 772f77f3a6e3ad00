"""The parts of a message, in all shapes that model APIs have: what is said, thought, called and answered in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from gistpoint.sessions.formats.calls import call_of_function
from gistpoint.sessions.formats.values import as_bool, as_dict, as_int, as_str, as_text, first, joined
from gistpoint.sessions.runs.model import Call, CutText, Json, Result

_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool-call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool-result"})


@dataclass(slots=True)
class Parts:
    """What the parts of one message come to."""

    said: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)


def is_call(kind: str) -> bool:
    """Whether a part of this type is a call, of a tool of the user's or of the server's."""
    return kind.endswith("tool_use") or kind in _CALLS


def is_result(kind: str) -> bool:
    """Whether a part of this type is the result of a call."""
    return kind.endswith("tool_result") or kind in _RESULTS


def parts_of_message(content: Json) -> Parts:
    """Read the content of a message: a text, or a list of parts."""
    parts = Parts()
    for item in content if isinstance(content, list) else [content]:
        block = as_dict(item)
        kind = as_str(block.get("type"))
        if kind in _THOUGHTS:
            parts.thought.append(thought_text(block))
        elif is_call(kind):
            parts.calls.append(call_of_function(block))
            if "result" in block:
                parts.results.append(_result(block, parts.calls[-1].id, first(block, "error") or block["result"]))
        elif is_result(kind):
            identity = as_str(first(block, "tool_use_id", "toolCallId", "call_id"))
            parts.results.append(_result(block, identity, first(block, "content", "output", "result")))
        else:
            parts.said.append(as_text([item]) if isinstance(content, list) else as_text(item))
    return parts


def thought_text(block: dict[str, Json]) -> str:
    """Return what a part with a thought says; how long it is if it can't be read."""
    kind = as_str(block.get("type")).replace("_", " ") or "reasoning"
    shown = [block.get(key) for key in ("summary", "content", "text", "thinking")]
    if not block.get("redacted"):
        shown.insert(0, block.get("reasoning"))
    text = joined(dict.fromkeys(as_text(value) for value in shown if value))
    hidden = first(block, "data", "encrypted_content", "reasoning" if block.get("redacted") else "data")
    if text or not isinstance(hidden, str):
        return text
    length = hidden.length if isinstance(hidden, CutText) else len(hidden)
    return f"[{kind}: {length:,} characters that can't be read]"


def _result(block: dict[str, Json], identity: str, content: Json) -> Result:
    inner = as_dict(content)
    failed = as_bool(block.get("is_error"))
    if failed is None and (as_str(inner.get("type")).endswith("_error") or block.get("error")):
        failed = True
    text = as_text(content)
    if inner and ("stdout" in inner or "stderr" in inner):
        text = joined([as_text(inner.get("stdout")), as_text(inner.get("stderr")), as_text(inner.get("content"))])
    return Result(identity, text, failed, as_int(inner.get("return_code")))
