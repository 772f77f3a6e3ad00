"""A rubric: the labels of a codebook, and what a run must show for each of them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import UserError

MOST_LABELS = 40
_LONGEST_FILE = 1_000_000
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")


class RubricError(UserError):
    """A rubric can't be read, or contradicts itself."""


class Coding(StrEnum):
    """The rule that combines the answers to the pieces of a run into one answer."""

    ANY = "any piece"
    """Present if a piece shows it."""
    ALL = "all pieces"
    """Present if every piece shows it."""
    COMPUTED = "computed"
    """Computed from the run by a program; no model is asked."""


class RubricLabel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One label of a codebook."""

    id: str
    definition: Annotated[str, msgspec.Meta(min_length=1, max_length=4_000)] = ""
    """What a run with the label shows; may be empty for a computed label, which names its fact."""
    coded: Coding = Coding.ANY
    fact: str = ""
    """The name of the computed fact."""
    includes: tuple[str, ...] = ()
    """Cases that count, in a sentence each."""
    excludes: tuple[str, ...] = ()
    """Cases that do not count."""

    @property
    def words(self) -> str:
        """The entry of the codebook, as the judge and the person read it."""
        lines = [self.definition or self.fact]
        lines += [f"Counts: {case}" for case in self.includes]
        lines += [f"Does not count: {case}" for case in self.excludes]
        return "\n".join(lines)

    @property
    def sha256(self) -> str:
        """The hash of everything that decides the label; answers to another wording do not count for it."""
        return sha256_of_text("\n".join((self.id, self.coded, self.fact, self.words)))


class Rubric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A codebook."""

    name: str
    label: tuple[RubricLabel, ...]
    about: str = ""

    @property
    def asked(self) -> tuple[RubricLabel, ...]:
        """The labels that a model is asked about."""
        return tuple(label for label in self.label if label.coded is not Coding.COMPUTED)

    @property
    def computed(self) -> tuple[RubricLabel, ...]:
        """The labels that are computed."""
        return tuple(label for label in self.label if label.coded is Coding.COMPUTED)


def read_rubric(path: Path, facts: Collection[str] = ()) -> Rubric:
    """Return the rubric in a TOML file; `facts` are the names of the facts that can be computed.

    Raises `RubricError`, with the place, if the file can't be read or is not a sound rubric.
    """
    try:
        with path.open("rb") as file:
            # Any path may be given, including that of an endless device.
            raw = file.read(_LONGEST_FILE + 1)
        if len(raw) > _LONGEST_FILE:
            raise RubricError(
                f"{path} is too long for a rubric.", hint="Name a TOML file with [[label]] tables."
            )
        rubric = msgspec.convert(tomllib.loads(raw.decode("utf-8")), decodable(Rubric))
    except OSError as error:
        raise RubricError(f"{path} can't be read: {error.strerror}.", hint="Name a rubric file.") from error
    except (ValueError, RecursionError) as error:
        raise RubricError(
            f"{path} is not a rubric: {str(error)[:300]}", hint="docs/guide/findings.md shows an example."
        ) from error
    _check(rubric, path, facts)
    return rubric


def _check(rubric: Rubric, path: Path, facts: Collection[str]) -> None:
    ids = [label.id for label in rubric.label]
    if not 1 <= len(ids) <= MOST_LABELS:
        _refuse(path, f"it has {len(ids)} labels, and 1 to {MOST_LABELS} are possible", "Add a [[label]].")
    for name in (rubric.name, *ids):
        if not _NAME.fullmatch(name):
            _refuse(path, f"{name[:80]!r} can't be a name", "Use a-z, 0-9, - and _, at most 60 characters.")
    if len(set(ids)) < len(ids):
        _refuse(path, "two labels have the same id", "Give each label a different id.")
    for label in rubric.asked:
        if label.fact or not label.definition:
            _refuse(path, f"{label.id} needs a definition and no fact", 'Only coded = "computed" has a fact.')
    for label in rubric.computed:
        if label.fact not in facts:
            known = ", ".join(sorted(facts))
            _refuse(path, f"{label.id} names no fact that can be computed", f"Known facts: {known}.")


def _refuse(path: Path, what: str, hint: str) -> None:
    raise RubricError(f"{path}: {what}.", hint=hint)
