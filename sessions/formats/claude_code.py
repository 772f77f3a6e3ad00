"""Claude Code sessions: one record per line, replies split over several lines, side agents in files beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gistpoint.sessions.formats.claude_replies import reply_step, tokens_of
from gistpoint.sessions.formats.messages import parts_of_message
from gistpoint.sessions.records.building import StepBuilder, Tally, asking_kind
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun
from gistpoint.sessions.records.model import Actor, Json, NotShown, Run, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.values import (
    as_dict,
    as_str,
    as_text,
    dumped,
    first,
    joined,
    objects,
    when,
)

_PLACE = ("cwd", "version", "gitBranch", "slug", "userType", "entrypoint")
_CHAIN = ("parentUuid", "uuid", "sessionId", "timestamp", "isSidechain", "isMeta")
_COMMAND = re.compile(r"<command-name>([^<]+)</command-name>")
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle"}
"""The records that name the session and their names' key; what a person wrote is before what the model wrote."""
_TYPES = frozenset(
    (
        "user",
        "assistant",
        "system",
        "summary",
        "queue-operation",
        "file-history-snapshot",
        "attachment",
        "progress",
        "permission-mode",
        "mode",
        "last-prompt",
        "agent-name",
        "agent-color",
        "tag",
        "pr-link",
        "frame-link",
        "worktree-state",
        "relocated",
        "bridge-session",
        "atis-latch",
        *_TITLES,
    )
)


class _Reader(RunReader):
    format = "claude-code"
    arrays = ("loglines",)

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self.in_lines = "loglines" not in probe.object
        self._replies: dict[str, int] = {}
        self._calls: dict[str, int] = {}
        self._steps: dict[str, int] = {}
        """The steps of all calls; `_calls` has those that are not answered."""
        self._usage: dict[str, dict[str, Json]] = {}
        self._agents: set[str] = set()
        self._seen: dict[str, Json] = {}
        self._tally = Tally()

    def place(self, fields: Json, step_count: int) -> int:
        record = as_dict(fields)
        message = as_dict(record.get("message"))
        self._learn(record, message)
        blocks = objects(message.get("content"))
        if record.get("type") == "assistant":
            name = as_str(message.get("id"))
            step = self._replies.get(name, step_count) if name else step_count
            if name:
                self._replies[name] = step
            for block in blocks:
                if block.get("type") == "tool_use":
                    self._calls[as_str(block.get("id"))] = self._steps[as_str(block.get("id"))] = step
            return step
        if record.get("type") == "progress":
            return self._steps.get(as_str(record.get("parentToolUseID")), step_count)
        owners = [self._calls.pop(as_str(block.get("tool_use_id")), None) for block in blocks]
        return next((owner for owner in owners if owner is not None), step_count)

    def had_a_step(self, fields: Json) -> bool:
        return as_dict(fields).get("type") == "progress"

    def _learn(self, record: dict[str, Json], message: dict[str, Json]) -> None:
        self._learn_names(record)
        if record.get("cwd"):
            self._seen.setdefault("cwd", record["cwd"])
        if message.get("model"):
            self._seen.setdefault("model", message["model"])
        agent = as_str(as_dict(record.get("toolUseResult")).get("agentId"))
        if agent:
            self._agents.add(agent)
        usage = as_dict(message.get("usage"))
        if usage:
            self._usage[as_str(message.get("id")) or as_str(record.get("uuid"))] = {
                key: value for key, value in usage.items() if key.endswith("tokens")
            }
        self._tally.see(when(record.get("timestamp")))

    def header(self) -> Run:
        for record in () if self._seen else self.probe.lines:
            self._learn_head(record)
        counts = [tokens_of(usage) for usage in self._usage.values()]
        return Run(
            self.format,
            as_str(self._seen.get("version")),
            id=self._agent or as_str(self._seen.get("sessionId")),
            task=self.request or self._title or self._command(),
            model=as_str(self._seen.get("model")),
            agent="claude-code" + (" side agent" if self._agent else ""),
            tokens=sum(counts, start=Tokens()),
            started=self._tally.started,
            duration_s=self._tally.duration_s,
            links=tuple(f"agent-{agent}.jsonl" for agent in sorted(self._agents)),
            extra={key: value for key, value in (("title", self._title), ("cwd", self._seen.get("cwd"))) if value},
            derived=frozenset({"task", "tokens", "duration_s"}),
        )

    def said_by_user(self, record: dict[str, Json]) -> str:
        if record.get("type") != "user" or record.get("isMeta") or record.get("isCompactSummary"):
            return ""
        beside = record.get("isSidechain") and not self._agent
        return "" if beside else joined(parts_of_message(as_dict(record.get("message")).get("content")).texts)

    @property
    def _agent(self) -> str:
        """The side agent that this file is for; empty if its records are among those of the main session."""
        return as_str(self._seen.get("agentId"))

    @property
    def _title(self) -> str:
        return next((as_str(self._seen[name]) for name in _TITLES if name in self._seen), "")

    def _command(self) -> str:
        """Return the first command of the program that a user gave, for a session in which nothing else was asked."""
        said = (as_dict(record.get("message")).get("content") for record in self.probe.lines)
        return next((found[1] for text in said if isinstance(text, str) and (found := _COMMAND.search(text))), "")

    def _learn_names(self, record: dict[str, Json]) -> None:
        kind = as_str(record.get("type"))
        if kind in _TITLES:
            self._seen[kind] = as_str(record.get(_TITLES[kind]))
        if "sessionId" not in self._seen and record.get("sessionId") and record.get("agentId"):
            self._seen["agentId"] = record["agentId"]
        for key in ("sessionId", "version"):
            if record.get(key):
                self._seen.setdefault(key, record[key])

    def _learn_head(self, record: dict[str, Json]) -> None:
        self._learn_names(record)
        model = as_dict(record.get("message")).get("model")
        if model:
            self._seen.setdefault("model", model)

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        records = [as_dict(raw.value) for raw in raws]
        replies = [record for record in records if record.get("type") == "assistant"]
        return reply_step(index, raws, records, replies) if replies else _other(index, raws, records[0])


def _other(index: int, raws: Sequence[Raw], record: dict[str, Json]) -> Step:
    kind_name = as_str(record.get("type"))
    parts = parts_of_message(as_dict(record.get("message")).get("content"))
    actor, kind, flags = Actor.SYSTEM, StepKind.STATE, set[str]()
    text = as_text(first(record, "content", "summary"))
    if kind_name == "user":
        actor = Actor.USER
        kind = StepKind.CONTEXT if record.get("isCompactSummary") else asking_kind(index, 4)
        text = joined([*parts.texts, *parts.thought])
        if parts.results:
            kind, flags = StepKind.TOOL, {"unpaired"}
    elif kind_name == "system":
        kind = StepKind.CONTEXT if record.get("subtype") == "compact_boundary" else StepKind.SYSTEM
        if as_str(record.get("level")) == "error" or record.get("error"):
            kind, flags = StepKind.ERROR, {"error"}
    elif kind_name == "attachment":
        beside = as_dict(record.get("attachment"))
        if beside.get("type") == "queued_command":
            said = parts_of_message(beside.get("prompt"))
            actor, kind, text = Actor.USER, StepKind.MESSAGE, joined(said.texts)
        elif as_str(beside.get("type")).endswith("_error"):
            kind, flags = StepKind.ERROR, {"error"}
    elif kind_name not in _TYPES:
        kind, flags = StepKind.UNKNOWN, {"unknown"}
    if record.get("isSidechain"):
        flags.add("side")
    return (
        StepBuilder(index, raws, actor, kind, kind_name or "record")
        .text(text or ("" if parts.results else dumped(_without_place(record))))
        .calls(parts.calls)
        .results(parts.results)
        .at(record.get("timestamp"))
        .flag(*flags)
        .derived("kind")
        .id(as_str(record.get("uuid")))
        .build()
    )


def _without_place(record: dict[str, Json]) -> dict[str, Json]:
    """Return a record of the program's without what stands in every one of them."""
    return {key: value for key, value in record.items() if key not in _PLACE and key not in _CHAIN}


class ClaudeCode(SingleRun):
    """Recognised by lines with a known type that name their session or their parent."""

    name = "claude-code"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown((*_PLACE, "permissionMode"), "where and how the program ran, the same in every record"),
        NotShown(
            ("message.usage", "message.stop_reason", "message.content.cache_control", "message.context_management"),
            "counts and settings of the provider; the tokens are shown",
        ),
        NotShown(
            ("toolUseResult.originalFile", "toolUseResult.file", "toolUseResult.oldTodos"),
            "files and lists as they were before, and as a result has them with line numbers",
        ),
        NotShown(
            ("data.message", "data.normalizedMessages", "data.prompt"),
            "what a side agent did while its call ran: its own session has it",
        ),
        NotShown(
            ("data.output", "data.fullOutput"),
            "what a command had printed so far: its result has it, or the file that the result names",
        ),
        NotShown(("subtype", "operation", "level"), "what kind of a record of the program's it is"),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        if objects(probe.object.get("loglines")):
            return 0.9
        sure = 0.0
        for record in probe.lines[:20]:
            known = as_str(record.get("type")) in _TYPES
            if known and ({"sessionId", "parentUuid", "leafUuid"} & record.keys()):
                return 0.95
            if known and "uuid" in record and isinstance(record.get("message"), dict):
                sure = 0.85
        return sure

    def reader(self, probe: FileProbe) -> _Reader:
        """Open the session."""
        return _Reader(probe)


FORMAT = ClaudeCode()
