"""opencode's exports, and the files of its storage: a message of the assistant is one reply, with calls and results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress

from gistpoint.sessions.formats.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.records.building import Tally
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun
from gistpoint.sessions.records.loading import load_record
from gistpoint.sessions.records.model import (
    Actor,
    FileEdit,
    Json,
    NotShown,
    Result,
    Run,
    RunCall,
    Step,
    StepKind,
    Tokens,
)
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.scanning import RawRecord
from gistpoint.sessions.records.values import (
    as_bool,
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    first,
    joined,
    objects,
    total,
    when,
)


class _Reader(RunReader):
    format = "opencode"
    arrays = ("messages",)

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._totals = Tally()
        self._times: list[float] = []
        self._model = self._end = ""
        self._links: list[str] = []

    def place(self, fields: Json, step_count: int) -> int:
        message = as_dict(fields)
        info = as_dict(message.get("info"))
        span = as_dict(info.get("time"))
        for at in (when(span.get("created")), when(span.get("completed"))):
            if at is not None:
                self._times = [min(at, *self._times), max(at, *self._times)] if self._times else [at, at]
        if info.get("role") == "assistant":
            self._totals.spend(_tokens(info), as_float(info.get("cost")))
            self._model = self._model or as_str(info.get("modelID"))
            self._end = as_str(as_dict(info.get("error")).get("name")) or as_str(info.get("finish"))
            self._links += _links(objects(message.get("parts")))
        return step_count

    def header(self) -> Run:
        info = as_dict(self.fact("info"))
        opening = [as_dict(item.get("info")) for item in objects(self.probe.object.get("messages"))]
        model = self._model or next((as_str(item.get("modelID")) for item in opening if item.get("modelID")), "")
        times = self._times or [at for at in (when(as_dict(info.get("time")).get("created")),) if at is not None]
        return Run(
            self.format,
            as_str(info.get("version")),
            id=as_str(info.get("id")),
            task=as_str(info.get("title")),
            model=model,
            agent="opencode",
            exit_status=self._end,
            tokens=self._totals.tokens,
            cost=self._totals.cost or None,  # 0 for all that a subscription pays
            started=min(times, default=None),
            duration_s=self._times[1] - self._times[0] if self._times else None,
            links=tuple(self._links),
            extra={key: info[key] for key in ("directory", "summary", "parentID") if info.get(key)},
            derived=frozenset({"tokens", "cost", "duration_s", "exit_status"}),
        )

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        message = as_dict(raws[0].value)
        info, parts = as_dict(message.get("info")), objects(message.get("parts"))
        return _reply(index, raws, info, parts) if info.get("role") == "assistant" else _asked(index, raws, info, parts)


class _StoredReader(_Reader):
    """Reads a session of the storage: a file for itself, for each message, and for each part of one."""

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self.blobs = probe.parts[1:]
        self.facts["info"] = load_record(probe.blob, 0, probe.blob.size)[0]
        self._steps: dict[str, int] = {}

    def records(self) -> Iterator[RawRecord]:
        for member, blob in enumerate(self.blobs):
            value, damage = load_record(blob, 0, blob.size)
            if damage:
                self.warnings.append(f"{blob.name} {damage}.")
            yield RawRecord(0, blob.size, value, damage, member)

    def fact(self, key: str) -> Json:
        return self.facts[key] if key in self.facts else dict(self.probe.object)

    def place(self, fields: Json, step_count: int) -> int:
        record = as_dict(fields)
        if "messageID" not in record:
            self._steps[as_str(record.get("id"))] = step_count
            return super().place(_as_exported(fields), step_count)
        self._links += _links([record])
        return self._steps.get(as_str(record["messageID"]), step_count)

    def completed(self, value: Json) -> Json:
        return _as_exported(value)

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        records = [as_dict(raw.value) for raw in raws]
        info = next((record["info"] for record in records if "info" in record), {})
        parts = [part for record in records for part in as_list(record.get("parts"))]
        return super().step(index, [replace(raws[0], value={"info": info, "parts": parts}), *raws[1:]])


def _as_exported(value: Json) -> Json:
    """Return the file of a message or of a part as a message of an export has it."""
    return {"parts": [value]} if "messageID" in as_dict(value) else {"info": value}


def _tokens(info: dict[str, Json]) -> Tokens:
    counts = as_dict(info.get("tokens"))
    cache = as_dict(counts.get("cache"))
    read = as_int(cache.get("read"))
    prompt = total([as_int(counts.get("input")), read, as_int(cache.get("write"))])
    return Tokens(prompt, as_int(counts.get("output")), read, as_int(counts.get("reasoning")))


def _links(parts: list[dict[str, Json]]) -> list[str]:
    """Return the exports of the sessions that calls started, if they are beside this one."""
    metadata = [as_dict(as_dict(part.get("state")).get("metadata")) for part in parts]
    return [f"{as_str(item['sessionId'])}.json" for item in metadata if item.get("sessionId")]


def _text(parts: list[dict[str, Json]], *types: str) -> str:
    return joined(
        as_text(part.get("text")) for part in parts if part.get("type") in types and not part.get("synthetic")
    )


def _asked(index: int, raws: Sequence[Raw], info: dict[str, Json], parts: list[dict[str, Json]]) -> Step:
    condensed = any(part.get("type") == "compaction" for part in parts)
    files = [as_str(first(part, "filename", "url")) for part in parts if part.get("type") == "file"]
    kind = StepKind.CONTEXT if condensed else StepKind.TASK if index == 0 else StepKind.MESSAGE
    return Step(
        index, Actor.USER, kind, raws[0].range, tuple(raw.range for raw in raws), label=as_str(info.get("role")),
        text=joined([_text(parts, "text"), *(f"[attached: {_name(name)}]" for name in files)]),
        started=when(as_dict(info.get("time")).get("created")), id=as_str(info.get("id")),
        derived=frozenset({"kind"}),
    )  # fmt: skip


def _name(name: str) -> str:
    return name.partition(";")[0] if name.startswith("data:") else name


def _reply(index: int, raws: Sequence[Raw], info: dict[str, Json], parts: list[dict[str, Json]]) -> Step:
    tools = [part for part in parts if part.get("type") == "tool"]
    calls = tuple(_call(part) for part in tools)
    results = tuple(_result(part) for part in tools
                    if as_dict(part.get("state")).get("status") in ("completed", "error"))  # fmt: skip
    error = as_dict(info.get("error"))
    told = as_text(as_dict(error.get("data")).get("message"))
    retried = [as_text(as_dict(part.get("error")).get("message")) or "retried"
               for part in parts if part.get("type") == "retry"]  # fmt: skip
    failed = bool(error) or any(result.is_error for result in results)
    span = as_dict(info.get("time"))
    states = [as_dict(part.get("state")) for part in tools]
    went = [state.get("status") != "error" for state in states]
    diffs = [as_text(as_dict(state.get("metadata")).get("diff")) for state in compress(states, went)]
    changed = [as_str(path) for part in parts if part.get("type") == "patch" for path in as_list(part.get("files"))]
    shown = {edit.path for edit in edits_of(tuple(compress(calls, went)))}
    kind = StepKind.CONTEXT if as_bool(info.get("summary")) else StepKind.ERROR if error else kind_of(calls)
    return Step(
        index, Actor.AGENT, kind, raws[0].range, tuple(raw.range for raw in raws), label="assistant",
        thought=_text(parts, "reasoning"),
        text=joined([_text(parts, "text"), *retried, joined([as_str(error.get("name")), told], ": ")]),
        calls=calls, results=results, started=when(span.get("created")), ended=when(span.get("completed")),
        tokens=_tokens(info), cost=as_float(info.get("cost")) or None, model=as_str(info.get("modelID")),
        state={"cwd": as_dict(info.get("path")).get("cwd")} if as_dict(info.get("path")).get("cwd") else {},
        diff="\n".join(diff for diff in diffs if diff) or None,
        edits=(*edits_of(calls), *(FileEdit(path) for path in changed if path not in shown)),
        links=tuple(_links(parts)), flags=frozenset({"error"} if failed else ()), derived=frozenset({"kind"}),
        id=as_str(info.get("id")),
    )  # fmt: skip


def _call(part: dict[str, Json]) -> RunCall:
    state = as_dict(part.get("state"))
    arguments = state.get("input", state.get("raw"))
    return call_of_function({"id": part.get("callID"), "name": part.get("tool"), "arguments": arguments})


def _result(part: dict[str, Json]) -> Result:
    state = as_dict(part.get("state"))
    metadata, span = as_dict(state.get("metadata")), as_dict(state.get("time"))
    begun, ended = when(span.get("start")), when(span.get("end"))
    files = [as_str(first(item, "filename", "mime")) for item in objects(state.get("attachments"))]
    text = joined([as_text(first(state, "output", "error")), *(f"[attached: {name}]" for name in files if name)])
    return Result(
        as_str(part.get("callID")), text, state.get("status") == "error", as_int(metadata.get("exit")),
        None if begun is None or ended is None else ended - begun,
    )  # fmt: skip


class Opencode(SingleRun):
    """Recognised by an `info` with the id of a session and `messages`, or by a session's file beside its messages."""

    name = "opencode"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("parts.metadata", "parts.snapshot", "parts.state.metadata", "parts.state.attachments", "parts.url"),
                 "the provider's own ids, snapshots of the folder, and copies of a result; a diff is in the step"),
        NotShown(("parts.tokens", "parts.reason", "parts.source", "parts.mime", "parts.sessionID",
                  "parts.messageID"),
                 "counts of a step, which the message has too, and where in the text a file is named"),
        NotShown(("info.summary", "info.system", "info.tools", "info.path", "info.mode", "info.agent", "info.variant",
                  "info.providerID", "info.parentID", "info.sessionID", "info.model", "info.finish"),
                 "settings of a message, and the changes up to it, which its steps have"),
        NotShown(("info",), "what the header has: name, folder and times of the session", of_run=True),
    )  # fmt: skip

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        opening = as_dict((as_list(probe.object.get("messages")) or [None])[0])
        if as_str(as_dict(probe.object.get("info")).get("id")).startswith("ses_"):
            return 1.0
        if probe.parts and as_str(probe.object.get("id")).startswith("ses_"):
            return 1.0
        return 1.0 if as_str(as_dict(opening.get("info")).get("id")).startswith("msg_") and "parts" in opening else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Open the session."""
        return _StoredReader(probe) if probe.parts else _Reader(probe)


FORMAT = Opencode()
