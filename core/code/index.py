"""The index of a Python file: its functions, methods and classes by qualified name."""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gistpoint.core.code.definitions import Definition, Kind
from gistpoint.core.code.document import SourceText, read_document
from gistpoint.core.code.errors import CodeError, NotDefinedError
from gistpoint.core.code.layout import end_line, is_protocol, layout_of
from gistpoint.core.code.names import LOCALS, FunctionRef, normalised, numbered, split_number
from gistpoint.core.code.syntax import DefinitionNode, Found, parse_module, walk_definitions

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
        """The decoded file, without a byte order mark, line ends as they are."""
        return self.document.text

    @property
    def encoding(self) -> str:
        """The codec of the file (PEP 263); `utf-8` where a byte order mark or nothing says so."""
        return self.document.encoding

    @property
    def newline(self) -> str:
        """The line end that most lines of the file have."""
        return self.document.newline

    def get(self, qualname: str) -> Definition:
        """Return the definition whose qualname is exactly this one, the first of several where it has no number.

        For names that come from a `FunctionRef`; what a person or a model writes goes to `find`.
        """
        plain, number = split_number(qualname)
        found = self.by_qualname.get(numbered(plain, number or 1))
        if found is None:
            raise self._unknown(qualname)
        return found

    def find(self, name: str | FunctionRef) -> Definition:
        """Return the one definition that `name` means.

        A string is a qualified name, or its last parts, `<locals>` left out or not; where several definitions answer
        to it, `CodeError` lists them. `#1` behind a name means the first. A `FunctionRef` means exactly one.
        """
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
    """Index the Python file at `path` whose bytes are `source`.

    Raises `CodeError`, saying the line, where it can't be decoded or parsed.
    """
    document = read_document(path, source)
    return index_module(document, parse_module(document.text, path))[0]


def index_module(document: SourceText, module: ast.Module) -> tuple[FileIndex, list[DefinitionNode]]:
    """Index a parsed document; beside the index, the node of each definition, in the same order."""
    found = list(walk_definitions(module))
    totals = Counter(item.qualname for item in found)
    seen: Counter[str] = Counter()
    names: list[str] = []
    for item in found:
        seen[item.qualname] += 1
        names.append(numbered(item.qualname, seen[item.qualname]))
    definitions = tuple(
        _definition(document, item, name, names[item.parent] if item.parent >= 0 else None, totals[item.qualname])
        for item, name in zip(found, names, strict=True)
    )
    index = FileIndex(document, definitions, {item.ref.qualname: item for item in definitions})
    return index, [item.node for item in found]


def _definition(document: SourceText, found: Found, name: str, parent: str | None, total: int) -> Definition:
    node = found.node
    first = node.body[0]
    docstring = None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        docstring = first.value.value
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


def _kind(found: Found) -> Kind:
    if isinstance(found.node, ast.ClassDef):
        return Kind.CLASS
    if isinstance(found.node, ast.AsyncFunctionDef):
        return Kind.ASYNC_METHOD if found.in_class else Kind.ASYNC_FUNCTION
    return Kind.METHOD if found.in_class else Kind.FUNCTION


def _answers(plain: str, asked: str) -> bool:
    return bool(asked) and any(
        name == asked or name.endswith(f".{asked}") for name in (plain, plain.replace(f"{LOCALS}.", ""))
    )


def _listed(found: Sequence[Definition]) -> str:
    texts = [f"{item.label} (line {item.def_line})" for item in found[:_MOST_CANDIDATES]]
    more = len(found) - _MOST_CANDIDATES
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")
