"""The marks of a piece of a module: what it names that is on no list of what a submission may name
(decision 115).
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from gistpoint.core.code.bindings import bound_names
from gistpoint.core.code.parsing import parse_expression
from gistpoint.core.suspicion import names
from gistpoint.core.suspicion.meaning import Meaning, canonical, imported_path
from gistpoint.core.suspicion.vocabulary import LibraryWords

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEST = re.compile(r"tests|conftest|test_\w+|\w+_test")
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_RUN_AT_IMPORT = (
    ast.Call,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.NamedExpr,
    ast.Await,
)
_PLAIN = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Tuple,
    ast.List,
    ast.Constant,
    ast.BinOp,
    ast.BitOr,
    ast.Load,
    ast.Starred,
    ast.Slice,
    ast.UnaryOp,
    ast.USub,
)
_NAMED_CLASS = (ast.Name, ast.Attribute, ast.Subscript)
_SHOWING_CLASS = (
    ast.Compare,
    ast.FormattedValue,
    ast.NamedExpr,
    ast.IfExp,
    ast.BoolOp,
    ast.BinOp,
    ast.ClassDef,
)
"""What a value's class may be a part of: nothing gets the class itself by it."""
_GETTING = names.GETTERS | {"operator.attrgetter", "operator.methodcaller", "attrgetter", "methodcaller"}
_KNOWN = names.ATTRIBUTES | names.SETTERS | names.TEMPLATES
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

    def __init__(
        self, meaning: Meaning, roots: Iterable[ast.AST], library: LibraryWords, own: frozenset[str]
    ) -> None:
        self.meaning = meaning
        self.library = library
        self.own = own
        self.roots = list(roots)
        self.nodes = [node for root in self.roots for node in ast.walk(root)]
        self.above = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        # A docstring is read by nobody, unless the piece asks for one: it could be where a hidden
        # name is.
        asked = {node.attr for node in self.nodes if isinstance(node, ast.Attribute)}
        self.unread = set() if "__doc__" in asked else set(_docstrings(self.nodes))

    def marks(self) -> _Marks:
        for node in self.nodes:
            yield from self._of_node(node)
            # The definition itself was there before: only what is inside it defines something new.
            if node not in self.roots:
                yield from self._defined(node)
        for root in self.roots:
            yield from self._at_import(root)

    def _of_node(self, node: ast.AST) -> _Marks:
        reader = _READERS.get(type(node))
        if reader is not None:
            yield from reader(self, node)
        # A class that is handed on could make another one, whose objects equal anything (decision 115).
        if (
            isinstance(node, ast.expr)
            and self.meaning.is_class_of_value(node)
            and not self._is_harmless_class(node)
        ):
            yield SuspicionMark("a class handed on")

    def _constant(self, node: ast.Constant) -> _Marks:
        if isinstance(node.value, str) and node not in self.unread:
            yield from self._text(node, node.value)

    def _keyword(self, node: ast.keyword) -> _Marks:
        if node.arg is not None:
            yield from self._text(node, node.arg)

    # What is named

    def _imported(self, node: ast.Import | ast.ImportFrom) -> _Marks:
        whole = isinstance(node, ast.Import)
        for item in node.names:
            path = item.name if isinstance(node, ast.Import) else imported_path(node, item.name)
            yield from self._path(canonical(path), whole=whole)
            if any(map(_TEST.fullmatch, path.split("."))):
                yield SuspicionMark(path)

    def _name(self, node: ast.Name) -> _Marks:
        # Of a chain of attributes the whole says more than its first name.
        if isinstance(node.ctx, ast.Load) and not isinstance(self.above.get(node), ast.Attribute):
            yield from self._meant(node, self.meaning.paths(node))

    def _meant(self, node: ast.expr, paths: Iterable[str]) -> _Marks:
        for path in paths:
            yield from self._path(path)
            yield from self._handed_on(node, path)

    def _attribute_of(self, node: ast.Attribute) -> _Marks:
        if not isinstance(node.ctx, ast.Load):
            yield from self._stored(node.value, node.attr)
            return
        paths = self.meaning.paths(node)
        above = self.above.get(node)
        if not paths:
            yield from self._attribute(node.attr)
        elif not (isinstance(above, ast.Attribute) and self.meaning.paths(above)):
            yield from self._meant(node, paths)
        if self._is_called(node):
            return
        if node.attr in names.SETTERS:
            yield SuspicionMark(f"{node.attr} handed on")
        if node.attr in names.TEMPLATES:
            yield from self._template(node.value)

    def _is_called(self, node: ast.expr) -> bool:
        above = self.above.get(node)
        return isinstance(above, ast.Call) and above.func is node

    def _attribute(self, name: str) -> _Marks:
        """Mark an attribute that neither plain values nor the library nor the submission itself have
        (decision 115).
        """
        if name in names.REACHING:
            yield SuspicionMark(name)
        elif name in names.FILE_METHODS:
            yield SuspicionMark(f".{name}", "files")
        elif name not in _KNOWN and name not in self.own and not self.library.names(name):
            yield SuspicionMark(f".{name}")

    def _text(self, node: ast.AST, text: str) -> _Marks:
        """Mark a written name that somebody else may get, or make a class with."""
        yield from (SuspicionMark(word) for word in names.REACHING.intersection(_WORD.findall(text)))
        if text in names.OPERATORS and not self._looks(self.above.get(node)):
            yield SuspicionMark(f"{text} as a name")

    def _path(self, path: str, *, whole: bool = False) -> _Marks:
        """Mark a thing by its path; `whole` says that it is a module that is imported."""
        root, *rest = path.split(".")
        short = ".".join([root, *rest[:1]]).removeprefix("builtins.")
        kind = _kind(path)
        if kind:
            yield SuspicionMark(short, kind)
        elif root == "builtins":
            yield from self._built_in(rest, short)
        elif root in names.STANDARD or root in names.ALONE:
            yield from self._standard(path, short, whole=whole)
        else:
            yield from self._foreign(path.split("."))

    def _built_in(self, parts: list[str], short: str) -> _Marks:
        match parts:
            case [name, *rest] if name in names.PURE_BUILTINS:
                yield from self._parts(rest)
            case _:
                yield SuspicionMark(short)

    def _foreign(self, parts: list[str]) -> _Marks:
        """Mark the attributes of a name outside of Python, after the part that the tree defines or imports."""
        known = [end for end in range(1, len(parts) + 1) if self._is_known(".".join(parts[:end]))]
        yield from self._parts(filter(None, parts[max(known, default=0) :]))

    def _standard(self, path: str, short: str, *, whole: bool) -> _Marks:
        root, *rest = path.split(".")
        # From the longest path: a pure function counts even if its module is not pure as a whole.
        for end in range(len(rest) + 1, 0, -1):
            if _is_pure(".".join([root, *rest][:end])):
                yield from self._parts(rest[end - 1 :])
                return
        if path in names.MODULES or self._excused(path, root):
            return
        yield from map(SuspicionMark, sorted(names.REACHING.intersection(rest)))
        # Of most modules one use excuses another (decision 43); of these only the same function does
        # (decision 115).
        alone = whole or root in names.ALONE | names.GUARDED
        yield SuspicionMark(short, "" if alone else root)

    def _excused(self, path: str, root: str) -> bool:
        """Whether the library's own use is enough to name this (decision 115)."""
        guarded = root in names.GUARDED and path != root and path not in names.LIBRARY
        return root not in names.ALONE and not guarded and self.library.uses(path)

    def _parts(self, parts: Iterable[str]) -> _Marks:
        for part in parts:
            yield from self._attribute(part)

    def _is_known(self, path: str) -> bool:
        return self.library.is_module(path) or self.library.uses(path)

    def _handed_on(self, node: ast.expr, path: str) -> _Marks:
        """Mark a module, or a built-in that gets by name, that is used as a value."""
        is_called, is_tested = self._is_called(node), self._is_tested(node)
        if self._is_whole_module(path) and not is_tested:
            yield SuspicionMark(f"{path} handed on")
        elif path in _GETTING and not is_called:
            yield SuspicionMark(f"{path.removeprefix('builtins.')} handed on")
        elif path == "builtins.type":
            if not (is_called or is_tested or self._is_checked(node)):
                yield SuspicionMark("type handed on")
        elif path.startswith("builtins.type."):
            yield SuspicionMark("a class made by type")

    def _is_whole_module(self, path: str) -> bool:
        listed = path in names.MODULES or path in names.ALONE
        return listed or path in self.meaning.modules or self.library.is_module(path)

    def _is_tested(self, node: ast.expr) -> bool:
        """Whether a value is only compared, used as a condition, or given to a built-in that is marked by
        itself.
        """
        match self.above.get(node):
            case ast.Compare() | ast.If() | ast.UnaryOp():
                return True
            case ast.Call(args=[first, *_]) as call:
                return first is node and self._looks(call)
        return False

    def _looks(self, node: ast.AST | None) -> bool:
        """Whether a node is a call of `hasattr` or of a built-in that gets or sets by name, which `_got`
        marks.
        """
        return isinstance(node, ast.Call) and not names.LOOKS.isdisjoint(self.meaning.paths(node.func))

    def _is_checked(self, node: ast.AST) -> bool:
        """Whether a class is only compared: an argument of `isinstance`, perhaps in a tuple; or an
        annotation.
        """
        above = self.above.get(node)
        if isinstance(above, ast.Tuple):
            node, above = above, self.above.get(above)
        match above:
            case ast.Call(func=called, args=[_, kinds]) if kinds is node:
                return not {"builtins.isinstance", "builtins.issubclass"}.isdisjoint(
                    self.meaning.paths(called)
                )
            case ast.arg() | ast.Subscript() | ast.AnnAssign() | ast.Compare() | None:
                return True
        return False

    # What is called

    def _call(self, node: ast.Call) -> _Marks:
        paths = frozenset(self.meaning.paths(node.func))
        if paths & names.GETTERS:
            yield from self._got(node, paths)
        if "operator.methodcaller" in paths:
            yield from self._by_texts(node.args[:1])
        elif "operator.attrgetter" in paths:
            yield from self._by_texts(node.args)
        if "functools.wraps" in paths and not self._is_plain_wraps(node):
            yield SuspicionMark("functools.wraps")
        if self._makes_class(node, paths):
            yield SuspicionMark("a class made by type")
        # What `stacklevel` names is a frame; that of a warning is only shown.
        levels = any(item.arg == "stacklevel" for item in node.keywords)
        if levels and "warnings.warn" not in paths:
            yield SuspicionMark("stacklevel")
        if isinstance(node.func, ast.Attribute):
            yield from self._method(node, node.func, paths)

    def _makes_class(self, node: ast.Call, paths: frozenset[str]) -> bool:
        """Whether `type`, or the class of a value, is called with what a class is made of, or with what hides
        it.
        """
        if "builtins.type" in paths and (len(node.args) != 1 or node.keywords or _has_star(node)):
            return True
        has_parts = len(node.args) == _CLASS_CALL or _has_star(node)
        return has_parts and self.meaning.is_class_of_value(node.func)

    def _method(self, node: ast.Call, function: ast.Attribute, paths: frozenset[str]) -> _Marks:
        if function.attr in names.SETTERS:
            yield from self._set_by_method(node, function)
        if function.attr in names.TEMPLATES:
            unbound = any(path.startswith("builtins.str.") for path in paths)
            yield from self._template(node.args[0] if unbound and node.args else function.value)

    def _got(self, node: ast.Call, paths: frozenset[str]) -> _Marks:
        way = next(iter(paths & names.GETTERS)).partition(".")[2]
        texts = self.meaning.texts(node.args[1]) if len(node.args) > 1 and not _has_star(node) else None
        # Whatever gets by a text needs a written one (decision 115): a made-up one could be any name.
        if texts is None:
            yield SuspicionMark(f"{way} by a name that is made up")
            return
        owner = node.args[0]
        for text in texts:
            yield from self._got_attribute(owner, text) if way == "getattr" else self._stored(owner, text)

    def _got_attribute(self, owner: ast.expr, text: str) -> _Marks:
        reached = [canonical(f"{path}.{text}") for path in self.meaning.paths(owner)]
        for path in reached:
            yield from self._path(path)
        if not reached:
            yield from self._attribute(text)

    def _by_texts(self, asked: list[ast.expr]) -> _Marks:
        for texts in map(self.meaning.texts, asked):
            if texts is None:
                yield SuspicionMark(
                    "attrgetter by a name that is made up", "getattr by a name that is made up"
                )
            for text in texts or ():
                yield from self._parts(text.split("."))
                yield from (
                    SuspicionMark(f"{setter} as a name") for setter in names.SETTERS.intersection([text])
                )

    def _set_by_method(self, node: ast.Call, function: ast.Attribute) -> _Marks:
        # `o.__setattr__(name, value)`, or of a class `C.__setattr__(o, name, value)`; `__delattr__` has no
        # value.
        before_value = len(node.args) - (function.attr == "__setattr__")
        is_clear = before_value > 0 and not _has_star(node)
        texts = self.meaning.texts(node.args[before_value - 1]) if is_clear else None
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
        match node:
            case ast.Call(args=[ast.Starred()]):
                return False
            case ast.Call(args=[_], keywords=[]):
                return self._decorates(node)
        return False

    def _decorates(self, node: ast.Call) -> bool:
        match self.above.get(node):
            case ast.FunctionDef() | ast.AsyncFunctionDef() | None:
                return True
            case ast.Call(func=function, args=[ast.Name() as wrapped], keywords=[]) if function is node:
                found = self.meaning.bindings(wrapped)
                return bool(found) and all(isinstance(binding.definition, _FUNCTIONS) for binding in found)
        return False

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
        return not self.meaning.is_local(name) and any(
            isinstance(item.definition, ast.ClassDef) for item in found
        )

    def _rebound(self, node: ast.Global) -> _Marks:
        for name in node.names:
            # A name as the module has it: what `global` names is the binding outside of the function.
            used = ast.Name(name, ast.Load())
            self.meaning.scopes[used] = self.meaning.scopes[node].module
            if any(binding.path or binding.definition is not None for binding in self.meaning.bindings(used)):
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
        above = self.above.get(node)
        value: Any = getattr(above, "value", None)
        texts = list(
            map(self.meaning.texts, value.elts if isinstance(value, ast.Tuple | ast.List) else [value])
        )
        if None in texts or not isinstance(above, ast.Assign | ast.AnnAssign):
            yield SuspicionMark(f"{name} by names that are made up")
        for text in chain.from_iterable(filter(None, texts)):
            yield from (
                self._stored(ast.Constant(None), text) if name == "__slots__" else self._attribute(text)
            )

    def _class(self, node: ast.ClassDef) -> _Marks:
        if any(item.arg in ("metaclass", None) for item in node.keywords):
            yield SuspicionMark("a metaclass")
        for base in node.bases:
            if not _is_named_class(base) or self.meaning.is_class_of_value(base):
                yield SuspicionMark("a class derived from a value's own")
            if "builtins.type" in self.meaning.paths(base):
                yield SuspicionMark("a class derived from type")

    def _is_harmless_class(self, node: ast.expr) -> bool:
        """Whether the class of a value is only compared, shown, called, or asked for what its instances have."""
        match self.above.get(node):
            case ast.Attribute(attr=name):
                return name in names.OF_CLASSES or not _is_special(name)
            case ast.Call() as call:
                return call.func is node or self._is_shown(call, node)
            case ast.Assign(targets=targets):
                return isinstance(node, ast.Name) or all(isinstance(target, ast.Name) for target in targets)
            case ast.Tuple() | ast.List() as listed:  # `isinstance(x, (int, type(y)))`, `"%s" % (type(x), y)`
                return self._is_checked(node) or isinstance(self.above.get(listed), ast.BinOp)
            case ast.Subscript(slice=key) if key is node:
                return True
            case above:
                return isinstance(above, _SHOWING_CLASS) or _is_stored(node)

    def _is_shown(self, call: ast.Call, node: ast.expr) -> bool:
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("get", "index", "count"):
            return call.args[:1] == [node]
        built_in = {path.removeprefix("builtins.") for path in self.meaning.paths(call.func)}
        return bool(built_in & names.SHOWING) or (self._looks(call) and call.args[:1] == [node])

    def _matched(self, node: ast.MatchClass) -> _Marks:
        yield from self._parts(node.kwd_attrs)
        if node.patterns and isinstance(node.cls, ast.Name) and self._is_made_up(node.cls):
            yield SuspicionMark("a pattern of a class that is made up")

    def _is_made_up(self, name: ast.Name) -> bool:
        """Whether a local name may be bound to something else than a definition or an import."""
        unclear = any(
            binding.definition is None and not binding.path for binding in self.meaning.bindings(name)
        )
        return unclear and self.meaning.is_local(name)

    # What runs by itself

    def _annotated(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> _Marks:
        """Mark annotations of an inner function that run code, or are a text that is made up: others evaluate
        them.
        """
        given = (*_annotations(node.args), node.returns) if node not in self.roots else ()
        for annotation in filter(None, given):
            for part in _parts_of_annotation(annotation):
                if not isinstance(part, _PLAIN) or self._is_local_value(part):
                    yield SuspicionMark(f"an annotation that runs: {ast.unparse(annotation)[:_SHOWN]}")

    def _is_local_value(self, part: ast.AST) -> bool:
        """Whether a part of an annotation is a local name that may mean something else than a class."""
        if not (isinstance(part, ast.Name) and part in self.meaning.scopes and self.meaning.is_local(part)):
            return False
        found = self.meaning.bindings(part)
        return not all(isinstance(binding.definition, ast.ClassDef) or binding.path for binding in found)

    def _at_import(self, root: ast.AST) -> _Marks:
        for node in chain.from_iterable(map(_run, _evaluated(root))):
            paths = self.meaning.paths(node.func) if isinstance(node, ast.Call) else ()
            if names.HARMLESS_CALLS.isdisjoint(paths):
                yield SuspicionMark(f"at import: {ast.unparse(node)[:_SHOWN]}")


_READERS: Mapping[type[ast.AST], Callable[[_Piece, Any], _Marks]] = {
    ast.Import: _Piece._imported,
    ast.ImportFrom: _Piece._imported,
    ast.Name: _Piece._name,
    ast.Attribute: _Piece._attribute_of,
    ast.Call: _Piece._call,
    ast.Constant: _Piece._constant,
    ast.keyword: _Piece._keyword,
    ast.ClassDef: _Piece._class,
    ast.FunctionDef: _Piece._annotated,
    ast.AsyncFunctionDef: _Piece._annotated,
    ast.MatchClass: _Piece._matched,
    ast.Global: _Piece._rebound,
}
"""What reads a node, by its type; of all others only the parts matter."""


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


def _is_named_class(base: ast.expr) -> bool:
    """Whether a base class is written as a name, or made by a call that shows what it is given."""
    return isinstance(base, _NAMED_CLASS) or (isinstance(base, ast.Call) and not _has_star(base))


def _annotations(arguments: ast.arguments) -> list[ast.expr | None]:
    return [item.annotation for item in ast.walk(arguments) if isinstance(item, ast.arg)]


def _is_stored(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load)


def _has_star(node: ast.Call) -> bool:
    return any(isinstance(item, ast.Starred) for item in node.args) or any(
        item.arg is None for item in node.keywords
    )


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
            given = [*arguments.defaults, *arguments.kw_defaults, *_annotations(arguments)]
            yield from filter(None, [*given, *root.decorator_list, root.returns])
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
    """Yield the expressions that run when an expression is evaluated; of a lambda only its defaults do."""
    stack: list[ast.AST] = [node]
    while stack:
        inner = stack.pop()
        if isinstance(inner, _RUN_AT_IMPORT):
            yield inner
        if isinstance(inner, ast.Lambda):
            stack.extend(filter(None, [*inner.args.defaults, *inner.args.kw_defaults]))
        else:
            stack.extend(ast.iter_child_nodes(inner))
