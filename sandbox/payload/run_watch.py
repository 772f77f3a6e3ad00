"""Watches what submitted code does in the process of a run, through audit events (decision 116).

Runs in the target's interpreter, Python 3.9 or later. `started` sets an audit hook (PEP 578) before anything
of the repository is imported, and remembers what pytest, unittest and builtins define. An event counts if a
frame of the submitted lines is on the stack. Accesses that raise no event (`f_back`, `f_locals`,
`__globals__`) are not seen. The hook is in the process that it watches: code that reaches the hook can blind
it.
"""

from __future__ import annotations

import builtins
import collections
import dataclasses
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType, FunctionType, ModuleType
from typing import Any

_JUDGES = ("_pytest", "builtins", "pluggy", "pytest", "unittest")
_ALWAYS = frozenset(
    {
        "_thread.start_new_thread",
        "code.__new__",
        "function.__new__",
        "gc.get_objects",
        "gc.get_referents",
        "gc.get_referrers",
        "marshal.load",
        "marshal.loads",
        "object.__delattr__",
        "object.__setattr__",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
        "pickle.find_class",
        "subprocess.Popen",
        "sys._current_exceptions",
        "sys._current_frames",
        "sys._getframe",
        "sys._getframemodulename",
        "sys.addaudithook",
        "sys.setprofile",
        "sys.settrace",
    }
)
_FILES = frozenset(
    {"open", "os.link", "os.listdir", "os.rename", "os.scandir", "os.symlink", "shutil.copyfile"}
)
_FRAMES = frozenset(
    {
        "__closure__",
        "__code__",
        "__defaults__",
        "__kwdefaults__",
        "ag_code",
        "ag_frame",
        "cr_code",
        "cr_frame",
        "f_code",
        "gi_code",
        "gi_frame",
        "tb_frame",
    }
)
_REACHING = frozenset({"_pytest", "atexit", "ctypes", "gc", "linecache", "pluggy", "pytest", "unittest"})
_BY_PYTEST = {"_pytest.config.Config._getini_unknown_type": "_pytest.legacypath.Config__getini_unknown_type"}
"""The definitions that pytest itself replaces in every run, with the names of what replaces them."""
_MOST, _LONGEST = 100, 160
_MISSING = object()
_MAKING_TUPLES = collections.namedtuple.__code__
"""The code that runs checked text to make a class: its own events do not count."""
_IMPORTING = sys.modules["importlib._bootstrap"]._find_and_load.__code__
"""The code that imports a module: events of the module do not count, except those of files."""
_MAKING_DATACLASSES = vars(dataclasses)["_process_class"].__code__
"""The code that makes a data class, with functions that it compiles and inspects."""


class RunWatch:
    """A watch over one run; `found` contains descriptions of what the submission did, at most 100.

    `path` is a copy of `os.path` that the submission can't change.
    """

    def __init__(self, spans: list[list[Any]], tests: list[str], root: str, path: Any) -> None:
        self.found: set[str] = set()
        self._path, self._root, self._getcwd = path, root, os.getcwd
        self._spans: dict[str, list[tuple[int, int]]] = {}
        for file, first, last in spans:
            self._spans.setdefault(path.realpath(path.join(root, file)), []).append((first, last))
        self._of_name: dict[str, Sequence[tuple[int, int]]] = {}
        """The submitted lines by the names of files in code, which may lead through links or `..`."""
        self._tests = frozenset(os.path.basename(file) for file in tests) | {"conftest.py"}
        self._folders = frozenset(
            os.path.normpath(os.path.join(place, os.path.dirname(file)))
            for file in tests
            for place in (root, os.path.realpath(root))
        )
        self._modules = frozenset(os.path.splitext(name)[0] for name in self._tests)
        self._before = _definitions()
        self._known: list[tuple[Mapping[str, Any], str, Any]] = []
        self._codes: list[tuple[FunctionType, Any]] = []
        self._remember()
        self._busy: set[int] = set()
        """The threads whose events do not count, because the watch itself causes them."""

    def hook(self) -> Callable[[str, tuple[Any, ...]], None]:
        """Return the audit hook, which binds all that it needs: replacing a module's names has no effect."""
        interesting = _ALWAYS | _FILES | {"object.__getattr__", "exec", "compile", "import"}
        getframe, get_ident = sys._getframe, threading.get_ident
        describe, add = self._described, self.found.add
        is_submitted, busy, found, most = self._is_submitted, self._busy, self.found, _MOST

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            # The set is checked first, because nearly all events of a run are of no interest.
            if event not in interesting or get_ident() in busy or len(found) >= most:
                return
            busy.add(get_ident())  # getting a frame is itself such an event
            try:
                frame = getframe(1)
                if is_submitted(event, frame):
                    text = describe(event, arguments)
                    if text:
                        add(text[:_LONGEST])
            finally:
                busy.discard(get_ident())

        return hook

    def _is_submitted(self, event: str, frame: FrameType | None) -> bool:
        """Whether submitted lines run in a frame or its callers, and an event of the frame counts."""
        of_file = event in _FILES
        if frame is not None and frame.f_code is _MAKING_TUPLES and not of_file:
            return False
        while frame is not None:
            code = frame.f_code
            for first, last in self._lines_of(code.co_filename):
                if first <= (frame.f_lineno or 0) <= last:
                    return True
            is_quiet = code is _IMPORTING or code is _MAKING_DATACLASSES
            if is_quiet and not of_file:
                return False
            frame = frame.f_back
        return False

    def _lines_of(self, name: str) -> Sequence[tuple[int, int]]:
        """Return the first and last lines of the submitted spans in the file that code names."""
        found = self._of_name.get(name)
        if found is None:
            file = self._path.realpath(self._path.join(self._root, name))
            found = self._of_name[name] = self._spans.get(file, ())
        return found

    def _described(self, event: str, arguments: tuple[Any, ...]) -> str:
        """Return a description of the submission's action in an event; empty if the action does not count."""
        if event in _FILES:
            return self._of_file(event, arguments)
        if event == "object.__getattr__":
            name = arguments[1]
            return f"the run gets {name}" if name in _FRAMES else ""
        if event == "import":
            name = _exact(arguments[0])
            parts = name.split(".")
            reaches = parts[0] in _REACHING or not self._modules.isdisjoint(parts)
            return f"the run imports {name}" if reaches else ""
        if event in ("exec", "compile"):
            return f"the run makes code ({event})"
        return f"the run calls {event}"

    def _of_file(self, event: str, arguments: tuple[Any, ...]) -> str:
        for given in arguments[:2]:
            if not isinstance(given, (str, bytes)):
                continue
            path = self._path.normpath(self._path.join(self._getcwd(), _exact(given)))
            # A link to a test file is a test file.
            places = path, self._path.realpath(path)
            names = self._tests.intersection(map(self._path.basename, places))
            if names:
                return f"the run opens the tests ({event} {', '.join(names)})"
            if event in ("os.listdir", "os.scandir") and path in self._folders:
                return "the run lists the tests"
        return ""

    def compare(self) -> None:
        """Record which definitions of pytest, unittest and builtins have changed since the watch started."""
        # Reading the code of each of some thousand functions is an event.
        self._busy.add(threading.get_ident())
        try:
            if not self._is_unchanged():
                self._record_changes()
                self._remember()
        finally:
            self._busy.discard(threading.get_ident())

    def _remember(self) -> None:
        """Remember the current definitions, so that the next comparison finds only other changes."""
        places = [(_vars(owner), name.rpartition(".")[2]) for name, (owner, _) in self._before.items()]
        self._known = [(space, name, space.get(name)) for space, name in places]
        functions = [value for _, _, value in self._known if type(value) is FunctionType]
        self._codes = [(function, function.__code__) for function in functions]

    def _is_unchanged(self) -> bool:
        """Whether all definitions are the same objects; called after each test, so it has to be quick."""
        for space, name, value in self._known:
            if space.get(name) is not value:
                return False
        for function, code in self._codes:
            if function.__code__ is not code:
                break
        else:
            return True
        return False

    def _record_changes(self) -> None:
        for name, (owner, before) in self._before.items():
            now = _vars(owner).get(name.rpartition(".")[2], _MISSING)
            # A function can also be replaced in place, by giving it other code.
            code = now.__code__ if type(now) is FunctionType else None
            is_same = now is before[0] and code is before[1]
            if not is_same and len(self.found) < _MOST and not self._is_by_pytest(name, now):
                self.found.add(f"{name} is replaced as it runs"[:_LONGEST])

    def _is_by_pytest(self, name: str, now: Any) -> bool:
        """Whether pytest itself replaces a definition with this one, as its plugin for `py.path` does."""
        _, (value, code) = self._before.get(_BY_PYTEST.get(name, ""), (None, (None, None)))
        return value is not None and now is value and now.__code__ is code


def _exact(given: Any) -> str:
    """Return a path or name as a plain string, without running any code of a subclass."""
    if isinstance(given, str):
        return str.__str__(given)
    return bytes.__getitem__(given, slice(None)).decode("utf-8", "surrogateescape")


def started(order: Mapping[str, Any], root: str, path: Any) -> RunWatch:
    """Set the hook for the lines (`watched`) and `tests` in `order`, and return the watch."""
    for name in ("unittest", "unittest.case"):
        importlib.import_module(name)
    watch = RunWatch(order["watched"], order["tests"], root.rstrip("/"), path)
    sys.addaudithook(watch.hook())
    return watch


def _definitions() -> dict[str, tuple[Any, tuple[Any, Any]]]:
    """Return the owner, value and code of each function and class of the judging modules, by name."""
    found: dict[str, tuple[Any, tuple[Any, Any]]] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _JUDGES and isinstance(module, ModuleType):
            for path, owner, value in _defined(name, module):
                found[path] = (owner, (value, value.__code__ if isinstance(value, FunctionType) else None))
    return found


def _defined(path: str, module: ModuleType) -> Iterator[tuple[str, Any, Any]]:
    for name, value in list(_vars(module).items()):
        is_builtin = module is builtins and callable(value)
        if isinstance(value, (type, FunctionType)) or is_builtin:
            yield f"{path}.{name}", module, value
        is_own_class = isinstance(value, type) and value.__module__ == path
        if is_own_class:
            for inner, part in list(_vars(value).items()):
                if callable(part) or isinstance(part, (classmethod, staticmethod, property)):
                    yield f"{path}.{name}.{inner}", value, part


def _vars(owner: Any) -> Mapping[str, Any]:
    namespace: Mapping[str, Any] = vars(owner)
    return namespace
