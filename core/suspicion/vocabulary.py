"""The names that a library uses anywhere outside of its tests: a submission may use them as well."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import cached_property

from gistpoint.core.code.parsing import parsed_or_empty
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.suspicion.deciding import compared_by
from gistpoint.core.suspicion.meaning import Meaning, canonical, imported_path
from gistpoint.core.suspicion.names import STANDARD, leading_paths
from gistpoint.core.trees import SourceTree


def _words_of(source: bytes) -> dict[str, set[str]]:
    """Return the words of a file by their kind: `names` and `paths` in use, and those of `ComparedNames`."""
    tree = parsed_or_empty(source)
    meaning = Meaning(tree)
    names: set[str] = set()
    paths: set[str] = set()
    for node, _ in meaning.nodes:
        names.update(_used_name(node, meaning))
        paths.update(_used(node, meaning))
    return {"names": names, "paths": paths, **compared_by(tree)._asdict()}


class LibraryWords:
    """The names that a tree uses outside of its tests; only files with a requested word are parsed."""

    def __init__(self, tree: SourceTree, test_files: Collection[str]) -> None:
        self._tree = tree
        self._tests = frozenset(test_files)
        self._read: dict[str, dict[str, set[str]]] = {}
        self._answers: dict[tuple[str, str], bool] = {}
        """Whether any file has a word of a kind, by the kind and the word."""

    @cached_property
    def _sources(self) -> dict[str, bytes]:
        paths = (path for path in self._tree.files(".py") if not is_protected(path, self._tests))
        return {path: self._tree.read(path) for path in paths}

    def names(self, name: str) -> bool:
        """Return whether the library has an attribute, definition, variable or keyword with this name."""
        return self._any_file("names", name)

    def uses(self, path: str) -> bool:
        """Return whether the library uses or imports exactly this path: `logging.getLogger`, `numpy`."""
        return self._any_file("paths", path)

    def compares_by(self, name: str) -> bool:
        """Return whether comparisons of the library's classes use a member with this name.

        A name that the library sets as an attribute holds data, which any code may set.
        """
        is_data = self._any_file("stored", name)
        is_compared_member = self._any_file("compared", name) and self._any_file("members", name)
        return is_compared_member and not is_data

    def is_module(self, path: str) -> bool:
        """Return whether a path, which may be relative, names a module of the tree."""
        place = path.lstrip(".").replace(".", "/")
        if not place:
            return False
        ends = (f"/{place}.py", f"/{place}/__init__.py")
        return any(f"/{file}".endswith(ends) for file in self._tree.files(".py"))

    def _any_file(self, kind: str, word: str) -> bool:
        """Return whether a file has a name or a dotted path among its words of a kind."""
        if (kind, word) not in self._answers:
            last_part = word.rpartition(".")[2].encode("utf-8", "surrogatepass")
            self._answers[kind, word] = any(word in words[kind] for words in self._files_with(last_part))
        return self._answers[kind, word]

    def _files_with(self, word: bytes) -> Iterator[dict[str, set[str]]]:
        """Yield the words, by kind, of each file whose source contains a word."""
        # Files without the word are not parsed (decision 115): a library may have thousands of files, and a
        # submission uses few words.
        for path, source in self._sources.items():
            if word not in source:
                continue
            if path not in self._read:
                self._read[path] = _words_of(source)
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
            yield from (canonical(path) for item in names for path in leading_paths(item.name))
        case ast.ImportFrom(names=names):
            base = "" if node.level else node.module or ""
            yield from (base.partition(".")[0], base)
            yield from (canonical(imported_path(node, item.name)) for item in names)
