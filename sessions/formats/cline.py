"""Conversations of Cline and Roo Code: messages of Anthropic's API, also with calls and results as text.

A reply may make its calls as XML in its text, and the user's next message answers with texts that begin with
`[TOOL for '…'] Result:`, in the order of the calls. After `content.ts` of Cline.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gistpoint.sessions.formats.calls import edits_of, kind_of
from gistpoint.sessions.formats.messages import (
    cost_of,
    message_step,
    parts_of_message,
    parts_of_reply,
    results_in,
    tokens_of,
    usage_of,
)
from gistpoint.sessions.records.building import StepBuilder, Tally, any_error
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, RunCall, Step
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.requests import headline
from gistpoint.sessions.records.scanning import RawRecord, guarded, object_records
from gistpoint.sessions.records.values import (
    as_bool,
    as_dict,
    as_list,
    as_str,
    as_text,
    compact,
    first,
    is_deep,
    joined,
    objects,
    when,
)

_TOOLS = (
    "execute_command",
    "read_file",
    "write_to_file",
    "replace_in_file",
    "apply_diff",
    "insert_content",
    "search_and_replace",
    "search_files",
    "list_files",
    "list_code_definition_names",
    "codebase_search",
    "browser_action",
    "use_mcp_tool",
    "access_mcp_resource",
    "ask_followup_question",
    "attempt_completion",
    "new_task",
    "plan_mode_respond",
    "switch_mode",
    "fetch_instructions",
    "update_todo_list",
    "web_fetch",
    "load_mcp_documentation",
)
_CALL = re.compile(rf"<({'|'.join(_TOOLS)})>(.*?)</\1>", re.S)
_PARAMETER = re.compile(r"<(\w+)>\n?(.*?)\n?</\1>", re.S)
_RESULT = re.compile(r"\[(\w+)[^\n]{0,2000}?\] Result:\s*")
_AROUND = "<environment_details>"
_FAILED = re.compile(r"\s*(?:\[ERROR\]|<error>|Error[: ]|The tool execution failed)")


class _Reader(RunReader):
    format = "cline"
    arrays = ("messages",)

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._calls: dict[str, int] = {}
        self._reply: int | None = None
        self._tally = Tally()
        self._models: list[str] = []
        self._prompt = False

    def records(self) -> Iterator[RawRecord]:
        return guarded(self._with_prompt(), self.probe.blob, self.warnings) if self.probe.object else super().records()

    def _with_prompt(self) -> Iterator[RawRecord]:
        """Yield the system prompt of a session, then its messages."""
        prompt = self.probe.member("system_prompt", self.arrays)
        if prompt is not None and isinstance(prompt.fields, str):
            self._prompt = True
            yield prompt._replace(inner=True)
        yield from object_records(self.probe.blob, self.probe.start, self.arrays, self.facts, None)
        if self._prompt:
            self.facts.pop("system_prompt", None)

    def place(self, fields: Json, step_count: int) -> int:
        message = as_dict(fields)
        self._tally.see(when(message.get("ts")))
        if message.get("role") == "assistant":
            self._reply = step_count
            usage = usage_of(message)
            self._tally.spend(tokens_of(usage), cost_of(message, usage))
            model = as_str(first(as_dict(message.get("modelInfo")), "id", "modelId"))
            if model and model not in self._models:
                self._models.append(model)
            for block in objects(message.get("content")):
                if block.get("type") == "tool_use":
                    self._calls[as_str(block.get("id"))] = step_count
            return step_count
        owners = [self._calls.pop(as_str(block.get("tool_use_id")), None) for block in results_in(message)]
        known = next((owner for owner in owners if owner is not None), None)
        if known is None and self._reply is not None and any(_RESULT.match(text) for text in _texts(message)):
            known = self._reply
        self._reply = None if known is None else self._reply
        return step_count if known is None else known

    def header(self) -> Run:
        if not self._models:
            for message in objects(self.probe.array) or objects(self.probe.object.get("messages")):
                model = as_str(first(as_dict(message.get("modelInfo")), "id", "modelId"))
                self._models = self._models or [model] * bool(model)
        return Run(
            self.format,
            as_str(self.fact("version")),
            id=as_str(self.fact("sessionId")),
            task=headline(self._asked().replace("<task>", "")),
            model=self._models[0] if self._models else "",
            agent=joined(["Cline", as_str(self.fact("agent"))], " "),
            tokens=self._tally.tokens,
            cost=self._tally.cost,
            started=self._tally.started,
            duration_s=self._tally.duration_s,
            extra={"models": list(self._models)} if len(self._models) > 1 else {},
            derived=frozenset({"tokens", "cost", "duration_s"}),
        )

    def _asked(self) -> str:
        """Return the first question."""
        messages = objects(self.probe.array) or objects(self.probe.object.get("messages"))
        return next((text for message in messages[:1] for text in _texts(message)), "")

    def completed(self, value: Json) -> Json:
        """Return a message in which a result that is JSON within a text is a value."""
        message = as_dict(value)
        if not any(_holds_json(block) for block in results_in(message)):
            return value
        blocks = [
            {**block, "content": json.loads(as_str(block["content"]))} if _holds_json(block) else block
            for block in objects(message.get("content"))
        ]
        return {**message, "content": list[Json](blocks)}

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        if isinstance(raws[0].value, str):
            return message_step(index, [replace(raws[0], value={"role": "system", "content": raws[0].value})])
        messages = [as_dict(raw.value) for raw in raws]
        if messages[0].get("role") != "assistant":
            step = message_step(index, raws)
            return replace(step, text=joined(text for text in _texts(messages[0]) if _AROUND not in text[:40]))
        return _reply(index, raws, messages)


def _texts(message: dict[str, Json]) -> list[str]:
    content = message.get("content")
    return [as_text(content)] if isinstance(content, str) else parts_of_message(content).texts


def _holds_json(block: dict[str, Json]) -> bool:
    content = block.get("content")
    if block.get("type") != "tool_result" or not isinstance(content, str) or content[:1] not in ("{", "["):
        return False
    try:
        found: Json = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict | list) and not is_deep(found)


def _reply(index: int, raws: Sequence[Raw], messages: list[dict[str, Json]]) -> Step:
    parts = parts_of_reply(messages[0])
    text, derived = joined(parts.texts), {"kind"}
    calls = parts.calls
    if not calls:
        calls = [_written(match, f"{index}.{number}") for number, match in enumerate(_CALL.finditer(text), 1)]
        derived |= {"calls"} if calls else set()
    results: list[Result] = []
    for message in messages[1:]:
        blocks = results_in(message)
        results += [_result(block) for block in blocks]
        told = _told(message, [call for call in calls if call.id not in {result.call_id for result in results}])
        derived |= {"results.call_id", "results.is_error"} if told and not blocks else set()
        results += told
    usage = usage_of(messages[0])
    times = [when(message.get("ts")) for message in messages]
    made = tuple(calls)
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(made), "assistant")
        .thought(*parts.thought)
        .text(text)
        .calls(made)
        .results(results)
        .edits(edits_of(made))
        .span(times[0] if times else None, times[-1] if len(times) > 1 else None)
        .spent(tokens_of(usage), cost_of(messages[0], usage))
        .model(as_str(first(as_dict(messages[0].get("modelInfo")), "id", "modelId")))
        .flag_if(any_error(results), "error")
        .derived(*derived)
        .id(as_str(messages[0].get("id")))
        .build()
    )


def _written(match: re.Match[str], identity: str) -> RunCall:
    """Return a call that is XML in a text."""
    arguments: dict[str, Json] = {found[1]: found[2] for found in _PARAMETER.finditer(match[2])}
    return RunCall(identity, match[1], compact(arguments), arguments)


def _result(block: dict[str, Json]) -> Result:
    content = block.get("content")
    items = objects(content) or ([as_dict(content)] if isinstance(content, dict) else [])
    failed = as_bool(block.get("is_error"))
    if items and all("result" in item or "error" in item for item in items):
        if failed is None and any(item.get("success") is False for item in items):
            failed = True
        shown = [
            joined([as_text(item.get("query")), as_text(item.get("result")), as_text(item.get("error"))])
            for item in items
        ]
        return Result(as_str(block.get("tool_use_id")), joined(shown), failed)
    return Result(as_str(block.get("tool_use_id")), as_text(content), failed)


def _told(message: dict[str, Json], calls: list[RunCall]) -> list[Result]:
    """Return the results that a message tells as text; other text of its user is a result without a call."""
    results: list[Result] = []
    for text in _texts(message):
        match = _RESULT.match(text)
        if match is not None:
            call = next((call for call in calls if call.tool == match[1]), calls[0] if calls else None)
            calls = [other for other in calls if other is not call]
            results.append(Result(call.id if call else "", text, True if _FAILED.match(text, match.end()) else None))
        elif _AROUND in text[:40]:
            continue
        elif results and results[-1].call_id:
            failed = True if _FAILED.match(text) else results[-1].is_error
            results[-1] = replace(results[-1], text=joined([results[-1].text, text]), is_error=failed)
        else:
            results.append(Result("", text, True if text.startswith("[ERROR]") else None))
    return results


class Cline(SingleRun):
    """Recognised by messages with `modelInfo` or `metrics`, or by what Cline writes around a user's text."""

    name = "cline"
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("modelInfo", "metrics", "content.cache_control", "content.tool_use_id"),
            "counts and settings of the provider; the model and the tokens are shown",
        ),
        NotShown(("conversationHistoryIndex", "origin_dir", "updated_at"), "where a session came from", of_run=True),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        found = objects(probe.array)[:8] or objects(as_list(probe.object.get("messages")))[:8]
        if not found or not all(message.get("role") in ("user", "assistant") for message in found):
            return 0.0
        if {"sessionId", "system_prompt"} <= probe.object.keys() or any("modelInfo" in message for message in found):
            return 0.95
        wrapped = any(
            _AROUND in text or _RESULT.match(text)
            for message in found
            if message.get("role") == "user"
            for text in _texts(message)
        )
        return 0.92 if wrapped else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Open the conversation."""
        return _Reader(probe)


FORMAT = Cline()
