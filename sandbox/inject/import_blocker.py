"""Keeps a gist from its original: no import of the codebase, no read of its files, and a record of each attempt.

The audit hook can't be taken off again, so it also stands behind the finder, which a program could remove. What a
child process or native code reads is beyond it: the codebase must not be there at all where that matters.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

_PATHS = {"open": 0, "os.link": 0, "os.symlink": 0, "os.rename": 0, "shutil.copyfile": 0, "shutil.move": 0}


class ImportBlocker:
    """Refuses the top-level modules `owned` and every file below `forbidden`; tells `report` the first of each event.

    `report` is called with `import`, `read` or `preloaded`, and a name.
    """

    def __init__(self, owned: Iterable[str], forbidden: Iterable[str], report: Callable[[str, str], None]) -> None:
        self.owned = frozenset(owned)
        self.forbidden = tuple(sorted({os.path.realpath(path) for path in forbidden}))
        self._report = report
        self._told: set[tuple[str, str]] = set()
        self._busy = False

    def install(self) -> ImportBlocker:
        """Put the finder first and the hook under everything; modules that are loaded already are dropped."""
        for name in sorted(sys.modules):
            if self._owns(name):
                self._record("preloaded", name)
                del sys.modules[name]
        sys.meta_path.insert(0, self)
        sys.addaudithook(self._audit)
        return self

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Refuse an owned module, leave all others to the finders behind."""
        if self._owns(name):
            self._refuse(name)

    def _owns(self, name: object) -> bool:
        return isinstance(name, str) and name.partition(".")[0] in self.owned

    def _refuse(self, name: str) -> None:
        self._record("import", name)
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "import":
            if self._owns(arguments[0]):
                self._refuse(arguments[0])
        elif event in _PATHS:
            self._check_path(arguments[_PATHS[event]])

    def _check_path(self, path: object) -> None:
        if self._busy or not self.forbidden or not isinstance(path, (str, bytes, os.PathLike)):
            return
        self._busy = True
        try:
            real = os.path.realpath(os.fsdecode(path))
        except (OSError, ValueError):
            return
        finally:
            self._busy = False
        for root in self.forbidden:
            if real == root or real.startswith(root + os.sep):
                self._record("read", real)
                raise PermissionError(13, "A gist may not read the codebase", real)

    def _record(self, event: str, name: str) -> None:
        if (event, name) not in self._told:
            self._told.add((event, name))
            self._report(event, name)
