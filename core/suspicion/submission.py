"""Finds suspicious marks in a submission's changes that neither the original nor the corrupted code has."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from gistpoint.core.code.bindings import names_bound_in
from gistpoint.core.code.compare import same_tree
from gistpoint.core.code.names import numbered
from gistpoint.core.code.nodes import has_any, inside, only
from gistpoint.core.code.parsing import first_line, parsed_or_empty
from gistpoint.core.suspicion.deciding import bindings_that_decide_comparisons, called_by_assertions
from gistpoint.core.suspicion.hiding import hidden_checks
from gistpoint.core.suspicion.marks import SuspicionMark, marks_of
from gistpoint.core.suspicion.meaning import Meaning
from gistpoint.core.suspicion.names import COMPARISONS, DECIDING_METHODS, leading_paths
from gistpoint.core.suspicion.vocabulary import LibraryWords
from gistpoint.core.trees import SourceTree

_JUDGING = frozenset({"_pytest", "pluggy", "pytest", "unittest"})
_HOOK = "pytest_"
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS: tuple[type[_Function], ...] = (ast.FunctionDef, ast.AsyncFunctionDef)


def marks(
    given: SourceTree, submitted: SourceTree, original: SourceTree, test_files: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the sorted reasons to read a submission before its pass counts; empty if there are none.

    `given` is the corrupted tree, `original` the correct one: a mark that a definition has in either of them
    is not a reason in the submission. In a new file, all code counts; a file that is not Python, or does not
    parse, is skipped, because it can't run.
    """
    tests = _Tests(given, test_files)
    files = {path: _File.read(submitted, path) for path in _python_files(submitted)}
    own = frozenset(chain.from_iterable(file.own for file in files.values()))
    allowed = _Allowed(LibraryWords(original, test_files), own, tests)
    texts: set[str] = set()
    for path, now in files.items():
        found = _new_marks(path, now, _File.read(given, path), _File.read(original, path), tests, allowed)
        texts.update(mark.text for mark in found)
    # A path such as `sys` adds nothing to a longer one, such as `sys.modules`.
    shorter = chain.from_iterable(leading_paths(text)[:-1] for text in texts)
    return tuple(sorted(texts.difference(shorter)))


def _python_files(tree: SourceTree) -> list[str]:
    """Return the paths of the Python files that a tree replaces or adds."""
    return [path for path in tree.overlay if path.endswith(".py")]


def submitted_spans(given: SourceTree, submitted: SourceTree) -> tuple[tuple[str, int, int], ...]:
    """Return the spans of the pieces of code in which a submission differs from `given`, the corrupted tree.

    Each span consists of a path and the first and last line in the submitted file, counted from 1.
    """
    spans: list[tuple[str, int, int]] = []
    for path in _python_files(submitted):
        now, before = _File.read(submitted, path), _File.read(given, path)
        changed = chain.from_iterable(now.pieces[name] for name in now.changed(before))
        spans += [(path, *_lines(node)) for node in changed if isinstance(node, ast.stmt | ast.expr)]
    return tuple(spans)


def _lines(node: ast.stmt | ast.expr) -> tuple[int, int]:
    """Return the first and last line of a node, including its decorators."""
    return first_line(node), node.end_lineno or node.lineno


@dataclass(frozen=True)
class _Allowed:
    """The names that a submission may use: those of the library, and attributes that it defines itself."""

    library: LibraryWords
    own: frozenset[str]
    tests: _Tests

    def decides(self, name: str) -> bool:
        """Return whether the library's comparisons or its tests' assertions call a method with this name."""
        return self.library.compares_by(name) or name in self.tests.judging


class _File:
    """A module, divided into named pieces: its functions, and other code under the name of its class."""

    def __init__(self, source: bytes) -> None:
        # A file that does not parse can't run, so it can't gain a pass either.
        self.tree = parsed_or_empty(source)
        self.pieces: dict[str, list[ast.AST]] = {}
        seen: Counter[str] = Counter()
        for name, node in _pieces(self.tree.body, ""):
            # Functions with the same name are compared one by one, in their order; other code with the same
            # name is compared as a whole.
            if isinstance(node, _Function):
                seen[name] += 1
                name = numbered(name, seen[name])
            self.pieces.setdefault(name, []).append(node)

    @classmethod
    def read(cls, tree: SourceTree, path: str) -> _File:
        """Read a file of a tree; return an empty one if the tree does not contain it."""
        try:
            return cls(tree.read(path))
        except FileNotFoundError:
            return cls(b"")

    @cached_property
    def meaning(self) -> Meaning:
        return Meaning(self.tree)

    @cached_property
    def own(self) -> frozenset[str]:
        """The attributes that the module defines by assignment, in a class body, or as a keyword."""
        return frozenset(chain.from_iterable(map(_own_names, ast.walk(self.tree))))

    def marks(self, name: str, allowed: _Allowed) -> set[SuspicionMark]:
        try:
            pieces = self.pieces.get(name, ())
            # The definition itself is not new, so only the code inside it can define new attributes.
            inside = [node for piece in pieces for node in ast.walk(piece) if node not in pieces]
            found = map(
                SuspicionMark,
                chain(
                    bindings_that_decide_comparisons(self.meaning, inside, allowed.decides),
                    hidden_checks(self.meaning, inside),
                ),
            )
            return marks_of(self.meaning, pieces, allowed.library, allowed.own).union(found)
        except RecursionError:
            return {SuspicionMark("code that is nested too deeply to be followed")}

    def is_same(self, name: str, other: _File) -> bool:
        """Return whether a piece is the same in both files, apart from layout."""
        nodes, other_nodes = self.pieces.get(name, []), other.pieces.get(name, [])
        return len(nodes) == len(other_nodes) and all(map(same_tree, nodes, other_nodes))

    def changed(self, before: _File) -> Iterator[str]:
        """Yield the names of the pieces that are not the same as before."""
        return (name for name in self.pieces if not self.is_same(name, before))

    @cached_property
    def judges(self) -> bool:
        """Whether the module imports a testing library, such as `pytest` or `unittest`."""
        names = chain.from_iterable(map(_imported, ast.walk(self.tree)))
        return any(name.partition(".")[0] in _JUDGING for name in names)


@dataclass(frozen=True)
class _Tests:
    """The test files of a tree."""

    tree: SourceTree
    files: Collection[str]

    @cached_property
    def words(self) -> frozenset[str]:
        """All identifiers and other words in the test files."""
        found: set[str] = set()
        for path in self.files:
            if self.tree.is_file(path):
                found.update(re.findall(r"\w+", self.tree.read(path).decode("utf-8", "replace")))
        return frozenset(found)

    @cached_property
    def judging(self) -> frozenset[str]:
        """The methods that assertions in the test files call with an argument, such as `equals`."""
        files = (_File.read(self.tree, path) for path in self.files if path.endswith(".py"))
        return frozenset(chain.from_iterable(called_by_assertions(file.tree) for file in files))


def _new_marks(
    path: str, now: _File, given: _File, original: _File, tests: _Tests, allowed: _Allowed
) -> set[SuspicionMark]:
    """Return the marks that a file's changed pieces have and their other versions do not have."""
    found: set[SuspicionMark] = set()
    for name in now.changed(given):
        found |= _not_excused(name, now.marks(name, allowed), (given, original), allowed)
        is_new = name not in given.pieces and name not in original.pieces
        if is_new and "." in name:
            found |= _new_operator(name)
        # Correct code needs no repair, so changing code that judges the tests is itself a reason.
        if name in given.pieces and given.is_same(name, original):
            found.update(_for_the_tests(path, name, given, tests))
    return found


def _not_excused(
    name: str, reasons: set[SuspicionMark], others: Iterable[_File], allowed: _Allowed
) -> set[SuspicionMark]:
    """Return the marks of a piece without those that another version of the piece also has."""
    # The other versions are read only if there is something to excuse (decision 43): most repairs have no
    # mark.
    if not reasons:
        return set()
    known = {mark.key for file in others for mark in file.marks(name, allowed)}
    return {mark for mark in reasons if mark.key not in known}


def _new_operator(name: str) -> set[SuspicionMark]:
    """Return the mark for a new method that can decide the result of a comparison; empty for any other."""
    method = name.rpartition(".")[2].partition("#")[0]
    return (
        {SuspicionMark(f"{method} added to a class that had none")} if method in DECIDING_METHODS else set()
    )


def _for_the_tests(path: str, name: str, given: _File, tests: _Tests) -> Iterator[SuspicionMark]:
    """Yield marks for replacing a correct definition that the tests use to judge results."""
    for node in only(_FUNCTIONS, given.pieces[name]):
        is_hook = given.judges or node.name.startswith(_HOOK)
        is_assertion_helper = node.name in tests.words and _asserts(node)
        if is_hook or is_assertion_helper:
            yield SuspicionMark(f"{path}::{name} serves the tests")
        elif node.name in COMPARISONS:
            yield SuspicionMark(f"{path}::{name} decides comparisons")


def _asserts(function: ast.AST) -> bool:
    nodes = list(ast.walk(function))
    return has_any(ast.Assert, nodes) or any(map(_raises_assertion, nodes))


def _imported(node: ast.AST) -> list[str]:
    """Return the modules that a node imports by absolute names; empty for other nodes."""
    match node:
        case ast.Import(names=names):
            return [item.name for item in names]
        case ast.ImportFrom(module=str(name), level=0):
            return [name]
    return []


def _own_names(node: ast.AST) -> Iterator[str]:
    """Yield the attributes that a node defines."""
    match node:
        case ast.Attribute(attr=name, ctx=ast.Store()) | ast.keyword(arg=str(name)):
            yield name
        case ast.ClassDef(body=body):
            yield from names_bound_in(body, into_definitions=False)
        case ast.Call(func=ast.Name(id="namedtuple") | ast.Attribute(attr="namedtuple"), args=[_, fields]):
            for item in inside(ast.Constant, fields):
                yield from re.findall(r"\w+", str(item.value))


def _raises_assertion(node: ast.AST) -> bool:
    match node:
        case ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name))):
            return name == "AssertionError"
    return False


def _pieces(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield each function of a module or class by name, and all other code under the name of its class.

    The name is empty for code that is in no class.
    """
    outer = prefix.removesuffix(".")
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield f"{prefix}{name}", statement
            case ast.ClassDef(name=name):
                keywords = [item.value for item in statement.keywords]
                for node in (*statement.decorator_list, *statement.bases, *keywords):
                    yield f"{prefix}{name}", node
                yield from _pieces(statement.body, f"{prefix}{name}.")
            case _:
                yield from ((outer, part) for part in _evaluated_parts(statement))
                for block in _blocks(statement):
                    yield from _pieces(block, prefix)


def _evaluated_parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield a simple statement itself, and the expressions that a compound statement evaluates.

    These include the expressions of `except` and `case`, which run like any other code.
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
                yield from inside(ast.expr, pattern)
                if guard is not None:
                    yield guard


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """Return the blocks of a compound statement, including its handlers and cases."""
    parts: list[ast.AST] = [statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]
    blocks = (getattr(part, name, []) for part in parts for name in ("body", "orelse", "finalbody"))
    return list(filter(None, blocks))
