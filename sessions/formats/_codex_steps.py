"""The steps of a Codex CLI session: a reply, put together from its items and events, or a record of another kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from gistpoint.sessions.formats._codex_records import (
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
from gistpoint.sessions.formats.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.formats.messages import actor_of, thought_text
from gistpoint.sessions.records.building import StepBuilder, any_failed, asking_kind
from gistpoint.sessions.records.format import Raw, unknown_step
from gistpoint.sessions.records.model import Actor, FileEdit, Json, Result, RunCall, Step, StepKind, Tokens
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    compact,
    dumped,
    first,
    in_seconds,
    joined,
    objects,
    when,
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
_INJECTED = re.compile(r"\s*(?:<([a-z_]{3,60})>.*</\1>\s*\Z|# AGENTS\.md )", re.S)
_INSTRUCTIONS = ("instructions", "base_instructions", "user_instructions")
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,9})$", re.M)
_WALL = re.compile(r"^Wall time: (\d{1,9}(?:\.\d{1,9})?)", re.M)
_HEAD = 400


_T = TypeVar("_T")
_Record = tuple[str, str, dict[str, Json], dict[str, Json]]


def reply_step(index: int, raws: Sequence[Raw], records: list[_Record], model: str) -> Step:
    """Return the step of a reply: a record is its envelope, type and payload, and the whole."""
    reply = _Reply()
    for envelope, kind, payload, _ in records:
        reply.add(envelope, kind, payload)
    times = [at for at in (when(record.get("timestamp")) for *_, record in records) if at is not None]
    failed = any_failed(reply.results) or reply.failed
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(tuple(reply.calls)), "assistant")
        .thought(*reply.thoughts)
        .text(*reply.texts)
        .calls(reply.calls)
        .results(reply.results)
        .edits(tuple(reply.made(reply.edits)) or edits_of(tuple(reply.calls)))
        .diffs(reply.made(reply.diffs))
        .over(times)
        .naive(records[0][3].get("timestamp"))
        .spent(reply.tokens)
        .model(model)
        .flag_if(failed, "error")
        .derived("kind", "ended", *reply.derived)
        .links(dict.fromkeys(link for *_, payload, _ in records for link in links_of(payload)))
        .build()
    )


class _Reply:
    """One reply of the model, put together from its items and events."""

    def __init__(self) -> None:
        self.thoughts: list[str] = []
        self.texts: list[str] = []
        self.calls: list[RunCall] = []
        self.results: list[Result] = []
        self.diffs: list[tuple[str, str]] = []
        """The diffs that events tell, as `edits` with the id of the call that made them."""
        self.edits: list[tuple[str, FileEdit]] = []
        self.tokens = Tokens()
        self.failed = False
        self.derived: set[str] = set()
        self._tally: list[Json] = []

    def made(self, told: list[tuple[str, _T]]) -> list[_T]:
        """Return what events tell of changes, without those of calls that failed."""
        failed = {result.call_id for result in self.results if result.is_error}
        return [one for identity, one in told if identity not in failed]

    def add(self, envelope: str, kind: str, payload: dict[str, Json]) -> None:
        if envelope == "response_item":
            self._item(kind, payload)
        elif kind in ("agent_reasoning", "agent_reasoning_raw_content"):
            _once(self.thoughts, as_text(payload.get("text")))
        elif kind == "agent_message":
            _once(self.texts, as_text(payload.get("message")))
        elif kind == "token_count":
            self._count(as_dict(payload.get("info")))
        elif kind == "item_completed":
            self._completed(as_dict(payload.get("item")))
        elif reports(kind):
            self._report(call_id(payload) or kind, kind, payload)

    def _item(self, kind: str, payload: dict[str, Json]) -> None:
        if kind == "reasoning":
            _once(self.thoughts, thought_text(payload))
        elif kind == "message":
            _once(self.texts, as_text(payload.get("content")))
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
        """Return an output: a text, parts, or a text that holds an object with the output and the exit code."""
        output = first(payload, "output", "tools", "result")
        text = as_text(output)
        facts = as_dict(as_dict(output).get("metadata"))
        if facts:
            text = as_text(as_dict(output).get("output"))
            return Result(
                call_id(payload), text, None, as_int(facts.get("exit_code")), as_float(facts.get("duration_seconds"))
            )
        code, wall = _EXIT.search(text[:_HEAD]), _WALL.search(text[:_HEAD])
        self.derived |= {"results.returncode"} if code else set()
        told = as_dict(output)
        failed = told.get("success") is False or told.get("isError") is True
        failed = failed or payload.get("status") in ("failed", "incomplete")
        return Result(
            call_id(payload), text, failed or None, int(code[1]) if code else None, float(wall[1]) if wall else None
        )

    def _result(self, result: Result) -> None:
        """Keep a result; what an event said of the same call before is completed by it."""
        for at, known in enumerate(self.results):
            if result.call_id and known.call_id == result.call_id:
                self.results[at] = Result(
                    result.call_id,
                    result.text
                    if known.text in result.text
                    else known.text
                    if result.text in known.text
                    else joined([result.text, known.text]),
                    result.is_error if known.is_error is None else known.is_error,
                    result.returncode if known.returncode is None else known.returncode,
                    result.duration_s if known.duration_s is None else known.duration_s,
                )
                return
        self.results.append(result)

    def _count(self, info: dict[str, Json]) -> None:
        total = info.get("total_token_usage")
        if isinstance(total, dict) and total not in self._tally:
            self._tally.append(total)
            self.tokens += tokens_of(as_dict(info.get("last_token_usage")))

    def _completed(self, item: dict[str, Json]) -> None:
        kind, identity = item_type(item), call_id(item) or as_str(item.get("id"))
        if kind == "Reasoning":
            for key in ("summary_text", "raw_content"):
                _once(self.thoughts, as_text(item.get(key)))
        elif kind in ("AgentMessage", "Plan"):
            _once(self.texts, text_of(item))
        elif kind in ("CommandExecution", "McpToolCall", "FileChange", "DynamicToolCall", "WebSearch"):
            self._report(identity, kind, item)

    def _report(self, identity: str, kind: str, report: dict[str, Json]) -> None:
        """Add what an event says of a call; of one that no item makes, the call too."""
        invocation = as_dict(report.get("invocation")) or report
        if not any(call.id == identity for call in self.calls) and not self._same_command(report):
            asked = first(invocation, "arguments", "command", "query", "prompt", "path", "changes")
            name = as_str(first(invocation, "tool", "tool_name")) or _snake(kind)
            arguments: dict[str, Json] = asked if isinstance(asked, dict) else {_ARGUMENT.get(name, "input"): asked}
            self.calls.append(
                RunCall(identity, name, compact(arguments), arguments) if asked else RunCall(identity, name)
            )
        for path, change in as_dict(report.get("changes")).items():
            diff = as_text(as_dict(change).get("unified_diff"))
            whole = as_text(as_dict(change)["content"]) if "content" in as_dict(change) else None
            self.edits.append((identity, FileEdit(path, None, whole)))
            if diff:
                heading = "" if diff.startswith("--- ") else f"--- a/{path.lstrip('/')}\n+++ b/{path.lstrip('/')}\n"
                self.diffs.append((identity, heading + diff))
        if kind.endswith(("_begin", "_request")):
            return
        if any(call.id == identity for call in self.calls):
            result = _reported(identity, report)
            if result is not None:
                self._result(result)

    def _same_command(self, report: dict[str, Json]) -> bool:
        """Whether a command or a search is that of a call which has another id; what came of it is then the call's."""
        query = as_str(report.get("query"))
        searched = next((call for call in self.calls if query and (call.parsed or {}).get("query") == query), None)
        if searched is not None:
            found = _reported(searched.id, report)
            self.results += [found] if found else []
            return True
        command = " ".join(map(as_str, as_list(report.get("command")))) or as_str(report.get("command"))
        for call in self.calls if command else ():
            asked = (call.parsed or {}).get("command", (call.parsed or {}).get("cmd"))
            wanted = " ".join(map(as_str, as_list(asked))) or as_str(asked)
            if wanted and wanted in command:
                self._result(Result(call.id, "", None, as_int(report.get("exit_code")), _seconds(report)))
                return True
        return False


_ARGUMENT = {"exec_command": "command", "command_execution": "command", "patch_apply": "changes"}


def _snake(kind: str) -> str:
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower()
    for ending in ("_end", "_begin", "_request", "_response", "_tool_call"):
        plain = plain.removesuffix(ending)
    return plain


def _seconds(report: dict[str, Json]) -> float | None:
    duration = as_dict(report.get("duration"))
    seconds, rest = as_float(duration.get("secs")), as_float(duration.get("nanos"))
    milliseconds = as_float(first(report, "duration_ms", "durationMs"))
    if seconds is None:
        return in_seconds(milliseconds)
    return seconds + (rest or 0.0) / 1e9


def _reported(identity: str, report: dict[str, Json]) -> Result | None:
    """Return the result that an event or a completed item tells, None if it tells none."""
    outcome = as_dict(report.get("result"))
    told = first(report, "aggregated_output", "formatted_output", "content_items", "results", "error")
    texts = [as_text(told)] if told else [as_text(report.get(key)) for key in ("stdout", "stderr")]
    if outcome:
        failure = outcome.get("Err")
        inner = as_dict(first(outcome, "Ok")) or outcome
        texts = [as_text(failure) if failure else as_text(inner.get("content")), *texts]
        failed = True if failure or inner.get("isError") or inner.get("is_error") else None
    else:
        texts += [as_text(report.get("result"))]
        failed = True if report.get("success") is False or report.get("error") else None
    if report.get("status") in ("failed", "declined", "errored"):
        failed = True
    code = as_int(report.get("exit_code"))
    text = joined(dict.fromkeys(texts))
    if not text and failed is None and code is None and _seconds(report) is None:
        return None
    return Result(identity, text, failed, code, _seconds(report))


def _once(texts: list[str], text: str) -> None:
    """Add a text that was not told before, by an item or by an event; a longer telling replaces its part."""
    if text and not any(text in other for other in texts):
        texts[:] = [other for other in texts if other not in text]
        texts.append(text)


def other_step(index: int, raws: Sequence[Raw], records: list[_Record]) -> Step:
    """Return the step of records that are not the model's."""
    envelope, kind, payload, record = records[0]
    actor, step_kind, flags, text = Actor.SYSTEM, StepKind.STATE, set[str](), ""
    results: tuple[Result, ...] = ()
    if kind in ("message", "user_message") or (kind == "item_completed"):
        actor, step_kind, text = _spoken(index, records)
    elif kind == "agent_message":
        actor, step_kind = Actor.ENVIRONMENT, StepKind.MESSAGE
        text = joined([as_text([part]) for part in objects(payload.get("content")) if part.get("text")])
    elif any(one[0] == "compacted" for one in records):
        compacted = next(one[2] for one in records if one[0] == "compacted")
        step_kind = StepKind.CONTEXT
        history = objects(compacted.get("replacement_history"))
        text = joined([as_text(compacted.get("message")), *(as_text(item.get("content")) for item in history)], "\n\n")
    elif kind in ("context_compacted", "compaction", "compaction_summary"):
        step_kind = StepKind.CONTEXT
    elif kind in ENDS:
        broken = kind.endswith("error") or bool(payload.get("error"))
        step_kind = StepKind.ERROR if broken else StepKind.END
        flags |= {"error"} if broken else set()
        failure = as_dict(payload.get("error")).get("message")
        text = joined(
            as_text(one)
            for one in (payload.get("message"), failure, payload.get("reason"), payload.get("last_agent_message"))
        )
    elif is_output(kind):
        actor, step_kind, flags = Actor.ENVIRONMENT, StepKind.TOOL, {"unpaired"}
        reply = _Reply()
        reply.add(envelope, kind, payload)
        results = tuple(reply.results)
    elif envelope == "session_meta":
        step_kind = StepKind.SYSTEM
        told = [as_text(payload.get(key)) for key in _INSTRUCTIONS]
        rest = {key: value for key, value in payload.items() if key not in (*_INSTRUCTIONS, "dynamic_tools")}
        text = joined([dumped(rest), *told], "\n\n")
    elif kind in _NOTES or kind in _STATES:
        step_kind = StepKind.NOTE if kind in _NOTES else StepKind.STATE
        text = dumped({key: value for key, value in payload.items() if key != "type"})
    else:
        return unknown_step(index, raws, kind or "record", dumped(raws[0].value))
    return (
        StepBuilder(index, raws, actor, step_kind, kind)
        .text(text)
        .results(results)
        .at(record.get("timestamp"))
        .flag(*flags)
        .derived("kind")
        .links(dict.fromkeys(link for *_, one, _ in records for link in links_of(one)))
        .id(as_str(payload.get("id")) if envelope == "response_item" else "")
        .build()
    )


def _spoken(index: int, records: list[_Record]) -> tuple[Actor, StepKind, str]:
    """Return who spoke, what for, and the text of a message that is not the model's; Codex sends some for the user."""
    texts: list[str] = []
    role = "user"
    for _, kind, payload, _ in records:
        if kind == "message":
            role = as_str(payload.get("role")) or role
            _once(texts, as_text(payload.get("content")))
        elif kind == "item_completed":
            _once(texts, text_of(as_dict(payload.get("item"))))
        else:
            _once(texts, as_text(payload.get("message")))
    text = joined(texts)
    if role != "user" or _INJECTED.match(text):
        return Actor.SYSTEM if role == "user" else actor_of(role), StepKind.SYSTEM, text
    return Actor.USER, asking_kind(index, 8), text
