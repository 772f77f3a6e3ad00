"""Changes that a call leaves behind in its process are noticed, and nothing else is."""

from __future__ import annotations

import atexit
import builtins
import collections
import contextlib
import contextvars
import dataclasses
import decimal
import io
import json
import locale
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gistpoint.sandbox.payload import plain_data as plain
from gistpoint.sandbox.payload import plain_sides as sides
from gistpoint.sandbox.payload.process_state import _READ, EarlierCalls, ProcessState
from gistpoint.sandbox.payload.submission_server import SubmissionServer, _is_changed


@contextlib.contextmanager
def _thread() -> Iterator[None]:
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait, daemon=True)
    thread.start()
    yield
    ended.set()
    thread.join()


@contextlib.contextmanager
def _done(change: Callable[[], Any], undo: Callable[[], Any]) -> Iterator[None]:
    change()
    try:
        yield
    finally:
        undo()


CHILDREN = "the child processes"


@contextlib.contextmanager
def _child() -> Iterator[None]:
    child = subprocess.Popen(["true"])
    yield
    child.wait()


@contextlib.contextmanager
def _open_file() -> Iterator[None]:
    with Path(os.devnull).open("rb"):
        yield


@contextlib.contextmanager
def _filter() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield


_VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("gistpoint_state")


@contextlib.contextmanager
def _context_variable() -> Iterator[None]:
    mark = _VARIABLE.set("x")
    yield
    _VARIABLE.reset(mark)


def _set(holder: object, name: str, value: object) -> contextlib.AbstractContextManager[None]:
    old = getattr(holder, name)
    return _done(lambda: setattr(holder, name, value), lambda: setattr(holder, name, old))


def _changes() -> dict[str, contextlib.AbstractContextManager[None]]:
    folder, state, limit = Path.cwd(), random.getstate(), sys.getrecursionlimit()
    handler, precision, profile = (
        signal.getsignal(signal.SIGUSR1),
        decimal.getcontext().prec,
        sys.getprofile(),
    )
    environ, numbers = os.environ, locale.setlocale(locale.LC_ALL)
    mask = os.umask(0o22)
    os.umask(mask)
    numbers_of, settings = np.random.get_state(), np.geterr()
    return {
        "the environment": _done(
            lambda: environ.update(GISTPOINT_TEST_STATE="x"), lambda: environ.pop("GISTPOINT_TEST_STATE")
        ),
        "the working directory": _done(lambda: os.chdir("/"), lambda: os.chdir(folder)),
        "the recursion limit": _done(
            lambda: sys.setrecursionlimit(limit + 1), lambda: sys.setrecursionlimit(limit)
        ),
        "the import path": _done(lambda: sys.path.append("/x"), lambda: sys.path.remove("/x")),
        "tracing": _done(lambda: sys.setprofile(lambda *_: None), lambda: sys.setprofile(profile)),
        "the threads": _thread(),
        CHILDREN: _child(),
        "blocked signals": _done(
            lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2]),
            lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR2]),
        ),
        "the functions at exit": _done(lambda: atexit.register(_child), lambda: atexit.unregister(_child)),
        "settings of the interpreter": _set(sys, "dont_write_bytecode", not sys.dont_write_bytecode),
        "the state of random": _done(random.random, lambda: random.setstate(state)),
        "the decimal context": _done(
            lambda: setattr(decimal.getcontext(), "prec", 3),
            lambda: setattr(decimal.getcontext(), "prec", precision),
        ),
        "the locale": _done(
            lambda: locale.setlocale(locale.LC_ALL, "C" if "C.UTF" in numbers else "C.UTF-8"),
            lambda: locale.setlocale(locale.LC_ALL, numbers),
        ),
        "the collection of garbage": _done(
            lambda: __import__("gc").disable(), lambda: __import__("gc").enable()
        ),
        "signals": _done(
            lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
            lambda: signal.signal(signal.SIGUSR1, handler),
        ),
        "the standard streams": _done(
            lambda: setattr(sys, "stdin", None), lambda: setattr(sys, "stdin", sys.__stdin__)
        ),
        "the mode of new files": _done(lambda: os.umask(0o12), lambda: os.umask(mask)),
        "the filters of warnings": _filter(),
        "the settings of loggers": _set(logging.getLogger("gistpoint.state"), "level", 7),
        "the hooks of the interpreter": _set(sys, "excepthook", print),
        "the import hooks": _set(sys, "path_hooks", []),
        "the arguments of the program": _set(sys, "argv", ["x"]),
        "the built-in names": _done(
            lambda: setattr(builtins, "gistpoint_state", 1), lambda: delattr(builtins, "gistpoint_state")
        ),
        "the open files": _open_file(),
        "the context variables": _context_variable(),
        "the timers": _done(
            lambda: signal.setitimer(signal.ITIMER_PROF, 3600),
            lambda: signal.setitimer(signal.ITIMER_PROF, 0),
        ),
        "the time limit of sockets": _done(
            lambda: socket.setdefaulttimeout(3), lambda: socket.setdefaulttimeout(None)
        ),
        "the state of numpy's random numbers": _done(
            np.random.random, lambda: np.random.set_state(numbers_of)
        ),
        "the settings of numpy": _done(lambda: np.seterr(over="raise"), lambda: np.seterr(**settings)),
    }


def test_each_state_that_is_read_has_a_case() -> None:
    assert list(_changes()) == list(_READ)


@pytest.mark.parametrize("name", [name for name in _READ if name != CHILDREN])
def test_a_change_is_named_and_nothing_else(name: str) -> None:
    state = ProcessState()
    before = state.read()
    assert state.changed(before) == []
    with _changes()[name]:
        assert state.changed(before) == [name]


def test_a_child_is_named() -> None:
    # In a new process, because earlier tests may have left children, such as a tracker of resources.
    program = (
        "import subprocess; from gistpoint.sandbox.payload.process_state import ProcessState\n"
        "state = ProcessState(); before = state.read()\n"
        "child = subprocess.Popen(['true']); print(*state.changed(before)); child.wait()"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == CHILDREN


def test_state_that_can_not_be_read_any_more_is_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    state = ProcessState()
    before = state.read()
    monkeypatch.setattr(random, "getstate", None)
    assert state.changed(before) == ["the state of random"]


def test_results_of_decimals_leave_no_change() -> None:
    state = ProcessState()
    with decimal.localcontext(decimal.Context(prec=5)):
        before = state.read()
        assert str(decimal.Decimal(1) / 3) == "0.33333"
        assert decimal.getcontext().flags[decimal.Inexact]
        assert state.changed(before) == []
        decimal.getcontext().traps[decimal.Inexact] = True
        assert state.changed(before) == ["the decimal context"]


class Bag:
    def __init__(self) -> None:
        self.items: list[int] = []


class Value:
    def __hash__(self) -> int:
        return 1


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: int = 1


SHARED: list[Callable[[], object]] = [
    list, dict, set, bytearray, collections.deque, collections.Counter, types.SimpleNamespace, io.StringIO, Bag,
]  # fmt: skip
NOT_SHARED: list[Callable[[], object]] = [
    lambda: (), lambda: "x", lambda: 5, Value, Frozen, ValueError, threading.Lock,
]  # fmt: skip


@pytest.mark.parametrize("make", SHARED)
def test_an_object_in_an_answer_to_an_earlier_call_is_shared(make: Callable[[], object]) -> None:
    state, one = ProcessState(), make()
    assert not state.is_shared([one], 1)
    assert not state.is_shared([one, make()], 1), "the same call answers again"
    assert state.is_shared([make(), one], 2)
    assert not state.is_shared([make()], 3)


@pytest.mark.parametrize("make", NOT_SHARED)
def test_what_nobody_changes_is_not_shared(make: Callable[[], object]) -> None:
    state, one = ProcessState(), make()
    assert not any(state.is_shared([one], call) for call in range(3))


class Named:
    def __init__(self) -> None:
        self.name = "x"

    def __hash__(self) -> int:
        return 1


class NamedError(ValueError):
    code = 1


@pytest.mark.parametrize(
    ("make", "attributes"), [(Named, {"name"}), (NamedError, {"args"}), (ValueError, set())]
)
def test_the_attributes_of_a_value_that_occurs_again_are_named(
    make: Callable[[], object], attributes: set[str]
) -> None:
    state, one = ProcessState(), make()
    assert not state.is_shared([one], 1)
    assert state.values == set()
    assert not state.is_shared([one], 2)
    assert {name.rpartition(".")[2] for name in state.values} == attributes


def test_an_exception_that_was_raised_is_not_kept() -> None:
    state = ProcessState()

    def raising() -> weakref.ref[Bag]:
        bag = Bag()
        try:
            raise NamedError
        except NamedError as error:
            state.is_shared([error], 1)
        return weakref.ref(bag)

    assert raising()() is None


def test_objects_of_earlier_calls_are_watched_within_bounds() -> None:
    looked: list[int] = []
    calls = EarlierCalls(lambda shared: bool(looked.append(shared.call)))
    for call in range(300):
        calls.add(call, SimpleNamespace(call=call, objects=dict.fromkeys(range(10))))
        calls.are_changed(call)
        assert call not in looked
        looked.clear()
    assert len(calls.calls) == 20
    given, made = dict.fromkeys(range(1, 52)), dict.fromkeys(range(-51, 0))
    assert calls.add(400, SimpleNamespace(objects=given, side=SimpleNamespace(step=-1)))
    assert not calls.add(401, SimpleNamespace(objects=made, side=SimpleNamespace(step=-1)))
    assert not {400, 401}.intersection(calls.calls)
    assert sum(calls.number % 16 == 0 for calls.number in range(200, 300)) < 10


def answers_of(*bodies: Callable[..., object], roots: list[list[Any]] | None = None) -> list[Any]:
    """Return what the answers to calls of the bodies say about the state of the process."""
    reading, writing = os.pipe()
    server = SubmissionServer({"functions": []}, "/", None, writing)  # type: ignore[arg-type]
    server.found = dict(enumerate(bodies))
    answers = []
    for number in range(len(bodies)):
        given = roots[number] if roots else []
        server.handle({"do": "call", "function": number, "call": number, "shape": [len(given), [], False, False],
                       "roots": given, "heap": {"1": ["list", [5]], "2": ["lock", "lock"]}})  # fmt: skip
        answers.append(json.loads(os.read(reading, 10_000)))
    assert [answer["re"] for answer in answers] == ["value"] * len(bodies), answers
    return [answer.get("state") for answer in answers]


def test_a_new_logger_and_one_that_drops_its_records_are_no_change() -> None:
    state = ProcessState()
    before = state.read()
    logger = logging.getLogger(f"gistpoint.state.{os.getpid()}")
    logger.addHandler(logging.NullHandler())
    assert state.changed(before) == []
    logger.addHandler(logging.StreamHandler())
    assert state.changed(before) == ["the settings of loggers"]
    logger.handlers.clear()


AGAIN, GIVEN, EARLIER, LOCK = (
    ["an object that it answered with before"],
    ["an object that an earlier call was given"],
    ["an object of an earlier call"],
    ["a lock that it was given"],
)


def test_the_process_of_a_submission_reports_what_a_call_leaves_behind() -> None:
    shared: list[int] = []
    kept = random.getstate()
    found = answers_of(
        lambda: [1],
        lambda: [1],
        lambda: shared,
        lambda: shared,
        lambda: (1, {"x": shared}),
        lambda: random.seed(5),
    )
    random.setstate(kept)
    assert found == [None, None, None, AGAIN, AGAIN, ["the state of random"]]


def test_the_process_of_a_submission_reports_what_a_call_does_to_objects_of_another() -> None:
    one: list[int] = [1]
    known: list[Any] = []
    list_given, lock_given = [["#", 1]], [["#", 2]]
    assert answers_of(lambda: (one,), lambda: one.clear(), lambda: 5) == [None, EARLIER, None]
    found = answers_of(known.append, lambda x: x.clear(), lambda x: known[0].clear(), roots=[list_given] * 3)
    assert found == [None, None, EARLIER], "a call may change what it is given itself"
    found = answers_of(
        lambda lock: lock.acquire() and None, lambda lock: lock.locked(), roots=[lock_given] * 2
    )
    assert found == [LOCK, None]


def test_an_argument_of_an_earlier_call_is_not_answered_with() -> None:
    known: list[Any] = []
    given = [["#", 1]]
    found = answers_of(
        lambda x: known.append(x) or x, lambda: [*known[0]], lambda: (1, known), roots=[given, [], []]
    )
    assert found == [None, None, GIVEN]
    found = answers_of(lambda x: x, lambda x: x, roots=[given, given])
    assert found == [None, None], "an argument of the same call is no other object"


def test_values_that_can_not_be_made_end_no_process() -> None:
    reading, writing = os.pipe()
    server = SubmissionServer({"functions": []}, "/", None, writing)  # type: ignore[arg-type]
    server.found = {0: lambda *given: 1}
    call = {"do": "call", "function": 0, "call": 1, "shape": [1, [], False, False], "heap": {}}
    for root in (
        ["m", ["n", "random:"], "there_is_none"],
        ["m"],
        ["m", 1, 2, 3, 4, 5],
        ["i", "no number"],
        [[]],
    ):
        server.handle({**call, "roots": [root]})
        answer = json.loads(os.read(reading, 10_000))
        assert (answer["re"], answer["reason"]) == ("unplain", "not_plain_data"), answer
    server.handle({**call, "roots": [5]})
    assert json.loads(os.read(reading, 10_000))["roots"] == [1]


def test_objects_that_stay_are_the_same_after_their_numbers_were_forgotten() -> None:
    server = SubmissionServer({"functions": []}, "/", None, -1)  # type: ignore[arg-type]
    shared, given = sides.Shared(server.side), [lambda: 0]
    plain.Encoder(shared).message([given])
    assert not _is_changed(shared)
    server.side.kept.clear()
    server.side.kept_numbers.clear()
    assert not _is_changed(shared)
    given.append(given[0])
    assert _is_changed(shared)
    assert not _is_changed(shared), "each change is reported once"
