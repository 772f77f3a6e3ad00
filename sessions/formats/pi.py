"""Sessions of pi, the coding agent: each line is an entry, such as a chat message with typed parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gistpoint.sessions.formats.shared.calls import call_of_function, edits_of, kind_of, shell_call
from gistpoint.sessions.formats.shared.message_parts import thought_text
from gistpoint.sessions.records.building import StepBuilder, Tally, any_error, asking_kind
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun, unknown_step
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record, of_type, records_of, times_of
from gistpoint.sessions.records.requests import request_in
from gistpoint.sessions.records.values import (
    as_dict,
    as_str,
    as_text,
    compact,
    dumped,
    objects,
    total,
    when,
)

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
_FAILED = frozenset({"error", "aborted"})


class _Reader(RunReader):
    format = "pi"
    in_lines = True

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._calls: dict[str, int] = {}
        self._tally = Tally()
        self._seen: dict[str, Json] = {}
        self._end = ""

    def place(self, fields: Json, step_count: int) -> int:
        entry = as_dict(fields)
        message = as_dict(entry.get("message"))
        self._learn(entry, message)
        if message.get("role") == "toolResult":
            return self._calls.pop(as_str(message.get("toolCallId")), step_count)
        for block in objects(message.get("content")):
            if block.get("type") == "toolCall":
                self._calls[as_str(block.get("id"))] = step_count
        return step_count

    def _learn(self, entry: dict[str, Json], message: dict[str, Json]) -> None:
        self._tally.add_time(when(entry.get("timestamp")))
        if entry.get("type") == "session":
            self._seen = {**entry, **self._seen}
        if entry.get("type") == "session_info" and entry.get("name"):
            self._seen["name"] = entry["name"]
        if message.get("role") == "assistant":
            reply = Record(message)
            self._tally.add_usage(*_spent(reply))
            self._end = reply.word("stopReason")
            # A reply that failed names the requested model, which may never have answered.
            if reply.get("model") and self._end not in _FAILED:
                self._seen.setdefault("model", reply.get("model"))

    def header(self) -> Run:
        opening = Record(
            self._seen or next((line for line in self.probe.lines if line.get("type") == "session"), {})
        )
        parent = opening.word("parentSession")
        return Run(
            self.format,
            opening.word("version"),
            id=opening.word("id"),
            task=opening.word("name") or request_in(self._user_texts()),
            model=opening.first_word("model", "modelId"),
            agent="pi",
            exit_status=self._end,
            tokens=self._tally.tokens,
            cost=self._tally.cost,
            started=self._tally.started,
            duration_s=self._tally.duration_s,
            links=(parent,) if parent else (),
            extra=opening.kept("cwd"),
            derived=frozenset({"tokens", "cost", "duration_s", "exit_status"}),
        )

    def _user_texts(self) -> Iterator[str]:
        """Yield the user's texts near the beginning of the file."""
        messages = (as_dict(line.get("message")) for line in self.probe.lines)
        return (as_text(item.get("content")) for item in messages if item.get("role") == "user")

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        entries = records_of(raws)
        if entries[0].get("message", "role") == "assistant":
            return _reply(index, raws, entries)
        return _other(index, raws, entries[0])


def _spent(message: Record) -> tuple[Tokens, float | None]:
    """Return a reply's tokens, the prompt's including cached ones, and its cost in US dollars.

    The cost is None if it is unknown.
    """
    usage = message.inner("usage")
    read = usage.whole("cacheRead")
    prompt = total([usage.whole("input"), read, usage.whole("cacheWrite")])
    return Tokens(prompt, usage.whole("output"), read, usage.whole("reasoning")), usage.number(
        "cost", "total"
    )


def _reply(index: int, raws: Sequence[Raw], entries: list[Record]) -> Step:
    message = entries[0].inner("message")
    blocks = message.objects("content")
    calls = tuple(call_of_function(block.members) for block in of_type(blocks, "toolCall"))
    results = [_result(entry.inner("message")) for entry in entries[1:]]
    texts = [block for block in blocks if block.get("type") not in ("toolCall", "thinking")]
    broken = message.word("stopReason") in _FAILED
    builder = StepBuilder(index, raws, Actor.AGENT, kind_of(calls), "assistant").edits(edits_of(calls))
    if broken:
        # pi keeps the calls of a reply that broke off, but runs none of them: they changed no file.
        label = "calls were not run" if calls else "assistant"
        builder = StepBuilder(index, raws, Actor.AGENT, StepKind.ERROR, label)
    return (
        builder.thought(*(thought_text(block.members) for block in of_type(blocks, "thinking")))
        .text(*(as_text([block.members]) for block in texts), message.text("errorMessage"))
        .calls(calls)
        .results(results)
        .over(times_of(entries, "timestamp"))
        .spent(*_spent(message))
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
            # A command that the user typed after `!`: pi runs it, and sends it to the model with the next
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


class Pi(SingleRun):
    """Recognised by a `session` line with a folder and a time."""

    name = "pi"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("message.api", "message.provider", "message.usage", "message.stopReason", "message.toolName"),
            "counts and settings of the provider; the model, the tokens and the cost are shown",
        ),
        NotShown(("message.content.partialJson",), "a call's arguments as they came; the call has them"),
        NotShown(
            (
                "message.content.thinkingSignature",
                "message.content.textSignature",
                "message.content.thoughtSignature",
            ),
            "encoded: the provider alone can read it",
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        opening = of_type(map(Record, probe.lines[:20]), "session")
        return 1.0 if any(entry.has_all("cwd", "timestamp") for entry in opening) else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Open the session."""
        return _Reader(probe)


FORMAT = Pi()
