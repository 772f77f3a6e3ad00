"""What the window of Cline or Roo Code showed (`ui_messages.json`), for a task whose conversation is not at hand.

Each record is something said or asked. A request to the model begins a reply, to which all belongs until a user speaks:
thoughts, texts, calls, and what the calls brought. After `ExtensionMessage.ts` of Cline.
"""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.sessions.formats.calls import edits_of, kind_of
from gistpoint.sessions.records.building import StepBuilder, Tally, asking_kind
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, RunCall, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    compact,
    first,
    joined,
    objects,
    parsed_object,
    total,
    when,
)

_REQUEST = "api_req_started"
_USER = frozenset({"task", "user_feedback", "user_feedback_diff"})
_FAILED = frozenset(
    {"error", "error_retry", "api_req_failed", "diff_error", "clineignore_error", "mistake_limit_reached"}
)
_OUTPUTS = frozenset({"command_output", "mcp_server_response", "browser_action_result", "codebase_search_result"})
_CALLS = frozenset({"tool", "command", "use_mcp_server", "browser_action", "browser_action_launch"})
_TOLD = frozenset({"text", "completion_result", "followup", "plan_mode_respond", "plan_mode_response", "task_progress"})
_BEGINNING = _CALLS | (_TOLD - {"task_progress"}) | {"reasoning"}
_READING = ("list", "search", "web", "codebase", "fetch")
"""How the names of tools begin whose `content` is what they brought, not what they were given."""


class _Reader(RunReader):
    format = "cline-window"

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._reply: int | None = None
        self._tally = Tally()
        self._models: list[str] = []

    def place(self, fields: Json, step_count: int) -> int:
        record = as_dict(fields)
        kind = _kind(record)
        self._tally.see(when(record.get("ts")))
        model = as_str(as_dict(record.get("modelInfo")).get("modelId"))
        if model and model not in self._models:
            self._models.append(model)
        if step_count == 0 or kind in _USER or kind in _FAILED:
            self._reply = None
            return step_count
        if kind == _REQUEST:
            self._tally.spend(*_spent(parsed_object(as_str(record.get("text"))) or {}))
            self._reply = step_count
        elif self._reply is None and kind in _BEGINNING:
            self._reply = step_count
        return step_count - 1 if self._reply is None else self._reply

    def said_by_user(self, record: dict[str, Json]) -> str:
        return as_text(record.get("text")) if _kind(record) in ("task", "text") else ""

    def header(self) -> Run:
        models = self._models or [
            as_str(as_dict(item.get("modelInfo")).get("modelId")) for item in objects(self.probe.array)[:1]
        ]
        return Run(
            self.format,
            task=self.request,
            model=next(iter(models), ""),
            agent="Cline",
            tokens=self._tally.tokens,
            cost=self._tally.cost,
            started=self._tally.started,
            duration_s=self._tally.duration_s,
            extra={"models": [*models]} if len(models) > 1 else {},
            derived=frozenset({"task", "tokens", "cost", "duration_s"}),
        )

    def completed(self, value: Json) -> Json:
        """Return a record in which a text that is a JSON object is a value."""
        record = as_dict(value)
        inner = parsed_object(as_str(record.get("text")))
        return value if inner is None else {**record, "text": inner}

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        records = [as_dict(raw.value) for raw in raws]
        kind = _kind(records[0])
        if index == 0 or kind in _USER or kind in _FAILED:
            failed = kind in _FAILED
            text = _words(records[0].get("text"))
            names = [as_str(name) for name in as_list(records[0].get("files"))]
            purpose = asking_kind(index, 1)
            return (
                StepBuilder(
                    index,
                    raws,
                    Actor.ENVIRONMENT if failed else Actor.USER,
                    StepKind.ERROR if failed else purpose,
                    kind,
                )
                .text(text, *(f"[attached: {name}]" for name in names))
                .span(when(records[0].get("ts")))
                .flag_if(failed, "error")
                .derived("kind")
                .build()
            )
        return _reply(index, raws, records)


def _kind(record: dict[str, Json]) -> str:
    return as_str(first(record, "say", "ask"))


def _spent(request: dict[str, Json]) -> tuple[Tokens, float | None]:
    """Return the tokens of a reply, and its cost in US dollars; the prompt's include those from a cache."""
    read = as_int(request.get("cacheReads"))
    prompt = total([as_int(request.get("tokensIn")), as_int(request.get("cacheWrites")), read])
    return Tokens(prompt, as_int(request.get("tokensOut")), read), as_float(request.get("cost"))


def _words(value: Json) -> str:
    """Return a text; of an object the question and the choices, or the message, else all of it."""
    inner = as_dict(value)
    if not inner:
        return as_text(value)
    known = first(inner, "question", "response", "errorMessage", "message")
    choices = [f"- {as_text(choice)}" for choice in as_list(first(inner, "options", "suggest"))]
    return joined([as_text(known), *choices]) if known else compact(inner)


def _reply(index: int, raws: Sequence[Raw], records: list[dict[str, Json]]) -> Step:
    request = next((as_dict(record.get("text")) for record in records if _kind(record) == _REQUEST), {})
    calls, results = list[RunCall](), list[Result]()
    for record in records:
        kind = _kind(record)
        if kind in _CALLS:
            call, brought = _call(record, f"{index}.{len(calls) + 1}")
            calls.append(call)
            results += [Result(call.id, brought)] if brought else []
        elif kind in _OUTPUTS and (text := _words(record.get("text"))):
            identity = calls[-1].id if calls else ""
            if results and results[-1].call_id == identity:
                results[-1] = Result(identity, f"{results[-1].text}\n{text}")
            else:
                results.append(Result(identity, text))
    said = [_words(record.get("text")) for record in records if _kind(record) in _TOLD]
    broken = joined([as_text(request.get(key)) for key in ("cancelReason", "streamingFailedMessage")], ": ")
    times = [when(record.get("ts")) for record in records]
    tokens, cost = _spent(request)
    made = tuple(calls)
    return (
        StepBuilder(index, raws, Actor.AGENT, StepKind.ERROR if broken and not made else kind_of(made), "reply")
        .thought(*(as_text(record.get("text")) for record in records if _kind(record) == "reasoning"))
        .text(*dict.fromkeys([*said, broken]))
        .calls(made)
        .results(results)
        .edits(edits_of(made))
        .over(times)
        .spent(tokens, cost)
        .model(
            next(
                (
                    as_str(as_dict(record.get("modelInfo")).get("modelId"))
                    for record in records
                    if record.get("modelInfo")
                ),
                "",
            )
        )
        .flag_if(broken, "error")
        .derived("kind", "ended", "results.call_id")
        .build()
    )


def _call(record: dict[str, Json], identity: str) -> tuple[RunCall, str]:
    """Return a call, and its result if the same record has it."""
    kind, inner = _kind(record), as_dict(record.get("text"))
    if kind == "command" or not inner:
        name = "execute_command" if kind == "command" else kind
        arguments: dict[str, Json] = {"command": as_text(record.get("text"))}
        return RunCall(identity, name, compact(arguments), arguments), ""
    name = as_str(first(inner, "tool", "toolName", "action")) or kind
    brought = as_text(inner.get("content")) if name.lower().startswith(_READING) else ""
    left = {"tool", "operationIsLocatedInWorkspace", *(("content",) if brought else ())}
    changed = name.startswith(("edited", "applied"))  # their content is a diff, not a whole file
    arguments = {
        "diff" if changed and key == "content" else key: value for key, value in inner.items() if key not in left
    }
    return RunCall(identity, name, compact(arguments), arguments), brought


class ClineWindow(SingleRun):
    """Recognised by records that are said or asked, with a time in milliseconds."""

    name = "cline-window"
    not_shown: Sequence[NotShown] = (
        NotShown(("text.request",), "what the model was sent: the request and its surroundings"),
        NotShown(("say", "ask", "modelInfo", "lastCheckpointHash"), "what kind of a record it is, and its model"),
        NotShown(("images",), "pictures as data"),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        found = objects(probe.array)[:5]
        told = all("ts" in item and item.get("type") in ("say", "ask") and _kind(item) for item in found)
        return 1.0 if found and told else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Open the task."""
        return _Reader(probe)


FORMAT = ClineWindow()
