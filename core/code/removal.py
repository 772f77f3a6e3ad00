"""The stub of a function for remove mode: what its callers see, and nothing of what it did."""

from __future__ import annotations

from gistpoint.core.code.definitions import Definition, Kind
from gistpoint.core.code.document import SourceText
from gistpoint.core.code.errors import CodeError
from gistpoint.core.code.index import FileIndex
from gistpoint.core.code.lines import code_lines, leading_space
from gistpoint.core.code.reindent import file_unit


def remove_body(index: FileIndex, definition: Definition) -> str:
    """Return a function's decorators, signature and docstring with `pass` for its body, at the left margin.

    In a stub file, and for a method of a protocol, the body is `...`. Comments of the body, and those between header
    and docstring, go with it. Raises `CodeError` for a class.
    """
    if definition.kind is Kind.CLASS:
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
        pieces.append(indent + document.text[document.offset(line, column) : document.offset(end_line, end_column)])
    pieces.append(indent + ("..." if _is_stub(index, definition) else "pass"))
    stub = SourceText.of(index.path, document.newline.join(pieces))
    return "\n".join(line.shown for line in code_lines(stub, 1, len(stub.line_starts)))


def _body_indentation(index: FileIndex, definition: Definition, header_end: int) -> str:
    document, line = index.document, definition.layout.body_line
    if document.line_starts[line - 1] >= header_end:
        return leading_space(document.line(line))
    return definition.indentation + file_unit(index.definitions)


def _is_stub(index: FileIndex, definition: Definition) -> bool:
    if index.path.endswith(".pyi"):
        return True
    return definition.parent is not None and index.get(definition.parent).is_protocol
