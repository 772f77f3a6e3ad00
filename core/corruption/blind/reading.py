"""Blind readings: the version that a reader is shown, the verdict, and the score that predicts it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Any

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.kinds.registry import is_searched
from gistpoint.core.tasks.model import Answer, Target, Task

NEAR = 1
"""The maximum distance in lines from a change at which a mark still counts."""
_UNKNOWN = "unknown"


class GlanceVerdict(StrEnum):
    """A reader's verdict on a corruption, after a blind reading of the function among untouched ones."""

    GOOD = "good"
    """Nothing was seen in the blind reading, and the corruption is a fault."""
    BORDERLINE = "borderline"
    """The changed place was doubted, but along with other places or without certainty."""
    AT_A_GLANCE = "at a glance"
    """The changed place was named as a fault in the blind reading."""
    NOT_A_FAULT = "not a fault"
    """The function behaves as before, or differently but correctly."""


@dataclass(frozen=True, slots=True)
class GlanceScore:
    """The probability that a reader sees a corruption at a glance, predicted from its text and families."""

    value: float
    """A probability from 0 to 1; a lower one is better hidden."""
    features: Mapping[str, float]
    """The values that the prediction is based on, by the name of the feature."""

    def to_json(self) -> dict[str, Any]:
        """Return the score in the form that a task's provenance stores."""
        return {"value": self.value, "features": dict(self.features)}


class ShownVersion(StrEnum):
    """The version of a function that a reader is shown."""

    ORIGINAL = "original"
    CORRUPTED = "corrupted"


class BlindAnswer(StrEnum):
    """A reader's answer about a function, before learning which version it was."""

    FAULT = "fault"
    DOUBTFUL = "doubtful"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class BlindItem:
    """A corrupted function of a task, which a reader sees in one of its two versions."""

    task: str
    """The full id of the task."""
    source: str
    """The library's name."""
    target: Target
    families: tuple[str, ...] = ()
    """The families of the corruption's edits, if the task records them."""

    @property
    def function(self) -> str:
        """The name of the function as `path::qualname`."""
        return self.target.name

    def text(self, version: ShownVersion) -> str:
        """Return the code of a version, without trailing spaces and without empty lines at the end."""
        code = self.target.original if version is ShownVersion.ORIGINAL else self.target.corrupted
        return "\n".join(line.rstrip() for line in physical_lines(code.rstrip())) + "\n"

    def version(self, seed: int) -> ShownVersion:
        """Return the version that a seed selects; each has a probability of one half.

        An odd seed shows the version that the preceding even seed does not show.
        """
        # Drawn for each function separately: with a fixed share of corrupted versions, a reader could infer
        # the last ones by counting (decision 89).
        drawn = int(sha256_of_text(f"{seed // 2}\x1f{self.task}\x1f{self.function}")[:8], 16)
        return ShownVersion.ORIGINAL if (drawn + seed) % 2 else ShownVersion.CORRUPTED

    @property
    def changed_lines(self) -> frozenset[int]:
        """The numbers of the corrupted version's changed lines.

        Where lines were deleted, the numbers of the two lines around the deletion are included.
        """
        before, after = (
            physical_lines(self.text(version)) for version in (ShownVersion.ORIGINAL, ShownVersion.CORRUPTED)
        )
        found: set[int] = set()
        for kind, _, _, first, last in SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
            if kind != "equal":
                found |= set(range(first + 1, last + 1)) or {max(1, first), min(len(after), first + 1)}
        return frozenset(found)

    def is_hit(self, line: int) -> bool:
        """Return whether a line of the corrupted version is at most `NEAR` lines from a changed one.

        The first line is a hit only if it changed itself; 0 means that no line is marked.
        """
        # A reader's mark starts on the first line, so it means nothing there unless that line changed
        # (decision 89).
        near = 0 if line == 1 else NEAR
        return line > 0 and any(abs(line - changed) <= near for changed in self.changed_lines)


def blind_items(task: Task, answer: Answer) -> tuple[BlindItem, ...]:
    """Return the corrupted functions of a task; empty if it removes a body or is of another kind."""
    if not is_searched(task.mode):
        return ()
    families = _families(answer)
    return tuple(
        BlindItem(task.id, task.source.name, target, families.get(target.name, (_UNKNOWN,)))
        for target in answer.targets
        if target.original != target.corrupted
    )


def _families(answer: Answer) -> dict[str, tuple[str, ...]]:
    parts = answer.provenance.get("parts", ())
    found: dict[str, tuple[str, ...]] = {}
    for part in parts if isinstance(parts, list) else ():
        match part:
            case {"record": {"function": str(function)}, "families": list(families)}:
                found[function] = tuple(str(family) for family in families)
            case _:
                continue
    return found


def in_order(items: Iterable[BlindItem], seed: int, reader: str, round: int = 1) -> list[BlindItem]:
    """Return the functions that a reader is shown in a round, in an order for this reader and round.

    A function that several tasks corrupt is shown once, and from the same task to every reader: nobody reads
    it in two versions in one round.
    """
    # The seed alone decides which task shows a function; reader and round decide only the order
    # (decision 89).
    one_of: dict[tuple[str, str], BlindItem] = {}
    for item in sorted(items, key=lambda item: sha256_of_text(f"{seed}\x1f{item.task}\x1f{item.function}")):
        one_of.setdefault((item.source, item.function), item)
    mine = f"{seed}\x1f{reader}\x1f{round}"
    return sorted(
        one_of.values(), key=lambda item: sha256_of_text(f"{mine}\x1f{item.task}\x1f{item.function}")
    )
