"""Builds from the events of a stream the body that a vendor's reply would have had if it had been sent whole.

Sources: https://platform.claude.com/docs/en/build-with-claude/streaming and
https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from gistpoint.core.merging import GrowingText, Merger, plain
from gistpoint.sandbox.endpoints.events import ServerEvent
from gistpoint.sandbox.endpoints.meanings import error_in
from gistpoint.sandbox.endpoints.native_bodies import Block, blocks_of, table_of
from gistpoint.sandbox.endpoints.streamed import chunk_in

_CALLED = ""
"""The name under which a block collects the text of its call's arguments; no member has it."""


class NativeStream(ABC):
    """A reply that grows with each event; implements `receiving.PiecedReply`."""

    def __init__(self) -> None:
        self._merger = Merger()
        self._top: Block = {}
        """The members around the reply's parts."""
        self._error: Block | None = None
        self.began = False
        """Whether a part of the reply was received."""
        self.ended = False
        """Whether the stream reported its end."""

    @property
    def over(self) -> bool:
        """Whether nothing of interest can follow."""
        return self.ended or self._error is not None

    @property
    def characters(self) -> int:
        """The number of characters received so far, in text of any kind."""
        return self._merger.room.written

    def add(self, event: ServerEvent) -> None:
        """Add an event.

        Raises `ValueError` for data that are not a JSON object, and `EndlessReplyError` if a limit is
        exceeded.
        """
        if self.over or not event.data.strip():
            return
        value = chunk_in(event.data)
        if error_in(value) is not None:
            self._error = value
            return
        self._add(value)

    def body(self) -> Block:
        """Return the body of the reply or of an error."""
        return self._built() if self._error is None else self._error

    @property
    @abstractmethod
    def complete(self) -> bool:
        """Whether no part of the reply is missing."""

    @property
    @abstractmethod
    def usage(self) -> Block | None:
        """The last reported usage, in the vendor's terms; None if none was reported."""

    @abstractmethod
    def _add(self, value: Block) -> None:
        """Add the data of an event that reports no error."""

    @abstractmethod
    def _built(self) -> Block:
        """Return the body of the reply."""


class MessageStream(NativeStream):
    """A message of Anthropic's API."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, Block] = {}
        self._usage: Block = {}

    @property
    def complete(self) -> bool:
        """Whether the stream is over, or the reason for the message's end was received."""
        return self.over or self._top.get("stop_reason") is not None

    @property
    def usage(self) -> Block | None:
        """The last reported usage; None if none was reported."""
        return self._usage or None

    def _add(self, value: Block) -> None:
        match value.get("type"):
            case "message_start":
                message = table_of(value.get("message"))
                # The last event has the count of the whole reply; this event counts only the first token.
                self._usage |= {**table_of(message.get("usage")), "output_tokens": None}
                self._top |= self._kept({**message, "content": [], "usage": {}})
            case "content_block_start":
                self._blocks[_index(value)] = self._kept(table_of(value.get("content_block")))
                self.began = True
            case "content_block_delta":
                self._grow(self._blocks.setdefault(_index(value), {}), table_of(value.get("delta")))
                self.began = True
            case "message_delta":
                self._top |= self._kept(table_of(value.get("delta")))
                # Its counts are those of the whole message.
                counts = table_of(value.get("usage"))
                self._usage |= {name: count for name, count in counts.items() if count is not None}
            case "message_stop":
                self.ended = True

    def _kept(self, value: Mapping[str, Any]) -> Block:
        kept: Block = self._merger.kept(dict(value), "")
        return kept

    def _grow(self, block: Block, delta: Block) -> None:
        for name, piece in delta.items():
            if name == "partial_json":
                block[_CALLED] = self._merger.merged(block.get(_CALLED), piece, "arguments")
            elif name == "citation":
                block["citations"] = self._merger.merged(block.get("citations"), [piece], "citations")
            elif name != "type":
                block[name] = self._merger.merged(block.get(name), piece, name)

    def _built(self) -> Block:
        blocks = [_with_input(plain(self._blocks[index])) for index in sorted(self._blocks)]
        return {**plain(self._top), "content": blocks, "usage": self._usage}


def _index(value: Block) -> int:
    index = value.get("index")
    return index if isinstance(index, int) else 0


def _with_input(block: Block) -> Block:
    """Return a block with its call's arguments; text that is not JSON stays text, which no call accepts."""
    text = block.pop(_CALLED, "")
    if not text:
        return block
    try:
        return {**block, "input": json.loads(text)}
    except (ValueError, RecursionError):
        return {**block, "input": text}


class CandidateStream(NativeStream):
    """A response of the Gemini API; each event is a response with further parts."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[Block] = []
        self._candidate: Block | None = None
        self._usage: Block | None = None

    @property
    def complete(self) -> bool:
        """Whether the stream is over, the reason for the response's end was received, or it was blocked."""
        is_blocked = bool(table_of(self._top.get("promptFeedback")).get("blockReason"))
        return self.over or is_blocked or bool((self._candidate or {}).get("finishReason"))

    @property
    def usage(self) -> Block | None:
        """The last reported usage; None if none was reported."""
        return self._usage

    def _add(self, value: Block) -> None:
        self._usage = table_of(value.get("usageMetadata")) or self._usage
        around = {name: item for name, item in value.items() if name not in ("candidates", "usageMetadata")}
        self._top |= around
        for candidate in blocks_of(value.get("candidates"))[:1]:
            known = self._candidate or {}
            self._candidate = known | {name: item for name, item in candidate.items() if name != "content"}
            for part in blocks_of(table_of(candidate.get("content")).get("parts")):
                self._take(part)
                self.began = True

    def _take(self, part: Block) -> None:
        """Add a part. Only plain text is joined, since a signature belongs to the part it came with."""
        last = self._parts[-1] if self._parts else {}
        if _is_plain(part) and _is_plain(last) and part.get("thought") == last.get("thought"):
            last["text"] = self._merger.merged(last["text"], part["text"], "text")
        else:
            self._parts.append(self._merger.kept(part, ""))

    def _built(self) -> Block:
        if self._candidate is None:
            return {**self._top, "usageMetadata": self._usage or {}}
        content = {"content": {"role": "model", "parts": plain(self._parts)}} if self._parts else {}
        return {
            **self._top,
            "candidates": [{**content, **self._candidate}],
            "usageMetadata": self._usage or {},
        }


def _is_plain(part: Block) -> bool:
    """Return whether a part is text, or the text of a thought, and nothing else."""
    return part.keys() <= {"text", "thought"} and isinstance(part.get("text"), str | GrowingText)
