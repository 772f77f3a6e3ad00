"""Chat messages as such: one conversation in a JSON text, one message a line, or one conversation a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from gistpoint.sessions.formats.messages import Turns, message_step, role_of
from gistpoint.sessions.formats.probe import Probe
from gistpoint.sessions.formats.protocol import BaseReader, RunEntry, RunNames
from gistpoint.sessions.formats.values import as_dict, as_list, as_str, first, objects
from gistpoint.sessions.runs.blobs import RunFileError, SliceBlob
from gistpoint.sessions.runs.lines import lines
from gistpoint.sessions.runs.model import Json, Run, Step
from gistpoint.sessions.runs.reader import Raw, array_records, guarded, line_records, object_records
from gistpoint.sessions.runs.scanning import Record

Shape = Literal["object", "array", "lines", "runs"]
_ARRAYS = ("messages", "traj")


def _is_message(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and bool(role_of(value))
        and bool({"content", "tool_calls", "output", "text"} & value.keys())
    )


def _messages(value: dict[str, Json]) -> list[Json] | None:
    return next((as_list(value[key]) for key in _ARRAYS if isinstance(value.get(key), list)), None)


def shape_of(probe: Probe) -> Shape | None:
    """Return how the messages lie in the file, None if there are none."""
    if probe.array:
        if _messages(as_dict(probe.array[0])) is not None:
            return "runs"
        return "array" if _is_message(probe.array[0]) else None
    listed = [line for line in probe.lines if _messages(line) is not None]
    if listed and (len(probe.lines) > 1 or b"\n" not in probe.head.strip()):
        return "runs" if _has_more_lines(probe) else "object"
    messages = _messages(probe.object)
    if messages is not None:
        return "object" if not messages or isinstance(messages[0], dict) else None
    return "lines" if probe.lines and _is_message(probe.lines[0]) else None


def _has_more_lines(probe: Probe) -> bool:
    return len(probe.lines) > 1 or (len(probe.head) < probe.blob.size and b"\n{" in probe.tail)


class _Reader(BaseReader):
    """Reads one conversation."""

    format = "chat"

    def __init__(self, probe: Probe, shape: Shape) -> None:
        super().__init__(probe)
        self._shape = shape
        self._turns = Turns(shell=False)

    def records(self) -> Iterator[Record]:
        blob, start = self.probe.blob, self.probe.start
        if self._shape == "array":
            found = array_records(blob, start, None)
        elif self._shape == "lines":
            found = line_records(blob, start)
        else:
            found = object_records(blob, start, _ARRAYS, self.facts, None)
        return guarded(found, blob, self.warnings)

    def more(self, offset: int, before: int) -> Iterator[Record] | None:
        if self._shape != "lines":
            return None
        return guarded(line_records(self.probe.blob, offset), self.probe.blob, self.warnings, before=before)

    def place(self, fields: Json, step_count: int) -> int:
        return self._turns.place(fields, step_count)

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        return message_step(index, raws, shell=False)

    def header(self) -> Run:
        if self._shape in ("array", "lines"):
            return Run(self.format, self._shape)
        task = first(
            {key: self.fact(key) for key in ("instance_id", "id", "task_id", "task")},
            "instance_id",
            "id",
            "task_id",
            "task",
        )
        return Run(self.format, self._shape, task=as_str(task), model=as_str(self.fact("model")))


class Chat:
    """Told by objects with a role and content, where no format that is more than that is surer."""

    name = "chat"

    def sniff(self, probe: Probe) -> float:
        """Return how sure it is."""
        shape = shape_of(probe)
        if shape is None:
            return 0.0
        if shape in ("object", "runs"):
            holder = as_dict(probe.array[0]) if probe.array else (probe.lines or [probe.object])[0]
            messages = objects(_messages(holder))
            return 0.5 if messages and all(role_of(message) for message in messages[:3]) else 0.1
        return 0.5

    def runs(self, probe: Probe) -> Iterator[RunEntry]:
        """List the conversations."""
        shape = shape_of(probe) or "object"
        if shape != "runs":
            yield RunEntry("", _Reader(probe, shape).header())
            return
        for id, record in _conversations(probe):
            fields = as_dict(record.fields)
            yield RunEntry(
                id,
                Run("chat", "runs", id=id, task=as_str(fields.get("instance_id")), model=as_str(fields.get("model"))),
            )

    def open(self, probe: Probe, id: str) -> _Reader:
        """Open one conversation."""
        shape = shape_of(probe) or "object"
        if shape != "runs":
            if id:
                raise RunFileError(f"{probe.name or 'The file'} holds one run only: there is no #{id}.")
            return _Reader(probe, shape)
        for known, record in _conversations(probe):
            if known == id or not id:
                part = SliceBlob(probe.blob, record.start, record.end, probe.blob.name, origin=record.start)
                return _Reader(Probe(part, name=probe.name), "object")
        raise RunFileError(f"{probe.name or 'The file'} has no run #{id}.")


def _conversations(probe: Probe) -> Iterator[tuple[str, Record]]:
    names = RunNames()
    found = array_records(probe.blob, probe.start, None) if probe.array else lines(probe.blob, probe.start)
    for number, record in enumerate(guarded(found, probe.blob, []), 1):
        fields = as_dict(record.fields)
        name = as_str(first(fields, "instance_id", "id", "task_id")) or str(number)
        yield names.name(name), record


FORMAT = Chat()
