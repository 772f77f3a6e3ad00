"""The marks of one piece of a module: reasons to read it, found in the names that it uses (decision 115)."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from gistpoint.core.code.bindings import bound_names
from gistpoint.core.code.nodes import has_any, only
from gistpoint.core.suspicion import names
from gistpoint.core.suspicion.evaluation import (
    annotations_of,
    expressions_run_at_import,
    is_plain_annotation,
    parts_of_annotation,
)
from gistpoint.core.suspicion.meaning import Meaning, canonical, imported_path
from gistpoint.core.suspicion.vocabulary import LibraryWords

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEST = re.compile(r"tests|conftest|test_\w+|\w+_test")
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_DOCUMENTED: tuple[type[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module], ...] = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Module,
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
"""Nodes in which a value's class is harmless, because none of them passes the class itself on."""
_GETTING = names.ATTRIBUTE_BUILTINS | {
    "operator.attrgetter",
    "operator.methodcaller",
    "attrgetter",
    "methodcaller",
}
_KNOWN = names.ATTRIBUTES | names.SETTERS | names.FORMATTERS
_MODULES = names.IMPORTABLE | names.ONLY_BY_ORIGINAL
_NAMES_PARTS = ("__slots__", "__match_args__")
_CHECKS_OF_CLASS = frozenset({"builtins.isinstance", "builtins.issubclass"})
_SEARCHES = ("get", "index", "count")
"""Methods that only search a container for their first argument."""
_CLASS_CALL = 3
"""The number of arguments with which `type` creates a class: its name, its bases and its namespace."""
_SHOWN = 60
"""The maximum length, in characters, of the code quoted in a mark."""


@dataclass(frozen=True, slots=True, order=True)
class SuspicionMark:
    """A reason to read a submission, in words, and its kind if any mark of the same kind excuses it."""

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
    """Return the marks of a piece of a module; `own` contains the attributes that the submission defines."""
    return set(_Piece(meaning, piece, library, own).marks())


class _Piece:
    """The nodes of one piece of a module, which are examined together."""

    def __init__(
        self, meaning: Meaning, roots: Iterable[ast.AST], library: LibraryWords, own: frozenset[str]
    ) -> None:
        self.meaning = meaning
        self.library = library
        self.known_attributes = _KNOWN | own
        self.roots = list(roots)
        self.nodes = [node for root in self.roots for node in ast.walk(root)]
        self.above = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        # No code reads a docstring, unless the piece reads `__doc__`: then a name could be hidden there.
        reads_docstrings = any(getattr(node, "attr", "") == "__doc__" for node in self.nodes)
        self.unread = set() if reads_docstrings else set(_docstrings(self.nodes))

    def marks(self) -> _Marks:
        """Yield the marks of all nodes; the same mark may be yielded several times."""
        for node in self.nodes:
            yield from self._of_node(node)
            # The definition itself is not new, so only the code inside it can define something new.
            if node not in self.roots:
                yield from self._defined(node)
        for root in self.roots:
            yield from self._at_import(root)

    def _of_node(self, node: ast.AST) -> _Marks:
        reader = _READERS.get(type(node))
        if reader is not None:
            yield from reader(self, node)
        if not isinstance(node, ast.expr) or not self.meaning.is_class_of_value(node):
            return
        # A class that is passed on could make another one, whose objects equal anything (decision 115).
        if not self._is_harmless_class(node):
            yield SuspicionMark("a class passed on as a value")

    def _constant(self, node: ast.Constant) -> _Marks:
        if isinstance(node.value, str) and node not in self.unread:
            yield from self._text(node, node.value)

    def _keyword(self, node: ast.keyword) -> _Marks:
        if node.arg is not None:
            yield from self._text(node, node.arg)

    # Names and paths

    def _imported_modules(self, node: ast.Import) -> _Marks:
        for item in node.names:
            yield from self._imported(item.name, whole=True)

    def _imported_names(self, node: ast.ImportFrom) -> _Marks:
        for item in node.names:
            yield from self._imported(imported_path(node, item.name), whole=False)

    def _imported(self, path: str, *, whole: bool) -> _Marks:
        yield from self._path(canonical(path), whole=whole)
        if any(map(_TEST.fullmatch, path.split("."))):
            yield SuspicionMark(path)

    def _name(self, node: ast.Name) -> _Marks:
        # A chain of attributes is read as a whole: its path says more than its first name.
        begins_chain = isinstance(self.above.get(node), ast.Attribute)
        if isinstance(node.ctx, ast.Load) and not begins_chain:
            yield from self._referred_to(node, self.meaning.paths(node))

    def _referred_to(self, node: ast.expr, paths: Iterable[str]) -> _Marks:
        for path in paths:
            yield from self._path(path)
            yield from self._handed_on(node, path)

    def _attribute_of(self, node: ast.Attribute) -> _Marks:
        if not isinstance(node.ctx, ast.Load):
            yield from self._stored(node.value, node.attr)
            return
        paths = self.meaning.paths(node)
        if not paths:
            yield from self._attribute(node.attr)
        elif not self._is_part_of_path(node):
            yield from self._referred_to(node, paths)
        if self._is_called(node):
            return
        if node.attr in names.SETTERS:
            yield SuspicionMark(f"{node.attr} passed on as a value")
        if node.attr in names.FORMATTERS:
            yield from self._template(node.value)

    def _is_part_of_path(self, node: ast.Attribute) -> bool:
        """Return whether a longer chain of attributes, which is read separately, begins with this one."""
        above = self.above.get(node)
        return isinstance(above, ast.Attribute) and bool(self.meaning.paths(above))

    def _is_called(self, node: ast.expr) -> bool:
        above = self.above.get(node)
        return isinstance(above, ast.Call) and above.func is node

    def _attribute(self, name: str) -> _Marks:
        """Yield a mark for an attribute that reaches beyond plain values or is unknown (decision 115)."""
        if name in names.REACHING:
            yield SuspicionMark(name)
        elif name in names.FILE_METHODS:
            yield SuspicionMark(f".{name}", "files")
        elif name not in self.known_attributes and not self.library.names(name):
            yield SuspicionMark(f".{name}")

    def _text(self, node: ast.AST, text: str) -> _Marks:
        """Yield marks for a name in a string with which other code can get an attribute or create a class."""
        yield from map(SuspicionMark, names.REACHING.intersection(_WORD.findall(text)))
        if text in names.DECIDING_METHODS and not self._is_look_up(self.above.get(node)):
            yield SuspicionMark(f"{text} as a name")

    def _path(self, path: str, *, whole: bool = False) -> _Marks:
        """Yield marks for a module, function or class by its path.

        `whole` says whether an `import` names it as a module.
        """
        root, *rest = path.split(".")
        short = ".".join([root, *rest[:1]]).removeprefix("builtins.")
        kind = names.kind_of(path)
        if kind:
            yield SuspicionMark(short, kind)
        elif root == "builtins":
            yield from self._built_in(rest, short)
        elif root in names.STANDARD or root in names.ONLY_BY_ORIGINAL:
            yield from self._standard(path, short, whole=whole)
        else:
            yield from self._foreign(path)

    def _built_in(self, parts: list[str], short: str) -> _Marks:
        match parts:
            case [name, *rest] if name in names.PURE_BUILTINS:
                yield from self._parts(rest)
            case _:
                yield SuspicionMark(short)

    def _foreign(self, path: str) -> _Marks:
        """Yield marks for the attributes in a path that follow the part that the tree defines or imports."""
        known = _known_length(path, self._is_known)
        yield from self._parts(filter(None, path.split(".")[known:]))

    def _standard(self, path: str, short: str, *, whole: bool) -> _Marks:
        root, *rest = path.split(".")
        # A pure function counts even if its module is not pure as a whole.
        pure = _known_length(path, names.is_pure)
        if pure:
            yield from self._parts(path.split(".")[pure:])
            return
        if path in names.IMPORTABLE or self._excused(path, root):
            return
        yield from map(SuspicionMark, sorted(names.REACHING.intersection(rest)))
        # For most modules, one use in the original excuses any other (decision 43); for those in `ALONE` and
        # `GUARDED`, it excuses only the same function (decision 115).
        alone = whole or root in names.ONLY_BY_ORIGINAL | names.GUARDED
        yield SuspicionMark(short, "" if alone else root)

    def _excused(self, path: str, root: str) -> bool:
        """Return whether the library's own use of a path excuses it (decision 115)."""
        if root in names.ONLY_BY_ORIGINAL:
            return False
        if root in names.GUARDED and path not in names.FROM_LIBRARY | {root}:
            return False
        return self.library.uses(path)

    def _parts(self, parts: Iterable[str]) -> _Marks:
        return chain.from_iterable(map(self._attribute, parts))

    def _of_texts(
        self, node: ast.expr | None, mark: Callable[[str], _Marks], made_up: SuspicionMark
    ) -> _Marks:
        """Yield the marks of each string that an expression can be, or `made_up` if it has other values.

        A lookup by a string needs a literal (decision 115): a computed string could be any name. The same is
        true of an argument that is missing or unpacked, which is None.
        """
        texts = self.meaning.texts(node) if node is not None else None
        if texts is None:
            yield made_up
        else:
            yield from chain.from_iterable(map(mark, texts))

    def _is_known(self, path: str) -> bool:
        return self.library.is_module(path) or self.library.uses(path)

    def _handed_on(self, node: ast.expr, path: str) -> _Marks:
        """Yield marks for using, as a value, a module or a built-in that gets attributes by name."""
        is_called, is_tested = self._is_called(node), self._is_tested(node)
        if self._is_module(path) and not is_tested:
            yield SuspicionMark(f"{path} passed on as a value")
        elif path in _GETTING and not is_called:
            yield SuspicionMark(f"{path.removeprefix('builtins.')} passed on as a value")
        elif path == "builtins.type":
            is_harmless = is_called or is_tested or self._is_checked(node)
            if not is_harmless:
                yield SuspicionMark("type passed on as a value")
        elif path.startswith("builtins.type."):
            yield SuspicionMark("a class created with type")

    def _is_module(self, path: str) -> bool:
        is_known = path in _MODULES or path in self.meaning.modules
        return is_known or self.library.is_module(path)

    def _is_tested(self, node: ast.expr) -> bool:
        """Return whether a value is only compared, used as a condition, or given to a lookup by name."""
        above = self.above.get(node)
        if isinstance(above, ast.Call):
            return above.args[:1] == [node] and self._is_look_up(above)
        return isinstance(above, ast.Compare | ast.If | ast.UnaryOp)

    def _is_look_up(self, node: ast.AST | None) -> bool:
        """Return whether a node calls `hasattr`, `getattr` or another built-in that takes a name."""
        return isinstance(node, ast.Call) and not names.LOOKUP_BUILTINS.isdisjoint(
            self.meaning.paths(node.func)
        )

    def _is_checked(self, node: ast.AST) -> bool:
        """Return whether a class is only compared, as by `isinstance`, or is a part of an annotation."""
        above = self.above.get(node)
        if isinstance(above, ast.Tuple):
            node, above = above, self.above.get(above)
        match above:
            case ast.Call(func=called, args=[_, kinds]) if kinds is node:
                return not _CHECKS_OF_CLASS.isdisjoint(self.meaning.paths(called))
            case ast.arg() | ast.Subscript() | ast.AnnAssign() | ast.Compare() | None:
                return True
        return False

    # Calls

    def _call(self, node: ast.Call) -> _Marks:
        paths = frozenset(self.meaning.paths(node.func))
        if paths & names.ATTRIBUTE_BUILTINS:
            yield from self._got(node, paths)
        if "operator.methodcaller" in paths:
            yield from self._attributes_named(node.args[:1])
        elif "operator.attrgetter" in paths:
            yield from self._attributes_named(node.args)
        if "functools.wraps" in paths and not self._is_plain_wraps(node):
            yield SuspicionMark("functools.wraps")
        if self._makes_class(node, paths):
            yield SuspicionMark("a class created with type")
        # `stacklevel` reaches a frame; the frame that a warning names is only shown.
        keywords = {item.arg for item in node.keywords}
        if "stacklevel" in keywords and "warnings.warn" not in paths:
            yield SuspicionMark("stacklevel")
        if isinstance(node.func, ast.Attribute):
            yield from self._method(node, node.func, paths)

    def _makes_class(self, node: ast.Call, paths: frozenset[str]) -> bool:
        """Return whether a call to `type`, or of a value's class, creates or might create a class."""
        is_unclear = _has_star(node)
        only_asks = len(node.args) == 1 and not node.keywords and not is_unclear
        if "builtins.type" in paths and not only_asks:
            return True
        has_parts = len(node.args) == _CLASS_CALL or is_unclear
        return has_parts and self.meaning.is_class_of_value(node.func)

    def _method(self, node: ast.Call, function: ast.Attribute, paths: frozenset[str]) -> _Marks:
        if function.attr in names.SETTERS:
            yield from self._set_by_method(node, function)
        if function.attr in names.FORMATTERS:
            # Called on the class, as in `str.format(text, x)`, the text is the first argument.
            of_class = any(path.startswith("builtins.str.") for path in paths)
            template = node.args[0] if of_class and node.args else function.value
            yield from self._template(template)

    def _got(self, node: ast.Call, paths: frozenset[str]) -> _Marks:
        getter = next(iter(paths & names.ATTRIBUTE_BUILTINS)).partition(".")[2]
        mark = self._got_attribute if getter == "getattr" else self._stored
        made_up = SuspicionMark(f"{getter} with a computed name")
        yield from self._of_texts(_argument(node, 1), lambda text: mark(node.args[0], text), made_up)

    def _got_attribute(self, owner: ast.expr, text: str) -> _Marks:
        paths = self.meaning.paths(owner)
        if not paths:
            yield from self._attribute(text)
        for path in paths:
            yield from self._path(canonical(f"{path}.{text}"))

    def _attributes_named(self, arguments: list[ast.expr]) -> _Marks:
        made_up = SuspicionMark("attrgetter with a computed name", "getattr with a computed name")
        for argument in arguments:
            yield from self._of_texts(argument, self._attribute_named, made_up)

    def _attribute_named(self, text: str) -> _Marks:
        yield from self._parts(text.split("."))
        if text in names.SETTERS:
            yield SuspicionMark(f"{text} as a name")

    def _set_by_method(self, node: ast.Call, function: ast.Attribute) -> _Marks:
        # `o.__setattr__(name, value)`, or `C.__setattr__(o, name, value)` with a class; `__delattr__` takes
        # no value.
        place = len(node.args) - (function.attr == "__setattr__") - 1
        match function.value:
            case ast.Call(func=ast.Name(id="super"), args=[_, owner]):
                pass
            case owner:
                owner = node.args[0] if place > 0 else owner
        made_up = SuspicionMark(f"{function.attr} with a computed name")
        yield from self._of_texts(_argument(node, place), partial(self._stored, owner), made_up)

    def _template(self, node: ast.expr) -> _Marks:
        """Yield marks for a string whose `format` can get attributes that are not visible in the code."""
        made_up = SuspicionMark("format with a computed string")
        return self._of_texts(node, lambda text: self._parts(_formatted(text)), made_up)

    def _is_plain_wraps(self, node: ast.Call) -> bool:
        """Return whether `wraps(f)` decorates a function, or is called with a function of this module."""
        has_one_argument = len(node.args) == 1 and not node.keywords
        return has_one_argument and not _has_star(node) and self._decorates(node)

    def _decorates(self, node: ast.Call) -> bool:
        match self.above.get(node):
            case ast.FunctionDef() | ast.AsyncFunctionDef() | None:
                return True
            case ast.Call(func=function, args=[ast.Name() as wrapped], keywords=[]) if function is node:
                bindings = self.meaning.bindings(wrapped)
                return bool(bindings) and all(isinstance(item.definition, _FUNCTIONS) for item in bindings)
        return False

    # Replacements

    def _stored(self, owner: ast.expr, name: str) -> _Marks:
        """Yield marks for setting an attribute of an object that the submission should not change."""
        if name in names.REACHING:
            yield SuspicionMark(name)
        if names.is_special(name) and name not in names.SETTABLE:
            yield SuspicionMark(f"{name} is replaced")
        for path in self.meaning.paths(owner):
            yield SuspicionMark(f"{path.lstrip('.')}.{name} is replaced")
        if isinstance(owner, ast.Name) and self._is_class_of_module(owner):
            yield SuspicionMark(f"{owner.id}.{name} is replaced")
        if self.meaning.is_class_of_value(owner):
            yield SuspicionMark(f"a class's {name} is replaced", "class attribute")

    def _is_class_of_module(self, name: ast.Name) -> bool:
        if self.meaning.is_local(name):
            return False
        return any(isinstance(item.definition, ast.ClassDef) for item in self.meaning.bindings(name))

    def _rebound(self, node: ast.Global) -> _Marks:
        for name in node.names:
            # `global` names a binding of the module, not of the function, so the module's scope is used.
            used = ast.Name(name, ast.Load())
            self.meaning.scopes[used] = self.meaning.scopes[node].module
            if any(binding.is_clear for binding in self.meaning.bindings(used)):
                yield SuspicionMark(f"{name} is replaced")

    # Definitions, which may decide comparisons

    def _defined(self, node: ast.AST) -> _Marks:
        """Yield marks for a method that decides what an object equals, or which class it seems to have."""
        for name in bound_names(node):
            if names.is_special(name) and name not in names.DEFINABLE:
                yield SuspicionMark(f"{name} defined in a new class")
            if name in _NAMES_PARTS:
                yield from self._named_parts(node, name)

    def _named_parts(self, node: ast.AST, name: str) -> _Marks:
        above = self.above.get(node)
        value: Any = getattr(above, "value", None)
        made_up = SuspicionMark(f"{name} with computed names")
        if not isinstance(above, ast.Assign | ast.AnnAssign):
            yield made_up
        mark: Callable[[str], _Marks] = self._attribute
        if name == "__slots__":
            mark = partial(self._stored, ast.Constant(None))
        for item in value.elts if isinstance(value, ast.Tuple | ast.List) else [value]:
            yield from self._of_texts(item, mark, made_up)

    def _class(self, node: ast.ClassDef) -> _Marks:
        # Unpacked keywords, whose name is None, may contain a metaclass.
        keywords = {item.arg for item in node.keywords}
        if not keywords.isdisjoint(("metaclass", None)):
            yield SuspicionMark("a metaclass")
        for base in node.bases:
            if not _is_named_class(base) or self.meaning.is_class_of_value(base):
                yield SuspicionMark("a class derived from the class of a value")
            if "builtins.type" in self.meaning.paths(base):
                yield SuspicionMark("a class derived from type")

    def _is_harmless_class(self, node: ast.expr) -> bool:
        """Return whether a value's class is only compared, shown, called, stored or read for attributes."""
        match self.above.get(node):
            case ast.Attribute(attr=name):  # `type(x).__name__`
                return name in names.OF_CLASSES or not names.is_special(name)
            case ast.Call() as call:  # `type(x)(y)`, `isinstance(y, type(x))`
                is_called = call.func is node
                return is_called or self._is_shown(call, node)
            case ast.Assign(targets=targets):  # `kind = type(x)`
                # The names that the class is bound to are examined where they are used.
                is_bound = all(isinstance(target, ast.Name) for target in targets)
                return is_bound or isinstance(node, ast.Name)
            case ast.Tuple() | ast.List() as listed:  # `isinstance(x, (int, type(y)))`, `"%s" % (type(x), y)`
                is_formatted = isinstance(self.above.get(listed), ast.BinOp)
                return is_formatted or self._is_checked(node)
            case ast.Subscript(slice=key) if key is node:  # `makers[type(x)]`
                return True
            case above:
                return isinstance(above, _SHOWING_CLASS) or _is_stored(node)

    def _is_shown(self, call: ast.Call, node: ast.expr) -> bool:
        is_first = call.args[:1] == [node]
        if isinstance(call.func, ast.Attribute) and call.func.attr in _SEARCHES:
            return is_first
        built_in = {path.removeprefix("builtins.") for path in self.meaning.paths(call.func)}
        if not names.SHOWING.isdisjoint(built_in):
            return True
        return is_first and self._is_look_up(call)

    def _matched(self, node: ast.MatchClass) -> _Marks:
        yield from self._parts(node.kwd_attrs)
        if node.patterns and isinstance(node.cls, ast.Name) and self._is_made_up(node.cls):
            yield SuspicionMark("a pattern with a computed class")

    def _is_made_up(self, name: ast.Name) -> bool:
        """Return whether a local name may be bound to something other than a definition or an import."""
        if not self.meaning.is_local(name):
            return False
        return not all(binding.is_clear for binding in self.meaning.bindings(name))

    # Code that runs without being called

    def _annotated(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> _Marks:
        """Yield marks for annotations of an inner function that run code: other code can evaluate them."""
        if node in self.roots:
            return
        for annotation in annotations_of(node):
            for part in parts_of_annotation(annotation):
                if not is_plain_annotation(part) or self._is_local_value(part):
                    yield SuspicionMark(f"an annotation that runs code: {ast.unparse(annotation)[:_SHOWN]}")

    def _is_local_value(self, part: ast.AST) -> bool:
        """Return whether a part of an annotation is a local name that may mean something besides a class."""
        # Names in an annotation that is written as a string have no scope.
        if not isinstance(part, ast.Name) or part not in self.meaning.scopes:
            return False
        if not self.meaning.is_local(part):
            return False
        bindings = self.meaning.bindings(part)
        return not all(isinstance(item.definition, ast.ClassDef) or item.path for item in bindings)

    def _at_import(self, root: ast.AST) -> _Marks:
        for node in expressions_run_at_import(root):
            paths = self.meaning.paths(node.func) if isinstance(node, ast.Call) else ()
            if names.HARMLESS_CALLS.isdisjoint(paths):
                yield SuspicionMark(f"at import: {ast.unparse(node)[:_SHOWN]}")


_READERS: Mapping[type[ast.AST], Callable[[_Piece, Any], _Marks]] = {
    ast.Import: _Piece._imported_modules,
    ast.ImportFrom: _Piece._imported_names,
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
"""The method that marks a node, by its type; other nodes have no marks."""


def _is_named_class(base: ast.expr) -> bool:
    """Return whether a base class is written as a name, or created by a call without unpacked arguments."""
    return isinstance(base, _NAMED_CLASS) or (isinstance(base, ast.Call) and not _has_star(base))


def _is_stored(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load)


def _known_length(path: str, is_known: Callable[[str], bool]) -> int:
    """Return the number of parts in the longest known path that begins a path; 0 if none is known."""
    return max((n for n, start in enumerate(names.leading_paths(path), 1) if is_known(start)), default=0)


def _argument(node: ast.Call, place: int) -> ast.expr | None:
    """Return a positional argument of a call; None if the call has none there, or unpacks arguments."""
    is_clear = 0 <= place < len(node.args) and not _has_star(node)
    return node.args[place] if is_clear else None


def _has_star(node: ast.Call) -> bool:
    """Return whether a call unpacks arguments with `*` or `**`."""
    return has_any(ast.Starred, node.args) or any(item.arg is None for item in node.keywords)


def _formatted(text: str) -> Iterator[str]:
    """Yield the attributes that a format string reads, including those in its format specifiers.

    Yields nothing for a string that is not a valid format string.
    """
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError:
        return
    for _, field, spec, _ in fields:
        yield from re.findall(r"\.([^.\[\]]+)", field or "")
        if spec:
            yield from _formatted(spec)


def _docstrings(nodes: list[ast.AST]) -> Iterator[ast.Constant]:
    for node in only(_DOCUMENTED, nodes):
        match node.body:
            case [ast.Expr(value=ast.Constant(value=str()) as text), *_]:
                yield text
