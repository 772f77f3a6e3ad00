"""What a run in ATIF says that the model of a run has no field for, put back if it is written as ATIF again.

Only what the format allows in its place is taken over, so that what is written is valid whatever was read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gistpoint.sessions.formats.values import as_dict, as_int, as_list, as_str, objects, when
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.model import Json
from gistpoint.sessions.runs.scanning import CutOffError, DamagedError, Scanner, TooLongError, members

_AGENT = frozenset(("name", "version", "model_name"))
_TOTALS = frozenset(("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens", "total_steps"))
_COUNTS = frozenset(("prompt_tokens", "completion_tokens", "cached_tokens"))
_IDS = ("prompt_token_ids", "completion_token_ids")
_PIECE = 1 << 20


def run_members(recorded: dict[str, Json], written: dict[str, Json]) -> dict[str, Json]:
    """Return the members of a run as it is written, with what `recorded` has beside them or instead."""
    agent, final = as_dict(recorded.get("agent")), as_dict(recorded.get("final_metrics"))
    merged = {**written, **_texts(recorded, ("session_id", "trajectory_id", "notes", "continued_trajectory_ref"))}
    for key in ("session_id", "trajectory_id"):
        if not isinstance(recorded.get(key), str):
            merged.pop(key, None)
    if as_str(recorded.get("schema_version")) == "ATIF-v1.8":
        merged["schema_version"] = "ATIF-v1.8"
    merged["agent"] = {**as_dict(written["agent"]), **_texts(agent, _AGENT), **_extra(agent)}
    tools = agent.get("tool_definitions")
    if isinstance(tools, list) and len(objects(tools)) == len(tools):
        as_dict(merged["agent"])["tool_definitions"] = tools
    totals = {**as_dict(written.get("final_metrics")), **_numbers(final, _TOTALS), **_extra(final)}
    if totals:
        merged["final_metrics"] = totals
    merged["extra"] = {**as_dict(recorded.get("extra")), **as_dict(written.get("extra"))}
    return merged


def step_members(recorded: dict[str, Json], written: dict[str, Json]) -> dict[str, Json]:
    """Return a step as it is written, with what `recorded` has beside its members or instead of them."""
    merged = dict(written)
    if when(recorded.get("timestamp")) is not None and isinstance(recorded["timestamp"], str):
        merged["timestamp"] = recorded["timestamp"]
    if isinstance(recorded.get("is_copied_context"), bool):
        merged["is_copied_context"] = recorded["is_copied_context"]
    if _has_media(recorded.get("message")):
        merged["message"] = recorded["message"]
    if written["source"] == "agent":
        effort = recorded.get("reasoning_effort")
        if isinstance(effort, str | float | int) and not isinstance(effort, bool):
            merged["reasoning_effort"] = effort
        metrics = {**_metrics(as_dict(recorded.get("metrics"))), **as_dict(written.get("metrics"))}
        if metrics:
            merged["metrics"] = metrics
    calls = objects(recorded.get("tool_calls"))
    shown = objects(written.get("tool_calls"))
    if shown and len(shown) == len(calls):
        merged["tool_calls"] = [
            {**call, **_extra(one, as_dict(call.get("extra")))} for one, call in zip(calls, shown, strict=True)
        ]
    results = objects(as_dict(recorded.get("observation")).get("results"))
    answers = objects(as_dict(written.get("observation")).get("results"))
    if answers and len(answers) == len(results):
        merged["observation"] = {"results": [_result(*pair) for pair in zip(results, answers, strict=True)]}
    count = as_int(recorded.get("llm_call_count"))
    if count is not None and count >= 0 and (count or not {"metrics", "reasoning_content"} & merged.keys()):
        merged["llm_call_count"] = count
    merged.update(_extra(recorded, as_dict(written.get("extra"))))
    return merged


def embedded(document: RunDocument) -> Iterator[str]:
    """Yield the text of the embedded runs of sub-agents as it stands in the file, piece by piece."""
    blob = document.blobs[0]
    scanner = Scanner(blob, 3 if blob.read(0, 3) == b"\xef\xbb\xbf" else 0)
    at = end = 0
    try:
        for key, _, start, _ in members(scanner, lambda key: key == "subagent_trajectories"):
            if key == "subagent_trajectories":
                scanner.skip()
                at, end = start, scanner.position
    except (CutOffError, DamagedError, TooLongError):
        return
    if blob.read(at, 1) != b"[":
        return
    held = b""
    while at < end:
        piece = held + blob.read(at, min(_PIECE, end - at))
        at += len(piece) - len(held)
        text = piece.decode("utf-8", "ignore") if at < end else piece.decode("utf-8", "replace")
        held = piece[len(text.encode()) :] if at < end else b""
        yield text


def _result(recorded: dict[str, Json], written: dict[str, Json]) -> Json:
    merged = {**written, **_extra(recorded, as_dict(written.get("extra")))}
    if _has_media(recorded.get("content")):
        merged["content"] = recorded["content"]
    references = [_reference(item) for item in objects(recorded.get("subagent_trajectory_ref"))]
    known: list[Json] = [item for item in references if item]
    if known:
        merged["subagent_trajectory_ref"] = known
    return merged


def _reference(recorded: dict[str, Json]) -> dict[str, Json]:
    """Return a reference to a sub-agent's run; before 1.7 the session's id was what it was found by."""
    found = {**_texts(recorded, ("trajectory_id", "trajectory_path", "session_id")), **_extra(recorded)}
    if "session_id" in found and not {"trajectory_id", "trajectory_path"} & found.keys():
        found["trajectory_id"] = found["session_id"]
    return found if {"trajectory_id", "trajectory_path"} & found.keys() else {}


def _has_media(content: Json) -> bool:
    """Whether a content is parts as ATIF has them, of which one at least is no text."""
    parts = as_list(content)
    sound = [
        part.keys() == {"type", "text"} and isinstance(part["text"], str)
        if part.get("type") == "text"
        else part.get("type") in ("image", "audio") and part.keys() == {"type", "source"} and _is_source(part["source"])
        for part in objects(parts)
    ]
    return len(sound) == len(parts) and all(sound) and any(part.get("type") != "text" for part in objects(parts))


def _is_source(source: Json) -> bool:
    members = as_dict(source)
    known = {"media_type", "path", "duration_sec"}
    return known >= members.keys() and all(isinstance(members.get(key), str) for key in ("media_type", "path"))


def _metrics(recorded: dict[str, Json]) -> dict[str, Json]:
    kept = {**_numbers(recorded, _COUNTS), **_extra(recorded)}
    for key, wanted in ((_IDS[0], int), (_IDS[1], int), ("logprobs", (int, float))):
        values = recorded.get(key)
        if isinstance(values, list) and all(isinstance(value, wanted) for value in values):
            kept[key] = values
    return kept


def _texts(recorded: dict[str, Json], keys: Collection[str]) -> dict[str, Json]:
    return {key: recorded[key] for key in keys if isinstance(recorded.get(key), str)}


def _numbers(recorded: dict[str, Json], keys: Collection[str]) -> dict[str, Json]:
    return {key: recorded[key] for key in keys if type(recorded.get(key)) is int}


def _extra(recorded: dict[str, Json], ours: dict[str, Json] | None = None) -> dict[str, Json]:
    """Return the `extra` of both, as a member; nothing if neither has any."""
    merged = {**as_dict(recorded.get("extra")), **(ours or {})}
    return {"extra": merged} if merged else {}
