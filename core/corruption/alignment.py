"""Aligns the body of a function with an earlier one, and returns the changes that lead back to it.

The header, the docstring, the annotations and the quotation marks stay as they are in the current version
(decision 137).
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import chain, combinations, pairwise
from typing import Any, cast

from gistpoint.core.code.bindings import bound_names
from gistpoint.core.code.parsing import CodeError, DefinitionNode, first_line, parse_expression
from gistpoint.core.code.snippet import read_snippet
from gistpoint.core.corruption.blank_lines import without_gaps

_Try = ast.Try | ast.TryStar
_WithElse = ast.If | ast.For | ast.AsyncFor | ast.While | _Try
_Compound = _WithElse | ast.With | ast.AsyncWith
Rows = tuple[int, int]
"""The first line, and the line after the last one, counted from 1."""


@dataclass(frozen=True, slots=True, order=True)
class LineEdit:
    """A replacement of the lines from `start` up to `end`, counted from 1."""

    start: int
    end: int
    order: int
    """The position among edits of the same lines: an insertion at the end of an inner block comes first."""
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangeBack:
    """A change to the current function that restores a part of an earlier version."""

    edits: tuple[LineEdit, ...]
    """The edits of the current text, in order."""
    binds: frozenset[str]
    """The names that are bound in the changed part, in either version."""
    reads: frozenset[str]
    """The names that are read in the changed part, in either version."""

    def belongs_with(self, other: ChangeBack) -> bool:
        """Return whether one of the two changes binds a name that the other one reads."""
        return bool(self.binds & other.reads or other.binds & self.reads)


def changes_back(current: str, earlier: str) -> tuple[ChangeBack, ...]:
    """Return the changes that turn the body of `current` into that of `earlier`, in order.

    Both are the text of one definition at the left margin. Changes that belong together are joined. Empty if
    the bodies mean the same, or if they can't be aligned line by line. Raises `CodeError` if one of them is
    not a single definition.
    """
    now = read_snippet(current).node
    then = read_snippet(earlier).node
    aligner = _Aligner(current.split("\n"), _Restyled.of(earlier, current))
    try:
        aligner.block(_body(now), _body(then))
    except _NotByLinesError:
        return ()
    return tuple(_joined(aligner.found))


def with_changes(current: str, changes: Iterable[ChangeBack]) -> str:
    """Return the current text with the changes made, and without gaps where statements were removed."""
    lines = current.split("\n")
    for edit in sorted(chain.from_iterable(change.edits for change in changes), reverse=True):
        lines[edit.start - 1 : edit.end - 1] = edit.lines
    return without_gaps("\n".join(lines), current)


def without_annotations(node: ast.AST) -> str:
    """Return a string that is equal for code that differs only in annotations, casts and layout."""
    return ast.dump(_Bare().visit(deepcopy(node)))


def _only_for_types(node: ast.stmt) -> bool:
    """Return whether a statement only casts a name to a type, or annotates one."""
    match _Bare().visit(deepcopy(node)):
        case ast.Pass():
            return not isinstance(node, ast.Pass)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=same)):
            return name == same
    return False


def _body(node: DefinitionNode) -> list[ast.stmt]:
    """Return the statements of a definition without its docstring."""
    return node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body


class _Bare(ast.NodeTransformer):
    """Removes annotations and calls to `cast`, which have no effect at run time."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.Pass()
        return ast.Assign([node.target], self.visit(node.value))

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    visit_FunctionDef = visit_AsyncFunctionDef = _function

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(
                func=ast.Name(id="cast") | ast.Attribute(value=ast.Name(), attr="cast"), args=[_, value]
            ):
                bare: ast.AST = self.visit(value)
                return bare
        return self.generic_visit(node)


class _NotByLinesError(Exception):
    """Raised if lines can't be exchanged: statements share a line, or the current block is empty."""


@dataclass
class _Aligner:
    """Collects the changes between two versions of a function."""

    now: list[str]
    """The lines of the current text."""
    then: _Restyled
    found: list[ChangeBack] = field(default_factory=list)

    def block(self, now: Sequence[ast.stmt], then: Sequence[ast.stmt]) -> None:
        """Align two lists of statements.

        Raises `_NotByLinesError` if lines alone do not show which statements correspond.
        """
        if not now:
            raise _NotByLinesError  # no line shows where the earlier statements belong
        _require_own_lines(now, self.now)
        _require_own_lines(then, self.then.lines)
        meanings = [[without_annotations(item) for item in side] for side in (now, then)]
        for tag, i1, i2, j1, j2 in _opcodes(*meanings):
            if tag == "replace":
                self._alike(now, then, (i1, i2), (j1, j2))
            elif tag != "equal":
                self._change(now, then, (i1, i2), (j1, j2))

    def _alike(self, now: Sequence[ast.stmt], then: Sequence[ast.stmt], ours: Rows, theirs: Rows) -> None:
        """Align statements that all differ by pairing statements of the same kind, in order."""
        kinds = [[_kind(item) for item in side] for side in (now[slice(*ours)], then[slice(*theirs)])]
        for tag, i1, i2, j1, j2 in _opcodes(*kinds):
            if tag != "equal":
                self._change(now, then, (ours[0] + i1, ours[0] + i2), (theirs[0] + j1, theirs[0] + j2))
                continue
            for i, j in zip(range(i1, i2), range(j1, j2), strict=True):
                self._pair(now, then, ours[0] + i, theirs[0] + j)

    def _pair(self, now: Sequence[ast.stmt], then: Sequence[ast.stmt], i: int, j: int) -> None:
        """Align two statements of the same kind; compound ones are aligned inside, if possible."""
        one, other = now[i], then[j]
        if isinstance(one, ast.AnnAssign) and one.value is not None:
            self._annotated(one, other)
        elif isinstance(one, _Compound) and self._can_go_inside(one, other):
            self._inside(one, other)
        else:
            self._change(now, then, (i, i + 1), (j, j + 1))

    def _can_go_inside(self, one: _Compound, other: ast.stmt) -> bool:
        """Return whether the parts of two compound statements can be aligned one by one."""
        is_unlike = type(one) is not type(other)
        if is_unlike or _is_on_one_line(one) or _is_on_one_line(other):
            return False
        if not isinstance(one, _Try):
            return True
        # If the handlers differ, it is unknown which of them correspond.
        return _handled(one) == _handled(other)

    def _inside(self, one: Any, other: Any) -> None:
        """Align the headers and the blocks of two compound statements of the same type."""
        if _header(one) != _header(other):
            self._add(
                self._header_rows(one, self.now),
                self._header_rows(other, self.then.lines),
                _header_nodes(one),
                _header_nodes(other),
                _margin(self.now[one.lineno - 1]),
            )
        self.block(one.body, other.body)
        if isinstance(one, _Try):
            for ours, theirs in zip(one.handlers, other.handlers, strict=True):
                self.block(ours.body, theirs.body)
        if not isinstance(one, ast.With | ast.AsyncWith):
            self._otherwise(one, other)

    def _otherwise(
        self,
        one: _WithElse,
        other: _WithElse,
    ) -> None:
        """Align the `else` parts, one or both of which may be missing."""
        if (
            one.orelse
            and other.orelse
            and self._is_elif(one, self.now) == self._is_elif(other, self.then.lines)
        ):
            self.block(one.orelse, other.orelse)
        elif one.orelse or other.orelse:
            margin = _margin(self.now[one.lineno - 1])
            self._add(self._else_rows(one), self._else_rows(other), one.orelse, other.orelse, margin)

    def _is_elif(self, node: _WithElse, lines: list[str]) -> bool:
        return lines[node.orelse[0].lineno - 1].lstrip().startswith("elif")

    def _else_rows(self, node: _WithElse) -> Rows:
        """Return the lines of the `else` part, or the empty place where it would be."""
        parts: list[ast.stmt | ast.excepthandler] = [*node.body]
        if isinstance(node, _Try):
            parts += node.handlers
        last = _end(parts[-1])
        return last + 1, _end(node.orelse[-1] if node.orelse else parts[-1]) + 1

    def _header_rows(self, node: _Compound, lines: list[str]) -> Rows:
        """Return the lines of a header, without comments that follow it."""
        last = max((_end(part) for part in _header_nodes(node)), default=node.lineno)
        first_inside = first_line(node.body[0])
        while last < first_inside - 1 and not lines[last - 1].partition("#")[0].rstrip().endswith(":"):
            last += 1
        return node.lineno, last + 1

    def _annotated(self, one: ast.AnnAssign, other: ast.stmt) -> None:
        """Change the value of an assignment that has an annotation in the current version."""
        value = other.value if isinstance(other, ast.Assign | ast.AnnAssign) else None
        assert one.value is not None
        if value is None or value.lineno != other.lineno:
            margin = _margin(self.now[one.lineno - 1])
            self._add((one.lineno, _end(one) + 1), (other.lineno, _end(other) + 1), [one], [other], margin)
            return
        # Changed quotation marks may have moved the columns of the earlier line, so the value is what follows
        # the first equals sign. Columns are in bytes.
        head = self.now[one.lineno - 1].encode()[: one.value.col_offset].decode()
        lines = self.then.lines[other.lineno - 1 : _end(other)]
        first = lines[0].partition("=")[2].lstrip()
        self._add_text(
            (one.lineno, _end(one) + 1), [head + first, *lines[1:]], [one.target, one.value], [value]
        )

    def _change(self, now: Sequence[ast.stmt], then: Sequence[ast.stmt], ours: Rows, theirs: Rows) -> None:
        """Replace statements of a block with statements of the earlier block; either side may have none."""
        gone, back = now[slice(*ours)], then[slice(*theirs)]
        if all(map(_only_for_types, [*gone, *back])):
            return
        place = self._place(now, ours[0])
        rows = _rows(gone) if gone else (place, place)
        old = _rows(back) if back else (1, 1)
        margin = _margin(self.now[first_line(now[0]) - 1])
        self._add(rows, old, gone, back, margin)

    def _place(self, now: Sequence[ast.stmt], index: int) -> int:
        """Return the line before which to insert a statement as number `index` of a block."""
        return _end(now[index - 1]) + 1 if index else first_line(now[0])

    def _add(
        self,
        rows: Rows,
        old: Rows,
        gone: Iterable[ast.AST],
        back: Iterable[ast.AST],
        margin: str,
    ) -> None:
        self._add_text(rows, self.then.at_margin(old, margin), gone, back)

    def _add_text(
        self, rows: Rows, lines: list[str], gone: Iterable[ast.AST], back: Iterable[ast.AST]
    ) -> None:
        nodes = list(chain.from_iterable(map(ast.walk, (*gone, *back))))
        # A parameter of an inner function is not a name of this function.
        binders = (node for node in nodes if not isinstance(node, ast.arg))
        binds = frozenset(chain.from_iterable(map(bound_names, binders)))
        reads = frozenset(
            node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        )
        edit = LineEdit(*rows, len(self.found), tuple(lines))
        self.found.append(ChangeBack((edit,), binds, reads))


def _opcodes(now: list[str], then: list[str]) -> Sequence[tuple[str, int, int, int, int]]:
    return SequenceMatcher(None, now, then, autojunk=False).get_opcodes()


def _kind(node: ast.stmt) -> str:
    """Return a key that two statements share if one may be an earlier version of the other."""
    match node:
        case ast.Assign(targets=targets):
            return f"assign {' '.join(map(ast.unparse, targets))}"
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return f"assign {ast.unparse(target)}"
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return f"define {name}"
    return type(node).__name__


def _is_on_one_line(node: Any) -> bool:
    """Return whether the first statement of a compound statement is on the line of its header."""
    return bool(node.body[0].lineno == node.lineno)


def _handled(node: Any) -> list[str]:
    """Return a string for each part of a `try` after its body: the handlers, and the final block."""
    handlers = [ast.dump(ast.ExceptHandler(handler.type, handler.name, [])) for handler in node.handlers]
    finally_block = [ast.dump(statement) for statement in node.finalbody]
    return [*handlers, *finally_block]


def _header_nodes(node: _Compound) -> list[ast.expr]:
    match node:
        case ast.If(test=test) | ast.While(test=test):
            return [test]
        case ast.For(target=target, iter=iterated) | ast.AsyncFor(target=target, iter=iterated):
            return [target, iterated]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            parts = chain.from_iterable((item.context_expr, item.optional_vars) for item in items)
            return [part for part in parts if part is not None]
    return []


def _header(node: _Compound) -> list[str]:
    return [without_annotations(part) for part in _header_nodes(node)]


def _end(node: ast.stmt | ast.excepthandler | ast.expr) -> int:
    return node.end_lineno or node.lineno


def _rows(nodes: Sequence[ast.stmt]) -> Rows:
    return first_line(nodes[0]), _end(nodes[-1]) + 1


def _require_own_lines(nodes: Sequence[ast.stmt], lines: Sequence[str]) -> None:
    """Raise `_NotByLinesError` if statements share a line with each other or with their block's header."""
    if any(_end(one) >= first_line(two) for one, two in pairwise(nodes)):
        raise _NotByLinesError
    if nodes and lines[nodes[0].lineno - 1].encode()[: nodes[0].col_offset].strip():
        raise _NotByLinesError  # the first one is on the line of its block's header


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _joined(changes: Sequence[ChangeBack]) -> list[ChangeBack]:
    """Return the changes in order, joining those that belong together, directly or through others."""
    import networkx

    together: networkx.Graph[int] = networkx.Graph()
    together.add_nodes_from(range(len(changes)))
    for one, two in combinations(range(len(changes)), 2):
        if changes[one].belongs_with(changes[two]):
            together.add_edge(one, two)
    groups = networkx.connected_components(together)
    joined = [_together([changes[n] for n in group]) for group in groups]
    return sorted(joined, key=lambda change: change.edits)


def _together(group: Sequence[ChangeBack]) -> ChangeBack:
    edits = sorted(chain.from_iterable(change.edits for change in group))
    binds = frozenset(chain.from_iterable(change.binds for change in group))
    reads = frozenset(chain.from_iterable(change.reads for change in group))
    return ChangeBack(tuple(edits), binds, reads)


@dataclass(frozen=True, slots=True)
class _Restyled:
    """The earlier text without comments, in the quotation marks of the current version."""

    lines: list[str]
    in_strings: frozenset[int]
    """The lines that begin inside a string, counted from 1."""

    @classmethod
    def of(cls, earlier: str, current: str) -> _Restyled:
        lines, quotes, inside = earlier.split("\n"), _Quotes.of(current), set[int]()
        tokens = _tokens(earlier)
        # Changes are made from the end: the positions of the tokens before a change stay valid.
        for token in reversed(tokens):
            (row, first), (last_row, last) = token.start, token.end
            if token.type == tokenize.COMMENT:
                lines[row - 1] = lines[row - 1][:first].rstrip()
            elif token.type == tokenize.STRING and row == last_row:
                text = quotes.as_spelled_now(token.string)
                lines[row - 1] = lines[row - 1][:first] + text + lines[row - 1][last:]
            elif token.type in (tokenize.STRING, _FORMATTED_TEXT):
                inside.update(range(row + 1, last_row + 1))
        return cls(lines, frozenset(inside))

    def at_margin(self, rows: Rows, margin: str) -> list[str]:
        """Return lines without blank ones, with the first one at a margin and the others relative to it.

        Lines that begin inside a string are returned unchanged.
        """
        found: list[str] = []
        there = ""
        for number in range(*rows):
            line = self.lines[number - 1]
            if number in self.in_strings:
                found.append(line)
            elif line.strip():
                there = there if found else _margin(line)
                found.append(margin + line.removeprefix(there))
        return found


_FORMATTED_TEXT = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)
"""The type of tokens with a formatted string's text; before Python 3.12, the whole string is one token."""


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    try:
        return list(tokenize.generate_tokens(io.StringIO(f"{text}\n").readline))
    except (tokenize.TokenError, SyntaxError) as error:
        raise CodeError(f"The code can't be read: {error}.") from error


@dataclass(frozen=True, slots=True)
class _Quotes:
    """The style of the strings in the current text."""

    spelled: dict[str, str]
    """The spelling of each string in the current function, by its text."""
    usual: str

    @classmethod
    def of(cls, current: str) -> _Quotes:
        strings = [token.string for token in _tokens(current) if token.type == tokenize.STRING]
        plain = list(filter(_is_plain, strings))
        single = sum(text.startswith("'") for text in plain)
        usual = "'" if single > len(plain) / 2 else '"'
        return cls({_value(text): text for text in plain}, usual)

    def as_spelled_now(self, text: str) -> str:
        """Return a string literal of the earlier text in the spelling of the current function."""
        if not _is_plain(text):
            return text
        known = self.spelled.get(_value(text))
        if known is not None:
            return known
        inner = text[1:-1]
        if _NEEDS_ITS_QUOTES.search(inner):
            return text
        return f"{self.usual}{inner}{self.usual}"


_NEEDS_ITS_QUOTES = re.compile(r"""['"\\]""")
"""The characters in a string for which other quotation marks could change its meaning."""


def _is_plain(text: str) -> bool:
    """Return whether a string literal has no prefix, and one quotation mark on each side."""
    if text.startswith(("'''", '"""')):
        return False
    return text.startswith(("'", '"'))


def _value(text: str) -> str:
    """Return the value of a string literal."""
    return str(cast("ast.Constant", parse_expression(text)).value)
