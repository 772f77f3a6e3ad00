"""Writes any run as ATIF 1.7. What ATIF has no place for goes into `extra.gistpoint`, so that reading it back loses
nothing but byte ranges.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from gistpoint.sessions.exports.atif_members import embedded, run_members, step_members
from gistpoint.sessions.formats.values import as_dict
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.model import Actor, Call, CutText, Json, Noted, Result, Run, Step, StepKind

ATIF = "atif"
SCHEMA = "ATIF-v1.7"
_AGENT_ONLY = frozenset({Actor.AGENT, Actor.PERSON})


def to_atif(document: RunDocument) -> dict[str, Json]:
    """Return a run as an ATIF trajectory."""
    return as_dict(json.loads("".join(atif_text(document))))


def atif_text(document: RunDocument) -> Iterator[str]:
    """Yield the JSON text of a run as ATIF, a step at a time, so that a large run is never held whole.

    A run without a step gets one that says so, because ATIF wants one.
    """
    document.build()
    run = document.header
    head = {**_head(run), **_foot(run)}
    if run.format == ATIF:
        head = run_members(dict(document.members), head)
    yield json.dumps(head, indent=2)[:-2] + ',\n  "steps": [\n'
    empty: dict[str, Json] = {"step_id": 1, "source": "system", "message": "", "extra": {"gistpoint": {"empty": True}}}
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
    """Return one step of a run as ATIF has it. Raises IndexError where there is none."""
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
    final: dict[str, Json] = {
        key: value
        for key, value in {
            "total_prompt_tokens": run.tokens.prompt,
            "total_completion_tokens": run.tokens.completion,
            "total_cached_tokens": run.tokens.cached,
            "total_cost_usd": run.cost,
        }.items()
        if value is not None and value >= 0
    }
    known: dict[str, Json] = {
        "task": run.task,
        "exit_status": run.exit_status,
        "submission": run.submission,
        "verdict": run.verdict,
        "suspicious": [*run.suspicious],
        "score": run.score,
        "duration_s": run.duration_s,
    }
    extra: dict[str, Json] = {key: value for key, value in known.items() if value not in ("", None, [])}
    ours: dict[str, Json] = {
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
    extra["gistpoint"] = ours
    return {**({"final_metrics": final} if final else {}), "extra": extra}


def _step(document: RunDocument, step: Step) -> dict[str, Json]:
    agent = step.actor in _AGENT_ONLY or bool(step.calls)
    source = "agent" if agent else "user" if step.actor is Actor.USER else "system"
    shown: dict[str, Json] = {"step_id": step.index + 1, "source": source, "message": _whole(document, step.text)}
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
    shown["extra"] = {"gistpoint": _kept(document, step, agent=agent)}
    if document.header.format == ATIF and step.kind is not StepKind.DAMAGED:
        return step_members(as_dict(json.loads(document.raw(step.index), strict=False)), shown)
    return shown


def _agent_part(document: RunDocument, step: Step) -> dict[str, Json]:
    part: dict[str, Json] = {}
    if step.model:
        part["model_name"] = step.model
    if step.thought:
        part["reasoning_content"] = _whole(document, step.thought)
    if step.calls:
        part["tool_calls"] = [_call(document, call, id) for call, id in zip(step.calls, _call_ids(step), strict=True)]
    metrics: dict[str, Json] = {
        key: value
        for key, value in {
            "prompt_tokens": step.tokens.prompt,
            "completion_tokens": step.tokens.completion,
            "cached_tokens": step.tokens.cached,
            "cost_usd": step.cost,
        }.items()
        if value is not None and value >= 0
    }
    if metrics:
        part["metrics"] = metrics
    return part


def _call_ids(step: Step) -> list[str]:
    """Return an id for each call, each once: ATIF wants them."""
    ids: list[str] = []
    for number, call in enumerate(step.calls):
        id = call.id or f"call-{step.index + 1}-{number + 1}"
        ids.append(id if id not in ids else f"{id}~{number + 1}")
    return ids


def _call(document: RunDocument, call: Call, id: str) -> Json:
    arguments: Json = _complete(document, dict(call.parsed)) if call.parsed is not None else {}
    extra: dict[str, Json] = {"arguments": call.arguments, "id": call.id, "parsed": call.parsed is not None}
    return {
        "tool_call_id": id,
        "function_name": call.tool or "unknown",
        "arguments": arguments,
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
    shown: dict[str, Json] = {"content": _whole(document, result.text), "extra": extra}
    if agent and result.call_id in known:
        shown["source_call_id"] = result.call_id
    return shown


def _kept(document: RunDocument, step: Step, *, agent: bool) -> dict[str, Json]:
    kept: dict[str, Json] = {
        "actor": step.actor.value, "kind": step.kind.value, "label": step.label, "id": step.id,
        "started": step.started, "ended": step.ended, "cost": step.cost, "model": step.model,
        "tokens": {"prompt": step.tokens.prompt, "completion": step.tokens.completion,
                   "cached": step.tokens.cached, "reasoning": step.tokens.reasoning},
        "state": dict(step.state), "flags": [*sorted(step.flags - {"long"})], "derived": [*sorted(step.derived)],
        "links": [*step.links],
    }  # fmt: skip
    if not agent and step.thought:
        kept["thought"] = _whole(document, step.thought)
    if step.diff is not None:
        kept["diff"] = _whole(document, step.diff)
    if step.diff_so_far is not None:
        kept["diff_so_far"] = _whole(document, step.diff_so_far)
    if step.also and document.header.format != ATIF:
        kept["also"] = _noted(document, step.also)
    if step.edits:
        kept["edits"] = [{"path": edit.path, "old": edit.old, "new": edit.new} for edit in step.edits]
    return kept


def _noted(document: RunDocument | None, also: Iterable[Noted]) -> Json:
    return [[noted.path, noted.text if document is None else _whole(document, noted.text)] for noted in also]


def _complete(document: RunDocument, value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _complete(document, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_complete(document, item) for item in value]
    return _whole(document, value) if isinstance(value, str) else value


def _whole(document: RunDocument, text: str) -> str:
    return "".join(document.full_text(text)) if isinstance(text, CutText) else str(text)
