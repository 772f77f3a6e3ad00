"""Finds code that gives a corruption away to a reader, because nobody writes it on purpose.

Examples are a value compared with itself, a branch that does nothing, and a value read although a condition
says that it is absent. Only oddities that the original does not have count (decision 30), so each rule may be
broad: much good code has such places.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, pairwise, product, starmap

from gistpoint.core.code.compare import same_tree
from gistpoint.core.corruption.flow import blocks_of
from gistpoint.core.corruption.naming import identifiers, of_one_stem, words
from gistpoint.core.corruption.shapes import (
    LOOPS,
    TESTING,
    elements,
    has_any,
    inside,
    is_all_of,
    is_guard,
    is_none,
    names_in,
    only,
    texts_of,
)

_SAME_IS_FINE = (ast.Constant, ast.UnaryOp)
_LESS, _MORE = (ast.Lt, ast.LtE), (ast.Gt, ast.GtE)
_ROW = 3
"""The minimum number of similar cases in a row among which a different one is noticed."""
_ALIKE, _APART = (ast.Eq, ast.Is, ast.In), (ast.NotEq, ast.IsNot, ast.NotIn)
_PLACES: tuple[type[ast.Name | ast.Attribute | ast.Subscript], ...] = (ast.Name, ast.Attribute, ast.Subscript)
_PARTS: tuple[type[ast.Attribute | ast.Subscript], ...] = (ast.Attribute, ast.Subscript)
_LEAST_WORD = 4
_VALUES = (ast.Name, ast.Attribute, ast.Compare, ast.Subscript, ast.BinOp)
_CONVERTING = ("int", "str", "float", "bool")


def oddities(nodes: Iterable[ast.AST]) -> Counter[str]:
    """Return the counts of these nodes' oddities by description, such as `compared with itself`."""
    found: Counter[str] = Counter()
    for item in nodes:
        found.update(_of_statement(item) if isinstance(item, ast.stmt) else _of_expression(item))
        found.update(_turned_guards(item))
    return found


def _of_expression(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Compare():
            yield from _of_comparison(node)
        case ast.BoolOp():
            yield from _of_operation(node)
        case ast.BinOp():
            yield from _of_sum(node)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield from _repeated([body, orelse], "same value either way")
            yield from _constant(test)
        case ast.Call():
            yield from _of_call(node)
        case ast.Tuple(elts=items, ctx=ast.Load()) | ast.List(elts=items, ctx=ast.Load()):
            yield from _repeated(items, "element repeated")
        case ast.Subscript(value=ast.Call(func=called, args=[])) if _name(called) == "keys":
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
    if any(starmap(_same, pairwise([node.left, *node.comparators]))):
        yield "compared with itself"
    if has_any(_LESS, node.ops) and has_any(_MORE, node.ops):
        yield "compared both ways"


def _of_call(node: ast.Call) -> Iterator[str]:
    yield from _repeated(node.args, "argument repeated")
    yield from _nested_twice(node)
    yield from _into_itself(node)
    constants = list(only(ast.Constant, node.args))
    if constants == node.args and _name(node.func) in _CONVERTING:
        yield "constant converted"


def _of_operation(node: ast.BoolOp) -> Iterator[str]:
    yield from _repeated(node.values, "condition repeated")
    if is_all_of(node) and any(map(_is_empty_literal, node.values)):
        yield "always empty"
    if _says_twice(node):
        yield "comparison that adds nothing"


def _says_twice(node: ast.BoolOp) -> bool:
    """Whether one comparison makes another one pointless, as in `x != 1 or x == 2`."""
    narrow_signs, wide_signs = (_ALIKE, _APART) if is_all_of(node) else (_APART, _ALIKE)
    narrow = _compared(node.values, narrow_signs)
    wide = _compared(node.values, wide_signs)
    return any(starmap(_equal, product(narrow, wide)))


def _compared(conditions: Iterable[ast.expr], signs: tuple[type[ast.cmpop], ...]) -> list[ast.expr]:
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


def _of_sum(node: ast.BinOp) -> Iterator[str]:
    terms = _terms(node)
    if len(terms) >= _ROW:
        yield from _repeated([terms[0], terms[-1]], "begins and ends alike")
    if _same(node.left, node.right) and not isinstance(node.op, ast.Mult | ast.Add):
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
            if any(starmap(_equal, product(targets, [value]))):
                yield "assigned to itself"
        case ast.If():
            yield from _of_cases(node)
        case ast.While(test=test) if not isinstance(test, ast.Constant):
            yield from _constant(test)
        case ast.Expr(value=value) if isinstance(value, _VALUES):
            yield "statement without effect"
        case ast.Try() | ast.TryStar():
            yield from _of_handlers(node)
    if isinstance(node, LOOPS) and node.orelse and not _has_break(node.body):
        yield "else of a loop that is never left"
    for block in blocks_of(node):
        yield from _of_block(block)


def _of_block(block: list[ast.stmt]) -> Iterator[str]:
    yield from _turned_returns(block)
    yield from _same_returns(block)
    yield from _in_vain(block)
    yield from _looped_while_empty(block)
    if any(starmap(_equal, pairwise(block))):
        yield "statement repeated"
    if any(starmap(_asks_again, pairwise(block))):
        yield "asked twice in a row"
    reasons = [item.test for item in only(ast.If, block) if isinstance(item.body[-1], ast.Return)]
    yield from _repeated(reasons, "left twice for one reason")


def _asks_again(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether two statements are `if`s with the same condition."""
    return isinstance(first, ast.If) and isinstance(second, ast.If) and _equal(first.test, second.test)


def _has_break(body: list[ast.stmt]) -> bool:
    """Whether a `break` leaves the loop that has this body."""
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
    yield from _constant(node.test)
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
    """Whether all conditions in a row compare the same value, except for one that compares another."""
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
    """Whether a branch adds x to y although its condition requires `x in y`."""
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
    """Whether the first store to a place under the condition `place == value` stores that value."""
    match node.test:
        case ast.Compare(left=place, ops=[ast.Eq() | ast.Is(), *_], comparators=[value, *_]):
            for item in only(ast.Assign, node.body):
                if _equal(item.targets[0], place):
                    return _equal(item.value, value)
    return False


def _of_handlers(node: ast.Try | ast.TryStar) -> Iterator[str]:
    kinds = [item for handler in node.handlers if handler.type for item in elements(handler.type)]
    yield from _repeated(kinds, "exception repeated")
    before_last = {kind.id for kind in only(ast.Name, kinds[:-1])}
    if not before_last.isdisjoint(("Exception", "BaseException")):
        yield "handler out of reach"


def _same_returns(block: list[ast.stmt]) -> Iterator[str]:
    """Yield a finding if a block returns the same whether or not a condition holds or an error is raised."""
    for node, following in pairwise([*block, None]):
        if any(starmap(_returns_alike, pairwise(_ways_out(node, following)))):
            yield "same result either way"


def _ways_out(node: ast.stmt | None, following: ast.stmt | None) -> list[ast.stmt]:
    """Return the statements that end the paths through an `if` without `else` or a `try`; empty for others.

    The path that skips the `if` ends with the statement that follows it.
    """
    match node:
        case ast.If(body=[*_, ending], orelse=[]) if following is not None:
            return [ending, following]
        case ast.Try(body=body, handlers=handlers, orelse=orelse):
            return [(orelse or body)[-1], *(handler.body[-1] for handler in handlers)]
    return []


def _returns_alike(one: ast.stmt, two: ast.stmt) -> bool:
    return isinstance(one, ast.Return) and one.value is not None and _equal(one, two)


def _in_vain(block: list[ast.stmt]) -> Iterator[str]:
    """Yield findings: a place assigned twice in adjacent lines, or a copy tested along with its value."""
    stored: set[str] = set()
    for node, following in pairwise([*block, None]):
        match node:
            case ast.Assign(targets=[place], value=value):
                target = ast.unparse(place)
            case _:
                stored = set()
                continue
        if target in stored and target not in map(ast.unparse, ast.walk(value)):
            yield "stored twice"
        stored.add(target)
        test = getattr(following, "test", None)
        tests = texts_of(test.values) if isinstance(test, ast.BoolOp) else frozenset()
        if isinstance(value, ast.Name) and {target, value.id} <= tests:
            yield "copy tested"


def _looped_while_empty(block: list[ast.stmt]) -> Iterator[str]:
    """Yield a finding if a loop iterates over a collection that was created empty right before it."""
    for node, following in pairwise(block):
        match node, following:
            case ast.Assign(targets=targets, value=value), ast.For(iter=iterated):
                created = {item.id for item in only(ast.Name, targets)}
                if is_empty_collection(value) and not names_in(iterated).isdisjoint(created):
                    yield "looped over while empty"


def _constant(test: ast.expr) -> Iterator[str]:
    if isinstance(test, ast.Constant | ast.Tuple | ast.Lambda | ast.List | ast.Dict):
        yield "condition constant"


def _repeated(nodes: Sequence[ast.expr], what: str) -> Iterator[str]:
    if any(starmap(_same, combinations(nodes, 2))):
        yield what


def _nested_twice(node: ast.Call) -> Iterator[str]:
    """Yield a finding if a call is applied twice in a row: `x.lower().lower()`, `list(list(x))`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call(args=[]) as inner), args=[], keywords=[]):
            same = _name(inner.func) == _name(node.func)
        case ast.Call(func=ast.Name(id=name), args=[ast.Call(args=[] | [_]) as inner], keywords=[]):
            same = _name(inner.func) == name
        case _:
            return
    if same:
        yield "call repeated"


def _into_itself(node: ast.Call) -> Iterator[str]:
    """Yield a finding if a value made from a collection is put into that collection."""
    match node.func:
        case ast.Attribute(value=owner, attr="append" | "add" | "insert" | "appendleft"):
            yield from ("put into itself" for inner in inside(ast.expr, *node.args) if _equal(owner, inner))


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ast.dump(node)


def _same(first: ast.AST, second: ast.AST) -> bool:
    return not isinstance(first, _SAME_IS_FINE) and _equal(first, second)


def _equal(first: ast.AST, second: ast.AST) -> bool:
    return type(first) is type(second) and same_tree(first, second)


def is_empty_collection(value: ast.expr) -> bool:
    """Whether a value is a list, set, tuple or dict without elements."""
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


# Values that are used although a condition says that they are absent, or have another type. One walk serves
# both outcomes of the condition (decision 62): `truth` is the outcome that is examined.

_GUARDS = {
    True: ("though not there", "though of no such kind"),
    False: ("though not there, else", "though not there, else"),
}
"""The words for an absent value and for a value of another type, by whether the condition is true."""


def _turned_guards(node: ast.AST) -> Iterator[str]:
    """Yield a finding for each value that a node reads although its own condition says that it is absent."""
    if isinstance(node, ast.BoolOp):
        truth = is_all_of(node)
        for place, test in enumerate(node.values[:-1]):
            later = _walked(node.values[place + 1 :])
            for value in _missing(test, truth=truth):
                if _reads(later, value):
                    yield f"{value} though not there"
    if isinstance(node, TESTING):
        yield from _used_in_vain(node.test, True, _as_list(node.body), *_GUARDS[True])
        yield from _used_in_vain(node.test, False, _as_list(node.orelse), *_GUARDS[False])


def _turned_returns(block: list[ast.stmt]) -> Iterator[str]:
    """Yield a finding for each value that a block uses after a guard has left it if the value is present."""
    for place, node in enumerate(block):
        if is_guard(node):
            later = block[place + 1 :]
            yield from _used_in_vain(
                node.test, False, later, "though not there, after", "of no such kind, after"
            )


def _used_in_vain(
    test: ast.expr, truth: bool, code: Sequence[ast.AST], absent: str, unfit: str
) -> Iterator[str]:
    """Yield a finding for each value that code uses although, by the test, it is absent or of another type.

    `truth` is the outcome of the test; `absent` and `unfit` are the words that follow the value.
    """
    missing, untyped = _missing(test, truth=truth), _without_parts(test, truth=truth)
    yield from (f"{value} {absent}" for value in missing if _used(code, value))
    yield from (f"{value} {unfit}" for value in untyped if _taken_apart(code, value))


def tested_and_read(nodes: Iterable[ast.AST]) -> tuple[Counter[str], Counter[str]]:
    """Return how many conditions test each value, and in how many of their branches it is then read.

    A reader notices a value that is tested and not read, while another value is read.
    """
    asked, read = Counter[str](), Counter[str]()
    for node in only(_BRANCHING, nodes):
        branch = _walked(_as_list(node.body))
        for value in {*_present(node.test)}:
            asked[value] += 1
            read[value] += _reads(branch, value)
    return asked, read


_BRANCHING: tuple[type[ast.If | ast.IfExp], ...] = (ast.If, ast.IfExp)


def _present(test: ast.expr) -> Iterator[str]:
    """Yield the values that are present if a condition is true."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from _present(value)
        case ast.Compare(left=left, ops=[ast.IsNot(), *_]):
            yield from _value_text(left)
        case _:
            yield from _missing(test, truth=False)


def _missing(test: ast.expr, *, truth: bool) -> Iterator[str]:
    """Yield the values that are None, empty or absent if the condition is `truth`."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _missing(operand, truth=not truth)
        case ast.Compare(left=left, ops=[sign, *_], comparators=[right, *_]):
            yield from _missing_by(left, sign, right, truth)
        case ast.BoolOp(op=operator, values=values):
            # `a and b` decides both if it is true, `a or b` if it is false.
            decides_all = ast.And if truth else ast.Or
            if isinstance(operator, decides_all):
                yield from chain.from_iterable(_missing(value, truth=truth) for value in values)
        case _ if truth:
            return
        case ast.Call(func=ast.Name(id="hasattr")):
            yield from filter(None, [_attribute(test)])
        case _:
            yield from _value_text(test)


def _missing_by(left: ast.expr, sign: ast.cmpop, right: ast.expr, truth: bool) -> Iterator[str]:
    """Yield the value that is absent if a comparison is `truth`: None itself, or an item of a collection."""
    absent, outside = (ast.Is, ast.NotIn) if truth else (ast.IsNot, ast.In)
    if is_none(right) and isinstance(sign, absent):
        yield from _value_text(left)
        return
    key, owner = _text(left), _text(right)
    if isinstance(sign, outside) and key and owner:
        yield f"{owner}[{key}]"


def _without_parts(test: ast.expr, *, truth: bool) -> Iterator[str]:
    """Yield the values that are not of the type that the condition tests for, if the condition is `truth`."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _without_parts(operand, truth=not truth)
        case ast.Call(func=ast.Name(id="isinstance"), args=args) if not truth:
            yield from _value_text(args[0])
        case ast.Compare(left=ast.Call(func=ast.Name(id="type"), args=[value, *_]), ops=[sign, *_]):
            excluding = _APART if truth else _ALIKE
            if isinstance(sign, excluding):
                yield from _value_text(value)


def _value_text(node: ast.expr) -> Iterator[str]:
    """Yield the text of a variable, an attribute or an item; nothing for anything else."""
    text = _text(node)
    if text and not isinstance(node, ast.Constant):
        yield text


def _text(node: ast.AST) -> str:
    """Return the text of a name, a constant, an attribute or an item; empty for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Constant(value=value):
            return repr(value)
        case ast.Attribute(value=owner, attr=name):
            return _text_of_attribute(owner, name)
        case ast.Call(func=ast.Name(id="getattr")):
            return _attribute(node)
        case ast.Subscript(value=owner, slice=item):
            text, key = _text(owner), _text(item)
            return f"{text}[{key}]" if text and key else ""
    return ""


def _text_of_attribute(owner: ast.expr, name: object) -> str:
    text = _text(owner)
    return f"{text}.{name!s}" if text else ""


def _attribute(call: ast.expr) -> str:
    """Return the attribute of a `getattr` or `hasattr` with a literal name; empty for other calls."""
    match call:
        case ast.Call(args=[owner, ast.Constant(value=name), *_]):
            return _text_of_attribute(owner, name)
    return ""


def _used(nodes: Iterable[ast.AST], value: str) -> bool:
    """Whether code reads a value before it binds it, or mentions its name."""
    nodes_before = _until_bound(nodes, value)
    return _mentions(nodes_before, value) or _reads(nodes_before, value)


def _mentions(nodes: Iterable[ast.AST], value: str) -> bool:
    """Whether a name in code contains the last word of a value's text, as `show_header` does for `header`."""
    # A variable that is the key of an item says nothing about the item.
    by_variable = value.endswith("]") and value[-2:-1] not in "'\""
    if by_variable:
        return False
    last = words(value)[-1:]
    if len("".join(last)) < _LEAST_WORD:
        return False
    return any(of_one_stem(last, words(name)) for name in identifiers(nodes))


def _taken_apart(nodes: Iterable[ast.AST], value: str) -> bool:
    """Whether code reads an attribute or an item of a value before it binds it."""
    parts = only(_PARTS, _until_bound(nodes, value))
    return any(_text(node.value) == value for node in parts if isinstance(node.ctx, ast.Load))


def _until_bound(nodes: Iterable[ast.AST], value: str) -> list[ast.AST]:
    """Return the nodes up to the first statement that binds a value, with that statement if it is simple."""
    places = (value, value.split(".")[0].split("[")[0])
    found: list[ast.AST] = []
    for root in nodes:
        inner = list(ast.walk(root))
        if not _stores_to(inner, places):
            found += inner
            continue
        # A compound statement may read a value before or after it binds it: none of its nodes count.
        is_compound = isinstance(root, ast.stmt) and hasattr(root, "body")
        return found if is_compound else found + inner
    return found


def _stores_to(nodes: Iterable[ast.AST], places: tuple[str, ...]) -> bool:
    """Whether one of the nodes stores to one of the places."""
    stored = (node for node in only(_PLACES, nodes) if not isinstance(node.ctx, ast.Load))
    return any(_text(node) in places for node in stored)


def _reads(nodes: Iterable[ast.AST], value: str) -> bool:
    return any(_text(node) == value for node in only(_PLACES, nodes) if isinstance(node.ctx, ast.Load))


def _walked(roots: Iterable[ast.AST]) -> list[ast.AST]:
    return list(inside(ast.AST, *roots))


def _as_list(branch: ast.expr | list[ast.stmt]) -> list[ast.expr] | list[ast.stmt]:
    return branch if isinstance(branch, list) else [branch]
