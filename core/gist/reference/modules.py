"""Modules as an extractor sees them: the statements that ran at the top level, and what each of them binds."""

from __future__ import annotations

import ast
import math
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from gistpoint.core.code.parsing import parse
from gistpoint.core.gist.lines import children
from gistpoint.core.gist.reference.global_names import Site, global_sites
from gistpoint.core.gist.reference.trace import Trace


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
