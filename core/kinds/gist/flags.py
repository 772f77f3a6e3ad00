"""Flags: facts that a reader of a gist's score must know, found in its text and its runs.

A fake is code in a gist that replaces the codebase's code with something else. The run shows which objects
had the names of modules, which code without a file was executed, and which functions made every comparison
true. The text shows what belongs to the codebase, namely its lines and glue.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from gistpoint.core.code.bindings import bound_names
from gistpoint.core.code.nodes import has_any
from gistpoint.core.code.parsing import first_line, parse
from gistpoint.core.code.scopes import scoped
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.code.testfiles import is_test_path
from gistpoint.core.entrypoints.runs import Isolation, Watched
from gistpoint.core.kinds.gist.lines import (
    LogicalLine,
    blocks_of,
    find_test,
    is_main_guard,
    lines_of_statement,
    margin_of,
)
from gistpoint.core.kinds.gist.original_test import imports_owned
from gistpoint.core.kinds.gist.rates import ITSELF, ExecutionReport, ExistenceReport, LineExistence

_MOST = 3
_DEFINES = ("def ", "async def ", "class ")
_EQUAL_TO_ALL = re.compile(r"\b(?:ANY|approx)\b")
_MOCK = re.compile(r"\b(?:Async|Magic|NonCallable|NonCallableMagic|Property)?Mock\b")


@dataclass(frozen=True, slots=True)
class Flags:
    """Facts that a reader of the score must know."""

    mocked: str = ""
    """The substitute that the gist uses for the codebase, in a few words; empty if there is none."""
    equal_to_all: str = ""
    """Up to three objects in the gist that equal anything, or a line that names one; empty without any."""
    invented_operand: str = ""
    """The first class or function that the test uses and the codebase does not have; empty if there is none.

    A fixed sentence takes its place if the comparisons could not be observed.
    """
    baked_in: str = ""
    """The line with an answer that was written into the gist; empty if there is none."""
    main_guard_added: bool = False
    test_moved_under_guard: bool = False
    test_changed: bool = False
    vacuous: bool | None = None
    """Whether the gist is vacuous; None if the probe was not run or was inconclusive."""


@dataclass(frozen=True, slots=True)
class Habits:
    """Behaviour of the original's own runs that would be suspicious in a gist; None if not recorded."""

    made_functions: tuple[str, ...] = ()
    """Functions in code without a file that the environment executes."""
    made_elsewhere: tuple[str, ...] | None = None
    """Code without a file that the environment executes, each with the function that was called for it.

    None, like `made_here`, for a task from a version that did not record it.
    """
    made_here: tuple[str, ...] | None = None
    """Code without a file that the codebase itself executes."""
    loads_own_modules: bool = False
    starts_processes: bool | None = None


def habits_of(runs: Sequence[Isolation]) -> Habits:
    """Return the habits that runs of the original have shown."""
    made_functions = set[str]()
    made_elsewhere = set[str]()
    made_here = set[str]()
    for run in runs:
        made_functions.update(run.made_functions)
        made_elsewhere.update(run.made_elsewhere)
        made_here.update(run.made_here)
    return Habits(
        made_functions=tuple(sorted(made_functions)),
        made_elsewhere=tuple(sorted(made_elsewhere)),
        made_here=tuple(sorted(made_here)),
        loads_own_modules=any(run.own_modules for run in runs),
        starts_processes=any(run.processes for run in runs),
    )


def module_names(test: str, owned: Collection[str], modules: Collection[str]) -> tuple[str, ...]:
    """Return the dotted names by which the test file `test` refers to modules of the codebase.

    `modules` are the dotted names of the modules that the command touches. Empty for a file that does not
    parse.
    """
    try:
        tree = parse(test)
    except (SyntaxError, ValueError):
        return ()
    found: dict[str, str] = {}
    chains = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= _bound_by_import(node, owned)
        elif isinstance(node, ast.ImportFrom):
            found |= _bound_by_from(node, modules)
        elif isinstance(node, ast.Attribute):
            chains.add(ast.unparse(node))
    # `import a` also gives access to a module `a.b`, but only a file that contains `a.b` uses it.
    deeper = set[str]()
    for name, target in found.items():
        below = [module for module in modules if module.startswith(f"{target}.")]
        deeper.update(name + module.removeprefix(target) for module in below)
    return tuple(sorted({*found, *(deeper & chains)}))


def _imported_module(node: ast.ImportFrom, name: str, modules: Collection[str]) -> str:
    """Return the module that a `from` import binds; empty if it binds something else."""
    path = f"{node.module}.{name}" if node.module else name
    if not node.level:
        return path if path in modules else ""
    return next((module for module in modules if f".{module}".endswith(f".{path}")), "")


def _bound_by_import(node: ast.Import, owned: Collection[str]) -> dict[str, str]:
    """Return the names that an `import` binds to modules of the codebase, with the modules."""
    found = dict[str, str]()
    for alias in node.names:
        top = alias.name.partition(".")[0]
        if top not in owned:
            continue
        if alias.asname:
            found[alias.asname] = alias.name
        else:
            found[top] = top
    return found


def _bound_by_from(node: ast.ImportFrom, modules: Collection[str]) -> dict[str, str]:
    """Return the names that a `from` import binds to modules of the codebase, with the modules."""
    found = dict[str, str]()
    for alias in node.names:
        module = _imported_module(node, alias.name, modules)
        if module:
            found[alias.asname or alias.name] = module
    return found


def watched(modules: Collection[str], existence: ExistenceReport) -> Watched:
    """Return the modules and lines to observe in a run; `existence` is the report on the text that is run."""
    invented = set[int]()
    observed = set[int]()
    for one in existence.lines:
        lines = range(one.line.first, one.line.last + 1)
        in_test = one.block in existence.test_blocks
        # Functions of the codebase's test files are observed as well (decision 123).
        of_test_file = one.original is not None and is_test_path(one.original.path)
        if not in_test and not one.exists:
            invented.update(lines)
        if in_test or of_test_file:
            observed.update(lines)
    return Watched(tuple(sorted(modules)), tuple(sorted(invented)), tuple(sorted(observed)))


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
    """Return a brief description of the gist's substitute for the codebase; empty if there is none.

    `seen` contains the observations of the runs of `text`; `used` contains the names by which the test refers
    to modules of the codebase.
    """
    found = chain(
        _made_up(seen, habits),
        _stand_ins(text, seen, used, existence),
        _imported(seen, owned, execution),
        _rebound_in_functions(text, used, existence),
        _invented(_MOCK, existence),
    )
    return next(found, "")


def _made_up(seen: Sequence[Isolation], habits: Habits) -> Iterator[str]:
    modules = _joined(run.own_modules for run in seen)
    if modules and not habits.loads_own_modules:
        yield f"executes {modules[0]}, which it wrote itself"
    made = _made_unlike_original(seen, habits)
    if made:
        yield f"executes code from nowhere: {', '.join(made[:_MOST])}"
    processes = _joined(run.processes for run in seen)
    if processes and habits.starts_processes is False:
        yield f"starts another process: {processes[0]}"


def _stand_ins(
    text: str, seen: Sequence[Isolation], used: Collection[str], existence: ExistenceReport
) -> Iterator[str]:
    for name, kind in dict.fromkeys(pair for one in seen for pair in one.stand_ins):
        if not _is_grounded(text, name, kind, used, existence):
            yield f"{name} is {kind}"


def _made_unlike_original(seen: Sequence[Isolation], habits: Habits) -> list[str]:
    """Return the code without a file that the gist executed and the original did not (decision 25)."""
    here = set(_joined(run.made_here for run in seen))
    if habits.made_here is None or habits.made_elsewhere is None:
        # An old task recorded only the names of functions: other code can't be compared.
        functions = here | set(_joined(run.made_functions for run in seen))
        return sorted(name for name in functions - set(habits.made_functions) if not name.startswith("<"))
    elsewhere = set(_joined(run.made_elsewhere for run in seen))
    return sorted(here - set(habits.made_here)) + sorted(elsewhere - set(habits.made_elsewhere))


def _joined(parts: Iterable[Iterable[str]]) -> list[str]:
    return list(chain.from_iterable(parts))


def _is_foreign(line: LineExistence) -> bool:
    """Return whether a line is neither the codebase's nor glue that names the gist (decision 14)."""
    return not line.exists and not line.line.text.endswith(ITSELF)


def _is_grounded(text: str, name: str, kind: str, used: Collection[str], existence: ExistenceReport) -> bool:
    """Return whether a name refers to the same object as in the codebase itself."""
    what, _, qualname = kind.partition(" ")
    own_name = name.rpartition(".")[2]
    if not own_name.isidentifier():
        return False
    is_its_own = qualname == own_name or name not in used
    may_be_defined = what in ("function", "class") and is_its_own
    if may_be_defined and _is_defined(qualname, existence):
        return True
    # All lines that bind the name must be the codebase's own: any other line may have bound something else.
    bound = [line for line, in_function in _bindings(text, own_name) if not in_function]
    found = chain.from_iterable(map(existence.at, bound))
    return bool(bound) and all(one.exists for one in found)


def _is_defined(qualname: str, existence: ExistenceReport) -> bool:
    """Return whether the gist has a function's or class's header exactly as in the codebase."""
    block = [one for one in existence.lines if one.block == qualname]
    return any(one.exists for one in block if one.line.text.startswith(_DEFINES))


def _imported(
    seen: Sequence[Isolation], owned: Collection[str], execution: ExecutionReport | None
) -> Iterator[str]:
    """Yield imports of the codebase that ran and were not refused, which shows that something replaced it."""
    if execution is None:
        return
    refused = {name.partition(".")[0] for name in _joined(run.refused_imports for run in seen)}
    substituted = set(owned) - refused
    for one in execution.lines:
        text = one.line.text
        is_relative = text.startswith("from .")
        may_find = one.ran and not is_relative
        if may_find and imports_owned(text, substituted):
            yield f"{text} found something"


def _rebound_in_functions(text: str, used: Collection[str], existence: ExistenceReport) -> Iterator[str]:
    """Yield lines in functions that rebind the name of a module and are not in the codebase."""
    for name in used:
        for line, in_function in _bindings(text, name):
            if not in_function:
                continue
            for one in filter(_is_foreign, existence.at(line)):
                yield f"{name} is bound again: {one.line.text}"


def _bindings(text: str, name: str) -> Iterator[tuple[int, bool]]:
    """Yield the number of each line that binds a global name, and whether it is inside a function."""
    for node, scope in scoped(parse(text)):
        deleted = isinstance(getattr(node, "ctx", None), ast.Del)
        if deleted or name not in bound_names(node):
            continue
        at_top = scope.parent is None
        if at_top or scope.elsewhere.get(name) is scope.module:
            yield getattr(node, "lineno", 0), not at_top


# The flag `equal_to_all`


def equal_to_all(seen: Sequence[Isolation], existence: ExistenceReport) -> str:
    """Return up to three objects of the gist that equal anything, or a line that names one; empty if none.

    The run has examined the functions that decide comparisons; objects of pytest and mock that equal anything
    are found on lines that are not in the codebase.
    """
    names = sorted(set(_joined(run.equal_to_all for run in seen)))
    if names:
        return ", ".join(names[:_MOST])
    return next(_invented(_EQUAL_TO_ALL, existence), "")


def _invented(pattern: re.Pattern[str], existence: ExistenceReport) -> Iterator[str]:
    """Yield the lines outside of the test that match a pattern and are not in the codebase."""
    for one in existence.lines:
        from_elsewhere = one.exists or one.block in existence.test_blocks
        if not from_elsewhere and pattern.search(one.line.text):
            yield one.line.text


# Flags of the source alone, and the variants for the vacuity probe


def main_guard_added(gist: str, original: str) -> bool:
    """Return whether the gist has a main guard at its top level, but the original test file has none."""
    return bool(_guarded(gist)) and not _guarded(original)


def moved_under_guard(gist: str, original: str, qualname: str) -> bool:
    """Return whether the test isn't defined on import and at least half its lines are under a main guard."""
    guarded = {line.text for line in _guarded(gist)}
    wanted = find_test(parse(original), qualname)
    if not guarded or wanted is None:
        return False
    if find_test(parse(gist), qualname) is not None:
        return False
    body = [line.text for line in wanted.lines[1:]]
    return 2 * sum(text in guarded for text in body) >= len(body) > 0


def _guarded(source: str) -> list[LogicalLine]:
    try:
        tree = parse(source)
    except (SyntaxError, ValueError):
        return []
    guards = (statement for statement in tree.body if is_main_guard(statement))
    return [line for guard in guards for line in lines_of_statement(guard)]


def vacuity_mutants(
    gist: str, executed: Collection[int], test: str, *, most: int = 5
) -> Iterator[tuple[str, str]]:
    """Yield up to `most` (function, text) pairs: the gist with one executed function returning nonsense.

    A gist is vacuous if its run is as faithful with each of these texts: then the test does not depend on the
    contents of the gist. Functions with more executed lines come first; tests, generators, asynchronous
    functions and functions on one line are left alone. Lines keep their numbers.
    """
    lines = physical_lines(gist)
    ran_lines = sorted(executed)
    ranked: list[tuple[int, str, ast.FunctionDef]] = []
    for block in blocks_of(parse(gist)):
        function = block.statements[0] if block.name else None
        if not isinstance(function, ast.FunctionDef) or not _may_be_emptied(function, block.name, test):
            continue
        ran = bisect_right(ran_lines, block.last) - bisect_left(ran_lines, function.body[0].lineno)
        if ran:
            ranked.append((-ran, block.name, function))
    for _, name, function in sorted(ranked, key=lambda one: (one[0], one[1]))[:most]:
        start = first_line(function.body[0])
        end = function.end_lineno or start
        emptied = f"{margin_of(lines[start - 1])}return object()"
        changed = [*lines[: start - 1], emptied, *[""] * (end - start), *lines[end:]]
        yield name, "\n".join(changed) + "\n"


def _may_be_emptied(function: ast.FunctionDef, name: str, test: str) -> bool:
    """Return whether a function is neither a test nor a generator, and its body is on separate lines."""
    is_test = name == test or function.name.startswith("test")
    if is_test or function.body[0].lineno == function.lineno:
        return False
    return not has_any((ast.Yield, ast.YieldFrom), ast.walk(function))
