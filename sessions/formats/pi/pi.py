"""Sessions of pi, the coding agent: each line is an entry, such as a chat message with typed parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gistpoint.sessions.formats.pi._entries import FAILED, entry_step, spent
from gistpoint.sessions.records.building import Tally
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun
from gistpoint.sessions.records.model import Json, NotShown, Run, Step
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record, of_type
from gistpoint.sessions.records.requests import request_in
from gistpoint.sessions.records.values import as_dict, as_str, as_text, objects, when

_LINKED = ("type", "id", "parentId", "timestamp")
"""The members of every entry after the first."""


class _Reader(RunReader):
    format = "pi"
    in_lines = True

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._calls: dict[str, int] = {}
        self._tally = Tally()
        self._seen: dict[str, Json] = {}
        self._end = ""

    def place(self, fields: Json, step_count: int) -> int:
        entry = as_dict(fields)
        message = as_dict(entry.get("message"))
        self._learn(entry, message)
        if message.get("role") == "toolResult":
            return self._calls.pop(as_str(message.get("toolCallId")), step_count)
        for block in objects(message.get("content")):
            if block.get("type") == "toolCall":
                self._calls[as_str(block.get("id"))] = step_count
        return step_count

    def _learn(self, entry: dict[str, Json], message: dict[str, Json]) -> None:
        self._tally.add_time(when(entry.get("timestamp")))
        if entry.get("type") == "session":
            self._seen = {**entry, **self._seen}
        if entry.get("type") == "session_info" and entry.get("name"):
            self._seen["name"] = entry["name"]
        if message.get("role") == "assistant":
            reply = Record(message)
            self._tally.add_usage(*spent(reply))
            self._end = reply.word("stopReason")
            # A failed reply names the requested model, which may never have answered.
            if reply.get("model") and self._end not in FAILED:
                self._seen.setdefault("model", reply.get("model"))

    def header(self) -> Run:
        opening = Record(
            self._seen or next((line for line in self.probe.lines if line.get("type") == "session"), {})
        )
        parent = opening.word("parentSession")
        return Run(
            self.format,
            opening.word("version"),
            id=opening.word("id"),
            task=opening.word("name") or request_in(self._user_texts()),
            model=opening.first_word("model", "modelId"),
            agent="pi",
            exit_status=self._end,
            tokens=self._tally.tokens,
            cost=self._tally.cost,
            started=self._tally.started,
            duration_s=self._tally.duration_s,
            links=(parent,) if parent else (),
            extra=opening.kept("cwd"),
            derived=frozenset({"tokens", "cost", "duration_s", "exit_status"}),
        )

    def _user_texts(self) -> Iterator[str]:
        """Return each text that the user wrote near the beginning of the file."""
        messages = (as_dict(line.get("message")) for line in self.probe.lines)
        return (as_text(item.get("content")) for item in messages if item.get("role") == "user")

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        return entry_step(index, raws)


class Pi(SingleRun):
    """Recognised by a `session` line with a folder and a time, or by messages that name their predecessor."""

    name = "pi"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("message.api", "message.provider", "message.usage", "message.stopReason", "message.toolName"),
            "counts and settings of the provider; the model, the tokens and the cost are shown",
        ),
        NotShown(("message.content.partialJson",), "a call's arguments as they came; the call has them"),
        NotShown(
            (
                "message.content.thinkingSignature",
                "message.content.textSignature",
                "message.content.thoughtSignature",
            ),
            "encoded: the provider alone can read it",
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        entries = [Record(line) for line in probe.lines[:20]]
        if any(entry.has_all("cwd", "timestamp") for entry in of_type(entries, "session")):
            return 1.0
        # A log that was cut or rotated begins after the line of the session.
        linked = [entry for entry in entries if entry.has_all(*_LINKED)]
        messages = [entry for entry in of_type(linked, "message") if entry.inner("message").has("role")]
        return 0.9 if messages and len(linked) == len(entries) else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the session."""
        return _Reader(probe)


FORMAT = Pi()
