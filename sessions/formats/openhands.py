"""OpenHands: event lists, event logs a line each, and `output.jsonl` with a run on every line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from gistpoint.sessions.formats.openhands_events import EventTurns, event_step
from gistpoint.sessions.formats.probe import Probe
from gistpoint.sessions.formats.protocol import BaseReader, RunEntry, RunNames
from gistpoint.sessions.formats.values import (
    as_bool,
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    first,
    objects,
    recoded,
)
from gistpoint.sessions.runs.blobs import RunFileError, SliceBlob
from gistpoint.sessions.runs.lines import lines
from gistpoint.sessions.runs.loading import is_deep, load_record
from gistpoint.sessions.runs.model import Json, NotShown, Run, Step, Tokens
from gistpoint.sessions.runs.reader import Raw, array_records, guarded, line_records, object_records
from gistpoint.sessions.runs.scanning import LightKeys, Record

Shape = Literal["array", "lines", "runs", "object", "folder"]


class _Reader(BaseReader):
    format = "openhands"

    def __init__(self, probe: Probe, shape: Shape, id: str = "") -> None:
        super().__init__(probe)
        self._shape = shape
        self._id = id
        self._turns = EventTurns()
        self._stats: dict[str, Json] = {}

    def records(self) -> Iterator[Record]:
        blob, start = self.probe.blob, self.probe.start
        if self._shape == "folder":
            return self._files()
        if self._shape == "array":
            light = (
                LightKeys(("id", "cause", "action", "observation"))
                if "kind" not in as_dict(self.probe.array[0])
                else None
            )
            found = array_records(blob, start, light)
        elif self._shape == "lines":
            found = line_records(blob, start)
        else:
            found = object_records(blob, start, ("history",), self.facts, None)
        return guarded(found, blob, self.warnings)

    def _files(self) -> Iterator[Record]:
        self.blobs = self.probe.parts
        for number, blob in enumerate(self.blobs):
            fields, damage = load_record(blob, 0, blob.size)
            if damage:
                self.warnings.append(f"{blob.name} {damage}; it is shown raw.")
            yield Record(0, blob.size, fields, damage, number)

    def more(self, offset: int, before: int) -> Iterator[Record] | None:
        if self._shape != "lines":
            return None
        return guarded(line_records(self.probe.blob, offset), self.probe.blob, self.warnings, before=before)

    def place(self, fields: Json, step_count: int) -> int:
        event = as_dict(fields)
        if event.get("key") == "stats":
            self._stats = as_dict(as_dict(event.get("value")).get("usage_to_metrics"))
        return self._turns.place(fields, step_count)

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        return event_step(index, raws)

    def header(self) -> Run:
        if self._shape in ("array", "lines", "folder"):
            sample = self.probe.array[:3] if self._shape == "array" else [self.probe.object, *self.probe.lines[:3]]
            version = "V1" if any("kind" in as_dict(event) for event in sample) else "V0"
            tokens, cost = _totals(self._stats)
            return Run(self.format, version, tokens=tokens, cost=cost)
        return header_of({key: self.fact(key) for key in _HEADER_KEYS}, self._id)


def _totals(stats: dict[str, Json]) -> tuple[Tokens, float | None]:
    used = [as_dict(item) for item in stats.values()]
    if not used:
        return Tokens(), None
    counts = [as_dict(item.get("accumulated_token_usage")) for item in used]
    tokens = Tokens(
        sum(as_int(item.get("prompt_tokens")) or 0 for item in counts),
        sum(as_int(item.get("completion_tokens")) or 0 for item in counts),
        sum(as_int(item.get("cache_read_tokens")) or 0 for item in counts),
    )
    return tokens, sum(as_float(item.get("accumulated_cost")) or 0.0 for item in used)


_HEADER_KEYS = (
    "instance_id",
    "issue",
    "instruction",
    "metadata",
    "metrics",
    "error",
    "test_result",
    "git_patch",
    "success",
)


def header_of(line: dict[str, Json], id: str) -> Run:
    """Return the header of a run that is one object: a line of a benchmark's or the resolver's output."""
    metadata = as_dict(line.get("metadata"))
    metrics = as_dict(line.get("metrics"))
    usage = as_dict(metrics.get("accumulated_token_usage"))
    result = as_dict(line.get("test_result"))
    solved = as_bool(first(as_dict(result.get("report")), "resolved"))
    success = as_bool(line.get("success"))
    solved = success if solved is None else solved
    config = as_dict(metadata.get("llm_config") or metadata.get("llm"))
    return Run(
        "openhands",
        "output.jsonl",
        id=id,
        task=as_str(line.get("instance_id")) or _issue(line),
        model=as_str(config.get("model")),
        agent=as_str(first(metadata, "agent_class")) or "openhands",
        verdict="" if solved is None else "solved" if solved else "unsolved",
        exit_status=as_text(line.get("error")),
        submission=as_text(first(result, "git_patch") or line.get("git_patch")),
        tokens=Tokens(
            as_int(usage.get("prompt_tokens")),
            as_int(usage.get("completion_tokens")),
            as_int(usage.get("cache_read_tokens")),
        ),
        cost=as_float(metrics.get("accumulated_cost")),
        prompt=as_text(line.get("instruction")),
        derived=frozenset({"verdict"} if success is not None else ()),
    )


def _issue(line: dict[str, Json]) -> str:
    issue = as_dict(line.get("issue"))
    return f"{as_str(issue.get('owner'))}/{as_str(issue.get('repo'))}#{as_str(issue.get('number'))}" if issue else ""


def _is_event(value: Json) -> bool:
    event = as_dict(value)
    if "kind" in event:
        return {"id", "timestamp", "source"} <= event.keys()
    return (
        isinstance(event.get("action"), str | None)
        and isinstance(event.get("observation"), str | None)
        and (
            bool({"action", "observation"} & event.keys())
            and bool({"source", "args", "extras", "cause", "timestamp"} & event.keys())
        )
    )


def _is_output(value: dict[str, Json]) -> bool:
    history = value.get("history")
    if (
        "history" not in value
        and "messages" not in value
        and ({"instance_id", "test_result"} <= value.keys() or {"instance_id", "instruction"} <= value.keys())
    ):
        return True
    known = {"instance_id", "instruction", "git_patch", "test_result", "issue"} & value.keys()
    return isinstance(history, list | None) and bool(known) and "history" in value


class OpenHands:
    """Told by events that name their source, or by lines with a `history` and an instance or issue."""

    name = "openhands"
    not_shown: Sequence[NotShown] = (
        NotShown(("source", "args.is_confirmed", "is_confirmed", "args.confirmation_state", "security_risk"),
                 "who acted, and who agreed"),
        NotShown(("message",), "the event in OpenHands' own words, made from what is shown"),
        NotShown(("tool_call_metadata", "tool_call", "llm_metrics", "responses_reasoning_item"),
                 "the provider's own form of the reply; what it says, thinks and calls is shown"),
        NotShown(("args.translated_ipython_code", "args.kernel_init_code", "kernel_init_code", "args.impl_source",
                  "extras.impl_source"),
                 "how OpenHands carried out a call"),
        NotShown(("extras.metadata", "observation.metadata", "observation.full_output_save_dir"),
                 "the shell that a command ran in"),
        NotShown(("extras.old_content", "observation.old_content"), "files as they were before an edit"),
        NotShown(("tools",), "what the model could call, not what it called"),
        NotShown(("metadata", "instance", "metrics", "runtime_runs"), "settings, the data set's row, and counts",
                 of_run=True),
    )  # fmt: skip

    def sniff(self, probe: Probe) -> float:
        """Return how sure it is."""
        return 0.9 if self._shape(probe) else 0.0

    def _shape(self, probe: Probe) -> Shape | None:
        if probe.parts:
            return "folder" if _is_event(probe.object) else None
        opening = probe.array[:3]
        if opening and (
            any(_is_event(item) for item in opening) or any(_is_event(item) for item in as_list(opening[0]))
        ):
            return "array"
        if any(_is_event(line) for line in probe.lines[:20]):
            return "lines"
        if _is_output(probe.object) or any(_is_output(line) for line in probe.lines[:3]):
            return "runs"
        history = objects(probe.object.get("history"))
        return "object" if history and _is_event(history[0]) else None

    def runs(self, probe: Probe) -> Iterator[RunEntry]:
        """List the runs of an output file, else the one run."""
        shape = self._shape(probe) or "array"
        if shape != "runs":
            yield RunEntry("", _Reader(probe, shape).header())
            return
        for id, record in _named(probe):
            yield RunEntry(id, header_of(_proper(record.fields), id))

    def open(self, probe: Probe, id: str) -> _Reader:
        """Open a run by its id, the first without one."""
        shape = self._shape(probe) or "array"
        if shape == "runs":
            for known, record in _named(probe):
                if known == id or not id:
                    blob = SliceBlob(probe.blob, record.start, record.end, probe.blob.name, origin=record.start)
                    return _Reader(Probe(blob, name=probe.name), "runs", known)
        if id:
            raise RunFileError(f"{probe.name or 'The file'} has no run #{id}.", hint="List it to see the ids.")
        return _Reader(probe, shape)


def _proper(fields: Json) -> dict[str, Json]:
    """Return what a header is made from, Latin-1 undone in its texts."""
    members = {} if is_deep(fields) else as_dict(fields)
    return {key: item if key == "history" else recoded(item) for key, item in members.items()}


def _named(probe: Probe) -> Iterator[tuple[str, Record]]:
    names = RunNames()
    indented = len(probe.lines) == 0
    records = object_lines(probe) if indented else lines(probe.blob, probe.start)
    for number, record in enumerate(records, 1):
        fields = as_dict(record.fields)
        name = as_str(fields.get("instance_id")) or _issue(fields) or f"line-{number}"
        yield names.name(name), record


def object_lines(probe: Probe) -> Iterator[Record]:
    """Yield the whole text as one record: an output line that somebody saved indented."""
    fields, damage = load_record(probe.blob, probe.start, probe.blob.size)
    yield Record(probe.start, probe.blob.size, fields, damage)


FORMAT = OpenHands()
