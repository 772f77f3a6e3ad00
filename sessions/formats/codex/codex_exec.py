"""The output of `codex exec --json`: one event per line, where one item is both a call and its result.

The item is written when the call begins and when it ends; a to-do list is also written when it changes.
Prompts, times, models and costs are not recorded.
"""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.sessions.formats.codex._records import tokens_of
from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.records.building import StepBuilder, any_failed, error_if
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
from gistpoint.sessions.records.record import Record, of_type, texts_of, words_of
from gistpoint.sessions.records.values import (
    as_dict,
    as_str,
    as_text,
    compact,
    dumped,
    joined,
)

_TEXT_ITEMS = frozenset(("agent_message", "assistant_message", "reasoning", "plan"))
_NO_CALLS = _TEXT_ITEMS | {"todo_list"}
_FAILED = frozenset(("failed", "declined"))
_NOT_ASKED = frozenset(
    ("id", "type", "status", "aggregated_output", "exit_code", "result", "error", "agents_states", "results")
)
"""Members of an item that describe the outcome of a call, not the call itself."""


def _parts(value: Json) -> tuple[str, str, Record]:
    """Return the type of an event, the type of its item, and the item."""
    event = Record(value)
    item = event.inner("item")
    return event.word("type"), item.first_word("type", "item_type"), item


def _ends_a_call(event: str, kind: str) -> bool:
    return event == "item.completed" and kind not in _NO_CALLS


class _Reader(RunReader):
    format = "codex-exec"
    in_lines = True

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._items: dict[str, int] = {}
        self._reply: int | None = None
        self._answered = False
        self._thread = ""
        self._spent = _Spent()
        self._ended = ""

    def place(self, fields: Json, step_count: int) -> int:
        event, kind, item = _parts(fields)
        if not event.startswith("item."):
            self._learn(event, as_dict(fields), step_count)
            return step_count
        if kind == "error":
            return step_count
        identity = item.word("id") or Record(fields).word("item_id")
        known = self._items.get(identity)
        # Each update of the to-do list is a separate change, although the item is the same.
        changes_plan = kind == "todo_list" and event == "item.updated"
        if known is not None and not changes_plan:
            self._answered = self._answered or _ends_a_call(event, kind)
            return known
        if self._reply is None or self._answered:
            self._reply, self._answered = step_count, False
        self._items[identity] = self._reply
        self._answered = _ends_a_call(event, kind)
        return self._reply

    def _learn(self, event: str, record: dict[str, Json], step: int) -> None:
        if event == "thread.started":
            self._spent.begin(as_str(record.get("thread_id")))
        self._thread = self._thread or as_str(record.get("thread_id"))
        self._reply = None
        if event == "turn.started":
            self._items.clear()  # the ids of items start again with each turn
        if event.startswith("turn.") or event == "error":
            self._ended = "" if event == "turn.started" else event
            self._spent.add(step, tokens_of(as_dict(record.get("usage"))))

    def header(self) -> Run:
        for record in () if self._thread else self.probe.lines:
            self._thread = self._thread or as_str(record.get("thread_id"))
        return Run(
            self.format,
            id=self._thread,
            agent="codex",
            exit_status=self._ended,
            tokens=self._spent.all,
            warnings=("The prompt, times and the model are not recorded.",),
        )

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        event, kind, item = _parts(raws[0].value)
        if event.startswith("item.") and kind != "error":
            return _reply(index, raws)
        return _other(index, raws, event, Record(raws[0].value), item, self._spent.of(index))


class _Spent:
    """The tokens of each turn; Codex adds them up from turn to turn of a thread."""

    def __init__(self) -> None:
        self.all = Tokens()
        self._thread = ""
        self._before = Tokens()
        self._turns: dict[int, Tokens] = {}

    def begin(self, thread: str) -> None:
        """Start a new count if this is another thread."""
        if thread != self._thread:
            self._thread, self._before = thread, Tokens()

    def add(self, step: int, so_far: Tokens) -> None:
        """Add the tokens of a turn: the difference between `so_far`, if known, and the previous counts.

        If a count is lower than the previous one, Codex has begun to count again.
        """
        if not so_far:
            return
        own = _difference(so_far, self._before) or so_far
        self._before = so_far
        self._turns[step] = own
        self.all += own

    def of(self, step: int) -> Tokens:
        """Return the tokens of the turn that a step ends."""
        return self._turns.get(step, Tokens())


def _difference(later: Tokens, earlier: Tokens) -> Tokens | None:
    """Return how much greater the later counts are; None if one is lower."""
    names = ("prompt", "completion", "cached", "reasoning")
    counts = {name: (getattr(later, name), getattr(earlier, name) or 0) for name in names}
    if any(now is not None and now < before for now, before in counts.values()):
        return None
    return Tokens(**{name: None if now is None else now - before for name, (now, before) in counts.items()})


def _reply(index: int, raws: Sequence[Raw]) -> Step:
    last_events = _items(raws)
    items = [item for _, item in last_events.values()]
    calls = tuple(_call(item) for item in items if item.word("type") not in _TEXT_ITEMS)
    results = [result for event, item in last_events.values() if (result := _result(event, item)) is not None]
    made = [item for item in items if item.word("status") not in _FAILED]
    changed = [path for item in made for path in words_of(item.objects("changes"), "path")]
    return (
        StepBuilder(index, raws, Actor.AGENT, kind_of(calls), "assistant")
        .thought(*texts_of(of_type(items, "reasoning"), "text"))
        .text(*texts_of(of_type(items, *(_TEXT_ITEMS - {"reasoning"})), "text"))
        .calls(calls)
        .results(results)
        .edits(map(FileEdit, changed) if changed else edits_of(calls))
        .flag_if(any_failed(results), "error")
        .derived("kind")
        .links(f"{thread}.jsonl" for item in items for thread in item.words("receiver_thread_ids"))
        .build()
    )


def _items(raws: Sequence[Raw]) -> dict[str, tuple[str, Record]]:
    """Return each item's last event, which repeats the whole item, and the item, by the item's id."""
    items: dict[str, tuple[str, Record]] = {}
    for raw in raws:
        event, kind, item = _parts(raw.value)
        identity = item.word("id")
        is_newer = identity not in items or event != "item.started"
        if kind and is_newer:
            items[identity] = (event, Record({**item.members, "type": kind}))
    return items


def _call(item: Record) -> RunCall:
    asked = item.without(*_NOT_ASKED)
    named = item.word("tool")
    if named and isinstance(asked.get("arguments"), dict | str):
        # A tool of an MCP server; the arguments of other items are members of the item.
        return RunCall(
            item.word("id"), joined([item.word("server"), named], "."), *_written(asked["arguments"])
        )
    return RunCall(item.word("id"), named or item.word("type").removesuffix("_tool_call"), *_written(asked))


def _written(arguments: Json) -> tuple[str, dict[str, Json] | None]:
    return (compact(arguments), arguments) if isinstance(arguments, dict) else (as_text(arguments), None)


def _result(event: str, item: Record) -> Result | None:
    """Return the result of a call; None for other items, and for a call without output so far."""
    kind, status, failure = item.word("type"), item.word("status"), item.get("error")
    if kind in _TEXT_ITEMS:
        return None
    if event != "item.completed" or kind == "todo_list":
        text = item.text("aggregated_output")
        return Result(item.word("id"), text) if text else None
    shown = [
        item.text("aggregated_output"),
        as_text(item.get("result", "content") or item.get("result")),
        as_text(item.get("error", "message") or failure),
        dumped(item.first("agents_states", "results")),
    ]
    failed = error_if(status in _FAILED or failure)
    return Result(item.word("id"), joined(shown) or status, failed, item.whole("exit_code"))


_KINDS = {
    "thread.started": StepKind.STATE,
    "turn.started": StepKind.STATE,
    "turn.completed": StepKind.END,
    "turn.failed": StepKind.ERROR,
    "error": StepKind.ERROR,
    "item.completed": StepKind.NOTE,
}


def _other(index: int, raws: Sequence[Raw], event: str, record: Record, item: Record, spent: Tokens) -> Step:
    kind = _KINDS.get(event)
    if kind is None:
        return unknown_step(index, raws, event or "record", dumped(raws[0].value))
    failure = as_text(record.get("error", "message") or record.get("error"))
    return (
        StepBuilder(index, raws, Actor.SYSTEM, kind, event)
        .text(record.text("message"), failure, item.text("message"), record.text("thread_id"))
        .spent(spent)
        .flag_if(kind is StepKind.ERROR, "error")
        .derived("kind")
        .build()
    )


class CodexExec(SingleRun):
    """Recognised by events whose types begin with `thread.`, `turn.` or `item.`."""

    name = "codex-exec"
    unique_ids = True
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("item.status",), "the state of an item; the result and its flag show it"),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        return 0.95 if any(map(_is_event, probe.first_lines())) else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the output."""
        return _Reader(probe)


def _is_event(record: Record) -> bool:
    family, _, what = record.word("type").partition(".")
    named = bool(what) and family in ("thread", "turn", "item")
    return named and record.has("thread_id", "item", "usage")


FORMAT = CodexExec()
