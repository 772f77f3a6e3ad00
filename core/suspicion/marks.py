"""The marks of a piece of a module: what it names that is on no list of what a submission may name (decision 115)."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gistpoint.core.code.bindings import bound_names
from gistpoint.core.code.parsing import parse_expression
from gistpoint.core.suspicion import names
from gistpoint.core.suspicion.meaning import Meaning, canonical, imported_path
from gistpoint.core.suspicion.vocabulary import LibraryWords

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEST = re.compile(r"tests|conftest|test_\w+|\w+_test")
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_RUN_AT_IMPORT = (ast.Call, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr, ast.Await)
_PLAIN = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Constant, ast.BinOp, ast.BitOr, ast.Load,
    ast.Starred, ast.Slice, ast.UnaryOp, ast.USub,
)  # fmt: skip
_NAMED_CLASS = (ast.Name, ast.Attribute, ast.Subscript)
_NAMES_PARTS = ("__slots__", "__match_args__")
_CLASS_CALL = 3
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


_Marks = Iterator[SuspicionMark]


def marks_of(
    meaning: Meaning, piece: Iterable[ast.AST], library: LibraryWords, own: frozenset[str]
) -> set[SuspicionMark]:
    """Return the marks of a piece of a module; `own` are the attributes that the submission itself defines."""
    return set(_Piece(meaning, piece, library, own).marks())


class _Piece:
    """Nodes that are examined together."""

    def __init__(self, meaning: Meaning, roots: Iterable[ast.AST], library: LibraryWords, own: frozenset[str]) -> None:
        self.meaning = meaning
        self.library = library
        self.own = own
        self.roots = list(roots)
        self.nodes = [node for root in self.roots for node in ast.walk(root)]
        self.above = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        asks_for_texts = any(isinstance(node, ast.Attribute) and node.attr == "__doc__" for node in self.nodes)
        self.unread = set() if asks_for_texts else set(_docstrings(self.nodes))

    def marks(self) -> _Marks:
        for node in self.nodes:
            yield from self._of_node(node)
            if node not in self.roots:
                yield from self._defined(node)
        for root in self.roots:
            yield from self._at_import(root)

    def _of_node(self, node: ast.AST) -> _Marks:
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from self._imported(node)
            case ast.Name(ctx=ast.Load()):
                yield from self._name(node)
            case ast.Attribute(ctx=ast.Load()):
                yield from self._attribute_of(node)
            case ast.Attribute(value=owner, attr=name):
                yield from self._stored(owner, name)
            case ast.Call():
                yield from self._call(node)
            case ast.Constant(value=str(text)) if node not in self.unread:
                yield from self._text(node, text)
            case ast.keyword(arg=str(name)):
                yield from self._text(node, name)
            case _:
                yield from self._of_statement(node)
        if isinstance(node, ast.expr) and self.meaning.is_class_of_value(node) and not self._is_harmless_class(node):
            yield SuspicionMark("a class handed on")

    def _of_statement(self, node: ast.AST) -> _Marks:
        match node:
            case ast.ClassDef():
                yield from self._class(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node not in self.roots:
                yield from self._annotated(node)
            case ast.MatchClass():
                yield from self._matched(node)
            case ast.Global():
                yield from self._rebound(node)
            case _:
                pass

    # What is named

    def _imported(self, node: ast.Import | ast.ImportFrom) -> _Marks:
        if isinstance(node, ast.Import):
            paths = [item.name for item in node.names]
        else:
            paths = [imported_path(node, item.name) for item in node.names]
        for path in paths:
            yield from self._path(canonical(path), whole=isinstance(node, ast.Import))
            if any(_TEST.fullmatch(part) for part in path.split(".")):
                yield SuspicionMark(path)

    def _name(self, node: ast.Name) -> _Marks:
        if isinstance(self.above.get(node), ast.Attribute):
            return  # the whole chain says more
        for path in self.meaning.paths(node):
            yield from self._path(path)
            yield from self._handed_on(node, path)

    def _attribute_of(self, node: ast.Attribute) -> _Marks:
        paths = self.meaning.paths(node)
        above = self.above.get(node)
        for path in paths if not isinstance(above, ast.Attribute) or not self.meaning.paths(above) else ():
            yield from self._path(path)
            yield from self._handed_on(node, path)
        if not paths:
            yield from self._attribute(node.attr)
        called = isinstance(above, ast.Call) and above.func is node
        if node.attr in names.SETTERS and not called:
            yield SuspicionMark(f"{node.attr} handed on")
        if node.attr in names.TEMPLATES and not called:
            yield from self._template(node.value)

    def _attribute(self, name: str) -> _Marks:
        """Mark an attribute that neither plain values nor the library nor the submission itself have."""
        if name in names.REACHING:
            yield SuspicionMark(name)
        elif name in names.FILE_METHODS:
            yield SuspicionMark(f".{name}", "files")
        elif name in names.ATTRIBUTES or name in names.SETTERS or name in names.TEMPLATES:
            return
        elif name not in self.own and not self.library.names(name):
            yield SuspicionMark(f".{name}")

    def _text(self, node: ast.AST, text: str) -> _Marks:
        """Mark a written name that somebody else may get, or make a class with."""
        yield from (SuspicionMark(word) for word in names.REACHING.intersection(_WORD.findall(text)))
        above = self.above.get(node)
        if text in names.OPERATORS and not (isinstance(above, ast.Call) and self._looks(above)):
            yield SuspicionMark(f"{text} as a name")

    def _path(self, path: str, *, whole: bool = False) -> _Marks:
        """Mark a thing by its path; `whole` says that it is a module that is imported."""
        root, *rest = path.split(".")
        short = ".".join([root, *rest[:1]]).removeprefix("builtins.")
        kind = _kind(path)
        if kind:
            yield SuspicionMark(short, kind)
        elif root == "builtins":
            if rest and rest[0] in names.PURE_BUILTINS:
                yield from self._parts(rest[1:])
            else:
                yield SuspicionMark(short)
        elif root in names.STANDARD or root in names.ALONE:
            yield from self._standard(path, short, whole=whole)
        else:
            yield from self._foreign(path.split("."))

    def _foreign(self, parts: list[str]) -> _Marks:
        """Mark the attributes of a name outside of Python, after the part that the tree defines or imports."""
        known = [end for end in range(1, len(parts) + 1) if self._is_known(".".join(parts[:end]))]
        yield from self._parts(filter(None, parts[max(known, default=0) :]))

    def _standard(self, path: str, short: str, *, whole: bool) -> _Marks:
        root, *rest = path.split(".")
        for end in range(len(rest) + 1, 0, -1):
            if _is_pure(".".join([root, *rest][:end])):
                yield from self._parts(rest[end - 1 :])
                return
        if path in names.MODULES or self._excused(path, root):
            return
        reaches = sorted(names.REACHING.intersection(rest))
        yield from map(SuspicionMark, reaches)
        yield SuspicionMark(short, "" if whole or root in names.ALONE | names.GUARDED else root)

    def _excused(self, path: str, root: str) -> bool:
        """Whether the library's own use is enough to name this."""
        if root in names.ALONE or (root in names.GUARDED and path != root and path not in names.LIBRARY):
            return False
        return self.library.uses(path)

    def _parts(self, parts: Iterable[str]) -> _Marks:
        for part in parts:
            yield from self._attribute(part)

    def _is_known(self, path: str) -> bool:
        return self.library.is_module(path) or self.library.uses(path)

    def _handed_on(self, node: ast.expr, path: str) -> _Marks:
        """Mark a module, or a built-in that gets by name, that is used as a value."""
        above = self.above.get(node)
        is_called = isinstance(above, ast.Call) and above.func is node
        is_tested = self._is_tested(node)
        gets_by_name = path in names.GETTERS or path.removeprefix("operator.") in ("attrgetter", "methodcaller")
        if self._is_whole_module(path) and not is_tested:
            yield SuspicionMark(f"{path} handed on")
        elif gets_by_name and not is_called:
            yield SuspicionMark(f"{path.removeprefix('builtins.')} handed on")
        elif path == "builtins.type" and not (is_called or is_tested or self._is_checked(node)):
            yield SuspicionMark("type handed on")
        elif path.startswith("builtins.type."):
            yield SuspicionMark("a class made by type")

    def _is_whole_module(self, path: str) -> bool:
        is_module = path in names.MODULES or path in self.meaning.modules or self.library.is_module(path)
        return is_module or path in names.ALONE

    def _is_tested(self, node: ast.expr) -> bool:
        """Whether a value is only compared, used as a condition, or looked at by a built-in that returns none of it."""
        above = self.above.get(node)
        is_looked_at = isinstance(above, ast.Call) and above.args[:1] == [node] and self._looks(above)
        return is_looked_at or isinstance(above, ast.Compare | ast.If | ast.UnaryOp)

    def _looks(self, call: ast.Call) -> bool:
        return bool(names.LOOKS.intersection(self.meaning.paths(call.func)))

    def _is_checked(self, node: ast.AST) -> bool:
        """Whether a class is only compared: an argument of `isinstance`, perhaps in a tuple; or an annotation."""
        above = self.above.get(node)
        if isinstance(above, ast.Tuple):
            node, above = above, self.above.get(above)
        if isinstance(above, ast.Call) and above.args[1:] == [node]:
            return bool({"builtins.isinstance", "builtins.issubclass"}.intersection(self.meaning.paths(above.func)))
        return isinstance(above, ast.arg | ast.Subscript | ast.AnnAssign | ast.Compare) or above is None

    # What is called

    def _call(self, node: ast.Call) -> _Marks:
        paths = frozenset(self.meaning.paths(node.func))
        if paths & names.GETTERS:
            yield from self._got(node, paths)
        if paths & {"operator.attrgetter", "operator.methodcaller"}:
            asked = node.args[:1] if "operator.methodcaller" in paths else node.args
            yield from self._by_texts(asked, "attrgetter")
        if "functools.wraps" in paths and not self._is_plain_wraps(node):
            yield SuspicionMark("functools.wraps")
        if "builtins.type" in paths and (len(node.args) != 1 or node.keywords or _has_star(node)):
            yield SuspicionMark("a class made by type")
        if self.meaning.is_class_of_value(node.func) and (len(node.args) == _CLASS_CALL or _has_star(node)):
            yield SuspicionMark("a class made by type")
        if any(item.arg == "stacklevel" for item in node.keywords) and "warnings.warn" not in paths:
            yield SuspicionMark("stacklevel")
        if isinstance(node.func, ast.Attribute):
            yield from self._method(node, node.func, paths)

    def _method(self, node: ast.Call, function: ast.Attribute, paths: frozenset[str]) -> _Marks:
        if function.attr in names.SETTERS:
            yield from self._set_by_method(node, function)
        if function.attr in names.TEMPLATES:
            unbound = any(path.startswith("builtins.str.") for path in paths)
            yield from self._template(node.args[0] if unbound and node.args else function.value)

    def _got(self, node: ast.Call, paths: frozenset[str]) -> _Marks:
        way = next(iter(paths & names.GETTERS)).partition(".")[2]
        texts = self.meaning.texts(node.args[1]) if len(node.args) > 1 and not _has_star(node) else None
        if texts is None:
            yield SuspicionMark(f"{way} by a name that is made up")
            return
        owner = node.args[0]
        for text in texts:
            if way == "getattr":
                reached = [canonical(f"{path}.{text}") for path in self.meaning.paths(owner)]
                yield from (mark for path in reached for mark in self._path(path))
                yield from () if reached else self._attribute(text)
            else:
                yield from self._stored(owner, text)

    def _by_texts(self, asked: list[ast.expr], way: str) -> _Marks:
        for item in asked:
            texts = self.meaning.texts(item)
            if texts is None:
                yield SuspicionMark(f"{way} by a name that is made up", "getattr by a name that is made up")
            for text in texts or ():
                yield from self._parts(text.split("."))
                yield from (SuspicionMark(f"{text} as a name") for _ in names.SETTERS.intersection([text]))

    def _set_by_method(self, node: ast.Call, function: ast.Attribute) -> _Marks:
        before_value = len(node.args) - (function.attr == "__setattr__")
        name = node.args[before_value - 1] if before_value > 0 else None
        texts = self.meaning.texts(name) if name is not None and not _has_star(node) else None
        if texts is None:
            yield SuspicionMark(f"{function.attr} by a name that is made up")
        match function.value:
            case ast.Call(func=ast.Name(id="super"), args=[_, owner]):
                pass
            case owner:
                owner = node.args[0] if before_value > 1 else owner
        for text in texts or ():
            yield from self._stored(owner, text)

    def _template(self, node: ast.expr) -> _Marks:
        """Mark a text whose `format` may get attributes that nobody can read off."""
        texts = self.meaning.texts(node)
        if texts is None:
            yield SuspicionMark("format by a text that is made up")
        for text in texts or ():
            yield from self._parts(_formatted(text))

    def _is_plain_wraps(self, node: ast.Call) -> bool:
        """Whether `wraps(f)` decorates a function, or is called with a function of this module."""
        above = self.above.get(node)
        match above:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | None:
                used = True
            case ast.Call(func=function, args=[ast.Name() as wrapped], keywords=[]) if function is node:
                found = self.meaning.bindings(wrapped)
                used = bool(found) and all(isinstance(binding.definition, _FUNCTIONS) for binding in found)
            case _:
                used = False
        return used and len(node.args) == 1 and not node.keywords and not _has_star(node)

    # What is replaced

    def _stored(self, owner: ast.expr, name: str) -> _Marks:
        if name in names.REACHING:
            yield SuspicionMark(name)
        if _is_special(name) and name not in names.STORED:
            yield SuspicionMark(f"{name} is replaced")
        for path in self.meaning.paths(owner):
            yield SuspicionMark(f"{path.lstrip('.')}.{name} is replaced")
        if isinstance(owner, ast.Name) and self._is_class_of_module(owner):
            yield SuspicionMark(f"{owner.id}.{name} is replaced")
        if self.meaning.is_class_of_value(owner):
            yield SuspicionMark(f"a class's {name} is replaced", "class attribute")

    def _is_class_of_module(self, name: ast.Name) -> bool:
        found = self.meaning.bindings(name)
        return not self.meaning.is_local(name) and any(isinstance(item.definition, ast.ClassDef) for item in found)

    def _rebound(self, node: ast.Global) -> _Marks:
        for name in node.names:
            used = ast.Name(name, ast.Load())
            self.meaning.scopes[used] = self.meaning.scopes[node].module
            for binding in self.meaning.bindings(used):
                if binding.path or binding.definition is not None:
                    yield SuspicionMark(f"{name} is replaced")

    # What answers for it

    def _defined(self, node: ast.AST) -> _Marks:
        """Mark a definition of a method by which an object decides what it equals, or what it seems to be."""
        for name in bound_names(node):
            if _is_special(name) and name not in names.CLASS_PARTS:
                yield SuspicionMark(f"{name} of a new class")
            if name in _NAMES_PARTS:
                yield from self._named_parts(node, name)

    def _named_parts(self, node: ast.AST, name: str) -> _Marks:
        value = getattr(self.above.get(node), "value", None)
        items = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
        texts = [self.meaning.texts(item) if isinstance(item, ast.expr) else None for item in items]
        if not isinstance(self.above.get(node), ast.Assign | ast.AnnAssign) or None in texts:
            yield SuspicionMark(f"{name} by names that are made up")
        for text in (text for some in texts for text in some or ()):
            yield from self._stored(ast.Constant(None), text) if name == "__slots__" else self._attribute(text)

    def _class(self, node: ast.ClassDef) -> _Marks:
        if any(item.arg in ("metaclass", None) for item in node.keywords):
            yield SuspicionMark("a metaclass")
        for base in node.bases:
            named = isinstance(base, _NAMED_CLASS) or (isinstance(base, ast.Call) and not _has_star(base))
            if not named or self.meaning.is_class_of_value(base):
                yield SuspicionMark("a class derived from a value's own")
            if "builtins.type" in self.meaning.paths(base):
                yield SuspicionMark("a class derived from type")

    def _is_harmless_class(self, node: ast.expr) -> bool:
        """Whether the class of a value is only compared, shown, called, or asked for what its instances have."""
        above = self.above.get(node)
        if isinstance(above, ast.Attribute):
            return above.attr in names.OF_CLASSES or not _is_special(above.attr)
        if isinstance(above, ast.Call):
            return above.func is node or self._is_shown(above, node)
        if isinstance(above, ast.Assign):
            return isinstance(node, ast.Name) or all(isinstance(target, ast.Name) for target in above.targets)
        if isinstance(above, ast.Tuple | ast.List):  # `isinstance(x, (int, type(y)))`, `"%s" % (type(x), y)`
            return self._is_checked(node) or isinstance(self.above.get(above), ast.BinOp)
        shown = ast.Compare | ast.FormattedValue | ast.NamedExpr | ast.IfExp | ast.BoolOp | ast.BinOp | ast.ClassDef
        return (
            isinstance(above, shown) or (isinstance(above, ast.Subscript) and above.slice is node) or _is_stored(node)
        )

    def _is_shown(self, call: ast.Call, node: ast.expr) -> bool:
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("get", "index", "count"):
            return call.args[:1] == [node]
        built_in = {path.removeprefix("builtins.") for path in self.meaning.paths(call.func)}
        return bool(built_in & names.SHOWING) or (self._looks(call) and call.args[:1] == [node])

    def _matched(self, node: ast.MatchClass) -> _Marks:
        yield from self._parts(node.kwd_attrs)
        if node.patterns and isinstance(node.cls, ast.Name) and self.meaning.is_local(node.cls):
            found = self.meaning.bindings(node.cls)
            if any(binding.definition is None and not binding.path for binding in found):
                yield SuspicionMark("a pattern of a class that is made up")

    # What runs by itself

    def _annotated(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> _Marks:
        """Mark annotations of an inner function that run code, or are a text that is made up: others evaluate them."""
        given = [item.annotation for item in ast.walk(node.args) if isinstance(item, ast.arg)]
        for annotation in (item for item in (*given, node.returns) if item is not None):
            for part in _parts_of_annotation(annotation):
                local = isinstance(part, ast.Name) and part in self.meaning.scopes and self.meaning.is_local(part)
                known = isinstance(part, ast.Name) and local and self._is_local_class(part)
                if not isinstance(part, _PLAIN) or (local and not known):
                    yield SuspicionMark(f"an annotation that runs: {ast.unparse(annotation)[:_SHOWN]}")

    def _is_local_class(self, name: ast.Name) -> bool:
        found = self.meaning.bindings(name)
        return all(isinstance(binding.definition, ast.ClassDef) or binding.path for binding in found)

    def _at_import(self, root: ast.AST) -> _Marks:
        for node in (inner for part in _evaluated(root) for inner in _run(part)):
            if not (isinstance(node, ast.Call) and names.HARMLESS_CALLS.intersection(self.meaning.paths(node.func))):
                yield SuspicionMark(f"at import: {ast.unparse(node)[:_SHOWN]}")


def _kind(path: str) -> str:
    parts = path.split(".")
    prefixes = {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
    return next((kind for kind, paths in names.KINDS.items() if prefixes & paths), "")


def _is_pure(path: str) -> bool:
    module, _, name = path.rpartition(".")
    if path in names.PURE:
        return True
    public = not name.startswith("_") and (name not in names.STANDARD or name == module)
    return module in names.WHOLE and public


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_stored(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load)


def _has_star(node: ast.Call) -> bool:
    return any(isinstance(item, ast.Starred) for item in node.args) or any(item.arg is None for item in node.keywords)


def _formatted(text: str) -> Iterator[str]:
    """Yield the attributes that a text for `str.format` gets, at any depth."""
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError:
        return
    for _, field, spec, _ in fields:
        yield from re.findall(r"\.([^.\[\]]+)", field or "")
        if spec:
            yield from _formatted(spec)


def _parts_of_annotation(annotation: ast.expr) -> Iterator[ast.AST]:
    for part in ast.walk(annotation):
        yield part
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            try:
                yield from ast.walk(parse_expression(part.value))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue


def _docstrings(nodes: list[ast.AST]) -> Iterator[ast.Constant]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str()) as text), *_]:
                    yield text


def _evaluated(root: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that a piece evaluates as its module is imported."""
    match root:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            arguments = root.args
            given = [item.annotation for item in ast.walk(arguments) if isinstance(item, ast.arg)]
            parts = [*arguments.defaults, *arguments.kw_defaults, *given, *root.decorator_list, root.returns]
            yield from (part for part in parts if part is not None)
        case _:
            yield from _own_expressions(root)


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
