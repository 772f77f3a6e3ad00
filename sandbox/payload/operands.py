"""Records the classes of the objects that decide a test: those compared, passed on, or tested for truth.

The code of the test shows where that happens. The functions of the test get code in which every value that
they use is passed to this module first. The values are unchanged, and their own code is hardly ever run: an
object can't lie about its class to `type`, and its parts are those that the garbage collector sees. A run
with this code only reports what it saw. The outcome of such a run does not count, because a few libraries
read the code of their callers (decision 123).
"""

from __future__ import annotations

import ast
import builtins
import gc
import os
import random
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

_HEAP_TYPE = 1 << 9
_MOST_CLASSES, _MOST_OBJECTS, _MOST_ASKED, _DEPTH = 1000, 500_000, 500, 6
_NAME = 300
_PLAIN = {
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    bytearray,
    range,
    type(...),
    type(NotImplemented),
}
_CLOSED = (
    FunctionType,
    types.BuiltinFunctionType,
    ModuleType,
    CodeType,
    types.FrameType,
    types.TracebackType,
)
"""Classes of objects whose parts lead everywhere, and do not decide what the objects are equal to."""
_FUNCTIONS = (FunctionType, types.BuiltinFunctionType)
_PROXIES = (weakref.ProxyType, weakref.CallableProxyType, weakref.ReferenceType)
SPECIALS = frozenset(
    f"__{name}__"
    for name in [
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "hash",
        "bool",
        "len",
        "contains",
        "iter",
        "getitem",
        "instancecheck",
        "subclasscheck",
        "subclasshook",
        "class",
        "getattr",
        "getattribute",
        "float",
        "int",
        "index",
        "complex",
        "abs",
        "neg",
        "pos",
        "round",
        "add",
        "radd",
        "sub",
        "rsub",
        "mul",
        "rmul",
        "truediv",
        "rtruediv",
        "mod",
        "rmod",
        "str",
        "repr",
        "format",
    ]
)
"""The methods by which a class takes part in comparisons, arithmetic, class checks or conversions."""

_TEXTS = {"__str__", "__repr__", "__format__"}

if TYPE_CHECKING:
    Row = dict[str, Any]


class Operands:
    """An observer of functions of `path` on `lines`; `is_environment` recognises the environment's code."""

    def __init__(self, path: str, lines: Iterable[int], is_environment: Callable[[CodeType], bool]) -> None:
        self._path, self._lines, self._is_environment = path, frozenset(lines), is_environment
        self._known: dict[int, tuple[type, tuple[Row, ...]]] = {}
        self._rows: dict[str, Row] = {}
        self._left, self._asks = _MOST_OBJECTS, _MOST_ASKED
        self._codes: dict[CodeType, CodeType] = {}
        self._observing_ids: set[int] = set()
        self._functions: dict[tuple[int, str], object] = {}

    def prepare(self) -> list[CodeType]:
        """Record the classes of the environment; return the observing code, which the run may execute.

        This must be called before the gist is imported: what exists by then is the environment's.
        """
        for kind in _classes():
            self._known[id(kind)] = kind, ()
        for owner in _modules():
            for name, value in list(vars(owner).items()):
                if type(value) in _FUNCTIONS:
                    self._functions[id(owner), name] = value
        # The observing functions are constants of the code: the gist could find and replace a global name,
        # but can't guess a random string.
        marks = {f"gistpoint {os.urandom(16).hex()}": seen for seen in (self._deep, self._shallow)}
        self._codes = _observing(self._path, self._lines, *marks)
        self._codes = {code: _with_constants(new, marks) for code, new in self._codes.items()}
        self._observing_ids = {id(code) for code in self._codes.values()}
        return list(self._codes.values())

    def start(self) -> None:
        """Give observing code to every existing function that has such code."""
        # The collector lists no frozen objects, and another part of the run may have frozen them.
        gc.unfreeze()
        for found in gc.get_objects():
            if type(found) is FunctionType:
                self.observe(found)

    def observe(self, function: object) -> None:
        """Give a function its observing code, if it has any."""
        if type(function) is FunctionType and id(function.__code__) not in self._observing_ids:
            code = self._codes.get(function.__code__)
            # Python refuses code with another number of free variables, with an error inside the tested run.
            if code is not None and code.co_freevars == function.__code__.co_freevars:
                function.__code__ = code

    def observe_doctest(self, doctest: Any) -> None:
        """Make a doctest's parsable examples pass their values here; does nothing under Python 3.8."""
        if not hasattr(ast, "unparse"):  # Python 3.8
            return
        names = {f"_{os.urandom(8).hex()}": seen for seen in (self._deep, self._shallow)}
        doctest.globs.update(names)
        deep, shallow = names
        for example in doctest.examples:
            try:
                tree = ast.parse(example.source)
            except SyntaxError:
                continue
            changed = _Passing(
                lambda: ast.Name(deep, ast.Load()), lambda: ast.Name(shallow, ast.Load())
            ).visit(tree)
            example.source = ast.unparse(ast.fix_missing_locations(changed)) + "\n"

    def record_replaced(self, names: dict[str, Any]) -> None:
        """Record which functions of libraries and builtins are replaced, for a test with these globals.

        In a module that the test names, any other value counts as a replacement; in all other modules, only
        code of the gist does.
        """
        reached = {id(value) for value in names.values()}
        for owner in filter(self._is_of_a_library, _modules()):
            for name, value in list(vars(owner).items()):
                if self._is_of_the_gist(value) or (
                    id(owner) in reached and self._is_replacement(owner, name, value)
                ):
                    self._note_replaced(f"{owner.__name__}.{name}")
        for name in {*names} & {*vars(builtins)}:
            if name[:2] != "__" and names[name] is not vars(builtins)[name]:
                self._note_replaced(name)

    def _is_of_a_library(self, module: ModuleType) -> bool:
        return self._is_library(str(vars(module).get("__name__")))

    def _is_of_the_gist(self, value: object) -> bool:
        code = _code_in(value)
        return code is not None and code.co_filename == self._path

    def _is_replacement(self, owner: object, name: str, value: object) -> bool:
        """Whether a public function other than a hook was replaced by a value without Python code."""
        before = self._functions.get((id(owner), name))
        if before is None or before is value or name[:1] == "_" or name.endswith("hook"):
            return False
        return _code_in(value) is None

    def _note_replaced(self, name: str) -> None:
        if len(self._rows) < _MOST_CLASSES:
            self._rows.setdefault(f"replaced {name}", {"names": [name[:_NAME]], "replaced": True})

    def rows(self) -> list[Row]:
        """Return a row for each class that took part, except for those of the environment.

        The keys are `names` (the qualified name, then the gist's names for the class) and `specials` (the
        name, the origin and the first line of each special method). Other rows have `names` and either
        `replaced` or `wild`, the module of one of the environment's objects that are equal to anything.
        """
        return list(self._rows.values())

    def all_classes(self) -> list[Row]:
        """Return the rows of at most 1000 existing classes, without those of the environment (see `rows`)."""
        found: dict[str, Row] = {}
        for kind in _classes():
            for row in self._rows_of(kind):
                found.setdefault(_key(row), row)
        return list(found.values())[:_MOST_CLASSES]

    # Called by the observing code

    def _shallow(self, value: object) -> object:
        if type(value) not in _PLAIN:
            self._look(value, 0)
        return value

    def _deep(self, value: object) -> object:
        if type(value) not in _PLAIN:
            self._look(value, _DEPTH)
        return value

    def _look(self, value: object, depth: int) -> None:
        try:
            self._walk(value, depth)
        except (RuntimeError, MemoryError):
            # A container changed while it was read, or the stack is exhausted: only the class is recorded.
            self._note(type(value))

    def _walk(self, value: object, depth: int) -> None:
        waiting, seen = [(value, depth)], {id(value)}
        while waiting:
            found, left = waiting.pop()
            kind = type(found)
            if kind in _PLAIN:
                continue
            self._note(kind)
            self._note_wild(found, kind)
            if issubclass(kind, type):
                self._note(found)  # type: ignore[arg-type]
            # Checked before the parts: a proxy forwards access, only the collector shows its referent.
            elif kind in _PROXIES:
                for referent in _referents(found):
                    self._note(type(referent))
            elif left and self._left > 0 and not issubclass(kind, _CLOSED):
                parts = [
                    one for one in gc.get_referents(found) if id(one) not in seen and type(one) not in _PLAIN
                ]
                # Limited for the whole run, because a test may compare large trees in a loop.
                self._left -= len(parts) + 1
                seen.update(map(id, parts))
                waiting += [(one, left - 1) for one in parts if one is not kind]

    def _note(self, kind: type) -> None:
        for row in self._rows_of(kind):
            if len(self._rows) < _MOST_CLASSES:
                self._rows.setdefault(_key(row), row)

    def _rows_of(self, kind: type) -> tuple[Row, ...]:
        """Return the rows of a class and of its bases, except for those of the environment."""
        known = self._known.get(id(kind))
        if known is None:
            rows = [self._row(one) for one in type.__dict__["__mro__"].__get__(kind)]
            known = self._known[id(kind)] = kind, tuple(row for row in rows if row is not None)
        return known[1]

    def _row(self, kind: type) -> Row | None:
        if not type.__dict__["__flags__"].__get__(kind) & _HEAP_TYPE:
            return None
        if id(kind) in self._known and not self._known[id(kind)][1]:
            return None
        module, name = _names(kind)
        inner = type.__dict__["__dict__"].__get__(kind)
        own = [
            [one, *self._origin(kind, one, inner[one])]
            for one in sorted(SPECIALS & {*inner})
            if inner[one] is not None
        ]
        is_plain = all(how == "environment" for _, how, _ in own)
        if self._is_library(module) and (is_plain or self._is_class_of_a_mock(kind)):
            return None
        return {"names": [name[:_NAME], *self._bound(kind)], "specials": own}

    def _origin(self, kind: type, special: str, value: object) -> tuple[str, int]:
        """Return a method's origin, `environment`, `gist` or `elsewhere`, and its line in the gist or 0."""
        if type(value) in (
            types.WrapperDescriptorType,
            types.MethodDescriptorType,
            types.GetSetDescriptorType,
        ):
            return "environment" if _is_inherited(kind, special, value) else "elsewhere", 0
        code = _code_in(value)
        if code is None:
            return "elsewhere", 0
        if code.co_filename == self._path:
            return "gist", code.co_firstlineno
        # A gist could lend its class the `__eq__` of an unrelated class of the environment, such as a mock's.
        is_given = self._is_environment(code) and not _is_borrowed(kind, special, code)
        return "environment" if is_given else "elsewhere", 0

    def _is_class_of_a_mock(self, kind: type) -> bool:
        """Whether `unittest.mock` made a class for a single mock; mocks themselves are recorded as wild."""
        base = type.__dict__["__bases__"].__get__(kind)[-1]
        known = self._known.get(id(base))
        return known is not None and not known[1] and _is_mock(base) and _names(base) == _names(kind)

    def _is_library(self, name: str) -> bool:
        """Whether a name is that of an imported, ordinary module without a file in the gist's folder."""
        module = sys.modules.get(name)
        if type(module) is not ModuleType or name == "__main__":
            return False
        path = getattr(module, "__file__", None)
        return path is None or (
            isinstance(path, str) and os.path.dirname(path) != os.path.dirname(self._path)
        )

    def _bound(self, kind: type) -> list[str]:
        """Return the top-level names of the gist that are bound to a class."""
        for module in list(sys.modules.values()):
            if getattr(module, "__file__", None) == self._path:
                return [str(name)[:_NAME] for name, value in list(vars(module).items()) if value is kind]
        return []

    # Objects of the environment that are equal to anything

    def _note_wild(self, value: object, kind: type) -> None:
        module, name = _names(kind)
        wild = _is_mock(kind) or (module.startswith("_pytest") and name.startswith("Approx"))
        if wild or self._equals_anything(value, kind):
            self._rows.setdefault(f"wild {module}.{name}", {"names": [name[:_NAME]], "wild": module[:_NAME]})

    def _equals_anything(self, value: object, kind: type) -> bool:
        """Whether the value has an `__eq__` of the environment, in Python, that accepts any other value.

        False after the first 500 values with such a method, which are the only ones to be tried.
        """
        # Read from the namespaces of the classes: `getattr` would run a metaclass's or a descriptor's code.
        method: Any = None
        for one in type.__dict__["__mro__"].__get__(kind):
            method = method or type.__dict__["__dict__"].__get__(one).get("__eq__")
        if type(method) is not FunctionType or method.__code__.co_filename == self._path:
            return False
        if not self._is_environment(method.__code__) or self._asks <= 0:
            return False
        self._asks -= 1
        try:
            return any(method(value, other) is True for other in (object(), f"~{random.getrandbits(62)}"))
        except Exception:
            return False


def _key(row: Row) -> str:
    return repr((row["names"], row["specials"]))


def _names(kind: type) -> tuple[str, str]:
    """Return the module and the qualified name of a class without running code of its metaclass."""
    module = type.__dict__["__dict__"].__get__(kind).get("__module__")
    if not isinstance(module, str):
        module = "builtins" if not type.__dict__["__flags__"].__get__(kind) & _HEAP_TYPE else ""
    return module, type.__dict__["__qualname__"].__get__(kind)


def _modules() -> list[ModuleType]:
    return [one for one in list(sys.modules.values()) if type(one) is ModuleType]


def _is_mock(kind: type) -> bool:
    module, name = _names(kind)
    return module in ("unittest.mock", "mock") and name.endswith("Mock")


def _classes() -> Iterator[type]:
    """Yield every class that exists."""
    waiting: list[type] = [object]
    seen = {id(object)}
    while waiting:
        kind = waiting.pop()
        yield kind
        subclasses: list[type] = type.__subclasses__(kind)
        below = [one for one in subclasses if id(one) not in seen]
        seen.update(map(id, below))
        waiting += below


def _referents(reference: object) -> list[object]:
    """Return, as a list, the object behind a weak reference or a proxy, without running code of either."""
    objects = [one for one in gc.get_objects() if type.__dict__["__flags__"].__get__(type(one)) & _HEAP_TYPE]
    return [one for one in objects if any(found is reference for found in weakref.getweakrefs(one))]


def _is_inherited(kind: type, special: str, value: Any) -> bool:
    """Whether a method written in C belongs to the class or one of its bases.

    The string methods count as the same, because an enumeration uses one of its base's as another.
    """
    bases = type.__dict__["__mro__"].__get__(kind)
    same = value.__name__ == special or (value.__name__ in _TEXTS and special in _TEXTS)
    return same and any(value.__objclass__ is one for one in bases)


def _is_borrowed(kind: type, special: str, code: CodeType) -> bool:
    """Whether code belongs to a special method of a class that is not a base of `kind`."""
    owner, _, name = getattr(code, "co_qualname", code.co_name).rpartition(".")
    if not owner or owner.endswith("<locals>") or owner == _names(kind)[1] or name not in SPECIALS:
        return False
    bases = type.__dict__["__mro__"].__get__(kind)[1:]
    return all(_code_in(type.__dict__["__dict__"].__get__(one).get(special)) is not code for one in bases)


def _code_in(value: object) -> CodeType | None:
    """Return the code of a function, of any kind of method, or of a property's getter; otherwise None."""
    if type(value) in (staticmethod, classmethod, types.MethodType):
        value = value.__func__  # type: ignore[attr-defined]
    elif type(value) is property:
        value = value.fget
    return value.__code__ if type(value) is FunctionType else None


# Making the observing code


def _observing(path: str, lines: frozenset[int], deep: str, shallow: str) -> dict[CodeType, CodeType]:
    """Return the observing code of functions that begin on `lines`, by their code; empty if unreadable."""
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            source = file.read()
            plain = compile(source, path, "exec", dont_inherit=True)
            tree = _Passing(lambda: ast.Constant(deep), lambda: ast.Constant(shallow), lines).visit(
                ast.parse(source)
            )
            changed = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    pairs = zip(_with_inner(plain), _with_inner(changed))  # noqa: B905 - Python 3.9 has no `strict`
    return {old: new for old, new in pairs if old.co_firstlineno in lines and old.co_name == new.co_name}


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


def _with_constants(code: CodeType, values: dict[str, Any]) -> CodeType:
    """Return code after replacing strings among its constants with values, in inner functions too."""
    constants = [
        _with_constants(one, values)
        if isinstance(one, CodeType)
        else values.get(one, one)
        if type(one) is str
        else one
        for one in code.co_consts
    ]
    return code.replace(co_consts=tuple(constants))


_VALUES = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Call,
    ast.BinOp,
    ast.Await,
    ast.IfExp,
    ast.BoolOp,
    ast.Starred,
)
_COLLECTIONS = (
    ast.List,
    ast.Tuple,
    ast.Set,
    ast.Dict,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
_DECIDED: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Compare: ("left", "comparators"),
    ast.Call: ("args",),
    ast.keyword: ("value",),
    ast.Assert: ("test",),
    ast.If: ("test",),
    ast.While: ("test",),
    ast.IfExp: ("test",),
    ast.BoolOp: ("values",),
    ast.UnaryOp: ("operand",),
    ast.BinOp: ("left", "right"),
    ast.For: ("iter",),
    ast.comprehension: ("iter", "ifs"),
    ast.FormattedValue: ("value",),
    ast.ExceptHandler: ("type",),
    **({ast.Match: ("subject",)} if sys.version_info >= (3, 10) else {}),
}
"""The parts of a node whose values, with everything in them, can decide what the test does."""


class _Passing(ast.NodeTransformer):
    """A transformer that wraps values in calls, in functions that begin on one of `lines`.

    All code is changed if `lines` is None. `deep` and `shallow` create the nodes of the called functions:
    `deep` searches through a value that can decide what the test does; `shallow` records only the class of
    any other value that is used.
    """

    def __init__(
        self,
        deep: Callable[[], ast.expr],
        shallow: Callable[[], ast.expr],
        lines: frozenset[int] | None = None,
    ) -> None:
        self._deep, self._shallow, self._lines = deep, shallow, lines
        self._inside = lines is None

    def visit(self, node: ast.AST) -> Any:
        """Change a node and its children, and return the changed node."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return self._function(node)
        is_case = node.__class__.__name__ == "match_case"
        # Compared by name, because Python before 3.10 has no `ast.match_case`.
        if is_case or not self._inside:
            return self._plain(node)
        found = self._decided(node)
        if (
            not isinstance(found, ast.expr)
            or not isinstance(found, _VALUES)
            or isinstance(found, ast.Starred)
        ):
            return found
        return found if _is_target(found) else self._wrapped(found, self._shallow)

    def _function(self, node: ast.AST) -> ast.AST:
        """Change the body of an observed function; decorators and defaults belong to the outer code."""
        decorators = getattr(node, "decorator_list", ())
        first = min([node.lineno, *(one.lineno for one in decorators)])  # type: ignore[attr-defined]
        outer, self._inside = self._inside, self._inside or first in (self._lines or ())
        body = node.body  # type: ignore[attr-defined]
        changed = [self.visit(one) for one in body] if isinstance(body, list) else self.visit(body)
        node.body = changed  # type: ignore[attr-defined]
        self._inside = outer
        return node

    def _plain(self, node: Any) -> Any:
        """Change the children of a node, but not the node; of a `case`, change only the body."""
        if hasattr(node, "pattern") and hasattr(node, "body"):
            node.body = [self.visit(one) for one in node.body]
            return node
        return self.generic_visit(node)

    def _decided(self, node: ast.AST) -> ast.AST:
        parts = _DECIDED.get(type(node), ())
        if isinstance(node, ast.AnnAssign):
            node.value = self.visit(node.value) if node.value is not None else None
            return node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            node.args = [self.visit(one) for one in node.args]
            node.keywords = [self.visit(one) for one in node.keywords]
        else:
            self.generic_visit(node)
        for part in parts:
            value = getattr(node, part)
            # Comes after the children, because deep calls then replace the shallow ones of deciding values.
            looked = (
                [self._looked_through(one) for one in value]
                if isinstance(value, list)
                else self._looked_through(value)
            )
            setattr(node, part, looked)
        return node

    def _looked_through(self, node: Any) -> Any:
        if isinstance(node, ast.Starred):
            node.value = self._looked_through(node.value)
            return node
        if isinstance(node, ast.Call) and getattr(node.func, "passes", False):
            node = node.args[0]
        return self._wrapped(node, self._deep) if isinstance(node, (*_VALUES, *_COLLECTIONS)) else node

    def _wrapped(self, node: ast.expr, to: Callable[[], ast.expr]) -> ast.expr:
        called = ast.copy_location(to(), node)
        called.passes = True  # type: ignore[attr-defined]
        return ast.copy_location(ast.Call(called, [node], []), node)


def _is_target(node: ast.AST) -> bool:
    return not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
