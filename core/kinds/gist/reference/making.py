"""Making a reference gist: extract, try, widen if it fails, reduce if it holds."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gistpoint.core.code.parsing import parse
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.gist.lines import (
    LineBlock,
    bodies_in,
    find_test,
    import_texts,
    last_line,
    physical_lines,
)
from gistpoint.core.kinds.gist.original_test import imports_owned
from gistpoint.core.kinds.gist.reference.extraction import Extractor
from gistpoint.core.kinds.gist.reference.flat_names import flat_names
from gistpoint.core.kinds.gist.reference.modules import Codebase, ModuleCode, Unit, modules_of
from gistpoint.core.kinds.gist.reference.reduction import Oracle, Reducer
from gistpoint.core.kinds.gist.reference.rendering import Renderer
from gistpoint.core.kinds.gist.trace import Trace

_MODULE_NAMES = frozenset({"__name__", "__file__", "__doc__", "__spec__", "__loader__", "__package__", "__builtins__"})


def undefined_names(text: str) -> tuple[tuple[int, str], ...]:
    """Return the first line (from 1) and the name of each global that is used but never bound, in source order.

    Empty for a text that does not parse, or that has a star import. `del` and order are not followed.
    """
    try:
        tree = parse(text)
        module = symtable.symtable(text, "gist", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return ()
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)):
        return ()
    tables = list(_tables(module))
    bound = {
        symbol.get_name()
        for table in tables
        for symbol in table.get_symbols()
        if (table is module or symbol.is_declared_global())
        and (symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace())
    }
    used = {
        symbol.get_name()
        for table in tables
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (symbol.is_global() if table is not module else True)
    }
    missing = used - bound - _MODULE_NAMES - set(dir(builtins))
    first: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in missing:
            first[node.id] = min(node.lineno, first.get(node.id, node.lineno))
    return tuple(sorted((line, name) for name, line in first.items()))


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def pasted(sources: Mapping[str, str], trace: Trace, owned: Collection[str]) -> str:
    """Return every module that ran, in the order in which they finished, without imports of the codebase.

    `from __future__` imports come first, once each, as they must.
    """
    ends = {path: ranks[-1][0] for path, ranks in trace.module_ranks.items()}
    future: dict[str, None] = {}
    parts: list[str] = []
    for path in sorted((path for path in trace.files if path in sources), key=lambda path: ends.get(path, 0)):
        parts.append(_without_owned(sources[path], owned, future))
    return "\n".join([*future, *parts]) + "\n"


def _without_owned(source: str, owned: Collection[str], future: dict[str, None]) -> str:
    lines = physical_lines(source)
    blocks: dict[ast.stmt, list[ast.stmt]] = {}
    tree = parse(source)
    for block in bodies_in(tree):
        blocks.update(dict.fromkeys(block, block))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        texts = import_texts(node)
        of_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        kept = [] if of_future else [text for text in texts if not imports_owned(text, owned)]
        if of_future:
            future.update(dict.fromkeys(texts))
        if len(kept) == len(texts):
            continue
        margin = lines[node.lineno - 1][: node.col_offset]
        if margin.strip():
            continue
        alone = node not in tree.body and blocks[node][0] is node and all(_goes(one, owned) for one in blocks[node])
        lines[node.lineno - 1] = ("; ".join(kept) and margin + "; ".join(kept)) or (margin + "pass" if alone else "")
        for number in range(node.lineno, last_line(node)):
            lines[number] = ""
    return "\n".join(lines)


def _goes(statement: ast.stmt, owned: Collection[str]) -> bool:
    """Whether a statement is dropped completely."""
    if not isinstance(statement, ast.Import | ast.ImportFrom):
        return False
    return all(imports_owned(text, owned) for text in import_texts(statement))


class Breadth(StrEnum):
    """How much an extraction takes."""

    NEEDED = "needed"
    """The statements reached by names on lines that ran, and every function that the run called."""
    BARE = "bare"
    """The same without statements that act on something needed: they may be there for other tests, and fail here."""
    WITH_IMPORTS = "with_imports"
    """What is needed, and every external import that ran: some are there for what they load."""
    WITH_NAMES = "with_names"
    """In addition `__name__` is that of the original module while its statements run: loggers and classes bear it."""
    EVERYTHING = "everything"
    """Every statement that ran at the top level of the codebase's modules; what asks for one of these modules by a name
    in a string gets the gist.
    """
    EVERYTHING_BARE = "everything_bare"
    """The same without statements of the tests that act on something needed."""
    EVERYTHING_WITH_NAMES = "everything_with_names"
    """Everything, under the names of the modules."""

    @property
    def is_everything(self) -> bool:
        """Whether it takes more than what names lead to."""
        return self in (Breadth.EVERYTHING, Breadth.EVERYTHING_BARE, Breadth.EVERYTHING_WITH_NAMES)

    @property
    def is_bare(self) -> bool:
        """Whether statements that act on something needed are left out, unless they are part of everything."""
        return self in (Breadth.BARE, Breadth.EVERYTHING_BARE)

    @property
    def keeps_names(self) -> bool:
        """Whether statements run under the name of their module."""
        return self in (Breadth.WITH_NAMES, Breadth.EVERYTHING_WITH_NAMES)


class NoReferenceError(UserError):
    """A reference gist can't be made; the message says why."""


def flat_gist(codebase: Codebase, path: str, qualname: str, breadth: Breadth) -> str:
    """Return a flat file for the test `qualname` of `path`, or for the program at `path` if `qualname` is empty.

    Raises NoReferenceError if the trace does not have the file.
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
    wide = [name for name, module in modules.items() if breadth.is_everything and _is_package(module, codebase)]
    selection = extractor.select(roots, everything_in=wide, side_effects=not breadth.is_bare)
    pinned = [
        use
        for use in selection.uses
        if test is not None and use.unit.module is home and test.first <= use.site.line <= test.last
    ]
    taken = {node.id for module in modules.values() for node in ast.walk(module.tree) if isinstance(node, ast.Name)}
    names = flat_names(selection, pinned, taken, module_names=breadth.keeps_names)
    renderer = Renderer(
        extractor,
        selection,
        names,
        _other_tests(home, selection.units, test, trace),
        all_imports=breadth not in (Breadth.NEEDED, Breadth.BARE),
        by_name=breadth.is_everything,
        home=home.name,
        test=range(test.first, test.last + 1) if test is not None else range(0),
    )
    return renderer.text()


def _is_package(module: ModuleCode, codebase: Codebase) -> bool:
    return module.name.partition(".")[0] in codebase.owned and "test" not in module.name.rpartition(".")[2]


def _test_units(home: ModuleCode, qualname: str, test: LineBlock | None) -> list[Unit]:
    if test is None:
        raise NoReferenceError(f"{home.path} has no test {qualname!r}.", hint="Tests made at run time have none.")
    wanted = {test.name.partition(".")[0], qualname.partition(".")[0], "pytestmark", "pytest_plugins"}
    return [unit for unit in home.units if unit.binds & wanted]


def _other_tests(home: ModuleCode, units: Collection[Unit], test: LineBlock | None, trace: Trace) -> list[ast.stmt]:
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


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference gist; `how` is the breadth of the extraction that was faithful, `reason` says why none was."""

    text: str
    faithful: bool
    how: str = ""
    executed: frozenset[int] = frozenset()
    reason: str = ""


def make_reference(
    codebase: Codebase, path: str, qualname: str, oracle: Oracle, *, out_of_time: Callable[[], bool]
) -> Reference:
    """Return the smallest faithful gist found before `out_of_time`, or the first one tried, with a reason."""
    first = ""
    tried = set[str]()
    for breadth in Breadth:
        text = flat_gist(codebase, path, qualname, breadth)
        if text in tried:
            continue
        tried.add(text)
        verdict = oracle(text)
        if verdict.holds:
            text, verdict = Reducer(oracle, out_of_time, qualname).reduce(text, verdict)
            return Reference(text, True, breadth, verdict.executed)
        first = first or text
    return Reference(first, False, reason="No extraction is faithful.")
