"""Runs and steps in the form that all screens, searches and exports use, whatever the recorded format."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias, Union

Json: TypeAlias = Union[bool, int, float, str, list["Json"], dict[str, "Json"], None]  # noqa: UP007 (recursive)
OWN_FORMAT = "gistpoint"
"""The format of gistpoint's own attempts."""
UNSOLVED = "unsolved"
"""The verdict on a run that does not count as solved."""


class Actor(StrEnum):
    """The actor in a step."""

    AGENT = "agent"
    PERSON = "person"
    """A person under test, with the agent's tools."""
    USER = "user"
    """The person or program that assigned the task or answered the agent."""
    SYSTEM = "system"
    ENVIRONMENT = "environment"


class StepKind(StrEnum):
    """The purpose of a step, shown as a glyph."""

    SYSTEM = "system"
    TASK = "task"
    MESSAGE = "message"
    VIEW = "view"
    SEARCH = "search"
    EDIT = "edit"
    EXECUTE = "execute"
    TEST = "test"
    SUBMIT = "submit"
    TOOL = "tool"
    """A call to another tool."""
    DELEGATE = "delegate"
    CONTEXT = "context"
    """The context was condensed, summarised or copied."""
    SCORE = "score"
    STATE = "state"
    """Bookkeeping of the harness, which is rarely of interest."""
    PAUSE = "pause"
    NOTE = "note"
    ERROR = "error"
    END = "end"
    UNKNOWN = "unknown"
    """An event that the format's module does not know; it is shown raw."""
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The position of a raw record; `member` is the archive's member, or empty for a plain file."""

    member: str
    start: int
    end: int

    @property
    def length(self) -> int:
        """The size of the record in bytes."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Escaped:
    """The inside of a string literal with its escapes as written: part of an argument shown as JSON."""

    source: ByteRange


class CutText(str):
    """The beginning of a string that is too long to be decoded; `pieces`, concatenated, are the whole string.

    A piece is a string, or a JSON literal in a file, quotes included.
    """

    pieces: tuple[str | ByteRange | Escaped, ...]

    def __new__(cls, head: str, *pieces: str | ByteRange | Escaped) -> CutText:
        """Make a string that shows `head` and represents the concatenated `pieces`."""
        text = super().__new__(cls, head)
        text.pieces = pieces
        return text

    @property
    def length(self) -> int:
        """The size of the whole text as written: bytes for parts in a file, characters for other parts."""
        sizes = (
            (
                piece.source.length
                if isinstance(piece, Escaped)
                else piece.length
                if isinstance(piece, ByteRange)
                else len(piece)
            )
            for piece in self.pieces
        )
        return sum(sizes)


def concatenated(texts: Iterable[str]) -> str:
    """Concatenate strings; the result is cut if one of them is."""
    parts = list(texts)
    if CutText not in map(type, parts):
        return "".join(parts)
    heads = (f"{part}\n[... cut here]\n" if isinstance(part, CutText) else part for part in parts)
    return CutText(
        "".join(heads),
        *(
            piece
            for part in parts
            for piece in (part.pieces if isinstance(part, CutText) else (part,))
            if piece
        ),
    )


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a reply or of a run; `prompt` includes cached tokens. Unknown counts are None."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    reasoning: int | None = None

    def __bool__(self) -> bool:
        return any(value is not None for value in self._counts)

    def __add__(self, more: Tokens) -> Tokens:
        """Add each count to the other's; a count that is None in both stays None."""
        pairs = zip(self._counts, more._counts, strict=True)
        return Tokens(*(one if other is None else (one or 0) + other for one, other in pairs))

    @property
    def _counts(self) -> tuple[int | None, ...]:
        return self.prompt, self.completion, self.cached, self.reasoning


@dataclass(frozen=True, slots=True)
class RunCall:
    """One call to a tool: `arguments` as recorded, `parsed` if they are a JSON object."""

    id: str
    tool: str
    arguments: str = ""
    parsed: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The result of the call `call_id`, which is empty if the format pairs by position."""

    call_id: str = ""
    text: str = ""
    is_error: bool | None = None
    returncode: int | None = None
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A change to one file that a step's arguments or results contain.

    If `old` is None, `new` is the whole file; if `new` is None, only the path is known.
    """

    path: str
    old: str | None = None
    new: str | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """A string of a raw record or of the run's file, and the keys that lead to it, joined with dots."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class NotShown:
    """Members of raw records that no step shows, as paths of keys joined with dots, and the reason.

    With `of_run`, the paths lead to members of the run's own object, outside its records.
    """

    names: tuple[str, ...]
    reason: str
    of_run: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One turn: thought, text, calls and their results.

    Times are seconds since the epoch, UTC. `derived` names the fields that were inferred and not recorded.
    `raw` is the first of `records`, the raw records that the step was made from.
    """

    index: int
    actor: Actor
    kind: StepKind
    raw: ByteRange
    records: tuple[ByteRange, ...] = ()
    label: str = ""
    """The format's own name for the event."""
    thought: str = ""
    text: str = ""
    calls: tuple[RunCall, ...] = ()
    results: tuple[Result, ...] = ()
    started: float | None = None
    ended: float | None = None
    asked: float | None = None
    """The time of the request for the reply; None if the format records only when the reply arrived."""
    replied: float | None = None
    """The time when the last part of the reply arrived; None if equal to `started`, or without a reply."""
    tokens: Tokens = field(default_factory=Tokens)
    cost: float | None = None
    """The cost in US dollars; None if it is not recorded."""
    model: str = ""
    state: Mapping[str, Json] = field(default_factory=dict)
    diff: str | None = None
    """A diff of this step's own changes, if recorded."""
    diff_so_far: str | None = None
    """A diff of all changes up to this step, if recorded."""
    edits: tuple[FileEdit, ...] = ()
    flags: frozenset[str] = frozenset()
    derived: frozenset[str] = frozenset()
    links: tuple[str, ...] = ()
    """Runs that this step started: `#ID` in the same file, or the name of another file in its folder."""
    id: str = ""
    """The format's own identifier of the step, stable when steps are added."""
    naive: bool = False
    """Whether the times were written without a time zone: they count as UTC, and are shown as written."""
    also: tuple[Noted, ...] = ()
    """Strings of the raw records that no other field contains."""

    def result_of(self, call: RunCall) -> Result | None:
        """Return the result paired with `call`; None if there is none, or if the call has no id."""
        return next((result for result in self.results if call.id and result.call_id == call.id), None)


@dataclass(frozen=True, slots=True)
class Run:
    """The header of a run, known without reading its steps. Facts that are not recorded are None or empty."""

    format: str
    format_version: str = ""
    id: str = ""
    task: str = ""
    model: str = ""
    agent: str = ""
    actor: Actor = Actor.AGENT
    verdict: str = ""
    """`solved`, `solved, to be read`, `unsolved`, the format's own verdict, or empty."""
    suspicious: tuple[str, ...] = ()
    """The reasons why somebody must read a pass before it counts as solved."""
    confirmation: str = ""
    """The outcome of confirming a pass, in a few words; empty if there is none."""
    score: float | None = None
    exit_status: str = ""
    submission: str = ""
    submissions: int | None = None
    tokens: Tokens = field(default_factory=Tokens)
    cost: float | None = None
    duration_s: float | None = None
    started: float | None = None
    step_count: int | None = None
    """The number of steps; None until the index is complete, if the format does not record it."""
    prompt: str = ""
    """The task as given to the solver, if no step contains it."""
    links: tuple[str, ...] = ()
    extra: Mapping[str, Json] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    derived: frozenset[str] = frozenset()
    also: tuple[Noted, ...] = ()
    """Strings of the run's file that neither its records nor another field contains."""
    not_shown: tuple[NotShown, ...] = ()
    """Members of the raw records that the format's steps do not show."""


def settled_verdict(run: Run, accepted: bool | None) -> str:
    """Return the verdict on a run; `accepted` is the reviewers' ruling on its pass, or None.

    A pass that another program recorded without suspicion keeps its recorded verdict.
    """
    if not (run.suspicious or run.format == OWN_FORMAT):
        return run.verdict
    from gistpoint.core.attempts.state import AttemptResult, result_of

    if run.verdict not in (AttemptResult.SOLVED, AttemptResult.TO_BE_READ):
        return run.verdict
    result = result_of(True, run.suspicious, accepted)
    return result.value if result.passes else UNSOLVED


class TextScope(StrEnum):
    """The part of a step that contains a string, or the header of its run."""

    THOUGHT = "thought"
    TEXT = "text"
    CALL = "call"
    RESULT = "result"
    DIFF = "diff"
    ALSO = "also"
    """Strings of the raw records that no other field contains."""
    HEADER = "header"
    """Strings of a run's file that belong to no step."""


class StepTexts(NamedTuple):
    """The text fields of a step to search, in the form of `parts_of`, and the tools of its calls."""

    parts: Sequence[tuple[TextScope, int, str]]
    tools: Sequence[str]


def step_texts(thought: str, text: str, calls: Sequence[RunCall], results: Iterable[str]) -> StepTexts:
    """Return the text fields of a step that has neither a diff nor text outside its other fields."""
    parts = [(TextScope.THOUGHT, 0, thought), (TextScope.TEXT, 0, text)]
    parts += [(TextScope.CALL, number, call_text(call)) for number, call in enumerate(calls)]
    parts += [(TextScope.RESULT, number, result) for number, result in enumerate(results)]
    return StepTexts(parts, [call.tool for call in calls])


def parts_of(step: Step) -> Iterator[tuple[TextScope, int, str]]:
    """Yield each text field of a step in display order: its scope, its number within that scope, its text."""
    yield TextScope.THOUGHT, 0, step.thought
    yield TextScope.TEXT, 0, step.text
    for number, call in enumerate(step.calls):
        yield TextScope.CALL, number, call_text(call)
    for number, result in enumerate(step.results):
        yield TextScope.RESULT, number, result.text
    yield TextScope.DIFF, 0, step.diff or ""
    yield TextScope.ALSO, 0, also_text(step)


def call_text(call: RunCall) -> str:
    """Return a call's arguments as text.

    Each member of an object follows its name, as JSON unless it is a string. Arguments that are not an object
    are returned as recorded.
    """
    if not call.parsed:
        return call.arguments
    if len(call.parsed) == 1:
        ((key, value),) = call.parsed.items()
        return concatenated((f"{key}: ", value if isinstance(value, str) else json_text(value)))
    lines: list[str] = []
    for key, value in call.parsed.items():
        lines += ["\n" if lines else "", f"{key}: ", value if isinstance(value, str) else json_text(value)]
    return concatenated(lines)


def also_text(step: Step) -> str:
    """Return the strings of the raw records that no other field contains, each with its path."""
    lines: list[str] = []
    for noted in step.also:
        lines += ["\n" if lines else "", f"{noted.path}: ", noted.text]
    return concatenated(lines)


TOO_DEEP = "[nested too deeply to be shown; the file contains it]"


def json_text(value: Json, indent: int | None = 2) -> str:
    """Return a value as JSON, or a note that it is nested too deeply; cut strings stay cut."""
    try:
        if not _has_cut(value):
            return json.dumps(value, ensure_ascii=False, indent=indent, default=str)
        return _json_with_cuts(value, indent)
    except RecursionError:
        return TOO_DEEP


def _json_with_cuts(value: Json, indent: int | None) -> str:
    cut: dict[str, CutText] = {}
    nonce = os.urandom(8).hex()
    shown = json.dumps(_marked(value, cut, nonce), ensure_ascii=False, indent=indent, default=str)
    pieces: list[str] = []
    for piece in re.split(rf"({nonce}\d+)", shown):
        if piece in cut:
            literals = [Escaped(source) for source in cut[piece].pieces if isinstance(source, ByteRange)]
            pieces.append(CutText(json.dumps(str(cut[piece]), ensure_ascii=False)[1:-1], *literals))
        else:
            pieces.append(piece)
    return concatenated(pieces)


def _has_cut(value: Json) -> bool:
    if isinstance(value, dict):
        return any(_has_cut(item) for item in value.values())
    return any(_has_cut(item) for item in value) if isinstance(value, list) else isinstance(value, CutText)


def _marked(value: Json, cut: dict[str, CutText], nonce: str) -> Json:
    """Return a value with a mark in place of each cut string, which is stored in `cut` under that mark."""
    if isinstance(value, CutText):
        cut[f"{nonce}{len(cut)}"] = value
        return f"{nonce}{len(cut) - 1}"
    if isinstance(value, list):
        return [_marked(item, cut, nonce) for item in value]
    if isinstance(value, dict):
        return {key: _marked(item, cut, nonce) for key, item in value.items()}
    return value
