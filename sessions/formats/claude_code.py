"""Claude Code sessions: one record per line, replies split over several lines, side agents in files beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gistpoint.sessions.formats.calls import edits_of, kind_of
from gistpoint.sessions.formats.messages import parts_of_message
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun
from gistpoint.sessions.records.model import Actor, FileEdit, Json, NotShown, Result, Run, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_int,
    as_str,
    as_text,
    dumped,
    first,
    is_naive,
    joined,
    objects,
    total,
    when,
)

_TYPES = frozenset({"user", "assistant", "system", "summary", "queue-operation", "file-history-snapshot", "attachment"})


class _Reader(RunReader):
    format = "claude-code"
    arrays = ("loglines",)

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self.in_lines = "loglines" not in probe.object
        self._replies: dict[str, int] = {}
        self._calls: dict[str, int] = {}
        self._usage: dict[str, dict[str, Json]] = {}
        self._agents: set[str] = set()
        self._seen: dict[str, Json] = {}
        self._times: list[float] = []

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
                    self._calls[as_str(block.get("id"))] = step
            return step
        owners = [self._calls.pop(as_str(block.get("tool_use_id")), None) for block in blocks]
        return next((owner for owner in owners if owner is not None), step_count)

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
        at = when(record.get("timestamp"))
        if at is not None:
            self._times = [min(at, *self._times), max(at, *self._times)] if self._times else [at, at]

    def header(self) -> Run:
        for record in () if self._seen else self.probe.lines:
            self._learn_head(record)
        counts = [_tokens(usage) for usage in self._usage.values()]
        return Run(
            self.format,
            as_str(self._seen.get("version")),
            id=self._agent or as_str(self._seen.get("sessionId")),
            model=as_str(self._seen.get("model")),
            agent="claude-code" + (" side agent" if self._agent else ""),
            tokens=sum(counts, start=Tokens()),
            started=self._times[0] if self._times else None,
            duration_s=self._times[1] - self._times[0] if self._times else None,
            links=tuple(f"agent-{agent}.jsonl" for agent in sorted(self._agents)),
            extra={"cwd": self._seen.get("cwd")} if "cwd" in self._seen else {},
            derived=frozenset({"tokens", "duration_s"}),
        )

    @property
    def _agent(self) -> str:
        """The side agent that this file is for; empty if its records are among those of the main session."""
        return as_str(self._seen.get("agentId"))

    def _learn_names(self, record: dict[str, Json]) -> None:
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
        return _reply(index, raws, records, replies) if replies else _other(index, raws, records[0])


def _tokens(usage: dict[str, Json]) -> Tokens:
    cached = as_int(usage.get("cache_read_input_tokens"))
    prompt = total([as_int(usage.get("input_tokens")), cached, as_int(usage.get("cache_creation_input_tokens"))])
    return Tokens(prompt, as_int(usage.get("output_tokens")), cached)


def _reply(index: int, raws: Sequence[Raw], records: list[dict[str, Json]], replies: list[dict[str, Json]]) -> Step:
    messages = [as_dict(record.get("message")) for record in replies]
    parts = [parts_of_message(message.get("content")) for message in messages]
    calls = tuple(call for part in parts for call in part.calls)
    answers = [record for record in records if record.get("type") != "assistant"]
    results = [result for part in parts for result in part.results]
    results += [result for record in answers for result in _results(record)]
    rich = [as_dict(record.get("toolUseResult")) for record in answers]
    times = [at for at in (when(record.get("timestamp")) for record in records) if at is not None]
    broken = any(record.get("isApiErrorMessage") for record in replies)
    flags = {"error"} if broken or any(result.is_error for result in results) else set[str]()
    if replies[0].get("isSidechain"):
        flags.add("side")
    diffs = [diff for diff in (_diff(item) for item in rich) if diff]
    edits = tuple(edit for item in rich for edit in _edits(item)) or edits_of(calls)
    usage = as_dict(messages[-1].get("usage"))
    return Step(
        index, Actor.AGENT, StepKind.ERROR if broken else kind_of(calls), raws[0].range,
        tuple(raw.range for raw in raws), label="assistant",
        thought=joined(text for part in parts for text in part.thought),
        text=joined(text for part in parts for text in part.texts),
        calls=calls, results=tuple(results), started=min(times, default=None), ended=max(times, default=None),
        naive=is_naive(replies[0].get("timestamp")),
        tokens=_tokens(usage) if usage else Tokens(), model=as_str(messages[0].get("model")),
        state={"cwd": replies[0]["cwd"]} if replies[0].get("cwd") else {}, diff="\n".join(diffs) or None, edits=edits,
        flags=frozenset(flags), derived=frozenset({"kind", "ended"}),
        links=tuple(f"agent-{as_str(item['agentId'])}.jsonl" for item in rich if item.get("agentId")),
        id=as_str(first(messages[0], "id") or replies[0].get("uuid")),
    )  # fmt: skip


def _results(record: dict[str, Json]) -> list[Result]:
    """Return the results in a user's record; other text in it is a result without a call."""
    parts = parts_of_message(as_dict(record.get("message")).get("content"))
    duration = as_float(first(as_dict(record.get("toolUseResult")), "durationMs", "totalDurationMs"))
    seconds = duration / 1000 if duration is not None else None
    spoken = joined([*parts.texts, *parts.thought])
    return [
        *(replace(result, duration_s=seconds) for result in parts.results),
        *([Result("", spoken)] if spoken else []),
    ]


def _diff(rich: dict[str, Json]) -> str:
    """Return a recorded `structuredPatch` as a unified diff."""
    path = as_str(rich.get("filePath"))
    hunks = objects(rich.get("structuredPatch"))
    if not path or not hunks:
        return ""
    shown = [f"--- a/{path.lstrip('/')}", f"+++ b/{path.lstrip('/')}"]
    for hunk in hunks:
        place = [as_int(hunk.get(key)) or 0 for key in ("oldStart", "oldLines", "newStart", "newLines")]
        shown.append(f"@@ -{place[0]},{place[1]} +{place[2]},{place[3]} @@")
        lines = hunk.get("lines")
        shown += [as_text(line) for line in lines] if isinstance(lines, list) else []
    return "\n".join(shown) + "\n"


def _edits(rich: dict[str, Json]) -> list[FileEdit]:
    path = as_str(rich.get("filePath"))
    if path and isinstance(rich.get("newString"), str):
        return [FileEdit(path, as_text(rich.get("oldString")), as_text(rich["newString"]))]
    if path and rich.get("type") in ("create", "update") and isinstance(rich.get("content"), str):
        return [FileEdit(path, None, as_text(rich["content"]))]
    return []


def _other(index: int, raws: Sequence[Raw], record: dict[str, Json]) -> Step:
    kind_name = as_str(record.get("type"))
    parts = parts_of_message(as_dict(record.get("message")).get("content"))
    actor, kind, flags = Actor.SYSTEM, StepKind.STATE, set[str]()
    text = as_text(first(record, "content", "summary"))
    if kind_name == "user":
        actor = Actor.USER
        kind = StepKind.CONTEXT if record.get("isCompactSummary") else StepKind.TASK if index < 4 else StepKind.MESSAGE
        text = joined([*parts.texts, *parts.thought])
        if parts.results:
            kind, flags = StepKind.TOOL, {"unpaired"}
    elif kind_name == "system":
        kind = StepKind.CONTEXT if record.get("subtype") == "compact_boundary" else StepKind.SYSTEM
        if as_str(record.get("level")) == "error" or record.get("error"):
            kind, flags = StepKind.ERROR, {"error"}
    elif kind_name not in _TYPES:
        kind, flags = StepKind.UNKNOWN, {"unknown"}
    if record.get("isSidechain"):
        flags.add("side")
    return Step(
        index, actor, kind, raws[0].range, tuple(raw.range for raw in raws), label=kind_name or "record",
        text=text or ("" if parts.results else dumped(raws[0].value)), calls=tuple(parts.calls),
        results=tuple(parts.results), started=when(record.get("timestamp")), naive=is_naive(record.get("timestamp")),
        flags=frozenset(flags), derived=frozenset({"kind"}), id=as_str(record.get("uuid")),
    )  # fmt: skip


class ClaudeCode(SingleRun):
    """Recognised by lines with a known type that name their session or their parent."""

    name = "claude-code"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("cwd", "version", "gitBranch", "slug", "userType", "entrypoint", "permissionMode"),
                 "where and how the program ran, the same in every record"),
        NotShown(("message.usage", "message.stop_reason", "message.content.cache_control",
                  "message.context_management"),
                 "counts and settings of the provider; the tokens are shown"),
        NotShown(("toolUseResult.originalFile", "toolUseResult.file", "toolUseResult.oldTodos"),
                 "files and lists as they were before, and as a result has them with line numbers"),
        NotShown(("subtype", "operation", "level"), "what kind of a record of the program's it is"),
    )  # fmt: skip

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
