"""Selects judged corruptions as examples for a model: some that readers missed, and some that they saw."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.corruption.blind import GlanceVerdict
from gistpoint.core.corruption.corruptions import replay
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import UserError
from gistpoint.core.tasks.model import Target
from gistpoint.core.trees import SourceTree

EACH = 3
"""The number of examples of each kind."""
_MOST_LINES = 60
"""The maximum number of lines in an example, because the prompt is sent again with every request."""
_WORDS = 300
_INTRODUCTION = (
    "Here are changes to functions of other libraries, made for the same purpose. People who did not know"
    " which functions had been changed have read them."
)
_KINDS = {
    GlanceVerdict.GOOD: "The readers did not see this one. Make one like it.",
    GlanceVerdict.AT_A_GLANCE: "The readers saw this one at a glance. Do not make one like it.",
}

TreeOf = Callable[[str], SourceTree]
"""Returns the files of a source, `name==version`. Raises `SourceError`."""

OpenTrees = Callable[[], AbstractContextManager[TreeOf]]
"""Returns a context manager that provides a `TreeOf`, and deletes the fetched files at the end."""


def hash_of_examples(file: str | None) -> str:
    """Return the hash of a file of examples; empty without a file.

    Raises `UserError` if it can't be read.
    """
    return sha256_of_text(_text_of(file)) if file else ""


def examples_for(file: str | None, library: str, open_trees: OpenTrees) -> str:
    """Return the examples for a library from a file, after fetching their sources; empty without a file.

    Raises `UserError` if the file can't be used, `SourceError` if a source can't be fetched, and
    `CorruptionReplayError` if a record does not fit its source.
    """
    if not file:
        return ""
    judged = read_judged(_text_of(file), Path(file).name)
    with open_trees() as tree_of:
        return examples_text(judged, library, tree_of)


def _text_of(file: str) -> str:
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{file} can't be read: {error}.", hint="--examples requires a JSON lines file."
        ) from error


class _Reading(msgspec.Struct):
    verdict: GlanceVerdict
    words: str = ""


class _Line(msgspec.Struct):
    source: str
    record: dict[str, Any]
    readings: list[_Reading]


@dataclass(frozen=True, slots=True)
class JudgedCorruption:
    """A corruption on whose verdict all of its readers agree."""

    source: str
    record: dict[str, Any]
    verdict: GlanceVerdict
    words: str
    """The readers' remarks in their own words, cut to 300 characters."""


def read_judged(text: str, file: str) -> tuple[JudgedCorruption, ...]:
    """Return the judged corruptions in a JSON lines file, except those without a unanimous verdict.

    The readers' words are joined and cut to `_WORDS` characters. Raises `UserError`, which names `file` and
    the line, if a line can't be read.
    """
    found: list[JudgedCorruption] = []
    for number, line in enumerate(physical_lines(text), 1):
        if not line.strip():
            continue
        try:
            read = msgspec.json.decode(line, type=decodable(_Line))
        except (msgspec.DecodeError, RecursionError) as error:
            raise UserError(
                f"{file}: line {number} is not a judged corruption: {error}.",
                hint='Each line has "source", "record" and "readings", which have "verdict" and "words".',
            ) from error
        verdicts = {reading.verdict for reading in read.readings}
        if len(verdicts) == 1:
            words = "; ".join(dict.fromkeys(reading.words for reading in read.readings if reading.words))
            found.append(JudgedCorruption(read.source, read.record, verdicts.pop(), words[:_WORDS]))
    return tuple(found)


def examples_text(judged: Sequence[JudgedCorruption], library: str, tree_of: TreeOf) -> str:
    """Return up to `EACH` examples of either kind as text, none from `library`; the choice is deterministic.

    Raises `SourceError` if a source can't be fetched, `CorruptionReplayError` if a record does not fit, and
    `UserError` if a kind has no example.
    """
    others = [item for item in judged if _name(item.source) != _name(library)]
    others.sort(key=lambda item: sha256_of_text(str(item.record.get("corrupted_sha256"))))
    trees: dict[str, SourceTree] = {}
    parts = [_INTRODUCTION]
    for verdict, heading in _KINDS.items():
        shown = _shown([item for item in others if item.verdict is verdict], trees, tree_of)
        texts = [f"{heading} {_comment(item)}\n{_diff(target)}" for item, target in shown]
        if not texts:
            raise UserError(
                f"There is no example with the verdict {verdict.value!r} from a library other than"
                f" {library}.",
                hint="Give a file with more judged corruptions, or leave --examples out.",
            )
        parts += texts
    return "\n\n".join(parts)


def _shown(
    items: Sequence[JudgedCorruption], trees: dict[str, SourceTree], tree_of: TreeOf
) -> Iterator[tuple[JudgedCorruption, Target]]:
    """Yield examples with their code: short functions, each once, of different families if possible."""
    taken: set[str] = set()
    families: set[str] = set()
    for fresh in (True, False):
        for item in items:
            family, name = str(item.record.get("families")), f"{item.source} {item.record.get('function')}"
            if len(taken) == EACH or name in taken or (fresh and family in families):
                continue
            if item.source not in trees:
                trees[item.source] = tree_of(item.source)
            target = replay(item.record, trees[item.source])
            if target.original.count("\n") < _MOST_LINES:
                taken.add(name)
                families.add(family)
                yield item, target


def _comment(item: JudgedCorruption) -> str:
    return f"They said: {' '.join(item.words.split())}" if item.words else ""


def _diff(target: Target) -> str:
    before, after = target.original.split("\n"), target.corrupted.split("\n")
    lines = list(difflib.unified_diff(before, after, n=_MOST_LINES, lineterm=""))
    return "\n".join(lines[3:])


def _name(source: str) -> str:
    return source.partition("==")[0].strip().lower().replace("_", "-").replace(".", "-")
