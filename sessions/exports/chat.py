"""Writes a run as a JSON object with chat messages, the format accepted by fine-tuning and most viewers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import chain, repeat

from gistpoint.core.text import plural
from gistpoint.sessions.exports.chat_sequence import ChatSequence, Message
from gistpoint.sessions.exports.whole_texts import whole_text, whole_value
from gistpoint.sessions.records.model import Actor, Json, RunCall, Step, StepKind
from gistpoint.sessions.runs.document import RunDocument

_LEFT_OUT = frozenset({StepKind.STATE, StepKind.PAUSE, StepKind.SCORE})
_NAMED = 12
"""The maximum number of strings of the header that are named individually."""


class ChatWriter:
    """Writes a run as a chat. Afterwards, `sequence` describes the changes made for the rules of the API."""

    def __init__(self, document: RunDocument) -> None:
        self._document = document
        self.sequence = ChatSequence()

    def pieces(self) -> Iterator[str]:
        """Yield `{"messages": [...]}`, one step at a time; states, pauses and scores are left out."""
        self._document.build()
        yield '{"messages": ['
        separator = ""
        for message in self.sequence.ordered(_messages(self._document)):
            yield separator + json.dumps(message)
            separator = ", "
        yield "]"
        for key, value in _head(self._document).items():
            yield f", {json.dumps(key)}: {json.dumps(value)}"
        yield "}\n"


def chat_text(document: RunDocument) -> Iterator[str]:
    """Yield the pieces of a run's chat."""
    return ChatWriter(document).pieces()


def left_out(document: RunDocument) -> str:
    """Return the omissions of a run's chat, in words; empty if there are none."""
    kinds: Counter[StepKind] = Counter()
    with_other_texts = 0
    for step in document.steps():
        kinds[step.kind] += 1
        if step.also and step.kind not in _LEFT_OUT:
            with_other_texts += 1
    words = [
        f"{plural(kinds[kind], 'step')} of kind {kind.value}" for kind in sorted(_LEFT_OUT) if kinds[kind]
    ]
    if with_other_texts:
        words.append(f"what is also recorded in {plural(with_other_texts, 'step')}")
    run = document.header
    names = [*run.extra, *dict.fromkeys(noted.path for noted in run.also)]
    if run.submission:
        names.append("submission")
    shown = ", ".join(names[:_NAMED])
    if len(names) > _NAMED:
        shown += f" and {len(names) - _NAMED} more"
    if names:
        words.append(f"of the header {shown}")
    return "; ".join(words)


def _head(document: RunDocument) -> dict[str, Json]:
    run = document.header
    known: dict[str, Json] = {
        "instance_id": "" if "task" in run.derived else run.task,
        "model": run.model,
        "derived_verdict" if "verdict" in run.derived else "verdict": run.verdict,
        "suspicious": [*run.suspicious],
        "confirmation": run.confirmation,
    }
    return {key: value for key, value in known.items() if value}


def _messages(document: RunDocument) -> Iterator[Message]:
    """Yield the messages as they were recorded."""
    if document.header.prompt:
        yield {"role": "user", "content": document.header.prompt}
    for index in range(document.step_count):
        yield from _messages_of(document, document.step(index))


def _messages_of(document: RunDocument, step: Step) -> Iterator[Message]:
    """Yield the messages of a step; none if a chat leaves out steps of its kind."""
    if step.kind in _LEFT_OUT:
        return
    is_of_solver = step.actor in (Actor.AGENT, Actor.PERSON)
    if is_of_solver or step.calls:
        yield from _turn(document, step)
    else:
        yield _message_to_solver(document, step)


def _message_to_solver(document: RunDocument, step: Step) -> Message:
    """Return the message of a step without calls by a user, a harness or an environment."""
    text = whole_text(document, step.text)
    parts = [whole_text(document, result.text) for result in step.results]
    if text or not parts:
        parts.insert(0, text)
    return {"role": "user" if step.actor is Actor.USER else "system", "content": "\n".join(parts)}


def _turn(document: RunDocument, step: Step) -> Iterator[Message]:
    """Yield the solver's message with its calls, then their results."""
    message: Message = {"role": "assistant", "content": whole_text(document, step.text)}
    if step.thought:
        message["reasoning_content"] = whole_text(document, step.thought)
    ids = [call.id or f"call-{step.index + 1}-{number}" for number, call in enumerate(step.calls, start=1)]
    if step.calls:
        message["tool_calls"] = [_call(document, call, id) for call, id in zip(step.calls, ids, strict=True)]
    yield message
    # Results without an id belong to the calls in order.
    for result, id in zip(step.results, chain(ids, repeat("")), strict=False):
        yield {
            "role": "tool",
            "tool_call_id": result.call_id or id,
            "content": whole_text(document, result.text),
        }


def _call(document: RunDocument, call: RunCall, id: str) -> Json:
    arguments = whole_text(document, call.arguments)
    if call.parsed is not None:
        arguments = json.dumps(whole_value(document, dict(call.parsed)))
    return {"id": id, "type": "function", "function": {"name": call.tool, "arguments": arguments}}
