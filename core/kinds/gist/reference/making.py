"""Makes a reference gist: extracts code, tries it, extracts more if it fails, and reduces a faithful gist."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gistpoint.core.code.nodes import inside
from gistpoint.core.code.parsing import parse
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.gist.lines import (
    LineBlock,
    bodies_in,
    find_test,
    import_texts,
    last_line,
    type_of_function,
)
from gistpoint.core.kinds.gist.original_test import imports_owned
from gistpoint.core.kinds.gist.reference.extraction import Extractor
from gistpoint.core.kinds.gist.reference.flat_names import flat_names
from gistpoint.core.kinds.gist.reference.modules import Codebase, ModuleCode, Unit, modules_of
from gistpoint.core.kinds.gist.reference.reduction import Oracle, Reducer
from gistpoint.core.kinds.gist.reference.rendering import Renderer
from gistpoint.core.kinds.gist.trace import Trace

_MODULE_NAMES = frozenset(
    {"__name__", "__file__", "__doc__", "__spec__", "__loader__", "__package__", "__builtins__"}
)


def undefined_names(text: str) -> tuple[tuple[int, str], ...]:
    """Return the globals that are used but never bound, as pairs of first line and name, in source order.

    Empty for code that does not parse, or that has a star import. `del` and order are not followed.
    """
    try:
        tree = parse(text)
        module = symtable.symtable(text, "gist", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return ()
    places: dict[str, int] = {}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(names=[ast.alias(name="*"), *_]):
                return ()
            case ast.Name(id=name, lineno=line):
                places[name] = min(line, places.get(name, line))
    bound = set[str]()
    used = set[str]()
    for table in _tables(module):
        for symbol in table.get_symbols():
            if _binds_global(symbol, in_module=table is module):
                bound.add(symbol.get_name())
            is_global = table is module or symbol.is_global()
            if is_global and symbol.is_referenced():
                used.add(symbol.get_name())
    missing = used - bound - _MODULE_NAMES - set(dir(builtins))
    return tuple(sorted((places[name], name) for name in missing & places.keys()))


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _binds_global(symbol: symtable.Symbol, *, in_module: bool) -> bool:
    if not in_module and not symbol.is_declared_global():
        return False
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


def pasted(sources: Mapping[str, str], trace: Trace, owned: Collection[str]) -> str:
    """Return the text of all modules that ran, in the order in which they ended, without imports of `owned`.

    `from __future__` imports come first, once each, as Python requires.
    """
    ends = {path: ranks[-1][0] for path, ranks in trace.module_ranks.items()}
    future: dict[str, None] = {}
    parts: list[str] = []
    paths = [path for path in trace.files if path in sources]
    for path in sorted(paths, key=lambda path: ends.get(path, 0)):
        parts.append(_without_owned(sources[path], owned, future))
    return "\n".join([*future, *parts]) + "\n"


def _without_owned(source: str, owned: Collection[str], future: dict[str, None]) -> str:
    """Return a module without imports of the codebase; `__future__` imports are moved into `future`."""
    lines = physical_lines(source)
    tree = parse(source)
    inner = [body for body in bodies_in(tree) if body is not tree.body]
    emptied = {body[0] for body in inner if _all_go(body, owned)}
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in imports:
        texts = import_texts(node)
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            future.update(dict.fromkeys(texts))
            kept = []
        else:
            kept = [text for text in texts if not imports_owned(text, owned)]
        margin = lines[node.lineno - 1][: node.col_offset]
        follows_another = margin.strip() != ""
        if follows_another or len(kept) == len(texts):
            continue
        # A body that loses all of its statements needs a new one.
        if node in emptied:
            kept = ["pass"]
        blank = [""] * (last_line(node) - node.lineno)
        lines[node.lineno - 1 : last_line(node)] = [_on_one_line(margin, kept), *blank]
    return "\n".join(lines)


def _on_one_line(margin: str, statements: list[str]) -> str:
    if not statements:
        return ""
    return margin + "; ".join(statements)


def _all_go(body: list[ast.stmt], owned: Collection[str]) -> bool:
    """Return whether every statement of a body is removed completely."""
    texts = list[str]()
    for statement in body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            return False
        texts += import_texts(statement)
    return all(imports_owned(text, owned) for text in texts)


class Breadth(StrEnum):
    """The amount of code that an extraction includes."""

    NEEDED = "needed"
    """The statements reached by names on lines that ran, and every function that the run called."""
    BARE = "bare"
    """As `NEEDED`, without statements that act on something needed: perhaps only other tests need them."""
    WITH_IMPORTS = "with_imports"
    """The needed statements and every external import that ran: some are needed for their side effects."""
    WITH_NAMES = "with_names"
    """As `WITH_IMPORTS`; in addition, `__name__` names the original module while its statements run.

    Loggers and classes contain this name.
    """
    EVERYTHING = "everything"
    """Every statement that ran at the top level of the codebase's modules.

    Code that looks up one of these modules by a name in a string gets the gist.
    """
    EVERYTHING_BARE = "everything_bare"
    """The same as `EVERYTHING`, without statements of the tests that act on something needed."""
    EVERYTHING_WITH_NAMES = "everything_with_names"
    """As `EVERYTHING`, with the names of the original modules as in `WITH_NAMES`."""

    @property
    def is_everything(self) -> bool:
        """Whether the extraction includes code that ran in the packages without being reached by names."""
        return self in (Breadth.EVERYTHING, Breadth.EVERYTHING_BARE, Breadth.EVERYTHING_WITH_NAMES)

    @property
    def is_bare(self) -> bool:
        """Whether statements that act on something needed are left out.

        With `EVERYTHING_BARE`, only such statements of the tests are left out.
        """
        return self in (Breadth.BARE, Breadth.EVERYTHING_BARE)

    @property
    def keeps_names(self) -> bool:
        """Whether statements run under the name of their module."""
        return self in (Breadth.WITH_NAMES, Breadth.EVERYTHING_WITH_NAMES)


class NoReferenceError(UserError):
    """The error for a reference gist that can't be made; the message contains the reason."""


def flat_gist(codebase: Codebase, path: str, qualname: str, breadth: Breadth) -> str:
    """Return a flat file for the test `qualname` of `path`, or without `qualname` for the program at `path`.

    Raises NoReferenceError if the trace does not have the file, or the file does not have the test, and
    SyntaxError or RecursionError if a module can't be compiled.
    """
    trace = codebase.trace
    modules = modules_of(codebase.sources, trace)
    home = next((module for module in modules.values() if module.path == path), None)
    if home is None:
        raise NoReferenceError(f"The trace has no {path}.", hint="Trace the command that the task names.")
    test = find_test(home.tree, qualname) if qualname else None
    test_lines = range(test.first, test.last + 1) if test is not None else range(0)
    extractor = Extractor(modules, trace, codebase.owned, keeps_names=breadth.keeps_names)
    selection = extractor.select(
        _roots(extractor, home, qualname, test),
        everything_in=_packages(modules, codebase) if breadth.is_everything else (),
        side_effects=not breadth.is_bare,
    )
    # The test is never changed, so the names that it uses are decided first (decision 19).
    pinned = [use for use in selection.uses if use.unit.module is home and use.site.line in test_lines]
    names = flat_names(selection, pinned, _names_taken(modules), module_names=breadth.keeps_names)
    renderer = Renderer(
        extractor,
        selection,
        names,
        _other_tests(home, selection.units, test, trace),
        all_imports=breadth not in (Breadth.NEEDED, Breadth.BARE),
        by_name=breadth.is_everything,
        home=home.name,
        test=test_lines,
    )
    return renderer.text()


def _is_package(module: ModuleCode, codebase: Codebase) -> bool:
    return module.name.partition(".")[0] in codebase.owned and "test" not in module.name.rpartition(".")[2]


def _test_units(home: ModuleCode, qualname: str, test: LineBlock | None) -> list[Unit]:
    if test is None:
        raise NoReferenceError(
            f"{home.path} has no test {qualname!r}.", hint="Tests made at run time have none."
        )
    wanted = {test.name.partition(".")[0], qualname.partition(".")[0], "pytestmark", "pytest_plugins"}
    return [unit for unit in home.units if unit.binds & wanted]


def _roots(extractor: Extractor, home: ModuleCode, qualname: str, test: LineBlock | None) -> list[Unit]:
    """Return the roots of an extraction: the functions that the run called, and the test or program."""
    paths = [module.path for module in extractor.modules.values()]
    hooks = {path for path in paths if path.rpartition("/")[2] == "conftest.py"}
    called = extractor.ran_functions(hooks_of=hooks)
    if qualname:
        return called + _test_units(home, qualname, test)
    return called + [
        unit for unit in home.units if not isinstance(unit.statement, ast.Import | ast.ImportFrom)
    ]


def _packages(modules: Mapping[str, ModuleCode], codebase: Codebase) -> list[str]:
    """Return the modules of the codebase's own packages, without those of tests."""
    return [name for name, module in modules.items() if _is_package(module, codebase)]


def _names_taken(modules: Mapping[str, ModuleCode]) -> set[str]:
    """Return every name in the modules; aliases must have other names."""
    found = set[str]()
    for module in modules.values():
        found.update(node.id for node in inside(ast.Name, module.tree))
    return found


def _other_tests(
    home: ModuleCode, units: Collection[Unit], test: LineBlock | None, trace: Trace
) -> list[ast.stmt]:
    """Return the test methods, in classes of `home`, that did not run; empty for a program."""
    if test is None:
        return []
    ran = trace.lines.get(home.path, frozenset())
    found: list[ast.stmt] = []
    for unit in units:
        if unit.module is not home or not isinstance(unit.statement, ast.ClassDef):
            continue
        for method in unit.statement.body:
            if not isinstance(method, type_of_function) or not method.name.startswith("test"):
                continue
            body = range(method.body[0].lineno, last_line(method) + 1)
            is_the_test = method.lineno == test.statements[0].lineno
            if not is_the_test and ran.isdisjoint(body):
                found.append(method)
    return found


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference gist; `how` is the breadth of a faithful extraction, and `reason` why there is none."""

    text: str
    faithful: bool
    how: str = ""
    executed: frozenset[int] = frozenset()
    reason: str = ""


def make_reference(
    codebase: Codebase, path: str, qualname: str, oracle: Oracle, *, out_of_time: Callable[[], bool]
) -> Reference:
    """Return the smallest faithful gist found before `out_of_time`, or else the first gist tried.

    Raises NoReferenceError, SyntaxError or RecursionError if no flat file can be made, and any error that the
    oracle raises.
    """
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
    return Reference(first, False, reason="None of the extractions is faithful.")
