"""Replaces a function, method or class in place; the rest of the file keeps every byte."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import takewhile

from gistpoint.core.code.compare import same_tree
from gistpoint.core.code.index import Definition, DefinitionKind, FileIndex, index_module, index_source
from gistpoint.core.code.names import LOCALS
from gistpoint.core.code.parsing import CodeError, compile_problem, parse_module
from gistpoint.core.code.snippet import Snippet, parse_snippet, read_snippet
from gistpoint.core.code.source_text import CodeLine, SourceText, code_lines, leading_space, read_document
from gistpoint.core.trees import SourceTree

_FOUR_SPACES = "    "


def block_unit(lines: Sequence[CodeLine]) -> str | None:
    """Return the whitespace that indents a definition's body; None for a definition on one line."""
    return next((leading_space(line.shown) for line in lines if line.level == 1), None)


def file_unit(definitions: Sequence[Definition]) -> str:
    """Return the whitespace that indents the first indented body in a file; four spaces if there is none."""
    return next(filter(None, map(_unit_of, definitions)), _FOUR_SPACES)


def _unit_of(definition: Definition) -> str:
    """Return the whitespace that indents a definition's body; empty if the body is on the header's line."""
    layout, margin = definition.layout, definition.indentation
    body = leading_space(definition.document.line(layout.body_line))
    below = layout.body_line > layout.header[0] and body.startswith(margin)
    return body.removeprefix(margin) if below else ""


def in_unit(lines: Sequence[CodeLine], unit: str) -> list[CodeLine]:
    """Return lines, re-indented by `unit` if their blocks use tabs and `unit` spaces, or vice versa."""
    own = block_unit(lines)
    if own is None or set(own) == set(unit):
        return list(lines)
    # Tabs and spaces can be exchanged only if neither side mixes them.
    if max(len(set(own)), len(set(unit))) > 1:
        return list(lines)
    levels: dict[str, int] = {"": 0}
    for line in lines:
        if line.level is not None:
            levels.setdefault(leading_space(line.shown), line.level)
    moved = []
    for line in lines:
        space = leading_space(line.shown)
        if line.in_string or not space:
            moved.append(line)
            continue
        outer = max((other for other in levels if space.startswith(other)), key=len)
        level = levels[outer] if line.level is None else line.level
        rest = line.shown[len(outer if line.level is None else space) :]
        moved.append(replace(line, shown=unit * level + rest))
    return moved


def moved_text(new: Sequence[CodeLine], old: Sequence[CodeLine], margin: str, newline: str) -> str:
    """Return `new` indented by `margin`, without the first line's margin and the last line's ending.

    A line that is also in `old` keeps its bytes, including its ending and irregular whitespace.
    """
    texts = [_at_margin(line, margin, first=position == 0) for position, line in enumerate(new)]
    ends = [newline] * len(new)
    for position, kept in _kept_lines(new, old, margin, newline).items():
        texts[position] = kept.raw
        ends[position] = kept.end or newline
    ends[-1] = ""
    return "".join(text + end for text, end in zip(texts, ends, strict=True))


def _at_margin(line: CodeLine, margin: str, *, first: bool) -> str:
    if line.in_string:
        return line.raw
    return line.shown if first or not line.shown else margin + line.shown


def _kept_lines(
    new: Sequence[CodeLine], old: Sequence[CodeLine], margin: str, newline: str
) -> dict[int, CodeLine]:
    """Return the old lines whose bytes are kept, by index in `new`.

    It is empty if indenting them by `margin` and ending them with `newline` yields the same bytes anyway.
    """
    irregular = any(
        line.end not in ("", newline) or line.raw != _at_margin(line, margin, first=position == 0)
        for position, line in enumerate(old)
    )
    if not irregular:
        return {}
    keys_old, keys_new = list(map(_key, old)), list(map(_key, new))
    head = _alike(keys_old, keys_new)
    tail = _alike(keys_old[head:][::-1], keys_new[head:][::-1])
    kept = dict(enumerate(old[:head])) | dict(enumerate(old[len(old) - tail :], start=len(new) - tail))
    middle_old, middle_new = keys_old[head : len(old) - tail], keys_new[head : len(new) - tail]
    # `autojunk` ignores frequent lines, so fewer lines are kept; only long input needs its speed.
    for block in SequenceMatcher(
        None, middle_old, middle_new, autojunk=len(middle_old) > 500
    ).get_matching_blocks():
        kept |= {head + block.b + i: old[head + block.a + i] for i in range(block.size)}
    # The first line has no margin, so it can be kept only as the first line.
    return {place: line for place, line in kept.items() if (place == 0) == (line is old[0])}


def _alike(one: Sequence[object], two: Sequence[object]) -> int:
    """Return the length of the common prefix of two sequences."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False)))


def _key(line: CodeLine) -> tuple[str, bool, int | None]:
    return line.shown, line.in_string, line.level


def replace_definition(
    index: FileIndex, definition: Definition, new_code: str, *, allow_decorator_change: bool = False
) -> bytes:
    """Return the bytes of the file with `new_code` in place of `definition`.

    The new code is one definition of the same name, a class for a class or a function for a function, with
    any indentation and line endings. If it has no decorators, the file's are kept; if it has decorators, they
    must be the same, unless `allow_decorator_change`. Encoding, byte order mark, line endings and everything
    outside of the definition stay. Raises `CodeError`, with the line if it is known, for any other code, if
    the structure of the file around it would change, or if the definition can't be replaced in place.
    """
    new = read_snippet(new_code)
    _check_name(definition, new.definition)
    keep = _keeps_decorators(definition, new, allow_decorator_change)
    text = spliced_text(index, definition, new, keep_decorators=keep)
    data = index.document.encode(text)
    # The result is read again as Python would read it: checks of the code alone can't find every change
    # around it.
    _check_result(index, definition, new, data, text, keep_decorators=keep)
    return data


def with_definition(tree: SourceTree, path: str, qualname: str, code: str) -> SourceTree:
    """Return the tree with one definition replaced by `code`.

    Raises `CodeError` if that is impossible, and `FileNotFoundError` if there is no such file.
    """
    index = index_source(path, tree.read(path))
    return tree.with_files({tree.resolve(path) or path: replace_definition(index, index.get(qualname), code)})


def spliced_text(index: FileIndex, definition: Definition, new: Snippet, *, keep_decorators: bool) -> str:
    """Return the text of the file with `new` in place of `definition`, without checks.

    With `keep_decorators`, the decorators of the file stay in place of those of `new`. Raises `CodeError` if
    the file can't be written in its encoding, or the definition starts after a line continuation.
    """
    document, replacement = index.document, new.definition
    _check_place(definition)
    old = code_lines(document, definition.start_line, definition.end_line)
    lines = code_lines(replacement.document, replacement.start_line, replacement.end_line)
    unit = block_unit(old) or file_unit(index.definitions)
    lines = in_unit(lines, unit)
    if keep_decorators:
        place = definition.layout.keyword
        old = old[definition.def_line - definition.start_line :]
        lines = lines[replacement.def_line - replacement.start_line :]
    else:
        place = definition.layout.start
    start = document.offset(*place)
    middle = moved_text(_from_token(lines), _from_token(old), definition.indentation, document.newline)
    return document.text[:start] + middle + document.text[definition.end :]


def _from_token(lines: Sequence[CodeLine]) -> list[CodeLine]:
    """Return the lines, the first one starting at its first token."""
    first = lines[0]
    text = first.raw.lstrip(" \t\f")
    return [CodeLine(text, first.end, text, False, first.level), *lines[1:]]


def _check_name(definition: Definition, given: Definition) -> None:
    line = given.def_line - given.document.text.startswith("if 1:\n")
    if definition.kind.sort != given.kind.sort:
        raise CodeError(
            f"The code defines the {given.kind.sort} {given.name}; {definition.ref} is a"
            f" {definition.kind.sort}.",
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
        raise CodeError(
            f"{document.path} can't be written in {document.encoding} without changing other bytes of it."
        )
    if line > 1 and document.line(line - 1).strip(" \t\f") == "\\":
        # A definition in the middle of a logical line has no separate margin.
        raise CodeError(
            f"{definition.ref} starts after a line continuation (line {line - 1}), so it can't be replaced in"
            " place."
        )


def _keeps_decorators(definition: Definition, new: Snippet, allow_change: bool) -> bool:
    """Return whether to keep the file's decorators, because the code has none or the same ones.

    Raises `CodeError` if the code has different ones, unless `allow_change`.
    """
    sent = new.node.decorator_list
    if not sent:
        return True
    existing = definition.decorators
    if len(existing) == len(sent) and all(map(same_tree, map(_expression, existing), sent)):
        return True
    if allow_change:
        return False
    are = ", ".join(f"@{text}" for text in existing) or "none"
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
    """Raise `CodeError` unless `data` is the old file with the new definition as its only difference."""
    path = index.path
    document = read_document(path, data)
    read_as = document.text, document.encoding, document.bom
    if read_as != (text, index.encoding, index.document.bom):
        raise CodeError(f"With this code {path} would be read in another encoding than {index.encoding}.")
    after, nodes = index_module(document, parse_module(document.text, f"With this code {path}"))
    if _others(index, definition) != _others(after, definition):
        raise CodeError(f"With this code {path} would define other names outside of {definition.qualname}.")
    found = nodes[after.definitions.index(after.get(definition.qualname))]
    if keep_decorators:
        found.decorator_list, new.node.decorator_list = [], []
    if not same_tree(found, new.node):
        raise CodeError(f"The code would mean something else in the place of {definition.ref}.")
    # A file that did not compile before is not refused: the code may be its repair.
    problem = compile_problem(text)
    if problem is not None and compile_problem(index.text) is None:
        raise CodeError(f"With this code {path} does not compile: {problem.message}.", line=problem.line)


def _others(index: FileIndex, definition: Definition) -> list[str]:
    """Return the unnumbered names of the definitions outside of `definition`, and its position as a string.

    The names are in source order; the position is the number of those that precede it.
    """
    names: list[str] = []
    position = 0
    own = index.get(definition.qualname)
    for item in index.definitions:
        if item is own:
            position = len(names)
        elif not (own.start_line <= item.start_line and item.end_line <= own.end_line):
            names.append(item.ref.plain)
    return [*names, str(position)]


def remove_body(index: FileIndex, definition: Definition) -> str:
    """Return a function's decorators, signature and docstring with `pass` for its body, at the left margin.

    In a stub file, and for a method of a protocol, the body is `...`. Comments of the body, and those between
    header and docstring, are removed. Raises `CodeError` for a class.
    """
    if definition.kind is DefinitionKind.CLASS:
        raise CodeError(
            f"{definition.ref} is a class; a body can be removed from a function or method only.",
            hint="Name one of its methods.",
        )
    document = index.document
    _, header_end = definition.header_range
    indent = _body_indentation(index, definition, header_end)
    pieces = [document.text[definition.start : header_end]]
    if definition.layout.docstring is not None:
        line, column, end_line, end_column = definition.layout.docstring
        pieces.append(
            indent + document.text[document.offset(line, column) : document.offset(end_line, end_column)]
        )
    pieces.append(indent + ("..." if _is_stub(index, definition) else "pass"))
    stub = SourceText.of(index.path, document.newline.join(pieces))
    return "\n".join(line.shown for line in code_lines(stub, 1, len(stub.line_starts)))


def remove_methods(index: FileIndex, definition: Definition) -> str:
    """Return a class at the left margin, with the body of each method removed as by `remove_body`.

    Everything else in the body stays, because other modules use it when they are imported, and without it
    nothing could be tested. Raises `CodeError` if the class has no method, or a method can't be replaced.
    """
    inside = f"{definition.qualname}."
    methods = [
        item.ref
        for item in index.definitions
        if item.kind is not DefinitionKind.CLASS
        and item.qualname.startswith(inside)
        and LOCALS not in item.qualname.removeprefix(inside)
    ]
    if not methods:
        raise CodeError(f"{definition.ref} has no method whose body can be removed.")
    for ref in methods:
        method = index.get(ref.qualname)
        index = index_source(index.path, replace_definition(index, method, remove_body(index, method)))
    return index.get(definition.qualname).dedented


def with_body_of(index: FileIndex, definition: Definition, code: str) -> str:
    """Return a function's decorators, signature and docstring, with the body of `code`, at the left margin.

    `code` is one definition with the same name. Raises `CodeError` for any other code, for a class, and if
    the body is empty or begins on the last line of the header or docstring.
    """
    new = read_snippet(code)
    _check_name(definition, new.definition)
    head, _, stub = remove_body(index, definition).rpartition("\n")
    return "\n".join([head, *_body_at(leading_space(stub), new)])


def _body_at(unit: str, new: Snippet) -> list[str]:
    """Return the lines of a definition's body below its docstring, indented by `unit`."""
    found, node = new.definition, new.node
    statements = node.body[1:] if found.layout.docstring else node.body
    if not statements:
        raise CodeError("The definition has no body.", hint="Send the whole definition.")
    lines = in_unit(code_lines(found.document, found.start_line, found.end_line), unit)
    _, header_end = found.header_range
    above = found.layout.docstring[2] if found.layout.docstring else _line_of(found.document, header_end)
    if statements[0].lineno == above:
        raise CodeError("The body is on the same line as the code above it.", hint="Put it below.")
    body = lines[above + 1 - found.start_line :]
    margin = leading_space(body[statements[0].lineno - above - 1].shown)
    return [_reindented(line, margin, unit) for line in body]


def _reindented(line: CodeLine, margin: str, unit: str) -> str:
    """Return a line of a body at `unit` instead of `margin`; lines inside strings stay as they are."""
    if line.in_string:
        return line.raw
    if line.shown.startswith(margin):
        return unit + line.shown.removeprefix(margin)
    code = line.shown.lstrip()  # a comment may be further to the left
    return unit + code if code else ""


def _line_of(document: SourceText, offset: int) -> int:
    """Return the line that contains an offset, counted from 1."""
    return bisect_right(document.line_starts, offset)


def _body_indentation(index: FileIndex, definition: Definition, header_end: int) -> str:
    document, line = index.document, definition.layout.body_line
    if document.line_starts[line - 1] >= header_end:
        return leading_space(document.line(line))
    return definition.indentation + file_unit(index.definitions)


def _is_stub(index: FileIndex, definition: Definition) -> bool:
    of_protocol = definition.parent is not None and index.get(definition.parent).is_protocol
    return of_protocol or index.path.endswith(".pyi")
