"""Detects fakes: functions that accept anything in a comparison, and objects in place of modules.

The code watch asks about functions when they begin; objects are searched for under the names by which code
refers to modules of the codebase. In a gist such a name refers to the gist itself, or to a
`types.SimpleNamespace` of its definitions. Any other object is reported by its kind; the score decides
whether it is a fake (decision 45).
"""

from __future__ import annotations

import builtins
import dis
import random
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import CellType, CodeType, FrameType, FunctionType, ModuleType, SimpleNamespace

_COMPARISONS = {"__eq__", "__contains__", "__instancecheck__", "__subclasscheck__"}
_GENERATOR = 0x20 | 0x80 | 0x200
_VARIABLE = 0x04


def equals_anything(frame: FrameType) -> bool | None:
    """Whether the function that begins in `frame` reports itself equal to everything.

    To test it, the function is called again with other values as its last argument, the other operand. It is
    tested only if its name is that of a special method for `==`, `in`, `isinstance` or `issubclass`, or if
    its caller is evaluating `==` or `in`; otherwise None is returned. A generator, or a function without
    positional arguments, is never equal to everything.
    """
    code = frame.f_code
    takes_operand = bool(code.co_argcount or code.co_flags & _VARIABLE)
    if code.co_flags & _GENERATOR or not takes_operand:
        return False
    is_comparison = code.co_name in _COMPARISONS or _is_operand(frame.f_back)
    if not is_comparison:
        return None
    function, arguments = _copy_of_call(frame)
    return bool(arguments) and any(
        _accepts(function, [*arguments[:-1], other]) for other in _unequal_values()
    )


def _is_operand(caller: FrameType | None) -> bool:
    """Whether a frame is evaluating `==`, `in` or `not in`."""
    if caller is None:
        return False
    for instruction in dis.get_instructions(caller.f_code):
        if instruction.offset == caller.f_lasti:
            name, operator = instruction.opname, instruction.argrepr
            is_equality = name == "COMPARE_OP" and "==" in operator
            is_membership = name == "COMPARE_OP" and operator in ("in", "not in")  # before Python 3.9
            return name == "CONTAINS_OP" or is_equality or is_membership
    return False


def _copy_of_call(frame: FrameType) -> tuple[FunctionType, list[object]]:
    """Return a copy of a frame's function, and the positional arguments of its call."""
    code, names = frame.f_code, frame.f_locals
    cells = tuple(CellType(names[name]) if name in names else CellType() for name in code.co_freevars)
    # The cells are copied as well, because calling the function again must not change what the run sees.
    function = FunctionType(code, frame.f_globals, code.co_name, None, cells)
    only_by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    function.__kwdefaults__ = {name: names[name] for name in only_by_name if name in names}
    arguments = [names[name] for name in code.co_varnames[: code.co_argcount] if name in names]
    if code.co_flags & _VARIABLE:
        arguments += names.get(_variable_name(code), ())
    return function, arguments


def _variable_name(code: CodeType) -> str:
    return code.co_varnames[code.co_argcount + code.co_kwonlyargcount]


def _unequal_values() -> Iterator[object]:
    """Yield values that no honest object equals."""
    # Random, so that a function can't recognise and refuse just these values.
    drawn = random.Random()
    yield object()
    yield drawn.getrandbits(62) + 1_000_003
    yield drawn.random() * 1e17
    yield f"~{drawn.getrandbits(62)}"
    yield (object(),)


def _accepts(function: FunctionType, arguments: list[object]) -> bool:
    try:
        answer = function(*arguments)
        return answer is not NotImplemented and bool(answer)
    except BaseException:
        return False


_MISSING = object()
_DEPTH = 5


class StandIns:
    """A finder of objects that stand in for the codebase's modules.

    They are those that the dotted `names` refer to, and those in `sys.modules` whose top-level name is in
    `owned`.
    """

    def __init__(self, names: Iterable[str], owned: Iterable[str]) -> None:
        self.found: dict[str, str] = {}
        """A description, by name, of each object that was not the gist, as it was when first noticed."""
        self._names = tuple(names)
        self._owned = frozenset(owned)

    def check(self, namespace: Mapping[str, object], itself: object) -> None:
        """Check `sys.modules` and the namespace of the code that uses the names.

        `itself` is the gist's module.
        """
        for name in self._names:
            found = _object_named(name, namespace, itself)
            if found is not _MISSING:
                self._note(name, _kind(found, namespace, itself))
        # Checked even without an import, because code may take modules from this table directly.
        for name in list(sys.modules):
            if isinstance(name, str) and name.partition(".")[0] in self._owned:
                self._note(f"sys.modules[{name!r}]", _type_name(type(sys.modules[name])))

    def _note(self, name: str, kind: str) -> None:
        if kind:
            self.found.setdefault(name, kind)


def _object_named(name: str, namespace: Mapping[str, object], itself: object) -> object:
    first, *attributes = name.split(".")
    found = namespace.get(first, vars(builtins).get(first, _MISSING))
    for attribute in attributes:
        if found is itself and "__getattr__" in vars(found) and attribute not in vars(found):
            found = _from_getattr(found, attribute)
        elif found is itself or type(found) is SimpleNamespace:
            found = vars(found).get(attribute, _MISSING)
        else:
            return _MISSING
    return found


def _from_getattr(module: object, attribute: str) -> object:
    """Return the object that a module's own `__getattr__` returns for a name; `_MISSING` if it raises."""
    try:
        return getattr(module, attribute, _MISSING)
    except Exception:
        return _MISSING


def _kind(found: object, namespace: Mapping[str, object], itself: object) -> str:
    """Return a description of an object in a few words.

    The text is empty for the gist itself and for a namespace with its own definitions.
    """
    if found is itself and type(found) is ModuleType:
        return ""
    if type(found) is SimpleNamespace:
        known = {id(value) for scope in (namespace, vars(builtins)) for value in scope.values()}
        foreign = _foreign_member(found, known, itself, _DEPTH)
        return f"a namespace with {foreign}" if foreign else ""
    if type(found) is FunctionType:
        return f"function {_code_name(found, itself)}"
    if issubclass(type(found), type):
        return f"class {_names(found)[1]}"  # type: ignore[arg-type]
    return f"object of {_type_name(type(found))}"


def _foreign_member(space: SimpleNamespace, known: set[int], itself: object, depth: int) -> str:
    """Return the first name in a namespace with a callable that neither the gist nor a module defines.

    The text also contains the callable's type; it is empty if there is no such name.
    """
    for name, value in vars(space).items():
        if id(value) in known or value is itself:
            continue
        if type(value) is SimpleNamespace:
            inner = _foreign_member(value, known, itself, depth - 1) if depth else "too many namespaces in it"
            if inner:
                return f"{name}.{inner}"
        elif callable(value):
            is_defined = _is_of_top_level(value, itself) or _is_of_elsewhere(value, itself)
            if not is_defined:
                return f"{name}, {_type_name(type(value))}"
    return ""


def _code_name(function: FunctionType, itself: object) -> str:
    """Return the qualified name of a function's code.

    Before Python 3.11 it is the plain name, in angle brackets if the function is not at the top level.
    """
    code = function.__code__
    top = getattr(getattr(itself, code.co_name, None), "__code__", None) is code
    return getattr(code, "co_qualname", code.co_name if top else f"<{code.co_name}>")


def _is_of_top_level(value: object, itself: object) -> bool:
    """Whether a function, a class or an object's class is defined at the top level of the gist.

    Its definition is then part of a block that counts in the gist's score.
    """
    if type(value) is FunctionType:
        name, module = _code_name(value, itself), value.__globals__.get("__name__")
    else:
        module, name = _names(value if issubclass(type(value), type) else type(value))  # type: ignore[arg-type]
    return name.isidentifier() and module == getattr(itself, "__name__", None)


def _is_of_elsewhere(value: object, itself: object) -> bool:
    """Whether another module has the object under its own name."""
    try:
        module, name = sys.modules.get(value.__module__), getattr(value, "__name__", None)
    except Exception:
        return False
    return (
        module is not None
        and module is not itself
        and isinstance(name, str)
        and vars(module).get(name) is value
    )


def _names(kind: type) -> tuple[str, str]:
    """Return the module and the qualified name of a class without running code of its metaclass."""
    module = type.__dict__["__dict__"].__get__(kind).get("__module__")
    return module if isinstance(module, str) else "builtins", type.__dict__["__qualname__"].__get__(kind)


def _type_name(kind: type) -> str:
    return ".".join(_names(kind))
