"""Reads Inspect logs: `.eval` archives, finished or not, and logs in a single JSON file.

Each sample is a run.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from gistpoint.core.text import whole_number
from gistpoint.sessions.formats.inspect_ai.inspect_events import (
    Inputs,
    InspectTurns,
    answer,
    event_step,
    tokens_of_usage,
)
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Archive, Blob, RunFileError
from gistpoint.sessions.records.building import any_error
from gistpoint.sessions.records.format import Format, Raw, RunEntry, RunNames, RunReader
from gistpoint.sessions.records.loading import load_record
from gistpoint.sessions.records.model import Json, NotShown, Result, Run, Step, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record
from gistpoint.sessions.records.scanning import (
    RawRecord,
    Scanner,
    UnreadableError,
    array_records,
    elements_at,
    guarded,
    members,
    object_records,
)
from gistpoint.sessions.records.values import (
    as_dict,
    as_list,
    as_str,
    as_text,
    first_known,
    is_deep,
    objects,
)

_REFERENCE = re.compile(r"(?:attachment|tc)://([A-Za-z0-9]{1,64})\Z")
_CHUNK = re.compile(r"(events|messages|attachments)/(\d{1,12})\.json\Z")


class LazyBlob:
    """A member of an archive that is unpacked at the first read; at most eight of them are kept unpacked."""

    _open: list[LazyBlob] = []  # noqa: RUF012 (shared on purpose: it bounds them all)

    def __init__(self, archive: Archive, name: str) -> None:
        self._archive = archive
        self.name = name
        self._blob: Blob | None = None

    @property
    def size(self) -> int:
        """The size in bytes; until the first read, the declared size. 0 for a missing member."""
        if self._blob is not None:
            return self._blob.size
        member = self._archive.members.get(self.name)
        return member.size if member is not None else 0

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`. Raises `RunFileError` if they can't be unpacked."""
        blob = self._blob
        if blob is None:
            blob = self._blob = self._archive.read(self.name)
            LazyBlob._open.append(self)
            # An archive may have thousands of members: the least recently unpacked one is released.
            if len(LazyBlob._open) > 8:
                LazyBlob._open.pop(0)._blob = None
        return blob.read(offset, length)


def header_of(sample: dict[str, Json], log: dict[str, Json], id: str, version: str) -> Run:
    """Return the header of a sample, from its own members or its summary, and from the header of the log."""
    record, spec = Record(sample), Record(log.get("eval"))
    score = Record(next(iter(record.inner("scores").members.values()), None))
    mark, value = score.word("value"), score.number("value")
    verdict = {"C": "solved", "I": "unsolved"}.get(mark, "")
    usage = [Record(item) for item in record.inner("model_usage").members.values()]
    costs = [cost for item in usage if (cost := item.number("total_cost")) is not None]
    ended = "error" if record.inner("error") else as_str(log.get("status"))
    return Run(
        "inspect",
        version or as_str(log.get("version")),
        id=id,
        task=f"{spec.word('task')}/{record.word('id') or id}",
        model=spec.word("model"),
        agent=spec.first_word("solver") or "inspect",
        verdict=verdict,
        score={"C": 1.0, "I": 0.0}.get(mark) if value is None else value,
        exit_status=record.word("limit", "type") or ended,
        submission=score.text("answer"),
        tokens=sum(map(tokens_of_usage, usage), start=Tokens()),
        cost=sum(costs) if costs else None,
        duration_s=record.number("total_time"),
        started=record.time("started_at"),
        derived=frozenset({"verdict"} if verdict else ()),
    )


class _Sample(RunReader):
    format = "inspect"

    def __init__(self, probe: FileProbe, id: str, log: dict[str, Json], summary: dict[str, Json]) -> None:
        super().__init__(probe)
        self._id, self._log, self._summary = id, log, summary
        self._turns = InspectTurns()
        self._inputs = Inputs(self.completed)
        self._answers: dict[str, tuple[Blob, int, int]] | None = None

    def with_messages(self, events: Iterator[RawRecord], *, blob: Blob) -> Iterator[RawRecord]:
        """Yield events and, before each model call, the messages of its input that are not in a step yet."""
        for record in events:
            event = as_dict(record.fields)
            if event.get("event") == "model":
                # Later logs keep each message once, in a pool, and events refer to ranges of the pool.
                if event.get("input_refs"):
                    yield from self._from_pool(event["input_refs"])
                elif isinstance(event.get("input"), list):
                    yield from self._from_input(as_list(event["input"]), blob, record)
            self._inputs.note(event)
            yield record

    def _from_input(self, messages: list[Json], blob: Blob, record: RawRecord) -> Iterator[RawRecord]:
        new = self._inputs.new_in(messages)
        if not new:
            return
        places = list(elements_at(blob, record.start, "input"))
        yield from (places[at]._replace(inner=True, member=record.member) for at in new if at < len(places))

    def _from_pool(self, ranges: Json) -> Iterator[RawRecord]:
        for number in self._inputs.new_among(ranges, self.pool_size(), lambda at: self._pooled(at).fields):
            yield self._pooled(number)

    def _pooled(self, number: int) -> RawRecord:
        blob, record = self.pooled(number)
        return record._replace(fields=load_record(blob, record.start, record.end)[0], inner=True)

    def unseen_messages(self, given: Json, conversation: Iterator[RawRecord]) -> Iterator[RawRecord]:
        """Yield the messages of a conversation and of the pool that are in no step and answer no known call.

        `given` is the sample's input, whose messages count as known.
        """
        self._inputs.note({"event": "sample_init", "sample": {"input": given}})
        remaining = self._from_pool([[0, self.pool_size()]])
        for record in chain(self._inputs.new_records(conversation), remaining):
            if not self._turns.answers(record.fields):
                yield record._replace(inner=True)

    @abstractmethod
    def conversation(self) -> Iterator[tuple[Blob, RawRecord]]:
        """Yield the messages of the sample, each with the file that contains it."""

    @abstractmethod
    def pool_size(self) -> int:
        """Return the number of messages in the pool that events refer to."""

    @abstractmethod
    def pooled(self, number: int) -> tuple[Blob, RawRecord]:
        """Return the file and the position of message `number` of the pool."""

    def place(self, fields: Json, step_count: int) -> int:
        return self._turns.place(fields, step_count)

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        # Some logs have no event for a tool, whose result is then only in the conversation.
        step = event_step(index, raws)
        return self._with_answers(step) if step.calls and not step.results else step

    def _with_answers(self, step: Step) -> Step:
        """Return a step with results from the conversation, if it has any for the step's calls."""
        results: list[Result] = []
        for call in step.calls:
            value = self._answer(call.id) if call.id else None
            if value is not None:
                results.append(answer(Record(self.completed(value))))
        if not results:
            return step
        flags = step.flags | ({"error"} if any_error(results) else set())
        return replace(step, results=tuple(results), flags=flags, derived=step.derived | {"results"})

    def _answer(self, call_id: str) -> Json:
        """Return the message that answers a call; None if there is none."""
        if self._answers is None:
            self._answers = {}
            for blob, record in self.conversation():
                identity = as_str(as_dict(record.fields).get("tool_call_id"))
                if identity:
                    self._answers[identity] = (blob, record.start, record.end)
        place = self._answers.get(call_id)
        return None if place is None else load_record(*place)[0]

    def completed(self, value: Json) -> Json:
        """Return a record with its references replaced by attachments, except in a request to a model."""
        return self._resolved(value, 0)

    def _resolved(self, value: Json, depth: int) -> Json:
        if isinstance(value, str):
            match = _REFERENCE.match(value)
            found = self.attachment(match[1]) if match else None
            return first_known((found, value))
        # No honest value is nested this deeply.
        if depth > 60:
            return value
        if isinstance(value, list):
            return [self._resolved(item, depth + 1) for item in value]
        if isinstance(value, dict):
            # An event does not show its request, and resolving it would unpack the whole request for each
            # reply.
            is_request = value.get("event") == "model" or "request" in value
            left = ("input", "tools", "config", "request") if is_request else ()
            return {
                key: item if key in left else self._resolved(item, depth + 1) for key, item in value.items()
            }
        return value

    @abstractmethod
    def attachment(self, name: str) -> str | None:
        """Return the text of an attachment; None if there is none of that name."""

    def header_with(self, sample: dict[str, Json], version: str) -> Run:
        """Return the header of the sample, with missing times and tokens from its events."""
        run = header_of(sample, self._log, self._id, version)
        tally = self._turns.tally
        derived = set(run.derived)
        if run.duration_s is None and tally.duration_s is not None:
            run = replace(run, duration_s=tally.duration_s, started=first_known((run.started, tally.started)))
            derived.add("duration_s")
        if tally.tokens and not run.tokens:
            run = replace(run, tokens=tally.tokens, cost=first_known((run.cost, tally.cost)))
            derived.add("tokens")
        return replace(run, derived=frozenset(derived))


class MonolithSample(_Sample):
    """A sample in a log that is a single JSON file."""

    def __init__(self, probe: FileProbe, id: str, log: dict[str, Json], summary: dict[str, Json]) -> None:
        super().__init__(probe, id, log, summary)
        self._places: dict[str, tuple[int, int]] | None = None
        self._pool: list[RawRecord] | None = None

    def records(self) -> Iterator[RawRecord]:
        """Yield the events with the messages of their inputs, then the messages that no event contains."""
        return guarded(self._events_and_messages(), self.probe.blob, self.warnings)

    def _events_and_messages(self) -> Iterator[RawRecord]:
        blob, start = self.probe.blob, self.probe.start
        events = object_records(blob, start, ("events",), self.facts, None)
        count = 0
        for record in self.with_messages(events, blob=blob):
            count += 1
            yield record
        # A sample without events is shown by its messages.
        if not count:
            yield from object_records(blob, start, ("messages",), {}, None)
        else:
            # The conversation may contain messages that no event has, such as those that a solver inserted.
            yield from self.unseen_messages(self.facts.get("input"), elements_at(blob, start, "messages"))

    def header(self) -> Run:
        """Return the header of the sample."""
        sample: dict[str, Json] = {
            **{key: self.probe.object[key] for key in ("id", "epoch") if key in self.probe.object},
            **self._summary,
            **self.facts,
        }
        return self.header_with(sample, "")

    def conversation(self) -> Iterator[tuple[Blob, RawRecord]]:
        """Yield the messages of the sample, each with the file that contains it."""
        blob, start = self.probe.blob, self.probe.start
        yield from ((blob, record) for record in elements_at(blob, start, "messages"))

    def pool_size(self) -> int:
        """Return the number of messages in the pool that events refer to."""
        return len(self._pooled_places())

    def pooled(self, number: int) -> tuple[Blob, RawRecord]:
        """Return the file and the position of message `number` of the pool."""
        return self.probe.blob, self._pooled_places()[number]

    def _pooled_places(self) -> list[RawRecord]:
        if self._pool is None:
            # Only the positions are kept: a message is decoded when it becomes a step.
            records = elements_at(self.probe.blob, self.probe.start, "events_data", "messages")
            self._pool = [record._replace(fields=None) for record in records]
        return self._pool

    def attachment(self, name: str) -> str | None:
        """Return the text of an attachment; None if there is none of that name."""
        if self._places is None:
            self._places = _places(self.probe.blob, self.probe.start)
        place = self._places.get(name)
        return None if place is None else as_text(load_record(self.probe.blob, *place)[0])


def _places(blob: Blob, start: int) -> dict[str, tuple[int, int]]:
    """Return the start and end of each attachment by name; those after damaged text are missing."""
    found: dict[str, tuple[int, int]] = {}
    scanner = Scanner(blob, start)
    try:
        for key, _, _, _ in members(scanner, lambda _: True):
            if key == "attachments" and scanner.peek() == "{":
                for name, _, begin, _ in members(scanner, lambda _: True):
                    scanner.skip()
                    found[name] = (begin, scanner.position)
            else:
                scanner.skip()
    except UnreadableError:
        pass  # attachments before the damage are still found
    return found


class ChunkedSample(_Sample):
    """A sample whose events, messages and attachments are in members of up to a thousand items each."""

    def __init__(self, archive: Archive, id: str, log: dict[str, Json], summary: dict[str, Json]) -> None:
        shell = LazyBlob(archive, f"samples/{id}/sample.json")
        super().__init__(FileProbe(shell), id, log, summary)
        self._attachments = _Chunks(archive, id, "attachments")
        self._messages = _Chunks(archive, id, "messages")
        self._shell = _shell(shell, self.warnings)
        self._events = _Chunks(archive, id, "events")
        self.blobs = [*self._events.blobs, *self._messages.blobs]

    def records(self) -> Iterator[RawRecord]:
        """Yield the events with the messages of their inputs, then the messages that no event contains."""
        for number, blob in enumerate(self._events.blobs):
            try:
                events = _chunk_records(blob, self.warnings, number)
                yield from self.with_messages(events, blob=blob)
            except RunFileError as error:
                self.warnings.append(str(error))
        if self._events.blobs:
            yield from self.unseen_messages(self._shell.get("input"), iter(()))
            return
        for number, blob in enumerate(self._messages.blobs):
            yield from _chunk_records(blob, self.warnings, number)

    def header(self) -> Run:
        """Return the header of the sample."""
        return self.header_with({**self._summary, **self._shell}, "chunked")

    def conversation(self) -> Iterator[tuple[Blob, RawRecord]]:
        """Yield the messages of the sample, each with the file that contains it."""
        for blob in self._messages.blobs:
            yield from ((blob, record) for record in guarded(array_records(blob, 0, None), blob, []))

    def pool_size(self) -> int:
        """Return the number of messages in the pool that events refer to."""
        return self._messages.size

    def pooled(self, number: int) -> tuple[Blob, RawRecord]:
        """Return the file and the position of message `number` of the pool."""
        chunk, record = self._messages.at(number)
        return self._messages.blobs[chunk], record._replace(member=len(self._events.blobs) + chunk)

    def attachment(self, name: str) -> str | None:
        """Return the text of an attachment; None if there is none of that name."""
        number = whole_number(name)
        if number is None or number >= self._attachments.size:
            return None
        chunk, record = self._attachments.at(number)
        return as_text(load_record(self._attachments.blobs[chunk], record.start, record.end)[0])


def _shell(blob: Blob, warnings: list[str]) -> dict[str, Json]:
    """Return the sample's own members; add a warning if their file is missing or cut off."""
    if not blob.size:
        warnings.append(
            f"{blob.name} is cut off or lost: the sample's own members, apart from its events, are missing."
        )
        return {}
    value, damage = load_record(blob, 0, blob.size)
    if damage:
        warnings.append(f"{blob.name} {damage}.")
    return as_dict(value)


def _chunk_records(blob: Blob, warnings: list[str], member: int) -> Iterator[RawRecord]:
    """Yield the items of a chunk; add a warning with its name if it is missing or cut off."""
    if not blob.read(0, 1):
        warnings.append(f"{blob.name} is cut off or lost: it can't be read.")
        return
    problems: list[str] = []
    yield from guarded(array_records(blob, 0, None), blob, problems, member)
    warnings += [f"{blob.name}: {text}" for text in problems]


class _Chunks:
    """A sequence of items in members whose names contain the number of their first item."""

    def __init__(self, archive: Archive, id: str, sequence: str) -> None:
        prefix = f"samples/{id}/"
        found: list[tuple[int, Blob]] = []
        for name in archive.members:
            match = _CHUNK.match(name.removeprefix(prefix)) if name.startswith(prefix) else None
            if match and match[1] == sequence:
                found.append((int(match[2]), LazyBlob(archive, name)))
        found.sort(key=lambda item: item[0])
        self._starts = [start for start, _ in found]
        self.blobs = [blob for _, blob in found]
        self._items: dict[int, list[RawRecord]] = {}

    @property
    def size(self) -> int:
        """The number of items."""
        return self._starts[-1] + len(self._records(len(self.blobs) - 1)) if self.blobs else 0

    def at(self, number: int) -> tuple[int, RawRecord]:
        """Return the index of an item's chunk, and the item's record; a missing record is empty."""
        chunk = max(0, bisect_right(self._starts, number) - 1)
        records = self._records(chunk)
        within = number - self._starts[chunk]
        return chunk, records[within] if 0 <= within < len(records) else RawRecord(0, 0, None)

    def _records(self, chunk: int) -> list[RawRecord]:
        if chunk not in self._items:
            blob = self.blobs[chunk]
            try:
                records = guarded(array_records(blob, 0, None), blob, [])
                self._items[chunk] = [record._replace(fields=None) for record in records if not record.damage]
            except RunFileError:
                self._items[chunk] = []
        return self._items[chunk]


_PREFIX = "samples/"
_OF_CHUNKED = re.compile(r"([^/]+)/(?:sample|(?:events|messages)/\d{1,12})\.json")
"""The members of a chunked sample; an archive that was cut off may contain only one of them."""


def _ids(archive: Archive) -> list[str]:
    """Return the ids of the samples in the archive's order, from the names of members or of their folders."""
    found: dict[str, None] = {}
    for name in archive.members:
        if not name.startswith(_PREFIX) or not name.endswith(".json"):
            continue
        remaining = name.removeprefix(_PREFIX)
        if "/" not in remaining:
            found[remaining.removesuffix(".json")] = None
        elif match := _OF_CHUNKED.fullmatch(remaining):
            found[match[1]] = None
    return list(found)


def _document(archive: Archive, *names: str) -> Json:
    for name in names:
        if name in archive.members:
            try:
                blob = archive.read(name)
            except RunFileError:
                continue
            if blob.size <= limits.RECORD:
                value, damage = load_record(blob, 0, blob.size)
                if not damage:
                    return value
    return None


def _summaries(archive: Archive) -> dict[str, dict[str, Json]]:
    # The summaries of an unfinished log are in the files of its journal, several in each.
    listed = objects(_document(archive, "summaries.json"))
    if not listed:
        for name in archive.members:
            if name.startswith("_journal/summaries/"):
                listed += objects(_document(archive, name))
    return {f"{as_str(item.get('id'))}_epoch_{as_str(item.get('epoch'))}": item for item in listed}


class InspectLog(Format):
    """Recognised by an archive with a header, a journal or samples, or by an `eval` with a log's members."""

    name = "inspect"
    not_shown: Sequence[NotShown] = (
        NotShown(("input", "input_refs"), "the messages sent to the model; new ones are separate steps"),
        NotShown(
            (
                "call",
                "config",
                "model",
                "output.model",
                "output.choices.stop_reason",
                "content.internal",
                "output.choices.message.content.internal",
            ),
            "the provider's own form of a call",
        ),
        NotShown(
            ("tools", "tool_choice", "view", "output.choices.message.tool_calls.view"),
            "the tools offered to the model, and how Inspect's viewer draws them",
        ),
        NotShown(
            (
                "event",
                "source",
                "sample.input.source",
                "output.choices.message.source",
                "output.choices.message.model",
            ),
            "what kind of an event it is, and who wrote a message",
        ),
        NotShown(
            ("state", "message.level", "message.filename", "message.module"),
            "the state that a sample begins with, which its input is; where a line of the log comes from",
        ),
        NotShown(
            ("input", "messages", "output", "attachments", "events_data"),
            "the content of the steps",
            of_run=True,
        ),
        NotShown(
            ("store", "metadata", "timelines", "invalidation"),
            "data that solvers kept, apart from the conversation",
            of_run=True,
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        if probe.archive is not None:
            members_of = probe.archive.members
            marked = "header.json" in members_of or "_journal/start.json" in members_of
            if marked:
                return 1.0
            remaining = "summaries.json" in members_of or bool(probe.archive.damage)
            return 0.8 if remaining and _ids(probe.archive) else 0.0
        known = {"version", "eval", "plan", "results", "stats", "samples", "status"} & probe.object.keys()
        return 0.9 if isinstance(probe.object.get("eval"), dict) and len(known) >= 3 else 0.0

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield each sample as a run."""
        if probe.archive is None:
            log = {key: probe.early(key) for key in ("version", "eval", "status")}
            for id, record in _samples(probe):
                yield RunEntry(id, header_of(as_dict(record.fields), log, id, ""))
            return
        log = _log(probe.archive)
        summaries = _summaries(probe.archive)
        for id in _ids(probe.archive):
            yield RunEntry(id, header_of(summaries.get(id, {}), log, id, ""))

    def open(self, probe: FileProbe, id: str) -> MonolithSample | ChunkedSample:
        """Return a reader of a sample by its id, or of the first if `id` is empty.

        Raises `RunFileError` if there is none.
        """
        if probe.archive is None:
            return self._open_json(probe, id)
        ids = _ids(probe.archive)
        if (id and id not in ids) or not ids:
            known = f"Its samples: {', '.join(ids[:8])}{' …' if len(ids) > 8 else ''}." if ids else ""
            raise RunFileError(f"{probe.name or 'The log'} has no sample {id}".rstrip() + ".", hint=known)
        id = id or ids[0]
        log, summary = _log(probe.archive), _summaries(probe.archive).get(id, {})
        sample: MonolithSample | ChunkedSample
        if f"{_PREFIX}{id}.json" in probe.archive.members:
            sample = MonolithSample(FileProbe(probe.archive.read(f"{_PREFIX}{id}.json")), id, log, summary)
        else:
            sample = ChunkedSample(probe.archive, id, log, summary)
        if probe.archive.damage:
            sample.warnings.append(probe.archive.damage)
        return sample

    def _open_json(self, probe: FileProbe, id: str) -> MonolithSample:
        log = {key: probe.early(key) for key in ("version", "eval", "status")}
        for known, record in _samples(probe):
            if known == id or not id:
                return MonolithSample(probe.part(record), known, log, as_dict(record.fields))
        raise RunFileError(f"{probe.name or 'The log'} has no sample {id}".rstrip() + ".")


def _log(archive: Archive) -> dict[str, Json]:
    return as_dict(_document(archive, "header.json", "_journal/start.json"))


def _samples(probe: FileProbe) -> Iterator[tuple[str, RawRecord]]:
    names = RunNames()
    for number, record in enumerate(elements_at(probe.blob, probe.start, "samples"), 1):
        # A value that is nested too deep counts as damaged, so that nothing walks through it.
        record = record._replace(fields=None) if is_deep(record.fields) else record
        fields = as_dict(record.fields)
        id = f"{as_str(fields.get('id'))}_epoch_{as_str(fields.get('epoch'))}"
        yield names.name(id if fields else f"damaged-{number}"), record


FORMAT = InspectLog()
