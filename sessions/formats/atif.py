"""ATIF 1.0 to 1.8, including sub-agents, continuations and gistpoint's own data in its `extra` objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.formats.shared.messages import actor_of
from gistpoint.sessions.records.building import StepBuilder, any_failed, asking_kind
from gistpoint.sessions.records.format import (
    Format,
    Raw,
    RunEntry,
    RunNames,
    RunReader,
    run_named,
    unknown_step,
)
from gistpoint.sessions.records.model import (
    Actor,
    FileEdit,
    Json,
    Noted,
    NotShown,
    Result,
    Run,
    RunCall,
    Step,
    StepKind,
    Tokens,
)
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record
from gistpoint.sessions.records.scanning import LightKeys, elements_at
from gistpoint.sessions.records.usage import counted_within
from gistpoint.sessions.records.values import (
    as_bool,
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    compact,
    first,
    in_seconds,
    is_naive,
    objects,
    when,
)

_DEEPEST = 8
_STEP_KEYS = ("source", "message", "observation", "tool_calls")


class _Reader(RunReader):
    format = "atif"
    arrays = ("steps",)
    light = LightKeys(("source",))

    def __init__(self, probe: FileProbe, id: str = "") -> None:
        super().__init__(probe)
        self._id = id

    def user_text(self, record: dict[str, Json]) -> str:
        return as_text(record.get("message")) if record.get("source") == "user" else ""

    def header(self) -> Run:
        agent = as_dict(self.fact("agent"))
        final = as_dict(self.fact("final_metrics"))
        ours = as_dict(as_dict(self.fact("extra")).get("gistpoint"))
        extra = {**as_dict(self.fact("extra")), **ours}
        name = as_str(agent.get("name"))
        notes, continued = as_str(self.fact("notes")), as_str(self.fact("continued_trajectory_ref"))
        links = [*([continued] if continued else []), *_strings(ours.get("links"))]
        return Run(
            self.format,
            as_str(self.fact("schema_version")).removeprefix("ATIF-v"),
            id=self._id
            or as_str(ours.get("id"))
            or as_str(first({"a": self.fact("trajectory_id"), "b": self.fact("session_id")}, "a", "b")),
            task=as_str(extra.get("task")) or self.request,
            model=as_str(agent.get("model_name")),
            # gistpoint's exports store the whole name; ATIF divides it into two required members.
            agent=as_str(ours.get("agent"))
            if "agent" in ours
            else f"{name} {as_str(agent.get('version'))}".strip(),
            actor=Actor.PERSON if name == "human" or ours.get("actor") == "person" else Actor.AGENT,
            verdict=as_str(extra.get("verdict")) or as_str(ours.get("derived_verdict")),
            suspicious=tuple(map(as_str, as_list(extra.get("suspicious")))),
            confirmation=as_str(extra.get("confirmation")),
            score=as_float(extra.get("score")),
            exit_status=as_str(extra.get("exit_status")),
            submission=as_text(extra.get("submission")),
            submissions=as_int(ours.get("submissions")),
            tokens=replace(_tokens(final, "total_"), reasoning=as_int(ours.get("reasoning_tokens"))),
            cost=as_float(final.get("total_cost_usd")),
            duration_s=as_float(extra.get("duration_s")),
            started=as_float(ours.get("started")),
            prompt=as_text(ours.get("prompt")),
            links=tuple(dict.fromkeys(links)),
            extra={**as_dict(ours.get("extra")), **({"notes": notes} if notes else {})},
            also=_noted(ours.get("also")),
            derived=_derived(ours, has_task=bool(extra.get("task"))),
        )

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        value = raws[0].value
        if not isinstance(value, dict) or value.keys().isdisjoint(_STEP_KEYS):
            return unknown_step(index, raws, "step", as_text(value))
        return _step(index, value, raws)


def _derived(ours: dict[str, Json], *, has_task: bool) -> frozenset[str]:
    """Return the facts of the header that were inferred, either when the run was written or now."""
    # The version of the format is always recorded in ATIF.
    derived = {*_strings(ours.get("derived"))} - {"format_version"}
    return frozenset(derived if has_task else derived | {"task"})


def _tokens(metrics: dict[str, Json], prefix: str = "") -> Tokens:
    """Return the tokens of a reply or, with a `prefix`, of the run."""
    counts, extra = Record(metrics), Record(metrics.get("extra"))
    return counted_within(
        counts.whole(f"{prefix}prompt_tokens"),
        counts.whole(f"{prefix}completion_tokens"),
        read=counts.whole(f"{prefix}cached_tokens"),
        written=extra.whole(f"{prefix}cache_creation_input_tokens"),
    )


def _step(index: int, value: dict[str, Json], raws: Sequence[Raw]) -> Step:
    extra = as_dict(value.get("extra"))
    ours = as_dict(extra.get("gistpoint"))
    source = as_str(value.get("source"))
    calls = tuple(_call(item) for item in objects(value.get("tool_calls")))
    pairs = [_result(item, calls) for item in objects(as_dict(value.get("observation")).get("results"))]
    metrics = as_dict(value.get("metrics"))
    kind = _kind(source, calls, value, index)
    naive = is_naive(value.get("timestamp"))
    derived = {"kind"} | ({"results.call_id"} if any(guess for _, _, guess in pairs) else set())
    results = tuple(result for result, _, _ in pairs)
    started = when(value.get("timestamp"))
    step = (
        StepBuilder(index, raws, actor_of(source), kind, source)
        .thought(as_text(value.get("reasoning_content")))
        .text(as_text(value.get("message")))
        .calls(calls)
        .results(results)
        .edits(edits_of(calls))
        .span(started)
        .spent(
            _tokens(metrics),
            as_float(metrics.get("cost_usd")),
        )
        .model(as_str(value.get("model_name")))
        .flag(*(_flags(value, extra, results)))
        .derived(*derived)
        .derived_if(naive, "started")
        .links((link for _, links, _ in pairs for link in links))
        .id(as_str(value.get("step_id")))
        .naive_if(naive)
        .build()
    )
    return _restored(step, ours) if ours else step


def _kind(source: str, calls: tuple[RunCall, ...], value: dict[str, Json], index: int) -> StepKind:
    if value.get("is_copied_context"):
        return StepKind.CONTEXT
    if source == "agent":
        return kind_of(calls)
    if source == "user":
        return asking_kind(index, 2)
    return StepKind.SYSTEM if source == "system" else StepKind.UNKNOWN


def _flags(value: dict[str, Json], extra: dict[str, Json], results: tuple[Result, ...]) -> set[str]:
    flags = {"copied"} if value.get("is_copied_context") else set[str]()
    if extra.get("is_sidechain"):
        flags.add("side")
    if any_failed(results):
        flags.add("error")
    return flags


def _call(item: dict[str, Json]) -> RunCall:
    arguments = item.get("arguments")
    parsed = arguments if isinstance(arguments, dict) else None
    ours = as_dict(as_dict(item.get("extra")).get("gistpoint"))
    # ATIF requires an object of arguments: arguments given as text are stored in `extra`.
    if ours:
        return RunCall(
            as_str(ours.get("id")),
            as_str(ours.get("tool")),
            as_text(ours.get("arguments")),
            parsed if ours.get("parsed") else None,
        )
    return RunCall(
        as_str(item.get("tool_call_id")), as_str(item.get("function_name")), compact(arguments), parsed
    )


def _result(item: dict[str, Json], calls: tuple[RunCall, ...]) -> tuple[Result, list[str], bool]:
    extra = as_dict(item.get("extra"))
    identity = as_str(item.get("source_call_id"))
    ours = as_dict(extra.get("gistpoint"))
    # A result that names no call belongs to the only call of its step.
    guessed = not identity and len(calls) == 1 and not ours
    identity = as_str(ours["call_id"]) if "call_id" in ours else identity
    duration = as_float(extra.get("duration_ms"))
    result = Result(
        calls[0].id if guessed else identity,
        as_text(item.get("content")),
        as_bool(extra.get("is_error")),
        as_int(extra.get("returncode")),
        in_seconds(duration),
    )
    links = []
    for reference in objects(item.get("subagent_trajectory_ref")):
        path = as_str(reference.get("trajectory_path"))
        named = as_str(first(reference, "trajectory_id", "session_id"))
        links.append(path or (f"#{named}" if named else ""))
    return result, [link for link in links if link], guessed


def _restored(step: Step, ours: dict[str, Json]) -> Step:
    """Return a step with the fields that gistpoint's exporter stores in `extra`."""

    def text(key: str, default: str) -> str:
        return as_text(ours[key]) if key in ours else default

    edits = tuple(
        FileEdit(
            as_str(item.get("path")),
            None if item.get("old") is None else as_text(item.get("old")),
            None if item.get("new") is None else as_text(item.get("new")),
        )
        for item in objects(ours.get("edits"))
    )
    tokens = as_dict(ours.get("tokens"))
    return replace(
        step,
        # A later version may have written actors and kinds that this one does not know.
        actor=Actor(as_str(ours.get("actor"))) if as_str(ours.get("actor")) in set(Actor) else step.actor,
        kind=StepKind(as_str(ours.get("kind"))) if as_str(ours.get("kind")) in set(StepKind) else step.kind,
        label=text("label", step.label),
        thought=text("thought", step.thought),
        id=text("id", step.id),
        model=text("model", step.model),
        started=as_float(ours["started"]) if "started" in ours else step.started,
        ended=as_float(ours.get("ended")),
        asked=as_float(ours.get("asked")),
        replied=as_float(ours.get("replied")),
        cost=as_float(ours["cost"]) if "cost" in ours else step.cost,
        tokens=Tokens(*(as_int(tokens.get(key)) for key in ("prompt", "completion", "cached", "reasoning"))),
        state=as_dict(ours.get("state")),
        diff=as_text(ours["diff"]) if "diff" in ours else None,
        diff_so_far=as_text(ours["diff_so_far"]) if "diff_so_far" in ours else None,
        edits=edits,
        flags=frozenset(as_str(flag) for flag in _strings(ours.get("flags"))),
        derived=frozenset(_strings(ours.get("derived"))),
        links=tuple(_strings(ours.get("links"))),
        also=_noted(ours.get("also")),
    )


def _noted(value: Json) -> tuple[Noted, ...]:
    pairs = (_strings(item) for item in as_list(value))
    return tuple(Noted(*pair) for pair in pairs if len(pair) == 2)


def _strings(value: Json) -> list[str]:
    return [as_str(item) for item in value] if isinstance(value, list) else []


class Atif(Format):
    """Recognised by `schema_version`, or with less confidence by `steps`, `agent` and `session_id`."""

    name = "atif"
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("source",), "who acted, which heads the step"),
        NotShown(
            ("extra.gistpoint", "tool_calls.extra.gistpoint", "observation.results.extra.gistpoint"),
            "what gistpoint added to a step; the step is made of it",
        ),
        NotShown(("agent.tool_definitions",), "the tools offered to the model, not its calls", of_run=True),
        NotShown(("subagent_trajectories",), "separate runs, listed with this one", of_run=True),
        NotShown(
            ("extra.gistpoint",), "what gistpoint added to the run; the header is made of it", of_run=True
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        if as_str(probe.object.get("schema_version")).startswith("ATIF-"):
            return 1.0
        # The version may come after the steps, of which only the beginning is read here.
        if "steps" in probe.object and as_str(probe.late("schema_version")).startswith("ATIF-"):
            return 0.95
        return 0.3 if {"steps", "agent"} <= probe.object.keys() and "session_id" in probe.object else 0.0

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield the run, then the sub-agents' runs that are embedded in it, down to a limited depth."""
        yield RunEntry("", _Reader(probe).header())
        for id, part in _embedded(probe):
            yield RunEntry(id, _Reader(part, id).header())

    def open(self, probe: FileProbe, id: str) -> _Reader:
        """Return a reader of the run, or of an embedded run by its `trajectory_id`.

        Raises `RunFileError` if there is no such run.
        """
        return _Reader(run_named(probe, id, _embedded(probe))[1], id) if id else _Reader(probe)


def _embedded(probe: FileProbe, depth: int = 0) -> Iterator[tuple[str, FileProbe]]:
    ends = probe.head + probe.tail
    has_between = probe.blob.size > len(ends)
    # Scanning a whole trajectory would take as long as reading it, so the key is searched for only at its
    # ends.
    if depth > _DEEPEST or (depth and b'"subagent_trajectories"' not in ends):
        return
    if has_between and b'"subagent' not in ends:
        return
    names = RunNames()
    for number, record in enumerate(elements_at(probe.blob, probe.start, "subagent_trajectories"), 1):
        inner = probe.part(record)
        yield names.name(as_str(as_dict(record.fields).get("trajectory_id")) or f"subagent-{number}"), inner
        yield from _embedded(inner, depth + 1)


FORMAT = Atif()
