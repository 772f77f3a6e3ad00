"""What may change from one run of the same thing to the next, made one: times, addresses, temporary folders, prefixes.

Every pattern is linear in the text, because the text is anybody's.
"""

from __future__ import annotations

import re

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
