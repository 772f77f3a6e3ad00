"""Sessions of Codex CLI (`rollout-*.jsonl`), from the bare items of 2025 to those of paginated histories.

The model's words are in `response_item` records. Most `event_msg` records repeat one of those: they join its step and
add only what is new in them, such as an exit code.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from gistpoint.sessions.formats._codex_records import (
    ENDS,
    ENVELOPES,
    REPLIES,
    call_id,
    is_call,
    is_output,
    is_said,
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
from gistpoint.sessions.records.requests import request_in
from gistpoint.sessions.records.values import (
    as_dict,
    as_str,
    as_text,
    compact,
    first,
    is_deep,
    joined,
    objects,
    parsed_object,
    when,
)

_HEADING = ("cwd", "originator", "forked_from_id", "agent_role")


class _Placing:
    """Puts records into steps: a reply of the model with its calls, their results, and what mirrors them."""

    def __init__(self) -> None:
        self._reply: int | None = None
        """The step of the reply that is being written."""
        self._answered = False
        self._empty = True
        self._counted_first = False
        self._calls: dict[str, int] = {}
        self._said: dict[int, tuple[int, set[str]]] = {}
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
            step, self._reply = self._reply, None
            return step
        if envelope in ("turn_context", "world_state"):
            self._counted_first = False
            return self._repeated.setdefault(hash(compact(dict(payload))), count)
        self._close()
        return count

    def _item(self, kind: str, payload: dict[str, Json], count: int) -> int:
        if kind == "message" and payload.get("role") != "assistant":
            texts = [as_str(part.get("text")) for part in objects(payload.get("content"))]
            return self._heard("item", [*texts, joined(texts)], count)
        if kind in ("message", "reasoning") or is_call(kind):
            step = self._of_reply(count, goes_on=is_call(kind) and self._counted_first)
            self._empty = False
            for key in ("call_id", "id"):
                if is_call(kind) and payload.get(key):
                    self._calls[as_str(payload[key])] = step
            if kind == "message":
                self.last_text = hash(as_text(payload.get("content")))
            return step
        if is_output(kind):
            self._answered = True
            identity = call_id(payload)
            beside = count if identity or self._reply is None else self._reply
            return self._calls.get(identity, beside)
        self._close()
        return count

    def _event(self, kind: str, payload: dict[str, Json], count: int) -> int:
        if kind == "user_message":
            return self._heard("event", [as_str(payload.get("message"))], count)
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
            reply, text = self._reply, as_str(payload.get("last_agent_message"))
            self._close()
            return reply if reply is not None and hash(text) == self.last_text and not payload.get("error") else count
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

    def _completed(self, item: dict[str, Json], count: int) -> int:
        kind = item_type(item)
        if kind == "UserMessage":
            return self._heard("event", [text_of(item)], count)
        known = self._calls.get(call_id(item) or as_str(item.get("id")))
        if known is not None:
            return known
        if self._reply is None or (self._answered and kind in ("AgentMessage", "Reasoning", "Plan")):
            return self._of_reply(count)
        return self._reply

    def _count(self, info: dict[str, Json], count: int) -> int:
        total, known = info.get("total_token_usage"), self._counted
        if not isinstance(total, dict) or total == known[0]:
            return known[1] if known[1] >= 0 else max(self._last, 0)
        step = self._of_reply(count)
        self._counted_first = self._empty
        self._counted, self.total = (total, step), total
        return step

    def _of_reply(self, count: int, *, goes_on: bool = False) -> int:
        """Return the step of the reply; a new one if the calls of the last one have been answered."""
        if self._reply is None or (self._answered and not goes_on):
            self._reply, self._empty, self._counted_first = count, True, False
        self._answered = False
        return self._reply

    def _heard(self, source: str, texts: list[str], count: int) -> int:
        """Return the step of a user's message, which an item and an event tell."""
        keys = {hash(text) for text in texts if text}
        step, sources = next((self._said[key] for key in keys if key in self._said), (count, set[str]()))
        if source in sources or not sources:
            self._close()
            step, sources = count, set()
            self._said.clear()
        sources.add(source)
        self._said.update(dict.fromkeys(keys, (step, sources)))
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
        record = {} if is_deep(fields) else as_dict(fields)
        envelope, kind, payload = unwrapped(record)
        self._learn(envelope, kind, payload, record, step_count)
        return self._placing.place(envelope, kind, payload, step_count)

    def had_a_step(self, fields: Json) -> bool:
        return "record_type" in as_dict(fields)

    def _learn(self, envelope: str, kind: str, payload: dict[str, Json], record: dict[str, Json], count: int) -> None:
        if envelope == "session_meta" and not self._meta:
            self._meta = payload
        model = as_str(payload.get("model")) if envelope == "turn_context" else ""
        if model and (not self._models or self._models[-1][1] != model):
            self._models.append((count, model))
        if kind in ENDS:
            reason = as_str(first(payload, "reason")) or ("error" if payload.get("error") else "")
            self._ended = f"{kind}: {reason}" if reason else kind
        elif kind in ("task_started", "turn_started", "user_message"):
            self._ended = ""
        self._links.update(links_of(payload))
        self._tally.see(when(record.get("timestamp")))

    def said_by_user(self, record: dict[str, Json]) -> str:
        envelope, kind, payload = unwrapped(record)
        if envelope == "event_msg" and kind == "user_message":
            return as_str(payload.get("message"))
        item = as_dict(payload.get("item"))
        if kind == "item_completed" and item_type(item) == "UserMessage":
            return text_of(item)
        if envelope != "response_item" or kind != "message" or payload.get("role") != "user":
            return ""
        return request_in(as_str(part.get("text")) for part in objects(payload.get("content")))

    def header(self) -> Run:
        if not self._meta:
            for record in self.probe.lines or [self.probe.object]:
                envelope, _, payload = unwrapped(record)
                self._meta = self._meta or (payload if envelope == "session_meta" else {})
                if envelope == "turn_context" and not self._models:
                    self._models = [(0, as_str(payload.get("model")))]
        meta, source = self._meta, self._meta.get("source")
        spawned = as_dict(as_dict(as_dict(source).get("subagent")).get("thread_spawn"))
        parent = as_str(spawned.get("parent_thread_id") or meta.get("parent_thread_id"))
        told: dict[str, Json] = {key: as_str(meta.get(key)) for key in _HEADING}
        told["git"] = {key: as_str(value) for key, value in as_dict(meta.get("git")).items()}
        told["parent"] = parent
        before = as_str(as_dict(meta.get("history_base")).get("thread_id"))
        others = dict.fromkeys([*(f"{thread}.jsonl" for thread in (before, parent) if thread), *sorted(self._links)])
        tally = self._tally
        return Run(
            self.format,
            as_str(meta.get("cli_version")),
            id=as_str(first(meta, "id", "session_id")),
            task=self.request,
            model=self._models[-1][1] if self._models else "",
            agent="codex side agent" if isinstance(source, dict) and "subagent" in source else "codex",
            exit_status=self._ended,
            tokens=tokens_of(self._placing.total),
            started=when(meta.get("timestamp")) if tally.started is None else tally.started,
            duration_s=tally.duration_s or None,
            links=tuple(others),
            extra={key: value for key, value in told.items() if value},
            warnings=(f"The beginning is in the session {before}.",) if before else (),
            derived=frozenset({"task", "duration_s"}),
        )

    def completed(self, value: Json) -> Json:
        payload = as_dict(as_dict(value).get("payload"))
        output = payload.get("output")
        inner = parsed_object(output) if isinstance(output, str) and is_output(as_str(payload.get("type"))) else None
        if inner is None or "output" not in inner or "metadata" not in inner:
            return value
        return {**as_dict(value), "payload": {**payload, "output": inner}}

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        from gistpoint.sessions.formats._codex_steps import other_step, reply_step

        records = [(*unwrapped(raw.value), as_dict(raw.value)) for raw in raws]
        if any(is_said(envelope, kind, payload) for envelope, kind, payload, _ in records):
            at = bisect_right(self._models, (index, "\U0010ffff")) - 1
            return reply_step(index, raws, records, self._models[at][1] if at >= 0 else "")
        return other_step(index, raws, records)


class Codex(SingleRun):
    """Recognised by lines with a `payload` of a known type, or by the bare items of earlier versions."""

    name = "codex"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("payload.rate_limits", "payload.info"), "counts and limits of the provider; the tokens are shown"),
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
            "who said what the context was replaced by; what was said is shown",
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        lines = probe.lines[:20] or [probe.object]
        if any(as_str(record.get("type")) in ENVELOPES and isinstance(record.get("payload"), dict) for record in lines):
            return 0.95
        bare = any("record_type" in record for record in lines)
        begun = {"id", "timestamp", "instructions"} <= lines[0].keys() and "type" not in lines[0]
        return 0.92 if bare or (begun and "messages" not in lines[0]) else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Open the session."""
        return _Reader(probe)


FORMAT = Codex()
