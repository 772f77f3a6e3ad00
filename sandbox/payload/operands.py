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

_PREPARING = {
    *("setUp", "tearDown", "setUpClass", "tearDownClass", "id", "shortDescription", "countTestCases"),
    *("defaultTestResult", "__init__", "__init_subclass__", *SPECIALS),
}
"""The methods of unittest's cases that a test class may define without deciding whether its tests pass."""

_TEXTS = {"__str__", "__repr__", "__format__"}

if TYPE_CHECKING:
    Row = dict[str, Any]


class Operands:
    """An observer of functions of `path` on `lines`.

    `is_environment` recognises the environment's code; `making` is the module `observing_code`.
    """

    def __init__(
        self, path: str, lines: Iterable[int], is_environment: Callable[[CodeType], bool], making: Any
    ) -> None:
        self._path, self._lines, self._is_environment = path, frozenset(lines), is_environment
        self._making = making
        self._known: dict[int, tuple[type, tuple[Row, ...]]] = {}
        self._rows: dict[str, Row] = {}
        self._left, self._asks = _MOST_OBJECTS, _MOST_ASKED
        self._codes: dict[CodeType, CodeType] = {}
        self._observing_ids: set[int] = set()
        self._functions: dict[int, dict[str, object]] = {}
        self._given: dict[int, dict[str, object]] = {}
        self._used: dict[int, type] = {}
        self._searched = 0
        self._begun: set[int] = set()

    def prepare(self) -> list[CodeType]:
        """Record the classes of the environment; return the observing code, which the run may execute.

        This must be called before the gist is imported: what exists by then is the environment's.
        """
        for kind in _classes():
            self._known[id(kind)] = kind, ()
            self._given[id(kind)] = _specials_in(kind)
        for owner in _modules():
            values = list(vars(owner).items())
            self._functions[id(owner)] = {name: value for name, value in values if type(value) in _FUNCTIONS}
        self._codes = self._making.observing(
            self._path, self._lines, self._deep, self._shallow, self._begun.add
        )
        self._observing_ids = {id(code) for code in self._codes.values()}
        return list(self._codes.values())

    def start(self) -> None:
        """Replace the code of every existing function for which observing code was made."""
        # The collector lists no frozen objects, and another part of the run may have frozen them.
        gc.unfreeze()
        for found in gc.get_objects():
            if type(found) is FunctionType:
                self.observe(found)

    def observe(self, function: object) -> None:
        """Replace the code of a function if observing code was made for it."""
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
            changed = self._making.Passing(
                lambda: ast.Name(deep, ast.Load()), lambda: ast.Name(shallow, ast.Load())
            ).visit(tree)
            example.source = ast.unparse(ast.fix_missing_locations(changed)) + "\n"

    def begin(self, function: object, names: dict[str, Any]) -> None:
        """Prepare for a call to the test `function`, which has these globals, and record what is replaced."""
        self._begun.clear()
        self._used.clear()
        self._record_replaced(function, names)

    def end(self, function: object, names: dict[str, Any]) -> None:
        """Record what was replaced during the call to a test."""
        self._record_replaced(function, names)
        for kind in list(self._used.values()):
            self._note_replaced_methods(kind)

    def require_called(self, function: object, name: str) -> None:
        """Record that a test passed without a call to its function, if it has observing code."""
        code = getattr(function, "__code__", None)
        is_observed = code is not None and id(code) in self._observing_ids
        if is_observed and code.co_firstlineno not in self._begun:  # type: ignore[union-attr]
            self._note_replaced(f"{name}, which passed without a call")

    def _record_replaced(self, function: object, names: dict[str, Any]) -> None:
        """Record which functions of libraries and builtins are replaced, for a test with these globals.

        In a module that the test names, any other value counts as a replacement; in all other modules, only
        code of the gist does.
        """
        reached = {id(value) for value in names.values()}
        for owner in filter(self._is_of_a_library, _modules()):
            self._record_replaced_in(owner, is_reached=id(owner) in reached)
        for name in {*names} & {*vars(builtins)}:
            if name[:2] != "__" and names[name] is not vars(builtins)[name]:
                self._note_replaced(name)
        # Up to Python 3.9, each call takes the builtins from the globals; later, a function keeps its own.
        given = getattr(function, "__builtins__", names.get("__builtins__", builtins))
        if given is not builtins and given is not vars(builtins):
            self._note_replaced("__builtins__")

    def _record_replaced_in(self, owner: ModuleType, *, is_reached: bool) -> None:
        given = self._functions.get(id(owner), {})
        for name, value in list(vars(owner).items()):
            # Most are as they were before the gist: each test begins and ends with this loop.
            if given.get(name) is value and not self._has_code_of_the_gist(value):
                continue
            if self._is_of_the_gist(value) or (is_reached and self._is_replacement(owner, name, value)):
                self._note_replaced(f"{owner.__name__}.{name}")

    def _note_replaced_methods(self, kind: type) -> None:
        """Record the special methods of a class of the environment, and of its bases, that were replaced."""
        for one in type.__dict__["__mro__"].__get__(kind):
            before = self._given.get(id(one))
            if before is None or self._known[id(one)][0] is not one:
                continue
            now = _specials_in(one)
            for name in sorted(before.keys() | now.keys()):
                if before.get(name) is not now.get(name):
                    self._note_replaced(f"{'.'.join(_names(one))}.{name}")

    def _is_of_a_library(self, module: ModuleType) -> bool:
        return self._is_library(str(vars(module).get("__name__")))

    def _has_code_of_the_gist(self, value: object) -> bool:
        return type(value) is FunctionType and value.__code__.co_filename == self._path

    def _is_of_the_gist(self, value: object) -> bool:
        """Whether a value is a function of the gist, or a library's function that wraps one."""
        code = _code_in(value)
        if code is None:
            return False
        inner = filter(None, map(_code_in, _wrapped_in(value)))
        return any(one.co_filename == self._path for one in (code, *inner))

    def _is_replacement(self, owner: object, name: str, value: object) -> bool:
        """Whether a public function other than a hook was replaced by a value without Python code.

        For a function of pytest, by any other value.
        """
        before = self._functions.get(id(owner), {}).get(name)
        if before is None or before is value or name[:1] == "_" or name.endswith("hook"):
            return False
        # No honest code replaces parts of pytest; other libraries' functions may be replaced by libraries.
        return _code_in(value) is None or owner is sys.modules.get("pytest")

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
            if kind is ModuleType:
                self._search(found)
            self._note_own_assertions(found, kind)
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

    def _search(self, module: Any) -> None:
        """Record the replaced functions of a library that the test is about to use.

        A function that is called could put the true one back. Only the first 1000 uses are searched.
        """
        if self._searched < _MOST_CLASSES and self._is_of_a_library(module):
            self._searched += 1
            self._record_replaced_in(module, is_reached=module is sys.modules.get("pytest"))

    def _note(self, kind: type) -> None:
        if id(kind) not in self._used:
            self._used[id(kind)] = kind
            self._note_replaced_methods(kind)
        for row in self._rows_of(kind):
            if len(self._rows) < _MOST_CLASSES:
                self._rows.setdefault(_key(row), row)

    def _note_own_assertions(self, found: Any, kind: type) -> None:
        """Record the methods of unittest's cases that a single case has in its own namespace."""
        case = _case_among(type.__dict__["__mro__"].__get__(kind))
        if case is None:
            return
        own = case.__dict__["__dict__"].__get__(found)
        values = [(name, own[name]) for name in _judging(case).intersection(own)]
        values += [
            ("addTypeEqualityFunc", value)
            for value in (own.get("_type_equality_funcs") or {}).values()
            if type(value) is not str
        ]
        if values:
            specials = [[name, *self._origin(kind, name, value)] for name, value in values]
            row = {"names": [_names(kind)[1][:_NAME], *self._bound(kind)], "specials": specials}
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
        case = _case_among(type.__dict__["__mro__"].__get__(kind))
        deciding = SPECIALS | _judging(case) if case is not None else SPECIALS
        own = [
            [one, *self._origin(kind, one, inner[one])]
            for one in sorted(deciding & {*inner})
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


def _wrapped_in(function: object) -> list[object]:
    """Return what a function refers to as wrapped, and what its closure contains."""
    if type(function) is not FunctionType:
        return []
    found: list[object] = [function.__dict__.get("__wrapped__")]
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # the cell is empty
            continue
    return found


def _specials_in(kind: type) -> dict[str, object]:
    """Return the special methods that a class itself defines, without running code of its metaclass."""
    inner = type.__dict__["__dict__"].__get__(kind)
    return {name: inner[name] for name in SPECIALS.intersection(inner)}


def _case_among(bases: Iterable[type]) -> type | None:
    """Return `unittest.TestCase` if it is among the bases of a class; otherwise None."""
    case: type | None = getattr(sys.modules.get("unittest.case"), "TestCase", None)
    return case if any(one is case for one in bases) else None


def _judging(case: type) -> set[str]:
    """Return the names of the methods by which a case of unittest judges and runs its tests."""
    methods = {name for name, value in vars(case).items() if type(value) is FunctionType}
    return methods - _PREPARING | {"failureException"}
