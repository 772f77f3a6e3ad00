"""Conversations of Cline and Roo Code: messages of Anthropic's API, whose calls and results may be text.

A reply may make its calls as XML in its text. The user's next message then answers with parts that begin with
`[TOOL for '…'] Result:`, in the order of the calls. See `content.ts` of Cline.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.formats.shared.message_parts import parts_of_message
from gistpoint.sessions.formats.shared.messages import (
    cost_of,
    message_step,
    parts_of_reply,
    results_in,
    tokens_of,
    usage_of,
)
from gistpoint.sessions.records.building import StepBuilder, Tally, any_error, error_if
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, RunCall, Step
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record, records_in, records_of, times_of
from gistpoint.sessions.records.requests import headline
from gistpoint.sessions.records.scanning import RawRecord, guarded, object_records
from gistpoint.sessions.records.values import (
    as_dict,
    as_str,
    as_text,
    compact,
    first_known,
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
_ENVIRONMENT_TAG = "<environment_details>"
_FAILED = re.compile(r"\s*(?:\[ERROR\]|<error>|Error[: ]|The tool execution failed)")


class _Reader(RunReader):
    format = "cline"
    arrays = ("messages",)

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._calls: dict[str, int] = {}
        self._reply: int | None = None
        self._tally = Tally()
        self._prompt = False

    def records(self) -> Iterator[RawRecord]:
        return (
            guarded(self._with_prompt(), self.probe.blob, self.warnings)
            if self.probe.object
            else super().records()
        )

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
        self._tally.add_time(when(message.get("ts")))
        if message.get("role") == "assistant":
            self._replied(message, step_count)
            return step_count
        owners = [self._calls.pop(as_str(block.get("tool_use_id")), None) for block in results_in(message)]
        known = first_known(owners)
        # Results in the form of text name no call: they answer the preceding reply.
        if known is None and any(map(_RESULT.match, _texts(message))):
            known = self._reply
        self._reply = None if known is None else self._reply
        return step_count if known is None else known

    def _replied(self, message: dict[str, Json], step: int) -> None:
        self._reply = step
        usage = usage_of(message)
        self._tally.add_usage(tokens_of(usage), cost_of(message, usage))
        self._tally.add_model(_model(Record(message)))
        for block in objects(message.get("content")):
            if block.get("type") == "tool_use":
                self._calls[as_str(block.get("id"))] = step

    def header(self) -> Run:
        opening = self._opening()
        models = self._tally.models or [model for model in map(_model, opening) if model][:1]
        return Run(
            self.format,
            as_str(self.fact("version")),
            id=as_str(self.fact("sessionId")),
            task=headline(self._first_question().replace("<task>", "")),
            model=next(iter(models), ""),
            agent=joined(["Cline", as_str(self.fact("agent"))], " "),
            tokens=self._tally.tokens,
            cost=self._tally.cost,
            started=self._tally.started,
            duration_s=self._tally.duration_s,
            extra={"models": [*models]} if len(models) > 1 else {},
            derived=frozenset({"tokens", "cost", "duration_s"}),
        )

    def _opening(self) -> list[Record]:
        return records_in(self.probe.array) or records_in(self.probe.object.get("messages"))

    def _first_question(self) -> str:
        """Return the text of the first message; empty if there is none."""
        return next((text for message in self._opening()[:1] for text in _texts(message.members)), "")

    def completed(self, value: Json) -> Json:
        """Return a message in which results that are JSON text are decoded."""
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
        messages = records_of(raws)
        if messages[0].get("role") != "assistant":
            step = message_step(index, raws)
            texts = [text for text in _texts(messages[0].members) if not _is_environment(text)]
            return replace(step, text=joined(texts))
        return _reply(index, raws, messages)


def _model(message: Record) -> str:
    return message.inner("modelInfo").first_word("id", "modelId")


def _is_environment(text: str) -> bool:
    """Return whether a string is Cline's addition to a user's message: open files, the time, the mode."""
    return _ENVIRONMENT_TAG in text[:40]


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


def _reply(index: int, raws: Sequence[Raw], messages: list[Record]) -> Step:
    reply = messages[0]
    parts = parts_of_reply(reply.members)
    derived = {"kind"}
    calls = parts.calls
    if not calls:
        # Models that can't call tools are instructed to write calls as XML in their text.
        calls = [
            _written(match, f"{index}.{number}") for number, match in enumerate(_CALL.finditer(parts.text), 1)
        ]
        derived |= {"calls"} if calls else set()
    results: list[Result] = []
    for message in messages[1:]:
        blocks = results_in(message.members)
        results += map(_result, map(Record, blocks))
        answered = {result.call_id for result in results}
        as_text_only = _results_in_text(message.members, [call for call in calls if call.id not in answered])
        if as_text_only and not blocks:
            derived |= {"results.call_id", "results.is_error"}
        results += as_text_only
    usage = usage_of(reply.members)
    times = [at for at in times_of(messages, "ts") if at is not None]
    made = tuple(calls)
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(made), "assistant")
        .thought(*parts.thought)
        .text(parts.text)
        .calls(made)
        .results(results)
        .edits(edits_of(made))
        .span(next(iter(times), None), times[-1] if len(times) > 1 else None)
        .spent(tokens_of(usage), cost_of(reply.members, usage))
        .model(_model(reply))
        .flag_if(any_error(results), "error")
        .derived(*derived)
        .id(reply.word("id"))
        .build()
    )


def _written(match: re.Match[str], identity: str) -> RunCall:
    """Return a call that is written as XML in text."""
    arguments: dict[str, Json] = {found[1]: found[2] for found in _PARAMETER.finditer(match[2])}
    return RunCall(identity, match[1], compact(arguments), arguments)


def _result(block: Record) -> Result:
    content, failed = block.get("content"), block.truth("is_error")
    items = block.objects("content") or [Record(content)] * isinstance(content, dict)
    if not items or not all(item.has("result", "error") for item in items):
        return Result(block.word("tool_use_id"), as_text(content), failed)
    # Cline's command line writes a list of outcomes, one for each query of a call.
    if failed is None and any(item.get("success") is False for item in items):
        failed = True
    shown = [joined(item.texts("query", "result", "error")) for item in items]
    return Result(block.word("tool_use_id"), joined(shown), failed)


def _results_in_text(message: dict[str, Json], calls: list[RunCall]) -> list[Result]:
    """Return the results in a message's text; other text of the user becomes a result without a call."""
    results: list[Result] = []
    for text in _texts(message):
        match = _RESULT.match(text)
        if match is not None:
            call = next((call for call in calls if call.tool == match[1]), next(iter(calls), None))
            calls = [other for other in calls if other is not call]
            failed = error_if(_FAILED.match(text, match.end()))
            results.append(Result(call.id if call else "", text, failed))
        elif _is_environment(text):
            continue
        elif results and results[-1].call_id:
            # The heading of a result is a separate part; the result is in the parts after it.
            failed = True if _FAILED.match(text) else results[-1].is_error
            results[-1] = replace(results[-1], text=joined([results[-1].text, text]), is_error=failed)
        else:
            results.append(Result("", text, error_if(text.startswith("[ERROR]"))))
    return results


class Cline(SingleRun):
    """Recognised by `modelInfo` in messages, a session with its prompt, or Cline's tags in a user's text."""

    name = "cline"
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("modelInfo", "metrics", "content.cache_control", "content.tool_use_id"),
            "the provider's counts and settings; the model and the tokens are shown",
        ),
        NotShown(
            ("conversationHistoryIndex", "origin_dir", "updated_at"), "where a session came from", of_run=True
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        messages = (records_in(probe.array) or records_in(probe.object.get("messages")))[:8]
        roles = {as_str(message.get("role")) for message in messages}
        if not messages or not roles <= {"user", "assistant"}:
            return 0.0
        names_its_session = Record(probe.object).has_all("sessionId", "system_prompt")
        if names_its_session or any(message.has("modelInfo") for message in messages):
            return 0.95
        return 0.92 if any(map(_has_its_tags, messages)) else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the conversation."""
        return _Reader(probe)


def _has_its_tags(message: Record) -> bool:
    """Return whether a user's message has the tags that the extension puts around a task or a result."""
    if message.get("role") != "user":
        return False
    return any(_ENVIRONMENT_TAG in text or _RESULT.match(text) for text in _texts(message.members))


FORMAT = Cline()
