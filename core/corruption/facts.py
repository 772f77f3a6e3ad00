"""The facts of a function that the gates compare before and after a corruption.

The facts are its header, comments and names, the values that its conditions test, rows of similar statements,
and compiled code. Each is computed at most once.
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
from itertools import chain, pairwise
from types import CodeType

from gistpoint.core.code.bindings import names_bound_in
from gistpoint.core.code.nodes import inside, only
from gistpoint.core.code.parsing import CodeError, compile_module, parse, parse_expression
from gistpoint.core.code.snippet import read_snippet
from gistpoint.core.corruption.absence import unguarded
from gistpoint.core.corruption.absences import tested_and_read
from gistpoint.core.corruption.flow import blocks_of, unbound_reads, unreachable
from gistpoint.core.corruption.giveaways import is_empty_collection, oddities
from gistpoint.core.corruption.liveness import dead_stores
from gistpoint.core.corruption.naming import identifiers, words
from gistpoint.core.corruption.shapes import (
    ASSIGNING,
    SHARING,
    Assigning,
    FunctionNode,
    is_one_line,
    name_of,
    names_read,
    targets_of,
)

_BRACKETED = re.compile(r"(?:\b(?:if|elif|while|return|and|or|not|in|is)|[=+\-*/%<>,(])\s*\(\s*[\w.]+\s*\)")
_WORD = re.compile(r"[^\W\d]\w*")
_ASKING: tuple[type[ast.If | ast.While], ...] = (ast.If, ast.While)


# A fact is computed when a gate first asks for it: most corruptions are dropped before most facts are needed
# (decision 62).
@dataclass(frozen=True)
class ScopeFacts:
    """One version of a function, whose nodes are walked once."""

    text: str
    node: FunctionNode = field(repr=False)
    header: tuple[tuple[str, ...], str]
    docstring: str | None

    @cached_property
    def comments(self) -> list[tuple[str, str]]:
        """Each comment with the line of code that it follows or precedes.

        A comment describes that line, so a reader notices if the line is missing or does something else.
        """
        return [(comment, line) for _, comment, line in self._all_comments]

    @cached_property
    def remarks(self) -> list[tuple[int, str]]:
        """Each comment with its line, counted from 0."""
        return [(row, comment) for row, comment, _ in self._all_comments]

    @cached_property
    def _all_comments(self) -> list[tuple[int, str, str]]:
        return _comments(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the function."""
        return tuple(ast.walk(self.node))

    @cached_property
    def explained(self) -> Counter[str]:
        """The conditions and handled exceptions that lead to an error with a message, with their counts."""
        return Counter(map(ast.unparse, filter(None, map(_explained, self.nodes))))

    @cached_property
    def named(self) -> frozenset[str]:
        """The names of variables, functions and modules that the function reads or binds."""
        return frozenset(item.id for item in only(ast.Name, self.nodes))

    @cached_property
    def identifiers(self) -> Counter[str]:
        """The names and attributes in the body with their counts, without calls to the function itself."""
        return identifiers(inside(ast.AST, *self.node.body), self.node.name)

    @cached_property
    def idle(self) -> bool:
        """Whether the function does nothing but return one constant."""
        return _idle(self.node)

    @cached_property
    def bound(self) -> frozenset[str]:
        """The names that the function binds, including itself and its parameters."""
        return frozenset(names_bound_in([self.node]))

    @cached_property
    def strings(self) -> frozenset[str | bytes]:
        """The strings and bytes among its literals."""
        values = (item.value for item in only(ast.Constant, self.nodes))
        return frozenset(value for value in values if isinstance(value, str | bytes))

    @property
    def texts(self) -> list[str]:
        """The strings among its literals, without bytes."""
        return [text for text in self.strings if isinstance(text, str)]

    @cached_property
    def words(self) -> Counter[str]:
        """The number of times that each identifier occurs in the text."""
        return Counter(_WORD.findall(self.text))

    @cached_property
    def bracketed(self) -> int:
        """The number of names and conditions with unnecessary parentheses, which an edit can leave behind."""
        wrapped = sum(self._is_wrapped(item.test) for item in only(_ASKING, self.nodes))
        return wrapped + len(_BRACKETED.findall(self.text))

    def _is_wrapped(self, test: ast.expr) -> bool:
        """Return whether a condition is alone on its line, inside unnecessary parentheses opened above."""
        if not is_one_line(test) or isinstance(test, ast.BoolOp) or test.lineno == 1:
            return False
        line_before = self.text.split("\n")[test.lineno - 2]
        return line_before.rstrip().endswith((" (", "\t("))

    @cached_property
    def conditions(self) -> tuple[ast.expr, ...]:
        """The conditions of branches, loops and conditional expressions, and comprehensions' filters."""
        return tuple(chain.from_iterable(map(_conditions, self.nodes)))

    @cached_property
    def results(self) -> tuple[frozenset[str], int]:
        """The constants that the function returns, and the number of statements that return one."""
        constants = list(map(ast.unparse, only(ast.Constant, self._returned)))
        return frozenset(constants), len(constants)

    @property
    def _returned(self) -> Iterator[ast.expr | None]:
        return (item.value for item in only(ast.Return, self.nodes))

    @cached_property
    def unused(self) -> frozenset[str]:
        """The bound names that are never read, are only filled, or are empty collections that stay empty."""
        # Names that are shared with code outside may be read or filled there.
        given = {item.arg for item in only(ast.arg, self.nodes)}
        elsewhere = given.union(*(item.names for item in only(SHARING, self.nodes)))
        one_way = _filled_only(self.nodes) | _never_filled(self.nodes)
        return self.bound.difference(names_read(self.nodes)) | ((one_way & self.bound) - elsewhere)

    @cached_property
    def constant_places(self) -> frozenset[str]:
        """The variables, attributes and items to which only one constant is assigned, always by `=`."""
        values: dict[str, set[str]] = {}
        for node in only(ASSIGNING, self.nodes):
            if node.value is None:
                continue
            # Two values represent any value: a place that has them is not constant.
            found = [ast.unparse(node.value)] if _is_plain(node) else ["", "?"]
            for target in targets_of(node):
                values.setdefault(ast.unparse(target), set()).update(found)
        return frozenset(place for place, given in values.items() if len(given) == 1)

    @cached_property
    def dead(self) -> Counter[str]:
        """The assignments whose value is never read, counted by variable."""
        return dead_stores(self.node)

    @cached_property
    def unguarded(self) -> frozenset[str]:
        """The values that may be absent, are used, and are never tested."""
        return unguarded(self.node, self.nodes)

    @cached_property
    def twins(self) -> Counter[str]:
        """The counts of longer simple statements without their variables' names, and of longer conditions."""
        return Counter(filter(None, map(_twin, self.nodes)))

    @cached_property
    def options(self) -> Counter[str]:
        """The number of times that each function is called with each keyword."""
        return Counter(chain.from_iterable(map(_options, only(ast.Call, self.nodes))))

    @cached_property
    def spelled(self) -> frozenset[str]:
        """The words of its names and strings."""
        return frozenset(chain.from_iterable(map(words, (*self.identifiers, *self.texts))))

    @cached_property
    def described(self) -> frozenset[str]:
        """The words of its name, docstring and comments."""
        texts = (self.node.name, self.docstring or "", *(comment for _, comment in self.remarks))
        return frozenset(chain.from_iterable(map(words, texts)))

    @cached_property
    def converted(self) -> int:
        """The number of results that are converted to the annotated type of the function."""
        kind = ast.unparse(self.node.returns) if self.node.returns is not None else ""
        return sum(ast.unparse(call.func) == kind for call in only(ast.Call, self._returned))

    @cached_property
    def unbound(self) -> frozenset[str]:
        """The variables that the function may read before they are bound."""
        return unbound_reads(self.node)

    @cached_property
    def unreachable(self) -> int:
        """The number of statements that leave their block although others follow."""
        return unreachable(self.nodes)

    @cached_property
    def oddities(self) -> Counter[str]:
        """The oddities that a reader would notice, counted by kind."""
        return oddities(self.nodes)

    @cached_property
    def tested_and_read(self) -> tuple[Counter[str], Counter[str]]:
        """The number of conditions that test each value, and the number of their branches that read it."""
        return tested_and_read(self.nodes)

    @cached_property
    def rows(self) -> NeighbourForms:
        """The rows of similar statements, conditions and elements."""
        return _rows_of(self.nodes)

    @cached_property
    def code(self) -> CodeType | None:
        """The compiled code; None if Python can't compile it."""
        return _compiled(self.node)


def facts_of(text: str) -> ScopeFacts:
    """Return the facts of one version of a function. Raises `CodeError` if the text is not a function."""
    snippet = read_snippet(text)
    if isinstance(snippet.node, ast.ClassDef):
        raise CodeError("The code is a class, not a function.")
    given = snippet.definition
    return ScopeFacts(
        given.document.text, snippet.node, (given.decorators, given.signature), given.docstring_text
    )


def _explained(node: ast.AST) -> ast.expr | None:
    """Return the condition or the type of exception that an error message in a node describes; else None."""
    match node:
        case ast.If(test=test, body=body, orelse=orelse) if _explains(body) or _explains(orelse):
            return test
        case ast.ExceptHandler(type=kind, body=body) if _explains(body):
            return kind
    return None


def _explains(block: list[ast.stmt]) -> bool:
    """Return whether a block ends by raising an error with a message, built in its last two statements."""
    match block:
        case [*_, ast.Raise()]:
            return any(isinstance(item.value, str) for item in inside(ast.Constant, *block[-2:]))
    return False


def _conditions(node: ast.AST) -> Sequence[ast.expr]:
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            return (test,)
        case ast.comprehension(ifs=tests):
            return tests
    return ()


def _is_plain(node: Assigning) -> bool:
    """Return whether a statement assigns a constant, possibly with a sign, by `=`."""
    match node:
        case ast.AugAssign():
            return False
        case ast.Assign(value=ast.UnaryOp(operand=value)) | ast.AnnAssign(value=ast.UnaryOp(operand=value)):
            return isinstance(value, ast.Constant)
    return isinstance(node.value, ast.Constant)


def _options(call: ast.Call) -> list[str]:
    """Return the keywords of a call, each after the last name of the called function."""
    called = ast.unparse(call.func).rpartition(".")[2] if call.keywords else ""
    return [f"{called} {given.arg}" for given in call.keywords]


def _comments(text: str) -> list[tuple[int, str, str]]:
    if "#" not in text:
        return []
    found: list[tuple[int, str, str]] = []
    waiting: list[tuple[int, str, str]] = []
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text, newline="\n").readline))
    except (tokenize.TokenError, SyntaxError):
        return [(0, text, "")]
    for item in tokens:
        if item.type == tokenize.COMMENT:
            row = item.start[0] - 1
            # A comment on its own line waits for the next line of code.
            if item.line.lstrip().startswith("#"):
                waiting.append((row, item.string, ""))
            else:
                found.append((row, item.string, item.line))
        elif item.type not in _LAYOUT:
            found += [(row, comment, item.line) for row, comment, _ in waiting]
            waiting = []
    return found + waiting


_LAYOUT = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
_FILLING = frozenset(
    {"add", "append", "appendleft", "discard", "extend", "insert", "remove", "setdefault", "update"}
)
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def _idle(function: FunctionNode) -> bool:
    """Return whether a function always returns the same constant, and does nothing else.

    Results of recursive calls don't count.
    """
    nodes = list(_own_nodes(function))
    if any(map(_has_effect, nodes)):
        return False
    values: set[str] = set()
    for node in only(ast.Return, nodes):
        if node.value is None:
            values.add("None")
        elif not _calls(node.value, function.name):
            values.add(ast.unparse(node.value))
    if len(values) > 1:
        return False
    return all(isinstance(parse_expression(value), ast.Constant) for value in values)


def _own_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """Yield the nodes of the body, without those of nested functions."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _INNER):
            waiting += ast.iter_child_nodes(node)


def _has_effect(node: ast.AST) -> bool:
    """Return whether a node has an effect: a store outside, a call for its effect, a `yield` or an error."""
    match node:
        case ast.Attribute(ctx=ctx) | ast.Subscript(ctx=ctx):
            return not isinstance(ctx, ast.Load)
        case ast.Expr(value=ast.Call() | ast.Await()):
            return True
    return isinstance(node, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom | ast.Raise)


def _calls(value: ast.expr | None, name: str) -> bool:
    return isinstance(value, ast.Call) and name_of(value.func) == name


def _filled_only(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the variables that are only read to fill them: `found.append(x)`."""
    loads, fills = Counter[str](), Counter[str]()
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                loads[name] += 1
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method))):
                fills[name] += method in _FILLING
    return frozenset(name for name, number in fills.items() if number == loads[name])


def _never_filled(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the variables that start as an empty collection and are never filled afterwards."""
    begun, named, plain = set[str](), Counter[str](), Counter[str]()
    for node in nodes:
        match node:
            case ast.Name(id=name):
                named[name] += 1
            case (
                ast.Assign(targets=[ast.Name(id=name), *_], value=ast.expr() as value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                if is_empty_collection(value):
                    begun.add(name)
            case ast.Return(value=ast.Name(id=name)):
                plain[name] += 1
            case ast.Compare(comparators=others):
                plain.update(item.id for item in only(ast.Name, others))
    return frozenset(name for name in begun if named[name] == 1 + plain[name])


_LEAVES = (ast.Name, ast.Constant, ast.List, ast.Dict, ast.Tuple, ast.Set, ast.JoinedStr)
_VARIABLE = re.compile(r"id='[^']*'")
_LEAST = 4
"""The minimum number of parts in a compared piece: smaller pieces may be alike by chance."""


@dataclass(frozen=True, slots=True)
class NeighbourForms:
    """The number of pairs of neighbours with the same form, and the forms that occur.

    Neighbours are consecutive statements in a block, operands of one `and` or `or`, and elements of a
    collection.
    """

    alike: int
    forms: Counter[tuple[str, ...]]
    twins: int
    """The number of pairs of neighbours that are equal except for the names of variables."""

    def broken_by(self, after: NeighbourForms) -> bool:
        """Return whether a piece no longer resembles its neighbours; pieces that only moved don't count."""
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
    match node:
        case ast.If(test=test) | ast.While(test=test):
            return f"if {ast.unparse(test)}" if len(_form(test)) >= _LEAST else ""
        case ast.Assign() | ast.AugAssign() | ast.Expr() | ast.Return() if len(_form(node)) > _LEAST:
            return _outline(node)
    return ""


def _outline(node: ast.AST) -> str:
    """Return a simple statement or an expression without its variables' names; empty for other nodes."""
    return "" if hasattr(node, "body") else _VARIABLE.sub("id=", ast.dump(node))


def _groups(node: ast.AST) -> Sequence[Sequence[ast.AST]]:
    match node:
        case ast.BoolOp(values=items) | ast.List(elts=items) | ast.Tuple(elts=items):
            return [items]
    return blocks_of(node)


def _form(node: ast.AST) -> tuple[str, ...]:
    """Return the types of a node's parts in order; for a compound statement, of its test."""
    kind = type(node).__name__
    match node:
        case ast.If(test=test) | ast.While(test=test):
            return (kind, *_form(test))
        case _ if isinstance(node, _LEAVES):
            return ("value",)
        case ast.stmt() if hasattr(node, "body"):
            return (kind,)
    parts = (child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context))
    return (kind, *chain.from_iterable(map(_form, parts)))


def _compiled(node: FunctionNode) -> CodeType | None:
    """Return the compiled code of a function, which is not run; None if Python can't compile it.

    Names of enclosing functions are provided.
    """
    outer = sorted({name for item in inside(ast.Nonlocal, node) for name in item.names})
    body: list[ast.stmt] = [node]
    if outer:
        wrap = parse(f"def around():\n {' = '.join(outer)} = None").body[0]
        if isinstance(wrap, ast.FunctionDef):
            wrap.body.append(node)
            body = [wrap]
    try:
        return compile_module(ast.Module(body, type_ignores=[]), "<corruption>")
    except (SyntaxError, ValueError):
        return None


def same_code(first: CodeType, second: CodeType) -> bool:
    """Return whether two code objects are equal apart from positions. Python has folded their constants."""
    if _without_constants(first) != _without_constants(second):
        return False
    same_number = len(first.co_consts) == len(second.co_consts)
    return same_number and all(map(_same_constant, first.co_consts, second.co_consts))


def _without_constants(code: CodeType) -> tuple[object, ...]:
    names = code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars
    return code.co_code, code.co_exceptiontable, code.co_flags, *names


def _same_constant(first: object, second: object) -> bool:
    if isinstance(first, CodeType) and isinstance(second, CodeType):
        return same_code(first, second)
    # The order in which a frozenset is printed depends on the hash seed.
    if isinstance(first, frozenset) and isinstance(second, frozenset):
        return sorted(map(repr, first)) == sorted(map(repr, second))
    return repr(first) == repr(second)
