"""Runs and steps as every screen, search and export sees them, whatever format they were recorded in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias, Union

from gistpoint.core.attempts.state import AttemptResult, result_of

Json: TypeAlias = Union[bool, int, float, str, list["Json"], dict[str, "Json"], None]  # noqa: UP007 (recursive)
OWN_FORMAT = "gistpoint"
"""The format of attempts of ours."""
UNSOLVED = "unsolved"
"""The verdict on a run that does not count as solved."""


class Actor(StrEnum):
    """Who acted in a step."""

    AGENT = "agent"
    PERSON = "person"
    """A person under test, with the agent's tools."""
    USER = "user"
    """Whoever set the task or answered the agent."""
    SYSTEM = "system"
    ENVIRONMENT = "environment"


class StepKind(StrEnum):
    """What a step is for, the category that its glyph stands for."""

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
    """A call that is none of the above."""
    DELEGATE = "delegate"
    CONTEXT = "context"
    """The context was condensed, summarised or copied."""
    SCORE = "score"
    STATE = "state"
    """Bookkeeping of the harness: little to read."""
    PAUSE = "pause"
    NOTE = "note"
    ERROR = "error"
    END = "end"
    UNKNOWN = "unknown"
    """An event that the format's module does not know: shown raw."""
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Where a raw record lies: `member` is empty in a plain file, else the member of the archive or the sibling."""

    member: str
    start: int
    end: int

    @property
    def length(self) -> int:
        """Bytes of the record."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Escaped:
    """The inside of a string literal as it is written, escapes and all: part of an argument that is shown as JSON."""

    source: ByteRange


class CutText(str):
    """The beginning of a text that is too long to decode whole; `pieces`, one after the other, are all of it.

    A piece is a text, or a JSON literal in a file, quotes included.
    """

    pieces: tuple[str | ByteRange | Escaped, ...]

    def __new__(cls, head: str, *pieces: str | ByteRange | Escaped) -> CutText:
        """Mark `head` as the beginning of the text that `pieces` make."""
        text = super().__new__(cls, head)
        text.pieces = pieces
        return text

    @property
    def length(self) -> int:
        """Bytes of the whole, as written."""
        sizes = (piece.source.length if isinstance(piece, Escaped) else piece.length if isinstance(piece, ByteRange)
                 else len(piece) for piece in self.pieces)  # fmt: skip
        return sum(sizes)


def concatenated(texts: Iterable[str]) -> str:
    """Join texts one after the other; what is cut in one of them is cut in the whole, and nothing else."""
    parts = list(texts)
    if not any(isinstance(part, CutText) for part in parts):
        return "".join(parts)
    heads = (f"{part}\n[... cut here]\n" if isinstance(part, CutText) else part for part in parts)
    return CutText(
        "".join(heads),
        *(piece for part in parts for piece in (part.pieces if isinstance(part, CutText) else (part,)) if piece),
    )


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of one reply or of a whole run; `prompt` includes the cached ones. None where nobody counted."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    reasoning: int | None = None

    def __bool__(self) -> bool:
        return any(value is not None for value in (self.prompt, self.completion, self.cached, self.reasoning))


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: `arguments` as recorded, `parsed` where they are a JSON object."""

    id: str
    tool: str
    arguments: str = ""
    parsed: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What came back for the call `call_id` (empty where the format pairs by position); durations in seconds."""

    call_id: str = ""
    text: str = ""
    is_error: bool | None = None
    returncode: int | None = None
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """A change to one file that a step's arguments or results spell out.

    `old` None means that `new` is the whole file; `new` None that only the path is known.
    """

    path: str
    old: str | None = None
    new: str | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """A text of a raw record or of the run's file, and the keys that lead to it, joined by dots."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class NotShown:
    """Members of raw records that no step shows, and why not: paths of keys, joined by dots.

    With `of_run` they are members of the run's own object, beside its records.
    """

    names: tuple[str, ...]
    reason: str
    of_run: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One turn: what was thought and said, the calls made, and their results.

    Times are seconds since the epoch, UTC. `derived` names the fields that were worked out and not recorded.
    `raw` is the first of `records`, the raw records that the step was made from.
    """

    index: int
    actor: Actor
    kind: StepKind
    raw: ByteRange
    records: tuple[ByteRange, ...] = ()
    label: str = ""
    """The format's own name of the event."""
    thought: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    started: float | None = None
    ended: float | None = None
    tokens: Tokens = field(default_factory=Tokens)
    cost: float | None = None
    """US dollars."""
    model: str = ""
    state: Mapping[str, Json] = field(default_factory=dict)
    diff: str | None = None
    """What this step alone changed, where recorded."""
    diff_so_far: str | None = None
    """What all steps up to this one changed, where recorded."""
    edits: tuple[Edit, ...] = ()
    flags: frozenset[str] = frozenset()
    derived: frozenset[str] = frozenset()
    links: tuple[str, ...] = ()
    """Runs that this step started: `#ID` in the same file, else the name of a file beside it."""
    id: str = ""
    """The format's own identity of the step, stable when steps are added."""
    naive: bool = False
    """The times were written without a zone: they count as UTC, and are shown as written."""
    also: tuple[Noted, ...] = ()
    """What the raw records say beside all that."""

    def result_of(self, call: Call) -> Result | None:
        """Return the result paired to `call`."""
        return next((result for result in self.results if call.id and result.call_id == call.id), None)


@dataclass(frozen=True, slots=True)
class Run:
    """The header of a run: what is known of it without looking at its steps. None or empty: not recorded."""

    format: str
    format_version: str = ""
    id: str = ""
    task: str = ""
    model: str = ""
    agent: str = ""
    actor: Actor = Actor.AGENT
    verdict: str = ""
    """`solved`, `solved, to be read`, `unsolved` or empty; else a verdict that is the format's own."""
    suspicious: tuple[str, ...] = ()
    """Why a pass is to be read before it counts as solved."""
    score: float | None = None
    exit_status: str = ""
    submission: str = ""
    submissions: int | None = None
    tokens: Tokens = field(default_factory=Tokens)
    cost: float | None = None
    duration_s: float | None = None
    started: float | None = None
    step_count: int | None = None
    """None until it is known; an index tells."""
    prompt: str = ""
    """The task as the solver was given it, where it is no step of its own."""
    links: tuple[str, ...] = ()
    extra: Mapping[str, Json] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    derived: frozenset[str] = frozenset()
    also: tuple[Noted, ...] = ()
    """What the run's file says beside its records and all that."""
    not_shown: tuple[NotShown, ...] = ()
    """What the format's steps do not show."""


def settled_verdict(run: Run, accepted: bool | None) -> str:
    """Return the verdict on a run by what reviewers have said of its pass, None while nobody has settled it.

    A pass that another program recorded, without suspicion, stays as it was recorded.
    """
    recorded = run.verdict not in (AttemptResult.SOLVED, AttemptResult.TO_BE_READ)
    if recorded or not (run.suspicious or run.format == OWN_FORMAT):
        return run.verdict
    result = result_of(True, run.suspicious, accepted)
    return result.value if result.passes else UNSOLVED
