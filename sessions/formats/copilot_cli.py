"""Sessions of Copilot CLI, `session-state/ID/events.jsonl`: events in lines, each with its data and its parent.

After `session-events.ts` of copilot-sdk. A call stands in the reply that asks for it and in the event of its start.
"""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.sessions.formats.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun, unknown_step
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, RunCall, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.requests import headline
from gistpoint.sessions.records.values import (
    as_bool,
    as_dict,
    as_float,
    as_int,
    as_str,
    as_text,
    compact,
    dumped,
    first,
    is_naive,
    joined,
    objects,
    recoded,
    when,
)

_OPENING = frozenset({"assistant.turn_start", "assistant.reasoning", "assistant.intent"})
"""Events that come before the reply they belong to."""
_KINDS = {
    "user.message": StepKind.MESSAGE, "system.message": StepKind.SYSTEM, "system.notification": StepKind.NOTE,
    "session.error": StepKind.ERROR, "session.shutdown": StepKind.END, "session.task_complete": StepKind.END,
    "abort": StepKind.END, "session.truncation": StepKind.CONTEXT, "session.compaction_start": StepKind.CONTEXT,
    "session.compaction_complete": StepKind.CONTEXT, "skill.invoked": StepKind.NOTE,
}  # fmt: skip
_QUIET = ("session.", "hook.", "assistant.", "subagent.", "tool.", "permission.", "user.", "external_tool.", "mcp.")


def _goes_along(event: dict[str, Json]) -> bool:
    """Whether an event tells of a hook that ran beside a call; one that failed is a step of its own."""
    return as_str(event.get("type")).startswith("hook.") and as_dict(event.get("data")).get("success") is not False


class _Reader(RunReader):
    format = "copilot-cli"
    in_lines = True

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._calls: dict[str, int] = {}
        self._open: int | None = None
        self._reply: int | None = None
        self._spoken = Tokens()
        self._totals = Tokens()
        self._seen: dict[str, Json] = {}
        self._times: list[float] = []
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
        if name == "assistant.turn_end" and self._reply is not None:
            self._open, at = None, self._reply
            return at
        if name.startswith(("tool.", "subagent.")):
            known = self._calls.get(as_str(data.get("toolCallId")))
            if known is None and name == "tool.execution_start":
                self._calls[as_str(data.get("toolCallId"))] = step_count
            return step_count if known is None else known
        if _goes_along(event) and self._reply is not None:
            return self._reply
        if name in ("user.message", "session.resume", "abort"):
            self._open = self._reply = None
        return step_count

    def had_a_step(self, fields: Json) -> bool:
        return _goes_along(as_dict(fields))

    def _learn(self, name: str, event: dict[str, Json], data: dict[str, Json]) -> None:
        at = when(event.get("timestamp"))
        if at is not None:
            self._times = [min(at, *self._times), max(at, *self._times)] if self._times else [at, at]
        self._start(name, data)
        if data.get("model") and not data.get("parentToolCallId"):
            self._seen.setdefault("model", data["model"])
        if name == "session.model_change":
            self._seen.setdefault("model", data.get("newModel"))
        if name == "assistant.message":
            self._spoken += Tokens(None, as_int(data.get("outputTokens")))
        if name == "session.shutdown":
            self._end = as_str(data.get("shutdownType")) or "shutdown"
            self._totals = _usage(data)
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
        context = as_dict(self._seen.get("context"))
        spent = self._totals or self._spoken
        return Run(
            self.format,
            as_str(self._seen.get("version")),
            id=as_str(self._seen.get("sessionId")),
            task=headline(as_text(self._seen.get("asked"))),
            model=as_str(self._seen.get("model")),
            agent="Copilot CLI",
            exit_status=self._end,
            tokens=spent,
            started=self._times[0] if self._times else None,
            duration_s=self._times[1] - self._times[0] if self._times else None,
            extra={key: context[key] for key in ("cwd", "repository", "branch") if context.get(key)},
            derived=frozenset({"duration_s"} if self._totals else {"duration_s", "tokens"}),
        )

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        events = [as_dict(raw.value) for raw in raws]
        names = {as_str(event.get("type")) for event in events}
        if names & {"assistant.message", "assistant.reasoning", "tool.execution_start", "tool.execution_complete"}:
            return _reply(index, raws, events)
        return _other(index, raws, events[0])


def _usage(data: dict[str, Json]) -> Tokens:
    """Return the tokens that the end of a session adds up."""
    whole = Tokens()
    for metrics in as_dict(data.get("modelMetrics")).values():
        usage = as_dict(as_dict(metrics).get("usage"))
        whole += Tokens(*(as_int(usage.get(key)) for key in ("inputTokens", "outputTokens", "cacheReadTokens")))
    details = {key: as_dict(value).get("tokenCount") for key, value in as_dict(data.get("tokenDetails")).items()}
    return whole or Tokens(*(as_int(details.get(key)) for key in ("input", "output", "cache_read")))


def _data(events: list[dict[str, Json]], *names: str) -> list[dict[str, Json]]:
    return [as_dict(event.get("data")) for event in events if event.get("type") in names]


def _reply(index: int, raws: Sequence[Raw], events: list[dict[str, Json]]) -> Step:
    replies = _data(events, "assistant.message")
    calls = [_call(item) for data in replies for item in objects(data.get("toolRequests"))]
    known = {call.id for call in calls}
    calls += [_call(data) for data in _data(events, "tool.execution_start")
              if as_str(data.get("toolCallId")) not in known]  # fmt: skip
    results = tuple(_result(data) for data in _data(events, "tool.execution_complete"))
    times = [at for at in (when(event.get("timestamp")) for event in events) if at is not None]
    thought = [as_text(data.get("content")) for data in _data(events, "assistant.reasoning")]
    thought += [as_text(data.get("reasoningText")) for data in replies]
    said = replies[0] if replies else {}
    failed = any(result.is_error for result in results)
    side = any(as_dict(event.get("data")).get("parentToolCallId") for event in events)
    orphan = results and not calls and not replies
    flags = {name for name, is_so in (("error", failed), ("side", side), ("unpaired", orphan)) if is_so}
    return Step(
        index, Actor.ENVIRONMENT if orphan else Actor.AGENT, StepKind.TOOL if orphan else kind_of(tuple(calls)),
        raws[0].range, tuple(raw.range for raw in raws), label="assistant.message" if replies else "tool",
        thought=joined(dict.fromkeys(thought)), text=joined(as_text(data.get("content")) for data in replies),
        calls=tuple(calls), results=results, started=min(times, default=None), ended=max(times, default=None),
        naive=is_naive(events[0].get("timestamp")), tokens=Tokens(None, as_int(said.get("outputTokens"))),
        model=as_str(said.get("model")), edits=edits_of(tuple(calls)), flags=frozenset(flags),
        derived=frozenset({"kind", "ended"}), id=as_str(said.get("messageId")),
    )  # fmt: skip


def _call(data: dict[str, Json]) -> RunCall:
    return call_of_function({"id": data.get("toolCallId"), "name": first(data, "name", "toolName"),
                             "arguments": data.get("arguments")})  # fmt: skip


def _result(data: dict[str, Json]) -> Result:
    found, error = data.get("result"), data.get("error")
    text = as_text(first(found, "content", "detailedContent")) if isinstance(found, dict) else as_text(found)
    success = as_bool(data.get("success"))
    spent = as_float(as_dict(as_dict(data.get("toolTelemetry")).get("metrics")).get("durationMs"))
    told = as_text(error.get("message", error)) if isinstance(error, dict) else as_text(error)
    return Result(as_str(data.get("toolCallId")), joined([text, told]), None if success is None else not success,
                  duration_s=None if spent is None else spent / 1000)  # fmt: skip


def _other(index: int, raws: Sequence[Raw], event: dict[str, Json]) -> Step:
    name, data = as_str(event.get("type")), as_dict(event.get("data"))
    if name not in _KINDS and not name.startswith(_QUIET):
        return unknown_step(index, raws, name or "event", dumped(raws[0].value))
    kind = _KINDS.get(name, StepKind.STATE)
    actor = Actor.ENVIRONMENT if kind in (StepKind.ERROR, StepKind.END) else Actor.SYSTEM
    if name == "user.message":
        actor, kind = Actor.USER, StepKind.TASK if index < 8 and not event.get("parentToolCallId") else kind
    failed = kind is StepKind.ERROR or data.get("shutdownType") == "error"
    text = as_text(first(data, "content", "message", "errorReason", "reason", "summary", "summaryContent"))
    files = [as_str(first(item, "path", "filePath", "displayName")) for item in objects(data.get("attachments"))]
    return Step(
        index, actor, kind, raws[0].range, tuple(raw.range for raw in raws), label=name,
        text=joined([text or compact(data), *(f"[attached: {file}]" for file in files if file)]),
        started=when(event.get("timestamp")), naive=is_naive(event.get("timestamp")), id=as_str(event.get("id")),
        flags=frozenset({"error"} if failed else ()), derived=frozenset({"kind"}),
    )  # fmt: skip


class CopilotCli(SingleRun):
    """Recognised by lines with a dotted `type`, `data` and a `parentId`."""

    name = "copilot-cli"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("data.toolTelemetry", "data.shellToolInfo", "data.model", "data.phase", "data.contextTier"),
                 "counts and settings of the program; models and tokens are shown"),
        NotShown(("data.toolRequests.intentionSummary", "data.toolRequests.toolTitle"), "how the window named a call"),
        NotShown(("data.reasoningOpaque", "data.encryptedContent"), "encrypted: the provider alone can read it"),
        NotShown(("data.supportedNativeDocumentMimeTypes", "data.delivery"), "what the model could be sent, and how"),
    )  # fmt: skip

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        sure = 0.0
        for event in probe.lines[:20]:
            named = "." in as_str(event.get("type")) or event.get("type") == "abort"
            if named and isinstance(event.get("data"), dict) and "parentId" in event:
                sure = 0.95
        return sure

    def reader(self, probe: FileProbe) -> _Reader:
        """Open the session."""
        return _Reader(probe)


FORMAT = CopilotCli()
