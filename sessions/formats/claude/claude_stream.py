"""The output of Claude Code's `--output-format stream-json`, in lines or in its GitHub action's array.

A reply is split over several records with one message id, and records of side agents come between those of
the main thread. The records of a side agent are a separate run, named after the id of the call that started
the agent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gistpoint.sessions.formats.claude._replies import Copies, reply_step, tokens_of, without_copies
from gistpoint.sessions.formats.shared.message_parts import Parts, parts_of_message
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Blob
from gistpoint.sessions.records.building import StepBuilder, asking_kind
from gistpoint.sessions.records.format import Format, Raw, RunEntry, RunReader, no_such_run, unknown_step
from gistpoint.sessions.records.model import Actor, Json, NotShown, Run, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record, of_type, records_of, texts_of
from gistpoint.sessions.records.scanning import RawRecord
from gistpoint.sessions.records.usage import counted_apart
from gistpoint.sessions.records.values import (
    as_dict,
    as_str,
    as_text,
    dumped,
    first_known,
    joined,
    objects,
)

_TYPES = frozenset({"system", "assistant", "user", "result", "stream_event"})
_STATES = frozenset(
    (
        "system",
        "rate_limit_event",
        "tool_progress",
        "tool_use_summary",
        "auth_status",
        "keep_alive",
        "control_request",
        "control_response",
        "control_cancel_request",
        "prompt_suggestion",
        "stream_event",
    )
)
_PARENT = re.compile(rb'"parent_tool_use_id"\s*:\s*"([^"\\]{1,120})"')
_OVERLAP = 200
_MOST_AGENTS = 10_000


def _agent_of(fields: Json) -> str:
    """Return the side agent that a record belongs to; empty for the main thread."""
    return as_str(as_dict(fields).get("parent_tool_use_id"))


def _agents_in(blob: Blob) -> list[str]:
    """Return the ids of the calls that started side agents, in the order of their first records."""
    found: dict[str, None] = {}
    at = 0
    while at < blob.size and len(found) < _MOST_AGENTS:
        chunk = blob.read(at, limits.CHUNK + _OVERLAP)
        for match in _PARENT.finditer(chunk):
            found[match[1].decode("utf-8", "replace")] = None
        at += limits.CHUNK
    return list(found)


class _Reader(RunReader):
    format = "claude-stream"

    def __init__(self, probe: FileProbe, agent: str = "") -> None:
        super().__init__(probe)
        self.in_lines = not probe.array
        self._agent = agent
        self._replies: dict[str, int] = {}
        self._calls: dict[str, int] = {}
        self._streamed = -1
        self._begun: dict[str, Json] = {}
        self._result: dict[str, Json] = {}
        self._model = ""
        self._prompted = False
        self._copies = Copies()
        self._agents: frozenset[str] | None = None

    def records(self) -> Iterator[RawRecord]:
        return self._own(super().records())

    def more(self, offset: int, before: int) -> Iterator[RawRecord] | None:
        found = super().more(offset, before)
        return None if found is None else self._own(found)

    def _own(self, records: Iterable[RawRecord]) -> Iterator[RawRecord]:
        for record in records:
            # A damaged record names no agent, so the main thread shows it.
            agent = "" if record.damage else _agent_of(record.fields)
            if agent == self._agent:
                yield record
            elif self._agent:
                self._learn(as_dict(record.fields))

    def place(self, fields: Json, step_count: int) -> int:
        record = as_dict(fields)
        if _agent_of(fields) != self._agent:
            return max(step_count - 1, 0)
        step = self._copies.step_of(record)
        if step is None:
            self._learn(record)
            step = self._place(record, step_count)
            self._copies.add(record, step)
        return step

    def _place(self, record: dict[str, Json], step_count: int) -> int:
        message = as_dict(record.get("message"))
        blocks = objects(message.get("content"))
        if record.get("type") == "assistant":
            self._model = self._model or as_str(message.get("model"))
            step = self._of_reply(as_str(message.get("id")), step_count)
            for block in blocks:
                if block.get("type") == "tool_use":
                    self._calls[as_str(block.get("id"))] = step
            return step
        if record.get("type") == "stream_event":
            return self._of_event(as_dict(record.get("event")), step_count)
        owners = [self._calls.pop(as_str(block.get("tool_use_id")), None) for block in blocks]
        known = first_known(owners)
        self._prompted = self._prompted or (record.get("type") == "user" and known is None)
        return step_count if known is None else known

    def had_a_step(self, fields: Json) -> bool:
        return self._copies.had_a_step(as_dict(fields))

    def _of_reply(self, name: str, step_count: int) -> int:
        return self._replies.setdefault(name, step_count) if name else step_count

    def _of_event(self, event: dict[str, Json], step_count: int) -> int:
        """Return the step of one piece of a reply: that of the message that the first piece names."""
        if event.get("type") == "message_start" or self._streamed < 0:
            self._streamed = self._of_reply(as_str(as_dict(event.get("message")).get("id")), step_count)
        return self._streamed

    def _learn(self, record: dict[str, Json]) -> None:
        opens = record.get("type") == "system" and record.get("subtype") == "init"
        if opens and not self._begun:
            self._begun = record
        elif record.get("type") == "result":
            self._result = record

    def header(self) -> Run:
        if not self._begun:
            for record in objects(self.probe.array) or self.probe.lines:
                self._learn(record)
        begun, result = Record(self._begun), Record(self._result)
        known: dict[str, Json] = {"cwd": begun.word("cwd"), "permission mode": begun.word("permissionMode")}
        if self._agent:
            return Run(
                self.format,
                begun.word("claude_code_version"),
                id=self._agent,
                task=self.request,
                model=self._model,
                agent="claude-code side agent",
                extra=Record(known).kept(*known),
                derived=frozenset({"task"}),
            )
        known["turns"] = result.whole("num_turns")
        return Run(
            self.format,
            begun.word("claude_code_version"),
            id=as_str(begun.get("session_id") or result.get("session_id")),
            task=self.request,
            model=begun.word("model") or self._model,
            agent="claude-code",
            exit_status=result.word("subtype"),
            tokens=_spent(result),
            cost=result.number("total_cost_usd"),
            duration_s=result.seconds_of_ms("duration_ms"),
            extra=Record(known).kept(*known),
            warnings=() if self._prompted else ("The prompt is not recorded.",),
            derived=frozenset({"task"}),
        )

    def user_text(self, record: dict[str, Json]) -> str:
        by_user = record.get("type") == "user" and not record.get("isSynthetic")
        if not by_user or _agent_of(record) != self._agent:
            return ""
        return parts_of_message(as_dict(record.get("message")).get("content")).text

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        own = [raw for raw in raws if _agent_of(raw.value) == self._agent] or list(raws)
        records = without_copies(map(_as_in_session, records_of(own)))
        if of_type(records, "assistant"):
            step = reply_step(index, own, records)
            links = tuple(f"#{call.id}" for call in step.calls if call.id in self._started(step))
            # The stream records a reply's usage before the reply is complete, so its completion tokens
            # are unknown.
            return replace(step, tokens=replace(step.tokens, completion=None), links=links)
        if records[0].get("type") == "stream_event":
            return _streamed_step(index, own, records)
        return _other_step(index, own, records[0])

    def _started(self, step: Step) -> frozenset[str]:
        """Return the calls that started side agents; empty until a call may have started one."""
        if self._agents is None and any("subagent_type" in (call.parsed or {}) for call in step.calls):
            self._agents = frozenset(_agents_in(self.probe.blob))
        return self._agents or frozenset()


def _as_in_session(record: Record) -> Record:
    """Return a record in which the tool's report has the key that it has in a session's file."""
    if not record.has("tool_use_result"):
        return record
    return Record({**record.members, "toolUseResult": record.get("tool_use_result")})


def _spent(result: Record) -> Tokens:
    """Return the tokens of a run, including those of side agents if tokens are counted by model."""
    models = [Record(usage) for usage in result.inner("modelUsage").members.values()]
    if not models:
        return tokens_of(result.inner("usage"))
    each = (
        counted_apart(
            usage.whole("inputTokens"),
            usage.whole("outputTokens"),
            read=usage.whole("cacheReadInputTokens"),
            written=usage.whole("cacheCreationInputTokens"),
        )
        for usage in models
    )
    return sum(each, start=Tokens())


def _streamed_step(index: int, raws: Sequence[Raw], records: list[Record]) -> Step:
    """Return the step of a reply that was cut off and recorded only in pieces."""
    deltas = [record.inner("event", "delta") for record in records]
    pieces = {key: "".join(texts_of(deltas, key)) for key in ("thinking", "text", "partial_json")}
    failures = "".join(texts_of(records, "event", "error", "message"))
    return (
        StepBuilder(index, raws, Actor.AGENT, StepKind.MESSAGE, "stream_event")
        .thought(pieces["thinking"])
        .text(pieces["text"] + failures, pieces["partial_json"])
        .derived("kind")
        .build()
    )


def _other_step(index: int, raws: Sequence[Raw], record: Record) -> Step:
    name, subtype = record.word("type"), record.word("subtype")
    parts = parts_of_message(record.get("message", "content"))
    kind = _kind(index, name, record, parts)
    if kind is StepKind.UNKNOWN:
        return unknown_step(index, raws, name or "record", dumped(raws[0].value))
    by_user = name == "user" and not record.get("isSynthetic")
    return (
        StepBuilder(
            index,
            raws,
            Actor.USER if by_user else Actor.SYSTEM,
            kind,
            f"{name} {subtype}" if subtype and name != "user" else name,
        )
        .text(_text(name, record, parts))
        .calls(parts.calls)
        .results(parts.results)
        .at(record.get("timestamp"))
        .state(record.kept("num_turns", "stop_reason") if name == "result" else {})
        .flag_if(kind is StepKind.TOOL, "unpaired")
        .flag_if(kind is StepKind.ERROR, "error")
        .derived("kind")
        .id(record.word("uuid"))
        .build()
    )


def _kind(index: int, name: str, record: Record, parts: Parts) -> StepKind:
    subtype = record.word("subtype")
    if name == "user":
        return StepKind.TOOL if parts.results else asking_kind(index, 4)
    if name == "result":
        broken = subtype.startswith("error") or record.get("is_error")
        return StepKind.ERROR if broken else StepKind.END
    if subtype == "compact_boundary":
        return StepKind.CONTEXT
    complains = name == "system" and record.get("level") == "error"
    if complains or subtype == "api_retry":
        return StepKind.ERROR
    return StepKind.STATE if name in _STATES else StepKind.UNKNOWN


def _text(name: str, record: Record, parts: Parts) -> str:
    if name == "user":
        return parts.combined_text
    if name == "result":
        denied = record.get("permission_denials")
        shown = [record.text("result"), *map(as_text, record.items("errors")), f"Denied: {dumped(denied)}"]
        return joined(shown if denied else shown[:-1]) or record.word("subtype")
    other_members = record.without(*_NAMES)
    return dumped(other_members) if other_members else ""


_NAMES = frozenset(
    (
        "type",
        "subtype",
        "session_id",
        "uuid",
        "parent_tool_use_id",
        "tools",
        "slash_commands",
        "agents",
        "skills",
        "plugins",
        "mcp_servers",
    )
)


class ClaudeStream(Format):
    """Recognised by records of a known type that name their session with `session_id`."""

    name = "claude-stream"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("tools", "slash_commands", "agents", "skills", "plugins", "mcp_servers"),
            "what the program and the model could use",
        ),
        NotShown(
            (
                "message.usage",
                "message.stop_reason",
                "message.content.cache_control",
                "message.context_management",
                "usage",
                "modelUsage",
                "tool_use_result.usage",
            ),
            "counts and settings of the provider; the tokens are shown",
        ),
        NotShown(
            ("tool_use_result.originalFile", "tool_use_result.file", "tool_use_result.oldTodos"),
            "files and lists as they were before, and as a result has them with line numbers",
        ),
        NotShown(("event",), "pieces of a reply as they came; the reply has them whole"),
        NotShown(("subtype", "session_id"), "the kind of the program's record"),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        return 0.95 if any(map(_is_one, probe.records())) else 0.0

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield the run of the main thread, then those of its side agents."""
        yield RunEntry("", _Reader(probe).header())
        for agent in _agents_in(probe.blob):
            yield RunEntry(agent, _Reader(probe, agent).header())

    def open(self, probe: FileProbe, id: str) -> _Reader:
        """Return a reader of the main run, or of the run of the side agent that call `id` started.

        Raises `RunFileError` if there is no such agent.
        """
        if id and id not in _agents_in(probe.blob):
            raise no_such_run(probe, id, hint="List it to see the ids.")
        return _Reader(probe, id)


def _is_one(record: Record) -> bool:
    # A session's own file has the same types, but names its session with `sessionId`.
    named = record.word("type") in _TYPES and record.has("session_id")
    return named and not record.has("sessionId", "parentUuid", "leafUuid")


FORMAT = ClaudeStream()
