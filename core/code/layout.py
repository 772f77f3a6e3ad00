"""Where the parts of a definition stand, read off its node and the text around it."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator

from gistpoint.core.code.definitions import Layout
from gistpoint.core.code.document import SourceText
from gistpoint.core.code.errors import CodeError
from gistpoint.core.code.lines import leading_space
from gistpoint.core.code.syntax import DefinitionNode

_SPACE = " \t\f"


def layout_of(document: SourceText, node: DefinitionNode, docstring: ast.stmt | None) -> Layout:
    """Return the places of a definition's parts; `docstring` is the statement that is one."""
    keyword = (node.lineno, node.col_offset)
    decorators = tuple(_range(item) for item in node.decorator_list)
    return Layout(
        start=_first_at(document, decorators[0]) if decorators else keyword,
        keyword=keyword,
        header=max(_header_ends(node), default=keyword),
        body_line=node.body[0].lineno,
        decorators=decorators,
        docstring=None if docstring is None else _range(docstring),
    )


def end_line(document: SourceText, node: DefinitionNode) -> int:
    """Return the last line of a definition, continued lines and the comments that belong to its body included."""
    last = node.end_lineno or node.lineno
    rest = document.text[document.offset(last, node.end_col_offset or 0) : document.line_range(last)[1]]
    while rest and rest.lstrip(" \t\f;").startswith("\\") and last < len(document.line_starts):
        last += 1
        rest = document.line(last)
    margin = _column(document.line(node.lineno))
    for number in range(last + 1, len(document.line_starts) + 1):
        line = document.line(number)
        text = line.lstrip(_SPACE)
        if text and (text[0] != "#" or _column(line) <= margin):
            break
        if text:
            last = number
    return last


def is_protocol(node: DefinitionNode) -> bool:
    """Whether a class names `Protocol` among its bases, subscripted or not."""
    if not isinstance(node, ast.ClassDef):
        return False
    for base in node.bases:
        named = base.value if isinstance(base, ast.Subscript) else base
        if (isinstance(named, ast.Name) and named.id == "Protocol") or (
            isinstance(named, ast.Attribute) and named.attr == "Protocol"
        ):
            return True
    return False


def _column(line: str) -> int:
    return len(leading_space(line).expandtabs(8))


def _range(node: ast.expr | ast.stmt) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _header_ends(node: DefinitionNode) -> Iterator[tuple[int, int]]:
    """Yield the ends of the expressions of a header."""
    parts: list[ast.AST | None] = list(getattr(node, "type_params", ()))
    if isinstance(node, ast.ClassDef):
        parts += [*node.bases, *node.keywords]
    else:
        given = node.args
        parts += [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
        parts += [*given.defaults, *given.kw_defaults, node.returns]
    for part in parts:
        if part is not None:
            yield part.end_lineno, part.end_col_offset  # type: ignore[attr-defined]  # every part has a place


def _first_at(document: SourceText, decorator: tuple[int, int, int, int]) -> tuple[int, int]:
    """Return the place of the `@` before a decorator's expression, which parentheses can push to a later line."""
    line, column = decorator[:2]
    text = document.line(line)
    before = text[: document.offset(line, column) - document.line_starts[line - 1]]
    stripped = before.rstrip(_SPACE + "(")
    if stripped.endswith("@") and not stripped[:-1].strip(_SPACE):
        return line, len(stripped) - 1
    return _scan_for_at(document, line, column)


def _scan_for_at(document: SourceText, line: int, column: int) -> tuple[int, int]:
    """Find the `@` among the tokens before a place: the last one that starts a logical line."""
    numbers = iter(range(1, line + 1))

    def readline() -> str:
        number = next(numbers, 0)
        return f"{document.line(number)}\n" if number else ""

    found, fresh = (line, column), True
    try:
        for item in tokenize.generate_tokens(readline):
            if item.type in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
                continue
            if fresh and item.string == "@":
                found = item.start
            fresh = item.type == tokenize.NEWLINE
    except (tokenize.TokenError, SyntaxError):
        # The text is cut off at the decorator's line, so its brackets may stay open: all before it has been seen.
        pass
    if found == (line, column):
        raise CodeError(f"The decorator on line {line} of {document.path} has no `@` that can be found.", line=line)
    return found
