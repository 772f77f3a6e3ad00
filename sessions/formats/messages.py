"""Chat messages: which of them make a turn, and the step that a turn is. Several formats are made of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gistpoint.sessions.formats.calls import call_of_function, edits_of, kind_of, shell_call
from gistpoint.sessions.formats.protocol import actor_of
from gistpoint.sessions.formats.values import (
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    first,
    joined,
    objects,
    when,
)
from gistpoint.sessions.runs.model import Actor, Call, Json, Result, Step, StepKind, Tokens
from gistpoint.sessions.runs.reader import Raw

_FENCE = re.compile(r"```(?:mswea_bash_command|bash|sh)\s*\n(.*?)\n?```", re.S)
_RETURNCODE = re.compile(r"<returncode>(-?\d{1,9})</returncode>")
_RESULT_TYPES = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_REPLY_TYPES = frozenset({"function_call", "custom_tool_call", "local_shell_call", "reasoning"})


def role_of(message: dict[str, Json]) -> str:
    """Return the role of a message, also where a provider leaves it out."""
    plain = message.get("role")
    if isinstance(plain, str) and plain and "type" not in message:
        return "tool" if plain == "function" else plain
    role, kind = as_str(plain), as_str(message.get("type"))
    if kind in _RESULT_TYPES:
        return "tool"
    if not role and (message.get("object") == "response" or kind in _REPLY_TYPES):
        return "assistant"
    return "tool" if role == "function" else role


class Turns:
    """Puts messages into turns: a reply with the results that follow it; everything else stands alone.

    Where `shell` is set, what a user says after a reply without another result is the result of its command.
    """

    def __init__(self, *, shell: bool) -> None:
        self._shell = shell
        self._reply: int | None = None
        self._answered = False
        self._items = False
        self._calls: dict[str, int] = {}

    def place(self, fields: Json, step_count: int) -> int:
        """Return the step of the next message."""
        message = as_dict(fields)
        role = role_of(message)
        if role == "tool":
            identity = as_str(first(message, "tool_call_id", "call_id"))
            self._answered = True
            known = self._calls.pop(identity, None)
            return known if known is not None else self._or_new(step_count)
        if role == "assistant":
            return self._assistant(message, step_count)
        if self._shell and role == "user" and self._reply is not None and not self._answered:
            self._answered = True
            return self._reply
        self._reply = None
        return step_count

    def _or_new(self, step_count: int) -> int:
        return step_count if self._reply is None else self._reply

    def _assistant(self, message: dict[str, Json], step_count: int) -> int:
        item = not message.get("role") and message.get("object") != "response"
        joins = item and self._items and self._reply is not None and not self._answered
        step = self._reply if joins and self._reply is not None else step_count
        self._reply, self._answered, self._items = step, False, item
        calls = [*objects(message.get("tool_calls")), *([message] if item else [])]
        for call in calls:
            identity = as_str(first(call, "call_id", "id"))
            if identity:
                self._calls[identity] = step
        return step


def message_step(index: int, raws: Sequence[Raw], *, shell: bool) -> Step:
    """Return the step of a turn."""
    messages = [as_dict(raw.value) for raw in raws]
    head = messages[0]
    role = role_of(head)
    ranges = tuple(raw.range for raw in raws)
    if role == "assistant":
        return _reply_step(index, raws, messages, shell=shell)
    text, extra = as_text(head.get("content", head.get("output"))), as_dict(head.get("extra"))
    actor, kind = actor_of(role), _lone_kind(role, index)
    if not role or kind is StepKind.UNKNOWN:
        text = text or as_text(raws[0].value)
    flags = {"unknown"} if kind is StepKind.UNKNOWN else set[str]()
    if extra.get("interrupt_type"):
        kind, flags = StepKind.ERROR, {"error"}
    state = {key: extra[key] for key in ("exit_status", "interrupt_type", "traceback") if extra.get(key)}
    started = when(first(extra, "timestamp") or first(head, "timestamp", "created_at"))
    label = role or as_str(head.get("type")) or type(raws[0].value).__name__
    return Step(
        index, actor, kind, raws[0].range, ranges, label=label,
        text=text, started=started, state=state, flags=frozenset(flags), derived=frozenset({"kind"}),
        id=as_str(first(head, "id")),
    )  # fmt: skip


def _lone_kind(role: str, index: int) -> StepKind:
    if role in ("system", "developer"):
        return StepKind.SYSTEM
    if role == "user":
        return StepKind.TASK if index < 3 else StepKind.MESSAGE
    if role == "exit":
        return StepKind.END
    return StepKind.TOOL if role == "tool" else StepKind.UNKNOWN


def _reply_step(index: int, raws: Sequence[Raw], messages: list[dict[str, Json]], *, shell: bool) -> Step:
    replies = [message for message in messages if role_of(message) == "assistant"]
    answers = [message for message in messages if role_of(message) != "assistant"]
    derived = {"kind"}
    calls = tuple(call for message in replies for call in _calls(message))
    text = joined(_said(message) for message in replies)
    if not calls and shell:
        fenced = _FENCE.findall(text)
        calls = tuple(shell_call(command) for command in fenced[-1:])
        derived |= {"calls"} if calls else set()
    extra = as_dict(replies[0].get("extra"))
    usage = _usage(replies[0])
    started, results = when(extra.get("timestamp")), []
    ended = None
    for number, answer in enumerate(answers):
        result, at = _result(answer, calls[number].id if number < len(calls) else "", started, derived)
        results.append(result)
        ended = at if at is not None else ended
    failed = any(result.is_error or result.returncode for result in results)
    return Step(
        index, Actor.AGENT, kind_of(calls), raws[0].range, tuple(raw.range for raw in raws), label="assistant",
        thought=joined(_thought(message) for message in replies), text=text, calls=calls, results=tuple(results),
        started=started, ended=ended, tokens=_tokens(usage),
        cost=as_float(extra.get("cost")) if "cost" in extra else as_float(usage.get("cost")),
        model=as_str(first(as_dict(extra.get("response")), "model") or replies[0].get("model")),
        edits=edits_of(calls), flags=frozenset({"error"} if failed else ()), derived=frozenset(derived),
        id=as_str(first(replies[0], "id")),
    )  # fmt: skip


def _calls(message: dict[str, Json]) -> list[Call]:
    items = [*objects(message.get("tool_calls"))]
    if message.get("function_call"):
        items.append({"function": message["function_call"]})
    items += [
        item for item in objects(message.get("output")) if as_str(item.get("type")) in _REPLY_TYPES - {"reasoning"}
    ]
    items += [item for item in objects(message.get("content")) if item.get("type") == "tool_use"]
    if as_str(message.get("type")) in _REPLY_TYPES - {"reasoning"}:
        items.append(message)
    found = [call_of_function({**item, "id": first(item, "call_id", "id")}) for item in items]
    if not found:
        actions = objects(as_dict(message.get("extra")).get("actions"))
        found = [shell_call(as_text(action.get("command")), as_str(action.get("tool_call_id"))) for action in actions]
    return found


def _said(message: dict[str, Json]) -> str:
    if message.get("object") == "response":
        outputs = objects(message.get("output"))
        return joined(as_text(item.get("content")) for item in outputs if item.get("type") == "message")
    content = message.get("content")
    if isinstance(content, list):
        shown = [part for part in content if as_dict(part).get("type") not in ("tool_use", "thinking", "reasoning")]
        return as_text(shown)
    return as_text(content) if as_str(message.get("type")) not in _REPLY_TYPES else ""


def _thought(message: dict[str, Json]) -> str:
    inner = as_dict(
        as_dict((as_list(as_dict(as_dict(message.get("extra")).get("response")).get("choices")) or [None])[0]).get(
            "message"
        )
    )
    for source in (message, inner):
        found = first(source, "reasoning_content", "reasoning")
        if found:
            return as_text(found)
    parts = [
        *objects(message.get("content")),
        *objects(message.get("thinking_blocks")),
        *objects(message.get("output")),
    ]
    if message.get("type") == "reasoning":
        parts.append(message)
    shown = [part for part in parts if part.get("type") in ("thinking", "reasoning")]
    return joined(as_text(first(part, "thinking", "reasoning", "summary", "text", "content")) for part in shown)


def _usage(message: dict[str, Json]) -> dict[str, Json]:
    response = as_dict(as_dict(message.get("extra")).get("response"))
    return as_dict(first(response, "usage") or message.get("usage"))


def _tokens(usage: dict[str, Json]) -> Tokens:
    details = as_dict(first(usage, "prompt_tokens_details", "input_tokens_details"))
    reply = as_dict(first(usage, "completion_tokens_details", "output_tokens_details"))
    return Tokens(
        as_int(first(usage, "prompt_tokens", "input_tokens")),
        as_int(first(usage, "completion_tokens", "output_tokens")),
        as_int(details.get("cached_tokens")),
        as_int(reply.get("reasoning_tokens")),
    )


def _result(
    answer: dict[str, Json], position_id: str, started: float | None, derived: set[str]
) -> tuple[Result, float | None]:
    extra = as_dict(answer.get("extra"))
    text = as_text(answer.get("content", answer.get("output")))
    at = when(extra.get("timestamp"))
    returncode = as_int(extra.get("returncode"))
    if returncode is None:
        match = _RETURNCODE.match(text.lstrip()[:60])
        returncode = int(match[1]) if match else None
        derived |= {"results.returncode"} if match else set()
    duration = None
    if at is not None and started is not None and 0 <= at - started < 1e7:
        duration = at - started
        derived.add("results.duration_s")
    identity = as_str(first(answer, "tool_call_id", "call_id"))
    if not identity:
        identity = position_id
        derived.add("results.call_id")
    is_error = True if extra.get("exception_info") or extra.get("interrupt_type") or answer.get("error") else None
    return Result(identity, text, is_error, returncode, duration), at
