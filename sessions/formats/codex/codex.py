"""Sessions of Codex CLI (`rollout-*.jsonl`), from the bare items of 2025 to paginated histories.

The model's output is in `response_item` records. Most `event_msg` records repeat one of those: they join its
step and add only what is new in them, such as an exit code.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from gistpoint.sessions.formats.codex._records import (
    ENDS,
    ENVELOPES,
    REPLIES,
    call_id,
    is_call,
    is_of_model,
    is_output,
    item_type,
    links_of,
    reports,
    text_of,
    tokens_of,
    unwrapped,
)
from gistpoint.sessions.records.building import Tally
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun
from gistpoint.sessions.records.model import Json, NotShown, Run, Step
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record
from gistpoint.sessions.records.requests import request_in
from gistpoint.sessions.records.values import (
    as_dict,
    as_str,
    as_text,
    compact,
    first,
    first_known,
    joined,
    objects,
    parsed_object,
    shallow,
    when,
)

_HEADING = ("cwd", "originator", "forked_from_id", "agent_role")


def _texts(payload: dict[str, Json]) -> list[str]:
    return [as_str(part.get("text")) for part in objects(payload.get("content"))]


class _Placing:
    """Assigns records to steps: replies of the model with calls, results, and the events that repeat them."""

    def __init__(self) -> None:
        self._reply: int | None = None
        """The step of the reply in progress."""
        self._answered = False
        self._empty = True
        self._counted_first = False
        self._calls: dict[str, int] = {}
        self._user_texts: dict[int, tuple[int, set[str]]] = {}
        self._repeated: dict[int, int] = {}
        self._counted: tuple[Json, int] = (None, -1)
        self._last = -1
        """The step of the last record."""
        self.total: dict[str, Json] = {}
        self.last_text = 0

    def place(self, envelope: str, kind: str, payload: dict[str, Json], count: int) -> int:
        """Return the step of the next record."""
        self._last = self._place(envelope, kind, payload, count)
        return self._last

    def _place(self, envelope: str, kind: str, payload: dict[str, Json], count: int) -> int:
        if envelope == "response_item":
            return self._item(kind, payload, count)
        if envelope == "event_msg":
            return self._event(kind, payload, count)
        if envelope == "state" and payload.keys() == {"record_type"}:
            return max(self._last, 0)
        if envelope == "compacted" and self._reply is not None and self._empty:
            # A reply of which only the tokens were counted is the one that condensed the context.
            step, self._reply = self._reply, None
            return step
        if envelope in ("turn_context", "world_state"):
            self._counted_first = False
            return self._repeated.setdefault(hash(compact(dict(payload))), count)
        self._close()
        return count

    def _item(self, kind: str, payload: dict[str, Json], count: int) -> int:
        if kind == "message" and payload.get("role") != "assistant":
            texts = _texts(payload)
            return self._of_user("item", [*texts, joined(texts)], count)
        if kind in ("message", "reasoning") or is_call(kind):
            # Some versions count the tokens of a reply before they write its calls.
            step = self._of_reply(count, goes_on=is_call(kind) and self._counted_first)
            self._empty = False
            for key in ("call_id", "id") if is_call(kind) else ():
                if payload.get(key):
                    self._calls[as_str(payload[key])] = step
            if kind == "message":
                self.last_text = hash(as_text(payload.get("content")))
            return step
        # An output that names no call belongs to the preceding reply.
        if is_output(kind):
            self._answered = True
            identity = call_id(payload)
            other_step = count if identity or self._reply is None else self._reply
            return self._calls.get(identity, other_step)
        self._close()
        return count

    def _event(self, kind: str, payload: dict[str, Json], count: int) -> int:
        if kind == "user_message":
            return self._of_user("event", [as_str(payload.get("message"))], count)
        if kind in REPLIES:
            step = self._of_reply(count)
            if kind == "agent_message":
                self.last_text = hash(as_str(payload.get("message")))
            return step
        if kind == "token_count":
            return self._count(as_dict(payload.get("info")), count)
        if kind == "item_completed":
            return self._completed(as_dict(payload.get("item")), count)
        if kind in ("task_complete", "turn_complete"):
            return self._turn_end(payload, count)
        identity = call_id(payload)
        if identity in self._calls:
            return self._calls[identity]
        if reports(kind):
            step = self._of_reply(count)
            self._empty = False
            if identity:
                self._calls[identity] = step
            return step
        if kind not in ("guardian_assessment", "sub_agent_activity"):
            self._close()
        return count

    def _turn_end(self, payload: dict[str, Json], count: int) -> int:
        reply, text = self._reply, as_str(payload.get("last_agent_message"))
        self._close()
        # The event repeats the last text: it joins that step, unless it reports an error.
        repeats = hash(text) == self.last_text and not payload.get("error")
        return reply if repeats and reply is not None else count

    def _completed(self, item: dict[str, Json], count: int) -> int:
        kind = item_type(item)
        if kind == "UserMessage":
            return self._of_user("event", [text_of(item)], count)
        known = self._calls.get(call_id(item) or as_str(item.get("id")))
        if known is not None:
            return known
        next_reply = self._answered and kind in ("AgentMessage", "Reasoning", "Plan")
        return self._of_reply(count) if self._reply is None or next_reply else self._reply

    def _count(self, info: dict[str, Json], count: int) -> int:
        total, known = info.get("total_token_usage"), self._counted
        # A repeated count belongs to the step that it was first written for.
        if not isinstance(total, dict) or total == known[0]:
            return known[1] if known[1] >= 0 else max(self._last, 0)
        step = self._of_reply(count)
        self._counted_first = self._empty
        self._counted, self.total = (total, step), total
        return step

    def _of_reply(self, count: int, *, goes_on: bool = False) -> int:
        """Return the reply's step; a new one if none is open or (unless `goes_on`) it was answered."""
        if self._reply is None or (self._answered and not goes_on):
            self._reply, self._empty, self._counted_first = count, True, False
        self._answered = False
        return self._reply

    def _of_user(self, source: str, texts: list[str], count: int) -> int:
        """Return the step of a user's message, which both an item and an event record."""
        keys = {hash(text) for text in texts if text}
        step, sources = next(
            (self._user_texts[key] for key in keys if key in self._user_texts), (count, set[str]())
        )
        # A user may repeat a message: a second item with the same text is a separate message.
        if source in sources or not sources:
            self._close()
            step, sources = count, set()
            self._user_texts.clear()
        sources.add(source)
        self._user_texts.update(dict.fromkeys(keys, (step, sources)))
        return step

    def _close(self) -> None:
        self._reply, self._empty, self._counted_first, self._answered = None, True, False, False


class _Reader(RunReader):
    format = "codex"
    in_lines = True

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._placing = _Placing()
        self._meta: dict[str, Json] = {}
        self._models: list[tuple[int, str]] = []
        self._ended = ""
        self._tally = Tally()
        self._links: set[str] = set()

    def place(self, fields: Json, step_count: int) -> int:
        record = shallow(fields)
        envelope, kind, payload = unwrapped(record)
        self._learn(envelope, kind, payload, record, step_count)
        return self._placing.place(envelope, kind, payload, step_count)

    def had_a_step(self, fields: Json) -> bool:
        return "record_type" in as_dict(fields)

    def _learn(
        self, envelope: str, kind: str, payload: dict[str, Json], record: dict[str, Json], count: int
    ) -> None:
        if envelope == "session_meta" and not self._meta:
            self._meta = payload
        model = as_str(payload.get("model")) if envelope == "turn_context" else ""
        last = self._models[-1][1] if self._models else ""
        if model and model != last:
            self._models.append((count, model))
        if kind in ENDS:
            failed = "error" if payload.get("error") else ""
            self._ended = joined([kind, as_str(first(payload, "reason")) or failed], ": ")
        elif kind in ("task_started", "turn_started", "user_message"):
            self._ended = ""
        self._links.update(links_of(payload))
        self._tally.add_time(when(record.get("timestamp")))

    def user_text(self, record: dict[str, Json]) -> str:
        envelope, kind, payload = unwrapped(record)
        if envelope == "event_msg" and kind == "user_message":
            return as_str(payload.get("message"))
        item = as_dict(payload.get("item"))
        if kind == "item_completed" and item_type(item) == "UserMessage":
            return text_of(item)
        is_message = envelope == "response_item" and kind == "message"
        if not is_message or payload.get("role") != "user":
            return ""
        return request_in(_texts(payload))

    def _learn_head(self) -> None:
        """Read the beginning of the file for the header of a run that is not indexed."""
        for record in self.probe.lines or [self.probe.object]:
            envelope, _, payload = unwrapped(record)
            if envelope == "session_meta" and not self._meta:
                self._meta = payload
            elif envelope == "turn_context" and not self._models:
                self._models = [(0, as_str(payload.get("model")))]

    def header(self) -> Run:
        if not self._meta:
            self._learn_head()
        meta, tally = Record(self._meta), self._tally
        parent = as_str(
            meta.get("source", "subagent", "thread_spawn", "parent_thread_id") or meta.get("parent_thread_id")
        )
        known: dict[str, Json] = {key: meta.word(key) for key in _HEADING}
        known["git"] = {key: as_str(value) for key, value in meta.inner("git").members.items()}
        known["parent"] = parent
        before = meta.word("history_base", "thread_id")
        others = [f"{thread}.jsonl" for thread in (before, parent) if thread]
        of_agent = meta.inner("source").has("subagent")
        return Run(
            self.format,
            meta.word("cli_version"),
            id=meta.first_word("id", "session_id"),
            task=self.request,
            model=self._models[-1][1] if self._models else "",
            agent="codex side agent" if of_agent else "codex",
            exit_status=self._ended,
            tokens=tokens_of(self._placing.total),
            started=first_known((tally.started, meta.time("timestamp"))),
            duration_s=tally.duration_s or None,
            links=tuple(dict.fromkeys([*others, *sorted(self._links)])),
            extra=Record(known).kept(*known),
            warnings=(f"The beginning is in the session {before}.",) if before else (),
            derived=frozenset({"task", "duration_s"}),
        )

    def completed(self, value: Json) -> Json:
        """Return a record whose output is decoded if it is the JSON text of an object with metadata."""
        payload = as_dict(as_dict(value).get("payload"))
        output = payload.get("output")
        if not isinstance(output, str) or not is_output(as_str(payload.get("type"))):
            return value
        inner = parsed_object(output)
        if inner is None or "output" not in inner or "metadata" not in inner:
            return value
        return {**as_dict(value), "payload": {**payload, "output": inner}}

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        from gistpoint.sessions.formats.codex._steps import other_step, reply_step

        records = [(*unwrapped(raw.value), as_dict(raw.value)) for raw in raws]
        if any(is_of_model(envelope, kind, payload) for envelope, kind, payload, _ in records):
            at = bisect_right(self._models, (index, "\U0010ffff")) - 1
            return reply_step(index, raws, records, self._models[at][1] if at >= 0 else "")
        return other_step(index, raws, records)


class Codex(SingleRun):
    """Recognised by lines of a known type with a `payload`, or by other records of earlier versions."""

    name = "codex"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("payload.rate_limits", "payload.info"), "counts and limits of the provider; the tokens are shown"
        ),
        NotShown(
            (
                "payload.internal_chat_message_metadata_passthrough",
                "payload.metadata",
                "payload.status",
                "payload.phase",
                "payload.role",
                "payload.process_id",
                "payload.source",
            ),
            "how a reply was sent and carried out",
        ),
        NotShown(("payload.parsed_cmd", "payload.item.parsed_cmd"), "what Codex took a command for"),
        NotShown(("payload.dynamic_tools",), "what the model could call, not what it called"),
        NotShown(
            ("payload.replacement_history.role", "payload.replacement_history.phase"),
            "the roles of the messages that replaced the context; their text is shown",
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        records = [Record(line) for line in probe.lines[:20] or [probe.object]]
        if any(map(_is_enveloped, records)):
            return 0.95
        opening = records[0]
        begun = opening.has_all("id", "timestamp", "instructions") and not opening.has("type", "messages")
        return 0.92 if begun or any(record.has("record_type") for record in records) else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the session."""
        return _Reader(probe)


def _is_enveloped(record: Record) -> bool:
    return record.word("type") in ENVELOPES and isinstance(record.get("payload"), dict)


FORMAT = Codex()
