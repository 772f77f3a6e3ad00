"""What the gates compare of a function before and after: its header, comments, names, oddities and code."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType

from gistpoint.core.code.parsing import CodeError, compile_module, parse
from gistpoint.core.code.snippet import read_snippet
from gistpoint.core.corruption.conditions import conditions
from gistpoint.core.corruption.dataflow import heeded, unbound_reads, unreachable
from gistpoint.core.corruption.idle import filled_only, idle, never_filled
from gistpoint.core.corruption.named import identifiers
from gistpoint.core.corruption.rows import Rows, rows_of
from gistpoint.core.corruption.subject import bound_names
from gistpoint.core.corruption.visible import oddities


def compiled(node: ast.FunctionDef | ast.AsyncFunctionDef) -> CodeType | None:
    """Compile a function by itself; None where Python refuses. Names that it takes from functions around it are given.

    Nothing of it is run.
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
    """Return whether two pieces of code do the same, places in the text apart; constants are folded by then."""
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


_BRACKETED = re.compile(r"(?:\b(?:if|elif|while|return|and|or|not|in|is)|[=+\-*/%<>,(])\s*\(\s*[\w.]+\s*\)")
WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Facts:
    """One version of a function; what takes time is worked out when it is asked for, once."""

    text: str
    node: ast.FunctionDef | ast.AsyncFunctionDef = field(repr=False)
    header: tuple[tuple[str, ...], str]
    docstring: str | None

    @cached_property
    def comments(self) -> list[tuple[str, str]]:
        """Each comment with the line of code that it stands behind or right above.

        What happens to that line is told by the comment: a line left out, or one that does another thing, stands out.
        """
        return _comments(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the function."""
        return tuple(ast.walk(self.node))

    @cached_property
    def told(self) -> Counter[str]:
        """The conditions and handlers behind which an error with a message is raised: it says what they should be."""
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
        """The names and attributes of the body, and how often each stands there; calls of the function itself not."""
        nodes = (item for statement in self.node.body for item in ast.walk(statement))
        return identifiers(nodes, self.node.name)

    @cached_property
    def idle(self) -> bool:
        """Whether the function can be seen to do nothing but return one constant."""
        return idle(self.node)

    @cached_property
    def bound(self) -> frozenset[str]:
        """The names that the function binds, itself and its parameters among them."""
        return frozenset(bound_names([self.node]))

    @cached_property
    def strings(self) -> frozenset[str | bytes]:
        """The texts of its literals."""
        values = (item.value for item in self.nodes if isinstance(item, ast.Constant))
        return frozenset(value for value in values if isinstance(value, str | bytes))

    @cached_property
    def words(self) -> Counter[str]:
        """How often each identifier stands in the text."""
        return Counter(WORD.findall(self.text))

    @cached_property
    def bracketed(self) -> int:
        """How many names and conditions stand in parentheses that they do not need, as an edit can leave them."""
        lines = self.text.split("\n")
        tests = [item.test for item in self.nodes if isinstance(item, ast.If | ast.While)]
        alone = [test for test in tests if not isinstance(test, ast.BoolOp) and test.lineno == test.end_lineno]
        wrapped = sum(lines[test.lineno - 2].rstrip().endswith((" (", "\t(")) for test in alone if test.lineno > 1)
        return wrapped + len(_BRACKETED.findall(self.text))

    @cached_property
    def conditions(self) -> tuple[ast.expr, ...]:
        """What its branches, loops and comprehensions ask."""
        return conditions(self.nodes)

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
        one_way = filled_only(self.nodes) | never_filled(self.nodes)
        return self.bound - {item.id for item in names} | ((one_way & self.bound) - elsewhere)

    @cached_property
    def unbound(self) -> frozenset[str]:
        """The variables that may be read before they are bound."""
        return unbound_reads(self.node)

    @cached_property
    def unreachable(self) -> int:
        """How many statements stand behind one that leaves their block."""
        return unreachable(self.nodes)

    @cached_property
    def oddities(self) -> Counter[str]:
        """What stands out to a reader, counted by its kind."""
        return oddities(self.nodes)

    @cached_property
    def heeded(self) -> tuple[Counter[str], Counter[str]]:
        """The values that conditions ask for, and those of them that are read where they are there."""
        return heeded(self.nodes)

    @cached_property
    def rows(self) -> Rows:
        """The rows of like statements, conditions and elements."""
        return rows_of(self.nodes)

    @cached_property
    def code(self) -> CodeType | None:
        """What it compiles to; None where Python refuses."""
        return compiled(self.node)


def facts_of(text: str) -> Facts:
    """Read one version of a function. Raises `CodeError` for what is no function."""
    snippet = read_snippet(text)
    if isinstance(snippet.node, ast.ClassDef):
        raise CodeError("The code is a class, not a function.")
    given = snippet.definition
    return Facts(given.document.text, snippet.node, (given.decorators, given.signature), given.docstring_text)


def _explains(block: list[ast.stmt]) -> bool:
    """Whether a block raises an error with a message, which may stand on the line before."""
    return (
        bool(block)
        and isinstance(block[-1], ast.Raise)
        and any(
            isinstance(item, ast.Constant) and isinstance(item.value, str)
            for statement in block[-2:]
            for item in ast.walk(statement)
        )
    )


def _comments(text: str) -> list[tuple[str, str]]:
    if "#" not in text:
        return []
    found: list[tuple[str, str]] = []
    waiting: list[str] = []
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text, newline="\n").readline))
    except (tokenize.TokenError, SyntaxError):
        return [(text, "")]
    for item in tokens:
        if item.type == tokenize.COMMENT:
            if item.line.lstrip().startswith("#"):
                waiting.append(item.string)
            else:
                found.append((item.string, item.line))
        elif waiting and item.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            found += [(comment, item.line) for comment in waiting]
            waiting = []
    return found + [(comment, "") for comment in waiting]
