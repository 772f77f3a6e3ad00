"""The lines of a side file: JSON objects, each with who said it and when, under a header that names the format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from gistpoint.sessions.runs.model import Json

LONGEST_NAME = 60
_YEAR_9999 = 253_000_000_000_000


class Said(Protocol):
    """One act of a person about a subject; acts are never changed, only followed."""

    @property
    def op(self) -> str:
        """Its uuid."""
        ...

    @property
    def reviewer(self) -> str:
        """Who acted."""
        ...

    @property
    def utc_ms(self) -> int:
        """When, in milliseconds since the epoch."""
        ...

    @property
    def subject(self) -> str:
        """What it is about: the key of a run, the id of a task."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """The name and version of a side file."""

    name: str
    version: int

    @property
    def header(self) -> bytes:
        """The first line of a file."""
        return json.dumps({"format": self.name, "version": self.version}).encode() + b"\n"

    def read(self, line: bytes) -> dict[str, Json] | None:
        """Return the object on a line; None for a header. Raises ValueError, with a sentence, for anything else."""
        try:
            value: Json = json.loads(line)
        except RecursionError as error:
            raise ValueError("It is nested too deep.") from error
        if not isinstance(value, dict):
            raise ValueError("It is no object.")
        if "format" not in value or "op" in value:
            return value
        version = value.get("version")
        if value["format"] != self.name or type(version) is not int or version > self.version:
            raise ValueError(f"It is not version {self.version} of {self.name}.")
        return None


def is_reviewer(name: str) -> bool:
    """Whether a name can be a reviewer's: printable, without blanks at its ends, at most 60 characters."""
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip()


def required(value: Mapping[str, Json], subject: str) -> tuple[str, str, int, str, str]:
    """Return op, reviewer, utc_ms, subject and kind. Raises ValueError where one is missing or can't be used."""
    texts = [value.get(name) for name in ("op", "reviewer", subject, "kind")]
    at = value.get("utc_ms")
    if not all(isinstance(text, str) and text for text in texts) or type(at) is not int or not 0 <= at < _YEAR_9999:
        raise ValueError(f"It lacks op, reviewer, {subject}, kind or utc_ms.")
    op, reviewer, about, kind = cast("list[str]", texts)
    if not is_reviewer(reviewer):
        raise ValueError("Its reviewer has no name that can be used.")
    return op, reviewer, at, about, kind


def others(value: Mapping[str, Json], known: Iterable[str]) -> dict[str, Json]:
    """Return the members that nobody here knows."""
    names = frozenset(known)
    return {name: item for name, item in value.items() if name not in names}


def write(value: Mapping[str, Json]) -> bytes:
    """Return the line of an object, with its newline."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"
