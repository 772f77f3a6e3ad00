"""Records which lines of one file run: by sys.monitoring from Python 3.12 on, by sys.settrace before.

Start it before the file is imported. Lines are physical, 1-based, as the compiler numbers them.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Container
from types import CodeType, FrameType
from typing import Any


class LineTracer:
    """Which lines of the file at `path` ran between `start` and `stop`.

    Up to Python 3.11 `see` is called with the frame of each function that begins, unless its code's id is `settled`.
    """

    def __init__(self, path: str, see: Callable[[FrameType], None], settled: Container[int]) -> None:
        self.path = os.path.realpath(path)
        self._see, self._settled = see, settled
        self.lines: set[int] = set()
        self._ours: dict[str, bool] = {}
        self._tool = -1
        self._pending: dict[CodeType, set[int]] = {}

    def start(self) -> None:
        """Begin to record, in this thread and in those started later."""
        if sys.version_info >= (3, 12):
            self._start_monitoring()
        else:
            threading.settrace(self._on_call)
            sys.settrace(self._on_call)

    def pause(self) -> None:
        """Leave out what runs from here on in this thread; nothing to save from 3.12 on, where a line costs once."""
        if sys.version_info < (3, 12):
            sys.settrace(None)

    def resume(self) -> None:
        """Go on after a pause."""
        if sys.version_info < (3, 12):
            sys.settrace(self._on_call)

    def stop(self) -> list[int]:
        """Stop, and return the sorted lines."""
        if sys.version_info >= (3, 12):
            sys.monitoring.set_events(self._tool, 0)
            sys.monitoring.register_callback(self._tool, sys.monitoring.events.LINE, None)
            sys.monitoring.free_tool_id(self._tool)
        else:
            threading.settrace(None)
            sys.settrace(None)
        return sorted(self.lines)

    def _is_ours(self, name: str) -> bool:
        known = self._ours.get(name)
        if known is None:
            known = self._ours[name] = os.path.realpath(name) == self.path
        return known

    if sys.version_info >= (3, 12):

        def _start_monitoring(self) -> None:
            monitoring = sys.monitoring
            self._tool = next(tool for tool in (4, 3, 5, 2, 1, 0) if monitoring.get_tool(tool) is None)
            monitoring.use_tool_id(self._tool, "gist lines")
            add, ours, disable = self.lines.add, self._is_ours, monitoring.DISABLE

            def on_line(code: CodeType, line: int) -> Any:
                if ours(code.co_filename):
                    add(line)
                return disable

            monitoring.register_callback(self._tool, monitoring.events.LINE, on_line)
            monitoring.set_events(self._tool, monitoring.events.LINE)
            monitoring.restart_events()

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if id(code) not in self._settled:
            self._see(frame)
        known = self._ours.get(code.co_filename)
        if known is None:
            known = self._is_ours(code.co_filename)
        if not known:
            return None
        pending = self._pending.get(code)
        if pending is None:
            pending = self._pending[code] = {line for _, _, line in code.co_lines() if line} - self.lines
        if not pending:
            return None
        add, discard = self.lines.add, pending.discard

        def on_line(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                line = frame.f_lineno
                add(line)
                discard(line)
                if not pending:
                    frame.f_trace_lines = False
                    return None
            return on_line

        return on_line
