"""Sessions of Qwen Code: each line names its parent, so a rewind leaves a branch behind."""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.sessions.formats.gemini.google_parts import google_parts, google_tokens, shown_diff
from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.formats.shared.message_parts import Parts, merged
from gistpoint.sessions.records.building import StepBuilder, Tally, any_failed, asking_kind, error_if
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun, unknown_step
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record, of_type, records_of, times_of, words_of
from gistpoint.sessions.records.values import (
    as_dict,
    as_str,
    as_text,
    dumped,
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
        self._tally = Tally()

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
        # A reply is written again as it grows.
        elif record.get("type") == "assistant" and identity:
            step = self._replies.setdefault(identity, step_count)
        # Telemetry joins the step of its parent; a failure that is recorded nowhere else is a step.
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
        """Mark every step that does not lead to the record `target` as undone."""
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
            self._tokens[as_str(record.get("uuid"))] = _tokens(usage)
        self._tally.add_time(when(record.get("timestamp")))

    def user_text(self, record: dict[str, Json]) -> str:
        return _parts_of(Record(record)).text if record.get("type") == "user" else ""

    def header(self) -> Run:
        seen = dict(self._seen)
        for record in () if seen else self.probe.lines:
            known = {key: record[key] for key in ("sessionId", "version", "cwd", "model") if record.get(key)}
            seen = {**known, **seen}
        return Run(
            self.format,
            as_str(seen.get("version")),
            id=as_str(seen.get("sessionId")),
            task=self.request,
            model=as_str(seen.get("model")),
            agent="qwen-code",
            tokens=sum(self._tokens.values(), start=Tokens()),
            started=self._tally.started,
            duration_s=self._tally.duration_s,
            extra={key: as_str(seen[key]) for key in ("cwd", "gitBranch", "title") if key in seen},
            derived=frozenset({"task", "tokens", "duration_s"}),
        )

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        records = records_of(raws)
        if records[0].get("type") in ("assistant", "tool_result"):
            return _reply_step(index, raws, records, taken_back=index in self._taken_back)
        return _other_step(index, raws, records[0], taken_back=index in self._taken_back)


def _id(part: dict[str, Json], key: str) -> str:
    return as_str(as_dict(part.get(key)).get("id"))


def _tokens(usage: dict[str, Json]) -> Tokens:
    # Most of its models are asked through OpenAI's API, which counts thoughts within the completion.
    return google_tokens(usage, thoughts_within=True)


def _failure(record: dict[str, Json]) -> str:
    """Return the message of a failed API call; empty if the record has none."""
    event = as_dict(as_dict(record.get("systemPayload")).get("uiEvent"))
    failed = as_str(event.get("event.name")).endswith(".api_error")
    return (as_text(event.get("error_message")) or "error") if failed else ""


def _parts_of(record: Record) -> Parts:
    return google_parts(record.get("message", "parts"))


def _reply_step(index: int, raws: Sequence[Raw], records: list[Record], *, taken_back: bool) -> Step:
    replies = of_type(records, "assistant")
    answers = of_type(records, "tool_result")
    parts = merged(map(_parts_of, replies))
    # A reply is written again as it grows: the last version of a call has all of its arguments.
    calls = tuple({call.id or number: call for number, call in enumerate(parts.calls)}.values())
    results: list[Result] = []
    for answer in answers:
        results += _results(answer)
    outcomes = [answer.inner("toolCallResult") for answer in answers]
    changes = [shown_diff(outcome.get("resultDisplay")) for outcome in outcomes if not _has_failed(outcome)]
    edits = [edit for _, made in changes for edit in made]
    counted = [usage for reply in replies if (usage := reply.inner("usageMetadata"))]
    builder = StepBuilder(index, raws, Actor.AGENT, kind_of(calls), _label(records[0]))
    if not replies:
        builder = StepBuilder(index, raws, Actor.ENVIRONMENT, StepKind.TOOL, _label(records[0])).flag(
            "unpaired"
        )
    return (
        builder.thought(*dict.fromkeys(parts.thought))
        .text(*dict.fromkeys(parts.texts))
        .calls(calls)
        .results(results)
        .edits(edits or edits_of(calls))
        .diffs(diff for diff, _ in changes)
        .over(times_of(records, "timestamp"))
        .replied(times_of(replies, "timestamp"))
        .naive(records[0].get("timestamp"))
        .spent(_tokens(counted[-1].members if counted else {}))
        .model(next(filter(None, words_of(replies, "model")), ""))
        .flag_if(any_failed(results), "error")
        .flag_if(taken_back, "taken back")
        .derived("kind", "ended")
        .id(records[0].word("uuid"))
        .build()
    )


def _has_failed(outcome: Record) -> bool:
    return outcome.get("status") in ("error", "cancelled") or bool(outcome.get("error"))


def _results(record: Record) -> list[Result]:
    """Return the answers in a record, next to which the program records whether the call failed."""
    outcome = record.inner("toolCallResult")
    failed = error_if(_has_failed(outcome))
    found = _parts_of(record).results
    if not found:
        display = outcome.get("resultDisplay")
        return [Result(outcome.word("callId"), display if isinstance(display, str) else "", failed)]
    return [Result(one.call_id, one.text, one.is_error or failed, one.returncode) for one in found]


def _label(record: Record) -> str:
    return record.word("subtype") or record.word("type")


def _other_step(index: int, raws: Sequence[Raw], record: Record, *, taken_back: bool) -> Step:
    name, subtype = record.word("type"), record.word("subtype")
    payload, parts, failure = record.get("systemPayload"), _parts_of(record), _failure(record.members)
    kind = StepKind.CONTEXT if subtype in _CONTEXTS else StepKind.STATE
    actor, text = Actor.SYSTEM, parts.combined_text
    if payload and not text:
        text = dumped(payload)
    if subtype == "notification" and name == "user":
        kind = StepKind.NOTE
    elif name == "user":
        actor, kind = Actor.USER, asking_kind(index)
    elif failure:
        kind, text = StepKind.ERROR, failure
    elif name not in _TYPES:
        return unknown_step(index, raws, name or "record", dumped(raws[0].value))
    title = record.text("systemPayload", "customTitle")
    return (
        StepBuilder(index, raws, actor, kind, _label(record))
        .text(text)
        .calls(parts.calls)
        .results(parts.results)
        .at(record.get("timestamp"))
        .state({"title": title} if title else {})
        .flag_if(taken_back, "taken back")
        .flag_if(kind is StepKind.ERROR, "error")
        .derived("kind")
        .id(record.word("uuid"))
        .build()
    )


class QwenCode(SingleRun):
    """Recognised by lines that name their parents and contain a message in parts, a payload or a result."""

    name = "qwen-code"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("cwd", "version", "gitBranch", "subtype"),
            "where and how the program ran, and the kind of each record",
        ),
        NotShown(("usageMetadata",), "counts of the provider; the tokens are shown"),
        NotShown(("toolCallResult.status",), "how a call went; the result's flag says it"),
        NotShown(
            ("toolCallResult.resultDisplay.originalContent", "toolCallResult.resultDisplay.newContent"),
            "files before and after an edit; the diff is shown",
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        return 1.0 if any(map(_is_one, probe.first_lines())) else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the session."""
        return _Reader(probe)


def _is_one(record: Record) -> bool:
    # Claude Code's records name their parents too, but their messages have a `content`.
    named = record.has_all("uuid", "parentUuid", "sessionId") and record.word("type") in _TYPES
    return named and (record.inner("message").has("parts") or record.has("systemPayload", "toolCallResult"))


FORMAT = QwenCode()
