"""Chats of GitHub Copilot in VS Code: an export or a stored session, with requests that hold several rounds each.

After VS Code's `chatModel.ts`. A request names its calls twice, with different ids: in `response`, as they were shown,
and in `result.metadata.toolCallRounds`, as the model made them; the second is missing while a request runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice

from gistpoint.sessions.formats._parts import PartsReader
from gistpoint.sessions.formats.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.records.archives import BytesBlob
from gistpoint.sessions.records.building import StepBuilder, any_error, any_failed, asking_kind
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
from gistpoint.sessions.records.requests import headline
from gistpoint.sessions.records.scanning import lines
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
    joined,
    objects,
    when,
)

_RENDERED = ("renderedUserMessage", "renderedGlobalContext")
_ANNOUNCED = frozenset({"prepareToolInvocation", "undoStop", "mcpServersStarting"})
"""Parts of a response that say nothing to a reader."""


class _Reader(PartsReader):
    format = "copilot-chat"
    arrays = ("requests",)

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self.blobs = [probe.blob]
        self._times: list[float] = []
        self._tokens = Tokens()
        self._seen: dict[str, str] = {}

    def parts(self, fields: Json) -> Iterator[dict[str, Json]]:
        request = as_dict(fields)
        result = as_dict(request.get("result"))
        self._learn(request, result)
        rounds = _rounds(request)
        count = len(rounds) or len(_groups(request))
        yield {"part": "user", "last": not count}
        for number in range(count):
            yield {"part": "round" if rounds else "group", "number": number, "last": number == count - 1}
        if _ending(request):
            yield {"part": "end"}

    def _learn(self, request: dict[str, Json], result: dict[str, Json]) -> None:
        begun = when(request.get("timestamp"))
        spent = as_float(as_dict(result.get("timings")).get("totalElapsed"))
        for at in (begun, begun + spent / 1000 if begun is not None and spent is not None else None):
            if at is not None:
                self._times.append(at)
        self._tokens += _tokens(request)
        self._seen.setdefault("model", as_str(request.get("modelId")))
        self._seen.setdefault("id", as_str(as_dict(result.get("metadata")).get("sessionId")))

    def part_of(self, value: Json, name: dict[str, Json]) -> Json:
        request = as_dict(value)
        if name.get("part") == "user":
            beside: dict[str, Json] = _beside(request, False) if name.get("last") else {}
            asked = _asked(request)
            sent = as_dict(asked.get("result"))
            others = as_dict(beside.get("result"))
            metadata = {**as_dict(others.get("metadata")), **as_dict(sent.get("metadata"))}
            return {**beside, **asked, "result": {**others, "metadata": metadata}}
        if name.get("part") == "end":
            return _ending(request)
        number, rounds = as_int(name.get("number")) or 0, name.get("part") == "round"
        facts = _beside(request, rounds) if name.get("last") else {"modelId": request.get("modelId")}
        if not rounds:
            group = next(islice(_groups(request), number, None), [])  # a record that is no request has none
            return {**facts, "response": [*group, *as_list(facts.get("response"))]}
        metadata = as_dict(as_dict(request.get("result")).get("metadata"))
        item = _rounds(request)[number]
        results = as_dict(metadata.get("toolCallResults"))
        ids = [as_str(call.get("id")) for call in objects(item.get("toolCalls"))]
        found = {id: results[id] for id in ids if id in results}
        beside = as_dict(facts.get("result"))
        others = as_dict(beside.get("metadata"))
        items: list[Json] = [item, *as_list(others.get("toolCallRounds"))]
        shown = {**others, "toolCallRounds": items, "toolCallResults": found}
        return {**facts, "result": {**beside, "metadata": shown}}

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        name, value = self.names(index)[0], as_dict(raws[0].value)
        if name.get("part") == "user":
            kind = asking_kind(index, 1)
            return (
                StepBuilder(index, raws, Actor.USER, kind, "request")
                .text(_message(value))
                .span(when(value.get("timestamp")))
                .id(as_str(value.get("requestId")))
                .build()
            )
        if name.get("part") == "end":
            failed = "errorDetails" in value
            text = as_text(as_dict(value.get("errorDetails")).get("message")) or "The request was cancelled."
            return (
                StepBuilder(
                    index,
                    raws,
                    Actor.ENVIRONMENT,
                    StepKind.ERROR if failed else StepKind.END,
                    "error" if failed else "cancelled",
                )
                .text(text)
                .flag_if(failed, "error")
                .build()
            )
        return _round(index, raws, value) if name.get("part") == "round" else _group(index, raws, value)

    def header(self) -> Run:
        requests = objects(self.probe.object.get("requests"))
        if requests and not self._seen.get("model"):
            self._seen["model"] = as_str(requests[0].get("modelId"))
        began = when(self.fact("creationDate"))
        times = self._times or [at for at in (began,) if at is not None]
        name = as_str(self.fact("responderUsername"))
        return Run(
            self.format,
            as_str(self.fact("version")),
            id=as_str(self.fact("sessionId")) or self._seen.get("id", ""),
            task=as_str(self.fact("customTitle")) or headline(_text_of(requests[0]) if requests else ""),
            model=self._seen.get("model", ""),
            agent=name or "GitHub Copilot",
            tokens=self._tokens,
            started=min(times, default=None),
            duration_s=max(times) - min(times) if len(times) > 1 else None,
            derived=frozenset({"duration_s", "tokens"}),
        )


def _rounds(request: dict[str, Json]) -> list[dict[str, Json]]:
    """Return the model's replies that say or call anything."""
    rounds = objects(as_dict(as_dict(request.get("result")).get("metadata")).get("toolCallRounds"))
    return [item for item in rounds if item.get("response") or item.get("toolCalls") or item.get("thinking")]


def _asked(request: dict[str, Json]) -> dict[str, Json]:
    """Return what a request asked, and how the model was told."""
    shown = ("requestId", "message", "variableData", "timestamp", "isSystemInitiated", "contentReferences")
    metadata = as_dict(as_dict(request.get("result")).get("metadata"))
    sent = {key: metadata[key] for key in _RENDERED if key in metadata}
    return {**{key: request[key] for key in shown if key in request}, "result": {"metadata": sent}}


def _beside(request: dict[str, Json], rounds: bool) -> dict[str, Json]:
    """Return what a request holds beside its question, its rounds and its end: the last round's step has it."""
    asked = {"message", "variableData", "response", "requestId", "contentReferences", "isSystemInitiated", "result"}
    beside = {key: value for key, value in request.items() if key not in asked}
    result = as_dict(request.get("result"))
    metadata = as_dict(result.get("metadata"))
    others = {key: value for key, value in metadata.items() if key not in _RENDERED}
    shown = _rounds(request)
    others["toolCallRounds"] = [item for item in objects(metadata.get("toolCallRounds")) if item not in shown]
    if rounds:
        others.pop("toolCallResults", None)
        whole = "\n".join(as_text(item.get("response")) for item in shown)
        parts = objects(request.get("response"))
        beside["response"] = [_without_text(part, whole) for part in parts]
    else:
        beside["response"] = [part for part in objects(request.get("response")) if _is_quiet(part)]
    beside["result"] = {key: value for key, value in result.items() if key not in ("metadata", "errorDetails")}
    return {**beside, "result": {**as_dict(beside["result"]), "metadata": others}}


def _without_text(part: dict[str, Json], whole: str) -> dict[str, Json]:
    said = not part.get("kind") and as_text(part.get("value")).strip() in whole
    return {key: value for key, value in part.items() if key != "value" or not said}


def _is_quiet(part: dict[str, Json]) -> bool:
    """Whether a part of a response says nothing."""
    return as_str(part.get("kind")) in _ANNOUNCED or (not part.get("kind") and not as_text(part.get("value")).strip())


def _groups(request: dict[str, Json]) -> list[list[Json]]:
    """Return the parts of a response: a text and the calls after it belong together."""
    groups: list[list[Json]] = []
    called = True
    for part in objects(request.get("response")):
        is_call = part.get("kind") == "toolInvocationSerialized"
        if _is_quiet(part):
            continue
        if (called and not is_call) or not groups:
            groups.append([])
        called = is_call
        groups[-1].append(part)
    return groups


def _ending(request: dict[str, Json]) -> dict[str, Json]:
    """Return how a request ended if it failed or was cancelled."""
    details = as_dict(as_dict(request.get("result")).get("errorDetails"))
    if details:
        return {"errorDetails": details}
    return {"isCanceled": True} if as_bool(request.get("isCanceled")) else {}


def _text_of(request: dict[str, Json]) -> str:
    message = request.get("message")
    return message if isinstance(message, str) else as_text(as_dict(message).get("text"))


def _message(request: dict[str, Json]) -> str:
    text = _text_of(request)
    files = objects(as_dict(request.get("variableData")).get("variables"))
    named = [as_str(first(item, "name", "id")) for item in files]
    return joined([text, *(f"[attached: {name}]" for name in named if name)])


def _tokens(request: dict[str, Json]) -> Tokens:
    metadata = as_dict(as_dict(request.get("result")).get("metadata"))
    counts = {**metadata, **as_dict(as_dict(request.get("result")).get("usage")), **request}
    return Tokens(as_int(counts.get("promptTokens")), as_int(first(counts, "completionTokens", "outputTokens")))


def _round(index: int, raws: Sequence[Raw], value: dict[str, Json]) -> Step:
    """Return the step of a reply and the results of its calls."""
    metadata = as_dict(as_dict(value.get("result")).get("metadata"))
    item = as_dict(as_list(metadata.get("toolCallRounds"))[0])
    calls = tuple(call_of_function(call) for call in objects(item.get("toolCalls")))
    results = tuple(
        Result(id, _result_text(found), True if as_dict(found).get("hasError") else None)
        for id, found in as_dict(metadata.get("toolCallResults")).items()
    )
    thinking = item.get("thinking")
    thought = as_dict(thinking).get("text", thinking) if isinstance(thinking, dict) else thinking
    begun = when(item.get("timestamp"))
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(calls), "round")
        .thought(as_text(thought))
        .text(as_text(item.get("response")))
        .calls(calls)
        .results(results)
        .edits(edits_of(calls))
        .span(begun)
        .spent(_tokens(value))
        .model(as_str(value.get("modelId")))
        .flag_if(any_error(results), "error")
        .derived("kind")
        .id(as_str(item.get("id")))
        .build()
    )


def _result_text(value: Json) -> str:
    contents = as_list(as_dict(value).get("content"))
    return joined("".join(_leaves(as_dict(part).get("value", part))) for part in contents) or as_text(value)


def _leaves(value: Json) -> Iterator[str]:
    """Yield the texts of a tree that was rendered for a prompt."""
    node = as_dict(as_dict(value).get("node")) or as_dict(value)
    if not node:
        yield as_text(value)
        return
    stack: list[Json] = [node]
    said = ""
    while stack:
        found = as_dict(stack.pop())
        if found.get("lineBreakBefore") and said and not said.endswith("\n"):
            yield "\n"
        if isinstance(found.get("text"), str):
            said = as_text(found["text"]) or said
            yield as_text(found["text"])
        elif not found.get("children") and "data" in found:
            yield f"[{as_str(found.get('mimeType')) or 'data'}]"
        stack += reversed(as_list(found.get("children")))


def _group(index: int, raws: Sequence[Raw], value: dict[str, Json]) -> Step:
    """Return the step of what was shown of a reply that is not recorded itself."""
    parts = objects(value.get("response"))
    invoked = [part for part in parts if part.get("kind") == "toolInvocationSerialized"]
    thought = [as_text(part.get("value")) for part in parts if part.get("kind") == "thinking"]
    calls = tuple(_invocation(part) for part in invoked)
    results = tuple(_outcome(part) for part in invoked if part.get("isComplete"))
    quiet = {"thinking", "toolInvocationSerialized"}
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(calls), "response")
        .thought("".join(thought))
        .text("".join(_shown(part) for part in parts if as_str(part.get("kind")) not in quiet))
        .calls(calls)
        .results(results)
        .edits((*edits_of(calls), *(FileEdit(_edited(part)) for part in parts if part.get("kind") == "textEditGroup")))
        .spent(_tokens(value))
        .model(as_str(value.get("modelId")))
        .flag_if(any_failed(results), "error")
        .derived("kind")
        .build()
    )


def _shown(part: dict[str, Json]) -> str:
    """Return the text of a part of a response; a reference is its name."""
    if part.get("kind") == "inlineReference":
        reference = as_dict(part.get("inlineReference"))
        return as_str(first(part, "name") or first(reference, "name", "path", "fsPath"))
    if part.get("kind") == "textEditGroup":
        changes = [edit for edits in as_list(part.get("edits")) for edit in objects(edits)]
        return "\n" + joined([f"[edited: {_edited(part)}]", *(as_text(item.get("text")) for item in changes)]) + "\n"
    content = first(part, "value", "content", "title", "message", "uri")
    inner = as_dict(content)
    return as_text(first(inner, "value", "path") if inner else content)


def _edited(part: dict[str, Json]) -> str:
    return as_str(first(as_dict(part.get("uri")), "path", "fsPath"))


def _invocation(part: dict[str, Json]) -> RunCall:
    data = as_dict(part.get("toolSpecificData"))
    arguments: dict[str, Json] = as_dict(data.get("rawInput"))
    if not arguments:
        state = ("kind", "terminalCommandState", "terminalCommandOutput", "commandLine")
        arguments = {key: value for key, value in data.items() if key not in state}
        line = as_dict(data.get("commandLine"))
        if line:
            arguments["command"] = first(line, "userEdited", "toolEdited", "original")
        if not arguments:
            arguments = {"message": _worded(part.get("invocationMessage"))}
    return RunCall(as_str(part.get("toolCallId")), as_str(part.get("toolId")), compact(arguments), arguments)


def _worded(message: Json) -> str:
    return as_text(as_dict(message).get("value") if isinstance(message, dict) else message)


def _outcome(part: dict[str, Json]) -> Result:
    """Return the result of a call as far as the window showed it."""
    data, details = as_dict(part.get("toolSpecificData")), as_dict(part.get("resultDetails"))
    output = as_text(as_dict(data.get("terminalCommandOutput")).get("text")) or as_text(first(details, "output"))
    code = as_int(as_dict(data.get("terminalCommandState")).get("exitCode"))
    past = _worded(part.get("pastTenseMessage"))
    return Result(as_str(part.get("toolCallId")), output or past, as_bool(details.get("isError")), code)


class CopilotChat(SingleRun):
    """Recognised by `requests` with a `responderUsername`, or with a `requestId` and a `response` each."""

    name = "copilot-chat"
    unique_ids = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("message.parts", "variableData.variables", "contentReferences"),
            "the message in parts, and the files attached to it: the step has the text and names them",
        ),
        NotShown(
            ("agent", "slashCommand", "result.details", "result.metadata.agentId", "modelState", "followups"),
            "the extension that answered, and what it suggested to ask next",
        ),
        NotShown(("result.metadata.codeBlocks", "result.metadata.summary"), "copies of code and text in the answer"),
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
        NotShown(("result.metadata.toolCallResults",), "the tree of a result, of which the step has the text"),
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
        holder = probe.object if not _is_log(probe) else as_dict(probe.lines[0].get("v"))
        requests = holder.get("requests")
        if not isinstance(requests, list):
            return 0.0
        if "responderUsername" in holder or (holder.get("sessionId") and "creationDate" in holder):
            return 0.95
        opening = as_dict(requests[0] if requests else None)
        return 0.9 if "requestId" in opening and {"message", "response"} & opening.keys() else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Open the chat."""
        if not _is_log(probe):
            return _Reader(probe)
        return _Reader(FileProbe(_Replayed(probe), name=probe.name))


def _is_log(probe: FileProbe) -> bool:
    """Whether a session is stored as a log of changes: the first line has the whole, each other one a change."""
    first_line = (probe.lines or [{}])[0]
    return as_int(first_line.get("kind")) == 0 and isinstance(first_line.get("v"), dict)


class _Replayed:
    """The session that a log of changes leads to, as one JSON text; replayed when it is first read."""

    name = ""

    def __init__(self, probe: FileProbe) -> None:
        self._probe = probe

    @cached_property
    def _whole(self) -> BytesBlob:
        state: Json = None
        for record in lines(self._probe.blob, self._probe.start):
            if record.damage:
                continue
            change = as_dict(record.fields)
            state = change.get("v") if as_int(change.get("kind")) == 0 else state
            _apply(state, change)
        return BytesBlob(json.dumps(state).encode("latin-1", "replace"))

    @property
    def size(self) -> int:
        """Size in bytes."""
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
    if isinstance(holder, dict) and isinstance(last, str):
        if kind == 3:
            holder.pop(last, None)
        else:
            holder[last] = value
    elif isinstance(holder, list) and isinstance(last, int) and 0 <= last <= len(holder):
        holder[last : last + 1] = [] if kind == 3 else [value]


def _member(holder: Json, key: Json) -> Json:
    if isinstance(holder, dict) and isinstance(key, str):
        return holder.get(key)
    inside = isinstance(holder, list) and isinstance(key, int) and 0 <= key < len(holder)
    return holder[key] if isinstance(holder, list) and isinstance(key, int) and inside else None


FORMAT = CopilotChat()
