"""A submission can't fill the memory of the process that reads its answers."""

from __future__ import annotations

import json
import queue
from types import SimpleNamespace
from typing import Any

import pytest

from gistpoint.core.running import CancelToken
from gistpoint.sandbox.confirmation import pair
from gistpoint.sandbox.confirmation.pair import Asked, Pair
from gistpoint.sandbox.confirmation.submission import SubmissionProcess

LIMIT = 10_000


@pytest.mark.parametrize(("requested", "answered"), [(1, 3_000), (3_000, 1), (1_500, 1_500)])
def test_requests_and_answers_are_kept_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch, requested: int, answered: int
) -> None:
    monkeypatch.setattr(pair, "_KEPT_BYTES", LIMIT)
    line = json.dumps({"re": "value", "roots": ["x" * answered], "heap": {}}).encode()
    run: Any = object.__new__(Pair)
    run._submission, run._calls, run._kept = SimpleNamespace(answer_call=lambda request: line), 0, 0
    asked = Asked()
    request = {"do": "call", "function": 0, "roots": ["x" * requested]}
    for _ in range(10):
        assert run._answered(dict(request), asked)["roots"] == ["x" * answered]
    assert asked.has_unkept_calls
    kept = sum(len(json.dumps([part.request, part.answer])) for part in asked.exchanges)
    assert 1 <= len(asked.exchanges) < 10
    assert kept < LIMIT + 4_000


def test_a_process_that_writes_lines_without_being_asked_is_ended() -> None:
    process: Any = object.__new__(SubmissionProcess)
    process._lines, process._cancel = queue.SimpleQueue(), CancelToken()
    for _ in range(1_000):
        process._take(b"x" * 1_000)
    assert process._cancel.cancelled
    assert process._lines.qsize() <= 100
    ordinary: Any = object.__new__(SubmissionProcess)
    ordinary._lines, ordinary._cancel = queue.SimpleQueue(), CancelToken()
    for _ in range(1_000):
        ordinary._take(b"x")
        ordinary._lines.get()
    assert not ordinary._cancel.cancelled
