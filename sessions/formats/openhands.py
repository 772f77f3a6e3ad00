"""Reads OpenHands' event lists, logs with an event per line or file, and `output.jsonl`, a run per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from gistpoint.sessions.formats.shared.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.formats.shared.messages import actor_of, tokens_of
from gistpoint.sessions.records.building import StepBuilder, any_failed, asking_kind, latest, verdict_of
from gistpoint.sessions.records.format import (
    Format,
    Raw,
    RunEntry,
    RunNames,
    RunReader,
    no_such_run,
    run_named,
    unknown_step,
)
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
from gistpoint.sessions.records.record import Record, first_in, texts_of, times_of
from gistpoint.sessions.records.scanning import LightKeys, RawRecord, lines
from gistpoint.sessions.records.usage import counted_within
from gistpoint.sessions.records.values import (
    as_bool,
    as_dict,
    as_int,
    as_list,
    as_str,
    as_text,
    compact,
    dumped,
    first_known,
    joined,
    objects,
    recoded,
    shallow,
)

_STATE = frozenset({"null", "change_agent_state", "agent_state_changed", "user_rejected"})
_TOOLS = {"run": "execute_bash", "run_ipython": "execute_ipython_cell", "call_tool_mcp": "mcp"}
_ARGUMENTS = ("command", "code", "path", "content", "thought", "outputs")
_TALK = frozenset({"message", "system", "think", "finish", "reject", "recall", "condensation", "delegate"})
_V1_STATE = ("ConversationStateUpdateEvent", "TokenEvent", "LLMCompletionLogEvent", "StreamingDeltaEvent")
_V1_RESULTS = ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent")


class EventTurns:
    """Pairs actions with observations by `cause`, `action_id` or `tool_call_id`, otherwise by their order."""

    def __init__(self) -> None:
        self._by_id: dict[str, int] = {}
        self._reply = ("", -1)
        self._open: int | None = None

    def place(self, fields: Json, step_count: int) -> int:
        """Return the step of the next event, or of the next pair of events."""
        event = as_dict(fields)
        step = self._v1(event, step_count) if "kind" in event else self._v0(event, step_count)
        # Some histories contain pairs of an action and its observation.
        if isinstance(fields, list):
            self._open = None
        return step

    def _v0(self, event: dict[str, Json], step_count: int) -> int:
        if "observation" in event:
            paired = self._cause_of(event)
            self._open = None
            return step_count if paired is None else paired
        self._open = step_count if "action" in event else None
        identity = as_str(event.get("id"))
        if identity:
            self._by_id[identity] = step_count
        return step_count

    def _cause_of(self, event: dict[str, Json]) -> int | None:
        """Return the step of the action that caused an observation; None if the step is unknown."""
        cause = as_str(event.get("cause"))
        if cause:
            return self._by_id.get(cause)
        # Histories of evaluations have no ids: an observation belongs to the preceding action.
        return None if "id" in event else self._open

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
        # One reply may make several calls, each an event: together they are one step.
        reply = as_str(event.get("llm_response_id"))
        step = self._reply[1] if reply and reply == self._reply[0] else step_count
        self._reply = (reply, step)
        for key in ("id", "tool_call_id"):
            if event.get(key):
                self._by_id[as_str(event[key])] = step
        return step


def event_step(index: int, raws: Sequence[Raw]) -> Step:
    """Return the step of an action with its observation, or of any other event."""
    events: list[dict[str, Json]] = []
    for raw in raws:
        events += objects(raw.value) if isinstance(raw.value, list) else [as_dict(raw.value)]
    if not events or not any(events):
        return unknown_step(index, raws, "event", as_text(raws[0].value))
    # Version 1 names the class of an event in `kind`, which no event of version 0 has.
    if any("kind" in event for event in events):
        return _v1_step(index, raws, events)
    return _v0_step(index, raws, events)


def _v0_step(index: int, raws: Sequence[Raw], events: list[dict[str, Json]]) -> Step:
    head, *others = map(Record, events)
    name = head.first_word("action", "observation")
    if not name:
        return unknown_step(index, raws, "event", dumped(raws[0].value))
    answers = [event for event in others if event.has("observation")]
    arguments = _v0_arguments(head)
    calls = _v0_calls(head, name, arguments) if head.has("action") else ()
    # An observation whose action is not in the file becomes the result of a separate step.
    observed = [head] if head.has("observation") and name not in _STATE else answers
    pairs = [_v0_result(event, calls) for event in observed if event.word("observation") not in _STATE]
    results = [result for result, _ in pairs]
    kind = _v0_kind(name, head, calls, index)
    reply = head.inner("tool_call_metadata", "model_response")
    return (
        StepBuilder(index, raws, _v0_actor(index, head), kind, name)
        .thought(arguments.text("thought"))
        .text(_v0_text(head, name, arguments, kind))
        .calls(calls)
        .results(results)
        .edits(_v0_edits(head, arguments, answers) or edits_of(calls))
        .diffs(diff for _, diff in pairs)
        .span(head.time("timestamp"), latest(times_of(answers, "timestamp")))
        .naive(head.get("timestamp"))
        .spent(_spent(head, reply))
        .model(reply.word("model"))
        .flag_if(any_failed(results), "error")
        .derived(
            "kind",
        )
        .derived_if(head.naive("timestamp"), "started", "ended")
        .id(head.word("id"))
        .build()
    )


def _v0_arguments(head: Record) -> Record:
    # Some histories have the arguments of an action next to its name.
    return head.inner("args") or Record({key: head.get(key) for key in _ARGUMENTS if head.has(key)})


def _v0_actor(index: int, head: Record) -> Actor:
    if head.has("source"):
        return actor_of(head.word("source"))
    # Histories of evaluations name no source: the first event is the task.
    return Actor.AGENT if index else Actor.USER


def _spent(head: Record, reply: Record) -> Tokens:
    """Return the tokens of the reply that led to an event.

    One reply may lead to several actions, each of which repeats its tokens; only the first is counted.
    """
    made = objects(first_in(reply.get("choices")).inner("message").get("tool_calls"))
    first = as_str(made[0].get("id")) if made else ""
    wanted = head.word("tool_call_metadata", "tool_call_id")
    is_further = bool(first and wanted) and wanted != first
    return Tokens() if is_further else tokens_of(reply.inner("usage").members)


def _v0_text(head: Record, name: str, arguments: Record, kind: StepKind) -> str:
    if name in ("message", "system"):
        return as_text(arguments.first("content") or head.get("content"))
    if name in ("finish", "reject"):
        outputs = arguments.get("outputs")
        shown = [arguments.first_text("final_thought", "reason"), compact(outputs) if outputs else ""]
        return joined(shown) or head.text("message")
    if kind is StepKind.STATE or head.has("observation"):
        return as_text(head.first("message")) or dumped(head.first("extras", "args"))
    return ""


def _v0_calls(head: Record, name: str, arguments: Record) -> tuple[RunCall, ...]:
    metadata = head.inner("tool_call_metadata")
    wanted = metadata.word("tool_call_id")
    reply = first_in(metadata.get("model_response", "choices")).inner("message")
    # The provider's reply contains the call as the model wrote it; one reply may lead to several actions.
    made = map(call_of_function, objects(reply.get("tool_calls")))
    own = next((call for call in made if wanted and call.id == wanted), None)
    if own is not None:
        return (own,)
    if name in _TALK or name in _STATE:
        return ()
    shown = arguments.without("thought", "translated_ipython_code")
    return (RunCall(wanted, _TOOLS.get(name, metadata.word("function_name") or name), compact(shown), shown),)


_V0_KINDS = {
    "system": StepKind.SYSTEM,
    "finish": StepKind.SUBMIT,
    "reject": StepKind.END,
    "condensation": StepKind.CONTEXT,
    "recall": StepKind.STATE,
    "delegate": StepKind.DELEGATE,
    "think": StepKind.MESSAGE,
    "error": StepKind.ERROR,
    **dict.fromkeys(_STATE, StepKind.STATE),
}


def _v0_kind(name: str, head: Record, calls: tuple[RunCall, ...], index: int) -> StepKind:
    known = _V0_KINDS.get(name)
    if known is not None:
        return known
    if name == "message":
        by_user = head.get("source") == "user" or not head.has("source")
        return asking_kind(index, 6) if by_user else StepKind.MESSAGE
    if calls:
        return kind_of(calls)
    return StepKind.TOOL if head.has("observation") else StepKind.UNKNOWN


def _v0_result(event: Record, calls: tuple[RunCall, ...]) -> tuple[Result, str]:
    """Return an observation's result and the diff of an edit (empty for other observations)."""
    code = event.whole("extras", "metadata", "exit_code")
    if code is None:
        code = as_int(event.first("exit_code"))
    text = event.text("content")
    diff = text if event.get("observation") == "edit" and text.startswith("--- ") else ""
    shown = event.get("extras", "formatted_output_and_error")
    if diff and isinstance(shown, str):
        text = shown
    identity = event.word("tool_call_metadata", "tool_call_id") or next((call.id for call in calls), "")
    success = event.truth("success")
    is_error = None if success is None else not success
    return Result(identity, text, True if event.get("observation") == "error" else is_error, code), diff


def _v0_edits(head: Record, arguments: Record, answers: list[Record]) -> tuple[FileEdit, ...]:
    for event in answers:
        content = event.get("extras", "new_content")
        if isinstance(content, str) and event.get("observation") in ("edit", "write"):
            return (FileEdit(event.word("extras", "path"), None, content),)
    if head.get("action") == "write" and arguments.get("path"):
        return (FileEdit(arguments.word("path"), None, arguments.text("content")),)
    return ()


def _v1_step(index: int, raws: Sequence[Raw], events: list[dict[str, Json]]) -> Step:
    head = Record(events[0])
    name = head.word("kind")
    if name == "ActionEvent":
        return _v1_action(index, raws, list(map(Record, events)))
    actor = actor_of(head.word("source"))
    kind, text = _v1_shown(index, name, actor, head, dumped(raws[0].value))
    return (
        StepBuilder(index, raws, actor, kind, name or "event")
        .text(text)
        .results([_v1_result(head)] if kind is StepKind.TOOL else [])
        .at(head.get("timestamp"))
        .flag_if(kind is StepKind.TOOL, "unpaired")
        .flag_if(kind is StepKind.ERROR, "error")
        .flag_if(kind is StepKind.UNKNOWN, "unknown")
        .derived_if(head.naive("timestamp"), "started")
        .id(head.word("id"))
        .build()
    )


def _v1_shown(index: int, name: str, actor: Actor, head: Record, dumped_event: str) -> tuple[StepKind, str]:
    """Return the purpose and the text of an event that is not an action."""
    if name == "MessageEvent":
        kind = asking_kind(index, 4) if actor is Actor.USER else StepKind.MESSAGE
        return kind, head.text("llm_message", "content")
    if name == "SystemPromptEvent":
        return StepKind.SYSTEM, joined(head.texts("system_prompt", "dynamic_context"))
    if name in _V1_STATE:
        return StepKind.STATE, f"{head.word('key')}: {dumped(head.get('value'))}"
    if name in _V1_RESULTS:
        return StepKind.TOOL, ""
    if name.startswith("Condensation"):
        return StepKind.CONTEXT, head.text("summary") or dumped_event
    return {"ConversationErrorEvent": StepKind.ERROR, "PauseEvent": StepKind.PAUSE}.get(
        name, StepKind.UNKNOWN
    ), dumped_event


def _v1_action(index: int, raws: Sequence[Raw], events: list[Record]) -> Step:
    actions = [event for event in events if event.get("kind") == "ActionEvent"]
    answers = [event for event in events if event.get("kind") != "ActionEvent"]
    calls, results = tuple(map(_v1_call, actions)), list(map(_v1_result, answers))
    head = actions[0]
    return (
        StepBuilder(index, raws, actor_of(head.word("source")), kind_of(calls), "ActionEvent")
        .thought(*texts_of(actions, "reasoning_content"))
        .text(*texts_of(actions, "thought"))
        .calls(calls)
        .results(results)
        .edits(edits_of(calls))
        .span(head.time("timestamp"), latest(times_of(answers, "timestamp")))
        .replied(times_of(actions, "timestamp"))
        .naive(head.get("timestamp"))
        .state(head.kept("summary"))
        .flag_if(any_failed(results), "error")
        .derived(
            "kind",
        )
        .derived_if(head.naive("timestamp"), "started", "ended")
        .id(head.first_word("llm_response_id", "id"))
        .build()
    )


def _v1_call(event: Record) -> RunCall:
    if isinstance(event.get("tool_call"), dict):
        call = call_of_function(event.get("tool_call"))
        if call.tool:
            return call
    shown = event.inner("action").without("kind")
    return RunCall(event.word("tool_call_id"), event.word("tool_name"), compact(shown), shown)


def _v1_result(event: Record) -> Result:
    observation = event.inner("observation")
    text = observation.first_text("content", "output") or event.first_text("error", "rejection_reason")
    # The other two kinds of events report why there is no result: the user refused, or the agent failed.
    is_error = observation.truth("is_error") if event.get("kind") == "ObservationEvent" else True
    shown = text or dumped(event.get("observation"))
    return Result(event.word("tool_call_id"), shown, is_error, observation.whole("exit_code"))


Shape = Literal["array", "lines", "runs", "object", "folder"]


class _Reader(RunReader):
    format = "openhands"
    arrays = ("history",)

    def __init__(self, probe: FileProbe, shape: Shape, id: str = "") -> None:
        super().__init__(probe)
        self._shape = shape
        self.in_lines = shape == "lines"
        # Events of version 0 are paired by two short members, so the index need not decode the others.
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
        # Each of these events has the totals of the run so far, so the last one counts.
        if event.get("key") == "stats":
            self._stats = as_dict(as_dict(event.get("value")).get("usage_to_metrics"))
        return self._turns.place(fields, step_count)

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        return event_step(index, raws)

    def header(self) -> Run:
        if self._shape in ("array", "lines", "folder"):
            sample = (
                self.probe.array[:3] if self._shape == "array" else [self.probe.object, *self.probe.lines[:3]]
            )
            version = "V1" if any("kind" in as_dict(event) for event in sample) else "V0"
            tokens, cost = _totals(self._stats)
            return Run(self.format, version, tokens=tokens, cost=cost)
        return header_of({key: self.fact(key) for key in _HEADER_KEYS}, self._id)


def _totals(stats: dict[str, Json]) -> tuple[Tokens, float | None]:
    used = list(map(Record, stats.values()))
    if not used:
        return Tokens(), None
    spent = sum((_summed_up(item.inner("accumulated_token_usage")) for item in used), start=Tokens(0, 0, 0))
    return spent, sum(item.number("accumulated_cost") or 0.0 for item in used)


def _summed_up(usage: Record) -> Tokens:
    return counted_within(
        usage.whole("prompt_tokens"),
        usage.whole("completion_tokens"),
        read=usage.whole("cache_read_tokens"),
        written=usage.whole("cache_write_tokens"),
        reasoning=usage.whole("reasoning_tokens"),
    )


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
    record = Record(line)
    success = record.truth("success")
    solved = as_bool(record.inner("test_result", "report").first("resolved"))
    # Benchmarks record the outcome of the tests; the issue resolver records a model's judgement.
    solved = first_known((solved, success))
    config = Record(record.get("metadata", "llm_config") or record.get("metadata", "llm"))
    usage = record.inner("metrics", "accumulated_token_usage")
    return Run(
        "openhands",
        "output.jsonl",
        id=id,
        task=record.word("instance_id") or _issue(record),
        model=config.word("model"),
        agent=as_str(record.inner("metadata").first("agent_class")) or "openhands",
        verdict=verdict_of(solved),
        exit_status=record.text("error"),
        submission=as_text(record.inner("test_result").first("git_patch") or record.get("git_patch")),
        tokens=_summed_up(usage),
        cost=record.number("metrics", "accumulated_cost"),
        prompt=record.text("instruction"),
        derived=frozenset({"verdict"} if success is not None else ()),
    )


def _issue(line: Record) -> str:
    issue = line.inner("issue")
    return f"{issue.word('owner')}/{issue.word('repo')}#{issue.word('number')}" if issue else ""


def _is_event(value: Json) -> bool:
    event = Record(value)
    if event.has("kind"):
        return event.has_all("id", "timestamp", "source")
    named = event.has("action", "observation")
    typed = all(isinstance(event.get(key), str | None) for key in ("action", "observation"))
    return named and typed and event.has("source", "args", "extras", "cause", "timestamp")


def _is_output(value: dict[str, Json]) -> bool:
    line = Record(value)
    if line.has("history"):
        listed = isinstance(line.get("history"), list | None)
        return listed and line.has("instance_id", "instruction", "git_patch", "test_result", "issue")
    # A line whose history was omitted to save space; lines with messages are in another format.
    return line.has("instance_id") and line.has("test_result", "instruction") and not line.has("messages")


class OpenHands(Format):
    """Recognised by actions, observations or events of a kind, or by lines of a benchmark or the resolver."""

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
            ("metadata", "instance", "metrics", "runtime_runs"),
            "settings, the data set's row, and counts",
            of_run=True,
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        return 0.9 if self._shape(probe) else 0.0

    def _shape(self, probe: FileProbe) -> Shape | None:
        if probe.parts:
            return "folder" if _is_event(probe.object) else None
        opening = probe.array[:3]
        if any(map(_is_event, opening)) or any(map(_is_event, as_list(next(iter(opening), None)))):
            return "array"
        if any(map(_is_event, probe.lines[:20])):
            return "lines"
        if any(map(_is_output, [probe.object, *probe.lines[:3]])):
            return "runs"
        return "object" if any(map(_is_event, objects(probe.object.get("history"))[:1])) else None

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield the runs of an output file; for any other file, its only run."""
        shape = self._shape(probe) or "array"
        if shape != "runs":
            yield RunEntry("", _Reader(probe, shape).header())
            return
        for id, record in _named_lines(probe):
            yield RunEntry(id, header_of(_decoded_members(record.fields), id))

    def open(self, probe: FileProbe, id: str) -> _Reader:
        """Return a reader of a run by its id, or of the first one.

        Raises `RunFileError` if there is no such run.
        """
        shape = self._shape(probe) or "array"
        if shape == "runs":
            known, record = run_named(probe, id, _named_lines(probe), hint="List it to see the ids.")
            return _Reader(probe.part(record), "runs", known)
        if id:
            raise no_such_run(probe, id, hint="List it to see the ids.")
        return _Reader(probe, shape)


def _decoded_members(fields: Json) -> dict[str, Json]:
    """Return the members that a header is made from; strings that were read as Latin-1 are decoded."""
    members = shallow(fields)
    return {key: item if key == "history" else recoded(item) for key, item in members.items()}


def _named_lines(probe: FileProbe) -> Iterator[tuple[str, RawRecord]]:
    names = RunNames()
    indented = len(probe.lines) == 0
    records = _whole_text(probe) if indented else lines(probe.blob, probe.start)
    for number, record in enumerate(records, 1):
        fields = as_dict(record.fields)
        name = as_str(fields.get("instance_id")) or _issue(Record(fields)) or f"line-{number}"
        yield names.name(name), record


def _whole_text(probe: FileProbe) -> Iterator[RawRecord]:
    """Yield the whole text as one record, for an output line that was saved with indentation."""
    fields, damage = load_record(probe.blob, probe.start, probe.blob.size)
    yield RawRecord(probe.start, probe.blob.size, fields, damage)


FORMAT = OpenHands()
