"""Removes the blank lines that a missing statement leaves behind: they would show where it was."""

from __future__ import annotations

import re

from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.source_text import CodeLine, SourceText, code_lines

_GAP = re.compile(r"\n[ \t\f]*\n[ \t\f]*\n|\n[ \t\f]*\Z")
"""Two blank lines in a row, or one at the end."""


def without_gaps(text: str, original: str) -> str:
    """Return a changed function without gaps that the original does not have.

    No blank line remains at the end, and no more of them in a row than anywhere in the original, but at least
    one. Strings keep their blank lines. Text that can't be split into tokens is returned unchanged.
    """
    if _GAP.search(text) is None:
        return text
    try:
        lines, most = _lines(text), _longest_gap(_lines(original))
    except CodeError:
        return text
    kept: list[str] = []
    run = 0
    for line in lines:
        run = run + 1 if _is_blank(line) else 0
        if run <= most:
            kept.append(line.raw)
    while kept and not kept[-1].strip():
        kept.pop()
    return "\n".join(kept)


def _lines(text: str) -> list[CodeLine]:
    document = SourceText.of("the function", text)
    return code_lines(document, 1, len(document.line_starts))


def _longest_gap(lines: list[CodeLine]) -> int:
    longest, run = 1, 0
    for line in lines:
        run = run + 1 if _is_blank(line) else 0
        longest = max(longest, run)
    return longest


def _is_blank(line: CodeLine) -> bool:
    return not line.in_string and not line.raw.strip()
