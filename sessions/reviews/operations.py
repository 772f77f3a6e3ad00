"""The operations that a review is made of, and their lines: one JSON object each, never changed, only followed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import cast

from gistpoint.sessions.reviews.keys import StepKey, TextRange
from gistpoint.sessions.runs.model import Json

FORMAT = "gistpoint.reviews"
VERSION = 1
HEADER = json.dumps({"format": FORMAT, "version": VERSION}).encode() + b"\n"


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
    return json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def decode(line: bytes) -> Operation | None:
    """Read a line; None for a header. Raises ValueError, with a sentence, for what is no operation."""
    try:
        value: Json = json.loads(line)
    except RecursionError as error:
        raise ValueError("It is nested too deep.") from error
    if not isinstance(value, dict):
        raise ValueError("It is no object.")
    if "format" in value and "op" not in value:
        _check_version(value)
        return None
    texts = [value.get(name) for name in ("op", "reviewer", "run", "kind")]
    at = value.get("utc_ms")
    if not all(isinstance(text, str) and text for text in texts) or type(at) is not int:
        raise ValueError("It lacks op, reviewer, run, kind or utc_ms.")
    op, reviewer, run, kind = cast("list[str]", texts)
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
        {name: item for name, item in value.items() if name not in _KNOWN},
    )


def _check_version(value: dict[str, Json]) -> None:
    version = value.get("version")
    if value["format"] != FORMAT or type(version) is not int or version > VERSION:
        raise ValueError(f"It is not version {VERSION} of {FORMAT}.")
