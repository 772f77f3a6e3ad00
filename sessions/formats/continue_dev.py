"""Sessions of Continue, in editors and on the command line: a reply has its calls, and their results beside them."""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.sessions.formats.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.formats.messages import parts_of_message
from gistpoint.sessions.records.building import StepBuilder, Tally, any_error
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    first,
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
        """The step of a thought whose reply has not come yet."""
        self._model = ""

    def place(self, fields: Json, step_count: int) -> int:
        item = as_dict(fields)
        message = as_dict(item.get("message"))
        role = message.get("role")
        if role == "tool":
            return self._calls.get(as_str(message.get("toolCallId")), step_count)
        step = self._thought if role == "assistant" and self._thought is not None else step_count
        self._thought = step if role == "thinking" else None
        if role == "assistant":
            self._tally.spend(*_spent(message))
            self._model = self._model or _model(item)
            for call in objects(message.get("toolCalls")):
                self._calls[as_str(call.get("id"))] = step
        return step

    def said_by_user(self, record: dict[str, Json]) -> str:
        message = as_dict(record.get("message"))
        return joined(parts_of_message(message.get("content")).texts) if message.get("role") == "user" else ""

    def header(self) -> Run:
        title, folder = as_str(self.fact("title")), as_str(self.fact("workspaceDirectory"))
        spent = as_dict(self.fact("usage"))
        told = Tokens(as_int(spent.get("promptTokens")) or None, as_int(spent.get("completionTokens")) or None)
        return Run(
            self.format,
            id=as_str(self.fact("sessionId")),
            task=self.request or title,
            model=self._model or as_str(self.fact("chatModelTitle")),
            agent="continue",
            tokens=self._tally.tokens if told == Tokens() else told,
            cost=as_float(spent.get("totalCost")) or None,  # 0 where nothing was counted
            extra={key: value for key, value in (("title", title), ("cwd", folder)) if value},
            derived=frozenset({"task", "tokens"} if told == Tokens() else {"task"}),
        )

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        items = [as_dict(raw.value) for raw in raws]
        reply = next((item for item in items if as_dict(item.get("message")).get("role") == "assistant"), None)
        return _heard(index, raws, items[0]) if reply is None else _reply(index, raws, items, reply)


def _spent(message: dict[str, Json]) -> tuple[Tokens, float | None]:
    """Return the tokens of a reply, and its cost in US dollars."""
    usage = as_dict(message.get("usage"))
    cached = as_int(as_dict(usage.get("prompt_tokens_details")).get("cached_tokens"))
    cents = as_float(usage.get("cost_cents"))
    tokens = Tokens(as_int(usage.get("prompt_tokens")), as_int(usage.get("completion_tokens")), cached)
    return tokens, None if cents is None else cents / 100


def _model(item: dict[str, Json]) -> str:
    log = (objects(item.get("promptLogs")) or [{}])[0]
    told = as_dict(as_dict(item.get("message")).get("usage")).get("model")
    return as_str(told or as_dict(log.get("completionOptions")).get("model") or log.get("modelTitle"))


def _heard(index: int, raws: Sequence[Raw], item: dict[str, Json]) -> Step:
    """Return the step of a message that the model did not write, or of a thought without a reply."""
    message = as_dict(item.get("message"))
    role = as_str(message.get("role"))
    actors = {"user": Actor.USER, "thinking": Actor.AGENT, "tool": Actor.ENVIRONMENT}
    text = joined(parts_of_message(message.get("content")).texts)
    names = [as_str(first(beside, "name", "description")) for beside in objects(item.get("contextItems"))]
    user = role == "user"
    kind = StepKind.TASK if user and index == 0 else StepKind.MESSAGE if user or role == "thinking" else StepKind.SYSTEM
    return (
        StepBuilder(
            index, raws, actors.get(role, Actor.SYSTEM), StepKind.TOOL if role == "tool" else kind, role or "item"
        )
        .thought(text if role == "thinking" else "")
        .text("" if role == "thinking" else joined([text, *(f"[attached: {name}]" for name in names if name)]))
        .flag_if(role == "tool", "unpaired")
        .derived("kind")
        .id(as_str(message.get("id")))
        .build()
    )


def _reply(index: int, raws: Sequence[Raw], items: list[dict[str, Json]], reply: dict[str, Json]) -> Step:
    message = as_dict(reply.get("message"))
    by_role = [(as_dict(item.get("message")).get("role"), as_dict(item.get("message"))) for item in items]
    thought = [as_text(one.get("content")) for role, one in by_role if role == "thinking"]
    thought.append(as_text(as_dict(reply.get("reasoning")).get("text")))
    calls = tuple(call_of_function(call) for call in objects(message.get("toolCalls")))
    told = {as_str(one.get("toolCallId")): as_text(one.get("content")) for role, one in by_role if role == "tool"}
    states = objects(reply.get("toolCallStates")) or [as_dict(reply.get("toolCallState"))]
    results = [result for state in states if (result := _result(state, told)) is not None]
    results += [Result(identity, text) for identity, text in told.items()]
    failed = any_error(results)
    tokens, cost = _spent(message)
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(calls), "assistant")
        .thought(*thought)
        .text(*parts_of_message(message.get("content")).texts)
        .calls(calls)
        .results(results)
        .edits(edits_of(calls))
        .spent(tokens, cost)
        .model(_model(reply))
        .flag_if(failed, "error")
        .derived("kind")
        .id(as_str(message.get("id")))
        .build()
    )


def _result(state: dict[str, Json], told: dict[str, str]) -> Result | None:
    """Return what a call brought, if it has ended; what the model was told of it is taken out of `told`."""
    identity, status = as_str(state.get("toolCallId")), as_str(state.get("status"))
    said = told.pop(identity, "")
    output = joined(as_text(one.get("content")) for one in objects(as_list(state.get("output"))))
    if not (said or output or status in _FAILED or status == "done"):
        return None
    return Result(identity, output or said or (status if status in _FAILED else ""), status in _FAILED)


class Continue(SingleRun):
    """Recognised by items of a `history` that have a message and the context that was attached to it."""

    name = "continue"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("promptLogs",), "what the model was sent for a reply, and the reply as text"),
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
        items = objects(probe.object.get("history"))[:3]
        known = any(isinstance(item.get("message"), dict) and "contextItems" in item for item in items)
        empty = {"sessionId", "workspaceDirectory", "history"} <= probe.object.keys()
        return 0.95 if known or empty else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Open the session."""
        return _Reader(probe)


FORMAT = Continue()
