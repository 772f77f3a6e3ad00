"""Determines which code audit events (PEP 578) report, to detect answers that are run (decision 113).

Runs in the target's interpreter.
"""

from __future__ import annotations

import ast
import os
import sys
import types
from collections.abc import Iterator
from typing import Any

_RUNNING = frozenset(("compile", "exec", "import", "pickle.find_class", "marshal.loads", "subprocess.Popen"))
_RUNNING_PREFIXES = ("os.system", "os.exec", "os.posix_spawn", "ctypes.dlopen")
_STARTING = frozenset(
    ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "ctypes.dlopen", "code.__new__")
)
_HERE = os.path.dirname(__file__)
_LOADERS = ("<frozen importlib", os.path.join("_pytest", "assertion", "rewrite.py"))
"""Parts of the names of files with code that loads modules."""


def may_run_text(event: str) -> bool:
    """Whether an event may run a string among its arguments."""
    return event in _RUNNING or event.startswith(_RUNNING_PREFIXES)


def texts_of(event: str, arguments: tuple[Any, ...]) -> Iterator[str]:
    """Yield the strings and bytes among an event's arguments, as strings; for an import, only the name."""
    if event == "import":
        arguments = arguments[:1]
    for part in arguments:
        if type(part) is str:
            yield part
        elif type(part) in (bytes, bytearray):
            yield bytes(part).decode("latin-1")
        elif type(part) in (list, tuple):
            yield from texts_of("", tuple(part))


def what_runs(event: str, arguments: tuple[Any, ...]) -> bytes:
    """Return the code that an event runs, as bytes; empty if it runs none, or another event reports the code.

    Raises `RecursionError`, `TypeError` or `ValueError` if its arguments can't be compared.
    """
    if event == "compile":
        source = arguments[0]
        # Equal trees are different objects, but have equal dumps.
        text = ast.dump(source) if isinstance(source, ast.AST) else source
        return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text or b"")
    if event == "pickle.find_class":
        return f"{arguments[0]}:{arguments[1]}".encode()
    if event == "marshal.loads":
        return bytes(arguments[0])
    return repr(arguments[:2]).encode("utf-8", "replace") if event in _STARTING else b""


def is_of_tools(event: str, arguments: tuple[Any, ...], began: float) -> bool:
    """Whether an event comes from loading a module's file, or from a report on a test's source.

    `began` is the start of the run, in seconds since the epoch: files written later may contain an answer.
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and os.path.dirname(frame.f_code.co_filename) == _HERE:
        frame = frame.f_back
    if frame is None:
        return False
    if frame.f_code is ast.parse.__code__:
        # This only makes a tree. Running it requires compilation, which is a separate event.
        return _is_tool(frame.f_back)
    if not any(part in frame.f_code.co_filename for part in _LOADERS):
        return False
    known = frame.f_locals
    place: Any = (
        arguments[1] if event == "compile" else known.get("source_path") or known.get("bytecode_path")
    )
    try:
        # The ctime, which only root can set: a modification time could be backdated.
        return os.stat(place).st_ctime < began
    except (OSError, TypeError, ValueError):
        return False


def _is_tool(frame: types.FrameType | None) -> bool:
    file = "" if frame is None else frame.f_code.co_filename
    return os.path.dirname(file) == _HERE or f"{os.sep}_pytest{os.sep}" in file
