"""Yields every string of a recorded run's file, decoded without gistpoint's readers.

The place of a string is a path of keys, joined with dots, within a record or within the run's own object.
"""

from __future__ import annotations

import json
import re
import shlex
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import zstandard

from gistpoint.core.code.source_text import physical_lines
from gistpoint.sessions.records.model import NotShown, Step, TextScope, parts_of
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.runs.rendering import header_lines
from recorded_runs.traces import halves_of, observations_of, spans_of
from recorded_runs.trials import transcripts_of, trials_of


@dataclass(frozen=True)
class Layout:
    """The layout of a format's runs, described independently of the format's reader.

    Runs of a format without a layout can't be checked.
    """

    said: tuple[str, ...]
    """The paths of messages, thoughts, calls and results, each of which must be in a step."""
    arrays: tuple[str, ...] = ()
    """The possible keys of a run's array of records; the first one present counts. Empty for lines."""
    said_of_run: tuple[str, ...] = ()
    """The same as `said`, for strings outside of the records."""
    repeated: tuple[str, ...] = ("\0",)
    """The paths of strings that every call to a model repeats, so their number does not count."""
    runs: Callable[[Path], list[Any]] | None = None
    """Splits a file into runs: lists of records, or objects with an array. None if the split is obvious."""


def side_agents_apart(path: Path) -> list[list[Any]]:
    """Return the records of the main thread, then those of each side agent."""
    text = path.read_text(encoding="utf-8")
    by_agent: dict[str, list[Any]] = {"": []}
    for record in json.loads(text) if text.startswith("[") else map(json.loads, physical_lines(text)):
        by_agent.setdefault(record.get("parent_tool_use_id") or "", []).append(record)
    return list(by_agent.values())


def conversations_apart(path: Path) -> list[list[Any]]:
    """Return the exchanges with each system prompt, from lines or from a cassette."""
    text = path.read_text(encoding="utf-8")
    whole = (
        json.loads(text)
        if text.startswith("{\n")
        else {"interactions": list(map(json.loads, physical_lines(text)))}
    )
    by_system: dict[str, list[Any]] = {}
    for exchange in whole["interactions"]:
        request = exchange["request"]
        by_system.setdefault((request.get("body") or request["parsed_body"])["system"], []).append(exchange)
    return list(by_system.values())


def sessions_apart(path: Path) -> list[list[Any]]:
    """Return the lines of each session; those without a session belong to the first one."""
    by_session: dict[str, list[Any]] = {}
    lines = list(map(json.loads, path.read_bytes().splitlines()))
    first = next(line["sessionKey"] for line in lines if "sessionKey" in line)
    for line in lines:
        by_session.setdefault(line.get("sessionKey", first), []).append(line)
    return list(by_session.values())


def rows(path: Path) -> list[Any]:
    """Return the rows of a data set, after decoding messages that are JSON within a string."""
    text = path.read_text(encoding="utf-8")
    found = (
        json.loads(text)
        if text.lstrip()[:1] == "["
        else [json.loads(line) for line in physical_lines(text) if line]
    )
    keys = ("messages", "trajectory", "conversations", "test_result")
    return [
        {
            key: json.loads(item) if key in keys and isinstance(item, str) else item
            for key, item in row.items()
        }
        for row in found
    ]


def lines_of(path: Path) -> list[Any]:
    """Return the lines of a transcript as one run, without separators and headings."""
    lines = [
        re.sub(r"^_?\*\*|\*\*_?$|</?[\w-]+[^>]*>", "", line)
        for line in path.read_text(encoding="utf-8").split("\n")
    ]
    return [
        [
            {"line": line}
            for line in lines
            if line.strip("-` ") and not line.startswith(("Agent", "User", "Thought", "Tool"))
        ]
    ]


def exported_lines_of(path: Path) -> list[Any]:
    """Return the lines of an export of opencode, without the headings of its parts.

    Arguments are returned as strings.
    """
    found: list[Any] = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.startswith("{"):
            found += [{"line": text} for text in json.loads(line).values()]
        elif (
            line.strip("-` ")
            and line != "```json"
            and not line.startswith(("## Assistant", "## User", "**Tool", "**Input", "**Output", "**Err"))
        ):
            found.append({"line": line})
    return [found]


def shown_by_cline(path: Path) -> list[Any]:
    """Return the records of a conversation, after parsing strings that are JSON objects."""
    records = json.loads(path.read_text(encoding="utf-8"))
    return [
        [
            {**one, "text": json.loads(one["text"])} if one.get("text", "")[:1] == "{" else one
            for one in records
        ]
    ]


def parsed_bubbles(path: Path) -> list[Any]:
    """Return a chat of Cursor with the arguments of its calls parsed."""
    chat = json.loads(path.read_text(encoding="utf-8"))
    for bubble in chat["bubbles"]:
        tool = bubble.get("toolFormerData", {})
        for key in ("rawArgs", "params"):
            if key in tool:
                tool[key] = json.loads(tool[key])
    return [chat]


def aider_chats(path: Path) -> list[Any]:
    """Return the lines of each listed chat, without their marks."""
    listed = {unquote(found.name.rpartition("#")[2]) for found in list_runs([path])}
    text = path.read_text(encoding="utf-8")
    seen, chats = Counter[str](), list[Any]()
    for chat in re.split(r"^(?=# aider chat started at )", text, flags=re.M)[1:]:
        begun = chat.partition("\n")[0].removeprefix("# aider chat started at ")
        seen[begun] += 1
        if (begun if seen[begun] == 1 else f"{begun}~{seen[begun]}") in listed or len(listed) == 1:
            chats.append([{"line": re.sub(r"^(#### |> ?)", "", line).strip()} for line in chat.split("\n")])
    return chats


def trials(path: Path) -> list[Any]:
    """Return the trials of tau-bench, or the simulations of tau2-bench."""
    whole = json.loads(path.read_text(encoding="utf-8"))
    return whole if isinstance(whole, list) else whole.get("simulations") or [whole]


LAYOUTS = {
    "aider": Layout(("line",), runs=aider_chats),
    "api-log": Layout(
        ("request.body.messages.content", "request.body.system", "response.body.content",
         "request.parsed_body.messages.content", "request.parsed_body.system", "response.parsed_body.content"),
        repeated=("request.", "response."),
        runs=conversations_apart,
    ),
    "atif": Layout(
        ("message", "reasoning_content", "tool_calls.arguments", "observation.results.content"), ("steps",)
    ),
    "breakpoint": Layout(()),
    "chat": Layout(
        ("content", "tool_calls.function.arguments", "reasoning_content", "refusal", "arguments", "output"),
        ("messages", "data", "traj"),
        said_of_run=("system", "system_prompt"),
    ),
    "chat-markdown": Layout(("line",), runs=lines_of),
    "claude-code": Layout(("message.content",)),
    "claude-stream": Layout(("message.content", "result", "errors"), runs=side_agents_apart),
    "cline-window": Layout(("text.path", "text.content", "text.question"), runs=shown_by_cline),
    "codex": Layout(
        ("payload.content", "payload.summary.text", "payload.arguments", "payload.input", "payload.output",
         "payload.message", "payload.text", "payload.instructions", "payload.base_instructions"),
        repeated=("payload.message", "payload.text"),
    ),
    "codex-exec": Layout(
        ("item.text", "item.command", "item.aggregated_output", "item.changes", "item.arguments", "message"),
        repeated=("item.",),
    ),
    "cline": Layout(
        ("content.text", "content.input", "content.content"), ("messages",), said_of_run=("system_prompt",)
    ),
    "cursor-chat": Layout(
        ("text", "thinking.text", "toolFormerData.rawArgs", "toolFormerData.result", "toolFormerData.error"),
        ("bubbles",),
        runs=parsed_bubbles,
    ),
    "copilot-chat": Layout(
        ("message.text", "response.value", "result.metadata.toolCallRounds.response",
         "result.metadata.toolCallRounds.toolCalls.arguments", "result.errorDetails.message"),
        ("requests",),
    ),
    "copilot-cli": Layout(("data.content", "data.toolRequests.arguments", "data.arguments", "data.result.content",
                           "data.reasoningText", "data.message")),
    "cursor": Layout(("message.content", "tool_call"), repeated=("message.content", "tool_call")),
    "continue": Layout(
        ("message.content", "message.toolCalls.function.arguments", "toolCallStates.output.content"), ("history",)
    ),
    "dataset-rows": Layout(
        ("content", "text", "system_prompt", "value", "thought", "action", "observation",
         "tool_calls.function.arguments"),
        ("messages", "trajectory", "conversations", "trajectory_steps"),
        runs=rows,
    ),
    "agent-data": Layout(
        ("content", "description", "reasoning_content", "kwargs", "axtree", "url"), ("content",), runs=rows
    ),
    "debug-gym": Layout(("action", "obs", "content"), ("log",)),
    "gemini-cli": Layout(
        ("content", "thoughts.description", "toolCalls.args", "toolCalls.result", "parts"), ("messages",)
    ),
    "gemini-stream": Layout(("content", "parameters", "output", "error.message")),
    "docent": Layout(("content.text", "tool_calls.arguments"), runs=transcripts_of),
    "gistpoint": Layout(("data.content", "data.output")),
    "harbor": Layout(("exception_info",)),
    "inspect": Layout(
        ("input", "arguments", "result", "output.choices.message.content",
         "output.choices.message.tool_calls.arguments", "error.message"),
        ("events", "messages"),
        said_of_run=("input", "messages.content", "messages.tool_calls.arguments"),
        repeated=("input",),
    ),
    "kimi": Layout(
        ("input.text", "message.content.text", "event.part.think", "event.part.text", "event.args",
         "event.result.output", "event.result.message", "summary", "systemPrompt")
    ),
    "langfuse": Layout(("output",), ("observations",), repeated=("output",), runs=observations_of),
    "langsmith": Layout(("outputs.choices.message.content", "outputs.output"), runs=halves_of),
    "mini-swe-agent": Layout(("content", "tool_calls.function.arguments", "extra.traceback"), ("messages",)),
    "opencode": Layout(
        ("parts.text", "parts.state.input", "parts.state.output", "parts.state.error", "info.error.data"), ("messages",)
    ),
    "opencode-markdown": Layout(("line",), runs=exported_lines_of),
    "otel": Layout(
        ("attributes.llm.output_messages", "attributes.gen_ai.output", "attributes.gen_ai.tool.call.result"),
        runs=spans_of,
    ),
    "openclaw-telemetry": Layout(
        ("content", "prompt", "params", "messages.content.text", "messages.content.thinking",
         "messages.content.arguments"),
        repeated=("messages.content.text", "messages.content.thinking", "messages.content.arguments"),
        runs=sessions_apart,
    ),
    "openhands": Layout(
        ("args.content", "args.command", "args.code", "args.thought", "args.path", "args.file_text", "content",
         "thought.text", "reasoning_content", "action.command", "observation.content.text", "llm_message.content"),
        ("history",),
    ),
    "qwen-code": Layout(("message.parts",)),
    "pi": Layout(("message.content.text", "message.content.arguments", "message.errorMessage", "summary")),
    "swe-agent": Layout(("thought", "action", "observation", "content"), ("trajectory", "history")),
    "tau-bench": Layout(
        ("content", "tool_calls.arguments", "tool_calls.function.arguments", "tool_messages.content",
         "agent_chunk.content", "user_chunk.content", "agent_tool_calls.arguments", "agent_tool_results.content"),
        ("traj", "ticks", "messages"),
        runs=trials,
    ),
    "terminal-bench": Layout(("instruction",), runs=trials_of),
}  # fmt: skip
LABELS = re.compile(
    r"(?:.*_)?(?:id|ids|uuid|hash|at|type|version|timestamp)|.*[a-z](?:Id|ID|Ids|Uuid|UUID|At|Type|Version|Timestamp)"
    r"|role|kind|object|ts|created|completed|time|index|(?:\w+_)?signature|encrypted_(?:content|index)"
)
"""The keys of a record's kind, identity and time, which no format shows."""
ARGUMENTS = (
    "tool_calls.arguments.",
    "toolCalls.args.",
    "functionCall.args.",
    "parameters.",
    "content.input.",
    "arguments.",
    "args.",
)
"""Below these, no key is a label, because its value was an argument of a call."""
OPAQUE = re.compile(r"data:[\w/+.-]{1,100};base64,|[\w+/=-]{160,}\Z", re.ASCII)
REFERENCE = re.compile(r"(?:attachment|tc)://(\w{1,64})\Z")
SHORT = 16


@dataclass(frozen=True)
class RawText:
    """A string of a file; `said` says whether it is a message, a thought, an argument or a result."""

    path: str
    text: str
    of_run: bool
    said: bool


@dataclass
class Tally:
    """Counts of where the strings of a run, or of all runs of a format, were found."""

    runs: int = 0
    texts: int = 0
    said: int = 0
    found: int = 0
    beside: int = 0
    heading: int = 0
    listed: int = 0
    labels: int = 0
    lost: list[tuple[str, str]] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add the figures of another tally."""
        for name in ("runs", "texts", "said", "found", "beside", "heading", "listed", "labels", "lost"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def tally_file(path: Path) -> Iterator[tuple[str, Tally]]:
    """Yield the format of each run in a file, and the tally of its strings."""
    listed = [found for found in list_runs([path]) if found.header is not None]
    for found, raw in zip(
        listed, raw_runs(path, [item.header.format for item in listed if item.header]), strict=True
    ):
        document = open_run(found.name)
        document.build()
        yield document.header.format, tally(document, raw)


def tally(document: RunDocument, raw: Iterable[RawText]) -> Tally:
    """Count where strings are found: in the steps, in the header, or in the list of those not shown."""
    format = document.header.format
    fields, beside = _Shown(), _Shown()
    for step in document.steps():
        for scope, _, text in parts_of(step):
            (beside if scope is TextScope.ALSO else fields).add("".join(document.full_text(text)))
        fields.add(*_facts(step))
    header = _Shown()
    header.add(*header_lines(document.header), document.header.submission, document.header.prompt)
    header.add(*(noted.text for noted in document.header.also))
    counts = Tally(1)
    often = {True: Counter[tuple[str, str]](), False: Counter[tuple[str, str]]()}
    for item in raw:
        if not item.text.strip():
            continue
        counts.texts += 1
        counts.said += item.said
        if item.said and not (not item.of_run and item.path.startswith(LAYOUTS[format].repeated)):
            often[item.of_run][item.path, item.text] += 1
        if fields.holds(item.text, often[item.of_run][item.path, item.text]) or (
            format == "swe-agent" and item.path == "action" and fields.holds_words(item.text)
        ):
            counts.found += 1
        elif beside.holds(item.text):
            counts.beside += 1
        elif not item.said and header.holds(item.text):
            counts.heading += 1
        elif not item.said and _is_listed(item, document.header.not_shown):
            counts.listed += 1
        elif not item.said and ((not item.of_run and _is_label(item.path)) or OPAQUE.match(item.text)):
            counts.labels += 1
        else:
            counts.lost.append((item.path, item.text))
    return counts


def _facts(step: Step) -> Iterator[str]:
    """Yield the labels of a step and of its calls, and the files that it changed."""
    yield from (step.label, step.id, step.model, step.kind.value, step.actor.value, *step.links)
    for call in step.calls:
        yield from (call.id, call.tool)
    for edit in step.edits:
        yield edit.path


def _is_listed(item: RawText, not_shown: Iterable[NotShown]) -> bool:
    names = (name for entry in not_shown if entry.of_run == item.of_run for name in entry.names)
    return any(f"{item.path}.".startswith(f"{name}.") for name in names)


class _Shown:
    """The shown strings, joined."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._whole: str | None = None

    def add(self, *texts: str) -> None:
        self._pieces += [text for text in texts if text]
        self._whole = None

    def holds(self, text: str, often: int = 1) -> bool:
        """Return whether a string is shown at least `often` times.

        It may be shown unchanged, within JSON, or, if it is JSON itself, as the strings within it.
        """
        if self._whole is None:
            self._whole = "\0".join(self._pieces)
        for shape in dict.fromkeys((text, text.strip(), json.dumps(text, ensure_ascii=False)[1:-1])):
            if self._occurs(shape, max(1, often)):
                return True
        try:
            inner = json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
        except ValueError:
            inner = None
        return inner is not None and all(
            self.holds(part.text) for part in strings(inner) if part.text.strip()
        )

    def holds_words(self, command: str) -> bool:
        """Return whether all words of a shell command are shown; options may lose their dashes."""
        return all(self.holds(word.removeprefix("--")) for word in shlex.split(command))

    def _occurs(self, text: str, often: int) -> bool:
        """Return whether a string occurs that often; a short one counts only as a separate word."""
        assert self._whole is not None
        at = -1
        while often and (at := self._whole.find(text, at + 1)) >= 0:
            left, right = self._whole[at - 1 : at], self._whole[at + len(text) : at + len(text) + 1]
            inside = (left.isalnum() and text[0].isalnum()) or (text[-1].isalnum() and right.isalnum())
            often -= len(text) >= SHORT or not inside
        return not often


def strings(value: Any, path: str = "", *, of_run: bool = False) -> Iterator[RawText]:
    """Yield every string below a value, except keys."""
    if isinstance(value, str):
        yield RawText(path, value, of_run, False)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item, path, of_run=of_run)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from strings(item, f"{path}.{key}" if path else key, of_run=of_run)


def raw_runs(path: Path, formats: list[str]) -> Iterator[list[RawText]]:
    """Yield the strings of each run of a file, in order; `formats` are the formats of the runs."""
    for format, run in zip(formats, runs_in(path, formats), strict=True):
        layout = LAYOUTS[format]
        records, rest = apart(run, layout.arrays)
        yield [
            *(_marked(text, layout.said) for record in records for text in strings(record)),
            *(_marked(text, layout.said_of_run) for text in strings(rest, of_run=True)),
        ]


def _marked(text: RawText, said: tuple[str, ...]) -> RawText:
    below = any(f"{text.path}.".startswith(f"{name}.") for name in said)
    no_words = _is_label(text.path) or text.path.endswith("content.name") or OPAQUE.match(text.text)
    return RawText(text.path, text.text, text.of_run, below and not no_words)


def _is_label(path: str) -> bool:
    inside = any(f".{name}" in f".{path}" for name in ARGUMENTS)
    return not inside and LABELS.fullmatch(path.rpartition(".")[2]) is not None


def apart(run: Any, arrays: tuple[str, ...]) -> tuple[list[Any], dict[str, Any]]:
    """Return the records of a run and its other members."""
    if isinstance(run, list):
        return run, {}
    array = next((key for key in arrays if isinstance(run.get(key), list)), None)
    if array is None:
        return [run], {}
    rest = {key: value for key, value in run.items() if key != array}
    return [part for item in run[array] for part in (item if isinstance(item, list) else [item])], rest


def runs_in(path: Path, formats: list[str]) -> list[Any]:
    """Return the runs of a file as decoded values; `formats` are the formats of the runs."""
    split = LAYOUTS[formats[0]].runs if formats else None
    if split is not None:
        return split(path)
    if path.is_dir():
        return [[json.loads(file.read_bytes()) for file in sorted(path.rglob("event-*.json"))]]
    if zipfile.is_zipfile(path):
        return _samples(path)
    text = path.read_text(encoding="utf-8")
    try:
        whole = json.loads(text)
    except ValueError:
        lines = [_value_or_text(line) for line in physical_lines(text) if line.strip()]
        if formats[0] == "breakpoint":
            return [line for line in lines if "problem" in line]
        return lines if len(formats) > 1 or "history" in lines[0] or "messages" in lines[0] else [lines]
    if isinstance(whole, list) and (len(formats) > 1 or {"traj", "messages"} & whole[0].keys()):
        return whole
    if formats == ["inspect"] * len(formats) and "samples" in whole:
        return [resolved(sample) for sample in whole["samples"]]
    inner = whole.get("attempts") or whole.get("subagent_trajectories") if isinstance(whole, dict) else None
    if inner and len(formats) > 1:
        alone = {
            key: value for key, value in whole.items() if key not in ("attempts", "subagent_trajectories")
        }
        return [alone, *inner]
    return [whole]


def _value_or_text(line: str) -> Any:
    """Return the value of a line; if it is not JSON, return the line, all of which must be shown."""
    try:
        return json.loads(line)
    except ValueError:
        return line


def _samples(path: Path) -> list[Any]:
    whole: dict[str, Any] = {}
    for name, data in sorted(members(path)):
        if not name.startswith("samples/") or not name.endswith(".json"):
            continue
        id, _, inner = name.removeprefix("samples/").removesuffix(".json").partition("/")
        value = json.loads(data)
        if not inner:
            whole[id] = value
            continue
        sample = whole.setdefault(id, {})
        sequence, _, number = inner.partition("/")
        if inner == "sample":
            sample.update(value)
        elif number.isdigit() and sequence == "attachments":
            at = int(number)
            sample.setdefault(sequence, {}).update(
                {str(at + place): item for place, item in enumerate(value)}
            )
        elif number.isdigit():
            sample.setdefault(sequence, []).extend(value)
    listed = [found.name.rpartition("#")[2] for found in list_runs([path])]
    return [resolved(whole[id]) for id in listed]


def resolved(sample: dict[str, Any]) -> dict[str, Any]:
    """Replace the references in an Inspect sample with the attachments."""
    attachments = sample.get("attachments") or {}

    def put(value: Any) -> Any:
        if isinstance(value, str):
            match = REFERENCE.match(value)
            return put(attachments[match[1]]) if match and match[1] in attachments else value
        if isinstance(value, list):
            return [put(item) for item in value]
        return {key: put(item) for key, item in value.items()} if isinstance(value, dict) else value

    return {key: value if key == "attachments" else put(value) for key, value in sample.items()}


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of a zip archive's members, including those packed with zstandard."""
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            start = info.header_offset + 30
            start += sum(int.from_bytes(data[start - n : start - n + 2], "little") for n in (4, 2))
            packed = data[start : start + info.compress_size]
            if info.compress_type == 93:
                yield info.filename, zstandard.ZstdDecompressor().stream_reader(packed).read()
            else:
                yield info.filename, zlib.decompress(packed, -15) if info.compress_type == 8 else packed
