"""One function, method or class of a file: what it is and where its parts stand."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from enum import StrEnum

from gistpoint.core.code.document import SourceText
from gistpoint.core.code.lines import code_lines
from gistpoint.core.code.names import FunctionRef, split_number

_TO_COLON = re.compile(r"(?:[^:#]|#[^\r\n]*)*+:")


class Kind(StrEnum):
    """What a definition is. A method stands directly in a class; a function anywhere else."""

    FUNCTION = "function"
    ASYNC_FUNCTION = "async function"
    METHOD = "method"
    ASYNC_METHOD = "async method"
    CLASS = "class"

    @property
    def sort(self) -> str:
        """`class` or `function`: what a replacement has to share."""
        return "class" if self is Kind.CLASS else "function"


@dataclass(frozen=True, slots=True)
class Layout:
    """Places as the syntax tree counts them: lines from 1, columns in bytes of UTF-8 from 0."""

    start: tuple[int, int]
    """The `@` of the first decorator, else the keyword."""
    keyword: tuple[int, int]
    """`def`, `async` or `class`."""
    header: tuple[int, int]
    """A place in the header behind its last expression, before its colon."""
    body_line: int
    decorators: tuple[tuple[int, int, int, int], ...] = ()
    docstring: tuple[int, int, int, int] | None = None
    """The statement that is the docstring, parentheses included."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, method or class. Lines are counted from 1, both ends included.

    It reaches from its first decorator to the end of its last line, with the comments below that line that stand
    deeper than its header: they belong to its body.
    """

    ref: FunctionRef
    kind: Kind
    start_line: int
    end_line: int
    parent: str | None
    """The qualname of the definition around it."""
    is_conditional: bool
    """Whether it stands in an `if`, `try`, `with`, `match` or loop of what is around it."""
    duplicates: int
    """How many definitions of the file share its qualified name, itself included."""
    is_protocol: bool
    """Whether it is a class that names `Protocol` among its bases."""
    docstring_text: str | None = field(repr=False)
    """The docstring as Python evaluates it."""
    layout: Layout = field(repr=False)
    document: SourceText = field(repr=False, compare=False)

    @property
    def qualname(self) -> str:
        """The qualified name, numbered where it is repeated."""
        return self.ref.qualname

    @property
    def name(self) -> str:
        """The bare name."""
        return self.ref.name

    @property
    def label(self) -> str:
        """The qualname, with `#1` on the first of several: what a person can type to mean this one alone."""
        repeated = self.duplicates > 1 and split_number(self.qualname)[1] is None
        return f"{self.qualname}#1" if repeated else self.qualname

    @property
    def def_line(self) -> int:
        """The line of `def`, `async` or `class`."""
        return self.layout.keyword[0]

    @property
    def start(self) -> int:
        """Offset in the text of the start of its first line."""
        return self.document.line_starts[self.start_line - 1]

    @property
    def end(self) -> int:
        """Offset in the text of the end of its last line, before the line end."""
        return self.document.line_range(self.end_line)[1]

    @property
    def start_byte(self) -> int:
        """Offset of `start` in the bytes of the file."""
        return self.document.byte_offset(self.start)

    @property
    def end_byte(self) -> int:
        """Offset of `end` in the bytes of the file."""
        return self.document.byte_offset(self.end)

    @property
    def source(self) -> str:
        """Its lines exactly as in the file, decorators and indentation included, without the last line end."""
        return self.document.text[self.start : self.end]

    @property
    def dedented(self) -> str:
        """Its source as it is shown: moved to the left margin, strings untouched, lines ended by a line feed."""
        return "\n".join(line.shown for line in code_lines(self.document, self.start_line, self.end_line))

    @property
    def indentation(self) -> str:
        """The white space that its header is indented by, behind any form feed."""
        document, (line, column) = self.document, self.layout.start
        return document.text[document.line_starts[line - 1] : document.offset(line, column)].rpartition("\f")[2]

    @property
    def decorators(self) -> tuple[str, ...]:
        """The source texts of the decorators' expressions, without `@`."""
        document = self.document
        return tuple(
            document.text[document.offset(line, column) : document.offset(end_line, end_column)]
            for line, column, end_line, end_column in self.layout.decorators
        )

    @property
    def docstring(self) -> str | None:
        """The docstring, its indentation cleaned as `inspect.cleandoc` does; None where there is none."""
        return None if self.docstring_text is None else inspect.cleandoc(self.docstring_text)

    @property
    def header_range(self) -> tuple[int, int]:
        """Offsets of the header: from `def`, `async` or `class` to behind its colon."""
        document = self.document
        match = _TO_COLON.match(document.text, document.offset(*self.layout.header))
        start = document.offset(*self.layout.keyword)
        return start, match.end() if match else start

    @property
    def signature(self) -> str:
        """The source text of the header, from `def`, `async` or `class` to its colon, which is left out."""
        start, end = self.header_range
        return self.document.text[start : end - 1]
