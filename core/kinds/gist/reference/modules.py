"""Modules and their global names as an extractor sees them."""

from __future__ import annotations

import ast
import dis
import math
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType

from gistpoint.core.code.parsing import compile_module, parse
from gistpoint.core.kinds.gist.lines import children, physical_lines
from gistpoint.core.kinds.gist.reference.trace import Trace


@dataclass(slots=True)
class Unit:
    """A statement at the top level of a module, or in an arm of an `if` or `try` there that ran."""

    module: ModuleCode
    statement: ast.stmt
    first: int
    last: int
    rank: float
    """Its place in the order in which the interpreter was done with the statements of all modules."""
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
    tree: ast.Module
    units: list[Unit] = field(default_factory=list)

    @property
    def is_package(self) -> bool:
        """Whether relative imports of it start at itself."""
        return self.path.endswith("__init__.py")

    def absolute(self, module: str | None, level: int) -> str:
        """Return the absolute name of the module of a `from` import in here."""
        if not level:
            return module or ""
        parts = self.name.split(".")
        base = parts[: len(parts) - level + self.is_package]
        return ".".join([*base, *([module] if module else [])])


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
        module = ModuleCode(path, trace.modules[path], sources[path], tree)
        module.units.extend(_units(module, tree.body, trace))
        _attribute_sites(module)
        found[module.name] = module
    return found


def first_line(statement: ast.stmt) -> int:
    """Return the first physical line of a statement, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _units(module: ModuleCode, statements: list[ast.stmt], trace: Trace) -> Iterator[Unit]:
    lines = trace.lines.get(module.path, frozenset())
    for statement in statements:
        first, last = first_line(statement), statement.end_lineno or statement.lineno
        ran = lines & set(range(first, last + 1))
        if not ran or _only_forgets(statement):
            continue
        if isinstance(statement, ast.If):
            arms = [arm for arm in (statement.body, statement.orelse) if _ran(arm, lines)]
            for arm in arms:
                yield from _units(module, arm, trace)
            continue
        handled = isinstance(statement, ast.Try) and any(_ran(h.body, lines) for h in statement.handlers)
        if isinstance(statement, ast.Try) and not handled:
            yield from _units(module, [*statement.body, *statement.orelse, *statement.finalbody], trace)
            continue
        ranks = [trace.order[module.path, line] for line in ran if (module.path, line) in trace.order]
        if ranks:
            yield Unit(module, statement, first, last, _done(module.path, max(ranks), ran, trace))


def _only_forgets(statement: ast.stmt) -> bool:
    """Whether a statement only unbinds names: in a flat file another module may need them still."""
    return isinstance(statement, ast.Delete) and all(isinstance(target, ast.Name) for target in statement.targets)


def _done(path: str, last: int, own: Collection[int], trace: Trace) -> float:
    """Return the rank of what the module ran next: by then the statement, and all that it imported, was done."""
    following = bisect_right(trace.module_ranks[path], (last, 0))
    for rank, line in trace.module_ranks[path][following:]:
        if line not in own:
            return rank
    return math.inf


def _ran(statements: list[ast.stmt], lines: frozenset[int]) -> bool:
    return any(line in lines for s in statements for line in range(first_line(s), (s.end_lineno or s.lineno) + 1))


def _attribute_sites(module: ModuleCode) -> None:
    sites = global_sites(module.source, module.tree, module.path)
    for unit in module.units:
        first = (unit.first, 0 if unit.first < unit.statement.lineno else unit.statement.col_offset)
        last = (unit.last, unit.statement.end_col_offset or 0)
        unit.sites = [site for site in sites if first <= (site.line, site.column) < last]
        unit.binds = {site.name for site in unit.sites if site.stores and not site.in_function}
        unit.binds |= _bound(unit.statement)


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.ImportFrom):
        return {alias.asname or alias.name for alias in statement.names}
    return {name for child in children(statement) for name in _bound(child)}


@dataclass(frozen=True, slots=True)
class Site:
    """One name in the source that means a global of the module."""

    name: str
    line: int
    column: int
    """In code points."""
    stores: bool
    in_function: bool
    chain: tuple[str, ...] = ()
    """Attributes that follow it: `a.b.c` is the name `a` with the chain b, c."""
    chain_ends: tuple[tuple[int, int], ...] = ()
    """Line and column behind each attribute of the chain."""
    statement_form: bool = False
    """Whether it is a name in a `global` statement."""


def global_sites(source: str, tree: ast.Module, path: str) -> list[Site]:
    """Return all sites of a module, in source order.

    Scopes are taken from the compiled code; names that a function imports from anywhere count as its own here.
    Code that the compiler drops has no sites.
    """
    places = _places(compile_module(source, path))
    lines = physical_lines(source)
    found: list[Site] = []
    for node, chain, in_function in _names(tree, (), False):
        if isinstance(node, ast.Global):
            for name in node.names:
                column = _word(lines[node.lineno - 1], name)
                found.append(Site(name, node.lineno, column, True, True, statement_form=True))
        elif (node.lineno, node.col_offset, node.id) in places:
            column = _column(lines, node.lineno, node.col_offset)
            ends = tuple(
                (a.end_lineno or a.lineno, _column(lines, a.end_lineno or a.lineno, a.end_col_offset or 0))
                for a in chain
            )
            stores = not isinstance(node.ctx, ast.Load)
            found.append(Site(node.id, node.lineno, column, stores, in_function, tuple(a.attr for a in chain), ends))
    return sorted(found, key=lambda site: (site.line, site.column))


def _places(code: CodeType, *, is_class: bool = False) -> set[tuple[int, int, str]]:
    """Return (line, byte column, name) of every name in the code, and in all code within it, that is a global."""
    found: set[tuple[int, int, str]] = set()
    own: set[str] = set()
    module = code.co_name == "<module>"
    for instruction in dis.get_instructions(code):
        position = instruction.positions
        name = instruction.opname
        if isinstance(instruction.argval, CodeType):
            found |= _places(instruction.argval, is_class=not instruction.argval.co_flags & 0x2)
        argument = instruction.argval
        if not isinstance(argument, str) or position is None or position.lineno is None or position.col_offset is None:
            continue
        by_name = name in ("LOAD_NAME", "STORE_NAME", "DELETE_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
        if is_class and not module and name == "STORE_NAME":
            own.add(argument)
        elif name in ("LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL") or (by_name and argument not in own):
            found.add((position.lineno, position.col_offset, argument))
    return found


def _names(
    node: ast.AST, chain: tuple[ast.Attribute, ...], in_function: bool
) -> Iterator[tuple[ast.Name | ast.Global, tuple[ast.Attribute, ...], bool]]:
    if isinstance(node, ast.Attribute):
        yield from _names(node.value, (node, *chain), in_function)
        return
    if isinstance(node, ast.Name):
        yield node, chain, in_function
        return
    if isinstance(node, ast.Global):
        yield node, (), True
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        inner = node.body if isinstance(node.body, list) else [node.body]
        for child in ast.iter_child_nodes(node):
            yield from _names(child, (), in_function or child in inner)
        return
    for child in ast.iter_child_nodes(node):
        yield from _names(child, (), in_function)


def _column(lines: list[str], line: int, byte_column: int) -> int:
    text = lines[line - 1]
    return byte_column if text.isascii() else len(text.encode()[:byte_column].decode())


def _word(line: str, name: str) -> int:
    for column in range(len(line)):
        behind = column + len(name)
        if line.startswith(name, column) and not (line[column - 1 : column] + line[behind : behind + 1]).strip(" ,;"):
            return column
    return 0
