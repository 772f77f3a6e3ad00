"""gistpoint's own journals: the events of an attempt, a person's or a model's.

What somebody did is a step: the brief, calls, submissions, notes, pauses. What only accompanies it (heartbeats, views,
comforts, drafts) belongs to the step before it, which counts what it holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gistpoint.core.attempts.state import result_of, suspicions
from gistpoint.sessions.formats.calls import edits_of, kind_of
from gistpoint.sessions.formats.probe import Probe
from gistpoint.sessions.formats.registry import BaseReader, SingleRun
from gistpoint.sessions.formats.values import (
    as_bool,
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    compact,
    dumped,
    first,
    when,
)
from gistpoint.sessions.journal import JOURNAL, read_journal
from gistpoint.sessions.runs.archives import Blob, FileBlob
from gistpoint.sessions.runs.model import (
    UNSOLVED,
    Actor,
    Call,
    Edit,
    Json,
    NotShown,
    Result,
    Run,
    Step,
    StepKind,
    Tokens,
)
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
_NO_BRIEF = "The journal does not hold the brief: it was made by an earlier version."
_FOLDED = frozenset({"heartbeat", "view", "comfort", "edit_buffer"})
_GROUPS = {"note": "note", "pause": "pause", "resume": "pause", "idle_prompt": "idle"}
"""Events of one group that follow each other make one step."""


def _fault_of(blob: Blob) -> str:
    """Return what is wrong with the journal of an attempt, in a sentence; empty if all of it holds."""
    if isinstance(blob, FileBlob) and blob.path.name == JOURNAL:
        return read_journal(blob.path).fault
    return ""


def _is_folded(kind: str, data: Mapping[str, Json]) -> bool:
    return kind in _FOLDED and data.get("kind") != "paste"


class _Reader(BaseReader):
    format = "gistpoint"

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._calls: dict[str, int] = {}
        self._header: dict[str, Json] = {}
        self._ending: dict[str, Json] = {}
        self._suspicious: dict[str, tuple[str, ...]] = {}
        self._passed: list[tuple[str, ...]] = []
        self._score: float | None = None
        self._submissions = 0
        self._code = ""
        self._times: tuple[float, float] | None = None
        self._processes = 0
        self._group = ""
        """The group that the last step belongs to; empty if nothing can join it."""
        self._fault = _fault_of(probe.blob)
        if self._fault:
            self.warnings.append(f"This journal is damaged, and what it came to does not count: {self._fault}")

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
        if kind in _OF_CALL and identity:
            self._group = ""
            return self._calls.setdefault(identity, step_count)
        self._processes += kind == "process_started"
        if step_count and self._accompanies(kind, data):
            return step_count - 1
        self._group = _GROUPS.get(kind, "")
        return step_count

    def had_a_step(self, fields: Json) -> bool:
        """Whatever is no part of a call was a step of its own once."""
        event = as_dict(fields)
        of_call = as_str(event.get("type")) in _OF_CALL and bool(as_dict(event.get("data")).get("call_id"))
        return not of_call

    def _accompanies(self, kind: str, data: dict[str, Json]) -> bool:
        """Whether an event belongs to the step before it."""
        if _is_folded(kind, data):
            return True
        if kind == "process_started":
            return self._processes == 1
        if kind == "pause" or data.get("stage") == "asked":
            return False
        return bool(self._group) and _GROUPS.get(kind) == self._group

    def _learn(self, kind: str, data: dict[str, Json]) -> None:
        if kind == "attempt_started":
            self._header = data
        elif kind == "attempt_ended":
            self._ending = data
        elif kind == "submit":
            self._submissions += 1
            self._code = as_text(data.get("gist")) or as_text(as_dict(data.get("replacement")).get("code"))
        elif kind == "test_run":
            self._suspicious[as_str(data.get("call_id"))] = tuple(map(as_str, as_list(data.get("suspicious"))))
        elif kind == "score" and not data.get("trial"):
            self._score = as_float(data.get("score"))
            if as_bool(data.get("solved")):
                self._passed.append(self._suspicious.get(as_str(data.get("call_id")), ()))

    def header(self) -> Run:
        opening = self.probe.lines[0] if self.probe.lines else self.probe.object
        data = self._header or as_dict(opening.get("data"))
        suspicious = suspicions(self._passed)
        passed = bool(self._passed) and not self._fault
        verdict = result_of(True, suspicious).value if passed else UNSOLVED if self._ending else ""
        return Run(
            self.format,
            as_str(data.get("schema")),
            id=as_str(data.get("attempt_id")),
            task=as_str(data.get("task_id")),
            model=as_str(data.get("model")),
            agent=as_str(data.get("participant")),
            actor=Actor.PERSON if data.get("actor") == "person" else Actor.AGENT,
            verdict=verdict,
            suspicious=suspicious,
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
        told = [event for event in events if not _is_folded(as_str(event.get("type")), as_dict(event.get("data")))]
        main = told[0] if told else events[0]
        kind = as_str(main.get("type"))
        if kind not in _KINDS and kind not in _OF_CALL:
            return unknown_step(index, raws, kind or "event", dumped(raws[0].value))
        text = _words(kind, [as_dict(event.get("data")) for event in told or [main]], events)
        person = kind in ("note", "suspect", "questionnaire", "pause", "resume", "idle_prompt", "comfort")
        return Step(
            index, actor if person else Actor.SYSTEM, _KINDS.get(kind, StepKind.TOOL), raws[0].range,
            tuple(raw.range for raw in raws), label=kind, text=text, started=when(main.get("utc_ms")),
            state=_state(events, main),
            flags=frozenset({"error"} if kind == "crash" else ()), id=as_str(events[0].get("seq")),
        )  # fmt: skip


def _state(events: list[dict[str, Json]], main: dict[str, Json]) -> dict[str, Json]:
    """Return the header, or how many events of each kind a step holds beside what it is about."""
    count = Counter(as_str(event.get("type")) for event in events if event is not main)
    folded: dict[str, Json] = {kind: number for kind, number in count.items() if kind in _FOLDED}
    header = as_dict(main.get("data")) if main.get("type") == "attempt_started" else {}
    facts = {name: value for name, value in header.items() if name != "brief"}
    return {**({"attempt": facts} if facts else {}), **({"folded": folded} if folded else {})}


def _words(kind: str, told: list[dict[str, Json]], events: list[dict[str, Json]]) -> str:
    """Return what a step says, as people read it; `told` is the data of what was not folded into it."""
    data = told[0]
    match kind:
        case "attempt_started":
            return as_text(data.get("brief")) or _NO_BRIEF
        case "process_started":
            return "the program was started again"
        case "note":
            return as_text(told[-1].get("text"))
        case "pause" | "resume":
            span = _span(events[0], next((event for event in events if event.get("type") == "resume"), None))
            words = [as_str(data.get("reason")).replace("_", " "), as_text(data.get("text")), span]
            return "\n".join(word for word in words if word)
        case "idle_prompt":
            return _idle_words(told, events)
        case "suspect":
            return f"{'' if data.get('marked', True) else 'no longer: '}{as_text(data.get('function'))}"
        case "comfort":
            shown = "shown before" if data.get("shown") else "never shown"
            place = "from outside" if data.get("outside") else "copied here"
            return f"{data.get('characters')} characters pasted, {shown}, {place}\nsha256 {as_text(data.get('sha256'))}"
        case "attempt_ended":
            said = [as_str(data.get(name)).replace("_", " ") for name in ("reason", "code")]
            words = [*said, as_text(data.get("text"))]
            return "\n".join(word for word in words if word)
    return as_text(data.get("text")) if set(data) == {"text"} else dumped(data) if data else ""


def _idle_words(told: list[dict[str, Json]], events: list[dict[str, Json]]) -> str:
    answer = next((as_str(data.get("answer")) for data in told if data.get("answer")), "")
    ms = next((as_float(data.get("idle_ms")) for data in told if data.get("idle_ms") is not None), None)
    asked = told[0].get("since_mono_ms")
    if ms is None and asked is not None:
        since, until = as_float(asked), as_float(events[-1].get("mono_ms"))
        ms = None if since is None or until is None else until - since
    said = {"worked": "answered: I was working", "away": "answered: I was away"}.get(answer, "not answered: idle")
    return "\n".join([*([f"for {ms / 1000:,.0f} s"] if ms is not None else []), said])


def _span(first: dict[str, Json], last: dict[str, Json] | None) -> str:
    start, end = when(first.get("utc_ms")), when(last.get("utc_ms")) if last is not None else None
    return f"for {end - start:,.0f} s" if start is not None and end is not None else "not ended"


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
        ended=when(next(event.get("utc_ms") for event in events if event.get("type") == "tool_result"))
        if answer is not None else None,
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
    not_shown: Sequence[NotShown] = (NotShown(("prev",), "the hash of the line before, which shows tampering"),)

    def sniff(self, probe: Probe) -> float:
        """Return how sure it is."""
        first_lines = probe.lines[:3] or [probe.object]
        sure = any({"seq", "utc_ms", "mono_ms", "type"} <= line.keys() for line in first_lines)
        return 1.0 if sure else 0.0

    def reader(self, probe: Probe) -> _Reader:
        """Open the journal."""
        return _Reader(probe)


FORMAT = Journal()
