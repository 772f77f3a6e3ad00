"""From source bytes to the call graph."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from gistpoint.core.callgraph.graph import CallEdge, CallGraph, Found, FunctionNode
from gistpoint.core.callgraph.guesses import Guesses
from gistpoint.core.callgraph.hierarchy import Hierarchy
from gistpoint.core.callgraph.parts import Parts
from gistpoint.core.callgraph.program import Program
from gistpoint.core.callgraph.scopes import TOO_DEEP, Definitions, define_all
from gistpoint.core.callgraph.sources import parse_all
from gistpoint.core.callgraph.statements import Statements
from gistpoint.core.collector import uncollected

_STACK_BYTES = 512 * 1024 * 1024
_DEEPEST = 30_000
_ONE_AT_A_TIME = threading.Lock()  # the recursion limit is the interpreter's, not a thread's

Result = TypeVar("Result")


def run_deep(work: Callable[[], Result]) -> Result:
    """Return `work()`, run in a thread with a large stack and a high recursion limit; what it raises is raised here.

    Trees of real code (sympy) nest deeper than Python's default limit. The garbage collector rests meanwhile: it would
    look, again and again, through a growing graph of objects that all stay alive. `work` must not call this again.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    with _ONE_AT_A_TIME, _deep(), uncollected():
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
    """Return the static call graph of `files` (path to source bytes; what is no `.py` file is left out).

    Calls made in lambdas, comprehensions and class bodies belong to the function around them; `keep_lambdas` makes
    each lambda a node of its own. Files that do not parse are in `skipped`. Works in a thread of its own, with a stack
    that deep expressions need.
    """
    return run_deep(lambda: _build(files, keep_lambdas=keep_lambdas))


def read_folder(folder: Path) -> dict[str, bytes]:
    """Return the `.py` files below `folder`: path relative to it, with forward slashes, to bytes."""
    paths = sorted(path for path in folder.rglob("*.py") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def _build(files: Mapping[str, bytes], *, keep_lambdas: bool) -> CallGraph:
    sources = parse_all(files)
    definitions = define_all(sources)
    program = Program(definitions, Hierarchy(sources, definitions))
    statements = Statements(Parts(program))
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
    """Propagate; then settle what was put off until the rest is known, and guess at unknown receivers."""
    program.solver.run()
    for _ in range(3):
        deferred, program.deferred = program.deferred, []
        for settle in deferred:
            settle()
        program.solver.run()
        if not guesses.add() and not program.deferred:
            break
        program.solver.run()


def _graph(program: Program, definitions: Definitions, skipped: Mapping[str, str], *, keep_lambdas: bool) -> CallGraph:
    folded = {} if keep_lambdas else definitions.folded
    edges: dict[tuple[str, str], dict[Found, None]] = {}
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
            CallEdge(caller, callee, tuple(sorted(found, key=list(Found).index)))
            for (caller, callee), found in sorted(edges.items())
        ),
        dict(skipped),
    )
