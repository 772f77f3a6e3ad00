"""Faults in when something happens: a reset before its loop, a value read early, a `try` too wide, no `finally`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.branches import deleted
from gistpoint.core.corruption.operators.layout import LEAVING, lines_of, margin, names_in, shifted
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget


def meet(one: ast.stmt, other: ast.stmt) -> bool:
    """Whether one statement may change what the other one mentions: then their order matters."""
    stored, also_stored = stores(one), stores(other)
    if stored & places(other) or also_stored & places(one):
        return True
    return bool(_owners(stored) & _handed(other) or _owners(also_stored) & _handed(one))


def places(node: ast.stmt) -> frozenset[str]:
    """Return the variables and attributes that a statement mentions."""
    found = (item for item in ast.walk(node) if isinstance(item, ast.Name | ast.Attribute))
    return frozenset(ast.unparse(item) for item in found) - {"self"}


def stores(node: ast.stmt) -> frozenset[str]:
    """Return the variables, attributes and collections that a statement changes, as far as it shows."""
    found: set[str] = set()
    for item in ast.walk(node):
        if isinstance(item, ast.Name | ast.Attribute) and not isinstance(item.ctx, ast.Load):
            found.add(ast.unparse(item))
        elif isinstance(item, ast.Subscript) and not isinstance(item.ctx, ast.Load):
            found.add(ast.unparse(item.value))
        elif isinstance(item, ast.Expr) and isinstance(item.value, ast.Call):
            called = item.value.func
            found |= {ast.unparse(called.value)} if isinstance(called, ast.Attribute) else set()
    return frozenset(found) - {"self", "super()"}


def _owners(stored: frozenset[str]) -> frozenset[str]:
    """Return the objects whose attributes are among the places."""
    return frozenset(place.rpartition(".")[0] for place in stored if "." in place)


def _handed(node: ast.stmt) -> frozenset[str]:
    """Return the objects of which a statement calls a method, or which it gives to a call."""
    found: set[str] = set()
    for item in ast.walk(node):
        if isinstance(item, ast.Call):
            values = [item.func.value] if isinstance(item.func, ast.Attribute) else []
            found |= {ast.unparse(v) for v in (*values, *item.args) if isinstance(v, ast.Name | ast.Attribute)}
    return frozenset(found)


_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Delete)
_FAR = 4
"""Most statements that a line is moved past."""
_LENGTHS = ("size", "length", "count", "total")


def early_reset(subject: CorruptionTarget) -> Iterator[Edits]:
    """What starts anew in each round of a loop started once before it."""
    for loop in subject.nodes:
        if not isinstance(loop, _LOOPS) or len(loop.body) < 2:
            continue
        space, bound = margin(subject, loop), names_in(getattr(loop, "target", loop.body[0]))
        lines = subject.lines(loop)
        for node in loop.body[:-1]:
            if not isinstance(node, ast.Assign) or lines is None:
                continue
            own = subject.lines(node)
            if own is None or "\n" in subject.text[slice(*own)] or not _is_start(node.value):
                continue
            if isinstance(node.targets[0], ast.Name) and node.targets[0].id not in bound:
                yield TextEdit(lines[0], lines[0], f"{space}{subject.source(node)}\n"), TextEdit(own[0], own[1] + 1, "")


def _is_start(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and not value.args and not value.keywords
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return not value.elts
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Dict) and not value.keys)


def lost_break(subject: CorruptionTarget) -> Iterator[Edits]:
    """The last match of a loop for the first: it goes on after it found one."""
    for node in subject.of(ast.Break):
        parent = subject.parent(node)
        loop = next((item for item in subject.around(node) if isinstance(item, _LOOPS)), None)
        if isinstance(parent, ast.If) and len(parent.body) > 1 and parent.body[-1] is node and loop and not loop.orelse:
            yield from deleted(subject, node)


def lost_finally(subject: CorruptionTarget) -> Iterator[Edits]:
    """What is put back at the end put back only if nothing is raised."""
    for node in subject.of(ast.Try):
        if node.handlers or node.orelse or not node.finalbody or isinstance(node.body[-1], LEAVING):
            continue
        text = _level(subject, node, (node.body, node.finalbody))
        lines = subject.lines(node)
        if text is not None and lines is not None and "#" not in subject.text[slice(*lines)]:
            yield (TextEdit(*lines, text),)


def _level(subject: CorruptionTarget, owner: ast.stmt, blocks: Sequence[Sequence[ast.stmt]]) -> str | None:
    """Return the lines of blocks, one after the other, at the margin of the statement that holds them."""
    found: list[str] = []
    for block in blocks:
        lines = lines_of(subject, block)
        text = (
            shifted(subject.text[slice(*lines)], margin(subject, block[0]), margin(subject, owner)) if lines else None
        )
        if text is None:
            return None
        found.append(text)
    return "\n".join(found)


def wider_try(subject: CorruptionTarget) -> Iterator[Edits]:
    """The line before or after a `try` moved into it: its errors are caught as well."""
    for block in subject.blocks:
        for first, second in zip(block.statements, block.statements[1:], strict=False):
            inside = second if isinstance(second, ast.Try) else first
            moved = first if inside is second else second
            if not isinstance(inside, ast.Try) or not inside.handlers or not isinstance(moved, _SIMPLE):
                continue
            if inside is first and (inside.orelse or inside.finalbody or isinstance(inside.body[-1], LEAVING)):
                continue
            own, lines = subject.lines(moved), lines_of(subject, inside.body)
            if own is None or lines is None or not any(isinstance(item, ast.Call) for item in ast.walk(moved)):
                continue
            text = shifted(subject.text[slice(*own)], margin(subject, moved), margin(subject, inside.body[0]))
            if text is None or text.count("\n") > 1:
                continue
            if inside is second:
                yield TextEdit(own[0], own[1] + 1, ""), TextEdit(lines[0], lines[0], f"{text}\n")
            else:
                yield TextEdit(lines[1], lines[1], f"\n{text}"), TextEdit(own[0] - 1, own[1], "")


def other_time(subject: CorruptionTarget) -> Iterator[Edits]:
    """A line moved past several that read what it changes: a state saved late, a cache emptied early."""
    for block in subject.blocks:
        for place, node in enumerate(block.statements):
            lines = subject.lines(node) if isinstance(node, _SIMPLE) else None
            if lines is None or "\n" in subject.text[slice(*lines)] or _is_text(node):
                continue
            after = block.statements[place + 1 : place + 1 + _FAR]
            for number in range(2, len(after) + 1):
                passed = after[:number]
                span = lines_of(subject, passed)
                if span is None or isinstance(passed[-1], LEAVING):
                    break
                if "\n\n" in subject.text[lines[1] : span[1]]:
                    break
                if meet(node, passed[-1]) and not any(meet(node, item) for item in passed[:-1]):
                    line = subject.text[slice(*lines)]
                    yield TextEdit(lines[0], lines[1] + 1, ""), TextEdit(span[1], span[1], f"\n{line}")


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def stale_value(subject: CorruptionTarget) -> Iterator[Edits]:
    """A value that changes in between read once and kept in a variable."""
    known = {item.id for item in subject.of(ast.Name)} | {
        item.arg for item in ast.walk(subject.node.args) if isinstance(item, ast.arg)
    }
    for block in subject.blocks:
        reads: dict[str, list[tuple[int, ast.expr]]] = {}
        for place, statement in enumerate(block.statements):
            for item in ast.walk(statement):
                if isinstance(item, ast.expr) and _is_kept(subject, item):
                    reads.setdefault(ast.unparse(item), []).append((place, item))
        for uses in reads.values():
            nodes = sorted((node for _, node in uses), key=lambda node: (node.lineno, node.col_offset))
            if not 2 <= len(nodes) <= _FAR:
                continue
            between = _between(subject, nodes[0], nodes[-1])
            name = _name_for(nodes[0], known | subject.scope.known)
            first = block.statements[min(place for place, _ in uses)]
            space = margin(subject, first)
            if name and space and _changed(nodes[0], between):
                start = subject.span(first)[0]
                made = TextEdit(start, start, f"{name} = {subject.source(nodes[0])}\n{space}")
                yield made, *(TextEdit(*subject.span(node), name) for node in nodes)


def _between(subject: CorruptionTarget, first: ast.expr, last: ast.expr) -> list[ast.stmt]:
    """Return the statements that end before one expression and begin after or around another one."""
    low, high = subject.span(first)[0], subject.span(last)[0]
    return [node for node in subject.of(ast.stmt) if low < subject.span(node)[1] <= high]


def _is_kept(subject: CorruptionTarget, node: ast.expr) -> bool:
    """Whether a node reads an attribute of `self`, or the length of something, as a value."""
    parent = subject.parents.get(node)
    if parent is None or isinstance(parent, ast.Attribute | ast.AugAssign | ast.Subscript):
        return False
    if isinstance(node, ast.Attribute):
        own = isinstance(node.value, ast.Name) and node.value.id == "self" and isinstance(node.ctx, ast.Load)
        return own and not (isinstance(parent, ast.Call) and parent.func is node)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"


def _name_for(node: ast.expr, taken: set[str] | frozenset[str]) -> str:
    if isinstance(node, ast.Attribute):
        name = node.attr.strip("_")
        return "" if name in taken else name
    return next((name for name in _LENGTHS if name not in taken), "")


def _changed(node: ast.expr, between: Sequence[ast.stmt]) -> bool:
    """Whether statements between two reads of a value can change it: they store to it, or call a method of it."""
    of = node.args[0] if isinstance(node, ast.Call) else node
    text, base = ast.unparse(of), ast.unparse(of.value) if isinstance(of, ast.Attribute) else ""
    for statement in between:
        stored = stores(statement)
        if text in stored or base in stored or (base == "self" and _calls_own(statement)):
            return True
    return False


def _calls_own(statement: ast.stmt) -> bool:
    return any(
        isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and ast.unparse(item.func.value) == "self"
        for item in ast.walk(statement)
    )


OPERATORS = (
    Operator("early reset", 0.05, early_reset),
    Operator("lost break", 0.2, lost_break),
    Operator("lost finally", 0.2, lost_finally),
    Operator("wider try", 0.1, wider_try),
    Operator("other time", 0.03, other_time),
    Operator("stale value", 0.04, stale_value),
)
