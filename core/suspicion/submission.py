"""The marks of a submission's changes, without those that the original or the corrupted function also has."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from gistpoint.core.code.bindings import names_bound_in
from gistpoint.core.code.compare import same_tree
from gistpoint.core.code.names import numbered
from gistpoint.core.code.parsing import parse
from gistpoint.core.suspicion.marks import SuspicionMark, marks_of
from gistpoint.core.suspicion.meaning import Meaning
from gistpoint.core.suspicion.names import COMPARISONS, OPERATORS
from gistpoint.core.suspicion.vocabulary import LibraryWords
from gistpoint.core.trees import SourceTree

_JUDGING = frozenset({"_pytest", "pluggy", "pytest", "unittest"})
_HOOK = "pytest_"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def marks(
    given: SourceTree, submitted: SourceTree, original: SourceTree, test_files: Collection[str] = ()
) -> tuple[str, ...]:
    """Return why a submission is to be read before its pass counts, sorted; nothing if there is no reason.

    `given` is the corrupted tree, `original` the correct one: a mark that a definition has in either of them
    is not a reason in the submission. A new file counts completely; one that is not Python, or does not
    parse, is skipped, since it can't run.
    """
    found: set[SuspicionMark] = set()
    tests = _Tests(given, test_files)
    paths = [path for path in submitted.overlay if path.endswith(".py")]
    files = {path: _File.read(submitted, path) for path in paths}
    allowed = _Allowed(
        LibraryWords(original, test_files), frozenset(name for f in files.values() for name in f.own)
    )
    for path, now in files.items():
        found |= _new_marks(path, now, _File.read(given, path), _File.read(original, path), tests, allowed)
    texts = {mark.text for mark in found}
    # `sys` adds nothing to `sys.modules`.
    return tuple(sorted(text for text in texts if not any(other.startswith(f"{text}.") for other in texts)))


def submitted_spans(given: SourceTree, submitted: SourceTree) -> tuple[tuple[str, int, int], ...]:
    """Return the lines of a submission that `given`, the corrupted tree, does not have, as path, first and
    last.
    """
    spans: list[tuple[str, int, int]] = []
    for path in submitted.overlay:
        if path.endswith(".py"):
            now, before = _File.read(submitted, path), _File.read(given, path)
            changed = chain.from_iterable(now.pieces[name] for name in now.changed(before))
            spans += [(path, *_lines(node)) for node in changed if isinstance(node, ast.stmt | ast.expr)]
    return tuple(spans)


def _lines(node: ast.stmt | ast.expr) -> tuple[int, int]:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(item.lineno for item in decorators)]), node.end_lineno or node.lineno


@dataclass(frozen=True)
class _Allowed:
    """What a submission may name: what the library names, and what the submission itself defines."""

    library: LibraryWords
    own: frozenset[str]


class _File:
    """A module as definitions, and the code between them under an empty name or that of a class."""

    def __init__(self, source: bytes) -> None:
        try:
            self.tree = parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.tree = ast.Module([], [])  # it can't run, so it can't gain a pass either
        self.pieces: dict[str, list[ast.AST]] = {}
        seen: Counter[str] = Counter()
        for name, node in _pieces(self.tree.body, ""):
            # Functions of one name are compared one by one, in their order; other code of one name as a
            # whole.
            if isinstance(node, _Function):
                seen[name] += 1
                name = numbered(name, seen[name])
            self.pieces.setdefault(name, []).append(node)

    @classmethod
    def read(cls, tree: SourceTree, path: str) -> _File:
        """Read a file of a tree; return an empty one if there is none."""
        try:
            return cls(tree.read(path))
        except FileNotFoundError:
            return cls(b"")

    @cached_property
    def meaning(self) -> Meaning:
        return Meaning(self.tree)

    @cached_property
    def own(self) -> frozenset[str]:
        """The attributes that the module defines: by setting them, in the body of a class, or as a keyword."""
        return frozenset(name for node in ast.walk(self.tree) for name in _own_names(node))

    def marks(self, name: str, allowed: _Allowed) -> set[SuspicionMark]:
        try:
            return marks_of(self.meaning, self.pieces.get(name, ()), allowed.library, allowed.own)
        except RecursionError:
            return {SuspicionMark("code that is nested too deeply to be followed")}

    def same(self, name: str, other: _File) -> bool:
        """Whether a piece is the same in both."""
        ours, theirs = (file.pieces.get(name, []) for file in (self, other))
        return len(ours) == len(theirs) and all(map(same_tree, ours, theirs))

    def changed(self, before: _File) -> Iterator[str]:
        """Yield the names of the pieces that are not the same as before."""
        return (name for name in self.pieces if not self.same(name, before))

    @cached_property
    def judges(self) -> bool:
        """Whether the module imports something that tests are judged by."""
        names = chain.from_iterable(map(_imported, ast.walk(self.tree)))
        return any(name.partition(".")[0] in _JUDGING for name in names)


@dataclass(frozen=True)
class _Tests:
    """The words of the test files."""

    tree: SourceTree
    files: Collection[str]

    @cached_property
    def words(self) -> frozenset[str]:
        found: set[str] = set()
        for path in self.files:
            if self.tree.is_file(path):
                found.update(re.findall(r"\w+", self.tree.read(path).decode("utf-8", "replace")))
        return frozenset(found)


def _new_marks(
    path: str, now: _File, given: _File, original: _File, tests: _Tests, allowed: _Allowed
) -> set[SuspicionMark]:
    found: set[SuspicionMark] = set()
    for name in now.changed(given):
        reasons = now.marks(name, allowed)
        # The other versions are read only if there is something to excuse (decision 43): most repairs have no
        # mark.
        known = (
            {mark.key for file in (given, original) for mark in file.marks(name, allowed)}
            if reasons
            else set()
        )
        found |= {mark for mark in reasons if mark.key not in known}
        method = name.rpartition(".")[2].partition("#")[0]
        is_new = name not in given.pieces and name not in original.pieces
        if is_new and "." in name and method in OPERATORS:
            found.add(SuspicionMark(f"{method} of a class that had none"))
        if name in given.pieces and given.same(name, original):
            found |= set(_for_the_tests(path, name, given, tests))
    return found


def _for_the_tests(path: str, name: str, given: _File, tests: _Tests) -> Iterator[SuspicionMark]:
    """Mark the replacement of a correct definition by which tests judge."""
    for node in given.pieces[name]:
        if not isinstance(node, _Function):
            continue
        if given.judges or node.name.startswith(_HOOK) or (node.name in tests.words and _asserts(node)):
            yield SuspicionMark(f"{path}::{name} serves the tests")
        elif node.name in COMPARISONS:
            yield SuspicionMark(f"{path}::{name} decides comparisons")


def _asserts(function: ast.AST) -> bool:
    return any(isinstance(item, ast.Assert) or _raises_assertion(item) for item in ast.walk(function))


def _imported(node: ast.AST) -> list[str]:
    """Return the modules that a statement imports, without those of its own package."""
    match node:
        case ast.Import(names=names):
            return [item.name for item in names]
        case ast.ImportFrom(module=str(name), level=0):
            return [name]
    return []


def _own_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Attribute(attr=name, ctx=ast.Store()) | ast.keyword(arg=str(name)):
            yield name
        case ast.ClassDef(body=body):
            yield from names_bound_in(body, into_definitions=False)
        case ast.Call(func=ast.Name(id="namedtuple") | ast.Attribute(attr="namedtuple"), args=[_, fields]):
            texts = (item.value for item in ast.walk(fields) if isinstance(item, ast.Constant))
            yield from (word for text in texts for word in re.findall(r"\w+", str(text)))


def _raises_assertion(node: ast.AST) -> bool:
    match node:
        case ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name))):
            return name == "AssertionError"
    return False


def _pieces(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield the definitions of a module or class by name, and its other code under the name of what encloses
    it.
    """
    outer = prefix.removesuffix(".")
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield f"{prefix}{name}", statement
            case ast.ClassDef(name=name):
                for node in (
                    *statement.decorator_list,
                    *statement.bases,
                    *(item.value for item in statement.keywords),
                ):
                    yield f"{prefix}{name}", node
                yield from _pieces(statement.body, f"{prefix}{name}.")
            case _:
                yield from ((outer, part) for part in _parts(statement))
                for block in _blocks(statement):
                    yield from _pieces(block, prefix)


def _parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield what a statement evaluates itself: a simple one as a whole, of a compound one its expressions.

    Those of `except` and `case` are among them: they run like any other.
    """
    if not _blocks(statement):
        yield statement
        return
    for part in ast.iter_child_nodes(statement):
        match part:
            case ast.withitem(context_expr=expression) | (ast.expr() as expression):
                yield expression
            case ast.ExceptHandler(type=ast.expr() as raised):
                yield raised
            case ast.match_case(pattern=pattern, guard=guard):
                yield from (inner for inner in ast.walk(pattern) if isinstance(inner, ast.expr))
                if guard is not None:
                    yield guard


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    parts: list[ast.AST] = [statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]
    found = [getattr(part, name, None) for part in parts for name in ("body", "orelse", "finalbody")]
    return [block for block in found if isinstance(block, list) and block]
