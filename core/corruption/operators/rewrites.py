"""Rewrites that keep the meaning: the same code as another person would have written it.

A fault in rewritten code has several changed lines, of which most are right.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeAlias

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.layout import (
    LEAVING,
    is_one_line,
    is_open,
    lines_of,
    margin,
    names_in,
    negation,
    shifted,
    step_of,
)
from gistpoint.core.corruption.operators.operator import Edits
from gistpoint.core.corruption.subject import CorruptionTarget

Rewrite: TypeAlias = Callable[[CorruptionTarget], Iterator[Edits]]

_NAMES = ("result", "found", "items")
_MOST_MOVED = 5
"""Most lines that get another margin."""


def any_as_loop(subject: CorruptionTarget) -> Iterator[Edits]:
    """A loop that returns early for `return any(…)` and `return all(…)`."""
    for node in subject.of(ast.Return):
        call = node.value
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("any", "all")):
            continue
        inner = call.args[0] if len(call.args) == 1 else None
        if not isinstance(inner, ast.GeneratorExp) or not _is_simple(subject, inner, inner.generators):
            continue
        loop, wanted = inner.generators[0], call.func.id == "any"
        test = subject.source(inner.elt) if wanted else negation(subject, inner.elt)
        if loop.ifs:
            mixed = is_open(inner.elt) if wanted else isinstance(inner.elt, ast.BoolOp)
            test = f"{subject.source(loop.ifs[0])} and {f'({test})' if mixed else test}"
        space, step = margin(subject, node), step_of(subject)
        if space and subject.lines(node):
            head = f"for {subject.source(loop.target)} in {subject.source(loop.iter)}:"
            yield subject.replaced(
                node,
                f"{head}\n{space}{step}if {test}:\n{space}{step}{step}return {wanted}\n{space}return {not wanted}",
            )


def comprehension_as_loop(subject: CorruptionTarget) -> Iterator[Edits]:
    """A loop that fills a list, set or dict for a comprehension."""
    names = {item.id for item in subject.of(ast.Name)}
    for node in subject.of(ast.stmt):
        value = node.value if isinstance(node, ast.Assign | ast.Return) else None
        if not isinstance(value, ast.ListComp | ast.SetComp | ast.DictComp) or not subject.lines(node):
            continue
        if not _is_simple(subject, value, value.generators) or not margin(subject, node):
            continue
        if isinstance(node, ast.Assign):
            of = node.targets[0].id if isinstance(node.targets[0], ast.Name) and len(node.targets) == 1 else ""
            of = "" if of in names_in(value) else of
        else:
            of = next((name for name in _NAMES if name not in names | subject.scope.known), "")
        if of:
            yield subject.replaced(node, _as_loop(subject, node, value, of))


def _as_loop(
    subject: CorruptionTarget, node: ast.stmt, value: ast.ListComp | ast.SetComp | ast.DictComp, of: str
) -> str:
    loop, space, step = value.generators[0], margin(subject, node), step_of(subject)
    inner = space + step
    empty = {ast.ListComp: "[]", ast.SetComp: "set()", ast.DictComp: "{}"}[type(value)]
    lines = [f"{of} = {empty}", f"{space}for {subject.source(loop.target)} in {subject.source(loop.iter)}:"]
    if loop.ifs:
        lines.append(f"{inner}if {subject.source(loop.ifs[0])}:")
        inner += step
    if isinstance(value, ast.DictComp):
        lines.append(f"{inner}{of}[{subject.source(value.key)}] = {subject.source(value.value)}")
    else:
        verb = "append" if isinstance(value, ast.ListComp) else "add"
        lines.append(f"{inner}{of}.{verb}({subject.source(value.elt)})")
    if isinstance(node, ast.Return):
        lines.append(f"{space}return {of}")
    return "\n".join(lines)


def _is_simple(subject: CorruptionTarget, value: ast.expr, loops: list[ast.comprehension]) -> bool:
    """Whether a comprehension has one loop and at most one condition, and its variables are used nowhere else."""
    loop = loops[0]
    if len(loops) > 1 or len(loop.ifs) > 1 or loop.is_async or "#" in subject.source(value):
        return False
    parts = [item for item in (getattr(value, "elt", None), loop.iter, *loop.ifs) if item is not None]
    if not all(is_one_line(subject, part) for part in parts):
        return False
    bound = names_in(loop.target)
    inside = Counter(item.id for item in ast.walk(value) if isinstance(item, ast.Name) and item.id in bound)
    everywhere = Counter(item.id for item in subject.of(ast.Name) if item.id in bound)
    given = {item.arg for item in ast.walk(subject.node.args) if isinstance(item, ast.arg)}
    return inside == everywhere and not bound & given


def loop_as_comprehension(subject: CorruptionTarget) -> Iterator[Edits]:
    """A comprehension for a loop that fills a list."""
    for block in subject.blocks:
        for first, loop in zip(block.statements, block.statements[1:], strict=False):
            if not (isinstance(first, ast.Assign) and isinstance(first.value, ast.List) and not first.value.elts):
                continue
            if not isinstance(loop, ast.For) or loop.orelse or len(loop.body) > 1:
                continue
            inner: ast.stmt = loop.body[0]
            test: ast.expr | None = None
            if isinstance(inner, ast.If) and not inner.orelse and len(inner.body) == 1:
                test, inner = inner.test, inner.body[0]
            name = ast.unparse(first.targets[0])
            value = _appended(inner, name)
            span = lines_of(subject, (first, loop))
            if value is None or span is None or name in names_in(loop.iter, value, *([test] if test else [])):
                continue
            text = f"{subject.source(value)} for {subject.source(loop.target)} in {subject.source(loop.iter)}"
            text += f" if {subject.source(test)}" if test else ""
            if "\n" not in text:
                start = subject.span(first)[0]
                yield (TextEdit(start, span[1], f"{name} = [{text}]"),)


def _appended(node: ast.stmt, name: str) -> ast.expr | None:
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or len(call.args) != 1 or isinstance(call.args[0], ast.Starred):
        return None
    return call.args[0] if ast.unparse(call.func) == f"{name}.append" else None


def joined_ifs(subject: CorruptionTarget) -> Iterator[Edits]:
    """One condition for two nested ones, and back."""
    step = step_of(subject)
    for node in subject.of(ast.If):
        if node.orelse or not is_one_line(subject, node.test) or not subject.lines(node):
            continue
        inner, space = node.body[0], margin(subject, node)
        if not space or _is_elif(subject, node):
            continue
        if isinstance(inner, ast.If) and len(node.body) == 1 and not inner.orelse:
            text = _moved(subject, inner.body, space + step)
            if text and not is_open(node.test) and not is_open(inner.test) and is_one_line(subject, inner.test):
                test = f"{subject.source(node.test)} and {subject.source(inner.test)}"
                yield subject.replaced(node, f"if {test}:\n{text}")
        elif isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) and len(node.test.values) == 2:
            text = _moved(subject, node.body, space + step + step)
            if text:
                one, two = (subject.source(value) for value in node.test.values)
                yield subject.replaced(node, f"if {one}:\n{space}{step}if {two}:\n{text}")


def _moved(subject: CorruptionTarget, block: list[ast.stmt], space: str) -> str:
    """Return the lines of a short block at another margin; empty if that is not possible."""
    lines = lines_of(subject, block)
    text = shifted(subject.text[slice(*lines)], margin(subject, block[0]), space) if lines else None
    return text if text is not None and text.count("\n") < _MOST_MOVED else ""


def _is_elif(subject: CorruptionTarget, node: ast.stmt) -> bool:
    return subject.text.startswith("elif", subject.span(node)[0])


def turned_if(subject: CorruptionTarget) -> Iterator[Edits]:
    """The `else` first, under the opposite condition."""
    for node in subject.of(ast.If):
        if not node.orelse or isinstance(node.orelse[0], ast.If) or not is_one_line(subject, node.test):
            continue
        spans = lines_of(subject, node.body), lines_of(subject, node.orelse)
        if spans[0] is None or spans[1] is None or _is_elif(subject, node):
            continue
        texts = subject.text[slice(*spans[0])], subject.text[slice(*spans[1])]
        if max(text.count("\n") for text in texts) < _MOST_MOVED:
            yield (
                TextEdit(*subject.operand(node.test), negation(subject, node.test)),
                TextEdit(*spans[0], texts[1]),
                TextEdit(*spans[1], texts[0]),
            )


def de_morgan(subject: CorruptionTarget) -> Iterator[Edits]:
    """`not a and not b` for `not (a or b)`, and back."""
    for node in subject.of(ast.expr):
        if not is_one_line(subject, node):
            continue
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and isinstance(node.operand, ast.BoolOp):
            if not isinstance(subject.parent(node), ast.expr):
                yield (TextEdit(subject.span(node)[0], subject.operand(node)[1], negation(subject, node.operand)),)
        elif isinstance(node, ast.BoolOp) and not isinstance(subject.parent(node), ast.expr):
            negative = all(isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not) for value in node.values)
            if negative:
                yield subject.replaced(node, f"not ({negation(subject, node)})")


def choice_as_if(subject: CorruptionTarget) -> Iterator[Edits]:
    """An `if` with two branches for a conditional expression, and back."""
    step = step_of(subject)
    for node in subject.of(ast.stmt):
        space = margin(subject, node)
        if not space or not subject.lines(node):
            continue
        if isinstance(node, ast.Assign | ast.Return) and isinstance(node.value, ast.IfExp):
            choice = node.value
            if not is_one_line(subject, node):
                continue
            start, end = subject.span(node)[0], subject.operand(choice)[0]
            before = subject.text[start:end]
            one, two = (f"{before}{subject.source(item)}" for item in (choice.body, choice.orelse))
            test = subject.source(choice.test)
            after = f"\n{space}{two}" if isinstance(node, ast.Return) else f"\n{space}else:\n{space}{step}{two}"
            yield subject.replaced(node, f"if {test}:\n{space}{step}{one}{after}")
        elif isinstance(node, ast.If) and len(node.body) == len(node.orelse) == 1 and is_one_line(subject, node.test):
            text = _as_choice(subject, node)
            if text and not _is_elif(subject, node) and lines_of(subject, (node,)):
                yield subject.replaced(node, text)


def _as_choice(subject: CorruptionTarget, node: ast.If) -> str:
    one, two = node.body[0], node.orelse[0]
    if not all(is_one_line(subject, item) for item in (one, two)) or is_open(node.test):
        return ""
    if isinstance(one, ast.Return) and isinstance(two, ast.Return) and one.value and two.value:
        before, values = "return", (one.value, two.value)
    elif isinstance(one, ast.Assign) and isinstance(two, ast.Assign):
        if len(one.targets) > 1 or ast.unparse(one.targets[0]) != ast.unparse(two.targets[0]):
            return ""
        before, values = f"{subject.source(one.targets[0])} =", (one.value, two.value)
    else:
        return ""
    if any(isinstance(value, ast.IfExp | ast.Lambda | ast.Tuple | ast.Yield | ast.BoolOp) for value in values):
        return ""
    if all(isinstance(value, ast.Constant) and isinstance(value.value, bool) for value in values):
        return ""
    return f"{before} {subject.source(values[0])} if {subject.source(node.test)} else {subject.source(values[1])}"


def early_continue(subject: CorruptionTarget) -> Iterator[Edits]:
    """A loop that passes over what does not fit, for one with its body under a condition, and back."""
    step = step_of(subject)
    for loop in subject.nodes:
        if not isinstance(loop, ast.For | ast.While):
            continue
        node, space = loop.body[0], margin(subject, loop.body[0])
        if not isinstance(node, ast.If) or node.orelse or not space or not is_one_line(subject, node.test):
            continue
        if len(loop.body) == 1:
            text = _moved(subject, node.body, space)
            if text and "\n" in text and subject.lines(node):
                test = negation(subject, node.test)
                yield subject.replaced(node, f"if {test}:\n{space}{step}continue\n{text}")
        elif len(node.body) == 1 and isinstance(node.body[0], ast.Continue):
            text, span = _moved(subject, loop.body[1:], space + step), lines_of(subject, loop.body)
            if text and span:
                yield (TextEdit(subject.span(node)[0], span[1], f"if {negation(subject, node.test)}:\n{text}"),)


def inlined(subject: CorruptionTarget) -> Iterator[Edits]:
    """A value written where it is used, for a variable that is used once, in the next statement."""
    uses = Counter(item.id for item in subject.of(ast.Name))
    for block in subject.blocks:
        for first, second in zip(block.statements, block.statements[1:], strict=False):
            if not isinstance(first, ast.Assign) or not isinstance(first.targets[0], ast.Name):
                continue
            name, value = first.targets[0].id, first.value
            lines = subject.lines(first)
            if uses[name] != 2 or lines is None or len(first.targets) > 1 or not is_one_line(subject, first):
                continue
            if not isinstance(value, ast.Call | ast.Attribute | ast.Subscript) or isinstance(second, ast.While):
                continue
            roots = [second.test] if isinstance(second, ast.If) else [] if hasattr(second, "body") else [second]
            used = [item for root in roots for item in ast.walk(root) if isinstance(item, ast.Name) and item.id == name]
            if len(used) == 1 and subject.parents.get(used[0]) is not None and not _deferred(subject, used[0]):
                yield TextEdit(lines[0], lines[1] + 1, ""), TextEdit(*subject.span(used[0]), subject.source(value))


def _deferred(subject: CorruptionTarget, node: ast.AST) -> bool:
    kinds = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr)
    return any(isinstance(item, kinds) for item in subject.around(node))


def else_after_return(subject: CorruptionTarget) -> Iterator[Edits]:
    """An `else` for what follows a branch that returns, and back."""
    step = step_of(subject)
    for block in subject.blocks:
        for place, node in enumerate(block.statements):
            if not isinstance(node, ast.If) or not isinstance(node.body[-1], ast.Return):
                continue
            space, rest = margin(subject, node), block.statements[place + 1 :]
            if not space or _is_elif(subject, node):
                continue
            if rest and not node.orelse and isinstance(rest[-1], LEAVING):
                text, span = _moved(subject, list(rest), space + step), lines_of(subject, (node, *rest))
                own = lines_of(subject, (node,))
                if text and span and own and not text.startswith(f"{space}{step}if "):
                    yield (TextEdit(own[1], span[1], f"\n{space}else:\n{text}"),)
            elif node.orelse and not isinstance(node.orelse[0], ast.If):
                text, body, span = (
                    _moved(subject, node.orelse, space),
                    lines_of(subject, node.body),
                    subject.lines(node),
                )
                if text and body and span:
                    yield (TextEdit(body[1], span[1], f"\n{text}"),)


REWRITES: tuple[tuple[str, Rewrite], ...] = (
    ("any as a loop", any_as_loop),
    ("comprehension as a loop", comprehension_as_loop),
    ("loop as a comprehension", loop_as_comprehension),
    ("joined ifs", joined_ifs),
    ("turned if", turned_if),
    ("de Morgan", de_morgan),
    ("choice as an if", choice_as_if),
    ("early continue", early_continue),
    ("inlined variable", inlined),
    ("else after return", else_after_return),
)
"""The rewrites with their names; each keeps the meaning of a function."""
