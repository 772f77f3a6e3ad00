"""Guards turned against what they guard: a value read where it was just found to be None, empty or not there."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator

from gistpoint.core.corruption.named import identifiers, of_one_stem, words

_LEAST_WORD = 4
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def turned_guards(node: ast.AST) -> int:
    """Return how often a node uses a value where its own condition says that there is none."""
    if isinstance(node, ast.BoolOp):
        return _in_operation(node)
    if isinstance(node, ast.If | ast.While):
        count = sum(_used(node.body, value) for value in _absent(node.test))
        return count + sum(_used(node.orelse, value) for value in _present(node.test))
    if isinstance(node, ast.IfExp):
        count = sum(_used([node.body], value) for value in _absent(node.test))
        return count + sum(_used([node.orelse], value) for value in _present(node.test))
    return 0


def turned_returns(block: list[ast.stmt]) -> int:
    """Return how often a block goes on to use a value after it has left for the case that there is one."""
    count = 0
    for place, node in enumerate(block):
        if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], _LEAVING):
            count += sum(_used(block[place + 1 :], value) for value in _present(node.test))
    return count


def _in_operation(node: ast.BoolOp) -> int:
    count = 0
    for place, value in enumerate(node.values[:-1]):
        found = _absent(value) if isinstance(node.op, ast.And) else _present(value)
        count += sum(_used(node.values[place + 1 :], item) for item in found)
    return count


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
    """Whether code reads a value that it does not bind itself, or says its name."""
    found = [item for root in nodes for item in ast.walk(root)]
    return not _binds(found, value) and (_holds(found, value) or _named(found, value))


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
