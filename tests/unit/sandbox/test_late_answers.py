"""The time that a submission has to answer a call: longer on a machine that is busy with other work."""

from __future__ import annotations

import itertools
import queue
import threading
from types import SimpleNamespace

import pytest

from gistpoint.sandbox.confirmation import submission
from gistpoint.sandbox.confirmation.submission import SubmissionProcess, slowdown

LIMIT_S = 0.1


@pytest.fixture
def process() -> SubmissionProcess:
    """A submission's process that is not started, and answers after three times its limit."""
    process = object.__new__(SubmissionProcess)
    process._lines = queue.SimpleQueue()
    threading.Timer(3 * LIMIT_S, process._lines.put, [b"answer"]).start()
    return process


@pytest.mark.parametrize(("times", "answer"), [(1.0, None), (10.0, b"answer")])
def test_a_late_answer_counts_only_if_the_machine_is_slow(
    process: SubmissionProcess, monkeypatch: pytest.MonkeyPatch, times: float, answer: bytes | None
) -> None:
    monkeypatch.setattr(submission, "slowdown", lambda: times)
    assert process._received(LIMIT_S) == answer


def test_a_line_that_comes_too_late_answers_no_later_request(monkeypatch: pytest.MonkeyPatch) -> None:
    process = object.__new__(SubmissionProcess)
    process._lines, process._answered = queue.SimpleQueue(), 1
    process.ended, process.is_late = None, False
    monkeypatch.setattr(submission, "slowdown", lambda: 1.0)
    monkeypatch.setattr(process, "_send", lambda data, deadline: True)
    assert process.answer(b"first", LIMIT_S) is None
    process._lines.put(b"late")
    assert process.answer(b"second", LIMIT_S) is None
    assert process.is_late


@pytest.mark.parametrize(("wall_s", "expected"), [(0.001, 1.0), (0.004, 4.0), (0.1, 10.0)])
def test_slowdown_compares_wall_clock_and_processor(
    monkeypatch: pytest.MonkeyPatch, wall_s: float, expected: float
) -> None:
    used_s = 0.001
    steps = itertools.count()
    clock = SimpleNamespace(now=0)

    def thread_time() -> float:
        clock.now = next(steps)
        return float(clock.now * used_s)

    clocks = SimpleNamespace(thread_time=thread_time, monotonic=lambda: clock.now * wall_s)
    monkeypatch.setattr(submission, "time", clocks)
    assert slowdown() == pytest.approx(expected, rel=0.1)
