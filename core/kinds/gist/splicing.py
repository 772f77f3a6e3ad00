"""Putting the original test into a gist, so that a changed test can't help."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gistpoint.core.code.parsing import parse
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.lines import (
    Block,
    BlockKind,
    blocks_of,
    dedented,
    find_test,
    import_texts,
    indented,
    physical_lines,
    type_of_function,
)
from gistpoint.core.kinds.gist.original_test import imports_owned

if TYPE_CHECKING:
    from gistpoint.core.kinds.gist.score import GistTest


@dataclass(frozen=True, slots=True)
class SplicedGist:
    """A gist with the original test in it."""

    text: str
    origin: tuple[int | None, ...]
    """For each line of `text`, its number in the gist as handed in; None for a line of the original test."""


def given_test(test: GistTest | None) -> str:
    """Return the original test as a brief gives it; empty for a command that is no test."""
    return original_test(test.source, test.qualname) if test else ""


def splice_test(gist: str, original: str, qualname: str, owned: Collection[str]) -> SplicedGist:
    """Replace every definition of the test `qualname` in `gist` by that of the test file `original`.

    A function goes where the first of the gist's definitions stood, or to the end. A method goes into the gist's
    class of that name, which is made with the original's header where the gist has none. Imports of `owned` names are
    taken out of the test, nothing else of it is changed. Raises SyntaxError for a gist that does not parse, TaskError
    for an original without that test.
    """
    definition = find_test(parse(original), qualname)
    if definition is None:
        raise TaskError(f"The test file has no test {qualname!r}.", hint="Name a function, or Class.method.")
    test = _test_text(original, definition, owned)
    blocks = blocks_of(parse(gist))
    lines = physical_lines(gist)
    old = [b for b in blocks if b.name == definition.name and b.kind is BlockKind.FUNCTION and not b.in_guard]
    owner = definition.name.rpartition(".")[0]
    home = [b for b in blocks if b.name == owner and b.kind is BlockKind.CLASS] if owner else []
    if old:
        at, depth = old[0].first, _depth(lines[old[0].statements[0].lineno - 1])
    elif home:
        at, depth = home[-1].last + 1, _class_depth(home[-1], lines)
    else:
        at, depth = len(lines) + 1, ""
        for header, margin in reversed(_class_headers(original, owner)):
            test = [header, *indented(test, "    ")] if margin is not None else test
    removed = {number for block in old for number in range(block.first, block.last + 1)}
    result: list[tuple[str, int | None]] = []
    for number, text in enumerate([*lines, ""], start=1):
        if number == at:
            result.extend((line, None) for line in indented(test, depth))
        if number not in removed and number <= len(lines):
            result.append((text, number))
    return SplicedGist("\n".join(text for text, _ in result) + "\n", tuple(number for _, number in result))


def original_test(original: str, qualname: str) -> str:
    """Return the source of the test `qualname` in the file `original`, as it stands, in the class that holds it.

    Raises TaskError where there is none.
    """
    definition = find_test(parse(original), qualname)
    if definition is None:
        raise TaskError(f"The test file has no test {qualname!r}.", hint="Name a function, or Class.method.")
    lines = dedented(physical_lines(original)[definition.first - 1 : definition.last])
    for header, _ in reversed(_class_headers(original, definition.name.rpartition(".")[0])):
        lines = [header, *indented(lines, "    ")]
    return "\n".join(lines) + "\n"


def _test_text(original: str, definition: Block, owned: Collection[str]) -> list[str]:
    lines = physical_lines(original)
    dropped: dict[int, list[str]] = {}
    skipped: set[int] = set()
    function = definition.statements[0]
    for node in ast.walk(function):
        if isinstance(node, ast.Import | ast.ImportFrom):
            texts = import_texts(node)
            kept = [text for text in texts if not imports_owned(text, owned)]
            if len(kept) < len(texts):
                alone = isinstance(function, type_of_function) and function.body == [node]
                dropped[node.lineno] = kept or (["pass"] if alone or _only_child(function, node) else [])
                skipped.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    result: list[str] = []
    for number in range(definition.first, definition.last + 1):
        if number in dropped:
            margin = _depth(lines[number - 1])
            result.extend(margin + text for text in dropped[number])
        elif number not in skipped:
            result.append(lines[number - 1])
    return dedented(result)


def _only_child(function: ast.stmt, wanted: ast.stmt) -> bool:
    return any(
        getattr(node, field, None) == [wanted]
        for node in ast.walk(function)
        for field in ("body", "orelse", "finalbody")
    )


def _depth(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _class_depth(block: Block, lines: list[str]) -> str:
    statement = block.statements[0]
    if isinstance(statement, ast.ClassDef) and statement.body[0].lineno > statement.lineno:
        return _depth(lines[statement.body[0].lineno - 1])
    return _depth(lines[statement.lineno - 1]) + "    "


def _class_headers(original: str, owner: str) -> list[tuple[str, str | None]]:
    tree, headers = parse(original), list[tuple[str, str | None]]()
    for depth in range(len(owner.split(".")) if owner else 0):
        name = ".".join(owner.split(".")[: depth + 1])
        for block in blocks_of(tree):
            if block.name == name and block.kind is BlockKind.CLASS:
                statement = block.statements[0]
                text = "\n".join(physical_lines(original)[block.first - 1 : _header_end(statement)])
                headers.append((textwrap.dedent(text), "    "))
                break
    return headers


def _header_end(statement: ast.stmt) -> int:
    if not isinstance(statement, ast.ClassDef):
        return statement.lineno
    return max(
        [
            statement.lineno,
            *(part.end_lineno or 0 for part in [*statement.bases, *(k.value for k in statement.keywords)]),
        ]
    )
