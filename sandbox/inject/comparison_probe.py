"""Asks a function that decides a comparison whether it would say yes to anything."""

from __future__ import annotations

import dis
import random
from collections.abc import Iterator
from types import CellType, CodeType, FrameType, FunctionType

_NAMES = {"__eq__", "__contains__", "__instancecheck__", "__subclasscheck__"}
_GENERATOR = 0x20 | 0x80 | 0x200
_VARIABLE = 0x04


def equals_anything(frame: FrameType) -> bool | None:
    """Return whether the function that begins in `frame` says yes to whatever it is compared with.

    None where it is asked no such thing: it is called by its name for `==`, `in` or `isinstance`, or by the interpreter
    for an operator of its caller. Its last argument is what it is compared with; it is called again with others there.
    """
    code = frame.f_code
    if code.co_flags & _GENERATOR or not (code.co_argcount or code.co_flags & _VARIABLE):
        return False
    if code.co_name not in _NAMES and not _is_operand(frame.f_back):
        return None
    function, arguments = _again(frame)
    return bool(arguments) and any(_says_yes(function, [*arguments[:-1], other]) for other in _others())


def _is_operand(caller: FrameType | None) -> bool:
    """Whether a frame is in the middle of `==` or `in`."""
    if caller is None:
        return False
    for instruction in dis.get_instructions(caller.f_code):
        if instruction.offset == caller.f_lasti:
            return instruction.opname == "CONTAINS_OP" or (
                instruction.opname == "COMPARE_OP" and "==" in instruction.argrepr
            )
    return False


def _again(frame: FrameType) -> tuple[FunctionType, list[object]]:
    """Return the function of a frame, and the arguments that it was called with."""
    code, names = frame.f_code, frame.f_locals
    cells = tuple(CellType(names[name]) if name in names else CellType() for name in code.co_freevars)
    function = FunctionType(code, frame.f_globals, code.co_name, None, cells)
    only_by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    function.__kwdefaults__ = {name: names[name] for name in only_by_name if name in names}
    arguments = [names[name] for name in code.co_varnames[: code.co_argcount] if name in names]
    if code.co_flags & _VARIABLE:
        arguments += names.get(_rest(code), ())
    return function, arguments


def _rest(code: CodeType) -> str:
    return code.co_varnames[code.co_argcount + code.co_kwonlyargcount]


def _others() -> Iterator[object]:
    """Yield what nothing honest is equal to."""
    drawn = random.Random()
    yield object()
    yield drawn.getrandbits(62) + 1_000_003
    yield drawn.random() * 1e17
    yield f"~{drawn.getrandbits(62)}"
    yield (object(),)


def _says_yes(function: FunctionType, arguments: list[object]) -> bool:
    try:
        answer = function(*arguments)
        return answer is not NotImplemented and bool(answer)
    except BaseException:
        return False
