"""The messages that Cline's or Roo Code's window showed (`ui_messages.json`), if the conversation is missing.

Each record is a statement or a question. A request to the model begins a reply, which includes everything
until the user speaks: thoughts, text, calls and their results. The result of a call, such as the content of a
file, is often only in the next request: that part of the request belongs to the preceding reply. See
`ExtensionMessage.ts` of Cline.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.formats.shared.divided_records import DividedReader
from gistpoint.sessions.records.building import StepBuilder, Tally, asking_kind
from gistpoint.sessions.records.format import Raw, SingleRun
from gistpoint.sessions.records.model import (
    Actor,
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
from gistpoint.sessions.records.record import Record, records_in, records_of, texts_of, times_of
from gistpoint.sessions.records.usage import counted_apart
from gistpoint.sessions.records.values import (
    as_dict,
    as_list,
    as_str,
    as_text,
    compact,
    joined,
    objects,
    parsed_object,
    when,
)

_REQUEST = "api_req_started"
_USER = frozenset({"task", "user_feedback", "user_feedback_diff"})
_FAILED = frozenset(
    {"error", "error_retry", "api_req_failed", "diff_error", "clineignore_error", "mistake_limit_reached"}
)
_OUTPUTS = frozenset(
    {"command_output", "mcp_server_response", "browser_action_result", "codebase_search_result"}
)
_CALLS = frozenset({"tool", "command", "use_mcp_server", "browser_action", "browser_action_launch"})
_TEXTS = frozenset(
    {"text", "completion_result", "followup", "plan_mode_respond", "plan_mode_response", "task_progress"}
)
_BEGINNING = _CALLS | (_TEXTS - {"task_progress"}) | {"reasoning"}
_SENT_BACK = "sent_back"
"""gistpoint's name for the part of a request that contains the results of the preceding reply."""
_RESULT = re.compile(r"^\[(\w{1,60})(?: for '([^\n]{0,1000})')?\] Result:[ \t]*\n?", re.M)
"""The heading of a result in a request, with the tool and the subject of its call."""
_SURROUNDINGS = re.compile(r"^<environment_details>$.*", re.M | re.S)
_ANSWERS = frozenset({"attempt_completion", "ask_followup_question", "plan_mode_respond", "new_task"})
"""Tools whose results are messages from the user, which have separate records."""
_READING = ("list", "search", "web", "codebase", "fetch")
"""The prefixes of tool names whose `content` is their result, not an argument."""


class _SentBack(NamedTuple):
    """A result in a request: the tool, the subject of its call, and the result."""

    tool: str
    subject: str
    text: str


class _Reader(DividedReader):
    format = "cline-window"

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._reply: int | None = None
        self._latest: int | None = None
        self._tally = Tally()

    def parts(self, fields: Json) -> Iterator[dict[str, Json]]:
        record = Record(fields)
        kind = _kind(record)
        self._tally.add_time(when(record.get("ts")))
        self._tally.add_model(_model(record))
        if kind == _REQUEST:
            request = Record(parsed_object(record.word("text")))
            self._tally.add_usage(*_spent(request))
            if any(_results_in(request)):
                yield {"kind": _SENT_BACK}
        yield {"kind": kind}

    def owner(self, name: dict[str, Json], step_count: int) -> int:
        kind = as_str(name.get("kind"))
        if kind == _SENT_BACK:
            return step_count if self._latest is None else self._latest
        if _is_step_of_its_own(step_count, kind):
            self._reply = None
            return step_count
        if kind == _REQUEST or (self._reply is None and kind in _BEGINNING):
            self._reply = self._latest = step_count
        return step_count - 1 if self._reply is None else self._reply

    def part_of(self, value: Json, name: dict[str, Json]) -> Json:
        return {**as_dict(value), "say": _SENT_BACK} if name.get("kind") == _SENT_BACK else value

    def user_text(self, record: dict[str, Json]) -> str:
        return as_text(record.get("text")) if _kind(Record(record)) in ("task", "text") else ""

    def header(self) -> Run:
        models = self._tally.models or [_model(Record(item)) for item in objects(self.probe.array)[:1]]
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
        """Return a record in which `text` is decoded if it is a JSON object."""
        record = as_dict(value)
        # Cline writes the members of a call or a request as JSON within the text.
        inner = parsed_object(as_str(record.get("text")))
        return value if inner is None else {**record, "text": inner}

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        records = records_of(raws)
        kind = as_str(self.names(index)[0].get("kind")) or _kind(records[0])
        if not _is_step_of_its_own(index, kind):
            return _reply(index, raws, records)
        builder = StepBuilder(index, raws, Actor.USER, asking_kind(index, 1), kind)
        if kind in _FAILED:
            builder = StepBuilder(index, raws, Actor.ENVIRONMENT, StepKind.ERROR, kind).flag("error")
        files = [f"[attached: {name}]" for name in records[0].words("files")]
        builder.text(_words(records[0].get("text")), *files)
        return builder.span(records[0].time("ts")).derived("kind").build()


def _is_step_of_its_own(index: int, kind: str) -> bool:
    """Return whether a record is a separate step: the first one (the task), a user's message, or an error."""
    return (index == 0 and kind != _SENT_BACK) or kind in _USER or kind in _FAILED


def _kind(record: Record) -> str:
    return record.first_word("say", "ask")


def _model(record: Record) -> str:
    return record.word("modelInfo", "modelId")


def _spent(request: Record) -> tuple[Tokens, float | None]:
    """Return a reply's tokens, the prompt's including cached ones, and its cost in US dollars.

    The cost is None if it is unknown.
    """
    tokens = counted_apart(
        request.whole("tokensIn"),
        request.whole("tokensOut"),
        read=request.whole("cacheReads"),
        written=request.whole("cacheWrites"),
    )
    return tokens, request.number("cost")


def _words(value: Json) -> str:
    """Return a value as text; an object becomes its question with the choices, its message, or its JSON."""
    inner = Record(value)
    if not inner:
        return as_text(value)
    known = inner.first_text("question", "response", "errorMessage", "message")
    if not known:
        return compact(inner.members)
    return joined([known, *(f"- {as_text(choice)}" for choice in as_list(inner.first("options", "suggest")))])


def _results_in(request: Record) -> Iterator[_SentBack]:
    """Yield the results of earlier calls in a request, except those that repeat messages from the user."""
    text = _SURROUNDINGS.sub("", request.word("request"))
    headings = list(_RESULT.finditer(text))
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    for heading, end in zip(headings, ends, strict=False):
        if heading[1] not in _ANSWERS:
            yield _SentBack(heading[1], heading[2] or "", text[heading.end() : end].strip("\n"))


def _add_sent_back(results: list[Result], calls: list[RunCall], sent: _SentBack) -> None:
    """Add a result from the next request, unless the window showed a result of the same call."""
    owners = [call.id for call in calls if _is_about(call, sent.subject)]
    answered = {result.call_id for result in results}
    identity = next((id for id in owners if id not in answered), "")
    if identity or not owners:
        results.append(Result(identity, sent.text))


def _is_about(call: RunCall, subject: str) -> bool:
    """Return whether a result that was sent for `subject`, a path or a command, belongs to this call."""
    values = [value for value in (call.parsed or {}).values() if isinstance(value, str) and value]
    # The window shows paths within the workspace; a request has them as the model wrote them.
    wanted = subject.replace("\\", "/")
    return any(
        wanted.endswith(plain) or plain.endswith(wanted)
        for plain in (value.replace("\\", "/") for value in values)
        if wanted
    )


def _of_kind(records: list[Record], *kinds: str) -> list[Record]:
    return [record for record in records if _kind(record) in kinds]


def _reply(index: int, raws: Sequence[Raw], records: list[Record]) -> Step:
    requests = _of_kind(records, _REQUEST)
    request = requests[0].inner("text") if requests else Record()
    calls, results = list[RunCall](), list[Result]()
    for record in _of_kind(records, *_CALLS, *_OUTPUTS):
        if _kind(record) in _CALLS:
            call, result = _call(record, f"{index}.{len(calls) + 1}")
            calls.append(call)
            results += [Result(call.id, result)] if result else []
        elif text := _words(record.get("text")):
            _add_output(results, calls[-1].id if calls else "", text)
    for record in _of_kind(records, _SENT_BACK):
        for sent in _results_in(record.inner("text")):
            _add_sent_back(results, calls, sent)
    texts = [_words(record.get("text")) for record in _of_kind(records, *_TEXTS)]
    broken = joined(request.texts("cancelReason", "streamingFailedMessage"), ": ")
    made = tuple(calls)
    return (
        StepBuilder(
            index, raws, Actor.AGENT, StepKind.ERROR if broken and not made else kind_of(made), "reply"
        )
        .thought(*texts_of(_of_kind(records, "reasoning"), "text"))
        # The window shows the text again when the reply is complete.
        .text(*dict.fromkeys([*texts, broken]))
        .calls(made)
        .results(results)
        .edits(edits_of(made))
        .over(times_of(records, "ts"))
        .replied(
            times_of(_of_kind(records, "reasoning", *_TEXTS, *_CALLS), "ts"),
            asked=next(times_of(requests, "ts"), None),
        )
        .spent(*_spent(request))
        .model(next((_model(record) for record in records if record.get("modelInfo")), ""))
        .flag_if(broken, "error")
        .derived("kind", "ended", "results.call_id")
        .build()
    )


def _add_output(results: list[Result], identity: str, text: str) -> None:
    # A command's output is recorded as it arrives: each record has the next lines.
    if results and results[-1].call_id == identity:
        results[-1] = Result(identity, f"{results[-1].text}\n{text}")
    else:
        results.append(Result(identity, text))


def _call(record: Record, identity: str) -> tuple[RunCall, str]:
    """Return a call, and its result if the same record contains it; otherwise the result is empty."""
    kind, inner = _kind(record), record.inner("text")
    if kind == "command" or not inner:
        name = "execute_command" if kind == "command" else kind
        # A command that needs the user's consent ends with a mark by the window.
        arguments: dict[str, Json] = {"command": record.text("text").removesuffix("REQ_APP")}
        return RunCall(identity, name, compact(arguments), arguments), ""
    name = inner.first_word("tool", "toolName", "action") or kind
    arguments = inner.without("tool", "operationIsLocatedInWorkspace")
    result = inner.text("content") if name.lower().startswith(_READING) else ""
    if result:
        arguments.pop("content")
    elif "content" in arguments and name.startswith(("edited", "applied")):
        # The content of such a call is a diff, not a whole file.
        arguments = {"diff" if key == "content" else key: value for key, value in arguments.items()}
    return RunCall(identity, name, compact(arguments), arguments), result


class ClineWindow(SingleRun):
    """Recognised by records of the type `say` or `ask` with a time in milliseconds."""

    name = "cline-window"
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("text.request",),
            "the input of the model: its surroundings, and results and requests that other records show;"
            " results of other calls are shown with these",
        ),
        NotShown(
            ("say", "ask", "modelInfo", "lastCheckpointHash"), "what kind of a record it is, and its model"
        ),
        NotShown(("images",), "pictures as data"),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        found = records_in(probe.array)[:5]
        return 1.0 if found and all(map(_is_shown, found)) else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the task."""
        return _Reader(probe)


def _is_shown(record: Record) -> bool:
    typed = record.get("type") in ("say", "ask")
    return typed and record.has("ts") and bool(_kind(record))


FORMAT = ClineWindow()
