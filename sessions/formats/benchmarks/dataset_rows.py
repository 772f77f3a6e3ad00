"""Rows of data sets, each a run: SWE-smith, SWE-Gym, nebius, SWE-rebench, R2E-Gym, and ShareGPT's form.

The messages of a row are a list, or a string with the list as JSON. Calls are recorded separately or within
the text of a reply: as functions in XML, as JSON between `<tool_call>` tags, or as SWE-agent's commands in
its last block between fences. LLaMA-Factory's rows name the sender of a call `function_call`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from gistpoint.core.agents.text_calls import calls_in
from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.formats.shared.command_lines import (
    FENCE,
    call_of_command,
    calls_in_functions,
    reports_error,
)
from gistpoint.sessions.formats.shared.messages import (
    Shell,
    Turns,
    message_step,
    message_texts,
    results_in,
    role_of,
)
from gistpoint.sessions.formats.shared.row_facts import HEADER, row_header
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import NoRunError
from gistpoint.sessions.records.building import StepBuilder, error_if
from gistpoint.sessions.records.format import Format, Raw, RunEntry, RunNames, RunReader, run_named
from gistpoint.sessions.records.model import (
    Actor,
    Json,
    NotShown,
    Result,
    Run,
    RunCall,
    Step,
    StepKind,
    StepTexts,
    Tokens,
)
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record
from gistpoint.sessions.records.tables import PARQUET, Places, Row, decoded_text, first_row, rows_of
from gistpoint.sessions.records.values import (
    as_dict,
    as_list,
    as_str,
    as_text,
    first,
    first_object,
    is_deep,
    objects,
    parsed_object,
)

_MESSAGES = ("messages", "trajectory", "conversations", "conversation", "history")
_STEPS = "trajectory_steps"
"""The key of R2E-Gym's steps, each with a thought, an action and an observation."""
_MARKS = frozenset(
    (
        "instance_id",
        "traj_id",
        "trajectory_id",
        "resolved",
        "target",
        "test_result",
        "generated_patch",
        "model_patch",
        "run_id",
        "exit_status",
        "verified",
        _STEPS,
    )
)
"""Members that only rows of data sets have: a mere conversation has none of them."""
_NAMES = ("instance_id", "id", "task_id", "traj_id", "trajectory_id", "docker_image")
_ROLES = {
    "ai": "assistant",
    "gpt": "assistant",
    "bot": "assistant",
    "function_call": "assistant",
    "human": "user",
    "observation": "tool",
    "function_response": "tool",
}
_TEXT = re.compile(
    r'\s*\[\s*\{\s*"(?:role|content|from|value|text|name|tool_calls|tool_call_id|function_call)"'
)
"""The beginning of a string that contains messages as JSON."""
_PROMPT = re.compile(r"\n*\(Open file: [^\n]*\)\n\(Current directory: [^\n]*\)\n\S*\$?\s*\Z")
"""The prompt that SWE-agent's shell prints after each output."""
_ANNOUNCED = re.compile(r"\A(?:OBSERVATION|EXECUTION RESULT of \[[^\]\n]{1,80}\]):\n")
"""The line that announces an output in the rows of several data sets."""
_KNOWN_PLACES = Places()
Protocol = Literal["calls", "functions", "tags", "fences", "text"]


def _message(value: Json) -> Json:
    """Return a message with the keys and roles of OpenAI's API, and without members that are null."""
    if not isinstance(value, dict):
        return value
    message: dict[str, Json] = {key: item for key, item in value.items() if item is not None}
    # ShareGPT has other names for the role and the content.
    if "from" in message and "value" in message:
        message["role"], message["content"] = message.pop("from"), message.pop("value")
    # Rows of nebius have the system prompt in a separate member.
    record = Record(message)
    if record.has("text", "system_prompt") and not record.has("content"):
        message = {
            **record.without("text", "system_prompt"),
            "content": record.first("text", "system_prompt") or "",
        }
    role = as_str(message.get("role"))
    if role == "function_call" and (calls := _written_calls(message.get("content"))):
        message |= {"content": "", "tool_calls": calls}
    if role in _ROLES:
        message["role"] = _ROLES[role]
    return message


def _written_calls(content: Json) -> list[Json]:
    """Return the calls if they are a message's whole content (an object or list in JSON); otherwise empty."""
    value = decoded_text(content) if isinstance(content, str) else content
    calls: list[Json] = value if isinstance(value, list) else [value]
    return calls if all(as_str(as_dict(call).get("name")) for call in calls) else []


def _holds_messages(value: Json) -> bool:
    """Return whether a member of a row is a list of messages, or a string that begins like one in JSON."""
    if isinstance(value, str):
        return _TEXT.match(value) is not None
    opening = [as_dict(_message(item)) for item in as_list(value)[:3]]
    return bool(opening) and all(role_of(message) for message in opening)


def _key_of(fields: Mapping[str, Json]) -> str:
    """Return the key of the run's messages or steps; empty if there are none."""
    if isinstance(fields.get(_STEPS), list | str):
        return _STEPS
    return next((key for key in _MESSAGES if _holds_messages(fields.get(key))), "")


def _protocol(fields: Mapping[str, Json], key: str) -> Protocol:
    """Return the form in which the replies of a row make their calls."""
    held = fields.get(key)
    listed = objects(decoded_text(held) if isinstance(held, str) else held)
    messages = map(as_dict, map(_message, listed))
    replies = [message for message in messages if role_of(message) == "assistant"][:6]
    texts = list(map(_text_of_message, replies))
    if any(Record(message).kept("tool_calls", "function_call") for message in replies):
        return "calls"
    if any("<function=" in text for text in texts):
        return "functions"
    if any("<tool_call>" in text for text in texts):
        return "tags"
    # SWE-agent's replies end with the command; in a conversation with people, a code block may be anywhere.
    fenced = sum(text.rstrip().endswith("```") for text in texts)
    is_fenced = 2 * fenced > len(texts)
    return "fences" if is_fenced and _MARKS & fields.keys() else "text"


def _text_of_message(message: dict[str, Json]) -> str:
    content = message.get("content")
    return "" if isinstance(content, list | dict) and is_deep(content) else as_text(content)


def _calls_of(protocol: Protocol, text: str) -> tuple[RunCall, ...]:
    if protocol == "functions":
        return calls_in_functions(text)
    if protocol == "tags":
        return tuple(
            RunCall(call.id, call.name, call.arguments, parsed_object(call.arguments))
            for call in calls_in(text)
        )
    blocks = FENCE.findall(text) if protocol == "fences" else []
    call = call_of_command(blocks[-1]) if blocks else None
    return (call,) if call else ()


def _fails(output: str, kind: StepKind) -> bool:
    return reports_error(_PROMPT.sub("", _ANNOUNCED.sub("", output, count=1)), kind)


def _shell(protocol: Protocol) -> Shell:
    return Shell(
        lambda _message, text, _answer: _calls_of(protocol, text),
        expects=lambda message: bool(_calls_of(protocol, _text_of_message(message))),
        fails=_fails if protocol != "text" else None,
    )


class _Reader(RunReader):
    """The reader of the conversation in one row."""

    format = "dataset-rows"

    def __init__(self, probe: FileProbe, header: Run, key: str, protocol: Protocol) -> None:
        super().__init__(probe)
        self.arrays = (key,)
        self._header = header
        self._shell = _shell(protocol)
        self._turns = Turns(self._shell)

    def place(self, fields: Json, step_count: int) -> int:
        return step_count if self.arrays[0] == _STEPS else self._turns.place(_message(fields), step_count)

    def had_a_step(self, fields: Json) -> bool:
        message = as_dict(_message(fields))
        return role_of(message) == "user" and not results_in(message)

    def completed(self, value: Json) -> Json:
        return _message(value)

    def header(self) -> Run:
        return self._header

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        if self.arrays[0] == _STEPS:
            return _r2e_step(index, raws)
        return message_step(index, raws, self._shell)

    def texts(self, index: int, values: Sequence[Json]) -> StepTexts | None:
        return None if self.arrays[0] == _STEPS else message_texts(values, self._shell)


def _r2e_step(index: int, raws: Sequence[Raw]) -> Step:
    value = Record(raws[0].value)
    action, observation = value.text("action"), value.text("observation")
    calls = calls_in_functions(action) or tuple(filter(None, [call_of_command(action)]))
    kind = kind_of(calls)
    failed = error_if(calls and _fails(observation, kind))
    result = Result("", observation, failed, None, value.number("env_exec_time"))
    return (
        StepBuilder(index, raws, Actor.AGENT, kind, "step")
        .text(value.text("thought"))
        .calls(calls)
        .results([result] if observation else [])
        .edits(edits_of(calls))
        .spent(Tokens(value.whole("token_usage_prompt"), value.whole("token_usage_completion")))
        .flag_if(failed, "error")
        .derived(
            "kind",
            "calls",
        )
        .derived_if(failed, "results.is_error")
        .build()
    )


class DatasetRows(Format):
    """Recognised by rows with messages or steps and a task, a verdict or a patch, or as Parquet."""

    name = "dataset-rows"
    reviewed_as = "chat"
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("tools", "functions"), "what the model could call", of_run=True),
        NotShown(("from",), "ShareGPT's name of who speaks, which is shown in our words"),
        NotShown(("cutoff_date", "mask"), "settings for training on the row"),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        if probe.head.startswith(PARQUET):
            return 1.0
        row: Mapping[str, Json] = probe.opening.members
        if not _key_of(row):
            return 0.0
        if _is_of_data_set(row):
            return 0.93
        # The head may end before the members that distinguish a row from a mere conversation.
        if probe.array or probe.is_lines:
            row = first_row(probe)
            known = _is_of_data_set(row)
        else:
            known = any(probe.late(key) is not None for key in _MARKS) and probe.blob.size < limits.RECORD
        return 0.93 if known else 0.6 if _key_of(row) not in ("messages", "") else 0.0

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield the rows that are runs. Raises `NoRunError` if a Parquet file has only other rows."""
        columns: list[str] = []
        found = False
        for id, row, key in _named_rows(probe, columns):
            found = True
            yield RunEntry(id, _header(row, key, id))
        if not found and columns and probe.head.startswith(PARQUET):
            listed = ", ".join(columns[:12])
            raise NoRunError(
                f"{probe.name or 'The file'} has rows without messages: its columns are {listed}.",
                hint=f"A run's messages are looked for in {', '.join(_MESSAGES)} and {_STEPS}.",
            )

    def open(self, probe: FileProbe, id: str) -> _Reader:
        """Return a reader of the run in a row, the first row if `id` is empty.

        Raises `RunFileError` if there is no such row.
        """
        row = _KNOWN_PLACES.row(probe, id)
        if row is not None and (key := _key_of(row.fields)):
            return _opened(probe, id, row, key)
        rows = ((known, (found, key)) for known, found, key in _named_rows(probe, []))
        known, (found, key) = run_named(probe, id, rows, hint="List it to see the ids.")
        return _opened(probe, known, found, key)


def _opened(probe: FileProbe, id: str, row: Row, key: str) -> _Reader:
    inner = row.probe(probe, (key, "test_result"))
    return _Reader(inner, _header(row, key, id), key, _protocol(row.fields, key))


def _is_of_data_set(row: Mapping[str, Json]) -> bool:
    """Return whether a row is more than a conversation, or has messages in a form that only data sets use."""
    held = row.get(_key_of(row))
    opening = first_object(held)
    has_own_keys = {"from", "value"} <= opening.keys() or bool({"system_prompt", "mask"} & opening.keys())
    return has_own_keys or isinstance(held, str) or bool(_MARKS & row.keys())


def _header(row: Row, key: str, id: str) -> Run:
    members = {name: row.member(name) for name in HEADER}
    result = members["test_result"]
    members["test_result"] = decoded_text(result) if isinstance(result, str) else result
    run = row_header("dataset-rows", "", members)
    run = run if run.id else replace(run, id=id)
    if key != _STEPS:
        return run
    data = as_dict(row.member("ds")) or as_dict(as_dict(row.member("env_args")).get("ds"))
    return replace(
        run,
        task=run.task or as_str(first(data, "instance_id", "docker_image") or row.member("docker_image")),
        model=run.model or as_str(as_dict(row.member("agent_args")).get("llm_name")),
        agent="r2e-gym",
        prompt=as_str(members["problem_statement"]),
    )


def _named_rows(probe: FileProbe, columns: list[str]) -> Iterator[tuple[str, Row, str]]:
    """Yield the id, the row and the messages' key of each run; add the first row's columns to `columns`."""
    names, places = RunNames(), _KNOWN_PLACES.of(probe)
    # All rows of a Parquet file have the same columns, in which searching for the messages is expensive.
    shared = ""
    for row in rows_of(probe):
        columns += [] if columns else row.fields
        # Only rows in JSON can have their messages under another key than the previous row.
        key = shared if row.record is None and shared in row.fields else _key_of(row.fields)
        if key:
            shared = key
            name = as_str(next((row.member(name) for name in _NAMES if row.member(name) is not None), ""))
            id = names.name(name or str(row.number))
            _KNOWN_PLACES.add(places, id, row)
            yield id, row, key


FORMAT = DatasetRows()
