"""Calls a function of the repository with given arguments and reports its behaviour.

Runs in the target's interpreter. The order has the `path`, `module` and `qualname` of the function, the
`shape` of its signature, the recorded `calls` (pickled arguments), the `inputs` to call it with (the number
of a call, or encoded arguments), `limit_s` for each call, `budget_s` after which no further call is made,
`describe`: whether the recorded arguments are reported as encoded values, and `lines`: the path of the file
whose lines are reported if a call reaches them, or an empty string. The records are `described`,
`undescribed`, `outcome`, `reached`, `problem` (why nothing can be called) and `finish`, with the seconds that
the `slowest` call took.

An encoded value is a list whose first member names its kind: `n` None, `b` a truth value, `i` a whole number
in decimal, `f` a float as Python writes it, `s` a string, `y` bytes in hexadecimal, `l` `t` `e` `z` a list,
tuple, set or frozenset of encoded values, `c` a slice of three of them, `d` a dictionary of pairs, `x` a
date, a time or an exact number (the name of its class, and the arguments that make it), `k` an object whose
class extends the class of the encoded value in it, `r` a function that raises an exception (its
name), and `o` any other object: the call it was recorded in, the path to it in the arguments, and the name
of its class. After these, an object of a class of the repository has a list of attributes, each a pair of a
name and an encoded value: in a description, all that may vary; in an input, those to be set. If the class
extends `dict`, the item of a key that is a string is an attribute `[key]`.
"""

from __future__ import annotations

import base64
import builtins
import contextlib
import datetime
import decimal
import dis
import enum
import fractions
import hashlib
import importlib
import importlib.util
import inspect
import json
import os
import pickle
import signal
import sys
import types
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any


def _sibling(name: str) -> types.ModuleType:
    """Return another file in this folder as a module, under a name that no repository's module has."""
    place = os.path.join(os.path.dirname(__file__), name)
    spec = importlib.util.spec_from_file_location("_" + name.partition(".")[0], place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if TYPE_CHECKING or "." in __name__:
    from gistpoint.sandbox.payload import canonical_answers as answers
    from gistpoint.sandbox.payload import plain_sides as sides
    from gistpoint.sandbox.payload.raw_functions import the_function
    from gistpoint.sandbox.payload.tracers import LineTracer
else:
    answers = _sibling("gistpoint_answers.py")
    sides = _sibling("gistpoint_sides.py")
    the_function = _sibling("gistpoint_functions.py").the_function
    LineTracer = _sibling("gistpoint_tracers.py").LineTracer

_MOST_ATTRIBUTES = 300
"""The maximum number of attributes of objects that are described for one call."""
_SHOWN = 20_000
_KINDS: dict[Any, str] = {list: "l", tuple: "t", set: "e", frozenset: "z", slice: "c"}
_MAKERS: dict[str, Any] = {
    "l": list,
    "t": tuple,
    "e": set,
    "z": frozenset,
    "c": lambda parts: slice(*parts),
}
_PARTS: dict[Any, Callable[[Any], list[Any]]] = {
    datetime.date: lambda value: [value.year, value.month, value.day],
    datetime.datetime: lambda value: [
        *(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond),
        value.tzinfo,
    ],
    datetime.time: lambda value: [value.hour, value.minute, value.second, value.microsecond, value.tzinfo],
    datetime.timedelta: lambda value: [value.days, value.seconds, value.microseconds],
    decimal.Decimal: lambda value: [str(value)],
    fractions.Fraction: lambda value: [value.numerator, value.denominator],
}
"""Functions that return the arguments with which a value of the standard library is made."""
_OF_PARTS: dict[str, Any] = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in _PARTS}


_WRITERS: dict[Any, Callable[[Any], list[Any]]] = {
    type(None): lambda value: ["n"],
    bool: lambda value: ["b", value],
    float: lambda value: ["f", repr(value)],
    str: lambda value: ["s", value],
    bytes: lambda value: ["y", value.hex()],
}
"""Functions that encode scalars, except for whole numbers, which may be too large."""
_READERS: dict[str, Callable[..., Any]] = {
    "n": lambda: None,
    "b": lambda value: value,
    "i": int,
    "f": float,
    "s": lambda value: value,
    "y": bytes.fromhex,
}


class PlantedError(Exception):
    """An exception that only a function made for an input raises."""


class PlantedExit(BaseException):
    """Such an exception that is no `Exception`, as `KeyboardInterrupt` is none."""


class _Planted:
    """A switch: whether a function that raises was called."""

    called = False


_PLANTED: dict[str, Any] = {"PlantedError": PlantedError, "PlantedExit": PlantedExit}


def _raising(name: str) -> Callable[..., Any]:
    """Return a function that takes any arguments and raises a planted or built-in exception."""
    kind: Any = _PLANTED.get(name) or getattr(builtins, name)

    def planted(*_: Any, **__: Any) -> Any:
        _Planted.called = True
        raise kind

    return planted


class Late(BaseException):
    """A call exceeded its time limit."""


def _children(value: Any) -> list[Any]:
    """Return the members of a container, in an order that two copies of it share.

    The keys and values of a dictionary alternate.
    """
    if type(value) is dict:
        return [part for pair in value.items() for part in pair]
    if type(value) is slice:
        return [value.start, value.stop, value.step]
    if type(value) in _PARTS:
        return _PARTS[type(value)](value)
    if type(value) in (set, frozenset):
        # The order of a set depends on the hash seed of its process.
        return sorted(value, key=lambda part: answers.canonical(part, 0, ()))
    return list(value)


def _held(value: Any) -> dict[str, Any]:
    """Return an object's contents: its attributes by name, and items of a dictionary as `[key]`.

    Items whose keys are not strings are left out.
    """
    found: dict[str, Any] = dict(sides.attributes_of(value))
    if isinstance(value, dict):
        found.update((f"[{key}]", part) for key, part in dict.items(value) if type(key) is str)
    return found


def _hold(value: Any, parts: dict[str, Any]) -> None:
    """Replace the attributes and items in `parts`, without running any code of the object's class."""
    items = {name[1:-1]: part for name, part in parts.items() if name.startswith("[")}
    attributes = {name: part for name, part in parts.items() if not name.startswith("[")}
    if attributes:
        sides.set_attributes(value, {**sides.attributes_of(value), **attributes})
    for key, part in items.items():
        dict.__setitem__(value, key, part)


class Describer:
    """An encoder of the arguments of one recorded call."""

    def __init__(self, call: int, is_of_tree: Callable[[Any], bool]) -> None:
        """`is_of_tree(kind)` returns whether a class is the repository's and its attributes are described."""
        self.call = call
        self.is_of_tree = is_of_tree
        self.attributes = 0

    def encoded(self, value: Any, way: list[Any], above: tuple[int, ...] = ()) -> list[Any]:
        """Return a value in the form that the module's docstring describes.

        `way` is the path to the value in the call's arguments; `above` has the ids of the values around it. A
        value that is too large or too deep, or contains itself, is described as an object without attributes.
        """
        kind = type(value)
        if kind in _WRITERS:
            return _WRITERS[kind](value)
        if kind is int and abs(value) < 10**300:
            return ["i", str(value)]
        reference = ["o", self.call, way, answers.class_name(kind)]
        if len(way) >= answers.DEPTH or id(value) in above:
            return reference
        inner = (*above, id(value))
        if kind in _PARTS:
            return ["x", answers.class_name(kind), self.parts(value, way, inner)]
        if kind in _KINDS or kind is dict:
            if kind is not slice and len(value) > answers.ITEMS:
                return reference
            parts = self.parts(value, way, inner)
            if kind is dict:
                return ["d", [parts[place : place + 2] for place in range(0, len(parts), 2)]]
            return [_KINDS[kind], parts]
        if self.is_of_tree(kind):
            return [*reference, self.attributes_of(value, way, inner)]
        return reference

    def parts(self, value: Any, way: list[Any], above: tuple[int, ...]) -> list[list[Any]]:
        return [self.encoded(part, [*way, place], above) for place, part in enumerate(_children(value))]

    def attributes_of(self, value: Any, way: list[Any], above: tuple[int, ...]) -> list[list[Any]]:
        """Return pairs of the name and the encoded value of an object's attributes, sorted by name.

        After 300 attributes of all objects of the call, the others are left out.
        """
        found = []
        for name, part in sorted(_held(value).items()):
            self.attributes += 1
            if self.attributes > _MOST_ATTRIBUTES:
                break
            found.append([name, self.encoded(part, [*way, name], above)])
        return found


class ClassesOfTree:
    """A function that returns whether a class belongs to the repository, by the file of its module."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root) + os.sep
        self.known: dict[Any, bool] = {}

    def __call__(self, kind: Any) -> bool:
        """Return whether a class is defined in the repository and its objects are plain instances."""
        if kind not in self.known:
            module = sys.modules.get(kind.__module__)
            file = getattr(module, "__file__", None)
            is_of_tree = type(file) is str and os.path.realpath(file).startswith(self.root)
            # Classes and members of enumerations are shared: changing one would affect other calls.
            is_shared = issubclass(kind, (type, enum.Enum))
            self.known[kind] = is_of_tree and not is_shared
        return self.known[kind]


class RecordedArguments:
    """Recorded arguments, which are rebuilt as new objects for each use."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = [base64.b64decode(call) for call in calls]

    def of_call(self, number: int) -> list[Any]:
        """Return the arguments of a recorded call."""
        found: list[Any] = pickle.loads(self.calls[number])
        return found

    def of_input(self, given: Any) -> list[Any]:
        """Return the arguments of an input: the number of a recorded call, or a list of encoded values."""
        if isinstance(given, int):
            return self.of_call(given)
        made = _Arguments(self)
        return [made.decoded(value) for value in given]


class _Arguments:
    """A decoder of the arguments of one input."""

    def __init__(self, recorded: RecordedArguments) -> None:
        self.recorded = recorded
        # Objects of one call are unpickled together, so that they refer to each other as in the call.
        self.calls: dict[int, list[Any]] = {}

    def decoded(self, value: list[Any]) -> Any:
        """Return the value that an encoded value describes."""
        kind, *content = value
        if kind in _READERS:
            return _READERS[kind](*content)
        if kind == "d":
            return {self.decoded(key): self.decoded(part) for key, part in content[0]}
        if kind in _MAKERS:
            return _MAKERS[kind](self.decoded(part) for part in content[0])
        if kind == "x":
            return _OF_PARTS[content[0]](*(self.decoded(part) for part in content[1]))
        if kind == "r":
            return _raising(content[0])
        if kind == "k":
            return _extended(self.decoded(content[0]))
        return self.object(*content)

    def object(self, call: int, way: list[Any], _: str, attributes: list[list[Any]] | None = None) -> Any:
        """Return an object of a recorded call, with some attributes replaced.

        `way` is the path to it in the call's arguments. The attributes are set without running any code of
        the object's class.
        """
        if call not in self.calls:
            self.calls[call] = self.recorded.of_call(call)
        found: Any = self.calls[call]
        for step in way:
            found = _held(found)[step] if isinstance(step, str) else _children(found)[step]
        if attributes:
            _hold(found, {name: self.decoded(part) for name, part in attributes})
        return found


def _extended(value: Any) -> Any:
    """Return an object like `value` whose class extends the class of `value`, if it can be extended."""
    kind: Any = type(value)
    if kind in answers.EXTENDED:
        return answers.EXTENDED[kind](value)
    # With the same name, because it is compared, and shown, as an object of that class.
    members = {"__slots__": (), "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    with contextlib.suppress(Exception):
        object.__setattr__(value, "__class__", type(kind)(kind.__name__, (kind,), members))
    return value


def _called(function: Any, shape: list[Any], values: list[Any]) -> Any:
    positional, keyword_only, varargs, keywords, _ = shape
    given, remaining = values[:positional], values[positional:]
    named = {name: remaining[place] for place, name in enumerate(keyword_only)}
    remaining = remaining[len(keyword_only) :]
    if varargs:
        given = [*given, *remaining.pop(0)]
    if keywords:
        named.update(remaining.pop(0))
    result = function(*given, **named)
    if inspect.iscoroutine(result):
        import asyncio

        return asyncio.run(result)
    return result


def _bounded(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _is_refusal(error: BaseException, root: str) -> bool:
    """Whether a `raise` or `assert` statement in a file below `root` raised an exception."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return False
    code = last.tb_frame.f_code
    # Frozen modules and generated code, such as `<frozen os>`, have no file.
    if not os.path.isabs(code.co_filename):
        return False
    in_tree = os.path.realpath(code.co_filename).startswith(os.path.join(os.path.realpath(root), ""))
    return in_tree and code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def outcome(
    function: Any, shape: list[Any], values: list[Any], limit_s: float, root: str = os.sep
) -> dict[str, Any]:
    """Call the function within `limit_s` seconds, and return the outcome.

    The keys are `kind` (`value`, `raised`, `late`, or `lost` if the outcome can't be compared), `shown` (a
    string to show) and `hash` (of the outcome with the changed arguments, or empty). After `value` and
    `raised` there are also `alone` (the hash of the outcome without the arguments), `after` (the arguments
    after the call), `is_given` (whether the result is an argument, not a copy), `is_refusal` (whether a
    statement in a file below `root` raised the exception) and `calls_planted` (whether a function that
    replaces a recorded one, and raises, was called). Strings are cut to 20,000 characters.
    """

    def late(*_: Any) -> None:
        raise Late

    # Known before the call, so that a returned argument is recognised even if it is a closure.
    _Planted.called = False
    answers.GIVEN.clear()
    answers.GIVEN.update(answers.functions_in(values, 0))
    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    is_given = is_refusal = False
    try:
        try:
            result = _called(function, shape, values)
            is_given = _is_given(result, values)
            text = answers.canonical(result, 0, ())
            kind, shown = "value", text
        except (Late, answers.Unequal):
            raise
        except BaseException as error:
            kind, text = "raised", answers.class_name(type(error))
            is_refusal = _is_refusal(error, root)
            try:
                shown = f"{type(error).__name__}: {error}"
            except Exception:
                shown = type(error).__name__
        # The arguments after the call count too, because changing them is part of a function's behaviour.
        # A function that the call has left in the arguments is not its answer, so its name is enough.
        answers.Made.by_name = True
        after = answers.canonical(values, 0, ())
    except Late:
        return {"kind": "late", "shown": "no answer in time", "hash": ""}
    except BaseException as error:
        return {"kind": "lost", "shown": type(error).__name__, "hash": ""}
    finally:
        answers.Made.by_name = False
        signal.setitimer(signal.ITIMER_REAL, 0)
    digest = hashlib.sha256(f"{kind}\0{text}\0{after}".encode("utf-8", "backslashreplace")).hexdigest()
    alone = hashlib.sha256(f"{kind}\0{text}".encode("utf-8", "backslashreplace")).hexdigest()
    found = {"kind": kind, "shown": _bounded(shown), "hash": digest, "alone": alone, "after": _bounded(after)}
    how = {"is_given": is_given, "is_refusal": is_refusal, "calls_planted": _Planted.called}
    return {**found, **how}


def _is_given(result: Any, values: list[Any]) -> bool:
    """Whether a result is mutable and is an argument or a member of one, so that both change together."""
    if isinstance(result, (type, types.ModuleType, types.FunctionType, types.MethodType)):
        return False
    is_mutable = isinstance(result, (list, dict, set, bytearray)) or hasattr(result, "__dict__")
    if not is_mutable:
        return False
    inside = [part for value in values for part in (value.values() if type(value) is dict else _parts(value))]
    return any(result is value for value in (*values, *inside))


def _parts(value: Any) -> list[Any]:
    return list(value) if type(value) in (list, tuple) else []


def _file_of(function: Any, path: str, other: str) -> str:
    """Return the full path of a file in the tree from which a function at `path` was imported."""
    file: str = os.path.realpath(function.__code__.co_filename)
    return file[: -len(path)] + other


def _with_lines(path: str, call: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], list[int]]:
    """Return the outcome of a call, and the lines of the file at `path` that it reached, sorted."""
    tracer = LineTracer(path, lambda frame: None, ())
    tracer.start()
    try:
        found = call()
    finally:
        lines = tracer.stop()
    return found, lines


def main() -> int:
    """Read the order, make the calls, report their outcomes, and return 0."""
    channel = _sibling("gistpoint_results.py")
    order = channel.taken_order()
    channel.close_input()
    put = channel.opened_channel(int(os.environ.pop("GISTPOINT_RESULTS")), order["key"])
    root = os.environ.pop("GISTPOINT_ROOT")
    sys.argv = ["replay"]
    try:
        module = importlib.import_module(order["module"])
        function = the_function(module, order["qualname"], order["path"])
    except BaseException as error:
        put("problem", words=f"{type(error).__name__}: {error}"[:500])
        put("finish")
        return 0
    arguments, shape = RecordedArguments(order["calls"]), order["shape"]
    is_of_tree = ClassesOfTree(root)
    for number in range(len(arguments.calls)) if order["describe"] else ():
        try:
            describer = Describer(number, is_of_tree)
            values = arguments.of_call(number)
            described = [describer.encoded(value, [place]) for place, value in enumerate(values)]
            json.dumps(described)
        except BaseException as error:
            put("undescribed", call=number, words=type(error).__name__)
            continue
        put("described", call=number, values=described)
    began, slowest = monotonic(), 0.0
    for number, given in enumerate(order["inputs"]):
        called = monotonic()
        if called - began > order["budget_s"]:
            break
        try:
            values = arguments.of_input(given)
        except BaseException as error:
            put("outcome", input=number, kind="lost", shown=type(error).__name__, hash="")
            continue
        call = partial(outcome, function, shape, values, order["limit_s"], root)
        if order["lines"]:
            found, lines = _with_lines(_file_of(function, order["path"], order["lines"]), call)
            put("reached", input=number, lines=lines)
        else:
            found = call()
        slowest = max(slowest, monotonic() - called)
        put("outcome", input=number, **found)
    put("finish", slowest=slowest)
    return 0


if __name__ == "__main__":
    sys.stdout.flush()
    done = main()
    # Threads that a call left would otherwise keep the process alive.
    os._exit(done)
