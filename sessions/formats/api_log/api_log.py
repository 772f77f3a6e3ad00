"""Logs of requests to model APIs with their replies: lines, arrays, HAR files, cassettes, batch results.

Each request repeats its conversation, so an exchange adds only its request's new messages and its reply.
Exchanges that do not continue each other, such as a request for a title, are separate runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gistpoint.core.text import plural
from gistpoint.sessions.formats.shared.divided_records import DividedReader
from gistpoint.sessions.formats.shared.messages import Turns, cost_of, message_step, tokens_of, usage_of
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Blob
from gistpoint.sessions.records.building import StepBuilder, Tally
from gistpoint.sessions.records.format import Format, Raw, RunEntry, no_such_run
from gistpoint.sessions.records.model import Actor, Json, NotShown, Run, Step, StepKind
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record, records_in
from gistpoint.sessions.records.scanning import RawRecord, elements_at, guarded, lines, one_record
from gistpoint.sessions.records.values import (
    as_dict,
    as_str,
    dumped,
    first,
    is_deep,
    joined,
    later,
    objects,
    parsed_object,
    shallow,
    when,
)

_ARRAYS = ("interactions", "exchanges", "calls", "logs", "requests", "entries")
_TIMES = ("timestamp", "startedDateTime", "created_at", "started_at", "start_time", "time", "ts", "created")
_ENDS = ("logged_at", "ended_at", "end_time", "completed_at")


_UNFINISHED = frozenset(("failed", "incomplete", "cancelled"))
_KEYS = frozenset(("request", "response", "params", "custom_id", "req", "request_body", "kwargs", "input"))


class _Reader(DividedReader):
    format = "api-log"
    arrays = _ARRAYS

    def __init__(self, probe: FileProbe, id: str) -> None:
        super().__init__(probe)
        self._id = id
        self._start = 0
        self._turns = Turns()
        self._system: Json = None
        self._tally = Tally()
        self._names = {"model": "", "task": "", "error": ""}

    def undivided_records(self) -> Iterator[RawRecord]:
        left_out = 0
        for record, conversation, start in self.exchanges():
            if record.damage or str(conversation) == self._id:
                self._start = start
                yield record
            left_out += not record.damage and not conversation
        if left_out:
            self.warnings.append(
                f"Left out: {plural(left_out, 'record')} with neither a request to a model nor a reply."
            )

    def exchanges(self) -> Iterator[tuple[RawRecord, int, int]]:
        """Yield every record, its conversation, and how many messages of its request are already known.

        Conversations are numbered from 1; 0 means a record with neither a request nor a reply.
        """
        from gistpoint.sessions.formats.api_log._bodies import Conversations, sides_of

        conversations = Conversations()
        for record in self._all():
            request, reply = sides_of(shallow(record.fields))
            if request or reply:
                conversation, start = conversations.place(request, reply)
                yield record, conversation + 1, start
            else:
                yield record, 0, 0

    def _all(self) -> Iterator[RawRecord]:
        blob, start = self.probe.blob, self.probe.start
        if "log" in self.probe.object:
            return guarded(elements_at(blob, start, "log", "entries"), blob, self.warnings)
        if self.probe.array or any(key in self.probe.object for key in _ARRAYS):
            return super().undivided_records()
        found = lines(blob, start) if self.probe.is_lines else one_record(blob, start)
        return guarded(found, blob, self.warnings)

    def parts(self, fields: Json) -> Iterator[dict[str, Json]]:
        from gistpoint.sessions.formats.api_log._bodies import message_of, messages_in, sides_of, system_of

        request, reply = sides_of(fields)
        self.learn(fields)
        system = system_of(request)
        if system and system != self._system:
            self._system = system
            yield {"part": "system"}
        for number, message in list(enumerate(messages_in(request)))[self._start :]:
            yield {"part": "message", "number": number, "message": _light(message)}
        if reply:
            message = message_of(reply)
            yield {"part": "reply", "message": _light(message)} if message else {"part": "error"}

    def learn(self, fields: Json) -> None:
        """Add an exchange to the facts of the header."""
        from gistpoint.sessions.formats.api_log._bodies import sides_of

        exchange = as_dict(fields)
        request, reply = sides_of(fields)
        usage = usage_of(reply)
        self._tally.add_usage(tokens_of(usage), cost_of(reply, usage))
        self._names["model"] = as_str(first(reply, "model") or self._names["model"] or request.get("model"))
        self._names["task"] = self._names["task"] or as_str(exchange.get("custom_id"))
        status = as_str(reply.get("status"))
        unfinished = status if status in _UNFINISHED else ""
        self._names["error"] = "error" if reply.get("error") else unfinished
        self._tally.add_time(_asked_at(Record(exchange)))
        self._tally.add_time(_answered_at(Record(exchange)))

    def owner(self, name: dict[str, Json], step_count: int) -> int:
        if name["part"] in ("message", "reply"):
            return self._turns.place(name["message"], step_count)
        return step_count

    def part_of(self, value: Json, name: dict[str, Json]) -> Json:
        from gistpoint.sessions.formats.api_log._bodies import message_of, messages_in, sides_of, system_of

        request, reply = sides_of(value)
        exchange = Record(value)
        number = name.get("number")
        match name["part"]:
            case "system":
                return {"role": "system", "content": system_of(request)}
            case "error":
                return {"error": reply.get("error"), "timestamp": _answered_at(exchange)}
            case "reply":
                return {**message_of(reply), "timestamp": _answered_at(exchange)}
        return {
            **messages_in(request)[number if isinstance(number, int) else 0],
            "timestamp": _asked_at(exchange),
        }

    def load(self, blob: Blob, start: int, end: int) -> tuple[Json, str]:
        value, damage = super().load(blob, start, end)
        # A body may be JSON within a string, which can be parsed only if the string is complete.
        if not damage and end - start > limits.LONG_RECORD:
            whole = parsed_object(blob.read(start, end - start).decode("utf-8", "replace"))
            value = value if whole is None or is_deep(whole) else whole
        return value, damage

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        value = Record(raws[0].value)
        error = value.get("error")
        if self.names(index)[0].get("part") == "error":
            text = value.text("error", "message") or (error if isinstance(error, str) else dumped(error))
            builder = StepBuilder(index, raws, Actor.ENVIRONMENT, StepKind.ERROR, "error").text(text)
            return builder.span(value.time("timestamp")).flag("error").derived("kind").build()
        step = message_step(index, raws)
        ended = value.kept("stop_reason", "stop_details", "incomplete_details")
        if error or value.get("status") == "failed":
            text = joined([step.text, value.text("error", "message")])
            return replace(step, text=text, state=ended, flags=step.flags | {"error"})
        return replace(step, state=ended) if ended else step

    def header(self) -> Run:
        tally = self._tally
        return Run(
            self.format,
            id=self._id,
            task=self._names["task"],
            model=self._names["model"],
            exit_status=self._names["error"],
            tokens=tally.tokens,
            cost=tally.cost,
            started=tally.started,
            duration_s=tally.duration_s,
            derived=frozenset({"tokens", "cost", "duration_s"}),
        )


_OF_MESSAGE = ("role", "type", "object", "call_id", "tool_call_id", "id")
_OF_PART = ("type", "id", "call_id", "tool_use_id")


def _light(message: dict[str, Json]) -> dict[str, Json]:
    """Return the members that decide a message's step: its role, and the ids of its calls and results."""
    kept = _only(message, _OF_MESSAGE)
    for key in ("content", "tool_calls", "output"):
        named: list[Json] = [_only(part, _OF_PART) for part in objects(message.get(key))]
        if named:
            kept[key] = named
    return kept


def _only(members: dict[str, Json], names: Sequence[str]) -> dict[str, Json]:
    return {name: members[name] for name in names if name in members}


def _asked_at(exchange: Record) -> float | None:
    return when(exchange.inner("request").first(*_TIMES) or exchange.first(*_TIMES))


def _answered_at(exchange: Record) -> float | None:
    at = when(exchange.inner("response").first(*_TIMES) or exchange.first(*_ENDS))
    if at is not None or not exchange.has("startedDateTime"):
        return at
    # A HAR file, which browsers write, records the duration of an exchange in milliseconds.
    return later(_asked_at(exchange), exchange.seconds_of_ms("time"))


class ApiLog(Format):
    """Recognised by records with a request to a model's API or a reply, such as lines of batch results."""

    name = "api-log"
    words_in_records = True
    parted_by = (b"delta",)  # a reply in a stream of events
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("request", "response", "url", "method", "headers", "status"),
            "how an exchange was sent; the messages of its bodies are shown, each once",
        ),
        NotShown(
            ("usage", "stop_reason", "status", "output.status", "content.cache_control"),
            "counts and settings of the provider; the model, the tokens and the reason of the end are shown",
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        whole = Record(probe.object)
        listed = [whole.items("log", "entries"), *map(whole.items, _ARRAYS)]
        entries = records_in(next(filter(None, listed), []))[:3]
        likely = [
            one for one in (*probe.records(), *entries) if one.has(*_KEYS) or one.get("object") == "response"
        ]
        if not likely:
            return 0.0
        from gistpoint.sessions.formats.api_log._bodies import sides_of

        return 0.92 if any(any(sides_of(one.members)) for one in likely) else 0.0

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield the conversations, in the order in which they began."""
        known: dict[int, _Reader] = {}
        for record, conversation, _ in _Reader(probe, "").exchanges():
            if conversation:
                known.setdefault(conversation, _Reader(probe, str(conversation))).learn(record.fields)
        for number, reader in known.items():
            yield RunEntry(str(number), reader.header())

    def open(self, probe: FileProbe, id: str) -> _Reader:
        """Return a reader of a conversation by its number. Raises `RunFileError` if there is none."""
        numbers = (number for _, number, _ in _Reader(probe, "").exchanges() if number)
        if not any(str(number) == id for number in numbers):
            raise no_such_run(probe, id, hint="List it to see the ids.")
        return _Reader(probe, id)


FORMAT = ApiLog()
