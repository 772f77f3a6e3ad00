"""Plain chat messages: one conversation as JSON, one message per line, or one conversation per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from gistpoint.sessions.formats.shared.message_parts import is_call
from gistpoint.sessions.formats.shared.messages import (
    Turns,
    cost_of,
    message_step,
    message_texts,
    results_in,
    role_of,
    tokens_of,
    usage_of,
)
from gistpoint.sessions.formats.shared.row_facts import HEADER, row_header
from gistpoint.sessions.records.archives import RunFileError
from gistpoint.sessions.records.building import StepBuilder, Tally
from gistpoint.sessions.records.format import Format, Raw, RunEntry, RunNames, RunReader, run_named
from gistpoint.sessions.records.model import Actor, Json, NotShown, Run, Step, StepKind, StepTexts
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record
from gistpoint.sessions.records.scanning import RawRecord, array_records, guarded, lines, object_records
from gistpoint.sessions.records.values import as_dict, as_list, as_str, dumped, first, objects, recoded, when

Shape = Literal["object", "array", "lines", "runs"]
"""How messages are arranged in a file.

One conversation is a member of an `object`, an `array` of messages, or `lines` with a message each. `runs`
are several conversations, in an array or one per line.
"""
_CONTENTS = ("content", "tool_calls", "output", "text", "call_id", "summary")
"""A message, or an item of the Responses API, has at least one of these keys."""
_ARRAYS = ("messages",)
_LISTED = "data"
"""The key of the items in a list that OpenAI's API has returned."""
_SYSTEM = ("system", "system_prompt")
"""The keys of the system prompt in requests to Anthropic's API, and in Cline's files."""

_HERMES = frozenset(("session_id", "platform", "system_prompt", "tools"))
"""Keys before the messages of a Hermes session; their values are often longer than a probed head."""


def _is_message(value: Json) -> bool:
    message = Record(value)
    return message.has(*_CONTENTS) and bool(role_of(message.members))


def _is_head(line: dict[str, Json]) -> bool:
    """Return whether a line is the session header that nanobot and Hermes write before the messages."""
    return line.get("role") == "session_meta" or line.get("_type") == "metadata"


def _messages(value: dict[str, Json]) -> list[Json] | None:
    keys = (*_ARRAYS, _LISTED) if value.get("object") == "list" else _ARRAYS
    return next((as_list(value[key]) for key in keys if isinstance(value.get(key), list)), None)


def _in_order(records: Iterator[RawRecord]) -> list[RawRecord]:
    """Return the items of an OpenAI list from the oldest to the newest.

    The API returns the newest first, unless another order is requested.
    """
    found = list(records)
    items = [as_dict(record.fields) for record in found]
    places = {
        as_str(item.get("call_id")): at for at, item in enumerate(items) if is_call(as_str(item.get("type")))
    }
    for at, item in enumerate(items):
        called = places.get(as_str(item.get("call_id"))) if role_of(item) == "tool" else None
        if called is not None:
            return found[::-1] if at < called else found
    # Without a call and its result, the roles decide: a conversation begins with a request and may end
    # with one.
    replied = [role_of(item) == "assistant" for item in items]
    newest_first = bool(replied) and replied[0] and not replied[-1]
    return found[::-1] if newest_first else found


def shape_of(probe: FileProbe) -> Shape | None:
    """Return the arrangement of the messages in the file; None if there are none."""
    if probe.array:
        return _shape_of_array(probe.array[0])
    if probe.is_lines and any(_messages(line) is not None for line in probe.lines):
        return "runs"
    messages = _messages(probe.object)
    if messages is not None:
        return "object" if all(isinstance(message, dict) for message in messages[:1]) else None
    if probe.object.keys() >= _HERMES and not probe.is_lines:
        return "object"
    opening = probe.lines[:2]
    candidates = opening[1:] if any(map(_is_head, opening[:1])) else opening[:1]
    return "lines" if any(map(_is_message, candidates)) else None


def _shape_of_array(opening: Json) -> Shape | None:
    if _messages(as_dict(opening)) is not None:
        return "runs"
    return "array" if _is_message(opening) else None


class _Reader(RunReader):
    """The reader of one conversation."""

    format = "chat"

    def __init__(self, probe: FileProbe, shape: Shape) -> None:
        super().__init__(probe)
        self._shape = shape
        self.in_lines = shape == "lines"
        self._turns = Turns()
        self._tally = Tally()
        self._systems = 0
        self._model = as_str(probe.lines[0].get("model")) if probe.lines and _is_head(probe.lines[0]) else ""

    def records(self) -> Iterator[RawRecord]:
        if self._shape == "object":
            return guarded(self._object_records(), self.probe.blob, self.warnings)
        return super().records()

    def _object_records(self) -> Iterator[RawRecord]:
        shown: list[str] = []
        for key in _SYSTEM:
            record = self.probe.member(key, _ARRAYS)
            # Anthropic's API has the system prompt next to the messages: it becomes a step before them.
            if record is not None and isinstance(record.fields, str | list):
                shown.append(key)
                yield record._replace(inner=True)
        if self.probe.object.get("object") == "list":
            yield from _in_order(
                object_records(self.probe.blob, self.probe.start, (_LISTED,), self.facts, None)
            )
        else:
            yield from object_records(self.probe.blob, self.probe.start, _ARRAYS, self.facts, None)
        # A step shows this member, so it is no longer a fact of the run.
        for key in shown:
            self.facts.pop(key, None)

    def place(self, fields: Json, step_count: int) -> int:
        # The system prompt is a member of the object, and comes before the messages.
        is_prompt = self._shape == "object" and isinstance(fields, str | list)
        if is_prompt and step_count == self._systems:
            self._systems += 1
            return step_count
        message = as_dict(fields)
        counts = message.get("usage") or message.get("metrics")
        if counts and role_of(message) == "assistant":
            usage = usage_of(message)
            self._tally.add_usage(tokens_of(usage), cost_of(message, usage))
        return self._turns.place(fields, step_count)

    def had_a_step(self, fields: Json) -> bool:
        message = as_dict(fields)
        return role_of(message) == "user" and bool(results_in(message))

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        if index < self._systems:
            return message_step(index, [replace(raws[0], value={"role": "system", "content": raws[0].value})])
        head = as_dict(raws[0].value)
        if _is_head(head):
            shown = {key: value for key, value in head.items() if key != "tools"}
            return (
                StepBuilder(index, raws, Actor.SYSTEM, StepKind.STATE, "session")
                .text(dumped(shown))
                .span(when(head.get("timestamp")))
                .build()
            )
        return message_step(index, raws)

    def texts(self, index: int, values: Sequence[Json]) -> StepTexts | None:
        is_message = index >= self._systems and not _is_head(as_dict(values[0]))
        return message_texts(values) if is_message else None

    def header(self) -> Run:
        if self._shape in ("array", "lines"):
            return self._with_totals(Run(self.format, self._shape, model=self._model))
        return self._with_totals(
            row_header(self.format, self._shape, {key: self.fact(key) for key in HEADER})
        )

    def _with_totals(self, run: Run) -> Run:
        tokens, cost = self._tally.tokens, self._tally.cost
        # The file has both for single messages only, so their sums are derived.
        derived = {name for name, total in (("tokens", tokens), ("cost", cost)) if total}
        return replace(run, tokens=tokens, cost=cost, derived=run.derived | derived)


class Chat(Format):
    """Recognised by objects with a role and content, unless a more specific format is more confident."""

    name = "chat"
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("tools", "functions", "tool_definitions", "tool_choice"),
            "what the model could call",
            of_run=True,
        ),
        NotShown(("tools",), "what the model could call"),
        NotShown(
            ("content.cache_control", "modelInfo", "metrics", "usage", "stop_reason"),
            "counts and settings of the provider; the model and the tokens are shown",
        ),
        NotShown(("status",), "whether an item is complete; one that failed is an error"),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        shape = shape_of(probe)
        if shape is None:
            return 0.0
        if shape in ("object", "runs"):
            holder = probe.opening.members
            messages = objects(_messages(holder))[:3]
            return 0.5 if messages and all(map(role_of, messages)) else 0.1
        return 0.5

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield each conversation as a run; the id is empty if the form of the file allows only one."""
        shape = shape_of(probe) or "object"
        if shape != "runs":
            yield RunEntry("", _Reader(probe, shape).header())
            return
        for id, record in _conversations(probe):
            fields = as_dict(record.fields)
            known = {key: recoded(item) for key, item in fields.items() if isinstance(item, str)}
            yield RunEntry(id, row_header(self.name, "runs", {**fields, **known}, id))

    def open(self, probe: FileProbe, id: str) -> _Reader:
        """Return a reader of a conversation by its id, or of the first one.

        Raises `RunFileError` if there is no such conversation.
        """
        shape = shape_of(probe) or "object"
        if shape != "runs" and not id:
            return _Reader(probe, shape)
        if shape != "runs":
            raise RunFileError(f"{probe.name or 'The file'} contains only one run, so there is no #{id}.")
        _, record = run_named(probe, id, _conversations(probe))
        return _Reader(probe.part(record), "object")


def _conversations(probe: FileProbe) -> Iterator[tuple[str, RawRecord]]:
    """Yield the id and the record of each conversation; a record that can't be decoded counts as one.

    A file of events has conversations in some of its lines only. The other lines, such as the beginning of a
    call, have no steps and are not runs.
    """
    names = RunNames()
    found = array_records(probe.blob, probe.start, None) if probe.array else lines(probe.blob, probe.start)
    for number, record in enumerate(guarded(found, probe.blob, []), 1):
        fields = as_dict(record.fields)
        if not record.damage and not _messages(fields):
            continue
        name = as_str(first(fields, "instance_id", "id", "task_id")) or str(number)
        yield names.name(name), record


FORMAT = Chat()
