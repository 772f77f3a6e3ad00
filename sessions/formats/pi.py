"""Sessions of pi, the coding agent: entries in lines, of which messages are those of a chat with typed parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gistpoint.sessions.formats.calls import call_of_function, edits_of, kind_of, shell_call
from gistpoint.sessions.formats.messages import thought_text
from gistpoint.sessions.records.building import Tally
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun, unknown_step
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.requests import request_in
from gistpoint.sessions.records.values import (
    as_bool,
    as_dict,
    as_float,
    as_int,
    as_str,
    as_text,
    compact,
    dumped,
    first,
    joined,
    objects,
    total,
    when,
)

_KINDS = {
    "compaction": StepKind.CONTEXT, "branch_summary": StepKind.CONTEXT, "session": StepKind.STATE,
    "model_change": StepKind.STATE, "thinking_level_change": StepKind.STATE, "session_info": StepKind.STATE,
    "label": StepKind.NOTE, "custom": StepKind.STATE, "custom_message": StepKind.NOTE,
}  # fmt: skip
_FAILED = frozenset({"error", "aborted"})


class _Reader(RunReader):
    format = "pi"
    in_lines = True

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._calls: dict[str, int] = {}
        self._totals = Tally()
        self._times: list[float] = []
        self._seen: dict[str, Json] = {}
        self._end = ""

    def place(self, fields: Json, step_count: int) -> int:
        entry = as_dict(fields)
        message = as_dict(entry.get("message"))
        self._learn(entry, message)
        if message.get("role") == "toolResult":
            return self._calls.pop(as_str(message.get("toolCallId")), step_count)
        for block in objects(message.get("content")):
            if block.get("type") == "toolCall":
                self._calls[as_str(block.get("id"))] = step_count
        return step_count

    def _learn(self, entry: dict[str, Json], message: dict[str, Json]) -> None:
        at = when(entry.get("timestamp"))
        if at is not None:
            self._times = [min(at, *self._times), max(at, *self._times)] if self._times else [at, at]
        if entry.get("type") == "session":
            self._seen = {**entry, **self._seen}
        if entry.get("type") == "session_info" and entry.get("name"):
            self._seen["name"] = entry["name"]
        if message.get("role") == "assistant":
            usage = as_dict(message.get("usage"))
            self._totals.spend(_tokens(usage), as_float(as_dict(usage.get("cost")).get("total")))
            self._end = as_str(message.get("stopReason"))
            if message.get("model") and self._end not in _FAILED:
                self._seen.setdefault("model", message["model"])

    def header(self) -> Run:
        opening = self._seen or next((line for line in self.probe.lines if line.get("type") == "session"), {})
        return Run(
            self.format,
            as_str(opening.get("version")),
            id=as_str(opening.get("id")),
            task=as_str(opening.get("name")) or request_in(self._asked()),
            model=as_str(first(opening, "model", "modelId")),
            agent="pi",
            exit_status=self._end,
            tokens=self._totals.tokens,
            cost=self._totals.cost,
            started=self._times[0] if self._times else None,
            duration_s=self._times[1] - self._times[0] if self._times else None,
            links=(as_str(opening["parentSession"]),) if opening.get("parentSession") else (),
            extra={"cwd": opening["cwd"]} if opening.get("cwd") else {},
            derived=frozenset({"tokens", "cost", "duration_s", "exit_status"}),
        )

    def _asked(self) -> Iterator[str]:
        """Yield what was asked near the beginning of the file."""
        messages = (as_dict(line.get("message")) for line in self.probe.lines)
        return (as_text(item.get("content")) for item in messages if item.get("role") == "user")

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        entries = [as_dict(raw.value) for raw in raws]
        message = as_dict(entries[0].get("message"))
        if message.get("role") == "assistant":
            return _reply(index, raws, entries)
        return _other(index, raws, entries[0], message)


def _tokens(usage: dict[str, Json]) -> Tokens:
    read = as_int(usage.get("cacheRead"))
    prompt = total([as_int(usage.get("input")), read, as_int(usage.get("cacheWrite"))])
    return Tokens(prompt, as_int(usage.get("output")), read, as_int(usage.get("reasoning")))


def _reply(index: int, raws: Sequence[Raw], entries: list[dict[str, Json]]) -> Step:
    message = as_dict(entries[0].get("message"))
    blocks = objects(message.get("content"))
    calls = tuple(call_of_function(block) for block in blocks if block.get("type") == "toolCall")
    results = tuple(_result(as_dict(entry.get("message"))) for entry in entries[1:])
    broken = as_str(message.get("stopReason")) in _FAILED
    times = [at for at in (when(entry.get("timestamp")) for entry in entries) if at is not None]
    usage = as_dict(message.get("usage"))
    said = joined(as_text([block]) for block in blocks if block.get("type") not in ("toolCall", "thinking"))
    failed = broken or any(result.is_error for result in results)
    return Step(
        index, Actor.AGENT, StepKind.ERROR if broken else kind_of(calls), raws[0].range,
        tuple(raw.range for raw in raws), label="calls were not run" if broken and calls else "assistant",
        thought=joined(thought_text(block) for block in blocks if block.get("type") == "thinking"),
        text=joined([said, as_text(message.get("errorMessage"))]), calls=calls, results=results,
        started=min(times, default=None), ended=max(times, default=None), tokens=_tokens(usage),
        cost=as_float(as_dict(usage.get("cost")).get("total")), model=as_str(message.get("model")),
        edits=() if broken else edits_of(calls), flags=frozenset({"error"} if failed else ()),
        derived=frozenset({"kind", "ended"}), id=as_str(entries[0].get("id")),
    )  # fmt: skip


def _result(message: dict[str, Json]) -> Result:
    return Result(as_str(message.get("toolCallId")), as_text(message.get("content")), as_bool(message.get("isError")))


def _other(index: int, raws: Sequence[Raw], entry: dict[str, Json], message: dict[str, Json]) -> Step:
    kind_name, role = as_str(entry.get("type")), as_str(message.get("role"))
    ranges, at = tuple(raw.range for raw in raws), when(entry.get("timestamp"))
    if role == "user":
        kind = StepKind.TASK if index < 3 else StepKind.MESSAGE
        return Step(index, Actor.USER, kind, raws[0].range, ranges, label=role, text=as_text(message.get("content")),
                    started=at, derived=frozenset({"kind"}), id=as_str(entry.get("id")))  # fmt: skip
    if role == "toolResult":
        result = _result(message)
        flags = {"unpaired", *(["error"] if result.is_error else [])}
        return Step(index, Actor.ENVIRONMENT, StepKind.TOOL, raws[0].range, ranges, label=role, results=(result,),
                    started=at, flags=frozenset(flags), id=as_str(entry.get("id")))  # fmt: skip
    if role == "bashExecution":
        call = shell_call(as_text(message.get("command")), f"bash-{index}")
        code = as_int(message.get("exitCode"))
        return Step(index, Actor.USER, kind_of((call,)), raws[0].range, ranges, label=role, calls=(call,),
                    results=(Result(call.id, as_text(message.get("output")), None, code),), started=at,
                    flags=frozenset({"error"} if code else ()), derived=frozenset({"kind"}))  # fmt: skip
    if kind_name not in _KINDS and not role:
        return unknown_step(index, raws, kind_name or "entry", dumped(raws[0].value))
    kind = StepKind.CONTEXT if role.endswith("Summary") else _KINDS.get(kind_name, StepKind.NOTE)
    text = as_text(first(message, "content", "summary") or first(entry, "summary", "content", "name"))
    return Step(
        index, Actor.SYSTEM, kind, raws[0].range, ranges, label=role or kind_name,
        text=text or compact({key: value for key, value in entry.items() if key not in ("type", "timestamp")}),
        started=at, id=as_str(entry.get("id")),
    )  # fmt: skip


class Pi(SingleRun):
    """Recognised by a `session` line with a folder, or by lines with messages whose calls are `toolCall` parts."""

    name = "pi"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("message.api", "message.provider", "message.usage", "message.stopReason", "message.toolName"),
                 "counts and settings of the provider; the model, the tokens and the cost are shown"),
        NotShown(("message.content.partialJson",), "a call's arguments as they came; the call has them"),
        NotShown(("message.content.thinkingSignature", "message.content.textSignature",
                  "message.content.thoughtSignature"), "encoded: the provider alone can read it"),
    )  # fmt: skip

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        for entry in probe.lines[:20]:
            if entry.get("type") == "session" and "cwd" in entry and "timestamp" in entry:
                return 1.0
        return 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Open the session."""
        return _Reader(probe)


FORMAT = Pi()
