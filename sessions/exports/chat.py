"""Writes a run as chat messages, one JSON object: the form that fine-tuning and most viewers accept."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import chain, repeat

from gistpoint.core.text import plural
from gistpoint.sessions.records.model import Actor, Json, RunCall, Step, StepKind
from gistpoint.sessions.runs.document import RunDocument

_LEFT_OUT = frozenset({StepKind.STATE, StepKind.PAUSE, StepKind.SCORE})
_NAMED = 12
"""Texts of the header that are named one by one."""


def chat_text(document: RunDocument) -> Iterator[str]:
    """Yield `{"messages": [...]}`, a step at a time; bookkeeping, pauses and scores are left out."""
    document.build()
    run = document.header
    yield '{"messages": ['
    separator = ""
    if run.prompt:
        yield json.dumps({"role": "user", "content": run.prompt})
        separator = ", "
    for index in range(document.step_count):
        for message in _messages(document, document.step(index)):
            yield separator + json.dumps(message)
            separator = ", "
    yield (
        "]"
        + "".join(f", {json.dumps(key)}: {json.dumps(value)}" for key, value in _head(document).items())
        + "}\n"
    )


def left_out(document: RunDocument) -> str:
    """Return in words what of a run its chat leaves out; empty if nothing."""
    kinds: Counter[StepKind] = Counter()
    beside = 0
    for step in document.steps():
        kinds[step.kind] += 1
        beside += bool(step.also) and step.kind not in _LEFT_OUT
    words = [
        f"{plural(kinds[kind], 'step')} of kind {kind.value}" for kind in sorted(_LEFT_OUT) if kinds[kind]
    ]
    words += [f"what is also recorded in {plural(beside, 'step')}"] if beside else []
    run = document.header
    names = [
        *run.extra,
        *dict.fromkeys(noted.path for noted in run.also),
        *(["submission"] if run.submission else []),
    ]
    shown = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    return "; ".join([*words, *([f"of the header {shown}"] if names else [])])


def _head(document: RunDocument) -> dict[str, Json]:
    run = document.header
    known: dict[str, Json] = {
        "instance_id": "" if "task" in run.derived else run.task,
        "model": run.model,
        "verdict": run.verdict,
        "suspicious": [*run.suspicious],
        "confirmation": run.confirmation,
    }
    return {key: value for key, value in known.items() if value}


def _messages(document: RunDocument, step: Step) -> Iterator[dict[str, Json]]:
    if step.kind in _LEFT_OUT:
        return
    text = "".join(document.full_text(step.text))
    is_of_solver = step.actor in (Actor.AGENT, Actor.PERSON)
    if not is_of_solver and not step.calls:
        answers = ["".join(document.full_text(result.text)) for result in step.results]
        parts = [text, *answers] if text or not answers else answers
        yield {"role": "user" if step.actor is Actor.USER else "system", "content": "\n".join(parts)}
        return
    message: dict[str, Json] = {"role": "assistant", "content": text}
    if step.thought:
        message["reasoning_content"] = "".join(document.full_text(step.thought))
    ids = [call.id or f"call-{step.index + 1}-{number}" for number, call in enumerate(step.calls, start=1)]
    if step.calls:
        message["tool_calls"] = [_call(call, id) for call, id in zip(step.calls, ids, strict=True)]
    yield message
    # Results without an id are those of the calls in order.
    for result, id in zip(step.results, chain(ids, repeat("")), strict=False):
        content = "".join(document.full_text(result.text))
        yield {"role": "tool", "tool_call_id": result.call_id or id, "content": content}


def _call(call: RunCall, id: str) -> Json:
    arguments = _arguments(call.arguments, call.parsed)
    return {"id": id, "type": "function", "function": {"name": call.tool, "arguments": arguments}}


def _arguments(raw: str, parsed: object) -> str:
    return json.dumps(parsed) if isinstance(parsed, dict) else raw
