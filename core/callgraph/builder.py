"""Builds the call graph from source bytes."""

from __future__ import annotations

import io
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from gistpoint.core.callgraph.expressions import MethodCall
from gistpoint.core.callgraph.graph import CallEdge, CallEvidence, CallGraph, FunctionNode
from gistpoint.core.callgraph.hierarchy import Hierarchy
from gistpoint.core.callgraph.program import Program
from gistpoint.core.callgraph.scopes import TOO_DEEP, Definitions, define_all
from gistpoint.core.callgraph.semantics import Semantics
from gistpoint.core.callgraph.sources import parse_all
from gistpoint.core.callgraph.statements import Statements
from gistpoint.core.callgraph.values import Class, Function
from gistpoint.core.code.parsing import uncollected

_BUILTIN_TYPES: tuple[object, ...] = (
    str,
    bytes,
    int,
    float,
    list,
    dict,
    set,
    tuple,
    io.TextIOWrapper,
    io.BytesIO,
    re.compile(""),
    re.match("", ""),
    BaseException,
    threading.Thread,
)
_COMMON_NAMES = frozenset(name for kind in _BUILTIN_TYPES for name in dir(kind))


class Guesses:
    """Resolves calls on unknown receivers to the only method of that name in the sources."""

    def __init__(self, program: Program, calls: Sequence[MethodCall]) -> None:
        self.program = program
        self.calls = list(calls)
        self._by_name: dict[str, list[Function]] = {}
        for function in program.definitions.functions.values():
            if function.cls is not None:
                self._by_name.setdefault(function.name, []).append(function)

    def add(self) -> bool:
        """Resolve calls that are still open, and return whether any was resolved."""
        solver = self.program.solver
        open_calls: list[MethodCall] = []
        guessed: list[tuple[MethodCall, Function]] = []
        for item in self.calls:
            if not solver.is_empty(item.callee):
                continue
            function = self._only(item.call.name) if solver.is_empty(item.receiver) else None
            if function is not None:
                guessed.append((item, function))
            else:
                open_calls.append(item)
        self.calls = open_calls
        for item, function in guessed:
            assert function.cls is not None
            item.call.found = CallEvidence.NAME
            receiver: Class = function.cls
            solver.add(item.callee, self.program.bound(function, receiver.open_instance))
        return bool(guessed)

    def _only(self, name: str) -> Function | None:
        if name in _COMMON_NAMES or name.startswith("__"):
            return None
        found = self._by_name.get(name, [])
        # Overrides count as one method, that of the class from which all others inherit.
        classes = [item.cls for item in found if item.cls is not None]
        for item in found:
            if all(item.cls in cls.mro for cls in classes):
                return item
        return None


_STACK_BYTES = 512 * 1024 * 1024
_DEEPEST = 30_000
_RECURSION_LOCK = threading.Lock()  # the recursion limit is the interpreter's, not a thread's

Result = TypeVar("Result")


def run_deep(work: Callable[[], Result]) -> Result:
    """Return the result of `work()`, run in a thread with a large stack and a high recursion limit.

    Its exceptions are passed on. Trees of real code (sympy) nest deeper than Python's default limit. The
    garbage collector is off meanwhile, because it would repeatedly scan a growing graph of objects that all
    stay alive. `work` must not call this function.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    with _RECURSION_LOCK, _deep(), uncollected():
        thread = threading.Thread(target=run, name="syntax trees")
        thread.start()
        thread.join()
    if errors:
        raise errors[0]
    return results[0]


@contextmanager
def _deep() -> Iterator[None]:
    limit, size = sys.getrecursionlimit(), threading.stack_size()
    sys.setrecursionlimit(max(limit, _DEEPEST))
    threading.stack_size(_STACK_BYTES)
    try:
        yield
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)


def build_call_graph(files: Mapping[str, bytes], *, keep_lambdas: bool = False) -> CallGraph:
    """Return the static call graph of `files`, which maps paths to source bytes.

    Files other than `.py` are left out. Calls made in lambdas, comprehensions and class bodies belong to the
    enclosing function; with `keep_lambdas`, each lambda is a separate node. Files that do not parse are in
    `skipped`. The work is done in a separate thread, with the stack that deep expressions need.
    """
    return run_deep(lambda: _build(files, keep_lambdas=keep_lambdas))


def read_folder(folder: Path) -> dict[str, bytes]:
    """Return the `.py` files below `folder`: bytes by relative path with forward slashes."""
    paths = sorted(path for path in folder.rglob("*.py") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def _build(files: Mapping[str, bytes], *, keep_lambdas: bool) -> CallGraph:
    sources = parse_all(files)
    definitions = define_all(sources)
    program = Program(definitions, Hierarchy(sources, definitions))
    statements = Statements(Semantics(program))
    for scope, names in program.hierarchy.star_names.items():
        for name, module in names.items():
            if module.scope is not None:
                source = program.name_variable(module.scope, name)
                program.solver.copy(source, program.name_variable(scope, name))
    for file in sources.files.values():
        try:
            statements.module(file)
        except RecursionError:
            sources.skipped[file.path] = TOO_DEEP
    solve(program, Guesses(program, statements.expressions.method_calls))
    return _graph(program, definitions, sources.skipped, keep_lambdas=keep_lambdas)


def solve(program: Program, guesses: Guesses) -> None:
    """Propagate values, then run the deferred steps and guess unknown receivers, in up to three rounds."""
    program.solver.run()
    for _ in range(3):
        deferred, program.deferred = program.deferred, []
        for settle in deferred:
            settle()
        program.solver.run()
        if not guesses.add() and not program.deferred:
            break
        program.solver.run()


def _graph(
    program: Program, definitions: Definitions, skipped: Mapping[str, str], *, keep_lambdas: bool
) -> CallGraph:
    folded = {} if keep_lambdas else definitions.folded
    edges: dict[tuple[str, str], dict[CallEvidence, None]] = {}
    for (caller, callee), found in program.edges.items():
        ends = folded.get(caller, caller), folded.get(callee, callee)
        if ends != (caller, callee) and ends[0] == ends[1]:
            continue
        callee_node = definitions.nodes.get(ends[1])
        if callee_node is not None and callee_node.is_module:
            continue
        edges.setdefault(ends, {}).update(found)
    nodes = dict(definitions.nodes)
    if keep_lambdas:
        for function in definitions.functions.values():
            if function.id not in nodes:
                path, _, qualname = function.id.partition("::")
                line, last = function.tree.lineno, function.tree.end_lineno or function.tree.lineno
                nodes[function.id] = FunctionNode(function.id, path, qualname, "lambda", line, line, last)
    ordered = sorted(nodes.values(), key=lambda node: (node.path, node.first_line, node.qualname))
    return CallGraph(
        {node.id: node for node in ordered},
        tuple(
            CallEdge(caller, callee, tuple(sorted(found, key=list(CallEvidence).index)))
            for (caller, callee), found in sorted(edges.items())
        ),
        dict(skipped),
    )
