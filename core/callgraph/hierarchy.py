"""Modules, imports and inheritance, resolved by names alone before values are propagated."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from gistpoint.core.callgraph.scopes import Definitions
from gistpoint.core.callgraph.sources import SourceFile, Sources
from gistpoint.core.callgraph.values import AnalysisScope, Class, Definer, ModuleValue

#: The meaning of a name: a class, a module, the dotted name of an outside value, or None if unknown.
Meaning = Class | ModuleValue | str | None

_DEEPEST_CHAIN = 40


class Hierarchy:
    """Modules by name, and the bases, method resolution orders and subclasses of classes."""

    def __init__(self, sources: Sources, definitions: Definitions) -> None:
        self.sources = sources
        self.definitions = definitions
        self._modules: dict[str, ModuleValue] = {}
        self.star_names: dict[AnalysisScope, dict[str, ModuleValue]] = {}
        self._expand_stars()
        for cls in definitions.classes.values():
            self._set_bases(cls)
        for cls in definitions.classes.values():
            cls.mro = _linear(cls)
            for base in cls.mro[1:]:
                base.subclasses.append(cls)

    def module(self, file: SourceFile) -> ModuleValue:
        """Return the module of a file."""
        known = self._modules.get(file.path)
        if known is None:
            known = ModuleValue(file.name, file, self.definitions.modules[file.path])
            self._modules[file.path] = known
        return known

    def absolute(self, dotted: str, near: SourceFile | None = None) -> ModuleValue | str:
        """Return the module of an absolute name, or the name itself if it is not in the sources."""
        file = self.sources.find(dotted, near)
        if file is not None:
            return self.module(file)
        if dotted in self.sources.packages:
            return self._modules.setdefault(dotted, ModuleValue(dotted, None, None))
        return dotted

    def imported_from(self, node: ast.ImportFrom, near: SourceFile) -> ModuleValue | str:
        """Return the module that a `from … import` imports from, or its name if it is not in the sources.

        A relative import that leads to no file of the sources gives a module without a file.
        """
        if not node.level:
            return self.absolute(node.module or "", near)
        file, folder = self.sources.relative(near, node.level, node.module or "")
        if file is not None:
            return self.module(file)
        return self._modules.setdefault(folder, ModuleValue(folder.replace("/", "."), None, None))

    def submodule(self, module: ModuleValue, name: str) -> ModuleValue | None:
        """Return the submodule `name` of a package; None if there is none."""
        if module.file is not None and not module.file.is_package:
            return None
        if module.file is not None:
            file, _ = self.sources.relative(module.file, 1, name)
            return self.module(file) if file is not None else None
        found = self.absolute(f"{module.name}.{name}")
        return found if isinstance(found, ModuleValue) else None

    def member(self, module: ModuleValue, name: str) -> Meaning:
        """Return the meaning of a module's attribute."""
        return self._member(module, name, _DEEPEST_CHAIN)

    def meaning(self, scope: AnalysisScope, node: ast.expr) -> Meaning:
        """Return the meaning of an expression, following names, attributes and imports."""
        return self._meaning(scope, node, _DEEPEST_CHAIN)

    def _meaning(self, scope: AnalysisScope, node: ast.expr, left: int) -> Meaning:
        if not left:
            return None
        if isinstance(node, ast.Name):
            found = scope.enclosing(node.id)
            if found is None:
                return f"builtins.{node.id}"
            return self._meaning_of_name(found, node.id, left - 1)
        if isinstance(node, ast.Attribute):
            owner = self._meaning(scope, node.value, left - 1)
            if isinstance(owner, ModuleValue):
                return self._member(owner, node.attr, left - 1)
            if isinstance(owner, Class):
                return self._meaning_of_name(owner.scope, node.attr, left - 1)
            return f"{owner}.{node.attr}" if isinstance(owner, str) else None
        if isinstance(node, ast.Subscript):
            return self._meaning(scope, node.value, left - 1)
        if isinstance(node, ast.Call):
            return self._result_of(scope, node, left - 1)
        return None

    def _result_of(self, scope: AnalysisScope, node: ast.Call, left: int) -> Meaning:
        called = self._meaning(scope, node.func, left)
        if not isinstance(called, str):
            return None
        # `six.with_metaclass(Meta, Base)` is a base class that means `Base`.
        if called.endswith("with_metaclass") and len(node.args) > 1:
            return self._meaning(scope, node.args[1], left)
        return f"{called}()"

    def _meaning_of_name(self, scope: AnalysisScope, name: str, left: int) -> Meaning:
        definer: Definer | None = scope.definers.get(name)
        if definer is None:
            star = self.star_names.get(scope, {}).get(name)
            return self._member(star, name, left) if star is not None and left else None
        if isinstance(definer, Class):
            return definer
        if isinstance(definer, ast.expr):
            return self._meaning(scope, definer, left)
        node, alias = definer
        if isinstance(node, ast.Import):
            return self.absolute(alias.name if alias.asname else alias.name.split(".")[0], scope.file)
        module = self.imported_from(node, scope.file)
        if isinstance(module, str):
            return f"{module}.{alias.name}"
        return self._member(module, alias.name, left)

    def _member(self, module: ModuleValue, name: str, left: int) -> Meaning:
        scope = module.scope if left else None
        if scope is not None and name in scope.bound:
            found = self._meaning_of_name(scope, name, left - 1)
            if found is not None:
                return found
        return self.submodule(module, name)

    def _expand_stars(self) -> None:
        """Bind the names of star imports in every module; repeated because such imports may chain."""
        starred = [scope for scope in self.definitions.modules.values() if scope.stars]
        changed = True
        while changed:
            changed = False
            for scope in starred:
                for node in scope.stars:
                    module = self.imported_from(node, scope.file)
                    if not isinstance(module, ModuleValue):
                        continue
                    source = module.scope
                    if source is None or source is scope:
                        continue
                    names = self.star_names.setdefault(scope, {})
                    for name in sorted(_public(source)):
                        if name not in scope.bound:
                            scope.bound.add(name)
                            names[name] = module
                            changed = True

    def _set_bases(self, cls: Class) -> None:
        parent = cls.scope.parent
        assert parent is not None
        for node in cls.tree.bases:
            base = self.meaning(parent, node)
            if isinstance(base, Class):
                if base is not cls and base not in cls.bases:
                    cls.bases.append(base)
            else:
                cls.outside_bases.append(base if isinstance(base, str) else "")


def _public(scope: AnalysisScope) -> Iterable[str]:
    """Return the names that a star import may bind: the public ones, and those in a literal `__all__`."""
    found = {name for name in scope.bound if not name.startswith("_")}
    definer = scope.definers.get("__all__")
    if isinstance(definer, ast.List | ast.Tuple):
        for item in definer.elts:
            match item:
                case ast.Constant(value=str(name)) if name in scope.bound:
                    found.add(name)
    return found


def _linear(cls: Class) -> tuple[Class, ...]:
    """Return the C3 linearization, or the depth-first order without repetition if there is none."""
    if cls.mro:
        return cls.mro
    merged = _merge(cls, set())
    if merged is not None:
        return merged
    order: dict[Class, None] = {}
    stack = [cls]
    while stack:
        current = stack.pop()
        if current not in order:
            order[current] = None
            stack.extend(reversed(current.bases))
    return tuple(order)


def _merge(cls: Class, below: set[Class]) -> tuple[Class, ...] | None:
    """Return the C3 linearization of a class; None if there is none, or if the class is its own base."""
    if cls in below:
        return None
    lists: list[list[Class]] = []
    for base in cls.bases:
        order = _merge(base, below | {cls}) if not base.mro else base.mro
        if order is None:
            return None
        lists.append(list(order))
    lists.append(list(cls.bases))
    merged = [cls]
    while any(lists):
        lists = [items for items in lists if items]
        head = _next_of(lists)
        if head is None:
            return None
        merged.append(head)
        lists = [[item for item in items if item is not head] for items in lists]
    return tuple(merged)


def _next_of(lists: Sequence[Sequence[Class]]) -> Class | None:
    """Return the first head that is in the tail of no list (C3 linearization); None if there is none."""
    later = {item for items in lists for item in items[1:]}
    return next((items[0] for items in lists if items[0] not in later), None)
