"""The known name that somebody has likely meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_CHARACTERS = 100


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the one of `known` that is most like `word`; empty if none is like it."""
    found = get_close_matches(word[:_CHARACTERS], list(known), n=1)
    return found[0] if found else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the question whether the nearest known name was meant, with a space before it; empty without one."""
    found = nearest(word, known)
    return f" Did you mean {found!r}?" if found else ""
