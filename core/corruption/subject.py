"""The function that is to be corrupted: its text, its syntax tree, and where each node stands in the text."""

from __future__ import annotations

import ast
import bisect
import io
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from gistpoint.core.code.definitions import Definition
from gistpoint.core.code.document import SourceText
from gistpoint.core.code.errors import CodeError
from gistpoint.core.code.snippet import read_snippet
from gistpoint.core.corruption.edits import Edit
from gistpoint.core.corruption.vocabulary import Scope

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Node = TypeVar("Node", bound=ast.AST)
Placed = ast.expr | ast.stmt | ast.excepthandler | ast.keyword | ast.arg

_CLOSED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.JoinedStr)
_OPERATIONS = (ast.BoolOp, ast.BinOp, ast.Compare, ast.UnaryOp, ast.IfExp, ast.Starred, ast.Await)
_SKIPPED = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER)


@dataclass(frozen=True, slots=True)
class Token:
    """One token of the code: its text and its offsets."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """A list of statements, the node it belongs to (the function itself for its body) and the name of the field."""

    owner: ast.AST
    name: str
    statements: tuple[ast.stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A function's text at the left margin, decorators included, and the nodes of its body in source order.

    Left out are the docstring, annotations, formatted strings (their inner places are unreliable before Python 3.12)
    and the insides of functions and classes that it defines, which are subjects of their own.
    """

    text: str
    node: FunctionNode
    scope: Scope
    document: SourceText = field(repr=False)
    tokens: tuple[Token, ...] = field(repr=False)
    nodes: tuple[ast.AST, ...] = field(repr=False)
    parents: Mapping[ast.AST, ast.AST] = field(repr=False)
    blocks: tuple[Block, ...] = field(repr=False)

    def of(self, kind: type[Node]) -> Iterator[Node]:
        """Yield the nodes of one type, in source order."""
        for node in self.nodes:
            if isinstance(node, kind):
                yield node

    def parent(self, node: ast.AST) -> ast.AST:
        """Return the node around one; the function for its own statements."""
        return self.parents.get(node, self.node)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around one, innermost first, the function left out."""
        while node in self.parents:
            node = self.parents[node]
            if node is self.node:
                return
            yield node

    def span(self, node: Placed) -> tuple[int, int]:
        """Return the offsets of a node, parentheses around it left out."""
        start = self.document.offset(node.lineno, node.col_offset)
        return start, self.document.offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)

    def operand(self, node: ast.expr) -> tuple[int, int]:
        """Return the offsets of an operand with the parentheses that stand around it alone."""
        start, end = self.span(node)
        parent = self.parent(node)
        if not isinstance(parent, _OPERATIONS):
            return start, end
        low, high = self.span(parent)
        while True:
            before, after = self.before(start), self.after(end)
            if before is None or after is None or before.text != "(" or after.text != ")":
                return start, end
            if before.start < low or after.end > high:
                return start, end
            start, end = before.start, after.end

    def source(self, node: Placed) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def before(self, offset: int) -> Token | None:
        """Return the last token that ends at or before an offset."""
        place = bisect.bisect_right(self.tokens, offset, key=lambda token: token.end) - 1
        return self.tokens[place] if place >= 0 else None

    def after(self, offset: int) -> Token | None:
        """Return the first token that starts at or behind an offset."""
        place = bisect.bisect_left(self.tokens, offset, key=lambda token: token.start)
        return self.tokens[place] if place < len(self.tokens) else None

    def between(self, left: ast.expr, right: ast.expr) -> tuple[int, int] | None:
        """Return the offsets of the operator between two operands; None where it does not stand in one piece."""
        low, high = self.operand(left)[1], self.operand(right)[0]
        found = self.within(low, high)
        if not found or any(token.text in "()" for token in found):
            return None
        start, end = found[0].start, found[-1].end
        return None if "\n" in self.text[start:end] else (start, end)

    def within(self, low: int, high: int) -> tuple[Token, ...]:
        """Return the tokens that stand between two offsets."""
        first = bisect.bisect_left(self.tokens, low, key=lambda token: token.start)
        last = bisect.bisect_right(self.tokens, high, key=lambda token: token.end)
        return self.tokens[first:last]

    def replaced(self, node: Placed, text: str) -> tuple[Edit, ...]:
        """Return the edit that puts `text` in the place of a node."""
        return (Edit(*self.span(node), text),)

    def lines(self, statement: ast.stmt) -> tuple[int, int] | None:
        """Return the offsets of a statement's whole lines, without the last line end.

        None where they hold anything else: another statement, a header, a comment behind it.
        """
        start, end = self.span(statement)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and statement.decorator_list:
            return None
        first = self.text.rfind("\n", 0, start) + 1
        last = self.text.find("\n", end)
        last = len(self.text) if last < 0 else last
        if self.text[first:start].strip() or self.text[end:last].strip():
            return None
        return first, last


def read_subject(definition: Definition, scope: Scope) -> Subject | None:
    """Return a function as a subject; None for a class, and for what can't be told apart at the left margin."""
    try:
        text = definition.dedented
        snippet = read_snippet(text)
        tokens = tuple(_tokens(text, snippet.definition.document))
    except (CodeError, tokenize.TokenError, SyntaxError):
        return None
    node, document = snippet.node, snippet.definition.document
    if isinstance(node, ast.ClassDef) or document.text != text:
        return None
    parents: dict[ast.AST, ast.AST] = {}
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    nodes = tuple(_walk(body, node, parents))
    return Subject(text, node, scope, document, tokens, nodes, parents, tuple(_blocks(node, body, nodes)))


def _tokens(text: str, document: SourceText) -> Iterator[Token]:
    starts = document.line_starts
    for kind, string, (row, column), (end_row, end_column), _ in tokenize.generate_tokens(
        io.StringIO(text, newline="\n").readline
    ):
        if kind not in _SKIPPED:
            yield Token(starts[row - 1] + column, starts[end_row - 1] + end_column, string)


def _walk(body: Iterable[ast.AST], owner: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    for node in body:
        parents[node] = owner
        yield node
        if isinstance(node, _CLOSED) or type(node).__name__ == "TemplateStr":
            continue
        children = [
            child
            for name, value in ast.iter_fields(node)
            if not (isinstance(node, ast.AnnAssign) and name == "annotation") and not isinstance(value, str)
            for child in (value if isinstance(value, list) else [value])
            if isinstance(child, ast.AST) and not isinstance(child, ast.expr_context | ast.operator | ast.boolop)
        ]
        yield from _walk(children, node, parents)


def _blocks(node: FunctionNode, body: list[ast.stmt], nodes: Iterable[ast.AST]) -> Iterator[Block]:
    yield Block(node, "body", tuple(body))
    for item in nodes:
        if isinstance(item, _CLOSED):
            continue
        for name in ("body", "orelse", "finalbody"):
            value = getattr(item, name, None)
            if isinstance(value, list) and value:
                yield Block(item, name, tuple(value))
