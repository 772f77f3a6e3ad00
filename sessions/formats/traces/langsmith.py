"""Runs of LangSmith, exported as a list, or as its clients send them.

A client sends a run in two records with the same id, one at its beginning and one at its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gistpoint.sessions.formats.shared.calls import call_of_function
from gistpoint.sessions.formats.shared.messages import tokens_of
from gistpoint.sessions.formats.traces._spans import SpanKind, TraceFormat, TraceReader, TraceSpan, shown_text
from gistpoint.sessions.records.model import Json, NotShown, Run, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record, first_in, records_in
from gistpoint.sessions.records.scanning import RawRecord, Scanner, array_records, guarded, lines, members
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_str,
    as_text,
    first,
    first_known,
    joined,
)

_BATCHED = ("post", "patch")
_KINDS: dict[str, SpanKind] = {"llm": "model", "chat": "model", "tool": "tool"}
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}


class _Reader(TraceReader):
    format = "langsmith"

    def __init__(self, probe: FileProbe, trace: str) -> None:
        super().__init__(probe)
        self._trace = trace
        self._title = ""

    def span_records(self) -> Iterator[RawRecord]:
        for record in guarded(_runs_in(self.probe), self.probe.blob, self.warnings):
            run = as_dict(record.fields)
            if not (record.damage or self._trace in ("", _trace_of(run))):
                continue
            # The outermost run names the trace.
            if not run.get("parent_run_id"):
                self._title = self._title or as_str(run.get("name"))
            yield record

    def decoded(self, value: Json) -> Json:
        return value

    def span(self, values: Sequence[dict[str, Json]]) -> TraceSpan:
        run = _merged(values)
        extra, inputs, outputs = run.inner("extra"), run.inner("inputs"), run.inner("outputs")
        span = TraceSpan(
            run.word("id"),
            run.word("parent_run_id"),
            _KINDS.get(run.word("run_type"), "other"),
            run.word("name"),
            run.time("start_time"),
            run.time("end_time"),
            error=run.text("error"),
            text=joined(map(_text_of, (inputs, outputs))),
            model=_first_word(
                extra.inner("metadata").first("ls_model_name"),
                extra.get("invocation_params", "model"),
                outputs.get("model"),
            ),
            cost=_dollars(run.get("total_cost")),
        )
        if span.kind == "model":
            span.asked, span.replied = _sent_messages(inputs), _reply_messages(outputs)
            span.tokens = _tokens(run, outputs)
        elif span.kind == "tool":
            _fill_tool(span, extra, inputs, outputs)
        return span

    def header(self) -> Run:
        derived = {"tokens", "duration_s", "exit_status"}
        derived |= set() if self.tally.cost is None else {"cost"}
        return Run(
            self.format,
            id=self._trace,
            task=self._title,
            model=self.tally.model,
            exit_status=self.ending,
            tokens=self.tally.tokens,
            cost=first_known((self.tally.cost, self.outermost_cost)),
            started=self.tally.started,
            duration_s=self.tally.duration_s,
            derived=frozenset(derived),
        )


def _fill_tool(span: TraceSpan, extra: Record, inputs: Record, outputs: Record) -> None:
    """Read the call and the result of a tool's run."""
    output = outputs.first("output", "content") or outputs.members
    message = _message(output) if isinstance(output, dict) else {}
    identity = _first_word(
        first(message, "tool_call_id"),
        extra.get("metadata", "tool_call_id"),
        extra.get("tool_call_id"),
        inputs.get("tool_call_id"),
    )
    arguments = inputs.get("input") if inputs.has("input") else inputs.members
    span.call = call_of_function({"id": identity, "name": span.name, "arguments": arguments})
    if outputs:
        span.output = as_text(message["content"]) if message.get("content") else shown_text(output)


def _dollars(value: Json) -> float | None:
    """Return an amount, which LangSmith writes as a decimal string or as a number; None if it is neither."""
    try:
        return as_float(float(value) if isinstance(value, str) else value)
    except ValueError:
        return None


def _runs_in(probe: FileProbe) -> Iterator[RawRecord]:
    """Yield the runs of a file, in the order of the file."""
    blob = probe.blob
    if probe.array:
        yield from array_records(blob, probe.start, None)
        return
    if not set(_BATCHED) & as_dict((probe.lines or [probe.object])[0]).keys():
        yield from lines(blob, probe.start)
        return
    # A batch, as the client sends it, lists the runs that began and those that ended separately.
    scanner = Scanner(blob, probe.start)
    while scanner.peek().strip("\0"):
        for name, *_ in members(scanner, _BATCHED.__contains__):
            if name not in _BATCHED:
                continue
            if scanner.peek() == "[":
                yield from scanner.elements()
            else:
                scanner.skip()


def _trace_of(run: dict[str, Json]) -> str:
    return as_str(first(run, "trace_id", "id"))


def _merged(records: Sequence[dict[str, Json]]) -> Record:
    """Return a run from its records; an empty member of a later one does not replace an earlier value."""
    run: dict[str, Json] = {}
    for record in records:
        for name, value in record.items():
            if name not in run or value not in (None, "", [], {}):
                run[name] = value
    return Record(run)


def _first_word(*values: Json) -> str:
    return as_str(next(filter(None, values), None))


def _text_of(value: Record) -> str:
    """Return the input or the output of a chain as text; empty for a conversation."""
    if len(value.members) == 1:
        return shown_text(next(iter(value.members.values())))
    return shown_text(value.members) if value else ""


def _message(value: Json) -> dict[str, Json]:
    """Return a message of LangChain in the form of chat APIs.

    Any other object is returned unchanged; any other value becomes an empty object.
    """
    message = Record(value)
    inner = Record(message.get("kwargs") or message.get("data"))
    if not inner and message.word("type") not in _ROLES:
        return message.members
    inner = inner or message
    kind = as_str(inner.get("type") or message.get("type"))
    class_path = message.items("id")
    if class_path and kind not in _ROLES:
        # The id is the path of the message's class, whose name begins with the role.
        kind = as_str(class_path[-1]).removesuffix("Chunk").removesuffix("Message").lower()
    calls: list[Json] = [
        {"id": call.get("id"), "name": call.get("name"), "arguments": call.get("args")}
        for call in inner.objects("tool_calls")
    ]
    return {
        "role": _ROLES.get(kind, kind),
        "content": inner.get("content"),
        "tool_calls": calls or inner.items("additional_kwargs", "tool_calls"),
        **inner.kept("tool_call_id", "status", "name", "usage_metadata"),
    }


def _sent_messages(inputs: Record) -> list[dict[str, Json]]:
    """Return the messages that were sent to a model, or its prompts if there are no messages.

    Of several conversations, only the first is returned.
    """
    messages = inputs.items("messages")
    if messages and isinstance(messages[0], list):
        # LangChain sends several conversations at once; a run contains one.
        messages = messages[0]
    sent = [_message(item) if isinstance(item, dict) else _user_message(item) for item in messages]
    if inputs.get("system"):
        sent.insert(0, {"role": "system", "content": inputs.get("system")})
    prompts = inputs.items("prompts") or list(inputs.kept("prompt", "input").values())
    return sent or list(map(_user_message, prompts))


def _user_message(content: Json) -> dict[str, Json]:
    return {"role": "user", "content": content}


def _reply_messages(outputs: Record) -> list[dict[str, Json]]:
    """Return the messages of a reply; empty if there is no output."""
    choices = outputs.objects("choices")
    if choices:
        return [choices[0].inner("message").members]
    generations = outputs.items("generations")
    if generations and isinstance(generations[0], list):
        generations = generations[0]
    alternatives = records_in(generations)
    if alternatives:
        message = _message(alternatives[0].get("message"))
        return [message or {"role": "assistant", "content": alternatives[0].get("text")}]
    reply = outputs.first("message", "output")
    if isinstance(reply, dict):
        return [_message(reply)]
    if outputs.has("role") or outputs.get("object") == "response":
        return [{"role": "assistant", **outputs.members}]
    content = reply if reply is not None else outputs.first("content", "text")
    return [] if content is None else [{"role": "assistant", "content": content}]


def _tokens(run: Record, outputs: Record) -> Tokens:
    usage = outputs.first("usage_metadata", "usage") or outputs.get("llm_output", "token_usage")
    if not usage:
        usage = next(
            (
                message["usage_metadata"]
                for message in _reply_messages(outputs)
                if "usage_metadata" in message
            ),
            None,
        )
    counts = Record(usage)
    if not counts:
        return Tokens(run.whole("prompt_tokens"), run.whole("completion_tokens"))
    return tokens_of(counts.members)


class LangSmith(TraceFormat):
    """Recognised by a batch of runs with a `dotted_order`, or by runs with a `run_type` and an id."""

    name = "langsmith"
    words_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("inputs",), "the messages that each call to a model repeats; a new message is a separate step"
        ),
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
        opening = probe.opening
        batched = [first_in(opening.get(name)) for name in _BATCHED]
        is_batch = any(run.has("dotted_order") for run in batched)
        return 1.0 if is_batch or any(map(_is_run, (opening, *batched))) else 0.0

    def spans(self, probe: FileProbe) -> Iterator[RawRecord]:
        """Yield the runs of all traces in a file."""
        return _runs_in(probe)

    def trace_of(self, fields: Json) -> str:
        """Return the id of the trace that a run belongs to."""
        return _trace_of(as_dict(fields))

    def reader(self, probe: FileProbe, trace: str) -> _Reader:
        """Return a reader of a trace, or of all spans if `trace` is empty."""
        return _Reader(probe, trace)


def _is_run(run: Record) -> bool:
    return run.has_all("run_type", "id") and run.has("dotted_order", "trace_id", "inputs")


FORMAT = LangSmith()
