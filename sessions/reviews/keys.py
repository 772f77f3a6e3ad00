"""What a review refers to: a run, a step of it, and a range of one of the step's texts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from gistpoint.core.canonical import sha256_of_text
from gistpoint.sessions.runs.archives import SliceBlob
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.model import Actor, Json, Step, StepKind
from gistpoint.sessions.runs.opening import join_name
from gistpoint.sessions.runs.parts import Scope

UNIQUE_IDS = frozenset({"claude-code", "gistpoint"})
"""Formats whose own id of a run names no other run: that of ATIF is shared by the parts and side runs of a session,
those of Inspect, OpenHands and Breakpoint by every run of the same problem."""
_LONGEST_ID = 120
_HASHED_STEPS = 16
_HASHED_BYTES = 1 << 20


def run_key(document: RunDocument) -> str:
    """Return the key of a run: the same wherever its file lies and however far it has been written.

    `FORMAT:ID` where the format's ids are unique. Else `FORMAT:HASH`, the hash of the record that the run is in its
    file, or of the first record of each step up to the first of the solver's: a system prompt alone is shared by all
    runs of a study. A run of a file of several has its percent-encoded id behind a `#`.
    """
    header = document.header
    own = _own(header.id if header.format in UNIQUE_IDS else "") or _hash(document)
    return join_name(f"{header.format}:{own}", document.id)


def attempt_key(attempt_id: str) -> str:
    """Return the key of an attempt of ours, which is that of its journal."""
    return f"gistpoint:{_own(attempt_id)}"


def _own(native: str) -> str:
    short = sha256_of_text(native) if len(native) > _LONGEST_ID else native
    return quote(short, safe="", errors="surrogatepass")


def _hash(document: RunDocument) -> str:
    digest = hashlib.sha256()
    blob = document.blobs[0] if document.blobs else None
    if isinstance(blob, SliceBlob):
        digest.update(blob.read(0, _HASHED_BYTES) + str(blob.size).encode())
        return digest.hexdigest()[:32]
    index = -1
    for _ in range(_HASHED_STEPS):
        index += 1
        while document.ensure(index) and document.was_put_in(index):
            index += 1
        if not document.ensure(index):
            break
        step = document.step(index)
        if step.kind is StepKind.DAMAGED:
            break
        digest.update(document.raw(index, min(step.raw.length, _HASHED_BYTES)) + b"\n")
        if step.actor in (Actor.AGENT, Actor.PERSON):
            break
    return digest.hexdigest()[:32]


@dataclass(frozen=True, slots=True, order=True)
class StepKey:
    """A step: its 0-based number, with the format's own id of it if there is one.

    The number counts the steps as they were when the first reviews of the format were written. One that its reader
    puts in since has the number of the step after it, and an id that begins with a plus.
    """

    index: int
    id: str = ""

    def __str__(self) -> str:
        return f"{self.index}:{self.id}" if self.id else str(self.index)

    @classmethod
    def parse(cls, text: str) -> StepKey:
        """Read a key as it was written. Raises ValueError for anything else."""
        number, _, id = text.partition(":")
        if not (number.isascii() and number.isdigit() and len(number) < 10):
            raise ValueError(f"{text[:40]!r} is no key of a step.")
        return cls(int(number), id)


def key_of(document: RunDocument, step: Step) -> StepKey:
    """Return the key of a step."""
    number = document.number_of(step.index)
    if not document.was_put_in(step.index):
        return StepKey(number, step.id)
    return StepKey(number, f"+{step.id or step.index - document.numbered(number).start + 1}")


def place_of(document: RunDocument, key: StepKey) -> int | None:
    """Return where the step of a key stands, None if there is no such step; a guess beyond what the index knows."""
    steps = document.numbered(key.index)
    if not key.id.startswith("+"):
        return steps[-1] if steps else None
    known = (index for index in steps if index < document.step_count and document.was_put_in(index))
    return next((index for index in known if key_of(document, document.step(index)) == key), None)


@dataclass(frozen=True, slots=True, order=True)
class TextRange:
    """Code points `start` to `end` of a raw text of a step; `part` counts its calls or results."""

    scope: Scope
    part: int
    start: int
    end: int

    def to_json(self) -> dict[str, Json]:
        """Return the range as it is written."""
        return {"scope": self.scope.value, "part": self.part, "start": self.start, "end": self.end}

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> TextRange:
        """Read a range. Raises ValueError for anything else."""
        part, start, end = (value.get(name) for name in ("part", "start", "end"))
        if type(part) is not int or type(start) is not int or type(end) is not int or not 0 <= start <= end or part < 0:
            raise ValueError("The range of an operation is none.")
        return cls(Scope(str(value.get("scope"))), part, start, end)
