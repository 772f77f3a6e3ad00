"""A flat file for an entrypoint, from the codebase's sources and a trace of the original run."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gistpoint.core.errors import UserError
from gistpoint.core.gist.blocks import Block, find_test
from gistpoint.core.gist.reference.extraction import Extractor
from gistpoint.core.gist.reference.flat_names import flat_names
from gistpoint.core.gist.reference.modules import ModuleCode, Unit, modules_of
from gistpoint.core.gist.reference.rendering import Renderer
from gistpoint.core.gist.reference.trace import Trace


class Breadth(StrEnum):
    """How much an extraction takes."""

    NEEDED = "needed"
    """What the entrypoint reaches by the names on lines that ran, and every function that the run called."""
    WITH_IMPORTS = "with_imports"
    """That, and every import from elsewhere that ran: some are there for what they load."""
    EVERYTHING = "everything"
    """Every statement that ran at the top level of the codebase's modules."""


class NoReferenceError(UserError):
    """A reference gist can't be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Codebase:
    """What an extraction starts from: sources by path, the trace of the command, and the names it may not import."""

    sources: Mapping[str, str]
    trace: Trace
    owned: frozenset[str]


def flat_gist(codebase: Codebase, path: str, qualname: str, breadth: Breadth) -> str:
    """Return a flat file for the test `qualname` of `path`, or for the program at `path` where `qualname` is empty.

    Raises NoReferenceError where the trace does not have the file.
    """
    trace = codebase.trace
    modules = modules_of(codebase.sources, trace)
    home = next((module for module in modules.values() if module.path == path), None)
    if home is None:
        raise NoReferenceError(f"The trace has no {path}.", hint="Trace the command that the task names.")
    extractor = Extractor(modules, trace, codebase.owned)
    hooks = {module.path for module in modules.values() if module.path.rpartition("/")[2] == "conftest.py"}
    roots = extractor.ran_functions(hooks_of=hooks)
    test = find_test(home.tree, qualname) if qualname else None
    if qualname:
        roots += _test_units(home, qualname, test)
    else:
        roots += [unit for unit in home.units if not isinstance(unit.statement, ast.Import | ast.ImportFrom)]
    wide = [name for name, module in modules.items() if breadth is Breadth.EVERYTHING and _is_package(module, codebase)]
    selection = extractor.select(roots, everything_in=wide)
    pinned = [
        use
        for use in selection.uses
        if test is not None and use.unit.module is home and test.first <= use.site.line <= test.last
    ]
    taken = {node.id for module in modules.values() for node in ast.walk(module.tree) if isinstance(node, ast.Name)}
    names = flat_names(selection, pinned, taken)
    dropped = _other_tests(home, selection.units, test, trace)
    return Renderer(extractor, selection, names, dropped, all_imports=breadth is not Breadth.NEEDED).text()


def _is_package(module: ModuleCode, codebase: Codebase) -> bool:
    return module.name.partition(".")[0] in codebase.owned and "test" not in module.name.rpartition(".")[2]


def _test_units(home: ModuleCode, qualname: str, test: Block | None) -> list[Unit]:
    if test is None:
        raise NoReferenceError(f"{home.path} has no test {qualname!r}.", hint="Tests made at run time have none.")
    wanted = {test.name.partition(".")[0], qualname.partition(".")[0], "pytestmark", "pytest_plugins"}
    return [unit for unit in home.units if unit.binds & wanted]


def _other_tests(home: ModuleCode, units: Collection[Unit], test: Block | None, trace: Trace) -> list[ast.stmt]:
    """Return the methods of test classes that did not run."""
    ran = trace.lines.get(home.path, frozenset())
    found: list[ast.stmt] = []
    for unit in units:
        if test is None or unit.module is not home or not isinstance(unit.statement, ast.ClassDef):
            continue
        for method in unit.statement.body:
            if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method.name.startswith("test"):
                body = range(method.body[0].lineno, (method.end_lineno or 0) + 1)
                if method.lineno != test.statements[0].lineno and not any(line in ran for line in body):
                    found.append(method)
    return found
