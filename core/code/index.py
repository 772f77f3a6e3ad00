"""The functions, methods and classes of a Python file by qualified name, with their positions."""

from __future__ import annotations

import ast
import difflib
import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from gistpoint.core.code.names import LOCALS, FunctionRef, normalised, numbered, split_number
from gistpoint.core.code.parsing import (
    CodeError,
    DefinitionNode,
    FoundDefinition,
    NotDefinedError,
    at_line,
    parse_module,
    walk_definitions,
)
from gistpoint.core.code.source_text import SourceText, code_lines, leading_space, read_document

# The group for comments is atomic, written in a way that also works before Python 3.11.
_TO_COLON = re.compile(r"(?:[^:#]|(?=(#[^\r\n]*))\1)*:")


class DefinitionKind(StrEnum):
    """The kind of a definition. A method is directly in a class; a function is anywhere else."""

    FUNCTION = "function"
    ASYNC_FUNCTION = "async function"
    METHOD = "method"
    ASYNC_METHOD = "async method"
    CLASS = "class"

    @property
    def sort(self) -> str:
        """`class` or `function`: a replacement must be of the same sort."""
        return "class" if self is DefinitionKind.CLASS else "function"


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of a definition's parts: lines counted from 1, columns in UTF-8 bytes from 0."""

    start: tuple[int, int]
    """The `@` of the first decorator, or the keyword."""
    keyword: tuple[int, int]
    """`def`, `async` or `class`."""
    header: tuple[int, int]
    """A position in the header after its last expression, before its colon."""
    body_line: int
    decorators: tuple[tuple[int, int, int, int], ...] = ()
    """The range of each decorator's expression: the line and column of the start, then of the end."""
    docstring: tuple[int, int, int, int] | None = None
    """The range of the statement that is the docstring, including parentheses; None without a docstring."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, method or class. Lines are counted from 1, both ends inclusive.

    It extends from its first decorator to the end of its last line. Comments below that line belong to its
    body if they are indented more than its header.
    """

    ref: FunctionRef
    kind: DefinitionKind
    start_line: int
    end_line: int
    parent: str | None
    """The qualname of the enclosing definition; None at the top level."""
    is_conditional: bool
    """Whether it is inside an `if`, `try`, `with`, `match` or loop of the enclosing code."""
    duplicates: int
    """The number of definitions in the file with its qualified name, including itself."""
    is_protocol: bool
    """Whether it is a class with `Protocol` among its bases."""
    docstring_text: str | None = field(repr=False)
    """The evaluated docstring; None if there is none."""
    layout: Layout = field(repr=False)
    document: SourceText = field(repr=False, compare=False)

    @property
    def qualname(self) -> str:
        """The qualified name, numbered if it is repeated."""
        return self.ref.qualname

    @property
    def name(self) -> str:
        """The bare name."""
        return self.ref.name

    @property
    def label(self) -> str:
        """The qualname, with `#1` on the first of several, so that it names exactly this definition."""
        repeated = self.duplicates > 1 and split_number(self.qualname)[1] is None
        return f"{self.qualname}#1" if repeated else self.qualname

    @property
    def def_line(self) -> int:
        """The line of `def`, `async` or `class`."""
        return self.layout.keyword[0]

    @property
    def start(self) -> int:
        """The offset in the text of the start of its first line."""
        return self.document.line_starts[self.start_line - 1]

    @property
    def end(self) -> int:
        """The offset in the text of the end of its last line, before the line ending."""
        return self.document.line_range(self.end_line)[1]

    @property
    def start_byte(self) -> int:
        """The offset of `start` in the bytes of the file."""
        return self.document.byte_offset(self.start)

    @property
    def end_byte(self) -> int:
        """The offset of `end` in the bytes of the file."""
        return self.document.byte_offset(self.end)

    @property
    def source(self) -> str:
        """The exact lines in the file, with decorators and indentation, without the last line ending."""
        return self.document.text[self.start : self.end]

    @property
    def dedented(self) -> str:
        """The source for display: at the left margin, strings unchanged, with line feeds."""
        return "\n".join(line.shown for line in code_lines(self.document, self.start_line, self.end_line))

    @property
    def indentation(self) -> str:
        """The indentation of its header, after any form feed."""
        document, (line, column) = self.document, self.layout.start
        return document.text[document.line_starts[line - 1] : document.offset(line, column)].rpartition("\f")[
            2
        ]

    @property
    def decorators(self) -> tuple[str, ...]:
        """The source code of the decorators' expressions, without `@`."""
        document = self.document
        return tuple(
            document.text[document.offset(line, column) : document.offset(end_line, end_column)]
            for line, column, end_line, end_column in self.layout.decorators
        )

    @property
    def docstring(self) -> str | None:
        """The docstring, cleaned as by `inspect.cleandoc`; None if there is none."""
        return None if self.docstring_text is None else inspect.cleandoc(self.docstring_text)

    @property
    def header_range(self) -> tuple[int, int]:
        """The offsets of the header: from `def`, `async` or `class` to after its colon."""
        document = self.document
        match = _TO_COLON.match(document.text, document.offset(*self.layout.header))
        start = document.offset(*self.layout.keyword)
        return start, match.end() if match else start

    @property
    def signature(self) -> str:
        """The source text of the header, from `def`, `async` or `class` up to, but without, its colon."""
        start, end = self.header_range
        return self.document.text[start : end - 1]


_SPACE = " \t\f"


def layout_of(document: SourceText, node: DefinitionNode, docstring: ast.stmt | None) -> Layout:
    """Return the positions of a definition's parts; `docstring` is its docstring's statement, if any."""
    keyword = (node.lineno, node.col_offset)
    decorators = tuple(_range(item) for item in node.decorator_list)
    return Layout(
        start=_first_at(document, node.decorator_list[0]) if decorators else keyword,
        keyword=keyword,
        header=max(_header_ends(node), default=keyword),
        body_line=node.body[0].lineno,
        decorators=decorators,
        docstring=None if docstring is None else _range(docstring),
    )


def end_line(document: SourceText, node: DefinitionNode) -> int:
    """Return the last line of a definition, with continued lines and the comments of its body."""
    last = node.end_lineno or node.lineno
    rest = document.text[document.offset(last, node.end_col_offset or 0) : document.line_range(last)[1]]
    while rest and rest.lstrip(" \t\f;").startswith("\\") and last < len(document.line_starts):
        last += 1
        rest = document.line(last)
    # Comments below the last line belong to the body if they are indented more than the header; others belong
    # to the code that follows.
    margin = _column(document.line(node.lineno))
    for number in range(last + 1, len(document.line_starts) + 1):
        line = document.line(number)
        text = line.lstrip(_SPACE)
        if not text:
            continue
        is_of_body = text[0] == "#" and _column(line) > margin
        if not is_of_body:
            break
        last = number
    return last


def is_protocol(node: DefinitionNode) -> bool:
    """Return whether a class has `Protocol` among its bases, subscripted or not."""
    return isinstance(node, ast.ClassDef) and any(map(_names_protocol, node.bases))


def _names_protocol(base: ast.expr) -> bool:
    match base.value if isinstance(base, ast.Subscript) else base:
        case ast.Name(id="Protocol") | ast.Attribute(attr="Protocol"):
            return True
    return False


def _column(line: str) -> int:
    return len(leading_space(line).expandtabs(8))


def _range(node: ast.expr | ast.stmt) -> tuple[int, int, int, int]:
    return (
        node.lineno,
        node.col_offset,
        node.end_lineno or node.lineno,
        node.end_col_offset or node.col_offset,
    )


def _header_ends(node: DefinitionNode) -> Iterator[tuple[int, int]]:
    """Yield the ends of the expressions of a header."""
    parts: list[ast.AST | None] = list(getattr(node, "type_params", ()))
    if isinstance(node, ast.ClassDef):
        parts += [*node.bases, *node.keywords]
    else:
        parameters = node.args
        parts += [
            *parameters.posonlyargs,
            *parameters.args,
            parameters.vararg,
            *parameters.kwonlyargs,
            parameters.kwarg,
        ]
        parts += [*parameters.defaults, *parameters.kw_defaults, node.returns]
    for part in filter(None, parts):
        yield part.end_lineno, part.end_col_offset  # type: ignore[attr-defined]  # every part has a position


def _first_at(document: SourceText, decorator: ast.expr) -> tuple[int, int]:
    """Return the position of a decorator's `@`."""
    line = at_line(decorator, document.line)
    return line, document.line(line).index("@")


_MOST_CANDIDATES = 20


@dataclass(frozen=True, slots=True)
class FileIndex:
    """A Python file and its definitions, in source order."""

    document: SourceText
    definitions: tuple[Definition, ...]
    by_qualname: Mapping[str, Definition] = field(repr=False, compare=False)

    @property
    def path(self) -> str:
        """The file's path from the root of the tree."""
        return self.document.path

    @property
    def text(self) -> str:
        """The decoded file, without a byte order mark, with its line endings unchanged."""
        return self.document.text

    @property
    def encoding(self) -> str:
        """The codec of the file (PEP 263); `utf-8` with a byte order mark, or by default."""
        return self.document.encoding

    @property
    def newline(self) -> str:
        """The line ending that most lines of the file use."""
        return self.document.newline

    def get(self, qualname: str) -> Definition:
        """Return the definition with exactly this qualname; without a number, return the first of several.

        This is for names from a `FunctionRef`; for names typed by a person or a model use `find`. Raises
        `NotDefinedError` if the file has no such definition.
        """
        plain, number = split_number(qualname)
        found = self.by_qualname.get(numbered(plain, number or 1))
        if found is None:
            raise self._unknown(qualname)
        return found

    def find(self, name: str | FunctionRef) -> Definition:
        """Return the one definition that `name` refers to.

        A string is a qualified name, or its last parts, with or without `<locals>`; `#1` after it selects the
        first of several. A `FunctionRef` is exact. Raises `NotDefinedError` if there is no such definition,
        and `CodeError` with the candidates if there are several.
        """
        # A reference is exact; a typed name may be the end of a qualified name.
        if isinstance(name, FunctionRef):
            return self.get(name.qualname)
        asked = name.strip().removeprefix(f"{self.path}::")
        plain, number = split_number(asked)
        if number is not None and numbered(plain, number) in self.by_qualname:
            return self.by_qualname[numbered(plain, number)]
        found = [item for item in self.definitions if item.ref.plain == plain]
        found = found or [item for item in self.definitions if _answers(item.ref.plain, plain)]
        if number is not None:
            found = [item for item in found if split_number(item.label)[1] == number]
        if len(found) == 1:
            return found[0]
        if not found:
            raise self._unknown(asked)
        raise CodeError(
            f"{asked} names {len(found)} definitions in {self.path}: {_listed(found)}.",
            hint="Name one of them in full.",
        )

    def _unknown(self, name: str) -> NotDefinedError:
        if not self.definitions:
            return NotDefinedError(f"{self.path} defines no function or class, so no {name!r} either.")
        bare = normalised(name).rpartition(".")[2]
        close = set(difflib.get_close_matches(bare, {item.name for item in self.definitions}, n=5))
        near = [item for item in self.definitions if item.name in close]
        hint = f"Did you mean {_listed(near)}?" if near else "list_file_functions shows what it defines."
        return NotDefinedError(f"{self.path} defines no {name!r}.", hint=hint)


def index_source(path: str, source: bytes) -> FileIndex:
    """Return the index of the Python file at `path` with the bytes `source`.

    Raises `CodeError`, with the line, if it can't be decoded or parsed.
    """
    document = read_document(path, source)
    return index_module(document, parse_module(document.text, path))[0]


def index_module(document: SourceText, module: ast.Module) -> tuple[FileIndex, list[DefinitionNode]]:
    """Return the index of a parsed document, and the node of each definition in the same order."""
    found = list(walk_definitions(module))
    totals = Counter(item.qualname for item in found)
    seen: Counter[str] = Counter()
    names: list[str] = []
    for item in found:
        seen[item.qualname] += 1
        names.append(numbered(item.qualname, seen[item.qualname]))
    definitions = tuple(
        _definition(
            document, item, name, names[item.parent] if item.parent >= 0 else None, totals[item.qualname]
        )
        for item, name in zip(found, names, strict=True)
    )
    index = FileIndex(document, definitions, {item.ref.qualname: item for item in definitions})
    return index, [item.node for item in found]


def _definition(
    document: SourceText, found: FoundDefinition, name: str, parent: str | None, total: int
) -> Definition:
    node = found.node
    first, docstring = node.body[0], None
    match first:
        case ast.Expr(value=ast.Constant(value=str(text))):
            docstring = text
    layout = layout_of(document, node, None if docstring is None else first)
    return Definition(
        ref=FunctionRef(document.path, name),
        kind=_kind(found),
        start_line=layout.start[0],
        end_line=end_line(document, node),
        parent=parent,
        is_conditional=found.conditional,
        duplicates=total,
        is_protocol=is_protocol(node),
        docstring_text=docstring,
        layout=layout,
        document=document,
    )


def _kind(found: FoundDefinition) -> DefinitionKind:
    return _KINDS[type(found.node), found.in_class]


_KINDS: Mapping[tuple[type[DefinitionNode], bool], DefinitionKind] = {
    (ast.ClassDef, False): DefinitionKind.CLASS,
    (ast.ClassDef, True): DefinitionKind.CLASS,
    (ast.FunctionDef, False): DefinitionKind.FUNCTION,
    (ast.FunctionDef, True): DefinitionKind.METHOD,
    (ast.AsyncFunctionDef, False): DefinitionKind.ASYNC_FUNCTION,
    (ast.AsyncFunctionDef, True): DefinitionKind.ASYNC_METHOD,
}
"""The kind of a definition by its node, and by whether it is directly in a class."""


def _answers(plain: str, asked: str) -> bool:
    names = plain, plain.replace(f"{LOCALS}.", "")
    return bool(asked) and any(f".{name}".endswith(f".{asked}") for name in names)


def _listed(found: Sequence[Definition]) -> str:
    texts = [f"{item.label} (line {item.def_line})" for item in found[:_MOST_CANDIDATES]]
    more = len(found) - _MOST_CANDIDATES
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")
