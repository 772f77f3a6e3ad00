"""gistpoint's own journals: the events of an attempt, a person's or a model's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gistpoint.sessions.formats.calls import edits_of, kind_of
from gistpoint.sessions.formats.probe import Probe
from gistpoint.sessions.formats.protocol import BaseReader, SingleRun
from gistpoint.sessions.formats.values import (
    as_bool,
    as_dict,
    as_float,
    as_int,
    as_str,
    as_text,
    compact,
    dumped,
    first,
    when,
)
from gistpoint.sessions.runs.model import Actor, Call, Edit, Json, Result, Run, Step, StepKind, Tokens
from gistpoint.sessions.runs.reader import Raw, guarded, line_records, unknown_step
from gistpoint.sessions.runs.scanning import Record

_KINDS = {
    "attempt_started": StepKind.TASK, "process_started": StepKind.STATE, "view": StepKind.STATE,
    "test_run": StepKind.TEST, "score": StepKind.SCORE, "pause": StepKind.PAUSE, "resume": StepKind.PAUSE,
    "idle_prompt": StepKind.PAUSE, "note": StepKind.NOTE, "edit_buffer": StepKind.STATE, "comfort": StepKind.STATE,
    "suspect": StepKind.NOTE, "heartbeat": StepKind.STATE, "questionnaire": StepKind.NOTE,
    "correction": StepKind.NOTE, "crash": StepKind.ERROR, "attempt_ended": StepKind.END,
}  # fmt: skip
_GIST = "gist.py"
"""The path under which a gist is shown: it lies in no repository."""
_OF_CALL = frozenset({"tool_call", "tool_result", "submit", "test_run", "score"})


class _Reader(BaseReader):
    format = "gistpoint"

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._calls: dict[str, int] = {}
        self._header: dict[str, Json] = {}
        self._ending: dict[str, Json] = {}
        self._score: float | None = None
        self._solved: bool | None = None
        self._submissions = 0
        self._code = ""
        self._times: tuple[float, float] | None = None

    def records(self) -> Iterator[Record]:
        return guarded(line_records(self.probe.blob, self.probe.start), self.probe.blob, self.warnings)

    def more(self, offset: int, before: int) -> Iterator[Record] | None:
        return guarded(line_records(self.probe.blob, offset), self.probe.blob, self.warnings, before=before)

    def place(self, fields: Json, step_count: int) -> int:
        event = as_dict(fields)
        kind, data = as_str(event.get("type")), as_dict(event.get("data"))
        self._learn(kind, data)
        at = when(event.get("utc_ms"))
        if at is not None:
            self._times = (self._times[0] if self._times else at, at)
        identity = as_str(data.get("call_id"))
        if kind not in _OF_CALL or not identity:
            return step_count
        return self._calls.setdefault(identity, step_count)

    def _learn(self, kind: str, data: dict[str, Json]) -> None:
        if kind == "attempt_started":
            self._header = data
        elif kind == "attempt_ended":
            self._ending = data
        elif kind == "submit":
            self._submissions += 1
            self._code = as_text(data.get("gist")) or as_text(as_dict(data.get("replacement")).get("code"))
        elif kind == "score" and not data.get("trial"):
            self._score = as_float(data.get("score"))
            self._solved = as_bool(data.get("solved")) or self._solved

    def header(self) -> Run:
        opening = self.probe.lines[0] if self.probe.lines else self.probe.object
        data = self._header or as_dict(opening.get("data"))
        verdict = "solved" if self._solved else "unsolved" if self._ending else ""
        return Run(
            self.format,
            as_str(data.get("schema")),
            id=as_str(data.get("attempt_id")),
            task=as_str(data.get("task_id")),
            model=as_str(data.get("model")),
            agent=as_str(data.get("participant")),
            actor=Actor.PERSON if data.get("actor") == "person" else Actor.AGENT,
            verdict=verdict,
            score=self._score,
            exit_status=as_str(self._ending.get("reason")),
            submissions=self._submissions if self._times else None,
            started=self._times[0] if self._times else None,
            duration_s=self._times[1] - self._times[0] if self._times else None,
            submission=self._code,
            extra={key: data[key] for key in ("mode", "budgets", "role", "study", "condition") if data.get(key)},
            derived=frozenset({"duration_s"}),
        )

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        events = [as_dict(raw.value) for raw in raws]
        kinds = {as_str(event.get("type")): as_dict(event.get("data")) for event in events}
        actor = self.header().actor
        if "tool_call" in kinds:
            return _turn(index, raws, events, kinds, actor)
        kind = as_str(events[0].get("type"))
        if kind not in _KINDS and kind not in _OF_CALL:
            return unknown_step(index, raws, kind or "event", dumped(raws[0].value))
        data = as_dict(events[0].get("data"))
        return Step(
            index, actor if kind in ("note", "suspect", "questionnaire", "pause") else Actor.SYSTEM,
            _KINDS.get(kind, StepKind.TOOL), raws[0].range, tuple(raw.range for raw in raws), label=kind,
            text=as_text(data.get("text")) if set(data) == {"text"} else dumped(data) if data else "",
            started=when(events[0].get("utc_ms")), flags=frozenset({"error"} if kind == "crash" else ()),
            id=as_str(events[0].get("seq")),
        )  # fmt: skip


def _turn(
    index: int, raws: Sequence[Raw], events: list[dict[str, Json]], kinds: dict[str, dict[str, Json]], actor: Actor
) -> Step:
    call, answer = kinds["tool_call"], kinds.get("tool_result")
    given = call.get("arguments")
    text, parsed = (as_text(call.get("raw")), None) if given is None else (compact(given), as_dict(given))
    calls = (Call(as_str(call.get("call_id")), as_str(call.get("tool")), text, parsed),)
    results: tuple[Result, ...] = ()
    if answer is not None:
        duration = as_float(answer.get("duration_ms"))
        refused = as_bool(answer.get("refused"))
        results = (
            Result(
                calls[0].id, as_text(answer.get("text")), refused, None, None if duration is None else duration / 1000
            ),
        )
    tokens = as_dict(call.get("tokens"))
    state: dict[str, Json] = {}
    if answer is not None and answer.get("budget") is not None:
        state["budget"] = answer["budget"]
    state.update({name: call[name] for name in ("automatic", "typed", "malformed") if call.get(name)})
    for name in ("test_run", "score"):
        if name in kinds:
            state[name] = {key: value for key, value in kinds[name].items() if key != "call_id"}
    replacement = as_dict(as_dict(kinds.get("submit")).get("replacement"))
    if replacement:
        state["replacement"] = replacement
    edits = (Edit(as_str(replacement["path"]), None, None),) if replacement.get("path") else _edits(calls)
    kind = StepKind.SUBMIT if "submit" in kinds else kind_of(calls)
    refused_flag = {"refused", "error"} if answer is not None and answer.get("refused") else set[str]()
    return Step(
        index, actor, kind, raws[0].range, tuple(raw.range for raw in raws), label=calls[0].tool,
        thought=as_text(call.get("thought")), calls=calls, results=results, started=when(events[0].get("utc_ms")),
        ended=when(events[-1].get("utc_ms")) if answer is not None else None,
        tokens=Tokens(*(as_int(first(tokens, key, f"{key}_tokens")) for key in ("prompt", "completion", "cached"))),
        cost=as_float(call.get("cost")), state=state, edits=edits, flags=frozenset(refused_flag),
        id=as_str(events[0].get("seq")),
    )  # fmt: skip


def _edits(calls: tuple[Call, ...]) -> tuple[Edit, ...]:
    """Return what a call of a gist's tools changes in the gist, else what the arguments of any tool spell out."""
    arguments = calls[0].parsed or {}
    if calls[0].tool == "edit_gist":
        return (Edit(_GIST, as_str(arguments.get("old")), as_str(arguments.get("new"))),)
    if calls[0].tool in ("write_gist", "edit_and_execute"):
        return (Edit(_GIST, None, as_str(arguments.get("content"))),)
    return edits_of(calls)


class Journal(SingleRun):
    """Told by lines with a number, two clocks, a type and the hash of the line before."""

    name = "gistpoint"

    def sniff(self, probe: Probe) -> float:
        """Return how sure it is."""
        first_lines = probe.lines[:3] or [probe.object]
        sure = any({"seq", "utc_ms", "mono_ms", "type"} <= line.keys() for line in first_lines)
        return 1.0 if sure else 0.0

    def reader(self, probe: Probe) -> _Reader:
        """Open the journal."""
        return _Reader(probe)


FORMAT = Journal()
