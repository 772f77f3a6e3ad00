"""The output of `codex exec --json`: one event per line; a call and its result are one item, told at both ends.

It holds no prompt, times, model or costs.
"""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.sessions.formats.calls import edits_of, kind_of
from gistpoint.sessions.records.building import StepBuilder, any_failed
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun, unknown_step
from gistpoint.sessions.records.model import (
    Actor,
    FileEdit,
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
from gistpoint.sessions.records.values import (
    as_dict,
    as_int,
    as_list,
    as_str,
    as_text,
    compact,
    dumped,
    first,
    joined,
    objects,
)

_SAID = frozenset(("agent_message", "assistant_message", "reasoning", "plan"))
_FAILED = frozenset(("failed", "declined"))
_NOT_ASKED = frozenset(
    ("id", "type", "status", "aggregated_output", "exit_code", "result", "error", "agents_states", "results")
)
"""Members of an item that say how a call went, not what was called."""


def _parts(value: Json) -> tuple[str, str, dict[str, Json]]:
    """Return the type of an event, and the type and the members of its item."""
    event = as_dict(value)
    item = as_dict(event.get("item"))
    return as_str(event.get("type")), as_str(first(item, "type", "item_type")), item


class _Reader(RunReader):
    format = "codex-exec"
    in_lines = True

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._items: dict[str, int] = {}
        self._reply: int | None = None
        self._answered = False
        self._thread = ""
        self._usage: dict[str, Json] = {}
        self._ended = ""

    def place(self, fields: Json, step_count: int) -> int:
        event, kind, item = _parts(fields)
        if not event.startswith("item."):
            self._learn(event, as_dict(fields))
            return step_count
        identity = as_str(item.get("id")) or as_str(as_dict(fields).get("item_id"))
        if kind == "error":
            return step_count
        known = self._items.get(identity)
        if known is not None and not (kind == "todo_list" and event == "item.updated"):
            self._answered = self._answered or (event == "item.completed" and kind not in (*_SAID, "todo_list"))
            return known
        if self._reply is None or self._answered:
            self._reply, self._answered = step_count, False
        self._items[identity] = self._reply
        self._answered = event == "item.completed" and kind not in (*_SAID, "todo_list")
        return self._reply

    def _learn(self, event: str, record: dict[str, Json]) -> None:
        self._thread = self._thread or as_str(record.get("thread_id"))
        self._reply = None
        if event == "turn.started":
            self._items.clear()  # the ids of items begin again with each turn
        if event.startswith("turn.") or event == "error":
            self._ended = "" if event == "turn.started" else event
            self._usage = as_dict(record.get("usage")) or self._usage

    def header(self) -> Run:
        for record in () if self._thread else self.probe.lines:
            self._thread = self._thread or as_str(record.get("thread_id"))
        return Run(
            self.format,
            id=self._thread,
            agent="codex",
            exit_status=self._ended,
            tokens=_tokens(self._usage),
            warnings=("The prompt, times and the model are not recorded.",),
        )

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        event, kind, item = _parts(raws[0].value)
        if event.startswith("item.") and kind != "error":
            return _reply(index, raws)
        return _other(index, raws, event, as_dict(raws[0].value), item)


def _tokens(usage: dict[str, Json]) -> Tokens:
    """Return the tokens of a turn; Codex counts on from turn to turn, so that the last count is the run's."""
    names = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_output_tokens")
    return Tokens(*(as_int(usage.get(name)) for name in names))


def _reply(index: int, raws: Sequence[Raw]) -> Step:
    items: dict[str, tuple[str, dict[str, Json]]] = {}
    for raw in raws:
        event, kind, item = _parts(raw.value)
        identity = as_str(item.get("id"))
        if kind and (identity not in items or event != "item.started"):
            items[identity] = (event, {**item, "type": kind})
    told = [item for _, item in items.values()]
    calls = tuple(_call(item) for item in told if item["type"] not in _SAID)
    results = tuple(
        result
        for event, item in items.values()
        if item["type"] not in _SAID and (result := _result(event, item)) is not None
    )
    made = [item for item in told if item.get("status") not in _FAILED]
    changes = [change for item in made for change in objects(item.get("changes"))]
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(calls), "assistant")
        .thought(*(as_text(item.get("text")) for item in told if item["type"] == "reasoning"))
        .text(*(as_text(item.get("text")) for item in told if item["type"] in _SAID - {"reasoning"}))
        .calls(calls)
        .results(results)
        .edits(tuple(FileEdit(as_str(change.get("path"))) for change in changes) or edits_of(calls))
        .flag_if(any_failed(results), "error")
        .derived("kind")
        .links(f"{as_str(thread)}.jsonl" for item in told for thread in as_list(item.get("receiver_thread_ids")))
        .build()
    )


def _call(item: dict[str, Json]) -> RunCall:
    kind = as_str(item.get("type")).removesuffix("_tool_call")
    asked = {key: value for key, value in item.items() if key not in _NOT_ASKED}
    named = as_str(item.get("tool"))
    if named and isinstance(asked.get("arguments"), dict | str):
        server, arguments = as_str(item.get("server")), asked["arguments"]
        name = f"{server}.{named}" if server else named
        return RunCall(as_str(item.get("id")), name, *_written(arguments))
    return RunCall(as_str(item.get("id")), named or kind, *_written(asked))


def _written(arguments: Json) -> tuple[str, dict[str, Json] | None]:
    return (compact(arguments), arguments) if isinstance(arguments, dict) else (as_text(arguments), None)


def _result(event: str, item: dict[str, Json]) -> Result | None:
    """Return what came of a call; None while it runs, and for a list of things to do."""
    status, failure = as_str(item.get("status")), item.get("error")
    if event != "item.completed" or item["type"] == "todo_list":
        text = as_text(item.get("aggregated_output"))
        return Result(as_str(item.get("id")), text) if text else None
    outcome = as_dict(item.get("result"))
    text = joined(
        [
            as_text(item.get("aggregated_output")),
            as_text(outcome.get("content") or item.get("result")),
            as_text(as_dict(failure).get("message") or failure),
            dumped(first(item, "agents_states", "results")),
        ]
    )
    failed = True if status in _FAILED or failure else None
    return Result(as_str(item.get("id")), text or status, failed, as_int(item.get("exit_code")))


def _other(index: int, raws: Sequence[Raw], event: str, record: dict[str, Json], item: dict[str, Json]) -> Step:
    known = {
        "thread.started": StepKind.STATE,
        "turn.started": StepKind.STATE,
        "turn.completed": StepKind.END,
        "turn.failed": StepKind.ERROR,
        "error": StepKind.ERROR,
        "item.completed": StepKind.NOTE,
    }
    kind = known.get(event)
    if kind is None:
        return unknown_step(index, raws, event or "record", dumped(raws[0].value))
    text = joined(
        as_text(value)
        for value in (
            record.get("message"),
            as_dict(record.get("error")).get("message") or record.get("error"),
            item.get("message"),
            record.get("thread_id"),
        )
    )
    return (
        StepBuilder(index, raws, Actor.SYSTEM, kind, event)
        .text(text)
        .spent(_tokens(as_dict(record.get("usage"))))
        .flag_if(kind is StepKind.ERROR, "error")
        .derived("kind")
        .build()
    )


class CodexExec(SingleRun):
    """Recognised by events named `thread.`, `turn.` and `item.`."""

    name = "codex-exec"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (NotShown(("item.status",), "how an item stands; the result and its flag say it"),)

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        for record in probe.lines[:20]:
            family, _, what = as_str(record.get("type")).partition(".")
            if what and family in ("thread", "turn", "item") and {"thread_id", "item", "usage"} & record.keys():
                return 0.95
        return 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Open the output."""
        return _Reader(probe)


FORMAT = CodexExec()
