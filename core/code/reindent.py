"""Lines of code moved to another margin and into a file's own style."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from gistpoint.core.code.definitions import Definition
from gistpoint.core.code.lines import CodeLine, leading_space

_FOUR_SPACES = "    "


def block_unit(lines: Sequence[CodeLine]) -> str | None:
    """Return the white space by which a definition indents its body; None for a definition on one line."""
    return next((leading_space(line.shown) for line in lines if line.level == 1), None)


def file_unit(definitions: Sequence[Definition]) -> str:
    """Return the white space by which the first definition that has a body of its own lines indents it."""
    for item in definitions:
        body = leading_space(item.document.line(item.layout.body_line))
        if item.layout.body_line > item.layout.header[0] and body.startswith(item.indentation):
            unit = body.removeprefix(item.indentation)
            if unit:
                return unit
    return _FOUR_SPACES


def in_unit(lines: Sequence[CodeLine], unit: str) -> list[CodeLine]:
    """Return lines whose blocks are indented by `unit` where they used the other of tab and space; else as given."""
    own = block_unit(lines)
    if own is None or set(own) == set(unit) or len(set(own)) > 1 or len(set(unit)) > 1:
        return list(lines)
    levels: dict[str, int] = {"": 0}
    for line in lines:
        if line.level is not None:
            levels.setdefault(leading_space(line.shown), line.level)
    moved = []
    for line in lines:
        space = leading_space(line.shown)
        if line.in_string or not space:
            moved.append(line)
            continue
        known = max((other for other in levels if space.startswith(other)), key=len)
        level = levels[known] if line.level is None else line.level
        rest = line.shown[len(known if line.level is None else space) :]
        moved.append(replace(line, shown=unit * level + rest))
    return moved


def moved_text(new: Sequence[CodeLine], old: Sequence[CodeLine], margin: str, newline: str) -> str:
    """Return `new` at `margin`; its first line is not indented and its last one not ended.

    A line that stood in `old` already keeps the bytes it had there, line end and odd white space included.
    """
    texts = [_at_margin(line, margin, first=position == 0) for position, line in enumerate(new)]
    ends = [newline] * len(new)
    for position, kept in _kept(new, old, margin, newline).items():
        texts[position] = kept.raw
        ends[position] = kept.end or newline
    ends[-1] = ""
    return "".join(text + end for text, end in zip(texts, ends, strict=True))


def _at_margin(line: CodeLine, margin: str, *, first: bool) -> str:
    if line.in_string:
        return line.raw
    return line.shown if first or not line.shown else margin + line.shown


def _kept(new: Sequence[CodeLine], old: Sequence[CodeLine], margin: str, newline: str) -> dict[int, CodeLine]:
    """Return by place in `new` the old lines that stay; none where moving gives the same bytes anyway."""
    irregular = any(
        line.end not in ("", newline) or line.raw != _at_margin(line, margin, first=position == 0)
        for position, line in enumerate(old)
    )
    if not irregular:
        return {}
    keys_old, keys_new = [_key(line) for line in old], [_key(line) for line in new]
    shorter = min(len(keys_old), len(keys_new))
    head = next((i for i in range(shorter) if keys_old[i] != keys_new[i]), shorter)
    tail = next((i for i in range(shorter - head) if keys_old[-1 - i] != keys_new[-1 - i]), shorter - head)
    kept = {i: old[i] for i in range(head)}
    kept |= {len(new) - 1 - i: old[len(old) - 1 - i] for i in range(tail)}
    middle_old, middle_new = keys_old[head : len(old) - tail], keys_new[head : len(new) - tail]
    for block in SequenceMatcher(None, middle_old, middle_new, autojunk=len(middle_old) > 500).get_matching_blocks():
        kept |= {head + block.b + i: old[head + block.a + i] for i in range(block.size)}
    # The first line lacks its margin, so it is kept in its own place only.
    return {place: line for place, line in kept.items() if (place == 0) == (line is old[0])}


def _key(line: CodeLine) -> tuple[str, bool, int | None]:
    return line.shown, line.in_string, line.level
