"""Sees code that came from nowhere: modules loaded from files that the run itself wrote, functions made from strings.

Both are honest in many libraries (generated classes, tests that write a module), so they are told, not refused: what
a gist does so and the original does not is for the score to weigh.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from types import CodeType
from typing import Any

_MOST = 500


class CodeWatch:
    """Watches what is executed; `written` are the folders that the run may write, `given` the files put there."""

    def __init__(self, written: Iterable[str], given: Iterable[str]) -> None:
        self.modules: set[str] = set()
        """Files below the folders that were executed, by the names of their own folder."""
        self.functions: set[str] = set()
        """Qualified names of functions in code that came from no file."""
        self._written = {os.path.realpath(path).rstrip(os.sep) + os.sep: path for path in written}
        self._given = {os.path.realpath(path) for path in given}
        self._known: set[str] = set()
        self._once: set[str] = set()
        self._busy = False

    def install(self) -> CodeWatch:
        """Begin to watch, for good."""
        sys.addaudithook(self._audit)
        return self

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "exec" or self._busy:
            return
        code = arguments[0]
        if not isinstance(code, CodeType):
            return
        name = code.co_filename
        if name in self._known:
            if name in self._once:  # a second module that claims to be the file
                self._note(code)
            return
        if name[:1] == "<" or not os.path.isabs(name):
            if not name.startswith("<frozen"):
                self._note(code)
            return
        self._known.add(name)
        self._busy = True
        try:
            real = os.path.realpath(name)
        finally:
            self._busy = False
        if real in self._given:
            self._once.add(name)
            return
        below = next((root for root in self._written if real.startswith(root)), None)
        if below is not None:
            self.modules.add(real[len(below) :])

    def _note(self, code: CodeType) -> None:
        for constant in code.co_consts:
            if isinstance(constant, CodeType) and len(self.functions) < _MOST:
                if constant.co_name[:1] != "<":
                    self.functions.add(constant.co_name)
                self._note(constant)
