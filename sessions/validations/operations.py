"""The operations that a validation is made of, and their lines: one JSON object each, only ever followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gistpoint.sessions.runs.model import Json
from gistpoint.sessions.sidefiles.lines import Format, others, required, write

FORMAT = Format("gistpoint.validations", 1)


class Kind(StrEnum):
    """What an operation does."""

    SEEN = "seen"
    """The task was looked at."""
    VERDICT = "verdict"
    COMMENT = "comment"
    TRIAL = "trial"
    """The suite was run, on the corrupted tree, the original or a fix of the validator's own."""
    CHECK = "check"
    """`task check` was run."""
    DELETE = "delete"
    """Takes back the operation whose uuid is `target`."""


class TaskVerdict(StrEnum):
    """A validator's verdict on a task, `task_validation`."""

    ACCEPT = "accept"
    REJECT_UNSOLVABLE = "reject_unsolvable"
    """Nobody could find the repair from what a solver may see."""
    REJECT_UNSPECIFIED = "reject_unspecified"
    """Neither code, docs nor failing tests say what the function has to do."""
    REJECT_UNFAIR_TESTS = "reject_unfair_tests"
    """A right repair may fail: the tests ask for one way of doing it."""
    REJECT_LEAK = "reject_leak"
    """Something in the workspace or the brief gives the answer away."""
    REJECT_FLAKY = "reject_flaky"
    """The tests do not say the same each time."""
    REJECT_TOO_EASY = "reject_too_easy"
    REJECT_DUPLICATE = "reject_duplicate"
    """Another task of the set asks the same."""
    NEEDS_DISCUSSION = "needs_discussion"

    @property
    def words(self) -> str:
        """The verdict as people read it."""
        return self.value.removeprefix("reject_").replace("_", " ")


@dataclass(frozen=True, slots=True)
class Operation:
    """One act of a validator; `kind` may be one that a newer program wrote, which is kept and passed over."""

    op: str
    """uuid."""
    reviewer: str
    utc_ms: int
    task: str
    """The whole id."""
    kind: str
    data: Mapping[str, Json] = field(default_factory=dict)
    extra: Mapping[str, Json] = field(default_factory=dict)
    """Members of the line that nobody here knows."""

    @property
    def subject(self) -> str:
        """What it is about: the id of the task."""
        return self.task

    def text(self, name: str) -> str:
        """Return a string of the data, empty where there is none."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the strings of a list of the data."""
        value = self.data.get(name)
        return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()

    def number(self, name: str) -> float | None:
        """Return a number of the data."""
        value = self.data.get(name)
        return float(value) if isinstance(value, int | float) and type(value) is not bool else None


_KNOWN = frozenset({"op", "reviewer", "utc_ms", "task", "kind", "data"})


def encode(operation: Operation) -> bytes:
    """Return the line of an operation, with its newline."""
    line: dict[str, Json] = {
        **operation.extra,
        "op": operation.op,
        "reviewer": operation.reviewer,
        "utc_ms": operation.utc_ms,
        "task": operation.task,
        "kind": operation.kind,
    }
    if operation.data:
        line["data"] = dict(operation.data)
    return write(line)


def decode(line: bytes) -> Operation | None:
    """Read a line; None for a header. Raises ValueError, with a sentence, for what is no operation."""
    value = FORMAT.read(line)
    if value is None:
        return None
    op, reviewer, at, task, kind = required(value, "task")
    data = value.get("data", {})
    if not isinstance(data, dict):
        raise ValueError("Its data are of another kind.")
    return Operation(op, reviewer, at, task, kind, data, others(value, _KNOWN))
