"""Changes that a call leaves behind in its process are noticed, and nothing else is."""

from __future__ import annotations

import contextlib
import decimal
import json
import locale
import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gistpoint.sandbox.payload.process_state import _READ, ProcessState
from gistpoint.sandbox.payload.submission_server import SubmissionServer


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


def _changes() -> dict[str, contextlib.AbstractContextManager[None]]:
    folder, state, limit = Path.cwd(), random.getstate(), sys.getrecursionlimit()
    handler, precision, profile = (
        signal.getsignal(signal.SIGUSR1),
        decimal.getcontext().prec,
        sys.getprofile(),
    )
    environ, numbers = os.environ, locale.setlocale(locale.LC_ALL)
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
    }


def test_each_state_that_is_read_has_a_case() -> None:
    assert list(_changes()) == list(_READ)


@pytest.mark.parametrize("name", _READ)
def test_a_change_is_named_and_nothing_else(name: str) -> None:
    state = ProcessState()
    before = state.read()
    assert state.changed(before) == []
    with _changes()[name]:
        assert state.changed(before) == [name]


def test_state_that_can_not_be_read_any_more_is_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    state = ProcessState()
    before = state.read()
    monkeypatch.setattr(random, "getstate", None)
    assert state.changed(before) == ["the state of random"]


def test_an_object_that_was_an_answer_before_is_shared_unless_it_was_given() -> None:
    state = ProcessState()
    one: list[int] = []
    assert not state.is_shared(one, lambda value: False)
    assert state.is_shared(one, lambda value: False)
    assert not state.is_shared([], lambda value: False)
    assert not state.is_shared(one, lambda value: True), "it came with the request"
    assert not any(
        state.is_shared(value, lambda found: False) for value in ((), (), "x", "x", 5, 5, None, None)
    )


def test_the_process_of_a_submission_reports_what_a_call_leaves_behind() -> None:
    reading, writing = os.pipe()
    shared: list[int] = []
    bodies: list[Callable[[], object]] = [
        lambda: [1], lambda: [1], lambda: shared, lambda: shared, lambda: random.seed(5),
    ]  # fmt: skip
    server = SubmissionServer({"functions": []}, "/", None, writing)  # type: ignore[arg-type]
    server.found = dict(enumerate(bodies))
    kept = random.getstate()
    answers = []
    for number in range(len(bodies)):
        server.handle({"do": "call", "function": number, "call": number, "shape": [0, [], False, False],
                       "roots": [], "heap": {}})  # fmt: skip
        answers.append(json.loads(os.read(reading, 10_000)))
    random.setstate(kept)
    assert [answer["re"] for answer in answers] == ["value"] * 5, answers
    assert [answer.get("state") for answer in answers] == [
        None, None, None, ["an object that it answered with before"], ["the state of random"],
    ]  # fmt: skip


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
