"""Sessions of Continue, in editors and on the command line: a reply contains its calls and their results."""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.sessions.formats.shared.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.formats.shared.message_parts import parts_of_message
from gistpoint.sessions.records.building import StepBuilder, Tally, any_error, asking_kind
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record, attached, first_in, records_of, texts_of
from gistpoint.sessions.records.usage import counted_within
from gistpoint.sessions.records.values import (
    as_dict,
    as_str,
    joined,
    objects,
)

_FAILED = frozenset({"errored", "canceled"})


class _Reader(RunReader):
    format = "continue"
    arrays = ("history",)

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._tally = Tally()
        self._calls: dict[str, int] = {}
        self._thought: int | None = None
        """The step of a thought whose reply has not been read yet; None if there is no such thought."""
        self._model = ""

    def place(self, fields: Json, step_count: int) -> int:
        item = as_dict(fields)
        message = as_dict(item.get("message"))
        role = message.get("role")
        if role == "tool":
            return self._calls.get(as_str(message.get("toolCallId")), step_count)
        # A thought is an item that precedes its reply.
        step = self._thought if role == "assistant" and self._thought is not None else step_count
        self._thought = step if role == "thinking" else None
        if role == "assistant":
            self._tally.add_usage(*_spent(Record(message)))
            self._model = self._model or _model(Record(item))
            for call in objects(message.get("toolCalls")):
                self._calls[as_str(call.get("id"))] = step
        return step

    def user_text(self, record: dict[str, Json]) -> str:
        message = as_dict(record.get("message"))
        return joined(parts_of_message(message.get("content")).texts) if message.get("role") == "user" else ""

    def header(self) -> Run:
        known = Record({"title": as_str(self.fact("title")), "cwd": as_str(self.fact("workspaceDirectory"))})
        spent = Record(self.fact("usage"))
        counted = Tokens(spent.whole("promptTokens") or None, spent.whole("completionTokens") or None)
        return Run(
            self.format,
            id=as_str(self.fact("sessionId")),
            task=self.request or known.word("title"),
            model=self._model or as_str(self.fact("chatModelTitle")),
            agent="continue",
            tokens=counted or self._tally.tokens,
            cost=spent.number("totalCost") or None,  # 0 if nothing was counted
            extra=known.kept("title", "cwd"),
            derived=frozenset({"task"} if counted else {"task", "tokens"}),
        )

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        items = records_of(raws)
        reply = next((item for item in items if _role(item) == "assistant"), None)
        return _not_of_model(index, raws, items[0]) if reply is None else _reply(index, raws, items, reply)


def _role(item: Record) -> str:
    return item.word("message", "role")


def _spent(message: Record) -> tuple[Tokens, float | None]:
    """Return the tokens of a reply, and its cost in US dollars or None."""
    usage = message.inner("usage")
    details = usage.inner("prompt_tokens_details")
    cents = usage.number("cost_cents")
    tokens = counted_within(
        usage.whole("prompt_tokens"),
        usage.whole("completion_tokens"),
        read=details.whole("cached_tokens"),
        written=details.whole("cache_write_tokens"),
        whole=usage.whole("total_tokens"),
    )
    return tokens, None if cents is None else cents / 100


def _model(item: Record) -> str:
    log = first_in(item.get("promptLogs"))
    known = item.get("message", "usage", "model") or log.get("completionOptions", "model")
    return as_str(known or log.get("modelTitle"))


def _not_of_model(index: int, raws: Sequence[Raw], item: Record) -> Step:
    """Return the step of a message that the model did not write, or of a thought without a reply."""
    role = _role(item)
    text = parts_of_message(item.get("message", "content")).text
    names = [attachment.first_word("name", "description") for attachment in item.objects("contextItems")]
    actor, kind = {
        "user": (Actor.USER, asking_kind(index, 1)),
        "thinking": (Actor.AGENT, StepKind.MESSAGE),
        "tool": (Actor.ENVIRONMENT, StepKind.TOOL),
    }.get(role, (Actor.SYSTEM, StepKind.SYSTEM))
    builder = StepBuilder(index, raws, actor, kind, role or "item").text(text, *attached(names))
    if role == "thinking":
        builder.text().thought(text)
    return builder.flag_if(role == "tool", "unpaired").derived("kind").id(item.word("message", "id")).build()


def _messages(items: list[Record], role: str) -> list[Record]:
    return [item.inner("message") for item in items if _role(item) == role]


def _reply(index: int, raws: Sequence[Raw], items: list[Record], reply: Record) -> Step:
    message = reply.inner("message")
    calls = tuple(map(call_of_function, objects(message.get("toolCalls"))))
    texts = {one.word("toolCallId"): one.text("content") for one in _messages(items, "tool")}
    # Earlier versions made one call per reply, and recorded only its state.
    states = reply.objects("toolCallStates") or [reply.inner("toolCallState")]
    results = [result for state in states if (result := _result(state, texts)) is not None]
    results += [Result(identity, text) for identity, text in texts.items()]
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(calls), "assistant")
        .thought(*texts_of(_messages(items, "thinking"), "content"), reply.text("reasoning", "text"))
        .text(*parts_of_message(message.get("content")).texts)
        .calls(calls)
        .results(results)
        .edits(edits_of(calls))
        .spent(*_spent(message))
        .model(_model(reply))
        .flag_if(any_error(results), "error")
        .derived("kind")
        .id(message.word("id"))
        .build()
    )


def _result(state: Record, texts: dict[str, str]) -> Result | None:
    """Return a call's result and remove its text from `texts`; None for an open call without output."""
    identity, status = state.word("toolCallId"), state.word("status")
    sent = texts.pop(identity, "")
    output = joined(texts_of(state.objects("output"), "content"))
    failed = status in _FAILED
    ended = failed or status == "done"
    if not (sent or output or ended):
        return None
    return Result(identity, output or sent or (status if failed else ""), failed)


class Continue(SingleRun):
    """Recognised by a session's members, or by items of a `history` that have a message and its context."""

    name = "continue"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("promptLogs",), "the messages sent to the model for a reply, and the reply as text"),
        NotShown(("editorState",), "the message as the editor had it"),
        NotShown(("toolCallStates.tool", "toolCallState.tool"), "what the model could call"),
        NotShown(
            (
                "toolCallStates.toolCall",
                "toolCallStates.parsedArgs",
                "toolCallStates.processedArgs",
                "toolCallStates.status",
                "toolCallState.toolCall",
                "toolCallState.parsedArgs",
                "toolCallState.processedArgs",
                "toolCallState.status",
            ),
            "copies of a call and of its arguments, and how it ended",
        ),
        NotShown(
            (
                "toolCallStates.output.name",
                "toolCallStates.output.description",
                "toolCallStates.output.icon",
                "toolCallState.output.name",
                "toolCallState.output.description",
                "toolCallState.output.icon",
            ),
            "how the editor names a result; its text is shown",
        ),
        NotShown(("message.usage",), "counts of a reply; the tokens, the cost and the model are shown"),
        NotShown(("mode", "chatModelTitle", "usage"), "settings and sums, which the header has", of_run=True),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        whole = Record(probe.object)
        is_session = whole.has_all("sessionId", "workspaceDirectory", "history")
        return 0.95 if is_session or any(map(_is_item, whole.objects("history")[:3])) else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the session."""
        return _Reader(probe)


def _is_item(item: Record) -> bool:
    return item.has("contextItems") and isinstance(item.get("message"), dict)


FORMAT = Continue()
