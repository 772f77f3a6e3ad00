"""OpenClaw's telemetry: lines about the messages, tools and agents of several sessions, each a run.

The end of an agent's work repeats the conversation of its session, in pi's form; a message that an earlier
line contained is not shown again. All other lines are events, which are shown unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gistpoint.core.canonical import sha256_of_text
from gistpoint.sessions.formats.pi._entries import entry_step, spent
from gistpoint.sessions.formats.shared.divided_records import DividedReader
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Blob
from gistpoint.sessions.records.building import StepBuilder, Tally
from gistpoint.sessions.records.format import Format, Raw, RunEntry, no_such_run
from gistpoint.sessions.records.model import Actor, Json, NotShown, Run, Step, StepKind
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record, of_type
from gistpoint.sessions.records.requests import headline
from gistpoint.sessions.records.scanning import RawRecord
from gistpoint.sessions.records.values import as_dict, as_int, as_str, compact

_END = "agent.end"
_EVENT = re.compile(r"(?:message|agent|tool|llm|session)\.\w{1,20}")
_SESSION = re.compile(rb'"sessionKey"\s*:\s*"([^"\\]{1,300})"')
_OVERLAP = 400
_MOST_SESSIONS = 10_000


def _sessions_in(blob: Blob) -> list[str]:
    """Return the sessions in the order of their first lines."""
    found: dict[str, None] = {}
    at = 0
    while at < blob.size and len(found) < _MOST_SESSIONS:
        for match in _SESSION.finditer(blob.read(at, limits.CHUNK + _OVERLAP)):
            found[match[1].decode("utf-8", "replace")] = None
        at += limits.CHUNK
    return list(found)


class _Reader(DividedReader):
    format = "openclaw-telemetry"
    in_lines = True

    def __init__(self, probe: FileProbe, session: str, *, is_first: bool) -> None:
        super().__init__(probe)
        self._session, self._is_first = session, is_first
        self._tally = Tally()
        self._calls: dict[str, int] = {}
        self._seen: set[str] = set()
        self._asked = ""
        self._succeeded: bool | None = None

    def undivided_records(self) -> Iterator[RawRecord]:
        """Yield the lines of the session; those without a session belong to the first one."""
        for record in super().undivided_records():
            session = as_dict(record.fields).get("sessionKey")
            if session == self._session or (session is None and self._is_first):
                yield record

    def parts(self, fields: Json) -> Iterator[dict[str, Json]]:
        record = Record(fields)
        self._tally.add_time(record.time("ts"))
        if record.get("type") == _END:
            self._succeeded = record.truth("success")
            for number, message in enumerate(record.objects("messages")):
                identity = sha256_of_text(compact(message.members))
                if identity not in self._seen:
                    self._seen.add(identity)
                    self._learn(message)
                    yield {"part": "message", "number": number, **_links(message)}
        yield {"part": "event"}

    def _learn(self, message: Record) -> None:
        self._tally.add_time(message.time("timestamp"))
        if message.get("role") == "user":
            self._asked = self._asked or message.text("content")
        if message.get("role") == "assistant":
            self._tally.add_usage(*spent(message))
            self._tally.add_model(message.word("model"))

    def owner(self, name: dict[str, Json], step_count: int) -> int:
        answered = as_str(name.get("answers"))
        if answered:
            return self._calls.pop(answered, step_count)
        for identity in Record(name).words("calls"):
            self._calls[identity] = step_count
        return step_count

    def part_of(self, value: Json, name: dict[str, Json]) -> Json:
        record = Record(value)
        if name.get("part") != "message":
            return record.without("messages", "markdown")
        messages, number = record.objects("messages"), as_int(name.get("number")) or 0
        message = messages[number].members if number < len(messages) else {}
        return {"type": "message", "timestamp": message.get("timestamp"), "message": message}

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        if self.names(index)[0].get("part") == "message":
            return entry_step(index, raws)
        event = Record(raws[0].value)
        builder = StepBuilder(index, raws, Actor.ENVIRONMENT, StepKind.STATE, event.word("type"))
        failed = event.get("success") is False
        text = compact(event.without("type", "sessionKey", "agentId", "seq", "ts"))
        return builder.text(text).span(event.time("ts")).flag_if(failed, "error").build()

    def header(self) -> Run:
        tally = self._tally
        ended = {True: "success", False: "failure", None: ""}[self._succeeded]
        return Run(
            self.format,
            id=self._session,
            task=headline(self._asked),
            model=tally.model,
            agent="OpenClaw",
            exit_status=ended,
            tokens=tally.tokens,
            cost=tally.cost,
            started=tally.started,
            duration_s=tally.duration_s,
            derived=frozenset({"task", "tokens", "cost", "duration_s", "exit_status"}),
        )


def _links(message: Record) -> dict[str, Json]:
    """Return the ids of the calls in a message, and of the call that it answers."""
    calls = [block.word("id") for block in of_type(message.objects("content"), "toolCall")]
    return {"calls": [*calls], "answers": message.word("toolCallId")}


class OpenClawTelemetry(Format):
    """Recognised by lines with a type such as `agent.end`, a number and a time; a run for each session."""

    name = "openclaw-telemetry"
    not_shown: Sequence[NotShown] = (
        NotShown(("markdown",), "the conversation once more, as Markdown"),
        NotShown(
            (
                "messages.api",
                "messages.provider",
                "messages.usage",
                "messages.stopReason",
                "messages.details",
            ),
            "counts and settings of the provider; the model, the tokens and the cost are shown",
        ),
        NotShown(
            ("messages.content.thinkingSignature", "messages.content.textSignature"),
            "encoded: the provider alone can read it",
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        lines = probe.first_lines()
        events = [line for line in lines if _EVENT.fullmatch(line.word("type")) and line.has_all("seq", "ts")]
        known = any(line.word("type") in (_END, "agent.start", "tool.start") for line in events)
        return 1.0 if known and len(events) == len(lines) else 0.0

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield a run for each session."""
        sessions = _sessions_in(probe.blob)
        for session in sessions or [""]:
            reader = self.open(probe, session)
            yield RunEntry(session if len(sessions) > 1 else "", reader.header())

    def open(self, probe: FileProbe, id: str) -> _Reader:
        """Return a reader of a session, the first if `id` is empty.

        Raises `RunFileError` if there is none.
        """
        sessions = _sessions_in(probe.blob) or [""]
        if id and id not in sessions:
            raise no_such_run(probe, id, hint="List it to see the ids.")
        return _Reader(probe, id or sessions[0], is_first=id in ("", sessions[0]))


FORMAT = OpenClawTelemetry()
