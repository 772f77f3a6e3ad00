"""The operations that a review is made of, and their lines: one JSON object each, never changed, only followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gistpoint.sessions.reviews.keys import StepKey, TextRange
from gistpoint.sessions.runs.model import Json
from gistpoint.sessions.sidefiles.lines import Format, others, required, write

FORMAT = Format("gistpoint.reviews", 1)


class Kind(StrEnum):
    """What an operation does."""

    OPENED = "opened"
    """The run was opened for review; its data hold the `name` of the file and whether the reviewer is `blind`."""
    LABEL = "label"
    COMMENT = "comment"
    VERDICT = "verdict"
    SEEN = "seen"
    UNSEEN = "unseen"
    STOPPED = "stopped"
    """Where the reviewer was last."""
    DELETE = "delete"
    """Takes back the operation whose uuid is `target`."""


class Verdict(StrEnum):
    """A reviewer's verdict on an attempt or run, `attempt_review`."""

    ACCEPT = "accept"
    ACCEPT_CORRECTED_TIME = "accept_corrected_time"
    EXCLUDE = "exclude"
    NEEDS_SECOND_REVIEWER = "needs_second_reviewer"


class ExcludeReason(StrEnum):
    """Why an attempt does not count."""

    EXPOSURE = "exposure"
    AID = "aid"
    SHORTCUT = "shortcut"
    ENVIRONMENT = "environment"
    NOT_SERIOUS = "not_serious"


@dataclass(frozen=True, slots=True)
class Operation:
    """One act of a reviewer; `kind` may be one that a newer program wrote, which is kept and passed over."""

    op: str
    """uuid."""
    reviewer: str
    utc_ms: int
    run: str
    kind: str
    step: StepKey | None = None
    range: TextRange | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    extra: Mapping[str, Json] = field(default_factory=dict)
    """Members of the line that nobody here knows."""

    @property
    def subject(self) -> str:
        """What it is about: the key of the run."""
        return self.run

    def text(self, name: str) -> str:
        """Return a string of the data, empty where there is none."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""


_KNOWN = frozenset({"op", "reviewer", "utc_ms", "run", "kind", "step", "range", "data"})


def encode(operation: Operation) -> bytes:
    """Return the line of an operation, with its newline."""
    line: dict[str, Json] = {
        **operation.extra,
        "op": operation.op,
        "reviewer": operation.reviewer,
        "utc_ms": operation.utc_ms,
        "run": operation.run,
        "kind": operation.kind,
    }
    if operation.step is not None:
        line["step"] = str(operation.step)
    if operation.range is not None:
        line["range"] = operation.range.to_json()
    if operation.data:
        line["data"] = dict(operation.data)
    return write(line)


def decode(line: bytes) -> Operation | None:
    """Read a line; None for a header. Raises ValueError, with a sentence, for what is no operation."""
    value = FORMAT.read(line)
    if value is None:
        return None
    op, reviewer, at, run, kind = required(value, "run")
    step, place, data = value.get("step"), value.get("range"), value.get("data", {})
    if not isinstance(step, str | None) or not isinstance(place, dict | None) or not isinstance(data, dict):
        raise ValueError("Its step, range or data are of another kind.")
    return Operation(
        op,
        reviewer,
        at,
        run,
        kind,
        None if step is None else StepKey.parse(step),
        None if place is None else TextRange.from_json(place),
        data,
        others(value, _KNOWN),
    )
