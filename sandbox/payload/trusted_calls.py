"""pytest plugin of the process that holds the tests, where stubs ask another process; runs in the target's
interpreter.

The order adds to that of an ordinary run: `stub` (the module that the stubs of the tree import), `hidden`
(files that the other process does not have), `learning`, `all_changes`, and by the number of a function
`answers` and `writes` (see `Learned`). Records, besides those of a run, all of them notes: `ask` (a line for
the other process, whose answer comes over standard input), `problem` (why a test can't count), `unmade` (an
answer wanted to change what the true function never changes) and `learned`. See decision 113.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import logging
import os
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING or "." in __name__:
    from gistpoint.sandbox.payload.code_heard import is_of_tools, may_run_text, texts_of, what_runs
    from gistpoint.sandbox.payload.plain_data import Decoder, Encoder
    from gistpoint.sandbox.payload.plain_sides import (
        NODE_KINDS,
        PLAIN_BASES,
        CannotTravelError,
        ProcessSide,
        Shared,
        Unseen,
        attributes_of,
        class_member,
        contained,
        mro_of,
        resolved,
        same_plain,
        type_name,
    )
    from gistpoint.sandbox.payload.results_plugin import (
        Registering,
        Results,
        close_input,
        moved_up,
        opened_channel,
        taken_order,
    )
else:
    from gistpoint_heard import is_of_tools, may_run_text, texts_of, what_runs
    from gistpoint_plain import Decoder, Encoder
    from gistpoint_results import Registering, Results, close_input, moved_up, opened_channel, taken_order
    from gistpoint_sides import (
        NODE_KINDS,
        PLAIN_BASES,
        CannotTravelError,
        ProcessSide,
        Shared,
        Unseen,
        attributes_of,
        class_member,
        contained,
        mro_of,
        resolved,
        same_plain,
        type_name,
    )

_VARARGS, _KEYWORDS = 4, 8
_TOOLS = frozenset(
    ("pytest", "_pytest", "pluggy", "py", "unittest", "hypothesis", "mock", "__main__", "conftest")
)
"""Packages that the other process does not have, or whose objects belong to the tests."""
_SHORTEST_TEXT = 3
_MOST_TEXTS = 2_000
_MOST_HOLDERS = 2_000
_MOST_RUNS = 2_000


class Learned:
    """What a function's answers hold, and what it changes: noted while the true function answers, required
    later.
    """

    def __init__(
        self, *, learning: bool, answers: list[str], writes: list[str], all_changes: bool = False
    ) -> None:
        self.learning = learning
        self.answers = set(answers)
        self.writes = set(writes)
        self.all_changes = all_changes
        """Whether every change is made, which the true function was seen to make or not."""
        self.unmade = False
        """Whether an answer holds a change that the true function was never seen to make."""

    def holds(self, name: str) -> bool:
        """Whether an answer may hold a class or name."""
        if self.learning:
            self.answers.add(name)
        return name in self.answers

    def changes(self, key: str) -> bool:
        """Whether an answer may change an attribute, or containers of a kind."""
        if self.learning:
            self.writes.add(key)
        return key in self.writes


class TestSide(ProcessSide):
    """The process that holds the tests; it accepts nothing but plain data from the other one."""

    __test__ = False

    def __init__(self, calls: StubCalls, root: str, hidden: list[str]) -> None:
        super().__init__(1, root)
        self.calls = calls
        self.hidden = frozenset(os.path.join(os.path.realpath(root), path) for path in hidden)
        self.is_hidden: dict[str, bool] = {}

    def name(self, value: object) -> str:
        found = super().name(value)
        return "" if found and self.hides(found.partition(":")[0]) else found

    def hides(self, module: str) -> bool:
        """Whether the other process has no such module."""
        known = self.is_hidden.get(module)
        if known is None:
            file = getattr(sys.modules.get(module), "__file__", None)
            inside = type(file) is str and os.path.realpath(file) in self.hidden
            known = self.is_hidden[module] = inside or module.partition(".")[0] in _TOOLS
        return known

    @property
    def learned(self) -> Learned:
        """What is known of the function that is being asked."""
        return self.calls.learned[self.calls.asked[-1]]

    def answered(self, name: str) -> None:
        if not self.learned.holds(name):
            raise Unseen(f"the answer holds {name}")

    def kind_named(self, name: str, base: str) -> type | None:
        if self.learned.holds(name):
            return super().kind_named(name, base)
        if base in _BASES:
            return None
        raise Unseen(f"the answer holds an object of {name}")

    def exception_named(self, name: str, base: str) -> type:
        if self.learned.holds(name):
            return super().exception_named(name, base)
        # A class that no answer of the true function held arrives as the built-in one that it extends.
        known = name if name.startswith("builtins:") else f"builtins:{base}"
        found = resolved(known) if base or known == name else None
        if isinstance(found, type) and issubclass(found, Exception):
            return found
        raise Unseen(f"it raises {name}")

    def warning_named(self, name: str) -> type[Warning] | None:
        """Return the category of a warning; None if it belongs to the tools. Nothing is imported for a
        strange name.
        """
        if name.partition(".")[0].partition(":")[0] in _TOOLS:
            return None
        if not name.startswith("builtins:") and not self.learned.holds(name):
            raise Unseen(f"it warns with {name}")
        found = resolved(name)
        return found if isinstance(found, type) and issubclass(found, Warning) else None

    def check_attribute(self, kind: type, name: str, part: object) -> None:
        if not self.learned.all_changes and _hides(kind, name, part):
            self.answered(f"{type_name(kind)}.{name} hidden")

    def may_hide(self, value: object, name: str, part: object) -> bool:
        kind = type(value)
        hides = _hides(kind, name, part)
        return not hides or self.allowed(self.learned.holds(f"{type_name(kind)}.{name} hidden"))

    def may_write(self, value: object, key: str, *, new: bool) -> bool:
        if new:
            return True
        if self.learned.learning:
            for same in self.same_change(value, key):
                self.learned.changes(same)
        return self.allowed(self.learned.changes(key))

    def same_change(self, value: object, key: str) -> Iterator[str]:
        """Yield what else is changed by who makes the same change in another way.

        A list is extended in place, or a longer one is put where it was: into an attribute, or into a
        container.
        """
        _, attribute, name = key.rpartition(".")
        held = [attributes_of(value).get(name)] if attribute else contained(value)
        yield from {NODE_KINDS[type(part)] for part in held if type(part) in NODE_KINDS}
        known = self.calls.shared[-1].objects if self.calls.shared else {}
        if attribute or len(known) > _MOST_HOLDERS:
            return
        for holder in known.values():
            if any(part is value for part in contained(holder)):
                yield NODE_KINDS[type(holder)]
            for own, part in attributes_of(holder).items():
                if part is value:
                    yield f"{type_name(type(holder))}.{own}"

    def allowed(self, seen: bool) -> bool:
        """Whether a change is made: one that the true function was seen to make, or any; note one that is
        not.
        """
        self.learned.unmade = self.learned.unmade or not seen
        return seen or self.learned.all_changes

    def staying(self, value: object) -> list[Any]:
        if isinstance(value, (types.FunctionType, types.MethodType)):
            return ["function", value.__qualname__, None]
        if _is_iterator(value):
            return ["iterator", type_name(type(value)), None]
        return ["token", type_name(type(value)), None]

    def standing_for(self, number: int, node: list[Any]) -> object:
        self.answered(f"{node[0]} elsewhere")
        if node[0] == "function":
            return self.calls.function(number, node[1], node[2])
        if node[0] == "iterator":
            return self.calls.iterator(number)
        return _Elsewhere()


class _Elsewhere:
    """Stands for an object that can't leave the other process; it can only be passed back."""


_BASES = frozenset(base.__name__ for base in PLAIN_BASES)


def _hides(kind: type, name: str, part: object) -> bool:
    """Whether an attribute hides something else of the object's class."""
    found = class_member(kind, name)
    is_slot = type(found) is types.MemberDescriptorType
    of_class = any(name in type.__dict__["__dict__"].__get__(base) for base in mro_of(kind))
    return of_class and not is_slot and not same_plain(found, part)


def _is_iterator(value: object) -> bool:
    has_next = any("__next__" in vars(part) for part in mro_of(type(value)))
    return has_next and not isinstance(value, io.IOBase)


class StubCalls:
    """The calls of stubs in one run."""

    def __init__(
        self, order: dict[str, Any], root: str, put: Callable[..., None], answers: io.BufferedReader
    ) -> None:
        self.put = put
        self.answers = answers
        self.side = TestSide(self, root, order["hidden"])
        self.learned = [
            Learned(
                learning=order["learning"],
                answers=known["answers"],
                writes=known["writes"],
                all_changes=order["all_changes"],
            )
            for known in order["functions"]
        ]
        self.asked: list[int] = []
        """The functions that are being asked, innermost last."""
        self.shared: list[Shared] = []
        self.numbered = 0
        self.in_test = False
        self.lock = threading.RLock()
        self.own = os.getpid()
        self.texts: set[str] = set()
        self.runs_text = ""
        self.began = time.time()
        self.learning: bool = order["learning"]
        self.ran: set[str] = set(order["runs"] or ())
        """What was compiled, unpickled and started while the true function answered."""
        self.knows_runs = self.learning or order["runs"] is not None
        self.reporting = False
        """Whether pytest describes a failure, for which it may compile the test."""
        sys.addaudithook(self.heard)

    # What stubs call

    def call(self, function: int, values: dict[str, Any]) -> Any:
        """Return what the other process answers to a call with these local variables of the caller."""
        frame = sys._getframe(1)
        request = {"do": "call", "function": function, **_shape(frame)}
        roots = [values[name] for name in request.pop("names")]
        return self.begun(function, request, roots)

    def generate(self, function: int, values: dict[str, Any]) -> Generator[Any, Any, Any]:
        """Yield what the generator in the other process yields."""
        frame = sys._getframe(1)
        request = {"do": "call", "function": function, **_shape(frame)}
        roots = [values[name] for name in request.pop("names")]
        return (yield from self.begun(function, request, roots))

    def begun(self, function: int, request: dict[str, Any], roots: list[Any]) -> Any:
        """Make a call that no other encloses, or one that a function of the tests makes while it is called
        back.
        """
        if not self.in_test:
            raise self.problem("at_import", "it is called while modules are imported")
        self.numbered += 1
        return self.exchanged(function, {**request, "call": self.numbered}, roots, Shared(self.side))

    # The exchange

    def exchanged(self, function: int, request: dict[str, Any], roots: list[Any], shared: Shared) -> Any:
        """Send a request of a call with values; return the answer, or raise what was raised there."""
        if os.getpid() != self.own:
            raise CannotTravelError("it is called in a process that the test forked")
        with self.lock:
            self.asked.append(function)
            self.shared.append(shared)
            try:
                self.send(request, roots, shared)
                return self.taken(self.reply(shared), shared)
            except CannotTravelError as error:
                raise self.problem("not_plain_data", str(error)) from None
            except Unseen as error:
                raise self.problem("unseen", str(error)) from None
            finally:
                self.report_unmade(self.learned[function])
                self.asked.pop()
                self.shared.pop()

    def report_unmade(self, learned: Learned) -> None:
        """Report that an answer wanted to change what the true function never changes."""
        if learned.unmade:
            learned.unmade = False
            self.put("note", kind="unmade")

    def problem(self, reason: str, words: str) -> CannotTravelError:
        """Report why the test can't count, and return what to raise in it."""
        self.put("note", kind="problem", reason=reason, words=words[:300])
        return CannotTravelError(words)

    def send(self, request: dict[str, Any], roots: list[Any], shared: Shared) -> None:
        self.put("note", kind="ask", data={**request, **Encoder(shared).message(roots)})

    def reply(self, shared: Shared) -> dict[str, Any]:
        """Return the answer, after having made the calls that the other process asks for before it answers."""
        while True:
            reply = _reply(self.answers.readline() or b'{"re": "gone"}')
            self.repeat(reply)
            if reply["re"] != "callback":
                return reply
            self.called_back(reply, shared)

    def taken(self, reply: dict[str, Any], shared: Shared) -> Any:
        kind = reply["re"]
        if kind in ("value", "raised", "stop"):
            (value,) = decoded(shared, reply, 1)
            self.remember(value)
            if kind == "raised":
                raise _as_exception(value)
            return _Stop(value) if kind == "stop" else value
        raise self.problem(reply.get("reason", "sandbox"), reply.get("words", kind))

    def called_back(self, reply: dict[str, Any], shared: Shared) -> None:
        """Call a function of the tests, or advance an iterator, and send what comes of it."""
        stays = self.side.kept.get(reply["of"])
        arguments, keywords = decoded(shared, reply, 2)
        if stays is None or isinstance(stays, _Elsewhere):
            raise CannotTravelError("something was called that is not there")
        request, root = {"do": "return"}, None
        try:
            root = next(stays) if reply["do"] == "next" else _call(stays, arguments, keywords)  # type: ignore[call-overload]
        except StopIteration as ended:
            request, root = {"do": "stop"}, ended.value
        except (CannotTravelError, Unseen, KeyboardInterrupt):
            raise
        except BaseException as error:
            request, root = {"do": "raise"}, error
        self.send(request, [root], shared)

    def function(self, number: int, name: str, attributes: Any) -> Callable[..., Any]:
        """Return a function that the other process made: each call of it asks there."""
        function, shared = self.asked[-1], self.shared[-1]

        def elsewhere(*arguments: Any, **keywords: Any) -> Any:
            request = {"do": "apply", "of": number, "call": self.numbered}
            return self.exchanged(function, request, [arguments, tuple(keywords.items())], shared)

        elsewhere.__name__ = elsewhere.__qualname__ = name
        elsewhere.__doc__ = attributes
        return elsewhere

    def iterator(self, number: int) -> Iterator[Any]:
        """Return a generator that yields what an iterator of the other process yields."""
        return self.yielded(number, self.asked[-1], self.shared[-1], self.numbered)

    def yielded(self, number: int, function: int, shared: Shared, call: int) -> Generator[Any, Any, Any]:
        sent: Any = None
        do = "next"
        while True:
            answer = self.exchanged(function, {"do": do, "of": number, "call": call}, [sent], shared)
            if type(answer) is _Stop:
                return answer.value
            try:
                sent, do = (yield answer), "next"
            except GeneratorExit:
                if self.in_test and not self.asked:
                    self.exchanged(function, {"do": "close", "of": number, "call": call}, [None], shared)
                raise
            except BaseException as error:
                sent, do = error, "throw"

    def repeat(self, reply: dict[str, Any]) -> None:
        """Write, warn and log what was written, warned and logged there."""
        sys.stdout.write(reply.get("out", ""))
        sys.stderr.write(reply.get("err", ""))
        for category, text in reply.get("warnings", ()):
            found = self.side.warning_named(category)
            if found is not None:
                file, line = _place_of_caller()
                warnings.warn_explicit(text, found, file, line)
        for name, level, text in reply.get("logs", ()):
            logger = logging.getLogger(name)
            if logger.isEnabledFor(level):
                logger.handle(logger.makeRecord(name, level, "", 0, text, (), None))

    # Whether a library runs an answer as code

    def remember(self, value: object) -> None:
        """Keep the texts of an answer, to see whether one of them is run."""
        if not self.learning or len(self.texts) >= _MOST_TEXTS:
            return
        parts = value if isinstance(value, (list, tuple, set, frozenset)) else (value,)
        for part in parts:
            text = part.decode("latin-1") if isinstance(part, bytes) else part
            if isinstance(text, str) and len(text) >= _SHORTEST_TEXT:
                self.texts.add(text)

    def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Audit hook: note that something is run that holds a text of an answer, or that nobody has seen
        before.
        """
        if self.reporting:
            return
        if self.in_test:
            self.hear_code(event, arguments)
        if not self.texts or self.asked or self.runs_text:
            return
        if may_run_text(event) and not is_of_tools(event, arguments, self.began):
            for text in texts_of(event, arguments):
                if text in self.texts if event == "import" else any(known in text for known in self.texts):
                    self.runs_text = event
                    self.put("note", kind="problem", reason="runs_text", words=f"an answer reaches {event}")
                    return

    def hear_code(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note what is run; report it if no such thing was run while the true function answered.

        An answer may be text, a tree or a pickle that the library runs later: it would run in this process.
        """
        try:
            running = what_runs(event, arguments)
        except (RecursionError, TypeError, ValueError):
            running = b"what can't be compared"
        if not running or is_of_tools(event, arguments, self.began):
            return
        key = f"{event} {hashlib.sha256(running).hexdigest()[:20]}"
        if key in self.ran or not self.knows_runs:
            return
        if len(self.ran) < _MOST_RUNS:
            self.ran.add(key)
        if not self.learning:
            self.put(
                "note", kind="problem", reason="runs_text", words=f"{event} of what the controls did not see"
            )


class _Stop:
    """An iterator has ended with this value."""

    def __init__(self, value: object) -> None:
        self.value = value


_OF_REPLY: dict[str, type] = {"re": str, "roots": list, "heap": dict, "out": str, "err": str}
_BESIDE: dict[str, tuple[type, ...]] = {"warnings": (str, str), "logs": (str, int, str)}


def _reply(line: bytes) -> dict[str, Any]:
    """Return an answer of the other process, which can write anything. Raises `CannotTravelError` if it is
    none.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if type(found) is not dict or "re" not in found:
        raise CannotTravelError("the answer is no message")
    for name, kind in _OF_REPLY.items():
        if name in found and type(found[name]) is not kind:
            raise CannotTravelError(f"{name} of the answer is no {kind.__name__}")
    for name, kinds in _BESIDE.items():
        rows = found.get(name, [])
        if type(rows) is not list or any(
            type(row) is not list or tuple(map(type, row)) != kinds for row in rows
        ):
            raise CannotTravelError(f"{name} of the answer are none")
    return found


def decoded(shared: Shared, message: dict[str, Any], count: int) -> list[Any]:
    """Return the values of a message of the other process.

    Raises `CannotTravelError` for whatever is no message, so that no error of our own is taken for an answer.
    """
    try:
        values = Decoder(shared, message).values()
    except Exception as error:
        raise CannotTravelError(f"the answer can't be read: {type(error).__name__}") from None
    if len(values) != count:
        raise CannotTravelError("the answer has another number of values")
    return values


def _as_exception(value: object) -> BaseException:
    return value if isinstance(value, BaseException) else CannotTravelError("what was raised is no exception")


def _call(function: Any, arguments: tuple[Any, ...], keywords: tuple[tuple[str, Any], ...]) -> Any:
    return function(*arguments, **dict(keywords))


def _shape(frame: types.FrameType) -> dict[str, Any]:
    """Return the module of a stub, the names of its parameters, and how they are passed on."""
    code = frame.f_code
    varargs, keywords = bool(code.co_flags & _VARARGS), bool(code.co_flags & _KEYWORDS)
    named = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames[: named + varargs + keywords])
    shape = [code.co_argcount, names[code.co_argcount : named], varargs, keywords]
    return {"module": frame.f_globals.get("__name__", ""), "shape": shape, "names": names}


def _place_of_caller() -> tuple[str, int]:
    """Return file and line of the innermost frame that is neither ours nor a stub's."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    frame = frame.f_back if frame is not None and frame.f_back is not None else frame
    return ("<unknown>", 1) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


class StubbedRun(Results):
    """An ordinary run, whose tests may ask while they run."""

    def __init__(self, order: dict[str, Any], root: str, put: Callable[..., None], calls: StubCalls) -> None:
        super().__init__(order, root, put)
        self.calls = calls

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(  # type: ignore[override]
        self, item: pytest.Item
    ) -> Generator[None, Any, Any]:
        """Let stubs ask from the setup of a test to the end of its teardown."""
        super().pytest_runtest_protocol(item)
        self.calls.in_test = True
        try:
            return (yield)
        finally:
            self.calls.in_test = False
            if self.calls.side.kept:
                self.calls.side.kept.clear()
                self.calls.side.kept_numbers.clear()
                self.put("note", kind="forget")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, Any]:
        """Let pytest compile what it needs to describe a failure."""
        self.calls.reporting = True
        try:
            return (yield from super().pytest_runtest_makereport(item, call))
        finally:
            self.calls.reporting = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Report what the true function's answers hold."""
        if self.calls.learning:
            learned = [
                {"answers": sorted(part.answers), "writes": sorted(part.writes)}
                for part in self.calls.learned
            ]
            if len(self.calls.ran) < _MOST_RUNS:
                learned[0]["runs"] = sorted(self.calls.ran)
            self.put("note", kind="learned", functions=learned)
        super().pytest_sessionfinish(session, exitstatus)


def begin() -> Registering:
    """Read the order, keep the answers' descriptor, and give the stubs the module that they import."""
    order = taken_order()
    answers = os.fdopen(moved_up(0), "rb")
    close_input()
    put = opened_channel(int(os.environ.pop("GISTPOINT_RESULTS")), order.pop("key"))
    put("begin")
    root = os.environ.pop("GISTPOINT_ROOT")
    calls = StubCalls(order, root, put, answers)
    stub = types.ModuleType(order["stub"])
    vars(stub).update(call=calls.call, generate=calls.generate)
    sys.modules[order["stub"]] = stub
    with contextlib.suppress(ImportError):
        import unittest.mock  # noqa: F401 - so that its objects are known for what they are
    return Registering(StubbedRun(order, root, put, calls))
