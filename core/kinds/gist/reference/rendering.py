"""Writes a flat file from glue and original statements, in the order in which they finished."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator

from gistpoint.core.code.parsing import first_line
from gistpoint.core.kinds.gist.lines import (
    bodies_in,
    dedented,
    import_texts,
    last_line,
)
from gistpoint.core.kinds.gist.reference.by_name import asked_by_name, module_of_name
from gistpoint.core.kinds.gist.reference.extraction import (
    BUILTIN,
    DEFINED,
    EXTERNAL,
    MODULE,
    Entity,
    Extractor,
    LocalImport,
    UnitSelection,
    Use,
)
from gistpoint.core.kinds.gist.reference.flat_names import FlatNames, steps
from gistpoint.core.kinds.gist.reference.modules import Unit
from gistpoint.core.kinds.gist.reference.reduction import KEPT


class Renderer:
    """Writes a selection as one file.

    `dropped` are statements, such as other tests, that are left out of their unit. With `all_imports`, unused
    external imports are kept if their name is free. With `by_name`, code that looks up a module by a name in
    a string gets the flat file. Statements of the module `home`, which contains the test on its lines `test`,
    run under the flat file's own `__name__`, even if other statements run under the name of their original
    module.
    """

    def __init__(
        self,
        extractor: Extractor,
        selection: UnitSelection,
        names: FlatNames,
        dropped: Collection[ast.stmt] = (),
        *,
        all_imports: bool = False,
        by_name: bool = False,
        home: str = "",
        test: range = range(0),
    ) -> None:
        self.extractor = extractor
        self.selection = selection
        self.names = names
        self.dropped = set(dropped)
        self._all_imports = all_imports
        self._by_name = by_name
        self._home = home
        self._test = test
        self._replaced: dict[Unit, list[Use]] = {}
        for use in selection.uses:
            self._replaced.setdefault(use.unit, []).append(use)
        self._alias_claims: dict[Entity, set[str]] = {}
        self._reached_by_alias: set[Entity] = set(names.box_attributes)
        for use in selection.uses:
            self._claim(use)
            if names.replacement(use) is not None:
                self._reached_by_alias.add(use.entities[-1])
        self._reached_by_alias |= set(self._alias_claims)
        self._called: dict[str, list[Entity]] = {}
        for entity in selection.entities:
            if entity.kind not in (MODULE, BUILTIN):
                self._called.setdefault(entity.own_name, []).append(entity)
        self._last = {entity: self._rank(entity) for entity in selection.entities}

    def _rank(self, entity: Entity) -> float:
        return max((unit.rank for unit in self.selection.entities[entity]), default=-1)

    def _claim(self, use: Use) -> None:
        held = [(use.site.name, use.entities[0])]
        for holder, attribute, entity in steps(use):
            if holder not in self.names.boxed:
                held.append((attribute, entity))
        for name, entity in held:
            is_alias = entity.kind == MODULE or name != entity.own_name
            if is_alias and self.names.winners.get(name) == entity:
                self._alias_claims.setdefault(entity, set()).add(name)

    def text(self) -> str:
        """Return the text of the file."""
        body: list[str] = []
        emitted: set[str] = set()
        defined: set[str] = set()
        own_name = self.names.own_name
        named = own_name
        units = sorted(self._ordered(), key=lambda unit: (unit.rank, unit.first, unit.statement.col_offset))
        for unit in units:
            if isinstance(unit.statement, ast.Import | ast.ImportFrom):
                body.extend(self._imports(unit, emitted, defined))
                continue
            is_own = unit.module.name == self._home or _is_dataclass(unit.statement)
            name = own_name if is_own else repr(unit.module.name)
            if own_name and name != named:
                body.append(f"__name__ = {name}")
                named = name
            body += self._definition(unit)
            body += self._glue(unit, defined)
        if named != own_name:
            body.append(f"__name__ = {own_name}")
        return "\n".join([*self._head(body), *body]) + "\n"

    def _ordered(self) -> Iterator[Unit]:
        """Yield the needed units, and every import: some imports are needed only for their side effects."""
        yield from self.selection.units
        for module in self.extractor.modules.values():
            imports = (ast.Import, ast.ImportFrom)
            yield from (unit for unit in module.units if isinstance(unit.statement, imports))

    def _head(self, body: list[str]) -> list[str]:
        """Return the lines above the first definition: `__future__` imports, boxes, builtins and aliases."""
        boxed = self.names.boxed
        glue: list[str] = []
        if self.names.own_name:
            glue.append(f"{self.names.itself} = sys.modules[__name__]")
            glue.append(f"{self.names.own_name} = __name__")
        if boxed:
            glue.append("import types")
            glue.extend(f"{box} = types.SimpleNamespace()" for box in boxed.values())
        glue.extend(self._builtins())
        own: list[str] = []
        for entity, claimed in sorted(self._alias_claims.items(), key=repr):
            if entity.kind != MODULE:
                continue
            if entity.module in boxed:
                box = boxed[entity.module]
                glue.extend(f"{name} = {box}" for name in sorted(claimed - {box}))
            else:
                own.extend(sorted(claimed))
        for held in sorted(self.names.box_attributes, key=repr):
            if held.kind == MODULE:
                glue.extend(self._put_into_boxes(held))
        if own:
            glue.append(" = ".join([*dict.fromkeys(own), self.names.itself]))
        if any("sys.modules[__name__]" in line for line in [*glue, *body]):
            glue.insert(0, "import sys")
        return [*self._future(), *glue]

    def _put_into_boxes(self, entity: Entity) -> Iterator[str]:
        for module, attribute in sorted(self.names.box_attributes.get(entity, ())):
            yield f"{self.names.boxed[module]}.{attribute} = {self.names.name_of(entity)}"

    def _future(self) -> list[str]:
        found: dict[str, None] = {}
        modules = {unit.module.name: unit.module for unit in self.selection.units}
        for module in modules.values():
            for statement in module.tree.body:
                if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                    found.update(dict.fromkeys(import_texts(statement)))
        return list(found)

    def _builtins(self) -> Iterator[str]:
        """Yield aliases of builtins whose names a module of the codebase binds."""
        for entity in sorted(self._reached_by_alias, key=repr):
            if entity.kind == BUILTIN and entity in self.names.aliases:
                yield f"{self.names.aliases[entity]} = {entity.name}"

    def _imports(self, unit: Unit, emitted: set[str], defined: set[str]) -> Iterator[str]:
        """Yield the needed external imports of a statement, each once, with the glue after it."""
        statement = unit.statement
        assert isinstance(statement, ast.Import | ast.ImportFrom)
        if isinstance(statement, ast.ImportFrom):
            of_future = statement.module == "__future__"
            if of_future or self.extractor.owned_import(unit.module, statement):
                return
        for alias, text in zip(statement.names, import_texts(statement), strict=True):
            if text in emitted:
                continue
            if alias.name == "*":
                emitted.add(text)
                yield text
                continue
            name = alias.asname or alias.name.partition(".")[0]
            entity = self.extractor.imported(unit.module, statement, name)
            if entity is None or entity.kind != EXTERNAL:
                continue
            is_free = name not in self.names.winners and not hasattr(builtins, name)
            if entity in self.selection.entities:
                emitted.add(text)
                yield text
                yield from self._glue_of(entity, name, defined)
            elif self._all_imports and is_free:
                emitted.add(text)
                yield text

    def _definition(self, unit: Unit) -> list[str]:
        lines = {number: unit.module.lines[number - 1] for number in range(unit.first, unit.last + 1)}
        statement = unit.statement
        made = [*self._edits(unit), *self._edits_by_name(unit), *self._edits_of_shared_lines(unit)]
        edits = sorted(_outermost(made), reverse=True)
        start, end = unit.module.columns(statement)
        tail = lines[unit.last][end:].lstrip()
        if tail and not tail.startswith("#"):
            lines[unit.last] = lines[unit.last][:end]
        for line, first, end_line, last, text in edits:
            rest = lines[end_line][last:] if end_line in lines else ""
            lines[line] = lines[line][:first] + text + rest
            for number in range(line + 1, end_line + 1):
                lines.pop(number, None)
        if unit.first == statement.lineno and lines[unit.first][:start].strip():
            lines[unit.first] = lines[unit.first][start:]
        self._drop(unit, lines)
        return dedented([text for _, text in sorted(lines.items())])

    def _edits(self, unit: Unit) -> Iterator[tuple[int, int, int, int, str]]:
        done: set[tuple[int, int]] = set()
        for use in self._replaced.get(unit, []):
            site = use.site
            replacement = self.names.replacement(use)
            if replacement is None or site.column < 0:
                continue
            if (site.line, site.column) in done:
                continue
            done.add((site.line, site.column))
            depth, text = replacement
            if depth:
                end_line, end = site.chain_ends[depth - 1]
            else:
                end_line = site.line
                end = site.column + len(site.name)
            yield site.line, site.column, end_line, end, text

    def _edits_by_name(self, unit: Unit) -> Iterator[tuple[int, int, int, int, str]]:
        if not self._by_name:
            return
        for node, text in asked_by_name(unit.statement, unit.module, self._flat_name, self.names.itself):
            in_test = unit.module.name == self._home and node.lineno in self._test
            # The test is never changed (decision 88).
            if not in_test:
                first, last = unit.module.columns(node)
                yield node.lineno, first, last_line(node), last, text

    def _flat_name(self, text: str) -> str | None:
        """Return the flat name of a definition with a dotted name; empty for a module, otherwise None."""
        module = module_of_name(text, self.extractor.modules)
        if not module:
            return None
        first, *rest = text[len(module) + 1 :].split(".")
        if not first:
            return ""
        entity = self.extractor.resolve(module, first)
        if entity is None or entity.kind == MODULE:
            return None
        if entity not in self.selection.entities:
            return None
        return ".".join([self.names.name_of(entity), *rest])

    def _rebound(self, unit: Unit) -> dict[ast.stmt, list[str]]:
        """Return what remains of each import of the codebase within a function."""
        local = self.extractor.local_imports(unit)
        return {one.statement: list(self._assignments(unit, one)) for one in local}

    def _unwanted(
        self, unit: Unit, local: Collection[ast.stmt]
    ) -> Iterator[tuple[list[ast.stmt], list[ast.stmt]]]:
        """Yield each block of a unit with its unwanted statements: other tests, imports of the codebase."""
        unwanted = {*self.dropped, *local}
        for body in bodies_in(unit.statement):
            yield body, [one for one in body if one in unwanted or self._module_import(unit, one)]

    def _edits_of_shared_lines(self, unit: Unit) -> Iterator[tuple[int, int, int, int, str]]:
        """Yield the edits that replace unwanted statements that share a line with other code."""
        local = self._rebound(unit)
        for _, gone in self._unwanted(unit, local):
            for statement in gone:
                if not _is_alone(unit, statement):
                    first, last = unit.module.columns(statement)
                    text = "; ".join(local.get(statement, [])) or "pass"
                    yield statement.lineno, first, last_line(statement), last, text

    def _drop(self, unit: Unit, lines: dict[int, str]) -> None:
        """Remove unwanted statements, and imports of the codebase within functions, with their lines."""
        local = self._rebound(unit)
        for body, gone in self._unwanted(unit, local):
            is_emptied = len(gone) == len(body)
            for statement in gone:
                if not _is_alone(unit, statement):
                    continue
                first = first_line(statement)
                margin = lines.get(first, "")[: statement.col_offset]
                for line in range(first, last_line(statement) + 1):
                    lines.pop(line, None)
                kept = "; ".join(local.get(statement, []))
                if is_emptied and statement is gone[0]:
                    kept = kept or "pass"
                if kept and not margin.strip():
                    lines[first] = margin + kept

    def _assignments(self, unit: Unit, local: LocalImport) -> Iterator[str]:
        for alias in self.extractor.rebound(local):
            name = alias.asname or alias.name
            bound = self.extractor.imported(unit.module, local.statement, name)
            if bound is not None and bound in self.selection.entities:
                yield f"{name} = {self.names.name_of(bound)}"

    def _module_import(self, unit: Unit, statement: ast.stmt) -> bool:
        is_import = isinstance(statement, ast.Import | ast.ImportFrom)
        return is_import and self.extractor.owned_import(unit.module, statement)

    def _glue(self, unit: Unit, defined: set[str]) -> Iterator[str]:
        for name in sorted(unit.binds):
            entity = Entity(DEFINED, unit.module.name, name)
            if entity in self.selection.entities:
                yield from self._glue_of(entity, name, defined)

    def _glue_of(self, entity: Entity, name: str, defined: set[str]) -> Iterator[str]:
        """Yield the glue after a definition: aliases of the entity, and the restored winner of the name."""
        if self.names.winners.get(name) == entity:
            defined.add(name)
            if self._is_shadowed(entity, name):
                yield f"{self._kept(name)} = {name}"
        else:
            yield from self._restored(entity, name, defined)
        for other in sorted(self._alias_claims.get(entity, ())):
            yield f"{other} = {self.names.name_of(entity)}"
            defined.add(other)
        yield from self._put_into_boxes(entity)

    def _restored(self, entity: Entity, name: str, defined: set[str]) -> Iterator[str]:
        """Yield the glue after a definition that lost its name: an alias, and the name's winner."""
        if entity in self._reached_by_alias:
            yield f"{self.names.aliases[entity]} = {name}"
        winner = self.names.winners.get(name)
        if winner is not None and winner.kind == MODULE:
            yield f"{name} = {self.names.name_of(winner)}"
        elif winner is not None and winner.kind == BUILTIN:
            # The name is unbound so that it refers to the builtin again (decision 19).
            yield f"del {name}"
        elif name in defined:
            yield f"{name} = {self._kept(name)}"

    def _is_shadowed(self, entity: Entity, name: str) -> bool:
        """Return whether another entity may be bound to the name after this one.

        The order of external imports is unknown.
        """
        for other in self._called.get(name, ()):
            is_external = EXTERNAL in (other.kind, entity.kind)
            may_follow = is_external or self._last[other] > self._last[entity]
            if may_follow and other != entity:
                return True
        return False

    def _kept(self, name: str) -> str:
        return name + KEPT


def _is_alone(unit: Unit, statement: ast.stmt) -> bool:
    """Return whether a statement shares its lines with no other code."""
    start, end = unit.module.columns(statement)
    before = unit.module.lines[statement.lineno - 1][:start]
    after = unit.module.lines[last_line(statement) - 1][end:]
    return not before.strip() and after.strip()[:1] in ("", "#")


def _is_dataclass(statement: ast.stmt) -> bool:
    """Return whether a statement defines a data class, which finds annotations by the module's name."""
    if not isinstance(statement, ast.ClassDef):
        return False
    return any("dataclass" in ast.unparse(decorator) for decorator in statement.decorator_list)


def _outermost(edits: Collection[tuple[int, int, int, int, str]]) -> Iterator[tuple[int, int, int, int, str]]:
    """Yield the edits that are not inside another edit."""
    end = (0, 0)
    for edit in sorted(edits, key=lambda one: (one[0], one[1], -one[2], -one[3])):
        if edit[:2] >= end:
            yield edit
            end = edit[2:4]
