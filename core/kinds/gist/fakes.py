"""Fakes: what stands in a gist for the codebase without being its code, told from its run and from its text.

The run tells what stood under the names of modules, what was executed that came from nowhere, and what said yes to any
comparison. The text tells which of it is the codebase's own doing: glue, and lines that stand in the codebase.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from gistpoint.core.code.parsing import parse
from gistpoint.core.kinds.gist.execution import ExecutionReport
from gistpoint.core.kinds.gist.existence import ITSELF, ExistenceReport, LineExistence
from gistpoint.core.kinds.gist.original_test import imports_owned
from gistpoint.core.kinds.gist.runs import Isolation

_MOST = 3
_DEFINES = ("def ", "async def ", "class ")
_EQUAL_TO_ALL = re.compile(r"\b(?:ANY|approx)\b")
_MOCK = re.compile(r"\b(?:Async|Magic|NonCallable|NonCallableMagic|Property)?Mock\b")
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Habits:
    """What the original's own runs do that would be strange in a gist; None where that was not recorded."""

    made_functions: Collection[str] = ()
    """Functions that are executed from strings."""
    made_elsewhere: Collection[str] | None = None
    """Code from nowhere that the environment executes, each with the function that was called for it."""
    made_here: Collection[str] | None = None
    """Code from nowhere that the codebase itself executes."""
    loads_own_modules: bool = False
    starts_processes: bool | None = None


def habits_of(runs: Sequence[Isolation]) -> Habits:
    """Return what runs of the original have shown."""
    return Habits(
        made_functions=tuple(sorted({name for one in runs for name in one.made_functions})),
        made_elsewhere=tuple(sorted({name for one in runs for name in one.made_elsewhere})),
        made_here=tuple(sorted({name for one in runs for name in one.made_here})),
        loads_own_modules=any(one.own_modules for one in runs),
        starts_processes=any(one.processes for one in runs),
    )


@dataclass(frozen=True, slots=True)
class Watched:
    """What a run is watched for: the names of modules, and the lines whose functions no comparison should hang on."""

    modules: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()


def module_names(test: str, owned: Collection[str], modules: Collection[str]) -> tuple[str, ...]:
    """Return the dotted names under which the test file `test` reaches modules of the codebase.

    `modules` are the dotted names of those that the command touches. Empty for a file that does not parse.
    """
    try:
        tree = parse(test)
    except (SyntaxError, ValueError):
        return ()
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in owned:
                    name = alias.name if alias.asname else alias.name.partition(".")[0]
                    found[alias.asname or name] = name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                module = _imported_module(node, alias.name, modules)
                if module:
                    found[alias.asname or alias.name] = module
    chains = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    deeper = {
        name + module.removeprefix(target)
        for name, target in found.items()
        for module in modules
        if module.startswith(f"{target}.")
    }
    return tuple(sorted({*found, *(deeper & chains)}))


def _imported_module(node: ast.ImportFrom, name: str, modules: Collection[str]) -> str:
    """Return the module that a `from` import brings; empty where it brings something else."""
    path = f"{node.module}.{name}" if node.module else name
    if not node.level:
        return path if path in modules else ""
    return next((module for module in modules if f".{module}".endswith(f".{path}")), "")


def watched(modules: Collection[str], existence: ExistenceReport) -> Watched:
    """Return what to watch a run for; `existence` is that of the text that is run."""
    invented = (one.line for one in existence.lines if not one.exists and one.block not in existence.test_blocks)
    lines = chain.from_iterable(range(line.first, line.last + 1) for line in invented)
    return Watched(tuple(sorted(modules)), tuple(sorted(set(lines))))


# The flag `mocked`


def mocked(
    text: str,
    seen: Sequence[Isolation],
    habits: Habits,
    used: Collection[str],
    owned: Collection[str],
    existence: ExistenceReport,
    execution: ExecutionReport | None,
) -> str:
    """Return what a gist puts in the place of the codebase, in a few words; empty where it is nothing.

    `seen` is what the runs of `text` showed, `used` are the names under which the test reaches modules of the codebase.
    """
    found = chain(
        _made_up(seen, habits),
        _stand_ins(text, seen, used, existence),
        _imported(seen, owned, execution),
        _bound_anew(text, used, existence),
        _invented(_MOCK, existence),
    )
    return next(found, "")


def _made_up(seen: Sequence[Isolation], habits: Habits) -> Iterator[str]:
    modules = [name for one in seen for name in one.own_modules]
    if modules and not habits.loads_own_modules:
        yield f"executes {modules[0]}, which it wrote itself"
    here = {name for one in seen for name in one.made_here}
    if habits.made_here is None or habits.made_elsewhere is None:  # a task that knows the names of functions alone
        functions = {name for one in seen for name in one.made_functions} | here
        names = sorted(name for name in functions - set(habits.made_functions) if not name.startswith("<"))
    else:
        elsewhere = {name for one in seen for name in one.made_elsewhere}
        names = sorted(here - set(habits.made_here)) + sorted(elsewhere - set(habits.made_elsewhere))
    if names:
        yield f"executes code from nowhere: {', '.join(names[:_MOST])}"
    processes = [name for one in seen for name in one.processes]
    if processes and habits.starts_processes is False:
        yield f"starts another process: {processes[0]}"


def _stand_ins(
    text: str, seen: Sequence[Isolation], used: Collection[str], existence: ExistenceReport
) -> Iterator[str]:
    for name, kind in dict.fromkeys(pair for one in seen for pair in one.stand_ins):
        if not _is_grounded(text, name, kind, used, existence):
            yield f"{name} is {kind}"


def _is_grounded(text: str, name: str, kind: str, used: Collection[str], existence: ExistenceReport) -> bool:
    """Whether what stands under a name is what the codebase itself has under it."""
    what, _, qualname = kind.partition(" ")
    own_name = name.rpartition(".")[2]
    if not own_name.isidentifier():
        return False
    if what in ("function", "class") and (qualname == own_name or name not in used):
        defined = (one for one in existence.lines if one.block == qualname and one.line.text.startswith(_DEFINES))
        if any(one.exists for one in defined):
            return True
    bound = [line for line, in_function in _bindings(text, own_name) if not in_function]
    return bool(bound) and all(one.exists for line in bound for one in _at(line, existence))


def _imported(seen: Sequence[Isolation], owned: Collection[str], execution: ExecutionReport | None) -> Iterator[str]:
    """Yield imports of the codebase that ran and were not refused: something stood in for it."""
    refused = {name.partition(".")[0] for one in seen for name in one.refused_imports}
    for one in execution.lines if execution is not None else ():
        text = one.line.text
        if one.ran and not text.startswith("from .") and imports_owned(text, set(owned) - refused):
            yield f"{text} found something"


def _bound_anew(text: str, used: Collection[str], existence: ExistenceReport) -> Iterator[str]:
    """Yield lines in functions that bind the name of a module anew and do not stand in the codebase."""
    for name in used:
        for line, in_function in _bindings(text, name):
            for one in _at(line, existence):
                if in_function and not one.exists and not one.line.text.endswith(ITSELF):
                    yield f"{name} is bound anew: {one.line.text}"


def _at(line: int, existence: ExistenceReport) -> list[LineExistence]:
    return [one for one in existence.lines if one.line.first <= line <= one.line.last]


def _bindings(text: str, name: str) -> Iterator[tuple[int, bool]]:
    """Yield the lines that bind a global name, and whether they do so in a function or class, by `global`."""
    tree = parse(text)
    yield from ((line, False) for line in _bound_in(tree, name))
    for scope in ast.walk(tree):
        if isinstance(scope, _Scope) and any(
            isinstance(node, ast.Global) and name in node.names for node in _of_scope(scope)
        ):
            yield from ((line, True) for line in _bound_in(scope, name))


def _bound_in(scope: ast.AST, name: str) -> Iterator[int]:
    for node in _of_scope(scope):
        match node:
            case ast.Name(id=bound, ctx=ast.Store()) if bound == name:
                yield node.lineno
            case ast.FunctionDef(name=bound) | ast.AsyncFunctionDef(name=bound) | ast.ClassDef(name=bound):
                if bound == name:
                    yield node.lineno
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                if any((alias.asname or alias.name.partition(".")[0]) == name for alias in aliases):
                    yield node.lineno
            case ast.ExceptHandler(name=bound) | ast.MatchAs(name=bound) | ast.MatchStar(name=bound) if bound == name:
                yield node.lineno
            case ast.MatchMapping(rest=bound) if bound == name:
                yield node.lineno
            case _:
                pass


def _of_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope; of scopes within it their definitions alone."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, _Scope | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


# The flag `equal_to_all`


def equal_to_all(seen: Sequence[Isolation], existence: ExistenceReport) -> str:
    """Return what a gist has that equals whatever it is compared with; empty where it has nothing of the kind.

    Functions that decide comparisons were asked in the run; what pytest and mock have for it is told from lines that do
    not stand in the codebase.
    """
    names = sorted({name for one in seen for name in one.equal_to_all})
    if names:
        return ", ".join(names[:_MOST])
    return next(_invented(_EQUAL_TO_ALL, existence), "")


def _invented(pattern: re.Pattern[str], existence: ExistenceReport) -> Iterator[str]:
    """Yield lines with a pattern that do not stand in the codebase, those of the test left out."""
    for one in existence.lines:
        if not one.exists and one.block not in existence.test_blocks and pattern.search(one.line.text):
            yield one.line.text
