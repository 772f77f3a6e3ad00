"""The names that a function can see: of its module, of its class and the bases, of the functions around it."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gistpoint.core.code.definitions import Definition
from gistpoint.core.code.errors import CodeError
from gistpoint.core.code.index import FileIndex, index_source
from gistpoint.core.code.names import LOCALS
from gistpoint.core.code.syntax import DefinitionNode, parse_module, walk_definitions
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.trees import SourceTree

BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_"))
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Arity:
    """How many positional arguments a function takes, `self` left out; `most` is None behind `*args`."""

    least: int
    most: int | None
    keywords: frozenset[str]

    def takes(self, positional: int, keywords: Iterable[str]) -> bool:
        """Whether a call with so many positional arguments and these keywords fits."""
        fits = self.least <= positional + len(list(keywords)) and (self.most is None or positional <= self.most)
        return fits and set(keywords) <= self.keywords


@dataclass(frozen=True, slots=True)
class ClassNames:
    """What instances of a class have: methods that are called, and attributes that are read."""

    methods: Mapping[str, Arity]
    attributes: frozenset[str]
    bases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileNames:
    """The names of one module, and how often each identifier stands in its text."""

    names: frozenset[str]
    functions: Mapping[str, Arity]
    classes: Mapping[str, ClassNames]
    locals: Mapping[str, frozenset[str]]
    """The names that each function binds, by its qualified name."""
    uses: Mapping[str, int] = field(repr=False)
    longest: int = 79
    """The length of its longest line."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What one function can name without being told from its neighbours; empty where its file is not known."""

    known: frozenset[str] = BUILTINS
    functions: Mapping[str, Arity] = field(default_factory=dict)
    own: ClassNames = field(default_factory=lambda: ClassNames({}, frozenset()))
    """The class of a method, its bases in the library included."""
    uses: Mapping[str, int] = field(default_factory=dict, repr=False)
    longest: int = 0
    """The longest line that does not stand out in its file; 0 where that is not known."""

    def defines(self, name: str) -> bool:
        """Whether a name is defined or imported by the file, or belongs to the class."""
        known = name in self.known or name in self.own.methods or name in self.own.attributes
        return known and name not in BUILTINS


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names of a library, by the paths of its files."""

    files: Mapping[str, FileNames]

    def scope(self, definition: Definition) -> Scope:
        """Return what a function can name."""
        names = self.files.get(definition.ref.path)
        if names is None:
            return Scope()
        around: set[str] = set()
        parts = definition.ref.plain.split(f".{LOCALS}.")
        for end in range(1, len(parts)):
            around |= names.locals.get(f".{LOCALS}.".join(parts[:end]), frozenset())
        own = ClassNames({}, frozenset())
        if definition.parent is not None:
            own = self._with_bases(names, definition.parent)
        known = BUILTINS | names.names | around
        return Scope(known, names.functions, own, names.uses, names.longest)

    def _with_bases(self, names: FileNames, qualname: str) -> ClassNames:
        methods: dict[str, Arity] = {}
        attributes: set[str] = set()
        waiting, seen = [(names, qualname)], set[tuple[int, str]]()
        while waiting:
            file, name = waiting.pop(0)
            found = file.classes.get(name)
            if found is None or (id(file), name) in seen:
                continue
            seen.add((id(file), name))
            methods = {**found.methods, **methods}
            attributes |= found.attributes
            for base in found.bases:
                home = [file] if base in file.classes else [f for f in self.files.values() if base in f.classes]
                if len(home) == 1:
                    waiting.append((home[0], base))
        return ClassNames(methods, frozenset(attributes))


def vocabulary_of(indexes: Iterable[FileIndex]) -> Vocabulary:
    """Return the names of the files that were indexed."""
    return Vocabulary({index.path: _names_of(index) for index in indexes})


def read_vocabulary(tree: SourceTree, test_files: frozenset[str] = frozenset()) -> Vocabulary:
    """Return the names of all files of a tree that can be read and belong to no test."""
    return vocabulary_of(_indexes(tree, test_files))


def _indexes(tree: SourceTree, test_files: frozenset[str]) -> Iterator[FileIndex]:
    for path in tree.files(".py"):
        if is_protected(path, test_files):
            continue
        try:
            yield index_source(path, tree.read(path))
        except CodeError:
            continue


def _names_of(index: FileIndex) -> FileNames:
    module = parse_module(index.text, index.path)
    functions: dict[str, Arity] = {}
    classes: dict[str, ClassNames] = {}
    locals_: dict[str, frozenset[str]] = {}
    for found in walk_definitions(module):
        if isinstance(found.node, ast.ClassDef):
            classes.setdefault(found.qualname, _class_names(found.node))
            continue
        locals_.setdefault(found.qualname, frozenset(bound_names([found.node])) - {found.node.name})
        if found.parent < 0:
            functions.setdefault(found.qualname, _arity(found.node, method=False))
    return FileNames(
        frozenset(bound_names(module.body, into_functions=False)),
        functions,
        classes,
        locals_,
        Counter(_WORD.findall(index.text)),
        max((len(line) for line in index.text.splitlines()), default=0),
    )


def bound_names(body: Iterable[ast.AST], *, into_functions: bool = True) -> set[str]:
    """Return the names that are bound in some code, by whatever statement, and of functions their parameters."""
    names: set[str] = set()
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            if not into_functions:
                continue
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
        waiting.extend(ast.iter_child_nodes(node))
    return names


def _class_names(node: ast.ClassDef) -> ClassNames:
    methods: dict[str, Arity] = {}
    attributes: set[str] = set()
    for item in node.body:
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {ast.unparse(decorator) for decorator in item.decorator_list}
            if any("property" in text or text.endswith((".setter", ".deleter")) for text in decorators):
                attributes.add(item.name)
            elif not decorators:
                methods[item.name] = _arity(item, method=True)
            attributes |= set(_stored_on_self(item))
        elif isinstance(item, ast.Assign | ast.AnnAssign):
            attributes |= bound_names([item])
    bases = tuple(base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases)
    return ClassNames(methods, frozenset(attributes - set(methods)), bases)


def _stored_on_self(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    own = next((item.arg for item in [*node.args.posonlyargs, *node.args.args]), "")
    for item in ast.walk(node):
        if isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store) and ast.unparse(item.value) == own:
            yield item.attr


def _arity(node: DefinitionNode, *, method: bool) -> Arity:
    if isinstance(node, ast.ClassDef):
        return Arity(0, None, frozenset())
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    own = 1 if method and positional else 0
    most = None if given.vararg else len(positional) - own
    keywords = frozenset(item.arg for item in [*given.args[own:], *given.kwonlyargs])
    return Arity(max(len(positional) - own - len(given.defaults), 0), most, keywords)
