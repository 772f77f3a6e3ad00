"""Sessions of Gemini CLI: an object with messages (2025), or a log of messages and operations on them (2026).

After `chatRecordingTypes.ts`. In a log a message that is written again replaces the earlier one, `$set` may replace
all messages, and `$rewindTo` takes back a message and those after it; what was taken back stays, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from gistpoint.sessions.formats._parts import PartsReader
from gistpoint.sessions.formats.calls import edits_of, kind_of
from gistpoint.sessions.formats.google_parts import google_parts, google_tokens, shown_diff
from gistpoint.sessions.records.format import Raw, SingleRun, unknown_step
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, RunCall, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.values import (
    as_dict,
    as_list,
    as_str,
    as_text,
    compact,
    dumped,
    first,
    is_naive,
    joined,
    objects,
    when,
)

_TYPES = frozenset({"user", "gemini", "model", "info", "error", "warning"})
_FAILED = frozenset({"error", "cancelled"})
_HEADER = ("sessionId", "projectHash", "startTime", "lastUpdated")


class _Reader(PartsReader):
    format = "gemini-cli"
    arrays = ("messages",)

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self.in_lines = "messages" not in probe.object
        self._steps: dict[str, int] = {}
        self._taken_back: set[int] = set()
        self._tokens: dict[str, Tokens] = {}
        self._models: list[str] = []
        self._times: list[float] = []
        self._agents: list[str] = []
        self._seen: dict[str, Json] = {}

    @cached_property
    def _head(self) -> dict[str, Json]:
        """The session's own members: of the object, or of the first line of a log."""
        if not self.in_lines:
            return {key: self.fact(key) for key in (*_HEADER, "kind", "summary", "meta")}
        return next((line for line in self.probe.lines if "sessionId" in line), {})

    def parts(self, fields: Json) -> Iterator[dict[str, Json]]:
        record = as_dict(fields)
        replaced = as_dict(record.get("$set")).get("messages")
        told: dict[str, Json] = {"rewind": record.get("$rewindTo"), "set": ",".join(as_dict(record.get("$set")))}
        if "$set" not in record and "$rewindTo" not in record:
            self._learn(record)
            yield {**told, "part": "message", "id": as_str(record.get("id"))}
        elif isinstance(replaced, list):
            kept = {as_str(message.get("id")) for message in objects(replaced)}
            yield {**told, "part": "replacement"}
            self._taken_back |= {step for id, step in self._steps.items() if id not in kept}
            for number, message in enumerate(objects(replaced)):
                self._learn(message)
                yield {"part": "kept", "number": number, "id": as_str(message.get("id"))}
        else:
            yield {**told, "part": "operation"}

    def _learn(self, message: dict[str, Json]) -> None:
        usage = as_dict(message.get("tokens"))
        if usage:
            self._tokens[as_str(message.get("id"))] = google_tokens(usage)
        model = as_str(message.get("model"))
        if model and model not in self._models:
            self._models.append(model)
        at = when(message.get("timestamp"))
        if at is not None:
            self._times = [min(at, *self._times), max(at, *self._times)] if self._times else [at, at]
        self._agents += [as_str(call["agentId"]) for call in objects(message.get("toolCalls")) if call.get("agentId")]

    def owner(self, name: dict[str, Json], step_count: int) -> int:
        identity = as_str(name.get("id"))
        if name["part"] in ("message", "kept") and identity:
            return self._steps.setdefault(identity, step_count)
        if name.get("rewind"):
            since = self._steps.get(as_str(name["rewind"]), 0)
            self._taken_back |= {step for step in self._steps.values() if step >= since}
            self._steps = {id: step for id, step in self._steps.items() if step < since}
        only_time = name.get("part") == "operation" and name.get("set") == "lastUpdated"
        return max(step_count - 1, 0) if only_time else step_count

    def part_of(self, value: Json, name: dict[str, Json]) -> Json:
        if name.get("part") == "kept":
            messages = objects(as_dict(as_dict(value).get("$set")).get("messages"))
            number = name.get("number")
            return messages[number] if isinstance(number, int) and number < len(messages) else {}
        if name.get("part") == "replacement":
            changed = as_dict(as_dict(value).get("$set"))
            return {"$set": {key: item for key, item in changed.items() if key != "messages"}, "$replaced": True}
        return value

    def _file_of(self, agent: str) -> str:
        """Return the file of a side agent, in the folder of the session that started it."""
        return f"{as_str(self._head.get('sessionId'))}/{agent}.jsonl"

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        messages = [raw for raw in raws if as_str(as_dict(raw.value).get("type")) in _TYPES]
        taken_back = index in self._taken_back
        if messages:
            return _message_step(index, raws, as_dict(messages[-1].value), self._file_of, taken_back=taken_back)
        return _operation_step(index, raws, as_dict(raws[0].value))

    def said_by_user(self, record: dict[str, Json]) -> str:
        return joined(google_parts(first(record, "content", "parts")).texts) if record.get("type") == "user" else ""

    def header(self) -> Run:
        head, times = self._head, self._times
        begun, updated = when(head.get("startTime")), when(head.get("lastUpdated"))
        models = self._models or [as_str(as_dict(head.get("meta")).get("model"))]
        return Run(
            self.format,
            "log" if self.in_lines else "object",
            id=as_str(head.get("sessionId")),
            task=self.request,
            model=models[-1],
            agent="gemini-cli side agent" if head.get("kind") == "subagent" else "gemini-cli",
            tokens=sum(self._tokens.values(), start=Tokens()),
            started=begun if begun is not None else times[0] if times else None,
            duration_s=times[1] - times[0] if times else updated - begun if begun and updated else None,
            links=tuple(self._file_of(agent) for agent in dict.fromkeys(self._agents)),
            extra={key: as_str(head[key]) for key in ("summary", "projectHash") if head.get(key)},
            derived=frozenset({"task", "tokens", "duration_s"}),
        )


def _message_step(
    index: int, raws: Sequence[Raw], message: dict[str, Json], file_of: Callable[[str], str], *, taken_back: bool
) -> Step:
    name = as_str(message.get("type"))
    parts = google_parts(first(message, "content", "parts"))
    ranges = tuple(raw.range for raw in raws)
    flags = {"taken back"} if taken_back else set[str]()
    at, naive = when(message.get("timestamp")), is_naive(message.get("timestamp"))
    if name not in ("gemini", "model"):
        kinds = {"user": StepKind.TASK if index < 3 else StepKind.MESSAGE, "error": StepKind.ERROR}
        return Step(
            index, Actor.USER if name == "user" else Actor.SYSTEM, kinds.get(name, StepKind.NOTE), raws[0].range,
            ranges, label=name, text=joined([*parts.texts, *parts.thought]), calls=tuple(parts.calls),
            results=tuple(parts.results), started=at, naive=naive, id=as_str(message.get("id")),
            flags=frozenset(flags | ({"error"} if name == "error" else set())), derived=frozenset({"kind"}),
        )  # fmt: skip
    made = [_call(item) for item in objects(message.get("toolCalls"))]
    calls = (*parts.calls, *(call for call, _ in made))
    results = (*parts.results, *(result for _, answers in made for result in answers))
    thoughts = [_thought(item) for item in objects(message.get("thoughts"))]
    tools = objects(message.get("toolCalls"))
    shown = [shown_diff(item.get("resultDisplay")) for item in tools if item.get("status") not in _FAILED]
    ended = [at for at in (when(item.get("timestamp")) for item in tools) if at is not None]
    failed = any(result.is_error or result.returncode for result in results)
    derived = {"kind"} | ({"results.returncode"} if any(r.returncode is not None for r in results) else set())
    return Step(
        index, Actor.AGENT, kind_of(calls), raws[0].range, ranges, label=name,
        thought=joined([*thoughts, *parts.thought], "\n\n"), text=joined(parts.texts), calls=calls, results=results,
        started=at, ended=max(ended, default=None), naive=naive, tokens=google_tokens(as_dict(message.get("tokens"))),
        model=as_str(message.get("model")), diff="\n".join(diff for diff, _ in shown if diff) or None,
        edits=tuple(edit for _, edits in shown for edit in edits) or edits_of(calls),
        flags=frozenset(flags | ({"error"} if failed else set())),
        derived=frozenset(derived),
        links=tuple(file_of(as_str(item["agentId"])) for item in tools if item.get("agentId")),
        id=as_str(message.get("id")),
    )  # fmt: skip


def _thought(item: dict[str, Json]) -> str:
    subject = as_str(item.get("subject"))
    return joined([f"**{subject}**" if subject else "", as_text(item.get("description"))])


def _call(item: dict[str, Json]) -> tuple[RunCall, list[Result]]:
    """Return a call with its results; a call that was cancelled or failed has one even if nothing is said of why."""
    args = item.get("args")
    parsed = args if isinstance(args, dict) else {}
    call = RunCall(as_str(item.get("id")), as_str(item.get("name")), compact(parsed), parsed)
    parts = google_parts(item.get("result"))
    status = as_str(item.get("status"))
    failed = True if status in _FAILED else None
    results = [
        Result(result.call_id or call.id, result.text, result.is_error or failed, result.returncode)
        for result in parts.results
    ]
    rest = joined(parts.texts)
    if rest or (not results and (failed or status == "success")):
        display = item.get("resultDisplay")
        results.append(Result(call.id, rest or (display if isinstance(display, str) else "") or status, failed))
    return call, results


def _operation_step(index: int, raws: Sequence[Raw], record: dict[str, Json]) -> Step:
    changed = as_dict(record.get("$set"))
    if "$rewindTo" in record:
        kind, label, text = StepKind.CONTEXT, "$rewindTo", f"Taken back: {as_str(record['$rewindTo'])} and what follows"
    elif "$replaced" in record:
        kind, label = StepKind.CONTEXT, "$set"
        text = joined(["The messages were replaced.", dumped(changed) if changed else ""])
    elif "$set" in record or "sessionId" in record:
        kind, label, text = StepKind.STATE, "$set" if changed else "session", dumped(changed or record)
    else:
        return unknown_step(index, raws, as_str(record.get("type")) or "record", dumped(raws[0].value))
    return Step(
        index, Actor.SYSTEM, kind, raws[0].range, tuple(raw.range for raw in raws), label=label, text=text,
        derived=frozenset({"kind"}),
    )  # fmt: skip


class GeminiCli(SingleRun):
    """Recognised by a session's id beside the hash of its project."""

    name = "gemini-cli"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("toolCalls.resultDisplay.originalContent", "toolCalls.resultDisplay.newContent",
                  "toolCalls.resultDisplay.diffStat"),
                 "files before and after an edit; the diff is shown"),
        NotShown(("toolCalls.displayName", "toolCalls.description", "toolCalls.status"),
                 "how the program names a tool; the call is shown"),
        NotShown(("$set.lastUpdated", "thoughts.timestamp"), "times of the file and of thoughts"),
        NotShown(("startTime", "lastUpdated"), "times of the session; the first and the length head it", of_run=True),
    )  # fmt: skip

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        found = [probe.object, *probe.lines[:20]]
        if any({"sessionId", "projectHash"} <= record.keys() for record in found):
            return 1.0
        messages = as_list(probe.object.get("messages")) or list(probe.lines[:20])
        return 0.92 if any(_is_message(as_dict(message)) for message in messages[:20]) else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Open the session."""
        return _Reader(probe)


def _is_message(message: dict[str, Json]) -> bool:
    return message.get("type") == "gemini" and "timestamp" in message and "id" in message


FORMAT = GeminiCli()
