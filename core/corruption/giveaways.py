"""Finds what gives a corruption away to a reader of the function: code that is not written on purpose.

A value compared with itself, a branch that does nothing, a value read although a condition says that there is none.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise
from typing import TypeGuard

from gistpoint.core.code.compare import same_tree
from gistpoint.core.corruption.flow import LEAVING, blocks_of
from gistpoint.core.corruption.naming import identifiers, of_one_stem, words

_SAME_IS_FINE = (ast.Constant, ast.UnaryOp)
_LESS, _MORE = (ast.Lt, ast.LtE), (ast.Gt, ast.GtE)
_ROW = 3
"""Number of cases that make a row, in which a different one stands out."""
_ALIKE, _APART = (ast.Eq, ast.Is, ast.In), (ast.NotEq, ast.IsNot, ast.NotIn)
_PLACES = (ast.Name, ast.Attribute, ast.Subscript)
_LEAST_WORD = 4
_VALUES = (ast.Name, ast.Attribute, ast.Compare, ast.Subscript, ast.BinOp)


def oddities(nodes: Iterable[ast.AST]) -> Counter[str]:
    """Count the oddities in code: a value compared with itself, a branch that does nothing, a test made twice."""
    found: Counter[str] = Counter()
    for item in nodes:
        for what in _of_statement(item) if isinstance(item, ast.stmt) else _of_expression(item):
            found[what] += 1
        found.update(_turned_guards(item))
    return found


def _of_expression(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        if any(_same(*pair) for pair in pairwise(operands)):
            yield "compared with itself"
        if any(isinstance(kind, _LESS) for kind in node.ops) and any(isinstance(kind, _MORE) for kind in node.ops):
            yield "compared both ways"
    elif isinstance(node, ast.BoolOp):
        yield from _of_operation(node)
    elif isinstance(node, ast.BinOp):
        yield from _of_sum(node)
    elif isinstance(node, ast.IfExp):
        yield from _repeated([node.body, node.orelse], "same value either way")
        yield from _constant(node.test)
    elif isinstance(node, ast.Call):
        yield from _repeated(node.args, "argument repeated")
        yield from _nested_twice(node)
        yield from _into_itself(node)
        if _name(node.func) in ("int", "str", "float", "bool") and all(isinstance(a, ast.Constant) for a in node.args):
            yield "constant converted"
    elif isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Load):
        yield from _repeated(node.elts, "element repeated")
    elif isinstance(node, ast.Subscript | ast.Slice):
        yield from _of_items(node)
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        yield from _of_comprehension(node)


def _of_comprehension(node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Iterator[str]:
    first = node.generators[0]
    if len(node.generators) == 1 and not first.ifs and ast.unparse(node.elt) == ast.unparse(first.target):
        yield "collected as it is"


def _of_operation(node: ast.BoolOp) -> Iterator[str]:
    yield from _repeated(node.values, "condition repeated")
    if isinstance(node.op, ast.And) and any(_empty(value) for value in node.values):
        yield "always empty"
    if _says_twice(node):
        yield "comparison that adds nothing"


def _says_twice(node: ast.BoolOp) -> bool:
    """Whether one comparison makes another one pointless, as in `x != 1 or x == 2`."""
    comparisons = [value for value in node.values if isinstance(value, ast.Compare)]
    apart = _APART if isinstance(node.op, ast.Or) else _ALIKE
    other = _ALIKE if isinstance(node.op, ast.Or) else _APART
    return any(
        isinstance(one.ops[0], apart) and isinstance(two.ops[0], other) and _equal(one.left, two.left)
        for one in comparisons
        for two in comparisons
    )


def _of_items(node: ast.Subscript | ast.Slice) -> Iterator[str]:
    if isinstance(node, ast.Slice):
        yield from _repeated([item for item in (node.lower, node.upper) if item], "bound repeated")
    elif isinstance(node.value, ast.Call) and not node.value.args and _name(node.value.func) == "keys":
        yield "keys indexed"


def _empty(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return not node.value
    return not (node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [node]))


def _of_sum(node: ast.BinOp) -> Iterator[str]:
    if isinstance(node.op, ast.Add) and not isinstance(node.left, ast.Constant):
        terms = _terms(node)
        yield from _repeated([terms[0], terms[-1]] if len(terms) >= _ROW else [], "begins and ends alike")
    if _same(node.left, node.right) and not isinstance(node.op, ast.Mult | ast.Add):
        yield "operand repeated"
    if isinstance(node.right, ast.Constant) and node.right.value == 0 and isinstance(node.op, ast.Add | ast.Sub):
        yield "nothing added"


def _terms(node: ast.expr) -> list[ast.expr]:
    """Return the terms of a sum, from the left."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_terms(node.left), node.right]
    return [node]


def _of_statement(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Assign):
        if any(_equal(target, node.value) for target in node.targets):
            yield "assigned to itself"
    elif isinstance(node, ast.If):
        yield from _of_cases(node)
    elif isinstance(node, ast.While) and not isinstance(node.test, ast.Constant):
        yield from _constant(node.test)
    elif isinstance(node, ast.Expr) and isinstance(node.value, _VALUES):
        yield "statement without effect"
    elif isinstance(node, ast.Try):
        yield from _of_handlers(node)
    if isinstance(node, ast.For | ast.AsyncFor | ast.While) and node.orelse and not _broken(node.body):
        yield "else of a loop that is never left"
    for block in blocks_of(node):
        yield from _turned_returns(block)
        yield from _same_returns(block)
        yield from _in_vain(block)
        yield from _looped_while_empty(block)
        if any(_equal(*pair) for pair in pairwise(block)):
            yield "statement repeated"
        if any(_asks_again(*pair) for pair in pairwise(block)):
            yield "asked twice in a row"
        left = [item.test for item in block if isinstance(item, ast.If) and isinstance(item.body[-1], ast.Return)]
        yield from _repeated(list(left), "left twice for one reason")


def _asks_again(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether two statements have the same condition."""
    return isinstance(first, ast.If) and isinstance(second, ast.If) and _equal(first.test, second.test)


def _broken(body: list[ast.stmt]) -> bool:
    """Whether a `break` leaves the loop that has this body."""
    for node in body:
        if isinstance(node, ast.Break):
            return True
        inner = [node.orelse] if isinstance(node, ast.For | ast.AsyncFor | ast.While) else blocks_of(node)
        inner += [part.body for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))]
        if any(map(_broken, inner)):
            return True
    return False


def _of_cases(node: ast.If) -> Iterator[str]:
    yield from _constant(node.test)
    if _adds_known(node):
        yield "added where it is"
    if _stores_known(node):
        yield "stored what is there"
    if node.orelse and len(node.body) == len(node.orelse) and all(map(_equal, node.body, node.orelse)):
        yield "same branches"
    if node.orelse and _equal(node.body[-1], node.orelse[-1]):
        yield "branches end alike"
    tests, inner = [node.test], node.orelse
    while len(inner) == 1 and isinstance(inner[0], ast.If):
        tests.append(inner[0].test)
        inner = inner[0].orelse
    yield from _repeated(tests, "case repeated")
    asked = Counter(ast.unparse(test.left) for test in tests if isinstance(test, ast.Compare))
    if len(tests) >= _ROW and asked.total() == len(tests) and len(asked) == 2 and min(asked.values()) == 1:
        yield "one case asks for something else"


def _adds_known(node: ast.If) -> bool:
    """Whether x is added to y under a condition that holds if `x in y`."""
    tests = node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else [node.test]
    held = [test for test in tests if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In)]
    calls = [item.value for item in node.body if isinstance(item, ast.Expr) and isinstance(item.value, ast.Call)]
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr in ("add", "append")
        and _equal(call.func.value, test.comparators[0])
        and any(_equal(argument, test.left) for argument in call.args)
        for call in calls
        for test in held
    )


def _stores_known(node: ast.If) -> bool:
    """Whether the first store to a place under `place == value` stores that value."""
    test = node.test
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq | ast.Is)):
        return False
    stores = [item for item in node.body if isinstance(item, ast.Assign) and _equal(item.targets[0], test.left)]
    return bool(stores) and _equal(stores[0].value, test.comparators[0])


def _of_handlers(node: ast.Try) -> Iterator[str]:
    kinds = [item for handler in node.handlers if handler.type for item in _kinds(handler.type)]
    yield from _repeated(kinds, "exception repeated")
    if any(isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException") for kind in kinds[:-1]):
        yield "handler out of reach"


def _same_returns(block: list[ast.stmt]) -> Iterator[str]:
    """Yield a finding if a block returns the same whether or not a condition holds or an error is raised."""
    for node, following in pairwise([*block, None]):
        last: list[ast.stmt] = []
        if isinstance(node, ast.If) and not node.orelse and following is not None:
            last = [node.body[-1], following]
        elif isinstance(node, ast.Try):
            last = [(node.orelse or node.body)[-1], *(handler.body[-1] for handler in node.handlers)]
        if any(isinstance(one, ast.Return) and one.value and _equal(one, two) for one, two in pairwise(last)):
            yield "same result either way"


def _in_vain(block: list[ast.stmt]) -> Iterator[str]:
    """Yield findings: one place assigned twice in a row, or a copy tested along with its value."""
    stored: set[str] = set()
    for node, following in pairwise([*block, None]):
        if not isinstance(node, ast.Assign) or len(node.targets) > 1:
            stored = set()
            continue
        target = ast.unparse(node.targets[0])
        if target in stored and not any(ast.unparse(item) == target for item in ast.walk(node.value)):
            yield "stored twice"
        stored.add(target)
        test = getattr(following, "test", None)
        if isinstance(node.value, ast.Name) and isinstance(test, ast.BoolOp):
            operands = {ast.unparse(value) for value in test.values}
            if {target, node.value.id} <= operands:
                yield "copy tested"


def _looped_while_empty(block: list[ast.stmt]) -> Iterator[str]:
    """Yield a finding if a loop iterates over a collection that was created empty right before it."""
    for node, following in pairwise(block):
        if isinstance(node, ast.Assign) and isinstance(following, ast.For) and is_empty_collection(node.value):
            made = {target.id for target in node.targets if isinstance(target, ast.Name)}
            if made & {item.id for item in ast.walk(following.iter) if isinstance(item, ast.Name)}:
                yield "looped over while empty"


def _kinds(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _constant(test: ast.expr) -> Iterator[str]:
    if isinstance(test, ast.Constant | ast.Tuple | ast.Lambda | ast.List | ast.Dict):
        yield "condition constant"


def _repeated(nodes: list[ast.expr], what: str) -> Iterator[str]:
    if any(_same(*pair) for pair in combinations(nodes, 2)):
        yield what


def _nested_twice(node: ast.Call) -> Iterator[str]:
    """Yield a finding if the same method is called twice in a row, as in `x.lower().lower()`, or `list(list(x))`."""
    inner = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0] if len(node.args) == 1 else None
    if (
        isinstance(inner, ast.Call)
        and _name(inner.func) == _name(node.func)
        and not inner.args[1:]
        and not node.keywords
    ) and (isinstance(node.func, ast.Name) or not (node.args or inner.args)):
        yield "call repeated"


def _into_itself(node: ast.Call) -> Iterator[str]:
    """Yield a finding if something made from a collection is put into that collection."""
    called = node.func
    if isinstance(called, ast.Attribute) and called.attr in ("append", "add", "insert", "appendleft"):
        yield from ("put into itself" for item in node.args for inner in ast.walk(item) if _equal(called.value, inner))


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ast.dump(node)


def _same(first: ast.AST, second: ast.AST) -> bool:
    return not isinstance(first, _SAME_IS_FINE) and _equal(first, second)


def _equal(first: ast.AST, second: ast.AST) -> bool:
    return type(first) is type(second) and same_tree(first, second)


def is_empty_collection(value: ast.expr) -> bool:
    """Return whether a value is a list, set, tuple or dict without elements."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in ("list", "set", "dict") and not value.args
    return not getattr(value, "elts", getattr(value, "keys", [value]))


_GUARDS = {
    True: ("though not there", "though of no such kind"),
    False: ("though not there, else", "though not there, else"),
}
"""The finding for a value that is read in the branch of a true, or a false, condition."""


def _turned_guards(node: ast.AST) -> Iterator[str]:
    """Yield the values that a node reads although its own condition says that they are absent, with the place."""
    if isinstance(node, ast.BoolOp):
        when = isinstance(node.op, ast.And)
        for place, test in enumerate(node.values[:-1]):
            rest = _walked(node.values[place + 1 :])
            yield from (f"{value} though not there" for value in _missing(test, when=when) if _reads(rest, value))
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        for when, branch in ((True, _listed(node.body)), (False, _listed(node.orelse))):
            missing, untyped = _missing(node.test, when=when), _of_no_kind(node.test, when=when)
            absent, unfit = _GUARDS[when]
            yield from (f"{value} {absent}" for value in missing if _used(branch, value))
            yield from (f"{value} {unfit}" for value in untyped if _taken_apart(branch, value))


def _turned_returns(block: list[ast.stmt]) -> Iterator[str]:
    """Yield the values that a block uses after it has returned in the case that they are present."""
    for place, node in enumerate(block):
        if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], LEAVING):
            test, rest = node.test, block[place + 1 :]
            missing, untyped = _missing(test, when=False), _of_no_kind(test, when=False)
            yield from (f"{value} though not there, after" for value in missing if _used(rest, value))
            yield from (f"{value} of no such kind, after" for value in untyped if _taken_apart(rest, value))


def heeded(nodes: Iterable[ast.AST]) -> tuple[Counter[str], Counter[str]]:
    """Count the values tested in an `if`, and those of them that are read if the test succeeds.

    A value that is tested and then not read, although another one is, stands out.
    """
    asked, read = Counter[str](), Counter[str]()
    for node in nodes:
        if isinstance(node, ast.If | ast.IfExp):
            branch = _walked(_listed(node.body))
            for value in {*_there(node.test)}:
                asked[value] += 1
                read[value] += _reads(branch, value)
    return asked, read


def _there(test: ast.expr) -> Iterator[str]:
    """Yield the values that are present if a condition holds."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from _there(value)
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot):
        yield from _plain(test.left)
    else:
        yield from _missing(test, when=False)


def _missing(test: ast.expr, *, when: bool) -> Iterator[str]:
    """Yield the values that are None, empty or absent if the condition is `when`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _missing(test.operand, when=not when)
    elif isinstance(test, ast.Compare):
        of = test.comparators[0]
        if isinstance(test.ops[0], ast.Is if when else ast.IsNot) and isinstance(of, ast.Constant) and of.value is None:
            yield from _plain(test.left)
        elif isinstance(test.ops[0], ast.NotIn if when else ast.In) and _text(test.left) and _text(of):
            yield f"{_text(of)}[{_text(test.left)}]"
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And if when else ast.Or):
            for value in test.values:
                yield from _missing(value, when=when)
    elif not when:
        yield from filter(None, [_attribute(test)]) if _is_call(test, "hasattr") else _plain(test)


def _of_no_kind(test: ast.expr, *, when: bool) -> Iterator[str]:
    """Yield the values that are not of a type with parts, such as a tuple, if the condition is `when`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _of_no_kind(test.operand, when=not when)
    elif not when and _is_call(test, "isinstance"):
        yield from _plain(test.args[0])
    elif isinstance(test, ast.Compare) and _is_call(test.left, "type") and test.left.args:
        yield from _plain(test.left.args[0]) if isinstance(test.ops[0], _APART if when else _ALIKE) else ()


def _is_call(node: ast.AST, name: str) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


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
    if _is_call(node, "getattr"):
        return _attribute(node)
    if isinstance(node, ast.Subscript):
        of, key = _text(node.value), _text(node.slice)
        return f"{of}[{key}]" if of and key else ""
    return ""


def _attribute(call: ast.Call) -> str:
    """Return the attribute of a `getattr` or `hasattr` with a literal name; empty for other calls."""
    if len(call.args) < 2 or not isinstance(call.args[1], ast.Constant):
        return ""
    of = _text(call.args[0])
    return f"{of}.{call.args[1].value!s}" if of else ""


def _used(nodes: Iterable[ast.AST], value: str) -> bool:
    """Whether code reads a value before it binds it, or mentions its name.

    A name mentions the value if it contains the value's last word, as `show_header` does for `header`; but not for
    a value that is looked up by a variable, since the variable says nothing about it.
    """
    found = _until_bound(nodes, value)
    last = () if value.endswith("]") and value[-2:-1] not in "'\"" else words(value)[-1:]
    named = len("".join(last)) >= _LEAST_WORD and any(of_one_stem(last, words(name)) for name in identifiers(found))
    return named or _reads(found, value)


def _taken_apart(nodes: Iterable[ast.AST], value: str) -> bool:
    """Whether code reads an attribute or an item of a value before it binds it."""
    return any(
        isinstance(node, ast.Attribute | ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and _text(node.value) == value
        for node in _until_bound(nodes, value)
    )


def _until_bound(nodes: Iterable[ast.AST], value: str) -> list[ast.AST]:
    """Return the nodes of code up to the first statement that binds a value, including what that reads."""
    places = (value, value.split(".")[0].split("[")[0])
    found: list[ast.AST] = []
    for root in nodes:
        inner = list(ast.walk(root))
        bound = any(
            isinstance(node, _PLACES) and not isinstance(node.ctx, ast.Load) and _text(node) in places for node in inner
        )
        if bound and isinstance(root, ast.stmt) and hasattr(root, "body"):
            return found
        found += inner
        if bound:
            return found
    return found


def _reads(nodes: Iterable[ast.AST], value: str) -> bool:
    return any(isinstance(node, _PLACES) and isinstance(node.ctx, ast.Load) and _text(node) == value for node in nodes)


def _walked(roots: Iterable[ast.AST]) -> list[ast.AST]:
    return [item for root in roots for item in ast.walk(root)]


def _listed(branch: ast.expr | list[ast.stmt]) -> list[ast.expr] | list[ast.stmt]:
    return branch if isinstance(branch, list) else [branch]
