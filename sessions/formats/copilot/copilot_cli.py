"""Sessions of Copilot CLI, `session-state/ID/events.jsonl`: lines with an event, its data and its parent.

The events are those of `session-events.ts` of copilot-sdk. A call is recorded twice: in the reply that asks
for it, and in the event of its start.
"""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.sessions.formats.shared.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.records.building import StepBuilder, Tally, any_error, asking_kind
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun, unknown_step
from gistpoint.sessions.records.model import (
    Actor,
    Json,
    NotShown,
    Result,
    Run,
    RunCall,
    Step,
    StepKind,
    Tokens,
)
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record, attached, of_type, records_of, texts_of, times_of
from gistpoint.sessions.records.requests import headline
from gistpoint.sessions.records.usage import counted_apart, counted_within
from gistpoint.sessions.records.values import (
    as_dict,
    as_int,
    as_str,
    as_text,
    compact,
    dumped,
    first,
    joined,
    objects,
    recoded,
    when,
)

_OPENING = frozenset({"assistant.turn_start", "assistant.reasoning", "assistant.intent"})
"""Events that precede the reply that they belong to."""
_OF_REPLY = ("assistant.message", "assistant.reasoning", "tool.execution_start", "tool.execution_complete")
_KINDS = {
    "user.message": StepKind.MESSAGE,
    "system.message": StepKind.SYSTEM,
    "system.notification": StepKind.NOTE,
    "session.error": StepKind.ERROR,
    "session.shutdown": StepKind.END,
    "session.task_complete": StepKind.END,
    "abort": StepKind.END,
    "session.truncation": StepKind.CONTEXT,
    "session.compaction_start": StepKind.CONTEXT,
    "session.compaction_complete": StepKind.CONTEXT,
    "skill.invoked": StepKind.NOTE,
}
_QUIET = (
    "session.",
    "hook.",
    "assistant.",
    "subagent.",
    "tool.",
    "permission.",
    "user.",
    "external_tool.",
    "mcp.",
)


def _is_side_effect(event: dict[str, Json]) -> bool:
    """Return whether an event reports a successful hook, which belongs to the step of the preceding reply."""
    return (
        as_str(event.get("type")).startswith("hook.")
        and as_dict(event.get("data")).get("success") is not False
    )


class _Reader(RunReader):
    format = "copilot-cli"
    in_lines = True

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._tally = Tally()
        self._calls: dict[str, int] = {}
        self._open: int | None = None
        self._reply: int | None = None
        self._spoken = Tokens()
        self._summed_up = Tokens()
        self._seen: dict[str, Json] = {}
        self._end = ""

    def place(self, fields: Json, step_count: int) -> int:
        event = as_dict(fields)
        name, data = as_str(event.get("type")), as_dict(event.get("data"))
        self._learn(name, event, data)
        if name in _OPENING:
            self._open = step_count if self._open is None else self._open
            return self._open
        if name == "assistant.message":
            self._reply = step_count if self._open is None else self._open
            self._open = None
            for request in objects(data.get("toolRequests")):
                self._calls[as_str(request.get("toolCallId"))] = self._reply
            return self._reply
        if name.startswith(("tool.", "subagent.")):
            identity = as_str(data.get("toolCallId"))
            if name == "tool.execution_start":
                return self._calls.setdefault(identity, step_count)
            return self._calls.get(identity, step_count)
        if self._reply is not None:
            if name == "assistant.turn_end":
                self._open = None
                return self._reply
            if _is_side_effect(event):
                return self._reply
        if name in ("user.message", "session.resume", "abort"):
            self._open = self._reply = None
        return step_count

    def had_a_step(self, fields: Json) -> bool:
        return _is_side_effect(as_dict(fields))

    def _learn(self, name: str, event: dict[str, Json], data: dict[str, Json]) -> None:
        self._tally.add_time(when(event.get("timestamp")))
        self._start(name, data)
        if data.get("model") and not data.get("parentToolCallId"):
            self._seen.setdefault("model", data["model"])
        if name == "session.model_change":
            self._seen.setdefault("model", data.get("newModel"))
        if name == "assistant.message":
            self._spoken += Tokens(None, as_int(data.get("outputTokens")))
        if name == "session.shutdown":
            self._end = as_str(data.get("shutdownType")) or "shutdown"
            self._summed_up = _usage(Record(data))
        elif name in ("abort", "session.task_complete"):
            self._end = "aborted" if name == "abort" else "task complete"

    def _start(self, name: str, data: dict[str, Json]) -> None:
        if name == "user.message":
            self._seen.setdefault("asked", recoded(as_text(data.get("content"))))
        if name == "session.start":
            self._seen.setdefault("sessionId", data.get("sessionId"))
            self._seen.setdefault("version", data.get("copilotVersion"))
            self._seen.setdefault("context", data.get("context"))
            if data.get("selectedModel"):
                self._seen.setdefault("model", data["selectedModel"])

    def header(self) -> Run:
        if "asked" not in self._seen:
            for event in self.probe.lines:
                self._start(as_str(event.get("type")), as_dict(event.get("data")))
        context = Record(self._seen.get("context"))
        # A session that was not shut down records only the completion tokens, reply by reply.
        spent = self._summed_up or self._spoken
        return Run(
            self.format,
            as_str(self._seen.get("version")),
            id=as_str(self._seen.get("sessionId")),
            task=headline(as_text(self._seen.get("asked"))),
            model=as_str(self._seen.get("model")),
            agent="Copilot CLI",
            exit_status=self._end,
            tokens=spent,
            started=self._tally.started,
            duration_s=self._tally.duration_s,
            extra=context.kept("cwd", "repository", "branch"),
            derived=frozenset({"duration_s"} if self._summed_up else {"duration_s", "tokens"}),
        )

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        events = records_of(raws)
        if of_type(events, *_OF_REPLY):
            return _reply(index, raws, events)
        return _other(index, raws, events[0])


def _usage(data: Record) -> Tokens:
    """Return the total tokens recorded at the end of a session."""
    whole = Tokens()
    for metrics in data.inner("modelMetrics").members.values():
        usage = Record(metrics).inner("usage")
        whole += counted_within(
            usage.whole("inputTokens"),
            usage.whole("outputTokens"),
            read=usage.whole("cacheReadTokens"),
            written=usage.whole("cacheWriteTokens"),
            reasoning=usage.whole("reasoningTokens"),
        )
    if whole:
        return whole
    # The details count each charged token once.
    details = data.inner("tokenDetails")
    names = ("input", "output", "cache_read", "cache_write")
    fresh, written_reply, read, written = (details.whole(name, "tokenCount") for name in names)
    return counted_apart(fresh, written_reply, read=read, written=written)


def _data(events: list[Record], *names: str) -> list[Record]:
    return [event.inner("data") for event in of_type(events, *names)]


def _reply(index: int, raws: Sequence[Raw], events: list[Record]) -> Step:
    replies = _data(events, "assistant.message")
    calls = [_call(request) for reply in replies for request in reply.objects("toolRequests")]
    known = {call.id for call in calls}
    for started in _data(events, "tool.execution_start"):
        # The reply that asks for a call contains it too, unless a side agent made the call.
        if started.word("toolCallId") not in known:
            calls.append(_call(started))
    results = list(map(_result, _data(events, "tool.execution_complete")))
    made = tuple(calls)
    reply = replies[0] if replies else Record()
    builder = StepBuilder(index, raws, Actor.AGENT, kind_of(made), "assistant.message" if replies else "tool")
    if results and not (made or replies):
        builder = StepBuilder(index, raws, Actor.ENVIRONMENT, StepKind.TOOL, "tool").flag("unpaired")
    thought = [
        *texts_of(_data(events, "assistant.reasoning"), "content"),
        *texts_of(replies, "reasoningText"),
    ]
    return (
        # The reply repeats the reasoning of an earlier event.
        builder.thought(*dict.fromkeys(thought))
        .text(*texts_of(replies, "content"))
        .calls(made)
        .results(results)
        .edits(edits_of(made))
        .over(times_of(events, "timestamp"))
        .replied(times_of(of_type(events, "assistant.message"), "timestamp"))
        .naive(events[0].get("timestamp"))
        .spent(Tokens(None, reply.whole("outputTokens")))
        .model(reply.word("model"))
        .flag_if(any_error(results), "error")
        .flag_if(any(event.get("data", "parentToolCallId") for event in events), "side")
        .derived("kind", "ended")
        .id(reply.word("messageId"))
        .build()
    )


def _call(data: Record) -> RunCall:
    named = data.first("name", "toolName")
    return call_of_function({"id": data.get("toolCallId"), "name": named, "arguments": data.get("arguments")})


def _result(data: Record) -> Result:
    found, error = data.get("result"), data.get("error")
    if isinstance(found, dict):
        found = first(found, "content", "detailedContent")
    if isinstance(error, dict):
        error = error.get("message", error)
    success = data.truth("success")
    return Result(
        data.word("toolCallId"),
        joined([as_text(found), as_text(error)]),
        None if success is None else not success,
        duration_s=data.seconds_of_ms("toolTelemetry", "metrics", "durationMs"),
    )


def _other(index: int, raws: Sequence[Raw], event: Record) -> Step:
    name, data = event.word("type"), event.inner("data")
    if name not in _KINDS and not name.startswith(_QUIET):
        return unknown_step(index, raws, name or "event", dumped(raws[0].value))
    kind = _KINDS.get(name, StepKind.STATE)
    actor = Actor.ENVIRONMENT if kind in (StepKind.ERROR, StepKind.END) else Actor.SYSTEM
    if name == "user.message":
        actor = Actor.USER
        # A side agent is prompted with such a message too, but its prompt is not the task.
        kind = kind if event.get("parentToolCallId") else asking_kind(index, 8)
    text = data.first_text("content", "message", "errorReason", "reason", "summary", "summaryContent")
    files = [item.first_word("path", "filePath", "displayName") for item in data.objects("attachments")]
    return (
        StepBuilder(index, raws, actor, kind, name)
        .text(text or compact(data.members), *attached(files))
        .at(event.get("timestamp"))
        .flag_if(kind is StepKind.ERROR or data.get("shutdownType") == "error", "error")
        .derived("kind")
        .id(event.word("id"))
        .build()
    )


class CopilotCli(SingleRun):
    """Recognised by lines with a dotted `type`, `data` and a `parentId`."""

    name = "copilot-cli"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("data.toolTelemetry", "data.shellToolInfo", "data.model", "data.phase", "data.contextTier"),
            "counts and settings of the program; models and tokens are shown",
        ),
        NotShown(
            ("data.toolRequests.intentionSummary", "data.toolRequests.toolTitle"),
            "how the window named a call",
        ),
        NotShown(
            ("data.reasoningOpaque", "data.encryptedContent"), "encrypted: the provider alone can read it"
        ),
        NotShown(
            ("data.supportedNativeDocumentMimeTypes", "data.delivery"),
            "what the model could be sent, and how",
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        return 0.95 if any(map(_is_event, probe.first_lines())) else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the session."""
        return _Reader(probe)


def _is_event(event: Record) -> bool:
    name = event.word("type")
    named = "." in name or name == "abort"
    return named and event.has("parentId") and isinstance(event.get("data"), dict)


FORMAT = CopilotCli()
