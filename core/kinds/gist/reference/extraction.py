"""Which statements of a codebase a command needs: from its test, following the names read on lines that ran."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from gistpoint.core.code.parsing import parse
from gistpoint.core.kinds.gist.lines import first_line, last_line, lines_of_statement
from gistpoint.core.kinds.gist.reference.modules import ModuleCode, Site, Unit, names_in
from gistpoint.core.kinds.gist.trace import Trace

MODULE = "module"
EXTERNAL = "external"
DEFINED = "defined"
BUILTIN = "builtin"


@dataclass(frozen=True, slots=True)
class Entity:
    """The meaning of a name: a module of the codebase, an import from elsewhere, a definition of the codebase, or a
    builtin whose name a module of the codebase also defines.
    """

    kind: str
    module: str
    name: str
    """Of a definition or builtin, its name; of an external import, the statement; empty for a module."""

    @property
    def own_name(self) -> str:
        """The name that its definition gives it."""
        if self.kind == EXTERNAL:
            alias = _alias_of(self.name)
            return alias.asname or alias.name.partition(".")[0]
        return self.name


@cache
def _alias_of(text: str) -> ast.alias:
    statement = parse(text).body[0]
    assert isinstance(statement, ast.Import | ast.ImportFrom)
    return statement.names[0]


@dataclass(frozen=True, slots=True)
class Use:
    """A site and its meaning: the entity of the name, then of each attribute while these are modules."""

    unit: Unit
    site: Site
    entities: tuple[Entity, ...]


@dataclass(frozen=True, slots=True)
class LocalImport:
    """An import of the codebase within a function: the statement, the function, and the entity of each name."""

    statement: ast.Import | ast.ImportFrom
    function: ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class UnitSelection:
    """The units that are needed, with all uses on their lines that ran."""

    units: set[Unit] = field(default_factory=set)
    uses: list[Use] = field(default_factory=list)
    entities: dict[Entity, set[Unit]] = field(default_factory=dict)
    """The units that define each entity that is needed; none for modules."""


class Extractor:
    """Follows names through the modules of a trace; `owned` are the top-level names of the codebase."""

    def __init__(self, modules: Mapping[str, ModuleCode], trace: Trace, owned: Collection[str]) -> None:
        self.modules = modules
        self.trace = trace
        self.owned = frozenset(owned)
        self._ran = {module.name: _lines_that_ran(module, trace) for module in modules.values()}
        self._constants = _constants(modules)
        self._bound = {name for module in modules.values() for unit in module.units for name in unit.binds}
        self._repeated = {unit for alike in self._constants.values() for unit in alike[1:]}
        self._resolved: dict[tuple[str, str], Entity | None] = {}
        self._used: dict[Unit, list[Use]] = {}
        self._local: dict[Unit, list[LocalImport]] = {}

    def select(
        self, roots: Collection[Unit], *, everything_in: Collection[str] = (), side_effects: bool = True
    ) -> UnitSelection:
        """Return the units that `roots` need, and all units that ran of the modules named in `everything_in`.

        With `side_effects`, statements that may change something that is needed are needed as well.
        """
        selection = UnitSelection()
        pending = list(roots)
        pending += [unit for name in everything_in for unit in self.modules[name].units if not _is_import(unit)]
        while pending:
            while pending:
                unit = pending.pop()
                if unit not in self._repeated:
                    pending.extend(self._take(unit, selection))
            if side_effects:
                pending = [unit for unit in self._side_effects(selection) if unit not in selection.units]
        return selection

    def ran_functions(self, *, hooks_of: Collection[str]) -> list[Unit]:
        """Return the units that hold a function called by the run itself; pytest hooks in `hooks_of` are left out."""
        found: list[Unit] = []
        by_path = {module.path: module for module in self.modules.values()}
        for function in self.trace.functions:
            module = by_path.get(function.path)
            if not function.run or module is None or function.qualname == "<module>":
                continue
            if function.path in hooks_of and function.qualname.startswith("pytest_"):
                continue
            found.extend(u for u in module.units if u.first <= function.line <= u.last and not _is_import(u))
        return found

    def resolve(self, module: str, name: str) -> Entity | None:
        """Return the entity of `name` in `module` after its top level has run, None for a builtin or unknown."""
        key = (module, name)
        if key not in self._resolved:
            self._resolved[key] = None
            self._resolved[key] = self._look_up(module, name)
        return self._resolved[key]

    def _look_up(self, module_name: str, name: str) -> Entity | None:
        module = self.modules.get(module_name)
        if module is None:
            return None
        binding = [unit for unit in module.units if name in unit.binds]
        if binding:
            last = max(binding, key=lambda unit: (unit.rank, unit.first))
            statement = last.statement
            if isinstance(statement, ast.Import | ast.ImportFrom):
                return self.imported(module, statement, name)
            return self._first_alike(Entity(DEFINED, module_name, name), binding)
        for unit in reversed(module.units):
            statement = unit.statement
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                source = module.absolute(statement.module, statement.level)
                if source in self.modules and not name.startswith("_"):
                    found = self.resolve(source, name)
                    if found is not None:
                        return found
        if f"{module_name}.{name}" in self.modules:
            return Entity(MODULE, f"{module_name}.{name}", "")
        return None

    def _first_alike(self, entity: Entity, binding: list[Unit]) -> Entity:
        """Return the first of constants that several modules define by the same statement, else the entity itself."""
        if len(binding) == 1 and binding[0] in self._repeated:
            first = self._constants[ast.unparse(binding[0].statement)][0]
            return Entity(DEFINED, first.module.name, entity.name)
        return entity

    def imported(self, module: ModuleCode, statement: ast.Import | ast.ImportFrom, name: str) -> Entity | None:
        """Return the entity that an import statement binds to `name`."""
        for alias in statement.names:
            if isinstance(statement, ast.ImportFrom) and name == (alias.asname or alias.name):
                source = module.absolute(statement.module, statement.level)
                if source in self.modules:
                    submodule = f"{source}.{alias.name}"
                    found = self.resolve(source, alias.name)
                    if found is None and submodule in self.modules:
                        return Entity(MODULE, submodule, "")
                    return found
                if self.owns(source):
                    return None
                return Entity(EXTERNAL, "", ast.unparse(ast.ImportFrom(statement.module, [alias], 0)))
            if isinstance(statement, ast.Import) and name == (alias.asname or alias.name.partition(".")[0]):
                target = alias.name if alias.asname else alias.name.partition(".")[0]
                if target in self.modules:
                    return Entity(MODULE, target, "")
                if self.owns(target):
                    return None
                shown = alias if alias.asname else ast.alias(target)
                return Entity(EXTERNAL, "", ast.unparse(ast.Import([shown])))
        return None

    def owns(self, name: str) -> bool:
        """Whether a dotted name belongs to the codebase."""
        return name in self.modules or name.partition(".")[0] in self.owned

    def owned_import(self, module: ModuleCode, statement: ast.stmt) -> bool:
        """Whether the statement imports from the codebase."""
        if isinstance(statement, ast.ImportFrom):
            return statement.level > 0 or self.owns(module.absolute(statement.module, 0))
        return isinstance(statement, ast.Import) and any(self.owns(alias.name) for alias in statement.names)

    def _take(self, unit: Unit, selection: UnitSelection) -> Iterator[Unit]:
        if unit in selection.units:
            return
        selection.units.add(unit)
        for name in unit.binds if not _is_import(unit) else ():
            yield from self._need(Entity(DEFINED, unit.module.name, name), selection)
        for use in self._uses(unit):
            selection.uses.append(use)
            for entity in use.entities:
                yield from self._need(entity, selection)

    def _need(self, entity: Entity, selection: UnitSelection) -> Iterator[Unit]:
        if entity in selection.entities:
            return
        units = selection.entities[entity] = set()
        if entity.kind == DEFINED:
            units |= {unit for unit in self.modules[entity.module].units if entity.name in unit.binds}
            yield from units

    def _uses(self, unit: Unit) -> list[Use]:
        if unit not in self._used:
            self._used[unit] = list(self._find_uses(unit))
        return self._used[unit]

    def _find_uses(self, unit: Unit) -> Iterator[Use]:
        ran = self._ran[unit.module.name]
        for local in self.local_imports(unit):
            for alias in self.rebound(local) if local.statement.lineno in ran else ():
                bound = self.imported(unit.module, local.statement, alias.asname or alias.name)
                if bound is not None:
                    yield Use(
                        unit,
                        Site(bound.own_name or alias.name, local.statement.lineno, -1, False, True),
                        (bound,),
                    )
        for site in [*unit.sites, *self._local_sites(unit)]:
            if site.line not in ran:
                continue
            first = self._meaning(unit, site)
            if first is None:
                continue
            entities = [first]
            for attribute in site.chain:
                if entities[-1].kind != MODULE:
                    break
                following = self.resolve(entities[-1].module, attribute)
                if following is None:
                    break
                entities.append(following)
            yield Use(unit, site, tuple(entities))

    def _meaning(self, unit: Unit, site: Site) -> Entity | None:
        for local in self.local_imports(unit):
            first = first_line(local.function)
            last = last_line(local.function)
            if first <= site.line <= last:
                bound = self.imported(unit.module, local.statement, site.name)
                if bound is not None:
                    return bound
        if _before_its_binding(unit, site):
            return Entity(BUILTIN, "", site.name)
        found = self.resolve(unit.module.name, site.name)
        if found is None and not site.stores and site.name in self._bound and hasattr(builtins, site.name):
            return Entity(BUILTIN, "", site.name)
        return found

    def local_imports(self, unit: Unit) -> list[LocalImport]:
        """Return the imports of the codebase within functions and methods of a unit."""
        if unit not in self._local:
            self._local[unit] = self._find_local_imports(unit)
        return self._local[unit]

    def _find_local_imports(self, unit: Unit) -> list[LocalImport]:
        found: list[LocalImport] = []
        for function in ast.walk(unit.statement):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.Import | ast.ImportFrom) and self.owned_import(unit.module, node):
                        found.append(LocalImport(node, function))
        return found

    def rebound(self, local: LocalImport) -> list[ast.alias]:
        """Return the names of a local import that the function also binds elsewhere: those stay local names."""
        stored = {
            node.id
            for node in ast.walk(local.function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        } | {node.arg for node in ast.walk(local.function) if isinstance(node, ast.arg)}
        return [alias for alias in local.statement.names if (alias.asname or alias.name) in stored]

    def _local_sites(self, unit: Unit) -> Iterator[Site]:
        known = {(site.line, site.column) for site in unit.sites}
        for local in self.local_imports(unit):
            kept = self.rebound(local)
            names = {a.asname or a.name.partition(".")[0] for a in local.statement.names if a not in kept}
            for node, chain, _ in names_in(local.function):
                if isinstance(node, ast.Name) and node.id in names:
                    site = unit.module.site(node, chain, in_function=True)
                    if (site.line, site.column) not in known:
                        known.add((site.line, site.column))
                        yield site

    def _side_effects(self, selection: UnitSelection) -> Iterator[Unit]:
        for module in self.modules.values():
            for unit in module.units:
                if unit in selection.units or not _acts(unit):
                    continue
                if any(entity in selection.entities for entity in self._touched(unit)):
                    yield unit

    def _touched(self, unit: Unit) -> set[Entity]:
        """Return the definitions that a statement names, directly or through functions of its own module."""
        found: set[Entity] = set()
        pending = [unit]
        while pending:
            for use in self._uses(pending.pop()):
                for entity in use.entities:
                    if entity.kind != DEFINED or entity in found:
                        continue
                    found.add(entity)
                    if entity.module == unit.module.name:
                        pending.extend(u for u in unit.module.units if entity.name in u.binds and _is_function(u))
        return found


_SHARED_CALLS = {"object", "TypeVar", "ParamSpec", "compile", "getLogger", "frozenset"}


def _constants(modules: Mapping[str, ModuleCode]) -> dict[str, list[Unit]]:
    """Return the statements that define a constant or marker, by text, each with its units in order of execution."""
    found: dict[str, list[Unit]] = {}
    for module in modules.values():
        for unit in module.units:
            statement = unit.statement
            if not isinstance(statement, ast.Assign | ast.AnnAssign) or len(unit.binds) != 1:
                continue
            if sum(unit.binds <= other.binds for other in module.units) == 1 and _is_constant(statement.value):
                found.setdefault(ast.unparse(statement), []).append(unit)
    return {text: sorted(units, key=lambda unit: unit.rank) for text, units in found.items()}


def _is_constant(value: ast.expr | None) -> bool:
    for node in ast.walk(value) if value is not None else ():
        if isinstance(node, ast.Dict | ast.List | ast.Set | ast.Lambda | ast.ListComp | ast.DictComp | ast.SetComp):
            return False
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] not in _SHARED_CALLS:
            return False
        if isinstance(node, ast.Subscript):
            return False
    return value is not None


def _before_its_binding(unit: Unit, site: Site) -> bool:
    """Whether a builtin is read at the top level of a module that rebinds its name only afterwards."""
    if site.stores or site.in_function or not hasattr(builtins, site.name):
        return False
    binding = [(other.rank, other.first) for other in unit.module.units if site.name in other.binds]
    return bool(binding) and (unit.rank, unit.first) <= min(binding)


def _is_function(unit: Unit) -> bool:
    return isinstance(unit.statement, ast.FunctionDef | ast.AsyncFunctionDef)


def _is_import(unit: Unit) -> bool:
    return isinstance(unit.statement, ast.Import | ast.ImportFrom)


def _acts(unit: Unit) -> bool:
    """Whether a statement exists for its effect on something else."""
    statement = unit.statement
    if isinstance(statement, ast.Assign):
        return any(not isinstance(target, ast.Name | ast.Tuple) for target in statement.targets)
    return isinstance(statement, ast.Expr | ast.AugAssign | ast.For | ast.While | ast.With | ast.Try)


def _lines_that_ran(module: ModuleCode, trace: Trace) -> set[int]:
    """Return all physical lines of every header that ran."""
    seen = trace.lines.get(module.path, frozenset())
    ran: set[int] = set()
    for statement in module.tree.body:
        for line in lines_of_statement(statement):
            span = range(line.first, line.last + 1)
            if any(number in seen for number in span):
                ran.update(span)
    return ran
