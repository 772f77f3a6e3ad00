"""Finds docstrings by the qualified names of their definitions, and inserts one into another file."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from gistpoint.core.code.parsing import DefinitionNode, first_line, parse
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.dropped_imports import IsDropped, without_imports
from gistpoint.core.kinds.gist.lines import (
    children,
    is_text_only,
    last_line,
    margin_of,
)

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_EXAMPLE = re.compile(r"""(?P<prompt>\s*(?:[rRuU]?(?:\"{3}|'{3}|["']))?\s*>>> )(?P<code>.*)""")
_MORE = re.compile(r"(?P<prompt>\s*\.\.\.(?: |$))(?P<code>.*)")
"""A continuation line of an example."""


def documented(tree: ast.Module, name: str) -> Documented | None:
    """Return the class or function with a qualified name, or the module for an empty name; None if missing.

    If several definitions have the name, the last one counts.
    """
    found: Documented = tree
    parts = name.split(".") if name else []
    for part in parts:
        there = [one for one in _definitions(found) if one.name == part]
        if not there:
            return None
        found = there[-1]
    return found


def _definitions(node: ast.Module | ast.stmt) -> list[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    found = []
    statements = node.body if isinstance(node, ast.Module) else children(node)
    for statement in statements:
        if isinstance(statement, DefinitionNode):
            found.append(statement)
        else:
            found += _definitions(statement)
    return found


def has_docstring(tree: ast.Module, name: str) -> bool:
    """Return whether the module, or its definition with this qualified name, has a docstring."""
    node = documented(tree, name)
    return node is not None and _begins_with_text(node.body)


def docstring_sha256(node: Documented | None) -> str:
    """Return a hash of a docstring without indentation, which newer interpreters strip."""
    lines = [line.strip() for line in _docstring_of(node).strip().splitlines()]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def docstring_lines(tree: ast.Module, name: str) -> list[str]:
    """Return the lines of a docstring that are not blank, without indentation; empty without a docstring."""
    lines = [line.strip() for line in _docstring_of(documented(tree, name)).splitlines()]
    return list(filter(None, lines))


def _docstring_of(node: Documented | None) -> str:
    if node is None:
        return ""
    return ast.get_docstring(node, clean=False) or ""


_Lines = list[tuple[str, int | None]]
"""Lines of text, each with its number in the gist, or None for an inserted line."""


def spliced_docstring(gist: str, original: str, name: str, dropped: IsDropped) -> _Lines:
    """Return the numbered lines of a gist in which `name` has the docstring that it has in `original`.

    Each line is a pair of its text and its number in the gist; the number is None for a line of the
    docstring. Imports in examples become `pass`, or the imports that remain, if `dropped` is true for their
    texts. Raises SyntaxError for a gist that does not parse, and TaskError if it has no such definition, or
    if the one in `original` has no docstring.
    """
    home = documented(parse(gist), name)
    source = documented(parse(original), name)
    has_text = source is not None and _begins_with_text(source.body)
    if home is None or source is None or not has_text:
        raise TaskError(f"There is no docstring of {name or 'the module'!r} to replace.")
    wanted = _text_of(source.body[0], physical_lines(original), dropped)
    lines: _Lines = [(text, number) for number, text in enumerate(physical_lines(gist), start=1)]
    if isinstance(home, ast.Module):
        if _begins_with_text(home.body):
            return _replaced(lines, home.body[0], wanted)
        return [*((text, None) for text in wanted), *lines]
    first = home.body[0]
    header, number = lines[first.lineno - 1]
    head = header.encode()[: first.col_offset].decode().rstrip()
    if not head:
        if is_text_only(first):
            return _replaced(lines, first, wanted)
        at = first_line(first) - 1
        return [*lines[:at], *_indented(wanted, margin_of(header)), *lines[at:]]
    # A body on the line of the header, `def f(): return 1`, moves to a separate line below the docstring.
    margin = margin_of(lines[home.lineno - 1][0]) + "    "
    rest = header.encode()[first.col_offset :].decode()
    return [
        *lines[: first.lineno - 1],
        (head, number),
        *_indented(wanted, margin),
        (f"{margin}{rest}", number),
        *lines[first.lineno :],
    ]


def _begins_with_text(body: list[ast.stmt]) -> bool:
    return bool(body) and is_text_only(body[0])


def _indented(wanted: list[str], margin: str) -> _Lines:
    """Return the lines of a docstring with the first line indented and the others unchanged."""
    return [(f"{margin}{wanted[0]}", None), *((text, None) for text in wanted[1:])]


def _replaced(lines: _Lines, old: ast.stmt, wanted: list[str]) -> _Lines:
    """Return the lines with a docstring replaced by other text, keeping what follows it on its last line."""
    first = old.lineno - 1
    last = last_line(old) - 1
    before = lines[first][0].encode()[: old.col_offset].decode()
    after = lines[last][0].encode()[old.end_col_offset :].decode()
    put_in = [f"{before}{wanted[0]}", *wanted[1:]]
    put_in[-1] += after
    return [*lines[:first], *((text, None) for text in put_in), *lines[last + 1 :]]


def _text_of(docstring: ast.stmt, lines: list[str], dropped: IsDropped) -> list[str]:
    """Return the lines of a docstring as written, quotes included, without the imports to drop."""
    written = [line.encode() for line in lines[docstring.lineno - 1 : last_line(docstring)]]
    # The end is cut first: if the docstring has one line, both columns refer to that line.
    written[-1] = written[-1][: docstring.end_col_offset]
    written[0] = written[0][docstring.col_offset :]
    return list(_without_imports([line.decode() for line in written], dropped))


def _without_imports(lines: Sequence[str], dropped: IsDropped) -> Iterator[str]:
    """Yield the lines of a docstring with changed imports in the examples."""
    place = 0
    while place < len(lines):
        found = _EXAMPLE.fullmatch(lines[place])
        if found is None:
            yield lines[place]
            place += 1
            continue
        more = list(takewhile(bool, map(_MORE.fullmatch, lines[place + 1 :])))
        yield from _changed_example([found, *filter(None, more)], dropped)
        place += 1 + len(more)


def _changed_example(lines: Sequence[re.Match[str]], dropped: IsDropped) -> list[str]:
    """Return the lines of an example with changed imports; unchanged if Python can't parse it."""
    code = [line["code"] for line in lines]
    try:
        changed = without_imports(code, parse("\n".join(code)), dropped, in_place=True)
    except (SyntaxError, ValueError):
        changed = code
    # Only imports that span several lines become shorter, so the prompts of the first lines remain.
    return [line["prompt"] + text for line, text in zip(lines, changed, strict=False)]
