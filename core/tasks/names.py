"""The parts of tasks' names and titles: words made from an id, and text from outside, fitted to one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256

from gistpoint.core.text import shortened, visible_line

DEMO_LIBRARY = "sporvei"
"""The library of the demo, whose tasks have fixed titles."""
_CONSONANTS, _VOWELS, _ENDINGS = "dklmnrstv", "aeiou", "klmnrst"
_SYLLABLES = tuple(f"{consonant}{vowel}" for consonant in _CONSONANTS for vowel in _VOWELS)
_DIGITS = "123456789"
_UNWANTED = (
    "dike kaka kakas kike kutas lenin lolit mudak nude nudes nuke retar sados satan semen sida sides sodom"
    " suka sukas sukes tete teta tetas tumor virus"
)
"""Words that the syllables could form and that are unsuitable as names."""
_REFUSED = frozenset(re.findall(r"\w+", _UNWANTED))
_LONGEST = 40
"""The maximum number of characters in a library's or a function's name in a title."""
_WORDS = re.compile(r"\w+")
_TWO_WORDS = re.compile(
    f"(?:.*[=,])?(?:[{_CONSONANTS}][{_VOWELS}]){{2}}-(?:[{_CONSONANTS}][{_VOWELS}]){{2}}[{_ENDINGS}]",
    re.IGNORECASE,
)
"""A word name without its digit, possibly after an option such as `--for P01=`."""


@lru_cache(maxsize=10_000)
def word_name(task_id: str) -> str:
    """Return the two pronounceable words and the digit that name a task, such as `tavo-lumen 4`.

    They depend only on the id, so the task has the same name everywhere, and they reveal nothing about the
    task. There are 258 million names; see decision 128 for how rarely two tasks share one.
    """
    for attempt in range(100):
        drawn = int.from_bytes(sha256(f"name {attempt} of task {task_id}".encode()).digest())
        parts = []
        for letters in (_SYLLABLES, _SYLLABLES, _SYLLABLES, _SYLLABLES, _ENDINGS, _DIGITS):
            drawn, index = divmod(drawn, len(letters))
            parts.append(letters[index])
        first, second, digit = "".join(parts[:2]), "".join(parts[2:5]), parts[5]
        if not {first, second} & _REFUSED:
            return f"{first}-{second} {digit}"
    raise AssertionError(f"no pronounceable words for {task_id}")


def with_whole_names(words: Sequence[str]) -> list[str]:
    """Return the words of a call, with the digit of a word name joined to the two words before it.

    In a shell, `tavo-lumen 4` without quotes is two arguments, of which the second names nothing.
    """
    joined: list[str] = []
    for word in words:
        if joined and len(word) == 1 and word in _DIGITS and _TWO_WORDS.fullmatch(joined[-1]):
            joined[-1] = f"{joined[-1]} {word}"
        else:
            joined.append(word)
    return joined


def shown_name(text: str) -> str:
    """Return a name from outside for a title: shortened, on one line, and with control characters visible."""
    return shortened(visible_line(text), _LONGEST)


def folded_name(text: str) -> str:
    """Return a name for comparison: its words in lower case, joined with spaces, without punctuation."""
    return " ".join(_WORDS.findall(text.casefold()))


def fails(count: int) -> str:
    """Return the number of failing tests in the words of a title, such as `15 fail` or `1 fails`."""
    return f"{count} {'fails' if count == 1 else 'fail'}"
