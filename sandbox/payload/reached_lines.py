"""Which lines of one function each test reaches, in any thread; runs in the target's interpreter."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any


class ReachedLines:
    """Traces a function, with those inside of it, from `begin` to `end` of each test."""

    def __init__(self, root: str, path: str, first: int, last: int) -> None:
        self.file = os.path.realpath(root + path)
        self.first, self.last = first, last
        self.known: dict[int, tuple[CodeType, bool]] = {}
        self.reached: set[int] = set()
        self.shared: set[int] = set()
        """Those reached while fixtures of several tests were made."""

    def begin(self) -> None:
        """Begin with a test."""
        self.reached = set()
        threading.settrace(self.enter)
        sys.settrace(self.enter)

    def end(self) -> bool:
        """End a test; return whether it left the tracing alone, else not all of its lines are known."""
        untouched = sys.gettrace() == self.enter
        sys.settrace(None)
        return untouched

    @contextlib.contextmanager
    def of_several_tests(self) -> Iterator[None]:
        """Surround code that runs once for several tests."""
        own, self.reached = self.reached, set()
        try:
            yield
        finally:
            self.shared |= self.reached
            self.reached |= own

    def enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Trace the frame if it runs code of the function."""
        code = frame.f_code
        known = self.known.get(id(code))
        if known is None:
            inside = self.first <= code.co_firstlineno <= self.last
            known = self.known[id(code)] = code, inside and os.path.realpath(code.co_filename) == self.file
        return self.line if known[1] else None

    def line(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Keep the line."""
        self.reached.add(frame.f_lineno)
        return self.line
