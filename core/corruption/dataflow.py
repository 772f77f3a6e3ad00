"""Data flow in one function: names read before they are bound, unreachable code, guards turned round."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from gistpoint.core.corruption.named import identifiers, of_one_stem, words
from gistpoint.core.corruption.subject import bound_names

Bound: TypeAlias = frozenset[str] | None
"""The names that are bound at a place on every way to it; None where no way leads there."""

_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def unbound_reads(node: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """Return the local names that may be read before they are bound, loops taken as run once or not at all."""
    outer = {name for item in ast.walk(node) if isinstance(item, ast.Global | ast.Nonlocal) for name in item.names}
    parameters = frozenset(item.arg for item in ast.walk(node.args) if isinstance(item, ast.arg))
    local = bound_names(node.body, into_functions=False) - outer
    flow = _Flow(frozenset(local) - parameters)
    flow.block(node.body, parameters)
    return frozenset(flow.unbound)


class _Flow:
    def __init__(self, local: frozenset[str]) -> None:
        self.local = local
        self.unbound: set[str] = set()

    def block(self, body: Sequence[ast.stmt], bound: Bound) -> Bound:
        for statement in body:
            if bound is None:
                return None
            bound = self.statement(statement, bound)
        return bound

    def statement(self, node: ast.stmt, bound: frozenset[str]) -> Bound:
        if isinstance(node, ast.If):
            bound = self.read(node.test, bound)
            return _joined([self.block(node.body, bound), self.block(node.orelse, bound)])
        if isinstance(node, ast.While):
            bound = self.read(node.test, bound)
            after = self.block(node.body, bound)
            endless = isinstance(node.test, ast.Constant) and node.test.value
            return self.block(node.orelse, _joined([after, bound]) if endless else bound)
        if isinstance(node, ast.For | ast.AsyncFor):
            bound = self.read(node.iter, bound)
            self.block(node.body, bound | bound_names([node.target]))
            return self.block(node.orelse, bound)
        if isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                bound = self.read(item.context_expr, bound)
                bound = bound | (bound_names([item.optional_vars]) if item.optional_vars else frozenset())
            return self.block(node.body, bound)
        if isinstance(node, ast.Try | ast.TryStar):
            return self.attempt(node, bound)
        if isinstance(node, ast.Match):
            bound = self.read(node.subject, bound)
            cases = [self.block(case.body, bound | bound_names([case.pattern])) for case in node.cases]
            return _joined([*cases, bound])
        bound = self.read(node, bound)
        return None if isinstance(node, _LEAVING) else bound

    def attempt(self, node: ast.Try | ast.TryStar, bound: frozenset[str]) -> Bound:
        ways = [self.block(node.orelse, self.block(node.body, bound))]
        for handler in node.handlers:
            name = {handler.name} if handler.name else set()
            ways.append(self.block(handler.body, bound | name))
        if not node.finalbody:
            return _joined(ways)
        last = self.block(node.finalbody, bound)
        joined = _joined(ways)
        return None if joined is None or last is None else joined | last

    def read(self, node: ast.AST, bound: frozenset[str]) -> frozenset[str]:
        """Note the names that are read in code without a flow of its own, and return what is bound behind it."""
        self._note(node, bound)
        return bound | bound_names([node], into_functions=False)

    def _note(self, node: ast.AST, bound: frozenset[str]) -> None:
        if isinstance(node, _SCOPES):
            return
        if isinstance(node, _COMPREHENSIONS):
            bound = bound | bound_names([item.target for item in node.generators])
        name = node.target if isinstance(node, ast.AugAssign) else node
        if isinstance(name, ast.Name) and (name is not node or not isinstance(name.ctx, ast.Store)):
            self.unbound |= ({name.id} & self.local) - bound
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr_context | ast.operator | ast.cmpop):
                self._note(child, bound)


def _joined(ways: Iterable[Bound]) -> Bound:
    open_ways = [way for way in ways if way is not None]
    return frozenset.intersection(*open_ways) if open_ways else None


def unreachable(nodes: Iterable[ast.AST]) -> int:
    """Return how many statements stand behind one that leaves their block."""
    count = 0
    for item in nodes:
        if not isinstance(item, _BLOCKS):
            continue
        for name in ("body", "orelse", "finalbody"):
            block = getattr(item, name, None)
            if isinstance(block, list):
                count += sum(_leaves(statement) for statement in block[:-1])
    return count


def _leaves(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return bool(statement.orelse) and _leaves(statement.body[-1]) and _leaves(statement.orelse[-1])
    return isinstance(statement, _LEAVING)


_LEAST_WORD = 4


def turned_guards(node: ast.AST) -> Iterator[str]:
    """Yield the values that a node reads where its own condition says that there is none, with the place."""
    if isinstance(node, ast.BoolOp):
        yield from _in_operation(node)
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        body, orelse = (part if isinstance(part, list) else [part] for part in (node.body, node.orelse))
        yield from (f"{value} though not there" for value in _absent(node.test) if _used(body, value))
        yield from (f"{value} though not there, else" for value in _present(node.test) if _used(orelse, value))
        yield from (f"{value} though of no such kind" for value in _of_no_kind(node.test) if _taken_apart(body, value))
        yield from (f"{value} though not there, else" for value in _of_kind(node.test) if _taken_apart(orelse, value))


def turned_returns(block: list[ast.stmt]) -> Iterator[str]:
    """Yield the values that a block goes on to use after it has left for the case that there is one."""
    for place, node in enumerate(block):
        if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], _LEAVING):
            rest = block[place + 1 :]
            yield from (f"{value} though not there, after" for value in _present(node.test) if _used(rest, value))
            yield from (f"{value} of no such kind, after" for value in _of_kind(node.test) if _taken_apart(rest, value))


def _in_operation(node: ast.BoolOp) -> Iterator[str]:
    for place, value in enumerate(node.values[:-1]):
        found = _absent(value) if isinstance(node.op, ast.And) else _present(value)
        yield from (f"{item} though not there" for item in found if _read(node.values[place + 1 :], item))


def _of_kind(test: ast.expr) -> Iterator[str]:
    """Yield the values that are not of a kind that has parts, such as a tuple, where a condition does not hold."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _of_no_kind(test.operand)
    elif isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance":
        yield from _plain(test.args[0])
    else:
        yield from _typed(test, (ast.Is, ast.Eq, ast.In))


def _of_no_kind(test: ast.expr) -> Iterator[str]:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _of_kind(test.operand)
    else:
        yield from _typed(test, (ast.IsNot, ast.NotEq, ast.NotIn))


def _typed(test: ast.expr, kinds: tuple[type[ast.cmpop], ...]) -> Iterator[str]:
    """Yield `x` where a test compares `type(x)` by one of some operators."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], kinds) and isinstance(test.left, ast.Call):
        call = test.left
        if isinstance(call.func, ast.Name) and call.func.id == "type" and call.args:
            yield from _plain(call.args[0])


def _absent(test: ast.expr) -> Iterator[str]:
    """Yield the values that are None, empty or not there where a condition holds."""
    if isinstance(test, ast.Compare):
        if isinstance(test.ops[0], ast.Is) and _is_none(test.comparators[0]):
            yield from _plain(test.left)
        elif isinstance(test.ops[0], ast.NotIn):
            yield from _item(test)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _present(test.operand)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from _absent(value)


def _present(test: ast.expr) -> Iterator[str]:
    """Yield the values that are None, empty or not there where a condition does not hold."""
    if isinstance(test, ast.Compare):
        if isinstance(test.ops[0], ast.IsNot) and _is_none(test.comparators[0]):
            yield from _plain(test.left)
        elif isinstance(test.ops[0], ast.In):
            yield from _item(test)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _absent(test.operand)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        for value in test.values:
            yield from _present(value)
    elif isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "hasattr":
        yield from filter(None, [_attribute(test)])
    else:
        yield from _plain(test)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _item(test: ast.Compare) -> Iterator[str]:
    """Yield `y[x]` for `x in y`."""
    key, of = _text(test.left), _text(test.comparators[0])
    if key and of:
        yield f"{of}[{key}]"


def _plain(node: ast.expr) -> Iterator[str]:
    text = _text(node)
    if text and not isinstance(node, ast.Constant):
        yield text


def _text(node: ast.AST) -> str:
    """Return the text of a name, an attribute or an item, without calls; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant):
        return repr(node.value)
    if isinstance(node, ast.Attribute):
        of = _text(node.value)
        return f"{of}.{node.attr}" if of else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
        return _attribute(node)
    if isinstance(node, ast.Subscript):
        of, key = _text(node.value), _text(node.slice)
        return f"{of}[{key}]" if of and key else ""
    return ""


def _attribute(call: ast.Call) -> str:
    """Return what `getattr` or `hasattr` looks at, where its name is written out; else nothing."""
    if len(call.args) < 2 or not isinstance(call.args[1], ast.Constant):
        return ""
    of = _text(call.args[0])
    return f"{of}.{call.args[1].value!s}" if of else ""


def _used(nodes: Iterable[ast.AST], value: str) -> bool:
    """Whether code reads a value before it binds it, or says its name."""
    found = _until_bound(nodes, value)
    return _holds(found, value) or _named(found, value)


def _taken_apart(nodes: Iterable[ast.AST], value: str) -> bool:
    """Whether code reads an attribute or an item of a value before it binds it."""
    return any(
        isinstance(node, ast.Attribute | ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and _text(node.value) == value
        for node in _until_bound(nodes, value)
    )


def _until_bound(nodes: Iterable[ast.AST], value: str) -> list[ast.AST]:
    """Return the nodes of code as far as the first statement that binds a value; what that reads is among them."""
    found: list[ast.AST] = []
    for root in nodes:
        inner = list(ast.walk(root))
        bound = _binds(inner, value)
        if bound and isinstance(root, ast.stmt) and hasattr(root, "body"):
            return found
        found += inner
        if bound:
            return found
    return found


def _read(nodes: Iterable[ast.AST], value: str) -> bool:
    return _holds([item for root in nodes for item in ast.walk(root)], value)


def _binds(nodes: Iterable[ast.AST], value: str) -> bool:
    """Whether code stores to a value, or to the variable that it begins with."""
    places = (value, value.split(".")[0].split("[")[0])
    return any(
        isinstance(node, ast.Name | ast.Attribute | ast.Subscript)
        and not isinstance(node.ctx, ast.Load)
        and _text(node) in places
        for node in nodes
    )


def _holds(nodes: Iterable[ast.AST], value: str) -> bool:
    return any(
        isinstance(node, ast.Name | ast.Attribute | ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and _text(node) == value
        for node in nodes
    )


def _named(nodes: Iterable[ast.AST], value: str) -> bool:
    """Whether names in the code hold the word that stands last in a value, as `show_header` does for `header`.

    Not so for a value that is looked up by a variable: the variable says nothing of it.
    """
    last = () if value.endswith("]") and value[-2:-1] not in "'\"" else words(value)[-1:]
    return len("".join(last)) >= _LEAST_WORD and any(of_one_stem(last, words(name)) for name in identifiers(nodes))


def heeded(nodes: Iterable[ast.AST]) -> tuple[Counter[str], Counter[str]]:
    """Count the values that an `if` asks for, and those of them that are read where they are there.

    A value that is asked for and then not read, where another one is, stands out.
    """
    asked, read = Counter[str](), Counter[str]()
    for node in nodes:
        if isinstance(node, ast.If | ast.IfExp):
            branches = node.body if isinstance(node.body, list) else [node.body]
            for value in {*_present_in(node.test)}:
                asked[value] += 1
                read[value] += _read(branches, value)
    return asked, read


def _present_in(test: ast.expr) -> Iterator[str]:
    """Yield the values that are there where a condition holds."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from _present_in(value)
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot):
        yield from _plain(test.left)
    else:
        yield from _present(test)
