"""The code that a solver submits: exactly one definition, with any indentation."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass

from gistpoint.core.code.index import Definition, index_module
from gistpoint.core.code.parsing import CodeError, DefinitionNode, Fault, parse_module
from gistpoint.core.code.source_text import SourceText, leading_space

_WHAT = "The code"
_REFUSED = re.compile("[\\0\\ud800-\\udfff]")
"""Characters for which Python's parser reports no line, so they are refused before parsing."""
_ALONE = "Send the whole definition and nothing else: no imports, no calls, no second definition."
_NAMES: dict[type[ast.stmt], str] = {
    ast.Import: "an import",
    ast.ImportFrom: "an import",
    ast.Expr: "an expression",
    ast.Assign: "an assignment",
    ast.AnnAssign: "an assignment",
    ast.AugAssign: "an assignment",
    ast.FunctionDef: "a function",
    ast.AsyncFunctionDef: "a function",
    ast.ClassDef: "a class",
}


@dataclass(frozen=True, slots=True)
class Snippet:
    """Code that is one definition, with its syntax tree."""

    definition: Definition
    node: DefinitionNode


def read_snippet(code: str) -> Snippet:
    """Return the snippet in code that is exactly one function, method or class, with any indentation.

    Comments and blank lines around it are allowed. Raises `CodeError` for any other code, with the line
    unless the code is empty.
    """
    text, statements, first_line = _statements(code)
    node = statements[0] if statements else None
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or len(statements) > 1:
        raise _not_alone(statements, first_line)
    document = SourceText.of(_WHAT, text)
    index, nodes = index_module(document, ast.Module(body=[node], type_ignores=[]))
    return Snippet(index.definitions[0], nodes[0])


def at_left_margin(code: str) -> str:
    """Return a definition at the left margin, docstrings included; only for display.

    For code that is not a definition, the indentation shared by all lines is removed.
    """
    try:
        found = read_snippet(code)
        lines = found.definition.dedented.split("\n")
        nodes = parse_module("\n".join(lines), _WHAT)
    except CodeError:
        return textwrap.dedent(code)
    for node in ast.walk(nodes):
        if isinstance(node, DefinitionNode) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            rest = range(docstring.lineno, docstring.end_lineno or docstring.lineno)
            shared = min((len(leading_space(lines[n])) for n in rest if lines[n].strip()), default=0)
            for number in rest:
                lines[number] = (
                    " " * docstring.col_offset * bool(lines[number].strip()) + lines[number][shared:]
                )
    return "\n".join(lines)


def parse_snippet(code: str) -> list[ast.stmt]:
    """Return the statements of a piece of code with any indentation.

    Raises `CodeError` if the code is empty or, with the line, if it can't be parsed.
    """
    return _statements(code)[1]


def fault_of(code: str) -> Fault | None:
    """Return the fault of code with any indentation; None if it is Python, or blank."""
    if not code.strip():
        return None
    try:
        parse_snippet(code)
    except CodeError as error:
        cause = error.__cause__
        return Fault(cause.msg if isinstance(cause, SyntaxError) else str(error), error.line or 0)
    return None


def _statements(code: str) -> tuple[str, list[ast.stmt], int]:
    """Return the parsed text, its statements, and the number of its first line in messages."""
    text = re.sub(r"\r\n?", "\n", code.removeprefix("\ufeff"))
    _check_characters(text)
    first = next(filter(_is_code, text.split("\n")), None)
    if first is None:
        raise CodeError("The code is empty.", hint="Send the whole definition, from `def` to its last line.")
    if first.startswith("```"):
        raise CodeError("The code starts with a Markdown fence.", hint="Send the Python code alone.", line=1)
    if not leading_space(first):
        return text, parse_module(text, _WHAT).body, 1
    # Indented code is parsed as a block, so that its strings keep every space.
    text = f"if 1:\n{text}"
    body = parse_module(text, _WHAT, first_line=0).body
    match body:
        case [ast.If(orelse=[]) as block]:
            return text, block.body, 0
    after = body[1].lineno - 1 if len(body) > 1 else 1
    raise CodeError(
        f"{_WHAT} changes its margin: its first line is indented, line {after} is not.", line=after
    )


def _is_code(line: str) -> bool:
    """Return whether a line holds more than space and a comment."""
    stripped = line.strip(" \t\f")
    return stripped != "" and not stripped.startswith("#")


def _check_characters(text: str) -> None:
    if not _REFUSED.search(text):
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if _REFUSED.search(line):
            what = "a null byte" if line.isascii() else "a null byte or half a surrogate pair"
            raise CodeError(f"{_WHAT} holds {what} on line {number}.", line=number)


def _not_alone(statements: list[ast.stmt], first_line: int) -> CodeError:
    found = [(_NAMES.get(type(item), "a statement"), item.lineno + first_line - 1) for item in statements]
    if len(found) == 1:
        what, line = found[0]
        return CodeError(f"{_WHAT} is {what}, not a definition.", hint=_ALONE, line=line)
    listed = ", ".join(f"{what} (line {line})" for what, line in found[:5])
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return CodeError(f"{_WHAT} is not one definition but {listed}{more}.", hint=_ALONE, line=found[0][1])
