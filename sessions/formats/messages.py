"""Chat messages, on which several formats are based: groups them into turns and converts turns to steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gistpoint.sessions.formats.calls import call_of_function, edits_of, kind_of, shell_call
from gistpoint.sessions.records.format import Raw
from gistpoint.sessions.records.model import (
    Actor,
    CutText,
    Json,
    Result,
    RunCall,
    Step,
    StepKind,
    StepTexts,
    Tokens,
    step_texts,
)
from gistpoint.sessions.records.values import (
    as_bool,
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    first,
    is_naive,
    joined,
    media_text,
    objects,
    total,
    when,
)

_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
_HOSTED_ITEMS = frozenset(
    ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call")
)
"""Calls that OpenAI's servers carry out: an item has the call and, in one of these members, its result."""
_HOSTED_RESULTS = ("error", "output", "outputs", "results", "result")
_CALL_ITEMS = _HOSTED_ITEMS | {
    "function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call",
    "tool_search_call", "mcp_approval_request",
}  # fmt: skip
_RESULT_ITEMS = frozenset(
    ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output",
     "apply_patch_call_output", "computer_call_output", "tool_search_output", "mcp_approval_response")
)  # fmt: skip
"""Items of OpenAI's Responses API, each of which stands in place of a message."""


@dataclass(slots=True)
class Parts:
    """The contents of one message, by kind."""

    texts: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)
    calls: list[RunCall] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)


def is_call(kind: str) -> bool:
    """Whether a part of this type is a call of one of the user's or the server's tools."""
    return kind.endswith("tool_use") or kind in _CALL_ITEMS or kind == "tool-call"


def is_result(kind: str) -> bool:
    """Whether a part of this type is the result of a call."""
    return kind.endswith("tool_result") or kind in _RESULT_ITEMS or kind == "tool-result"


def parts_of_message(content: Json) -> Parts:
    """Read the content of a message: a string, or a list of parts."""
    parts = Parts()
    for item in content if isinstance(content, list) else [content]:
        block = as_dict(item)
        kind = as_str(block.get("type"))
        if kind in _THOUGHTS:
            parts.thought.append(thought_text(block))
        elif is_call(kind):
            parts.calls.append(call_of_function(block))
            if kind in _HOSTED_ITEMS:
                parts.results += _hosted_result(block, parts.calls[-1].id)
            elif "result" in block:
                parts.results.append(_result(block, parts.calls[-1].id, first(block, "error") or block["result"]))
        elif is_result(kind):
            parts.results.append(_result(block, _answers(block), first(block, "content", "output", "result")))
        else:
            parts.texts.append(as_text([item]) if isinstance(content, list) else as_text(item))
    return parts


def thought_text(block: dict[str, Json]) -> str:
    """Return the text of a part with a thought; its length if it is unreadable."""
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


def _hosted_result(block: dict[str, Json], identity: str) -> list[Result]:
    found = first(block, *_HOSTED_RESULTS)
    if found is None:
        return []
    image = block.get("type") == "image_generation_call" and isinstance(block.get("result"), str)
    text = media_text({"type": "image", "data": block["result"]}) if image else as_text(found)
    failed = bool(block.get("error")) or block.get("status") in ("failed", "incomplete")
    return [Result(identity, text, True if failed else None)]


def _result(block: dict[str, Json], identity: str, content: Json) -> Result:
    inner = as_dict(content)
    failed = as_bool(block.get("is_error"))
    if failed is None and (as_str(inner.get("type")).endswith("_error") or block.get("error")):
        failed = True
    text = as_text(content)
    if inner and ("stdout" in inner or "stderr" in inner):
        text = joined([as_text(inner.get("stdout")), as_text(inner.get("stderr")), as_text(inner.get("content"))])
    return Result(identity, text, failed, as_int(inner.get("return_code")))


_USUAL = frozenset(("", "end_turn", "tool_use", "stop_sequence", "stop", "tool_calls", "function_call"))
"""Reasons for which a reply stops that say that it is whole."""
_RETURNCODE = re.compile(r"<returncode>(-?\d{1,9})</returncode>")
_EXIT_CODE = re.compile(r"\[(?:Command finished|The command completed) with exit code (-?\d{1,9})\.?\]\s*\Z")
"""The end of a result of OpenHands' shell."""
_TIMED_OUT = re.compile(r"The last command <command>.*</command> timed out", re.S)
_TIMES = ("timestamp", "created_at", "createdAt", "ts")


@dataclass(frozen=True, slots=True)
class Shell:
    """The protocol of an agent with a shell: the user's message after a reply is the result of its command."""

    calls: Callable[[dict[str, Json], str, str], tuple[RunCall, ...]]
    """Finds the command in a reply that makes no other call, from the message, its text and the answer."""
    refuses: Callable[[str, str], bool] = lambda _reply, _answer: False
    """Whether the user's message after a reply without a command refuses the reply."""
    expects: Callable[[dict[str, Json]], bool] = lambda _message: True
    """Whether the user's message after a reply is its result; else it is a turn of its own."""
    fails: Callable[[str, StepKind], bool] | None = None
    """Guesses whether a command failed, from its output and from what it is for, if nothing else says so."""


def actor_of(role: str) -> Actor:
    """Return the actor of a role of chat messages."""
    return {
        "assistant": Actor.AGENT, "agent": Actor.AGENT, "model": Actor.AGENT, "user": Actor.USER, "human": Actor.USER,
        "system": Actor.SYSTEM, "developer": Actor.SYSTEM,
    }.get(role, Actor.ENVIRONMENT)  # fmt: skip


def role_of(message: dict[str, Json]) -> str:
    """Return the role of a message, even if a provider omits it."""
    plain = message.get("role")
    if isinstance(plain, str) and plain and "type" not in message:
        return "tool" if plain == "function" else plain
    role, kind = as_str(plain), as_str(message.get("type"))
    if kind in _RESULT_ITEMS:
        return "tool"
    if not role and (message.get("object") == "response" or kind in _CALL_ITEMS or kind == "reasoning"):
        return "assistant"
    return "tool" if role == "function" else role


def results_in(message: dict[str, Json]) -> list[dict[str, Json]]:
    """Return the parts of a user's message that are results of calls, as in Anthropic's API."""
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [part for part in objects(content) if is_result(as_str(part.get("type")))]


class Turns:
    """Groups messages into turns: a reply with the results that follow it; any other message is a turn of its own."""

    def __init__(self, shell: Shell | None = None) -> None:
        self._shell = shell
        self._reply: int | None = None
        self._answered = False
        self._expected = False
        self._items = False
        self._calls: dict[str, int] = {}

    def place(self, fields: Json, step_count: int) -> int:
        """Return the step of the next message."""
        message = as_dict(fields)
        role = role_of(message)
        if role == "tool":
            ids = [as_str(part) for part in as_list(message.get("tool_call_ids"))]
            ids += [as_str(first(message, "tool_call_id", "call_id", "approval_request_id"))] + [
                _answers(part) for part in results_in(message)
            ]
            self._answered = True
            known = self._owner(ids)
            return known if known is not None else self._or_new(step_count)
        if role == "assistant":
            return self._assistant(message, step_count)
        if role == "user" and (results := results_in(message)):
            known = self._owner(_answers(part) for part in results)
            if known is not None:
                self._answered = True
                return known
        if role == "user" and message.get("tool_calls"):
            self._reply, self._answered, self._expected, self._items = step_count, False, False, False
            self._own(message, step_count)
            return step_count
        if self._expected and role == "user" and self._reply is not None and not self._answered:
            self._answered = True
            return self._reply
        self._reply = None
        return step_count

    def _owner(self, ids: Iterable[str]) -> int | None:
        """Return the step of the first known call that is answered."""
        owners = [self._calls.pop(identity, None) for identity in ids if identity]
        return next((owner for owner in owners if owner is not None), None)

    def _or_new(self, step_count: int) -> int:
        return step_count if self._reply is None else self._reply

    def _assistant(self, message: dict[str, Json], step_count: int) -> int:
        item = not message.get("role") and message.get("object") != "response"
        joins = item and self._items and self._reply is not None and not self._answered
        step = self._reply if joins and self._reply is not None else step_count
        self._reply, self._answered, self._items = step, False, item
        self._expected = self._shell is not None and self._shell.expects(message)
        if item and first(message, "call_id", "id"):
            self._calls[as_str(first(message, "call_id", "id"))] = step
        self._own(message, step)
        return step

    def _own(self, message: dict[str, Json], step: int) -> None:
        """Remember the step of each call in a message."""
        for key in ("tool_calls", "content", "output"):
            for part in objects(message.get(key)):
                for name in ("id", "call_id", "toolCallId"):
                    if name in part:
                        self._calls[as_str(part[name])] = step


def _answers(part: dict[str, Json]) -> str:
    """Return the id of the call that a part answers."""
    return as_str(first(part, "tool_use_id", "toolCallId", "call_id", "approval_request_id"))


def message_step(index: int, raws: Sequence[Raw], shell: Shell | None = None) -> Step:
    """Return the step of a turn."""
    messages = [as_dict(raw.value) for raw in raws]
    head = messages[0]
    role = role_of(head)
    ranges = tuple(raw.range for raw in raws)
    if role == "assistant":
        return _reply_step(index, raws, messages, shell)
    parts = parts_of_message(head.get("content", head.get("output")))
    extra = as_dict(head.get("extra"))
    actor, kind = actor_of(role), StepKind.TOOL if parts.results else _lone_kind(role, index)
    text = joined([*parts.texts, *parts.thought, as_text(extra.get("traceback"))])
    if not role or kind is StepKind.UNKNOWN:
        text = text or as_text(raws[0].value)
    flags = {"unknown"} if kind is StepKind.UNKNOWN else {"unpaired"} if parts.results else set[str]()
    calls = (*parts.calls, *(call_of_function(item) for item in objects(head.get("tool_calls"))))
    answers, derived = messages[1:], {"kind"}
    results = [result for answer in answers for result in _results(answer, "", _time(head), derived)]
    if any(result.is_error for result in results):
        flags.add("error")
    if extra.get("interrupt_type"):
        kind, flags = StepKind.ERROR, {"error"}
    state = {key: extra[key] for key in ("exit_status", "interrupt_type", "traceback") if extra.get(key)}
    label = role or as_str(head.get("type")) or type(raws[0].value).__name__
    return Step(
        index, actor, kind, raws[0].range, ranges, label=label,
        text=text, calls=calls, results=(*parts.results, *results), started=_time(head),
        naive=is_naive(_written_time(head)), state=state, flags=frozenset(flags), derived=frozenset(derived),
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


def message_texts(values: Sequence[Json], shell: Shell | None = None) -> StepTexts | None:
    """Return the texts of the step that `message_step` makes of a reply and its answers; None for other messages."""
    messages = [as_dict(value) for value in values]
    if role_of(messages[0]) != "assistant":
        return None
    turn = _turn(messages, shell)
    results = [result.text for result in turn.results]
    return step_texts(
        turn.thought, turn.text, turn.calls, [*results, *(text for item in turn.answers for text in _texts_in(item))]
    )


class _Turn(NamedTuple):
    """What a reply and its answers say; `results` are those in the reply itself."""

    replies: list[dict[str, Json]]
    answers: list[dict[str, Json]]
    thought: str
    text: str
    calls: tuple[RunCall, ...]
    results: list[Result]
    derived: set[str]


def _turn(messages: list[dict[str, Json]], shell: Shell | None) -> _Turn:
    replies, answers = list[dict[str, Json]](), list[dict[str, Json]]()
    for message in messages:
        (replies if role_of(message) == "assistant" else answers).append(message)
    derived = {"kind"}
    parts = [parts_of_reply(message) for message in replies]
    calls = tuple(call for part in parts for call in part.calls)
    text = joined(text for part in parts for text in part.texts)
    if not calls and shell is not None:
        calls = shell.calls(replies[0], text, as_text(answers[0].get("content")) if answers else "")
        derived |= {"calls"} if calls else set()
    thought = joined(text for part in parts for text in part.thought)
    return _Turn(replies, answers, thought, text, calls, [result for part in parts for result in part.results], derived)


def _reply_step(index: int, raws: Sequence[Raw], messages: list[dict[str, Json]], shell: Shell | None) -> Step:
    replies, answers, thought, text, calls, results, derived = _turn(messages, shell)
    written = _written_time(replies[0])
    started, ended = when(written), None
    for number, answer in enumerate(answers):
        found = _results(answer, calls[number].id if number < len(calls) else "", started, derived)
        results += found
        at = _time(answer)
        ended = at if at is not None else ended
    refused = any(as_dict(answer.get("extra")).get("interrupt_type") == "FormatError" for answer in answers)
    if shell is not None and not calls and any(shell.refuses(text, result.text) for result in results):
        refused = True
        results = [Result(result.call_id, result.text, True, result.returncode) for result in results]
        derived.add("results.is_error")
    kind = StepKind.ERROR if refused else kind_of(calls)
    if shell is not None and shell.fails is not None:
        results, guessed = _guessed(results, kind, shell.fails)
        derived |= guessed
    failed = refused or any(result.is_error or result.returncode for result in results)
    usage = usage_of(replies[0])
    return Step(
        index, Actor.AGENT, kind, raws[0].range,
        tuple(raw.range for raw in raws), label="assistant",
        thought=thought, text=text, calls=calls, results=tuple(results),
        started=started, ended=ended, naive=is_naive(written),
        tokens=tokens_of(usage), cost=cost_of(replies[0], usage), model=_model(replies[0]),
        edits=() if refused else edits_of(calls), derived=frozenset(derived), id=as_str(first(replies[0], "id")),
        flags=frozenset(stopped(replies) | ({"error"} if failed else set()) | ({"refused"} if refused else set())),
    )  # fmt: skip


def stopped(replies: Sequence[dict[str, Json]]) -> set[str]:
    """Return a flag for each reason other than the usual ones for which a reply stopped: it was cut off, or refused."""
    reasons = {as_str(first(reply, "stop_reason", "finish_reason")) for reply in replies}
    reasons |= {as_str(as_dict(reply.get("incomplete_details")).get("reason")) for reply in replies}
    return {f"stopped: {reason}" for reason in reasons - _USUAL}


def _guessed(
    results: list[Result], kind: StepKind, fails: Callable[[str, StepKind], bool]
) -> tuple[list[Result], set[str]]:
    """Mark the results that report a failure; the second value names the field if one was marked."""
    marked = [
        replace(result, is_error=True)
        if result.is_error is None and result.returncode is None and fails(result.text, kind)
        else result
        for result in results
    ]
    return marked, {"results.is_error"} if marked != results else set()


def parts_of_reply(message: dict[str, Json]) -> Parts:
    """Return text, thought and calls of a reply from any provider."""
    if message.get("object") == "response":
        outputs = [_unwrapped(item) for item in as_list(message.get("output"))]
        parts = parts_of_message([part for output in outputs for part in output])
    elif as_str(message.get("type")) in (*_CALL_ITEMS, "reasoning"):
        parts = parts_of_message([message])
    else:
        parts = parts_of_message(message.get("content"))
    if isinstance(message.get("refusal"), str):
        parts.texts.append(as_text(message["refusal"]))
    if isinstance(message.get("audio"), dict):
        parts.texts.append(media_text(as_dict(message["audio"]), "audio"))
    calls = [*objects(message.get("tool_calls"))]
    if message.get("function_call"):
        calls.append({"function": message["function_call"]})
    parts.calls += [call_of_function(item) for item in calls]
    if not parts.calls:
        actions = objects(as_dict(message.get("extra")).get("actions"))
        parts.calls += [
            shell_call(as_text(action.get("command")), as_str(action.get("tool_call_id"))) for action in actions
        ]
    parts.thought = [text for text in dict.fromkeys([*_thoughts(message), *parts.thought]) if text]
    return parts


def _unwrapped(item: Json) -> list[Json]:
    """Return the parts of a message within a response's output; any other item is a part itself."""
    content = as_dict(item).get("content")
    return content if as_dict(item).get("type") == "message" and isinstance(content, list) else [item]


def _thoughts(message: dict[str, Json]) -> list[str]:
    if message.get("type") == "reasoning":
        return []
    choices = as_list(as_dict(as_dict(message.get("extra")).get("response")).get("choices"))
    inner = as_dict(as_dict(choices[0] if choices else None).get("message"))
    for source in (message, inner):
        found = first(source, "reasoning_content", "reasoning")
        if found:
            return [as_text(found)]
    return [thought_text(block) for block in objects(message.get("thinking_blocks"))]


def usage_of(message: dict[str, Json]) -> dict[str, Json]:
    """Return the recorded tokens of a reply."""
    response = as_dict(as_dict(message.get("extra")).get("response"))
    metrics = as_dict(message.get("metrics"))
    return as_dict(first(response, "usage") or message.get("usage") or metrics.get("tokens") or metrics)


def tokens_of(usage: dict[str, Json]) -> Tokens:
    """Return the tokens of a reply from the names of any provider; the prompt's include those from a cache."""
    details = as_dict(first(usage, "prompt_tokens_details", "input_tokens_details"))
    reply = as_dict(first(usage, "completion_tokens_details", "output_tokens_details"))
    prompt = as_int(first(usage, "prompt_tokens", "input_tokens", "inputTokens", "prompt"))
    beside = [as_int(usage.get(key)) for key in ("cache_read_input_tokens", "cache_creation_input_tokens")]
    return Tokens(
        prompt if "prompt_tokens" in usage else total([prompt, *beside]),
        as_int(first(usage, "completion_tokens", "output_tokens", "outputTokens", "completion")),
        as_int(first({**usage, **details}, "cached_tokens", "cache_read_input_tokens", "cacheReadTokens", "cached")),
        as_int(reply.get("reasoning_tokens")),
    )


def cost_of(message: dict[str, Json], usage: dict[str, Json]) -> float | None:
    """Return the cost of a reply in US dollars, None if it is not recorded."""
    for holder in (as_dict(message.get("extra")), usage, as_dict(message.get("metrics")), message):
        if "cost" in holder:
            return as_float(holder["cost"])
    return None


@dataclass(slots=True)
class Totals:
    """The usage of a run's replies so far; a cost is in US dollars, None if none is recorded."""

    tokens: Tokens = field(default_factory=Tokens)
    cost: float | None = None

    def add(self, tokens: Tokens, cost: float | None = None) -> None:
        """Add a reply."""
        self.tokens += tokens
        self.cost = cost if self.cost is None else self.cost + (cost or 0.0)


def _model(message: dict[str, Json]) -> str:
    known = first(as_dict(as_dict(message.get("extra")).get("response")), "model") or message.get("model")
    return as_str(known or first(as_dict(message.get("modelInfo")), "modelId", "id"))


def _written_time(message: dict[str, Json]) -> Json:
    return first(as_dict(message.get("extra")), "timestamp") or first(message, *_TIMES)


def _time(message: dict[str, Json]) -> float | None:
    return when(_written_time(message))


def _results(answer: dict[str, Json], position_id: str, started: float | None, derived: set[str]) -> list[Result]:
    """Return the results in an answer, and other text of its user as a result without a call."""
    if results_in(answer):
        parts = parts_of_message(answer.get("content"))
        spoken = joined([*parts.texts, *parts.thought])
        return [*parts.results, *([Result("", spoken)] if spoken else [])]
    extra = as_dict(answer.get("extra"))
    content = _answer(answer)
    text = _answer_text(content)
    at = _time(answer)
    returncode = as_int(extra.get("returncode"))
    codes = [as_int(as_dict(part.get("outcome")).get("exit_code")) for part in objects(content)]
    returncode = max((code for code in codes if code is not None), default=returncode)
    if returncode is None:
        match = _RETURNCODE.match(text.lstrip()[:60]) or _EXIT_CODE.search(text[-400:])
        returncode = int(match[1]) if match else None
        derived |= {"results.returncode"} if match else set()
    duration = None
    if at is not None and started is not None and 0 <= at - started < 1e7:
        duration = at - started
        derived.add("results.duration_s")
    identity = as_str(first(answer, "tool_call_id", "call_id", "approval_request_id"))
    if not identity:
        identity = position_id
        derived.add("results.call_id")
    is_error = True if extra.get("exception_info") or extra.get("interrupt_type") or answer.get("error") else None
    if is_error is None and answer.get("status") in ("failed", "incomplete"):
        is_error = True
    if is_error is None and _TIMED_OUT.match(text.lstrip()):
        is_error = True
        derived.add("results.is_error")
    return [Result(identity, text, is_error, returncode, duration)]


def _answer(answer: dict[str, Json]) -> Json:
    content = first(answer, "content", "output", "tools", "reason")
    return answer["approve"] if content is None and "approve" in answer else content


def _answer_text(content: Json) -> str:
    return as_text([content] if "type" in as_dict(content) else content)


def _texts_in(answer: dict[str, Json]) -> list[str]:
    """Return the texts of the results in an answer."""
    if results_in(answer):
        return [result.text for result in _results(answer, "", None, set())]
    return [_answer_text(_answer(answer))]
