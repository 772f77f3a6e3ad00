"""The records of Codex CLI: their types, with or without an envelope, and the ids that they refer to."""

from __future__ import annotations

from collections.abc import Iterator

from gistpoint.sessions.records.model import Json, Tokens
from gistpoint.sessions.records.record import Record
from gistpoint.sessions.records.usage import counted_within
from gistpoint.sessions.records.values import as_dict, as_str, as_text, first

ENVELOPES = frozenset(
    (
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "inter_agent_communication_metadata",
    )
)
_ITEMS = frozenset(("message", "reasoning", "function_call", "function_call_output", "local_shell_call"))
"""The items that were recorded without an envelope until September 2025."""
_OPENING = ("instructions", "git", "cwd")
REPLIES = frozenset(("agent_message", "agent_reasoning", "agent_reasoning_raw_content"))
ENDS = frozenset(("task_complete", "turn_complete", "turn_aborted", "error", "stream_error"))


def unwrapped(value: Json) -> tuple[str, str, dict[str, Json]]:
    """Return the envelope, the type and the payload of a record; the envelope of unknown records is empty."""
    record = as_dict(value)
    kind = as_str(record.get("type"))
    # Envelopes of later versions are recognised by their members.
    if kind in ENVELOPES or ("payload" in record and "timestamp" in record):
        payload = as_dict(record.get("payload"))
        return kind, as_str(payload.get("type")) or kind, payload
    if "record_type" in record:
        return "state", "state", record
    if kind in _ITEMS:
        return "response_item", kind, record
    # The first record of the earliest versions has neither an envelope nor a type.
    opens = "id" in record and "timestamp" in record
    if opens and not record.keys().isdisjoint(_OPENING):
        return "session_meta", "session_meta", record
    return "", kind, record


def call_id(payload: dict[str, Json]) -> str:
    """Return the id of the call that a record makes, answers or reports; empty if there is none."""
    return as_str(first(payload, "call_id", "callId"))


def is_call(kind: str) -> bool:
    """Return whether an item is a call to a tool."""
    return kind.endswith("_call")


def is_output(kind: str) -> bool:
    """Return whether an item is the result of a call."""
    return kind.endswith(("_output", "_result"))


def reports(kind: str) -> bool:
    """Return whether an event reports a call or its end."""
    return kind.endswith(("_end", "_tool_call", "_call_request", "_call_response", "_begin"))


def item_type(item: dict[str, Json]) -> str:
    """Return the type of an item in a paginated history, capitalised as only some versions write it."""
    kind = as_str(item.get("type"))
    return kind[:1].upper() + kind[1:]


def is_of_model(envelope: str, kind: str, payload: dict[str, Json]) -> bool:
    """Return whether a record contains the model's text or calls."""
    if envelope == "response_item":
        return (
            kind == "reasoning" or is_call(kind) or (kind == "message" and payload.get("role") == "assistant")
        )
    if kind == "item_completed":
        return item_type(as_dict(payload.get("item"))) != "UserMessage"
    return envelope == "event_msg" and (kind in REPLIES or reports(kind))


def links_of(payload: dict[str, Json]) -> Iterator[str]:
    """Yield the end of the file name of each agent that an event reports as started."""
    for key in ("new_thread_id", "agent_thread_id"):
        if payload.get(key):
            yield f"{as_str(payload[key])}.jsonl"


def tokens_of(usage: dict[str, Json]) -> Tokens:
    """Return the tokens of a reply or of a session; those of the input include tokens from a cache."""
    counts = Record(usage)
    return counted_within(
        counts.whole("input_tokens"),
        counts.whole("output_tokens"),
        read=counts.whole("cached_input_tokens"),
        written=counts.whole("cache_write_input_tokens"),
        reasoning=counts.whole("reasoning_output_tokens"),
        whole=counts.whole("total_tokens"),
    )


def text_of(item: dict[str, Json]) -> str:
    """Return the text of an item in a paginated history."""
    return as_text(first(item, "content", "text", "summary_text", "raw_content", "message"))
