"""Records which functions call which while a test suite runs, as a pytest plugin.

Runs in the target's interpreter. Two environment variables are read: `GISTPOINT_CALLS_ROOT`, the folder whose
files are recorded, and `GISTPOINT_CALLS_OUT`, the file that the record is written to (the format is described
in `gistpoint.core.callgraph`). A call is recorded if the caller and the callee are in files below the root,
with only C code between them. Starting a generator counts, resuming it does not. Child processes are not
recorded. Without the second variable, importing this module starts nothing, and another tracer calls `note`.
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

# Keyed by the ids of code objects, because hashing one reads its whole content each time.
counts: dict[tuple[int, int], int] = {}  # caller and callee
known_inside: dict[int, bool] = {}
_codes: dict[int, CodeType] = {}


def is_inside(code: CodeType) -> bool:
    """Whether a code object comes from a file below the root; it is kept alive from then on."""
    known = known_inside.get(id(code))
    if known is None:
        _codes[id(code)] = code
        file = code.co_filename
        # A name in brackets is not a file, although its path would be in the current folder.
        known = known_inside[id(code)] = not file.startswith("<") and os.path.realpath(file).startswith(_ROOT)
    return known


def note(frame: FrameType) -> None:
    """Record the call that made `frame`, whose code comes from below the root, if the caller's does too.

    Resuming a generator does not count.
    """
    code, back = frame.f_code, frame.f_back
    if code.co_flags & _GENERATOR and frame.f_lasti > (starts.get(id(code)) or _first_instruction(code)):
        return
    while back is not None and back.f_code.co_filename == "<string>":  # such as a data class's `__init__`
        back = back.f_back
    # Only the direct caller counts: a call through other Python code is made by that code.
    if back is not None and is_inside(back.f_code):
        key = (id(back.f_code), id(code))
        counts[key] = counts.get(key, 0) + 1


def _profile(frame: FrameType, event: str, _argument: object) -> None:
    """Record a call, as a profile function for interpreters before Python 3.12."""
    if event == "call" and is_inside(frame.f_code):
        note(frame)


_GENERATOR = 0x20 | 0x80 | 0x200
starts: dict[int, int] = {}


def _first_instruction(code: CodeType) -> int:
    """Return the offset of the last instruction at which a generator still counts as just called."""
    import dis

    found = next((item.offset for item in dis.get_instructions(code) if item.opname == "RESUME"), 0)
    starts[id(code)] = found
    return found


def _start_monitoring() -> None:
    monitoring: Any = vars(sys)["monitoring"]  # 3.12 and later
    tool = monitoring.PROFILER_ID
    monitoring.use_tool_id(tool, "gistpoint")

    def started(code: CodeType, _offset: int) -> object:
        if not is_inside(code):
            return monitoring.DISABLE
        note(sys._getframe(1))
        return None

    monitoring.register_callback(tool, monitoring.events.PY_START, started)
    monitoring.set_events(tool, monitoring.events.PY_START)


def start() -> None:
    """Begin to record, in this thread and in all that start later; the record is written at exit."""
    atexit.register(write)
    if hasattr(sys, "monitoring"):
        _start_monitoring()
    else:
        threading.setprofile(_profile)
        sys.setprofile(_profile)


def rows() -> list[list[str | int]]:
    """Return the recorded calls, sorted; a row has the positions of caller and callee, and a count."""
    return sorted(
        [*place_of(caller), *place_of(callee), count] for (caller, callee), count in list(counts.items())
    )


def write() -> None:
    """Write the record, unless no file is named or this is a forked process."""
    if not _OUT or os.getpid() != _PROCESS:
        return
    sys.setprofile(None)
    with open(_OUT, "w", encoding="utf-8") as file:
        file.write(json.dumps({"format": "gistpoint-calls", "version": 1}) + "\n")
        for row in rows():
            file.write(json.dumps(row) + "\n")


def place_of(code: int) -> list[str | int]:
    """Return the path below the root, first line and qualified name of the code object with this id."""
    held = _codes[code]
    path = os.path.relpath(os.path.realpath(held.co_filename), _ROOT).replace(os.sep, "/")
    return [path, held.co_firstlineno, getattr(held, "co_qualname", held.co_name)]


if _OUT:
    start()
