"""Sessions of Qwen Code: lines that name their parents, so that a rewind leaves a branch behind."""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.sessions.formats.calls import edits_of, kind_of
from gistpoint.sessions.formats.google_parts import google_parts, google_tokens, shown_diff
from gistpoint.sessions.formats.messages import Parts
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun, unknown_step
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.values import (
    as_dict,
    as_str,
    as_text,
    dumped,
    first,
    is_naive,
    joined,
    objects,
    when,
)

_TYPES = frozenset({"user", "assistant", "tool_result", "system"})
_CONTEXTS = frozenset({"chat_compression", "rewind"})


class _Reader(RunReader):
    format = "qwen-code"
    in_lines = True

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._calls: dict[str, int] = {}
        self._steps: dict[str, int] = {}
        self._replies: dict[str, int] = {}
        self._parents: dict[str, str] = {}
        self._taken_back: set[int] = set()
        self._tokens: dict[str, Tokens] = {}
        self._seen: dict[str, Json] = {}
        self._times: list[float] = []

    def place(self, fields: Json, step_count: int) -> int:
        record = as_dict(fields)
        self._learn(record)
        identity = as_str(record.get("uuid"))
        parts = objects(as_dict(record.get("message")).get("parts"))
        if record.get("type") == "system" and record.get("subtype") == "rewind":
            self._take_back(as_str(record.get("parentUuid")))
        if record.get("type") == "tool_result":
            owners = [self._calls.get(_id(part, "functionResponse")) for part in parts]
            owners.append(self._calls.get(as_str(as_dict(record.get("toolCallResult")).get("callId"))))
            step = next((owner for owner in owners if owner is not None), step_count)
        elif record.get("type") == "assistant" and identity:  # a reply is written again as it goes on
            step = self._replies.setdefault(identity, step_count)
        elif record.get("subtype") == "ui_telemetry" and not _failure(record):
            step = self._steps.get(as_str(record.get("parentUuid")), step_count)
        else:
            step = step_count
        self._calls.update({_id(part, "functionCall"): step for part in parts if "functionCall" in part})
        if identity:
            self._steps[identity] = step
            self._parents[identity] = as_str(record.get("parentUuid"))
        return step

    def had_a_step(self, fields: Json) -> bool:
        record = as_dict(fields)
        return record.get("subtype") == "ui_telemetry" and not _failure(record)

    def _take_back(self, target: str) -> None:
        """Mark every step that does not lead to `target`."""
        kept = set[int]()
        while target in self._steps:
            kept.add(self._steps[target])
            target = self._parents.pop(target, "")
        self._taken_back |= set(self._steps.values()) - kept

    def _learn(self, record: dict[str, Json]) -> None:
        for key in ("sessionId", "version", "cwd", "gitBranch"):
            if record.get(key):
                self._seen.setdefault(key, record[key])
        if record.get("model"):
            self._seen["model"] = record["model"]
        title = as_dict(record.get("systemPayload")).get("customTitle")
        if title:
            self._seen["title"] = title
        usage = as_dict(record.get("usageMetadata"))
        if usage:
            self._tokens[as_str(record.get("uuid"))] = google_tokens(usage)
        at = when(record.get("timestamp"))
        if at is not None:
            self._times = [min(at, *self._times), max(at, *self._times)] if self._times else [at, at]

    def said_by_user(self, record: dict[str, Json]) -> str:
        return joined(_parts_of(record).texts) if record.get("type") == "user" else ""

    def header(self) -> Run:
        seen = dict(self._seen)
        for record in () if seen else self.probe.lines:
            known = {key: record[key] for key in ("sessionId", "version", "cwd", "model") if record.get(key)}
            seen = {**known, **seen}
        return Run(
            self.format, as_str(seen.get("version")), id=as_str(seen.get("sessionId")),
            task=self.request,
            model=as_str(seen.get("model")), agent="qwen-code", tokens=sum(self._tokens.values(), start=Tokens()),
            started=self._times[0] if self._times else None,
            duration_s=self._times[1] - self._times[0] if self._times else None,
            extra={key: as_str(seen[key]) for key in ("cwd", "gitBranch", "title") if key in seen},
            derived=frozenset({"task", "tokens", "duration_s"}),
        )  # fmt: skip

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        records = [as_dict(raw.value) for raw in raws]
        if records[0].get("type") in ("assistant", "tool_result"):
            return _reply_step(index, raws, records, taken_back=index in self._taken_back)
        return _other_step(index, raws, records[0], taken_back=index in self._taken_back)


def _id(part: dict[str, Json], key: str) -> str:
    return as_str(as_dict(part.get(key)).get("id"))


def _failure(record: dict[str, Json]) -> str:
    """Return the message of a failed API call; empty if the record has none."""
    event = as_dict(as_dict(record.get("systemPayload")).get("uiEvent"))
    failed = as_str(event.get("event.name")).endswith(".api_error")
    return (as_text(event.get("error_message")) or "error") if failed else ""


def _parts_of(record: dict[str, Json]) -> Parts:
    return google_parts(as_dict(record.get("message")).get("parts"))


def _reply_step(index: int, raws: Sequence[Raw], records: list[dict[str, Json]], *, taken_back: bool) -> Step:
    replies = [record for record in records if record.get("type") == "assistant"]
    answers = [record for record in records if record.get("type") == "tool_result"]
    parts = [_parts_of(record) for record in replies]
    calls = tuple(
        {call.id or number: call for number, call in enumerate(c for part in parts for c in part.calls)}.values()
    )
    results = tuple(result for record in answers for result in _results(record))
    outcomes = [as_dict(record.get("toolCallResult")) for record in answers]
    shown = [shown_diff(outcome.get("resultDisplay")) for outcome in outcomes if not _has_failed(outcome)]
    times = [at for at in (when(record.get("timestamp")) for record in records) if at is not None]
    told = next((record for record in reversed(replies) if record.get("usageMetadata")), {})
    flags = {"error"} if any(result.is_error or result.returncode for result in results) else set[str]()
    flags |= ({"taken back"} if taken_back else set()) | (set() if replies else {"unpaired"})
    return Step(
        index, Actor.AGENT if replies else Actor.ENVIRONMENT, kind_of(calls) if replies else StepKind.TOOL,
        raws[0].range, tuple(raw.range for raw in raws), label=_label(records[0]),
        thought=joined(dict.fromkeys(text for part in parts for text in part.thought)),
        text=joined(dict.fromkeys(text for part in parts for text in part.texts)), calls=calls, results=results,
        started=min(times, default=None), ended=max(times, default=None), naive=is_naive(records[0].get("timestamp")),
        tokens=google_tokens(as_dict(told.get("usageMetadata"))),
        model=as_str(next((record["model"] for record in replies if record.get("model")), "")),
        diff="\n".join(diff for diff, _ in shown if diff) or None,
        edits=tuple(edit for _, edits in shown for edit in edits) or edits_of(calls),
        flags=frozenset(flags), derived=frozenset({"kind", "ended"}), id=as_str(records[0].get("uuid")),
    )  # fmt: skip


def _has_failed(outcome: dict[str, Json]) -> bool:
    return outcome.get("status") in ("error", "cancelled") or bool(outcome.get("error"))


def _results(record: dict[str, Json]) -> list[Result]:
    """Return the answers in a record; the program says beside them how the call went."""
    outcome = as_dict(record.get("toolCallResult"))
    failed = True if _has_failed(outcome) else None
    display = outcome.get("resultDisplay")
    found = _parts_of(record).results
    if not found:
        return [Result(as_str(outcome.get("callId")), display if isinstance(display, str) else "", failed)]
    return [Result(one.call_id, one.text, one.is_error or failed, one.returncode) for one in found]


def _label(record: dict[str, Json]) -> str:
    return as_str(record.get("subtype")) or as_str(record.get("type"))


def _other_step(index: int, raws: Sequence[Raw], record: dict[str, Json], *, taken_back: bool) -> Step:
    name, subtype = as_str(record.get("type")), as_str(record.get("subtype"))
    payload = record.get("systemPayload")
    parts = _parts_of(record)
    actor, kind = Actor.SYSTEM, StepKind.CONTEXT if subtype in _CONTEXTS else StepKind.STATE
    text = joined([*parts.texts, *parts.thought]) or (dumped(payload) if payload else "")
    if name == "user":
        kind = StepKind.NOTE if subtype == "notification" else StepKind.TASK if index < 3 else StepKind.MESSAGE
        actor = Actor.SYSTEM if subtype == "notification" else Actor.USER
    elif _failure(record):
        kind, text = StepKind.ERROR, _failure(record)
    elif name not in _TYPES:
        return unknown_step(index, raws, name or "record", dumped(raws[0].value))
    return Step(
        index, actor, kind, raws[0].range, tuple(raw.range for raw in raws), label=_label(record),
        text=text, calls=tuple(parts.calls), results=tuple(parts.results), started=when(record.get("timestamp")),
        naive=is_naive(record.get("timestamp")),
        flags=frozenset(({"taken back"} if taken_back else set()) | ({"error"} if kind is StepKind.ERROR else set())),
        derived=frozenset({"kind"}), id=as_str(first(record, "uuid")),
        state={"title": as_text(as_dict(payload)["customTitle"])} if as_dict(payload).get("customTitle") else {},
    )  # fmt: skip


class QwenCode(SingleRun):
    """Recognised by lines that name their parents and hold messages in parts."""

    name = "qwen-code"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("cwd", "version", "gitBranch", "subtype"), "where and how the program ran, and what a record is"),
        NotShown(("usageMetadata",), "counts of the provider; the tokens are shown"),
        NotShown(("toolCallResult.status",), "how a call went; the result's flag says it"),
        NotShown(("toolCallResult.resultDisplay.originalContent", "toolCallResult.resultDisplay.newContent"),
                 "files before and after an edit; the diff is shown"),
    )  # fmt: skip

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        for record in probe.lines[:20]:
            named = {"uuid", "parentUuid", "sessionId"} <= record.keys() and as_str(record.get("type")) in _TYPES
            if named and (
                "parts" in as_dict(record.get("message")) or {"systemPayload", "toolCallResult"} & record.keys()
            ):
                return 1.0
        return 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Open the session."""
        return _Reader(probe)


FORMAT = QwenCode()
