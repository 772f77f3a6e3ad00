"""The facts of a function that the gates compare before and after it is corrupted; each is computed at most once.

Facts are its header, comments and names, the values its conditions test, rows of like statements, and compiled code.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import CodeType

from gistpoint.core.code.bindings import names_bound_in
from gistpoint.core.code.parsing import CodeError, compile_module, parse, parse_expression
from gistpoint.core.code.snippet import read_snippet
from gistpoint.core.corruption.absence import unguarded
from gistpoint.core.corruption.flow import blocks_of, unbound_reads, unreachable
from gistpoint.core.corruption.giveaways import heeded, is_empty_collection, oddities
from gistpoint.core.corruption.liveness import dead_stores
from gistpoint.core.corruption.naming import identifiers, words
from gistpoint.core.corruption.subject import FunctionNode

_BRACKETED = re.compile(r"(?:\b(?:if|elif|while|return|and|or|not|in|is)|[=+\-*/%<>,(])\s*\(\s*[\w.]+\s*\)")
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class ScopeFacts:
    """One version of a function, its nodes walked once."""

    text: str
    node: FunctionNode = field(repr=False)
    header: tuple[tuple[str, ...], str]
    docstring: str | None

    @cached_property
    def comments(self) -> list[tuple[str, str]]:
        """Each comment with the line of code that it follows or precedes.

        A comment describes that line, so a line that is missing or does another thing stands out.
        """
        return [(comment, line) for _, comment, line in self._noted]

    @cached_property
    def remarks(self) -> list[tuple[int, str]]:
        """Each comment with its line, counted from 0."""
        return [(row, comment) for row, comment, _ in self._noted]

    @cached_property
    def _noted(self) -> list[tuple[int, str, str]]:
        return _comments(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the function."""
        return tuple(ast.walk(self.node))

    @cached_property
    def explained(self) -> Counter[str]:
        """The conditions and handlers that raise an error with a message, which describes them."""
        found: Counter[str] = Counter()
        for item in self.nodes:
            if isinstance(item, ast.If) and (_explains(item.body) or _explains(item.orelse)):
                found[ast.unparse(item.test)] += 1
            elif isinstance(item, ast.ExceptHandler) and item.type and _explains(item.body):
                found[ast.unparse(item.type)] += 1
        return found

    @cached_property
    def named(self) -> frozenset[str]:
        """The names that stand for variables, functions and modules."""
        return frozenset(item.id for item in self.nodes if isinstance(item, ast.Name))

    @cached_property
    def identifiers(self) -> Counter[str]:
        """The names and attributes of the body, with the number of their uses, without calls of the function itself."""
        nodes = (item for statement in self.node.body for item in ast.walk(statement))
        return identifiers(nodes, self.node.name)

    @cached_property
    def idle(self) -> bool:
        """Whether the function visibly does nothing but return one constant."""
        return _idle(self.node)

    @cached_property
    def bound(self) -> frozenset[str]:
        """The names that the function binds, including itself and its parameters."""
        return frozenset(names_bound_in([self.node]))

    @cached_property
    def strings(self) -> frozenset[str | bytes]:
        """The texts of its literals."""
        values = (item.value for item in self.nodes if isinstance(item, ast.Constant))
        return frozenset(value for value in values if isinstance(value, str | bytes))

    @cached_property
    def words(self) -> Counter[str]:
        """How often each identifier occurs in the text."""
        return Counter(_WORD.findall(self.text))

    @cached_property
    def bracketed(self) -> int:
        """How many names and conditions have needless parentheses, as an edit can leave them."""
        lines = self.text.split("\n")
        tests = [item.test for item in self.nodes if isinstance(item, ast.If | ast.While)]
        alone = [test for test in tests if not isinstance(test, ast.BoolOp) and test.lineno == test.end_lineno]
        wrapped = sum(lines[test.lineno - 2].rstrip().endswith((" (", "\t(")) for test in alone if test.lineno > 1)
        return wrapped + len(_BRACKETED.findall(self.text))

    @cached_property
    def conditions(self) -> tuple[ast.expr, ...]:
        """The conditions of its branches, loops, conditional expressions and filters of comprehensions."""
        found: list[ast.expr] = []
        for node in self.nodes:
            if isinstance(node, ast.If | ast.While | ast.IfExp):
                found.append(node.test)
            elif isinstance(node, ast.comprehension):
                found += node.ifs
        return tuple(found)

    @cached_property
    def results(self) -> tuple[frozenset[str], int]:
        """The constants that it returns, and the number of statements that return one."""
        values = [item.value for item in self.nodes if isinstance(item, ast.Return)]
        constants = [ast.unparse(value) for value in values if isinstance(value, ast.Constant)]
        return frozenset(constants), len(constants)

    @cached_property
    def unused(self) -> frozenset[str]:
        """The variables and parameters that are bound and never read, or only filled, or read and never filled."""
        names = (item for item in self.nodes if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load))
        given = {item.arg for item in self.nodes if isinstance(item, ast.arg)}
        shared = (item for item in self.nodes if isinstance(item, ast.Global | ast.Nonlocal))
        elsewhere = given.union(*(item.names for item in shared))
        one_way = _filled_only(self.nodes) | _never_filled(self.nodes)
        return self.bound - {item.id for item in names} | ((one_way & self.bound) - elsewhere)

    @cached_property
    def constant_places(self) -> frozenset[str]:
        """The places that are assigned nothing but one constant, by `=` alone."""
        values: dict[str, set[str]] = {}
        for node in self.nodes:
            if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) or node.value is None:
                continue
            value = node.value.operand if isinstance(node.value, ast.UnaryOp) else node.value
            plain = isinstance(value, ast.Constant) and not isinstance(node, ast.AugAssign)
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                values.setdefault(ast.unparse(target), set()).update([ast.unparse(node.value)] if plain else ["", "?"])
        return frozenset(name for name, found in values.items() if len(found) == 1)

    @cached_property
    def dead(self) -> Counter[str]:
        """The assignments whose value nobody reads, counted by variable."""
        return dead_stores(self.node)

    @cached_property
    def unguarded(self) -> frozenset[str]:
        """The values that may be absent, are used, and are never asked for."""
        return unguarded(self.node, self.nodes)

    @cached_property
    def twins(self) -> Counter[str]:
        """The simple statements of some length, without the names of their variables, and the conditions."""
        return Counter(text for node in self.nodes if (text := _twin(node)))

    @cached_property
    def options(self) -> Counter[str]:
        """How often each function is called with each keyword."""
        calls = (item for item in self.nodes if isinstance(item, ast.Call) and item.keywords)
        return Counter(
            f"{ast.unparse(call.func).rpartition('.')[2]} {given.arg}" for call in calls for given in call.keywords
        )

    @cached_property
    def spoken(self) -> frozenset[str]:
        """The words of its names and texts."""
        texts = (*self.identifiers, *(text for text in self.strings if isinstance(text, str)))
        return frozenset(word for text in texts for word in words(text))

    @cached_property
    def said(self) -> frozenset[str]:
        """The words of its name, docstring and comments."""
        texts = (self.node.name, self.docstring or "", *(comment for _, comment in self.remarks))
        return frozenset(word for text in texts for word in words(text))

    @cached_property
    def converted(self) -> int:
        """How many results are converted to the type that the function is annotated with."""
        kind = ast.unparse(self.node.returns) if self.node.returns is not None else ""
        values = (item.value for item in self.nodes if isinstance(item, ast.Return))
        return sum(isinstance(value, ast.Call) and ast.unparse(value.func) == kind for value in values)

    @cached_property
    def unbound(self) -> frozenset[str]:
        """The variables that may be read before they are bound."""
        return unbound_reads(self.node)

    @cached_property
    def unreachable(self) -> int:
        """How many statements follow one that leaves their block."""
        return unreachable(self.nodes)

    @cached_property
    def oddities(self) -> Counter[str]:
        """The oddities that a reader would notice, counted by kind."""
        return oddities(self.nodes)

    @cached_property
    def heeded(self) -> tuple[Counter[str], Counter[str]]:
        """The values tested in conditions, and those of them that are read if the test succeeds."""
        return heeded(self.nodes)

    @cached_property
    def rows(self) -> NeighbourForms:
        """The rows of like statements, conditions and elements."""
        return _rows_of(self.nodes)

    @cached_property
    def code(self) -> CodeType | None:
        """Its compiled code; None if Python refuses it."""
        return _compiled(self.node)


def facts_of(text: str) -> ScopeFacts:
    """Read one version of a function. Raises `CodeError` if it is not a function."""
    snippet = read_snippet(text)
    if isinstance(snippet.node, ast.ClassDef):
        raise CodeError("The code is a class, not a function.")
    given = snippet.definition
    return ScopeFacts(given.document.text, snippet.node, (given.decorators, given.signature), given.docstring_text)


def _explains(block: list[ast.stmt]) -> bool:
    """Whether a block raises an error with a message, which may be built on the line before."""
    return (
        bool(block)
        and isinstance(block[-1], ast.Raise)
        and any(
            isinstance(item, ast.Constant) and isinstance(item.value, str)
            for statement in block[-2:]
            for item in ast.walk(statement)
        )
    )


def _comments(text: str) -> list[tuple[int, str, str]]:
    if "#" not in text:
        return []
    found: list[tuple[int, str, str]] = []
    waiting: list[tuple[int, str]] = []
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text, newline="\n").readline))
    except (tokenize.TokenError, SyntaxError):
        return [(0, text, "")]
    for item in tokens:
        if item.type == tokenize.COMMENT:
            if item.line.lstrip().startswith("#"):
                waiting.append((item.start[0] - 1, item.string))
            else:
                found.append((item.start[0] - 1, item.string, item.line))
        elif waiting and item.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            found += [(row, comment, item.line) for row, comment in waiting]
            waiting = []
    return found + [(row, comment, "") for row, comment in waiting]


_FILLING = frozenset({"add", "append", "appendleft", "discard", "extend", "insert", "remove", "setdefault", "update"})
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def _idle(function: FunctionNode) -> bool:
    """Whether a function always returns the same constant, and does nothing else.

    Results of recursive calls don't count.
    """
    nodes = list(_own(function))
    if any(isinstance(node, ast.Yield | ast.YieldFrom | ast.Raise) or _acts(node) for node in nodes):
        return False
    values = {
        "None" if node.value is None else ast.unparse(node.value)
        for node in nodes
        if isinstance(node, ast.Return) and not _calls(node.value, function.name)
    }
    return len(values) < 2 and all(isinstance(parse_expression(value), ast.Constant) for value in values)


def _own(function: FunctionNode) -> Iterator[ast.AST]:
    """Yield the nodes of the body, without those of nested functions."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _INNER):
            waiting += ast.iter_child_nodes(node)


def _acts(node: ast.AST) -> bool:
    """Whether a node stores to something visible outside, or is a call for its effect."""
    if isinstance(node, ast.Attribute | ast.Subscript):
        return isinstance(node.ctx, ast.Store | ast.Del)
    return isinstance(node, ast.Global | ast.Nonlocal) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await)
    )


def _calls(value: ast.expr | None, name: str) -> bool:
    if not isinstance(value, ast.Call):
        return False
    called = value.func
    return name == (called.id if isinstance(called, ast.Name) else getattr(called, "attr", ""))


def _filled_only(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the variables that are only read to put something in: `found.append(x)`."""
    loads, fills = Counter[str](), Counter[str]()
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loads[node.id] += 1
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = node.value.func
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.attr in _FILLING:
                fills[called.value.id] += 1
    return frozenset(name for name, number in fills.items() if number == loads[name])


def _never_filled(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the variables that begin as an empty list, set or dict and are afterwards only read, but not by a call."""
    begun, named, plain = set[str](), Counter[str](), Counter[str]()
    for node in nodes:
        if isinstance(node, ast.Name):
            named[node.id] += 1
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and is_empty_collection(node.value):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            begun |= {target.id} if isinstance(target, ast.Name) else set()
        read = node.value if isinstance(node, ast.Return) else None
        for value in [read, *(node.comparators if isinstance(node, ast.Compare) else ())]:
            if isinstance(value, ast.Name):
                plain[value.id] += 1
    return frozenset(name for name in begun if named[name] == 1 + plain[name])


_LEAVES = (ast.Name, ast.Constant, ast.List, ast.Dict, ast.Tuple, ast.Set, ast.JoinedStr)
_VARIABLE = re.compile(r"id='[^']*'")
_LEAST = 4
"""Pieces with fewer parts than this may be alike by chance."""


@dataclass(frozen=True, slots=True)
class NeighbourForms:
    """How many neighbours have the same form, and the forms that occur.

    Neighbours are statements that follow each other in a block, operands of one `and` or `or`, and elements.
    """

    alike: int
    forms: Counter[tuple[str, ...]]
    twins: int
    """How many neighbours are the same except for the names of variables."""

    def broken_by(self, after: NeighbourForms) -> bool:
        """Whether a piece no longer resembles its neighbours in form, or in all but variables; moves don't count."""
        if self.forms.total() != after.forms.total():
            return False
        return after.twins < self.twins or (after.alike < self.alike and after.forms != self.forms)


def _rows_of(nodes: Iterable[ast.AST]) -> NeighbourForms:
    alike, found, twins = 0, Counter[tuple[str, ...]](), 0
    for node in nodes:
        for group in _groups(node):
            forms = [_form(item) for item in group]
            found.update(forms)
            for (one, two), (first, second) in zip(pairwise(group), pairwise(forms), strict=True):
                same = first == second and len(first) >= _LEAST
                alike += same
                twins += same and "" != _outline(one) == _outline(two)
    return NeighbourForms(alike, found, twins)


def _twin(node: ast.AST) -> str:
    if isinstance(node, ast.If | ast.While):
        return f"if {ast.unparse(node.test)}" if len(_form(node.test)) >= _LEAST else ""
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Return) or len(_form(node)) <= _LEAST:
        return ""
    return _outline(node)


def _outline(node: ast.AST) -> str:
    """Return a simple statement or an expression without the names of its variables."""
    return "" if hasattr(node, "body") else _VARIABLE.sub("id=", ast.dump(node))


def _groups(node: ast.AST) -> Sequence[Sequence[ast.AST]]:
    if isinstance(node, ast.BoolOp):
        return [node.values]
    return [node.elts] if isinstance(node, ast.List | ast.Tuple) else blocks_of(node)


def _form(node: ast.AST) -> tuple[str, ...]:
    """Return the kinds of a node's parts in order, without names and values; for a compound statement, of its test."""
    if isinstance(node, _LEAVES):
        return ("value",)
    if isinstance(node, ast.If | ast.While):
        return (type(node).__name__, *_form(node.test))
    if isinstance(node, ast.stmt) and hasattr(node, "body"):
        return (type(node).__name__,)
    parts = [type(node).__name__]
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr_context):
            parts += _form(child)
    return tuple(parts)


def _compiled(node: FunctionNode) -> CodeType | None:
    """Compile a function by itself; None if Python refuses. Names from enclosing functions are provided.

    The code is not run.
    """
    outer = sorted({name for item in ast.walk(node) if isinstance(item, ast.Nonlocal) for name in item.names})
    body: list[ast.stmt] = [node]
    if outer:
        wrap = parse(f"def around():\n {' = '.join(outer)} = None").body[0]
        if isinstance(wrap, ast.FunctionDef):
            wrap.body.append(node)
            body = [wrap]
    try:
        return compile_module(ast.Module(body, type_ignores=[]), "<corruption>")
    except (SyntaxError, ValueError, RecursionError):
        return None


def same_code(first: CodeType, second: CodeType) -> bool:
    """Return whether two pieces of code are equal apart from positions; constants are already folded."""
    if first.co_code != second.co_code or first.co_exceptiontable != second.co_exceptiontable:
        return False
    if (first.co_names, first.co_varnames, first.co_flags) != (second.co_names, second.co_varnames, second.co_flags):
        return False
    if (first.co_cellvars, first.co_freevars) != (second.co_cellvars, second.co_freevars):
        return False
    if len(first.co_consts) != len(second.co_consts):
        return False
    return all(
        same_code(one, two) if isinstance(one, CodeType) and isinstance(two, CodeType) else _same_constant(one, two)
        for one, two in zip(first.co_consts, second.co_consts, strict=True)
    )


def _same_constant(first: object, second: object) -> bool:
    if isinstance(first, frozenset) and isinstance(second, frozenset):
        return sorted(map(repr, first)) == sorted(map(repr, second))
    return repr(first) == repr(second)
