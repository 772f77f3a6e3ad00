"""Chats of Cursor's window, as its database contains them: a step for each message with content."""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.sessions.formats.shared.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.records.building import StepBuilder, Tally, asking_kind
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun
from gistpoint.sessions.records.model import (
    Actor,
    Json,
    NotShown,
    Result,
    Run,
    RunCall,
    Step,
    StepKind,
    Tokens,
)
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record
from gistpoint.sessions.records.requests import headline
from gistpoint.sessions.records.values import first_known

_USER = 1
"""The type of a person's message; the type of a model's message is 2."""


class _Reader(RunReader):
    format = "cursor-chat"
    arrays = ("bubbles",)

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._tally = Tally()
        self._asked = ""

    def place(self, fields: Json, step_count: int) -> int:
        bubble = Record(fields)
        self._tally.add_time(bubble.time("createdAt"))
        self._tally.add_usage(_tokens(bubble), None)
        self._tally.add_model(bubble.word("modelInfo", "modelName"))
        if bubble.get("type") == _USER:
            self._asked = self._asked or bubble.text("text")
        # While it works, Cursor stores messages without content, which need no separate steps.
        return step_count if _has_content(bubble) or not step_count else step_count - 1

    def header(self) -> Run:
        chat, tally = Record(self.fact("composer")), self._tally
        started = first_known((tally.started, chat.time("createdAt")))
        return Run(
            self.format,
            id=Record({"id": self.fact("composerId")}).word("id"),
            task=chat.word("name") or headline(self._asked),
            model=tally.model or chat.word("modelConfig", "modelName"),
            agent="Cursor",
            exit_status=chat.word("status"),
            tokens=tally.tokens,
            started=started,
            duration_s=tally.duration_s,
            extra=chat.kept("unifiedMode", "subtitle"),
            derived=frozenset({"tokens", "duration_s"}),
        )

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        bubble = next(filter(_has_content, (Record(raw.value) for raw in raws)), Record(raws[0].value))
        started = bubble.time("createdAt")
        if bubble.get("type") == _USER:
            builder = StepBuilder(index, raws, Actor.USER, asking_kind(index, 1), "user")
            return builder.text(bubble.text("text")).span(started).derived("kind").build()
        calls = _calls(bubble)
        results = _results(bubble)
        return (
            StepBuilder(index, raws, Actor.AGENT, kind_of(calls) if calls else StepKind.MESSAGE, "assistant")
            .thought(bubble.text("thinking", "text"))
            .text(bubble.text("text"))
            .calls(calls)
            .results(results)
            .edits(edits_of(calls))
            .span(started)
            .spent(_tokens(bubble))
            .model(bubble.word("modelInfo", "modelName"))
            .flag_if(any(result.is_error for result in results), "error")
            .derived("kind")
            .id(bubble.word("bubbleId"))
            .build()
        )


def _has_content(bubble: Record) -> bool:
    return bool(bubble.text("text") or bubble.text("thinking", "text") or bubble.inner("toolFormerData"))


def _tokens(bubble: Record) -> Tokens:
    counts = bubble.inner("tokenCount")
    return Tokens(counts.whole("inputTokens") or None, counts.whole("outputTokens") or None)


def _calls(bubble: Record) -> tuple[RunCall, ...]:
    tool = bubble.inner("toolFormerData")
    if not tool:
        return ()
    arguments = tool.first("rawArgs", "params")
    called = {"id": tool.get("toolCallId"), "name": tool.get("name"), "arguments": arguments}
    return (call_of_function(called),)


def _results(bubble: Record) -> list[Result]:
    """Return the result of a call; none if Cursor recorded neither a result nor an error."""
    tool = bubble.inner("toolFormerData")
    text = tool.first_text("result", "error")
    refused = tool.get("userDecision") == "rejected"
    if not text and not refused:
        return []
    failed = refused or tool.get("status") == "error"
    return [Result(tool.word("toolCallId"), text or "rejected by the user", failed)]


class CursorChat(SingleRun):
    """Recognised by a chat's id with its messages, the form in which chats are read from the database."""

    name = "cursor-chat"
    unique_ids = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("richText", "toolFormerData.params", "toolFormerData.additionalData"),
            "copies of the text and of the arguments, for the editor",
        ),
        NotShown(("checkpointId", "afterCheckpointId", "requestId"), "ids of Cursor's own"),
        NotShown(("composer.richText", "composer.context"), "the field for the next message", of_run=True),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        return 1.0 if {"composerId", "bubbles"} <= probe.object.keys() else 0.0

    def reader(self, probe: FileProbe) -> RunReader:
        """Return the reader of the chat."""
        return _Reader(probe)


FORMAT = CursorChat()
