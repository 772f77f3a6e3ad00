"""Finds code that gives a corruption away to a reader, because nobody writes it on purpose.

Examples are a value compared with itself, a branch that does nothing, and a value read although a condition
says that it is absent (`absences.py`). They count only if they are more frequent in the corrupted version
than in the original (`gates.py`, decision 30), so each rule may be broad: much good code contains them too.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise, product, starmap

from gistpoint.core.code.compare import same_tree
from gistpoint.core.code.nodes import has_any, inside, only
from gistpoint.core.corruption.absences import uses_despite_condition, uses_despite_return
from gistpoint.core.corruption.flow import blocks_of
from gistpoint.core.corruption.shapes import LOOPS, elements, is_all_of, names_in, texts_of

_SAME_IS_FINE = (ast.Constant, ast.UnaryOp)
"""Expressions whose repetition is not suspicious, such as `1` or `-x`."""
_LESS, _MORE = (ast.Lt, ast.LtE), (ast.Gt, ast.GtE)
_ROW = 3
"""The minimum number of similar cases in a row among which a different one is noticed."""
_ALIKE, _APART = (ast.Eq, ast.Is, ast.In), (ast.NotEq, ast.IsNot, ast.NotIn)
"""Comparisons that hold for equal values or for members, and comparisons that hold for all others."""
_IDLE = (ast.Name, ast.Attribute, ast.Compare, ast.Subscript, ast.BinOp)
"""Expressions that do nothing as whole statements."""
_CONVERTING = ("int", "str", "float", "bool")


def oddities(nodes: Iterable[ast.AST]) -> Counter[str]:
    """Return the counts of oddities by description, such as `compared with itself`.

    `nodes` are all nodes of a function, not only their roots.
    """
    found: Counter[str] = Counter()
    for item in nodes:
        found.update(_of_statement(item) if isinstance(item, ast.stmt) else _of_expression(item))
        found.update(uses_despite_condition(item))
    return found


def _of_expression(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Compare():
            yield from _of_comparison(node)
        case ast.BoolOp():
            yield from _of_and_or(node)
        case ast.BinOp():
            yield from _of_arithmetic(node)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield from _repeated([body, orelse], "same value either way")
            yield from _constant_condition(test)
        case ast.Call():
            yield from _of_call(node)
        case ast.Tuple(elts=items, ctx=ast.Load()) | ast.List(elts=items, ctx=ast.Load()):
            yield from _repeated(items, "element repeated")
        case ast.Subscript(value=ast.Call(func=called, args=[])) if _called_name(called) == "keys":
            yield "keys indexed"
        case ast.Slice(lower=ast.expr() as lower, upper=ast.expr() as upper):
            yield from _repeated([lower, upper], "bound repeated")
        case (
            ast.ListComp(elt=element, generators=[ast.comprehension(target=target, ifs=[])])
            | ast.SetComp(elt=element, generators=[ast.comprehension(target=target, ifs=[])])
            | ast.GeneratorExp(elt=element, generators=[ast.comprehension(target=target, ifs=[])])
        ) if ast.unparse(element) == ast.unparse(target):
            yield "collected as it is"


def _of_comparison(node: ast.Compare) -> Iterator[str]:
    if any(starmap(_are_suspiciously_equal, pairwise([node.left, *node.comparators]))):
        yield "compared with itself"
    if has_any(_LESS, node.ops) and has_any(_MORE, node.ops):
        yield "compared both ways"


def _of_call(node: ast.Call) -> Iterator[str]:
    yield from _repeated(node.args, "argument repeated")
    yield from _nested_twice(node)
    yield from _into_itself(node)
    constants = list(only(ast.Constant, node.args))
    if constants == node.args and _called_name(node.func) in _CONVERTING:
        yield "constant converted"


def _of_and_or(node: ast.BoolOp) -> Iterator[str]:
    yield from _repeated(node.values, "condition repeated")
    if is_all_of(node) and any(map(_is_empty_literal, node.values)):
        yield "always empty"
    if _has_pointless_comparison(node):
        yield "comparison that adds nothing"


def _has_pointless_comparison(node: ast.BoolOp) -> bool:
    """Return whether conditions test that a value both is and isn't something: `x == 1 or x != 2`."""
    alike, apart = (_compared_values(node.values, signs) for signs in (_ALIKE, _APART))
    return any(starmap(_equal, product(alike, apart)))


def _compared_values(conditions: Iterable[ast.expr], signs: tuple[type[ast.cmpop], ...]) -> list[ast.expr]:
    """Return the left sides of the comparisons whose first operator is one of `signs`."""
    comparisons = only(ast.Compare, conditions)
    return [comparison.left for comparison in comparisons if isinstance(comparison.ops[0], signs)]


def _is_empty_literal(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return not value
        case ast.Dict(keys=items) | ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return not items
    return False


def _of_arithmetic(node: ast.BinOp) -> Iterator[str]:
    terms = _terms(node)
    if len(terms) >= _ROW:
        yield from _repeated([terms[0], terms[-1]], "begins and ends alike")
    # `x * x` and `x + x` are common.
    if _are_suspiciously_equal(node.left, node.right) and not isinstance(node.op, ast.Mult | ast.Add):
        yield "operand repeated"
    match node:
        case ast.BinOp(op=ast.Add() | ast.Sub(), right=ast.Constant(value=0)):
            yield "nothing added"


def _terms(node: ast.expr) -> list[ast.expr]:
    """Return the terms of a sum, from the left."""
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*_terms(left), right]
    return [node]


def _of_statement(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.Assign(targets=targets, value=value):
            if any(_equal(target, value) for target in targets):
                yield "assigned to itself"
        case ast.If():
            yield from _of_cases(node)
        case ast.While(test=test) if not isinstance(test, ast.Constant):
            yield from _constant_condition(test)
        case ast.Expr(value=value) if isinstance(value, _IDLE):
            yield "statement without effect"
        case ast.Try() | ast.TryStar():
            yield from _of_handlers(node)
    if isinstance(node, LOOPS) and node.orelse and not _has_break(node.body):
        yield "else of a loop that is never left"
    # The blocks of handlers and of cases, which are not statements, are not searched.
    for block in blocks_of(node):
        yield from _of_block(block)


def _of_block(block: list[ast.stmt]) -> Iterator[str]:
    yield from uses_despite_return(block)
    yield from _same_returns(block)
    yield from _stored_twice(block)
    yield from _copy_tested(block)
    yield from _looped_while_empty(block)
    if any(starmap(_equal, pairwise(block))):
        yield "statement repeated"
    if any(starmap(_asks_again, pairwise(block))):
        yield "asked twice in a row"
    # If two `if`s return under the same condition, the second is unreachable.
    tests = [item.test for item in only(ast.If, block) if isinstance(item.body[-1], ast.Return)]
    yield from _repeated(tests, "left twice for one reason")


def _asks_again(first: ast.stmt, second: ast.stmt) -> bool:
    """Return whether two statements are `if`s with the same condition."""
    return isinstance(first, ast.If) and isinstance(second, ast.If) and _equal(first.test, second.test)


def _has_break(body: list[ast.stmt]) -> bool:
    """Return whether a `break` leaves the loop that has this body."""
    for node in body:
        if isinstance(node, ast.Break):
            return True
        # A `break` in an inner loop leaves only that loop, but one in its `else` leaves this one.
        inner = [node.orelse] if isinstance(node, LOOPS) else blocks_of(node)
        parts = (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))
        inner += [part.body for part in parts]
        if any(map(_has_break, inner)):
            return True
    return False


def _of_cases(node: ast.If) -> Iterator[str]:
    yield from _constant_condition(node.test)
    if _adds_known(node):
        yield "added where it is"
    if _stores_known(node):
        yield "stored what is there"
    same_length = len(node.body) == len(node.orelse)
    if same_length and all(map(_equal, node.body, node.orelse)):
        yield "same branches"
    if node.orelse and _equal(node.body[-1], node.orelse[-1]):
        yield "branches end alike"
    tests = list(_tests_in_turn(node))
    yield from _repeated(tests, "case repeated")
    if _has_odd_one_out(tests):
        yield "one case asks for something else"


def _has_odd_one_out(tests: Sequence[ast.expr]) -> bool:
    """Return whether one of three or more consecutive conditions compares a different value."""
    compared = Counter(ast.unparse(test.left) for test in only(ast.Compare, tests))
    if len(tests) < _ROW or compared.total() != len(tests):
        return False
    return len(compared) == 2 and min(compared.values()) == 1


def _tests_in_turn(node: ast.If) -> Iterator[ast.expr]:
    """Yield the conditions of an `if` and of all its `elif`s."""
    yield node.test
    match node.orelse:
        case [ast.If() as following]:
            yield from _tests_in_turn(following)


def _adds_known(node: ast.If) -> bool:
    """Return whether a branch adds x to y although its condition requires `x in y`."""
    tests = node.test.values if is_all_of(node.test) else [node.test]
    contained = [test for test in only(ast.Compare, tests) if isinstance(test.ops[0], ast.In)]
    return any(starmap(_adds, product(node.body, contained)))


def _adds(item: ast.stmt, test: ast.Compare) -> bool:
    match item:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr="add" | "append"), args=args)):
            if _equal(owner, test.comparators[0]):
                return any(_equal(argument, test.left) for argument in args)
    return False


def _stores_known(node: ast.If) -> bool:
    """Return whether the first store to a place under the condition `place == value` stores that value."""
    match node.test:
        case ast.Compare(left=place, ops=[ast.Eq() | ast.Is(), *_], comparators=[value, *_]):
            for item in only(ast.Assign, node.body):
                # Later stores may follow a change of the value.
                if _equal(item.targets[0], place):
                    return _equal(item.value, value)
    return False


def _of_handlers(node: ast.Try | ast.TryStar) -> Iterator[str]:
    kinds = [item for handler in node.handlers if handler.type for item in elements(handler.type)]
    yield from _repeated(kinds, "exception repeated")
    earlier = {kind.id for kind in only(ast.Name, kinds[:-1])}
    if not earlier.isdisjoint(("Exception", "BaseException")):
        yield "handler out of reach"


def _same_returns(block: list[ast.stmt]) -> Iterator[str]:
    """Yield a finding if a block returns the same whether or not a condition holds or an error is raised."""
    for node, following in pairwise([*block, None]):
        if any(starmap(_returns_alike, pairwise(_ways_out(node, following)))):
            yield "same result either way"


def _ways_out(node: ast.stmt | None, following: ast.stmt | None) -> list[ast.stmt]:
    """Return the last statement of each path through an `if` without `else`, or a `try`; empty for others.

    The path that skips the `if` ends with the statement that follows it. A `finally` is ignored.
    """
    match node:
        case ast.If(body=[*_, ending], orelse=[]) if following is not None:
            return [ending, following]
        case ast.Try(body=body, handlers=handlers, orelse=orelse):
            return [(orelse or body)[-1], *(handler.body[-1] for handler in handlers)]
    return []


def _returns_alike(one: ast.stmt, two: ast.stmt) -> bool:
    return isinstance(one, ast.Return) and one.value is not None and _equal(one, two)


def _stored_twice(block: list[ast.stmt]) -> Iterator[str]:
    """Yield a finding for each place that adjacent assignments set again, without using it for the new value.

    A read between the two, as in `a = f(); b = a; a = g()`, is not detected.
    """
    stored: set[str] = set()
    for node in block:
        match node:
            case ast.Assign(targets=[place], value=value):
                target = ast.unparse(place)
                if target in stored and target not in map(ast.unparse, ast.walk(value)):
                    yield "stored twice"
                stored.add(target)
            case _:
                stored = set()


def _copy_tested(block: list[ast.stmt]) -> Iterator[str]:
    """Yield a finding for each condition that tests a name and a copy of it, made right before."""
    for node, following in pairwise(block):
        test = getattr(following, "test", None)
        match node:
            case ast.Assign(targets=[place], value=ast.Name(id=name)) if isinstance(test, ast.BoolOp):
                if {ast.unparse(place), name} <= texts_of(test.values):
                    yield "copy tested"


def _looped_while_empty(block: list[ast.stmt]) -> Iterator[str]:
    """Yield a finding if a loop iterates over a collection that was created empty right before it."""
    for node, following in pairwise(block):
        match node, following:
            case ast.Assign(targets=targets, value=value), ast.For(iter=iterated):
                created = {item.id for item in only(ast.Name, targets)}
                if is_empty_collection(value) and not names_in(iterated).isdisjoint(created):
                    yield "looped over while empty"


def _constant_condition(test: ast.expr) -> Iterator[str]:
    if isinstance(test, ast.Constant | ast.Tuple | ast.Lambda | ast.List | ast.Dict):
        yield "condition constant"


def _repeated(nodes: Sequence[ast.expr], what: str) -> Iterator[str]:
    if any(starmap(_are_suspiciously_equal, combinations(nodes, 2))):
        yield what


def _nested_twice(node: ast.Call) -> Iterator[str]:
    """Yield a finding if a call is applied twice in a row: `x.lower().lower()`, `list(list(x))`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call(args=[]) as inner), args=[], keywords=[]):
            same = _called_name(inner.func) == _called_name(node.func)
        case ast.Call(func=ast.Name(id=name), args=[ast.Call(args=[] | [_]) as inner], keywords=[]):
            same = _called_name(inner.func) == name
        case _:
            return
    if same:
        yield "call repeated"


def _into_itself(node: ast.Call) -> Iterator[str]:
    """Yield a finding if a value made from a collection is put into that collection."""
    match node.func:
        case ast.Attribute(value=owner, attr="append" | "add" | "insert" | "appendleft"):
            yield from ("put into itself" for inner in inside(ast.expr, *node.args) if _equal(owner, inner))


def _called_name(node: ast.expr) -> str:
    """Return the name of a variable or an attribute; for anything else, its dump, which equals no name."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ast.dump(node)


def _are_suspiciously_equal(first: ast.AST, second: ast.AST) -> bool:
    """Return whether two expressions are equal, and not of a kind that may be repeated."""
    return not isinstance(first, _SAME_IS_FINE) and _equal(first, second)


def _equal(first: ast.AST, second: ast.AST) -> bool:
    """Return whether two nodes are equal; `x` in `x = 1` equals an `x` that is read."""
    return type(first) is type(second) and same_tree(first, second)


def is_empty_collection(value: ast.expr) -> bool:
    """Return whether a value is a list, set, tuple or dict without elements."""
    match value:
        case (
            ast.Call(func=ast.Name(id="list" | "set" | "dict"), args=[], keywords=[])
            | ast.List(elts=[])
            | ast.Set(elts=[])
            | ast.Tuple(elts=[])
            | ast.Dict(keys=[])
        ):
            return True
    return False
