"""Sessions of Gemini CLI: an object with messages (2025), or a log of messages and operations on them (2026).

The operations follow `chatRecordingTypes.ts`: a message that is written again replaces the earlier one,
`$set` may replace all messages, and `$rewindTo` undoes a message and all later ones. Undone messages are
shown with a flag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from gistpoint.sessions.formats.gemini.google_parts import google_parts, google_tokens, shown_diff
from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.formats.shared.divided_records import DividedReader
from gistpoint.sessions.formats.shared.message_parts import Parts
from gistpoint.sessions.records.building import (
    StepBuilder,
    Tally,
    any_failed,
    asking_kind,
    duration,
    error_if,
    latest,
)
from gistpoint.sessions.records.format import Raw, SingleRun, unknown_step
from gistpoint.sessions.records.model import (
    Actor,
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
from gistpoint.sessions.records.record import Record, times_of, words_of
from gistpoint.sessions.records.values import (
    as_dict,
    as_str,
    compact,
    dumped,
    first,
    first_known,
    joined,
    objects,
    when,
)

_TYPES = frozenset({"user", "gemini", "model", "info", "error", "warning"})
_FAILED = frozenset({"error", "cancelled"})
_HEADER = ("sessionId", "projectHash", "startTime", "lastUpdated")


class _Reader(DividedReader):
    format = "gemini-cli"
    arrays = ("messages",)

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self.in_lines = "messages" not in probe.object
        self._steps: dict[str, int] = {}
        self._taken_back: set[int] = set()
        self._tokens: dict[str, Tokens] = {}
        self._tally = Tally()
        self._agents: list[str] = []
        self._seen: dict[str, Json] = {}

    @cached_property
    def _head(self) -> dict[str, Json]:
        """The session's own members: those of the object, or of the first line of a log."""
        if not self.in_lines:
            return {key: self.fact(key) for key in (*_HEADER, "kind", "summary", "meta")}
        return next((line for line in self.probe.lines if "sessionId" in line), {})

    def parts(self, fields: Json) -> Iterator[dict[str, Json]]:
        record = as_dict(fields)
        replaced = as_dict(record.get("$set")).get("messages")
        operation: dict[str, Json] = {
            "rewind": record.get("$rewindTo"),
            "set": ",".join(as_dict(record.get("$set"))),
        }
        if "$set" not in record and "$rewindTo" not in record:
            self._learn(record)
            yield {**operation, "part": "message", "id": as_str(record.get("id"))}
        elif isinstance(replaced, list):
            kept = {as_str(message.get("id")) for message in objects(replaced)}
            yield {**operation, "part": "replacement"}
            self._taken_back |= {step for id, step in self._steps.items() if id not in kept}
            for number, message in enumerate(objects(replaced)):
                self._learn(message)
                yield {"part": "kept", "number": number, "id": as_str(message.get("id"))}
        else:
            yield {**operation, "part": "operation"}

    def _learn(self, message: dict[str, Json]) -> None:
        usage = as_dict(message.get("tokens"))
        if usage:
            # Kept by message, because the log repeats a growing message with new counts.
            self._tokens[as_str(message.get("id"))] = google_tokens(usage)
        self._tally.add_model(as_str(message.get("model")))
        self._tally.add_time(when(message.get("timestamp")))
        self._agents += [
            as_str(call["agentId"]) for call in objects(message.get("toolCalls")) if call.get("agentId")
        ]

    def owner(self, name: dict[str, Json], step_count: int) -> int:
        identity = as_str(name.get("id"))
        if name["part"] in ("message", "kept") and identity:
            return self._steps.setdefault(identity, step_count)
        if name.get("rewind"):
            since = self._steps.get(as_str(name["rewind"]), 0)
            # Undone steps keep their numbers, so a message that repeats one of their ids begins a new step.
            self._taken_back |= {step for step in self._steps.values() if step >= since}
            self._steps = {id: step for id, step in self._steps.items() if step < since}
        # An operation that only sets the time of the file joins the preceding step.
        only_time = name.get("part") == "operation" and name.get("set") == "lastUpdated"
        return max(step_count - 1, 0) if only_time else step_count

    def part_of(self, value: Json, name: dict[str, Json]) -> Json:
        if name.get("part") == "kept":
            messages = objects(as_dict(as_dict(value).get("$set")).get("messages"))
            number = name.get("number")
            return messages[number] if isinstance(number, int) and number < len(messages) else {}
        if name.get("part") == "replacement":
            changed = as_dict(as_dict(value).get("$set"))
            return {
                "$set": {key: item for key, item in changed.items() if key != "messages"},
                "$replaced": True,
            }
        return value

    def _file_of(self, agent: str) -> str:
        """Return the path of a side agent's file, in the folder of the session that started the agent."""
        return f"{as_str(self._head.get('sessionId'))}/{agent}.jsonl"

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        # A message that is written again replaces the earlier one, so the last record of the step counts.
        messages = [raw for raw in raws if Record(raw.value).word("type") in _TYPES]
        taken_back = index in self._taken_back
        if messages:
            return _message_step(
                index, raws, Record(messages[-1].value), self._file_of, taken_back=taken_back
            )
        return _operation_step(index, raws, Record(raws[0].value))

    def user_text(self, record: dict[str, Json]) -> str:
        return (
            joined(google_parts(first(record, "content", "parts")).texts)
            if record.get("type") == "user"
            else ""
        )

    def header(self) -> Run:
        head, tally = Record(self._head), self._tally
        begun = head.time("startTime")
        # A session begins before its first message, and is saved after its last one.
        started, ended = first_known((begun, tally.started)), latest((tally.ended, head.time("lastUpdated")))
        return Run(
            self.format,
            "log" if self.in_lines else "object",
            id=head.word("sessionId"),
            task=self.request,
            model=tally.models[-1] if tally.models else head.word("meta", "model"),
            agent="gemini-cli side agent" if head.get("kind") == "subagent" else "gemini-cli",
            tokens=sum(self._tokens.values(), start=Tokens()),
            started=started,
            duration_s=duration(started, ended),
            links=tuple(map(self._file_of, dict.fromkeys(self._agents))),
            extra={key: as_str(value) for key, value in head.kept("summary", "projectHash").items()},
            derived=frozenset({"task", "tokens", "duration_s"}),
        )


def _message_step(
    index: int, raws: Sequence[Raw], message: Record, file_of: Callable[[str], str], *, taken_back: bool
) -> Step:
    parts = google_parts(message.first("content", "parts"))
    if message.get("type") not in ("gemini", "model"):
        return _not_of_model(index, raws, message, parts, taken_back=taken_back)
    tools = message.objects("toolCalls")
    calls, results = parts.calls, parts.results
    for tool in tools:
        call, answers = _call(tool)
        calls.append(call)
        results += answers
    coded = any(result.returncode is not None for result in results)
    # A failed file tool displays the change that it did not make.
    changes = [shown_diff(tool.get("resultDisplay")) for tool in tools if tool.word("status") not in _FAILED]
    edits = [edit for _, made in changes for edit in made]
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(tuple(calls)), message.word("type"))
        .thought(joined([*map(_thought, message.objects("thoughts")), *parts.thought], "\n\n"))
        .text(parts.text)
        .calls(calls)
        .results(results)
        .edits(edits or edits_of(tuple(calls)))
        .diffs(diff for diff, _ in changes)
        .span(message.time("timestamp"), latest(times_of(tools, "timestamp")))
        .naive(message.get("timestamp"))
        .spent(google_tokens(message.inner("tokens").members))
        .model(message.word("model"))
        .flag_if(taken_back, "taken back")
        .flag_if(any_failed(results), "error")
        .derived(
            "kind",
        )
        .derived_if(coded, "results.returncode")
        .links(file_of(agent) for agent in words_of(tools, "agentId") if agent)
        .id(message.word("id"))
        .build()
    )


def _not_of_model(
    index: int, raws: Sequence[Raw], message: Record, parts: Parts, *, taken_back: bool
) -> Step:
    """Return the step of a message from the user or the program, with a flag if it was `taken_back`."""
    name = message.word("type")
    kinds = {"user": asking_kind(index), "error": StepKind.ERROR}
    actor = Actor.USER if name == "user" else Actor.SYSTEM
    return (
        StepBuilder(index, raws, actor, kinds.get(name, StepKind.NOTE), name)
        .text(parts.combined_text)
        .calls(parts.calls)
        .results(parts.results)
        .at(message.get("timestamp"))
        .flag_if(taken_back, "taken back")
        .flag_if(name == "error", "error")
        .derived("kind")
        .id(message.word("id"))
        .build()
    )


def _thought(item: Record) -> str:
    subject = item.word("subject")
    return joined([f"**{subject}**" if subject else "", item.text("description")])


def _call(item: Record) -> tuple[RunCall, list[Result]]:
    """Return a call with its results; an ended call has a result even if that has no text."""
    parsed = item.inner("args").members
    call = RunCall(item.word("id"), item.word("name"), compact(parsed), parsed)
    parts = google_parts(item.get("result"))
    status = item.word("status")
    failed = error_if(status in _FAILED)
    results: list[Result] = []
    for result in parts.results:
        is_error = result.is_error or failed
        results.append(Result(result.call_id or call.id, result.text, is_error, result.returncode))
    own_text = parts.text
    ended = failed or status == "success"
    if own_text or (ended and not results):
        display = item.get("resultDisplay")
        shown = display if isinstance(display, str) else ""
        results.append(Result(call.id, own_text or shown or status, failed))
    return call, results


def _operation_step(index: int, raws: Sequence[Raw], record: Record) -> Step:
    changed = record.inner("$set").members
    kind, label = StepKind.CONTEXT, "$set"
    if record.has("$rewindTo"):
        label, text = "$rewindTo", f"Taken back: {record.word('$rewindTo')} and what follows"
    elif record.has("$replaced"):
        text = joined(["The messages were replaced.", dumped(changed) if changed else ""])
    elif record.has("$set", "sessionId"):
        kind, text = StepKind.STATE, dumped(changed or record.members)
        label = "$set" if changed else "session"
    else:
        return unknown_step(index, raws, record.word("type") or "record", dumped(raws[0].value))
    return StepBuilder(index, raws, Actor.SYSTEM, kind, label).text(text).derived("kind").build()


class GeminiCli(SingleRun):
    """Recognised by a session's id together with its project's hash, or by messages of type `gemini`."""

    name = "gemini-cli"
    unique_ids = True
    words_in_records = True  # the subject of a thought is marked
    not_shown: Sequence[NotShown] = (
        NotShown(
            (
                "toolCalls.resultDisplay.originalContent",
                "toolCalls.resultDisplay.newContent",
                "toolCalls.resultDisplay.diffStat",
            ),
            "files before and after an edit; the diff is shown",
        ),
        NotShown(
            ("toolCalls.displayName", "toolCalls.description", "toolCalls.status"),
            "how the program names a tool; the call is shown",
        ),
        NotShown(("$set.lastUpdated", "thoughts.timestamp"), "times of the file and of thoughts"),
        NotShown(
            ("startTime", "lastUpdated"),
            "times of the session; the first and the length head it",
            of_run=True,
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        whole = Record(probe.object)
        lines = probe.first_lines()
        if any(record.has_all("sessionId", "projectHash") for record in (whole, *lines)):
            return 1.0
        messages = whole.objects("messages")[:20] or lines
        return 0.92 if any(map(_is_message, messages)) else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the session."""
        return _Reader(probe)


def _is_message(message: Record) -> bool:
    return message.get("type") == "gemini" and message.has_all("timestamp", "id")


FORMAT = GeminiCli()
