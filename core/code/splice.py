"""Replacing a function, method or class in place: the rest of the file keeps every byte."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gistpoint.core.code.compare import same_tree
from gistpoint.core.code.definitions import Definition
from gistpoint.core.code.document import read_document
from gistpoint.core.code.errors import CodeError
from gistpoint.core.code.index import FileIndex, index_module
from gistpoint.core.code.lines import CodeLine, code_lines
from gistpoint.core.code.reindent import block_unit, file_unit, in_unit, moved_text
from gistpoint.core.code.snippet import Snippet, parse_snippet, read_snippet
from gistpoint.core.code.syntax import compile_problem, parse_module


def replace_definition(
    index: FileIndex, definition: Definition, new_code: str, *, allow_decorator_change: bool = False
) -> bytes:
    """Return the bytes of the file with `new_code` in place of `definition`.

    The new code is one definition of the same name and sort, at any margin, with any line ends. Without decorators it
    takes over those of the file; with decorators they must be the same, unless `allow_decorator_change`. Encoding,
    byte order mark, line ends and everything outside of the definition stay. Raises `CodeError`, saying the line, for
    code that is anything else or with which the file would no longer be what it was around it.
    """
    new = read_snippet(new_code)
    _check_name(definition, new.definition)
    keep = _keeps_decorators(definition, new, allow_decorator_change)
    text = spliced_text(index, definition, new, keep_decorators=keep)
    data = index.document.encode(text)
    _check_result(index, definition, new, data, text, keep_decorators=keep)
    return data


def spliced_text(index: FileIndex, definition: Definition, new: Snippet, *, keep_decorators: bool) -> str:
    """Return the text of the file with `new` in place of `definition`, unchecked."""
    document, given = index.document, new.definition
    _check_place(definition)
    old = code_lines(document, definition.start_line, definition.end_line)
    lines = code_lines(given.document, given.start_line, given.end_line)
    unit = block_unit(old) or file_unit(index.definitions)
    lines = in_unit(lines, unit)
    if keep_decorators:
        place = definition.layout.keyword
        old = old[definition.def_line - definition.start_line :]
        lines = lines[given.def_line - given.start_line :]
    else:
        place = definition.layout.start
    start = document.offset(*place)
    middle = moved_text(_from_token(lines), _from_token(old), definition.indentation, document.newline)
    return document.text[:start] + middle + document.text[definition.end :]


def _from_token(lines: Sequence[CodeLine]) -> list[CodeLine]:
    """Return the lines with the first one cut to where its first token starts."""
    first = lines[0]
    text = first.raw.lstrip(" \t\f")
    return [CodeLine(text, first.end, text, False, first.level), *lines[1:]]


def _check_name(definition: Definition, given: Definition) -> None:
    line = given.def_line - given.document.text.startswith("if 1:\n")
    if definition.kind.sort != given.kind.sort:
        raise CodeError(
            f"The code defines the {given.kind.sort} {given.name}; {definition.ref} is a {definition.kind.sort}.",
            hint=f"Send the {definition.kind.sort} {definition.name}.",
            line=line,
        )
    if definition.name != given.name:
        raise CodeError(
            f"The code defines {given.name}, not {definition.name}.",
            hint=f"Send one definition named {definition.name}.",
            line=line,
        )


def _check_place(definition: Definition) -> None:
    document, line = definition.document, definition.start_line
    if not document.is_reversible:
        raise CodeError(f"{document.path} can't be written in {document.encoding} without changing other bytes of it.")
    if line > 1 and document.line(line - 1).strip(" \t\f") == "\\":
        raise CodeError(
            f"{definition.ref} starts behind a line continuation (line {line - 1}), so it can't be replaced in place."
        )


def _keeps_decorators(definition: Definition, new: Snippet, allow_change: bool) -> bool:
    """Return whether the file's decorators stay as they are. Raises `CodeError` where the code brings others."""
    given = new.node.decorator_list
    if not given:
        return True
    known = definition.decorators
    if len(known) == len(given) and all(
        same_tree(_expression(text), node) for text, node in zip(known, given, strict=True)
    ):
        return True
    if allow_change:
        return False
    are = ", ".join(f"@{text}" for text in known) or "none"
    raise CodeError(
        f"The code changes the decorators of {definition.ref}, which are: {are}.",
        hint="Send the definition with these decorators, or without any: then they stay as they are.",
    )


def _expression(text: str) -> ast.AST:
    statement = parse_snippet(f"({text}\n)")[0]
    return statement.value if isinstance(statement, ast.Expr) else statement


def _check_result(
    index: FileIndex, definition: Definition, new: Snippet, data: bytes, text: str, *, keep_decorators: bool
) -> None:
    """Raise `CodeError` unless `data` is the old file with the new definition, and nothing else is different."""
    path = index.path
    document = read_document(path, data)
    if document.text != text or document.encoding != index.encoding or document.bom != index.document.bom:
        raise CodeError(f"With this code {path} would be read in another encoding than {index.encoding}.")
    after, nodes = index_module(document, parse_module(document.text, f"With this code {path}"))
    if _others(index, definition) != _others(after, definition):
        raise CodeError(f"With this code {path} would define other names outside of {definition.qualname}.")
    found = nodes[after.definitions.index(after.get(definition.qualname))]
    if keep_decorators:
        found.decorator_list, new.node.decorator_list = [], []
    if not same_tree(found, new.node):
        raise CodeError(f"The code does not mean the same at the place of {definition.ref}.")
    problem = compile_problem(text)
    if problem is not None and compile_problem(index.text) is None:
        raise CodeError(f"With this code {path} does not compile: {problem.message}.", line=problem.line)


def _others(index: FileIndex, definition: Definition) -> list[str]:
    """Return the unnumbered names of the definitions outside of one, in source order, and its own place among them."""
    names: list[str] = []
    position = 0
    own = index.get(definition.qualname)
    for item in index.definitions:
        if item is own:
            position = len(names)
        elif not (own.start_line <= item.start_line and item.end_line <= own.end_line):
            names.append(item.ref.plain)
    return [*names, str(position)]
