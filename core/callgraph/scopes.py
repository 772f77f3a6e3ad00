"""Scopes and definitions: the names that each scope binds, and all functions and classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from gistpoint.core.callgraph.graph import MODULE, FunctionNode
from gistpoint.core.callgraph.sources import SourceFile, Sources
from gistpoint.core.callgraph.values import AnalysisScope, Class, Function
from gistpoint.core.code.bindings import bound_names
from gistpoint.core.code.parsing import first_line

TOO_DEEP = "its expressions or blocks are nested too deeply"

Definition = ast.FunctionDef | ast.AsyncFunctionDef
Callable = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(slots=True)
class Definitions:
    """The functions, classes and scopes of the sources by syntax node, nodes by id, and modules by path."""

    nodes: dict[str, FunctionNode] = field(default_factory=dict)
    functions: dict[ast.AST, Function] = field(default_factory=dict)
    classes: dict[ast.AST, Class] = field(default_factory=dict)
    scopes: dict[ast.AST, AnalysisScope] = field(default_factory=dict)
    modules: dict[str, AnalysisScope] = field(default_factory=dict)
    folded: dict[str, str] = field(default_factory=dict)
    stored_names: set[str] = field(default_factory=set)


def define_all(sources: Sources) -> Definitions:
    """Return the definitions of every file; lambdas become functions.

    `folded` maps the id of a lambda to that of the enclosing function. Files that are nested too deeply are
    moved from the `files` of `sources` to `skipped`.
    """
    definitions = Definitions()
    for file in list(sources.files.values()):
        try:
            _Definer(file, definitions).run()
        except RecursionError:
            sources.skipped[file.path] = TOO_DEEP
            del sources.files[file.path]
    return definitions


class _Definer:
    """A walk through one file in source order, without recursion into expressions, which can nest deeply."""

    def __init__(self, file: SourceFile, definitions: Definitions) -> None:
        self.file = file
        self.all = definitions
        self.seen: dict[str, int] = {}

    def run(self) -> None:
        node_id = f"{self.file.path}::{MODULE}"
        scope = AnalysisScope("module", self.file, None, node_id)
        self.all.modules[self.file.path] = scope
        self.all.scopes[self.file.tree] = scope
        last = max((getattr(item, "end_lineno", 0) or 0 for item in self.file.tree.body), default=0)
        self.all.nodes[node_id] = FunctionNode(node_id, self.file.path, MODULE, "module", 1, 1, last)
        self.body(self.file.tree.body, scope, "")

    def body(self, nodes: list[ast.stmt], scope: AnalysisScope, prefix: str) -> None:
        for node in nodes:
            self.visit(node, scope, prefix)

    def visit(self, root: ast.AST, scope: AnalysisScope, prefix: str) -> None:
        """Visit `root` and its descendants in the same scope, without recursion into expressions."""
        stack: list[ast.AST] = [root]
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind is ast.FunctionDef or kind is ast.AsyncFunctionDef:
                assert isinstance(node, Definition)
                self.function(node, scope, prefix)
                stack.extend(reversed([*node.decorator_list, *_defaults(node.args), *_annotations(node)]))
            elif kind is ast.ClassDef:
                assert isinstance(node, ast.ClassDef)
                self.class_(node, scope, prefix)
                stack.extend(reversed([*node.decorator_list, *node.bases, *node.keywords]))
            elif kind is ast.Lambda:
                assert isinstance(node, ast.Lambda)
                self.lambda_(node, scope, prefix)
                stack.extend(reversed(list(_defaults(node.args))))
            elif kind in _COMPREHENSIONS:
                self.comprehension(node, scope, prefix)
            else:
                if kind in _BINDING:
                    _bind(node, scope)
                elif kind is ast.Attribute and type(getattr(node, "ctx", None)) is ast.Store:
                    self.all.stored_names.add(getattr(node, "attr", ""))
                stack.extend(reversed(_defining_children(node)))

    def name(self, prefix: str, name: str) -> str:
        """Return the qualified name, numbered with `#2` and so on if this file defines it again."""
        qualname = prefix + name
        self.seen[qualname] = self.seen.get(qualname, 0) + 1
        return qualname if self.seen[qualname] == 1 else f"{qualname}#{self.seen[qualname]}"

    def function(self, node: Definition, scope: AnalysisScope, prefix: str) -> None:
        scope.bound.add(node.name)
        qualname = self.name(prefix, node.name)
        node_id = f"{self.file.path}::{qualname}"
        inner = AnalysisScope("function", self.file, scope, node_id)
        function = self.record(node, node_id, node.name, inner, scope.cls if scope.kind == "class" else None)
        function.is_abstract = _is_abstract(node)
        kind = _kind(node, in_class=scope.kind == "class")
        self.all.nodes[node_id] = FunctionNode(
            node_id,
            self.file.path,
            qualname,
            kind,
            first_line(node),
            node.lineno,
            node.end_lineno or node.lineno,
        )
        if scope.cls is not None and scope.kind == "class":
            if function.is_abstract:
                scope.cls.abstract_names.add(node.name)
            else:
                scope.cls.abstract_names.discard(node.name)
            names = {last_name(item) for item in node.decorator_list}
            function.is_static = "staticmethod" in names or node.name == "__new__"
            function.is_class_method = "classmethod" in names or node.name in _CLASS_METHODS
        self.body(node.body, inner, f"{prefix}{node.name}.<locals>.")

    def lambda_(self, node: ast.Lambda, scope: AnalysisScope, prefix: str) -> None:
        node_id = f"{self.file.path}::{self.name(prefix, '<lambda>')}"
        self.all.folded[node_id] = self.all.folded.get(scope.owner, scope.owner)
        inner = AnalysisScope("function", self.file, scope, node_id)
        self.record(node, node_id, "<lambda>", inner, None)
        self.visit(node.body, inner, f"{prefix}<lambda>.<locals>.")

    def record(
        self, node: Callable, node_id: str, name: str, inner: AnalysisScope, cls: Class | None
    ) -> Function:
        arguments = node.args
        positional = [item.arg for item in [*arguments.posonlyargs, *arguments.args]]
        _capture(inner.parent)
        function = Function(
            node_id, name, node, inner, cls, positional, [item.arg for item in arguments.kwonlyargs]
        )
        inner.function = function
        inner.bound.update(positional, function.keyword_only)
        inner.bound.update(item.arg for item in (arguments.vararg, arguments.kwarg) if item)
        self.all.functions[node] = function
        self.all.scopes[node] = inner
        return function

    def class_(self, node: ast.ClassDef, scope: AnalysisScope, prefix: str) -> None:
        scope.bound.add(node.name)
        self.name(prefix, node.name)
        inner = AnalysisScope("class", self.file, scope, scope.owner)
        inner.cls = Class(node.name, node, self.file, inner)
        scope.definers[node.name] = inner.cls
        self.all.classes[node] = inner.cls
        self.all.scopes[node] = inner
        self.body(node.body, inner, f"{prefix}{node.name}.")

    def comprehension(self, node: ast.AST, scope: AnalysisScope, prefix: str) -> None:
        inner = AnalysisScope("comprehension", self.file, scope, scope.owner)
        self.all.scopes[node] = inner
        for child in ast.iter_child_nodes(node):
            self.visit(child, inner, prefix)


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_BINDING = frozenset(
    {
        ast.Name,
        ast.Import,
        ast.ImportFrom,
        ast.Assign,
        ast.Global,
        ast.Nonlocal,
        ast.ExceptHandler,
        ast.MatchAs,
        ast.MatchStar,
        ast.MatchMapping,
        ast.NamedExpr,
    }
)
_CLASS_METHODS = ("__init_subclass__", "__class_getitem__")


def _defining_children(node: ast.AST) -> list[ast.AST]:
    """Return the child nodes that may hold definitions or bind names."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        # Nodes without fields, such as operators and contexts, hold nothing.
        if isinstance(value, list):
            found.extend(item for item in value if isinstance(item, ast.AST) and item._fields)
        elif type(value) is ast.Constant:
            continue
        elif isinstance(value, ast.AST) and value._fields:
            found.append(value)
    return found


def _is_abstract(node: Definition) -> bool:
    """Return whether a function is decorated as abstract, is empty, or only raises `NotImplementedError`."""
    if any(last_name(item).startswith("abstract") for item in node.decorator_list):
        return True
    for item in node.body:
        if isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant):
            continue
        if isinstance(item, ast.Raise) and item.exc is not None:
            return last_name(item.exc) == "NotImplementedError"
        return isinstance(item, ast.Pass)
    return True


def _capture(scope: AnalysisScope | None) -> None:
    while scope is not None and not scope.captured:
        scope.captured = True
        scope = scope.parent


def _bind(node: ast.AST, scope: AnalysisScope) -> None:
    """Record the names that a statement or expression binds in its scope."""
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            scope.bound.add(node.id)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        _bind_import(node, scope)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                scope.definers.setdefault(target.id, node.value)
    elif isinstance(node, ast.Global):
        scope.globals.update(node.names)
        module = scope
        while module.parent is not None:
            module = module.parent
        module.bound.update(node.names)
        module.written_inside.update(node.names)
    elif isinstance(node, ast.Nonlocal):
        scope.nonlocals.update(node.names)
        outer = scope.parent
        while outer is not None:
            outer.written_inside.update(node.names)
            outer = outer.parent
    else:
        _bind_captured(node, scope)


def _bind_captured(node: ast.AST, scope: AnalysisScope) -> None:
    """Record the names that handlers, patterns and assignment expressions bind."""
    if isinstance(node, ast.NamedExpr) and scope.kind == "comprehension":
        outer: AnalysisScope = scope
        while outer.kind == "comprehension" and outer.parent is not None:
            outer = outer.parent
        outer.bound.add(node.target.id)
    else:
        scope.bound.update(bound_names(node))


def _bind_import(node: ast.Import | ast.ImportFrom, scope: AnalysisScope) -> None:
    for item in node.names:
        if item.name == "*":
            assert isinstance(node, ast.ImportFrom)
            scope.stars.append(node)
            continue
        name = item.asname or item.name.split(".")[0]
        scope.bound.add(name)
        scope.definers.setdefault(name, (node, item))


def _defaults(arguments: ast.arguments) -> Iterator[ast.expr]:
    yield from arguments.defaults
    yield from (item for item in arguments.kw_defaults if item is not None)


def _annotations(node: Definition) -> Iterator[ast.expr]:
    if node.returns is not None:
        yield node.returns


def last_name(node: ast.expr) -> str:
    """Return the last name in a name, an attribute, or a call of either; empty for anything else.

    For `functools.cached_property()`, it is `cached_property`.
    """
    if isinstance(node, ast.Call):
        node = node.func
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _kind(node: Definition, *, in_class: bool) -> str:
    names = {last_name(item) for item in node.decorator_list}
    if in_class and names & {"property", "cached_property", "setter", "getter", "deleter"}:
        return "property"
    return "method" if in_class else "function"
