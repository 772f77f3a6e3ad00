"""The parts of messages in Google's API: text, thoughts, calls, answers and media."""

from __future__ import annotations

import re

from gistpoint.sessions.formats.shared.message_parts import Parts
from gistpoint.sessions.records.building import error_if
from gistpoint.sessions.records.model import FileEdit, Json, Result, RunCall, Tokens
from gistpoint.sessions.records.record import Record
from gistpoint.sessions.records.usage import counted_within
from gistpoint.sessions.records.values import (
    as_dict,
    as_int,
    as_str,
    as_text,
    compact,
    dumped,
    first,
    joined,
    media_text,
    total,
)

_EXIT = re.compile(r"(?:^|\\n)Exit Code: (-?\d{1,9})(?=\\n|\s|$)", re.M)
_EXIT_NEAR_END = 4000


def google_parts(content: Json) -> Parts:
    """Return the parts of a message's content: a string, a part, or a list of either."""
    parts = Parts()
    for item in _items(content):
        part = Record(item)
        if isinstance(part.get("functionCall"), dict):
            parts.calls.append(google_call(part.inner("functionCall").members))
        elif isinstance(part.get("functionResponse"), dict):
            parts.results.append(google_result(part.inner("functionResponse").members))
        elif part.get("thought") is True:
            parts.thought.append(part.text("text"))
        else:
            parts.texts.append(_text(item, part))
    return parts


def _items(content: Json) -> list[Json]:
    if isinstance(content, list):
        return content
    return [] if content is None else [content]


def _text(item: Json, part: Record) -> str:
    for key, kind in (("inlineData", "data"), ("fileData", "file")):
        media = part.inner(key)
        if media:
            kind = media.word("mimeType").partition("/")[0] or kind
            return media_text(
                {**media.members, "media_type": media.get("mimeType"), "url": media.get("fileUri")}, kind
            )
    for key, inner in (("executableCode", "code"), ("codeExecutionResult", "output")):
        if part.get(key):
            return part.text(key, inner) or dumped(part.get(key))
    return part.text("text") if part.has("text") else as_text(item)


def google_call(call: dict[str, Json]) -> RunCall:
    """Return a call: its name, and its arguments as an object."""
    asked = first(call, "args", "parameters")
    parsed = asked if isinstance(asked, dict) else {}
    return RunCall(as_str(first(call, "id", "callId")), as_str(call.get("name")), compact(parsed), parsed)


def google_result(answer: dict[str, Json]) -> Result:
    """Return the answer to a call; an error is in the response, an exit code in the shell's output."""
    record, response = Record(answer), Record(answer.get("response"))
    shown = response.kept("output", "error", "content", "result").values()
    text = joined(map(as_text, shown))
    if response and not text:
        text = dumped(response.members)
    media = google_parts(record.get("parts")).texts
    code = _exit_code(text) if record.word("name") == "run_shell_command" else None
    failed = error_if(response.get("error"))
    return Result(record.first_word("id", "callId"), joined([text, *media]), failed, code)


def _exit_code(output: str) -> int | None:
    # Gemini's shell tool has no member for the exit code: the code is below the output.
    found = _EXIT.search(output[-_EXIT_NEAR_END:])
    return int(found[1]) if found else None


def shown_diff(display: Json) -> tuple[str, tuple[FileEdit, ...]]:
    """Return the diff and the edit in a file tool's output; both are empty for any other tool."""
    shown = as_dict(display)
    diff, path = as_str(shown.get("fileDiff")), as_str(first(shown, "filePath", "fileName"))
    if not diff:
        return "", ()
    new = shown.get("newContent")
    return diff, (FileEdit(path, None, new if isinstance(new, str) else None),)


def google_tokens(usage: dict[str, Json], *, thoughts_within: bool = False) -> Tokens:
    """Return the tokens of a reply; its completion tokens include the tokens of thoughts.

    `thoughts_within` says whether the program counts thoughts among the candidates' tokens; a recorded sum of
    all tokens takes precedence.
    """
    written = as_int(first(usage, "candidatesTokenCount", "output"))
    thought = as_int(first(usage, "thoughtsTokenCount", "thoughts"))
    prompt = total(
        [as_int(usage.get(key)) for key in ("promptTokenCount", "input", "toolUsePromptTokenCount", "tool")]
    )
    cached = as_int(first(usage, "cachedContentTokenCount", "cached"))
    whole = as_int(first(usage, "totalTokenCount", "total"))
    apart = total([written, thought])
    is_within = whole != total([prompt, apart]) if thoughts_within else whole == total([prompt, written])
    return counted_within(prompt, written if is_within else apart, read=cached, reasoning=thought)
