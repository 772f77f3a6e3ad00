"""Reads chats of GitHub Copilot in VS Code, exported or stored: requests with several rounds of replies.

The format is that of VS Code's `chatModel.ts`. A request contains its calls twice, with different ids: in
`response` as the window showed them, and in `result.metadata.toolCallRounds` as the model made them. The
latter is missing while a request runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice

from gistpoint.sessions.formats.shared.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.formats.shared.divided_records import DividedReader
from gistpoint.sessions.records.archives import BytesBlob
from gistpoint.sessions.records.building import (
    StepBuilder,
    Tally,
    any_error,
    any_failed,
    asking_kind,
    error_if,
)
from gistpoint.sessions.records.format import Raw, SingleRun
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
from gistpoint.sessions.records.record import Record, attached, first_in, records_in, texts_of, words_of
from gistpoint.sessions.records.requests import headline
from gistpoint.sessions.records.scanning import lines
from gistpoint.sessions.records.values import (
    as_dict,
    as_int,
    as_list,
    as_str,
    as_text,
    compact,
    first_known,
    joined,
    later,
    objects,
    when,
)

_RENDERED = ("renderedUserMessage", "renderedGlobalContext")
_ANNOUNCED = frozenset({"prepareToolInvocation", "undoStop", "mcpServersStarting"})
"""The kinds of the parts of a response that have no content to show."""


class _Reader(DividedReader):
    format = "copilot-chat"
    arrays = ("requests",)

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self.blobs = [probe.blob]
        self._tally = Tally()
        self._seen: dict[str, str] = {}

    def parts(self, fields: Json) -> Iterator[dict[str, Json]]:
        request = Record(fields)
        self._learn(request)
        rounds = _rounds(request)
        count = len(rounds) or len(_groups(request))
        yield {"part": "user", "last": not count}
        for number in range(count):
            yield {"part": "round" if rounds else "group", "number": number, "last": number == count - 1}
        if _ending(request):
            yield {"part": "end"}

    def _learn(self, request: Record) -> None:
        begun, spent = request.time("timestamp"), request.seconds_of_ms("result", "timings", "totalElapsed")
        self._tally.add_time(begun)
        self._tally.add_time(later(begun, spent))
        self._tally.add_usage(_tokens(request))
        self._seen.setdefault("model", request.word("modelId"))
        self._seen.setdefault("id", request.word("result", "metadata", "sessionId"))

    def part_of(self, value: Json, name: dict[str, Json]) -> Json:
        request, last = Record(value), bool(name.get("last"))
        number = as_int(name.get("number")) or 0
        match name.get("part"):
            case "user":
                return _question(request, last)
            case "end":
                return _ending(request)
            case "round":
                return _one_round(request, number, last)
        facts = Record(_remaining_members(request, False) if last else {"modelId": request.get("modelId")})
        group = next(islice(_groups(request), number, None), [])  # only requests have rounds
        return {**facts.members, "response": [*group, *facts.items("response")]}

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        part, value = self.names(index)[0].get("part"), Record(raws[0].value)
        if part == "user":
            builder = StepBuilder(index, raws, Actor.USER, asking_kind(index, 1), "request").text(
                _message(value)
            )
            return builder.span(value.time("timestamp")).id(value.word("requestId")).build()
        if part == "end":
            builder = StepBuilder(index, raws, Actor.ENVIRONMENT, StepKind.END, "cancelled")
            if value.has("errorDetails"):
                builder = StepBuilder(index, raws, Actor.ENVIRONMENT, StepKind.ERROR, "error").flag("error")
            return builder.text(value.text("errorDetails", "message") or "The request was cancelled.").build()
        return _round(index, raws, value) if part == "round" else _group(index, raws, value)

    def header(self) -> Run:
        requests, tally = records_in(self.probe.object.get("requests")), self._tally
        if requests and not self._seen.get("model"):
            self._seen["model"] = requests[0].word("modelId")
        created = when(self.fact("creationDate"))
        return Run(
            self.format,
            as_str(self.fact("version")),
            id=as_str(self.fact("sessionId")) or self._seen.get("id", ""),
            task=as_str(self.fact("customTitle")) or headline(_text_of(requests[0]) if requests else ""),
            model=self._seen.get("model", ""),
            agent=as_str(self.fact("responderUsername")) or "GitHub Copilot",
            tokens=tally.tokens,
            started=first_known((tally.started, created)),
            # A single time does not determine the duration of the chat.
            duration_s=tally.duration_s if tally.times > 1 else None,
            derived=frozenset({"duration_s", "tokens"}),
        )


def _metadata(request: Record) -> Record:
    return request.inner("result", "metadata")


def _rounds(request: Record) -> list[Record]:
    """Return the model's replies that contain text, a thought or a call."""
    rounds = _metadata(request).objects("toolCallRounds")
    return [item for item in rounds if item.kept("response", "toolCalls", "thinking")]


def _question(request: Record, last: bool) -> dict[str, Json]:
    """Return the parts of a request that its question shows; with `last`, the remaining members too."""
    shown = ("requestId", "message", "variableData", "timestamp", "isSystemInitiated", "contentReferences")
    asked = {key: request.get(key) for key in shown if request.has(key)}
    known = _metadata(request)
    sent = {key: known.get(key) for key in _RENDERED if known.has(key)}
    others = Record(_remaining_members(request, False) if last else {})
    metadata = {**_metadata(others).members, **sent}
    return {**others.members, **asked, "result": {**others.inner("result").members, "metadata": metadata}}


def _one_round(request: Record, number: int, last: bool) -> dict[str, Json]:
    """Return the part of a request that the step of a reply shows: the reply and its results.

    The last reply also shows the remaining members.
    """
    facts = Record(_remaining_members(request, True) if last else {"modelId": request.get("modelId")})
    item, results = _rounds(request)[number], _metadata(request).inner("toolCallResults")
    found = {id: results.get(id) for id in words_of(item.objects("toolCalls"), "id") if results.has(id)}
    others = _metadata(facts)
    rounds: list[Json] = [item.members, *others.items("toolCallRounds")]
    metadata = {**others.members, "toolCallRounds": rounds, "toolCallResults": found}
    return {**facts.members, "result": {**facts.inner("result").members, "metadata": metadata}}


_SHOWN_ELSEWHERE = (
    "message",
    "variableData",
    "response",
    "requestId",
    "contentReferences",
    "isSystemInitiated",
    "result",
)


def _remaining_members(request: Record, rounds: bool) -> dict[str, Json]:
    """Return the members of a request that are not in its question, its rounds or its end.

    The step of the last reply shows them. `rounds` means that the replies are recorded as rounds, whose text
    the response repeats.
    """
    others = _metadata(request).without(*_RENDERED)
    shown = _rounds(request)
    known = [item.members for item in shown]
    others["toolCallRounds"] = [
        item for item in objects(_metadata(request).get("toolCallRounds")) if item not in known
    ]
    parts = request.objects("response")
    response: list[Json] = [part.members for part in parts if _is_quiet(part)]
    if rounds:
        others.pop("toolCallResults", None)
        # The response in the window repeats the text of the rounds.
        whole = "\n".join(texts_of(shown, "response"))
        response = [_without_text(part, whole) for part in parts]
    result = request.inner("result").without("metadata", "errorDetails")
    return {
        **request.without(*_SHOWN_ELSEWHERE),
        "response": response,
        "result": {**result, "metadata": others},
    }


def _without_text(part: Record, whole: str) -> dict[str, Json]:
    is_repeated = not part.get("kind") and part.text("value").strip() in whole
    return part.without("value") if is_repeated else part.members


def _is_quiet(part: Record) -> bool:
    """Return whether a part of a response has no content."""
    kind = part.word("kind")
    return kind in _ANNOUNCED or not (part.get("kind") or part.text("value").strip())


def _groups(request: Record) -> list[list[Json]]:
    """Return the parts of a response in groups: text and the calls that follow it."""
    groups: list[list[Json]] = []
    called = True
    for part in request.objects("response"):
        is_call = part.get("kind") == "toolInvocationSerialized"
        if _is_quiet(part):
            continue
        speaks_again = called and not is_call
        if speaks_again or not groups:
            groups.append([])
        called = is_call
        groups[-1].append(part.members)
    return groups


def _ending(request: Record) -> dict[str, Json]:
    """Return the end of a request that failed or was cancelled; otherwise an empty object."""
    details = request.inner("result", "errorDetails")
    if details:
        return {"errorDetails": details.members}
    return {"isCanceled": True} if request.truth("isCanceled") else {}


def _text_of(request: Record) -> str:
    message = request.get("message")
    return message if isinstance(message, str) else request.text("message", "text")


def _message(request: Record) -> str:
    files = [item.first_word("name", "id") for item in request.objects("variableData", "variables")]
    return joined([_text_of(request), *attached(files)])


def _tokens(request: Record) -> Tokens:
    # The location of the counts depends on the extension's version; the newest versions put them outermost.
    counts = Record(
        {**_metadata(request).members, **request.inner("result", "usage").members, **request.members}
    )
    return Tokens(counts.whole("promptTokens"), as_int(counts.first("completionTokens", "outputTokens")))


def _round(index: int, raws: Sequence[Raw], value: Record) -> Step:
    """Return the step of a reply, with the results of its calls."""
    item = first_in(_metadata(value).get("toolCallRounds"))
    calls = tuple(map(call_of_function, objects(item.get("toolCalls"))))
    results: list[Result] = []
    for id, found in _metadata(value).inner("toolCallResults").members.items():
        results.append(Result(id, _result_text(found), error_if(as_dict(found).get("hasError"))))
    thinking = item.get("thinking")
    thought = thinking.get("text", thinking) if isinstance(thinking, dict) else thinking
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(calls), "round")
        .thought(as_text(thought))
        .text(item.text("response"))
        .calls(calls)
        .results(results)
        .edits(edits_of(calls))
        .span(item.time("timestamp"))
        .spent(_tokens(value))
        .model(value.word("modelId"))
        .flag_if(any_error(results), "error")
        .derived("kind")
        .id(item.word("id"))
        .build()
    )


def _result_text(value: Json) -> str:
    # A result is stored as the tree of components that its prompt was rendered from.
    contents = as_list(as_dict(value).get("content"))
    return joined("".join(_leaves(as_dict(part).get("value", part))) for part in contents) or as_text(value)


def _leaves(value: Json) -> Iterator[str]:
    """Yield the strings of a tree that was rendered for a prompt."""
    node = as_dict(as_dict(value).get("node")) or as_dict(value)
    if not node:
        yield as_text(value)
        return
    stack: list[Json] = [node]
    last_text = ""
    while stack:
        found = as_dict(stack.pop())
        if found.get("lineBreakBefore") and last_text and not last_text.endswith("\n"):
            yield "\n"
        if isinstance(found.get("text"), str):
            last_text = as_text(found["text"]) or last_text
            yield as_text(found["text"])
        elif not found.get("children") and "data" in found:
            yield f"[{as_str(found.get('mimeType')) or 'data'}]"
        stack += reversed(as_list(found.get("children")))


def _group(index: int, raws: Sequence[Raw], value: Record) -> Step:
    """Return the step for a group of parts of the shown response, if no replies are recorded as rounds."""
    parts = value.objects("response")
    invoked = _of_kind(parts, "toolInvocationSerialized")
    calls = tuple(map(_invocation, invoked))
    results = [_outcome(part) for part in invoked if part.get("isComplete")]
    texts = [part for part in parts if part.word("kind") not in ("thinking", "toolInvocationSerialized")]
    edited = map(_edited, _of_kind(parts, "textEditGroup"))
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(calls), "response")
        # A string is stored in the pieces in which it arrived.
        .thought("".join(texts_of(_of_kind(parts, "thinking"), "value")))
        .text("".join(map(_shown, texts)))
        .calls(calls)
        .results(results)
        .edits([*edits_of(calls), *map(FileEdit, edited)])
        .spent(_tokens(value))
        .model(value.word("modelId"))
        .flag_if(any_failed(results), "error")
        .derived("kind")
        .build()
    )


def _of_kind(parts: list[Record], kind: str) -> list[Record]:
    return [part for part in parts if part.get("kind") == kind]


def _shown(part: Record) -> str:
    """Return the text of a response's part: a reference's name, an edit's file and text, or its content."""
    kind = part.get("kind")
    if kind == "inlineReference":
        reference = part.inner("inlineReference")
        return as_str(part.first("name") or reference.first("name", "path", "fsPath"))
    if kind == "textEditGroup":
        changes = [text for edits in part.items("edits") for text in texts_of(records_in(edits), "text")]
        return "\n" + joined([f"[edited: {_edited(part)}]", *changes]) + "\n"
    content = part.first("value", "content", "title", "message", "uri")
    inner = Record(content)
    return inner.first_text("value", "path") if inner else as_text(content)


def _edited(part: Record) -> str:
    return part.inner("uri").first_word("path", "fsPath")


_STATE = ("kind", "terminalCommandState", "terminalCommandOutput", "commandLine")


def _invocation(part: Record) -> RunCall:
    data = part.inner("toolSpecificData")
    arguments = data.inner("rawInput").members
    if not arguments:
        # Only some tools record their arguments. For the others, the terminal's command or the displayed
        # message is used.
        arguments = data.without(*_STATE)
        line = data.inner("commandLine")
        if line:
            arguments["command"] = line.first("userEdited", "toolEdited", "original")
        arguments = arguments or {"message": _worded(part.get("invocationMessage"))}
    return RunCall(part.word("toolCallId"), part.word("toolId"), compact(arguments), arguments)


def _worded(message: Json) -> str:
    return as_text(message.get("value") if isinstance(message, dict) else message)


def _outcome(part: Record) -> Result:
    """Return the result of a call as the window showed it."""
    output = part.text("toolSpecificData", "terminalCommandOutput", "text")
    details = part.get("resultDetails")
    # Some recordings contain only the output's parts, without the enclosing object.
    listed = joined(texts_of(records_in(details), "value")) if isinstance(details, list) else ""
    output = output or listed or as_text(Record(details).first("output"))
    code = part.whole("toolSpecificData", "terminalCommandState", "exitCode")
    text = output or _worded(part.get("pastTenseMessage"))
    return Result(part.word("toolCallId"), text, part.truth("resultDetails", "isError"), code)


class CopilotChat(SingleRun):
    """Recognised by `requests` with a `responderUsername` or a dated session, or by a first `requestId`."""

    name = "copilot-chat"
    unique_ids = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("message.parts", "variableData.variables", "contentReferences"),
            "the message in parts, and the files attached to it: the step has the text and names them",
        ),
        NotShown(
            ("agent", "slashCommand", "result.details", "result.metadata.agentId", "modelState", "followups"),
            "the extension that answered, and the questions that it suggested",
        ),
        NotShown(
            ("result.metadata.codeBlocks", "result.metadata.summary"), "copies of code and text in the answer"
        ),
        NotShown(
            (
                "response.invocationMessage",
                "response.pastTenseMessage",
                "response.progress",
                "response.uri",
                "response.baseUri",
                "response.toolSpecificData",
                "response.inlineReference",
                "response.toolName",
                "response.generatedTitle",
                "response.source",
                "response.resultDetails",
                "response.toolId",
                "response.icon",
                "response.presentation",
                "response.isConfirmed",
            ),
            "how the window worded and linked a call; the call and its result are in the step",
        ),
        NotShown(
            ("result.metadata.toolCallResults",), "the tree of a result, of which the step has the text"
        ),
        NotShown(
            (
                "requesterUsername",
                "requesterAvatarIconUri",
                "responderAvatarIconUri",
                "initialLocation",
                "mode",
                "selectedModel",
                "inputState",
                "attachments",
                "inputText",
                "sessionId",
                "version",
            ),
            "who asked, and the state of the window",
            of_run=True,
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        holder = Record(probe.lines[0].get("v") if _is_log(probe) else probe.object)
        if not isinstance(holder.get("requests"), list):
            return 0.0
        dated = holder.get("sessionId") and holder.has("creationDate")
        if dated or holder.has("responderUsername"):
            return 0.95
        opening = first_in(holder.get("requests"))
        return 0.9 if opening.has("requestId") and opening.has("message", "response") else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the chat."""
        if not _is_log(probe):
            return _Reader(probe)
        return _Reader(FileProbe(_Replayed(probe), name=probe.name))


def _is_log(probe: FileProbe) -> bool:
    """Return whether a session is a log of changes: a whole state in line 1, then a change per line."""
    first_line = (probe.lines or [{}])[0]
    return as_int(first_line.get("kind")) == 0 and isinstance(first_line.get("v"), dict)


class _Replayed:
    """The session that results from a log of changes, as one JSON document; replayed at the first read."""

    name = ""

    def __init__(self, probe: FileProbe) -> None:
        self._probe = probe

    @cached_property
    def _whole(self) -> BytesBlob:
        state: Json = None
        # A change of kind 0 is a whole state, which replaces the earlier state.
        for record in lines(self._probe.blob, self._probe.start):
            if record.damage:
                continue
            change = as_dict(record.fields)
            state = change.get("v") if as_int(change.get("kind")) == 0 else state
            _apply(state, change)
        return BytesBlob(json.dumps(state).encode("latin-1", "replace"))

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self._whole.size

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        return self._whole.read(offset, length)


def _apply(state: Json, change: dict[str, Json]) -> None:
    """Apply a change: 1 sets a member, 2 cuts an array at `i` and appends to it, 3 removes a member."""
    kind, path, value = as_int(change.get("kind")), as_list(change.get("k")), change.get("v")
    if kind not in (1, 2, 3) or not path:
        return
    holder: Json = state
    for key in path[:-1]:
        holder = _member(holder, key)
    last = path[-1]
    if kind == 2:
        array = _member(holder, last)
        if isinstance(array, list):
            cut = as_int(change.get("i"))
            del array[len(array) if cut is None else cut :]
            array += as_list(value)
            return
        value = as_list(value)
    _put(holder, last, [] if kind == 3 else [value])


def _put(holder: Json, key: Json, values: list[Json]) -> None:
    """Set a member, or remove it if `values` is empty; do nothing if the holder can't have it."""
    if isinstance(holder, dict) and isinstance(key, str):
        if values:
            holder[key] = values[0]
        else:
            holder.pop(key, None)
    elif isinstance(holder, list) and isinstance(key, int) and 0 <= key <= len(holder):
        holder[key : key + 1] = values


def _member(holder: Json, key: Json) -> Json:
    if isinstance(holder, dict) and isinstance(key, str):
        return holder.get(key)
    if not isinstance(holder, list) or not isinstance(key, int):
        return None
    return holder[key] if 0 <= key < len(holder) else None


FORMAT = CopilotChat()
