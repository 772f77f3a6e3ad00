"""The parts of a chat message's content in every provider's form: text, thoughts, calls and results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gistpoint.sessions.formats.shared.calls import call_of_function
from gistpoint.sessions.records.building import error_if
from gistpoint.sessions.records.model import CutText, Json, Result, RunCall
from gistpoint.sessions.records.record import Record
from gistpoint.sessions.records.values import as_bool, as_dict, as_str, as_text, first, joined, media_text

_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
_THOUGHT_KEYS = ("summary", "content", "text", "thinking")
_HIDDEN_KEYS = ("data", "encrypted_content")
_HOSTED_ITEMS = frozenset(
    ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call")
)
"""Calls that OpenAI's servers carry out.

An item contains the call and, under one of `_HOSTED_RESULTS`, its result.
"""
UNFINISHED = ("failed", "incomplete")
"""The states of an item that failed or was cut short."""
_HOSTED_RESULTS = ("error", "output", "outputs", "results", "result")
CALL_ITEMS = _HOSTED_ITEMS | {
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
    "tool_search_call",
    "mcp_approval_request",
}
RESULT_ITEMS = frozenset(
    {
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "computer_call_output",
        "tool_search_output",
        "mcp_approval_response",
    }
)
"""Items of OpenAI's Responses API that are results of calls; like all items, they replace messages."""
REPLY_ITEMS = CALL_ITEMS | {"reasoning"}


@dataclass(slots=True)
class Parts:
    """The content of one message, by kind."""

    texts: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)
    calls: list[RunCall] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)

    @property
    def combined_text(self) -> str:
        """The text, then the thoughts, for a message whose thoughts are not shown separately."""
        return joined([*self.texts, *self.thought])

    @property
    def text(self) -> str:
        """All text, joined."""
        return joined(self.texts)


def merged(several: Iterable[Parts]) -> Parts:
    """Return the parts of several messages as if they were one message; one message's parts are unchanged."""
    found = list(several)
    if len(found) == 1:
        return found[0]
    whole = Parts()
    for parts in found:
        whole.texts += parts.texts
        whole.thought += parts.thought
        whole.calls += parts.calls
        whole.results += parts.results
    return whole


def is_call(kind: str) -> bool:
    """Return whether a part of this type is a call to a tool, the user's or the provider's."""
    return kind.endswith("tool_use") or kind in CALL_ITEMS or kind == "tool-call"


def is_result(kind: str) -> bool:
    """Return whether a part of this type is the result of a call."""
    return kind.endswith("tool_result") or kind in RESULT_ITEMS or kind == "tool-result"


def parts_of_message(content: Json) -> Parts:
    """Return the parts of a message's content, which is a string or a list."""
    parts = Parts()
    if not isinstance(content, list):
        _add_part(parts, as_dict(content), content)
        return parts
    for item in content:
        # Passed as a list of one, because a picture or a file is shown by name and size, not as data.
        _add_part(parts, as_dict(item), [item])
    return parts


def _add_part(parts: Parts, block: dict[str, Json], shown: Json) -> None:
    kind = as_str(block.get("type"))
    if kind in _THOUGHTS:
        parts.thought.append(thought_text(block))
    elif is_call(kind):
        call = call_of_function(block)
        parts.calls.append(call)
        if kind in _HOSTED_ITEMS:
            parts.results += _hosted_result(block, call.id)
        elif "result" in block:
            # The provider's server carried out the call and added the result to it.
            parts.results.append(_result(block, call.id, first(block, "error") or block["result"]))
    elif is_result(kind):
        parts.results.append(
            _result(block, call_answered(block), first(block, "content", "output", "result"))
        )
    else:
        parts.texts.append(as_text(shown))


def thought_text(block: dict[str, Json]) -> str:
    """Return the text of a part that is a thought; if it is encrypted, a note with its length."""
    part = Record(block)
    shown: tuple[str, ...] = ("reasoning", *_THOUGHT_KEYS)
    hidden: tuple[str, ...] = _HIDDEN_KEYS
    if block.get("redacted"):
        # Inspect writes an encrypted thought into the member that otherwise contains the readable one.
        shown, hidden = _THOUGHT_KEYS, (*_HIDDEN_KEYS, "reasoning")
    text = joined(dict.fromkeys(as_text(value) for value in part.kept(*shown).values()))
    unreadable = part.first(*hidden)
    # Providers encrypt a thought so that only they can read it again.
    if text or not isinstance(unreadable, str):
        return text
    length = unreadable.length if isinstance(unreadable, CutText) else len(unreadable)
    kind = part.word("type").replace("_", " ") or "reasoning"
    return f"[{kind}: {length:,} characters that can't be read]"


def _hosted_result(block: dict[str, Json], identity: str) -> list[Result]:
    found = first(block, *_HOSTED_RESULTS)
    if found is None:
        return []
    text = as_text(found)
    if block.get("type") == "image_generation_call" and isinstance(block.get("result"), str):
        text = media_text({"type": "image", "data": block["result"]})
    failed = block.get("error") or block.get("status") in UNFINISHED
    return [Result(identity, text, error_if(failed))]


def _result(block: dict[str, Json], identity: str, content: Json) -> Result:
    inner = Record(content)
    failed = as_bool(block.get("is_error"))
    # Anthropic's server tools have no flag: the type of what they return ends in `_error`.
    reports_error = inner.word("type").endswith("_error") or block.get("error")
    if failed is None and reports_error:
        failed = True
    text = (
        joined(inner.texts("stdout", "stderr", "content"))
        if inner.has("stdout", "stderr")
        else as_text(content)
    )
    return Result(identity, text, failed, inner.whole("return_code"))


def call_answered(part: dict[str, Json]) -> str:
    """Return the id of the call that a part answers; empty if the part names none."""
    return as_str(first(part, "tool_use_id", "toolCallId", "call_id", "approval_request_id"))
