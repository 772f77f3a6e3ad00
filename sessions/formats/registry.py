"""Determines the format of a file from its content.

A module in this folder or in the folder of a family declares a format as `FORMAT`, and an installed package
declares formats through the entry-point group `gistpoint.formats`; there is no central list.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import cast

import gistpoint.sessions.formats as folder
from gistpoint.core.plugins import load_all
from gistpoint.sessions.formats._installed import InstalledFormat, fault_of_format, installed_formats
from gistpoint.sessions.records.archives import NoRunError, RunFileError
from gistpoint.sessions.records.format import Format
from gistpoint.sessions.records.model import Json
from gistpoint.sessions.records.probe import FileIdentity, FileProbe
from gistpoint.sessions.records.values import as_dict, as_list, as_str, objects

ENTRY_POINTS = "gistpoint.formats"


CERTAIN = 0.9
"""If a built-in format has this confidence or a higher one, installed formats are not tried."""


@cache
def formats() -> tuple[Format, ...]:
    """Return every known format, built-in ones first."""
    return (*_built_in(), *_installed())


@cache
def _built_in() -> tuple[Format, ...]:
    in_modules = map(_in_module, _modules().values())
    return tuple(format for format in in_modules if format is not None)


@cache
def _modules() -> dict[str, str]:
    """Return the modules that may declare a format, as a sorted mapping from short to full names.

    Some declare none. A module whose name begins with `_` never does: a reader imports it when it reads a
    run.
    """
    found: dict[str, str] = {}
    for module in pkgutil.walk_packages(folder.__path__, f"{folder.__name__}."):
        name = module.name.rpartition(".")[2]
        if not module.ispkg and not name.startswith("_"):
            found[name] = module.name
    return dict(sorted(found.items()))


def _in_module(module: str) -> Format | None:
    return cast("Format | None", getattr(importlib.import_module(module), "FORMAT", None))


@cache
def _installed() -> tuple[Format, ...]:
    return tuple(installed_formats(ENTRY_POINTS))


_forced: list[Format] = []


def read_as(name: str) -> None:
    """From now on, read every file as the format with this name; an empty name ends this.

    Raises `RunFileError` if there is no such format.
    """
    _forced.clear()
    if name:
        _forced.extend(format for format in formats() if format.name == name)
        if not _forced:
            raise RunFileError(f"There is no format {name!r}.", hint=_known())


def forced_format() -> str:
    """Return the name of the format that all files are read as; empty if formats are recognised."""
    return _forced[0].name if _forced else ""


def _known() -> str:
    return f"Known: {', '.join(format.name for format in formats())}."


def recognise(probe: FileProbe) -> Format:
    """Return the format with the highest confidence, or that of `read_as`.

    Raises `NoRunError` if the file is in no known format.
    """
    if _forced:
        return _forced[0]
    identity = probe.identity
    known = _recognised.get(identity) if identity is not None else None
    if known is None:
        known = _recognised_by_content(probe), probe.is_wide
        if identity is not None:
            if len(_recognised) >= _MOST_RECOGNISED:
                _recognised.clear()
            _recognised[identity] = known
    elif known[1]:
        probe.widen()
    return known[0]


_recognised: dict[FileIdentity, tuple[Format, bool]] = {}
"""The format of each file, by the file's identity, and whether a longer head was needed.

They are kept because a list opens its files again.
"""
_MOST_RECOGNISED = 4096


def _recognised_by_content(probe: FileProbe) -> Format:
    # Formats that were certain of earlier files are tried first: the files in a folder usually have one
    # format.
    for format in _guessed(probe):
        if _confidence(format, probe) >= 1:
            _certain_before[format.name] = format
            return format
    # Built-in formats are tried first, then again with a longer head, and then all formats if none was
    # certain.
    sureness: dict[Format, float] = {}
    for known, certain in ((_built_in, CERTAIN), (_built_in, CERTAIN), (formats, 0.0)):
        sureness |= {format: _confidence(format, probe) for format in known() if format not in sureness}
        chosen = max(known(), key=lambda format: sureness[format])
        sure = sureness[chosen]
        if sure > 0 and sure >= certain:
            if sure < 1:
                return _unless_foreign(probe, chosen)
            if known is _built_in:  # those of plug-ins are only tried after these
                _certain_before[chosen.name] = chosen
            return chosen
        if probe.widen():
            sureness.clear()
    kind = foreign_kind(probe)
    if kind is not None:
        raise _no_reader(probe, kind)
    from gistpoint.sessions.formats._appearance import looks_like

    shape, hint = looks_like(probe)
    hints = [hint or f"{_known()} With --as FORMAT it is read as one of them."]
    hints += map(str, load_all(ENTRY_POINTS, fault_of_format)[1])
    where = probe.name or "The file"
    raise NoRunError(f"{where} is in no known format: it looks like {shape}.", hint=" ".join(hints))


_certain_before: dict[str, Format] = {}
"""The built-in formats that were certain of an earlier file."""


def _guessed(probe: FileProbe) -> Iterator[Format]:
    """Yield the formats to try first."""
    yield from tuple(_certain_before.values())
    if not _built_in.cache_info().currsize:  # if all modules are imported, trying all is faster
        yield from _named_in(probe)


def _named_in(probe: FileProbe) -> Iterator[Format]:
    """Yield the formats whose module's name begins a string near the start or the end of the file.

    Only these modules are imported: importing all of them takes as long as drawing a screen.
    """
    text = f"{probe.text}{probe.tail.decode('ascii', 'replace')}".replace("-", "_").lower()
    named = (module for name, module in _modules().items() if f'"{_WRITTEN.get(name, name)}' in text)
    return filter(None, map(_in_module, named))


_WRITTEN = {"journal": "gistpoint"}
"""The string to look for instead of the module's name, by that name."""


def _confidence(format: Format, probe: FileProbe) -> float:
    """Return the confidence of a format; 0 if the file is nested too deep or another package's code fails."""
    try:
        return float(format.sniff(probe))
    except RecursionError:  # nested deeper than any honest file
        return 0.0
    except Exception:
        if not isinstance(format, InstalledFormat):
            raise
        return 0.0  # another package's code; the other formats still read the file


def _unless_foreign(probe: FileProbe, format: Format) -> Format:
    """Return `format`, or the installed one that reads a file for which there is no built-in reader.

    Raises `NoRunError` if there is neither. A file with no reader is refused, with its format's name, because
    formats resemble each other and the wrong reader would show an empty run (decision 48).
    """
    kind = foreign_kind(probe)
    # A format of another package may read files for which there is no built-in reader.
    if kind is None or format in _installed():
        return format
    ours = [(_confidence(other, probe), number) for number, other in enumerate(_installed())]
    sure, number = max(ours, default=(0.0, 0))
    if sure > 0:
        return _installed()[number]
    raise _no_reader(probe, kind)


def _no_reader(probe: FileProbe, kind: Foreign) -> NoRunError:
    where = probe.name or "The file"
    return NoRunError(f"{where} seems to be {kind.name}, for which gistpoint has no reader.", hint=kind.hint)


_CONVERT = 'Convert it to ATIF, or to chat messages: {"messages": [{"role": …, "content": …}, …]}.'
_LONGEST_HEAD = 4096


@dataclass(frozen=True, slots=True)
class Foreign:
    """A format without a reader: a name for its files, and a hint for the user."""

    name: str
    hint: str
    is_one: Callable[[FileProbe], bool]


def foreign_kind(probe: FileProbe) -> Foreign | None:
    """Return the format without a reader that a file seems to have; None if there is none."""
    return next((kind for kind in _KINDS if kind.is_one(probe)), None)


def _records(probe: FileProbe) -> list[dict[str, Json]]:
    """Return the first records: lines, elements of the top array, or the top object alone."""
    return objects(probe.array)[:20] or probe.lines[:20] or ([probe.object] if probe.object else [])


def _any(test: Callable[[dict[str, Json]], bool]) -> Callable[[FileProbe], bool]:
    return lambda probe: any(test(record) for record in _records(probe))


def _has(*keys: str) -> Callable[[FileProbe], bool]:
    return _any(lambda record: set(keys) <= record.keys())


def _begins_line(beginning: str) -> Callable[[FileProbe], bool]:
    """Return a test of whether one of the first lines of a file begins with `beginning`."""
    return lambda probe: f"\n{beginning}" in f"\n{probe.text[:_LONGEST_HEAD]}"


def _has_type(record: dict[str, Json], *names: str) -> bool:
    return as_str(record.get("type")) in names


def _first(record: dict[str, Json], key: str) -> dict[str, Json]:
    return as_dict((as_list(record.get(key)) or [None])[0])


def _has_parts(record: dict[str, Json]) -> bool:
    """Return whether a message has its text in `parts`, like those of Google's and Vercel's programs."""
    messages = [record, as_dict(record.get("message")), *objects(record.get("messages"))[:3]]
    return any(isinstance(message.get("parts"), list) and "content" not in message for message in messages)


def _is_langchain(record: dict[str, Json]) -> bool:
    messages = [
        record,
        *objects(record.get("messages"))[:3],
        *objects(as_dict(record.get("values")).get("messages"))[:3],
    ]
    return any(
        {"lc", "kwargs"} <= message.keys()
        or (
            _has_type(message, "human", "ai", "system", "tool")
            and ("data" in message or "additional_kwargs" in message)
        )
        for message in messages
    )


def _is_vercel(record: dict[str, Json]) -> bool:
    step = _first(record, "steps")
    if {"toolCalls", "toolResults"} & step.keys() or ("finishReason" in step and "text" in step):
        return True
    contents = [
        part for message in objects(record.get("messages"))[:6] for part in objects(message.get("content"))
    ]
    return any(_has_type(part, "tool-call", "tool-result") for part in contents)


def _is_database(*words: bytes) -> Callable[[FileProbe], bool]:
    """Return a test of whether a file is an SQLite database whose head contains all of these words."""
    return lambda probe: (
        probe.head.startswith(b"SQLite format 3\0") and all(word in probe.head for word in words)
    )


def _is_recorded_calls(probe: FileProbe, method: str = "") -> bool:
    """Return whether a file contains pairs of a method and its input or output, on lines or in an array."""
    first = as_str((probe.array or [None])[0])
    return "." in first and first.startswith(method)


def _is_terminal(probe: FileProbe) -> bool:
    return probe.is_lines and "version" in probe.object and bool({"width", "term"} & probe.object.keys())


def _is_opencodes(probe: FileProbe, *beginnings: str) -> bool:
    return (
        as_str(probe.object.get("id")).startswith(beginnings)
        and not {"info", "messages"} & probe.object.keys()
    )


_KINDS = (
    Foreign(
        "a part of a message of opencode",
        "Open its session in the folder session of the storage, or the folder.",
        lambda probe: _is_opencodes(probe, "prt_", "msg_") and "sessionID" in probe.object,
    ),
    Foreign(
        "a session of opencode without its messages",
        "Keep it in the storage, with the folders message and part, or export it: opencode export ID.",
        lambda probe: _is_opencodes(probe, "ses_"),
    ),
    Foreign(
        "a Markdown export of opencode",
        "Export it as JSON: opencode export ID.",
        _begins_line("- Session ID: ses_"),
    ),
    Foreign("messages in parts, like those of the Vercel AI SDK or Gemini's API", _CONVERT, _any(_has_parts)),
    Foreign("a result of the Vercel AI SDK", _CONVERT, _any(_is_vercel)),
    Foreign(
        "Cline's description of a session",
        "Open the messages next to it: SESSION.messages.json.",
        lambda probe: {"session_id", "provider", "status"} <= probe.object.keys(),
    ),
    Foreign(
        "predictions for SWE-bench", "They contain patches but no runs.", _has("instance_id", "model_patch")
    ),
    Foreign(
        "an index of results of tau2-bench",
        "Open the folder simulations next to it, or the folder of both.",
        lambda probe: (
            {"tasks", "info", "timestamp"} <= probe.object.keys() and "simulations" not in probe.object
        ),
    ),
    Foreign(
        "the summary of a job of Harbor",
        "List its folder: each trial in it is a run.",
        _has("n_total_trials", "stats"),
    ),
    Foreign("messages of LangChain", _CONVERT, _any(_is_langchain)),
    Foreign(
        "a cassette of VCR in YAML",
        "Convert it to JSON (yq -o json FILE): gistpoint can read that.",
        _begins_line("interactions:\n"),
    ),
    Foreign(
        "a recording of a client's calls to Anthropic's managed agents, made for tests: a method and its"
        " data",
        "It is not an export. Export the trace from the service to which it was sent: LangSmith's runs as"
        " JSON are read.",
        lambda probe: _is_recorded_calls(probe, "client.beta.sessions."),
    ),
    Foreign(
        "a log of calls to an API",
        "Save the messages of the last request, and its reply.",
        _is_recorded_calls,
    ),
    Foreign(
        "a database of Cursor without a chat",
        "The chats of all workspaces are in globalStorage/state.vscdb. Transcripts of its agent "
        "(agent-transcripts, .jsonl) and chats exported as Markdown are read too.",
        _is_database(b"cursorDiskKV"),
    ),
    Foreign(
        "a database of VS Code's or Cursor's state",
        "Export the chat: VS Code does so as JSON (Chat: Export Chat), Cursor as Markdown.",
        _is_database(b"ItemTable"),
    ),
    Foreign(
        "a database of opencode without a session, or of another version",
        "Export the session: opencode export ID.",
        _is_database(b"session", b"message", b"part", b"CREATE TABLE"),
    ),
    Foreign(
        "what OpenClaw traced of a session's runs",
        "Open the session next to it, SESSION-ID.jsonl.",
        _any(lambda record: record.get("traceSchema") == "openclaw-trajectory"),
    ),
    Foreign("a session of Grok's command line", _CONVERT, _has("model_fingerprint", "model_id")),
    Foreign("a session of Antigravity", _CONVERT, _has("step_index", "source", "status", "created_at")),
    Foreign("a session of Goose", _CONVERT, _has("working_dir", "message_count")),
    Foreign(
        "Continue's list of its sessions",
        "Open a session next to it, SESSION-ID.json.",
        _has("sessionId", "dateCreated", "workspaceDirectory"),
    ),
    Foreign("conversations that ChatGPT exported", _CONVERT, _has("mapping", "current_node")),
    Foreign("the memory of an agent of smolagents", _CONVERT, _has("step_number", "model_output")),
    Foreign(
        "the saved state of an agent or a team of AutoGen",
        _CONVERT,
        _any(lambda record: _has_type(record, "TeamState", "AgentState", "AssistantAgentState")),
    ),
    Foreign(
        "a session of Factory's droid", _CONVERT, _any(lambda record: _has_type(record, "session_start"))
    ),
    Foreign(
        "a trace of MLflow",
        "Export it as OTLP, which is read, or to chat messages.",
        _any(lambda record: "spans" in as_dict(record.get("data")) and "info" in record),
    ),
    Foreign("a terminal recording of asciinema", "It contains terminal output, not steps.", _is_terminal),
)
