"""OpenHands: event lists, event logs with one event per line, and `output.jsonl` with one run per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from gistpoint.sessions.formats.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.formats.messages import actor_of
from gistpoint.sessions.records.building import StepBuilder, any_failed, verdict_of
from gistpoint.sessions.records.format import Format, Raw, RunEntry, RunNames, RunReader, no_such_run, unknown_step
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
from gistpoint.sessions.records.scanning import LightKeys, RawRecord, lines
from gistpoint.sessions.records.values import (
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
    first_object,
    is_deep,
    is_naive,
    joined,
    objects,
    recoded,
    when,
)

_STATE = frozenset({"null", "change_agent_state", "agent_state_changed", "user_rejected"})
_TOOLS = {"run": "execute_bash", "run_ipython": "execute_ipython_cell", "call_tool_mcp": "mcp"}
_TALK = frozenset({"message", "system", "think", "finish", "reject", "recall", "condensation", "delegate"})
_V1_STATE = ("ConversationStateUpdateEvent", "TokenEvent", "LLMCompletionLogEvent", "StreamingDeltaEvent")
_V1_RESULTS = ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent")


class EventTurns:
    """Pairs by `cause`, `action_id` or `tool_call_id`; an event that names none is paired by the events before it."""

    def __init__(self) -> None:
        self._by_id: dict[str, int] = {}
        self._reply = ("", -1)
        self._open: int | None = None

    def place(self, fields: Json, step_count: int) -> int:
        """Return the step of the next event, or of the next pair of events."""
        event = as_dict(fields)
        step = self._v1(event, step_count) if "kind" in event else self._v0(event, step_count)
        if isinstance(fields, list):
            self._open = None
        return step

    def _v0(self, event: dict[str, Json], step_count: int) -> int:
        identity = as_str(event.get("id"))
        if "observation" in event:
            cause = as_str(event.get("cause"))
            paired = self._by_id.get(cause) if cause else None if "id" in event else self._open
            self._open = None
            return step_count if paired is None else paired
        self._open = step_count if "action" in event else None
        if identity:
            self._by_id[identity] = step_count
        return step_count

    def _v1(self, event: dict[str, Json], step_count: int) -> int:
        kind = as_str(event.get("kind"))
        if kind in _V1_RESULTS:
            for key in ("action_id", "tool_call_id"):
                known = self._by_id.get(as_str(event.get(key)))
                if known is not None:
                    return known
            return step_count
        if kind != "ActionEvent":
            return step_count
        reply = as_str(event.get("llm_response_id"))
        step = self._reply[1] if reply and reply == self._reply[0] else step_count
        self._reply = (reply, step)
        for key in ("id", "tool_call_id"):
            if event.get(key):
                self._by_id[as_str(event[key])] = step
        return step


def event_step(index: int, raws: Sequence[Raw]) -> Step:
    """Return the step of a turn."""
    events: list[dict[str, Json]] = []
    for raw in raws:
        events += objects(raw.value) if isinstance(raw.value, list) else [as_dict(raw.value)]
    if not events or not any(events):
        return unknown_step(index, raws, "event", as_text(raws[0].value))
    if any("kind" in event for event in events):
        return _v1_step(index, raws, events)
    return _v0_step(index, raws, events)


def _v0_step(index: int, raws: Sequence[Raw], events: list[dict[str, Json]]) -> Step:
    head = events[0]
    name = as_str(first(head, "action", "observation"))
    if not name:
        return unknown_step(index, raws, "event", dumped(raws[0].value))
    answers = [event for event in events if "observation" in event and event is not head]
    arguments = as_dict(head.get("args")) or {
        key: value for key, value in head.items() if key in ("command", "code", "path", "content", "thought", "outputs")
    }
    calls = _v0_calls(head, name, arguments) if "action" in head else ()
    pairs = [_v0_result(event, calls) for event in answers if as_str(event.get("observation")) not in _STATE]
    results = tuple(result for result, _ in pairs)
    if "observation" in head and not _is_state(head):
        results = (_v0_result(head, ())[0],)
    diffs = [diff for _, diff in pairs if diff]
    metadata = as_dict(head.get("tool_call_metadata"))
    usage = as_dict(as_dict(metadata.get("model_response")).get("usage"))
    ended = max((at for at in (when(event.get("timestamp")) for event in answers) if at is not None), default=None)
    derived = {"kind"} | ({"started", "ended"} if is_naive(head.get("timestamp")) else set())
    failed = any_failed(results)
    kind = _v0_kind(name, head, calls, index)
    actor = actor_of(as_str(head.get("source"))) if "source" in head else Actor.USER if index == 0 else Actor.AGENT
    return (
        StepBuilder(index, raws, actor, kind, name)
        .thought(as_text(arguments.get("thought")))
        .text(_v0_text(head, name, arguments, kind))
        .calls(calls)
        .results(results)
        .edits(_v0_edits(head, arguments, answers) or edits_of(calls))
        .diffs(diffs)
        .span(when(head.get("timestamp")), ended)
        .naive(head.get("timestamp"))
        .spent(
            Tokens(
                as_int(usage.get("prompt_tokens")),
                as_int(usage.get("completion_tokens")),
                as_int(as_dict(usage.get("prompt_tokens_details")).get("cached_tokens")),
            )
        )
        .model(as_str(as_dict(metadata.get("model_response")).get("model")))
        .flag_if(failed, "error")
        .derived(*derived)
        .id(as_str(head.get("id")))
        .build()
    )


def _is_state(event: dict[str, Json]) -> bool:
    return as_str(first(event, "action", "observation")) in _STATE


def _v0_text(head: dict[str, Json], name: str, arguments: dict[str, Json], kind: StepKind) -> str:
    if name in ("message", "system"):
        return as_text(first(arguments, "content") or head.get("content"))
    if name in ("finish", "reject"):
        shown = [
            as_text(first(arguments, "final_thought", "reason")),
            compact(arguments["outputs"]) if arguments.get("outputs") else "",
        ]
        return joined(shown) or as_text(head.get("message"))
    if kind is StepKind.STATE or "observation" in head:
        return as_text(first(head, "message")) or dumped(first(head, "extras", "args"))
    return ""


def _v0_calls(head: dict[str, Json], name: str, arguments: dict[str, Json]) -> tuple[RunCall, ...]:
    metadata = as_dict(head.get("tool_call_metadata"))
    choice = first_object(as_dict(metadata.get("model_response")).get("choices"))
    wanted = as_str(metadata.get("tool_call_id"))
    for item in objects(as_dict(choice.get("message")).get("tool_calls")):
        call = call_of_function(item)
        if call.id == wanted and wanted:
            return (call,)
    if name in _TALK or name in _STATE:
        return ()
    shown = {key: value for key, value in arguments.items() if key not in ("thought", "translated_ipython_code")}
    return (RunCall(wanted, _TOOLS.get(name, as_str(metadata.get("function_name")) or name), compact(shown), shown),)


def _v0_kind(name: str, head: dict[str, Json], calls: tuple[RunCall, ...], index: int) -> StepKind:
    if name in _STATE:
        return StepKind.STATE
    named = {
        "system": StepKind.SYSTEM,
        "finish": StepKind.SUBMIT,
        "reject": StepKind.END,
        "condensation": StepKind.CONTEXT,
        "recall": StepKind.STATE,
        "delegate": StepKind.DELEGATE,
        "think": StepKind.MESSAGE,
        "error": StepKind.ERROR,
    }.get(name)
    if named is not None:
        return named
    if name == "message":
        by_user = head.get("source") == "user" or "source" not in head
        return StepKind.TASK if by_user and index < 6 else StepKind.MESSAGE
    if calls:
        return kind_of(calls)
    return StepKind.TOOL if "observation" in head else StepKind.UNKNOWN


def _v0_result(event: dict[str, Json], calls: tuple[RunCall, ...]) -> tuple[Result, str]:
    extras = as_dict(event.get("extras"))
    code = as_int(as_dict(extras.get("metadata")).get("exit_code"))
    code = as_int(first(event, "exit_code")) if code is None else code
    content = as_text(event.get("content"))
    shown = extras.get("formatted_output_and_error")
    diff = content if event.get("observation") == "edit" and content.startswith("--- ") else ""
    identity = as_str(as_dict(event.get("tool_call_metadata")).get("tool_call_id")) or (calls[0].id if calls else "")
    success = as_bool(event.get("success"))
    is_error = True if event.get("observation") == "error" else None if success is None else not success
    return Result(identity, as_text(shown) if diff and isinstance(shown, str) else content, is_error, code), diff


def _v0_edits(
    head: dict[str, Json], arguments: dict[str, Json], answers: list[dict[str, Json]]
) -> tuple[FileEdit, ...]:
    for event in answers:
        extras = as_dict(event.get("extras"))
        if event.get("observation") in ("edit", "write") and isinstance(extras.get("new_content"), str):
            return (FileEdit(as_str(extras.get("path")), None, as_text(extras["new_content"])),)
    if head.get("action") == "write" and arguments.get("path"):
        return (FileEdit(as_str(arguments["path"]), None, as_text(arguments.get("content"))),)
    return ()


def _v1_step(index: int, raws: Sequence[Raw], events: list[dict[str, Json]]) -> Step:
    head = events[0]
    name = as_str(head.get("kind"))
    if name == "ActionEvent":
        return _v1_action(index, raws, events)
    source = actor_of(as_str(head.get("source")))
    started = when(head.get("timestamp"))
    derived = frozenset({"started"} if is_naive(head.get("timestamp")) else ())
    kind, text, flags, results = StepKind.UNKNOWN, dumped(raws[0].value), {"unknown"}, tuple[Result, ...]()
    if name == "MessageEvent":
        message = as_dict(head.get("llm_message"))
        kind = StepKind.TASK if source is Actor.USER and index < 4 else StepKind.MESSAGE
        text, flags = as_text(message.get("content")), set()
    elif name == "SystemPromptEvent":
        kind, flags = StepKind.SYSTEM, set()
        text = joined([as_text(head.get("system_prompt")), as_text(head.get("dynamic_context"))])
    elif name in _V1_STATE:
        kind, text, flags = StepKind.STATE, f"{as_str(head.get('key'))}: {dumped(head.get('value'))}", set()
    elif name in _V1_RESULTS:
        kind, text, flags, results = StepKind.TOOL, "", {"unpaired"}, (_v1_result(head),)
    elif name.startswith("Condensation"):
        kind, text, flags = StepKind.CONTEXT, as_text(head.get("summary")) or text, set()
    elif name == "ConversationErrorEvent":
        kind, flags = StepKind.ERROR, {"error"}
    elif name == "PauseEvent":
        kind, flags = StepKind.PAUSE, set()
    return (
        StepBuilder(index, raws, source, kind, name or "event")
        .text(text)
        .results(results)
        .span(started)
        .naive(head.get("timestamp"))
        .flag(*flags)
        .derived(*derived)
        .id(as_str(head.get("id")))
        .build()
    )


def _v1_action(index: int, raws: Sequence[Raw], events: list[dict[str, Json]]) -> Step:
    actions = [event for event in events if event.get("kind") == "ActionEvent"]
    answers = [event for event in events if event.get("kind") != "ActionEvent"]
    calls = tuple(_v1_call(event) for event in actions)
    results = tuple(_v1_result(event) for event in answers)
    ended = max((at for at in (when(event.get("timestamp")) for event in answers) if at is not None), default=None)
    naive = {"started", "ended"} if is_naive(actions[0].get("timestamp")) else set()
    failed = any_failed(results)
    return (
        StepBuilder(index, raws, actor_of(as_str(actions[0].get("source"))), kind_of(calls), "ActionEvent")
        .thought(*(as_text(event.get("reasoning_content")) for event in actions))
        .text(*(as_text(event.get("thought")) for event in actions))
        .calls(calls)
        .results(results)
        .edits(edits_of(calls))
        .span(when(actions[0].get("timestamp")), ended)
        .naive(actions[0].get("timestamp"))
        .state({"summary": actions[0]["summary"]} if actions[0].get("summary") else {})
        .flag_if(failed, "error")
        .derived(*({"kind"} | naive))
        .id(as_str(first(actions[0], "llm_response_id", "id")))
        .build()
    )


def _v1_call(event: dict[str, Json]) -> RunCall:
    if isinstance(event.get("tool_call"), dict):
        call = call_of_function(event["tool_call"])
        if call.tool:
            return call
    action = as_dict(event.get("action"))
    shown = {key: value for key, value in action.items() if key != "kind"}
    return RunCall(as_str(event.get("tool_call_id")), as_str(event.get("tool_name")), compact(shown), shown)


def _v1_result(event: dict[str, Json]) -> Result:
    observation = as_dict(event.get("observation"))
    text = as_text(first(observation, "content", "output")) or as_text(first(event, "error", "rejection_reason"))
    is_error = True if event.get("kind") != "ObservationEvent" else as_bool(observation.get("is_error"))
    code = as_int(observation.get("exit_code"))
    return Result(as_str(event.get("tool_call_id")), text or dumped(event.get("observation")), is_error, code)


Shape = Literal["array", "lines", "runs", "object", "folder"]


class _Reader(RunReader):
    format = "openhands"
    arrays = ("history",)

    def __init__(self, probe: FileProbe, shape: Shape, id: str = "") -> None:
        super().__init__(probe)
        self._shape = shape
        self.in_lines = shape == "lines"
        if shape == "array" and "kind" not in as_dict((probe.array or [None])[0]):
            self.light = LightKeys(("id", "cause", "action", "observation"))
        self._id = id
        self._turns = EventTurns()
        self._stats: dict[str, Json] = {}

    def records(self) -> Iterator[RawRecord]:
        return self._files() if self._shape == "folder" else super().records()

    def _files(self) -> Iterator[RawRecord]:
        self.blobs = self.probe.parts
        for number, blob in enumerate(self.blobs):
            fields, damage = load_record(blob, 0, blob.size)
            if damage:
                self.warnings.append(f"{blob.name} {damage}; it is shown raw.")
            yield RawRecord(0, blob.size, fields, damage, number)

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
        verdict=verdict_of(solved),
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


class OpenHands(Format):
    """Recognised by events that name their source, or by lines with a `history` and an instance or issue."""

    name = "openhands"
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("source", "args.is_confirmed", "is_confirmed", "args.confirmation_state", "security_risk"),
            "who acted, and who agreed",
        ),
        NotShown(("message",), "the event in OpenHands' own words, made from what is shown"),
        NotShown(
            ("tool_call_metadata", "tool_call", "llm_metrics", "responses_reasoning_item"),
            "the provider's own form of the reply; what it says, thinks and calls is shown",
        ),
        NotShown(
            (
                "args.translated_ipython_code",
                "args.kernel_init_code",
                "kernel_init_code",
                "args.impl_source",
                "extras.impl_source",
            ),
            "how OpenHands carried out a call",
        ),
        NotShown(
            ("extras.metadata", "observation.metadata", "observation.full_output_save_dir"),
            "the shell that a command ran in",
        ),
        NotShown(("extras.old_content", "observation.old_content"), "files as they were before an edit"),
        NotShown(("tools",), "what the model could call, not what it called"),
        NotShown(
            ("metadata", "instance", "metrics", "runtime_runs"), "settings, the data set's row, and counts", of_run=True
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        return 0.9 if self._shape(probe) else 0.0

    def _shape(self, probe: FileProbe) -> Shape | None:
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

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """List the runs of an output file, else the one run."""
        shape = self._shape(probe) or "array"
        if shape != "runs":
            yield RunEntry("", _Reader(probe, shape).header())
            return
        for id, record in _named(probe):
            yield RunEntry(id, header_of(_proper(record.fields), id))

    def open(self, probe: FileProbe, id: str) -> _Reader:
        """Open a run by its id, the first one without an id."""
        shape = self._shape(probe) or "array"
        if shape == "runs":
            for known, record in _named(probe):
                if known == id or not id:
                    return _Reader(probe.part(record), "runs", known)
        if id:
            raise no_such_run(probe, id, hint="List it to see the ids.")
        return _Reader(probe, shape)


def _proper(fields: Json) -> dict[str, Json]:
    """Return the values that a header is made from, with Latin-1 in their texts undone."""
    members = {} if is_deep(fields) else as_dict(fields)
    return {key: item if key == "history" else recoded(item) for key, item in members.items()}


def _named(probe: FileProbe) -> Iterator[tuple[str, RawRecord]]:
    names = RunNames()
    indented = len(probe.lines) == 0
    records = object_lines(probe) if indented else lines(probe.blob, probe.start)
    for number, record in enumerate(records, 1):
        fields = as_dict(record.fields)
        name = as_str(fields.get("instance_id")) or _issue(fields) or f"line-{number}"
        yield names.name(name), record


def object_lines(probe: FileProbe) -> Iterator[RawRecord]:
    """Yield the whole text as one record: an output line that was saved with indentation."""
    fields, damage = load_record(probe.blob, probe.start, probe.blob.size)
    yield RawRecord(probe.start, probe.blob.size, fields, damage)


FORMAT = OpenHands()
