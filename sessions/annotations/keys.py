"""The keys by which reviews refer to a run, to a step of it, and to a range of one of its text fields."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import msgspec

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.text import whole_number
from gistpoint.sessions.records.archives import SliceBlob
from gistpoint.sessions.records.model import Actor, Step, StepKind, TextScope

if TYPE_CHECKING:
    from gistpoint.sessions.runs.document import RunDocument

_LONGEST_ID = 120
_HASHED_STEPS = 16
_HASHED_BYTES = 1 << 20
_COMPARED_RECORDS = 256
_COMPARED_BYTES = 1 << 16
_MORE = "+"
"""Ends the part of a key that runs with the same beginning share; it never occurs in percent-encoded text."""


def run_key(document: RunDocument) -> str:
    """Return the key of a run under which new annotations are written (decision 21).

    It does not depend on the file's path, so a review finds its run again after the file is moved or packed.
    It is `FORMAT:ID` if the run has an id and the format's ids are unique. Otherwise it is `FORMAT:HASH`,
    with the hash of the run's record if a run is one record of its file; or `FORMAT:HASH+HASH`: the first
    hash covers the first record of each step up to the solver's first one, because all runs of a study share
    a system prompt, and the second covers the records so far, if there are more. Only a bounded part of the
    file is hashed.
    In a file with several runs, `#` and the percent-encoded id follow.
    """
    key = ""
    for key in successive_keys(document):  # noqa: B007  # only the last one is needed
        pass
    return key


def beginning_of(key: str) -> str:
    """Return the part of a run's key that all runs with the same beginning share."""
    own, mark, id = key.partition("#")
    return own.partition(_MORE)[0] + mark + id


def attempt_key(attempt_id: str) -> str:
    """Return the key of an attempt, which is the key of its journal as a run."""
    return f"gistpoint:{_own_key(attempt_id)}"


def _own_key(native: str) -> str:
    short = sha256_of_text(native) if len(native) > _LONGEST_ID else native
    return quote(short, safe="", errors="surrogatepass")


def successive_keys(document: RunDocument) -> Iterator[str]:
    """Yield the keys that a run has had as it grew, starting with the key that runs may share."""
    from gistpoint.sessions.runs.opening import join_name  # the key of an attempt needs no opened run

    header = document.header
    native = _own_key(header.id if document.format.unique_ids else "")
    for own in (native,) if native else _hashes(document):
        yield join_name(f"{document.format.reviewed_as or header.format}:{own}", document.reviewed_id)


def _hashes(document: RunDocument) -> Iterator[str]:
    digest = hashlib.sha256()
    blob = document.blobs[0] if document.blobs else None
    if isinstance(blob, SliceBlob):
        digest.update(blob.read(0, _HASHED_BYTES) + str(blob.size).encode())
        yield digest.hexdigest()[:32]
        return
    index, known = -1, 0
    for _ in range(_HASHED_STEPS):
        index += 1
        while document.ensure(index) and document.is_inserted(index):
            index += 1
        if not document.ensure(index):
            break
        step = document.step(index)
        if step.kind is StepKind.DAMAGED:
            break
        digest.update(document.raw(index, min(step.raw.length, _HASHED_BYTES)) + b"\n")
        known += 1
        # All earlier steps are prompts, which the runs of a study share (decision 21).
        if step.actor in (Actor.AGENT, Actor.PERSON):
            break
    beginning = digest.hexdigest()[:32]
    yield beginning
    compared = hashlib.sha256()
    for number, record in enumerate(_records(document)):
        compared.update(record)
        if number >= known:
            yield f"{beginning}{_MORE}{compared.hexdigest()[:16]}"


def _records(document: RunDocument) -> Iterator[bytes]:
    """Yield the first records in file order, without inserted records or a half-written last record."""
    for number in range(_COMPARED_RECORDS):
        found = document.record(number, _COMPARED_BYTES)
        if found is None:
            return
        index, record = found
        last = not document.ensure(index + 1)
        if last and document.step(index).kind is StepKind.DAMAGED:
            return
        if not document.is_inserted(index):
            yield record + b"\n"


@dataclass(frozen=True, slots=True, order=True)
class StepKey:
    """The key of a step: its number, counted from 0, and its id if the format has one.

    The number counts the steps that readers showed when the first reviews of the format were written. A step
    that readers have shown only since then has the number of the next such step, and an id that begins with a
    plus.
    """

    index: int
    id: str = ""

    def __str__(self) -> str:
        return f"{self.index}:{self.id}" if self.id else str(self.index)

    @classmethod
    def parse(cls, text: str) -> StepKey:
        """Return the key from its written form. Raises `ValueError` if the text is not a key."""
        digits, _, id = text.partition(":")
        number = whole_number(digits)
        if number is None or len(digits) > 9:
            raise ValueError(f"{text[:40]!r} is not the key of a step.")
        return cls(number, id)


def key_of(document: RunDocument, step: Step) -> StepKey:
    """Return the key of a step."""
    number = document.number_of(step.index)
    if not document.is_inserted(step.index):
        return StepKey(number, step.id)
    return StepKey(number, f"+{step.id or step.index - document.steps_with_number(number).start + 1}")


def place_of(document: RunDocument, key: StepKey) -> int | None:
    """Return the index of the step with this key; None if there is none.

    For steps that are not indexed yet, the result is a guess.
    """
    steps = document.steps_with_number(key.index)
    if not key.id.startswith("+"):
        return steps[-1] if steps else None
    known = (index for index in steps if index < document.step_count and document.is_inserted(index))
    return next((index for index in known if key_of(document, document.step(index)) == key), None)


class TextRange(msgspec.Struct, frozen=True, order=True):
    """Code points `start` to `end` of a text field; `part` is the index of the call or result."""

    scope: TextScope
    part: Annotated[int, msgspec.Meta(ge=0)]
    start: Annotated[int, msgspec.Meta(ge=0)]
    end: int

    def __post_init__(self) -> None:
        if self.start > self.end:
            raise ValueError("A range ends before it starts.")
