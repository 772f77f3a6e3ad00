"""The output of Claude Code's `--output-format stream-json`, in lines or in its GitHub action's array.

A reply is split over several records with one message id, and records of side agents come between those of
the main thread. The records of a side agent are a separate run, named after the id of the call that started
the agent.

A program that reads its input as a stream ends each turn with a `result`. In it, `duration_ms`, `num_turns`
and `usage` are those of the turn; `total_cost_usd` and `modelUsage` are sums since the process began
(https://github.com/anthropics/claude-code/issues/83239). If the sums fall, or grow by less than the turn's
tokens, another process has continued the session.
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
from gistpoint.sessions.records.record import Record, of_type, records_in, records_of, texts_of
from gistpoint.sessions.records.scanning import RawRecord
from gistpoint.sessions.records.usage import counted_apart
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_str,
    as_text,
    dumped,
    first_known,
    joined,
    objects,
    total,
)

_TYPES = frozenset({"system", "assistant", "user", "result", "stream_event"})
_STATE_TYPES = frozenset(
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
    )
)
"""Types of records that only report a state; a record of an unknown type is shown as it is."""
_PARENT = re.compile(rb'"parent_tool_use_id"\s*:\s*"([^"\\]{1,120})"')
_OVERLAP = 200
"""The bytes by which chunks overlap: more than any match of `_PARENT`, unless that has many blanks."""
_MOST_AGENTS = 10_000
"""The maximum number of side agents in one file."""
_FIRST_STEPS = 4
"""The number of steps among which a user's message can be the task: states may come before it."""
_LISTS = ("tools", "slash_commands", "agents", "skills", "plugins", "mcp_servers")
"""The members of the first record that list what the program and the model could use."""
_NOT_SHOWN = ("type", "subtype", "session_id", "uuid", "parent_tool_use_id", *_LISTS)
"""The members of a record that the text of its step leaves out."""


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


class _Ends:
    """What the program recorded about the whole run: its first record, and the result of each turn."""

    def __init__(self) -> None:
        self.begun = Record()
        self.last = Record()
        """The last result."""
        self.ended = False
        """Whether no turn has begun since the last result."""
        self.turns: int | None = None
        self.duration_s: float | None = None
        self._known: set[str] = set()
        self._earlier_cost: float | None = None
        """The cost of the processes before the one that wrote the last result."""
        self._cost: float | None = None
        """The cost of the process that wrote the last result."""
        self._earlier_tokens = Tokens()
        self._tokens = Tokens()

    def learn(self, record: Record) -> None:
        """Take the facts about the whole run from a record of any thread."""
        name = record.get("type")
        if name == "system" and record.get("subtype") == "init" and not self.begun:
            self.begun = record
        elif name == "result" and record.word("uuid") not in self._known:
            self._end(record)
        elif name in ("assistant", "user") and not _agent_of(record.members):
            self.ended = False

    def _end(self, result: Record) -> None:
        if result.word("uuid"):
            self._known.add(result.word("uuid"))
        self.turns = total([self.turns, result.whole("num_turns")])
        self.duration_s = _added(self.duration_s, result.seconds_of_ms("duration_ms"))
        continues = _continues(result, self.last)
        if not continues:
            self._earlier_cost, self._cost = self.cost, None
        # Without `modelUsage`, the tokens are those of the turn, so they never include the turns before.
        if not continues or not result.inner("modelUsage"):
            self._earlier_tokens = self.tokens
        self._cost = first_known([result.number("total_cost_usd"), self._cost])
        self._tokens = _spent(result)
        self.last, self.ended = result, True

    @property
    def cost(self) -> float | None:
        """The cost of all turns in dollars; None if it is not recorded."""
        return _added(self._earlier_cost, self._cost)

    @property
    def tokens(self) -> Tokens:
        """The tokens of all turns."""
        return self._earlier_tokens + self._tokens


def _added(first: float | None, second: float | None) -> float | None:
    """Return the sum of two numbers, either of which may be unknown; None if both are."""
    return second if first is None else first + (second or 0.0)


def _continues(result: Record, before: Record) -> bool:
    """Return whether one process wrote both results, so the sums of the later one include the earlier one."""
    now, then = _cumulative(result), _cumulative(before)
    # Within one process, no sum falls.
    if any(now.get(name, 0.0) < value for name, value in then.items()):
        return False
    if not result.inner("modelUsage"):
        return True
    # The sums of a new process may be higher too, if its turn was longer: they are those of the turn alone.
    growth = (_spent(result).completion or 0) - (_spent(before).completion or 0)
    return growth >= (tokens_of(result.inner("usage")).completion or 0)


def _cumulative(result: Record) -> dict[str, float]:
    """Return the numbers of a result that a process adds up over its turns, by name."""
    models = result.inner("modelUsage").members.items()
    named = {
        **{name: result.number(name) for name in ("total_cost_usd", "duration_api_ms")},
        **{
            f"{model} {name}": as_float(value)
            for model, spent in models
            for name, value in as_dict(spent).items()
        },
    }
    return {name: value for name, value in named.items() if value is not None}


class _Reader(RunReader):
    format = "claude-stream"

    def __init__(self, probe: FileProbe, agent: str = "") -> None:
        super().__init__(probe)
        self.in_lines = not probe.array
        self._agent = agent
        self._replies: dict[str, int] = {}
        """The step of each reply, by message id."""
        self._calls: dict[str, int] = {}
        """The step of each call that has no result yet, by call id."""
        self._streamed = -1
        """The step of the reply that is recorded in pieces; -1 before the first piece."""
        self._ends = _Ends()
        self._model = ""
        self._prompted = False
        """Whether a message of the user was read that is not a result."""
        self._copies = Copies()
        self._agents: frozenset[str] | None = None
        """The ids of all side agents; None until a step needs them."""

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
                # The version and the folder of the whole process are also those of a side agent's run.
                self._ends.learn(Record(as_dict(record.fields)))

    def place(self, fields: Json, step_count: int) -> int:
        record = as_dict(fields)
        # `records` leaves other threads out, but the last records of a file, read alone, may be among them.
        if _agent_of(fields) != self._agent:
            return max(step_count - 1, 0)
        # Asked for every record, because `had_a_step` refers to the last one.
        step = self._copies.step_of(record)
        if step is None:
            self._ends.learn(Record(record))
            step = self._place(record, step_count)
            self._copies.add(record, step)
        return step

    def _place(self, record: dict[str, Json], step_count: int) -> int:
        message = as_dict(record.get("message"))
        blocks = objects(message.get("content"))
        if record.get("type") == "assistant":
            self._model = self._model or as_str(message.get("model"))
            step = self._step_of_reply(as_str(message.get("id")), step_count)
            for block in blocks:
                if block.get("type") == "tool_use":
                    self._calls[as_str(block.get("id"))] = step
            return step
        if record.get("type") == "stream_event":
            return self._step_of_event(as_dict(record.get("event")), step_count)
        # A result closes its call, so that a second one with the same id is a separate step.
        steps = [self._calls.pop(as_str(block.get("tool_use_id")), None) for block in blocks]
        answered = first_known(steps)
        self._prompted = self._prompted or (answered is None and _is_by_user(record))
        return step_count if answered is None else answered

    def had_a_step(self, fields: Json) -> bool:
        return self._copies.had_a_step(as_dict(fields))

    def _step_of_reply(self, name: str, step_count: int) -> int:
        return self._replies.setdefault(name, step_count) if name else step_count

    def _step_of_event(self, event: dict[str, Json], step_count: int) -> int:
        """Return the step of a piece of a reply; only the first piece, `message_start`, names the message."""
        if event.get("type") == "message_start" or self._streamed < 0:
            self._streamed = self._step_of_reply(as_str(as_dict(event.get("message")).get("id")), step_count)
        return self._streamed

    def header(self) -> Run:
        ends = self._ends
        # Before the records are read, the beginning of the file has to do.
        if not ends.begun and not ends.last:
            ends = _Ends()
            for record in records_in(self.probe.array) or map(Record, self.probe.lines):
                ends.learn(record)
        begun = ends.begun
        settings: dict[str, Json] = {
            "cwd": begun.word("cwd"),
            "permission mode": begun.word("permissionMode"),
        }
        if self._agent:
            return self._header_of_agent(begun, settings)
        settings["turns"] = ends.turns
        # `request` is known before the records are read, but only from the beginning of the file.
        is_prompted = self._prompted or self.request
        return Run(
            self.format,
            begun.word("claude_code_version"),
            id=as_str(begun.get("session_id") or ends.last.get("session_id")),
            task=self.request,
            model=begun.word("model") or self._model,
            agent="claude-code",
            exit_status=ends.last.word("subtype") if ends.ended else "",
            tokens=ends.tokens,
            cost=ends.cost,
            duration_s=ends.duration_s,
            extra=Record(settings).kept(*settings),
            warnings=() if is_prompted else ("The prompt is not recorded.",),
            derived=frozenset({"task"}),
        )

    def _header_of_agent(self, begun: Record, settings: dict[str, Json]) -> Run:
        """Return the header of a side agent's run, for which no result is recorded."""
        return Run(
            self.format,
            begun.word("claude_code_version"),
            id=self._agent,
            task=self.request,
            model=self._model,
            agent="claude-code side agent",
            extra=Record(settings).kept(*settings),
            derived=frozenset({"task"}),
        )

    def user_text(self, record: dict[str, Json]) -> str:
        if not _is_by_user(record) or _agent_of(record) != self._agent:
            return ""
        return parts_of_message(as_dict(record.get("message")).get("content")).text

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        # As in `place`: at the end of a file, records of other threads may be among them.
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
        """Return the ids of the calls that started side agents.

        The file is searched for them when a step first has a call that may have started one.
        """
        if self._agents is None and any("subagent_type" in (call.parsed or {}) for call in step.calls):
            self._agents = frozenset(_agents_in(self.probe.blob))
        return self._agents or frozenset()


def _is_by_user(record: dict[str, Json]) -> bool:
    """Return whether a record is a message of the user, not one that the program wrote in the user's name."""
    return record.get("type") == "user" and not record.get("isSynthetic")


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
    """Return the step of a reply that is recorded only in pieces."""
    deltas = [record.inner("event", "delta") for record in records]
    pieces = {key: "".join(texts_of(deltas, key)) for key in ("thinking", "text", "partial_json")}
    failures = "".join(texts_of(records, "event", "error", "message"))
    # The arguments of a call that was cut off are not JSON, so they are shown as text.
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
    return (
        StepBuilder(
            index,
            raws,
            Actor.USER if _is_by_user(record.members) else Actor.SYSTEM,
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
        return StepKind.TOOL if parts.results else asking_kind(index, _FIRST_STEPS)
    if name == "result":
        has_failed = subtype.startswith("error") or record.get("is_error")
        return StepKind.ERROR if has_failed else StepKind.END
    if subtype == "compact_boundary":
        return StepKind.CONTEXT
    reports_error = name == "system" and record.get("level") == "error"
    if reports_error or subtype == "api_retry":
        return StepKind.ERROR
    return StepKind.STATE if name in _STATE_TYPES else StepKind.UNKNOWN


def _text(name: str, record: Record, parts: Parts) -> str:
    if name == "user":
        return parts.combined_text
    if name == "result":
        texts = [record.text("result"), *map(as_text, record.items("errors"))]
        if denied := record.get("permission_denials"):
            texts.append(f"Denied: {dumped(denied)}")
        return joined(texts) or record.word("subtype")
    other_members = record.without(*_NOT_SHOWN)
    return dumped(other_members) if other_members else ""


class ClaudeStream(Format):
    """Recognised by records of a known type that name their session with `session_id`."""

    name = "claude-stream"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            _LISTS,
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
            "files and lists before a change, and a file that the result shows with line numbers",
        ),
        NotShown(("event",), "pieces of a reply, which the reply contains whole"),
        NotShown(("subtype", "session_id"), "the kind of the program's record"),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        return 0.95 if any(map(_is_streamed, probe.records())) else 0.0

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield the run of the main thread, then the runs of its side agents."""
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


def _is_streamed(record: Record) -> bool:
    # A session's own file has the same types, but names its session with `sessionId`.
    named = record.word("type") in _TYPES and record.has("session_id")
    return named and not record.has("sessionId", "parentUuid", "leafUuid")


FORMAT = ClaudeStream()
