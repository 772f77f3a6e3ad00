"""What gives a corruption away to whoever reads the function: things that nobody writes on purpose."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise

from gistpoint.core.code.compare import same_tree
from gistpoint.core.corruption.dataflow import turned_guards, turned_returns
from gistpoint.core.corruption.idle import is_empty_collection

_SAME_IS_FINE = (ast.Constant, ast.UnaryOp)
_LESS, _MORE = (ast.Lt, ast.LtE), (ast.Gt, ast.GtE)
_ROW = 3
"""Cases that make a row, in which one that is unlike the others stands out."""
_ALIKE, _APART = (ast.Eq, ast.Is, ast.In), (ast.NotEq, ast.IsNot, ast.NotIn)
_VALUES = (ast.Name, ast.Attribute, ast.Compare, ast.Subscript, ast.BinOp)


def oddities(nodes: Iterable[ast.AST]) -> Counter[str]:
    """Count what stands out in code: a value compared with itself, a branch that does nothing, a test made twice."""
    found: Counter[str] = Counter()
    for item in nodes:
        for what in _of_statement(item) if isinstance(item, ast.stmt) else _of_expression(item):
            found[what] += 1
        found.update(turned_guards(item))
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
    """Whether one comparison makes another one idle, as in `x != 1 or x == 2`."""
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
    """Return what a sum adds, from the left."""
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
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield from turned_returns(block)
            yield from _same_returns(block)
            yield from _in_vain(block)
            yield from _looped_while_empty(block)
            if any(_equal(*pair) for pair in pairwise(block)):
                yield "statement repeated"
            left = [item.test for item in block if isinstance(item, ast.If) and isinstance(item.body[-1], ast.Return)]
            yield from _repeated(list(left), "left twice for one reason")


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
    """Whether a condition that holds where `x in y` adds x to y."""
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
    """Yield where a block returns the same whether a condition holds or an error is raised, or not."""
    for node, following in pairwise([*block, None]):
        last: list[ast.stmt] = []
        if isinstance(node, ast.If) and not node.orelse and following is not None:
            last = [node.body[-1], following]
        elif isinstance(node, ast.Try):
            last = [(node.orelse or node.body)[-1], *(handler.body[-1] for handler in node.handlers)]
        if any(isinstance(one, ast.Return) and one.value and _equal(one, two) for one, two in pairwise(last)):
            yield "same result either way"


def _in_vain(block: list[ast.stmt]) -> Iterator[str]:
    """Yield where the same place is stored to twice in a row of assignments, or a copy is tested beside its value."""
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
    """Yield where a loop goes through a collection that was made empty right before it."""
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
    """Yield where the same method is called twice in a row, as in `x.lower().lower()`, or `list(list(x))`."""
    inner = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0] if len(node.args) == 1 else None
    if (
        isinstance(inner, ast.Call)
        and _name(inner.func) == _name(node.func)
        and not inner.args[1:]
        and not node.keywords
    ) and (isinstance(node.func, ast.Name) or not (node.args or inner.args)):
        yield "call repeated"


def _into_itself(node: ast.Call) -> Iterator[str]:
    """Yield where something made of a collection is put into that collection."""
    called = node.func
    if isinstance(called, ast.Attribute) and called.attr in ("append", "add", "insert", "appendleft"):
        yield from ("put into itself" for item in node.args for inner in ast.walk(item) if _equal(called.value, inner))


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ast.dump(node)


def _same(first: ast.AST, second: ast.AST) -> bool:
    return not isinstance(first, _SAME_IS_FINE) and _equal(first, second)


def _equal(first: ast.AST, second: ast.AST) -> bool:
    return type(first) is type(second) and same_tree(first, second)
