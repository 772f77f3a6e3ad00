"""Reads Claude Code sessions.

Each line is a record. A reply consists of several records, and each side agent has a separate file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from gistpoint.sessions.formats.claude._replies import Copies, reply_step, tokens_of, without_copies
from gistpoint.sessions.formats.shared.message_parts import Parts, parts_of_message
from gistpoint.sessions.records.building import StepBuilder, Tally, asking_kind
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun
from gistpoint.sessions.records.model import Actor, Json, NotShown, Run, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record, of_type, records_of
from gistpoint.sessions.records.values import (
    as_dict,
    as_str,
    dumped,
    objects,
    when,
)

_PLACE = ("cwd", "version", "gitBranch", "slug", "userType", "entrypoint")
_CHAIN = ("parentUuid", "uuid", "sessionId", "timestamp", "isSidechain", "isMeta")
_COMMAND = re.compile(r"<command-name>([^<]+)</command-name>")
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle"}
"""The types of records that name the session, with the key of the name; the user's title comes first."""
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
        """The step of each reply, by the id of its message."""
        self._steps: dict[str, int] = {}
        """The step of each call, by its id."""
        self._open_calls: dict[str, int] = {}
        """The step of each call that is not answered yet, by the call's id."""
        self._early: dict[str, int] = {}
        """The step of each result whose call was not recorded before it, by the call's id."""
        self._usage: dict[str, dict[str, Json]] = {}
        self._agents: set[str] = set()
        self._copies = Copies()
        self._seen: dict[str, Json] = {}
        self._tally = Tally()

    def place(self, fields: Json, step_count: int) -> int:
        record = as_dict(fields)
        message = as_dict(record.get("message"))
        self._learn(record, message)
        step = self._copies.step_of(record)
        if step is None:
            step = self._place(record, message, step_count)
            self._copies.add(record, step)
        return step

    def _place(self, record: dict[str, Json], message: dict[str, Json], step_count: int) -> int:
        blocks = objects(message.get("content"))
        if record.get("type") == "assistant":
            name = as_str(message.get("id"))
            # A reply joins a result that was written before its call.
            early = [step for id in _calls_in(blocks) if (step := self._early.pop(id, None)) is not None]
            new = min(early, default=step_count)
            # A reply is split over several records, with records of other replies and answers between them.
            step = self._replies.setdefault(name, new) if name else new
            self._note_calls(blocks, step)
            return step
        # Progress of a call joins its step, even after its result was recorded.
        if record.get("type") == "progress":
            return self._steps.get(as_str(record.get("parentToolUseID")), step_count)
        # The record answers all these calls; it joins the step of the first.
        answered = [id for block in blocks if (id := as_str(block.get("tool_use_id")))]
        owners = [self._open_calls.pop(id, None) for id in answered]
        step = next((owner for owner in owners if owner is not None), step_count)
        self._early.update((id, step) for id in answered if id not in self._steps)
        return step

    def _note_calls(self, blocks: list[dict[str, Json]], step: int) -> None:
        for call in _calls_in(blocks):
            self._steps[call] = self._open_calls[call] = step

    def had_a_step(self, fields: Json) -> bool:
        record = as_dict(fields)
        return record.get("type") == "progress" or self._copies.had_a_step(record)

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
        self._tally.add_time(when(record.get("timestamp")))

    def header(self) -> Run:
        for record in () if self._seen else self.probe.lines:
            self._learn_head(record)
        counts = [tokens_of(Record(usage)) for usage in self._usage.values()]
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
            extra=Record({"title": self._title, "cwd": self._seen.get("cwd")}).kept("title", "cwd"),
            derived=frozenset({"task", "tokens", "duration_s"}),
        )

    def user_text(self, record: dict[str, Json]) -> str:
        of_program = record.get("isMeta") or record.get("isCompactSummary")
        if of_program or record.get("type") != "user":
            return ""
        # The prompt of a side agent within the main session is not the user's.
        of_agent = record.get("isSidechain") and not self._agent
        return "" if of_agent else parts_of_message(as_dict(record.get("message")).get("content")).text

    @property
    def _agent(self) -> str:
        """The side agent whose session this file contains; empty for the main session."""
        return as_str(self._seen.get("agentId"))

    @property
    def _title(self) -> str:
        return next((as_str(self._seen[name]) for name in _TITLES if name in self._seen), "")

    def _command(self) -> str:
        """Return the user's first command to the program, for a session without requests; may be empty."""
        for record in self.probe.lines:
            text = as_dict(record.get("message")).get("content")
            found = _COMMAND.search(text) if isinstance(text, str) else None
            if found is not None:
                return found[1]
        return ""

    def _learn_names(self, record: dict[str, Json]) -> None:
        kind = as_str(record.get("type"))
        if kind in _TITLES:
            self._seen[kind] = as_str(record.get(_TITLES[kind]))
        opens = "sessionId" not in self._seen and record.get("sessionId")
        if opens and record.get("agentId"):
            # The first record names a side agent only in that agent's own file.
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
        records = without_copies(records_of(raws))
        if of_type(records, "assistant"):
            return reply_step(index, raws, records)
        return _other(index, raws, records[0])


def _calls_in(blocks: list[dict[str, Json]]) -> list[str]:
    """Return the ids of the calls in a reply; a call without an id can't be answered."""
    return [id for block in blocks if block.get("type") == "tool_use" and (id := as_str(block.get("id")))]


_Shown: TypeAlias = tuple[Actor, StepKind, str]
"""The actor of a record that is not a reply, its purpose, and text to show in place of the record."""


def _other(index: int, raws: Sequence[Raw], record: Record) -> Step:
    name = record.word("type")
    parts = parts_of_message(record.get("message", "content"))
    actor, kind, text = _purpose(index, record, parts)
    if not text and not parts.results:
        text = dumped(record.without(*_PLACE, *_CHAIN))
    return (
        StepBuilder(index, raws, actor, kind, name or "record")
        .text(text)
        .calls(parts.calls)
        .results(parts.results)
        .at(record.get("timestamp"))
        .flag_if(name == "user" and parts.results, "unpaired")
        .flag_if(kind is StepKind.ERROR, "error")
        .flag_if(kind is StepKind.UNKNOWN, "unknown")
        .flag_if(record.get("isSidechain"), "side")
        .derived("kind")
        .id(record.word("uuid"))
        .build()
    )


def _purpose(index: int, record: Record, parts: Parts) -> _Shown:
    text = record.first_text("content", "summary")
    match record.word("type"):
        case "user":
            return _of_user(index, record, parts)
        case "system":
            kind = StepKind.CONTEXT if record.get("subtype") == "compact_boundary" else StepKind.SYSTEM
            failed = record.word("level") == "error" or record.get("error")
            return Actor.SYSTEM, StepKind.ERROR if failed else kind, text
        case "attachment":
            return _attached(record.inner("attachment"), text)
        case name:
            return Actor.SYSTEM, StepKind.STATE if name in _TYPES else StepKind.UNKNOWN, text


def _of_user(index: int, record: Record, parts: Parts) -> _Shown:
    if parts.results:
        return Actor.USER, StepKind.TOOL, parts.combined_text
    # The summary of a condensed conversation is recorded as if the user had written it.
    condensed = record.get("isCompactSummary")
    return Actor.USER, StepKind.CONTEXT if condensed else asking_kind(index, 4), parts.combined_text


def _attached(attachment: Record, text: str) -> _Shown:
    if attachment.get("type") == "queued_command":
        # Input while the model works is recorded as an attachment to the model's next request.
        return Actor.USER, StepKind.MESSAGE, parts_of_message(attachment.get("prompt")).text
    failed = attachment.word("type").endswith("_error")
    return Actor.SYSTEM, StepKind.ERROR if failed else StepKind.STATE, text


class ClaudeCode(SingleRun):
    """Recognised by `loglines`, or by lines of a known type with their own id, a parent's or a session's."""

    name = "claude-code"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown((*_PLACE, "permissionMode"), "where and how the program ran, the same in every record"),
        NotShown(
            (
                "message.usage",
                "message.stop_reason",
                "message.content.cache_control",
                "message.context_management",
            ),
            "counts and settings of the provider; the tokens are shown",
        ),
        NotShown(
            ("toolUseResult.originalFile", "toolUseResult.file", "toolUseResult.oldTodos"),
            "files and lists before a change, and a file that the result shows with line numbers",
        ),
        NotShown(
            ("data.message", "data.normalizedMessages", "data.prompt"),
            "the work of a side agent while its call ran, which its own session contains",
        ),
        NotShown(
            ("data.output", "data.fullOutput"),
            "what a command had printed so far: its result has it, or the file that the result names",
        ),
        NotShown(("subtype", "operation", "level"), "the kind of the program's record"),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        if objects(probe.object.get("loglines")):
            return 0.9
        return max(map(_likeness, probe.first_lines(20)), default=0.0)

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the session."""
        return _Reader(probe)


def _likeness(record: Record) -> float:
    if record.word("type") not in _TYPES:
        return 0.0
    if record.has("sessionId", "parentUuid", "leafUuid"):
        return 0.95
    return 0.85 if record.has("uuid") and isinstance(record.get("message"), dict) else 0.0


FORMAT = ClaudeCode()
