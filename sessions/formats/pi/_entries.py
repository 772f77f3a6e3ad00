"""Makes steps from a session's entries: replies with their results, and other events."""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.sessions.formats.shared.calls import call_of_function, edits_of, kind_of, shell_call
from gistpoint.sessions.formats.shared.message_parts import thought_text
from gistpoint.sessions.records.building import StepBuilder, any_error, asking_kind
from gistpoint.sessions.records.format import Raw, unknown_step
from gistpoint.sessions.records.model import Actor, Result, Step, StepKind, Tokens
from gistpoint.sessions.records.record import Record, of_type, records_of, times_of
from gistpoint.sessions.records.usage import counted_apart
from gistpoint.sessions.records.values import as_text, compact, dumped

_KINDS = {
    "compaction": StepKind.CONTEXT,
    "branch_summary": StepKind.CONTEXT,
    "session": StepKind.STATE,
    "model_change": StepKind.STATE,
    "thinking_level_change": StepKind.STATE,
    "session_info": StepKind.STATE,
    "label": StepKind.NOTE,
    "custom": StepKind.STATE,
    "custom_message": StepKind.NOTE,
}
FAILED = frozenset({"error", "aborted"})


def entry_step(index: int, raws: Sequence[Raw]) -> Step:
    """Return the step of an entry with the entries that answer its calls."""
    entries = records_of(raws)
    if entries[0].get("message", "role") == "assistant":
        return _reply(index, raws, entries)
    return _other(index, raws, entries[0])


def spent(message: Record) -> tuple[Tokens, float | None]:
    """Return a reply's tokens, the prompt's including cached ones, and its cost in US dollars.

    The cost is None if it is unknown.
    """
    usage = message.inner("usage")
    tokens = counted_apart(
        usage.whole("input"),
        usage.whole("output"),
        read=usage.whole("cacheRead"),
        written=usage.whole("cacheWrite"),
        reasoning=usage.whole("reasoning"),
        whole=usage.whole("totalTokens"),
    )
    return tokens, usage.number("cost", "total")


def _reply(index: int, raws: Sequence[Raw], entries: list[Record]) -> Step:
    message = entries[0].inner("message")
    blocks = message.objects("content")
    calls = tuple(call_of_function(block.members) for block in of_type(blocks, "toolCall"))
    results = [_result(entry.inner("message")) for entry in entries[1:]]
    texts = [block for block in blocks if block.get("type") not in ("toolCall", "thinking")]
    broken = message.word("stopReason") in FAILED
    builder = StepBuilder(index, raws, Actor.AGENT, kind_of(calls), "assistant").edits(edits_of(calls))
    if broken:
        # pi keeps the calls of a reply that broke off but runs none of them, so they changed no file.
        label = "calls were not run" if calls else "assistant"
        builder = StepBuilder(index, raws, Actor.AGENT, StepKind.ERROR, label)
    return (
        builder.thought(*(thought_text(block.members) for block in of_type(blocks, "thinking")))
        .text(*(as_text([block.members]) for block in texts), message.text("errorMessage"))
        .calls(calls)
        .results(results)
        .over(times_of(entries, "timestamp"))
        .replied(times_of(entries[:1], "timestamp"), asked=message.time("timestamp"))
        .spent(*spent(message))
        .model(message.word("model"))
        .flag_if(broken or any_error(results), "error")
        .derived("kind", "ended")
        .id(entries[0].word("id"))
        .build()
    )


def _result(message: Record) -> Result:
    return Result(message.word("toolCallId"), message.text("content"), message.truth("isError"))


def _other(index: int, raws: Sequence[Raw], entry: Record) -> Step:
    message = entry.inner("message")
    kind_name, role = entry.word("type"), message.word("role")
    started = entry.time("timestamp")
    match role:
        case "user":
            builder = StepBuilder(index, raws, Actor.USER, asking_kind(index), role)
            return (
                builder.text(message.text("content"))
                .span(started)
                .derived("kind")
                .id(entry.word("id"))
                .build()
            )
        case "toolResult":
            result = _result(message)
            builder = StepBuilder(index, raws, Actor.ENVIRONMENT, StepKind.TOOL, role)
            builder.flag("unpaired").flag_if(result.is_error, "error")
            return builder.results([result]).span(started).id(entry.word("id")).build()
        case "bashExecution":
            # pi runs a command that the user typed after `!`, and sends it to the model with the next
            # request.
            call = shell_call(message.text("command"), f"bash-{index}")
            result = Result(call.id, message.text("output"), None, message.whole("exitCode"))
            builder = (
                StepBuilder(index, raws, Actor.USER, kind_of((call,)), role).calls([call]).results([result])
            )
            return builder.span(started).flag_if(result.returncode, "error").derived("kind").build()
    if kind_name not in _KINDS and not role:
        return unknown_step(index, raws, kind_name or "entry", dumped(raws[0].value))
    kind = StepKind.CONTEXT if role.endswith("Summary") else _KINDS.get(kind_name, StepKind.NOTE)
    text = as_text(message.first("content", "summary") or entry.first("summary", "content", "name"))
    return (
        StepBuilder(index, raws, Actor.SYSTEM, kind, role or kind_name)
        .text(text or compact(entry.without("type", "timestamp")))
        .span(started)
        .id(entry.word("id"))
        .build()
    )
