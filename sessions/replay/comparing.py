"""Holds a result against the recorded one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gistpoint.core import diffs
from gistpoint.core.diffs import unified
from gistpoint.core.text import bounded

_NAME = r"[\w.+@~-]{1,255}"
_FOLDERS = rf"(?:/{_NAME}){{0,40}}?"
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"(?<![\w./~-]){_FOLDERS}/(?:site|dist)-packages(?=/)"), "<packages>"),
    (re.compile(rf"(?<![\w./~-]){_FOLDERS}/lib(?:64)?/python3\.\d{{1,3}}(?=/)"), "<python>"),
    (re.compile(rf"(?<![\w./~-])(?:/private)?/tmp/pytest-of-{_NAME}/pytest-(?:\d{{1,9}}|current)\b"), "<tmp>"),
    (re.compile(rf"(?<![\w./~-])(?:/private)?/var/folders/{_NAME}/{_NAME}/T(?:/{_NAME})?"), "<tmp>"),
    (re.compile(rf"(?<![\w./~-])(?:(?:/private|/var)?/tmp|/dev/shm)/{_NAME}"), "<tmp>"),
    (re.compile(rf"\b[A-Za-z]:\\Users\\{_NAME}\\AppData\\Local\\Temp\\{_NAME}"), "<tmp>"),
    (re.compile(r"(?<=/)tmp[a-z0-9_]{8}(?!\w)"), "<tmp>"),
    (re.compile(r"\b0x[0-9a-fA-F]{6,16}\b"), "0x<address>"),
    (
        re.compile(
            r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?(?![\w:])",
        ),
        "<time>",
    ),
    (re.compile(r"(?<![\w.:])\d{1,3}:\d\d:\d\d(?:[.,]\d{1,9})?(?![\w:])"), "<time>"),
    (
        re.compile(
            r"(?<![\w.])\d{1,12}(?:\.\d{1,12})?(?:e-?\d{1,3})? ?(?:ns|µs|μs|us|ms|s|secs?|seconds?|minutes?)\b(?!\()"
        ),
        "<duration>",
    ),
)


def normalised(text: str) -> str:
    """Return `text` with all that may change between two runs replaced by a word in angle brackets.

    Replaced are durations with their unit, clock times and dates with a time, addresses of six digits and more,
    temporary folders, and the folders that Python and its packages are installed in.
    """
    text = text.replace("\r\n", "\n")
    for pattern, word in _PATTERNS:
        text = pattern.sub(word, text)
    return text


_COMPARED_IN_FULL = 200_000


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a result differs from the recorded one."""

    diff: str = ""
    """A unified diff from the recorded result to the one of now, both normalised; empty where they are the same."""
    exact: bool = True
    """Whether they are the same to the byte; False where normalising made them so, or where they differ."""


def compare(recorded: str | None, now: str, recorded_facts: Mapping[str, str], facts: Mapping[str, str]) -> Comparison:
    """Compare two results. What was not recorded is not compared; in the diff texts are cut at 200,000 characters."""
    known = [name for name in recorded_facts if name in facts]
    differing = [name for name in known if normalised(recorded_facts[name]) != normalised(facts[name])]
    one, other = ("", "") if recorded is None else (normalised(recorded), normalised(now))
    if one == other and not differing:
        return Comparison("", recorded in (None, now) and all(recorded_facts[n] == facts[n] for n in known))
    before = _shown(one, other, [f"{name}: {normalised(recorded_facts[name])}" for name in differing])
    after = _shown(other, one, [f"{name}: {normalised(facts[name])}" for name in differing])
    return Comparison(unified(diffs.compute(before, after, old_path="recorded", new_path="now")), False)


def _shown(text: str, against: str, facts: list[str]) -> str:
    parts = [_around_difference(text, against)] if text != against else []
    return "\n".join([*parts, *facts]) + "\n"


def _around_difference(text: str, against: str) -> str:
    """Return a text bounded for its diff; of a long one what lies around the first character that differs."""
    if max(len(text), len(against)) <= _COMPARED_IN_FULL:
        return text
    first = next(
        (n for n, (a, b) in enumerate(zip(text, against, strict=False)) if a != b), min(len(text), len(against))
    )
    start = max(0, text.rfind("\n", 0, max(0, first - 500)) + 1)
    head = f"[... {start} characters that are the same ...]\n" if start else ""
    return head + bounded(text[start:], _COMPARED_IN_FULL, what="result")
