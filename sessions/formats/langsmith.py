"""Runs of LangSmith: exported as a list, or as its clients send them, in two halves that have the same id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gistpoint.sessions.formats._traces import SpanKind, TraceFormat, TraceReader, TraceSpan, plain
from gistpoint.sessions.formats.calls import call_of_function
from gistpoint.sessions.formats.messages import tokens_of
from gistpoint.sessions.records.model import Json, NotShown, Run, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.scanning import RawRecord, Scanner, array_records, guarded, lines, members
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    first,
    first_object,
    objects,
    when,
)

_HALVES = ("post", "patch")
_KINDS: dict[str, SpanKind] = {"llm": "model", "chat": "model", "tool": "tool"}
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}


class _Reader(TraceReader):
    format = "langsmith"

    def __init__(self, probe: FileProbe, trace: str) -> None:
        super().__init__(probe)
        self._trace = trace
        self._title = ""

    def found(self) -> Iterator[RawRecord]:
        for record in guarded(_runs_in(self.probe), self.probe.blob, self.warnings):
            run = as_dict(record.fields)
            if record.damage or not self._trace or _trace_of(run) == self._trace:
                if not run.get("parent_run_id"):
                    self._title = self._title or as_str(run.get("name"))
                yield record

    def decoded(self, value: Json) -> Json:
        return value

    def span(self, values: Sequence[dict[str, Json]]) -> TraceSpan:
        run: dict[str, Json] = {}
        for value in values:
            run |= {key: item for key, item in value.items() if item not in (None, "", [], {}) or key not in run}
        extra = as_dict(run.get("extra"))
        metadata = as_dict(extra.get("metadata"))
        given, back = as_dict(run.get("inputs")), as_dict(run.get("outputs"))
        found = TraceSpan(
            as_str(run.get("id")),
            as_str(run.get("parent_run_id")),
            _KINDS.get(as_str(run.get("run_type")), "other"),
            as_str(run.get("name")),
            when(run.get("start_time")),
            when(run.get("end_time")),
            error=as_text(run.get("error")),
            text="\n".join(text for text in (_said(given), _said(back)) if text),
            model=as_str(
                first(metadata, "ls_model_name")
                or as_dict(extra.get("invocation_params")).get("model")
                or back.get("model")
            ),
            cost=_dollars(run.get("total_cost")),
        )
        if found.kind == "model":
            found.asked, found.replied = _asked(given), _replied(back)
            found.tokens = _tokens(run, back)
        elif found.kind == "tool":
            output = first(back, "output", "content") or back
            told = _message(as_dict(output)) if isinstance(output, dict) else {}
            identity = as_str(
                first(told, "tool_call_id")
                or metadata.get("tool_call_id")
                or extra.get("tool_call_id")
                or given.get("tool_call_id")
            )
            arguments = given.get("input", given)
            found.call = call_of_function({"id": identity, "name": found.name, "arguments": arguments})
            found.output = "" if not back else as_text(told["content"]) if told.get("content") else plain(output)
        return found

    def header(self) -> Run:
        return Run(
            self.format,
            id=self._trace,
            task=self._title,
            model=self.models[0] if self.models else "",
            exit_status=self.ending,
            tokens=self.totals.tokens,
            cost=self.whole_cost if self.totals.cost is None else self.totals.cost,
            started=self.times[0] if self.times else None,
            duration_s=self.times[1] - self.times[0] if self.times else None,
            derived=frozenset(
                {"tokens", "duration_s", "exit_status", *(["cost"] if self.totals.cost is not None else [])}
            ),
        )


def _dollars(value: Json) -> float | None:
    """Return an amount, which LangSmith writes as the text of a decimal number or as a number."""
    try:
        return as_float(float(value) if isinstance(value, str) else value)
    except ValueError:
        return None


def _runs_in(probe: FileProbe) -> Iterator[RawRecord]:
    """Yield the runs of a file, in its order."""
    blob = probe.blob
    if probe.array:
        yield from array_records(blob, probe.start, None)
        return
    if not set(_HALVES) & as_dict((probe.lines or [probe.object])[0]).keys():
        yield from lines(blob, probe.start)
        return
    scanner = Scanner(blob, probe.start)
    while scanner.peek().strip("\0"):
        for key, _, _, _ in members(scanner, lambda key: key in _HALVES):
            if key in _HALVES and scanner.peek() == "[":
                yield from scanner.elements()
            elif key in _HALVES:
                scanner.skip()


def _trace_of(run: dict[str, Json]) -> str:
    return as_str(first(run, "trace_id", "id"))


def _said(value: dict[str, Json]) -> str:
    """Return what a chain was given or gave back, if that is one text or no conversation."""
    if len(value) == 1:
        return plain(next(iter(value.values())))
    return plain(dict(value)) if value else ""


def _message(message: dict[str, Json]) -> dict[str, Json]:
    """Return a message of LangChain as one of a chat; any other as it is."""
    inner = as_dict(message.get("kwargs") or message.get("data"))
    if not inner and as_str(message.get("type")) not in _ROLES:
        return message
    inner = inner or message
    named = as_str(inner.get("type") or message.get("type"))
    names = as_list(message.get("id"))
    if named not in _ROLES and names:
        named = as_str(names[-1]).removesuffix("Chunk").removesuffix("Message").lower()
    calls: list[Json] = [
        {"id": call.get("id"), "name": call.get("name"), "arguments": call.get("args")}
        for call in objects(inner.get("tool_calls"))
    ]
    calls = calls or as_list(as_dict(inner.get("additional_kwargs")).get("tool_calls"))
    kept = {key: inner[key] for key in ("tool_call_id", "status", "name", "usage_metadata") if inner.get(key)}
    return {"role": _ROLES.get(named, named), "content": inner.get("content"), "tool_calls": calls, **kept}


def _asked(given: dict[str, Json]) -> list[dict[str, Json]]:
    """Return the messages that a model was sent."""
    messages = as_list(given.get("messages"))
    if messages and isinstance(messages[0], list):
        messages = as_list(messages[0])
    found = [_message(item) if isinstance(item, dict) else _asking(item) for item in messages]
    if given.get("system"):
        found.insert(0, {"role": "system", "content": given["system"]})
    prompts = as_list(given.get("prompts")) or [given[key] for key in ("prompt", "input") if given.get(key)]
    return found or [_asking(prompt) for prompt in prompts]


def _asking(content: Json) -> dict[str, Json]:
    return {"role": "user", "content": content}


def _replied(back: dict[str, Json]) -> list[dict[str, Json]]:
    """Return the messages of a reply."""
    for choice in objects(back.get("choices")):
        return [as_dict(choice.get("message"))]
    generations = as_list(back.get("generations"))
    first_of = objects(generations[0]) if generations and isinstance(generations[0], list) else objects(generations)
    for generation in first_of:
        message = _message(as_dict(generation.get("message")))
        return [message if message else {"role": "assistant", "content": generation.get("text")}]
    told = first(back, "message", "output")
    if isinstance(told, dict):
        return [_message(told)]
    if "role" in back or back.get("object") == "response":
        return [{"role": "assistant", **back}]
    content = told if told is not None else first(back, "content", "text")
    return [{"role": "assistant", "content": content}] if content is not None else []


def _tokens(run: dict[str, Json], back: dict[str, Json]) -> Tokens:
    usage = first(back, "usage_metadata", "usage") or as_dict(back.get("llm_output")).get("token_usage")
    usage = usage or next(
        (message["usage_metadata"] for message in _replied(back) if "usage_metadata" in message), None
    )
    found = as_dict(usage)
    details = as_dict(found.get("input_token_details"))
    if not found:
        return Tokens(as_int(run.get("prompt_tokens")), as_int(run.get("completion_tokens")))
    tokens = tokens_of(found)
    return Tokens(
        tokens.prompt,
        tokens.completion,
        tokens.cached if tokens.cached is not None else as_int(details.get("cache_read")),
        as_int(as_dict(found.get("output_token_details")).get("reasoning")),
    )


class LangSmith(TraceFormat):
    """Recognised by a `dotted_order`, or by a `run_type` with `inputs` and a `trace_id`."""

    name = "langsmith"
    words_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("inputs",), "what each call of a model sends again; a message that is new is a step of its own"),
        NotShown(
            ("events", "outputs.generations", "outputs.llm_output"),
            "each token as it came, and the provider's own form of a reply that is in the step",
        ),
        NotShown(
            (
                "serialized",
                "extra",
                "session_name",
                "dotted_order",
                "tags",
                "child_run_ids",
                "parent_run_ids",
                "status",
                "start_time",
                "end_time",
                "app_path",
                "manifest_id",
            ),
            "how the program was put together and where it ran, and times, which head the step",
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        opening = as_dict((probe.array or probe.lines or [probe.object])[0])
        halves = [first_object(opening.get(key)) for key in _HALVES]
        for run in (opening, *halves):
            if "run_type" in run and {"dotted_order", "trace_id", "inputs"} & run.keys() and "id" in run:
                return 1.0
            if run is not opening and "dotted_order" in run:
                return 1.0
        return 0.0

    def spans(self, probe: FileProbe) -> Iterator[RawRecord]:
        """Yield the runs of a file, of whatever trace."""
        return _runs_in(probe)

    def trace_of(self, fields: Json) -> str:
        """Return the id of the trace that a run belongs to."""
        return _trace_of(as_dict(fields))

    def reader(self, probe: FileProbe, trace: str) -> _Reader:
        """Open a trace."""
        return _Reader(probe, trace)


FORMAT = LangSmith()
