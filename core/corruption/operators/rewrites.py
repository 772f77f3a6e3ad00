"""Rewrites that keep the meaning: the same code as another person would have written it.

A fault in rewritten code changes several lines, most of which are correct.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise, takewhile
from typing import TypeAlias

from gistpoint.core.code.nodes import has, has_any, inside
from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.layout import (
    as_operand,
    is_builtin,
    is_elif,
    is_open,
    lines_of,
    margin,
    negation,
    relaid,
    step_of,
)
from gistpoint.core.corruption.operators.operator import Edits, at_each
from gistpoint.core.corruption.shapes import LEAVING, SHARING, is_not, is_one_line, names_in, parameters
from gistpoint.core.corruption.subject import CorruptionTarget

Rewrite: TypeAlias = Callable[[CorruptionTarget], Iterator[Edits]]

_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp
_NAMES = ("result", "found", "items")
_LOOPS: tuple[type[ast.For | ast.While], ...] = (ast.For, ast.While)
_MOST_MOVED = 5
"""The maximum number of lines that are moved to another indentation."""
_LOOSE = (ast.IfExp, ast.Lambda, ast.Tuple, ast.Yield, ast.YieldFrom, ast.BoolOp)
"""Values that need parentheses in a conditional expression, or are hard to read in one."""
_KEEPING = (ast.Lambda, ast.GeneratorExp)
"""Expressions that read variables later."""
_ACTING = (ast.Call, ast.Attribute, ast.Subscript, ast.BinOp, ast.Compare, ast.NamedExpr, ast.Await)
"""Expressions that may have an effect, or whose value may depend on the effects of others."""
_CATCHING = (ast.Try, ast.TryStar, ast.With, ast.AsyncWith)
_TESTED = (ast.If, ast.While, ast.comprehension)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, *_KEEPING)
_WHOLE = (
    *(ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Slice, ast.Attribute, ast.Starred),
    *(ast.Tuple, ast.List, ast.Set, ast.keyword, ast.Return, ast.Expr, ast.Raise),
)
"""Code that evaluates its parts from left to right, except the end of a chain of comparisons."""


@at_each(ast.Return)
def any_as_loop(subject: CorruptionTarget, node: ast.Return) -> Iterator[Edits]:
    """Yield edits that write `return any(…)` or `return all(…)` as a loop that returns early."""
    match node.value:
        case ast.Call(func=ast.Name(id="any" | "all" as name), args=[ast.GeneratorExp() as inner]):
            space = margin(subject, node)
            test = subject.source(inner.elt) if name == "any" else negation(subject, inner.elt)
            is_simple = _is_simple(subject, inner, inner.elt, inner.generators)
            if test and space and subject.lines(node) and is_simple and is_builtin(subject, name):
                yield subject.replaced(node, _search_loop(subject, inner, space, test, wanted=name == "any"))


def _search_loop(
    subject: CorruptionTarget, inner: ast.GeneratorExp, space: str, test: str, *, wanted: bool
) -> str:
    """Return the loop that returns `wanted` at the first element for which `test` is true."""
    loop, step = inner.generators[0], step_of(subject)
    for condition in loop.ifs:
        test = f"{as_operand(subject.source(condition))} and {as_operand(test)}"
    head = f"for {subject.source(loop.target)} in {subject.source(loop.iter)}:"
    return f"{head}\n{space}{step}if {test}:\n{space}{step}{step}return {wanted}\n{space}return {not wanted}"


def comprehension_as_loop(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that write a comprehension as a loop that fills a list, set or dict."""
    names = names_in(subject.node) | subject.scope.known
    # The result of a `return` has no name yet: it gets the first conventional name that is free.
    free_name = next((name for name in _NAMES if name not in names), "")
    for node in subject.of((ast.Assign, ast.Return)):
        match node:
            case ast.Return(value=ast.ListComp() | ast.SetComp() | ast.DictComp() as value):
                yield from _filled(subject, node, value, free_name)
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.ListComp() | ast.SetComp() | ast.DictComp() as value
            ):
                if name not in names_in(value) and _may_grow(subject, node, name):
                    yield from _filled(subject, node, value, name)


def _filled(subject: CorruptionTarget, node: ast.stmt, value: _Comprehension, name: str) -> Iterator[Edits]:
    """Yield the edit that replaces a statement with a loop that fills a collection of this name."""
    if not name or not subject.lines(node) or not margin(subject, node):
        return
    element = None if isinstance(value, ast.DictComp) else value.elt
    # A comprehension evaluates a key before its value, an assignment after it.
    if isinstance(value, ast.DictComp) and has(_ACTING, value.key) and has(_ACTING, value.value):
        return
    # An empty set has no literal.
    has_empty = not isinstance(value, ast.SetComp) or is_builtin(subject, "set")
    if has_empty and _is_simple(subject, value, element, value.generators):
        yield subject.replaced(node, _as_loop(subject, node, value, name))


def _as_loop(subject: CorruptionTarget, node: ast.stmt, value: _Comprehension, name: str) -> str:
    loop, space, step = value.generators[0], margin(subject, node), step_of(subject)
    inner = space + step
    conditions = [f"{inner}if {subject.source(test)}:" for test in loop.ifs]
    inner += step * len(conditions)
    match value:
        case ast.DictComp(key=key, value=item):
            empty, line = "{}", f"{name}[{subject.source(key)}] = {subject.source(item)}"
        case ast.ListComp(elt=element):
            empty, line = "[]", f"{name}.append({subject.source(element)})"
        case ast.SetComp(elt=element):
            empty, line = "set()", f"{name}.add({subject.source(element)})"
    head = f"{space}for {subject.source(loop.target)} in {subject.source(loop.iter)}:"
    last = [f"{space}return {name}"] if isinstance(node, ast.Return) else []
    return "\n".join([f"{name} = {empty}", head, *conditions, f"{inner}{line}", *last])


def _is_simple(
    subject: CorruptionTarget, value: ast.expr, element: ast.expr | None, loops: list[ast.comprehension]
) -> bool:
    """Return whether a comprehension has one loop, at most one condition, and private variables."""
    match loops:
        case [ast.comprehension(ifs=[] | [_], is_async=0) as loop] if "#" not in subject.source(value):
            bound = names_in(loop.target)
            parts = filter(None, (element, loop.iter, *loop.ifs))
            return all(map(is_one_line, parts)) and _is_private(subject, value, bound)
    return False


def _is_private(subject: CorruptionTarget, part: ast.AST, bound: frozenset[str]) -> bool:
    """Return whether names occur only in a part of the function and nothing stores them for later reading."""
    inside_it = Counter(item.id for item in inside(ast.Name, part) if item.id in bound)
    everywhere = Counter(item.id for item in inside(ast.Name, subject.node) if item.id in bound)
    outside = parameters(subject.node) | _shared(subject)
    return (
        inside_it == everywhere
        and bound.isdisjoint(outside)
        and not has(_KEEPING, *ast.iter_child_nodes(part))
    )


def _shared(subject: CorruptionTarget) -> frozenset[str]:
    """Return the names that the function, or one inside it, declares as belonging to another scope."""
    return frozenset(chain.from_iterable(item.names for item in inside(SHARING, subject.node)))


def _may_grow(subject: CorruptionTarget, node: ast.stmt, name: str) -> bool:
    """Return whether nothing else in the function depends on a collection being bound while it is filled.

    Code after a caught exception, and code in inner functions, could depend on this.
    """
    inner = [*inside(_SCOPES, *subject.node.body)]
    return subject.nearest(node, _CATCHING) is None and name not in names_in(*inner) | _shared(subject)


def loop_as_comprehension(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that write a loop that fills a list as a comprehension."""
    for first, second in subject.neighbours():
        match first, second:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])),
                ast.For(body=[ast.If(test=test, body=[done], orelse=[])], orelse=[]) as loop,
            ):
                yield from _collected(subject, first, name, loop, done, [test])
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])), ast.For(
                body=[done], orelse=[]
            ) as loop:
                yield from _collected(subject, first, name, loop, done, [])


def _collected(
    subject: CorruptionTarget,
    first: ast.Assign,
    name: str,
    loop: ast.For,
    done: ast.stmt,
    tests: list[ast.expr],
) -> Iterator[Edits]:
    value, span = _appended(done, name), lines_of(subject, (first, loop))
    if value is None or span is None:
        return
    # A loop that reads its own list, for example to leave out repeated values, can't be a comprehension.
    if name in names_in(loop.iter, value, *tests) or not _may_grow(subject, first, name):
        return
    # A comprehension's variable does not exist after it.
    if not _is_private(subject, loop, names_in(loop.target)):
        return
    text = f"{subject.source(value)} for {subject.source(loop.target)} in {subject.source(loop.iter)}"
    text = " if ".join([text, *map(subject.source, tests)])
    if "\n" not in text:
        yield (TextEdit(subject.span(first)[0], span[1], f"{name} = [{text}]"),)


def _appended(node: ast.stmt, name: str) -> ast.expr | None:
    match node:
        case ast.Expr(value=ast.Call(func=called, args=[value])):
            is_append = ast.unparse(called) == f"{name}.append"
            return value if is_append and not isinstance(value, ast.Starred) else None
    return None


@at_each(ast.If)
def joined_ifs(subject: CorruptionTarget, node: ast.If) -> Iterator[Edits]:
    """Yield edits that write two nested conditions as one, and vice versa."""
    space, step = margin(subject, node), step_of(subject)
    if not space or is_elif(subject, node) or not subject.lines(node):
        return
    match node:
        case ast.If(test=outer, body=[ast.If(test=inner, body=body, orelse=[])], orelse=[]):
            text = _reindented(subject, body, space + step)
            if text and _can_be_joined(outer) and _can_be_joined(inner):
                condition = f"{subject.source(outer)} and {subject.source(inner)}"
                yield subject.replaced(node, f"if {condition}:\n{text}")
        case ast.If(test=ast.BoolOp(op=ast.And(), values=[outer, inner]) as test, body=body, orelse=[]):
            text = _reindented(subject, body, space + step + step)
            if text and is_one_line(test):
                one, two = map(subject.source, (outer, inner))
                yield subject.replaced(node, f"if {one}:\n{space}{step}if {two}:\n{text}")


def _can_be_joined(test: ast.expr) -> bool:
    """Return whether a condition can be an operand of `and` on the same line as another condition."""
    return is_one_line(test) and not is_open(test)


def _reindented(subject: CorruptionTarget, block: Sequence[ast.stmt], space: str) -> str:
    """Return the lines of a short block with a different indentation; empty if the lines can't be moved."""
    text = relaid(subject, block, space)
    return text if text is not None and text.count("\n") < _MOST_MOVED else ""


@at_each(ast.If)
def turned_if(subject: CorruptionTarget, node: ast.If) -> Iterator[Edits]:
    """Yield edits that exchange the branches of an `if`, and negate its condition."""
    if not node.orelse or isinstance(node.orelse[0], ast.If):
        return
    if is_elif(subject, node) or not is_one_line(node.test):
        return
    first, second = lines_of(subject, node.body), lines_of(subject, node.orelse)
    if first is None or second is None:
        return
    text, other_text, negated = subject.cut(first), subject.cut(second), negation(subject, node.test)
    if negated and max(text.count("\n"), other_text.count("\n")) < _MOST_MOVED:
        yield (
            TextEdit(*subject.operand(node.test), negated),
            TextEdit(*first, other_text),
            TextEdit(*second, text),
        )


@at_each(ast.UnaryOp, ast.BoolOp)
def de_morgan(subject: CorruptionTarget, node: ast.expr) -> Iterator[Edits]:
    """Yield edits that write `not a and not b` for `not (a or b)`, and vice versa."""
    if not is_one_line(node) or isinstance(subject.parent(node), ast.expr):
        return
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=ast.BoolOp() as joined) if (
            # `not (not a or b)` is True or False, `a and not b` may be `a`.
            isinstance(subject.parent(node), _TESTED) or not any(map(is_not, ast.walk(joined)))
        ):
            if negated := negation(subject, joined):
                yield (TextEdit(subject.span(node)[0], subject.operand(node)[1], negated),)
        case ast.BoolOp(values=values) if all(map(is_not, values)):
            yield subject.replaced(node, f"not ({negation(subject, node)})")


@at_each(ast.Assign, ast.Return, ast.If)
def choice_as_if(subject: CorruptionTarget, node: ast.stmt) -> Iterator[Edits]:
    """Yield edits that write a conditional expression as an `if` with two branches, and vice versa."""
    space = margin(subject, node)
    if not space or not subject.lines(node):
        return
    match node:
        case ast.Assign(value=ast.IfExp() as choice) | ast.Return(value=ast.IfExp() as choice):
            if is_one_line(node):
                yield subject.replaced(node, _as_branches(subject, node, choice, space))
        case ast.If(test=test, body=[one], orelse=[two]):
            if is_elif(subject, node) or not is_one_line(test):
                return
            if not is_one_line(one) or not is_one_line(two):
                return
            text = _as_choice(subject, node, one, two)
            if text and lines_of(subject, (node,)):
                yield subject.replaced(node, text)


def _as_branches(subject: CorruptionTarget, node: ast.stmt, choice: ast.IfExp, space: str) -> str:
    step, test = step_of(subject), subject.source(choice.test)
    before = subject.text[subject.span(node)[0] : subject.operand(choice)[0]]
    one, two = (f"{before}{subject.source(item)}" for item in (choice.body, choice.orelse))
    after = f"\n{space}{two}" if isinstance(node, ast.Return) else f"\n{space}else:\n{space}{step}{two}"
    return f"if {test}:\n{space}{step}{one}{after}"


def _as_choice(subject: CorruptionTarget, node: ast.If, one: ast.stmt, two: ast.stmt) -> str:
    match one, two:
        case ast.Return(value=ast.expr() as first), ast.Return(value=ast.expr() as second):
            before = "return"
        case ast.Assign(targets=[target], value=first), ast.Assign(targets=[other], value=second) if (
            ast.unparse(target) == ast.unparse(other)
        ):
            before = f"{subject.source(target)} ="
        case _:
            return ""
    # Instead of choosing between True and False, one would return the condition itself.
    only_flags = _is_flag(first) and _is_flag(second)
    if only_flags or is_open(node.test) or has_any(_LOOSE, (first, second)):
        return ""
    return f"{before} {subject.source(first)} if {subject.source(node.test)} else {subject.source(second)}"


def _is_flag(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, bool)


@at_each(*_LOOPS)
def early_continue(subject: CorruptionTarget, loop: ast.For | ast.While) -> Iterator[Edits]:
    """Yield edits that turn the condition around a loop's body into an early `continue`, and vice versa."""
    match loop.body:
        case [ast.If(orelse=[]) as node]:
            yield from _continued(subject, node)
        case [ast.If(body=[ast.Continue()], orelse=[]) as node, *rest]:
            yield from _nested(subject, loop, node, rest)


def _continued(subject: CorruptionTarget, node: ast.If) -> Iterator[Edits]:
    space, step = margin(subject, node), step_of(subject)
    text = _reindented(subject, node.body, space)
    # If the body has one line, the rewrite would only add a line.
    has_lines = "\n" in text and space and subject.lines(node)
    negated = negation(subject, node.test)
    if has_lines and negated and is_one_line(node.test):
        head = f"if {negated}:\n{space}{step}continue"
        yield subject.replaced(node, f"{head}\n{text}")


def _nested(
    subject: CorruptionTarget, loop: ast.For | ast.While, node: ast.If, rest: Sequence[ast.stmt]
) -> Iterator[Edits]:
    space, span = margin(subject, node), lines_of(subject, loop.body)
    text, negated = _reindented(subject, rest, space + step_of(subject)), negation(subject, node.test)
    if span is not None and space and text and negated and is_one_line(node.test):
        yield (TextEdit(subject.span(node)[0], span[1], f"if {negated}:\n{text}"),)


def inlined(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that inline a variable's value at its only use, in the next statement."""
    uses = Counter(item.id for item in inside(ast.Name, subject.node))
    shared = _shared(subject)
    for first, second in subject.neighbours():
        match first:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call() | ast.Attribute() | ast.Subscript() as value
            ) if uses[name] == 2 and name not in shared and is_one_line(first):
                lines, used = subject.lines(first), _only_use(subject, name, second)
                if lines is not None and used is not None and not has(ast.NamedExpr, value):
                    yield (
                        TextEdit(lines[0], lines[1] + 1, ""),
                        TextEdit(*subject.span(used), subject.source(value)),
                    )


def _only_use(subject: CorruptionTarget, name: str, statement: ast.stmt) -> ast.Name | None:
    """Return the only use of a variable in a statement; None unless it is read once, before other work."""
    match [item for item in inside(ast.Name, statement) if item.id == name]:
        case [ast.Name(ctx=ast.Load()) as used] if used in subject.parents:
            path = [used, *takewhile(lambda node: node is not statement, subject.around(used)), statement]
            return used if all(_is_first(subject, *step) for step in pairwise(path)) else None
    return None


def _is_first(subject: CorruptionTarget, part: ast.AST, whole: ast.AST) -> bool:
    """Return whether code always evaluates one of its parts, and nothing with an effect before it."""
    match whole:
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            return part is value
        case ast.AugAssign(target=ast.Name() as target, value=value):
            return part is value and _are_idle(subject, [target])
        case ast.BoolOp(values=[first, *_]) | ast.IfExp(test=first) | ast.If(test=first):
            return part is first
        case ast.Compare(left=left, comparators=[right, *_]) if part is not left and part is not right:
            return False
        case ast.Call(func=ast.Attribute(value=owner) as called) if part is not called:
            return _are_idle(subject, [owner, *_preceding(part, [*whole.args, *whole.keywords])])
        case ast.Call(func=ast.Name() as called) if part is not called:
            return _are_idle(subject, _preceding(part, [*whole.args, *whole.keywords]))
    return isinstance(whole, _WHOLE) and _are_idle(subject, _preceding(part, ast.iter_child_nodes(whole)))


def _preceding(part: ast.AST, parts: Iterable[ast.AST]) -> list[ast.AST]:
    """Return the parts that precede one of them in the source."""
    placed = [item for item in parts if hasattr(item, "lineno")]
    start = _place(part)
    return [item for item in placed if _place(item) < start]


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _are_idle(subject: CorruptionTarget, parts: Iterable[ast.AST]) -> bool:
    """Return whether these parts are constants and variables of the function itself."""
    stored = (item.id for item in inside(ast.Name, subject.node) if not isinstance(item.ctx, ast.Load))
    own = (parameters(subject.node) | frozenset(stored)) - _shared(subject)
    return all(
        isinstance(item, ast.Constant) or (isinstance(item, ast.Name) and item.id in own) for item in parts
    )


def else_after_return(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that put the code after a branch that returns into an `else`, and vice versa."""
    for block in subject.blocks:
        for place, node in enumerate(block.statements):
            match node:
                case ast.If(body=[*_, ast.Return()], orelse=[]) if not is_elif(subject, node):
                    yield from _else_added(subject, node, block.statements[place + 1 :])
                case ast.If(body=[*_, ast.Return()], orelse=[first, *_]) if not is_elif(subject, node):
                    if not isinstance(first, ast.If):
                        yield from _else_removed(subject, node)


def _else_added(subject: CorruptionTarget, node: ast.If, rest: Sequence[ast.stmt]) -> Iterator[Edits]:
    space, step = margin(subject, node), step_of(subject)
    own = lines_of(subject, (node,))
    if not space or own is None or not rest:
        return
    text, span = _reindented(subject, rest, space + step), lines_of(subject, (node, *rest))
    # An `else` with a single `if` would be written as `elif`.
    fits = isinstance(rest[-1], LEAVING) and not text.startswith(f"{space}{step}if ")
    if text and span and fits:
        yield (TextEdit(own[1], span[1], f"\n{space}else:\n{text}"),)


def _else_removed(subject: CorruptionTarget, node: ast.If) -> Iterator[Edits]:
    space = margin(subject, node)
    text, body, span = (
        _reindented(subject, node.orelse, space),
        lines_of(subject, node.body),
        subject.lines(node),
    )
    if space and text and body and span:
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
