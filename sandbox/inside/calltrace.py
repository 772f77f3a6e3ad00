"""Record which functions call which while a test suite runs. Runs inside the target's interpreter, as a pytest plugin.

Reads the environment: `GISTPOINT_CALLS_ROOT`, the folder whose files are recorded, and `GISTPOINT_CALLS_OUT`, the file
that the record is written to (the format is described in `gistpoint.core.callgraph.observed`). A call is recorded
where both ends are files below the root and nothing but C code lies between them. Starting a generator counts, going
on with it does not. Child processes are not recorded.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any

_ROOT = os.path.realpath(os.environ.get("GISTPOINT_CALLS_ROOT", ".")) + os.sep
_OUT = os.environ.get("GISTPOINT_CALLS_OUT", "")
_PROCESS = os.getpid()

_counts: dict[tuple[CodeType, CodeType], int] = {}
_inside: dict[CodeType, bool] = {}


def _is_inside(code: CodeType) -> bool:
    known = _inside.get(code)
    if known is None:
        known = _inside[code] = os.path.realpath(code.co_filename).startswith(_ROOT)
    return known


def _caller(frame: FrameType) -> FrameType | None:
    """Return the frame that called, looking through code made from strings, such as a data class's `__init__`."""
    back = frame.f_back
    while back is not None and back.f_code.co_filename == "<string>":
        back = back.f_back
    return back


def _note(caller: CodeType, callee: CodeType) -> None:
    key = (caller, callee)
    _counts[key] = _counts.get(key, 0) + 1


def _profile(frame: FrameType, event: str, _argument: object) -> None:
    """Profile function for interpreters before 3.12; a generator that goes on has an instruction behind it."""
    if event == "call":
        code = frame.f_code
        if _is_inside(code):
            back = _caller(frame)
            if back is not None and _is_inside(back.f_code) and frame.f_lasti <= _first_instruction(code):
                _note(back.f_code, code)


_GENERATOR = 0x20 | 0x80 | 0x200
_starts: dict[CodeType, int] = {}


def _first_instruction(code: CodeType) -> int:
    """Offset of the last instruction that may run before a call of `code` counts as begun."""
    if not code.co_flags & _GENERATOR:
        return sys.maxsize
    known = _starts.get(code)
    if known is None:
        import dis

        known = next((item.offset for item in dis.get_instructions(code) if item.opname == "RESUME"), 0)
        _starts[code] = known
    return known


def _start_monitoring() -> None:
    monitoring: Any = vars(sys)["monitoring"]  # 3.12 and later
    tool = monitoring.PROFILER_ID
    monitoring.use_tool_id(tool, "gistpoint")

    def started(code: CodeType, _offset: int) -> object:
        if not _is_inside(code):
            return monitoring.DISABLE
        back = _caller(sys._getframe(1))
        if back is not None and _is_inside(back.f_code):
            _note(back.f_code, code)
        return None

    monitoring.register_callback(tool, monitoring.events.PY_START, started)
    monitoring.set_events(tool, monitoring.events.PY_START)


def start() -> None:
    """Begin to record, in this thread and those that it starts; the record is written when the interpreter ends."""
    atexit.register(write)
    if hasattr(sys, "monitoring"):
        _start_monitoring()
    else:
        threading.setprofile(_profile)
        sys.setprofile(_profile)


def write() -> None:
    """Write the record, in a stable order."""
    if not _OUT or os.getpid() != _PROCESS:
        return
    sys.setprofile(None)
    rows = sorted([*_place(caller), *_place(callee), count] for (caller, callee), count in list(_counts.items()))
    with open(_OUT, "w", encoding="utf-8") as file:
        file.write(json.dumps({"format": "gistpoint-calls", "version": 1}) + "\n")
        for row in rows:
            file.write(json.dumps(row) + "\n")


def _place(code: CodeType) -> list[str | int]:
    path = os.path.relpath(os.path.realpath(code.co_filename), _ROOT).replace(os.sep, "/")
    return [path, code.co_firstlineno, getattr(code, "co_qualname", code.co_name)]


if _OUT:
    start()
