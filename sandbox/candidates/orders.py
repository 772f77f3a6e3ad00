"""From corrupted functions to what a warm process is told: the files as they become, and the code to swap."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gistpoint.core.code.definitions import Definition, Kind
from gistpoint.core.code.document import SourceText
from gistpoint.core.code.errors import CodeError
from gistpoint.core.code.index import FileIndex, index_source
from gistpoint.core.code.snippet import Snippet, read_snippet
from gistpoint.core.code.splice import replace_definition, spliced_text
from gistpoint.core.generation.failures import Lines
from gistpoint.core.tasks.model import Target
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class Swap:
    """A function that gets new code. A nested one gets it with the outermost function around it."""

    path: str
    line: int
    """The line of the original file on which its code starts: that of its first decorator."""
    name: str
    source: str
    """A module that defines it alone, on the lines that it has in the corrupted file."""


@dataclass(frozen=True, slots=True)
class Move:
    """The code behind a function that has got longer or shorter."""

    path: str
    below: int
    """The function's last line in the original file."""
    lines: int
    """By how many lines it is longer, less than 0 where it is shorter."""


@dataclass(frozen=True, slots=True)
class Order:
    """Corrupted functions, made out for one tree."""

    files: Mapping[str, bytes]
    swaps: tuple[Swap, ...]
    moves: tuple[Move, ...]
    lines: tuple[Lines, ...]
    """Where the corrupted functions stand in the new files."""
    unfit: str = ""
    """Why other code in the same functions is not all of the difference; empty where it is."""


Made = tuple[bytes, list[Swap], list[Move], list[Lines]]
"""What comes of the targets of one file: its new content, and their shares of an order."""


class Orders:
    """Makes orders for one tree, whose files it reads once."""

    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree
        self._indices: dict[str, FileIndex] = {}

    def make(self, targets: Iterable[Target]) -> Order:
        """Return the order for `targets`. Raises `CodeError` where one does not fit its file."""
        of_files: dict[str, list[Target]] = {}
        for target in targets:
            of_files.setdefault(target.path, []).append(target)
        files: dict[str, bytes] = {}
        swaps: list[Swap] = []
        moves: list[Move] = []
        lines: list[Lines] = []
        unfit = ""
        for path, found in of_files.items():
            index = self._index(path)
            snippets = [_snippet(index.get(target.qualname), target) for target in found]
            for target, snippet in zip(found, snippets, strict=True):
                unfit = unfit or _beyond_code(index.get(target.qualname), snippet)
            make = _one if len(found) == 1 else _several
            files[path], own_swaps, own_moves, own_lines = make(index, found, snippets)
            swaps += own_swaps
            moves += own_moves
            lines += own_lines
        return Order(files, tuple(dict.fromkeys(swaps)), tuple(dict.fromkeys(moves)), tuple(lines), unfit)

    def _index(self, path: str) -> FileIndex:
        if path not in self._indices:
            if not self._tree.is_file(path):
                raise CodeError(f"There is no file {path} in the source.")
            self._indices[path] = index_source(path, self._tree.read(path))
        return self._indices[path]


def _snippet(definition: Definition, target: Target) -> Snippet:
    snippet = read_snippet(target.corrupted)
    if (snippet.definition.name, snippet.definition.kind.sort) != (definition.name, definition.kind.sort):
        raise CodeError(f"The corrupted code of {target.name} defines {snippet.definition.name}.")
    return snippet


def _beyond_code(definition: Definition, new: Snippet) -> str:
    """Return what else than the code of a function differs: what Python evaluates when it defines the function."""
    old = read_snippet(definition.dedented).node
    if isinstance(old, ast.ClassDef) or isinstance(new.node, ast.ClassDef):
        return f"{definition.ref} is a class"
    if ast.dump(old.args) != ast.dump(new.node.args):
        return f"the parameters of {definition.ref} differ"
    decorators = new.node.decorator_list
    if decorators and [ast.dump(node) for node in decorators] != [ast.dump(node) for node in old.decorator_list]:
        return f"the decorators of {definition.ref} differ"
    return ""


def _one(index: FileIndex, targets: list[Target], snippets: list[Snippet]) -> Made:
    """Splice one function, whose file is not parsed again: that takes longer than the tests."""
    definition = index.get(targets[0].qualname)
    keep = not snippets[0].node.decorator_list or len(snippets[0].node.decorator_list) == len(definition.decorators)
    text = spliced_text(index, definition, snippets[0], keep_decorators=keep)
    document = SourceText.of(index.path, text)
    more = len(document.line_starts) - len(index.document.line_starts)
    unit = _unit(index, definition)
    source = _source(document, unit, _classes(index, unit), unit.start_line, unit.end_line + more)
    swap = Swap(index.path, unit.start_line, unit.ref.plain, source)
    lines = Lines(index.path, definition.start_line, definition.end_line + more)
    moves = [Move(index.path, unit.end_line, more)] if more else []
    return index.document.encode(text), [swap], moves, [lines]


def _several(index: FileIndex, targets: list[Target], snippets: list[Snippet]) -> Made:
    after, data = index, b""
    for target in targets:
        data = replace_definition(after, after.get(target.qualname), target.corrupted)
        after = index_source(index.path, data)
    swaps, moves, lines = [], [], []
    for target in targets:
        unit = _unit(index, index.get(target.qualname))
        there = after.get(unit.qualname)
        source = _source(after.document, there, _classes(index, unit), there.start_line, there.end_line)
        swaps.append(Swap(index.path, unit.start_line, unit.ref.plain, source))
        more = (there.end_line - there.start_line) - (unit.end_line - unit.start_line)
        moves += [Move(index.path, unit.end_line, more)] if more else []
        own = after.get(target.qualname)
        lines.append(Lines(index.path, own.start_line, own.end_line))
    return data, swaps, moves, lines


def _around(index: FileIndex, definition: Definition) -> list[Definition]:
    """Return what is around a definition, outermost first."""
    around: list[Definition] = []
    while definition.parent is not None:
        definition = index.get(definition.parent)
        around.insert(0, definition)
    return around


def _unit(index: FileIndex, definition: Definition) -> Definition:
    """Return the outermost function around a definition, or itself: what can be compiled apart from all else."""
    return next((d for d in [*_around(index, definition), definition] if d.kind is not Kind.CLASS), definition)


def _classes(index: FileIndex, unit: Definition) -> list[str]:
    return [definition.name for definition in _around(index, unit)]


def _source(document: SourceText, unit: Definition, classes: list[str], first: int, last: int) -> str:
    """Return a module with the lines of a function where they stand in the file, and headers of its classes above."""
    indentation = unit.indentation
    headers = [f"{indentation[:depth]}class {name}:\n" for depth, name in enumerate(classes)]
    if indentation and not headers:
        headers = ["if 1:\n"]
    body = document.text[document.line_starts[first - 1] : document.line_range(last)[1]]
    return "\n" * (first - 1 - len(headers)) + "".join(headers) + body + "\n"
