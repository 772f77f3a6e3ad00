"""The strings of a run in full, for exports, even if they were too long to be decoded when it was read."""

from __future__ import annotations

from gistpoint.sessions.records.model import Json
from gistpoint.sessions.runs.document import RunDocument


def whole_text(document: RunDocument, text: str) -> str:
    """Return the whole text of a string of a run."""
    return "".join(document.full_text(text))


def whole_value(document: RunDocument, value: Json) -> Json:
    """Return a value with all its strings in full."""
    if isinstance(value, dict):
        return {key: whole_value(document, item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_value(document, item) for item in value]
    return whole_text(document, value) if isinstance(value, str) else value
