"""The marks of a piece of a module: the code in it that reaches for its judge, alters it, or answers for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gistpoint.core.code.parsing import parse
from gistpoint.core.suspicion import names
from gistpoint.core.suspicion.meaning import Made, Meaning, canonical, is_own, parameters

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEST = re.compile(r"tests|conftest|test_\w+|\w+_test")
_RISKY = ("f_", "tb_", "gi_", "cr_", "ag_", "co_")
_LOOKS = frozenset({"builtins.getattr", "builtins.hasattr", "builtins.setattr", "builtins.delattr"})
_VALUES = _LOOKS - {"builtins.hasattr"} | {"builtins.str.format", "builtins.str.format_map"}
_NAMED = frozenset({"operator.attrgetter", "operator.methodcaller"})
_GUARDED = frozenset({*names.ALLOWED, "builtins", names.TRACEBACK})
_PACKAGES = frozenset({"http", "urllib", "xml"})
_CALLING = frozenset({"builtins.map", "functools.partial", "functools.reduce", "itertools.starmap"})
_SETS = frozenset({"__setattr__", "__delattr__"})
_RUN_AT_IMPORT = (ast.Call, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr, ast.Await)
_PIECES, _SHORTEST_NAME, _SHORTEST_PIECE, _MOST_TEXTS = 4, 6, 2, 400
_SHOWN = 60


@dataclass(frozen=True, slots=True, order=True)
class SuspicionMark:
    """A reason to read a submission: its text, and the kind of thing if only that counts."""

    text: str
    kind: str = ""

    @property
    def key(self) -> str:
        """The key by which a mark of the original excuses this one."""
        return self.kind or self.text


def marks_of(meaning: Meaning, piece: Iterable[ast.AST], *, at_import: bool) -> set[SuspicionMark]:
    """Return the marks of a piece of a module; `at_import` says that its definitions run when it is imported."""
    return set(_Piece(meaning, piece).marks(at_import=at_import))


class _Piece:
    """Nodes that are examined together."""

    def __init__(self, meaning: Meaning, roots: Iterable[ast.AST]) -> None:
        self.meaning = meaning
        self.roots = list(roots)
        self.nodes = [node for root in self.roots for node in ast.walk(root)]
        self.docstrings = {id(text) for text in _docstrings(self.nodes)}
        self.within = {id(node.value): node for node in self.nodes if isinstance(node, ast.Attribute)}
        self.called = {id(node.func): node for node in self.nodes if isinstance(node, ast.Call)}
        self.looked_at = {
            id(node.args[0])
            for node in self.nodes
            if isinstance(node, ast.Call) and node.args and self._paths(node.func) & _LOOKS
        }
        self.asked_for = {
            id(node.args[1])
            for node in self.nodes
            if isinstance(node, ast.Call) and len(node.args) > 1 and self._paths(node.func) & _LOOKS
        }
        self.handed_on = {id(item) for node in self.nodes for item in _handed_on(node)} - self.looked_at
        self.looked_at |= {
            id(item)
            for node in self.nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            for item in (node.args if node.func.attr in names.TAKES_TRACEBACKS else ())
        }

    def _paths(self, node: ast.expr) -> frozenset[str]:
        return self.meaning.paths(node)

    def marks(self, *, at_import: bool) -> Iterator[SuspicionMark]:
        for node in self.nodes:
            yield from self._identifiers(node)
            yield from self._of_node(node)
            if isinstance(node, ast.BinOp | ast.Call | ast.JoinedStr | ast.Subscript):
                yield from (mark for text in self.meaning.texts(node) or () for mark in self._text(node, text))
        yield from self._put_together()
        if at_import:
            for root in self.roots:
                yield from self._at_import(root)

    def _of_node(self, node: ast.AST) -> Iterator[SuspicionMark]:
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from _imported(node)
            case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
                yield from self._reference(node)
            case ast.Attribute(value=value, attr=attribute):
                yield from self._assigned(value, attribute)
            case ast.Call():
                yield from self._call(node)
            case ast.Subscript(value=value, slice=index):
                yield from self._item(value, index)
            case ast.ClassDef():
                yield from self._class(node)
            case ast.Global(names=rebound):
                yield from self._global(node, rebound)
            case _:
                pass

    def _identifiers(self, node: ast.AST) -> Iterator[SuspicionMark]:
        match node:
            case ast.Constant(value=str(text)) if id(node) not in self.docstrings:
                yield from self._text(node, text)
            case ast.Constant(value=bytes(data)):
                yield from _text(data.decode("latin-1"))
            case ast.List(elts=items) | ast.Tuple(elts=items):
                yield from _numbers(items)
            case ast.MatchClass(kwd_attrs=attributes):
                yield from (SuspicionMark(name) for name in attributes if name in names.IDENTIFIERS)
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                if isinstance(node, ast.arg):
                    yield from _annotated(node)
                if name in names.IDENTIFIERS:
                    yield SuspicionMark(name)
                if isinstance(node, ast.keyword) and name in names.OPERATORS:
                    yield SuspicionMark(f"{name} as a name")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                if name in names.IDENTIFIERS:
                    yield SuspicionMark(name)
            case _:
                pass

    def _text(self, node: ast.expr, text: str) -> Iterator[SuspicionMark]:
        yield from _text(text)
        if text in _SETS or (text in names.OPERATORS and id(node) not in self.asked_for):
            yield SuspicionMark(f"{text} as a name")

    def _reference(self, node: ast.Name | ast.Attribute) -> Iterator[SuspicionMark]:
        paths = self._paths(node)
        if isinstance(node, ast.Attribute) and node.attr == "__dict__":
            yield from self._namespace(node.value)
        outer = self.within.get(id(node))
        if outer is not None and self._paths(outer):
            return  # the whole chain says more
        for path in paths:
            yield from _reached(path)
            if path in _GUARDED and id(node) not in self.looked_at:
                yield SuspicionMark(f"{path} handed on")
            if path in self.meaning.modules and id(node) in self.handed_on:
                yield SuspicionMark(f"{path} handed on")
            if path in _VALUES and id(node) not in self.called:
                yield SuspicionMark(f"{path.partition('.')[2]} handed on")
        if isinstance(node, ast.Attribute) and node.attr in _SETS and id(node) not in self.called:
            yield SuspicionMark(f"{node.attr} handed on")
        if isinstance(node, ast.Attribute) and not paths and id(node) in self.called:
            yield from _of_path(node.attr, self.called[id(node)])

    def _call(self, node: ast.Call) -> Iterator[SuspicionMark]:
        paths = self._paths(node.func)
        for path in self._paths(node) if not isinstance(node.func, ast.Name | ast.Attribute) or paths & _LOOKS else ():
            yield from _reached(path)
        yield from self._text_call(node, paths)
        if paths & _LOOKS:
            yield from self._look(node, paths)
        if paths & _NAMED:
            for argument in node.args[: 1 if "operator.methodcaller" in paths else None]:
                yield from self._name(argument, "attrgetter")
        yield from self._class_maker(node, paths)
        if paths & {"types.FunctionType", "types.LambdaType", "types.CodeType", "types.CellType", "types.MethodType"}:
            yield from (SuspicionMark(path) for path in paths if path != "types.MethodType")
        if "builtins.vars" in paths and node.args:
            yield from self._namespace(node.args[0])
        if isinstance(node.func, ast.Attribute):
            yield from self._method(node, node.func, paths)

    def _class_maker(self, node: ast.Call, paths: frozenset[str]) -> Iterator[SuspicionMark]:
        """Mark a class that is made without a `class` statement, or taken from an object to be called."""
        several = len(node.args) + len(node.keywords) > 1 or any(isinstance(item, ast.Starred) for item in node.args)
        handed_on = len(node.args) > 2 and any(self._paths(item) & {"builtins.type"} for item in node.args)
        if paths & names.CLASS_MAKERS or ("builtins.type" in paths and several) or (paths & _CALLING and handed_on):
            yield SuspicionMark("a class made by type")
        for path in paths:
            if path.endswith(".__class__"):
                yield SuspicionMark(f"{path.lstrip('.')} called")

    def _method(self, node: ast.Call, function: ast.Attribute, paths: frozenset[str]) -> Iterator[SuspicionMark]:
        if function.attr in _SETS and node.args:
            owner, name = self._set_on(node, function, paths)
            for text in (self.meaning.texts(name[0]) if name else None) or ("",):
                yield from self._assigned(owner, text)
        if function.attr in ("format", "format_map"):
            template = node.args[0] if paths & _VALUES and node.args else function.value
            if self.meaning.texts(template) is None and self.meaning.made(template) is Made.MADE:
                yield SuspicionMark("format by a text that is made up")

    def _set_on(
        self, node: ast.Call, function: ast.Attribute, paths: frozenset[str]
    ) -> tuple[ast.expr, list[ast.expr]]:
        """Return the object on which a call of `__setattr__` sets something, and the names."""
        if paths & {f"builtins.{kind}.{name}" for kind in ("object", "type") for name in _SETS}:
            return node.args[0], node.args[1:2]
        match function.value:
            case ast.Call(func=ast.Name(id="super"), args=[_, owner]):
                return owner, node.args[:1]
            case owner:
                return owner, node.args[:1]

    def _namespace(self, owner: ast.expr) -> Iterator[SuspicionMark]:
        """Mark the names of a module, or of a class that is not the method's own."""
        for path in self._paths(owner):
            if not path.startswith("."):
                yield SuspicionMark(f"{path.partition('.')[0]}.__dict__")
        match owner:
            case ast.Call(func=ast.Name(id="type"), args=[inner]) | ast.Attribute(value=inner, attr="__class__"):
                if not is_own(inner) and not self._is_parameter(inner):
                    yield SuspicionMark("the names of a class")

    def _is_parameter(self, node: ast.expr) -> bool:
        known = isinstance(node, ast.Name) and node in self.meaning.scopes
        found = self.meaning.bindings(node.id, node) if isinstance(node, ast.Name) and known else []
        return bool(found) and all(isinstance(binding.node, ast.arg) for binding in found)

    def _text_call(self, node: ast.Call, paths: frozenset[str]) -> Iterator[SuspicionMark]:
        """Mark a text that is made from literals in a way that hides its value."""
        maker = paths & names.MAKERS or (
            isinstance(node.func, ast.Attribute) and node.func.attr in names.MAKING_METHODS
        )
        if maker and node.args and self.meaning.is_closed(node) and self.meaning.texts(node) is None:
            yield SuspicionMark("a text that is made up")

    def _look(self, node: ast.Call, paths: frozenset[str]) -> Iterator[SuspicionMark]:
        way = next(iter(paths & _LOOKS)).partition(".")[2]
        if len(node.args) < 2 or any(isinstance(item, ast.Starred) for item in node.args):
            yield SuspicionMark(f"{way} by a name that is made up")
            return
        owner, name = node.args[:2]
        owners = self._paths(owner)
        texts = self.meaning.texts(name)
        if way in ("setattr", "delattr"):
            for text in texts or ("",):
                yield from self._assigned(owner, text)
        for path in (canonical(f"{owner}.{text}") for owner in owners for text in texts or ()):
            yield from _reached(path)
        guarded = owners & (_GUARDED | names.PARTLY_VOUCHED)
        if texts is None and guarded:
            yield SuspicionMark(f"{way} of {min(guarded)} by a name that is made up")
        yield from self._name(name, way)

    def _name(self, node: ast.expr, way: str) -> Iterator[SuspicionMark]:
        """Mark a name of an attribute whose value is hidden."""
        if self.meaning.texts(node) is not None:
            return
        prefix = _prefix(node)
        if self.meaning.made(node) is Made.MADE or prefix.startswith(_RISKY):
            yield SuspicionMark(f"{way} by a name that is made up")

    def _item(self, value: ast.expr, index: ast.expr) -> Iterator[SuspicionMark]:
        for path in self._paths(value):
            if path.endswith(".__dict__") and canonical(path) == path and not path.startswith("."):
                for text in self.meaning.texts(index) or ():
                    yield from _reached(canonical(f"{path.removesuffix('.__dict__')}.{text}"))
        if isinstance(value, ast.Attribute) and value.attr == "__dict__" and not isinstance(index, ast.Slice):
            yield from self._name(index, "__dict__")

    def _assigned(self, owner: ast.expr, attribute: str) -> Iterator[SuspicionMark]:
        """Mark an attribute set on an object that is not the function's own."""
        if attribute in names.OPERATORS:
            yield SuspicionMark(f"{attribute} is replaced")
        for path in self._paths(owner):
            yield SuspicionMark(f"{path.lstrip('.')}.{attribute or '*'} is replaced")
        if isinstance(owner, ast.Name) and owner in self.meaning.scopes:
            for binding in self.meaning.bindings(owner.id, owner):
                home = self.meaning.scopes[owner].of(owner.id)
                if isinstance(binding.node, ast.ClassDef) and home is not None and home.parent is None:
                    methods = {item.name for item in binding.node.body if isinstance(item, ast.FunctionDef)}
                    if attribute in methods or not attribute:
                        yield SuspicionMark(f"{owner.id}.{attribute or '*'} is replaced")
        if isinstance(owner, ast.Attribute) and owner.attr == "__class__" and attribute not in ("", owner.attr):
            yield SuspicionMark(f"a class's {attribute} is replaced", "class attribute")

    def _global(self, node: ast.Global, rebound: list[str]) -> Iterator[SuspicionMark]:
        for name in rebound:
            for binding in self.meaning.bindings(name, node):
                if binding.path or isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    yield SuspicionMark(f"{name} is replaced")

    def _class(self, node: ast.ClassDef) -> Iterator[SuspicionMark]:
        if self.meaning.scopes[node].parent is None:
            return  # a class of the module: its methods are pieces of their own
        for statement in node.body[:1]:
            for bound in self.meaning.scopes[statement].bound & names.OPERATORS:
                yield SuspicionMark(f"{bound} of a new class")
        for inner in (part for expression in _own_expressions(node) for part in ast.walk(expression)):
            if isinstance(inner, ast.Call) and self._paths(inner.func) & {"builtins.locals", "builtins.vars"}:
                yield SuspicionMark("the names of a class")
        for path in {path for base in node.bases for path in self._paths(base)} & names.DATA:
            yield SuspicionMark(f"a class derived from {path.rpartition('.')[2]}")
        if any(_is_type_of(base) for base in node.bases):
            yield SuspicionMark("a class derived from a value's own")
        if any(item.arg == "metaclass" for item in node.keywords):
            yield SuspicionMark("a metaclass")

    def _put_together(self) -> Iterator[SuspicionMark]:
        """Mark names that the concatenated texts of the piece contain."""
        texts = {
            node.value
            for node in self.nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in self.docstrings
        }
        pieces = {text for text in texts if len(text) >= _SHORTEST_PIECE}
        if not 1 < len(pieces) <= _MOST_TEXTS:
            return
        for name in names.IDENTIFIERS:
            if len(name) >= _SHORTEST_NAME and name not in pieces and _made_of(name, pieces, _PIECES):
                yield SuspicionMark(name)

    def _at_import(self, root: ast.AST) -> Iterator[SuspicionMark]:
        match root:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                parts = [default for _, default in parameters(root.args) if default is not None]
                parts += [item.annotation for item, _ in parameters(root.args) if item.annotation is not None]
                parts += [*root.decorator_list, *([root.returns] if root.returns is not None else [])]
            case _:
                parts = list(_own_expressions(root))
        for node in (inner for part in parts for inner in _run(part)):
            if not (isinstance(node, ast.Call) and self._paths(node.func) & names.HARMLESS_CALLS):
                yield SuspicionMark(f"at import: {ast.unparse(node)[:_SHOWN]}")


def _is_type_of(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr="__class__") | ast.Call(func=ast.Name(id="type"), args=[_]):
            return True
        case _:
            return False


def _reached(path: str) -> Iterator[SuspicionMark]:
    """Yield the mark of a thing by its path, if it has one."""
    root, _, rest = path.partition(".")
    first = rest.partition(".")[0]
    short = f"{root}.{first}" if first else root
    for kind, paths in names.KINDS.items():
        if root in paths or short in paths:
            yield SuspicionMark(short.removeprefix("builtins."), kind)
            return
    if any(path == part or path.startswith(f"{part}.") for part in names.HARMLESS_PARTS):
        return
    if root in names.MODULES:
        yield SuspicionMark(short)
    elif first and (
        (root in names.ALLOWED and first not in names.ALLOWED[root]) or first in names.DENIED.get(root, ())
    ):
        yield SuspicionMark(short.removeprefix("builtins."))
    elif root in names.STANDARD and not _vouched(path):
        yield SuspicionMark(short, short if root in _PACKAGES else root)


def _vouched(path: str) -> bool:
    """Whether a thing of the standard library, or a module that holds such things, is known to be harmless."""
    root, *parts = path.split(".")
    if root in names.ALLOWED or root in names.DENIED or path in names.PARTLY_VOUCHED:
        return True
    if any(part.startswith("_") and not part.endswith("__") for part in parts):
        return False
    return any(".".join([root, *parts[:count]]) in names.VOUCHED for count in range(len(parts) + 1))


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[SuspicionMark]:
    if isinstance(node, ast.Import):
        paths = [item.name for item in node.names]
    else:
        base = "." * node.level + (node.module or "")
        paths = [f"{base}.{item.name}" for item in node.names]
    for path in paths:
        yield from _reached(canonical(path))
        if any(_TEST.fullmatch(part) for part in path.split(".")):
            yield SuspicionMark(path)


def _of_path(method: str, call: ast.Call) -> Iterator[SuspicionMark]:
    if method in names.FILE_METHODS:
        yield SuspicionMark(f".{method}", "files")
    elif method == "open":
        yield SuspicionMark(".open", "files")


def _text(text: str) -> Iterator[SuspicionMark]:
    for word in set(_WORD.findall(text)) & names.IDENTIFIERS:
        yield SuspicionMark(word)
    first = text.partition(".")[0]
    if first in names.TEXTS and all(part.isidentifier() for part in text.split(".")):
        yield SuspicionMark(text if text == first else ".".join(text.split(".")[:2]))
    if text.startswith(names.PLACES):
        yield SuspicionMark(text[:_SHOWN])


def _annotated(parameter: ast.arg) -> Iterator[SuspicionMark]:
    """Mark an annotation that is a text with a call in it: looking it up runs it."""
    match parameter.annotation:
        case ast.Constant(value=str(text)):
            try:
                tree = parse(text.encode("utf-8", "surrogatepass"))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return
            if any(isinstance(node, _RUN_AT_IMPORT) for node in ast.walk(tree)):
                yield SuspicionMark(f"an annotation that runs: {text[:_SHOWN]}")
        case _:
            pass


def _handed_on(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the values that a node passes to places that are not followed."""
    match node:
        case ast.Call(args=given, keywords=named):
            yield from (item.value if isinstance(item, ast.Starred) else item for item in given)
            yield from (item.value for item in named)
        case ast.Assign(targets=targets, value=value):
            if any(isinstance(target, ast.Attribute | ast.Subscript) for target in targets):
                yield value
        case ast.ClassDef(body=body):
            yield from (item.value for item in body if isinstance(item, ast.Assign))
        case _:
            pass


def _numbers(items: list[ast.expr]) -> Iterator[SuspicionMark]:
    codes = [item.value for item in items if isinstance(item, ast.Constant) and type(item.value) is int]
    if len(codes) == len(items) > 1 and all(8 < code < 127 for code in codes):
        text = "".join(map(chr, codes))
        for way in (text, text[::-1]):
            yield from _text(way)


def _prefix(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=[first, *_]):
            return _prefix(first)
        case ast.BinOp(left=left):
            return _prefix(left)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return text
        case _:
            return ""


def _made_of(name: str, pieces: set[str], most: int) -> bool:
    if name in pieces:
        return True
    return most > 1 and any(
        name[:size] in pieces and _made_of(name[size:], pieces, most - 1)
        for size in range(_SHORTEST_PIECE, len(name) - _SHORTEST_PIECE + 1)
    )


def _docstrings(nodes: list[ast.AST]) -> Iterator[ast.Constant]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str()) as text), *_]:
                    yield text


def _own_expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that a statement evaluates at once, without the bodies of functions."""
    stack: list[ast.AST] = [node]
    while stack:
        inner = stack.pop()
        if isinstance(inner, ast.expr):
            yield inner
        elif not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or inner is node:
            stack.extend(ast.iter_child_nodes(inner))


def _run(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the expressions that run when an expression is evaluated, without the bodies of lambdas."""
    stack: list[ast.AST] = [node]
    while stack:
        inner = stack.pop()
        if isinstance(inner, _RUN_AT_IMPORT):
            yield inner
        if not isinstance(inner, ast.Lambda):
            stack.extend(ast.iter_child_nodes(inner))
