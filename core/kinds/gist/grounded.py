"""The flags `invented_operand` and `baked_in`: objects and values of a gist that are not the codebase's.

The run reports which classes took part in the test's decisions, without calling methods of their objects. The
text shows which of these belong to the codebase: it must contain the header of the class, or the line that
binds its name, and all of its methods that can decide a comparison (decision 123).

An answer that is written into a gist must appear somewhere: as a literal in a line that the codebase does not
have, or in a string that such a line reads (decision 158).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from gistpoint.core.code.bindings import bound_names
from gistpoint.core.code.parsing import parse
from gistpoint.core.code.scopes import scoped
from gistpoint.core.entrypoints.runs import Operand
from gistpoint.core.kinds.gist.rates import (
    ExecutionReport,
    ExistenceReason,
    ExistenceReport,
    LineExistence,
    Originals,
)

NOT_OBSERVED = "what it compares could not be observed"
_WILD = (("Approx", "approx"), ("Mock", "mock|patch"))
_WITHIN = ".<locals>."
_ADDS_EQUALITY = "addTypeEqualityFunc"


def invented_operand(text: str, operands: Sequence[Operand] | None, existence: ExistenceReport) -> str:
    """Return the name of the first of `operands` that the codebase does not have; empty if there is none.

    Returns `NOT_OBSERVED` if `operands` is None. `existence` is the report on `text`, the text that ran.
    """
    if operands is None:
        return NOT_OBSERVED
    return next((one.names[0] for one in operands if not _is_grounded(text, one, existence)), "")


def _is_grounded(text: str, operand: Operand, existence: ExistenceReport) -> bool:
    # The environment's objects that equal many others, such as `approx`, must be named (decision 123).
    if operand.wild:
        return _is_named(operand, existence)
    if operand.replaced:
        return _is_replaced_there(text, operand.names[0], existence)
    header = _header(operand.names[0], existence)
    if header is None and not any(_is_bound_there(text, name, existence) for name in operand.names):
        return False
    return all(_is_written(operand, header, special, existence) for special in operand.specials)


def _is_named(operand: Operand, existence: ExistenceReport) -> bool:
    """Return whether a line of the test or the codebase names an object that may equal anything."""
    name = operand.names[0]
    words = [words for part, words in _WILD if part in name]
    if not words:
        words = [re.escape(name.strip("_"))]
    pattern = re.compile(words[0], re.IGNORECASE)
    return any(pattern.search(one.line.text) for one in _existing(existence))


def _is_replaced_there(text: str, name: str, existence: ExistenceReport) -> bool:
    """Return whether the codebase, or a test, replaces a function of a library."""
    owner, _, own = name.rpartition(".")
    if not owner:
        return _is_bound_there(text, own, existence)
    return any(_mentions(one, own) for one in _existing(existence))


def _existing(existence: ExistenceReport) -> list[LineExistence]:
    """Return the lines of a gist that are in the codebase or in its test, which is the original one."""
    return [line for line in existence.lines if _line_exists(line, existence)]


def _line_exists(line: LineExistence, existence: ExistenceReport) -> bool:
    return line.exists or line.block in existence.test_blocks


def _header(name: str, existence: ExistenceReport) -> LineExistence | None:
    """Return the header of one of the codebase's classes; None if there is none.

    The header of a class inside a function is a line of the function.
    """
    outer, _, last = name.rpartition(_WITHIN)
    block = outer.split(_WITHIN)[0] if outer else name
    wanted = re.compile(rf"class {re.escape(last.rpartition('.')[2])}\b")
    for one in _existing(existence):
        if one.block == block and wanted.match(one.line.text):
            return one
    return None


def _is_bound_there(text: str, name: str, existence: ExistenceReport) -> bool:
    """Return whether a name is bound at the top level only by lines of the codebase."""
    own = name.rpartition(".")[2]
    found = list[LineExistence]()
    for node, scope in scoped(parse(text)):
        at_top = scope.parent is None
        if at_top and _binds(node, own):
            found += existence.at(getattr(node, "lineno", 0))
    return bool(found) and all(one.exists for one in found)


def _binds(node: object, name: str) -> bool:
    return name in bound_names(node)  # type: ignore[arg-type]


def _is_written(
    operand: Operand, header: LineExistence | None, special: tuple[str, str, int], existence: ExistenceReport
) -> bool:
    """Return whether the codebase defines a special method of a class, inside the class or outside."""
    name, origin, line = special
    if origin == "gist" and not _is_whole(line, existence):
        return False
    there = _existing(existence)
    if header is not None:
        if any(_defines(one, operand.names[0], name) for one in there):
            return True
        if not _may_be_given_methods(header, there):
            return False
    if origin == "environment":
        return True
    return any(_mentions(one, name) for one in there)


def _may_be_given_methods(header: LineExistence, there: Sequence[LineExistence]) -> bool:
    """Return whether a class has bases, a metaclass or decorators, which may have added methods."""
    if "(" in header.line.text:
        return True
    return any(one.line.text.startswith("@") for one in there if one.block == header.block)


def _defines(line: LineExistence, owner: str, name: str) -> bool:
    """Return whether a line defines a special method of a class, by its header or by an assignment."""
    text = line.line.text
    own = re.escape(f"{owner}.{name}")
    word = re.escape(name)
    is_method = line.block == f"{owner}.{name}"
    # A class in a function is not a separate block: its lines belong to the function.
    in_function = _WITHIN in owner and line.block == owner.split(_WITHIN)[0]
    if is_method or in_function:
        return re.match(rf"(?:async )?def {word}\b|{word}\b.*=", text) is not None
    return line.block in (owner, "") and re.match(rf"(?:{own}|{word})\b.*=", text) is not None


def _mentions(line: LineExistence, name: str) -> bool:
    """Return whether a line sets a special method on any object, or contains its name in a string.

    For unittest's method that registers a function for comparing values of a type, calling it counts too.
    """
    word = re.escape(name)
    called = rf"|\.{word}\(" if name == _ADDS_EQUALITY else ""
    return re.search(rf"\.{word} =|['\"]([\w.]+\.)?{word}['\"]{called}", line.line.text) is not None


def _is_whole(line: int, existence: ExistenceReport) -> bool:
    """Return whether all lines of the function that begins on a line are in the codebase or the test."""
    found = existence.at(line)
    if not found:
        return False
    first = found[0]
    begins_function = first.line.text.startswith(("def ", "async def ", "@"))
    if not first.block or not begins_function:
        return _line_exists(first, existence)
    return all(_line_exists(one, existence) for one in existence.lines if one.block == first.block)


# The flag `baked_in`

_TRIVIAL = frozenset(map(repr, (None, True, False, ..., 0, 1, -1, "", b"", 0.0, 1.0, "__main__")))
"""The usual literals in lines of honest gists: initial values, steps, and yes-or-no answers."""
_READING = frozenset(
    (
        *("__doc__", "__file__", "__code__", "co_consts", "co_names", "__defaults__", "__kwdefaults__"),
        *("getdoc", "getsource", "getsourcelines", "getcomments", "getmembers", "currentframe", "_getframe"),
        *("f_back", "f_locals", "f_globals", "tb_frame", "linecache", "open", "read_text", "read_bytes"),
        *("__annotations__", "environ", "argv"),
    )
)
"""Names by which code can read sources and other files, its caller's variables, or its environment."""


def baked_in(existence: ExistenceReport, execution: ExecutionReport | None, originals: Originals) -> str:
    """Return the block's name and the text of the first line with an answer that was written into the gist.

    Such a line ran and is not in the codebase. It contains a literal, or reads a string, that no line in the
    codebase's block of the same name contains or reads. Empty if there is no such line.
    """
    if execution is None:
        return ""
    ran = {(one.block, one.line.first) for one in execution.lines if one.ran}
    for one in existence.lines:
        is_own = not one.exists and one.reason is not ExistenceReason.GLUE
        if not is_own or one.block in existence.test_blocks or (one.block, one.line.first) not in ran:
            continue
        known = frozenset[str]().union(*map(_signs, originals.texts_of(one.block)))
        if _signs(one.line.text) - known:
            return f"{one.block or 'top level'}: {one.line.text}"
    return ""


def _signs(line: str) -> frozenset[str]:
    """Return the literals of a line that mean something, and the names by which it reads strings."""
    return frozenset(_found_in(line))


def _found_in(line: str) -> Iterator[str]:
    for node in ast.walk(_parsed(line)):
        if isinstance(node, ast.Constant) and repr(node.value) not in _TRIVIAL:
            yield f"{type(node.value).__name__} {node.value!r}"
        name = getattr(node, "attr", getattr(node, "id", getattr(node, "name", "")))
        if name in _READING:
            yield str(name)


def _parsed(line: str) -> ast.AST:
    """Return the tree of a line, as a statement or the header of one; an empty tree for any other line."""
    for text in (
        line,
        f"{line}\n    pass",
        f"match x:\n    {line}\n        pass",
        f"try:\n    pass\n{line}\n    pass",
    ):
        try:
            return parse(text)
        except (SyntaxError, ValueError):
            continue
    return _parsed(f"if{line.removeprefix('elif')}") if line.startswith("elif ") else ast.Module([], [])
