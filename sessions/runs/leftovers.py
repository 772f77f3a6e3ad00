"""Finds the strings of raw records that a reader assigns to no field, so none is lost (decision 47).

A format declares which members it omits on purpose, and why. Every other string in a record is either in a
field of the step or found by this module, for example in a new member of an event or in a part of a message
that the reader does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator
from functools import cached_property

from gistpoint.sessions.records.model import CutText, Json, Noted, NotShown, Run, Step, StepTexts

EVERYWHERE = (
    NotShown(
        ("ids, types, roles, versions, hashes and times",),
        "the kind of each record; the important ones are shown in the step's heading",
    ),
    NotShown(
        ("signatures and encoded data",),
        "images and sounds in the text, and sequences of 160 or more letters and digits",
    ),
)
"""The members that no format shows, with the reasons."""

_LABELS = frozenset(
    (
        "id",
        "uuid",
        "type",
        "role",
        "kind",
        "object",
        "ts",
        "created",
        "completed",
        "timestamp",
        "time",
        "index",
        "hash",
    )
)
_LABEL = re.compile(
    r"(?:[a-z]I|[a-z]_i|^i)ds?$|(?:[a-z]U|_u)uid$|_at$|[a-z]At$|_type$|[a-z]Type$|_?[tT]imestamp$|_?[vV]ersion$"
    r"|_?[hH]ash$"
)
_OPAQUE = re.compile(r"data:[\w/+.-]{1,100};base64,|[\w+/=-]{160,}\Z", re.ASCII)
_SIGNATURES = frozenset(("signature", "encrypted_content", "encrypted_index", "reasoning_signature"))
_ESCAPED = re.compile(r'[\x00-\x1f"\\]')
_MOST_KEYS = 1024
"""The number of known keys or paths above which all of them are forgotten."""
_SHORT = 16
"""The number of characters below which a string counts as shown only if it is shown as a separate word."""


def is_label(key: str) -> bool:
    """Return whether the strings under a key describe the record, as its id or type do, and aren't texts."""
    return key in _LABELS or key in _SIGNATURES or _LABEL.search(key) is not None


class Leftovers:
    """Finds the strings that a format's steps and headers omit."""

    def __init__(self, not_shown: Iterable[NotShown] = ()) -> None:
        """`not_shown` are the members that the format omits on purpose."""
        listed = tuple(not_shown)
        self.not_shown = (*listed, *EVERYWHERE)
        of_records: list[str] = []
        of_run: list[str] = []
        for item in listed:
            names = of_run if item.of_run else of_records
            names += item.names
        self._in_records = _Texts(of_records)
        self._of_run = _Texts(of_run, labels=True)

    def of_step(self, values: Iterable[Json], step: Step, parts: Iterable[str]) -> tuple[Noted, ...]:
        """Return the strings in a step's raw records that are in none of its fields.

        `values` are the records, and `parts` the strings of the fields, see `parts_of`.
        """
        shown = [*parts, step.label, step.id, step.model, *step.links]
        for call in step.calls:
            shown += (call.id, call.tool, call.arguments)
        for edit in step.edits:
            shown += (edit.path, edit.old or "", edit.new or "")
        arguments = {id(call.parsed) for call in step.calls}
        found = [text for value in values for text in self._in_records.below(value, arguments)]
        return tuple(_not_shown(found, shown))

    def of_texts(self, values: Iterable[Json], texts: StepTexts) -> list[Noted]:
        """Return the strings that `of_step` returns, and possibly others that are in the step's fields."""
        found = [text for value in values for text in self._in_records.below(value)]
        return list(_not_shown(found, [*texts.tools, *(text for _, _, text in texts.parts)]))

    def of_run(self, members: dict[str, Json], run: Run) -> tuple[Noted, ...]:
        """Return the strings of a run's own members that are not in its header."""
        shown = [run.id, run.task, run.model, run.agent, run.format_version, run.exit_status, run.submission]
        shown += [run.prompt, *run.links]
        in_extra = _Texts((), labels=True).below(dict(run.extra))
        shown += [text for _, text in in_extra]
        return tuple(_not_shown(self._of_run.below(members), shown))


class _Texts:
    """Finds the strings below a value, except at listed paths and, without `labels`, under keys of labels."""

    def __init__(self, listed: Iterable[str], *, labels: bool = False) -> None:
        self._listed = frozenset(listed)
        self._labels = labels
        self._known: dict[str, dict[str, tuple[str, bool]]] = {}

    def below(self, value: Json, shown: Container[int] = ()) -> list[tuple[str, str]]:
        """Return the path and text of each string below a value, in order.

        `shown` are the ids of objects that are shown completely; their strings are left out.
        """
        found: list[tuple[str, str]] = []
        self._walk("", value, shown, found)
        return found

    def _walk(self, path: str, value: Json, shown: Container[int], found: list[tuple[str, str]]) -> None:
        if isinstance(value, str):
            found.append((path, value))
        elif isinstance(value, list):
            for item in value:
                if item.__class__ not in _NO_TEXTS:
                    self._walk(path, item, shown, found)
        elif isinstance(value, dict) and id(value) not in shown:
            self._walk_object(path, value, shown, found)

    def _walk_object(
        self, path: str, value: dict[str, Json], shown: Container[int], found: list[tuple[str, str]]
    ) -> None:
        known = self._known.get(path)
        if known is None or len(known) > _MOST_KEYS:
            known = self._known_below(path)
        for key, item in value.items():
            if item.__class__ in _NO_TEXTS or not item:
                continue
            below, label = known.get(key) or self._learn(known, path, key)
            names_type = label and _is_text(item)
            if names_type or not below:
                continue
            # Most members are strings, which are handled here without a call for each.
            if isinstance(item, str):
                found.append((below, item))
            elif not isinstance(item, dict):
                self._walk(below, item, shown, found)
            elif id(item) not in shown:
                # There is one call per level, so records may be nested as deeply as Python allows calls.
                self._walk_object(below, item, shown, found)

    def _known_below(self, path: str) -> dict[str, tuple[str, bool]]:
        if len(self._known) > _MOST_KEYS:
            self._known.clear()
        known = self._known[path] = {}
        return known

    def _learn(self, known: dict[str, tuple[str, bool]], path: str, key: str) -> tuple[str, bool]:
        """Return the path of a member, empty if it is listed, and whether its key is a label."""
        below = f"{path}.{key}" if path else key
        if below in self._listed:
            below = ""
        known[key] = found = (below, not self._labels and is_label(key))
        return found


_NO_TEXTS = frozenset((int, float, bool, type(None)))


def _is_text(value: Json) -> bool:
    """Return whether a value is a string or a list of strings."""
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, str)


def _not_shown(found: Iterable[tuple[str, str]], shown: list[str]) -> Iterator[Noted]:
    """Yield the strings that no string in `shown` contains, each once, except blank and encoded ones."""
    known = set(shown)
    texts = _ShownTexts(shown)
    for path, text in found:
        if text in known:
            continue
        if text.isspace() or _OPAQUE.match(text):
            continue
        known.add(text)
        if not texts.contain(text):
            yield Noted(path, text)


class _ShownTexts:
    """The strings that a step shows, searched for the strings of its records, mostly in the same order."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts
        self._reached = 0
        """The offset at which the next search begins, which is the offset of the last text found."""

    @cached_property
    def _joined(self) -> str:
        return "\0".join(self._texts)

    def contain(self, text: str) -> bool:
        """Return whether one of the shown strings contains `text`, either verbatim or with JSON escapes.

        A short string must be a separate word. All pieces of a cut string must be in one shown cut string.
        """
        if isinstance(text, CutText):
            pieces = set(text.pieces)
            others = [other for other in self._texts if isinstance(other, CutText)]
            return any(pieces.issubset(other.pieces) for other in others)
        at = self._place_of(text)
        if at < 0 and _ESCAPED.search(text):
            at = self._place_of(json.dumps(text, ensure_ascii=False)[1:-1])
        self._reached = max(self._reached, at)
        return at >= 0

    def _place_of(self, text: str) -> int:
        at = _word_in(self._joined, text, self._reached)
        if at < 0 and self._reached:
            return _word_in(self._joined, text, 0)
        return at


def _word_in(texts: str, text: str, at: int) -> int:
    """Return the offset, from `at` on, of a string, which must be a separate word if it is short; else -1."""
    at = texts.find(text, at)
    if len(text) >= _SHORT:
        return at
    while at >= 0:
        end = at + len(text)
        left, right = texts[at - 1 : at], texts[end : end + 1]
        continues_word = left.isalnum() and text[0].isalnum()
        is_continued = right.isalnum() and text[-1].isalnum()
        if not continues_word and not is_continued:
            break
        at = texts.find(text, at + 1)
    return at
