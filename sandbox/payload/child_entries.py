"""Reports which code of the repository runs in processes that tests start; they import it as `sitecustomize`.

Does nothing unless `GISTPOINT_CHILD_ENTRIES` names a file. It adds lines of JSON to that file: a list
`[test, path, line, qualname]` when a code object below `GISTPOINT_CHILD_ROOT` is first entered, and a list
with an empty path when an interpreter starts, to show that the interpreter was observed. The test is that of
`PYTEST_CURRENT_TEST`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from types import CodeType, FrameType

OUT, ROOT, TEST = "GISTPOINT_CHILD_ENTRIES", "GISTPOINT_CHILD_ROOT", "PYTEST_CURRENT_TEST"

_out = os.environ.get(OUT, "")
_root = os.environ.get(ROOT, "")
_seen: dict[int, CodeType] = {}


def _report(path: str, line: int, qualname: str) -> None:
    test = os.environ.get(TEST, "").rpartition(" (")[0]
    try:
        # Opened for each line and without O_CREAT: the parent made the file, and appending short lines is
        # atomic between processes.
        descriptor = os.open(_out, os.O_WRONLY | os.O_APPEND)
    except OSError:
        return
    try:
        os.write(descriptor, json.dumps([test, path, line, qualname]).encode() + b"\n")
    finally:
        os.close(descriptor)


def _trace(frame: FrameType, _event: str, _argument: object) -> None:
    code = frame.f_code
    if id(code) not in _seen:
        _seen[id(code)] = code
        path = os.path.realpath(code.co_filename)
        if path.startswith(_root) and not code.co_filename.startswith("<"):
            # Otherwise, the report itself would be traced.
            sys.settrace(None)
            _report(path[len(_root) :], code.co_firstlineno, getattr(code, "co_qualname", code.co_name))
            sys.settrace(_trace)


def follow(out: str, root: str) -> None:
    """Report the code that this process enters from now on; a forked process has to call this again."""
    global _out, _root
    _out, _root = out, root
    _seen.clear()
    _report("", 0, "")
    threading.settrace(_trace)
    sys.settrace(_trace)


if _out:
    follow(_out, _root)
