"""The flag `baked_in`: a line of the gist's own ran that has a value in place of a computation.

A gist is made of code of the codebase. An answer that is written into it has to stand somewhere: as a literal
in a line that the codebase does not have, or in a text that such a line reads (decision 158).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gistpoint.core.code.parsing import parse
from gistpoint.core.kinds.gist.rates import ExecutionReport, ExistenceReason, ExistenceReport, Originals

_TRIVIAL = frozenset(map(repr, (None, True, False, ..., 0, 1, -1, "", b"", 0.0, 1.0, "__main__")))
"""What lines of honest gists contain: beginnings, steps and answers of yes or no."""
_READING = frozenset(
    (
        *("__doc__", "__file__", "__code__", "co_consts", "co_names", "__defaults__", "__kwdefaults__"),
        *("getdoc", "getsource", "getsourcelines", "getcomments", "getmembers", "currentframe", "_getframe"),
        *("f_back", "f_locals", "f_globals", "tb_frame", "linecache", "open", "read_text", "read_bytes"),
        *("__annotations__", "environ", "argv"),
    )
)
"""Names by which code gets at its own text, that of the test, or what its caller has."""


def baked_in(existence: ExistenceReport, execution: ExecutionReport | None, originals: Originals) -> str:
    """Return the first line with an answer that was written into the gist, after the name of its block.

    Such a line ran, is not in the codebase, and contains a literal or reads a text that no line of the
    codebase's block of that name does; empty if there is none.
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
    """Return the literals of a line that mean something, and the names by which it reads texts."""
    return frozenset(_found_in(line))


def _found_in(line: str) -> Iterator[str]:
    for node in ast.walk(_parsed(line)):
        if isinstance(node, ast.Constant) and repr(node.value) not in _TRIVIAL:
            yield f"{type(node.value).__name__} {node.value!r}"
        name = getattr(node, "attr", getattr(node, "id", getattr(node, "name", "")))
        if name in _READING:
            yield str(name)


def _parsed(line: str) -> ast.AST:
    """Return the tree of a line, which may be the header of a statement; an empty one if it is neither."""
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
