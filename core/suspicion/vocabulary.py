"""The names that a library uses anywhere outside of its tests: a submission may use them as well."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from functools import cached_property

from gistpoint.core.code.parsing import parsed_or_empty
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.suspicion.deciding import compared_by
from gistpoint.core.suspicion.meaning import Meaning, canonical, imported_path
from gistpoint.core.suspicion.names import STANDARD
from gistpoint.core.trees import SourceTree


class _FileWords:
    """The names and the dotted paths that one file uses."""

    def __init__(self, source: bytes) -> None:
        tree = parsed_or_empty(source)
        meaning = Meaning(tree)
        self.comparisons = compared_by(tree)
        self.names: set[str] = set()
        self.paths: set[str] = set()
        for node, _ in meaning.nodes:
            self.names.update(_used_name(node, meaning))
            self.paths.update(_used(node, meaning))


class LibraryWords:
    """The names that a tree uses outside of its tests; only files with a requested word are parsed."""

    def __init__(self, tree: SourceTree, test_files: Collection[str]) -> None:
        self._tree = tree
        self._tests = frozenset(test_files)
        self._read: dict[str, _FileWords] = {}
        self._names: dict[str, bool] = {}
        self._paths: dict[str, bool] = {}
        self._compared: dict[str, bool] = {}

    @cached_property
    def _sources(self) -> dict[str, bytes]:
        paths = (path for path in self._tree.files(".py") if not is_protected(path, self._tests))
        return {path: self._tree.read(path) for path in paths}

    def names(self, name: str) -> bool:
        """Return whether the library has an attribute, definition, variable or keyword with this name."""
        if name not in self._names:
            self._names[name] = self._any_file(name, lambda words: name in words.names)
        return self._names[name]

    def uses(self, path: str) -> bool:
        """Return whether the library uses or imports exactly this path: `logging.getLogger`, `numpy`."""
        if path not in self._paths:
            word = path.rpartition(".")[2]
            self._paths[path] = self._any_file(word, lambda words: path in words.paths)
        return self._paths[path]

    def compares_by(self, name: str) -> bool:
        """Return whether comparisons of the library's classes use a member with this name.

        A name that the library sets as an attribute holds data, which any code may set.
        """
        if name not in self._compared:
            is_data = self._any_file(name, lambda words: name in words.comparisons.stored)
            self._compared[name] = (
                not is_data
                and self._any_file(name, lambda words: name in words.comparisons.compared)
                and self._any_file(name, lambda words: name in words.comparisons.members)
            )
        return self._compared[name]

    def is_module(self, path: str) -> bool:
        """Return whether a path, which may be relative, names a module of the tree."""
        place = path.lstrip(".").replace(".", "/")
        if not place:
            return False
        ends = (f"/{place}.py", f"/{place}/__init__.py")
        return any(f"/{file}".endswith(ends) for file in self._tree.files(".py"))

    def _any_file(self, word: str, holds: Callable[[_FileWords], bool]) -> bool:
        """Return whether a condition holds for any file that contains the word."""
        return any(map(holds, self._files_with(word.encode("utf-8", "surrogatepass"))))

    def _files_with(self, word: bytes) -> Iterator[_FileWords]:
        """Yield the parsed names and paths of each file whose source contains a word."""
        # Files without the word are not parsed (decision 115): a library may have thousands of files, and a
        # submission uses few words.
        for path, source in self._sources.items():
            if word not in source:
                continue
            if path not in self._read:
                self._read[path] = _FileWords(source)
            yield self._read[path]


def _used_name(node: ast.AST, meaning: Meaning) -> Iterator[str]:
    """Yield the name that a node uses as an attribute or a keyword, defines or assigns to.

    Attributes of modules of the standard library are left out.
    """
    match node:
        case ast.Attribute(attr=name):
            modules = {path.partition(".")[0] for path in meaning.paths(node)}
            if modules.isdisjoint(STANDARD):
                yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()) | ast.keyword(arg=str(name)):
            yield name


def _used(node: ast.AST, meaning: Meaning) -> Iterator[str]:
    """Yield the paths that a node uses or imports, with the packages of an imported module."""
    match node:
        case ast.Attribute() | ast.Name():
            yield from meaning.paths(node)
        case ast.Import(names=names):
            for item in names:
                parts = item.name.split(".")
                yield from (canonical(".".join(parts[:end])) for end in range(1, len(parts) + 1))
        case ast.ImportFrom(names=names):
            base = "" if node.level else node.module or ""
            yield from (base.partition(".")[0], base)
            yield from (canonical(imported_path(node, item.name)) for item in names)
