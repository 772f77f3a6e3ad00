"""Modules and their global names for an extractor."""

from __future__ import annotations

import ast
import dis
import math
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType

from gistpoint.core.code.bindings import bound_names
from gistpoint.core.code.parsing import DefinitionNode, compile_module, first_line, parse
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.kinds.gist.lines import children, column_of, last_line
from gistpoint.core.kinds.gist.trace import Trace


@dataclass(frozen=True, slots=True)
class Codebase:
    """The input of an extraction: sources by path, the trace of the command, and the names not to import."""

    sources: Mapping[str, str]
    trace: Trace
    owned: frozenset[str]


@dataclass(slots=True)
class Unit:
    """A statement at the top level of a module, or in an executed arm of an `if` or `try` there."""

    module: ModuleCode
    statement: ast.stmt
    first: int
    last: int
    rank: float
    """The unit's rank in the order in which the interpreter finished the statements of all modules."""
    binds: set[str] = field(default_factory=set)
    sites: list[Site] = field(default_factory=list)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


@dataclass(slots=True)
class ModuleCode:
    """A module that ran, with its units in source order."""

    path: str
    name: str
    source: str
    lines: list[str]
    """Its physical lines."""
    tree: ast.Module
    units: list[Unit] = field(default_factory=list)

    @property
    def is_package(self) -> bool:
        """Whether relative imports start at the module itself."""
        return self.path.endswith("__init__.py")

    def columns(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        """Return the columns at which a node begins and ends, in code points."""
        first = self.lines[node.lineno - 1]
        last = self.lines[last_line(node) - 1]
        return column_of(first, node.col_offset), column_of(last, node.end_col_offset or 0)

    def site(self, node: ast.Name, chain: tuple[ast.Attribute, ...], *, in_function: bool) -> Site:
        """Return the site of a name, with the attributes that follow it."""
        ends = tuple((last_line(one), self.columns(one)[1]) for one in chain)
        stores = not isinstance(node.ctx, ast.Load)
        attributes = tuple(one.attr for one in chain)
        return Site(node.id, node.lineno, self.columns(node)[0], stores, in_function, attributes, ends)

    def absolute(self, module: str | None, level: int) -> str:
        """Return the absolute name of the module that a `from` import in this module names."""
        if not level:
            return module or ""
        parts = self.name.split(".")
        base = parts[: len(parts) - level + self.is_package]
        if module:
            base.append(module)
        return ".".join(base)


def modules_of(sources: Mapping[str, str], trace: Trace) -> dict[str, ModuleCode]:
    """Return the modules of the trace that parse, by name."""
    found: dict[str, ModuleCode] = {}
    for path in trace.files:
        if path not in sources or path not in trace.modules:
            continue
        try:
            tree = parse(sources[path])
        except (SyntaxError, ValueError):
            continue
        module = ModuleCode(path, trace.modules[path], sources[path], physical_lines(sources[path]), tree)
        module.units.extend(_units(module, tree.body, trace))
        _attribute_sites(module)
        found[module.name] = module
    return found


def _units(module: ModuleCode, statements: list[ast.stmt], trace: Trace) -> Iterator[Unit]:
    lines = trace.lines.get(module.path, frozenset())
    for statement in statements:
        first = first_line(statement)
        last = last_line(statement)
        ran = lines & set(range(first, last + 1))
        if not ran or _only_forgets(statement):
            continue
        arms = _arms_that_ran(statement, lines)
        if arms is not None:
            for arm in arms:
                yield from _units(module, arm, trace)
            continue
        ranks = [trace.order[module.path, line] for line in ran if (module.path, line) in trace.order]
        if ranks:
            yield Unit(module, statement, first, last, _rank_when_done(module.path, max(ranks), ran, trace))


def _only_forgets(statement: ast.stmt) -> bool:
    """Return whether a statement only unbinds names, which another module may still need in a flat file."""
    return isinstance(statement, ast.Delete) and all(
        isinstance(target, ast.Name) for target in statement.targets
    )


def _rank_when_done(path: str, last: int, own: Collection[int], trace: Trace) -> float:
    """Return the rank of the module's next line, by which the statement was done; infinite without one."""
    following = bisect_right(trace.module_ranks[path], (last, 0))
    for rank, line in trace.module_ranks[path][following:]:
        if line not in own:
            return rank
    return math.inf


def _arms_that_ran(statement: ast.stmt, lines: frozenset[int]) -> list[list[ast.stmt]] | None:
    """Return the executed arms of an `if`, or the parts of a `try` if no handler ran.

    None for any other statement, which is one unit.
    """
    match statement:
        case ast.If(body=body, orelse=orelse):
            return [arm for arm in (body, orelse) if _ran(arm, lines)]
        case ast.Try(handlers=handlers) | ast.TryStar(handlers=handlers) if not any(
            _ran(handler.body, lines) for handler in handlers
        ):
            return [[*statement.body, *statement.orelse, *statement.finalbody]]
        case _:
            return None


def _ran(statements: list[ast.stmt], lines: frozenset[int]) -> bool:
    spans = (range(first_line(one), last_line(one) + 1) for one in statements)
    return not all(map(lines.isdisjoint, spans))


def _attribute_sites(module: ModuleCode) -> None:
    sites = global_sites(module)
    for unit in module.units:
        start, end = module.columns(unit.statement)
        first = (unit.first, 0 if unit.first < unit.statement.lineno else start)
        last = (unit.last, end)
        unit.sites = [site for site in sites if first <= (site.line, site.column) < last]
        unit.binds = {site.name for site in unit.sites if site.stores and not site.in_function}
        unit.binds |= _bound(unit.statement)


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, DefinitionNode | ast.Import | ast.ImportFrom):
        return set(bound_names(statement))
    return set[str]().union(*map(_bound, children(statement)))


@dataclass(frozen=True, slots=True)
class Site:
    """One name in the source that refers to a global of the module."""

    name: str
    line: int
    column: int
    """The column in code points."""
    stores: bool
    in_function: bool
    chain: tuple[str, ...] = ()
    """The attributes that follow: `a.b.c` is the name `a` with the chain b, c."""
    chain_ends: tuple[tuple[int, int], ...] = ()
    """The line and column after each attribute of the chain."""
    statement_form: bool = False
    """Whether it is a name in a `global` statement."""


def global_sites(module: ModuleCode) -> list[Site]:
    """Return all sites of a module, in source order.

    Scopes are taken from the compiled code; names that a function imports, from anywhere, count as locals.
    Code that the compiler drops has no sites.
    """
    places = _places_of_globals(compile_module(module.source, module.path))
    found: list[Site] = []
    for node, chain, in_function in names_in(module.tree):
        if isinstance(node, ast.Global):
            for name in node.names:
                column = _word(module.lines[node.lineno - 1], name)
                found.append(Site(name, node.lineno, column, True, True, statement_form=True))
        elif (node.lineno, node.col_offset, node.id) in places:
            found.append(module.site(node, chain, in_function=in_function))
    return sorted(found, key=lambda site: (site.line, site.column))


_GLOBAL = frozenset({"LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL"})


_BY_NAME = frozenset({"LOAD_NAME", "STORE_NAME", "DELETE_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})


def _places_of_globals(code: CodeType, *, is_class: bool = False) -> set[tuple[int, int, str]]:
    """Return (line, byte column, name) of every global name in the code, and in all code within it."""
    found: set[tuple[int, int, str]] = set()
    own: set[str] = set()
    for instruction in dis.get_instructions(code):
        argument = instruction.argval
        if isinstance(argument, CodeType):
            found |= _places_of_globals(argument, is_class=not argument.co_flags & 0x2)
        position = instruction.positions
        if not isinstance(argument, str) or position is None:
            continue
        line = position.lineno
        column = position.col_offset
        if line is None or column is None:
            continue
        name = instruction.opname
        by_name = name in _BY_NAME and argument not in own
        # From the statement that binds it on, a name in a class body is the class's own, not the module's.
        is_in_class = is_class and code.co_name != "<module>"
        if is_in_class and name == "STORE_NAME":
            own.add(argument)
        elif name in _GLOBAL or by_name:
            found.add((line, column, argument))
    return found


def names_in(
    node: ast.AST, chain: tuple[ast.Attribute, ...] = (), in_function: bool = False
) -> Iterator[tuple[ast.Name | ast.Global, tuple[ast.Attribute, ...], bool]]:
    """Yield the names at and below a node, each with its attributes and whether it is in a function."""
    inner: list[ast.AST] = []
    match node:
        case ast.Attribute():
            yield from names_in(node.value, (node, *chain), in_function)
            return
        case ast.Name():
            yield node, chain, in_function
            return
        case ast.Global():
            yield node, (), True
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            inner = [*node.body]
        case ast.Lambda():
            inner = [node.body]
    for child in ast.iter_child_nodes(node):
        yield from names_in(child, (), in_function or child in inner)


def _word(line: str, name: str) -> int:
    """Return the column at which a name is a word of a line; 0 if it is not."""
    for column in range(len(line)):
        behind = column + len(name)
        around = line[column - 1 : column] + line[behind : behind + 1]
        if line.startswith(name, column) and not around.strip(" ,;"):
            return column
    return 0
