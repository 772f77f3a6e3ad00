"""The parts of messages as Google's API has them: texts, thoughts, calls, answers, media."""

from __future__ import annotations

import re

from gistpoint.sessions.formats.messages import Parts
from gistpoint.sessions.records.model import FileEdit, Json, Result, RunCall, Tokens
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
    """Read the content of a message: a string, a part, or a list of either."""
    parts = Parts()
    for item in content if isinstance(content, list) else [] if content is None else [content]:
        part = as_dict(item)
        if isinstance(part.get("functionCall"), dict):
            parts.calls.append(google_call(as_dict(part["functionCall"])))
        elif isinstance(part.get("functionResponse"), dict):
            parts.results.append(google_result(as_dict(part["functionResponse"])))
        elif part.get("thought") is True:
            parts.thought.append(as_text(part.get("text")))
        else:
            parts.texts.append(_text(item, part))
    return parts


def _text(item: Json, part: dict[str, Json]) -> str:
    for key, kind in (("inlineData", "data"), ("fileData", "file")):
        media = as_dict(part.get(key))
        if media:
            named = {**media, "media_type": media.get("mimeType"), "url": media.get("fileUri"), "type": kind}
            return media_text(named, as_str(media.get("mimeType")).partition("/")[0] or kind)
    for key, inner in (("executableCode", "code"), ("codeExecutionResult", "output")):
        if part.get(key):
            return as_text(as_dict(part[key]).get(inner)) or dumped(part[key])
    return as_text(part["text"]) if "text" in part else as_text(item)


def google_call(call: dict[str, Json]) -> RunCall:
    """Return a call: its name, and its arguments as an object."""
    asked = first(call, "args", "parameters")
    parsed = asked if isinstance(asked, dict) else {}
    return RunCall(as_str(first(call, "id", "callId")), as_str(call.get("name")), compact(parsed), parsed)


def google_result(answer: dict[str, Json]) -> Result:
    """Return an answer to a call; its error stands in the response, an exit code in the shell's output."""
    response = as_dict(answer.get("response"))
    told = [as_text(response[key]) for key in ("output", "error", "content", "result") if response.get(key)]
    text = joined(told) or (dumped(response) if response else "")
    media = [text for text in google_parts(answer.get("parts")).texts if text]
    code = None
    if as_str(answer.get("name")) == "run_shell_command":
        found = _EXIT.search(text[-_EXIT_NEAR_END:])
        code = int(found[1]) if found else None
    return Result(
        as_str(first(answer, "id", "callId")), joined([text, *media]), True if response.get("error") else None, code
    )


def shown_diff(display: Json) -> tuple[str, tuple[FileEdit, ...]]:
    """Return the diff and the edit that a file tool's display holds; empty if it is another tool's."""
    shown = as_dict(display)
    diff, path = as_str(shown.get("fileDiff")), as_str(first(shown, "filePath", "fileName"))
    if not diff:
        return "", ()
    new = shown.get("newContent")
    return diff, (FileEdit(path, None, new if isinstance(new, str) else None),)


def google_tokens(usage: dict[str, Json]) -> Tokens:
    """Return the tokens of a reply; those of its thoughts, which Google counts apart, are part of the completion."""
    said = as_int(first(usage, "candidatesTokenCount", "output"))
    thought = as_int(first(usage, "thoughtsTokenCount", "thoughts"))
    prompt = total([as_int(usage.get(key)) for key in ("promptTokenCount", "input", "toolUsePromptTokenCount", "tool")])
    cached = as_int(first(usage, "cachedContentTokenCount", "cached"))
    return Tokens(prompt, total([said, thought]), cached, thought)
