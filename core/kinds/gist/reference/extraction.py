"""Finds the statements of a codebase that a command needs, from the names on lines that ran."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from gistpoint.core.code.parsing import first_line, parse
from gistpoint.core.kinds.gist.lines import last_line, lines_of_statement, type_of_function
from gistpoint.core.kinds.gist.reference.modules import ModuleCode, Site, Unit, names_in
from gistpoint.core.kinds.gist.reference.shared_constants import shared_constants
from gistpoint.core.kinds.gist.trace import Trace

MODULE = "module"
EXTERNAL = "external"
DEFINED = "defined"
BUILTIN = "builtin"


@dataclass(frozen=True, slots=True)
class Entity:
    """The meaning of a name: a module or definition of the codebase, an external import, or a builtin.

    A builtin is an entity only if a module of the codebase also defines its name.
    """

    kind: str
    module: str
    name: str
    """The name of a definition or builtin; the statement of an external import; empty for a module."""

    @property
    def own_name(self) -> str:
        """The name by which the entity's definition or import binds it."""
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
    """A site with the entities of its name and of its attributes, up to the first that is not a module."""

    unit: Unit
    site: Site
    entities: tuple[Entity, ...]


@dataclass(frozen=True, slots=True)
class LocalImport:
    """An import of the codebase within a function."""

    statement: ast.Import | ast.ImportFrom
    function: ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class UnitSelection:
    """The units that are needed, with all uses on their lines that ran."""

    units: set[Unit] = field(default_factory=set)
    uses: list[Use] = field(default_factory=list)
    entities: dict[Entity, set[Unit]] = field(default_factory=dict)
    """The units that define each needed entity; none unless it is a definition."""


class Extractor:
    """Follows names through a trace's modules; `owned` are the codebase's own names.

    With `keeps_names`, the code of each module is going to run under the module's own `__name__`.
    """

    def __init__(
        self,
        modules: Mapping[str, ModuleCode],
        trace: Trace,
        owned: Collection[str],
        *,
        keeps_names: bool = False,
    ) -> None:
        self.modules = modules
        self.trace = trace
        self.owned = frozenset(owned)
        self._ran = {module.name: _lines_that_ran(module, trace) for module in modules.values()}
        self._bound = set[str]()
        for module in modules.values():
            self._bound.update(*(unit.binds for unit in module.units))
        self._repeated: dict[Unit, Unit] = {}
        """For each further constant of several equal ones, the first of them."""
        self._resolved: dict[tuple[str, str], Entity | None] = {}
        for first, *others in shared_constants(modules.values(), self._outside, keeps_names=keeps_names):
            self._repeated.update(dict.fromkeys(others, first))
        self._resolved.clear()  # some may mean constants of which only the first is kept
        self._used: dict[Unit, list[Use]] = {}
        self._local: dict[Unit, list[LocalImport]] = {}

    def select(
        self, roots: Collection[Unit], *, everything_in: Collection[str] = (), side_effects: bool = True
    ) -> UnitSelection:
        """Return the units that `roots` need, and all executed units of the modules in `everything_in`.

        With `side_effects`, statements that may change something needed are needed as well.
        """
        selection = UnitSelection()
        pending = list(roots)
        for name in everything_in:
            pending += [unit for unit in self.modules[name].units if not _is_import(unit)]
        while pending:
            while pending:
                unit = pending.pop()
                if unit not in self._repeated:
                    pending.extend(self._take(unit, selection))
            if side_effects:
                # Code that acts on something needed may need more, on which other statements act in turn.
                pending = [unit for unit in self._side_effects(selection) if unit not in selection.units]
        return selection

    def ran_functions(self, *, hooks_of: Collection[str]) -> list[Unit]:
        """Return the units with a function that the run called, without pytest hooks in `hooks_of`."""
        found: list[Unit] = []
        by_path = {module.path: module for module in self.modules.values()}
        for function in self.trace.functions:
            module = by_path.get(function.path)
            is_hook = function.path in hooks_of and function.qualname.startswith("pytest_")
            is_called = function.run and function.qualname != "<module>"
            is_left_out = is_hook or not is_called
            if module is None or is_left_out:
                continue
            holding = [unit for unit in module.units if unit.first <= function.line <= unit.last]
            found.extend(unit for unit in holding if not _is_import(unit))
        return found

    def resolve(self, module: str, name: str) -> Entity | None:
        """Return the entity of `name` in `module` after its top level has run.

        None for an unknown name and for a builtin.
        """
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
        found = self._from_star(module, name)
        if found is None and f"{module_name}.{name}" in self.modules:
            return Entity(MODULE, f"{module_name}.{name}", "")
        return found

    def _first_alike(self, entity: Entity, binding: list[Unit]) -> Entity:
        """Return the first of equal constants that several modules define, or else the entity itself."""
        if len(binding) == 1 and binding[0] in self._repeated:
            return Entity(DEFINED, self._repeated[binding[0]].module.name, entity.name)
        return entity

    def _outside(self, module: str, name: str) -> str:
        """Return the statement that imports `name` in `module` from outside; empty if there is none."""
        found = self.resolve(module, name)
        return found.name if found is not None and found.kind == EXTERNAL else ""

    def _from_star(self, module: ModuleCode, name: str) -> Entity | None:
        """Return the entity that the last star import binds to a public name; None if there is none."""
        if name.startswith("_"):
            return None
        for unit in reversed(module.units):
            match unit.statement:
                case ast.ImportFrom(module=path, names=[ast.alias(name="*"), *_], level=level):
                    source = module.absolute(path, level)
                    found = self.resolve(source, name) if source in self.modules else None
                    if found is not None:
                        return found
        return None

    def imported(
        self, module: ModuleCode, statement: ast.Import | ast.ImportFrom, name: str
    ) -> Entity | None:
        """Return the entity that an import statement binds to `name`; None if there is none."""
        for alias in statement.names:
            if isinstance(statement, ast.ImportFrom):
                if name == (alias.asname or alias.name):
                    return self._imported_from(
                        module.absolute(statement.module, statement.level), alias, statement
                    )
                continue
            top = alias.name.partition(".")[0]
            if name == (alias.asname or top):
                return self._imported_module(alias.name if alias.asname else top, alias)
        return None

    def owns(self, name: str) -> bool:
        """Return whether a dotted name belongs to the codebase."""
        return name in self.modules or name.partition(".")[0] in self.owned

    def _imported_from(self, source: str, alias: ast.alias, statement: ast.ImportFrom) -> Entity | None:
        """Return what a name imported from the module `source` refers to; None if that is unknown."""
        if source in self.modules:
            submodule = f"{source}.{alias.name}"
            found = self.resolve(source, alias.name)
            if found is None and submodule in self.modules:
                return Entity(MODULE, submodule, "")
            return found
        if self.owns(source):
            return None
        return Entity(EXTERNAL, "", ast.unparse(ast.ImportFrom(statement.module, [alias], 0)))

    def _imported_module(self, target: str, alias: ast.alias) -> Entity | None:
        """Return the entity of the module `target`, which an `import` binds; None for an unknown module."""
        if target in self.modules:
            return Entity(MODULE, target, "")
        if self.owns(target):
            return None
        shown = alias if alias.asname else ast.alias(target)
        return Entity(EXTERNAL, "", ast.unparse(ast.Import([shown])))

    def owned_import(self, module: ModuleCode, statement: ast.stmt) -> bool:
        """Return whether the statement imports from the codebase."""
        match statement:
            case ast.ImportFrom(module=source, level=level):
                return level > 0 or self.owns(module.absolute(source, 0))
            case ast.Import(names=aliases):
                return any(self.owns(alias.name) for alias in aliases)
            case _:
                return False

    def _take(self, unit: Unit, selection: UnitSelection) -> Iterator[Unit]:
        if unit in selection.units:
            return
        selection.units.add(unit)
        if not _is_import(unit):
            for name in unit.binds:
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
            if local.statement.lineno in ran:
                yield from self._rebound_uses(unit, local)
        for site in [*unit.sites, *self._local_sites(unit)]:
            if site.line not in ran:
                continue
            first = self._meaning(unit, site)
            if first is not None:
                yield Use(unit, site, tuple(self._along(first, site.chain)))

    def _rebound_uses(self, unit: Unit, local: LocalImport) -> Iterator[Use]:
        """Yield a use for each name of a local import that stays a local name."""
        for alias in self.rebound(local):
            bound = self.imported(unit.module, local.statement, alias.asname or alias.name)
            if bound is not None:
                site = Site(bound.own_name or alias.name, local.statement.lineno, -1, False, True)
                yield Use(unit, site, (bound,))

    def _along(self, entity: Entity, chain: Sequence[str]) -> Iterator[Entity]:
        """Yield an entity, then the entity of each attribute in a chain, up to the first non-module."""
        yield entity
        for attribute in chain:
            following = self.resolve(entity.module, attribute) if entity.kind == MODULE else None
            if following is None:
                return
            entity = following
            yield entity

    def _meaning(self, unit: Unit, site: Site) -> Entity | None:
        for local in self.local_imports(unit):
            function = local.function
            if not first_line(function) <= site.line <= last_line(function):
                continue
            bound = self.imported(unit.module, local.statement, site.name)
            if bound is not None:
                return bound
        builtin = Entity(BUILTIN, "", site.name)
        if _before_its_binding(unit, site):
            return builtin
        found = self.resolve(unit.module.name, site.name)
        # A builtin competes for its name only if a module also binds the name (decision 19).
        is_contested = hasattr(builtins, site.name) and site.name in self._bound
        reads_builtin = is_contested and not site.stores
        if found is None and reads_builtin:
            return builtin
        return found

    def local_imports(self, unit: Unit) -> list[LocalImport]:
        """Return the imports of the codebase within functions and methods of a unit."""
        if unit not in self._local:
            self._local[unit] = self._find_local_imports(unit)
        return self._local[unit]

    def _find_local_imports(self, unit: Unit) -> list[LocalImport]:
        found: list[LocalImport] = []
        functions = [node for node in ast.walk(unit.statement) if isinstance(node, type_of_function)]
        for function in functions:
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom) and self.owned_import(unit.module, node):
                    found.append(LocalImport(node, function))
        return found

    def rebound(self, local: LocalImport) -> list[ast.alias]:
        """Return the names of a local import that the function binds in another way as well.

        These names stay local.
        """
        stored = set[str]()
        for node in ast.walk(local.function):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    stored.add(name)
        kept = list[ast.alias]()
        for alias in local.statement.names:
            if (alias.asname or alias.name) in stored:
                kept.append(alias)
        return kept

    def _local_sites(self, unit: Unit) -> Iterator[Site]:
        """Yield the sites of names that a function imports from the codebase.

        The compiler treats these names as local.
        """
        known = {(site.line, site.column) for site in unit.sites}
        for local in self.local_imports(unit):
            kept = self.rebound(local)
            gone = [alias for alias in local.statement.names if alias not in kept]
            names = {alias.asname or alias.name.partition(".")[0] for alias in gone}
            for node, chain, _ in names_in(local.function):
                if not isinstance(node, ast.Name) or node.id not in names:
                    continue
                site = unit.module.site(node, chain, in_function=True)
                if (site.line, site.column) not in known:
                    known.add((site.line, site.column))
                    yield site

    def _side_effects(self, selection: UnitSelection) -> Iterator[Unit]:
        for module in self.modules.values():
            for unit in module.units:
                is_open = unit not in selection.units and _acts(unit)
                if is_open and not selection.entities.keys().isdisjoint(self._touched(unit)):
                    yield unit

    def _touched(self, unit: Unit) -> set[Entity]:
        """Return the definitions that a statement names, directly or through functions of its own module."""
        found: set[Entity] = set()
        functions = [other for other in unit.module.units if isinstance(other.statement, type_of_function)]
        pending = [unit]
        while pending:
            for entity in self._definitions_used(pending.pop()):
                if entity in found:
                    continue
                found.add(entity)
                if entity.module == unit.module.name:
                    pending.extend(function for function in functions if entity.name in function.binds)
        return found

    def _definitions_used(self, unit: Unit) -> Iterator[Entity]:
        for use in self._uses(unit):
            yield from (entity for entity in use.entities if entity.kind == DEFINED)


def _before_its_binding(unit: Unit, site: Site) -> bool:
    """Return whether a builtin is read at the top level of a module that binds its name only afterwards."""
    if site.stores or site.in_function:
        return False
    if not hasattr(builtins, site.name):
        return False
    binding = [(other.rank, other.first) for other in unit.module.units if site.name in other.binds]
    return bool(binding) and (unit.rank, unit.first) <= min(binding)


def _is_import(unit: Unit) -> bool:
    return isinstance(unit.statement, ast.Import | ast.ImportFrom)


def _acts(unit: Unit) -> bool:
    """Return whether a statement exists for its effect on something else."""
    statement = unit.statement
    if isinstance(statement, ast.Assign):
        return any(not isinstance(target, ast.Name | ast.Tuple) for target in statement.targets)
    return isinstance(
        statement, ast.Expr | ast.AugAssign | ast.For | ast.While | ast.With | ast.Try | ast.TryStar
    )


def _lines_that_ran(module: ModuleCode, trace: Trace) -> set[int]:
    """Return all physical lines of every header that ran."""
    seen = trace.lines.get(module.path, frozenset())
    ran: set[int] = set()
    for statement in module.tree.body:
        for line in lines_of_statement(statement):
            span = range(line.first, line.last + 1)
            if not seen.isdisjoint(span):
                ran.update(span)
    return ran
