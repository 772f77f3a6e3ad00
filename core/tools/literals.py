"""Text without which a regular expression can't match, read off the pattern itself."""

from __future__ import annotations

import re

_COUNT = re.compile(r"\{\d*,?\d*\}")
_GROUP = re.compile(r"\((?:\?:|\?P<\w+>|(?!\?))")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\[\]\\])*\]", re.DOTALL)
_SIMPLE_ESCAPES = frozenset("sSwWdDbBAZtnrfv")


def required_literals(pattern: str) -> tuple[str, ...]:
    """Return the texts that every match of `pattern` holds, the longest first; none where the pattern is unusual.

    Only what stands outside of groups is looked at, and nothing at all where alternatives or flags do.
    """
    runs, run, depth, at = [""], "", 0, 0
    while at < len(pattern):
        kept, text, size, step = _next(pattern, at)
        if size == 0 or (text == "|" and depth == 0):
            return ()
        depth += step
        if kept and depth == 0:
            run += text
        else:
            if text in ("*", "?", "{") and depth == 0:
                run = run[:-1]
            runs.append(run)
            run = ""
        at += size
    return tuple(sorted({text for text in (*runs, run) if len(text) > 1}, key=lambda text: (-len(text), text)))


def _next(pattern: str, at: int) -> tuple[bool, str, int, int]:
    """Return whether the token at `at` is literal text, the text, its size (0: not understood) and its nesting."""
    char = pattern[at]
    if char == "\\":
        following = pattern[at + 1 : at + 2]
        if following and not following.isalnum() and following.isascii() and following != "_":
            return True, following, 2, 0
        return False, "", 2 if following in _SIMPLE_ESCAPES and following else 0, 0
    if char == "[":
        found = _CLASS.match(pattern, at)
        return False, "", len(found.group()) if found else 0, 0
    if char == "(":
        found = _GROUP.match(pattern, at)
        return False, "", len(found.group()) if found else 0, 1
    if char == ")":
        return False, "", 1, -1
    if char == "{":
        found = _COUNT.match(pattern, at)
        return False, char, len(found.group()) if found else 0, 0
    return char not in "|*?+.^$}", char, 1, 0
