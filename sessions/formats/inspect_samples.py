"""One sample of an Inspect log: monolithic or chunked, its attachments found when a step needs them."""

from __future__ import annotations

import re
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gistpoint.sessions.formats.inspect_events import InspectTurns, event_step
from gistpoint.sessions.formats.probe import Probe
from gistpoint.sessions.formats.protocol import BaseReader
from gistpoint.sessions.formats.values import as_dict, as_float, as_int, as_str, as_text, first, total, when
from gistpoint.sessions.runs.archives import Archive
from gistpoint.sessions.runs.blobs import Blob, RunFileError
from gistpoint.sessions.runs.loading import load_record
from gistpoint.sessions.runs.model import Json, Result, Run, Step, Tokens
from gistpoint.sessions.runs.reader import Raw, array_records, guarded, object_records
from gistpoint.sessions.runs.scanning import CutOffError, DamagedError, Record, Scanner, TooLongError, members

_REFERENCE = re.compile(r"attachment://([A-Za-z0-9]{1,64})\Z")
_CHUNK = re.compile(r"(events|messages|attachments)/(\d{1,12})\.json\Z")


class LazyBlob:
    """A member that is unpacked when it is first read, and let go when others are."""

    _open: list[LazyBlob] = []  # noqa: RUF012 (shared on purpose: it bounds them all)

    def __init__(self, archive: Archive, name: str) -> None:
        self._archive = archive
        self.name = name
        self._blob: Blob | None = None

    @property
    def size(self) -> int:
        """Size as declared until it is unpacked."""
        return self._blob.size if self._blob is not None else self._archive.members[self.name].size

    def read(self, offset: int, length: int) -> bytes:
        """Unpack if need be, and read."""
        blob = self._blob
        if blob is None:
            blob = self._blob = self._archive.read(self.name)
            LazyBlob._open.append(self)
            if len(LazyBlob._open) > 8:
                LazyBlob._open.pop(0)._blob = None
        return blob.read(offset, length)


def header_of(sample: dict[str, Json], log: dict[str, Json], id: str, version: str) -> Run:
    """Return the header of a sample from its own members, or its line in the summaries, and the log's header."""
    spec = as_dict(log.get("eval"))
    scores = [as_dict(score) for score in as_dict(sample.get("scores")).values()]
    value = scores[0].get("value") if scores else None
    verdict = {"C": "solved", "I": "unsolved"}.get(as_str(value), "")
    usage = [as_dict(item) for item in as_dict(sample.get("model_usage")).values()]
    cached = total([as_int(item.get("input_tokens_cache_read")) for item in usage])
    prompt = total([as_int(item.get("input_tokens")) for item in usage])
    costs = [cost for cost in (as_float(item.get("total_cost")) for item in usage) if cost is not None]
    limit = as_dict(sample.get("limit"))
    error = as_dict(sample.get("error"))
    return Run(
        "inspect",
        version or as_str(log.get("version")),
        id=id,
        task=f"{as_str(spec.get('task'))}/{as_str(sample.get('id')) or id}",
        model=as_str(spec.get("model")),
        agent=as_str(first(spec, "solver")) or "inspect",
        verdict=verdict,
        score=as_float(value) if as_float(value) is not None else {"C": 1.0, "I": 0.0}.get(as_str(value)),
        exit_status=as_str(limit.get("type")) or ("error" if error else as_str(log.get("status"))),
        submission=as_text(scores[0].get("answer")) if scores else "",
        tokens=Tokens(
            total([prompt, cached]),
            total([as_int(item.get("output_tokens")) for item in usage]),
            cached,
            total([as_int(item.get("reasoning_tokens")) for item in usage]),
        ),
        cost=sum(costs) if costs else None,
        duration_s=as_float(sample.get("total_time")),
        started=when(sample.get("started_at")),
        derived=frozenset({"verdict"} if verdict else ()),
    )


class _Sample(BaseReader):
    format = "inspect"

    def __init__(self, probe: Probe, id: str, log: dict[str, Json], summary: dict[str, Json]) -> None:
        super().__init__(probe)
        self._id, self._log, self._summary = id, log, summary
        self._turns = InspectTurns()
        self._answers: dict[str, tuple[Blob, int, int]] | None = None

    def place(self, fields: Json, step_count: int) -> int:
        return self._turns.place(fields, step_count)

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        step = event_step(index, [Raw(raw.range, self._resolved(raw.value, 0), raw.damage) for raw in raws])
        return self._answered(step) if step.calls and not step.results else step

    def _answered(self, step: Step) -> Step:
        """Take results from the conversation where the log has no events for its tools, as with bridged agents."""
        results: list[Result] = []
        for call in step.calls:
            value = self.answer(call.id) if call.id else None
            if value is not None:
                message = as_dict(self._resolved(value, 0))
                failed = True if message.get("error") else None
                results.append(Result(call.id, as_text(message.get("content")), failed))
        if not results:
            return step
        flags = step.flags | ({"error"} if any(result.is_error for result in results) else set())
        return replace(step, results=tuple(results), flags=flags, derived=step.derived | {"results"})

    def answer(self, call_id: str) -> Json:
        """Return the message that answers a call, None if there is none."""
        if self._answers is None:
            self._answers = {}
            for blob, record in self.conversation():
                identity = as_str(as_dict(record.fields).get("tool_call_id"))
                if identity:
                    self._answers[identity] = (blob, record.start, record.end)
        place = self._answers.get(call_id)
        return None if place is None else load_record(*place)[0]

    @abstractmethod
    def conversation(self) -> Iterator[tuple[Blob, Record]]:
        """Yield the messages of the sample, wherever they lie."""

    def _resolved(self, value: Json, depth: int) -> Json:
        """Put attachments in the place of their references."""
        if isinstance(value, str):
            match = _REFERENCE.match(value)
            found = self.attachment(match[1]) if match else None
            return value if found is None else found
        if depth > 60:
            return value
        if isinstance(value, list):
            return [self._resolved(item, depth + 1) for item in value]
        if isinstance(value, dict):
            left = ("input", "call", "tools", "config") if value.get("event") == "model" else ()
            return {key: item if key in left else self._resolved(item, depth + 1) for key, item in value.items()}
        return value

    @abstractmethod
    def attachment(self, name: str) -> str | None:
        """Return the text of an attachment; None if there is none of that name."""


class MonolithSample(_Sample):
    """A sample in one JSON text."""

    def __init__(self, probe: Probe, id: str, log: dict[str, Json], summary: dict[str, Json]) -> None:
        super().__init__(probe, id, log, summary)
        self._places: dict[str, tuple[int, int]] | None = None

    def records(self) -> Iterator[Record]:
        """Yield the events, or the messages where there are none."""
        return guarded(self._events_or_messages(), self.probe.blob, self.warnings)

    def _events_or_messages(self) -> Iterator[Record]:
        count = 0
        for record in object_records(self.probe.blob, self.probe.start, ("events",), self.facts, None):
            count += 1
            yield record
        if not count:
            yield from object_records(self.probe.blob, self.probe.start, ("messages",), {}, None)

    def header(self) -> Run:
        """Return the header."""
        sample: dict[str, Json] = {
            **{key: self.probe.object[key] for key in ("id", "epoch") if key in self.probe.object},
            **self._summary,
            **self.facts,
        }
        return header_of(sample, self._log, self._id, "")

    def conversation(self) -> Iterator[tuple[Blob, Record]]:
        """Yield the messages."""
        yield from ((self.probe.blob, record) for record in _messages(self.probe.blob, self.probe.start))

    def attachment(self, name: str) -> str | None:
        """Return the text of an attachment; None if there is none of that name."""
        if self._places is None:
            self._places = _places(self.probe.blob, self.probe.start)
        place = self._places.get(name)
        return None if place is None else as_text(load_record(self.probe.blob, *place)[0])


def _messages(blob: Blob, start: int) -> Iterator[Record]:
    """Yield the messages of a sample: of its conversation and of the pool that its events refer to."""
    scanner = Scanner(blob, start)
    try:
        for key, _, _, _ in members(scanner, lambda key: key in ("messages", "events_data", "events")):
            if key == "messages" and scanner.peek() == "[":
                yield from scanner.elements()
            elif key == "events_data" and scanner.peek() == "{":
                for inner, _, _, _ in members(scanner, lambda _: True):
                    if inner == "messages" and scanner.peek() == "[":
                        yield from scanner.elements()
                    else:
                        scanner.skip()
            elif key in ("messages", "events_data", "events"):
                scanner.skip()
    except (CutOffError, DamagedError, TooLongError):
        return


def _places(blob: Blob, start: int) -> dict[str, tuple[int, int]]:
    """Find where each attachment stands."""
    found: dict[str, tuple[int, int]] = {}
    scanner = Scanner(blob, start)
    try:
        for key, _, _, _ in members(scanner, lambda key: key in ("attachments", "events", "messages")):
            if key == "attachments" and scanner.peek() == "{":
                for name, _, begin, _ in members(scanner, lambda _: True):
                    scanner.skip()
                    found[name] = (begin, scanner.position)
            elif key in ("attachments", "events", "messages"):
                scanner.skip()
    except (CutOffError, DamagedError, TooLongError):
        pass
    return found


class ChunkedSample(_Sample):
    """A sample whose events, messages and attachments lie in members of up to a thousand items each."""

    def __init__(self, probe: Probe, archive: Archive, id: str, log: dict[str, Json], summary: dict[str, Json]) -> None:
        super().__init__(probe, id, log, summary)
        self._attachments = _chunks(archive, id, "attachments")
        self._messages = _chunks(archive, id, "messages")
        self._items: dict[str, list[Record]] = {}
        self._shell = as_dict(load_record(probe.blob, 0, probe.blob.size)[0])
        chunks = _chunks(archive, id, "events") or self._messages
        self.blobs = [blob for _, blob in chunks]

    def records(self) -> Iterator[Record]:
        """Yield the events, or the messages where there are none."""
        for number, blob in enumerate(self.blobs):
            try:
                yield from guarded(array_records(blob, 0, None), blob, self.warnings, number)
            except RunFileError as error:
                self.warnings.append(str(error))

    def header(self) -> Run:
        """Return the header."""
        return header_of({**self._summary, **self._shell}, self._log, self._id, "chunked")

    def conversation(self) -> Iterator[tuple[Blob, Record]]:
        """Yield the messages."""
        for _, blob in self._messages:
            yield from ((blob, record) for record in guarded(array_records(blob, 0, None), blob, []))

    def attachment(self, name: str) -> str | None:
        """Return the text of an attachment; None if there is none of that name."""
        if not name.isdigit():
            return None
        number = bisect_right([start for start, _ in self._attachments], int(name)) - 1
        if number < 0:
            return None
        start, blob = self._attachments[number]
        if blob.name not in self._items:
            self._items[blob.name] = [r._replace(fields=None) for r in guarded(array_records(blob, 0, None), blob, [])]
        items = self._items[blob.name]
        if int(name) - start >= len(items):
            return None
        record = items[int(name) - start]
        return as_text(load_record(blob, record.start, record.end)[0])


def _chunks(archive: Archive, id: str, sequence: str) -> list[tuple[int, Blob]]:
    prefix = f"samples/{id}/"
    found: list[tuple[int, Blob]] = []
    for name in archive.members:
        match = _CHUNK.match(name.removeprefix(prefix)) if name.startswith(prefix) else None
        if match and match[1] == sequence:
            found.append((int(match[2]), LazyBlob(archive, name)))
    return sorted(found, key=lambda item: item[0])
