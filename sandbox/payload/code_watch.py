"""Detects code without a source: from a string, marshalled bytes, or a file that the run itself wrote.

Many libraries do this legitimately (generated classes, templates, tests that write a module), so it is
reported, not refused: the score compares what a gist does with what the original does (decision 45).

Two events are watched. All code passed to `exec` reaches an audit hook, which can't be removed: it must be
the code of the file that it names. Every function call reaches `see`, called by the tracers up to Python 3.11
and by a monitoring tool from 3.12 on: its code must be part of code that passed the hook, or have existed
before the watch began. Whatever the environment executes before any watched code has begun is not attributed
to the watched code.
"""

from __future__ import annotations

import dis
import gc
import importlib.util
import marshal
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

_MOST, _NAME = 500, 1000
_FROZEN = "<frozen "
_HEADER = 16
"""The number of bytes in a `.pyc` before its code."""
_ESCAPES = {"sys.settrace", "sys.setprofile", "sys.monitoring.register_callback"}
"""Audit events of calls with which the watched code could hide functions."""
_PROCESSES = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork"}
_TOOL = "code watch"
_LIBRARY = os.path.dirname(os.path.realpath(os.__file__))
_NAMEDTUPLE = os.path.join(_LIBRARY, "collections", "__init__.py"), "namedtuple"
_DATACLASS = os.path.join(_LIBRARY, "dataclasses.py"), "_process_class"
_TEXTS = {os.path.join(_LIBRARY, "collections", "__init__.py"): ("code", "s"), _DATACLASS[0]: ("txt",)}
"""The variables in which code-writing files of the standard library keep their text."""
_USED_BY_GENERATED = {"NotImplemented", "hash", "isinstance", "object", "super", "type"}
_INNER = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
_IMPORT, _LOAD = "_find_and_load", "_call_with_frames_removed"
"""The function that imports a module, and the function that passes its code to `exec`."""


class CodeWatch:
    """A watch on the code that is executed.

    `written` are the folders that the run may write to, `given` the files that were put there beforehand, and
    `own` the folders of the watched code; all other code is the environment's. `probe` is called at each call
    of a function that has no source, or that is in a given file on one of the `suspected` lines. It returns
    whether the function reports itself equal to everything, or None to be asked again at the next call.
    """

    def __init__(
        self,
        written: Iterable[str],
        given: Iterable[str],
        own: Iterable[str],
        suspected: Iterable[int] = (),
        probe: Callable[[FrameType], bool | None] = lambda frame: False,
    ) -> None:
        self.modules: set[str] = set()
        """Executed files below the written folders, relative to them."""
        self.functions: set[str] = set()
        """Functions in sourceless code that the environment executed, such as those of `dataclasses`."""
        self.made_elsewhere: set[str] = set()
        """Names in sourceless code that the environment executed, each with the function that was called."""
        self.made: set[str] = set()
        """Names in sourceless code that the watched code executed; `<module>` for code passed to `exec`.

        An attempt to hide functions is noted as `<EVENT>`, or as `<watch taken off>`.
        """
        self.processes: set[str] = set()
        """The programs that were started."""
        self.equals: set[str] = set()
        """Qualified names of functions that report themselves equal to everything."""
        self.program: ModuleType | None = None
        """The module that a given file was executed as, if it is a program."""
        self.settled: dict[int, bool] = {}
        """Whether code that need not be checked again is the environment's, by the id of the code."""
        self._waiting: dict[int, bool] = {}
        self._kept: list[CodeType] = []
        self._known_by_place: dict[tuple[str, int, str], list[CodeType]] | None = None
        self._written = {os.path.realpath(path).rstrip(os.sep) + os.sep: path for path in written}
        self._own = tuple(os.path.realpath(path).rstrip(os.sep) + os.sep for path in own)
        self._given = {os.path.realpath(path): _compiled(path) for path in given}
        self._roots: tuple[str, ...] = ()
        self._begun = False
        self._suspected, self._probe = frozenset(suspected), probe
        self._tool = -1
        self._busy: set[int] = set()

    def install(self) -> CodeWatch:
        """Begin to watch, permanently, and return this object.

        Code that exists or can be imported at this time counts as the environment's.
        """
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            self._keep(frame.f_code, environment=True)
            frame = frame.f_back
        # Functions that exist before the gist is imported can't belong to it, even if it calls them.
        for found in gc.get_objects():
            if type(found) is FunctionType:
                self._keep(found.__code__, environment=True)
        places = [
            sys.prefix,
            sys.base_prefix,
            os.path.dirname(__file__),
            *(path for path in sys.path if path),
        ]
        self._roots = tuple({os.path.realpath(path).rstrip(os.sep) + os.sep for path in places})
        sys.addaudithook(self._audit)
        if sys.version_info >= (3, 12):
            self._start_monitoring()
        return self

    def is_environment(self, code: CodeType) -> bool:
        """Whether code belongs to the environment; unknown code in the environment's folders does."""
        known = self.settled.get(id(code), self._waiting.get(id(code)))
        if known is not None:
            return known
        real = os.path.realpath(code.co_filename)
        return real.startswith(self._roots) and not real.startswith((*self._own, *self._written))

    def allow(self, codes: Iterable[CodeType]) -> None:
        """Accept observing code, which replaces the watched file's code."""
        for code in codes:
            self._kept.append(code)
            self.settled[id(code)] = False

    def finish(self) -> None:
        """Add an entry to `made` if the monitoring tool (Python 3.12 and later) is no longer active."""
        if sys.version_info >= (3, 12):
            monitoring = sys.monitoring
            if monitoring.get_tool(self._tool) != _TOOL or not monitoring.get_events(self._tool):
                self.made.add("<watch taken off>")

    def see(self, frame: FrameType) -> None:
        """Check a function that begins, unless its code is settled."""
        code, thread = frame.f_code, threading.get_ident()
        key = id(code)
        # Guarded per thread: this method calls functions itself, while other threads continue.
        if key in self.settled or thread in self._busy:
            return
        self._busy.add(thread)
        try:
            if key not in self._waiting:
                self._judge_function(code)
            if key in self._waiting:
                self._ask(frame, code)
        finally:
            self._busy.discard(thread)

    if sys.version_info >= (3, 12):

        def _start_monitoring(self) -> None:
            monitoring = sys.monitoring
            self._tool = next(tool for tool in (3, 4, 5, 2, 1, 0) if monitoring.get_tool(tool) is None)
            monitoring.use_tool_id(self._tool, _TOOL)
            settled, see, disable = self.settled, self.see, monitoring.DISABLE

            def on_start(code: CodeType, offset: int) -> Any:
                if id(code) not in settled:
                    see(sys._getframe(1))
                return disable if id(code) in settled else None

            monitoring.register_callback(self._tool, monitoring.events.PY_START, on_start)
            monitoring.set_events(self._tool, monitoring.events.PY_START)

    # Code that is executed

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        # Comes before the check for nested calls, because starting a program always counts.
        if event in _PROCESSES and len(self.processes) < _MOST:
            self.processes.add(str(arguments[0])[:_NAME] if arguments else event)
        if not (event == "exec" or event in _ESCAPES) or threading.get_ident() in self._busy:
            return
        thread = threading.get_ident()
        self._busy.add(thread)
        try:
            caller = sys._getframe(1)
            if event != "exec":
                self._note_escape(event, caller)
            elif isinstance(arguments[0], CodeType) and id(arguments[0]) not in self.settled:
                self._judge_module(arguments[0], caller)
        finally:
            self._busy.discard(thread)

    def _note_escape(self, event: str, caller: FrameType) -> None:
        """Record an escape of the watched code, or of a library that it called, such as a debugger."""
        if not self._is_of_environment(caller):
            self.made.add(f"<{event}>")
        elif self._begun and not self._is_called_by_environment(caller):
            self.made_elsewhere.add(f"<{event}> by {self._entry_point(caller)}")

    def _is_called_by_environment(self, frame: FrameType) -> bool:
        caller: FrameType | None = frame
        while caller is not None and self.is_environment(caller.f_code):
            caller = caller.f_back
        return caller is None

    def _is_of_environment(self, frame: FrameType) -> bool:
        key = id(frame.f_code)
        return self.settled.get(key, self._waiting.get(key, False))

    def _is_generated(self, code: CodeType, caller: FrameType) -> bool:
        """Whether the standard library executes its own string, made of names alone, to make a class.

        `namedtuple` checks its names. `dataclass` does not check those of annotations, which may be any text.
        """
        if not _is_text_of(code, caller):
            return False
        frame: FrameType | None = caller
        while frame is not None and self._is_of_environment(frame):
            if _function_of(frame) == _NAMEDTUPLE:
                return frame is caller
            if _function_of(frame) == _DATACLASS:
                return _are_names(frame.f_locals.get("fields")) and not _strange_names(code)
            frame = frame.f_back
        return False

    def _entry_point(self, caller: FrameType) -> str | None:
        """Return the file and the name of the environment's function that led to `caller`.

        This is the function that the watched code called, or `caller` itself if no watched code is running.
        None if a module of the environment is being imported.
        """
        frame = caller
        while frame.f_back is not None and self._is_of_environment(frame.f_back):
            frame = frame.f_back
            if frame.f_code.co_name == _IMPORT and frame.f_code.co_filename.startswith(_FROZEN):
                return None
        code = (caller if frame.f_back is None else frame).f_code
        return f"{os.sep.join(code.co_filename.split(os.sep)[-2:])} {_name_of(code)}"

    def _judge_module(self, code: CodeType, caller: FrameType) -> None:
        name = code.co_filename
        if name.startswith(_FROZEN):
            if _is_frozen(code, name[len(_FROZEN) : -1]):
                self._keep(code, environment=True)
                return
        elif os.path.isabs(name):
            real = os.path.realpath(name)
            if real in self._given:
                # Compared with the file as it was given, because the run may have rewritten it.
                if code == self._given[real]:
                    self.program = sys.modules.get("__main__")
                    self._keep(code, environment=False)
                    return
            elif (below := next((root for root in self._written if real.startswith(root)), None)) is not None:
                self.modules.add(real[len(below) :])
                self._keep(code, environment=False)
                return
            elif real.startswith((*self._own, *self._roots)) and _is_code_of(code, name):
                self._keep(code, environment=not real.startswith(self._own))
                return
        self._note(code, caller)

    def _judge_function(self, code: CodeType) -> None:
        """Judge a function's code that was not part of executed code; it may be a copy of such code."""
        alike = self._known_copy(code)
        if alike is not None:
            self._keep(code, environment=self.settled.get(id(alike), self._waiting.get(id(alike), False)))
        else:
            self._note(code)

    def _known_copy(self, code: CodeType) -> CodeType | None:
        """Return known code that differs only in flags or argument names, as from `code.replace`.

        Return None if there is none.
        """
        if self._known_by_place is None:
            self._known_by_place = {}
            for known in self._kept:
                self._known_by_place.setdefault(_place(known), []).append(known)
        content = _content(code)
        return next(
            (known for known in self._known_by_place.get(_place(code), ()) if _content(known) == content),
            None,
        )

    def _note(self, code: CodeType, caller: FrameType | None = None) -> None:
        """Record sourceless code, and its executor if that is known."""
        names = [found.co_name for found in _with_inner(code) if found.co_name not in _INNER]
        if caller is None or self._executes_for_submission(caller):
            _add(self.made, names)
            self._keep(code, environment=False, suspect=True)
            return
        if self._begun and not self._is_generated(code, caller):
            entry_point = self._entry_point(caller)
            if entry_point is not None:
                _add(self.functions, (name for name in names if name[:1] != "<"))
                _add(self.made_elsewhere, (f"{name} by {entry_point}" for name in names))
        self._keep(code, environment=True)

    def _executes_for_submission(self, caller: FrameType) -> bool:
        """Whether sourceless code that `caller` executes counts as the submission's.

        The import system is code of the environment, but what it loads without a source that was given can
        only come from the submission.
        """
        is_import_system = caller.f_code.co_name == _LOAD
        return is_import_system or not self._is_of_environment(caller)

    def _keep(self, code: CodeType, *, environment: bool, suspect: bool = False) -> None:
        self._begun = self._begun or not environment
        for found in _with_inner(code):
            if id(found) in self.settled or id(found) in self._waiting:
                continue
            # Kept alive, so that no other code gets its id.
            self._kept.append(found)
            if self._known_by_place is not None:
                self._known_by_place.setdefault(_place(found), []).append(found)
            waits = not environment and (suspect or self._is_suspected(found))
            (self._waiting if waits else self.settled)[id(found)] = environment

    # Functions that report themselves equal to everything

    def _is_suspected(self, code: CodeType) -> bool:
        if not self._suspected or os.path.realpath(code.co_filename) not in self._given:
            return False
        return any(line in self._suspected for _, line in dis.findlinestarts(code))

    def _ask(self, frame: FrameType, code: CodeType) -> None:
        answer = self._probe(frame)
        if answer is None:
            return
        if answer:
            self.equals.add(_name_of(code))
        self.settled[id(code)] = self._waiting.pop(id(code))


def _function_of(frame: FrameType) -> tuple[str, str]:
    return os.path.realpath(frame.f_code.co_filename), frame.f_code.co_name


def _is_text_of(code: CodeType, frame: FrameType) -> bool:
    """Whether code was compiled from a string that a code-generating function built, not a given one."""
    for name in _TEXTS.get(_function_of(frame)[0], ()):
        text = frame.f_locals.get(name)
        if type(text) is str and any(
            _code_of(text, code.co_filename, mode) == code for mode in ("eval", "exec")
        ):
            return True
    return False


def _are_names(fields: object) -> bool:
    """Whether all fields of a data class have identifiers as names, with nothing else in them."""
    if type(fields) is not dict:
        return False
    kind = getattr(sys.modules.get("dataclasses"), "Field", None)
    names = [*fields, *(one.name for one in fields.values() if type(one) is kind)]
    return len(names) == 2 * len(fields) and all(type(name) is str and name.isidentifier() for name in names)


def _strange_names(code: CodeType) -> set[str]:
    """Return the global names that code looks up, without those that generated classes use."""
    looked = {
        str(instruction.argval)
        for found in _with_inner(code)
        for instruction in dis.get_instructions(found)
        if instruction.opname in ("LOAD_NAME", "LOAD_GLOBAL")
    }
    return looked - _USED_BY_GENERATED - {"__create_fn__"}


def _add(names: set[str], more: Iterable[str]) -> None:
    names.update(name for name in more if len(names) < _MOST)


def _name_of(code: CodeType) -> str:
    return getattr(code, "co_qualname", code.co_name)  # before Python 3.11, only the plain name


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    waiting = [code]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += [constant for constant in found.co_consts if isinstance(constant, CodeType)]


def _place(code: CodeType) -> tuple[str, int, str]:
    return code.co_filename, code.co_firstlineno, code.co_name


def _content(code: CodeType) -> tuple[object, ...]:
    # The table decides where a failed assertion continues.
    table = getattr(code, "co_exceptiontable", b"")  # since Python 3.11
    return code.co_code, code.co_consts, code.co_names, code.co_freevars, code.co_argcount, table


def _compiled(path: str) -> CodeType | None:
    """Return the code of a source file; None if the file can't be read or compiled."""
    try:
        with open(path, "rb") as file:
            return _code_of(file.read(), path)
    except OSError:
        return None


def _code_of(source: str | bytes, path: str, mode: str = "exec") -> CodeType | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compile(source, path, mode, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_code_of(code: CodeType, path: str) -> bool:
    """Whether the source file at `path` compiles to `code`."""
    try:
        with open(importlib.util.cache_from_source(path), "rb") as file:
            # The cache is read first, because compiling a module again takes longer than importing it.
            if marshal.loads(file.read()[_HEADER:]) == code:
                return True
    except (OSError, ValueError, EOFError, TypeError, NotImplementedError):
        pass
    return _compiled(path) == code


def _is_frozen(code: CodeType, name: str) -> bool:
    import _imp

    try:
        found: CodeType = _imp.get_frozen_object(name)
    except ImportError:
        return False
    return found == code
