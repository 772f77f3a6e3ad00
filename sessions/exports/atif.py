"""Writes any run as ATIF 1.7.

Data for which ATIF has no field are written to `extra.gistpoint`. When the file is read again, its steps have
other byte ranges, and its header differs where it describes the file: the format, the members that no step
shows, and warnings. A run without an id then has the id that ATIF requires, and a run without a task is named
after the user's request.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime

from gistpoint.sessions.exports.whole_texts import whole_text, whole_value
from gistpoint.sessions.records.loading import decoded
from gistpoint.sessions.records.model import Actor, Json, Noted, Result, Run, RunCall, Step, StepKind
from gistpoint.sessions.records.scanning import CutOffError, DamagedError, Scanner, TooLongError, members
from gistpoint.sessions.records.values import as_dict, as_int, as_list, as_str, objects, parsed_object, when
from gistpoint.sessions.runs.document import RunDocument

ATIF = "atif"
SCHEMA = "ATIF-v1.7"
_AGENT_ONLY = frozenset({Actor.AGENT, Actor.PERSON})


def atif_text(document: RunDocument) -> Iterator[str]:
    """Yield the JSON text of a run as ATIF, one step at a time, so that a large run is never in memory.

    A run without steps gets a step that is marked as empty, because ATIF requires one.
    """
    document.build()
    run = document.header
    head = {**_head(run), **_foot(run)}
    if run.format == ATIF:
        head = run_members(dict(document.members), head)
    yield json.dumps(head, indent=2)[:-2] + ',\n  "steps": [\n'
    empty: dict[str, Json] = {
        "step_id": 1,
        "source": "system",
        "message": "",
        "extra": {"gistpoint": {"empty": True}},
    }
    count = document.step_count
    for index in range(max(1, count)):
        shown = _step(document, document.step(index)) if count else empty
        body = json.dumps(shown, indent=2).replace("\n", "\n    ")
        yield f"    {body}{',' if index + 1 < count else ''}\n"
    yield "  ]"
    if run.format == ATIF and (pieces := list(embedded(document))):
        yield ',\n  "subagent_trajectories": '
        yield from pieces
    yield "\n}\n"


def atif_step(document: RunDocument, index: int) -> dict[str, Json]:
    """Return one step of a run as ATIF. Raises IndexError if there is no such step."""
    return _step(document, document.step(index))


def _head(run: Run) -> dict[str, Json]:
    agent: dict[str, Json] = {
        "name": "human" if run.actor is Actor.PERSON else run.agent.split(" ")[0] or run.format,
        "version": run.agent.partition(" ")[2] or run.format_version or "unknown",
    }
    if run.model:
        agent["model_name"] = run.model
    session = run.id or run.task or "run"
    return {"schema_version": SCHEMA, "session_id": session, "trajectory_id": session, "agent": agent}


def _foot(run: Run) -> dict[str, Json]:
    final = _valid_numbers(
        total_prompt_tokens=run.tokens.prompt,
        total_completion_tokens=run.tokens.completion,
        total_cached_tokens=run.tokens.cached,
        total_cost_usd=run.cost,
    )
    known: dict[str, Json] = {
        "task": run.task,
        "exit_status": run.exit_status,
        "submission": run.submission,
        "verdict": "" if "verdict" in run.derived else run.verdict,
        "suspicious": [*run.suspicious],
        "confirmation": run.confirmation,
        "score": run.score,
        "duration_s": run.duration_s,
    }
    extra: dict[str, Json] = {key: value for key, value in known.items() if value not in ("", None, [])}
    extra["gistpoint"] = _facts_without_field(run)
    if not final:
        return {"extra": extra}
    return {"final_metrics": final, "extra": extra}


def _facts_without_field(run: Run) -> dict[str, Json]:
    """Return the facts of the header for which ATIF has no field."""
    own: dict[str, Json] = {
        "format": run.format,
        "format_version": run.format_version,
        "id": run.id,
        "agent": run.agent,
        "actor": run.actor.value,
        "prompt": run.prompt,
        "also": _noted(None, run.also) if run.format != ATIF else [],
        "warnings": [*run.warnings],
        "derived": [*sorted(run.derived)],
    }
    if run.verdict and "verdict" in run.derived:
        own["derived_verdict"] = run.verdict  # other readers treat `verdict` as recorded
    others: dict[str, Json] = {
        "started": run.started,
        "submissions": run.submissions,
        "reasoning_tokens": run.tokens.reasoning,
        "links": [*run.links],
        # ATIF's own field for notes is written as it was recorded.
        "extra": {name: fact for name, fact in run.extra.items() if (run.format, name) != (ATIF, "notes")},
    }
    return own | {name: value for name, value in others.items() if value not in (None, [], {})}


def _valid_numbers(**numbers: float | None) -> dict[str, Json]:
    """Return the numbers that are known and not negative, by name."""
    known: dict[str, Json] = {}
    for name, value in numbers.items():
        if value is not None and value >= 0:
            known[name] = value
    return known


def _step(document: RunDocument, step: Step) -> dict[str, Json]:
    agent = step.actor in _AGENT_ONLY or bool(step.calls)
    source = "system"
    if agent:
        source = "agent"
    elif step.actor is Actor.USER:
        source = "user"
    shown: dict[str, Json] = {
        "step_id": step.index + 1,
        "source": source,
        "message": whole_text(document, step.text),
    }
    if step.started is not None and 0 <= step.started < 4e9:
        stamp = datetime.fromtimestamp(step.started, UTC).replace(tzinfo=None).isoformat()
        shown["timestamp"] = stamp if step.naive else f"{stamp}Z"
    if agent:
        shown.update(_agent_part(document, step))
    ids = _call_ids(step)
    if step.results:
        known = set(ids)
        results: list[Json] = [_result(document, result, known, agent=agent) for result in step.results]
        shown["observation"] = {"results": results}
    shown["extra"] = {"gistpoint": _extra_members(document, step, agent=agent)}
    if document.header.format == ATIF and step.kind is not StepKind.DAMAGED:
        return step_members(as_dict(decoded(document.raw(step.index))), shown)
    return shown


def _agent_part(document: RunDocument, step: Step) -> dict[str, Json]:
    part: dict[str, Json] = {}
    if step.model:
        part["model_name"] = step.model
    if step.thought:
        part["reasoning_content"] = whole_text(document, step.thought)
    if step.calls:
        part["tool_calls"] = [
            _call(document, call, id) for call, id in zip(step.calls, _call_ids(step), strict=True)
        ]
    metrics = _valid_numbers(
        prompt_tokens=step.tokens.prompt,
        completion_tokens=step.tokens.completion,
        cached_tokens=step.tokens.cached,
        cost_usd=step.cost,
    )
    if metrics:
        part["metrics"] = metrics
    return part


def _call_ids(step: Step) -> list[str]:
    """Return a unique id for each call, as ATIF requires."""
    ids: list[str] = []
    for number, call in enumerate(step.calls):
        id = call.id or f"call-{step.index + 1}-{number + 1}"
        while id in ids:  # checked again, because a recorded id may end like a generated one
            id = f"{id}~{number + 1}"
        ids.append(id)
    return ids


def _call(document: RunDocument, call: RunCall, id: str) -> Json:
    written = whole_text(document, call.arguments)
    # Arguments that were too long to be parsed when the run was read are still written as an object.
    arguments = parsed_object(written) if call.parsed is None else whole_value(document, dict(call.parsed))
    extra: dict[str, Json] = {"arguments": written, "id": call.id, "parsed": call.parsed is not None}
    return {
        "tool_call_id": id,
        "function_name": call.tool or "unknown",
        "arguments": arguments or {},
        "extra": {"gistpoint": {**extra, "tool": call.tool}},
    }


def _result(document: RunDocument, result: Result, known: set[str], *, agent: bool) -> Json:
    extra: dict[str, Json] = {"gistpoint": {"call_id": result.call_id}}
    if result.is_error is not None:
        extra["is_error"] = result.is_error
    if result.returncode is not None:
        extra["returncode"] = result.returncode
    if result.duration_s is not None:
        extra["duration_ms"] = result.duration_s * 1000
    shown: dict[str, Json] = {"content": whole_text(document, result.text), "extra": extra}
    if agent and result.call_id in known:
        shown["source_call_id"] = result.call_id
    return shown


def _extra_members(document: RunDocument, step: Step, *, agent: bool) -> dict[str, Json]:
    kept: dict[str, Json] = {
        "actor": step.actor.value,
        "kind": step.kind.value,
        "label": step.label,
        "id": step.id,
        "started": step.started,
        "ended": step.ended,
        "cost": step.cost,
        "model": step.model,
        "tokens": {
            "prompt": step.tokens.prompt,
            "completion": step.tokens.completion,
            "cached": step.tokens.cached,
            "reasoning": step.tokens.reasoning,
        },
        "state": dict(step.state),
        "flags": [*sorted(step.flags - {"long"})],
        "derived": [*sorted(step.derived)],
        "links": [*step.links],
    }
    kept |= {name: at for name, at in (("asked", step.asked), ("replied", step.replied)) if at is not None}
    if not agent and step.thought:
        kept["thought"] = whole_text(document, step.thought)
    if step.diff is not None:
        kept["diff"] = whole_text(document, step.diff)
    if step.diff_so_far is not None:
        kept["diff_so_far"] = whole_text(document, step.diff_so_far)
    if step.also and document.header.format != ATIF:
        kept["also"] = _noted(document, step.also)
    if step.edits:
        edits: list[Json] = [{"path": edit.path, "old": edit.old, "new": edit.new} for edit in step.edits]
        kept["edits"] = whole_value(document, edits)
    return kept


def _noted(document: RunDocument | None, also: Iterable[Noted]) -> Json:
    return [
        [noted.path, noted.text if document is None else whole_text(document, noted.text)] for noted in also
    ]


_AGENT = ("name", "version", "model_name")
_TOTALS = ("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens", "total_steps")
_COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens")
_IDS = ("prompt_token_ids", "completion_token_ids")
_PIECE = 1 << 20


def run_members(recorded: dict[str, Json], written: dict[str, Json]) -> dict[str, Json]:
    """Return the members of a run to write: `written`, with recorded members added or replacing them.

    The ids of the session and of the trajectory are left out unless they are recorded.
    """
    agent, final = as_dict(recorded.get("agent")), as_dict(recorded.get("final_metrics"))
    merged = {
        **written,
        **_texts(recorded, ("session_id", "trajectory_id", "notes", "continued_trajectory_ref")),
    }
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
    """Return the members of a step to write: `written`, with recorded members added or replacing them."""
    merged = dict(written)
    timestamp = recorded.get("timestamp")
    if isinstance(timestamp, str) and when(timestamp) is not None:
        merged["timestamp"] = timestamp
    if isinstance(recorded.get("is_copied_context"), bool):
        merged["is_copied_context"] = recorded["is_copied_context"]
    if _has_media(recorded.get("message")):
        merged["message"] = recorded["message"]
    if written["source"] == "agent":
        merged |= _agent_members(recorded, written)
    calls = objects(recorded.get("tool_calls"))
    shown = objects(written.get("tool_calls"))
    if shown and len(shown) == len(calls):
        merged["tool_calls"] = [
            {**call, **_extra(one, as_dict(call.get("extra")))}
            for one, call in zip(calls, shown, strict=True)
        ]
    results = objects(as_dict(recorded.get("observation")).get("results"))
    answers = objects(as_dict(written.get("observation")).get("results"))
    if answers and len(answers) == len(results):
        merged["observation"] = {
            "results": [_result_members(*pair) for pair in zip(results, answers, strict=True)]
        }
    count = as_int(recorded.get("llm_call_count"))
    if count is not None and _may_have(count, merged):
        merged["llm_call_count"] = count
    merged.update(_extra(recorded, as_dict(written.get("extra"))))
    return merged


def _agent_members(recorded: dict[str, Json], written: dict[str, Json]) -> dict[str, Json]:
    """Return the `reasoning_effort` and the `metrics` of an agent's step, if they are known."""
    found: dict[str, Json] = {}
    effort = recorded.get("reasoning_effort")
    if isinstance(effort, str | float | int) and not isinstance(effort, bool):
        found["reasoning_effort"] = effort
    metrics = {**_metrics(as_dict(recorded.get("metrics"))), **as_dict(written.get("metrics"))}
    if metrics:
        found["metrics"] = metrics
    return found


def _may_have(count: int, merged: dict[str, Json]) -> bool:
    """Return whether a step may have this number of model calls; with metrics or a thought, at least one."""
    has_call = not merged.keys().isdisjoint(("metrics", "reasoning_content"))
    return count >= has_call


def embedded(document: RunDocument) -> Iterator[str]:
    """Yield, in pieces, the JSON of the embedded runs of sub-agents; nothing if it is missing or damaged."""
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
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while at < end:
        piece = blob.read(at, min(_PIECE, end - at))
        at += len(piece)
        yield decoder.decode(piece, final=not piece or at >= end)
        if not piece:  # the file has become shorter
            return


def _result_members(recorded: dict[str, Json], written: dict[str, Json]) -> Json:
    merged = {**written, **_extra(recorded, as_dict(written.get("extra")))}
    if _has_media(recorded.get("content")):
        merged["content"] = recorded["content"]
    references = [_reference(item) for item in objects(recorded.get("subagent_trajectory_ref"))]
    known: list[Json] = [item for item in references if item]
    if known:
        merged["subagent_trajectory_ref"] = known
    return merged


def _reference(recorded: dict[str, Json]) -> dict[str, Json]:
    """Return a reference to a sub-agent's run; empty if there is none."""
    found = {**_texts(recorded, ("trajectory_id", "trajectory_path", "session_id")), **_extra(recorded)}
    if "trajectory_id" in found or "trajectory_path" in found:
        return found
    if "session_id" not in found:
        return {}
    # Before version 1.7, the session's id was the reference.
    found["trajectory_id"] = found["session_id"]
    return found


def _has_media(content: Json) -> bool:
    """Return whether content is a list of valid parts, at least one of which is not text."""
    items = as_list(content)
    parts = objects(items)
    if len(parts) != len(items):
        return False
    if not all(map(_is_valid_part, parts)):
        return False
    return any(part.get("type") != "text" for part in parts)


def _is_valid_part(part: dict[str, Json]) -> bool:
    """Return whether a part of content has exactly the members that ATIF defines for its type."""
    match part.get("type"):
        case "text":
            return part.keys() == {"type", "text"} and isinstance(part["text"], str)
        case "image" | "audio":
            return part.keys() == {"type", "source"} and _is_source(part["source"])
    return False


def _is_source(source: Json) -> bool:
    found = as_dict(source)
    known = {"media_type", "path", "duration_sec"}
    if not known >= found.keys():
        return False
    return all(isinstance(found.get(key), str) for key in ("media_type", "path"))


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


def _extra(recorded: dict[str, Json], own: dict[str, Json] | None = None) -> dict[str, Json]:
    """Return the recorded `extra` merged with gistpoint's `own`, as a member; empty if there is neither."""
    merged = {**as_dict(recorded.get("extra")), **(own or {})}
    return {"extra": merged} if merged else {}
