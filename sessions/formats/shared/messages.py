"""Groups chat messages, the basis of several formats, into turns, and makes a step of each turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from gistpoint.sessions.formats.shared.calls import call_of_function, edits_of, kind_of, shell_call
from gistpoint.sessions.formats.shared.message_parts import (
    REPLY_ITEMS,
    RESULT_ITEMS,
    UNFINISHED,
    Parts,
    call_answered,
    is_result,
    merged,
    parts_of_message,
    thought_text,
)
from gistpoint.sessions.records.building import (
    StepBuilder,
    any_error,
    any_failed,
    asking_kind,
    duration,
    error_if,
    marked_failed,
    spoken_result,
)
from gistpoint.sessions.records.format import Raw
from gistpoint.sessions.records.model import (
    Actor,
    Json,
    Result,
    RunCall,
    Step,
    StepKind,
    StepTexts,
    Tokens,
    step_texts,
)
from gistpoint.sessions.records.record import Record, records_in
from gistpoint.sessions.records.usage import counted_apart, counted_within
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    first,
    first_known,
    first_object,
    joined,
    media_text,
    objects,
    when,
)

_USUAL = frozenset(("", "end_turn", "tool_use", "stop_sequence", "stop", "tool_calls", "function_call"))
"""The stop reasons that mean that a reply is complete."""
_RETURNCODE = re.compile(r"<returncode>(-?\d{1,9})</returncode>")
_EXIT_CODE = re.compile(r"\[(?:Command finished|The command completed) with exit code (-?\d{1,9})\.?\]\s*\Z")
"""The end of a result of OpenHands' shell."""
_TIMED_OUT = re.compile(r"The last command <command>.*</command> timed out", re.S)
_LONGEST_COMMAND = 1e7
"""A longer time between two messages, in seconds, is not a duration: their clocks must differ."""
_TIMES = ("timestamp", "created_at", "createdAt", "ts")


_ACTORS = {
    "assistant": Actor.AGENT,
    "agent": Actor.AGENT,
    "model": Actor.AGENT,
    "user": Actor.USER,
    "human": Actor.USER,
    "system": Actor.SYSTEM,
    "developer": Actor.SYSTEM,
}


@dataclass(frozen=True, slots=True)
class Shell:
    """The protocol of an agent with a shell, in which the user's message after a reply is the result."""

    calls: Callable[[dict[str, Json], str, str], tuple[RunCall, ...]]
    """Returns the commands of a reply without other calls, given the message, its text and its answer."""
    refuses: Callable[[str, str], bool] = lambda _reply, _answer: False
    """Returns whether the user's next message refuses a reply without a command, given both texts."""
    expects: Callable[[dict[str, Json]], bool] = lambda _message: True
    """Whether the user's message after a reply is its result; otherwise the message is a separate turn."""
    fails: Callable[[str, StepKind], bool] | None = None
    """A function that guesses from a command's output and purpose whether it failed, if not recorded."""


def actor_of(role: str) -> Actor:
    """Return the actor that a role of chat messages denotes; unknown roles are the environment's."""
    return _ACTORS.get(role, Actor.ENVIRONMENT)


def role_of(message: dict[str, Json]) -> str:
    """Return the role of a message, inferred if the provider omits it; empty if no role can be inferred."""
    plain = message.get("role")
    if isinstance(plain, str) and plain and "type" not in message:
        return "tool" if plain == "function" else plain
    role, kind = as_str(plain), as_str(message.get("type"))
    if kind in RESULT_ITEMS or role == "function":
        return "tool"
    # The Responses API gives no role to items that the model made, nor to a whole response.
    of_model = message.get("object") == "response" or kind in REPLY_ITEMS
    return "assistant" if of_model and not role else role


def results_in(message: dict[str, Json]) -> list[dict[str, Json]]:
    """Return the parts of a user's message that are results of calls, as in Anthropic's API."""
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [part for part in objects(content) if is_result(as_str(part.get("type")))]


def _answered_by(message: dict[str, Json]) -> list[str]:
    """Return the ids of the calls that a message names as answered; some may be empty."""
    ids = [as_str(part) for part in as_list(message.get("tool_call_ids"))]
    ids.append(as_str(first(message, "tool_call_id", "call_id", "approval_request_id")))
    return [*ids, *map(call_answered, results_in(message))]


class Turns:
    """Groups messages into turns: a reply with the results that follow it, or any other single message."""

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
        if role == "assistant":
            return self._assistant(message, step_count)
        if role == "tool":
            return self._answer(message, step_count)
        if role == "user":
            return self._user(message, step_count)
        self._reply = None
        return step_count

    def _answer(self, message: dict[str, Json], step_count: int) -> int:
        """Return the step of a tool's message: of its call, of the preceding reply, or a new one."""
        self._answered = True
        known = self._owner(_answered_by(message))
        if known is not None:
            return known
        return step_count if self._reply is None else self._reply

    def _user(self, message: dict[str, Json], step_count: int) -> int:
        """Return the step of a user's message; it may contain results, or calls in a two-sided dialogue."""
        known = self._owner(map(call_answered, results_in(message)))
        if known is not None:
            self._answered = True
            return known
        if message.get("tool_calls"):
            # tau2's simulated users have tools too: results of their calls join their own turn, not the
            # agent's reply.
            self._reply, self._answered, self._expected, self._items = step_count, False, False, False
            self._own(message, step_count)
            return step_count
        awaited = self._expected and not self._answered
        if awaited and self._reply is not None:
            self._answered = True
            return self._reply
        self._reply = None
        return step_count

    def _owner(self, ids: Iterable[str]) -> int | None:
        """Return the step of the first known call among those with these ids; None if none is known.

        The calls are then forgotten.
        """
        owners = [self._calls.pop(identity, None) for identity in ids if identity]
        return first_known(owners)

    def _assistant(self, message: dict[str, Json], step_count: int) -> int:
        item = not message.get("role") and message.get("object") != "response"
        # The items of one response are consecutive, without a message around them, until an answer ends the
        # reply.
        goes_on = item and self._items and not self._answered
        step = self._reply if goes_on and self._reply is not None else step_count
        self._reply, self._answered, self._items = step, False, item
        self._expected = self._shell is not None and self._shell.expects(message)
        identity = as_str(first(message, "call_id", "id")) if item else ""
        if identity:
            self._calls[identity] = step
        self._own(message, step)
        return step

    def _own(self, message: dict[str, Json], step: int) -> None:
        """Remember the step of each call in a message."""
        for key in ("tool_calls", "content", "output"):
            for part in objects(message.get(key)):
                for name in ("id", "call_id", "toolCallId"):
                    if name in part:
                        self._calls[as_str(part[name])] = step


def message_step(index: int, raws: Sequence[Raw], shell: Shell | None = None) -> Step:
    """Return the step of a turn; `shell` is the protocol of an agent that works through a shell."""
    messages = [as_dict(raw.value) for raw in raws]
    if role_of(messages[0]) == "assistant":
        return _reply_step(index, raws, messages, shell)
    return _lone_step(index, raws, messages)


def _lone_step(index: int, raws: Sequence[Raw], messages: list[dict[str, Json]]) -> Step:
    """Return the step of a message that is not a reply, with the answers to any calls in it."""
    head, plain = Record(messages[0]), messages[0]
    role = role_of(plain)
    parts = parts_of_message(plain.get("content", plain.get("output")))
    kind = StepKind.TOOL if parts.results else _lone_kind(role, index)
    text = joined([parts.combined_text, head.text("extra", "traceback")])
    unknown = kind is StepKind.UNKNOWN
    if unknown or not role:
        text = text or as_text(raws[0].value)
    calls = [*parts.calls, *map(call_of_function, objects(plain.get("tool_calls")))]
    derived = {"kind"}
    answers: list[Result] = []
    for answer in messages[1:]:
        answers += _results(answer, "", _since(_time(plain), _time(answer)), derived)
    builder = StepBuilder(
        index, raws, actor_of(role), kind, role or head.word("type") or type(raws[0].value).__name__
    )
    builder.text(text).calls(calls).results([*parts.results, *answers]).at(_written_time(plain)).id(
        head.word("id")
    )
    builder.state(head.inner("extra").kept("exit_status", "interrupt_type", "traceback")).derived(*derived)
    if head.get("extra", "interrupt_type"):
        # mini-swe-agent's own message about a reply that it could not use: it is neither from the user nor
        # a result.
        return builder.kind(StepKind.ERROR).flag("error").build()
    builder.flag_if(unknown, "unknown").flag_if(parts.results, "unpaired")
    return builder.flag_if(any_error(answers), "error").build()


_LONE_KINDS = {
    "system": StepKind.SYSTEM,
    "developer": StepKind.SYSTEM,
    "exit": StepKind.END,
    "tool": StepKind.TOOL,
}


def _lone_kind(role: str, index: int) -> StepKind:
    return asking_kind(index) if role == "user" else _LONE_KINDS.get(role, StepKind.UNKNOWN)


def message_texts(values: Sequence[Json], shell: Shell | None = None) -> StepTexts | None:
    """Return the text parts of the step that `message_step` makes of a reply; None for other messages."""
    messages = [as_dict(value) for value in values]
    if role_of(messages[0]) != "assistant":
        return None
    turn = _turn(messages, shell)
    results = [result.text for result in turn.results]
    for answer in turn.answers:
        results += _texts_in(answer)
    return step_texts(turn.thought, turn.text, turn.calls, results)


class _Turn(NamedTuple):
    """The content of a reply and its answers; `results` are those in the reply itself."""

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
    parts = merged(map(parts_of_reply, replies))
    derived = {"kind"}
    calls, text = tuple(parts.calls), parts.text
    if shell is not None and not calls:
        calls = shell.calls(replies[0], text, as_text(answers[0].get("content")) if answers else "")
        derived |= {"calls"} if calls else set()
    return _Turn(replies, answers, joined(parts.thought), text, calls, parts.results, derived)


def _answered(turn: _Turn, started: float | None) -> tuple[list[Result], float | None, bool]:
    """Return the results of a turn, when the last came, and whether an answer refused the reply's form."""
    results = turn.results
    # Answers that name no call are paired by position with the calls that no answer names.
    named = [[identity for identity in _answered_by(answer) if identity] for answer in turn.answers]
    known = {result.call_id for result in results}.union(*named)
    left = iter([call.id for call in turn.calls if call.id not in known])
    ended, refused = None, False
    for answer, names in zip(turn.answers, named, strict=True):
        at = _time(answer)
        identity = names[0] if names else next(left, "")
        results += _results(answer, identity, _since(started, at), turn.derived)
        ended = at if at is not None else ended
        refused = refused or as_dict(answer.get("extra")).get("interrupt_type") == "FormatError"
    return results, ended, refused


def _reply_step(
    index: int, raws: Sequence[Raw], messages: list[dict[str, Json]], shell: Shell | None
) -> Step:
    turn = _turn(messages, shell)
    reply, calls, derived = turn.replies[0], turn.calls, turn.derived
    written = _written_time(reply)
    started = when(written)
    results, ended, refused = _answered(turn, started)
    if shell is not None and not calls and _refused_by(shell, turn.text, results):
        refused, results = True, marked_failed(results)
        derived.add("results.is_error")
    kind = StepKind.ERROR if refused else kind_of(calls)
    if shell is not None and shell.fails is not None:
        results, guessed = _guessed(results, kind, shell.fails)
        derived |= guessed
    usage = usage_of(reply)
    return (
        StepBuilder(index, raws, Actor.AGENT, kind, "assistant")
        .thought(turn.thought)
        .text(turn.text)
        .calls(calls)
        .results(results)
        .edits(() if refused else edits_of(calls))
        .naive(written)
        .span(started, ended)
        .spent(tokens_of(usage), cost_of(reply, usage))
        .model(_model(reply))
        .flag(*stopped(turn.replies))
        .flag_if(refused, "refused")
        .flag_if(refused or any_failed(results), "error")
        .derived(*derived)
        .id(as_str(first(reply, "id")))
        .build()
    )


def _refused_by(shell: Shell, text: str, results: list[Result]) -> bool:
    return any(shell.refuses(text, result.text) for result in results)


def stopped(replies: Sequence[dict[str, Json]]) -> set[str]:
    """Return a flag for each unusual reason why a reply stopped, such as a cut-off or a refusal."""
    reasons: set[str] = set()
    for reply in replies:
        reasons.add(as_str(first(reply, "stop_reason", "finish_reason")))
        reasons.add(as_str(as_dict(reply.get("incomplete_details")).get("reason")))
    return {f"stopped: {reason}" for reason in reasons - _USUAL}


def _guessed(
    results: list[Result], kind: StepKind, fails: Callable[[str, StepKind], bool]
) -> tuple[list[Result], set[str]]:
    """Return the results, marked if they seem to report a failure, and the names of inferred fields."""
    marked: list[Result] = []
    for result in results:
        is_unknown = result.is_error is None and result.returncode is None
        failed = is_unknown and fails(result.text, kind)
        marked.append(replace(result, is_error=True) if failed else result)
    return marked, {"results.is_error"} if marked != results else set()


def parts_of_reply(message: dict[str, Json]) -> Parts:
    """Return the text, thoughts, calls and results in a reply from any provider."""
    parts = _content_of_reply(message)
    if isinstance(message.get("refusal"), str):
        parts.texts.append(as_text(message["refusal"]))
    if isinstance(message.get("audio"), dict):
        parts.texts.append(media_text(as_dict(message["audio"]), "audio"))
    parts.calls += map(call_of_function, objects(message.get("tool_calls")))
    if message.get("function_call"):
        parts.calls.append(call_of_function({"function": message["function_call"]}))
    if not parts.calls:
        # mini-swe-agent parses the command out of the reply, and records what it found.
        for action in Record(message).objects("extra", "actions"):
            parts.calls.append(shell_call(action.text("command"), action.word("tool_call_id")))
    thoughts = [*_thoughts(message), *parts.thought]
    parts.thought = [thought for thought in dict.fromkeys(thoughts) if thought]
    return parts


def _content_of_reply(message: dict[str, Json]) -> Parts:
    if message.get("object") == "response":
        outputs: list[Json] = []
        for item in as_list(message.get("output")):
            outputs += _unwrapped(item)
        return parts_of_message(outputs)
    if as_str(message.get("type")) in REPLY_ITEMS:
        return parts_of_message([message])
    return parts_of_message(message.get("content"))


def _unwrapped(item: Json) -> list[Json]:
    """Return the parts of a message within a response's output; any other item is itself a part."""
    content = as_dict(item).get("content")
    return content if as_dict(item).get("type") == "message" and isinstance(content, list) else [item]


def _thoughts(message: dict[str, Json]) -> list[str]:
    if message.get("type") == "reasoning":
        return []
    # Some agents drop the thought from the message, but keep the provider's whole response next to it.
    choice = first_object(Record(message).get("extra", "response", "choices"))
    for source in (message, as_dict(choice.get("message"))):
        found = first(source, "reasoning_content", "reasoning")
        if found:
            return [as_text(found)]
    return [thought_text(block) for block in objects(message.get("thinking_blocks"))]


_USAGE_PATHS = (("extra", "response", "usage"), ("usage",), ("metrics", "tokens"), ("metrics",))


def usage_of(message: dict[str, Json]) -> dict[str, Json]:
    """Return the token counts recorded with a reply; empty if there are none."""
    reply = Record(message)
    for path in _USAGE_PATHS:
        found = reply.get(*path)
        if found:
            return as_dict(found)
    return {}


_COUNTED_APART = (
    *("cache_read_input_tokens", "cache_creation_input_tokens"),
    *("cacheReadInputTokens", "cacheWriteInputTokens"),
)
"""Names under which the APIs of Anthropic and Bedrock count cached tokens separately from the prompt."""
_READ_FROM_CACHE = (
    *("cached_tokens", "cache_read_input_tokens", "cacheReadInputTokens", "cacheReadTokens"),
    *("cachedInputTokens", "cache_read", "prompt_cache_hit_tokens", "cached"),
)
_WRITTEN_TO_CACHE = (
    *("cache_creation_input_tokens", "cacheWriteInputTokens", "cacheWriteTokens"),
    *("cache_write_tokens", "cache_creation"),
)


def tokens_of(usage: dict[str, Json]) -> Tokens:
    """Return a reply's tokens, whatever the provider calls them; the prompt's tokens include cached ones."""
    details = as_dict(first(usage, "prompt_tokens_details", "input_tokens_details", "input_token_details"))
    reply = as_dict(
        first(usage, "completion_tokens_details", "output_tokens_details", "output_token_details")
    )
    # Anthropic's API counts the cache separately; LiteLLM gives its names next to a prompt that includes it.
    is_apart = "prompt_tokens" not in usage and not details and not usage.keys().isdisjoint(_COUNTED_APART)
    counted = counted_apart if is_apart else counted_within
    found = {**usage, **details}
    return counted(
        as_int(first(usage, "prompt_tokens", "input_tokens", "inputTokens", "prompt")),
        as_int(first(usage, "completion_tokens", "output_tokens", "outputTokens", "completion")),
        read=as_int(first(found, *_READ_FROM_CACHE)),
        written=as_int(first(found, *_WRITTEN_TO_CACHE)),
        reasoning=as_int(first(reply, "reasoning_tokens", "reasoning")),
        whole=as_int(first(usage, "total_tokens", "totalTokens")),
    )


def cost_of(message: dict[str, Json], usage: dict[str, Json]) -> float | None:
    """Return the cost of a reply in US dollars; None if it is not recorded."""
    for holder in (as_dict(message.get("extra")), usage, as_dict(message.get("metrics")), message):
        if "cost" in holder:
            return as_float(holder["cost"])
    return None


def _model(message: dict[str, Json]) -> str:
    reply = Record(message)
    known = reply.get("extra", "response", "model") or reply.get("model")
    return as_str(known or reply.inner("modelInfo").first("modelId", "id"))


def _written_time(message: dict[str, Json]) -> Json:
    return first(as_dict(message.get("extra")), "timestamp") or first(message, *_TIMES)


def _time(message: dict[str, Json]) -> float | None:
    return when(_written_time(message))


def _results(
    answer: dict[str, Json], position_id: str, duration_s: float | None, derived: set[str]
) -> list[Result]:
    """Return the results in an answer; other text in it becomes a result without a call.

    The names of inferred fields are added to `derived`.
    """
    if results_in(answer):
        parts = parts_of_message(answer.get("content"))
        return [*parts.results, *spoken_result(parts.combined_text)]
    content = _answer(answer)
    text = _answer_text(content)
    returncode = _recorded_code(content)
    if returncode is None:
        returncode = as_int(as_dict(answer.get("extra")).get("returncode"))
    if returncode is None:
        # Searched for only at both ends, because a file that a command prints may contain such a line too.
        match = _RETURNCODE.match(text.lstrip()[:60]) or _EXIT_CODE.search(text[-400:])
        if match is not None:
            returncode = int(match[1])
            derived.add("results.returncode")
    if duration_s is not None:
        derived.add("results.duration_s")
    identity = as_str(first(answer, "tool_call_id", "call_id", "approval_request_id"))
    if not identity:
        identity = position_id
        derived.add("results.call_id")
    is_error = error_if(_is_marked_failed(answer))
    if is_error is None and _TIMED_OUT.match(text.lstrip()):
        is_error = True
        derived.add("results.is_error")
    return [Result(identity, text, is_error, returncode, duration_s)]


def _recorded_code(content: Json) -> int | None:
    """Return the highest exit code in a result's parts, so that no failure is hidden, or None."""
    codes = [part.whole("outcome", "exit_code") for part in records_in(content)]
    return max([code for code in codes if code is not None], default=None)


def _since(started: float | None, at: float | None) -> float | None:
    """Return the seconds that a command took; None if a time is missing or the difference is implausible."""
    spent = duration(started, at)
    return spent if spent is not None and 0 <= spent < _LONGEST_COMMAND else None


def _is_marked_failed(answer: dict[str, Json]) -> bool:
    extra = as_dict(answer.get("extra"))
    interrupted = extra.get("exception_info") or extra.get("interrupt_type")
    return bool(interrupted or answer.get("error")) or answer.get("status") in UNFINISHED


def _answer(answer: dict[str, Json]) -> Json:
    content = first(answer, "content", "output", "tools", "reason")
    return answer["approve"] if content is None and "approve" in answer else content


def _answer_text(content: Json) -> str:
    return as_text([content] if "type" in as_dict(content) else content)


def _texts_in(answer: dict[str, Json]) -> list[str]:
    """Return the text of each result in an answer."""
    if results_in(answer):
        return [result.text for result in _results(answer, "", None, set())]
    return [_answer_text(_answer(answer))]
