"""opencode's exports and storage files: each assistant message is a reply with its calls and results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress

from gistpoint.sessions.formats.shared.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.records.building import StepBuilder, Tally, any_error, asking_kind, duration
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
from gistpoint.sessions.records.record import (
    Record,
    attached,
    first_in,
    of_type,
    records_in,
    texts_of,
    times_of,
    words_of,
)
from gistpoint.sessions.records.scanning import RawRecord
from gistpoint.sessions.records.usage import counted_apart
from gistpoint.sessions.records.values import (
    as_dict,
    as_list,
    first_known,
    joined,
)


class _Reader(RunReader):
    format = "opencode"
    arrays = ("messages",)

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._tally = Tally()
        self._end = ""
        self._links: list[str] = []

    def place(self, fields: Json, step_count: int) -> int:
        message = Record(fields)
        info = message.inner("info")
        self._tally.add_time(info.time("time", "created"))
        self._tally.add_time(info.time("time", "completed"))
        if info.get("role") == "assistant":
            self._tally.add_usage(_tokens(info), info.number("cost"))
            self._tally.add_model(info.word("modelID"))
            self._end = info.word("error", "name") or info.word("finish")
            self._links += _links(message.objects("parts"))
        return step_count

    def header(self) -> Run:
        info, tally = Record(self.fact("info")), self._tally
        opening = records_in(self.probe.object.get("messages"))
        return Run(
            self.format,
            info.word("version"),
            id=info.word("id"),
            task=info.word("title"),
            model=tally.model or next(filter(None, words_of(opening, "info", "modelID")), ""),
            agent="opencode",
            exit_status=self._end,
            tokens=tally.tokens,
            cost=tally.cost or None,  # 0 for usage that a subscription covers
            started=first_known((tally.started, info.time("time", "created"))),
            duration_s=tally.duration_s,
            links=tuple(self._links),
            extra=info.kept("directory", "summary", "parentID"),
            derived=frozenset({"tokens", "cost", "duration_s", "exit_status"}),
        )

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        message = Record(raws[0].value)
        info, parts = message.inner("info"), message.objects("parts")
        return (
            _reply_step(index, raws, info, parts)
            if info.get("role") == "assistant"
            else _request_step(index, raws, info, parts)
        )


class _StoredReader(_Reader):
    """The reader of a session in opencode's storage: a file for the session, each message and each part."""

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
        record = Record(fields)
        if not record.has("messageID"):
            self._steps[record.word("id")] = step_count
            return super().place(_as_exported(fields), step_count)
        self._links += _links([record])
        return self._steps.get(record.word("messageID"), step_count)

    def completed(self, value: Json) -> Json:
        return _as_exported(value)

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        records = [as_dict(raw.value) for raw in raws]
        info = next((record["info"] for record in records if "info" in record), {})
        parts = [part for record in records for part in as_list(record.get("parts"))]
        return super().step(index, [replace(raws[0], value={"info": info, "parts": parts}), *raws[1:]])


def _as_exported(value: Json) -> Json:
    """Return a message's or part's file in the form of an export's message."""
    return {"parts": [value]} if "messageID" in as_dict(value) else {"info": value}


def _tokens(info: Record) -> Tokens:
    counts = info.inner("tokens")
    return counted_apart(
        counts.whole("input"),
        counts.whole("output"),
        read=counts.whole("cache", "read"),
        written=counts.whole("cache", "write"),
        reasoning=counts.whole("reasoning"),
        whole=counts.whole("total"),
    )


def _links(parts: list[Record]) -> list[str]:
    """Return the file names of exports of the sessions that calls started; they may be next to this file."""
    return [f"{session}.json" for session in words_of(parts, "state", "metadata", "sessionId") if session]


def _texts(parts: list[Record], kind: str) -> list[str]:
    # Synthetic parts repeat, for the model, a file or a result that another part contains.
    return [part.text("text") for part in of_type(parts, kind) if not part.get("synthetic")]


def _request_step(index: int, raws: Sequence[Raw], info: Record, parts: list[Record]) -> Step:
    files = [part.first_word("filename", "url") for part in of_type(parts, "file")]
    kind = StepKind.CONTEXT if of_type(parts, "compaction") else asking_kind(index, 1)
    return (
        StepBuilder(index, raws, Actor.USER, kind, info.word("role"))
        .text(*_texts(parts, "text"), *(f"[attached: {_name(name)}]" for name in files))
        .span(info.time("time", "created"))
        .derived("kind")
        .id(info.word("id"))
        .build()
    )


def _name(name: str) -> str:
    return name.partition(";")[0] if name.startswith("data:") else name


def _reply_step(index: int, raws: Sequence[Raw], info: Record, parts: list[Record]) -> Step:
    tools = of_type(parts, "tool")
    calls = tuple(map(_call, tools))
    results = [_result(tool) for tool in tools if tool.get("state", "status") in ("completed", "error")]
    error = info.inner("error")
    retried = [part.text("error", "message") or "retried" for part in of_type(parts, "retry")]
    # A failed call changed nothing, whatever its arguments and its diff contain.
    succeeded = [tool.get("state", "status") != "error" for tool in tools]
    diffs = texts_of(compress(tools, succeeded), "state", "metadata", "diff")
    shown = {edit.path for edit in edits_of(tuple(compress(calls, succeeded)))}
    changed = [path for part in of_type(parts, "patch") for path in part.words("files") if path not in shown]
    kind = StepKind.ERROR if error else kind_of(calls)
    return (
        StepBuilder(
            index, raws, Actor.AGENT, StepKind.CONTEXT if info.truth("summary") else kind, "assistant"
        )
        .thought(*_texts(parts, "reasoning"))
        .text(
            *_texts(parts, "text"),
            *retried,
            joined([error.word("name"), error.text("data", "message")], ": "),
        )
        .calls(calls)
        .results(results)
        .edits([*edits_of(calls), *map(FileEdit, changed)])
        .diffs(diffs)
        .span(info.time("time", "created"), info.time("time", "completed"))
        .replied(_replied(info, parts), asked=info.time("time", "created"))
        .spent(_tokens(info), info.number("cost") or None)
        .model(info.word("modelID"))
        .state(info.inner("path").kept("cwd"))
        .flag_if(error or any_error(results), "error")
        .derived("kind")
        .links(_links(parts))
        .id(info.word("id"))
        .build()
    )


def _replied(info: Record, parts: list[Record]) -> list[float | None]:
    """Return times by which parts of the reply had arrived; its tools run before the message ends."""
    begun = [at for at in times_of(of_type(parts, "tool"), "state", "time", "start") if at is not None]
    if not begun:
        return [info.time("time", "completed")]
    return [*times_of(of_type(parts, "text", "reasoning"), "time", "end"), min(begun)]


def _call(part: Record) -> RunCall:
    state = part.inner("state")
    # `raw` is the text of a call that broke off before its arguments were complete.
    arguments = state.get("input") if state.has("input") else state.get("raw")
    return call_of_function({"id": part.get("callID"), "name": part.get("tool"), "arguments": arguments})


def _result(part: Record) -> Result:
    state = part.inner("state")
    files = [item.first_word("filename", "mime") for item in state.objects("attachments")]
    return Result(
        part.word("callID"),
        joined([state.first_text("output", "error"), *attached(files)]),
        state.get("status") == "error",
        state.whole("metadata", "exit"),
        duration(state.time("time", "start"), state.time("time", "end")),
    )


class Opencode(SingleRun):
    """Recognised by opencode's name, the id of a session or of a first message, or a file of its storage."""

    name = "opencode"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            (
                "parts.metadata",
                "parts.snapshot",
                "parts.state.metadata",
                "parts.state.attachments",
                "parts.url",
            ),
            "the provider's own ids, snapshots of the folder, and copies of a result; a diff is in the step",
        ),
        NotShown(
            (
                "parts.tokens",
                "parts.reason",
                "parts.source",
                "parts.mime",
                "parts.sessionID",
                "parts.messageID",
            ),
            "a step's counts, which the message also has, and the places in the text where a file is named",
        ),
        NotShown(
            (
                "info.summary",
                "info.system",
                "info.tools",
                "info.path",
                "info.mode",
                "info.agent",
                "info.variant",
                "info.providerID",
                "info.parentID",
                "info.sessionID",
                "info.model",
                "info.finish",
            ),
            "settings of a message, and the changes up to it, which its steps have",
        ),
        NotShown(
            ("info",), "facts that the header shows: name, folder and times of the session", of_run=True
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        whole = Record(probe.object)
        is_of_database = whole.get("program") == "opencode" and whole.has("messages")
        if is_of_database or whole.word("info", "id").startswith("ses_"):
            return 1.0
        # A session file in opencode's storage is opened with its message files, which are in other folders.
        if probe.parts and whole.word("id").startswith("ses_"):
            return 1.0
        opening = first_in(whole.get("messages"))
        return 1.0 if opening.has("parts") and opening.word("info", "id").startswith("msg_") else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the session."""
        return _StoredReader(probe) if probe.parts else _Reader(probe)


FORMAT = Opencode()
