"""Puts the messages of a chat in an order that OpenAI's API accepts (decision 168).

The API's rules: the results of an assistant's calls follow immediately, one for each call; each has the id of
its call; there are no other results. Recorded runs break all of them: a person interrupts, results arrive
late or never, or an agent without tool calls records observations.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

from gistpoint.core.text import plural
from gistpoint.sessions.runs.rendering import UNANSWERED

Message = dict[str, Any]
MOST_ID_CHARACTERS = 40
"""The maximum length of the id of a call."""
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""A name that the API accepts. Other names are kept, because changed ones would name other tools."""
_MOST_NAMED = 5


class Adaptation(StrEnum):
    """The changes to a message that make the sequence acceptable."""

    MOVED = "moved behind the results of calls"
    NO_RESULT = f"with the result {UNANSWERED!r}"
    UNCALLED = "written as a message from the user, because no call is open"
    RENAMED = "with another id, because theirs is missing, used twice, unknown or too long"


_NOUNS = {
    Adaptation.MOVED: "message",
    Adaptation.NO_RESULT: "call",
    Adaptation.UNCALLED: "result",
    Adaptation.RENAMED: "id",
}


class ChatSequence:
    """The state of a chat between two messages; `adapted` counts the necessary changes."""

    def __init__(self) -> None:
        self.adapted: Counter[Adaptation] = Counter()
        self._open: dict[str, str] = {}
        """The ids of the calls without a result, by the ids that are written for them."""
        self._waiting: list[Message] = []
        self._unmatched: list[Message] = []
        """The results that do not name an open call."""
        self._calls = 0
        self._refused: dict[str, None] = {}
        """The names of tools that the API refuses, in the order of their first calls."""

    def ordered(self, messages: Iterable[Message]) -> Iterator[Message]:
        """Yield all messages in an order that is accepted."""
        for message in messages:
            match message["role"]:
                case "tool":
                    yield from self._result(message)
                case "assistant":
                    yield from self._closed()
                    yield self._with_calls(message)
                case _ if self._open:
                    self._waiting.append(message)
                case _:
                    yield message
        yield from self._closed()

    @property
    def words(self) -> str:
        """The changes and the API's remaining objections, in words; empty if there are none."""
        parts = [
            f"{plural(self.adapted[kind], _NOUNS[kind])} {kind.value}"
            for kind in Adaptation
            if self.adapted[kind]
        ]
        if self._refused:
            names = ", ".join(map(repr, list(self._refused)[:_MOST_NAMED]))
            more = ", ..." if len(self._refused) > _MOST_NAMED else ""
            parts.append(
                f"{plural(len(self._refused), 'name')} of tools kept that the API refuses: {names}{more}"
            )
        return "; ".join(parts)

    def _with_calls(self, message: Message) -> Message:
        """Return an assistant's message, and treat its calls as open from now on."""
        calls = message.get("tool_calls")
        if not calls:
            return message
        written = []
        for call in calls:
            id = call["id"]
            if not id or len(id) > MOST_ID_CHARACTERS or id in self._open:
                id = self._new_id()
                self.adapted[Adaptation.RENAMED] += 1
            self._open[id] = call["id"]
            if not _TOOL_NAME.fullmatch(call["function"]["name"]):
                self._refused.setdefault(call["function"]["name"])
            written.append({**call, "id": id})
        return {**message, "tool_calls": written}

    def _new_id(self) -> str:
        """Return an id that no open call has, neither as written nor as recorded."""
        while True:
            self._calls += 1
            id = f"call-{self._calls}"
            if id not in self._open and id not in self._open.values():
                return id

    def _result(self, message: Message) -> Iterator[Message]:
        """Yield the result of an open call; after the last result, also the messages that waited for it."""
        given = message["tool_call_id"]
        id = next((written for written, recorded in self._open.items() if recorded == given), None)
        if id is None:
            self._unmatched.append(message)
        else:
            del self._open[id]
            yield {**message, "tool_call_id": id}
        if not self._open:
            yield from self._released()

    def _closed(self) -> Iterator[Message]:
        """Yield a result for each open call, then the messages that waited.

        Results without an id, or with an unknown one, are assigned, in order, to the calls that have no
        other.
        """
        for id in self._open:
            if self._unmatched:
                self.adapted[Adaptation.RENAMED] += 1
                yield {**self._unmatched.pop(0), "tool_call_id": id}
            else:
                self.adapted[Adaptation.NO_RESULT] += 1
                yield {"role": "tool", "tool_call_id": id, "content": UNANSWERED}
        self._open.clear()
        yield from self._released()

    def _released(self) -> Iterator[Message]:
        for message in self._unmatched:
            self.adapted[Adaptation.UNCALLED] += 1
            yield {"role": "user", "content": message["content"]}
        self._unmatched.clear()
        self.adapted[Adaptation.MOVED] += len(self._waiting)
        yield from self._waiting
        self._waiting.clear()
