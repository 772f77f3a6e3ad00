"""Makes the steps of a Codex CLI session: a reply from its items and events, or any other record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias, TypeVar

from gistpoint.sessions.formats.codex._records import (
    ENDS,
    call_id,
    is_call,
    is_output,
    item_type,
    links_of,
    reports,
    text_of,
    tokens_of,
)
from gistpoint.sessions.formats.shared.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.formats.shared.message_parts import thought_text
from gistpoint.sessions.formats.shared.messages import actor_of
from gistpoint.sessions.records.building import StepBuilder, any_failed, asking_kind, error_if
from gistpoint.sessions.records.format import Raw, unknown_step
from gistpoint.sessions.records.model import Actor, FileEdit, Json, Result, RunCall, Step, StepKind, Tokens
from gistpoint.sessions.records.record import Record, texts_of, times_of
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_list,
    as_str,
    as_text,
    compact,
    dumped,
    first_known,
    in_seconds,
    joined,
    objects,
)

_STATES = frozenset(
    (
        "state",
        "ghost_snapshot",
        "task_started",
        "turn_started",
        "thread_settings_applied",
        "thread_name_updated",
        "thread_goal_updated",
        "thread_rolled_back",
        "undo_completed",
        "inter_agent_communication_metadata",
        "sub_agent_activity",
        "world_state",
        "turn_context",
        "token_count",
        "guardian_assessment",
        "warning",
        "background_event",
        "plan_delta",
    )
)
_NOTES = frozenset(("entered_review_mode", "exited_review_mode"))
_CONDENSED = ("context_compacted", "compaction", "compaction_summary")
_INJECTED = re.compile(r"\s*(?:<([a-z_]{3,60})>.*</\1>\s*\Z|# AGENTS\.md )", re.S)
_INSTRUCTIONS = ("instructions", "base_instructions", "user_instructions")
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,9})$", re.M)
_WALL = re.compile(r"^Wall time: (\d{1,9}(?:\.\d{1,9})?)", re.M)
_HEAD = 400


_T = TypeVar("_T")
_CodexRecord = tuple[str, str, dict[str, Json], dict[str, Json]]


def reply_step(index: int, raws: Sequence[Raw], records: list[_CodexRecord], model: str) -> Step:
    """Return the step of a reply.

    Each of `records` is an envelope, a type, a payload, and the whole record.
    """
    reply = _Reply()
    links: dict[str, None] = {}
    for envelope, kind, payload, _ in records:
        reply.add(envelope, kind, payload)
        links |= dict.fromkeys(links_of(payload))
    wholes = [Record(whole) for *_, whole in records]
    calls = tuple(reply.calls)
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(calls), "assistant")
        .thought(*reply.thoughts)
        .text(*reply.texts)
        .calls(calls)
        .results(reply.results)
        .edits(reply.made(reply.edits) or edits_of(calls))
        .diffs(reply.made(reply.diffs))
        .over(times_of(wholes, "timestamp"))
        .replied(times_of(map(Record, _written(records)), "timestamp"))
        .naive(wholes[0].get("timestamp"))
        .spent(reply.tokens)
        .model(model)
        .flag_if(any_failed(reply.results), "error")
        .derived("kind", "ended", *reply.derived)
        .links(links)
        .build()
    )


def _written(records: list[_CodexRecord]) -> Iterator[dict[str, Json]]:
    """Yield the records that the model wrote: its messages, thoughts and calls, but no outputs or events."""
    for envelope, kind, _, whole in records:
        if envelope == "response_item" and not is_output(kind):
            yield whole


class _Reply:
    """One reply of the model, assembled from its items and events."""

    def __init__(self) -> None:
        self.thoughts: list[str] = []
        self.texts: list[str] = []
        self.calls: list[RunCall] = []
        self.results: list[Result] = []
        self.diffs: list[tuple[str, str]] = []
        """The diffs that events report, each after the id of the call that made it."""
        self.edits: list[tuple[str, FileEdit]] = []
        self.tokens = Tokens()
        self.derived: set[str] = set()
        self._counted: list[Json] = []

    def made(self, reported: list[tuple[str, _T]]) -> list[_T]:
        """Return the reported changes without those of failed calls."""
        failed = {result.call_id for result in self.results if result.is_error}
        return [change for identity, change in reported if identity not in failed]

    def add(self, envelope: str, kind: str, payload: dict[str, Json]) -> None:
        if envelope == "response_item":
            self._item(kind, payload)
        elif kind in ("agent_reasoning", "agent_reasoning_raw_content"):
            _add_text(self.thoughts, as_text(payload.get("text")))
        elif kind == "agent_message":
            _add_text(self.texts, as_text(payload.get("message")))
        elif kind == "token_count":
            self._count(as_dict(payload.get("info")))
        elif kind == "item_completed":
            self._completed(as_dict(payload.get("item")))
        elif reports(kind):
            self._report(call_id(payload) or kind, kind, payload)

    def _item(self, kind: str, payload: dict[str, Json]) -> None:
        if kind == "reasoning":
            _add_text(self.thoughts, thought_text(payload))
        elif kind == "message":
            _add_text(self.texts, as_text(payload.get("content")))
        # An event may already have added the call, but only the item has it as the model wrote it.
        elif is_call(kind):
            call = call_of_function(payload)
            known = next((at for at, other in enumerate(self.calls) if call.id and other.id == call.id), None)
            if known is None:
                self.calls.append(call)
            else:
                self.calls[known] = call
        elif is_output(kind):
            self._result(self._output(payload))

    def _output(self, payload: dict[str, Json]) -> Result:
        """Return the result in an output, which is a string, parts, or JSON with output and exit code."""
        record = Record(payload)
        output = record.first("output", "tools", "result")
        inner = Record(output)
        facts = inner.inner("metadata")
        if facts:
            code, spent = facts.whole("exit_code"), facts.number("duration_seconds")
            return Result(call_id(payload), inner.text("output"), None, code, spent)
        text = as_text(output)
        # Later versions write the exit code and the duration as text above the output.
        code_line, wall_line = _EXIT.search(text[:_HEAD]), _WALL.search(text[:_HEAD])
        self.derived |= {"results.returncode"} if code_line else set()
        reports_failure = inner.get("success") is False or inner.get("isError") is True
        failed = reports_failure or record.get("status") in ("failed", "incomplete")
        return Result(
            call_id(payload),
            text,
            failed or None,
            int(code_line[1]) if code_line else None,
            float(wall_line[1]) if wall_line else None,
        )

    def _result(self, result: Result) -> None:
        """Add a result, or use it to complete what an event reported about the same call earlier."""
        for at, known in enumerate(self.results):
            if result.call_id and known.call_id == result.call_id:
                self.results[at] = _completed(known, result)
                return
        self.results.append(result)

    def _count(self, info: dict[str, Json]) -> None:
        total = info.get("total_token_usage")
        # A total that occurred earlier is a repetition of the same count.
        if isinstance(total, dict) and total not in self._counted:
            self._counted.append(total)
            self.tokens += tokens_of(as_dict(info.get("last_token_usage")))

    def _completed(self, item: dict[str, Json]) -> None:
        kind, identity = item_type(item), call_id(item) or as_str(item.get("id"))
        if kind == "Reasoning":
            for key in ("summary_text", "raw_content"):
                _add_text(self.thoughts, as_text(item.get(key)))
        elif kind in ("AgentMessage", "Plan"):
            _add_text(self.texts, text_of(item))
        elif kind in ("CommandExecution", "McpToolCall", "FileChange", "DynamicToolCall", "WebSearch"):
            self._report(identity, kind, item)

    def _report(self, identity: str, kind: str, report: dict[str, Json]) -> None:
        """Add what an event reports about a call, and the call itself if no item contains it."""
        if not self._has(identity) and not self._same_command(report):
            self.calls.append(_reported_call(identity, kind, report))
        for path, value in as_dict(report.get("changes")).items():
            change = Record(value)
            self.edits.append(
                (identity, FileEdit(path, None, change.text("content") if change.has("content") else None))
            )
            diff = change.text("unified_diff")
            if diff:
                # Codex writes only the hunks, which do not name the file.
                heading = (
                    "" if diff.startswith("--- ") else f"--- a/{path.lstrip('/')}\n+++ b/{path.lstrip('/')}\n"
                )
                self.diffs.append((identity, heading + diff))
        if self._has(identity) and not kind.endswith(("_begin", "_request")):
            result = _result_in(identity, Record(report))
            if result is not None:
                self._result(result)

    def _has(self, identity: str) -> bool:
        return any(call.id == identity for call in self.calls)

    def _same_command(self, report: dict[str, Json]) -> bool:
        """Add a report's result to another call with its command or query; return whether there is one."""
        record = Record(report)
        query = record.word("query")
        searched = next(
            (call for call in self.calls if query and (call.parsed or {}).get("query") == query), None
        )
        if searched is not None:
            found = _result_in(searched.id, record)
            self.results += [found] if found else []
            return True
        command = _as_line(record.get("command"))
        for call in self.calls if command else ():
            asked = call.parsed or {}
            wanted = _as_line(asked.get("command", asked.get("cmd")))
            if wanted and wanted in command:
                self._result(Result(call.id, "", None, record.whole("exit_code"), _seconds(record)))
                return True
        return False


def _as_line(command: Json) -> str:
    """Return a command, recorded as a string or as a list of words, as one line."""
    return " ".join(map(as_str, as_list(command))) or as_str(command)


def _reported_call(identity: str, kind: str, report: dict[str, Json]) -> RunCall:
    invocation = Record(as_dict(report.get("invocation")) or report)
    name = invocation.first_word("tool", "tool_name") or _snake(kind)
    asked = invocation.first("arguments", "command", "query", "prompt", "path", "changes")
    if not asked:
        return RunCall(identity, name)
    arguments: dict[str, Json] = asked if isinstance(asked, dict) else {_ARGUMENT.get(name, "input"): asked}
    return RunCall(identity, name, compact(arguments), arguments)


def _completed(known: Result, result: Result) -> Result:
    """Return `result`, completed with values known earlier, which take precedence over those of `result`.

    Their text is joined, unless one of them contains the other.
    """
    text = joined([result.text, known.text])
    if known.text in result.text:
        text = result.text
    elif result.text in known.text:
        text = known.text
    return Result(
        result.call_id,
        text,
        first_known((known.is_error, result.is_error)),
        first_known((known.returncode, result.returncode)),
        first_known((known.duration_s, result.duration_s)),
    )


_ARGUMENT = {"exec_command": "command", "command_execution": "command", "patch_apply": "changes"}


def _snake(kind: str) -> str:
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower()
    # A call that only an event reports is named after the event.
    for ending in ("_end", "_begin", "_request", "_response", "_tool_call"):
        plain = plain.removesuffix(ending)
    return plain


def _seconds(report: Record) -> float | None:
    seconds, nanoseconds = report.number("duration", "secs"), report.number("duration", "nanos")
    if seconds is None:
        return in_seconds(as_float(report.first("duration_ms", "durationMs")))
    return seconds + (nanoseconds or 0.0) / 1e9


_OUTPUT_KEYS = ("aggregated_output", "formatted_output", "content_items", "results", "error")
_ENDED_BADLY = ("failed", "declined", "errored")


def _result_in(identity: str, report: Record) -> Result | None:
    """Return the result in an event or a completed item; None if there is none."""
    output = report.first(*_OUTPUT_KEYS)
    texts = [as_text(output)] if output else report.texts("stdout", "stderr")
    failures: list[object] = [report.get("status") in _ENDED_BADLY]
    outcome = report.inner("result")
    if outcome:
        # Rust's Result, as its serializer writes it: `Ok` or `Err` around the value.
        error, value = outcome.get("Err"), Record(outcome.first("Ok")) or outcome
        texts.insert(0, as_text(error) if error else value.text("content"))
        failures += [error, value.get("isError"), value.get("is_error")]
    else:
        texts.append(report.text("result"))
        failures += [report.get("success") is False, report.get("error")]
    text = joined(dict.fromkeys(texts))
    facts = error_if(any(failures)), report.whole("exit_code"), _seconds(report)
    is_empty = not text and facts == (None, None, None)
    return None if is_empty else Result(identity, text, *facts)


def _add_text(texts: list[str], text: str) -> None:
    """Add a string unless it is part of an earlier one; it replaces earlier strings that are part of it."""
    if text and not any(text in other for other in texts):
        texts[:] = [other for other in texts if other not in text]
        texts.append(text)


_Shown: TypeAlias = tuple[Actor, StepKind, str]
"""The actor, the purpose and the text of a step."""


def other_step(index: int, raws: Sequence[Raw], records: list[_CodexRecord]) -> Step:
    """Return the step of records that the model did not write."""
    envelope, kind, payload, whole = records[0]
    links: dict[str, None] = {}
    for _, _, one, _ in records:
        links |= dict.fromkeys(links_of(one))
    results: list[Result] = []
    if kind in ("message", "user_message", "item_completed"):
        shown = _spoken(index, records)
    elif kind == "agent_message":
        parts = [part for part in objects(payload.get("content")) if part.get("text")]
        shown = Actor.ENVIRONMENT, StepKind.MESSAGE, joined(as_text([part]) for part in parts)
    elif compacted := [one for envelope, _, one, _ in records if envelope == "compacted"]:
        shown = Actor.SYSTEM, StepKind.CONTEXT, _condensed(Record(compacted[0]))
    elif is_output(kind) and kind not in ENDS:
        reply = _Reply()
        reply.add(envelope, kind, payload)
        results = reply.results
        shown = Actor.ENVIRONMENT, StepKind.TOOL, ""
    else:
        shown = _of_program(envelope, kind, Record(payload))
    actor, step_kind, text = shown
    if step_kind is StepKind.UNKNOWN:
        return unknown_step(index, raws, kind or "record", dumped(raws[0].value))
    return (
        StepBuilder(index, raws, actor, step_kind, kind)
        .text(text)
        .results(results)
        .at(whole.get("timestamp"))
        .flag_if(step_kind is StepKind.TOOL, "unpaired")
        .flag_if(step_kind is StepKind.ERROR, "error")
        .derived("kind")
        .links(links)
        .id(as_str(payload.get("id")) if envelope == "response_item" else "")
        .build()
    )


def _condensed(compacted: Record) -> str:
    history = texts_of(compacted.objects("replacement_history"), "content")
    return joined([compacted.text("message"), *history], "\n\n")


def _of_program(envelope: str, kind: str, payload: Record) -> _Shown:
    """Return the actor, the purpose and the text of a record that the program itself wrote."""
    if kind in _CONDENSED:
        return Actor.SYSTEM, StepKind.CONTEXT, ""
    if kind in ENDS:
        broken = kind.endswith("error") or payload.get("error")
        failure = payload.text("error", "message")
        text = joined([payload.text("message"), failure, *payload.texts("reason", "last_agent_message")])
        return Actor.SYSTEM, StepKind.ERROR if broken else StepKind.END, text
    if envelope == "session_meta":
        settings = payload.without(*_INSTRUCTIONS, "dynamic_tools")
        return (
            Actor.SYSTEM,
            StepKind.SYSTEM,
            joined([dumped(settings), *payload.texts(*_INSTRUCTIONS)], "\n\n"),
        )
    if kind in _NOTES or kind in _STATES:
        step_kind = StepKind.NOTE if kind in _NOTES else StepKind.STATE
        return Actor.SYSTEM, step_kind, dumped(payload.without("type"))
    return Actor.SYSTEM, StepKind.UNKNOWN, ""


def _spoken(index: int, records: list[_CodexRecord]) -> tuple[Actor, StepKind, str]:
    """Return the actor, the purpose and the text of a message that is not from the model."""
    texts: list[str] = []
    role = "user"
    for _, kind, payload, _ in records:
        if kind == "message":
            role = as_str(payload.get("role")) or role
            _add_text(texts, as_text(payload.get("content")))
        elif kind == "item_completed":
            _add_text(texts, text_of(as_dict(payload.get("item"))))
        else:
            _add_text(texts, as_text(payload.get("message")))
    text = joined(texts)
    if role != "user":
        return actor_of(role), StepKind.SYSTEM, text
    # Codex sends its instructions and the description of the environment as the user's messages.
    if _INJECTED.match(text):
        return Actor.SYSTEM, StepKind.SYSTEM, text
    return Actor.USER, asking_kind(index, 8), text
